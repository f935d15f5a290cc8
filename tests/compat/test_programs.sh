#!/bin/bash
# tools/check_programs.sh finds a program that belongs to no package of the lists.
# SPDX-License-Identifier: BSD-2-Clause
set -u
dpkg-query -S "$(command -v cmake)" >/dev/null 2>&1 || {
    echo "skipped: needs Debian's cmake"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{tests,tools,bench,examples,.ci}
cat >"$folder/tests/some.sh" <<'TEXT'
# cmake in a comment
echo cmake 'cmake' "$(cat /dev/null)" | sort >/dev/null
list=$(awk '
    cmake { print }
    ' /dev/null)
if [ -n "$list" ] && cmake --version; then true; fi
TEXT

check() { # STATUS TEXT: with the lists on standard input
    local status=0
    cat >"$folder/run"
    bash "$LOCKSTEP_SOURCE/tools/check_programs.sh" "$folder" >"$folder/log" 2>&1 || status=$?
    if [ "$status" != "$1" ] || [ "$(cat "$folder/log")" != "$2" ]; then
        echo "FAILED: status $status instead of $1, or not '$2':"
        cat "$folder/log"
        exit 1
    fi
}
check 0 "" <<'TEXT'
some_packages="gcc
    cmake"
TEXT
check 1 "tests/some.sh:6: calls cmake, of the package cmake, which is in no list of ./run" <<'TEXT'
some_packages="gcc"
TEXT
