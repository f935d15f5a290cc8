#!/bin/bash
# on_bad_record: SKIP on the command line: train and test name and count bad records, in the log
# too; STOP, the default, ends at the first one; errors of a whole file are never skipped.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

mkdir -p p/a p/b
for i in 1 2 3 4 5 6 7 8; do
    grey 12 12 $((20 * i)) >p/a/$i.png
    grey 12 12 $((25 * i)) >p/b/$i.png
done
head -c 60 p/a/2.png >p/a/1.png # record 0
echo nothing >p/b/2.png         # record 9
: >p/b/8.png                    # record 15
small_solver 'test_interval: 10 display: 5' >solver.prototxt
pictures="backend: IMAGES source: 'p' is_color: false"

# ---- STOP is as it always was ---------------------------------------------------------------------
for stop in "" "on_bad_record: STOP"; do
    small_net "$pictures $stop" >net.prototxt
    expect 4 'p/b/2.png: record 9: .*hint: .*on_bad_record: SKIP' '!stands in' -- \
        "$LOCKSTEP" train --overwrite --solver solver.prototxt
done
small_net "$pictures on_bad_record: LEAVE" >net.prototxt
expect 3 "on_bad_record" -- "$LOCKSTEP" train --overwrite --solver solver.prototxt

# ---- SKIP -----------------------------------------------------------------------------------------
small_net "$pictures on_bad_record: SKIP" >net.prototxt
expect 4 'p: 16 records, 3 bad' 'SKIP would put others in the place of 3 of them' -- \
    "$LOCKSTEP" check --solver solver.prototxt
expect 0 'warning: train net, p: record 0 \(a/1.png\) is bad, and the next good one stands in for it: ' \
    'warning: train net, p: record 9 \(b/2.png\) is bad, .*neither JPEG nor PNG' \
    'warning: train net, p: record 15 \(b/8.png\) is bad' 'samples of this run.s training had bad records' \
    'Optimization Done' -- \
    "$LOCKSTEP" train --overwrite --solver solver.prototxt --log-json log.json --workers 1
grep -q '"event": "test".*"samples": 16, "skipped": 3' log.json || fail "the test counted otherwise"
skipped=$(sed -n 's/.*"event": "end".*"skipped": \([0-9]*\).*/\1/p' log.json)
[ "${skipped:-0}" -gt 3 ] || fail "'$skipped' samples were skipped"
sha256sum <s_iter_20.safetensors >whole
expect 0 'warning: test net, p: record 0 ' 'warning: 3 tested samples had bad records' 'Tested 16 samples' -- \
    "$LOCKSTEP" test --model net.prototxt --weights s_iter_20.safetensors

rm -f s_iter_*
# In pieces, on other numbers of workers, with a cache: the same file, the same count in all.
expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 3 --iterations 13 \
    --log-json one.json
expect 0 -- "$LOCKSTEP" train --solver solver.prototxt --workers 2 --resume auto --log-json two.json
sha256sum <s_iter_20.safetensors | cmp -s - whole || fail "other bytes in pieces"
both=$(cat one.json two.json | sed -n 's/.*"event": "end".*"skipped": \([0-9]*\).*/\1/p' | paste -sd+)
[ $((both)) = "$skipped" ] || fail "$both samples were skipped in pieces, $skipped in one"
expect 0 -- "$LOCKSTEP" verify --solver solver.prototxt --workers 1,2 --ranks 1,2 --resume random:1 --iterations 6

# A bad record that was mended, and a good one that became bad: other data than those before.
cp p/b/2.png bad.png
cp p/b/4.png p/b/2.png
expect 4 'p: record 9 \(b/2.png\): other bytes than in the first epoch' -- \
    "$LOCKSTEP" train --overwrite --solver solver.prototxt --resume s_iter_10.safetensors
cp bad.png p/b/2.png
cp p/b/4.png good.png
cp bad.png p/b/4.png
expect 4 'p: record 11 \(b/4.png\): other bytes than in the first epoch' -- \
    "$LOCKSTEP" train --overwrite --solver solver.prototxt --resume s_iter_10.safetensors
cp good.png p/b/4.png

# ---- Never skipped --------------------------------------------------------------------------------
ls p/a/*.png | sed 's/$/ 1/' >list
small_net "backend: IMAGES source: 'list' is_color: false on_bad_record: SKIP" >net.prototxt
mv p/a/3.png gone
expect 4 'list:3: there is no such file' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt
mv gone p/a/3.png
for file in p/a/*.png; do
    echo nothing >"$file"
done
expect 4 'none of its 8 records is good; record 0 \(p/a/1.png\): ' -- \
    "$LOCKSTEP" train --overwrite --solver solver.prototxt
expect 4 'list: none of its 8 records is good' -- \
    "$LOCKSTEP" check --solver solver.prototxt

# Two data layers of one phase would no longer belong together.
cat >net.prototxt <<END
layer { name: 'd' type: 'Data' top: 'data' data_param { batch_size: 4 $pictures } }
layer { name: 'e' type: 'Data' top: 'other' data_param { batch_size: 4 $pictures
    on_bad_record: SKIP } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 2 } }
layer { name: 'ip2' type: 'InnerProduct' bottom: 'other' top: 'ip2' inner_product_param { num_output: 2 } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'ip2' top: 'loss' }
END
for file in p/?/*.png; do
    grey 12 12 33 >"$file"
done
small_solver >solver.prototxt
expect 3 'on_bad_record: SKIP is for nets with one data layer in a phase' -- \
    "$LOCKSTEP" train --overwrite --solver solver.prototxt

finish
