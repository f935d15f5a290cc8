/* For tests of Lockstep's own kernels: one op, run on every instruction set of this processor (and
 * in place, where the kernel may be; and channels by channels, where it can), with outputs and
 * scratch full of NaNs before; the bytes must be the same each time, and the lanes of padding zero.
 * Inputs and outputs are in Caffe's order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_OWN_KERNEL_H
#define LS_TESTS_KERNELS_OWN_KERNEL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "ir/kernel.h"
#include "kernels/reference.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/kernels.h"
#include "ops/devices.h"

enum { OWN_VALUES = 16, OWN_PARTIALS = 64 };

struct own {
    const struct ls_kernel *kernel;
    struct ls_op op;
    struct ls_value value[OWN_VALUES];
    int values;
    struct ls_value *in[OWN_VALUES], *out[OWN_VALUES];
    float *plain[OWN_VALUES]; /* by value, in Caffe's order */
    float *data[OWN_VALUES];  /* by value, as the kernel sees it */
    float *first[OWN_VALUES]; /* by value: what the first run wrote */
    int runs;
    struct ls_context context; /* set first_ordinal, samples, normalizers before the run */
    double partials[OWN_PARTIALS], first_partials[OWN_PARTIALS];
    struct ls_prepared prepared;
};

enum { OWN_LAYOUTS = 3 };
extern const struct ls_layout *const own_layouts[OWN_LAYOUTS]; /* plain, blocks of 8, of 16 */

struct ls_shape own_shape(int rank, const int64_t *dim);
struct own *own_new(const struct ls_kernel *kernel);
struct ls_value *own_value(struct own *own, const struct ls_shape *shape);

/* A number in [-1, 1). */
float own_random(uint64_t salt, uint64_t i);

/* An input of random numbers in [-range, range). */
struct ls_value *own_in(struct own *own, const struct ls_shape *shape, uint64_t salt, float range);
struct ls_value *own_out(struct own *own, const struct ls_shape *shape);

/* Runs the op with inputs offered in `layout`. May be called once. */
void own_run(struct own *own, const struct ls_layout *layout);

/* |x - expected| <= tolerance * max(1, |expected|) for every element of an output. */
void own_near(const struct own *own, const struct ls_value *value, const double *expected,
              double tolerance);

/* Carries the op out on the reference device, in Caffe's order: outputs into `results`, by place in
 * the list and to be freed, and figures into `partials`. */
void own_refer(struct own *own, float *results[OWN_VALUES], double partials[OWN_PARTIALS]);

/* Outputs and figures are those of the reference device: |x - expected| <= tolerance * max(1,
 * |expected|); the same numbers where they are whole ones. After own_run. */
void own_near_reference(struct own *own, double tolerance);
/* Outputs are those of the reference device, to the bit (or both no number). After own_run. */
void own_same_as_reference(struct own *own);
const float *own_plain(const struct own *own, const struct ls_value *value);

/* n numbers as doubles; free() them. */
double *own_doubles(const float *x, int64_t n);

/* The first time keeps the elements of an output in *kept (to be freed); later they must be the
 * same bytes: for outputs that do not depend on the layout. */
void own_keep_or_compare(float **kept, const struct own *own, const struct ls_value *value);
void own_free(struct own *own);

#endif
