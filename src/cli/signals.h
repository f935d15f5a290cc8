/* Signals while training: SIGINT, SIGTERM and SIGUSR1 finish the update, write a snapshot and stop,
 * and kill when one comes a second time; SIGHUP writes a snapshot and goes on. This holds also
 * where the program was started with one of them ignored, as shells do with SIGINT for jobs in the
 * background of a script: a user who stops a training wants its state kept. (Slurm sends SIGUSR1
 * some time before a job's end, where it is asked to.)
 *
 * Among several ranks a second signal does nothing more: launchers send one to all ranks and to
 * themselves, who pass it on, and no rank may end by itself while the others take part in the
 * snapshot. mpirun also sends SIGTERM when another rank has died, and then kills: so a look is
 * taken at once whether that is so.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_SIGNALS_H
#define LS_CLI_SIGNALS_H

#include "lockstep/lockstep.h"

/* Installs the handlers. `job`: that of this process, or NULL. */
void ls_cli_catch_signals(struct lockstep_job *job);
/* What SIGINT and SIGHUP do from now on, instead of LS_CLI_STOP and LS_CLI_SNAPSHOT. */
enum ls_cli_effect { LS_CLI_STOP, LS_CLI_SNAPSHOT, LS_CLI_NOTHING };
void ls_cli_set_signal_effects(enum ls_cli_effect interrupt, enum ls_cli_effect hang_up);
/* From now on signals do not look at the job any more, which is about to be closed. */
void ls_cli_forget_job(void);

/* What the signals since the last call ask for; a request to stop stays. */
enum lockstep_request ls_cli_signal_request(void);

#endif
