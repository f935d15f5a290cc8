/* A team: the threads that work together on one training or test. The calling thread is worker 0.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_TEAM_H
#define LS_ENGINE_TEAM_H

#include <stddef.h>

#include "base/error.h"

struct ls_team;
struct ls_profiler;

/* Starts workers - 1 threads; `enter_thread` is called first thing in each. */
int ls_team_create(int workers, void (*enter_thread)(void), struct ls_team **team,
                   struct ls_error *error);
void ls_team_free(struct ls_team *team);

/* The calling thread becomes worker 0 (pinned, with the floating-point mode of workers) until
 * leave, which restores what it found. Calls may nest. */
void ls_team_enter(struct ls_team *team);
void ls_team_leave(struct ls_team *team);

/* Runs job(argument, worker) on all workers and returns when all are done. Only between enter and
 * leave. */
void ls_team_run(struct ls_team *team, void (*job)(void *argument, int worker), void *argument);
/* Within a job, called by all workers: waits until all have come here. What any of them wrote
 * before is seen by all afterwards. */
void ls_team_meet(struct ls_team *team);

/* From now on (NULL: no longer) what jobs and meetings take is added to a profiler for as many
 * workers; ls_team_profiler is for those who count more. Not while workers run. */
void ls_team_profile(struct ls_team *team, struct ls_profiler *profiler);
struct ls_profiler *ls_team_profiler(const struct ls_team *team);

#endif
