/* Import: weights that several layers share.
 *
 * Exporters write weights that are equal once, whether the model shares them or has just begun so;
 * what is a table of embeddings and the weights of a product at once, is shared by intention. An
 * exporter may have written the latter, turned, as weights of their own.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "onnx/importer.h"

enum { TABLES = 16 }; /* that are looked at: models have a few */

static bool is_matrix(const struct ls_onnx_value *value)
{
    return value->constant && value->maker == SIZE_MAX && value->learned &&
           value->shape.rank == 2 && value->shape.dim[0] > 1 && value->shape.dim[1] > 1;
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

/* Other weights that are the table, turned. */
static int find_turned(struct ls_importer *x, struct ls_onnx_value *table)
{
    for (size_t k = 0; k < x->value_count; k++) {
        struct ls_onnx_value *other = &x->values[k];
        if (other == table || !is_matrix(other) || other->shape.dim[0] != table->shape.dim[1] ||
            other->shape.dim[1] != table->shape.dim[0])
            continue;
        LS_TRY(ls_import_numbers_of(x, table));
        LS_TRY(ls_import_numbers_of(x, other));
        if (is_turned(table, other))
            table->share = other->share = table->name;
    }
    return 0;
}

int ls_import_find_shared(struct ls_importer *x)
{
    int tables = 0;
    for (size_t i = 0; i < x->graph->n_node && tables < TABLES; i++) {
        const Onnx__NodeProto *node = x->graph->node[i];
        size_t at;
        if (node->n_input != 2 || strcmp(node->op_type, "Gather") != 0 ||
            !ls_names_find(&x->names, node->input[0], &at) || !is_matrix(&x->values[at]))
            continue;
        struct ls_onnx_value *table = &x->values[at];
        tables++;
        if (table->uses > 1)
            table->share = table->name;
        LS_TRY(find_turned(x, table));
    }
    return 0;
}
