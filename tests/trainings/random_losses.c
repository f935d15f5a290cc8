/* Losses of random networks: see random_losses.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/random_losses.h"

#include "trainings/random_branches.h"

void emit_loss(struct random_net *net, const char *type, const struct blob *a, const char *b,
               const char *rest)
{
    int index = ++net->layers;
    EMIT("layer { name: 'loss%d' type: '%s' bottom: '%s' bottom: '%s' top: 'loss%d' loss_weight: "
         "0.%d %s }\n",
         index, type, a->name, b, index, draw(net, 1, 9), rest);
}

/* Of each position, whose labels come from the data, or are what another part of the net thinks. */
static void emit_map_loss(struct random_net *net, const struct blob *bottom)
{
    static const char *const modes[] = {"ignore_label: 0", "normalization: WEIGHTS",
                                        "ignore_label: 1 normalization: FULL label_smoothing: 0.2",
                                        "ignore_label: 1 normalization: WEIGHTS"};
    int classes = net->channels < 2 ? 2 : net->channels;
    struct blob data = {"data", net->channels, net->height, net->width};
    struct blob x = emit_same(net, bottom, classes, 1, NULL), sized = x;
    bool learned = toss(net);
    if (!learned) {
        sized = begin_layer(net, "Interp", &x);
        EMIT("bottom: 'data' }\n");
    }
    struct blob other = learned ? emit_same(net, bottom, classes, 1, NULL) : data;
    if (toss(net))
        other = emit_batch_norm(net, &other);
    struct blob label = begin_layer(net, "ArgMax", &other);
    EMIT("argmax_param { axis: 1 } }\n");
    struct ls_text rest = {0};
    ls_text_format(&rest, "propagate_down: true propagate_down: false loss_param { %s ",
                   modes[draw(net, 0, 3)]);
    for (int c = 0; c < classes; c++)
        ls_text_format(&rest, "class_weight: %d ", draw(net, 0, 3));
    ls_text_format(&rest, "}");
    emit_loss(net, "SoftmaxWithLoss", &sized, label.name, rest.data);
    ls_text_free(&rest);
    if (toss(net))
        EMIT("layer { name: 'iou%d' type: 'MeanIoU' bottom: '%s' bottom: '%s' top: 'iou%d'\n"
             "  mean_iou_param { ignore_label: 1 } }\n",
             net->layers, sized.name, label.name, net->layers);
}

#define WEIGHTED                                                                                   \
    ("loss_param { normalization: WEIGHTS ignore_label: 2 label_smoothing: 0.1\n"                  \
     "  class_weight: [1, 0.5, 1, 2, 0, 1, 3, 1, 1, 0.1] }")

void emit_side_loss(struct random_net *net, const struct blob *bottom)
{
    static const char *const modes[] = {
        "", "loss_param { ignore_label: 4 }", "loss_param { ignore_label: 7 normalization: FULL }",
        "loss_param { normalization: BATCH_SIZE ignore_label: 1 }", WEIGHTED};
    static const struct blob data = {.name = "data"};
    int size = net->channels * net->height * net->width;
    struct blob x, y;
    if (bottom->height > 0 && toss(net)) {
        emit_map_loss(net, bottom);
        return;
    }
    switch (draw(net, 0, 5)) {
    case 0:
        x = emit_product(net, bottom, 10, NULL);
        emit_loss(net, "SoftmaxWithLoss", &x, "label", modes[draw(net, 0, 4)]);
        return;
    case 1:
        x = emit_product(net, bottom, 10, NULL);
        y = begin_layer(net, "Softmax", &x);
        EMIT("}\n");
        emit_loss(net, "MultinomialLogisticLoss", &y, "label", "");
        return;
    case 2:
        x = emit_product(net, bottom, size, NULL);
        y = begin_layer(net, "Flatten", &data);
        EMIT("}\n");
        emit_loss(net, "EuclideanLoss", &x, y.name, "");
        return;
    case 3:
        x = emit_product(net, bottom, size, NULL);
        y = begin_layer(net, "Flatten", &data);
        EMIT("}\n");
        emit_loss(net, "SigmoidCrossEntropyLoss", &x, y.name, "");
        return;
    case 4: /* a figure of the whole batch */
        x = begin_layer(net, "Reduction", bottom);
        EMIT("loss_weight: 0.01 reduction_param { operation: %s } }\n",
             toss(net) ? "MEAN" : "SUMSQ");
        return;
    default: /* two learned values that shall become equal */
        x = emit_product(net, bottom, 5, NULL);
        y = emit_product(net, bottom, 5, NULL);
        emit_loss(net, "EuclideanLoss", &x, y.name, "");
    }
}
