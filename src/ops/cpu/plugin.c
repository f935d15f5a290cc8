/* What plugins compute: their code is called as it is, on plain values.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "ops/cpu/kernels.h"

static int plugin_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    (void)error;
    prepared->scratch_bytes = prepared->op->attr.plugin.scratch_bytes;
    snprintf(prepared->implementation, sizeof prepared->implementation, "plugin");
    return 0;
}

static int plugin_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local;
    const struct ls_op *op = prepared->op;
    return op->attr.plugin.run(op, in, out, scratch, context->first_ordinal, context->error);
}

/* The bits are those of the plugin's file, whose hash belongs to the environment of a training. */
const struct ls_kernel ls_kernel_plugin = {
    .kind = LS_OP_PLUGIN,
    .bits = LS_BITS_NOT_PROBED,
    .name = "plugin",
    .prepare = plugin_prepare,
    .run = plugin_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_plugin_backward = {
    .kind = LS_OP_PLUGIN_BACKWARD,
    .bits = LS_BITS_NOT_PROBED,
    .name = "plugin backward",
    .prepare = plugin_prepare,
    .run = plugin_run,
    .in_place = -1,
};
