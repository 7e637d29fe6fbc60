# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The root file system of a test host: a minimal Debian with what the package depends on and three people to try it with. Made once
# for each distribution and never written to afterwards; hosts put an overlay on it.

# From lib.sh.
: "${source_dir:?}" "${build_dir:?}"

# Apt sources for a suite, on the mirrors that this machine uses itself.
root_sources() {
    local suite=$1 site security targets
    # shellcheck disable=SC2016 # The dollars are apt-get's.
    targets=(apt-get indextargets --format '$(LABEL) $(SITE)' 'Created-By: Packages')
    # The whole of awk's input is read, so that apt-get is not cut off.
    site=$("${targets[@]}" | awk '$1 == "Debian" && !n++ { print $2 }')
    security=$("${targets[@]}" | awk '$1 == "Debian-Security" && !n++ { print $2 }')
    # Without them, mmdebstrap's own default: nothing is printed.
    [[ $site && $security ]] || return 0
    printf 'deb %s %s main\n' "$site" "$suite" "$site" "$suite-updates" "$security" "$suite-security"
}

root_packages() {
    grep -v '^#' "$source_dir/packaging/host-packages" | paste -sd,
}

# Runs in a subshell of mmdebstrap's: no group of the package exists yet, people join it when the package is there.
# shellcheck disable=SC2016 # Expanded by the shell that runs it.
root_customize='set -e
for name in alice bob mallory; do chroot "$1" useradd --create-home --shell /bin/bash "$name"; done
rm -f "$1/etc/hostname" "$1/etc/resolv.conf"
mkdir -p "$1/var/log/journal"'

root_key() {
    { echo "$1"; root_packages; echo "$root_customize"; } | sha256sum | cut -d' ' -f1
}

root_path() {
    echo "$build_dir/host/root-$1"
}

root_is_current() {
    local root
    root=$(root_path "$1")
    [[ -d $root && -e $root.key && $(<"$root.key") == "$(root_key "$1")" ]]
}

root_make() {
    local suite=$1 root sources
    root=$(root_path "$suite")
    mkdir -p "$(dirname "$root")"
    mapfile -t sources < <(root_sources "$suite")
    rm -rf -- "$root" "$root.new" "$root.key"
    mmdebstrap --variant=minbase --include="$(root_packages)" --customize-hook="$root_customize" \
        "$suite" "$root.new" "${sources[@]}"
    mv -T "$root.new" "$root"
    root_key "$suite" >"$root.key"
}
