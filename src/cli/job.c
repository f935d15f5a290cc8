/* The program as one of a job's ranks. See cli/job.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/job.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/report.h"

int ls_cli_refuse_ranks(const char *command)
{
    int rank, ranks = lockstep_job_launched(&rank);
    if (ranks == 1)
        return 0;
    if (rank != 0) { /* it is the same for all */
        ls_cli_let_rank_0_speak();
        return LOCKSTEP_USAGE;
    }
    return ls_cli_usage_error("%s: only train runs on several ranks, and the launcher has started "
                              "%d. hint: start it without mpirun or srun, or set "
                              "LOCKSTEP_MPI=none",
                              command, ranks);
}

const char *ls_cli_launch_command(int ranks, char text[64])
{
    bool slurm = getenv("SLURM_STEP_ID") != NULL && getenv("OMPI_COMM_WORLD_SIZE") == NULL;
    text[0] = '\0';
    if (ranks > 1)
        snprintf(text, 64, slurm ? "srun -n %d" : "mpirun -np %d", ranks);
    return text;
}
