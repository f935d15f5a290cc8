#!/bin/bash
# Tokenizers against Hugging Face's package on random texts, where it is installed ($LOCKSTEP_PYTHON, else
# python3). The kept values of tests/unit/text are compared on every machine.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
python=${LOCKSTEP_PYTHON:-python3}
library=${LOCKSTEP_BUILD:?}/liblockstep.so
if ! "$python" -c 'import tokenizers' 2>/dev/null; then
    echo "SKIPPED: $python has no package tokenizers"
    exit 77
fi
if [ ! -e "$library" ] || nm -D "$library" | grep -q __asan_; then
    echo "SKIPPED: there is no shared library that a program without sanitizers can load"
    exit 77
fi
cd "${LOCKSTEP_SOURCE:?}"
exec "$python" -B tools/reference/tokenizing.py compare "$library" tests/unit/text/reference 100
