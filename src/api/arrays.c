/* The public interface: arrays of the program's memory as data of a solver's nets.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/arrays.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/memory.h"
#include "base/text.h"
#include "schema/data_layers.h"

/* The work on one solver. */
struct giving {
    const struct ls_memory_array *arrays; /* as they are taken over */
    size_t count;
    bool *used; /* by array */
    struct ls_error *error;
};

/* ---- Arrays ---------------------------------------------------------------------------------- */

static int take_array(const struct lockstep_array *given, struct ls_memory_array *array,
                      struct ls_error *error)
{
    const char *name = given->name != NULL ? given->name : "";
    if (name[0] == '\0' || given->type == NULL)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "an array has a name and a type");
    if ((given->data != NULL) == (given->read != NULL))
        return ls_fail(error, LOCKSTEP_USAGE, name, NULL,
                       "has either numbers or a function that brings them");
    if (given->rank < 1 || given->rank > LOCKSTEP_AXES_MAX)
        return ls_fail(error, LOCKSTEP_USAGE, name, "the first axis counts the records",
                       "%d axes are not possible", given->rank);
    for (int i = 0; i < given->rank; i++)
        if (given->extent[i] < 0)
            return ls_fail(error, LOCKSTEP_USAGE, name, NULL, "has a negative extent");
    *array =
        (struct ls_memory_array){.data = given->data, .read = given->read, .user = given->user};
    LS_TRY(ls_npy_type(name, given->type, &array->header.type, error));
    array->header.count = given->extent[0];
    array->header.sample.rank = given->rank - 1;
    for (int i = 1; i < given->rank; i++)
        array->header.sample.dim[i - 1] = given->extent[i];
    array->name = ls_copy_string(name);
    return array->name != NULL ? 0 : ls_fail_memory(error, "an array");
}

/* A copy of all of them, of which no two have one name. */
static int take_arrays(const struct lockstep_array *given, size_t count,
                       struct ls_memory_array **out, struct ls_error *error)
{
    struct ls_memory_array *arrays = ls_alloc(count, sizeof *arrays);
    int status = arrays == NULL ? ls_fail_memory(error, "arrays") : 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        status = take_array(&given[i], &arrays[i], error);
        for (size_t k = 0; k < i && status == 0; k++)
            if (strcmp(arrays[k].name, arrays[i].name) == 0)
                status = ls_fail(error, LOCKSTEP_USAGE, arrays[i].name, NULL, "is given twice");
    }
    *out = arrays;
    if (status == 0)
        return 0;
    if (arrays != NULL)
        ls_arrays_free(arrays, count);
    *out = NULL;
    return status;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* The array of a name, which is used then; NULL: there is none. */
static const struct ls_memory_array *use(struct giving *giving, const char *name)
{
    for (size_t i = 0; i < giving->count; i++)
        if (strcmp(giving->arrays[i].name, name) == 0) {
            giving->used[i] = true;
            return &giving->arrays[i];
        }
    return NULL;
}

/* Whether an array has the shape that an Input layer says of a top: that of a sample, behind the
 * axis of the batch. */
static int check_shape(const struct giving *giving, const char *place,
                       const Lockstep__LayerParameter *layer, size_t top,
                       const struct ls_memory_array *array)
{
    const Lockstep__InputParameter *input = layer->input_param;
    const Lockstep__BlobShape *shape = input->shape[input->n_shape == 1 ? 0 : top];
    const struct ls_shape *sample = &array->header.sample;
    bool same = shape->n_dim == (size_t)sample->rank + 1;
    for (int i = 0; i < sample->rank && same; i++)
        same = shape->dim[i + 1] == sample->dim[i];
    if (same)
        return 0;
    struct ls_text said = {0}, is = {0};
    for (size_t i = 1; i < shape->n_dim; i++)
        ls_text_format(&said, "%s%" PRId64, i > 1 ? " x " : "", shape->dim[i]);
    for (int i = 0; i < sample->rank; i++)
        ls_text_format(&is, "%s%" PRId64, i > 0 ? " x " : "", sample->dim[i]);
    int status = ls_fail(giving->error, LOCKSTEP_DEFINITION, place, NULL,
                         "layer '%s': a sample of '%s' is %s, and records of the array are %s",
                         layer->name != NULL ? layer->name : "", layer->top[top],
                         said.data != NULL ? said.data : "one number",
                         is.data != NULL ? is.data : "one number");
    ls_text_free(&said);
    ls_text_free(&is);
    return status;
}

/* What the arrays of a layer's tops are called: "data", and "test:data" in a test net. */
static int name_arrays(const struct giving *giving, struct ls_arena *arena, bool test,
                       const Lockstep__LayerParameter *layer, char ***out)
{
    char **names = ls_arena_alloc(arena, layer->n_top + 1, sizeof *names);
    for (size_t t = 0; t < layer->n_top && names != NULL; t++) {
        struct ls_text text = {0};
        ls_text_format(&text, "%s%s", test ? "test:" : "", layer->top[t]);
        names[t] = text.failed ? NULL : ls_arena_copy_string(arena, text.data);
        ls_text_free(&text);
        if (names[t] == NULL)
            names = NULL;
    }
    *out = names;
    return names != NULL ? 0 : ls_fail_memory(giving->error, "a data layer");
}

/* Whether there are arrays for a layer: *there; for some of its tops alone is a failure. */
static int check_layer(struct giving *giving, const char *place,
                       const Lockstep__LayerParameter *layer, char *const *names, bool *there)
{
    const Lockstep__InputParameter *input = layer->input_param;
    size_t given = 0;
    for (size_t t = 0; t < layer->n_top; t++)
        given += use(giving, names[t]) != NULL;
    *there = given > 0;
    for (size_t t = 0; t < layer->n_top && *there; t++)
        if (use(giving, names[t]) == NULL)
            return ls_fail(giving->error, LOCKSTEP_USAGE, place, NULL,
                           "layer '%s' has no array '%s'", layer->name != NULL ? layer->name : "",
                           names[t]);
    if (input == NULL || (input->n_shape != 1 && input->n_shape != layer->n_top)) {
        *there = false; /* the layer says what is missing */
        return 0;
    }
    for (size_t t = 0; t < input->n_shape; t++)
        if (input->shape[t]->n_dim == 0 || input->shape[t]->dim[0] < 1 ||
            input->shape[t]->dim[0] > INT32_MAX)
            return ls_fail(giving->error, LOCKSTEP_DEFINITION, place, NULL,
                           "the first extent of a shape is the batch, at least 1");
    for (size_t t = 0; t < layer->n_top && *there; t++)
        LS_TRY(check_shape(giving, place, layer, t, use(giving, names[t])));
    return 0;
}

/* An Input or MemoryData layer becomes a Data layer. */
static int replace(struct giving *giving, const struct ls_net_definition *net,
                   Lockstep__LayerParameter *layer)
{
    struct ls_arena *arena = net->definition->arena;
    char place[LS_PLACE_MAX], **sources;
    bool there;
    ls_place(net->definition, layer, NULL, place, sizeof place);
    LS_TRY(name_arrays(giving, arena, net->net->state->phase == LOCKSTEP__PHASE__TEST, layer,
                       &sources));
    LS_TRY(check_layer(giving, place, layer, sources, &there));
    if (!there)
        return 0;
    Lockstep__DataParameter *data = (Lockstep__DataParameter *)(void *)ls_arena_message(
        arena, &lockstep__data_parameter__descriptor);
    char *type = ls_arena_copy_string(arena, "Data");
    if (data == NULL || type == NULL)
        return ls_fail_memory(giving->error, "a data layer");
    data->has_backend = data->has_batch_size = 1;
    data->backend = LOCKSTEP__DATA_PARAMETER__DB__NPY;
    data->batch_size = (uint32_t)layer->input_param->shape[0]->dim[0];
    data->source = sources;
    data->n_source = layer->n_top;
    layer->type = type;
    layer->data_param = data;
    layer->input_param = NULL;
    return 0;
}

static int give_net(struct giving *giving, struct ls_net_definition *net)
{
    int status = 0;
    for (size_t i = 0; i < net->net->n_layer; i++) {
        Lockstep__LayerParameter *layer = net->net->layer[i];
        if (ls_data_layer_takes_input(layer)) {
            int replaced = replace(giving, net, layer);
            status = status != 0 ? status : replaced;
        } else if (ls_data_layer_reads(layer) && layer->data_param != NULL) {
            for (size_t s = 0; s < layer->data_param->n_source; s++)
                (void)use(giving, layer->data_param->source[s]);
        }
    }
    return status;
}

static int check_used(const struct giving *giving)
{
    int status = 0;
    for (size_t i = 0; i < giving->count; i++)
        if (!giving->used[i])
            status = ls_fail(giving->error, LOCKSTEP_USAGE, giving->arrays[i].name,
                             "a name is that of a top of an Input or MemoryData layer, or a source "
                             "of a Data layer with backend NPY",
                             "no net of the solver asks for this array");
    return status;
}

/* ---- Solvers --------------------------------------------------------------------------------- */

void ls_api_forget_arrays(const struct lockstep_solver *solver)
{
    const struct ls_solver_definition *all = solver->definition;
    if (!solver->has_arrays)
        return;
    ls_arrays_remove(all->definition);
    for (size_t i = 0; i < all->file_count; i++)
        ls_arrays_remove(all->file[i]);
}

/* Hands the arrays over to all definitions of the solver. */
static int add(struct lockstep_solver *solver, struct ls_memory_array *arrays, size_t count,
               struct ls_error *error)
{
    const struct ls_solver_definition *all = solver->definition;
    const struct ls_definition **list = ls_alloc(all->file_count + 1, sizeof *list);
    if (list == NULL) {
        ls_arrays_free(arrays, count);
        return ls_fail_memory(error, "arrays");
    }
    list[0] = all->definition;
    for (size_t i = 0; i < all->file_count; i++)
        list[i + 1] = all->file[i];
    int status = ls_arrays_add(list, all->file_count + 1, arrays, count, error);
    solver->has_arrays = status == 0;
    ls_free(list);
    return status;
}

int lockstep_solver_use_arrays(struct lockstep_solver *solver, const struct lockstep_array *given,
                               size_t count, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_memory_array *arrays;
    if (count == 0)
        return 0;
    if (solver->has_arrays)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "give all arrays in one call",
                       "this solver has arrays already");
    LS_TRY(take_arrays(given, count, &arrays, inner));
    bool *used = ls_alloc(count, sizeof *used);
    if (used == NULL) {
        ls_arrays_free(arrays, count);
        return ls_fail_memory(inner, "arrays");
    }
    struct giving giving = {.arrays = arrays, .count = count, .used = used, .error = inner};
    int status = give_net(&giving, &solver->definition->train);
    for (size_t i = 0; i < solver->definition->test_count; i++) {
        int tested = give_net(&giving, &solver->definition->test[i]);
        status = status != 0 ? status : tested;
    }
    if (status == 0)
        status = check_used(&giving);
    ls_free(used);
    if (status == 0)
        return add(solver, arrays, count, inner);
    ls_arrays_free(arrays, count);
    return status;
}
