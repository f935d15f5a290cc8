/* Reshape: the same elements, in the same order, under another shape.
 *
 * The axes `axis` .. `axis` + num_axes (default: all) give way to those of shape: an extent of 0
 * copies that of the bottom's axis in the same place, -1 (once) is what remains. Caffe's
 * reshape_param.
 *
 * A net works on micro-batches, but its definition is written for a batch. So the rule is: the
 * shape is worked out for the whole batch that the sources declare, and the result is then cut into
 * micro-batches. An extent 64 that stands for the samples where batches have 64 is understood in
 * this way, and so is 64 T (each sample gets T rows) and the way back. The cut must go between
 * samples: an axis of the top has to begin where that of the bottom's samples begins, with an
 * extent that is a multiple of the batch. What has no such axis tears samples apart, and mixes them
 * (ls_layer_mix).
 *
 * With batches of 1, several axes may qualify (leading ones). The copy of the samples' axis counts
 * first; then the first one that copies no other axis.
 *
 * Where samples are mixed anyway (ls_layer_mix) any shape of as many elements will do.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"
#include "layers/source.h"

struct reshape {
    struct ls_shape top;
    int sample_axis;
    int64_t rows;
};

/* The top of a whole batch. */
struct plan {
    int64_t batch;
    struct ls_shape bottom, top;
    int origin[LS_RANK_MAX]; /* by axis of the top: which one of the bottom it copies, or -1 */
    int inferred;            /* which extent is -1, or -1 */
};

static const Lockstep__ReshapeParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__ReshapeParameter defaults = LOCKSTEP__RESHAPE_PARAMETER__INIT;
    const Lockstep__ReshapeParameter *param = layer->definition->reshape_param;
    return param != NULL ? param : &defaults;
}

/* Whether there are no samples that could be cut apart. */
static bool is_mixed(const struct ls_layer *layer)
{
    const struct ls_value *x = layer->bottom[0];
    return x->sample_axis < 0 ||
           (layer->graph->whole &&
            x->shape.dim[x->sample_axis] != x->rows * layer->graph->samples) ||
           ls_layer_is_mixed(layer, x);
}

static void plan_bottom(const struct ls_layer *layer, struct plan *plan)
{
    const struct ls_source_shapes *sources = layer->graph->sources;
    const struct ls_value *x = layer->bottom[0];
    plan->batch = sources != NULL && sources->batch > 0 ? sources->batch : layer->graph->samples;
    plan->bottom = x->shape;
    if (x->sample_axis >= 0 && !is_mixed(layer) &&
        __builtin_mul_overflow(plan->batch, x->rows, &plan->bottom.dim[x->sample_axis]))
        plan->bottom.dim[x->sample_axis] = INT64_MAX; /* refused by the shape's check */
}

/* Which axes give way. */
static int find_range(const struct ls_layer *layer, struct ls_error *error, int *begin, int *end)
{
    const Lockstep__ReshapeParameter *p = param_of(layer);
    int rank = layer->bottom[0]->shape.rank;
    if (p->axis < -rank - 1 || p->axis > rank)
        return ls_layer_fail(layer, error, p, "axis", NULL,
                             "axis %d is out of range for '%s', which has %d axes", p->axis,
                             layer->bottom[0]->name, rank);
    *begin = p->axis < 0 ? rank + 1 + p->axis : p->axis;
    if (p->num_axes < -1 || p->num_axes > rank - *begin)
        return ls_layer_fail(layer, error, p, "num_axes", NULL,
                             "num_axes %d is not possible: %d axes of '%s' begin at axis %d, and "
                             "-1 means all of them",
                             p->num_axes, rank - *begin, layer->bottom[0]->name, *begin);
    *end = p->num_axes == -1 ? rank : *begin + p->num_axes;
    return 0;
}

static void keep_axis(struct plan *plan, int axis)
{
    plan->origin[plan->top.rank] = axis;
    plan->top.dim[plan->top.rank++] = plan->bottom.dim[axis];
}

/* Extent `index` of the definition's shape. */
static int add_extent(const struct ls_layer *layer, struct ls_error *error, struct plan *plan,
                      size_t index)
{
    const Lockstep__BlobShape *shape = param_of(layer)->shape;
    int64_t extent = shape->dim[index];
    if (extent < -1)
        return ls_layer_fail(layer, error, shape, "dim", "0 copies an extent, -1 infers one",
                             "extent %lld is not possible", (long long)extent);
    if (extent == -1 && plan->inferred >= 0)
        return ls_layer_fail(layer, error, shape, "dim", NULL,
                             "an extent of -1 can be given only once");
    if (extent == 0 && plan->top.rank >= plan->bottom.rank)
        return ls_layer_fail(layer, error, shape, "dim", NULL,
                             "extent 0 would copy axis %d, which '%s' does not have",
                             plan->top.rank, layer->bottom[0]->name);
    if (extent == 0) {
        keep_axis(plan, plan->top.rank);
        return 0;
    }
    if (extent == -1)
        plan->inferred = plan->top.rank;
    plan->origin[plan->top.rank] = -1;
    plan->top.dim[plan->top.rank++] = extent == -1 ? 1 : extent;
    return 0;
}

/* All extents of the top; the one that is to be inferred is 1 so far. */
static int plan_extents(const struct ls_layer *layer, struct ls_error *error, struct plan *plan)
{
    const Lockstep__BlobShape *shape = param_of(layer)->shape;
    size_t extents = shape != NULL ? shape->n_dim : 0;
    int begin = 0, end = 0, rank = plan->bottom.rank;
    LS_TRY(find_range(layer, error, &begin, &end));
    if (extents > (size_t)(LS_RANK_MAX - (rank - (end - begin))))
        return ls_layer_fail(layer, error, shape, NULL, NULL,
                             "the top would have %zu axes; at most %d are possible",
                             extents + (size_t)(rank - (end - begin)), LS_RANK_MAX);
    plan->inferred = -1;
    for (int i = 0; i < begin; i++)
        keep_axis(plan, i);
    for (size_t i = 0; i < extents; i++)
        LS_TRY(add_extent(layer, error, plan, i));
    for (int i = end; i < rank; i++)
        keep_axis(plan, i);
    return ls_layer_check_shape(layer, error, "the top", &plan->top);
}

/* Infers what is to be inferred; the elements must be as many as before. */
static int check_count(const struct ls_layer *layer, struct ls_error *error, struct plan *plan)
{
    int64_t count = ls_shape_size(&plan->bottom), given = ls_shape_size(&plan->top);
    char from[160], to[160];
    if (plan->inferred >= 0 && count % given == 0) {
        plan->top.dim[plan->inferred] = count / given;
        return 0;
    }
    if (plan->inferred < 0 && count == given)
        return 0;
    return ls_layer_fail(
        layer, error, param_of(layer)->shape, NULL,
        "an extent of 0 copies the bottom's, whatever the batch size is",
        "'%s', in batches of %lld samples, is %s and cannot be made %s%s", layer->bottom[0]->name,
        (long long)plan->batch, ls_shape_text(&plan->bottom, from, sizeof from),
        ls_shape_text(&plan->top, to, sizeof to), plan->inferred >= 0 ? " times anything" : "");
}

/* The axis of the top along which whole samples follow each other, or -1. */
static int find_sample_axis(const struct plan *plan, int bottom_axis)
{
    int64_t wanted = ls_shape_count(&plan->bottom, 0, bottom_axis), before = 1;
    int found = -1;
    for (int i = 0; i < plan->top.rank; i++) {
        bool begins = before == wanted && plan->top.dim[i] % plan->batch == 0;
        if (begins && plan->origin[i] == bottom_axis)
            return i;
        if (begins && plan->origin[i] < 0 && found < 0)
            found = i;
        before *= plan->top.dim[i];
    }
    return found;
}

/* The top of a batch whose samples are torn apart. The last batch of an epoch may be a smaller one,
 * which the shape must fit as it is. */
static int mix_samples(struct ls_layer *layer, struct ls_error *error)
{
    struct reshape *state = layer->state;
    struct plan plan = {.batch = layer->graph->samples, .bottom = layer->bottom[0]->shape};
    LS_TRY(plan_extents(layer, error, &plan));
    LS_TRY(check_count(layer, error, &plan));
    state->top = plan.top;
    state->sample_axis = 0;
    state->rows = plan.top.dim[0];
    return 0;
}

static int place_samples(struct ls_layer *layer, struct ls_error *error, const struct plan *plan)
{
    struct reshape *state = layer->state;
    const struct ls_value *x = layer->bottom[0];
    char from[160], to[160];
    state->top = plan->top;
    state->sample_axis = -1;
    if (is_mixed(layer)) {
        state->sample_axis = x->sample_axis < 0 ? -1 : 0;
        state->rows = x->sample_axis < 0 ? 0 : plan->top.dim[0];
        return 0;
    }
    int axis = find_sample_axis(plan, x->sample_axis);
    if (axis < 0 && ls_layer_mix(layer))
        return mix_samples(layer, error);
    if (axis < 0)
        return ls_layer_fail(layer, error, param_of(layer)->shape, NULL,
                             "let one extent be the number of samples, or a multiple of it: 0 "
                             "copies it",
                             "a batch of '%s' has %lld samples along axis %d of %s; as %s it would "
                             "have no axis that they lie along, so that it could not be cut into "
                             "micro-batches",
                             x->name, (long long)plan->batch, x->sample_axis,
                             ls_shape_text(&plan->bottom, from, sizeof from),
                             ls_shape_text(&plan->top, to, sizeof to));
    state->sample_axis = axis;
    state->rows = plan->top.dim[axis] / plan->batch;
    state->top.dim[axis] = state->rows * layer->graph->samples;
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct reshape *state = layer->state;
    struct plan plan = {0};
    LS_TRY(ls_layer_begin(layer, error, NULL));
    plan_bottom(layer, &plan);
    LS_TRY(ls_layer_check_shape(layer, error, "a batch of its bottom", &plan.bottom));
    LS_TRY(plan_extents(layer, error, &plan));
    LS_TRY(check_count(layer, error, &plan));
    LS_TRY(place_samples(layer, error, &plan));
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct reshape *state = layer->state;
    ls_layer_emit_view(layer, &state->top, state->sample_axis, state->rows);
    return 0;
}

const struct ls_layer_type ls_layer_reshape = {
    .type = "Reshape",
    .parameter = "reshape_param",
    .state_size = sizeof(struct reshape),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = ls_layer_view_backward,
};
