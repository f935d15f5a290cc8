#!/bin/bash
# The program as Caffe's: its command lines, and a log that the programs read which people have for
# Caffe's. The expressions are those of parse_log.py, parse_log.sh, extract_seconds.py and DIGITS.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$LOCKSTEP" caffe
ln -s "$LOCKSTEP" caffe.bin
fail() {
    cat log
    echo "FAILED: $*"
    exit 1
}
# caffe STATUS ARGUMENTS...: what it says is in `log`.
caffe() {
    local expected=$1 status=0
    shift
    ./caffe "$@" >log 2>&1 || status=$?
    [ "$status" = "$expected" ] || fail "caffe $*: exit status $status instead of $expected"
}
has() { grep -qE -- "$1" log || fail "no line '$1'"; }
count() { [ "$(grep -cE -- "$1" log)" = "$2" ] || fail "not $2 lines '$1'"; }

[ "$(readlink "${LOCKSTEP%/*}/caffe")" = lockstep ] || fail "no link beside the program"

cat >net.prototxt <<'TEXT'
name: "Tiny"
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { scale: 0.00390625 }
  data_param { backend: SYNTHETIC batch_size: 20 synthetic_param { count: 200 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "deep" type: "ReLU" bottom: "ip" top: "ip" include { stage: "rectified" } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
TEXT
cat >solver.prototxt <<'TEXT'
net: "net.prototxt" base_lr: 0.05 lr_policy: "step" gamma: 0.5 stepsize: 8 momentum: 0.9
max_iter: 12 display: 4 test_iter: 3 test_interval: 6 snapshot: 6 snapshot_prefix: "out"
solver_mode: GPU
TEXT

# ---- The log of a training ----
prefix='I[01][0-9][0-3][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6} +[0-9]+ [a-z_]+\.cpp:[0-9]+\] '
number='[.0-9eE+-]+'
caffe 0 train -solver solver.prototxt --gpu=0,1
grep -qvE '^[IWE][01][0-9][0-3][0-9] [0-9:.]{15} +[0-9]+ [a-z_]+\.cpp:[0-9]+\] ' log &&
    fail "a line without the prefix"
has "^W.* -gpu 0,1: using the CPU with"
has "^W.*batch_size is the whole batch here"
count "^$prefix(Solving solver)" 1
for i in 0 4 8; do
    has "^${prefix}Iteration $i \\($number iter/s, ${number}s/[0-9]+ iters\\), loss = $number\$"
    has "^${prefix}Iteration $i, lr = $number\$"
done
has "^${prefix}Iteration 8, lr = 0.025\$"
count "^$prefix    Train net output #0: loss = $number \\(\\* 1 = $number loss\\)\$" 3
for i in 0 6 12; do
    has "^${prefix}Iteration $i, Testing net \\(#0\\)\$"
done
count "^$prefix    Test net output #0: accuracy = $number\$" 3
count "^$prefix    Test net output #1: loss = $number \\(\\* 1 = $number loss\\)\$" 3
has "^${prefix}Snapshotting to binary proto file out_iter_6\\.caffemodel"
has "^${prefix}Snapshotting solver state to binary proto file out_iter_6\\."
count "^${prefix}Optimization Done\\." 2
[ -s out_iter_12.caffemodel ] || fail "no caffemodel"

# parse_log.sh: columns of the lines, by awk.
grep -B 1 'Test ' log | grep 'Iteration ' | sed 's/.*Iteration \([[:digit:]]*\).*/\1/g' |
    tr '\n' ' ' | grep -qx '0 6 12 ' || fail "parse_log.sh: the iterations of tests"
awk '/Test net output #0/ { print $11 }' log | grep -cE "^$number\$" | grep -qx 3 ||
    fail "parse_log.sh: column 11 of test outputs"
awk '/, lr = / { print $9 }' log | tr '\n' ' ' | grep -qx '0.05 0.05 0.025 ' ||
    fail "parse_log.sh: column 9 of rates"
awk '/] Solving /' log | grep -q . || fail "extract_seconds.py: no start"
# DIGITS: a letter, month and day, the time to the second, then the message behind the first "] ".
awk '/Iteration 6, Testing net/ { if (match($0, /^[A-Z][0-9][0-9][0-9][0-9] [0-9:]+\.[0-9]+/)) ok = 1 }
     END { exit !ok }' log || fail "DIGITS: the time"
# parse_log.py: within each iteration, from when on the training has run.
awk '
    /Iteration [0-9]+/ { match($0, /Iteration [0-9]+/); at = substr($0, RSTART + 10, RLENGTH - 10) }
    /lr = / { rate[at] = $9 }
    /Train net output #/ { train++; if ($7 != "output") bad = 1 }
    /Test net output #/ { test++ }
    END { exit bad || train != 3 || test != 6 || rate[8] != "0.025" }' log ||
    fail "parse_log.py: rows"
cp out_iter_12.safetensors whole.safetensors

# ---- Resuming, finetuning, stages ----
caffe 0 train -solver solver.prototxt -snapshot out_iter_6.safetensors -workers 1
"$LOCKSTEP" diff whole.safetensors out_iter_12.safetensors >log || fail "the resumed one differs"
touch out_iter_6.solverstate # beside a snapshot of our own, which says more
caffe 0 train -solver solver.prototxt -snapshot=out_iter_6.solverstate -noalsologtostderr
[ ! -s log ] || fail "something was written to stderr"
"$LOCKSTEP" diff whole.safetensors out_iter_12.safetensors >log || fail "the resumed one differs"
caffe 2 train -solver solver.prototxt -snapshot a -weights b
has "not both"
caffe 2 train
has "need a solver definition to train"
caffe 2 train -solver solver.prototxt -sigint_effect shout
has "is none of snapshot, stop and none"
caffe 3 train -solver no_such.prototxt
has "^(F.*|lockstep: )no_such.prototxt"
caffe 0 train -solver solver.prototxt -weights out_iter_12.caffemodel -stage rectified,other -level 1
"$LOCKSTEP" diff whole.safetensors out_iter_12.safetensors >log && fail "-stage changed nothing"

# ---- Snapshots in HDF5 ----
sed 's/"out"/"hdf" snapshot_format: HDF5/' solver.prototxt >hdf5.prototxt
caffe 0 train -solver hdf5.prototxt
has "^${prefix}Snapshotting to HDF5 file hdf_iter_6\\.caffemodel\\.h5\$"
has "^${prefix}Snapshotting solver state to HDF5 file hdf_iter_6\\.solverstate\\.h5\$"

# ---- Signals ----
cat >long.prototxt <<'TEXT'
net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 100000000 snapshot_prefix: "long"
display: 1
TEXT
# after_start SIGNAL FLAGS...: sends it once the training is under way; waits for the end.
after_start() {
    local signal=$1 status=0
    shift
    : >log
    ./caffe train -solver long.prototxt "$@" 2>log &
    local child=$!
    tail -f --pid=$child log | grep -qm1 'Iteration 2 '
    kill -"$signal" $child
    case $* in
    *stop*) ;;
    *) tail -f --pid=$child log | grep -qm1 'Snapshotting solver state' && kill -TERM $child ;;
    esac
    wait $child || status=$?
    [ $status = 0 ] || fail "$signal $*: exit status $status"
    has "Optimization stopped early"
}
after_start INT -sigint_effect stop
after_start HUP -sighup_effect stop
after_start INT -sigint_effect snapshot

# ---- Tests and times ----
caffe 0 test -model net.prototxt -weights out_iter_12.caffemodel -iterations 4 -gpu all
has "^${prefix}Running for 4 iterations\\."
has "^${prefix}Loss: $number\$"
has "^${prefix}accuracy = $number\$"
has "^${prefix}loss = $number \\(\\* 1 = $number loss\\)\$"
caffe 2 test -model net.prototxt
has "need model weights"
caffe 2 test -model net.prototxt -weights w -iterations 0
caffe 0 time --model net.prototxt --iterations=2
has "^${prefix} +ip forward: $number ms\\.\$"
has "^${prefix} +ip backward: $number ms\\.\$"
has "^${prefix}Average Forward pass: $number ms\\.\$"
has "^${prefix}Average Forward-Backward: $number ms\\."
has "^${prefix}Total Time: $number ms\\.\$"
cat >deploy.prototxt <<'TEXT'
input: "data" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
TEXT
caffe 0 time -model deploy.prototxt -iterations 1 -phase TEST # without a loss
has "^${prefix} +conv backward: $number ms\\.\$"
has "^W.* random data: data 2 x 3 x 8 x 8"

cat >missing.prototxt <<'TEXT'
net: "missing_net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1 snapshot_prefix: "missing"
TEXT
sed 's/backend: SYNTHETIC/backend: LMDB source: "nowhere"/; s/synthetic_param { count: 200 }//' \
    net.prototxt >missing_net.prototxt
caffe 4 train -solver missing.prototxt -gpu all
has "^W.*batch_size is the whole batch here"
caffe 0 train -solver missing.prototxt -dummy_data -input data=4,1,6,6
has "^W.*layer 'data' \\(train\\): random data"
[ -z "$(ls missing_iter_* .missing.lock 2>/dev/null)" ] || fail "a training on random data wrote $(ls -A missing*)"

# ---- Flags ----
caffe 0 device_query -gpu 0
has "Device id: +0"
mkdir logs
caffe 0 test -model net.prototxt -weights out_iter_12.caffemodel -iterations 1 -log_dir logs \
    -logbufsecs 0 -v=1 -nolog_prefix -minloglevel 0
cmp -s log logs/caffe.INFO || fail "the log file is not what stderr got"
caffe 0 test -model net.prototxt -weights out_iter_12.caffemodel -iterations 1 -minloglevel 1
[ ! -s log ] || fail "-minloglevel 1 lets lines through"
caffe 2 test -modle net.prototxt
has "did you mean '-model'"
caffe 2 test -iterations many
has "whole number"
caffe 2 test -iterations
has "missing its argument"
caffe 2 test -logtostderr=perhaps
caffe 2 fly -model net.prototxt
has "unknown action 'fly'"
caffe 2
has "usage: caffe <command> <flags>"
caffe 0 -help
caffe 0 -version
has "caffe version 1.0.0"
./caffe.bin -version | grep -q "caffe version" || fail "caffe.bin"
"$LOCKSTEP" caffe -version | grep -q "caffe version" || fail "lockstep caffe"
