/* See kernels/reference.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/reference.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/memory.h"
#include "ir/value.h"
#include "ops/devices.h"

size_t place_in_layout(const struct ls_layout *layout, const struct ls_shape *shape, int64_t i)
{
    if (layout->block == 0 || layout->block == 1 || shape->rank < 2)
        return (size_t)i;
    int64_t points = ls_shape_count(shape, 2, shape->rank), channels = shape->dim[1];
    int64_t point = i % points, c = i / points % channels, n = i / points / channels;
    if (layout == &ls_layout_channels_last)
        return (size_t)((n * points + point) * channels + c);
    int64_t blocks = (channels + layout->block - 1) / layout->block;
    return (size_t)(((n * blocks + c / layout->block) * points + point) * layout->block +
                    c % layout->block);
}

void check_status(int status, const struct ls_error *error)
{
    char text[2048];
    if (status == 0)
        return;
    ls_error_format(error, text, sizeof text);
    fail_msg("%s", text);
}

void settle_layouts(const struct ls_kernel *kernel, const struct ls_op *op,
                    const struct ls_layout *offered)
{
    struct ls_op_layouts layouts = {0};
    struct ls_error error = {0};
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL) {
            const struct ls_layout *has = offered != NULL ? offered : op->input[i]->layout;
            layouts.in[i] = has != NULL && kernel->layouts != NULL ? has : &ls_layout_plain;
            layouts.in_type[i] = op->input[i]->type;
        }
    for (int i = 0; i < op->outputs; i++)
        layouts.out[i] = &ls_layout_plain;
    if (kernel->layouts != NULL)
        check_status(kernel->layouts(op, &layouts, &error), &error);
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL)
            op->input[i]->layout = layouts.in[i];
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            op->output[i]->layout = layouts.out[i];
}

const struct ls_device *reference_device(void)
{
    const struct ls_device *device;
    assert_int_equal(ls_device_find("reference", &device, NULL), 0);
    return device;
}

/* Exchanges the layouts of all values with those in the list, inputs first. */
static void exchange_layouts(const struct ls_op *op, const struct ls_layout **layouts)
{
    for (int i = 0; i < op->inputs + op->outputs; i++) {
        struct ls_value *value = i < op->inputs ? op->input[i] : op->output[i - op->inputs];
        const struct ls_layout *kept = layouts[i];
        if (value == NULL)
            continue;
        layouts[i] = value->layout;
        value->layout = kept;
    }
}

void run_on_reference(struct ls_op *op, void *const *in, void *const *out,
                      const struct ls_context *context)
{
    const struct ls_layout *layouts[2 * LS_OP_VALUES_MAX];
    struct ls_prepared prepared = {.op = op};
    struct ls_error error = {0};
    for (int i = 0; i < 2 * LS_OP_VALUES_MAX; i++)
        layouts[i] = &ls_layout_plain;
    exchange_layouts(op, layouts);
    prepared.kernel = ls_kernel_find(reference_device()->kernels(), op);
    assert_non_null(prepared.kernel);
    check_status(prepared.kernel->prepare(&prepared, &error), &error);
    void *scratch = ls_alloc_aligned(prepared.scratch_bytes + 64);
    assert_non_null(scratch);
    assert_int_equal(prepared.kernel->run(&prepared, NULL, in, out, scratch, context), 0);
    ls_free_aligned(scratch);
    exchange_layouts(op, layouts);
}
