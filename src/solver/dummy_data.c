/* Data layers become DummyData layers. See solver/dummy_data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/dummy_data.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "schema/data_layers.h"
#include "schema/language_net.h"
#include "solver/dummy_inputs.h"
#include "solver/dummy_labels.h"
#include "solver/dummy_messages.h"

/* What pictures may be like of which the definition does not say it: the first that fits is taken.
 */
static const struct {
    int64_t height, width;
} sizes[] = {{224, 224}, {227, 227}, {28, 28},   {32, 32},   {256, 256}, {299, 299},
             {300, 300}, {416, 416}, {544, 544}, {360, 480}, {500, 500}};
static const int64_t channels[] = {3, 1, 2};
enum { SIZES = sizeof sizes / sizeof *sizes, CHANNELS = sizeof channels / sizeof *channels };

/* The shape of pictures of which something is guessed. */
struct guessed {
    Lockstep__BlobShape *shape;
    bool size, channels;
};

/* The work on one net. */
struct dummy {
    const struct lockstep_dummy_options *options;
    struct ls_net_definition *definition;
    bool outside; /* Input layers get their data from the calling program */
    struct ls_arena *arena;
    struct ls_dummy_input *inputs;
    size_t input_count;
    int64_t batch;    /* what --input says about it; 0: nothing */
    int64_t replaces; /* the batch that the definition says in its place; 0: nothing */
    struct ls_dummy_label *labels;
    size_t label_count;
    bool *replaced;          /* by layer */
    bool *assumed;           /* by layer: the size of pictures */
    struct guessed *guessed; /* shapes that the definition does not say */
    size_t guessed_count;
    const char **missing; /* by layer: the source that is not there, or NULL */
    int status;           /* of looking for them */
    struct ls_error *error;
};

static struct ls_dummy_input *find_input(const struct dummy *dummy, const char *name)
{
    return ls_dummy_find_input(dummy->inputs, dummy->input_count, name);
}

/* ---- Which layers ---------------------------------------------------------------------------- */

static bool is_type(const Lockstep__LayerParameter *layer, const char *type)
{
    return layer->type != NULL && strcmp(layer->type, type) == 0;
}

/* Fills in the paths that a layer reads; how many there are. */
static size_t list_sources(const Lockstep__LayerParameter *layer, const char *const **sources,
                           const char **one)
{
    *sources = one;
    if (layer->data_param != NULL) {
        *sources = (const char *const *)layer->data_param->source;
        return layer->data_param->n_source;
    }
    *one = layer->window_data_param != NULL ? layer->window_data_param->source : NULL;
    return *one != NULL;
}

/* A source of the layer that is not there; NULL: all are, or dummy->status says what is wrong. */
static const char *find_missing(struct dummy *dummy, const Lockstep__LayerParameter *layer)
{
    const char *const *sources, *one, *missing = NULL;
    size_t count = list_sources(layer, &sources, &one);
    for (size_t i = 0; i < count && missing == NULL; i++) {
        char *path = ls_resolve_path(sources[i], dummy->definition->definition->file);
        if (path == NULL)
            dummy->status = ls_fail_memory(dummy->error, "a path");
        else if (!ls_file_exists(path) && !ls_is_directory(path))
            missing = sources[i];
        ls_free(path);
    }
    return missing;
}

static bool is_named(const struct dummy *dummy, const Lockstep__LayerParameter *layer)
{
    for (size_t t = 0; t < layer->n_top; t++)
        if (layer->n_bottom == 0 && find_input(dummy, layer->top[t]) != NULL)
            return true;
    return false;
}

/* Whether a layer is to be replaced. */
static bool is_wanted(struct dummy *dummy, size_t index)
{
    const Lockstep__LayerParameter *layer = dummy->definition->net->layer[index];
    if (ls_data_layer_takes_input(layer))
        return !dummy->outside;
    if (is_named(dummy, layer))
        return true;
    if (!ls_data_layer_reads(layer))
        return false;
    dummy->missing[index] = find_missing(dummy, layer);
    return dummy->options->all || dummy->missing[index] != NULL;
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* The batch of a layer: what --input says of one of its tops, or of the batch that the definition
 * gives it, too; layers of another batch, as that of steps beside that of pictures, keep theirs. */
static int64_t batch_of_layer(const struct dummy *dummy, size_t index,
                              const struct ls_dummy_picture *picture)
{
    const Lockstep__LayerParameter *layer = dummy->definition->net->layer[index];
    for (size_t t = 0; t < layer->n_top; t++) {
        const struct ls_dummy_input *input = find_input(dummy, layer->top[t]);
        if (input != NULL)
            return input->shape.dim[0];
    }
    const bool other =
        dummy->replaces > 0 && picture->batch > 0 && picture->batch != dummy->replaces;
    return dummy->batch > 0 && !other ? dummy->batch : picture->batch;
}

/* The shape of a top that is no label. */
static struct ls_shape picture_shape(struct dummy *dummy, size_t index,
                                     const struct ls_dummy_picture *picture)
{
    dummy->assumed[index] = picture->height == 0;
    return (struct ls_shape){4,
                             {batch_of_layer(dummy, index, picture),
                              picture->channels > 0 ? picture->channels : channels[0],
                              picture->height > 0 ? picture->height : sizes[0].height,
                              picture->width > 0 ? picture->width : sizes[0].width}};
}

/* ---- Tops ------------------------------------------------------------------------------------ */

/* Notes a label, whose shape may be known. */
static void add_label(struct dummy *dummy, size_t index, const char *name,
                      const struct ls_shape *shape)
{
    dummy->labels[dummy->label_count++] = (struct ls_dummy_label){
        .name = name,
        .layer = index,
        .shape = *shape,
        .tokens = ls_language_data_window(dummy->definition->net->layer[index]) > 0};
}

/* The shape and the filler of a top; labels get theirs later. */
static bool set_top(struct dummy *dummy, size_t index, size_t top,
                    const struct ls_dummy_picture *picture, Lockstep__DummyDataParameter *param)
{
    const Lockstep__LayerParameter *layer = dummy->definition->net->layer[index];
    const char *name = layer->top[top];
    struct ls_dummy_input *input = find_input(dummy, name);
    const int64_t batch = batch_of_layer(dummy, index, picture);
    struct ls_shape shape = ls_dummy_known_shape(layer, top, batch);
    if (input != NULL) {
        shape = input->shape;
        input->used = true;
    }
    bool guessed = false;
    if (ls_dummy_is_label(dummy->definition->net, index, name) || (top > 0 && shape.rank == 0)) {
        add_label(dummy, index, name, &shape);
        if (shape.rank == 0) /* until it is known */
            shape = (struct ls_shape){1, {batch}};
    } else if (shape.rank == 0) {
        shape = picture_shape(dummy, index, picture);
        guessed = picture->height == 0 || picture->channels == 0;
    }
    param->shape[top] = ls_dummy_make_shape(dummy->arena, &shape);
    if (guessed)
        dummy->guessed[dummy->guessed_count++] =
            (struct guessed){param->shape[top], picture->height == 0, picture->channels == 0};
    param->data_filler[top] =
        ls_dummy_make_filler(dummy->arena, "uniform", picture->low, picture->high);
    return param->shape[top] != NULL && param->data_filler[top] != NULL;
}

static int replace(struct dummy *dummy, size_t index)
{
    Lockstep__LayerParameter *layer = dummy->definition->net->layer[index];
    const struct ls_dummy_picture picture = ls_dummy_describe(layer);
    Lockstep__DummyDataParameter *param = (Lockstep__DummyDataParameter *)(void *)ls_arena_message(
        dummy->arena, &lockstep__dummy_data_parameter__descriptor);
    if (param == NULL)
        return ls_fail_memory(dummy->error, "dummy data");
    param->n_shape = param->n_data_filler = layer->n_top;
    param->shape = ls_arena_alloc(dummy->arena, layer->n_top + 1, sizeof(Lockstep__BlobShape *));
    param->data_filler =
        ls_arena_alloc(dummy->arena, layer->n_top + 1, sizeof(Lockstep__FillerParameter *));
    bool made = param->shape != NULL && param->data_filler != NULL;
    for (size_t t = 0; t < layer->n_top && made; t++)
        made = set_top(dummy, index, t, &picture, param);
    ls_dummy_clear_parameters(layer);
    layer->dummy_data_param = param;
    layer->type = ls_arena_copy_string(dummy->arena, "DummyData");
    dummy->replaced[index] = true;
    return made && layer->type != NULL ? 0 : ls_fail_memory(dummy->error, "dummy data");
}

/* An Input layer that stays one gets the shapes that the caller says. */
static int reshape_input(struct dummy *dummy, size_t index)
{
    Lockstep__LayerParameter *layer = dummy->definition->net->layer[index];
    if (layer->input_param == NULL || !is_named(dummy, layer))
        return 0;
    Lockstep__InputParameter *param = ls_arena_alloc(dummy->arena, 1, sizeof *param);
    if (param == NULL)
        return ls_fail_memory(dummy->error, "dummy data");
    *param = *layer->input_param;
    param->n_shape = layer->n_top;
    param->shape = ls_arena_alloc(dummy->arena, layer->n_top + 1, sizeof *param->shape);
    for (size_t t = 0; t < layer->n_top && param->shape != NULL; t++) {
        struct ls_dummy_input *input = find_input(dummy, layer->top[t]);
        struct ls_shape shape = ls_dummy_input_shape(layer, t);
        if (input != NULL) {
            shape = input->shape;
            input->used = true;
        }
        param->shape[t] = ls_dummy_make_shape(dummy->arena, &shape);
        if (param->shape[t] == NULL)
            return ls_fail_memory(dummy->error, "dummy data");
    }
    layer->input_param = param;
    return param->shape != NULL ? 0 : ls_fail_memory(dummy->error, "dummy data");
}

/* ---- Labels ---------------------------------------------------------------------------------- */

/* Where nothing is known of a label it is 0 for each sample. */
static int set_label(struct dummy *dummy, const struct ls_dummy_label *label, int64_t batch)
{
    Lockstep__LayerParameter *layer = dummy->definition->net->layer[label->layer];
    Lockstep__DummyDataParameter *param = layer->dummy_data_param;
    const struct ls_shape known =
        label->shape.rank > 0 ? label->shape : (struct ls_shape){1, {batch}};
    const bool any = label->classes == 0 && label->shape.rank > 1 && !label->tokens;
    for (size_t t = 0; t < layer->n_top; t++)
        if (strcmp(layer->top[t], label->name) == 0) {
            param->shape[t] = ls_dummy_make_shape(dummy->arena, &known);
            param->data_filler[t] =
                label->boxes
                    ? ls_dummy_make_filler(dummy->arena, "boxes", 1,
                                           label->classes > 1 ? (double)(label->classes - 1) : 1)
                : any ? ls_dummy_make_filler(dummy->arena, "uniform", 0, 1)
                      : ls_dummy_make_filler(dummy->arena, "integer", 0,
                                             label->classes > 0 ? (double)(label->classes - 1) : 0);
            if (param->shape[t] == NULL || param->data_filler[t] == NULL)
                return ls_fail_memory(dummy->error, "dummy data");
        }
    return 0;
}

/* Shapes that the definition does not say become those of guess `which`; false: nothing would be
 * other than in the one before. */
static bool apply_guess(struct dummy *dummy, size_t which)
{
    const size_t size = which % SIZES, channel = which / SIZES;
    bool other = which == 0;
    for (size_t i = 0; i < dummy->guessed_count; i++) {
        const struct guessed *guessed = &dummy->guessed[i];
        if (guessed->shape == NULL)
            continue;
        if (guessed->channels)
            guessed->shape->dim[1] = channels[channel];
        if (guessed->size) {
            guessed->shape->dim[2] = sizes[size].height;
            guessed->shape->dim[3] = sizes[size].width;
        }
        other = other || guessed->size || (guessed->channels && size == 0);
    }
    return other;
}

/* Finds sizes that the net fits, where the definition does not say them, and what labels are like.
 */
static void fit(struct dummy *dummy, int64_t batch)
{
    bool fits = false;
    for (size_t i = 0; i < (size_t)SIZES * CHANNELS && !fits; i++)
        if (apply_guess(dummy, i))
            fits =
                ls_dummy_find_labels(dummy->definition, batch, dummy->labels, dummy->label_count);
    if (!fits) /* what is wrong is told of the first guess */
        apply_guess(dummy, 0);
}

/* Labels of which all is known; others may be compared with what the net computes of them, and are
 * looked at once more. */
static int settle(struct dummy *dummy, int64_t batch)
{
    bool any = false;
    for (size_t i = 0; i < dummy->label_count; i++) {
        struct ls_dummy_label *label = &dummy->labels[i];
        if (label->classes == 0 || label->shape.rank == 0 || label->boxes)
            continue;
        LS_TRY(set_label(dummy, label, batch));
        label->settled = any = true;
    }
    if (any)
        ls_dummy_find_labels(dummy->definition, batch, dummy->labels, dummy->label_count);
    return 0;
}

static int64_t batch_of(const Lockstep__LayerParameter *layer)
{
    const Lockstep__BlobShape *first = layer->dummy_data_param->shape[0];
    return first->n_dim > 0 ? first->dim[0] : 1;
}

static int set_labels(struct dummy *dummy)
{
    const Lockstep__NetParameter *net = dummy->definition->net;
    bool fitted = false;
    for (size_t i = 0; i < net->n_layer && !fitted; i++)
        if (dummy->replaced[i] && net->layer[i]->n_top > 0) {
            fit(dummy, batch_of(net->layer[i]));
            LS_TRY(settle(dummy, batch_of(net->layer[i])));
            fitted = true;
        }
    for (size_t i = 0; i < dummy->label_count; i++)
        LS_TRY(set_label(dummy, &dummy->labels[i], batch_of(net->layer[dummy->labels[i].layer])));
    return 0;
}

/* ---- What was done --------------------------------------------------------------------------- */

static void tell_top(struct ls_text *text, const Lockstep__LayerParameter *layer, size_t top)
{
    const Lockstep__DummyDataParameter *param = layer->dummy_data_param;
    ls_text_format(text, "%s %s", top > 0 ? "," : ":", layer->top[top]);
    for (size_t i = 0; i < param->shape[top]->n_dim; i++)
        ls_text_format(text, "%s%" PRId64, i > 0 ? " x " : " ", param->shape[top]->dim[i]);
    if (strcmp(param->data_filler[top]->type, "boxes") == 0)
        ls_text_format(text, " (boxes of classes 1 to %.0f)", (double)param->data_filler[top]->max);
    if (strcmp(param->data_filler[top]->type, "integer") == 0)
        ls_text_format(text, " (whole numbers from 0 to %.0f)",
                       (double)param->data_filler[top]->max);
}

/* Markers and indices whose shape nothing says. */
static bool is_unknown(const struct ls_dummy_label *label, size_t index)
{
    return label->layer == index && label->shape.rank == 0 && label->classes > 0;
}

static void tell_unknown(const struct dummy *dummy, size_t index, struct ls_text *text)
{
    const char *first = NULL;
    for (size_t i = 0; i < dummy->label_count; i++) {
        const struct ls_dummy_label *label = &dummy->labels[i];
        if (!is_unknown(label, index))
            continue;
        ls_text_format(text, "%s%s", first != NULL ? ", " : "; nothing says the shape of ",
                       label->name);
        first = first != NULL ? first : label->name;
    }
    if (first != NULL)
        ls_text_format(text, ": --input %s=%" PRId64 ",... does", first,
                       batch_of(dummy->definition->net->layer[index]));
}

static int tell(const struct dummy *dummy, size_t index)
{
    const Lockstep__NetParameter *net = dummy->definition->net;
    const Lockstep__LayerParameter *layer = net->layer[index];
    struct ls_text text = {0};
    ls_text_format(&text, "layer '%s' (%s): random data", layer->name != NULL ? layer->name : "",
                   net->state->phase == LOCKSTEP__PHASE__TRAIN ? "train" : "test");
    if (dummy->missing[index] != NULL)
        ls_text_format(&text, ", for there is no '%s'", dummy->missing[index]);
    for (size_t t = 0; t < layer->n_top; t++)
        tell_top(&text, layer, t);
    if (dummy->assumed[index])
        ls_text_format(&text,
                       "; the size is assumed, as the definition does not say it: --input "
                       "%s=N,C,H,W does",
                       layer->top[0]);
    tell_unknown(dummy, index, &text);
    const bool failed = text.failed;
    if (!failed && dummy->options->tell != NULL)
        dummy->options->tell(dummy->options->user, text.data);
    ls_text_free(&text);
    return failed ? ls_fail_memory(dummy->error, "dummy data") : 0;
}

/* ---- A net ----------------------------------------------------------------------------------- */

/* Dummy pictures have no sizes that a file could tell. */
static int forget_sizes(struct dummy *dummy, Lockstep__LayerParameter *layer)
{
    Lockstep__DetectionEvaluateParameter *param = layer->detection_evaluate_param;
    if (param == NULL || param->name_size_file == NULL || param->name_size_file[0] == '\0')
        return 0;
    struct ls_text text = {0};
    ls_text_format(&text, "%s: name_size_file is left out: dummy data have no sizes of pictures",
                   layer->name != NULL ? layer->name : "");
    const bool failed = text.failed;
    if (!failed && dummy->options->tell != NULL)
        dummy->options->tell(dummy->options->user, text.data);
    ls_text_free(&text);
    param->name_size_file = NULL;
    param->resize_param = NULL;
    return failed ? ls_fail_memory(dummy->error, "dummy data") : 0;
}

/* Layers that normalise by saved averages, which random weights do not have. */
static int tell_averages(const struct dummy *dummy)
{
    const Lockstep__NetParameter *net = dummy->definition->net;
    size_t count = 0;
    for (size_t i = 0; i < net->n_layer; i++) {
        const Lockstep__BatchNormParameter *param = net->layer[i]->batch_norm_param;
        count += param != NULL && param->use_global_stats;
    }
    if (count == 0 || dummy->options->tell == NULL)
        return 0;
    struct ls_text text = {0};
    ls_text_format(&text,
                   "%zu layer%s (%s) normalise%s by saved averages: mean 0 and variance 1, unless "
                   "--weights brings others",
                   count, count > 1 ? "s" : "",
                   net->state->phase == LOCKSTEP__PHASE__TRAIN ? "train" : "test",
                   count > 1 ? "" : "s");
    const bool failed = text.failed;
    if (!failed)
        dummy->options->tell(dummy->options->user, text.data);
    ls_text_free(&text);
    return failed ? ls_fail_memory(dummy->error, "dummy data") : 0;
}

/* The first shape that is given says what the batch is, and the definition what it was. */
static void take_batch(struct dummy *dummy, const Lockstep__LayerParameter *layer,
                       const struct ls_dummy_input *input)
{
    const struct ls_shape shape = ls_dummy_input_shape(layer, 0);
    dummy->batch = input->shape.dim[0];
    dummy->replaces = shape.rank > 0 ? shape.dim[0] : ls_dummy_describe(layer).batch;
}

/* The net is one of dummy data while it is looked at, and stays one if a layer became such. */
static int replace_all(struct dummy *dummy)
{
    const Lockstep__NetParameter *net = dummy->definition->net;
    bool replaced = false;
    for (size_t i = 0; i < net->n_layer; i++)
        for (size_t t = 0; t < net->layer[i]->n_top && dummy->batch == 0; t++) {
            const struct ls_dummy_input *input = find_input(dummy, net->layer[i]->top[t]);
            if (input != NULL && net->layer[i]->n_bottom == 0)
                take_batch(dummy, net->layer[i], input);
        }
    for (size_t i = 0; i < net->n_layer; i++) {
        if (is_wanted(dummy, i))
            LS_TRY(replace(dummy, i));
        else if (is_type(net->layer[i], "Input"))
            LS_TRY(reshape_input(dummy, i));
        LS_TRY(dummy->status);
    }
    LS_TRY(set_labels(dummy));
    for (size_t i = 0; i < net->n_layer; i++)
        if (dummy->replaced[i]) {
            replaced = true;
            LS_TRY(tell(dummy, i));
        }
    dummy->definition->dummy = replaced || dummy->options->all || dummy->outside;
    for (size_t i = 0; replaced && i < net->n_layer; i++)
        LS_TRY(forget_sizes(dummy, net->layer[i]));
    return replaced ? tell_averages(dummy) : 0;
}

static int dummy_net(struct ls_net_definition *definition,
                     const struct lockstep_dummy_options *options, bool outside,
                     struct ls_dummy_input *inputs, size_t input_count, struct ls_error *error)
{
    const Lockstep__NetParameter *net = definition->net;
    struct dummy dummy = {.options = options,
                          .definition = definition,
                          .outside = outside,
                          .arena = definition->definition->arena,
                          .inputs = inputs,
                          .input_count = input_count,
                          .error = error};
    size_t tops = 1;
    definition->dummy = true;
    for (size_t i = 0; i < net->n_layer; i++)
        tops += net->layer[i]->n_top;
    dummy.labels = ls_alloc(tops, sizeof *dummy.labels);
    dummy.replaced = ls_alloc(net->n_layer + 1, sizeof *dummy.replaced);
    dummy.assumed = ls_alloc(net->n_layer + 1, sizeof *dummy.assumed);
    dummy.missing = ls_alloc(net->n_layer + 1, sizeof *dummy.missing);
    dummy.guessed = ls_alloc(tops, sizeof *dummy.guessed);
    int status = 0;
    if (dummy.labels == NULL || dummy.replaced == NULL || dummy.assumed == NULL ||
        dummy.missing == NULL || dummy.guessed == NULL)
        status = ls_fail_memory(error, "dummy data");
    else
        status = replace_all(&dummy);
    ls_free(dummy.labels);
    ls_free(dummy.guessed);
    ls_free(dummy.replaced);
    ls_free(dummy.assumed);
    ls_free((void *)dummy.missing);
    return status;
}

int ls_dummy_data_net(struct ls_net_definition *net, const struct lockstep_dummy_options *options,
                      struct ls_error *error)
{
    struct ls_dummy_input *inputs = ls_alloc(LS_DUMMY_INPUTS_MAX, sizeof *inputs);
    size_t count = 0;
    if (inputs == NULL)
        return ls_fail_memory(error, "dummy data");
    int status = ls_dummy_read_inputs(options, inputs, &count, error);
    if (status == 0)
        status = dummy_net(net, options, true, inputs, count, error);
    if (status == 0)
        status = ls_dummy_check_inputs(inputs, count, error);
    ls_free(inputs);
    return status;
}

int ls_dummy_data_solver(struct ls_solver_definition *solver,
                         const struct lockstep_dummy_options *options, struct ls_error *error)
{
    struct ls_dummy_input *inputs = ls_alloc(LS_DUMMY_INPUTS_MAX, sizeof *inputs);
    size_t count = 0;
    if (inputs == NULL)
        return ls_fail_memory(error, "dummy data");
    int status = ls_dummy_read_inputs(options, inputs, &count, error);
    if (status == 0)
        status = dummy_net(&solver->train, options, false, inputs, count, error);
    for (size_t i = 0; i < solver->test_count && status == 0; i++)
        status = dummy_net(&solver->test[i], options, false, inputs, count, error);
    if (status == 0)
        status = ls_dummy_check_inputs(inputs, count, error);
    ls_free(inputs);
    return status;
}
