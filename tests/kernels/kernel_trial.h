/* One op, carried out by a kernel as the plan would do it: layouts, memory, prepare, bind, run.
 *
 * Values are filled and read in Caffe's order. Before each run all that a kernel may not rely on
 * (outputs, scratch) holds NaNs; after it, the lanes of padding must be zero.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_KERNEL_TRIAL_H
#define LS_TESTS_KERNELS_KERNEL_TRIAL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "ir/kernel.h"
#include "kernels/reference.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/onednn.h"
#include "ops/cpu/primitive.h"
#include "ops/devices.h"

enum { TRIAL_VALUES = 6 };

struct trial {
    const struct ls_kernel *kernel;
    struct ls_op op;
    struct ls_value value[TRIAL_VALUES];
    int values;
    struct ls_value *in[TRIAL_VALUES], *out[TRIAL_VALUES];
    float *plain[TRIAL_VALUES]; /* by value: the elements in Caffe's order */
    float *data[TRIAL_VALUES];  /* by value: as the kernel sees them */
    struct ls_prepared prepared;
};

/* What one worker has: bound scratch, and outputs of its own. */
struct trial_worker {
    void *in[TRIAL_VALUES], *out[TRIAL_VALUES];
    void *scratch, *local;
};

struct trial *trial_new(const struct ls_kernel *kernel);
struct ls_value *trial_in(struct trial *trial, const struct ls_shape *shape, uint64_t salt);
struct ls_value *trial_out(struct trial *trial, const struct ls_shape *shape);
size_t trial_bytes(const struct ls_value *value);

/* Asks for the layouts, lays the inputs out and prepares. Layouts that values have already are
 * what the kernel is offered. */
void trial_prepare(struct trial *trial);
void trial_bind(const struct trial *trial, struct trial_worker *worker, int shift);
void trial_unbind(const struct trial *trial, struct trial_worker *worker, int shift);
void trial_step(const struct trial *trial, struct trial_worker *worker);
void trial_run(struct trial *trial);
void trial_free(struct trial *trial);

/* Outputs are those of the same op on the reference device; each is a sum of so many products of
 * numbers from [-1, 1). */
void trial_near_reference(struct trial *trial, const double terms[2], const char *what);

/* Threads that run one prepared op at once, each with its own binding, at other addresses and at
 * others in every round, must give the bytes that the trial's outputs have. */
struct trial_thread {
    const struct trial *trial;
    int shift;
    int differences;
};
void *trial_thread_main(void *argument); /* a struct trial_thread */
void trial_concurrently(const struct trial *trial);

/* Runs the tests once for each instruction set that this processor has, in a process each: the
 * kernel library fixes its own for good. */
#define trial_main(tests) trial_main_(tests, sizeof(tests) / sizeof *(tests))
int trial_main_(const struct CMUnitTest *tests, size_t count);

#endif
