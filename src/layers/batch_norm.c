/* Batch normalisation: every channel gets mean 0 and variance 1.
 *
 *   y = (x - mean) / sqrt(variance + eps)
 *
 * x [N, C, ...]; mean and variance are those of channel C over all samples of a group and all
 * positions. In the test phase (or as `use_global_stats` says) they are the averages that training
 * saved in blobs 0 to 2, "mean" [C], "variance" [C] and "factor" [1]: sums that keep
 * `moving_average_fraction` of themselves at each update, to be divided by the factor.
 *
 * `group`, Lockstep's own, is how many consecutive samples share statistics; 0, the default, is the
 * whole batch, on any number of workers. The net's `bn_stats_batch_size` (Intel's fork) is that of
 * layers that say none. Layers of the types SyncBN and SyncBatchNorm, by which
 * others ask for that, are the same.
 *
 * With `scale_bias` (or a filler of theirs) y is scaled and biased: blobs 3 and 4, "scale" and
 * "bias" [C], as in NVIDIA's fork. Caffe's batch_norm_param. (Ioffe, Szegedy: Batch normalization;
 * 2015.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/filter.h"
#include "layers/normalize.h"

static const Lockstep__BatchNormParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__BatchNormParameter defaults = LOCKSTEP__BATCH_NORM_PARAMETER__INIT;
    const Lockstep__BatchNormParameter *param = layer->definition->batch_norm_param;
    return param != NULL ? param : &defaults;
}

/* How many samples share statistics: what the layer says, else what the net says for all of them.
 */
static uint32_t group_of(const struct ls_layer *layer)
{
    const Lockstep__BatchNormParameter *p = param_of(layer);
    const Lockstep__NetParameter *net = layer->graph->net;
    return p->has_group || net == NULL ? p->group : net->bn_stats_batch_size;
}

static int check_fields(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__BatchNormParameter *p = param_of(layer);
    const struct ls_normalize *state = layer->state;
    int status = 0, failed;
    /* Saved variances that are not 0 need no eps. */
    if (state->by_batch || p->eps != 0)
        status = ls_layer_check_eps(layer, error, p, p->eps);
    if ((failed = ls_normalize_check_kept(layer, error, p, "moving_average_fraction",
                                          p->moving_average_fraction)) != 0)
        status = failed;
    if ((failed = ls_normalize_check_group(layer, error, p, group_of(layer))) != 0)
        status = failed;
    if (p->has_scale_bias && !p->scale_bias && (p->scale_filler != NULL || p->bias_filler != NULL))
        status = ls_layer_fail(
            layer, error, p, p->scale_filler != NULL ? "scale_filler" : "bias_filler",
            "remove it, or scale_bias: false", "there is nothing to fill without scale_bias");
    return status;
}

static void request_blobs(struct ls_layer *layer)
{
    struct ls_normalize *state = layer->state;
    const Lockstep__BatchNormParameter *p = param_of(layer);
    const struct ls_shape each = {.rank = 1, .dim = {state->channels}};
    const struct ls_shape one = {.rank = 1, .dim = {1}};
    /* Zeros, which are no averages yet; where dummy data shall pass, averages of nothing. */
    const Lockstep__FillerParameter *none =
        layer->graph->dummy && !state->by_batch ? &ls_filler_one : NULL;
    layer->request[0] = (struct ls_blob_request){.name = "mean", .shape = each, .average = true};
    layer->request[1] = (struct ls_blob_request){
        .name = "variance", .shape = each, .filler = none, .average = true};
    layer->request[2] =
        (struct ls_blob_request){.name = "factor", .shape = one, .filler = none, .average = true};
    layer->blobs = 3;
    state->mean = 0;
    state->variance = 1;
    state->factor = 2;
    state->scale = state->bias = -1;
    if (!p->scale_bias && p->scale_filler == NULL && p->bias_filler == NULL)
        return;
    const Lockstep__FillerParameter *filler =
        p->scale_filler != NULL ? p->scale_filler : &ls_filler_one;
    layer->request[3] = (struct ls_blob_request){.name = "scale", .shape = each, .filler = filler};
    layer->request[4] =
        (struct ls_blob_request){.name = "bias", .shape = each, .filler = p->bias_filler};
    layer->blobs = 5;
    state->scale = 3;
    state->bias = 4;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_normalize *state = layer->state;
    const Lockstep__BatchNormParameter *p = param_of(layer);
    bool test = layer->graph->phase == LOCKSTEP__PHASE__TEST;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->by_batch = p->has_use_global_stats ? !p->use_global_stats : !test;
    int fields = check_fields(layer, error);
    state->group = group_of(layer);
    state->eps = p->eps;
    state->keep = p->moving_average_fraction;
    state->add = 1;
    if (state->by_batch)
        LS_TRY(ls_filter_refuse(layer, error,
                                "its statistics are those of all samples of a batch (unless "
                                "use_global_stats is true)"));
    LS_TRY(ls_normalize_begin(layer, error, state));
    request_blobs(layer);
    return fields;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_normalize_forward(layer, layer->state);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_normalize_backward(layer, layer->state);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_normalize_cost(layer, layer->state, cost);
}

/* The same layer under its other names. */
#define BATCH_NORM(variable, name)                                                                 \
    const struct ls_layer_type variable = {                                                        \
        .type = name,                                                                              \
        .parameter = "batch_norm_param",                                                           \
        .state_size = sizeof(struct ls_normalize),                                                 \
        .bottoms_min = 1,                                                                          \
        .bottoms_max = 1,                                                                          \
        .tops_min = 1,                                                                             \
        .tops_max = 1,                                                                             \
        .filtered = LS_FILTERED_HANDED_ON,                                                         \
        .setup = setup,                                                                            \
        .forward = forward,                                                                        \
        .backward = backward,                                                                      \
        .cost = cost,                                                                              \
    }

BATCH_NORM(ls_layer_batch_norm, "BatchNorm");
BATCH_NORM(ls_layer_sync_batch_norm, "SyncBatchNorm");
BATCH_NORM(ls_layer_sync_bn, "SyncBN");
