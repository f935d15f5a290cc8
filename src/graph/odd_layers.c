/* What a net computes although it cannot be meant. See graph/odd_layers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/odd_layers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ir/layer.h"
#include "ir/taken.h"

struct teller {
    const struct ls_graph *graph;
    void (*say)(void *user, const char *sentence);
    void *user;
};

static void tell(const struct teller *teller, const struct ls_layer *layer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(const struct teller *teller, const struct ls_layer *layer, const char *format, ...)
{
    char place[LS_PLACE_SIZE], sentence[400];
    struct ls_text text = {0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    ls_layer_place(layer, NULL, NULL, place);
    ls_text_format(&text, "%s: %s: %s", place, layer->name, sentence);
    if (!text.failed)
        teller->say(teller->user, text.data);
    ls_text_free(&text);
}

static bool is_type(const struct ls_layer *layer, const char *type)
{
    return strcmp(layer->type->type, type) == 0;
}

/* The layer that computes a bottom: those that change no number are passed over. */
static const struct ls_layer *maker_of(const struct ls_graph *graph, const struct ls_layer *reader,
                                       int bottom)
{
    static const char *const passes[] = {"Split", "Flatten", "Reshape", "Permute", "Slice"};
    const struct ls_value *value = reader->bottom[bottom];
    for (int i = reader->index; i-- > 0;) {
        const struct ls_layer *layer = graph->layers[i];
        bool makes = false, only_passes = false;
        for (int t = 0; t < layer->tops; t++)
            makes = makes || (layer->top[t] != NULL && layer->top[t] == value);
        if (!makes)
            continue;
        for (size_t p = 0; p < sizeof passes / sizeof *passes; p++)
            only_passes = only_passes || is_type(layer, passes[p]);
        if (!only_passes || layer->bottoms == 0)
            return layer;
        value = layer->bottom[0];
    }
    return NULL;
}

/* What losses apply to their scores, or expect to have been applied. */
static void tell_applied_twice(const struct teller *teller, const struct ls_layer *layer)
{
    static const struct {
        const char *loss, *maker, *applies;
    } twice[] = {
        {"SoftmaxWithLoss", "Softmax", "a softmax"},
        {"SoftmaxWithLoss", "Sigmoid", "a softmax"},
        {"InfogainLoss", "Softmax", "a softmax"},
        {"InfogainLoss", "Sigmoid", "a softmax"},
        {"SigmoidCrossEntropyLoss", "Sigmoid", "a sigmoid"},
        {"SigmoidCrossEntropyLoss", "Softmax", "a sigmoid"},
    };
    static const char *const scores[] = {"InnerProduct", "Convolution", "Deconvolution"};
    const struct ls_layer *maker = maker_of(teller->graph, layer, 0);
    if (maker == NULL)
        return;
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++)
        if (is_type(layer, twice[i].loss) && is_type(maker, twice[i].maker))
            tell(teller, layer,
                 "it applies %s itself, to what the %s layer '%.100s' has made already: take the "
                 "scores in front of that",
                 twice[i].applies, twice[i].maker, maker->name);
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
        if (is_type(layer, "MultinomialLogisticLoss") && is_type(maker, scores[i]))
            tell(teller, layer,
                 "it takes probabilities, and gets the scores of layer '%.100s': SoftmaxWithLoss "
                 "takes those",
                 maker->name);
}

static void tell_weights(const struct teller *teller, const struct ls_layer *layer)
{
    const Lockstep__LossParameter *param = layer->definition->loss_param;
    if (param == NULL || param->n_class_weight == 0)
        return;
    for (size_t i = 0; i < param->n_class_weight; i++)
        if (param->class_weight[i] != 0)
            return;
    tell(teller, layer, "class_weight is 0 for each class, so that its loss is 0");
}

/* Ops that have one class to choose from. */
static void tell_one_class(const struct teller *teller, const struct ls_op *op)
{
    struct ls_taken taken;
    if (op->layer == NULL || op->backward)
        return;
    if (ls_taken_by(op, &taken) && taken.kind == LS_TAKEN_CLASSES && taken.count == 1 &&
        op->kind != LS_OP_HINGE_LOSS)
        tell(teller, op->layer, "it has one class, so that %s whatever the net computes",
             op->layer->type->is_loss ? "its loss is 0" : "all is right");
    else if (op->kind == LS_OP_SOFTMAX && op->input[0]->shape.dim[op->attr.axis] == 1)
        tell(teller, op->layer, "it has one number to choose from, so that its top is 1");
}

static void tell_unread(const struct teller *teller, const struct ls_layer *layer)
{
    if (is_type(layer, "EvalDetection") && layer->bottoms > 2)
        tell(teller, layer, "its bottom '%.100s' is not read", layer->bottom[2]->name);
}

void ls_graph_tell_odd(const struct ls_graph *graph, void (*say)(void *user, const char *sentence),
                       void *user)
{
    const struct teller teller = {graph, say, user};
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        if (layer->type == NULL)
            continue;
        if (layer->type->is_loss && layer->bottoms > 0)
            tell_applied_twice(&teller, layer);
        tell_weights(&teller, layer);
        tell_unread(&teller, layer);
    }
    for (size_t i = 0; i < graph->op_count; i++)
        tell_one_class(&teller, graph->ops[i]);
}
