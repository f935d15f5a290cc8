#!/bin/bash
# `lockstep plan`: invalid sizes of memory, definitions of absurd sizes (which must be planned or
# refused at once, in little memory), broken files, and JSON that other programs can read.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# plan STATUS [TEXT...] [-- OPTIONS...]: plans solver.prototxt, in little memory and time.
plan() {
    local wanted=$1 texts=()
    shift
    while [ $# != 0 ] && [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    [ $# = 0 ] || shift
    LIMIT=60 expect "$wanted" ${texts[@]+"${texts[@]}"} -- bash -c "$limit"' exec "$@"' - \
        "$LOCKSTEP" plan --solver solver.prototxt --workers 2 "$@"
}
limit="ulimit -v 1000000;"
! sanitized || limit=""

# ---- Sizes of memory
for size in 0 -1 '+5M' ' ' nan inf 0x10 1e30 1e30GiB 0.5 . '10MiB ' 1.2.3M 99999999999999999999 \
    9223372036854775807 9999999999TiB "$(noise 90)"; do
    plan 2 "^lockstep: --memory: '.*' is not a size\. hint: " -- --memory="$size"
done
plan 2 "^lockstep: plan: --memory has an empty value" -- --memory=
plan 7 'needs at least [0-9.]+ MiB with 2 workers.*the limit is 0\.0 MiB' -- --memory 1
plan 7 'needs at least .*are not activations' -- --memory 10kb
plan 0 '^  limit .* 4\.0 TiB' 'Largest batch' -- --memory '4 TiB'
train 7 'needs at least .*the limit is 1\.0 MiB' '!Iteration' -- --memory 1MiB
[ -z "$(ls ./*.safetensors 2>/dev/null)" ] || fail "something was written: $(ls)"

# ---- Absurd sizes
# absurd STATUS SED TEXT...
absurd() {
    local wanted=$1 change=$2
    shift 2
    small_net | sed "$change" >net.prototxt
    plan "$wanted" "$@"
    plan "$wanted" "$@" -- --json
}
absurd 3 's/batch_size: 16/batch_size: 2147483647/' \
    'a batch of 2147483647 samples has more than 1048576 micro-batches.*larger micro_batch'
small_solver 'test_interval: 10 test_iter: 1' >solver.prototxt
absurd 3 's/batch_size: 20/batch_size: 2147483647/' 'has more than 1048576 micro-batches'
small_solver >solver.prototxt
absurd 3 's/batch_size: 16/batch_size: 1000000/' 'an update has .* micro-batches; at most 4096'
absurd 3 's/batch_size: 16/batch_size: 1099511627776/' 'out of range'
absurd 3 's/num_output: 4/num_output: 2147483647/' 'too large for one kernel'
absurd 3 's/num_output: 4/num_output: 4294967295/' 'larger than a tensor may be|too large for one kernel'
absurd 0 's/num_output: 10/num_output: 2147483647/'
plan 7 'needs at least [0-9]{6,}\.[0-9] MiB' -- --memory 1GiB
absurd 0 's/count: 300/count: 4294967295/'
absurd 3 's/kernel_size: 3/kernel_size: 4294967295 pad: 2147483647/' 'kernel_size 4294967295 is out'
absurd 3 's/kernel_size: 3/kernel_size: 3 pad: 2147483647/' 'larger than|too large'
absurd 3 's/kernel_size: 3/kernel_size: 3 dilation: 4294967295/' 'dilation 4294967295 is out'
absurd 3 's/kernel_size: 3/kernel_size: 3 stride: 0/' 'stride 0 is out'
absurd 3 "s/kernel_size: 3/kernel_size: [$(seq -s , 1 17)]/" 'kernel_size is given 17 times'
absurd 3 "s/kernel_size: 2/kernel_size: [$(seq -s , 1 17)]/" 'kernel_size is given 17 times'
absurd 3 's/kernel_size: 3/kernel_size: 3 axis: 4/' 'axis 4 is out of range'
absurd 3 's/kernel_size: 3/kernel_size: 3 axis: -2147483648/' 'axis -2147483648 is out of range'
absurd 3 's/kernel_size: 3/kernel_size: 3 axis: -1/' 'must have 1 to 3 spatial axes behind axis 3'
absurd 3 's/kernel_size: 2/kernel_size: 2 pad: 2147483647/' 'pad 2147483647 must be smaller'
absurd 0 's/kernel_size: 2 stride: 2/kernel_size: 2147483647 pad: 2147483646 stride: 2147483647/'

# Many layers.
layers=3000
{
    small_net | sed '/name: "ip"/Q' | sed '$d'
    for ((i = 1; i <= layers; i++)); do
        [ $i = 1 ] && bottom=pool || bottom=r$((i - 1))
        echo "layer { name: 'r$i' type: 'TanH' bottom: '$bottom' top: 'r$i' }"
    done
    echo 'layer {'
    small_net | sed -n '/name: "ip"/,$p' | sed 's/bottom: "pool"/bottom: "r'$layers'"/'
} >net.prototxt
plan 0 "^r$layers "

# ---- Files
small_net >net.prototxt
for file in none.prototxt .; do
    expect 3 "^lockstep: $file: " -- "$LOCKSTEP" plan --solver "$file"
    expect 3 "^lockstep: $file: " -- "$LOCKSTEP" plan --json --model "$file"
done
head -c 300 net.prototxt >cut.prototxt
expect 3 '^lockstep: cut.prototxt:[0-9]+:' -- "$LOCKSTEP" plan --model cut.prototxt
noise 3000 >noise.prototxt
expect 3 '^lockstep: noise.prototxt:' -- "$LOCKSTEP" plan --model noise.prototxt
expect 2 'one of --solver FILE and --model FILE' -- "$LOCKSTEP" plan
expect 2 'one of --solver FILE and --model FILE' -- "$LOCKSTEP" plan --solver a --model b
expect 2 '4097 workers are not possible' -- "$LOCKSTEP" plan --solver solver.prototxt --workers 4097

# ---- What the bits depend on
small_net >net.prototxt
plan 0 '^Bits: depend on oneDNN.s version and the CPU.s type .* through [12] layers?: (conv, )?ip$'
plan 0 '"depends_on_onednn": 1, "depends_through": \["(conv", ")?ip"\]' '"onednn": 1' -- --json
if ! "$LOCKSTEP" --version | grep -qE '^isa=(generic|sse41)$'; then
    # Large inner products are Lockstep's own, where there are fused operations.
    small_net | sed '/name: "conv"/,/^}/d; s/bottom: "conv"/bottom: "data"/; /name: "pool"/,/^}/d
        s/bottom: "pool"/bottom: "data"/; s/num_output: 10 /num_output: 300 /' |
        tr '\n' ' ' | sed -E 's/(layer \{ +)+/layer { /g' >net.prototxt
    plan 0 '^Bits: no step is oneDNN.s'
    plan 0 '"depends_on_onednn": 0, "depends_through": \[\]' '!"onednn": 1' -- --json
    plan 0 '^Bits: depend on oneDNN.* through 1 layer: ip$' -- --isa sse41
fi

# ---- JSON is UTF-8 and escaped, whatever a layer is called
small_net | sed 's/name: "pool"/name: "p\\"\\\\\\n\\001\\377"/' >net.prototxt
plan 0 'p\\"\\\\\\n\\u0001\\ufffd' -- --json
! grep -q "$(printf '\377')" log || fail "JSON that is not UTF-8"
if [ -w /dev/full ]; then
    expect 7 'cannot write the output' -- \
        bash -c '"$LOCKSTEP" plan --solver solver.prototxt >/dev/full'
fi
finish
