/* See device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/defined.h"

const struct ls_defined *ls_defined_of(enum ls_op_kind kind)
{
    static const struct ls_defined *const tables[] = {
        ls_defined_losses,     ls_defined_moves,   ls_defined_multibox,    ls_defined_detections,
        ls_defined_regions,    ls_defined_yolo,    ls_defined_yolo_output, ls_defined_proposal,
        ls_defined_evaluation, ls_defined_hardest, ls_defined_linear_loss, ls_defined_sequences};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        const struct ls_defined *found = &tables[t][kind];
        if (found->run != NULL)
            return found;
    }
    return NULL;
}

const struct ls_defined *ls_defined_find(const struct ls_op *op)
{
    const struct ls_defined *found = ls_defined_of(op->kind);
    return found != NULL && (found->accepts == NULL || found->accepts(op)) ? found : NULL;
}
