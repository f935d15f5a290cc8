#!/bin/bash
# lockstep init: what it writes for a text, for MNIST's files with and without a test set, and for a
# database is trained on; nothing is overwritten; what it does not know is refused.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }

# trains DIR: two updates of what was written.
trains() {
    "$LOCKSTEP" train --solver "$1/solver.prototxt" --iterations 2 --snapshot-prefix "$work/x" \
        --overwrite --workers 2 >log 2>&1 || fail "$1: $(cat log)"
}

# 200 lines with letters of two and three bytes.
for i in $(seq 200); do echo "line $i of a text: äöü €"; done >'a "text".txt'
"$LOCKSTEP" init 'a "text".txt' --output text >said || fail "a text"
grep -q "characters, $(LC_ALL=C.UTF-8 grep -o . 'a "text".txt' | sort -u | wc -l | awk '{ print $1 + 1 }') different" said ||
    fail "another number of characters: $(cat said)"
trains text
# Weights of a text with other characters are refused, and the hint says what to write.
mv x_iter_2.safetensors weights.safetensors
for i in $(seq 200); do echo "row $i of another: qwxyz äöü €"; done >other.txt
"$LOCKSTEP" init other.txt --output other >said || fail "another text"
"$LOCKSTEP" train --solver other/solver.prototxt --weights weights.safetensors --iterations 1 \
    --snapshot-prefix "$work/y" >log 2>&1 && fail "weights of another vocabulary are taken"
grep -q 'its vocabulary has .*hint: text_param { vocabulary: ' log || fail "$(cat log)"
head -c 5000 /dev/zero >binary.txt
"$LOCKSTEP" init binary.txt -o bytes --backend TEXT >said
grep -q 'unit: BYTE' bytes/train_test.prototxt || fail "bytes are not read as bytes"
trains bytes

byte() { printf '%b' "\\0$(printf '%o' "$1")"; }
# idx FILE RECORDS: pictures of 12 x 12 pixels, and labels 0 1 2 0 1 2 ...
idx() {
    {
        printf '\0\0\10\3\0\0\0'
        byte "$2"
        printf '\0\0\0\14\0\0\0\14'
        head -c $((144 * $2)) <(yes abcdefg)
    } >"$1-images-idx3-ubyte"
    {
        printf '\0\0\10\1\0\0\0'
        byte "$2"
        for i in $(seq "$2"); do byte $((i % 3)); done
    } >"$1-labels-idx1-ubyte"
}
mkdir digits
idx digits/train 60
"$LOCKSTEP" init digits -o held-out --yes >said
grep -q '60 pictures (IDX) of 3 classes, 12 x 12 pixels, 1 channel$' said || fail "$(cat said)"
grep -q 'split: "test:0.9"' held-out/train_test.prototxt || fail "nothing is held out"
trains held-out
idx digits/t10k 30
"$LOCKSTEP" init digits -o tested >said
if grep -q 'split:' tested/train_test.prototxt; then fail "a part of the training set is held out"; fi
trains tested

# The same again is the same, and nothing is overwritten.
"$LOCKSTEP" init digits -o again >said
cmp tested/train_test.prototxt again/train_test.prototxt || fail "not the same again"
echo mine >again/train_test.prototxt
"$LOCKSTEP" init digits -o again >said 2>log && fail "a file was overwritten"
grep -q 'nothing is overwritten' log || fail "$(cat log)"
[ "$(cat again/train_test.prototxt)" = mine ] || fail "a file was changed"
rm again/train_test.prototxt
"$LOCKSTEP" init digits -o again >said 2>log && fail "a solver was overwritten"
[ ! -e again/train_test.prototxt ] || fail "half of it was written"

# Token ids, as tokenize writes them and without a text beside them.
ids() { for i in $(seq 2500); do printf "\\$(printf %03o $((i % 50)))\\0${1:-}"; done; }
ids >tokens.bin
printf 'tokenizer 00000000000000ab\nvocabulary 60\nbytes 2\nids 2500\nfrom x\n' >tokens.bin.about
"$LOCKSTEP" init tokens.bin -o tokens >said || fail "tokens"
grep -q '2500 token ids (TOKENS) of type U16, below 60' said || fail "$(cat said)"
trains tokens
ids '\0\0' >wide.bin
"$LOCKSTEP" init wide.bin --backend TOKENS -o wide >said || fail "wide tokens"
grep -q 'type: U32' wide/train_test.prototxt || fail "ids of 32 bits are not known"

# Pictures: of 8 x 8 pixels, grey, of the labels 0 and 255.
pictures() { # NAME FOLDER...
    local name=$1
    shift
    for folder in "$@"; do
        mkdir -p "$folder"
        for i in $(seq 20); do cp picture.png "$folder/$name$i.png"; done
    done
}
base64 -d >picture.png <<'END'
iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAEElEQVR42mNg+I8GGcgSAQB8BB/h+harkQAAAABJRU5ErkJggg==
END
pictures x cells/images cells/Masks
"$LOCKSTEP" init cells -o cells-net --yes >said || fail "label maps"
grep -q '20 pictures with label maps (IMAGE_PAIRS)' said || fail "$(cat said)"
trains cells-net
# Two sets, of which one has some of the classes.
pictures cat animals/training/cat
pictures dog animals/training/dog animals/Validation/dog
"$LOCKSTEP" init animals -o animals-net --yes >said || fail "two sets"
grep -q '40 pictures (IMAGES) of 2 classes' said || fail "$(cat said)"
grep -q 'source: .*animals/Validation"' animals-net/train_test.prototxt || fail "no test set"
trains animals-net

# A database.
"$LOCKSTEP" convert --backend IDX --source digits/train-images-idx3-ubyte \
    --label-source digits/train-labels-idx1-ubyte base_lmdb >log
"$LOCKSTEP" init base_lmdb -o lmdb >said || fail "an LMDB"
grep -q '60 pictures (LMDB) of 3 classes' said || fail "$(cat said)"
trains lmdb

refuses() {
    local text=$1
    shift
    "$LOCKSTEP" init "$@" >said 2>log </dev/null && fail "init $* is taken"
    grep -qF -- "$text" log || fail "init $*: $(cat log)"
}
refuses 'DATA is missing'
refuses 'hint: --backend TOKENS, or --backend TEXT' wide.bin
pictures x two/one two/other
refuses 'hint: --backend IMAGE_PAIRS, or --backend IMAGES' two
pictures x flat/train flat/test
refuses 'and not two classes' flat
pictures zebra animals/Validation/zebra
refuses "1 class (20 pictures) is not among the 2 of" animals
mkdir boxes && mv two/one boxes/images && mkdir boxes/labels
for i in $(seq 20); do echo "0 .5 .5 .1 .1" >boxes/labels/x$i.txt; done
refuses 'boxes or other notes' boxes
refuses 'No such file' nowhere
mkdir empty && refuses "no data that 'init' knows" empty
: >empty/short.txt && refuses 'too short' empty
truncate -s 100 digits/train-images-idx3-ubyte && refuses 'digits/train-images-idx3-ubyte' digits -o cut
[ ! -e cut ] || fail "something was written"
echo "init writes what trains"
