#!/bin/bash
# Failures among ranks, with each MPI library on this machine: a rank that dies, hangs, lacks its
# data or has a full disk, ranks with different settings, signals at any moment. The job ends
# soon, with its message, its exit code and status.json, and --resume auto continues to the bytes
# of an undisturbed training.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/faults.sh
. "$LOCKSTEP_SOURCE/tests/support/faults.sh"
# shellcheck source=tests/support/mpi.sh
. "$LOCKSTEP_SOURCE/tests/support/mpi.sh"
mpi_or_skip
export LIMIT=60

# So long that it is still under way when something happens; runs that are to end are cut.
small_solver | sed 's/max_iter: 20/max_iter: 1000000/; s/snapshot: 10/snapshot: 25/' >solver.prototxt
echo 'snapshot_keep: 3' >>solver.prototxt

# begin KIND OPTIONS...: three ranks in the background; waits until they have trained a little. `job`
# is mpirun's number. With Open MPI the output is a terminal's, so the log tells how far they are.
begin() {
    local kind=$1 i
    shift
    rm -f s_iter_* s_latest* status.json log.json
    : >log
    "mpirun.$kind" -n 3 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 \
        --log-json log.json "$@" >log 2>&1 </dev/null &
    job=$!
    for ((i = 0; i < 6000; i++)); do
        ! grep -qs '"iteration": 30,' log.json || return 0
        kill -0 $job 2>/dev/null || break
        sleep 0.01
    done
    fail "$kind: the training does not begin"
    tail -n 30 log | cut -c 1-400
}

# pid RANK: of the job under way.
pid() {
    local number
    for number in $(pgrep -f -- "^$LOCKSTEP train --overwrite --solver solver.prototxt"); do
        [ "$(readlink "/proc/$number/cwd")" = "$work" ] || continue
        ! tr '\0' '\n' 2>/dev/null <"/proc/$number/environ" |
            grep -qxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" || echo "$number"
    done
}

# ends NAME CODES TEXT...: waits for it; CODES are words.
ends() {
    local name=$1 codes=$2 status=0 begun=$SECONDS
    shift 2
    (sleep $LIMIT && kill -9 $job) 2>/dev/null &
    local alarm=$!
    wait $job || status=$?
    [ $((SECONDS - begun)) -lt $LIMIT ] || fail "$name: it did not end"
    pkill -P $alarm 2>/dev/null
    case " $codes " in
    *" $status "*) ;;
    *)
        fail "$name: status $status instead of $codes"
        tail -n 20 log | cut -c 1-400
        ;;
    esac
    check_output "$name" '!Segmentation fault' "$@"
    for ((i = 0; i < 500; i++)); do # all must end
        [ -n "$(pid 0)$(pid 1)$(pid 2)" ] || return 0
        sleep 0.01
    done
    fail "$name: ranks live on: $(pid 0) $(pid 1) $(pid 2)"
}

# state TEXT...: what status.json must hold.
state() {
    local text
    for text in "$@"; do
        grep -qE -e "$text" status.json || fail "'$text' is not in $(cat status.json)"
    done
}

# resumes NAME [OPTIONS...]: goes on from the newest snapshot, as another number of ranks.
resumes() {
    local name=$1 kind=${1%%:*} newest total
    shift
    newest=$(ls s_iter_*.safetensors 2>/dev/null | sed 's/[^0-9]//g' | sort -n | tail -n 1)
    total=$((${newest:-0} + 7))
    expect 0 -- "mpirun.$kind" -n 2 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 \
        --resume auto --iterations $total "$@"
    state '"status": "finished", "code": 0' "\"iteration\": $total"
    expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --snapshot-prefix whole \
        --iterations $total
    cmp s_iter_$total.safetensors whole_iter_$total.safetensors ||
        fail "$name: other bytes than without it"
    rm -f whole_iter_*
}

for kind in $(mpi_kinds); do
    # A rank dies: any, and the one that speaks. MPICH's mpirun kills all others at once then, so
    # that no rank is left to report it.
    for rank in 2 0; do
        name="$kind: rank $rank killed"
        begin "$kind"
        kill -9 "$(pid $rank)"
        if [ "$kind" = mpich ]; then
            ends "$name" '6 9 15 134 137 143 255' # of whichever rank its mpirun looks at
        else
            ends "$name" '9 137' "lockstep: rank $rank \(.+\) died: its process [0-9]+ is gone"
            state '"status": "failed", "code": 9' "\"rank\": $rank, \"host\": \".+\"" '"ranks": 3'
        fi
        resumes "$name"
    done

    # A rank stops.
    for rank in 1 0; do
        name="$kind: rank $rank stopped"
        begin "$kind" --timeout 6
        stopped=$(pid $rank)
        kill -STOP "$stopped"
        ends "$name" 9 "lockstep: rank $rank \(.+\) has not been heard of for [0-9]+ s, its process \
[0-9]+ is stopped; it (was|had) "
        state '"status": "failed", "code": 9' "\"rank\": $rank, \"host\": \".+\""
        kill -KILL "$stopped" 2>/dev/null
    done

    # Calls of MPI that do not return: those of all ranks, and those of the others after rank 0 has
    # stopped, which may hold what they wait for.
    for rank in none 0; do
        name="$kind: within MPI, stopped: $rank" stopped=
        export LD_PRELOAD=$LOCKSTEP_BUILD/tests/libfailing_calls.so FAIL_CALL=MPI FAIL_ERRNO=0 \
            FAIL_SLEEP=1000000 FAIL_WHEN=$work/now
        rm -f now
        begin "$kind" --timeout 6
        unset LD_PRELOAD FAIL_CALL FAIL_ERRNO FAIL_SLEEP FAIL_WHEN
        if [ $rank = 0 ]; then
            stopped=$(pid 0)
            kill -STOP "$stopped"
            : >now
            ends "$name" 9 "lockstep: rank 0 \(.+\) has not been heard of for [0-9]+ s, its process \
[0-9]+ is stopped; it (was|had) "
        else
            : >now
            ends "$name" 9 "lockstep: rank 0 \(.+\) hangs: a call of (Open MPI|MPICH) .+ has not \
returned for [0-9]+ s; it (was|had) "
        fi
        state '"status": "failed", "code": 9' '"rank": 0, "host": ".+"'
        [ -z "$stopped" ] || kill -KILL "$stopped" 2>/dev/null
    done

    # Signals to a rank and to mpirun, sooner or later, once or twice. (An mpirun that is told to end
    # may do so with a code of its own. MPICH 4.0's may end with 0 after any signal that it hands on:
    # it then counts the codes only of those processes that it finds ended while another one's output
    # is still open. status.json has the true code.)
    for what in 'TERM rank' 'TERM mpirun' 'USR1 mpirun'; do
        name="$kind: SIG$what" signal=${what% *} codes=75
        [ "$what" != 'TERM mpirun' ] || codes='75 0 1 143'
        [ "$kind: $what" != 'mpich: USR1 mpirun' ] || codes='75 0'
        begin "$kind"
        sleep 0.$((RANDOM % 4))$((RANDOM % 10))
        if [ "${what#* }" = rank ]; then
            kill -"$signal" "$(pid 1)" "$(pid 2)"
            kill -"$signal" "$(pid 2)" 2>/dev/null
        else
            kill -"$signal" $job
        fi
        ends "$name" "$codes" 'Snapshotting to s_iter_[0-9]+.safetensors' \
            'Optimization stopped early' \
            'To go on: mpirun -np 3 .*lockstep train --solver solver.prototxt --resume s_iter_'
        state '"status": "stopped", "code": 75'
        resumes "$name"
    done

    # Data that one rank does not see.
    rm -rf poor
    mkdir poor
    idx_images 60 12 >images
    idx_labels 60 >labels
    small_net 'backend: IDX source: "images" label_source: "labels"' >idx.prototxt
    sed 's/net.prototxt/idx.prototxt/' solver.prototxt >idx_solver.prototxt
    cp idx.prototxt idx_solver.prototxt poor
    cat >rank_2_elsewhere <<'TEXT'
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 2 ] || cd poor
exec "$@"
TEXT
    # The library's message has its own way of saying whose it is.
    expect 4 'lockstep: .*images.*rank 2, host ' -- "mpirun.$kind" -n 3 bash rank_2_elsewhere \
        "$LOCKSTEP" train --overwrite --solver idx_solver.prototxt --workers 1
    state '"status": "failed", "code": 4'

    # A solver that one rank does not see.
    rm poor/idx_solver.prototxt
    expect 3 'lockstep: .*idx_solver.prototxt.*rank 2, host ' -- "mpirun.$kind" -n 3 bash \
        rank_2_elsewhere "$LOCKSTEP" train --overwrite --solver idx_solver.prototxt --workers 1

    # Ranks that would not do the same.
    expect 8 'lockstep: other numeric environment than on rank 0 \(.+\): here .isa=.+, there .isa=' \
        'rank 1, host ' 'hint: --isa pins the instruction set' -- "mpirun.$kind" \
        -n 1 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 : \
        -n 2 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --isa sse41
    expect 8 'lockstep: other definition than on rank 0 \(.+\): here base_lr 0.02, there 0.01' \
        'rank 2, host ' -- "mpirun.$kind" \
        -n 2 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 : \
        -n 1 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 --set base_lr=0.02
    expect 8 'trains until iteration 6, rank 0 until 5' -- "mpirun.$kind" \
        -n 1 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --iterations 5 : \
        -n 1 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --iterations 6
    cp idx_solver.prototxt poor
    idx_images 61 12 >poor/images
    idx_labels 61 >poor/labels
    expect 8 'lockstep: other data than on rank 0 .*source 1: records .*rank 2, host ' -- \
        "mpirun.$kind" -n 3 bash rank_2_elsewhere "$LOCKSTEP" train --overwrite --solver idx_solver.prototxt \
        --workers 1

    # A command that is for one process.
    expect 2 'verify: only train runs on several ranks, and the launcher has started 2' -- \
        "mpirun.$kind" -n 2 "$LOCKSTEP" verify --solver solver.prototxt

    # A full disk, where one may be made.
    mkdir -p small
    if mount -t tmpfs -o size=12k none small 2>/dev/null; then
        undo="umount $work/small"
        expect 7 'lockstep: .*small/s_iter_25.safetensors' -- "mpirun.$kind" -n 3 "$LOCKSTEP" \
            train --overwrite --solver solver.prototxt --workers 1 --snapshot-required --snapshot-prefix small/s
        grep -q '"code": 7' small/status.json || fail "$kind: status.json on a full disk"
        umount small
        undo=''
    fi
done
finish
