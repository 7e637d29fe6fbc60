#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many runs: at once, without mixing, and in a row, without leaving anything. EPHEMERAL_TEST_ROW says how many in a row."""

import os

from harness import host, leftovers, main, manager_pid, note, wait_for, wait_for_standby

AT_ONCE = 20
ROW = int(os.environ.get("EPHEMERAL_TEST_ROW", "200"))

# Each run writes what only it knows, on both streams, and ends with a status of its own.
AT_ONCE_SCRIPT = r"""
cd "$(mktemp -d)"
for i in $(seq "$1"); do
    ephemeralctl run --quiet -- sh -c 'for n in $(seq 100); do echo "out '$i' $n"; echo "err '$i' $n" >&2; done; exit '$i >"$i.out" 2>"$i.err" &
    pids[i]=$!
done
for i in $(seq "$1"); do
    wait "${pids[i]}"
    status=$?
    [ "$status" = "$i" ] || echo "run $i: exit status $status: $(tail -n 3 "$i.err")"
    cmp -s "$i.out" <(for n in $(seq 100); do echo "out $i $n"; done) || echo "run $i: other output: $(head -n 3 "$i.out")"
    cmp -s "$i.err" <(for n in $(seq 100); do echo "err $i $n"; done) || echo "run $i: other errors: $(head -n 3 "$i.err")"
done
"""


def manager_fds():
    return host("bash", "-c", f"ls /proc/{manager_pid()}/fd | wc -l").text


def manager_rss_kib():
    return int(host("awk", "/^VmRSS/ { print $2 }", f"/proc/{manager_pid()}/status").text)


def test_at_once():
    """20 runs at once each get their own output and status"""
    said = host("bash", "-c", AT_ONCE_SCRIPT, "-", str(AT_ONCE), user="alice", timeout=800)
    assert said.status == 0 and said.text == "", said.text
    wait_for(lambda: not leftovers(), 20, "nothing left of them")


def test_in_a_row():
    """runs in a row leave no process, unit, cgroup, mount, uid, file or fd"""
    one = 'ephemeralctl run --quiet -- sh -c "echo x; exit 0" >/dev/null'
    host("bash", "-c", one, user="alice", ok=True)
    wait_for_standby()
    fds, rss = manager_fds(), manager_rss_kib()
    # two at a time, for two processors
    said = host("bash", "-c", f"seq {ROW} | xargs -P 2 -I N sh -c '{one} || echo run N failed'", user="alice", timeout=3000)
    assert said.text == "", said.text
    wait_for(lambda: not leftovers(), 20, "nothing left of them")
    wait_for_standby()
    assert manager_fds() == fds
    grown = manager_rss_kib() - rss
    note(f"the manager grew by {grown} KiB in {ROW} runs")
    # What is kept is the timelines of ended runs, which are some KiB each.
    assert grown < 64 * ROW + 1024, grown


main()
