/* Numbers that layers cannot take, or that cannot be meant: found in the data, so that the record
 * can be named.
 *
 * Losses and accuracies of classes read labels. One that is no class of theirs makes their figure
 * NaN, which says nothing about where it came from; here the numbers of some samples are read again
 * and held against every op that will take them (ir/taken.h). Those that no data set brings (of a
 * DummyData layer, say) are not found.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/oddities.h"
#include "data/reader.h"
#include "data/samples.h"
#include "ir/layer.h"
#include "ir/op_type.h"
#include "ir/taken.h"

enum { LABELS_HINT = 200, LABELS_TEXT = 400, LABELS_DEPTH = 8 };

/* An op that takes numbers for something, and where they come from. */
struct consumer {
    const struct ls_op *op;
    int dataset, tensor; /* of the net's data sets, and which tensor of its samples */
    bool image;          /* it is an image, which is transformed */
    struct ls_taken taken;
    /* Of every `block` numbers of a sample, those that are taken; block 0: all are. */
    int64_t block, begin, end;
};

/* Whether a data set of the net fills the value. */
static bool labels_find_source(const struct ls_net *net, const struct ls_value *value, int *dataset,
                               int *tensor)
{
    const struct ls_value *root = ls_value_root(value);
    if (root == NULL || root->storage != LS_STORE_INPUT || net->inputs[root->input][0] < 0)
        return false;
    *dataset = net->inputs[root->input][0];
    *tensor = net->inputs[root->input][1];
    return net->datasets[*dataset] != NULL;
}

/* Which top of a Slice layer a value is; -1: of none. */
static int labels_find_slice(const struct ls_graph *graph, const struct ls_value *value,
                             const struct ls_op **slice)
{
    const struct ls_value *root = ls_value_root(value);
    for (size_t i = 0; i < graph->op_count; i++) {
        *slice = graph->ops[i];
        for (int k = 0; (*slice)->kind == LS_OP_SLICE && k < (*slice)->outputs; k++)
            if ((*slice)->output[k] != NULL && ls_value_root((*slice)->output[k]) == root)
                return k;
    }
    return -1;
}

/* The same for what a Slice layer cuts out of each sample. */
static bool labels_find_part(const struct ls_net *net, const struct ls_value *value,
                             struct consumer *consumer)
{
    const struct ls_op *slice;
    const int top = labels_find_slice(ls_net_graph(net), value, &slice);
    if (top < 0 || slice->attr.axis == 0 || slice->input[0]->sample_axis != 0 ||
        !labels_find_source(net, slice->input[0], &consumer->dataset, &consumer->tensor))
        return false;
    int64_t inner = 1;
    for (int a = slice->attr.axis + 1; a < slice->input[0]->shape.rank; a++)
        inner *= slice->input[0]->shape.dim[a];
    consumer->block = slice->input[0]->shape.dim[slice->attr.axis] * inner;
    for (int k = 0; k <= top; k++) {
        if (slice->output[k] == NULL)
            return false;
        consumer->begin = consumer->end;
        consumer->end += slice->output[k]->shape.dim[slice->attr.axis] * inner;
    }
    return true;
}

/* Whether an op takes numbers that a data set of the net brings. */
static bool labels_describe(const struct ls_net *net, const struct ls_op *op,
                            struct consumer *consumer)
{
    *consumer = (struct consumer){.op = op};
    if (!ls_taken_by(op, &consumer->taken))
        return false;
    const struct ls_value *value = op->input[consumer->taken.input];
    const bool numbers =
        consumer->taken.kind == LS_TAKEN_SHARES || consumer->taken.kind == LS_TAKEN_FLAGS;
    if (!labels_find_source(net, value, &consumer->dataset, &consumer->tensor) &&
        !(numbers && labels_find_part(net, value, consumer)))
        return false;
    consumer->image = ls_dataset_is_image(net->datasets[consumer->dataset], consumer->tensor);
    return true;
}

/* The layer that an op takes labels for. A softmax that was made one with the loss behind it is
 * still the softmax layer's op; its figure is the loss layer's. */
static const struct ls_layer *labels_layer_of(const struct ls_graph *graph, const struct ls_op *op)
{
    for (size_t i = 0; i < graph->metric_count && op->kind == LS_OP_SOFTMAX_LOSS; i++)
        if (graph->metrics[i].offset == op->attr.loss.metric_offset)
            return graph->metrics[i].layer;
    return op->layer;
}

/* What to write where `number` is none of the classes: of a text that is known. */
static void labels_hint(const struct consumer *consumer, const struct ls_dataset *dataset,
                        float number, char hint[LABELS_HINT])
{
    const struct ls_taken *taken = &consumer->taken;
    const bool rows = taken->kind == LS_TAKEN_ROWS;
    const int known = ls_dataset_has_vocabulary(dataset) ? ls_dataset_classes(dataset) : 0;
    if (taken->kind == LS_TAKEN_BOXES)
        snprintf(hint, LABELS_HINT,
                 "the layer's number of classes must be beyond the largest class of a box");
    else if (number != truncf(number))
        snprintf(hint, LABELS_HINT, "%s",
                 rows ? "what it looks up are whole numbers"
                      : "classes are whole numbers; EuclideanLoss takes targets that are not");
    else if (known > taken->count)
        snprintf(hint, LABELS_HINT, "the text's vocabulary has %d characters: %s: %d", known,
                 rows ? "input_dim" : "the layer that makes the scores needs num_output", known);
    else
        snprintf(hint, LABELS_HINT, "%s%s",
                 rows ? "the layer's input_dim must be beyond the largest number that it looks up"
                      : "the layer that makes the scores needs a num_output beyond the largest "
                        "label; loss_param { ignore_label } leaves samples out",
                 consumer->op->kind == LS_OP_EMBED_BAG
                     ? "; padding_index is one that does not count"
                     : "");
}

static int labels_report(const struct ls_net *net, const struct consumer *consumer,
                         struct ls_reader *reader, int64_t ordinal, const float *numbers,
                         int64_t index, struct ls_error *error)
{
    char place[LS_PLACE_SIZE], hint[LABELS_HINT], text[LABELS_TEXT], range[64] = "";
    struct ls_problem problem;
    const struct ls_layer *layer = labels_layer_of(ls_net_graph(net), consumer->op);
    ls_layer_place(layer, NULL, NULL, place);
    labels_hint(consumer, net->datasets[consumer->dataset], numbers[index], hint);
    ls_taken_tell(&consumer->taken, numbers + index, index, layer->name, text, sizeof text);
    if (consumer->taken.kind != LS_TAKEN_BOXES)
        snprintf(range, sizeof range, ", which are 0 to %" PRId64, consumer->taken.count - 1);
    ls_problem_set(&problem, LOCKSTEP_DATA, hint, "its %s (%s)%s", text, place, range);
    return ls_reader_fail(reader, ordinal, &problem, error);
}

/* Checks what one sample has for an op; `labels` has room for those of the largest. */
static int labels_check_sample(const struct ls_net *net, const struct consumer *consumer,
                               struct ls_reader *reader, int64_t ordinal, float *labels,
                               struct ls_error *error)
{
    const struct ls_dataset *dataset = net->datasets[consumer->dataset];
    void *out[LS_RECORD_TENSORS] = {NULL};
    int64_t image[3];
    struct ls_shape shape;
    LS_TRY(ls_dataset_sample_shape(dataset, ordinal, image, error));
    ls_dataset_tensor_shape(dataset, consumer->tensor, image, &shape);
    out[consumer->tensor] = labels;
    LS_TRY(ls_reader_fetch(reader, ordinal, out, error));
    int64_t count = ls_shape_size(&shape);
    if (ls_dataset_tensor(dataset, consumer->tensor)->type == LS_I32)
        for (int64_t k = 0; k < count; k++) {
            int32_t number;
            memcpy(&number, &labels[k], sizeof number);
            labels[k] = (float)number;
        }
    const int64_t bad = ls_taken_find_bad(&consumer->taken, labels, count);
    return bad < 0 ? 0 : labels_report(net, consumer, reader, ordinal, labels, bad, error);
}

/* Reads samples [begin, end) and checks what they have for one op. */
static int labels_check_samples(const struct ls_net *net, const struct consumer *consumer,
                                int64_t begin, int64_t end, struct ls_error *error)
{
    struct ls_dataset *dataset = net->datasets[consumer->dataset];
    struct ls_reader *reader = NULL;
    size_t most =
        ls_dataset_tensor_bytes(dataset, consumer->tensor, ls_dataset_largest_shape(dataset));
    float *labels = ls_alloc(most, 1);
    if (labels == NULL)
        return ls_fail_memory(error, "labels");
    int status = ls_reader_open(dataset, &reader, error);
    for (int64_t i = begin; i < end && status == 0; i++)
        status = labels_check_sample(net, consumer, reader, i, labels, error);
    ls_reader_close(reader);
    ls_free(labels);
    return status;
}

/* Whether the largest label that the data set has is known, and none that the op takes. */
static bool labels_are_beyond(const struct ls_net *net, const struct consumer *consumer)
{
    const struct ls_taken *taken = &consumer->taken;
    return (taken->kind == LS_TAKEN_CLASSES || taken->kind == LS_TAKEN_ROWS) && !consumer->image &&
           ls_dataset_largest(net->datasets[consumer->dataset], consumer->tensor) >= taken->count;
}

int ls_labels_check(const struct ls_net *net, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net);
    struct consumer consumer;
    for (size_t i = 0; i < graph->op_count; i++)
        if (labels_describe(net, graph->ops[i], &consumer) &&
            !ls_dataset_skips(net->datasets[consumer.dataset]) && labels_are_beyond(net, &consumer))
            LS_TRY(labels_check_samples(net, &consumer, 0,
                                        ls_dataset_size(net->datasets[consumer.dataset]), error));
    return 0;
}

int ls_labels_find_bad(const struct ls_net *net, const struct ls_batch *range,
                       struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net);
    struct consumer consumer;
    for (size_t i = 0; i < graph->op_count; i++)
        if (labels_describe(net, graph->ops[i], &consumer)) {
            struct ls_batch its;
            ls_batching_of(&net->batching, consumer.dataset, range, &its);
            LS_TRY(
                labels_check_samples(net, &consumer, its.ordinal, its.ordinal + its.count, error));
        }
    return 0;
}

int ls_labels_rules(const struct ls_net *net, int dataset, struct ls_number_rule **out,
                    size_t *count, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net);
    struct ls_number_rule *rules = *out = ls_alloc(graph->op_count + 1, sizeof *rules);
    struct consumer consumer;
    *count = 0;
    if (rules == NULL)
        return ls_fail_memory(error, "the labels of layers");
    for (size_t i = 0; i < graph->op_count; i++) {
        if (!labels_describe(net, graph->ops[i], &consumer) || consumer.dataset != dataset ||
            (consumer.image && !ls_taken_may_be_odd(&consumer.taken)))
            continue;
        struct ls_number_rule *rule = &rules[(*count)++];
        const struct ls_layer *layer = labels_layer_of(graph, consumer.op);
        snprintf(rule->layer, sizeof rule->layer, "%.100s", layer->name);
        ls_layer_place(layer, NULL, NULL, rule->place);
        rule->tensor = consumer.tensor;
        rule->taken = consumer.taken;
        rule->block = consumer.block;
        rule->begin = consumer.begin;
        rule->end = consumer.end;
    }
    return 0;
}

/* Whether infinities of a value can be meant: where they are added up or masked, as in masks of
 * attention. Ops that move numbers hand them on. */
static bool labels_may_be_infinite(const struct ls_graph *graph, const struct ls_value *value,
                                   int depth)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        bool reads = false;
        for (int k = 0; k < op->inputs; k++)
            reads = reads || (op->input[k] != NULL && ls_value_root(op->input[k]) == value);
        if (!reads || op->backward || op->kind == LS_OP_VIEW)
            continue;
        if (op->kind == LS_OP_ATTENTION || op->kind == LS_OP_ELTWISE || op->kind == LS_OP_SOFTMAX ||
            op->kind == LS_OP_PLUGIN)
            return true;
        const bool moves = ls_op_type(op->kind)->outputs == LS_OUTPUTS_MOVED;
        for (int k = 0; moves && k < op->outputs && depth < LABELS_DEPTH; k++)
            if (op->output[k] != NULL &&
                labels_may_be_infinite(graph, ls_value_root(op->output[k]), depth + 1))
                return true;
    }
    return false;
}

static void labels_set_finite(struct ls_net *net)
{
    const struct ls_graph *graph = ls_net_graph(net);
    int dataset, tensor;
    for (size_t i = 0; i < graph->input_count; i++)
        if (labels_find_source(net, graph->inputs[i].value, &dataset, &tensor) &&
            !labels_may_be_infinite(graph, ls_value_root(graph->inputs[i].value), 0))
            ls_dataset_refuse_infinities(net->datasets[dataset], tensor);
}

static int labels_set_rules(const struct ls_net *net, int dataset, struct ls_error *error)
{
    struct ls_number_rule *rules;
    size_t count;
    int status = ls_labels_rules(net, dataset, &rules, &count, error);
    if (status == 0)
        status = ls_dataset_set_rules(net->datasets[dataset], rules, count, error);
    if (status == 0)
        status = ls_dataset_look_for(net->datasets[dataset], rules, count, error);
    ls_free(rules);
    return status;
}

int ls_labels_tell(struct ls_net *net, struct ls_error *error)
{
    labels_set_finite(net);
    for (int d = 0; d < net->dataset_count; d++)
        if (net->datasets[d] != NULL)
            LS_TRY(labels_set_rules(net, d, error));
    return 0;
}

/* ---- What numbers stand for ---- */

static const struct ls_op *labels_writer(const struct ls_graph *graph, const struct ls_value *value)
{
    for (size_t i = 0; i < graph->op_count; i++)
        for (int k = 0; k < graph->ops[i]->outputs; k++)
            if (graph->ops[i]->output[k] == value && !graph->ops[i]->backward)
                return graph->ops[i];
    return NULL;
}

void ls_labels_visit_rows(const struct ls_net *net, const struct ls_dataset *dataset,
                          void (*visit)(void *user, const struct ls_parameter *parameter),
                          void *user)
{
    const struct ls_graph *graph = ls_net_graph(net);
    struct consumer consumer;
    for (size_t i = 0; i < graph->op_count; i++) {
        if (graph->ops[i]->backward || !labels_describe(net, graph->ops[i], &consumer) ||
            net->datasets[consumer.dataset] != dataset)
            continue;
        /* From the consumer back to the first op that has parameters. */
        bool found = false;
        const struct ls_op *op = graph->ops[i];
        for (size_t steps = 0; op != NULL && !found && steps < graph->op_count; steps++) {
            for (int k = 0; k < op->inputs; k++)
                if (op->input[k] != NULL && op->input[k]->parameter != NULL) {
                    visit(user, op->input[k]->parameter);
                    found = true;
                }
            op = op->inputs > 0 && op->input[0] != NULL ? labels_writer(graph, op->input[0]) : NULL;
        }
    }
}
