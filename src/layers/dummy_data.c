/* DummyData: tensors that a filler fills, anew for every sample: constants, or random numbers that
 * are a function of (seed, blob name, ordinal of the sample, element of the sample).
 *
 * dummy_data_param has one shape (or the older num, channels, height, width) for each top, or one
 * for all; likewise data_filler, whose default is the constant 0. The first axis holds the samples.
 * Fillers that look at a whole batch have no meaning sample by sample and are refused; xavier and
 * msra need only the size of a sample, if they go by FAN_IN.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/random.h"
#include "layers/source_layer.h"

static const Lockstep__DummyDataParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__DummyDataParameter defaults = LOCKSTEP__DUMMY_DATA_PARAMETER__INIT;
    const Lockstep__DummyDataParameter *param = layer->definition->dummy_data_param;
    return param != NULL ? param : &defaults;
}

/* The older form of a shape: four lists. */
static const struct legacy_extent {
    const char *name;
    size_t count_offset, values_offset;
} legacy[4] = {
    {"num", offsetof(Lockstep__DummyDataParameter, n_num),
     offsetof(Lockstep__DummyDataParameter, num)},
    {"channels", offsetof(Lockstep__DummyDataParameter, n_channels),
     offsetof(Lockstep__DummyDataParameter, channels)},
    {"height", offsetof(Lockstep__DummyDataParameter, n_height),
     offsetof(Lockstep__DummyDataParameter, height)},
    {"width", offsetof(Lockstep__DummyDataParameter, n_width),
     offsetof(Lockstep__DummyDataParameter, width)},
};

static size_t legacy_count(const Lockstep__DummyDataParameter *p, int extent)
{
    return *(const size_t *)((const char *)p + legacy[extent].count_offset);
}

static uint32_t legacy_value(const Lockstep__DummyDataParameter *p, int extent, int top)
{
    const uint32_t *values = *(uint32_t *const *)((const char *)p + legacy[extent].values_offset);
    return values[legacy_count(p, extent) == 1 ? 0 : top];
}

static bool is_legacy(const Lockstep__DummyDataParameter *p)
{
    return p->n_num > 0 || p->n_channels > 0 || p->n_height > 0 || p->n_width > 0;
}

/* Whether each list has one value, or one for each top. */
static int check_counts(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__DummyDataParameter *p = param_of(layer);
    const void *message = layer->definition->dummy_data_param;
    size_t tops = (size_t)layer->tops;
    int status = 0;
    if (p->n_data_filler > 1 && p->n_data_filler != tops)
        status = ls_layer_fail(layer, error, message, "data_filler", NULL,
                               "data_filler must be given at most once, or once for each of the "
                               "%zu tops; it is given %zu times",
                               tops, p->n_data_filler);
    if (!is_legacy(p)) {
        if (p->n_shape != 1 && p->n_shape != tops)
            status = ls_layer_fail(layer, error, message, "shape", NULL,
                                   "shape must be given once, or once for each of the %zu tops; it "
                                   "is given %zu times",
                                   tops, p->n_shape);
        return status;
    }
    if (p->n_shape > 0)
        status = ls_layer_fail(layer, error, message, "shape", "keep shape",
                               "shape and num, channels, height, width cannot both be given");
    for (int i = 0; i < 4; i++) {
        size_t count = legacy_count(p, i);
        if (count != 1 && count != tops)
            status = ls_layer_fail(layer, error, message, legacy[i].name, NULL,
                                   "%s must be given once, or once for each of the %zu tops; it is "
                                   "given %zu times",
                                   legacy[i].name, tops, count);
    }
    return status;
}

/* The shape of a top, once it is clear that there are enough of them. */
static int read_shape(const struct ls_layer *layer, struct ls_error *error, int top,
                      struct ls_shape *shape)
{
    const Lockstep__DummyDataParameter *p = layer->definition->dummy_data_param;
    if (!is_legacy(p))
        return ls_source_read_shape(layer, error, p->shape[p->n_shape == 1 ? 0 : top], 0, shape);
    *shape = (struct ls_shape){.rank = 4};
    for (int i = 0; i < 4; i++)
        shape->dim[i] = legacy_value(p, i, top);
    LS_TRY(ls_source_check_batch(layer, error, p, "num", shape->dim[0]));
    LS_TRY(ls_layer_check_shape(layer, error, "the top", shape));
    ls_source_cut(layer, 0, shape);
    return 0;
}

/* The filler of a top; NULL: zeros. */
static const Lockstep__FillerParameter *filler_of(const struct ls_layer *layer, int top)
{
    const Lockstep__DummyDataParameter *p = param_of(layer);
    if (p->n_data_filler == 0)
        return NULL;
    return p->data_filler[p->n_data_filler == 1 ? 0 : top];
}

static bool is_type(const Lockstep__FillerParameter *filler, const char *type)
{
    return strcmp(filler->type != NULL ? filler->type : "constant", type) == 0;
}

static int check_filler(const struct ls_layer *layer, struct ls_error *error, int top)
{
    const Lockstep__FillerParameter *filler = filler_of(layer, top);
    const char *hint = "use constant, uniform, integer, boxes, gaussian, xavier or msra";
    if (filler == NULL || is_type(filler, "constant") || is_type(filler, "uniform") ||
        is_type(filler, "integer") || is_type(filler, "boxes"))
        return 0;
    if (is_type(filler, "gaussian")) {
        if (filler->sparse < 0)
            return 0;
        return ls_layer_fail(layer, error, filler, "sparse", "remove it",
                             "sparse depends on the size of the batch and is for weights only");
    }
    if (is_type(filler, "xavier") || is_type(filler, "msra")) {
        if (filler->variance_norm == LOCKSTEP__FILLER_PARAMETER__VARIANCE_NORM__FAN_IN)
            return 0;
        return ls_layer_fail(layer, error, filler, "variance_norm", "use FAN_IN",
                             "FAN_OUT and AVERAGE depend on the size of the batch and are for "
                             "weights only");
    }
    if (is_type(filler, "positive_unitball") || is_type(filler, "bilinear"))
        return ls_layer_fail(layer, error, filler, "type", hint, "filler '%s' is for weights only",
                             filler->type);
    return ls_layer_fail(layer, error, filler, "type", hint, "there is no filler '%s'",
                         filler->type);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_counts(layer, error));
    int status = 0;
    for (int i = 0; i < layer->tops; i++) {
        struct ls_shape shape;
        int failed = read_shape(layer, error, i, &shape);
        status = failed != 0 ? failed : status;
        failed = check_filler(layer, error, i);
        status = failed != 0 ? failed : status;
    }
    return status;
}

static struct ls_fill_attr fill_of(const struct ls_layer *layer, int top)
{
    const Lockstep__FillerParameter *filler = filler_of(layer, top);
    const char *name = ls_layer_top_name(layer, top);
    struct ls_fill_attr fill = {.key = ls_random_key(layer->graph->seed, LS_RANDOM_DATA, name)};
    if (filler == NULL)
        return fill;
    if (is_type(filler, "constant"))
        fill.value = filler->value;
    else
        fill.filler = filler;
    return fill;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_graph *graph = layer->graph;
    for (int i = 0; i < layer->tops; i++) {
        struct ls_shape shape;
        LS_TRY(read_shape(layer, error, i, &shape));
        struct ls_value *y = ls_layer_make_top(layer, i, &shape, NULL);
        if (y != NULL) {
            y->sample_axis = 0;
            y->rows = 1;
        }
        struct ls_op *op = ls_graph_op(graph, LS_OP_FILL);
        ls_op_out(graph, op, y);
        if (op != NULL)
            op->attr.fill = fill_of(layer, i);
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    for (int i = 0; i < layer->tops; i++)
        cost->forward_bytes += ls_layer_bytes(layer->top[i]);
}

const struct ls_layer_type ls_layer_dummy_data = {
    .type = "DummyData",
    .parameter = "dummy_data_param",
    .tops_min = 1,
    .tops_max = -1,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
