/* Signals while training. The handlers only leave notes, which the library asks for between
 * updates; nothing else is safe in them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A signal may come to any thread. */
static atomic_int stop_requested, snapshot_requested, several_ranks;
static struct lockstep_job *_Atomic job;

static void request_stop(int number)
{
    lockstep_job_poll_soon(atomic_load(&job));
    if (stop_requested && !several_ranks) { /* the second time: at once, by the default action */
        signal(number, SIG_DFL);
        raise(number); /* delivered when this handler returns */
    }
    stop_requested = 1;
}

static void request_snapshot(int number)
{
    (void)number;
    snapshot_requested = 1;
}

static void catch_signal(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void ls_cli_catch_signals(struct lockstep_job *of)
{
    stop_requested = snapshot_requested = 0;
    several_ranks = lockstep_job_size(of) > 1;
    atomic_store(&job, of);
    catch_signal(SIGINT, request_stop);
    catch_signal(SIGTERM, request_stop);
    catch_signal(SIGUSR1, request_stop);
    catch_signal(SIGHUP, request_snapshot);
    /* A log whose reader has gone must not end a training. */
    signal(SIGPIPE, SIG_IGN);
}

static void set_effect(int number, enum ls_cli_effect effect)
{
    if (effect == LS_CLI_NOTHING)
        signal(number, SIG_IGN);
    else
        catch_signal(number, effect == LS_CLI_STOP ? request_stop : request_snapshot);
}

void ls_cli_set_signal_effects(enum ls_cli_effect interrupt, enum ls_cli_effect hang_up)
{
    set_effect(SIGINT, interrupt);
    set_effect(SIGHUP, hang_up);
}

void ls_cli_forget_job(void)
{
    atomic_store(&job, NULL);
}

enum lockstep_request ls_cli_signal_request(void)
{
    if (stop_requested)
        return LOCKSTEP_SNAPSHOT_AND_STOP;
    if (!snapshot_requested)
        return LOCKSTEP_GO_ON;
    snapshot_requested = 0;
    return LOCKSTEP_SNAPSHOT_AND_GO_ON;
}
