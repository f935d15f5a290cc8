/* Labels that a DummyData layer fills with a constant: whether they are classes is known before
 * anything is computed.
 *
 * Caffe casts labels to integers where it reads them, so that 0.01 is class 0; here a label that is
 * not whole is none of a class. A constant that is read as a label alone is cut off as Caffe does
 * it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/label_fills.h"

#include <inttypes.h>
#include <math.h>

#include "ir/layer.h"
#include "ir/op_type.h"

/* How an op reads a value. */
enum reading { READS_NOT, READS_LABELS, READS_NUMBERS };

static enum reading reading_of(const struct ls_op *op, const struct ls_value *value,
                               struct ls_op_labels *labels)
{
    const struct ls_op_type *type = ls_op_type(op->kind);
    enum reading reading = READS_NOT;
    if (op->kind == LS_OP_VIEW) /* an op that reads the view reads the value */
        return READS_NOT;
    *labels = (struct ls_op_labels){0};
    for (int i = 0; i < op->inputs; i++) {
        if (op->input[i] == NULL || ls_value_root(op->input[i]) != value)
            continue;
        if (i == 1 && type->labels != NULL && reading == READS_NOT)
            type->labels(op, labels);
        reading =
            i == 1 && labels->classes > 0 && reading == READS_NOT ? READS_LABELS : READS_NUMBERS;
    }
    return reading;
}

/* Whether a layer reads a value as labels: then its other ops (which count them) do no less. */
static bool is_of_labels(const struct ls_graph *graph, const struct ls_layer *layer,
                         const struct ls_value *value)
{
    struct ls_op_labels labels;
    for (size_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i]->layer == layer &&
            reading_of(graph->ops[i], value, &labels) == READS_LABELS)
            return true;
    return false;
}

static int check_class(const struct ls_op *fill, const struct ls_op *op,
                       const struct ls_op_labels *labels, float label, struct ls_error *error)
{
    if ((labels->has_ignore && label == (float)labels->ignore_label) ||
        (label >= 0 && (double)label < (double)labels->classes))
        return 0;
    return ls_layer_fail(
        op->layer, error, NULL, NULL,
        "data_filler { type: \"integer\" } draws classes; a constant is one of them",
        "layer '%s' fills its labels with %.9g, which is none of its %" PRId64
        " classes, 0 to %" PRId64,
        fill->layer->name, (double)fill->attr.fill.value, labels->classes, labels->classes - 1);
}

int ls_graph_check_label_fills(const struct ls_graph *graph, struct ls_error *error)
{
    int status = 0;
    for (size_t i = 0; i < graph->op_count; i++) {
        struct ls_op *fill = graph->ops[i];
        if (fill->kind != LS_OP_FILL || fill->attr.fill.filler != NULL)
            continue;
        const float whole = truncf(fill->attr.fill.value);
        bool labels_only = true, is_label = false;
        for (size_t k = 0; k < graph->op_count; k++) {
            struct ls_op_labels labels;
            enum reading reading = reading_of(graph->ops[k], fill->output[0], &labels);
            if (reading == READS_NUMBERS)
                labels_only =
                    labels_only && is_of_labels(graph, graph->ops[k]->layer, fill->output[0]);
            is_label = is_label || reading == READS_LABELS;
            int found = reading == READS_LABELS
                            ? check_class(fill, graph->ops[k], &labels, whole, error)
                            : 0;
            status = status != 0 ? status : found;
        }
        if (is_label && labels_only)
            fill->attr.fill.value = whole;
    }
    return status;
}
