/* A layer of a plugin's type: what the plugin says of it is checked and becomes ops, and the ops
 * call the plugin.
 *
 * The plugin is told settings, shapes and the phase, and answers with shapes of tops and blobs. Its
 * op hands it the bottoms and blobs, and backward the gradients of the tops; what it writes is
 * looked at, because a number that is not finite would be found much later and far away. See
 * include/lockstep/plugin.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/align.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "layers/common.h"
#include "layers/plugins.h"

static const size_t SCRATCH_MAX = (size_t)1 << 40;

/* What a layer keeps; behind it lies the plugin's own state. */
struct plugin_state {
    const struct ls_layer *layer;
    const struct lockstep_plugin_layer *of;
    struct lockstep_plugin_setup setup;
    struct lockstep_plugin_shape bottom[LOCKSTEP_PLUGIN_VALUES];
    uint64_t key;
};

/* ---- Setup ----------------------------------------------------------------------------------- */

static bool shape_ok(const struct lockstep_plugin_shape *shape)
{
    struct ls_shape own = {.rank = shape->axes};
    if (shape->axes < 0 || shape->axes > LOCKSTEP_PLUGIN_AXES || shape->axes > LS_RANK_MAX)
        return false;
    memcpy(own.dim, shape->dim, (size_t)shape->axes * sizeof *own.dim);
    return ls_shape_valid(&own, false);
}

bool ls_plugin_setup_ok(const struct lockstep_plugin_setup *setup, int64_t samples, char *message,
                        size_t size)
{
    for (int i = 0; i < setup->tops; i++) {
        const struct lockstep_plugin_shape *top = &setup->top[i];
        if (!shape_ok(top) || top->axes < 1) {
            snprintf(message, size, "the shape of top %d cannot be", i);
            return false;
        }
        if (samples > 0 && top->dim[0] != samples) {
            snprintf(message, size, "axis 0 of top %d has %lld rows for %lld samples", i,
                     (long long)top->dim[0], (long long)samples);
            return false;
        }
    }
    if (setup->blobs < 0 || setup->blobs > LOCKSTEP_PLUGIN_BLOBS) {
        snprintf(message, size, "a layer cannot have %d blobs", setup->blobs);
        return false;
    }
    for (int i = 0; i < setup->blobs; i++) {
        const struct lockstep_plugin_blob *blob = &setup->blob[i];
        if (!shape_ok(&blob->shape)) {
            snprintf(message, size, "the shape of blob %d cannot be", i);
            return false;
        }
        if (blob->uniform ? !isfinite(blob->minimum) || !isfinite(blob->maximum)
                          : !isfinite(blob->constant)) {
            snprintf(message, size, "blob %d begins with a number that is not finite", i);
            return false;
        }
    }
    if (setup->scratch_bytes > SCRATCH_MAX) {
        snprintf(message, size, "a layer cannot have %zu bytes of scratch", setup->scratch_bytes);
        return false;
    }
    return true;
}

static struct ls_shape to_shape(const struct lockstep_plugin_shape *from)
{
    struct ls_shape shape = {.rank = from->axes};
    memcpy(shape.dim, from->dim, (size_t)from->axes * sizeof *shape.dim);
    return shape;
}

/* The bottoms as the plugin sees them. */
static int describe_bottoms(const struct ls_layer *layer, struct plugin_state *state,
                            struct ls_error *error)
{
    const bool mixes = (state->of->flags & LOCKSTEP_PLUGIN_MIXES) != 0;
    for (int i = 0; i < layer->bottoms; i++) {
        const struct ls_shape *shape = &layer->bottom[i]->shape;
        LS_TRY(ls_layer_check_samples(layer, error, i));
        if (!mixes)
            LS_TRY(ls_layer_check_alike(layer, error, i));
        if (shape->rank > LOCKSTEP_PLUGIN_AXES)
            return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                                 "its bottom '%s' has %d axes, and plugins take up to %d",
                                 layer->bottom[i]->name, shape->rank, LOCKSTEP_PLUGIN_AXES);
        state->bottom[i].axes = shape->rank;
        memcpy(state->bottom[i].dim, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
    }
    return 0;
}

/* Asks the plugin; what it answers is in state->setup. */
static int ask(struct ls_layer *layer, struct plugin_state *state, struct ls_error *error)
{
    const Lockstep__PluginParameter *param = layer->definition->plugin_param;
    size_t count = param != NULL ? param->n_set : 0;
    struct lockstep_plugin_setting *settings = ls_alloc(count + 1, sizeof *settings);
    if (settings == NULL)
        return ls_fail_memory(error, "the settings of a plugin");
    for (size_t i = 0; i < count; i++)
        settings[i] = (struct lockstep_plugin_setting){
            param->set[i]->key, (const char *const *)param->set[i]->value, param->set[i]->n_value};
    struct lockstep_plugin_setup *setup = &state->setup;
    setup->struct_size = sizeof *setup;
    setup->layer = layer->name;
    setup->test = layer->graph->phase != LOCKSTEP__PHASE__TRAIN;
    setup->settings = settings;
    setup->setting_count = count;
    setup->bottoms = layer->bottoms;
    setup->bottom = state->bottom;
    setup->tops = layer->tops;
    setup->state = (char *)layer->state + ls_align(sizeof *state);
    const uint64_t mode = ls_float_mode();
    int status = state->of->setup(setup);
    ls_restore_float_mode(mode);
    ls_free(settings);
    setup->settings = NULL; /* a plugin that keeps them finds nothing */
    setup->setting_count = 0;
    setup->message[sizeof setup->message - 1] = '\0';
    if (status == 0)
        return 0;
    return ls_layer_fail(layer, error, param, NULL, NULL, "%s",
                         setup->message[0] != '\0' ? setup->message
                                                   : "the plugin refuses this layer");
}

static int request_blobs(struct ls_layer *layer, struct plugin_state *state, struct ls_error *error)
{
    static const char *const names[LOCKSTEP_PLUGIN_BLOBS] = {"0", "1", "2", "3",
                                                             "4", "5", "6", "7"};
    layer->blobs = state->setup.blobs;
    for (int i = 0; i < layer->blobs; i++) {
        const struct lockstep_plugin_blob *blob = &state->setup.blob[i];
        static const Lockstep__FillerParameter defaults = LOCKSTEP__FILLER_PARAMETER__INIT;
        Lockstep__FillerParameter filler;
        memcpy(&filler, &defaults, sizeof filler); /* its gaps, too, for equal ones are one */
        filler.type = blob->uniform ? (char *)"uniform" : (char *)"constant";
        filler.has_value = !blob->uniform;
        filler.has_min = filler.has_max = blob->uniform != 0;
        filler.value = blob->uniform ? filler.value : blob->constant;
        filler.min = blob->uniform ? blob->minimum : filler.min;
        filler.max = blob->uniform ? blob->maximum : filler.max;
        layer->request[i] = (struct ls_blob_request){.name = names[i],
                                                     .shape = to_shape(&blob->shape),
                                                     .filler = ls_plugin_keep_filler(&filler)};
        if (layer->request[i].filler == NULL)
            return ls_fail_memory(error, "a filler");
    }
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct plugin_state *state = layer->state;
    char message[200];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->layer = layer;
    state->of = ls_plugin_type_of(layer->type)->layer;
    state->key = ls_random_key(layer->graph->seed, LS_RANDOM_PLUGIN, layer->name);
    LS_TRY(describe_bottoms(layer, state, error));
    LS_TRY(ask(layer, state, error));
    const bool mixes = (state->of->flags & LOCKSTEP_PLUGIN_MIXES) != 0;
    if (!ls_plugin_setup_ok(&state->setup, mixes ? 0 : state->bottom[0].dim[0], message,
                            sizeof message))
        return ls_layer_fail(layer, error, NULL, NULL, "this is a mistake of the plugin's", "%s",
                             message);
    return request_blobs(layer, state, error);
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool all_finite(const float *numbers, const struct ls_value *value)
{
    const int64_t count = numbers != NULL && value != NULL ? ls_shape_size(&value->shape) : 0;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return false;
    return true;
}

/* Whether numbers that are not finite came from the plugin: what it was handed was finite. */
static bool made_infinite(const struct ls_op *op, void *const *in, void *const *out)
{
    bool outputs = true, inputs = true;
    for (int i = 0; i < op->outputs && outputs; i++)
        outputs = all_finite(out[i], op->output[i]);
    if (outputs)
        return false;
    for (int i = 0; i < op->inputs && inputs; i++)
        inputs = all_finite(in[i], op->input[i]);
    return inputs;
}

static int run_failed(const struct plugin_state *state, const char *pass, const char *message,
                      struct ls_error *error)
{
    return ls_layer_fail(state->layer, error, NULL, "type",
                         "'lockstep check-plugin' tests the types of a plugin",
                         "%s of plugin '%s' failed: %s", pass, state->layer->type->plugin->file,
                         message[0] != '\0' ? message : "it does not say why");
}

/* Calls the plugin with the values of an op, which lie as ir/ops.def says. What it sets in the
 * thread's floating-point unit, other ops of the worker must not see. */
static int run(const struct ls_op *op, void *const *in, void *const *out, void *scratch,
               int64_t first_ordinal, struct ls_error *error)
{
    const struct plugin_state *state = op->attr.plugin.instance;
    const struct ls_layer *layer = state->layer;
    const bool backward = op->kind == LS_OP_PLUGIN_BACKWARD;
    const bool tops = backward && (state->of->flags & LOCKSTEP_PLUGIN_READS_TOPS) != 0;
    char message[LOCKSTEP_PLUGIN_TEXT] = "";
    void *const *bottoms = in + (backward ? layer->tops : 0), *const *behind =
                                                                  bottoms + layer->bottoms;
    struct lockstep_plugin_call call = {
        .struct_size = sizeof call,
        .state = state->setup.state,
        .first_ordinal = first_ordinal,
        .key = state->key,
        .bottom = (const float *const *)bottoms,
        .blob = (const float *const *)(behind + (tops ? layer->tops : 0)),
        .scratch = scratch,
        .message = message,
    };
    if (!backward)
        call.top = (float *const *)out;
    else if (tops)
        call.top = (float *const *)behind;
    if (backward) {
        call.top_gradient = (const float *const *)in;
        call.bottom_gradient = (float *const *)out;
        call.blob_gradient = (float *const *)(out + layer->bottoms);
    }
    const uint64_t mode = ls_float_mode();
    int status = backward ? state->of->backward(&call) : state->of->forward(&call);
    ls_restore_float_mode(mode);
    message[sizeof message - 1] = '\0';
    if (status != 0)
        return run_failed(state, backward ? "backward" : "forward", message, error);
    if (made_infinite(op, in, out))
        return run_failed(state, backward ? "backward" : "forward",
                          "it made a number that is not finite of numbers that are", error);
    return 0;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static struct ls_op *emit(struct ls_layer *layer, enum ls_op_kind kind)
{
    const struct plugin_state *state = layer->state;
    struct ls_op *op = ls_graph_op(layer->graph, kind);
    if (op != NULL)
        op->attr.plugin = (struct ls_plugin_attr){run, state, state->setup.scratch_bytes};
    return op;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct plugin_state *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_op *op = emit(layer, LS_OP_PLUGIN);
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_in(graph, op, layer->bottom[i]);
    for (int i = 0; i < layer->blobs; i++)
        ls_op_in(graph, op, ls_graph_parameter(graph, layer, i));
    for (int i = 0; i < layer->tops; i++) {
        struct ls_shape shape = to_shape(&state->setup.top[i]);
        ls_op_out(graph, op, ls_layer_make_top(layer, i, &shape, layer->bottom[0]));
    }
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct plugin_state *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *gradient[LOCKSTEP_PLUGIN_VALUES + LOCKSTEP_PLUGIN_BLOBS] = {NULL};
    struct ls_value **of_blob = gradient + LOCKSTEP_PLUGIN_VALUES;
    struct ls_op *op = emit(layer, LS_OP_PLUGIN_BACKWARD);
    for (int i = 0; i < layer->tops; i++)
        ls_op_in(graph, op, ls_graph_gradient(graph, layer->top[i]));
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_in(graph, op, layer->bottom[i]);
    for (int i = 0; i < layer->tops && (state->of->flags & LOCKSTEP_PLUGIN_READS_TOPS) != 0; i++)
        ls_op_in(graph, op, layer->top[i]);
    for (int i = 0; i < layer->blobs; i++)
        ls_op_in(graph, op, ls_graph_parameter(graph, layer, i));
    for (int i = 0; i < layer->bottoms; i++) {
        if (layer->propagate[i])
            gradient[i] = ls_graph_gradient_value(graph, layer->bottom[i]);
        ls_op_out(graph, op, gradient[i]);
    }
    for (int i = 0; i < layer->blobs; i++) {
        if (layer->train_blob[i])
            of_blob[i] = ls_graph_parameter_gradient(graph, layer, i);
        ls_op_out(graph, op, of_blob[i]);
    }
    for (int i = 0; i < layer->blobs; i++)
        if (of_blob[i] != NULL)
            ls_graph_accumulate(graph, layer, i, of_blob[i]);
    for (int i = 0; i < layer->bottoms; i++)
        if (gradient[i] != NULL)
            ls_graph_add_gradient(graph, layer->bottom[i], gradient[i]);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double bytes = 0, backward = 0;
    for (int i = 0; i < layer->bottoms; i++) {
        bytes += ls_layer_bytes(layer->bottom[i]);
        backward += ls_layer_has_gradient(layer, i) ? ls_layer_bytes(layer->bottom[i]) : 0;
    }
    for (int i = 0; i < layer->tops; i++)
        bytes += ls_layer_bytes(layer->top[i]);
    cost->forward_bytes = bytes;
    cost->backward_bytes = backward > 0 ? bytes + backward : 0;
}

void ls_plugin_fill_type(struct ls_plugin_type *type)
{
    const struct lockstep_plugin_layer *layer = type->layer;
    struct ls_layer_type *to = &type->type;
    to->type = layer->type;
    to->parameter = "plugin_param";
    to->state_size = ls_align(sizeof(struct plugin_state)) + layer->state_size;
    to->bottoms_min = layer->bottoms_min;
    to->bottoms_max = layer->bottoms_max;
    to->tops_min = layer->tops_min;
    to->tops_max = layer->tops_max;
    to->is_random = true; /* its key goes by the layer's name */
    to->mixes_samples = (layer->flags & LOCKSTEP_PLUGIN_MIXES) != 0;
    to->setup = setup;
    to->forward = forward;
    to->backward = layer->backward != NULL ? backward : NULL;
    to->cost = cost;
}
