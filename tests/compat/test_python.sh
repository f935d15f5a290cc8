#!/bin/bash
# The Python package (python/tests), on the shared library of this build: what ctypes is told of the
# structs against a C compiler, trainings against the program's bytes, arrays. $LOCKSTEP_PYTHON names
# a python with NumPy; without NumPy the cases that need it are left out.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
python=${LOCKSTEP_PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null ||
    { echo "skipped: needs Python 3.9 or newer (LOCKSTEP_PYTHON)"; exit 77; }
if grep -q '^LOCKSTEP_SANITIZE:[A-Z]*=.\+' "$LOCKSTEP_BUILD/CMakeCache.txt"; then
    echo "skipped: Python cannot load a library with sanitizers"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
cp -r "$LOCKSTEP_SOURCE/python/lockstep" "$work/lockstep"
"$python" -B "$LOCKSTEP_SOURCE/tools/python_declarations.py" "$work/lockstep/_declarations.py" ||
    fail "the headers are not understood"
"$python" -B "$LOCKSTEP_SOURCE/tools/python_declarations.py" --layout "$work/layout.c" &&
    "${CC:-cc}" -std=c17 -I"$LOCKSTEP_SOURCE/include" -o "$work/layout" "$work/layout.c" ||
    fail "the program that prints the layout of structs"
echo mine >"$work/mine"
! "$python" -B "$LOCKSTEP_SOURCE/tools/python_declarations.py" "$work/mine" 2>"$work/said" &&
    grep -q 'was not made by this program' "$work/said" && [ "$(cat "$work/mine")" = mine ] ||
    fail "a file that is not its own was written over"
export LOCKSTEP_LIBRARY=$LOCKSTEP_BUILD/liblockstep.so LOCKSTEP_LAYOUT=$work/layout
export PYTHONPATH=$work:$LOCKSTEP_SOURCE/python/tests PYTHONDONTWRITEBYTECODE=1
"$python" -W error::ResourceWarning -m unittest discover -s "$LOCKSTEP_SOURCE/python/tests" ||
    fail "tests of the Python package"
# The example, where there is NumPy.
if "$python" -c 'import numpy' 2>/dev/null; then
    cd "$work"
    "$python" "$LOCKSTEP_SOURCE/examples/python/spirals.py" >example.log || { cat example.log; fail "the example"; }
    grep -qE '^accuracy (0\.9|1)' example.log || { cat example.log; fail "the example has not learned"; }
fi
