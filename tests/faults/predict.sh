#!/bin/bash
# lockstep predict on folders, lists and arrays: order and bits do not depend on workers and on the
# inputs around; a picture that cannot be read is told; files are written whole.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

small_solver "" >solver.prototxt
expect 0 -- "$LOCKSTEP" train --solver solver.prototxt --snapshot-prefix s
weights=(s_iter_*.safetensors)
predict=("$LOCKSTEP" predict --model net.prototxt --weights "${weights[0]}" --format csv --top 3)

mkdir -p p/deep/er p/.hidden
for i in 1 2 3 4 5 6; do
    grey 12 12 $((40 * i)) >p/$i.png
    grey 15 13 $((30 * i)) >p/deep/er/$i.PNG
done
touch p/notes.txt p/.hidden/a.png p/deep/.x.png
ln -s . p/circle

# The same lines from any number of workers, and for each picture alone.
expect 0 "The folders have 4 other files" "12/12 inputs" -- "${predict[@]}" --workers 1 --output-file all.csv p
expect 0 -- "${predict[@]}" --workers 3 --output-file three.csv p
cmp all.csv three.csv || fail "the predictions depend on the workers"
cut -d, -f1 all.csv | uniq | tail -n +2 >names
ls p/?.png p/deep/er/?.PNG >expected
cmp names expected || fail "another order: $(cat names)"
for name in p/1.png p/deep/er/5.PNG; do
    "${predict[@]}" "$name" 2>&1 | tail -n +2 | cmp - <(grep "^$name," all.csv) ||
        fail "$name: a prediction depends on the inputs around it"
done

# A list with labels, from a file, from a pipe; relative to its folder.
sed 's|^p/||; s|$| 3|' names >p/list
"${predict[@]}" --list - <p/list >log 2>&1
grep -q 'none of the 12 inputs can be read' log || fail "standard input has no folder: $(cat log)"
expect 0 '^3.png,3,1,' '[0-9]+ of 12 right \([0-9.]+ %\)' 'of 12 among the best 3' -- \
    "${predict[@]}" --list p/list
(cd p && "$LOCKSTEP" predict --model ../net.prototxt --weights "../${weights[0]}" --format csv \
    --list - <list >../log 2>&1) || fail "the list of the standard input: $(cat log)"
grep -q '^3.png,3,1,' log || fail "the list of the standard input: $(cat log)"

# What is damaged is told, and the others are predicted; the status says so.
head -c 40 p/1.png >p/2.png
echo nothing >p/deep/er/3.PNG
: >p/4.png
expect 4 '^lockstep: p/2.png: damaged PNG' '^lockstep: p/deep/er/3.PNG: ' '^lockstep: p/4.png: ' \
    '3 of 12 inputs cannot be read' -- "${predict[@]}" --output-file some.csv p
expect 0 '3 of 12 inputs cannot be read' '!is no error' -- \
    "${predict[@]}" --skip-damaged --workers 2 --output-file skipped.csv p
cmp some.csv skipped.csv || fail "with and without --skip-damaged"
grep -vE '^p/(2|4|deep/er/3)\.' all.csv | cmp - some.csv || fail "the others are predicted otherwise"
expect 4 '!Wrote' -- "${predict[@]}" --skip-damaged --output-file none.csv p/2.png
[ ! -e none.csv ] || fail "a file without predictions"
mkdir empty
expect 4 '^lockstep: empty: has no .jpg' -- "${predict[@]}" empty
expect 7 "/no/where/a: cannot create" -- "${predict[@]}" --output-file /no/where/a p/1.png
for file in net.prototxt "${weights[0]}" p/list p/1.png; do
    cp "$file" before
    expect 2 "$file is read; what is written would take its place" -- \
        "${predict[@]}" --output-file "$file" --list p/list p/1.png
    cmp "$file" before || fail "$file is damaged"
done
: >m.bin
expect 2 'm.bin is read' -- "$LOCKSTEP" classify --model net.prototxt --weights "m.bin,${weights[0]}" \
    --output-file m.bin p/1.png
expect 2 "${weights[0]} is read" -- "$LOCKSTEP" export --onnx --model net.prototxt \
    --weights "${weights[0]}" -o "${weights[0]}"
expect 2 "${weights[0]} is read" -- "$LOCKSTEP" prune --sparsity 0.5 --weights "${weights[0]}" -o "${weights[0]}"
expect 2 "net.prototxt is read" -- "$LOCKSTEP" draw --model net.prototxt -o ./p/../net.prototxt
for option in log-json metrics trace; do
    train 2 "solver.prototxt is read" -- "--$option" solver.prototxt
done
expect 7 'p: cannot create: names a directory' -- "${predict[@]}" --output-file p p/1.png
mkfifo pipe
expect 7 'pipe: cannot create: names a device or a pipe' -- "${predict[@]}" --output-file pipe p/1.png
[ -p pipe ] || fail "a file took the place of a pipe"

# Stopped by a signal: nothing is left, and what was there before stays.
for _ in $(seq 3000); do echo p/1.png; done >long
"${predict[@]}" --workers 1 --list long --output-file all.csv >log 2>&1 &
pid=$!
# Until it is whole the file has no name, or one with a dot in front.
while [ -d /proc/$pid ] && ! ls -l /proc/$pid/fd .all.csv.* 2>/dev/null | grep -qE '/#[0-9]+ .deleted|[.]all[.]csv[.]'; do sleep 0.01; done
kill -TERM $pid
wait $pid
status=$?
case $status in
0) ;; # it was done before
75) grep -q 'stopped after [0-9]* inputs' log || fail "no word of the stop: $(cat log)" ;;
*) fail "status $status after a signal" ;;
esac
! ls .all.csv.* >/dev/null 2>&1 || fail "a part is left"
[[ $(head -n 1 all.csv) == input,label,rank,class,name,value ]] || fail "the file of before is damaged"
finish
