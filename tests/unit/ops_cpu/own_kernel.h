/* For tests of Lockstep's own kernels: one op, run on every instruction set of this processor (and
 * in place, where the kernel may be; and channels by channels, where it can), with outputs and
 * scratch full of NaNs before; the bytes must be the same each time, and the lanes of padding zero.
 * Inputs and outputs are in Caffe's order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_OWN_KERNEL_H
#define LS_TESTS_OWN_KERNEL_H

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

static const struct ls_layout *const own_layouts[] = {&ls_layout_plain, &ls_layout_blocked8,
                                                      &ls_layout_blocked16};
enum { OWN_LAYOUTS = 3 };

static inline struct ls_shape own_shape(int rank, const int64_t *dim)
{
    struct ls_shape shape = {.rank = rank};
    memcpy(shape.dim, dim, (size_t)rank * sizeof *dim);
    return shape;
}

static inline struct own *own_new(const struct ls_kernel *kernel)
{
    struct own *own = ls_alloc(1, sizeof *own);
    assert_non_null(own);
    own->kernel = kernel;
    own->op.kind = kernel->kind;
    own->op.input = own->in;
    own->op.output = own->out;
    own->context.samples = 1;
    own->context.partials = own->partials;
    return own;
}

static inline struct ls_value *own_value(struct own *own, const struct ls_shape *shape)
{
    assert_true(own->values < OWN_VALUES);
    struct ls_value *value = &own->value[own->values];
    value->index = own->values;
    value->shape = *shape;
    value->rows = 1;
    own->plain[own->values] = ls_alloc((size_t)ls_shape_size(shape) + 1, sizeof(float));
    assert_non_null(own->plain[own->values++]);
    return value;
}

/* A number in [-1, 1). */
static inline float own_random(uint64_t salt, uint64_t i)
{
    return 2 * ls_random_uniform(salt, 77, i) - 1;
}

/* An input of random numbers in [-range, range). */
static inline struct ls_value *own_in(struct own *own, const struct ls_shape *shape, uint64_t salt,
                                      float range)
{
    struct ls_value *value = own_value(own, shape);
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        own->plain[value->index][i] = range * own_random(salt, (uint64_t)i);
    own->in[own->op.inputs++] = value;
    return value;
}

static inline struct ls_value *own_out(struct own *own, const struct ls_shape *shape)
{
    struct ls_value *value = own_value(own, shape);
    own->out[own->op.outputs++] = value;
    return value;
}

/* Where element i of the plain order lies in a layout. */
static inline size_t own_place(const struct ls_layout *layout, const struct ls_shape *shape,
                               int64_t i)
{
    if (layout->block <= 1 || shape->rank < 2)
        return (size_t)i;
    int64_t points = ls_shape_count(shape, 2, shape->rank), channels = shape->dim[1];
    int64_t point = i % points, c = i / points % channels, n = i / points / channels;
    int64_t blocks = (channels + layout->block - 1) / layout->block;
    return (size_t)(((n * blocks + c / layout->block) * points + point) * layout->block +
                    c % layout->block);
}

/* Lays the plain elements out, with zeros everywhere else. */
static inline void own_lay_out(const struct own *own, const struct ls_value *value, float *target)
{
    memset(target, 0, ls_value_elements(value) * sizeof *target);
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++)
        target[own_place(value->layout, &value->shape, i)] = own->plain[value->index][i];
}

static inline void own_check(int status, const struct ls_error *error)
{
    char text[2048];
    if (status == 0)
        return;
    ls_error_format(error, text, sizeof text);
    fail_msg("%s", text);
}

/* Asks the kernel which layouts it wants when all inputs have `layout`. */
static inline void own_ask(struct own *own, const struct ls_layout *layout)
{
    struct ls_op_layouts layouts = {0};
    struct ls_error error = {0};
    for (int i = 0; i < own->op.inputs; i++)
        layouts.in[i] = own->kernel->layouts != NULL ? layout : &ls_layout_plain;
    for (int i = 0; i < own->op.outputs; i++)
        layouts.out[i] = &ls_layout_plain;
    if (own->kernel->layouts != NULL)
        own_check(own->kernel->layouts(&own->op, &layouts, &error), &error);
    for (int i = 0; i < own->op.inputs; i++)
        if (own->in[i] != NULL)
            own->in[i]->layout = layouts.in[i];
    for (int i = 0; i < own->op.outputs; i++)
        if (own->out[i] != NULL)
            own->out[i]->layout = layouts.out[i];
}

/* Compares what a run wrote with what the first one did. */
static inline void own_same(struct own *own, void *const *out)
{
    for (int i = 0; i < own->op.outputs; i++) {
        if (own->out[i] == NULL)
            continue;
        int index = own->out[i]->index;
        size_t bytes = ls_value_elements(own->out[i]) * sizeof(float);
        if (own->runs == 0)
            memcpy(own->first[index], out[i], bytes);
        else if (memcmp(own->first[index], out[i], bytes) != 0)
            fail_msg("%s: %s gives other bytes (run %d, %s)", own->kernel->name,
                     own->prepared.implementation, own->runs, own->out[i]->layout->name);
    }
    if (own->runs == 0)
        memcpy(own->first_partials, own->partials, sizeof own->partials);
    assert_memory_equal(own->first_partials, own->partials, sizeof own->partials);
    own->runs++;
}

/* The kernel, or what it does channels by channels, the last ones first, with scratch full of NaNs
 * before each. */
static inline void own_carry_out(struct own *own, void *local, void *const *in, void *const *out,
                                 void *scratch, bool by_channels)
{
    if (!by_channels) {
        assert_int_equal(own->kernel->run(&own->prepared, local, in, out, scratch, &own->context),
                         0);
        return;
    }
    for (int64_t c = own->prepared.channels; c > 0; c -= LS_SYNC_BLOCK) {
        memset(scratch, 0xff, own->prepared.scratch_bytes);
        assert_int_equal(own->kernel->run_channels(&own->prepared, in, out, scratch, &own->context,
                                                   c - LS_SYNC_BLOCK, c),
                         0);
    }
}

static inline void own_step(struct own *own, bool in_place, bool by_channels)
{
    void *in[OWN_VALUES] = {0}, *out[OWN_VALUES] = {0}, *local = NULL;
    struct ls_error error = {0};
    own_check(own->kernel->prepare != NULL ? own->kernel->prepare(&own->prepared, &error) : 0,
              &error);
    for (int i = 0; i < own->op.inputs; i++) {
        if (own->in[i] == NULL)
            continue;
        in[i] = own->data[own->in[i]->index];
        own_lay_out(own, own->in[i], in[i]);
    }
    for (int i = 0; i < own->op.outputs; i++) {
        if (own->out[i] == NULL)
            continue;
        out[i] = own->data[own->out[i]->index];
        memset(out[i], 0xff, ls_value_elements(own->out[i]) * sizeof(float));
    }
    if (in_place)
        out[0] = in[own->kernel->in_place];
    void *scratch = ls_alloc_aligned(own->prepared.scratch_bytes);
    memset(scratch, 0xff, own->prepared.scratch_bytes);
    memset(own->partials, 0, sizeof own->partials);
    if (own->kernel->bind != NULL)
        own_check(own->kernel->bind(&own->prepared, in, out, scratch, &local, &error), &error);
    by_channels = by_channels && own->prepared.channels > 0;
    own_carry_out(own, local, in, out, scratch, by_channels);
    own_same(own, out);
    if (own->kernel->unbind != NULL)
        own->kernel->unbind(&own->prepared, local);
    if (own->kernel->release != NULL)
        own->kernel->release(&own->prepared);
    ls_free_aligned(scratch);
}

/* Outputs back to Caffe's order; everything else must be zero. */
static inline void own_read(struct own *own, const struct ls_value *value)
{
    float *written = own->first[value->index];
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++) {
        size_t place = own_place(value->layout, &value->shape, i);
        own->plain[value->index][i] = written[place];
        written[place] = 0;
    }
    for (size_t i = 0; i < ls_value_elements(value); i++)
        if (written[i] != 0)
            fail_msg("%s: padding of %s is not zero", own->kernel->name, value->layout->name);
}

/* Runs the op with inputs offered in `layout`. May be called once. */
static inline void own_run(struct own *own, const struct ls_layout *layout)
{
    ls_set_float_mode();
    assert_true(own->kernel->accepts == NULL || own->kernel->accepts(&own->op));
    own->prepared.kernel = own->kernel;
    own->prepared.op = &own->op;
    own_ask(own, layout);
    for (int i = 0; i < own->values; i++) {
        size_t bytes = ls_value_elements(&own->value[i]) * sizeof(float);
        own->data[i] = ls_alloc_aligned(bytes);
        own->first[i] = ls_alloc_aligned(bytes);
        assert_non_null(own->data[i]);
        assert_non_null(own->first[i]);
    }
    for (int isa = LS_ISAS - 1; isa >= 0; isa--) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
        bool in_place = own->kernel->in_place >= 0 && own->op.outputs > 0 && own->op.inputs > 0;
        for (int by_channels = 0; by_channels <= (own->kernel->run_channels != NULL);
             by_channels++) {
            own_step(own, false, by_channels);
            if (in_place)
                own_step(own, true, by_channels);
        }
    }
    for (int i = 0; i < own->op.outputs; i++)
        if (own->out[i] != NULL)
            own_read(own, own->out[i]);
}

/* |x - expected| <= tolerance * max(1, |expected|) for every element of an output. */
static inline void own_near(const struct own *own, const struct ls_value *value,
                            const double *expected, double tolerance)
{
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++) {
        double x = own->plain[value->index][i], scale = fmax(1, fabs(expected[i]));
        if (!(fabs(x - expected[i]) <= tolerance * scale))
            fail_msg("%s (%s): element %lld is %.9g, not %.9g", own->kernel->name,
                     value->layout->name, (long long)i, x, expected[i]);
    }
}

/* Carries the op out on the reference device, in Caffe's order: outputs into `results`, by place in
 * the list and to be freed, and figures into `partials`. */
static inline void own_refer(struct own *own, float *results[OWN_VALUES],
                             double partials[OWN_PARTIALS])
{
    void *in[OWN_VALUES] = {0}, *out[OWN_VALUES] = {0};
    const struct ls_layout *kept[OWN_VALUES];
    const struct ls_device *device;
    struct ls_prepared prepared = {.op = &own->op};
    struct ls_context context = own->context;
    struct ls_error error = {0};
    assert_int_equal(ls_device_find("reference", &device, NULL), 0);
    memset(partials, 0, OWN_PARTIALS * sizeof *partials);
    context.partials = partials;
    for (int i = 0; i < own->values; i++) {
        kept[i] = own->value[i].layout;
        own->value[i].layout = &ls_layout_plain;
    }
    for (int i = 0; i < own->op.inputs; i++)
        in[i] = own->in[i] != NULL ? own->plain[own->in[i]->index] : NULL;
    for (int i = 0; i < own->op.outputs; i++) {
        results[i] = own->out[i] == NULL ? NULL : malloc(ls_value_bytes(own->out[i]) + 1);
        out[i] = results[i];
    }
    prepared.kernel = ls_kernel_find(device->kernels(), &own->op);
    assert_non_null(prepared.kernel);
    own_check(prepared.kernel->prepare(&prepared, &error), &error);
    void *scratch = ls_alloc_aligned(prepared.scratch_bytes + 64);
    assert_non_null(scratch);
    assert_int_equal(prepared.kernel->run(&prepared, NULL, in, out, scratch, &context), 0);
    ls_free_aligned(scratch);
    for (int i = 0; i < own->values; i++)
        own->value[i].layout = kept[i];
}

/* Outputs and figures are those of the reference device: |x - expected| <= tolerance * max(1,
 * |expected|); the same numbers where they are whole ones. After own_run. */
static inline void own_near_reference(struct own *own, double tolerance)
{
    float *results[OWN_VALUES];
    double partials[OWN_PARTIALS];
    own_refer(own, results, partials);
    for (int k = 0; k < own->op.outputs; k++) {
        if (own->out[k] == NULL)
            continue;
        const int64_t n = ls_shape_size(&own->out[k]->shape);
        if (own->out[k]->type != LS_F32) {
            assert_memory_equal(own->plain[own->out[k]->index], results[k],
                                (size_t)n * sizeof(float));
        } else {
            double *expected = malloc((size_t)(n + 1) * sizeof *expected);
            assert_non_null(expected);
            for (int64_t i = 0; i < n; i++)
                expected[i] = (double)results[k][i];
            own_near(own, own->out[k], expected, tolerance);
            free(expected);
        }
        free(results[k]);
    }
    for (int i = 0; i < OWN_PARTIALS; i++)
        if (!(fabs(own->partials[i] - partials[i]) <= tolerance * fmax(1, fabs(partials[i]))))
            fail_msg("%s: figure %d is %.12g, not %.12g", own->kernel->name, i, own->partials[i],
                     partials[i]);
}

static inline const float *own_plain(const struct own *own, const struct ls_value *value)
{
    return own->plain[value->index];
}

/* n numbers as doubles; free() them. */
static inline double *own_doubles(const float *x, int64_t n)
{
    double *result = malloc((size_t)(n + 1) * sizeof *result);
    assert_non_null(result);
    for (int64_t i = 0; i < n; i++)
        result[i] = x[i];
    return result;
}

/* The first time keeps the elements of an output in *kept (to be freed); later they must be the
 * same bytes: for outputs that do not depend on the layout. */
static inline void own_keep_or_compare(float **kept, const struct own *own,
                                       const struct ls_value *value)
{
    size_t bytes = (size_t)ls_shape_size(&value->shape) * sizeof **kept;
    if (*kept == NULL) {
        *kept = malloc(bytes);
        assert_non_null(*kept);
        memcpy(*kept, own_plain(own, value), bytes);
    } else if (memcmp(*kept, own_plain(own, value), bytes) != 0) {
        fail_msg("%s: %s gives other bytes than the layout before", own->kernel->name,
                 value->layout->name);
    }
}

static inline void own_free(struct own *own)
{
    for (int i = 0; i < own->values; i++) {
        ls_free(own->plain[i]);
        ls_free_aligned(own->data[i]);
        ls_free_aligned(own->first[i]);
    }
    ls_free(own);
}

#endif
