/* Import: weights that several layers share.
 *
 * Exporters write weights that are equal once, whether the model shares them or has just begun so;
 * what is a table of embeddings and the weights of a product at once, is shared by intention. An
 * exporter may have written the latter, turned, as weights of their own.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "onnx/importer.h"

/* Whether a node looks up rows of this value. */
static bool is_table(const struct ls_importer *x, const struct ls_onnx_value *value)
{
    for (size_t i = 0; i < x->graph->n_node; i++) {
        const Onnx__NodeProto *node = x->graph->node[i];
        if (node->n_input == 2 && strcmp(node->op_type, "Gather") == 0 &&
            strcmp(node->input[0], value->name) == 0)
            return true;
    }
    return false;
}

static bool is_matrix(const struct ls_onnx_value *value)
{
    return value->tensor != NULL && value->learned && value->shape.rank == 2 &&
           value->shape.dim[0] > 1 && value->shape.dim[1] > 1;
}

/* Whether the columns of one are the rows of the other. */
static bool is_turned(const struct ls_onnx_value *a, const struct ls_onnx_value *b)
{
    const int64_t rows = a->shape.dim[0], columns = a->shape.dim[1];
    if (a->integers || b->integers)
        return false;
    for (int64_t i = 0; i < rows * columns; i++)
        if (a->reals[i] != b->reals[i % columns * rows + i / columns])
            return false;
    for (int64_t i = 1; i < rows * columns; i++)
        if (a->reals[i] != a->reals[0])
            return true;
    return false; /* zeros, or ones, tell nothing */
}

int ls_import_find_shared(struct ls_importer *x)
{
    for (size_t i = 0; i < x->value_count; i++) {
        struct ls_onnx_value *table = &x->values[i];
        if (!is_matrix(table) || !is_table(x, table))
            continue;
        if (table->uses > 1)
            table->share = table->name;
        for (size_t k = 0; k < x->value_count; k++) {
            struct ls_onnx_value *other = &x->values[k];
            if (other->tensor == NULL || !is_matrix(other) || other == table ||
                other->shape.dim[0] != table->shape.dim[1] ||
                other->shape.dim[1] != table->shape.dim[0])
                continue;
            LS_TRY(ls_import_numbers_of(x, table));
            LS_TRY(ls_import_numbers_of(x, other));
            if (is_turned(table, other))
                table->share = other->share = table->name;
        }
    }
    return 0;
}
