/* Labels that name no class: found in the data, so that the record can be named.
 *
 * Losses and accuracies of classes read labels. One that is no class of theirs makes their figure
 * NaN, which says nothing about where it came from; here the labels of some samples are read again
 * and held against every op that will take them. Labels that no data set brings (those of a
 * DummyData layer, say) are not found.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/reader.h"
#include "data/samples.h"
#include "device/label.h"
#include "ir/layer.h"
#include "ir/op_type.h"

enum { LABELS_HINT = 200 };

/* An op that takes labels, and where they come from. */
struct consumer {
    const struct ls_op *op;
    int dataset, tensor; /* of the net's data sets, and which tensor of its samples */
    bool image;          /* it is an image, which is transformed */
    struct ls_op_labels labels;
};

/* Whether an op takes labels that a data set of the net brings. */
static bool labels_describe(const struct ls_net *net, const struct ls_op *op,
                            struct consumer *consumer)
{
    const struct ls_op_type *type = ls_op_type(op->kind);
    if (type->labels == NULL)
        return false;
    *consumer = (struct consumer){.op = op};
    type->labels(op, &consumer->labels);
    if (consumer->labels.classes == 0)
        return false;
    const struct ls_value *label = ls_value_root(op->input[1]);
    if (label->storage != LS_STORE_INPUT || net->inputs[label->input][0] < 0)
        return false;
    consumer->dataset = net->inputs[label->input][0];
    consumer->tensor = net->inputs[label->input][1];
    if (net->datasets[consumer->dataset] == NULL)
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

/* Whether they are numbers of rows of a table. */
static bool labels_are_rows(const struct ls_op *op)
{
    return op->kind == LS_OP_EMBED || op->kind == LS_OP_EMBED_BAG;
}

/* What to write where a label is beyond the classes: of a text that is known. */
static void labels_hint(const struct consumer *consumer, const struct ls_dataset *dataset,
                        char hint[LABELS_HINT])
{
    const bool rows = labels_are_rows(consumer->op);
    const int known = ls_dataset_has_vocabulary(dataset) ? ls_dataset_classes(dataset) : 0;
    if (known > consumer->labels.classes)
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
                         struct ls_reader *reader, int64_t ordinal, float label,
                         struct ls_error *error)
{
    char place[LS_PLACE_SIZE], hint[LABELS_HINT];
    struct ls_problem problem;
    const struct ls_layer *layer = labels_layer_of(ls_net_graph(net), consumer->op);
    const bool rows = labels_are_rows(consumer->op);
    ls_layer_place(layer, NULL, NULL, place);
    labels_hint(consumer, net->datasets[consumer->dataset], hint);
    ls_problem_set(&problem, LOCKSTEP_DATA, hint,
                   "its %s %.9g is none of the %" PRId64
                   " %s of layer '%s' (%s), which are 0 to %" PRId64,
                   rows ? "number" : "label", (double)label, consumer->labels.classes,
                   rows ? "rows" : "classes", layer->name, place, consumer->labels.classes - 1);
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
    for (int64_t k = 0; k < count; k++)
        if (!ls_label_ignored(labels[k], consumer->labels.has_ignore,
                              consumer->labels.ignore_label) &&
            ls_label_class(labels[k], consumer->labels.classes) < 0)
            return labels_report(net, consumer, reader, ordinal, labels[k], error);
    return 0;
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

int ls_labels_check(const struct ls_net *net, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net);
    struct consumer consumer;
    for (size_t i = 0; i < graph->op_count; i++)
        if (labels_describe(net, graph->ops[i], &consumer) && !consumer.image &&
            !ls_dataset_skips(net->datasets[consumer.dataset]) &&
            ls_dataset_largest(net->datasets[consumer.dataset], consumer.tensor) >=
                consumer.labels.classes)
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

static bool labels_takes(const struct ls_label_rule *rule, float label)
{
    return ls_label_ignored(label, rule->has_ignore, rule->ignore_label) ||
           ls_label_class(label, rule->classes) >= 0;
}

int ls_labels_rules(const struct ls_net *net, int dataset, struct ls_label_rule **out,
                    size_t *count, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net);
    struct ls_label_rule *rules = *out = ls_alloc(graph->op_count + 1, sizeof *rules);
    struct consumer consumer;
    *count = 0;
    if (rules == NULL)
        return ls_fail_memory(error, "the labels of layers");
    for (size_t i = 0; i < graph->op_count; i++) {
        if (!labels_describe(net, graph->ops[i], &consumer) || consumer.dataset != dataset ||
            consumer.image)
            continue;
        struct ls_label_rule *rule = &rules[(*count)++];
        snprintf(rule->layer, sizeof rule->layer, "%.100s",
                 labels_layer_of(graph, consumer.op)->name);
        rule->tensor = consumer.tensor;
        rule->classes = consumer.labels.classes;
        rule->rows = labels_are_rows(consumer.op);
        rule->has_ignore = consumer.labels.has_ignore;
        rule->ignore_label = consumer.labels.ignore_label;
        rule->takes = labels_takes;
    }
    return 0;
}

static int labels_set_labels(const struct ls_net *net, int dataset, struct ls_error *error)
{
    struct ls_label_rule *rules;
    size_t count;
    int status = ls_labels_rules(net, dataset, &rules, &count, error);
    if (status == 0)
        status = ls_dataset_set_labels(net->datasets[dataset], rules, count, error);
    ls_free(rules);
    return status;
}

int ls_labels_tell(struct ls_net *net, struct ls_error *error)
{
    for (int d = 0; d < net->dataset_count; d++)
        if (net->datasets[d] != NULL && ls_dataset_skips(net->datasets[d]))
            LS_TRY(labels_set_labels(net, d, error));
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
