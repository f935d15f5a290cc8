#!/bin/bash
# One page about sameness: ResNet-20 on CIFAR-10 (examples/cifar10) with batch 100 and a smaller last
# batch in every epoch, trained by Lockstep in many ways, whose results must have one hash, and by
# PyTorch with all its switches for determinism. ./run sameness calls it; docs/sameness.md explains it.
#
#     sameness.sh [--epochs N] [--records N] [--tests N] [--batch N] [--only lockstep|pytorch]
#                 [--data FOLDER]
#
# Defaults: 10 epochs of 49975 records (the last batch has 75), 10000 tests, batch 100. The page goes to standard
# output in Markdown, what is under way to standard error. Exit status: 1 if Lockstep's hashes differ.
# FOLDER holds CIFAR-10's files, packed with xz or not; the default is cifar10 in $LOCKSTEP_DATA, else
# in ../shared/data. $LOCKSTEP is the program, $LOCKSTEP_PEER_PYTHON an interpreter with PyTorch.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
build=${LOCKSTEP_BUILD:-$source/build}
program=${LOCKSTEP:-$build/lockstep}
export LOCKSTEP_BUILD=$build
# shellcheck source=tests/support/mpi.sh
. "$source/tests/support/mpi.sh" # mpi_kinds, and mpirun also for root

die() {
    printf 'sameness: %s\n' "$*" >&2
    exit 2
}
note() { printf '%s\n' "$*" >&2; }

epochs=10 records=49975 tests=10000 batch=100 only=""
data=${LOCKSTEP_DATA:-$source/../shared/data}/cifar10
while [ $# != 0 ]; do
    [ $# -ge 2 ] || die "$1 needs a value, or is no option; see the head of bench/sameness.sh"
    case $1 in
    --epochs) epochs=$2 ;;
    --records) records=$2 ;;
    --tests) tests=$2 ;;
    --batch) batch=$2 ;;
    --only) only=$2 ;;
    --data) data=$2 ;;
    *) die "no option $1; there are --epochs, --records, --tests, --batch, --only, --data" ;;
    esac
    shift 2
done
for value in "$epochs" "$records" "$tests" "$batch"; do
    [[ $value =~ ^[1-9][0-9]{0,8}$ ]] || die "'$value' is no number from 1"
done
case $only in
"" | lockstep | pytorch) ;;
*) die "--only lockstep or --only pytorch" ;;
esac
data=$(realpath "$data")
folder=$(mktemp -d)
job="" # a training in the background
# shellcheck disable=SC2317 # by the trap
clean_up() {
    [ -z "$job" ] || kill -9 "$job" 2>/dev/null || true
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
cd "$folder"

# ---- Data and definition ----------------------------------------------------------------------

# The first COUNT records of the files into a file of their own: take COUNT TARGET FILE...
take() {
    local count=$1 target=$2 name
    shift 2
    for name in "$@"; do
        if [ -r "$data/$name.bin" ]; then
            cat "$data/$name.bin"
        elif [ -r "$data/$name.bin.xz" ]; then
            xz -dc "$data/$name.bin.xz"
        fi
    done 2>/dev/null | head -c $((count * 3073)) >"$target" || true # head may end first
    [ "$(stat -c %s "$target")" = $((count * 3073)) ] || die "$data has no $count records for $target"
}
take "$records" train.bin data_batch_{1,2,3,4,5}
take "$tests" test.bin test_batch
updates=$((epochs * ((records + batch - 1) / batch)))
last=$(((records - 1) % batch + 1))

# The example's net with other files; a snapshot at every quarter, so that there is one to go on from.
sed -E -e '/^ *source: "data_batch_[1-5].bin"/d' -e 's/test_batch\.bin/test.bin/' \
    -e "s/batch_size: 128 shuffle/source: \"train.bin\" batch_size: $batch last_batch: PARTIAL shuffle/" \
    "$source/examples/cifar10/resnet20_train_test.prototxt" >net.prototxt
sed -E -e 's/^net:.*/net: "net.prototxt"/' -e '/^(max_epoch|test_|display|snapshot_prefix)/d' \
    "$source/examples/cifar10/resnet20_solver.prototxt" >solver.prototxt
cat >>solver.prototxt <<END
max_iter: $updates
snapshot: $((updates > 4 ? updates / 4 : 1))
END
grep -q "source: \"train.bin\" batch_size: $batch last_batch: PARTIAL" net.prototxt ||
    die "examples/cifar10/resnet20_train_test.prototxt is not as this script expects it"

# ---- Lockstep -----------------------------------------------------------------------------------

# train PREFIX OPTIONS...; mpirun, or what else starts it, is in `launcher`.
launcher=()
train() {
    local prefix=$1
    shift
    ${launcher[@]+"${launcher[@]}"} "$program" train --solver solver.prototxt \
        --snapshot-prefix "$prefix" "$@" >"$prefix.log" 2>&1 </dev/null
}

# The row of a training that is there: row NAME PREFIX SECONDS.
row() {
    local snapshot=$2_iter_$updates.safetensors hash accuracy
    hash=$(sha256sum "$snapshot")
    "$program" test --model net.prototxt --weights "$snapshot" >"$2.test" 2>&1 </dev/null || {
        tail -n 3 "$2.test" >&2
        die "$1: the model cannot be tested"
    }
    accuracy=$(sed -n 's/.*accuracy = \([0-9.]*\).*/\1/p' "$2.test" | tail -n 1)
    # shellcheck disable=SC2016 # Markdown
    printf '| %s | `%s` | %s | %s |\n' "$1" "${hash%% *}" "$accuracy" "$3"
    echo "${hash%% *}" >>hashes
    rm -f "$2"_iter_* "$2"_latest*
}

# way NAME PREFIX OPTIONS...: a training and its row.
way() {
    local name=$1 prefix=$2 begun=$SECONDS
    shift 2
    note "Lockstep: $name"
    train "$prefix" "$@" || {
        tail -n 5 "$prefix.log" >&2
        die "$name: the training failed"
    }
    row "$name" "$prefix" $((SECONDS - begun))
}

# Killed when its first snapshot is there, while it trains on; as another number of workers it goes on
# and is killed again, and ends as a third one.
killed() {
    local begun=$SECONDS workers=2 after seen try
    note "Lockstep: killed and resumed"
    after=$(sed -n 's/^snapshot: //p' solver.prototxt)
    for ((try = 0; try < 20 && workers < 4; try++)); do
        "$program" train --solver solver.prototxt --snapshot-prefix killed --workers $workers \
            --resume auto >killed.log 2>&1 </dev/null &
        job=$!
        seen=killed_iter_$((after * (workers - 1))).safetensors
        while [ ! -e "$seen" ] && kill -0 $job 2>/dev/null; do sleep 0.01; done
        kill -9 $job 2>/dev/null || true
        wait $job 2>/dev/null || true
        job=""
        if [ -e "killed_iter_$updates.safetensors" ] || [ ! -e "$seen" ]; then
            rm -f killed_iter_* killed_latest* # it was too fast, or failed
            workers=2
        else
            workers=$((workers + 1))
        fi
    done
    [ $workers = 4 ] || {
        tail -n 5 killed.log >&2
        die "killed and resumed: too few updates, or no training, to be killed twice; more --records"
    }
    train killed --workers 1 --resume auto || {
        tail -n 5 killed.log >&2
        die "killed and resumed: the training failed"
    }
    row "2 workers, killed; 3 workers, killed; 1 worker" killed $((SECONDS - begun))
}

# Half of what one worker takes, or, where that does not fit, the least.
less_memory() {
    local all limit
    all=$("$program" plan --solver solver.prototxt --workers 1 --json | sed -n 's/.*"total": \([0-9]*\).*/\1/p')
    limit=$(awk -v bytes="$all" 'BEGIN { printf "%.1fMiB", bytes / 2 / 1048576 }')
    if ! "$program" plan --solver solver.prototxt --workers 1 --memory "$limit" >plan.log 2>&1; then
        limit=$(sed -n 's/.*needs at least \([0-9.]*\) MiB.*/\1/p' plan.log | head -n 1)
        [ -n "$limit" ] || die "no plan for less memory: $(tail -n 1 plan.log)"
        limit=$(awk -v least="$limit" 'BEGIN { printf "%.1fMiB", least + 0.1 }')
    fi
    way "1 worker, --memory $limit of $(awk -v b="$all" 'BEGIN { printf "%.1fMiB", b / 1048576 }')" \
        memory --workers 1 --memory "$limit"
}

lockstep() {
    local workers ranks kind
    echo "## $("$program" --version | head -n 1)"
    echo
    echo "| trained by | SHA-256 of the snapshot | accuracy | seconds |"
    echo "|---|---|---|---|"
    : >hashes
    for workers in 1 2 3 7; do
        way "$workers worker$([ "$workers" = 1 ] || echo s)" "w$workers" --workers "$workers"
    done
    kind=$(mpi_kinds | head -n 1)
    for ranks in 2 3; do
        if [ -z "$kind" ]; then
            echo "| $ranks ranks | left out: no MPI library | | |"
            continue
        fi
        launcher=("mpirun.$kind" -n "$ranks")
        way "$ranks ranks of 1 worker" "r$ranks" --workers 1
        launcher=()
    done
    killed
    less_memory
    echo
    if [ "$(sort -u hashes | wc -l)" = 1 ]; then
        echo "One hash."
    else
        echo "**$(sort -u hashes | wc -l) hashes: the promise is broken.**"
        return 1
    fi
}

# ---- PyTorch ------------------------------------------------------------------------------------

pytorch() {
    local peer
    peer=$("$source/bench/peer/python.sh") || die "no PyTorch"
    "$peer" "$source/bench/peer/same.py" --train train.bin --test test.bin --epochs "$epochs" \
        --batch "$batch"
}

cat <<TEXT
# Sameness: ResNet-20, $records records of CIFAR-10, batch $batch (the last of an epoch: $last), \
$epochs epochs, $updates updates

$(date -u +%Y-%m-%d), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; \
\`bench/sameness.sh --epochs $epochs --records $records --tests $tests --batch $batch\`. Accuracy: of $tests test pictures.

TEXT
status=0
[ "$only" = pytorch ] || lockstep || status=1
[ -n "$only" ] || echo
[ "$only" = lockstep ] || pytorch
exit $status
