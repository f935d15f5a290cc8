/* LS_OP_FILL: a constant, or the numbers of a filler, for each sample by its ordinal. A filler
 * that looks at the shape sees that of one sample: what a number is cannot depend on how many
 * samples it happens to be computed with.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "ops/cpu/filler.h"
#include "ops/cpu/kernels.h"
#include "lockstep.pb-c.h"

static bool varies(const struct ls_fill_attr *attr)
{
    const char *type = attr->filler != NULL ? attr->filler->type : NULL;
    return type != NULL && strcmp(type, "constant") != 0;
}

/* Samples must be rows of the first axis, so that each is a run of numbers; or there are none. */
static bool fill_accepts(const struct ls_op *op)
{
    return !varies(&op->attr.fill) || op->output[0]->sample_axis <= 0;
}

static int fill_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    int64_t each;
    struct ls_filler *filler = ls_alloc(1, sizeof *filler);
    if (filler == NULL)
        return ls_fail_memory(error, "a filler");
    int status = ls_filler_resolve_op(filler, prepared->op, &each, error);
    if (status != 0) {
        ls_free(filler);
        return status;
    }
    prepared->state = filler;
    return ls_own_prepare(prepared, error);
}

static int fill_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)in, (void)scratch;
    const struct ls_value *value = prepared->op->output[0];
    const struct ls_filler *filler = prepared->state;
    uint64_t key = prepared->op->attr.fill.key;
    size_t n = ls_value_elements(value);
    if (filler->kind == LS_FILLER_CONSTANT || value->sample_axis != 0) {
        ls_filler_run(filler, key, 0, out[0], n);
        return 0;
    }
    int64_t samples = value->shape.dim[0] / value->rows;
    size_t each = n / (size_t)samples;
    for (int64_t s = 0; s < samples; s++)
        ls_filler_run(filler, key, (uint64_t)(context->first_ordinal + s),
                      (float *)out[0] + (size_t)s * each, each);
    return 0;
}

const struct ls_kernel ls_kernel_fill = {
    .kind = LS_OP_FILL,
    .bits = LS_BITS_NOT_PROBED,
    .name = "fill",
    .accepts = fill_accepts,
    .prepare = fill_prepare,
    .release = ls_own_release,
    .run = fill_run,
    .in_place = -1,
};
