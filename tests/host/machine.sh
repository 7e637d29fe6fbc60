# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A running test host: systemd-nspawn in a cgroup and a mount namespace of its own, so that ending the one and leaving the other
# removes every trace. Nothing of the machine's own is touched: it needs neither systemd-machined nor a systemd as PID 1.
#
# $state (build/host/NAME) holds, for a host that was started: `cgroup` (its path), `distro`, `package` (digest of the one
# that is in it), `console.log`, and the overlay's `upper` and `work`.

# From lib.sh, and from the program that sources this file.
: "${source_dir:?}" "${name:=}" "${state:=}"

machine_cgroup_mount() {
    findmnt --noheadings --output TARGET --types cgroup2 | head -n 1 || true
}

# Told apart by the checkout, so that two of them can have a host of the same name.
machine_unit() {
    echo "ephemeral-host-$(printf '%s' "$source_dir" | sha256sum | cut -c1-8)-$name"
}

# The first process of the host, or nothing.
machine_leader() {
    local cgroup pid
    [[ -e $state/cgroup ]] || return 0
    cgroup=$(<"$state/cgroup")
    [[ -r $cgroup/payload/init.scope/cgroup.procs ]] || return 0
    while read -r pid; do
        if awk '$1 == "NSpid:" && $NF == 1 { found = 1 } END { exit !found }' "/proc/$pid/status" 2>/dev/null; then
            echo "$pid"
            return 0
        fi
    done <"$cgroup/payload/init.scope/cgroup.procs"
}

# machine_enter COMMAND…: inside the host's namespaces, as root, outside of any of its units. For the host tool's own questions.
machine_enter() {
    local leader
    leader=$(machine_leader)
    [[ $leader ]] || die "The host $name is not running. Start it with: tests/host/host --name $name up"
    nsenter --target "$leader" --mount --uts --ipc --net --pid --cgroup --root --wd -- \
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM="${TERM:-dumb}" "$@"
}

# machine_is_up: has finished booting.
machine_is_up() {
    local leader
    leader=$(machine_leader)
    [[ $leader ]] || return 1
    case $(machine_enter systemctl is-system-running 2>/dev/null) in
    running | degraded) return 0 ;;
    *) return 1 ;;
    esac
}

# machine_boot ROOT IMAGES: starts the host and waits until it is up.
machine_boot() {
    local root=$1 images=$2 unit cgroup_mount launch pid deadline=$((SECONDS + 180))
    unit=$(machine_unit)
    cgroup_mount=$(machine_cgroup_mount)
    [[ $cgroup_mount ]] || die "No cgroup2 file system is mounted, which systemd needs inside the host."
    mkdir -p "$state"/{upper,work,root}
    launch=(unshare --mount --propagation unchanged "$source_dir/tests/host/launch" "$name" "$state" "$root" "$images")
    if [[ -d /run/systemd/system ]]; then
        launch=(systemd-run --quiet --scope --collect --unit="$unit" --property=Delegate=yes -- "${launch[@]}")
    else
        mkdir -p "$cgroup_mount/$unit"
        export EPHEMERAL_HOST_CGROUP=$cgroup_mount/$unit
    fi
    setsid -- "${launch[@]}" </dev/null >"$state/console.log" 2>&1 &
    pid=$!
    until machine_is_up; do
        if ! kill -0 "$pid" 2>/dev/null; then
            cat "$state/console.log"
            die "The host ended while it booted."
        fi
        ((SECONDS < deadline)) || die "The host did not come up in time. Its console: $state/console.log"
        sleep 0.2
    done
    echo "$(machine_enter systemctl --failed --plain --no-legend | wc -l) units failed to start"
}

# Ends every process of the host and removes all that it left.
machine_end() {
    local cgroup
    if [[ -e $state/cgroup ]]; then
        cgroup=$(<"$state/cgroup")
        if [[ -d $cgroup ]]; then
            echo 1 >"$cgroup/cgroup.kill"
            while grep -qs 'populated 1' "$cgroup/cgroup.events"; do
                sleep 0.1
            done
        fi
        # systemd-nspawn makes the same path in systemd's version 1 hierarchy, where that is mounted.
        for cgroup in "$cgroup" "/sys/fs/cgroup/systemd/$(basename "$cgroup")"; do
            [[ ! -d $cgroup ]] || find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
        done
    fi
    # Only there if it was started from within a chroot, see launch.
    [[ ! -d $state/self ]] || umount --recursive --lazy "$state/self" 2>/dev/null || true
    rm -rf --one-file-system -- "$state"
}
