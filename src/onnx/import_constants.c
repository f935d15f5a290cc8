/* Import: which of the model's constants are weights, that learn.
 *
 * A weight is an initializer. What a Constant node holds, and what is worked out from such, is a
 * constant of the model and does not learn; a model without any other weights has them in Constant
 * nodes, which learn then. Of initializers, these are constants, too:
 *
 *   - what torch's newer exporter says (in value_info) is a buffer, or has been folded from numbers
 *     that stand in the code of the model ("val_0");
 *   - one number that is called so ("val_4"), where the file says nothing else;
 *   - factors of a norm that are ones, or biases of it that are zeros, without the name of a
 *     parameter: exporters write them where a norm has none.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <strings.h>

#include "onnx/importer.h"

/* A name that exporters give to numbers that stand in the code of a model. */
static bool is_made_up(const char *name)
{
    return strncmp(name, "val_", 4) == 0;
}

static int add_initializer(struct ls_importer *x, const Onnx__TensorProto *tensor, size_t number)
{
    struct ls_onnx_value *value;
    LS_TRY(ls_import_add_value(x, tensor->name, &value));
    if (value == NULL)
        return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL, "weights number %zu have no name",
                       number);
    if (tensor->n_dims > LS_RANK_MAX)
        return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL,
                       "'%.200s' has %zu axes; at most %d are read", value->name, tensor->n_dims,
                       LS_RANK_MAX);
    value->shape.rank = (int)tensor->n_dims;
    for (size_t k = 0; k < tensor->n_dims; k++)
        value->shape.dim[k] = tensor->dims[k];
    if (!ls_shape_valid(&value->shape, true))
        return ls_fail(x->error, LOCKSTEP_WEIGHTS, x->path, NULL,
                       "'%.200s' has a negative extent, or is too large", value->name);
    value->tensor = tensor;
    value->constant = true;
    value->learned = ls_shape_size(&value->shape) != 1 || !is_made_up(value->name);
    return 0;
}

/* Whether a list of names, "['val_0', 'conv2d']", has none but made-up ones and those of blobs,
 * whose shapes were read. A parameter that was folded is in the model no more. */
static bool is_folded_from_numbers(const struct ls_importer *x, const char *list)
{
    size_t at;
    for (const char *name; (name = strchr(list, '\'')) != NULL; list++) {
        const size_t length = strcspn(++name, "'");
        list = name + length;
        char *copy = ls_arena_copy(x->arena, name, length);
        if (*list == '\0' || copy == NULL)
            return false;
        if (!is_made_up(copy) && (!ls_names_find(&x->names, copy, &at) || x->values[at].constant))
            return false;
    }
    return true;
}

/* What torch.export says of an initializer. */
static void read_metadata(const struct ls_importer *x, struct ls_onnx_value *value,
                          const Onnx__ValueInfoProto *info)
{
    for (size_t i = 0; i < info->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *entry = info->metadata_props[i];
        if (entry->key == NULL || entry->value == NULL)
            continue;
        if (strcmp(entry->key, "pkg.torch.export.graph_signature.InputSpec.kind") == 0)
            value->learned = strcmp(entry->value, "PARAMETER") == 0;
        if (strcmp(entry->key, "pkg.onnxscript.optimizer.folded_from") == 0) {
            value->derived = !is_folded_from_numbers(x, entry->value);
            value->learned = value->learned && value->derived;
        }
    }
}

int ls_import_add_initializers(struct ls_importer *x)
{
    for (size_t i = 0; i < x->graph->n_initializer; i++)
        LS_TRY(add_initializer(x, x->graph->initializer[i], i));
    return 0;
}

void ls_import_find_weights(struct ls_importer *x)
{
    enum ls_dtype type;
    size_t at;
    for (size_t i = 0; i < x->graph->n_value_info; i++)
        if (x->graph->value_info[i]->name != NULL &&
            ls_names_find(&x->names, x->graph->value_info[i]->name, &at) &&
            x->values[at].tensor != NULL)
            read_metadata(x, &x->values[at], x->graph->value_info[i]);
    x->constants_learn = true;
    for (size_t i = 0; i < x->value_count; i++)
        if (x->values[i].learned && ls_shape_size(&x->values[i].shape) > 1 &&
            ls_onnx_type(x->values[i].tensor->data_type, &type) && ls_dtype_is_float(type))
            x->constants_learn = false;
}

bool ls_import_learns(const struct ls_importer *x, const struct ls_onnx_value *value)
{
    return value != NULL &&
           (value->learned || value->derived || (x->constants_learn && value->written));
}

static bool is_called_as_parameter(const char *name)
{
    static const char *const words[] = {"weight", "bias",  "gamma", "beta",
                                        "scale",  "shift", "alpha", "offset"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(name, words[i]) != NULL)
            return true;
    return false;
}

void ls_import_find_norm_constant(struct ls_onnx_value *value, float number)
{
    const int64_t count = ls_shape_size(&value->shape);
    if (value->reals == NULL || count < 1 || value->derived || is_called_as_parameter(value->name))
        return;
    for (int64_t i = 0; i < count; i++)
        if (value->reals[i] != number)
            return;
    value->learned = value->written = false;
}
