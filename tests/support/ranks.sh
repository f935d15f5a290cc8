# Trainings on several ranks against the one without MPI, to the byte. Sourced by
# tests/mpi/train_*.sh in a folder of their own, with $LOCKSTEP and the rest as for faults.sh.
# $LOCKSTEP_ALL: every MPI with every number of ranks and workers, not each in turn.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck source=tests/support/faults.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
# shellcheck source=tests/support/mpi.sh
. "$LOCKSTEP_SOURCE/tests/support/mpi.sh" || exit 1
mpi_or_skip
export LIMIT=300
read -ra kinds <<<"$(mpi_kinds | tr '\n' ' ')"

# cifar10_folder COUNT: CIFAR-10's files in this folder, all of them the same pseudo-random records.
cifar10_folder() {
    awk -v count="$1" 'BEGIN {
        state = 12345
        for (i = 0; i < count * 3073; i++) {
            state = (state * 1103 + 12345) % 1048576
            printf "%c", i % 3073 == 0 ? int(state / 1024) % 10 : int(state / 1024) % 256
        }
    }' >data_batch_1.bin
    local name
    for name in data_batch_{2,3,4,5} test_batch; do
        ln -s data_batch_1.bin "$name.bin"
    done
}

# alone ITERATIONS OPTIONS...: trains solver.prototxt on one worker, without MPI; the snapshot is
# what the others must have.
alone() {
    iterations=$1
    shift
    options=("$@")
    expect 0 'Optimization Done|Stopped after iteration' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 \
        --iterations "$iterations" --snapshot-prefix alone "$@"
    [ -s "alone_iter_$iterations.safetensors" ] || {
        fail "one worker left no snapshot"
        finish # there is nothing to compare with
    }
}

# compare TEXT: the snapshot of a job, whose prefix is "job", with that of one worker.
compare() {
    cmp "alone_iter_$iterations.safetensors" "job_iter_$iterations.safetensors" ||
        fail "$1: other bytes than of one worker"
    rm -f job_iter_*
}

# job KIND RANKS WORKERS OPTIONS...: trains on RANKS ranks of WORKERS workers each.
job() {
    local kind=$1 ranks=$2 workers=$3 said='^Workers: '
    shift 3
    [ "$ranks" = 1 ] || said="^Workers: $((ranks * workers)) on $ranks ranks "
    expect 0 "$said" 'Optimization Done|Stopped after iteration' -- "mpirun.$kind" -n "$ranks" "$LOCKSTEP" train --overwrite \
        --solver solver.prototxt --workers "$workers" --iterations "$iterations" \
        --snapshot-prefix job ${options[@]+"${options[@]}"} "$@"
    compare "$kind, $ranks ranks of $workers workers $*"
}

# jobs: 1, 2, 3, 4 and 6 ranks of 1 to 3 workers, each with one MPI or, $LOCKSTEP_ALL, with all.
jobs() {
    local ranks workers number=0 kind
    for ranks in 1 2 3 4 6; do
        for workers in 1 2 3; do
            for kind in "${kinds[@]}"; do
                [ -n "${LOCKSTEP_ALL:-}" ] || [ "$kind" = "${kinds[number % ${#kinds[@]}]}" ] ||
                    continue
                job "$kind" "$ranks" "$workers"
            done
            number=$((number + 1))
        done
    done
}

# uneven KIND WORKERS...: a rank for each number, which is how many workers it has.
uneven() {
    local kind=$1 line=() workers all=0
    shift
    for workers in "$@"; do
        all=$((all + workers))
        [ ${#line[@]} = 0 ] || line+=(:)
        line+=(-n 1 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers "$workers"
            --iterations "$iterations" --snapshot-prefix job ${options[@]+"${options[@]}"})
    done
    expect 0 "^Workers: $all on $# ranks " 'Optimization Done|Stopped after iteration' -- "mpirun.$kind" "${line[@]}"
    compare "$kind, ranks of $* workers"
}
