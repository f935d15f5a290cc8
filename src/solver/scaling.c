/* The model of a training on several ranks. See solver/scaling.h.
 *
 * Links carry one collective after the other, in the order in which they become ready; a collective
 * takes (ranks - 1) messages and the bytes that the rank with the most of them sends or receives.
 * Small exchanges go directly from each rank to each other. Exactly these collectives are sent by
 * the engine (engine/shards.h says what is in which).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/scaling.h"

#include <math.h>

#include "base/memory.h"
#include "engine/shards.h"
#include "engine/reducer_sums.h"

enum { FORWARD, BACKWARD };

static const double SUM = 6; /* bytes of a sum on its way, which takes 48 bits where these do */

/* Bytes of weights, which are sent as the fp32 that they are. */
static double weight_bytes(double elements)
{
    return elements * (double)ls_dtype_size(LS_F32);
}

struct model {
    const struct ls_scaling_load *load;
    const struct ls_scaling_link *link;
    int ranks;
    struct ls_shards *shards;
    int64_t units;    /* of a wave, that the busiest rank has (without waves: of the update) */
    int64_t turns;    /* that its busiest worker has of these */
    double *arrival;  /* by bucket */
    double *finished; /* by layer */
    double link_free; /* when the link has sent all that it had */
    double transfer;
};

static int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- Links ----------------------------------------------------------------------------------- */

/* `count` small exchanges, in which a rank hands `bytes` in all to each other. */
static double small(const struct model *model, int count, double bytes)
{
    double others = model->ranks - 1;
    if (others == 0 || count == 0)
        return 0;
    return count * (model->link->latency + others * model->link->message) +
           others * bytes / model->link->bandwidth;
}

/* So many collectives, of `bytes` in all, that are ready then: when they have arrived. */
static double carry(struct model *model, double ready, double collectives, double bytes)
{
    double start = ready > model->link_free ? ready : model->link_free;
    model->link_free = start + collectives * (model->ranks - 1) * model->link->message +
                       bytes / model->link->bandwidth;
    model->transfer += model->link_free - start;
    return model->link_free + model->link->latency;
}

/* Elements of a bucket that the rank with the most of them sends or receives: it sends what others
 * own, and receives what it owns from each of them. (Weights go the other way round.) */
static double most_carried(const struct model *model, const struct ls_bucket *bucket)
{
    double most = 0, size = (double)(bucket->end - bucket->begin);
    for (int r = 0; r < model->ranks; r++) {
        double own = (double)(bucket->cut[r + 1] - bucket->cut[r]);
        most = fmax(most, fmax(size - own, own * (model->ranks - 1)));
    }
    return most;
}

/* The part of all rows that the rank with the most of them sends or receives. */
static double most_rows(const struct model *model)
{
    const struct ls_scaling_load *load = model->load;
    double least = (double)(load->units / model->ranks) / (double)load->units;
    double most = (double)ceiling(load->units, model->ranks) / (double)load->units;
    return fmax(1 - least, most * (model->ranks - 1));
}

/* The first layer of the net that a bucket has parameters of. */
static size_t first_layer(const struct model *model, const struct ls_bucket *bucket)
{
    size_t first = SIZE_MAX;
    for (size_t i = bucket->first; i <= bucket->last; i++) {
        size_t layer = model->load->layer[model->shards->order[i]];
        first = layer < first ? layer : first;
    }
    return first;
}

/* ---- The pass -------------------------------------------------------------------------------- */

/* Seconds that the busiest worker computes a layer, in one direction, for a wave; without waves for
 * one micro-batch. */
static double computed(const struct model *model, size_t layer, int direction)
{
    const struct ls_scaling_layer *what = &model->load->layers[layer];
    double each = direction == FORWARD ? what->forward : what->backward;
    double turns = model->load->waves > 0 ? (double)model->turns : 1;
    return turns * each + what->gathered[direction];
}

/* Of sync points, for a wave. */
static double synchronised(const struct model *model, size_t layer, int direction)
{
    const struct ls_scaling_layer *what = &model->load->layers[layer];
    return small(model, what->syncs[direction], (double)model->units * what->rows[direction]);
}

static double whole(const struct model *model, int direction,
                    double (*part)(const struct model *model, size_t layer, int direction))
{
    double sum = 0;
    for (size_t l = 0; l < model->load->layer_count; l++)
        sum += part(model, l, direction);
    return sum;
}

/* When the last micro-batches are through each layer, by layer, and through all of them. Their
 * backward pass begins at 0. */
static double find_finished(const struct model *model, double *finished)
{
    double now = 0;
    for (size_t l = model->load->layer_count; l-- > 0;) {
        now += computed(model, l, BACKWARD) + synchronised(model, l, BACKWARD);
        finished[l] = now;
    }
    return now;
}

static double carry_factors(struct model *model, size_t layer, int side, const double *finished)
{
    double bytes = model->load->layers[layer].factors[side];
    return bytes > 0 ? carry(model, finished[layer], 1, most_rows(model) * bytes) : 0;
}

/* Waiting for gradients: from the end of the pass to the arrival of all. Collectives leave in the
 * order of engine/reducer.c: inputs of inner products, then what else is finished, backwards. */
static double wait_for_sums(struct model *model)
{
    const struct ls_scaling_load *load = model->load;
    const struct ls_shards *shards = model->shards;
    double last = 0, end = find_finished(model, model->finished);
    size_t next = 0;
    model->link_free = 0;
    for (size_t l = 0; l < load->layer_count; l++)
        last = fmax(last, carry_factors(model, l, LS_FACTOR_INPUT, model->finished));
    for (size_t l = load->layer_count; l-- > 0;) {
        for (; next < shards->bucket_count; next++) {
            const struct ls_bucket *bucket = &shards->buckets[next];
            size_t first = first_layer(model, bucket);
            if (first < l || (first == l && load->layers[l].factors[LS_FACTOR_OUTPUT] > 0))
                break;
            last =
                carry(model, model->finished[first], (double)ls_reducer_sums_chunks(shards, next),
                      most_carried(model, bucket) * SUM);
        }
        last = fmax(last, carry_factors(model, l, LS_FACTOR_OUTPUT, model->finished));
    }
    return last > end ? last - end : 0;
}

/* Waiting for weights in the forward pass behind an update that ended at 0. */
static double wait_for_weights(struct model *model)
{
    const struct ls_scaling_load *load = model->load;
    const struct ls_shards *shards = model->shards;
    double now = 0, busy = 0;
    model->link_free = 0;
    for (size_t b = shards->bucket_count; b-- > 0;)
        model->arrival[b] =
            carry(model, 0, 1, weight_bytes(most_carried(model, &shards->buckets[b])));
    for (size_t l = 0; l < load->layer_count; l++) {
        for (size_t p = 0; p < load->parameters; p++)
            if (load->layer[p] == l && shards->bucket[p] >= 0)
                now = fmax(now, model->arrival[shards->bucket[p]]);
        double taken = computed(model, l, FORWARD) + synchronised(model, l, FORWARD);
        now += taken;
        busy += taken;
    }
    return now - busy;
}

/* ---- The row --------------------------------------------------------------------------------- */

/* The part of all that is reduced as sums which the rank with the most of it owns. */
static double largest_part(const struct model *model)
{
    double most = 0;
    for (int r = 0; r < model->ranks; r++) {
        double own = 0;
        for (size_t b = 0; b < model->shards->bucket_count; b++)
            own +=
                (double)(model->shards->buckets[b].cut[r + 1] - model->shards->buckets[b].cut[r]);
        most = fmax(most, own);
    }
    return model->shards->elements > 0 ? most / (double)model->shards->elements : 0;
}

static void predict_seconds(struct model *model, struct lockstep_scaling_row *row)
{
    const struct ls_scaling_load *load = model->load;
    double times = load->waves > 0 ? load->waves : (double)model->turns;
    double part = largest_part(model);
    row->pass = times * (whole(model, FORWARD, computed) + whole(model, BACKWARD, computed));
    if (load->waves > 0)
        row->small = load->waves *
                     (whole(model, FORWARD, synchronised) + whole(model, BACKWARD, synchronised));
    row->small +=
        small(model, load->exchanges, load->books + (double)row->micro_batches * load->record);
    for (size_t l = 0; l < load->layer_count; l++)
        row->update += part * load->layers[l].update + load->layers[l].full + load->layers[l].views;
    row->rest = load->rest;
    if (model->ranks > 1) {
        row->wait_sums = wait_for_sums(model);
        row->wait_weights = wait_for_weights(model);
    }
    row->transfer = model->transfer;
    row->seconds =
        row->pass + row->small + row->update + row->rest + row->wait_sums + row->wait_weights;
}

static void predict_traffic(const struct model *model, struct lockstep_scaling_row *row)
{
    const struct ls_scaling_load *load = model->load;
    double others = model->ranks - 1, part = others / model->ranks, factors = 0, rows = 0;
    for (size_t l = 0; l < load->layer_count; l++) {
        factors +=
            load->layers[l].factors[LS_FACTOR_INPUT] + load->layers[l].factors[LS_FACTOR_OUTPUT];
        rows += load->layers[l].rows[FORWARD] + load->layers[l].rows[BACKWARD];
    }
    double units = (double)(load->units * load->batches);
    row->sent.sums = (uint64_t)ceil(part * SUM * (double)model->shards->elements);
    row->sent.weights = (uint64_t)ceil(part * weight_bytes((double)model->shards->elements));
    row->sent.factors = (uint64_t)ceil(part * factors);
    if (others > 0)
        row->sent.small =
            (uint64_t)ceil(part * units * (load->record + rows) + others * load->books);
}

static void predict_memory(const struct model *model, struct lockstep_scaling_row *row)
{
    const struct ls_scaling_load *load = model->load;
    struct ls_forecast mine = load->forecast;
    size_t state = mine.history + mine.averages;
    double shared = largest_part(model) * (double)load->shared_state;
    row->state = state - load->shared_state + (uint64_t)shared;
    if (load->waves > 0 && mine.slots > model->units)
        mine.slots = model->units > load->workers ? (int)model->units : load->workers;
    row->memory =
        ls_forecast_total(&mine) - state + row->state + ls_reducer_sums_bytes(model->shards);
}

static int prepare(struct model *model, struct ls_error *error)
{
    const struct ls_scaling_load *load = model->load;
    int64_t own = ceiling(load->units, model->ranks);
    model->units = load->waves > 0 ? own * load->batches / load->waves : own * load->batches;
    model->turns = ceiling(model->units, load->workers);
    LS_TRY(ls_shards_create(load->parameters, load->elements, load->whole, model->ranks,
                            &model->shards, error));
    model->arrival = ls_alloc(model->shards->bucket_count + 1, sizeof *model->arrival);
    model->finished = ls_alloc(load->layer_count + 1, sizeof *model->finished);
    return model->arrival != NULL && model->finished != NULL ? 0 : ls_fail_memory(error, "a plan");
}

int ls_scaling_predict(const struct ls_scaling_load *load, const struct ls_scaling_link *link,
                       int ranks, struct lockstep_scaling_row *row, struct ls_error *error)
{
    struct model model = {.load = load, .link = link, .ranks = ranks};
    *row = (struct lockstep_scaling_row){.ranks = ranks};
    int status = prepare(&model, error);
    if (status == 0) {
        row->micro_batches = ceiling(load->units, ranks) * load->batches;
        row->idle = ranks > load->units ? (int)(ranks - load->units) : 0;
        predict_seconds(&model, row);
        predict_traffic(&model, row);
        predict_memory(&model, row);
    }
    ls_shards_free(model.shards);
    ls_free(model.arrival);
    ls_free(model.finished);
    return status;
}
