#!/bin/bash
# A network of machines on one machine: network namespaces that a bridge connects, each with a name
# and an address of its own, whose links can be made slow or cut. For tests and measurements; needs
# the right to make namespaces.
#
#     netns.sh up NAME COUNT [RATE]    COUNT nodes; RATE as tc writes it (1gbit), or none
#     netns.sh rate NAME RATE          another rate; "none": no limit
#     netns.sh run NAME NODE COMMAND   on node 0, 1, ...
#     netns.sh mpi NAME KIND COMMAND   a rank on each node, by "openmpi" or "mpich"
#     netns.sh cut NAME NODE           as if the cable was pulled: no end is told
#     netns.sh mend NAME NODE          puts it in again
#     netns.sh down NAME               with all that runs there
#
# `up` ends with 77 where namespaces are not allowed here, and says what was refused.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
self=$(realpath "$0")
subnet=10.77.0 # seen inside the namespaces only

die() {
    printf 'netns: %s\n' "$*" >&2
    exit 1
}

node() { printf '%s-%s' "$1" "$2"; } # namespace of a node

count_of() { # nodes that there are
    local count=0
    while [ -e "/run/netns/$(node "$1" "$count")" ]; do count=$((count + 1)); done
    echo "$count"
}

attach() { # NAME NODE: connects a node with the bridge
    local hub=$1-hub space
    space=$(node "$1" "$2")
    ip netns add "$space"
    ip -n "$hub" link add "port$2" type veth peer name link0 netns "$space"
    ip -n "$hub" link set "port$2" master bridge0 up
    ip -n "$space" addr add "$subnet.$(($2 + 1))/24" dev link0
    ip -n "$space" link set lo up
    ip -n "$space" link set link0 up
}

up() { # NAME COUNT [RATE]
    if [ "$2" -lt 1 ] || [ "$2" -gt 200 ]; then die "1 to 200 nodes"; fi
    ip netns add "$1-hub"
    ip -n "$1-hub" link add bridge0 type bridge
    ip -n "$1-hub" link set bridge0 up
    local i
    for ((i = 0; i < $2; i++)); do attach "$1" "$i"; done
    rate "$1" "${3:-none}"
    "$self" run "$1" 0 true
}

# What a machine sends and what it receives have the same limit, as on a switch.
limit() { # NAMESPACE DEVICE RATE
    tc -n "$1" qdisc del dev "$2" root 2>/dev/null || true
    [ "$3" = none ] || tc -n "$1" qdisc add dev "$2" root tbf rate "$3" burst 128k latency 20ms
}

rate() { # NAME RATE
    local i count
    count=$(count_of "$1")
    for ((i = 0; i < count; i++)); do
        limit "$(node "$1" "$i")" link0 "$2"
        limit "$1-hub" "port$i" "$2"
    done
}

down() {
    local space
    for space in $(ip netns list | awk '{ print $1 }'); do
        case $space in
        "$1-hub" | "$1"-[0-9]*)
            ip netns pids "$space" | xargs -r kill -9 2>/dev/null || true
            ip netns del "$space"
            ;;
        esac
    done
}

# On a node, under its own host name, where no process of others is seen: as on a machine of its own.
run() { # NAME NODE COMMAND
    local space number=$2
    space=$(node "$1" "$2")
    shift 2
    # shellcheck disable=SC2016 # the inner shell's
    exec ip netns exec "$space" unshare --uts --pid --fork --kill-child --mount-proc \
        sh -c 'hostname "$0" && exec "$@"' "node$number" "$@"
}

# What launchers call in place of ssh: [-OPTION]... ADDRESS COMMAND-LINE.
agent() {
    while [ "${1#-}" != "$1" ]; do shift; done
    local number=$((${1##*.} - 1))
    shift
    run "$LOCKSTEP_NETNS" "$number" sh -c "$*"
}

mpi() { # NAME KIND COMMAND
    local name=$1 kind=$2 count i hosts=""
    shift 2
    count=$(count_of "$name")
    for ((i = 0; i < count; i++)); do hosts+=${hosts:+,}$subnet.$((i + 1)); done
    export LOCKSTEP_NETNS=$name LOCKSTEP_NETNS_AGENT=1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    case $kind in
    openmpi)
        run "$name" 0 mpirun.openmpi --host "$hosts" -np "$count" --bind-to none \
            --mca plm_rsh_agent "$self" --mca btl tcp,self --mca pml ob1 \
            --mca btl_tcp_if_include "$subnet.0/24" --mca oob_tcp_if_include "$subnet.0/24" "$@"
        ;;
    mpich) # which finds what the namespaces share, if it is let
        export UCX_TLS=tcp,self FI_PROVIDER=tcp
        run "$name" 0 mpiexec.hydra -launcher ssh -launcher-exec "$self" -disable-x \
            -hosts "$hosts" -n "$count" -ppn 1 "$@"
        ;;
    *) die "no such MPI: $kind" ;;
    esac
}

if [ -n "${LOCKSTEP_NETNS_AGENT:-}" ]; then
    unset LOCKSTEP_NETNS_AGENT # for what runs there
    agent "$@"
fi
command=${1:-}
shift || true
case $command in
make) up "$@" ;; # a process of its own, which ends at the first command that fails
up)
    if ! said=$("$self" make "$@" 2>&1); then
        down "$1" 2>/dev/null || true
        printf 'netns: not possible here: %s\n' "$said" >&2
        exit 77
    fi
    ;;
rate | run | mpi | down) "$command" "$@" ;;
cut) ip -n "$1-hub" link set "port$2" down ;;
mend) ip -n "$1-hub" link set "port$2" up ;;
*) die "up, rate, run, mpi, cut, mend or down; see the head of $self" ;;
esac
