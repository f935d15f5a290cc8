/* SPDX-License-Identifier: BSD-2-Clause */
#include "ir/kernel.h"

#include "ir/layer.h"

const struct ls_kernel *ls_kernel_find(const struct ls_kernel *const *table, const struct ls_op *op)
{
    for (; *table != NULL; table++)
        if ((*table)->kind == op->kind && ((*table)->accepts == NULL || (*table)->accepts(op)))
            return *table;
    return NULL;
}

int ls_kernel_fail(const struct ls_op *op, struct ls_error *error, int status, const char *library)
{
    bool memory = status == LOCKSTEP_RESOURCE;
    return ls_fail(error, status, op->layer != NULL ? op->layer->name : NULL,
                   memory ? "free some memory, or give less with --memory" : NULL,
                   "%s could not carry out %s%s", library, ls_op_kind_name(op->kind),
                   memory ? ": out of memory" : "");
}
