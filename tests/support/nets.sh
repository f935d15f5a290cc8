# Nets of tests for scripts: files of tests/nets, whose placeholders tests/support/nets.h describes.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# test_net NAME [KEY=TEXT...]: prints tests/nets/NAME.prototxt with each @KEY@ replaced. A
# placeholder without a text and a text without a placeholder end the script.
test_net() {
    local file=${LOCKSTEP_SOURCE:?}/tests/nets/$1.prototxt text value key
    shift
    text=$(grep -v '^#' "$file") || { echo "$file: cannot be read" >&2; exit 1; }
    for value in "$@"; do
        key=@${value%%=*}@ value=${value#*=}
        if [ "${text/"$key"/}" = "$text" ]; then
            echo "$file: there is no placeholder $key" >&2
            exit 1
        fi
        text=${text//"$key"/"$value"}
    done
    if [[ $text =~ @[a-z0-9_]+@ ]]; then
        echo "$file: the placeholder ${BASH_REMATCH[0]} has no value" >&2
        exit 1
    fi
    printf '%s\n' "$text"
}
