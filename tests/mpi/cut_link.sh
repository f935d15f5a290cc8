#!/bin/bash
# The cable of a machine is pulled during a training: the ranks on both sides end soon after the
# timeout, with a message that names the silent rank and its host. Machines are network namespaces
# (tools/netns.sh); skipped where these are not allowed.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
. "$LOCKSTEP_SOURCE/tests/support/mpi.sh"
mpi_or_skip
netns=$LOCKSTEP_SOURCE/tools/netns.sh
name=lst$$
# So that Open MPI's mpirun notices within seconds, too, and not after eight minutes.
export OMPI_MCA_oob_tcp_keepalive_time=3 OMPI_MCA_oob_tcp_keepalive_intvl=1
export OMPI_MCA_oob_tcp_keepalive_probes=4
folder=$(mktemp -d)
cd "$folder"

tear_down() {
    local pids
    pids=$(ip netns pids "$name-0" 2>/dev/null; ip netns pids "$name-1" 2>/dev/null) || true
    # shellcheck disable=SC2086 # a list
    [ -z "$pids" ] || kill -9 $pids || true
    "$netns" down "$name" || true
}
clean_up() {
    tear_down
    rm -rf "$folder"
}
trap clean_up EXIT
fail() {
    echo "cut_link: $*" >&2
    tail -n 40 ./*.log | cut -c -200 >&2
    exit 1
}

cat >net.prototxt <<'END'
layer { name: 'data' type: 'Data' top: 'data' top: 'label' data_param { backend: SYNTHETIC
    batch_size: 16 synthetic_param { count: 64 channels: 3 height: 16 width: 16 } }
    transform_param { scale: 0.004 } }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
    convolution_param { num_output: 16 kernel_size: 5 weight_filler { type: 'msra' } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
    inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }
END
cat >solver.prototxt <<'END'
net: 'net.prototxt' base_lr: 0.001 lr_policy: 'fixed' max_iter: 100000000 display: 100
snapshot_prefix: 'shot'
END

# Waits for a condition; 0 when it came true.
within() { # SECONDS COMMAND
    local end=$((SECONDS + $1))
    shift
    while [ $SECONDS -lt $end ]; do
        ! "$@" || return 0
        sleep 0.2
    done
    return 1
}
trains() { [ -e events.json ] && grep -q '"iteration": *100' events.json; }
no_rank_left() { # MPI's own processes are another matter
    ! { ip netns pids "$name-0" && ip netns pids "$name-1"; } | xargs -r ps -o args= -p |
        grep -q "^$LOCKSTEP train"
}
has_ended() { ! kill -0 "$job" 2>/dev/null; }

# A network, or the end of the test where there cannot be one.
build() {
    local status=0
    "$netns" up "$name" 2 2>up.log || status=$?
    if [ $status = 77 ]; then
        echo "skipped: $(cat up.log)"
        exit 77
    fi
    [ $status = 0 ] || fail "no network"
}

for kind in $(mpi_kinds); do
    build
    rm -f status.json events.json
    "$netns" mpi "$name" "$kind" "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 \
        --timeout 6 --log-json events.json >"$kind.log" 2>&1 </dev/null &
    job=$!
    within 60 trains || fail "$kind: no training"
    "$netns" cut "$name" 1
    begin=$SECONDS
    within 40 no_rank_left || fail "$kind: a rank goes on without the link"
    echo "$kind: the last rank ended after $((SECONDS - begin)) s"
    # Open MPI's mpirun may go on waiting for its daemon behind the cut link.
    within 15 has_ended || [ "$kind" = openmpi ] || fail "$kind: mpirun goes on without the link"
    kill -9 "$job" 2>/dev/null || true
    status=0
    wait "$job" 2>/dev/null || status=$?
    [ "$status" != 0 ] || fail "$kind: the job ended as if nothing had happened"
    [ "$kind" = openmpi ] || [ "$status" = 9 ] || fail "$kind: exit code $status"
    # By the file: what is still on its way to mpirun may be lost with it. Both sides write it, here
    # where they share a folder.
    grep -q '"status": *"failed"' status.json || fail "$kind: status.json does not say so: $(cat status.json)"
    grep -oE 'rank ([01]) \(node\1\) has not been heard of for [0-9]+ s[^"]*' status.json ||
        fail "$kind: not named: $(cat status.json)"
    tear_down
done
