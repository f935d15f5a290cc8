/* Import: weights that several layers share.
 *
 * Exporters write weights that are equal once, whether the model shares them or has just begun so.
 * What is a table of embeddings and the weights of a product at once, is shared by intention; an
 * exporter may have written the latter, turned, as weights of their own. torch's older exporter,
 * whose nodes are called "/a/Gemm", puts an Identity in front of what is equal only: weights that
 * several of its nodes read themselves are those of a module that is used several times. Of other
 * files the user decides.
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

/* How many nodes read a value, but for those that give its numbers to another parameter. */
static void find_twice(struct ls_importer *x)
{
    for (size_t i = 0; i < x->graph->n_node; i++) {
        const Onnx__NodeProto *node = x->graph->node[i];
        const bool scoped = node->name != NULL && node->name[0] == '/';
        size_t at;
        for (size_t k = 0; k < node->n_input && strcmp(node->op_type, "Identity") != 0; k++) {
            if (!ls_names_find(&x->names, node->input[k], &at) || x->values[at].tensor == NULL ||
                !x->values[at].learned)
                continue;
            struct ls_onnx_value *value = &x->values[at];
            if (value->readers++ > 0 && value->share == NULL && (scoped || x->tie)) {
                value->share = value->name;
                value->twice = true;
                value->asked = !scoped;
            }
        }
    }
}

static bool is_flat(const struct ls_onnx_net_weight *weight)
{
    for (int64_t i = 1; i < ls_shape_size(&weight->shape); i++)
        if (weight->numbers[i] != weight->numbers[0])
            return false;
    return true;
}

static bool same_layer(const struct ls_onnx_net_weight *a, const struct ls_onnx_net_weight *b)
{
    const size_t length = (size_t)(strrchr(a->name, '.') - a->name);
    return strncmp(a->name, b->name, length + 1) == 0 && strchr(b->name + length + 1, '.') == NULL;
}

bool ls_import_is_tied(const struct ls_importer *x, const struct ls_onnx_value *value)
{
    const struct ls_onnx_net_weight *list = x->net->weights;
    const size_t last = x->net->weight_count - 1;
    const struct ls_onnx_net_weight *own = &list[last];
    size_t first = 0;
    if (value->share == NULL || !value->learned)
        return false;
    while (first < last &&
           (list[first].share == NULL || strcmp(list[first].share, value->share) != 0))
        first++;
    if (first < last && (!ls_shape_equal(&list[first].shape, &own->shape) ||
                         memcmp(list[first].numbers, own->numbers,
                                (size_t)ls_shape_size(&own->shape) * sizeof *own->numbers) != 0))
        return false;
    /* Zeros and ones are equal in many layers: they go with the other weights of theirs. */
    return first == last || !value->asked || !is_flat(own) ||
           (list[last - 1].share != NULL && same_layer(&list[last - 1], own));
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
    find_twice(x);
    return 0;
}
