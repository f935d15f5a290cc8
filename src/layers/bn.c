/* BN: batch normalisation with a learned scale and bias in one layer, as two forks of Caffe have
 * it.
 *
 *   y = scale (x - mean) / sqrt(variance + eps) + bias
 *
 * The form with averages (DeepLab's, PSPNet's): blobs "scale" (their slope), "bias", "mean" and
 * "variance". At each update the averages keep `momentum` of themselves and take 1 - momentum of
 * the group's statistics; the test phase uses them. They start from mean 0 and variance 1. The
 * variance that they take is that of the values' population, count / (count - 1), as in BatchNorm,
 * where the forks take the group's own. `frozen` uses the averages in training, too, and trains
 * neither scale nor bias.
 *
 * The form without (SegNet's), known by scale_filler, shift_filler or bn_mode: blobs "scale" and
 * "bias" (its shift). LEARN, the default, goes by the batch in every phase, with an eps of 1e-9;
 * INFERENCE applies scale and bias alone, into which the statistics have been merged.
 *
 * All blobs are [1, C, 1, 1], as the forks write them. `group` as in BatchNorm.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/factor.h"
#include "layers/normalize.h"

struct bn {
    struct ls_normalize normalize;
    bool inference; /* scale and bias alone */
    struct ls_factor factor;
};

static const float segnet_eps = 1e-9F;

static const Lockstep__BNParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__BNParameter defaults = LOCKSTEP__BNPARAMETER__INIT;
    const Lockstep__BNParameter *param = layer->definition->bn_param;
    return param != NULL ? param : &defaults;
}

static bool has_averages(const Lockstep__BNParameter *p)
{
    return p->scale_filler == NULL && p->shift_filler == NULL && !p->has_bn_mode;
}

static bool is_inference(const Lockstep__BNParameter *p)
{
    return p->has_bn_mode && p->bn_mode == LOCKSTEP__BNPARAMETER__MODE__INFERENCE;
}

/* Fields of the other form, or that do nothing. */
static int check_form(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__BNParameter *p = param_of(layer);
    if (has_averages(p))
        return 0;
    const struct {
        const char *name;
        bool given;
    } other[] = {{"slope_filler", p->slope_filler != NULL},
                 {"bias_filler", p->bias_filler != NULL},
                 {"momentum", p->has_momentum},
                 {"frozen", p->has_frozen}};
    int status = 0;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (other[i].given)
            status = ls_layer_fail(layer, error, p, other[i].name,
                                   "remove it, or scale_filler, shift_filler and bn_mode",
                                   "%s belongs to the form of BN that keeps averages; "
                                   "scale_filler, shift_filler and bn_mode to the one that does "
                                   "not",
                                   other[i].name);
    if (is_inference(p) && (p->has_eps || p->has_group))
        status = ls_layer_fail(layer, error, p, p->has_eps ? "eps" : "group", "remove it",
                               "%s has no effect with bn_mode: INFERENCE, which normalises nothing",
                               p->has_eps ? "eps" : "group");
    return status;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__BNParameter *p = param_of(layer);
    int status = ls_layer_check_eps(layer, error, p, p->eps), failed;
    if ((failed = ls_normalize_check_kept(layer, error, p, "momentum", p->momentum)) != 0)
        status = failed;
    if ((failed = ls_normalize_check_group(layer, error, p, p->group)) != 0)
        status = failed;
    return status;
}

static void request_blobs(struct ls_layer *layer)
{
    struct bn *state = layer->state;
    const Lockstep__BNParameter *p = param_of(layer);
    const struct ls_shape each = {.rank = 4, .dim = {1, state->normalize.channels, 1, 1}};
    bool averages = has_averages(p);
    const Lockstep__FillerParameter *scale = averages ? p->slope_filler : p->scale_filler;
    const Lockstep__FillerParameter *bias = averages ? p->bias_filler : p->shift_filler;
    bool frozen = averages && p->frozen;
    layer->request[0] = (struct ls_blob_request){.name = "scale",
                                                 .shape = each,
                                                 .filler = scale != NULL ? scale : &ls_filler_one,
                                                 .fixed = frozen};
    layer->request[1] =
        (struct ls_blob_request){.name = "bias", .shape = each, .filler = bias, .fixed = frozen};
    layer->blobs = averages ? 4 : 2;
    state->normalize.scale = 0;
    state->normalize.bias = 1;
    state->normalize.mean = averages ? 2 : -1;
    state->normalize.variance = averages ? 3 : -1;
    state->normalize.factor = -1;
    if (!averages)
        return;
    layer->request[2] = (struct ls_blob_request){.name = "mean", .shape = each, .average = true};
    layer->request[3] = (struct ls_blob_request){
        .name = "variance", .shape = each, .filler = &ls_filler_one, .average = true};
}

static int setup_inference(struct ls_layer *layer, struct ls_error *error)
{
    struct bn *state = layer->state;
    LS_TRY(ls_layer_check_channels(layer, error));
    state->inference = true;
    state->factor = (struct ls_factor){.attr = {.axis = 1, .axes = 1}, .bias_blob = 1};
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct bn *state = layer->state;
    const Lockstep__BNParameter *p = param_of(layer);
    bool test = layer->graph->phase == LOCKSTEP__PHASE__TEST, averages = has_averages(p);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int fields = check_form(layer, error), numbers = check_numbers(layer, error);
    state->normalize = (struct ls_normalize){
        .by_batch = averages ? !test && !p->frozen : !is_inference(p),
        .group = p->group,
        .eps = averages || p->has_eps ? p->eps : segnet_eps,
        .keep = p->momentum,
        .add = 1 - p->momentum,
    };
    LS_TRY(ls_normalize_begin(layer, error, &state->normalize));
    if (is_inference(p))
        LS_TRY(setup_inference(layer, error));
    request_blobs(layer);
    return fields != 0 ? fields : numbers;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct bn *state = layer->state;
    if (state->inference)
        ls_factor_emit(layer, &state->factor);
    else
        ls_normalize_forward(layer, &state->normalize);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct bn *state = layer->state;
    if (state->inference)
        ls_factor_emit_backward(layer, &state->factor);
    else
        ls_normalize_backward(layer, &state->normalize);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct bn *state = layer->state;
    if (state->inference)
        ls_factor_count(layer, &state->factor, cost);
    else
        ls_normalize_cost(layer, &state->normalize, cost);
}

const struct ls_layer_type ls_layer_bn = {
    .type = "BN",
    .parameter = "bn_param",
    .state_size = sizeof(struct bn),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
