/* The override "batch=N": batch_size of the layers that bring the data which is trained on, or the
 * first extents of its inputs, which arrays of a program fill.
 *
 * The message of a layer may be that of a test net, too, which keeps what it says: the train net
 * gets a copy.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <string.h>

#include "schema/arena.h"
#include "schema/data_layers.h"
#include "schema/fields.h"
#include "schema/places.h"
#include "schema/solver_parts.h"

int ls_solver_take_batch(struct ls_solver_reading *reading, const char *source, const char *value)
{
    int64_t batch = 0;
    size_t at = 0;
    for (; value[at] >= '0' && value[at] <= '9' && batch <= INT_MAX; at++)
        batch = 10 * batch + (value[at] - '0');
    if (at == 0 || value[at] != '\0' || batch < 1 || batch > INT_MAX)
        return ls_fail(reading->error, LOCKSTEP_DEFINITION, source, "write --set batch=64",
                       "a batch is a number of samples from 1 to %d", INT_MAX);
    reading->batch = batch;
    reading->batch_source = ls_arena_copy_string(reading->out->definition->arena, source);
    return reading->batch_source != NULL ? 0 : ls_fail_memory(reading->error, "an option");
}

static int fail(const struct ls_solver_reading *reading, const char *hint, const char *message)
{
    return ls_fail(reading->error, LOCKSTEP_DEFINITION, reading->batch_source, hint, "%s", message);
}

/* The layers may have different batches for a reason; which of them would be meant? */
static int check_layers(const struct ls_solver_reading *reading, const Lockstep__NetParameter *net)
{
    const Lockstep__DataParameter *first = NULL;
    for (size_t i = 0; i < net->n_layer; i++) {
        const Lockstep__DataParameter *data = net->layer[i]->data_param;
        if (!ls_data_layer_reads(net->layer[i]) || data == NULL)
            continue;
        if (first != NULL && first->batch_size != data->batch_size)
            return fail(reading, "change batch_size in the net's file",
                        "the data layers of the net that is trained have different batches");
        first = first != NULL ? first : data;
    }
    return 0;
}

/* The first extent that all inputs have; 0: there are none, -1: they have several. */
static int64_t batch_of_inputs(const Lockstep__NetParameter *net)
{
    int64_t batch = 0;
    for (size_t i = 0; i < net->n_layer; i++) {
        const Lockstep__InputParameter *input = net->layer[i]->input_param;
        for (size_t s = 0; input != NULL && s < input->n_shape; s++) {
            const int64_t first = input->shape[s]->n_dim > 0 ? input->shape[s]->dim[0] : -1;
            batch = batch == 0 || batch == first ? first : -1;
        }
    }
    return batch;
}

/* A copy of `field`'s message for this net alone, with its place. NULL: no memory. */
static void *copy_message(struct ls_solver_reading *reading, const void *message, size_t size)
{
    const struct ls_definition *definition = reading->out->train.definition;
    void *copy = ls_arena_alloc(definition->arena, 1, size);
    if (copy == NULL || !ls_places_alias(definition->places, copy, message))
        return NULL;
    memcpy(copy, message, size);
    return copy;
}

static int set_shape(struct ls_solver_reading *reading, Lockstep__BlobShape **shape)
{
    struct ls_definition *definition = reading->out->train.definition;
    Lockstep__BlobShape *copy = copy_message(reading, *shape, sizeof *copy);
    int64_t *dim = ls_arena_alloc(definition->arena, (*shape)->n_dim, sizeof *dim);
    if (copy == NULL || dim == NULL)
        return ls_fail_memory(reading->error, "a definition");
    memcpy(dim, (*shape)->dim, (*shape)->n_dim * sizeof *dim);
    dim[0] = reading->batch;
    copy->dim = dim;
    *shape = copy;
    const struct ls_place_entry place = {.message = copy,
                                         .field = ls_field_named(copy->base.descriptor, "dim")->id,
                                         .source = reading->batch_source};
    return ls_places_add(definition->places, &place)
               ? 0
               : ls_fail_memory(reading->error, "a definition");
}

static int set_inputs(struct ls_solver_reading *reading, const Lockstep__NetParameter *net)
{
    struct ls_arena *arena = reading->out->train.definition->arena;
    for (size_t i = 0; i < net->n_layer; i++) {
        Lockstep__InputParameter *input = net->layer[i]->input_param;
        if (input == NULL || input->n_shape == 0)
            continue;
        Lockstep__InputParameter *copy = copy_message(reading, input, sizeof *copy);
        Lockstep__BlobShape **shape = ls_arena_alloc(arena, input->n_shape, sizeof *shape);
        if (copy == NULL || shape == NULL)
            return ls_fail_memory(reading->error, "a definition");
        memcpy(shape, input->shape, input->n_shape * sizeof *shape);
        for (size_t s = 0; s < input->n_shape; s++)
            LS_TRY(set_shape(reading, &shape[s]));
        copy->shape = shape;
        net->layer[i]->input_param = copy;
    }
    return 0;
}

static bool reads(const Lockstep__NetParameter *net)
{
    for (size_t i = 0; i < net->n_layer; i++)
        if (ls_data_layer_reads(net->layer[i]) && net->layer[i]->data_param != NULL)
            return true;
    return false;
}

int ls_solver_set_batch(struct ls_solver_reading *reading)
{
    const struct ls_net_definition *train = &reading->out->train;
    if (reading->batch == 0 || train->net == NULL)
        return 0;
    if (!reads(train->net)) {
        const int64_t batch = batch_of_inputs(train->net);
        if (batch > 0)
            return set_inputs(reading, train->net);
        return fail(reading, "change the shapes in the net's file",
                    batch == 0 ? "the net that is trained has no data layer with a batch_size"
                               : "the inputs of the net that is trained begin with different "
                                 "extents: which of them is the batch is not known");
    }
    LS_TRY(check_layers(reading, train->net));
    for (size_t i = 0; i < train->net->n_layer; i++) {
        Lockstep__LayerParameter *layer = train->net->layer[i];
        struct ls_places *places = train->definition->places;
        if (!ls_data_layer_reads(layer) || layer->data_param == NULL)
            continue;
        Lockstep__DataParameter *data = copy_message(reading, layer->data_param, sizeof *data);
        if (data == NULL)
            return ls_fail_memory(reading->error, "a definition");
        data->has_batch_size = 1;
        data->batch_size = (uint32_t)reading->batch;
        layer->data_param = data;
        const struct ls_place_entry place = {
            .message = data,
            .field = ls_field_named(data->base.descriptor, "batch_size")->id,
            .source = reading->batch_source};
        if (!ls_places_add(places, &place))
            return ls_fail_memory(reading->error, "a definition");
    }
    return 0;
}
