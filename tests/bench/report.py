# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bench's numbers as a table, a page and a plot."""
import json
import os
import subprocess

ROWS = (
    ("bare_cold", "bare QEMU, boot"),
    ("cold", "run, boot (Templates=no)"),
    ("bare_clone", "bare QEMU, clone"),
    ("clone", "run, clone"),
    ("standby", "run, standby"),
    ("next_command", "next command in a machine"),
    ("crun", "crun, a container"),
    ("nspawn", "systemd-nspawn --ephemeral"),
    ("end", "end of the command to all gone"),
)
# What must hold: name, what is divided by what, and the most (or, negative, the least) that it may be.
BOUNDS = (
    ("standby_to_bare_cold", 1 / 40),
    ("clone_to_bare_clone", 1.3),
    ("cold_to_bare_cold", 1.1),
    ("forty_to_bare", 1.3),
    ("throughput_to_raw", -0.8),
)


def ratios(medians, result):
    forty, rate = result["at_once_ms"][40], result["throughput_mib_per_s"]
    return {
        "standby_to_bare_cold": medians["standby"] / medians["bare_cold"],
        "clone_to_bare_clone": medians["clone"] / medians["bare_clone"],
        "cold_to_bare_cold": medians["cold"] / medians["bare_cold"],
        "forty_to_bare": forty["ours"] / forty["bare"],
        "throughput_to_raw": rate["client"] / rate["raw"],
    }


def within(name, value):
    bound = dict(BOUNDS)[name]
    return value >= -bound if bound < 0 else value <= bound


def shown_bound(bound):
    return f"at least {-bound:.2f}" if bound < 0 else f"at most {bound:.3g}"


def table(result):
    medians, machine = result["median_ms"], result["machine"]
    lines = [f"{machine['distribution']}, QEMU {machine['qemu']} ({machine['accelerator']}), {machine['processors']} x "
             f"{machine['processor']}, Linux {machine['kernel']}; `{result['command']}`, medians of {result['rounds']}", "",
             f"{'from the call to the first output':36} {'ms':>9}"]
    lines += [f"{text:36} {medians[name]:9.1f}" for name, text in ROWS if name in medians]
    lines += ["", f"{'at once, from the first to the last':36} {'bare ms':>9} {'runs ms':>9} {'ratio':>6}"]
    lines += [f"{n:<36} {both['bare']:9.0f} {both['ours']:9.0f} {both['ours'] / both['bare']:6.2f}"
              for n, both in result["at_once_ms"].items()]
    rate = result["throughput_mib_per_s"]
    lines += ["", f"failed of those: {result['at_once_failed']}",
              f"private memory of a machine: {result['private_mib_per_vm']:.1f} MiB (PSS {result['pss_mib_per_vm']:.1f} MiB)",
              f"the manager's processor time for a run: {result['manager_cpu_ms_per_run']:.1f} ms",
              f"output: {rate['client']:.0f} MiB/s at a client, {rate['raw']:.0f} MiB/s at the port", ""]
    for name, bound in BOUNDS:
        value = result["ratio"][name]
        lines.append(f"{name.replace('_', ' '):36} {value:9.3f}   {shown_bound(bound)}: {'holds' if within(name, value) else 'DOES NOT HOLD'}")
    lines += [f"{name} was not measured: {reason}" for name, reason in result["skipped"].items()]
    return "\n".join(lines)


def plot(result, path):
    """Bars of the medians with whiskers from the first to the ninth decile, on a logarithmic scale; by gnuplot."""
    rows = [(text, sorted(result["samples_ms"][name])) for name, text in ROWS if name in result["samples_ms"]]
    data = "\n".join(f'"{text}" {v[len(v) // 2]:.2f} {v[len(v) // 10]:.2f} {v[-1 - len(v) // 10]:.2f}' for text, v in rows)
    script = f"""set terminal svg size 860,420 font "sans,13"
set output "{path}"
set title "{result['machine']['distribution']}, QEMU {result['machine']['qemu']} ({result['machine']['accelerator']})"
set xlabel "milliseconds: median, 10th to 90th percentile"
set logscale x
set xrange [1:*]
set yrange [{len(rows) - 0.4}:-0.6]
set grid xtics
set style fill solid 0.6 noborder
unset key
$data << EOD
{data}
EOD
plot $data using (0.5*$2):0:(1):2:($0-0.35):($0+0.35):ytic(1) with boxxyerror lc rgb "#4a7ab5", \\
     $data using 2:0:3:4 with xerrorbars pt 7 ps 0.4 lc rgb "#222222"
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def write(result, directory):
    name = result["machine"]["distribution"].split(" (")[0].replace("GNU/Linux ", "").lower().replace(" ", "-")
    os.makedirs(directory, exist_ok=True)
    kept = {key: value for key, value in result.items() if key != "samples_ms"}
    with open(f"{directory}/{name}.json", "w", encoding="utf-8") as f:
        json.dump(kept, f, indent=2)
        f.write("\n")
    with open(f"{directory}/{name}.md", "w", encoding="utf-8") as f:
        f.write(f"![the medians]({name}.svg)\n```\n{table(result)}\n```\n")
    plot(result, f"{directory}/{name}.svg")
