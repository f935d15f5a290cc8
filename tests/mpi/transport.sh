#!/bin/bash
# The transport over MPI, with each MPI library on this machine: operations and messages between
# 2, 3 and 4 ranks, the end of a job by one of them, how a module is found.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/faults.sh
. "$LOCKSTEP_SOURCE/tests/support/faults.sh"
# shellcheck source=tests/support/mpi.sh
. "$LOCKSTEP_SOURCE/tests/support/mpi.sh"
mpi_or_skip
ranks=$LOCKSTEP_BUILD/tests/transport_ranks
libraries=$(sed -n 's|^CMAKE_INSTALL_LIBDIR:[A-Z]*=\([^/]\)|\1|p' "$LOCKSTEP_BUILD/CMakeCache.txt")
export LIMIT=120

# MPICH's mpirun may die of SIGPIPE (status 141) where its process ends at once: then it is called again.
# shellcheck disable=SC2016 # for the inner shell
again=(bash -c 'for i in 1 2 3 4 5; do "$@"; status=$?; [ $status = 141 ] || break; done; exit $status' again)

# Not started by mpirun.
expect 0 '^alone$' -- "$ranks" alone

for kind in $(mpi_kinds); do
    module=$LOCKSTEP_BUILD/liblockstep_$kind.so
    export LOCKSTEP_MPI=$module
    case $kind in
    openmpi) name='Open MPI v[0-9.]+' ;;
    mpich) name='MPICH [0-9.]+' ;;
    esac
    expect 0 '^alone$' -- "${again[@]}" "mpirun.$kind" -n 1 "$ranks" alone
    for size in 2 3 4; do
        expected=()
        for ((rank = 0; rank < size; rank++)); do
            expected+=("^rank $rank of $size is good, $rank of $size on '.+', $name\$")
        done
        expect 0 "${expected[@]}" -- "mpirun.$kind" -n "$size" "$ranks" check
    done

    # One rank ends the job, and its code is mpirun's.
    expect 9 -- "mpirun.$kind" -n 3 "$ranks" end 9

    # Beside the program; in the folder of an installation that was moved; by its name; not at all;
    # no module.
    unset LOCKSTEP_MPI
    mkdir -p here/bin
    cp "$ranks" here/bin
    expect 7 "mpirun has started .* liblockstep_$kind.so or .* is neither in $work/here/bin nor in /" \
        'hint: install an MPI library' -- "mpirun.$kind" -n 2 here/bin/transport_ranks check
    cp "$module" here/bin
    expect 0 '^rank 1 of 2 is good' -- "mpirun.$kind" -n 2 here/bin/transport_ranks check
    export LOCKSTEP_MPI=$kind
    expect 0 '^rank 1 of 2 is good' -- "mpirun.$kind" -n 2 here/bin/transport_ranks check
    rm here/bin/*.so
    if [ -n "$libraries" ]; then
        mkdir -p "here/$libraries/lockstep"
        cp "$module" "here/$libraries/lockstep"
        expect 0 '^rank 1 of 2 is good' -- "mpirun.$kind" -n 2 here/bin/transport_ranks check
        rm "here/$libraries/lockstep"/*.so
    fi
    expect 7 "LOCKSTEP_MPI: there is no liblockstep_$kind.so" -- \
        "mpirun.$kind" -n 2 here/bin/transport_ranks check
    export LOCKSTEP_MPI=$ranks
    expect 7 'cannot load the module' -- "mpirun.$kind" -n 2 "$ranks" check
    unset LOCKSTEP_MPI
done

# An mpirun with the other library's module: each process would be alone, and says so instead.
if [ "$(mpi_kinds | wc -l)" = 2 ]; then
    export LOCKSTEP_MPI=$LOCKSTEP_BUILD/liblockstep_mpich.so
    expect 7 'has started 2 processes, but MPICH [0-9.]+, which Lockstep uses, knows of 1' -- \
        mpirun.openmpi -n 2 "$ranks" check
fi
finish
