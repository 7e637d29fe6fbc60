# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# For the lint tests: they run in the source tree, whose root is their first argument.
set -euo pipefail
cd -- "$1"

# The project's own files, one a line: what git knows, or all but the build trees where there is no git.
project_files() {
    if [[ -e .git ]] && command -v git >/dev/null; then
        git -c safe.directory='*' ls-files --cached --others --exclude-standard
    else
        find . -path './build*' -prune -o -path ./.git -prune -o -type f -printf '%P\n'
    fi | while IFS= read -r file; do
        [[ ! -f $file ]] || printf '%s\n' "$file"
    done
}

need() {
    command -v "$1" >/dev/null || {
        echo "skipped: $1 is not installed"
        exit 77
    }
}
