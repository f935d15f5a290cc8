/* Signals while training: SIGINT and SIGTERM finish the update, write a snapshot and stop, and
 * kill when they come a second time; SIGHUP writes a snapshot and goes on. This holds also where
 * the program was started with one of them ignored, as shells do with SIGINT for jobs in the
 * background of a script: whoever stops a training wants its state kept.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_SIGNALS_H
#define LS_CLI_SIGNALS_H

#include "lockstep/lockstep.h"

/* Installs the handlers. */
void ls_cli_catch_signals(void);

/* What the signals since the last call ask for; a request to stop stays. */
enum lockstep_request ls_cli_signal_request(void);

#endif
