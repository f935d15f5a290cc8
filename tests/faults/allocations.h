/* Calls in which every allocation fails once, one after the other: each time the call must end with
 * LOCKSTEP_RESOURCE and a message, or succeed without that memory, and work afterwards.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_FAULTS_ALLOCATIONS_H
#define LS_TESTS_FAULTS_ALLOCATIONS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lockstep/lockstep.h"
#include "support/support.h"

/* Warnings of the call at hand: what fails besides a training must be told. */
static int warnings;

static void count_warnings(void *user, const struct lockstep_event *event)
{
    (void)user;
    warnings += event->kind == LOCKSTEP_EVENT_WARNING && strstr(event->text, "memory") != NULL;
}

/* A training on two workers by the solver in `file`, from a snapshot or weights if they are given.
 */
static int train_from(const char *file, const char *prefix, const char *resume, const char *weights,
                      struct lockstep_error *error)
{
    struct lockstep_solver *definition = NULL;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.workers = 2;
    options.snapshot_prefix = ls_test_path(prefix);
    options.resume = resume;
    options.weights = weights;
    options.callbacks.event = count_warnings;
    int status = lockstep_solver_load(ls_test_path(file), NULL, 0, &definition, error);
    if (status == 0)
        status = lockstep_trainer_create(definition, &options, &trainer, error);
    lockstep_solver_free(definition);
    if (status == 0)
        status = lockstep_trainer_run(trainer, -1, error);
    lockstep_trainer_free(trainer);
    return status;
}

static void check_folder(const char *what, long n)
{
    DIR *directory = opendir(ls_test_directory());
    assert_non_null(directory);
    for (struct dirent *file; (file = readdir(directory)) != NULL;)
        if (strstr(file->d_name, ".tmp") != NULL)
            fail_msg("%s, allocation %ld: left %s", what, n, file->d_name);
    closedir(directory);
}

/* Fails allocation 0, 1, 2 ... until there is none left to fail. `optional`: so many may be done
 * without. */
static void fail_each_with(const char *what, int (*call)(struct lockstep_error *error), long step,
                           long optional)
{
    struct lockstep_error *error = lockstep_error_new();
    assert_non_null(error);
    if (call(error) != 0) /* also makes what is made once a process */
        fail_msg("%s: %s", what, lockstep_error_text(error));
    long failed = 0, without = 0;
    for (long n = 0;; n += step) {
        uint64_t before = ls_allocations();
        warnings = 0;
        ls_fail_allocation_after(n);
        int status = call(error);
        ls_fail_allocation_after(-1);
        /* Of the text itself, too, which must not need what failed. */
        if (status != 0 && status != LOCKSTEP_RESOURCE)
            fail_msg("%s, allocation %ld: status %d: %s", what, n, status,
                     lockstep_error_text(error));
        if (status != 0 && strstr(lockstep_error_text(error), "memory") == NULL)
            fail_msg("%s, allocation %ld: %s", what, n, lockstep_error_text(error));
        failed += status != 0;
        if (status == 0 && ls_allocations() - before <= (uint64_t)n)
            break; /* it never came to the one that should fail */
        without += status == 0 && warnings == 0;
        check_folder(what, n);
    }
    if (call(error) != 0)
        fail_msg("%s, afterwards: %s", what, lockstep_error_text(error));
    printf("%s: %ld allocations were missed, %ld were not needed\n", what, failed, without);
    assert_true(failed > 5 && without < optional);
    lockstep_error_free(error);
}

/* Every how many allocations fail in a call whose beginning another one has tried through: all, if
 * $LOCKSTEP_ALL asks for it. */
static inline long step_of_some(void)
{
    return getenv("LOCKSTEP_ALL") != NULL ? 1 : 3;
}

/* A few allocations are optional: copies in a cache, hints of messages, and what decoders that
 * run ahead make for micro-batches behind the last update; how many those are depends on how
 * far they come. Snapshots between updates, and the removal of old ones, may fail with a
 * warning, also in the trainings of a verification. */
static inline void fail_each(const char *what, int (*call)(struct lockstep_error *error), long step)
{
    fail_each_with(what, call, step, 24);
}

#endif
