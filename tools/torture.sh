#!/bin/bash
# Reliability by count: trainings that are killed, calls that fail, damaged snapshots, ranks that
# die or stop. What a training leaves must be whole at every moment, and a resume must end with
# the bytes of a training that nothing happened to.
#
#   tools/torture.sh [--short] [--only kill|faults|flips|ranks|stops]... [--hours H] [--seed N]
#                    [--kills N] [--flips N] [--ranks N] [--stops N] [--faults N]
#
# $LOCKSTEP_BUILD is the folder of the build. Random moments are drawn from the seed, which the first
# line shows. --hours ends every part at the next whole round; the counts are those that were run.
# SPDX-License-Identifier: BSD-2-Clause
LOCKSTEP_SOURCE=${LOCKSTEP_SOURCE:-$(cd "$(dirname "$0")/.." && pwd)}
export LOCKSTEP_SOURCE LOCKSTEP_BUILD=${LOCKSTEP_BUILD:-$LOCKSTEP_SOURCE/build}
export LOCKSTEP=${LOCKSTEP:-$LOCKSTEP_BUILD/lockstep}
. "$LOCKSTEP_SOURCE/tests/support/faults.sh" || exit 1
. "$LOCKSTEP_SOURCE/tests/support/mpi.sh" || exit 1
preload=$LOCKSTEP_BUILD/tests/libfailing_calls.so
# What jobs that are killed leave of MPI's own goes with the folder of this run.
export TMPDIR=$work OMPI_MCA_btl_vader_backing_directory=$work

kills=1000 flips=100000 ranks=200 stops=50 faults=100000 hours=1000 seed=1 only="" short=""
while [ $# != 0 ]; do
    option=$1
    shift
    case $option in
    --short)
        short=1 kills=4 flips=300 ranks=1 stops=1 faults=1
        continue
        ;;
    --kills | --flips | --ranks | --stops | --faults | --hours | --seed)
        [[ ${1:-} =~ ^[0-9]+$ ]] || {
            echo "torture: $option needs a number" >&2
            exit 2
        }
        printf -v "${option#--}" %s "$1"
        ;;
    --only)
        [[ ${1:-} =~ ^(kill|faults|flips|ranks|stops)$ ]] || {
            echo "torture: --only kill, faults, flips, ranks or stops" >&2
            exit 2
        }
        only="$only $1"
        ;;
    *)
        echo "torture: there is no option '$option'" >&2
        exit 2
        ;;
    esac
    shift
done
if sanitized; then
    echo "skipped: a sanitizer must come first: no calls are made to fail"
    exit 77
fi
RANDOM=$seed
echo "seed $seed; $(uname -srm), $(nproc) cores"
mapfile -t kinds < <(mpi_kinds)
until=$((SECONDS + hours * 3600))
chosen() { [ -z "$only" ] || [[ " $only " == *" $1 "* ]]; }
enough() { [ "$SECONDS" -ge "$until" ]; }

# ---- Two trainings, and what they must end with ------------------------------------------------

# torture_net TEXT: samples of 10 x 10 pixels, the layers of TEXT, ten classes.
torture_net() {
    cat <<TEXT
layer {
  name: "d" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.00390625 mirror: true crop_size: 10 }
  data_param {
    backend: SYNTHETIC batch_size: 16 shuffle: true
    synthetic_param { count: 50 height: 12 width: 12 }
  }
}
$1
layer {
  name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
TEXT
}
filler='weight_filler { type: "xavier" }'
torture_net "
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'x'
  convolution_param { num_output: 4 kernel_size: 3 $filler } }
layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'x' batch_norm_param { scale_bias: true } }
layer { name: 'relu' type: 'ReLU' bottom: 'x' top: 'x' }
layer { name: 'drop' type: 'Dropout' bottom: 'x' top: 'x' }" >norm.prototxt
# The gradients of a large inner product are sent as factors.
torture_net "
layer { name: 'wide' type: 'InnerProduct' bottom: 'data' top: 'x'
  inner_product_param { num_output: 100 $filler } }
layer { name: 'drop' type: 'Dropout' bottom: 'x' top: 'x' }" >wide.prototxt
common='base_lr: 0.01 lr_policy: "fixed" max_iter: 1000000 snapshot: 4 snapshot_prefix: "s"
random_seed: 3 micro_batch: 4 weight_average { decay: 0.9 } snapshot_format: BINARYPROTO'
echo "net: 'norm.prototxt' type: 'Adam' momentum: 0.9 $common" >norm.solver
echo "net: 'wide.prototxt' momentum: 0.9 snapshot_keep: 3 $common" >wide.solver
# sound FOLDER NAME ITERATIONS: all snapshots of such a training that nothing happened to, on one
# worker, with a list of checksums. (They are all there because none can be removed.)
sound() {
    mkdir "$1"
    expect 0 -- env FAIL_CALL=unlink LD_PRELOAD="$preload" "$LOCKSTEP" train \
        --solver "$2.solver" --workers 1 --iterations "$3"
    rm -f .s.*.tmp
    mv s_* "$1/"
    (cd "$1" && sha256sum s_* >sums)
}
for name in norm wide; do
    sound good_$name $name 60
done
[ "$failures" = 0 ] || finish
# What is compared with: a part may take a longer training.
length=60 good=good

# whole NAME WHAT: no file that has no business here, and each snapshot has the bytes of the sound
# training's.
whole() {
    local name=$1 what=$2 file
    file=$(find . -maxdepth 1 -name '.*.tmp')
    [ -z "$file" ] || fail "$what left $file"
    if [ -n "$(find . -maxdepth 1 -name 's_iter_*' -print -quit)" ]; then
        sha256sum --check --ignore-missing --quiet "../${good}_$name/sums" >sums.log 2>&1 ||
            fail "$what: other bytes: $(cat sums.log)"
    fi
}
# begin NAME: a folder for one training.
begin() {
    rm -rf job
    mkdir job
    cp "$1.prototxt" "$1.solver" job
    cd job || exit 1
}
# finishes NAME WHAT: goes on to the end; the bytes of the sound training.
finishes() {
    local name=$1 what=$2 status=0
    timeout -k 5 300 "$LOCKSTEP" train --solver "$name.solver" --workers $((1 + RANDOM % 3)) \
        --iterations $length --resume auto >end.log 2>&1 </dev/null || status=$?
    [ $status = 0 ] || {
        fail "$what: a resume ends with $status"
        tail -n 5 end.log
    }
    cmp s_iter_$length.safetensors "../${good}_$name/s_iter_$length.safetensors" ||
        fail "$what: other bytes"
    whole "$name" "$what, and resumed,"
    cd ..
}

# The processes of the job in this folder.
job_pids() {
    local number
    for number in $(pgrep -x lockstep); do
        [ "$(readlink "/proc/$number/cwd")" != "$PWD" ] || echo "$number"
    done
}
# Ends with kill -9 all that is left of it.
kill_all() {
    local i pids
    for ((i = 0; i < 1000; i++)); do
        pids=$(job_pids)
        [ -n "$pids" ] || return 0
        # shellcheck disable=SC2086
        kill -9 $pids 2>/dev/null
        sleep 0.01
    done
    fail "processes live on: $pids"
}
# command KIND RANKS: the words in front of the program, in the array `launcher`.
launched_by() {
    launcher=()
    [ "$1" = alone ] || launcher=("mpirun.$1" -n "$2")
}

# ---- kill -9 -----------------------------------------------------------------------------------

# lengthen: what follows trains longer, so that there is time for something to happen.
lengthen() {
    local name
    length=300 good=long
    [ ! -d long_norm ] || return 0
    for name in norm wide; do
        sound long_$name $name $length
    done
    measure
}
# How long a training of `length` iterations takes by each way, in milliseconds (`takes`), and how
# many calls change files (`changes`).
measure() {
    local kind name=norm begun
    declare -gA takes=()
    for kind in alone "${kinds[@]}"; do
        begin $name
        launched_by "$kind" 3
        begun=$(date +%s%N)
        expect 0 -- "${launcher[@]}" "$LOCKSTEP" train --solver $name.solver --workers 2 \
            --iterations $length
        takes[$kind]=$((($(date +%s%N) - begun) / 1000000 + 1))
        cd ..
    done
    begin $name
    expect 0 -- env FAIL_CALL=disk FAIL_COUNT=0 FAIL_REPORT="$PWD/count" LD_PRELOAD="$preload" \
        "$LOCKSTEP" train --solver $name.solver --workers 2 --iterations $length
    changes=$(cat count)
    cd ..
}

# One training after the other, killed again and again until it is at its end. Of the processes by
# themselves half are killed at a call that changes files; the others, and all jobs, at a random time,
# from the start of the process on.
torture_kill() {
    local done=0 at_calls=0 ends=0 name workers size kind status what call moment before=$failures
    local ways=(alone alone alone)
    ways+=("${kinds[@]}")
    lengthen
    while [ $done -lt "$kills" ] && ! enough; do
        name=norm
        [ $((ends % 2)) = 0 ] || name=wide
        begin $name
        while :; do
            kind=${ways[RANDOM % ${#ways[@]}]}
            size=$((2 + RANDOM % 2))
            workers=$((1 + RANDOM % 3))
            launched_by "$kind" $size
            status=0 call=none
            if [ $((done % 2)) = 0 ] && [ "$kind" = alone ]; then
                what="kill $done, of $name with $workers workers, at call $((call = RANDOM % changes))"
                { FAIL_CALL=disk FAIL_AFTER=$call FAIL_SIGNAL=9 LD_PRELOAD=$preload "$LOCKSTEP" \
                    train --solver $name.solver --workers $workers --iterations $length \
                    --resume auto >log 2>&1 </dev/null || status=$?; } 2>/dev/null
            else
                printf -v moment %06d $((RANDOM % takes[$kind] * 1000 + RANDOM % 1000))
                moment=${moment::-6}.${moment: -6}
                what="kill $done, of $name by $kind with $workers workers, after $moment s"
                "${launcher[@]}" "$LOCKSTEP" train --solver $name.solver --workers $workers \
                    --iterations $length --resume auto >log 2>&1 </dev/null &
                local job=$!
                sleep "0$moment"
                if kill -0 $job 2>/dev/null; then
                    kill -9 $job 2>/dev/null
                    { kill_all; } 2>/dev/null
                fi
                { wait $job || status=$?; } 2>/dev/null
            fi
            [ $status != 0 ] || break
            [ $status = 137 ] || {
                fail "$what: ended with $status by itself"
                tail -n 5 log
            }
            whole $name "$what"
            done=$((done + 1))
            [ $call = none ] || at_calls=$((at_calls + 1))
            [ $((done % 100)) != 0 ] || echo "kill: $done so far, $((failures - before)) wrong"
            [ $done -lt "$kills" ] && ! enough || break
        done
        finishes $name "$what"
        ends=$((ends + 1))
    done
    length=60 good=good
    echo "kill: $done processes or jobs killed ($at_calls at calls that change files) in $ends" \
        "trainings, $((failures - before)) wrong"
}

# ---- Calls that fail ---------------------------------------------------------------------------

# failing_call CALL K STATUS...: the K-th such call fails, and what may come of it.
failing_call() {
    local call=$1 k=$2 status=0 name=norm
    shift 2
    [ $((k % 2)) = 0 ] || name=wide
    local what="$call $k of $name"
    begin $name
    [ $call != rename ] || cp ../good_$name/* . # files are renamed over others only
    launched_by "$fault_kind" 2
    { FAIL_CALL=$call FAIL_AFTER=$((k - 1)) FAIL_COUNT=1 FAIL_CALLER=$PWD/caller \
        LOCKSTEP_PRELOAD=$preload timeout -k 5 120 "${launcher[@]}" bash ../one_fails "$LOCKSTEP" \
        train --overwrite --solver $name.solver --workers 2 --iterations 60 >log 2>&1 </dev/null ||
        status=$?; } 2>/dev/null
    kill_all
    # oneDNN, and the C++ and OpenMP libraries below it, end the process where they get no memory.
    if [ $call = malloc ] && grep -qE '/lib(dnnl|stdc\+\+|gomp)\.' caller &&
        { [[ $status =~ ^(134|139)$ ]] || grep -q '^libgomp: Out of memory' log; }; then
        aborted=$((aborted + 1))
    elif [[ " $* " != *" $status "* ]]; then
        fail "$what: exit code $status, not $*"
        tail -n 5 log
    elif [ $status != 0 ] && ! grep -q '^lockstep: ' log; then
        fail "$what: $status without a message: $(tail -n 3 log)"
    fi
    # What cannot be removed stays.
    [ $call != unlink ] || rm -f .*.tmp
    whole $name "$what"
    finishes $name "$what"
}
torture_faults() {
    local call count k step tried=0 aborted=0 before=$failures
    local calls=("open" write fsync linkat rename unlink malloc)
    # With several ranks the last one's calls fail.
    cat >one_fails <<'TEXT'
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-none}}
[ "$rank" != 0 ] || exec "$@"
LD_PRELOAD=$LOCKSTEP_PRELOAD exec "$@"
TEXT
    for fault_kind in alone "${kinds[@]}"; do
        [ "$fault_kind" = alone ] || calls=(MPI)
        [ "$short$fault_kind" != 1alone ] || calls=(fsync rename)
        [ "$short$fault_kind" != 1mpich ] || break
        for call in "${calls[@]}"; do
            begin norm
            [ $call != rename ] || cp ../good_norm/* .
            launched_by $fault_kind 2
            FAIL_CALL=$call FAIL_COUNT=0 FAIL_REPORT=$PWD/count LOCKSTEP_PRELOAD=$preload \
                "${launcher[@]}" bash ../one_fails "$LOCKSTEP" train --overwrite \
                --solver norm.solver --workers 2 --iterations 60 >log 2>&1 </dev/null ||
                fail "$call: nothing fails, and it ends badly"
            count=$(cat count 2>/dev/null || echo 0)
            cd ..
            [ "$count" -gt 0 ] || fail "no $call is called"
            # All of them, or so many samples, at another place for each seed.
            step=$(((count + faults - 1) / faults))
            [ $step -gt 0 ] || step=1
            for ((k = 1 + seed % step; k <= count; k += step)); do
                ! enough || break
                case $call in
                MPI) failing_call $call $k 0 1 7 9 14 15 16 17 137 ;;
                *) failing_call $call $k 0 1 3 4 5 7 ;;
                esac
                tried=$((tried + 1))
            done
            [ -n "$short" ] || echo "faults: $fault_kind, $call: one in $step of $count calls;" \
                "so far $tried trainings, $((failures - before)) wrong"
        done
    done
    echo "faults: $tried trainings in which a call failed, $((failures - before)) wrong;" \
        "oneDNN and the libraries below it ended $aborted without memory"
}

# ---- Damage ------------------------------------------------------------------------------------

torture_flips() {
    local status=0
    "$LOCKSTEP_BUILD/tests/flips" $((flips / 2)) "$seed" good_norm/s_iter_60.safetensors \
        good_wide/s_iter_60.safetensors good_norm/s_iter_60.caffemodel >flips.log || status=$?
    cat flips.log
    [ $status = 0 ] || fail "damaged files: see above"
}

# ---- Ranks -------------------------------------------------------------------------------------

# lose_ranks SIGNAL COUNT: a rank of three gets the signal at a random moment after the first
# snapshot. A job that is at its end by then does not count.
lose_ranks() {
    local signal=$1 count=$2 n=0 kind name what status pids options=() before=$failures early=0 late=0
    local moment i
    [ ${#kinds[@]} -gt 0 ] || {
        echo "ranks: no MPI library is there"
        return 0
    }
    [ "$signal" = KILL ] || options=(--timeout 5)
    lengthen
    while [ $n -lt "$count" ] && [ $late -le $((count + 10)) ] && ! enough; do
        kind=${kinds[n % ${#kinds[@]}]}
        name=norm
        [ $((n / 2 % 2)) = 0 ] || name=wide
        printf -v moment %06d $((RANDOM % (takes[$kind] * 2 / 3) * 1000 + RANDOM % 1000))
        moment=0${moment::-6}.${moment: -6}
        what="rank $n ($kind, $name, SIG$signal, after $moment s)"
        begin $name
        launched_by "$kind" 3
        "${launcher[@]}" "$LOCKSTEP" train --solver $name.solver --workers 1 --iterations $length \
            "${options[@]}" >log 2>&1 </dev/null &
        local job=$!
        for ((i = 0; i < 6000; i++)); do
            [ ! -e s_iter_4.safetensors ] && kill -0 $job 2>/dev/null || break
            sleep 0.01
        done
        sleep "$moment"
        mapfile -t pids < <(job_pids)
        status=0
        if [ ${#pids[@]} -lt 3 ] || [ -e s_iter_$length.safetensors ]; then
            late=$((late + 1))
            wait $job || fail "$what: exit code $? without a signal"
            cd ..
            continue
        fi
        kill -$signal "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null
        (sleep 60 && kill -9 $job) 2>/dev/null &
        local alarm=$!
        { wait $job || status=$?; } 2>/dev/null
        { pkill -P $alarm; wait $alarm; } 2>/dev/null
        # MPICH's mpirun kills all ranks at once when one dies, and has codes of its own.
        case "$kind $signal $status" in
        *' 9' | 'openmpi KILL 137' | 'mpich KILL '[1-9]*) ;;
        *)
            fail "$what: exit code $status"
            tail -n 5 log
            ;;
        esac
        [ "$kind $signal" = 'mpich KILL' ] ||
            grep -qE '^lockstep: rank [0-2] .*(died|has not been heard of)' log || {
            fail "$what: no message"
            tail -n 5 log
        }
        kill_all
        whole $name "$what"
        [ -n "$(ls s_iter_*.safetensors 2>/dev/null)" ] || early=$((early + 1))
        finishes $name "$what"
        n=$((n + 1))
    done
    length=60 good=good
    echo "ranks: $n with SIG$signal, $((failures - before)) wrong; $early resumed from the start," \
        "$late jobs were done before"
}

! chosen flips || torture_flips
! chosen kill || torture_kill
! chosen ranks || lose_ranks KILL "$ranks"
! chosen stops || lose_ranks STOP "$stops"
! chosen faults || torture_faults
echo "torture: $failures wrong in all"
finish
