#!/bin/bash
# The command line: unknown commands, options and values (exit code 2), overrides that make no
# sense, and outputs that cannot be written.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

usage() {
    expect 2 "^lockstep: $1" -- "$LOCKSTEP" "${@:2}"
}
usage 'a command is missing'
usage "unknown command 'trian'.*did you mean 'train'" trian
usage "unknown command 'xyzzy'.*lockstep help" xyzzy
usage "train: --solver FILE is missing" train
usage "train: --solver needs a value" train --solver
usage "train: --solver needs a value" train --solver --workers 2
usage "train: --solver has an empty value" train --solver=
usage "train: unknown option '--sovler'.*did you mean '--solver'" train --sovler x
usage "tokenize: unknown option '--gpu'.*needs no card" tokenize --gpu 0
usage "train: --solver is given twice" train --solver a --solver b
usage "train: 'more' is one argument too many" train --solver solver.prototxt more
usage "verify: unknown option '-model'.*say --solver FILE" verify -model net.prototxt
usage "diff: too few arguments; FIRST SECOND must be given. hint: lockstep diff FIRST SECOND$" diff a
usage "--workers: 'two' is not a whole number" train --solver solver.prototxt --workers two
usage "--workers: '2.5' is not" train --solver solver.prototxt --workers 2.5
usage "--workers: 0 is too small" train --solver solver.prototxt --workers 0
usage "--workers: -1 is too small" train --solver solver.prototxt --workers -1
usage "--workers: '99999999999999999999' is not" train --solver solver.prototxt \
    --workers 99999999999999999999
usage "--workers: 4294967297 is too large" train --solver solver.prototxt --workers 4294967297
usage "5000 workers are not possible.*4096" train --solver solver.prototxt --workers 5000
usage "--iterations: -1 is too small" train --solver solver.prototxt --iterations -1
usage "unknown instruction set 'mmx'.*avx2" train --solver solver.prototxt --isa mmx
usage "give a snapshot to resume from, or weights" train --solver solver.prototxt \
    --resume auto --weights a.safetensors
usage "test: " test --model net.prototxt
usage "test: " test --weights w.safetensors
usage "predict: " predict --model net.prototxt
usage "verify: --solver FILE is missing" verify
usage "" verify --solver solver.prototxt --workers 1,x
usage "" verify --solver solver.prototxt --workers 1,0
usage "" verify --solver solver.prototxt --workers ,
usage "" verify --solver solver.prototxt --workers 1,,2
usage "" verify --solver solver.prototxt --workers 1,5000
usage "time: one of --solver FILE and --model FILE is needed" time
usage "--iterations: 0 is too small" time --solver solver.prototxt --iterations 0
usage "5000 workers are not possible" time --solver solver.prototxt --workers 5000
usage "tune: --solver FILE is missing" tune
usage "tune: --workers '1,x' is not a list" tune --solver solver.prototxt --workers 1,x
usage "tune: --batch '0' is not a list" tune --solver solver.prototxt --batch 0
usage "tune: --micro-batch '8,' is not a list" tune --solver solver.prototxt --micro-batch 8,
usage "tune: --seconds '0' is not a number" tune --solver solver.prototxt --seconds 0
usage "convert: " convert
usage "mean: " mean
usage "" convert --backend LMBD --source x --output y
usage "unknown command 'nothing'" help nothing
expect 0 'usage: lockstep' 'example' 'exit codes' -- "$LOCKSTEP" --help
expect 0 '^[Ll]ockstep [0-9]' -- "$LOCKSTEP" --version
for command in train test predict verify plan time tune check convert mean prune; do
    expect 0 "^lockstep $command: " '^usage: ' '^example:' -- "$LOCKSTEP" "$command" --help
    expect 0 "^lockstep $command: " -- "$LOCKSTEP" help "$command"
done

# set TEXT OVERRIDE: a definition's mistake, whose place is the option.
set_fails() {
    train 3 "^lockstep: --set $1" -- --set "$2"
}
set_fails "base_lr=abc: field 'base_lr' takes a number" base_lr=abc
set_fails "base_lr=nan: base_lr must be at least 0" base_lr=nan
set_fails "base_lr=-1: base_lr must be at least 0" base_lr=-1
set_fails "base_lr: an override is a field, '=' and a value" base_lr
set_fails "base_lr=: " base_lr=
set_fails "=3: an override is a field" =3
set_fails "bse_lr=3: unknown field 'bse_lr'.*did you mean 'base_lr'" bse_lr=3
set_fails "batch_size=5: unknown field 'batch_size'.*batch=N" batch_size=5
set_fails "base_lr=1 \}: " 'base_lr=1 }'
set_fails "base_lr=\{: " 'base_lr={'
set_fails "max_iter=-1: max_iter must be at least 0" max_iter=-1
set_fails "max_iter=3000000000: .*out of range" max_iter=3000000000
set_fails "iter_size=0: iter_size must be at least 1" iter_size=0
set_fails "net_param.layer.name=x: " net_param.layer.name=x
set_fails "net=no.prototxt: there is no file 'no.prototxt'.*hint" net=no.prototxt
set_fails "weight_average.decay=2: weight_average.decay must be" weight_average.decay=2
train 0 'Optimization Done' -- --set base_lr=0.5 --set base_lr=0.02 --set max_iter=2
train 0 'base_lr 0.02' -- --set base_lr=0.02 --set max_iter=2

# No iterations: tests and snapshots are made as usual.
train 0 '^Snapshotting to s_iter_0' '^There is nothing to train' '^To go on: ' -- --iterations 0
train 0 '^Snapshotting to s_iter_0' 'Optimization Done' -- --set max_iter=0 --set test_interval=5
train 0 '^Snapshotting to s_iter_7' '^Stopped after iteration 7 of 20' '^To go on: .*--resume s_iter_7' '!Optimization Done' \
    '^Iteration 6.*, loss = ' -- --iterations 7

# redirect STATUS WHERE: trains with the standard output going there.
redirect() {
    local status=0
    eval "timeout 120 \"\$LOCKSTEP\" train --overwrite --solver solver.prototxt --set display=1 $2" || status=$?
    [ "$status" = "$1" ] || fail "status $status instead of $1 with $2"
    "$LOCKSTEP" test --model net.prototxt --weights s_iter_20.safetensors --workers 1 \
        >/dev/null || fail "the last snapshot is not good with $2"
    rm -f s_iter_20.safetensors
}
redirect 7 '>/dev/full 2>log'
check_output 'stdout is full' 'cannot write the output'
redirect 7 '>/dev/full 2>/dev/full'
redirect 7 '>&- 2>log'
redirect 7 '>&- 2>&-'
redirect 0 '<&- >log 2>&1'
redirect 0 '>log 2>&-'
# What is said gets into no file that has taken the place of a closed stream.
for closed in '7 >&-' '0 2>&-' '7 <&- >&- 2>&-'; do
    redirect "${closed%% *}" "--log-json events ${closed#* }"
    ! grep -v '^{"event": ' events || fail "other lines in the log with ${closed#* }"
done
redirect 7 '--log-json /dev/full >log 2>&1'
check_output 'the log is full' '/dev/full: the log could not be written'
expect 7 'none/x: cannot write: No such file.*make the folder first' -- "$LOCKSTEP" train --overwrite --solver \
    solver.prototxt --log-json none/x
expect 7 'cannot write: is a folder' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt \
    --log-json .
# A reader that goes away must not end a training.
"$LOCKSTEP" train --overwrite --solver solver.prototxt --set display=1 2>/dev/null | head -n 1 >/dev/null
[ -s s_iter_20.safetensors ] || fail "a closed pipe ended the training"
# ---- Tuning a net that mixes samples ---------------------------------------------------------------
# Each batch is one micro-batch; the sources keep their proportions.
cat >mixing.prototxt <<'TEXT'
base_lr: 0.01 lr_policy: "fixed" max_iter: 20
net_param {
  layer { name: "data" type: "Data" top: "data" top: "label"
    data_param { backend: SYNTHETIC batch_size: 12 synthetic_param { count: 600 } } }
  layer { name: "few" type: "Data" top: "few" top: "few_label"
    data_param { backend: SYNTHETIC batch_size: 4 synthetic_param { count: 600 } } }
  layer { name: "both" type: "Concat" bottom: "data" bottom: "few" top: "both" concat_param { axis: 0 } }
  layer { name: "labels" type: "Concat" bottom: "label" bottom: "few_label" top: "labels" concat_param { axis: 0 } }
  layer { name: "ip" type: "InnerProduct" bottom: "both" top: "ip" inner_product_param { num_output: 10 } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "labels" top: "loss" }
}
TEXT
expect 0 'batch 6, micro_batch 6: ' 'batch 24, micro_batch 24: ' \
    "13  cannot be: a batch of 13 instead of 12 is no whole number of rows of layer 'few'" '!micro_batch 12 ' \
    -- "$LOCKSTEP" tune --solver mixing.prototxt --seconds 0.1 --workers 1 --batch 6,12,13,24
expect 0 '3  cannot be: mixing.prototxt:.*: mixes the samples of a batch' \
    -- "$LOCKSTEP" tune --solver mixing.prototxt --seconds 0.1 --workers 1 --batch 12 --micro-batch 3,12

finish
