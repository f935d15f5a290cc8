/* Matrices of losses; see solver/matrices.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/matrices.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "engine/net.h"
#include "ir/layer.h"
#include "solver/notes.h"

void ls_matrices_describe(const struct ls_net *net, struct ls_text *text)
{
    const struct ls_graph *graph = ls_net_graph(net);
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        if (op->kind != LS_OP_INFOGAIN_LOSS || op->attr.loss.matrix == NULL)
            continue;
        size_t classes = (size_t)op->input[0]->shape.dim[op->attr.loss.axis];
        ls_text_format(
            text, "%s %016" PRIx64 "\n", op->layer->name,
            ls_hash(op->attr.loss.matrix, classes * classes * sizeof *op->attr.loss.matrix, 0));
    }
}

int ls_matrices_compare(const struct ls_trainer *trainer, const struct ls_archive *snapshot,
                        bool *untold, struct ls_error *error)
{
    const char *before = ls_archive_note(snapshot, LS_NOTE_MATRICES);
    struct ls_text now = {0};
    ls_matrices_describe(trainer->train, &now);
    *untold = before == NULL && now.length > 0;
    int status = now.failed ? ls_fail_memory(error, "a snapshot") : 0;
    if (status == 0 && before != NULL && strcmp(before, now.data != NULL ? now.data : "") != 0)
        status = ls_fail(error, LOCKSTEP_WEIGHTS, snapshot->path,
                         "a resume continues the same training; use --weights to start a new one "
                         "from these weights",
                         "the snapshot was made with another matrix in a file of "
                         "infogain_loss_param: '%.*s', now '%.*s'",
                         (int)strcspn(before, "\n"), before,
                         (int)strcspn(now.data != NULL ? now.data : "", "\n"),
                         now.data != NULL ? now.data : "");
    ls_text_free(&now);
    return status;
}
