/* PriorBox: boxes of several sizes and shapes around each position of a bottom.
 *
 * y [1, 2, H W P 4]: boxes (xmin, ymin, xmax, ymax, in sizes of the image), then four variances for
 * each. Bottom 0 [N, C, H, W] has the positions, bottom 1 [N, C, height, width] is the image,
 * unless img_size (or img_h and img_w) says its size; none of their numbers is read, so that y
 * belongs to no sample, and no gradient goes back. At a position there are, for each min_size s: a
 * square of s; with a max_size m a square of sqrt(s m); for each aspect_ratio r but 1 (and 1 / r,
 * with `flip`) s sqrt(r) x s / sqrt(r). As in SSD, sizes are cut to whole pixels. SSD's
 * prior_box_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/memory.h"
#include "layers/common.h"

enum { RATIOS_MAX = 64, BOX = 4 };

struct prior_box {
    struct ls_shape top;
    double ratio[RATIOS_MAX]; /* but 1 */
    int ratios;
    int64_t priors; /* at a position */
    float variance[BOX];
    int64_t image[2]; /* height, width */
    float step[2];
};

static const Lockstep__PriorBoxParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__PriorBoxParameter defaults = LOCKSTEP__PRIOR_BOX_PARAMETER__INIT;
    const Lockstep__PriorBoxParameter *param = layer->definition->prior_box_param;
    return param != NULL ? param : &defaults;
}

static bool is_positive(float number)
{
    return isfinite(number) && number > 0;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static int check_sizes(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__PriorBoxParameter *p = param_of(layer);
    if (p->n_min_size == 0)
        return ls_layer_fail(layer, error, layer->definition->prior_box_param, NULL, NULL,
                             "min_size is missing");
    for (size_t i = 0; i < p->n_min_size; i++)
        if (!(p->min_size[i] >= 1 && p->min_size[i] <= 0x1p24F))
            return ls_layer_fail(layer, error, p, "min_size", NULL,
                                 "min_size %g must be at least 1 pixel", (double)p->min_size[i]);
    if (p->n_max_size != 0 && p->n_max_size != p->n_min_size)
        return ls_layer_fail(layer, error, p, "max_size", NULL,
                             "max_size must be given once for each of the %zu min_sizes, or not at "
                             "all; it is given %zu times",
                             p->n_min_size, p->n_max_size);
    for (size_t i = 0; i < p->n_max_size; i++)
        if (!(p->max_size[i] > p->min_size[i] && p->max_size[i] <= 0x1p24F))
            return ls_layer_fail(layer, error, p, "max_size", NULL,
                                 "max_size %g must be larger than min_size %g",
                                 (double)p->max_size[i], (double)p->min_size[i]);
    return 0;
}

static void add_ratio(struct prior_box *state, double ratio)
{
    bool known = fabs(ratio - 1) < 1e-6;
    for (int i = 0; i < state->ratios; i++)
        known = known || fabs(ratio - state->ratio[i]) < 1e-6;
    if (!known)
        state->ratio[state->ratios++] = ratio;
}

static int read_ratios(struct ls_layer *layer, struct ls_error *error)
{
    struct prior_box *state = layer->state;
    const Lockstep__PriorBoxParameter *p = param_of(layer);
    if (p->n_aspect_ratio > RATIOS_MAX / 2)
        return ls_layer_fail(layer, error, p, "aspect_ratio", NULL,
                             "aspect_ratio is given %zu times; at most %d are possible",
                             p->n_aspect_ratio, RATIOS_MAX / 2);
    for (size_t i = 0; i < p->n_aspect_ratio; i++) {
        if (!is_positive(p->aspect_ratio[i]))
            return ls_layer_fail(layer, error, p, "aspect_ratio", NULL,
                                 "aspect_ratio %g must be a number above 0",
                                 (double)p->aspect_ratio[i]);
        const float ratio = p->aspect_ratio[i];
        bool known = fabs((double)ratio - 1) < 1e-6;
        for (int k = 0; k < state->ratios; k++)
            known = known || fabs((double)ratio - state->ratio[k]) < 1e-6;
        if (known)
            continue;
        add_ratio(state, (double)ratio);
        if (p->flip)
            add_ratio(state, (double)(float)(1 / (double)ratio));
    }
    return 0;
}

static int read_variances(struct ls_layer *layer, struct ls_error *error)
{
    struct prior_box *state = layer->state;
    const Lockstep__PriorBoxParameter *p = param_of(layer);
    if (p->n_variance > 1 && p->n_variance != BOX)
        return ls_layer_fail(layer, error, p, "variance", NULL,
                             "variance must be given once, or four times; it is given %zu times",
                             p->n_variance);
    for (size_t i = 0; i < p->n_variance; i++)
        if (!is_positive(p->variance[i]))
            return ls_layer_fail(layer, error, p, "variance", NULL,
                                 "variance %g must be a number above 0", (double)p->variance[i]);
    for (int k = 0; k < BOX; k++)
        state->variance[k] = p->n_variance == 0     ? 0.1F
                             : p->n_variance == BOX ? p->variance[k]
                                                    : p->variance[0];
    return 0;
}

/* The image's size, and how far positions are apart. */
static int read_image(struct ls_layer *layer, struct ls_error *error)
{
    struct prior_box *state = layer->state;
    const Lockstep__PriorBoxParameter *p = param_of(layer);
    const struct ls_shape *x = &layer->bottom[0]->shape, *image = &layer->bottom[1]->shape;
    const uint32_t given[2] = {p->has_img_size ? p->img_size : p->img_h,
                               p->has_img_size ? p->img_size : p->img_w};
    const float step[2] = {p->has_step ? p->step : p->step_h, p->has_step ? p->step : p->step_w};
    if (p->has_img_size && (p->has_img_h || p->has_img_w))
        return ls_layer_fail(layer, error, p, "img_size", NULL,
                             "img_size and img_h, img_w cannot both be given");
    if (p->has_step && (p->has_step_h || p->has_step_w))
        return ls_layer_fail(layer, error, p, "step", NULL,
                             "step and step_h, step_w cannot both be given");
    if (p->has_img_h != p->has_img_w)
        return ls_layer_fail(layer, error, p, p->has_img_h ? "img_h" : "img_w", NULL,
                             "img_h and img_w must be given together");
    if (p->has_step_h != p->has_step_w)
        return ls_layer_fail(layer, error, p, p->has_step_h ? "step_h" : "step_w", NULL,
                             "step_h and step_w must be given together");
    for (int i = 0; i < 2; i++) {
        const bool said = given[0] > 0 && given[1] > 0;
        state->image[i] = said ? given[i] : image->dim[2 + i];
        if (!(step[i] >= 0 && isfinite(step[i])))
            return ls_layer_fail(layer, error, p,
                                 p->has_step ? "step"
                                 : i == 0    ? "step_h"
                                             : "step_w",
                                 NULL, "step %g must be a number of pixels", (double)step[i]);
        state->step[i] =
            step[0] > 0 && step[1] > 0 ? step[i] : (float)state->image[i] / (float)x->dim[2 + i];
    }
    if (!isfinite(p->offset))
        return ls_layer_fail(layer, error, p, "offset", NULL, "offset must be a finite number");
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct prior_box *state = layer->state;
    const Lockstep__PriorBoxParameter *p = param_of(layer);
    const struct ls_shape *x = &layer->bottom[0]->shape;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    for (int i = 0; i < 2; i++)
        LS_TRY(ls_layer_check_planes(layer, error, i));
    LS_TRY(check_sizes(layer, error));
    LS_TRY(read_ratios(layer, error));
    LS_TRY(read_variances(layer, error));
    LS_TRY(read_image(layer, error));
    state->priors = (int64_t)p->n_min_size * (1 + state->ratios) + (int64_t)p->n_max_size;
    state->top = (struct ls_shape){3, {1, 2, 0}};
    if (__builtin_mul_overflow(x->dim[2] * x->dim[3], state->priors * BOX, &state->top.dim[2]))
        state->top.dim[2] = INT64_MAX;
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

/* ---- The boxes ------------------------------------------------------------------------------- */

static float *put_box(const struct prior_box *state, bool clip, const float centre[2], float height,
                      float width, float *box)
{
    const double half[2] = {(double)height / 2, (double)width / 2};
    for (int k = 0; k < BOX; k++) {
        const int axis = k % 2 == 0 ? 1 : 0; /* x, y, x, y */
        const double side = k < 2 ? -half[axis] : half[axis];
        const double place = ((double)centre[axis] + side) / (double)state->image[axis];
        box[k] = (float)(clip ? fmin(fmax(place, 0), 1) : place);
    }
    return box + BOX;
}

/* All boxes of one position. */
static float *put_position(const struct prior_box *state, const Lockstep__PriorBoxParameter *p,
                           const float centre[2], float *box)
{
    for (size_t s = 0; s < p->n_min_size; s++) {
        const double least = floor((double)p->min_size[s]);
        box = put_box(state, p->clip, centre, (float)least, (float)least, box);
        if (p->n_max_size > 0) {
            const float side = (float)sqrt(least * floor((double)p->max_size[s]));
            box = put_box(state, p->clip, centre, side, side, box);
        }
        for (int r = 0; r < state->ratios; r++) {
            const double root = sqrt(state->ratio[r]);
            box =
                put_box(state, p->clip, centre, (float)(least / root), (float)(least * root), box);
        }
    }
    return box;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    struct prior_box *state = layer->state;
    const Lockstep__PriorBoxParameter *p = param_of(layer);
    const struct ls_shape *x = &layer->bottom[0]->shape;
    const size_t half = (size_t)state->top.dim[2];
    float *boxes = ls_graph_own(layer->graph, ls_alloc(2 * half, sizeof *boxes)), *box = boxes;
    if (boxes == NULL)
        return ls_fail_memory(error, "boxes");
    for (int64_t i = 0; i < x->dim[2]; i++)
        for (int64_t j = 0; j < x->dim[3]; j++) {
            const float centre[2] = {((float)i + p->offset) * state->step[0],
                                     ((float)j + p->offset) * state->step[1]};
            box = put_position(state, p, centre, box);
        }
    for (size_t i = 0; i < half; i++)
        box[i] = state->variance[i % BOX];
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, NULL);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_CONSTANT);
    ls_op_out(layer->graph, op, y);
    if (op != NULL)
        op->attr.constant.numbers = boxes;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    cost->forward_bytes = 2 * ls_layer_bytes(layer->top[0]);
}

const struct ls_layer_type ls_layer_prior_box = {
    .type = "PriorBox",
    .parameter = "prior_box_param",
    .state_size = sizeof(struct prior_box),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
