/* A small training for tests of jobs' snapshots: parts of its parameters lie with several ranks,
 * others with all of them; parameters are in the layouts of kernels, or plain; some are not
 * learned.
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
        "net_param {\n"
        "layer { name: 'train' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 12 }\n"
        "  transform_param { scale: 0.0078125 } }\n"
        "layer { name: 'test' type: 'Data' top: 'data' top: 'label' include { phase: TEST }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 10 }\n"
        "  transform_param { scale: 0.0078125 } }\n"
        "layer { name: 'c1' type: 'Convolution' bottom: 'data' top: 'c1'\n"
        "  convolution_param { num_output: 24 kernel_size: 3 weight_filler { type: 'msra' } } }\n"
        "layer { name: 'n1' type: 'BatchNorm' bottom: 'c1' top: 'c1' }\n"
        "layer { name: 's1' type: 'Scale' bottom: 'c1' top: 'c1' scale_param { bias_term: true } "
        "}\n"
        "layer { name: 'r1' type: 'ReLU' bottom: 'c1' top: 'c1' }\n"
        "layer { name: 'p1' type: 'Pooling' bottom: 'c1' top: 'p1'\n"
        "  pooling_param { kernel_size: 2 stride: 2 } }\n"
        "layer { name: 'c2' type: 'Convolution' bottom: 'p1' top: 'c2'\n"
        "  convolution_param { num_output: 64 kernel_size: 5 weight_filler { type: 'msra' } } }\n"
        "layer { name: 'r2' type: 'ReLU' bottom: 'c2' top: 'c2' }\n"
        "layer { name: 'wide' type: 'InnerProduct' bottom: 'p1' top: 'wide'\n"
        "  inner_product_param { num_output: 80 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'c2' top: 'ip'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'ip2' type: 'InnerProduct' bottom: 'wide' top: 'ip2'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'sum' type: 'Eltwise' bottom: 'ip' bottom: 'ip2' top: 'sum' }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'sum' bottom: 'label'\n"
        "  top: 'loss' }\n"
        "layer { name: 'accuracy' type: 'Accuracy' bottom: 'sum' bottom: 'label'\n"
        "  top: 'accuracy' include { phase: TEST } } }\n",
        fields, images, ls_test_path("labels"), ls_test_path("test-images"),
        ls_test_path("test-labels"));
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
