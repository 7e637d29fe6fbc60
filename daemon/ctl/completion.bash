# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# bash completion for ephemeralctl(1). Commands and options are read from its own help, so they are always those it has.

_ephemeralctl_commands() {
    ephemeralctl --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p'
}

_ephemeralctl_options() {
    ephemeralctl "$@" --help | grep -o -- '--[a-z][a-z-]*=\?' | sort -u
}

# Runs by their whole id; $1 narrows to a state.
_ephemeralctl_runs() {
    ephemeralctl list --json --no-ask-password ${1:+--state="$1"} 2>/dev/null | sed -n 's/^{"id":"\([^"]*\)".*/\1/p'
}

_ephemeralctl_images() {
    ephemeralctl image list --json 2>/dev/null | sed -n 's/^{"name":"\([^"]*\)".*/\1/p'
}

_ephemeralctl_workflows() {
    ephemeralctl workflows --json --no-ask-password 2>/dev/null | sed -n 's/^{"name":"\([^"]*\)".*/\1/p'
}

# The command that has been typed, and how many words follow it before the cursor.
_ephemeralctl_find_command() {
    local i
    command='' operands=0
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ! $command ]]; then
            [[ ${COMP_WORDS[i]} == -* ]] || command=${COMP_WORDS[i]}
        elif [[ ${COMP_WORDS[i]} != -* ]]; then
            operands=$((operands + 1))
        fi
    done
}

_ephemeralctl_operands() {
    case $command in
    status | timeline | result | request | console) _ephemeralctl_runs ;;
    cancel | kill) _ephemeralctl_runs running && _ephemeralctl_runs starting && _ephemeralctl_runs queued ;;
    workflows) _ephemeralctl_workflows ;;
    image) if ((operands == 0)); then echo list show build; else _ephemeralctl_images; fi ;;
    template) if ((operands == 0)); then echo list build drop; else _ephemeralctl_images; fi ;;
    esac
}

_ephemeralctl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command operands words=''
    COMPREPLY=()
    _ephemeralctl_find_command
    # "--name=val" arrives as three words
    [[ $current != '=' ]] || current=''
    [[ $previous != '=' ]] || previous=${COMP_WORDS[COMP_CWORD - 2]}
    case $previous in
    --script | --request)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        compopt -o filenames
        return
        ;;
    --image) words=$(_ephemeralctl_images) ;;
    --state) words='queued starting running stopping ended' ;;
    --suite) words='bookworm trixie' ;;
    *)
        if [[ ! $command ]]; then
            words=$(_ephemeralctl_commands && _ephemeralctl_options)
        elif [[ $current == -* ]]; then
            words=$(_ephemeralctl_options "$command")
        elif [[ $command == validate ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            compopt -o filenames
            return
        else
            words=$(_ephemeralctl_operands)
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
}

complete -F _ephemeralctl ephemeralctl
