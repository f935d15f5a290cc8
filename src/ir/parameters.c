/* The parameters of nets. See ir/graph.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "ir/graph.h"

size_t ls_parameter_exchange_bytes(const struct ls_parameter *parameter)
{
    const struct ls_factoring *factoring = &parameter->factoring;
    if (factoring->weight == NULL)
        return parameter->trained ? (size_t)ls_shape_size(&parameter->shape) * sizeof(int64_t) : 0;
    if (parameter != factoring->weight)
        return 0;
    return ls_factor_bytes(factoring, LS_FACTOR_INPUT, (size_t)factoring->rows) +
           ls_factor_bytes(factoring, LS_FACTOR_OUTPUT, (size_t)factoring->rows);
}

struct ls_parameter_set *ls_parameter_set_new(void)
{
    return ls_alloc(1, sizeof(struct ls_parameter_set));
}

void ls_parameter_free(struct ls_parameter *parameter)
{
    if (parameter == NULL)
        return;
    ls_free(parameter->name);
    ls_free((void *)parameter->layer);
    ls_free(parameter->share);
    ls_free(parameter->mask);
    ls_free(parameter->mask_file);
    ls_free(parameter);
}

void ls_parameter_set_free(struct ls_parameter_set *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->count; i++)
        ls_parameter_free(set->items[i]);
    ls_free(set->items);
    ls_names_free(&set->names);
    ls_names_free(&set->shares);
    ls_free(set);
}

struct ls_parameter *ls_parameter_find(const struct ls_parameter_set *set, const char *name)
{
    size_t index;
    return ls_names_find(&set->names, name, &index) ? set->items[index] : NULL;
}
