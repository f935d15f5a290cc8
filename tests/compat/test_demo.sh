#!/bin/bash
# The demo on each kind of data, a few updates each, and its messages about folders that do not
# fit.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seeds=$LOCKSTEP_SOURCE/tests/fuzz/corpus/records
fail() {
    cat "$work/log"
    echo "FAILED: $*"
    exit 1
}

# demo NAME [DIR]: runs it and checks what a newcomer must see at the end.
demo() {
    local name=$1
    shift
    LOCKSTEP_DEMO_UPDATES=12 "$LOCKSTEP_SOURCE/tools/demo.sh" "$LOCKSTEP" "$work/$name" "$@" \
        >"$work/log" 2>&1 || fail "$name: exit status $?"
    grep -q 'Test net output #0: accuracy = [0-9]' "$work/log" || fail "$name: no accuracy"
    grep -q 'of 10 right$' "$work/log" || fail "$name: no samples"
    grep -q 'Verified: 3 trainings' "$work/log" || fail "$name: not verified"
    grep -q "^The model: *$work/$name/lenet_best.safetensors" "$work/log" ||
        fail "$name: where is the model?"
    [ -s "$work/$name/lenet_best.safetensors" ] || fail "$name: there is no model"
    grep -q '^Your own data: ' "$work/log" || fail "$name: how to go on?"
}

# refuse DIR TEXT: the demo ends with exit status 2 and says this.
refuse() {
    local status=0
    "$LOCKSTEP_SOURCE/tools/demo.sh" "$LOCKSTEP" "$work/refused" "$1" >"$work/log" 2>&1 ||
        status=$?
    [ $status = 2 ] || fail "$1: exit status $status"
    grep -q "$2" "$work/log" || fail "$1: no word of '$2'"
}

demo synthetic
grep -q 'synthetic digits' "$work/log" || fail "synthetic digits are not called so"

# idx COUNT RANK: a header (images 28 x 28, or labels) and numbers.
idx() {
    printf '\0\0\10%b\0\0\0%b' "\\x0$2" "$(printf '\\x%02x' "$1")"
    if [ "$2" = 3 ]; then
        printf '\0\0\0\34\0\0\0\34'
        seq 100000 | head -c $(($1 * 784))
    else
        for ((i = 0; i < $1; i++)); do printf '%b' "\\x0$((i % 10))"; done
    fi
}
mkdir "$work/digits & more"
idx 130 3 >"$work/digits & more/train-images-idx3-ubyte"
idx 130 1 | gzip >"$work/digits & more/train-labels-idx1-ubyte.gz"
idx 40 3 | gzip >"$work/digits & more/t10k-images-idx3-ubyte.gz"
refuse "$work/digits & more" "not all four files"
idx 40 1 >"$work/digits & more/t10k-labels.idx1-ubyte"
demo idx "$work/digits & more"
grep -q 'Tested 40 samples' "$work/log" || fail "not every sample was tested"

mkdir -p "$work/pictures/a cat" "$work/pictures/dogs"
refuse "$work/pictures" "two or more folders"
for i in {1..120}; do
    tail -c +2 "$seeds/jpeg" >"$work/pictures/a cat/$i.jpg"
    tail -c +2 "$seeds/png" >"$work/pictures/dogs/$i.PNG"
done
: >"$work/pictures/dogs/60.PNG" # a damaged one does not end the demo
demo pictures "$work/pictures"
grep -q 'dogs/60.PNG) is bad' "$work/log" || fail "no word of the damaged picture"
grep -q 'a cat\|dogs' "$work/log" || fail "the classes have no names"

refuse "$work/missing" "no folder"
echo "three demos"

# A build folder that was moved or copied: ./run says what to do, where CMake would fail.
mkdir -p "$work/copy/build"
cp "$LOCKSTEP_SOURCE/run" "$LOCKSTEP_SOURCE/CMakePresets.json" "$work/copy"
echo "CMAKE_CACHEFILE_DIR:INTERNAL=/elsewhere/build" >"$work/copy/build/CMakeCache.txt"
! "$work/copy/run" build >"$work/log" 2>&1 || fail "a build folder of another place is used"
grep -q 'moved or copied from /elsewhere/build: remove it (rm -r build)' "$work/log" || fail "a moved build folder"
