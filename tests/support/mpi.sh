# What the tests of several ranks share: which MPI libraries there are, and how their programs are
# started on a machine with few cores, also in a container and as root. Sourced by tests/mpi/*.sh.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# Ranks share cores: none is bound to one, and a waiting rank yields. One machine needs
# no ssh, and a container may forbid that processes read each other's memory.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_plm_rsh_agent=/bin/false OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_base_warn_component_unused=0
# Sanitizers do not see into MPI's libraries, which keep memory until the end; UCX, under MPICH,
# would put functions of its own in the place of the sanitizers'.
export UCX_MEM_MMAP_HOOK_MODE=none
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
export TSAN_OPTIONS="${TSAN_OPTIONS:-}:ignore_noninstrumented_modules=1"

# The kinds of MPI of which there are both a module of this build and the mpirun: a word each.
mpi_kinds() {
    local kind
    for kind in openmpi mpich; do
        [ -e "$LOCKSTEP_BUILD/liblockstep_$kind.so" ] || continue
        command -v "mpirun.$kind" >/dev/null || continue
        echo "$kind"
    done
}

# Ends a test that nothing can be tested in.
mpi_or_skip() {
    [ -z "$(mpi_kinds)" ] || return 0
    echo "skipped: needs an MPI library (Debian: libopenmpi-dev openmpi-bin, libmpich-dev mpich)"
    exit 77
}

# mpi_run KIND RANKS COMMAND... Where a command must be no function, or different ranks run
# different ones, write mpirun.KIND as its manual has it: the environment above is all it needs.
mpi_run() {
    local kind=$1 ranks=$2
    shift 2
    "mpirun.$kind" -n "$ranks" "$@" </dev/null
}
