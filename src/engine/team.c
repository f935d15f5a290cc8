/* Worker threads. See engine/team.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/team.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "engine/profiler.h"

struct member {
    struct ls_team *team;
    int worker;
    pthread_t thread;
};

/* Threads wait at the gate until all of them exist: a barrier cannot be left again. */
enum gate { GATE_CLOSED, GATE_OPEN, GATE_GO_HOME };

struct ls_team {
    int workers;
    int threads; /* started */
    pthread_mutex_t gate_lock;
    pthread_cond_t gate_moved;
    enum gate gate;
    void (*enter_thread)(void);
    struct member *members;
    struct ls_barrier begin, end, middle;
    void (*job)(void *argument, int worker); /* NULL: go home */
    void *argument;
    struct ls_profiler *profiler; /* NULL: no profiling */
    bool pin;
    int entered;
    fenv_t caller_mode; /* of the calling thread, between enter and leave */
    cpu_set_t caller_cores;
};

static _Thread_local int this_worker; /* of the thread's job */

static void do_job(const struct ls_team *team, int worker)
{
    this_worker = worker;
    uint64_t start = ls_profiler_start(team->profiler);
    team->job(team->argument, worker);
    if (team->profiler != NULL)
        team->profiler->worker[worker].working += ls_nanoseconds() - start;
}

static void *work(void *argument)
{
    struct member *member = argument;
    struct ls_team *team = member->team;
    if (team->pin)
        ls_pin_thread(member->worker);
    team->enter_thread();
    if (LS_MUTANT(DENORMALS)) /* workers other than the first keep them */
        fesetenv(FE_DFL_ENV);
    pthread_mutex_lock(&team->gate_lock);
    while (team->gate == GATE_CLOSED)
        pthread_cond_wait(&team->gate_moved, &team->gate_lock);
    bool open = team->gate == GATE_OPEN;
    pthread_mutex_unlock(&team->gate_lock);
    while (open) {
        ls_barrier_wait(&team->begin);
        if (team->job == NULL)
            return NULL;
        do_job(team, member->worker);
        ls_barrier_wait(&team->end);
    }
    return NULL;
}

static void move_gate(struct ls_team *team, enum gate gate)
{
    pthread_mutex_lock(&team->gate_lock);
    team->gate = gate;
    pthread_cond_broadcast(&team->gate_moved);
    pthread_mutex_unlock(&team->gate_lock);
}

int ls_team_create(int workers, void (*enter_thread)(void), struct ls_team **out,
                   struct ls_error *error)
{
    *out = NULL;
    struct ls_team *team = ls_alloc(1, sizeof *team);
    if (team == NULL)
        return ls_fail_memory(error, "workers");
    team->workers = workers;
    team->enter_thread = enter_thread;
    team->pin = ls_fill_cores(workers); /* else the system should move them as it likes */
    ls_barrier_init(&team->begin, workers);
    ls_barrier_init(&team->end, workers);
    ls_barrier_init(&team->middle, workers);
    pthread_mutex_init(&team->gate_lock, NULL);
    pthread_cond_init(&team->gate_moved, NULL);
    team->members = ls_alloc((size_t)workers, sizeof *team->members);
    int status = team->members == NULL ? ls_fail_memory(error, "workers") : 0;
    for (int i = 1; i < workers && status == 0; i++) {
        struct member *member = &team->members[i];
        *member = (struct member){.team = team, .worker = i};
        if (pthread_create(&member->thread, NULL, work, member) == 0)
            team->threads++;
        else
            status = ls_fail(error, LOCKSTEP_RESOURCE, NULL, "use fewer workers",
                             "cannot start thread %d of %d", i + 1, workers);
    }
    if (status != 0) {
        ls_team_free(team);
        return status;
    }
    move_gate(team, GATE_OPEN);
    *out = team;
    return 0;
}

void ls_team_free(struct ls_team *team)
{
    if (team == NULL)
        return;
    if (team->gate == GATE_CLOSED) {
        move_gate(team, GATE_GO_HOME);
    } else if (team->workers > 1) {
        team->job = NULL;
        ls_barrier_wait(&team->begin);
    }
    for (int i = 1; team->members != NULL && i <= team->threads; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->gate_moved);
    pthread_mutex_destroy(&team->gate_lock);
    ls_free(team->members);
    ls_free(team);
}

void ls_team_enter(struct ls_team *team)
{
    if (team->entered++ > 0)
        return;
    fegetenv(&team->caller_mode);
    pthread_getaffinity_np(pthread_self(), sizeof team->caller_cores, &team->caller_cores);
    if (team->pin)
        ls_pin_thread(0);
    team->enter_thread();
}

void ls_team_leave(struct ls_team *team)
{
    if (--team->entered > 0)
        return;
    fesetenv(&team->caller_mode);
    pthread_setaffinity_np(pthread_self(), sizeof team->caller_cores, &team->caller_cores);
}

void ls_team_run(struct ls_team *team, void (*job)(void *argument, int worker), void *argument)
{
    uint64_t start = ls_profiler_start(team->profiler);
    team->job = job;
    team->argument = argument;
    if (team->workers > 1)
        ls_barrier_wait(&team->begin);
    do_job(team, 0);
    if (team->workers > 1)
        ls_barrier_wait(&team->end);
    if (team->profiler != NULL)
        team->profiler->jobs += ls_nanoseconds() - start;
}

void ls_team_meet(struct ls_team *team)
{
    uint64_t start = ls_profiler_start(team->profiler);
    if (team->workers > 1)
        ls_barrier_wait(&team->middle);
    if (team->profiler != NULL)
        team->profiler->worker[this_worker].meeting += ls_nanoseconds() - start;
}

void ls_team_profile(struct ls_team *team, struct ls_profiler *profiler)
{
    team->profiler = profiler;
}

struct ls_profiler *ls_team_profiler(const struct ls_team *team)
{
    return team->profiler;
}
