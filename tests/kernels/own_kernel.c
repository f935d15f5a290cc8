/* See kernels/own_kernel.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

const struct ls_layout *const own_layouts[OWN_LAYOUTS] = {&ls_layout_plain, &ls_layout_blocked8,
                                                          &ls_layout_blocked16};

struct ls_shape own_shape(int rank, const int64_t *dim)
{
    struct ls_shape shape = {.rank = rank};
    memcpy(shape.dim, dim, (size_t)rank * sizeof *dim);
    return shape;
}

struct own *own_new(const struct ls_kernel *kernel)
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

struct ls_value *own_value(struct own *own, const struct ls_shape *shape)
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

float own_random(uint64_t salt, uint64_t i)
{
    return 2 * ls_random_uniform(salt, 77, i) - 1;
}

struct ls_value *own_in(struct own *own, const struct ls_shape *shape, uint64_t salt, float range)
{
    struct ls_value *value = own_value(own, shape);
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        own->plain[value->index][i] = range * own_random(salt, (uint64_t)i);
    own->in[own->op.inputs++] = value;
    return value;
}

struct ls_value *own_out(struct own *own, const struct ls_shape *shape)
{
    struct ls_value *value = own_value(own, shape);
    own->out[own->op.outputs++] = value;
    return value;
}

/* Lays the plain elements out, with zeros everywhere else. */
static void own_lay_out(const struct own *own, const struct ls_value *value, float *target)
{
    memset(target, 0, ls_value_elements(value) * sizeof *target);
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++)
        target[place_in_layout(value->layout, &value->shape, i)] = own->plain[value->index][i];
}

/* Compares what a run wrote with what the first one did. */
static void own_same(struct own *own, void *const *out)
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
static void own_carry_out(struct own *own, void *local, void *const *in, void *const *out,
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

static void own_step(struct own *own, bool in_place, bool by_channels)
{
    void *in[OWN_VALUES] = {0}, *out[OWN_VALUES] = {0}, *local = NULL;
    struct ls_error error = {0};
    check_status(own->kernel->prepare != NULL ? own->kernel->prepare(&own->prepared, &error) : 0,
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
        check_status(own->kernel->bind(&own->prepared, in, out, scratch, &local, &error), &error);
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
static void own_read(struct own *own, const struct ls_value *value)
{
    float *written = own->first[value->index];
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++) {
        size_t place = place_in_layout(value->layout, &value->shape, i);
        own->plain[value->index][i] = written[place];
        written[place] = 0;
    }
    for (size_t i = 0; i < ls_value_elements(value); i++)
        if (written[i] != 0)
            fail_msg("%s: padding of %s is not zero", own->kernel->name, value->layout->name);
}

void own_run(struct own *own, const struct ls_layout *layout)
{
    ls_set_float_mode();
    assert_true(own->kernel->accepts == NULL || own->kernel->accepts(&own->op));
    own->prepared.kernel = own->kernel;
    own->prepared.op = &own->op;
    settle_layouts(own->kernel, &own->op, layout);
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

void own_near(const struct own *own, const struct ls_value *value, const double *expected,
              double tolerance)
{
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++) {
        double x = own->plain[value->index][i], scale = fmax(1, fabs(expected[i]));
        if (!(fabs(x - expected[i]) <= tolerance * scale))
            fail_msg("%s (%s): element %lld is %.9g, not %.9g", own->kernel->name,
                     value->layout->name, (long long)i, x, expected[i]);
    }
}

void own_refer(struct own *own, float *results[OWN_VALUES], double partials[OWN_PARTIALS])
{
    void *in[OWN_VALUES] = {0}, *out[OWN_VALUES] = {0};
    struct ls_context context = own->context;
    memset(partials, 0, OWN_PARTIALS * sizeof *partials);
    context.partials = partials;
    for (int i = 0; i < own->op.inputs; i++)
        in[i] = own->in[i] != NULL ? own->plain[own->in[i]->index] : NULL;
    for (int i = 0; i < own->op.outputs; i++) {
        const struct ls_value *value = own->out[i];
        results[i] = NULL;
        if (value != NULL)
            results[i] = malloc((size_t)ls_shape_size(&value->shape) * sizeof(float) + 1);
        out[i] = results[i];
    }
    run_on_reference(&own->op, in, out, &context);
}

void own_near_reference(struct own *own, double tolerance)
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

void own_same_as_reference(struct own *own)
{
    float *results[OWN_VALUES];
    double partials[OWN_PARTIALS];
    own_refer(own, results, partials);
    for (int k = 0; k < own->op.outputs; k++) {
        for (int64_t i = 0; own->out[k] != NULL && i < ls_shape_size(&own->out[k]->shape); i++) {
            const float x = own_plain(own, own->out[k])[i], expected = results[k][i];
            if (memcmp(&x, &expected, sizeof x) != 0 && !(isnan(x) && isnan(expected)))
                fail_msg("%s (%s): element %lld of output %d is %.9g, not %.9g", own->kernel->name,
                         own->out[k]->layout->name, (long long)i, k, (double)x, (double)expected);
        }
        free(results[k]);
    }
}

const float *own_plain(const struct own *own, const struct ls_value *value)
{
    return own->plain[value->index];
}

double *own_doubles(const float *x, int64_t n)
{
    double *result = malloc((size_t)(n + 1) * sizeof *result);
    assert_non_null(result);
    for (int64_t i = 0; i < n; i++)
        result[i] = x[i];
    return result;
}

void own_keep_or_compare(float **kept, const struct own *own, const struct ls_value *value)
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

void own_free(struct own *own)
{
    for (int i = 0; i < own->values; i++) {
        ls_free(own->plain[i]);
        ls_free_aligned(own->data[i]);
        ls_free_aligned(own->first[i]);
    }
    ls_free(own);
}
