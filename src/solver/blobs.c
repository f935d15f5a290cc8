/* Blobs of an update and their gradients. See solver/blobs.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/blobs.h"

#include <string.h>

#include "base/memory.h"
#include "engine/binding.h"
#include "engine/figures.h"
#include "engine/pass.h"
#include "engine/prediction.h"
#include "ir/layer.h"
#include "solver/trainer.h"
#include "transport/comm.h"

/* Numbers that are kept, in plain order, for all samples of an update. */
struct array {
    struct ls_shape shape;
    float *numbers;
};

struct ls_blobs {
    const struct ls_pass *pass;
    const struct ls_graph *graph;
    struct ls_watch watch;
    struct ls_blob *items;
    size_t count, capacity;
    struct array *arrays;
    size_t array_count, array_capacity;
    int *places;     /* by place in the record: which array has what is measured there; -1: none */
    double *figures; /* the record of the last pass */
    int64_t samples; /* of an update */
    bool whole;      /* a micro-batch is all of an update */
    bool ready;      /* a pass has ended */
};

/* ---- Copying --------------------------------------------------------------------------------- */

/* Copies a micro-batch's part of a value to where its samples are among those of the update. */
static int blobs_measured(void *user, const struct ls_op *op, const void *numbers,
                          const struct ls_context *context, struct ls_error *error)
{
    struct ls_blobs *blobs = user;
    (void)error;
    const int offset = op->attr.reduction.metric_offset;
    const int place = offset < blobs->graph->record_size ? blobs->places[offset] : -1;
    if (place < 0)
        return 0; /* a loss of the net's own */
    const struct array *array = &blobs->arrays[place];
    const struct ls_value *value = op->input[0];
    const int axis = value->sample_axis;
    if (axis < 0) {
        ls_prediction_to_plain(value, numbers, 0, ls_shape_size(&value->shape), array->numbers);
        return 0;
    }
    const struct ls_unit *units = blobs->pass->units;
    const int64_t first = units[context->micro_batch].range.ordinal - units[0].range.ordinal;
    const int64_t inner = ls_shape_count(&value->shape, axis + 1, value->shape.rank);
    const int64_t outer = ls_shape_count(&value->shape, 0, axis);
    const int64_t here = ls_value_sample_rows(value) * inner, all = array->shape.dim[axis] * inner;
    for (int64_t i = 0; i < outer; i++)
        ls_prediction_to_plain(value, numbers, i * here, here,
                               array->numbers + i * all + first * value->rows * inner);
    return 0;
}

/* ---- Which there are ------------------------------------------------------------------------- */

/* The array of what is measured at a place of the record; a new one for a place that has none. */
static int take_array(struct ls_blobs *blobs, const struct ls_value *value, int offset, int *which,
                      struct ls_error *error)
{
    int64_t size = 1;
    *which = blobs->places[offset];
    if (*which >= 0 || (value->sample_axis < 0 && !blobs->whole))
        return 0; /* another blob has it, or each micro-batch would have one of its own */
    struct array array = {.shape = value->shape};
    if (value->sample_axis >= 0)
        array.shape.dim[value->sample_axis] = value->rows * blobs->samples;
    bool fits = LS_GROW(blobs->arrays, blobs->array_count, blobs->array_capacity);
    for (int i = 0; i < array.shape.rank && fits; i++)
        fits = ls_multiply(size, array.shape.dim[i], &size);
    array.numbers = fits ? ls_alloc((size_t)size, sizeof *array.numbers) : NULL;
    if (array.numbers == NULL)
        return ls_fail_memory(error, "the blobs of an update");
    *which = blobs->places[offset] = (int)blobs->array_count;
    blobs->arrays[blobs->array_count++] = array;
    return 0;
}

/* The figure that says where the gradient of a value is measured; NULL: there is none. */
static const struct ls_debug_figure *gradient_of(const struct ls_graph *graph,
                                                 const struct ls_value *value)
{
    for (size_t i = 0; i < graph->debug_count; i++) {
        const struct ls_debug_figure *figure = &graph->debug[i];
        if (figure->gradient && figure->layer->bottom[figure->blob] == value)
            return figure;
    }
    return NULL;
}

static const struct ls_debug_figure *values_of(const struct ls_graph *graph,
                                               const struct ls_layer *layer, int top)
{
    for (size_t i = 0; i < graph->debug_count; i++) {
        const struct ls_debug_figure *figure = &graph->debug[i];
        if (!figure->gradient && figure->layer == layer && figure->blob == top)
            return figure;
    }
    return NULL;
}

static const struct ls_metric *metric_of(const struct ls_graph *graph, const struct ls_layer *layer,
                                         int top)
{
    for (size_t i = 0; i < graph->metric_count; i++)
        if (graph->metrics[i].layer == layer && graph->metrics[i].top == top &&
            layer->top[top]->storage == LS_STORE_NONE)
            return &graph->metrics[i];
    return NULL;
}

/* The entry of a name: what an earlier layer has left under it, or a new one. */
static struct ls_blob *entry(struct ls_blobs *blobs, const char *name)
{
    for (size_t i = 0; i < blobs->count; i++)
        if (strcmp(blobs->items[i].name, name) == 0)
            return &blobs->items[i];
    return LS_GROW(blobs->items, blobs->count, blobs->capacity) ? &blobs->items[blobs->count++]
                                                                : NULL;
}

static int add_top(struct ls_blobs *blobs, const struct ls_layer *layer, int top,
                   struct ls_error *error)
{
    const struct ls_value *value = layer->top[top];
    const struct ls_debug_figure *values = values_of(blobs->graph, layer, top);
    struct ls_blob blob = {.name = ls_layer_top_name(layer, top),
                           .kept = {-1, -1},
                           .metric = metric_of(blobs->graph, layer, top)};
    if (value == NULL || blob.name == NULL || (values == NULL && blob.metric == NULL))
        return 0;
    if (values != NULL) {
        const struct ls_debug_figure *gradient = gradient_of(blobs->graph, value);
        LS_TRY(take_array(blobs, value, values->offset, &blob.kept[0], error));
        if (blob.kept[0] < 0)
            return 0;
        if (gradient != NULL)
            LS_TRY(take_array(blobs, value, gradient->offset, &blob.kept[1], error));
        blob.shape = blobs->arrays[blob.kept[0]].shape;
    } else if (blob.metric->entries > 1) {
        blob.shape.rank = 1;
        blob.shape.dim[0] = blob.metric->entries;
    }
    struct ls_blob *kept = entry(blobs, blob.name);
    if (kept == NULL)
        return ls_fail_memory(error, "the blobs of an update");
    *kept = blob;
    return 0;
}

static int find_blobs(struct ls_blobs *blobs, struct ls_error *error)
{
    const size_t places = (size_t)blobs->graph->record_size + 1;
    blobs->places = ls_alloc(places, sizeof *blobs->places);
    blobs->figures = ls_alloc(places, sizeof *blobs->figures);
    if (blobs->places == NULL || blobs->figures == NULL)
        return ls_fail_memory(error, "the blobs of an update");
    for (size_t i = 0; i < places; i++)
        blobs->places[i] = -1;
    for (size_t i = 0; i < blobs->graph->layer_count; i++)
        for (int t = 0; t < blobs->graph->layers[i]->tops; t++)
            LS_TRY(add_top(blobs, blobs->graph->layers[i], t, error));
    return 0;
}

/* What cannot be, with what to do instead. */
static int check(const struct ls_trainer *trainer, struct ls_error *error)
{
    const char *file = trainer->definition->definition->file;
    if (trainer->comm->size > 1)
        return ls_fail(error, LOCKSTEP_USAGE, file, "let one process train to look at them",
                       "blobs are not kept with several ranks");
    if (trainer->memory > 0)
        return ls_fail(error, LOCKSTEP_USAGE, file, "leave the limit out",
                       "blobs are kept, which a limit on memory does not count");
    if (trainer->train->varying >= 0)
        return ls_fail(error, LOCKSTEP_USAGE, file,
                       "give the data layer a crop_size, or new_height and new_width",
                       "blobs are kept for samples of one size only");
    if (!trainer->device->memory->host_memory)
        return ls_fail(error, LOCKSTEP_USAGE, file, "train with the device 'cpu'",
                       "blobs are kept where the device works in the host's memory");
    return 0;
}

int ls_blobs_create(struct ls_trainer *trainer, struct ls_blobs **out, struct ls_error *error)
{
    const struct ls_batching *batching = &trainer->train->batching;
    *out = NULL;
    LS_TRY(check(trainer, error));
    struct ls_blobs *blobs = ls_alloc(1, sizeof *blobs);
    if (blobs == NULL)
        return ls_fail_memory(error, "the blobs of an update");
    blobs->pass = trainer->train_pass;
    blobs->graph = ls_net_graph(trainer->train);
    blobs->samples = batching->batch * batching->iter_size;
    blobs->whole = trainer->train->mixer != NULL && batching->iter_size == 1;
    int status = find_blobs(blobs, error);
    if (status != 0) {
        ls_blobs_free(blobs);
        return status;
    }
    blobs->watch = (struct ls_watch){.measured = blobs_measured, .user = blobs};
    trainer->train_pass->watch = &blobs->watch;
    *out = blobs;
    return 0;
}

void ls_blobs_free(struct ls_blobs *blobs)
{
    if (blobs == NULL)
        return;
    for (size_t i = 0; i < blobs->array_count; i++)
        ls_free(blobs->arrays[i].numbers);
    ls_free(blobs->arrays);
    ls_free(blobs->items);
    ls_free(blobs->places);
    ls_free(blobs->figures);
    ls_free(blobs);
}

/* ---- Looking at them ------------------------------------------------------------------------- */

void ls_blobs_begin(struct ls_blobs *blobs)
{
    if (blobs != NULL)
        blobs->ready = false;
}

void ls_blobs_end(struct ls_blobs *blobs, const double *record)
{
    if (blobs == NULL)
        return;
    memcpy(blobs->figures, record, (size_t)blobs->graph->record_size * sizeof *record);
    blobs->ready = true;
}

size_t ls_blobs_count(const struct ls_blobs *blobs)
{
    return blobs != NULL ? blobs->count : 0;
}

const struct ls_blob *ls_blobs_at(const struct ls_blobs *blobs, size_t index)
{
    return index < ls_blobs_count(blobs) ? &blobs->items[index] : NULL;
}

int ls_blobs_read(const struct ls_blobs *blobs, size_t index, bool gradient, float *data,
                  struct ls_error *error)
{
    const struct ls_blob *blob = &blobs->items[index];
    if (!blobs->ready)
        return ls_fail(error, LOCKSTEP_USAGE, blob->name, "make an update first",
                       "nothing was computed yet, or what was has failed");
    if (blob->kept[gradient] < 0 && (gradient || blob->metric == NULL))
        return ls_fail(error, LOCKSTEP_USAGE, blob->name,
                       "data_gradients in the options brings those of data",
                       "has no gradient: the backward pass does not come there");
    if (!gradient && blob->metric != NULL) {
        for (int e = 0; e < blob->metric->entries; e++)
            data[e] = (float)ls_figures_metric(blob->metric, blobs->figures, e);
        return 0;
    }
    const struct array *array = &blobs->arrays[blob->kept[gradient]];
    memcpy(data, array->numbers, (size_t)ls_shape_size(&array->shape) * sizeof *data);
    return 0;
}
