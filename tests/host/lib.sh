# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What ./try, ./check and tests/host/host share: where things are, and steps that show progress. Sourced with `set -euo pipefail`.

source_dir=$(readlink -f -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
build_dir=$source_dir/build
log_dir=$build_dir/log
export source_dir build_dir log_dir

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

need_root() {
    ((EUID == 0)) || die "This makes mounts and namespaces of its own and so must be run as root."
}

# step LABEL LOG COMMAND…: runs the command with its output in LOG, shows one line with the elapsed time, and the end of the log
# if the command fails.
step() {
    local label=$1 log=$log_dir/$2.log start=$SECONDS status=0 pid
    shift 2
    mkdir -p "$log_dir"
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
    if [[ -t 2 ]]; then
        while kill -0 "$pid" 2>/dev/null; do
            printf '\r  … %-58s %4d s' "$label" $((SECONDS - start)) >&2
            sleep 0.2
        done
        printf '\r' >&2
    fi
    wait "$pid" || status=$?
    trap - INT TERM
    if ((status == 0)); then
        printf '  ✓ %-58s %4d s\n' "$label" $((SECONDS - start)) >&2
        return 0
    fi
    printf '  ✗ %-58s %4d s\n\n' "$label" $((SECONDS - start)) >&2
    tail -n 30 "$log" >&2
    printf '\nThe whole log: %s\n' "$log" >&2
    return "$status"
}
