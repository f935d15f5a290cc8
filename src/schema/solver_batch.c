/* The override "batch=N": batch_size of the layers that bring the data which is trained on.
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
    if (first == NULL)
        return fail(reading, "change the shapes in the net's file",
                    "the net that is trained has no data layer with a batch_size");
    return 0;
}

int ls_solver_set_batch(struct ls_solver_reading *reading)
{
    const struct ls_net_definition *train = &reading->out->train;
    if (reading->batch == 0 || train->net == NULL)
        return 0;
    LS_TRY(check_layers(reading, train->net));
    for (size_t i = 0; i < train->net->n_layer; i++) {
        Lockstep__LayerParameter *layer = train->net->layer[i];
        struct ls_places *places = train->definition->places;
        if (!ls_data_layer_reads(layer) || layer->data_param == NULL)
            continue;
        Lockstep__DataParameter *data = ls_arena_alloc(train->definition->arena, 1, sizeof *data);
        if (data == NULL || !ls_places_alias(places, data, layer->data_param))
            return ls_fail_memory(reading->error, "a definition");
        *data = *layer->data_param;
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
