/* Joining the job that a launcher (mpirun, srun) has started this process in. Lockstep itself is
 * linked with no MPI: what speaks it is a module for each MPI library (transport/mpi/), and which
 * one is loaded follows from the launcher's environment:
 *
 *   OMPI_COMM_WORLD_SIZE               Open MPI's mpirun                  liblockstep_openmpi.so
 *   PMI_SIZE                           MPICH's and its relatives' mpirun  liblockstep_mpich.so
 *   PMIX_RANK, SLURM_STEP_NUM_TASKS    srun --mpi=pmix or pmi2            the first that is there
 *   LOCKSTEP_MPI=openmpi|mpich|FILE    any launcher                       that one
 *   LOCKSTEP_MPI=none                  any launcher                       none: alone on purpose
 *
 * base/module.h says where modules are looked for.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_LAUNCH_H
#define LS_TRANSPORT_LAUNCH_H

#include "base/error.h"
#include "transport/transport.h"

/* *transport: NULL where this process was started by itself, or is the only one of its job. A
 * process that finds no other, but is one of several by a launcher's environment, is refused. Waits
 * for the job's other processes. The thread that calls this also ends the transport. */
int ls_launch(struct ls_transport **transport, struct ls_error *error);

/* How many processes the launcher has started, by its environment alone; 0: it does not say, 1:
 * there is none. *rank (may be NULL): this process. */
int ls_launched(int *rank);

#endif
