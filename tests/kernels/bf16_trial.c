/* See bf16_trial.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/bf16_trial.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ops/cpu/bf16/product.h"
#include "ops/cpu/isa.h"
#include "ops/devices.h"

static void bf16_trial_check(int status, const struct ls_error *error)
{
    char text[2048];
    if (status == 0)
        return;
    ls_error_format(error, text, sizeof text);
    fail_msg("%s", text);
}

void bf16_trial_in(struct bf16_trial *trial, int value)
{
    trial->op.input = trial->in;
    trial->in[trial->op.inputs++] = &trial->value[value];
}

void bf16_trial_out(struct bf16_trial *trial, int value)
{
    trial->op.output = trial->out;
    trial->out[trial->op.outputs++] = &trial->value[value];
}

static const struct ls_kernel *bf16_trial_kernel(const char *device_name, const struct ls_op *op)
{
    const struct ls_device *device;
    assert_int_equal(ls_device_find(device_name, &device, NULL), 0);
    const struct ls_kernel *kernel = ls_kernel_find(device->kernels(), op);
    assert_non_null(kernel);
    return kernel;
}

/* Weights that are read lie as the kernel likes them, everything else in Caffe's order. */
static void bf16_trial_ask(struct bf16_trial *trial, const struct ls_kernel *kernel)
{
    struct ls_op_layouts layouts = {.in = {NULL}};
    struct ls_error error = {0};
    for (int i = 0; i < trial->op.inputs; i++) {
        layouts.in[i] = &ls_layout_plain;
        layouts.in_type[i] = trial->in[i] == &trial->value[TRIAL_W] ? LS_F32 : trial->in[i]->type;
    }
    bf16_trial_check(kernel->layouts(&trial->op, &layouts, &error), &error);
    for (int i = 0; i < trial->op.inputs; i++) {
        assert_int_equal(layouts.in_type[i], trial->in[i]->type);
        trial->in[i]->layout = layouts.in[i];
        if (trial->in[i] != &trial->value[TRIAL_W])
            assert_ptr_equal(layouts.in[i], &ls_layout_plain);
    }
    for (int i = 0; i < trial->op.outputs; i++) {
        if (!trial->f32 || trial->out[i] != &trial->value[TRIAL_W])
            assert_ptr_equal(layouts.out[i], &ls_layout_plain);
        trial->out[i]->layout = layouts.out[i];
    }
}

/* Memory of its own for each value; outputs hold no numbers. */
static void bf16_trial_fill(struct bf16_trial *trial)
{
    for (int i = 0; i < TRIAL_VALUES; i++) {
        const size_t bytes = (size_t)ls_shape_size(&trial->value[i].shape) * sizeof(float);
        trial->data[i] = ls_alloc_aligned(bytes);
        assert_non_null(trial->data[i]);
        memset(trial->data[i], 0xff, bytes);
    }
    for (int i = 0; i < trial->op.inputs; i++) {
        const struct ls_value *value = trial->in[i];
        const int64_t v = value - trial->value;
        const size_t count = (size_t)ls_shape_size(&value->shape);
        float *laid_out = ls_alloc(count, sizeof *laid_out);
        assert_non_null(laid_out);
        if (v == TRIAL_W)
            trial->lay_out(trial, value->layout, trial->given[v], laid_out);
        else
            memcpy(laid_out, trial->given[v], count * sizeof *laid_out);
        ls_dtype_convert(LS_F32, laid_out, value->type, trial->data[v], count);
        ls_free(laid_out);
    }
}

/* What output `i` should be, as it lies; to be freed. */
static float *bf16_trial_expected(const struct bf16_trial *trial, int i)
{
    const struct ls_value *value = trial->out[i];
    const size_t count = (size_t)ls_shape_size(&value->shape);
    float *expected = ls_alloc(count, sizeof *expected);
    assert_non_null(expected);
    if (value->layout == &ls_layout_plain)
        memcpy(expected, trial->expected[i], count * sizeof *expected);
    else
        trial->lay_out(trial, value->layout, trial->expected[i], expected);
    return expected;
}

static void bf16_trial_run(struct bf16_trial *trial, const struct ls_kernel *kernel, void **data)
{
    struct ls_prepared prepared = {.kernel = kernel, .op = &trial->op};
    struct ls_context context = {.samples = 1};
    struct ls_error error = {0};
    void *in[3] = {NULL}, *out[2] = {NULL};
    for (int i = 0; i < trial->op.inputs; i++)
        in[i] = data[trial->in[i] - trial->value];
    for (int i = 0; i < trial->op.outputs; i++)
        out[i] = data[trial->out[i] - trial->value];
    bf16_trial_check(kernel->prepare(&prepared, &error), &error);
    unsigned char *scratch = ls_alloc_aligned(prepared.scratch_bytes + 1);
    assert_non_null(scratch);
    memset(scratch, 0xff, prepared.scratch_bytes);
    scratch[prepared.scratch_bytes] = 0xa5;
    assert_int_equal(kernel->run(&prepared, NULL, in, out, scratch, &context), 0);
    assert_int_equal(scratch[prepared.scratch_bytes], 0xa5);
    ls_free_aligned(scratch);
    if (kernel->release != NULL)
        kernel->release(&prepared);
}

static void bf16_trial_compare(const struct bf16_trial *trial, const struct ls_kernel *kernel)
{
    for (int i = 0; i < trial->op.outputs; i++) {
        const struct ls_value *value = trial->out[i];
        const void *data = trial->data[value - trial->value];
        float *expected = bf16_trial_expected(trial, i);
        for (int64_t e = 0; e < ls_shape_size(&value->shape); e++) {
            float found = value->type == LS_BF16 ? bf16_widened(((const uint16_t *)data)[e])
                                                 : ((const float *)data)[e];
            if (!bf16_same(found, expected[e]))
                fail_msg("%s, %s, %s: output %d, element %lld is %a, not %a", kernel->name,
                         ls_bf16_tiles_name(), trial->what, i, (long long)e, (double)found,
                         (double)expected[e]);
        }
        ls_free(expected);
    }
}

/* The values as the reference device has them: fp32, in Caffe's order; the plan has rounded what a
 * product of bf16 reads. */
static void bf16_trial_widen(struct bf16_trial *trial, void *data[TRIAL_VALUES])
{
    for (int i = 0; i < TRIAL_VALUES; i++) {
        struct ls_value *value = &trial->value[i];
        const int64_t count = ls_shape_size(&value->shape);
        float *numbers = ls_alloc_aligned((size_t)count * sizeof *numbers);
        assert_non_null(numbers);
        if (trial->given[i] != NULL)
            memcpy(numbers, trial->given[i], (size_t)count * sizeof *numbers);
        for (int64_t e = 0; !trial->f32 && i != TRIAL_B && e < count; e++)
            numbers[e] = bf16_widened(bf16_rounded(numbers[e]));
        data[i] = numbers;
        value->type = LS_F32;
        value->layout = &ls_layout_plain;
    }
}

/* `bits`: what the definition says, rounded behind the op. Else the op is another one, whose sums
 * are in double: products are of the size of 1, now and then of 4. */
static void bf16_trial_refer_to(struct bf16_trial *trial, bool bits)
{
    void *data[TRIAL_VALUES] = {NULL};
    enum ls_dtype kept[TRIAL_VALUES];
    for (int i = 0; i < TRIAL_VALUES; i++)
        kept[i] = trial->value[i].type;
    bf16_trial_widen(trial, data);
    bf16_trial_run(trial, bf16_trial_kernel("reference", &trial->op), data);
    for (int i = 0; i < TRIAL_VALUES; i++)
        trial->value[i].type = kept[i];
    for (int i = 0; i < trial->op.outputs; i++) {
        const struct ls_value *value = trial->out[i];
        const float *numbers = data[value - trial->value];
        for (int64_t e = 0; e < ls_shape_size(&value->shape); e++) {
            const bool rounds = bits && value->type == LS_BF16;
            const float there = rounds ? bf16_widened(bf16_rounded(numbers[e])) : numbers[e];
            const double found = (double)trial->expected[i][e];
            const double rounding = fabs((double)there) / (trial->f32 ? 1e6 : 250);
            const double most = rounding + 1e-6 * (double)(trial->terms + 1);
            if (bits ? !bf16_same(there, trial->expected[i][e])
                     : isfinite(found) && !(fabs(found - (double)there) <= most))
                fail_msg("%s: output %d, element %lld is %a by definition, %a on the reference "
                         "device",
                         trial->what, i, (long long)e, found, (double)there);
        }
    }
    for (int i = 0; i < TRIAL_VALUES; i++)
        ls_free_aligned(data[i]);
}

/* Turns the op into one whose sums have no declared order. */
static void bf16_trial_undeclare(struct ls_op *op)
{
    op->bf16 = false;
    if (op->kind >= LS_OP_INNER_PRODUCT && op->kind <= LS_OP_INNER_PRODUCT_WEIGHTS)
        op->attr.inner_product.portable = false;
    else
        op->attr.convolution.algorithm = LS_CONVOLUTION_AUTO;
}

static void bf16_trial_refer(struct bf16_trial *trial)
{
    const struct ls_op op = trial->op;
    bf16_trial_refer_to(trial, true);
    bf16_trial_undeclare(&trial->op);
    bf16_trial_refer_to(trial, false);
    trial->op = op;
}

/* With the instruction set in use. */
static void bf16_trial_here(struct bf16_trial *trial)
{
    const struct ls_kernel *kernel = bf16_trial_kernel("cpu", &trial->op);
    assert_true(kernel->takes_bf16 != NULL && kernel->takes_bf16(&trial->op) == !trial->f32);
    assert_int_equal(kernel->bits, LS_BITS_DEFINED);
    assert_false(kernel->library);
    bf16_trial_ask(trial, kernel);
    bf16_trial_fill(trial);
    bf16_trial_run(trial, kernel, trial->data);
    bf16_trial_compare(trial, kernel);
    for (int i = 0; i < TRIAL_VALUES; i++)
        ls_free_aligned(trial->data[i]);
}

void bf16_trial_all(struct bf16_trial *trial)
{
    trial->op.bf16 = !trial->f32;
    bf16_trial_refer(trial);
    for (int isa = 0; isa < LS_ISAS; isa++)
        if (ls_cpu_isa_supported((enum ls_isa)isa)) {
            assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
            bf16_trial_here(trial);
        }
    for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++)
        if (ls_cpu_isa_select(ls_cpu_unit_name(unit), NULL) == 0)
            bf16_trial_here(trial);
}

float *bf16_trial_numbers(bool f32, int64_t count, uint64_t salt)
{
    float *numbers = ls_alloc((size_t)count + 1, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] =
            f32 ? f32_number(salt, (uint64_t)i) : bf16_widened(bf16_number(salt, (uint64_t)i));
    return numbers;
}

float *bf16_trial_biases(int64_t count, uint64_t salt)
{
    float *numbers = ls_alloc((size_t)count + 1, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = bf16_widened(bf16_number(salt, (uint64_t)i)) * 1.01F;
    return numbers;
}
