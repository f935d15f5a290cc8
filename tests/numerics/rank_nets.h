/* A small training for tests of jobs' snapshots: some parameters are divided among ranks, others
 * are whole on each rank; they lie in kernels' layouts or plainly; some are not trained.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_NUMERICS_RANK_NETS_H
#define LS_TESTS_NUMERICS_RANK_NETS_H

#include "trainings/ranks.h"

static inline void write_data(void)
{
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 61, 12);
    write_idx_pair(ls_test_path("test-images"), ls_test_path("test-labels"), 37, 12);
}

/* Train data whose pictures are at `images`. */
static inline struct lockstep_solver *make_solver_of(const char *images, const char *fields)
{
    return load_solver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 6 random_seed: 5 average_loss: 3 %s\n"
        "net_param { %s }\n",
        fields, ls_test_net("rank_parts", LS_TEST_VALUES({"images", images})));
}

static inline struct lockstep_solver *make_solver(const char *fields)
{
    return make_solver_of(ls_test_path("images"), fields);
}

#define MOMENTUM "momentum: 0.9 "
#define ADAM     "type: 'Adam' momentum: 0.9 momentum2: 0.999 "
#define AVERAGE  "weight_average { decay: 0.8 } "
#define CAFFE    "snapshot_format: BINARYPROTO "

/* A path in the test's directory; the caller frees it. */
static inline char *own_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline char *own_path(const char *format, ...)
{
    char name[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    char *path = strdup(ls_test_path(name));
    assert_non_null(path);
    return path;
}

/* Runs a job, in which nothing may fail. */
static inline void run_well(const struct job *job)
{
    struct rank ranks[RANKS_MAX];
    run_job(job, ranks);
    for (int r = 0; r < job->ranks; r++)
        if (ranks[r].status != 0)
            fail_msg("rank %d of %d: %s", r, job->ranks, ranks[r].error->problems[0].message);
    free_ranks(job, ranks);
}

#endif
