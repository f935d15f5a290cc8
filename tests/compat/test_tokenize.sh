#!/bin/bash
# lockstep tokenize: formats, documents, parts, pairs, bytes and the way back, and what it refuses.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/faults.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh"
reference=$LOCKSTEP_SOURCE/tests/unit/text/reference
gpt2=$reference/gpt2.json

# bytes FILE [FROM COUNT]: bytes as hexadecimal numbers in one line.
bytes() {
    od -An -v -tx1 -j "${2:-0}" ${3:+-N "$3"} "$1" | tr -d '\n' | sed 's/^ //'
}

printf 'To be, or not to be:\nthat is the question.\n\nnaïve 漢字 😀\r\nlast' >input.txt
size=$(stat -c %s input.txt)

# ---- Files of ids and back ------------------------------------------------------------------------
expect 0 '^1 files, 68 B, 60 characters$' '^[0-9]+ tokens: ' '^Wrote ids.bin$' '^ids are of type U16$' -- \
    "$LOCKSTEP" tokenize --tokenizer "$gpt2" -o ids.bin input.txt
[ "$size" = 68 ] || fail "the input has $size bytes"
tokens=$(($(stat -c %s ids.bin) / 2))
"$LOCKSTEP" tokenize --tokenizer "$gpt2" --decode ids.bin >back.txt || fail "no way back"
cmp input.txt back.txt || fail "another text came back"
for format in npy llmc; do
    "$LOCKSTEP" tokenize --tokenizer "$gpt2" --format $format -o ids.$format - <input.txt >/dev/null ||
        fail "$format: exit status $?"
    header=$([ $format = npy ] && echo 128 || echo 1024)
    tail -c +$((header + 1)) ids.$format | cmp - ids.bin || fail "$format: other ids"
    "$LOCKSTEP" tokenize --tokenizer "$gpt2" --decode --format $format -o back.txt ids.$format \
        >/dev/null || fail "$format: no way back"
    cmp input.txt back.txt || fail "$format: another text came back"
done
[ "$(bytes ids.llmc 0 8)" = "88 d8 34 01 01 00 00 00" ] || fail "llmc: $(bytes ids.llmc 0 8)"
[ "$(od -An -tu4 -j 8 -N 4 ids.llmc | tr -d ' ')" = "$tokens" ] || fail "llmc: another number of ids"
[ "$(head -c 6 ids.npy | tail -c 5)" = NUMPY ] || fail "npy: no magic"
grep -aq "'descr': '<u2', 'fortran_order': False, 'shape': ($tokens,), }" ids.npy || fail "npy: header"

# ---- Documents ------------------------------------------------------------------------------------
expect 0 '^4 lines, ' -- "$LOCKSTEP" tokenize --tokenizer "$gpt2" --documents lines \
    --separator '<|end|>' -o lines.bin input.txt
"$LOCKSTEP" tokenize --tokenizer "$gpt2" --decode --special lines.bin >back.txt
[ "$(cat back.txt)" = '<|end|>To be, or not to be:<|end|>that is the question.<|end|>naïve 漢字 😀<|end|>last' ] ||
    fail "lines: $(cat back.txt)"
expect 0 -- "$LOCKSTEP" tokenize --tokenizer "$gpt2" --documents lines --split 0.5 -o part.bin input.txt
"$LOCKSTEP" tokenize --tokenizer "$gpt2" --decode part_train.bin >back.txt
[ "$(cat back.txt)" = 'To be, or not to be:that is the question.' ] || fail "train: $(cat back.txt)"
"$LOCKSTEP" tokenize --tokenizer "$gpt2" --decode part_test.bin >back.txt
[ "$(cat back.txt)" = 'naïve 漢字 😀last' ] || fail "test: $(cat back.txt)"
expect 0 -- "$LOCKSTEP" tokenize --tokenizer "$gpt2" --split 0.9 -o part.bin input.txt
cat part_train.bin part_test.bin | cmp - ids.bin || fail "parts are not the whole"
[ "$(stat -c %s part_train.bin)" = $((tokens * 9 / 10 * 2)) ] || fail "a train part of another size"
expect 0 '^3 were cut to 3 tokens$' -- "$LOCKSTEP" tokenize --tokenizer "$gpt2" --documents lines \
    --max-length 3 -o cut.bin input.txt
[ "$(stat -c %s cut.bin)" = 24 ] || fail "cut documents have $(stat -c %s cut.bin) bytes"

# ---- Pairs, bytes ---------------------------------------------------------------------------------
printf 'the king\tthe question\na\tb\n' >pairs.txt
expect 0 '^2 pairs, ' -- "$LOCKSTEP" tokenize --tokenizer "$reference/bert.json" --pairs \
    --max-length 12 -o pairs.npy pairs.txt
for array in ids:96 segments:24 mask:24; do
    [ "$(stat -c %s pairs_${array%:*}.npy)" = $((128 + ${array#*:})) ] || fail "pairs: ${array%:*}"
done
[ "$(bytes pairs_segments.npy 140 12)" = "00 00 00 01 01 00 00 00 00 00 00 00" ] ||
    fail "segments: $(bytes pairs_segments.npy 140 12)"
[ "$(bytes pairs_mask.npy 140 12)" = "01 01 01 01 01 00 00 00 00 00 00 00" ] ||
    fail "mask: $(bytes pairs_mask.npy 140 12)"
expect 0 '^Wrote the bytes of [0-9]+ ids' -- "$LOCKSTEP" tokenize --tokenizer "$gpt2" --bytes bytes.npy
[ "$(bytes bytes.npy 128 8)" = "00 00 00 00 01 00 00 00" ] || fail "bytes: $(bytes bytes.npy 128 8)"

# ---- What is refused, and leaves no file ------------------------------------------------------------
tokenize=("$LOCKSTEP" tokenize --tokenizer "$gpt2" -o none.bin)
printf 'fine\nbroken \xff\n' >broken.txt
expect 4 'broken.txt: is not UTF-8 at byte 12' -- "${tokenize[@]}" broken.txt
expect 4 'broken.txt:2: is not UTF-8 at byte 7' -- "${tokenize[@]}" --documents lines broken.txt
expect 4 'nowhere.txt: cannot open' -- "${tokenize[@]}" nowhere.txt
expect 4 'is a directory' -- "${tokenize[@]}" .
expect 2 "the separator '<nope>' is no token" -- "${tokenize[@]}" --separator '<nope>' input.txt
expect 2 "there is no format 'csv'" -- "${tokenize[@]}" --format csv input.txt
expect 2 "documents are files or lines, not 'words'" -- "${tokenize[@]}" --documents words input.txt
expect 2 'pairs have no separator' -- "${tokenize[@]}" --pairs --max-length 4 --split 0.5 input.txt
expect 2 'pairs need max-length' -- "${tokenize[@]}" --pairs input.txt
expect 2 'decode has no separator' -- "${tokenize[@]}" --decode --separator '<|end|>' ids.bin
expect 2 'there is nothing to read' -- "${tokenize[@]}"
expect 2 '^lockstep: input.txt: is an input, too, and would be written over' -- \
    "$LOCKSTEP" tokenize --tokenizer "$gpt2" -o input.txt input.txt
[ "$(stat -c %s input.txt)" -gt 0 ] || fail 'the input was written over'
expect 4 'too little text for two parts' -- "${tokenize[@]}" --split 0.01 --documents lines input.txt
printf 'one text\n' >single.txt
expect 4 'single.txt:1: a pair is a line of two texts' -- "$LOCKSTEP" tokenize \
    --tokenizer "$reference/bert.json" --pairs --max-length 8 -o none single.txt
printf 'abc' >odd.bin
expect 4 'odd.bin: 3 bytes are no whole number of ids' -- "${tokenize[@]}" --decode odd.bin
printf '\xff\xff' >large.bin
expect 4 'its token 0 is 65535, which .* has no token for' -- "${tokenize[@]}" --decode large.bin
expect 4 'is no file of llm.c' -- "${tokenize[@]}" --decode --format llmc large.bin
expect 4 'is no .npy file' -- "${tokenize[@]}" --decode --format npy large.bin
printf '{"model": {"type": "Unigram"}}' >unigram.json
expect 4 "unigram.json:1:11: the model 'Unigram' is not supported" -- \
    "$LOCKSTEP" tokenize --tokenizer unigram.json -o none.bin input.txt
expect 7 'none/none.bin' -- "$LOCKSTEP" tokenize --tokenizer "$gpt2" -o none/none.bin input.txt
[ "$(find . -name 'none*' -o -name '.tokens*' | wc -l)" = 0 ] || fail "a file was left: $(ls -A)"
finish
