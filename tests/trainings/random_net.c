/* Small random networks: see random_net.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/random_net.h"

#include "trainings/random_branches.h"
#include "trainings/random_caffe.h"
#include "trainings/random_losses.h"
#include "trainings/random_sequences.h"
#include "trainings/random_volume.h"

void write_random_net_data(void)
{
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 101, 11);
    write_cifar(ls_test_path("cifar.bin"), 61);
    write_random_gains();
    write_random_sequences();
}

static void emit_source(struct random_net *net)
{
    int kind = draw(net, 0, 2), crop = draw(net, 9, 14);
    net->channels = kind == 0 ? 1 : kind == 1 ? 3 : draw(net, 1, 4);
    net->height = kind == 0 ? 11 : kind == 1 ? crop : draw(net, 8, 13);
    net->width = kind == 0 ? 11 : kind == 1 ? crop : draw(net, 8, 13);
    EMIT("  transform_param { scale: 0.0039 mirror: %s", toss(net) ? "true" : "false");
    if (kind == 1)
        EMIT(" pad: %d crop_size: %d", draw(net, 0, 3), crop);
    if (toss(net))
        EMIT(" brightness: 20 contrast_lower: 0.8 contrast_upper: 1.3");
    EMIT(" }\n  data_param { ");
    if (kind == 0)
        EMIT("backend: IDX source: '%s' label_source: '%s'", ls_test_path("images"),
             ls_test_path("labels"));
    else if (kind == 1)
        EMIT("backend: CIFAR source: '%s'", ls_test_path("cifar.bin"));
    else
        EMIT("backend: SYNTHETIC synthetic_param { count: %d channels: %d height: %d width: %d }",
             draw(net, 40, 90), net->channels, net->height, net->width);
}

/* Other data, with batches of another size, and a part of the net for them. */
static void emit_other_data(struct random_net *net)
{
    struct blob other = {"other", draw(net, 1, 3), 8, 9};
    EMIT(
        "layer { name: 'other' type: 'Data' top: 'other' top: 'its_label' transform_param { scale: "
        "0.0039 mirror: true } data_param { backend: SYNTHETIC synthetic_param { count: %d "
        "channels: %d height: 8 width: 9 } batch_size: %d shuffle: %s last_batch: WRAP } }\n",
        draw(net, 20, 60), other.channels, draw(net, 2, 9), toss(net) ? "true" : "false");
    other = emit_convolution(net, &other);
    other = emit_product(net, &other, 10, NULL);
    emit_loss(net, "SoftmaxWithLoss", &other, "its_label", "");
}

static struct blob emit_data(struct random_net *net)
{
    static const char *const lasts[] = {"WRAP", "DROP", "PARTIAL"};
    EMIT("layer { name: 'data' type: 'Data' top: 'data' top: 'label'\n");
    emit_source(net);
    const bool cached = toss(net);
    const int last = draw(net, 0, net->mixes ? 1 : 2);
    EMIT(" batch_size: %d shuffle: %s last_batch: %s cache: %s } }\n", net->batch,
         toss(net) ? "true" : "false", lasts[last], cached ? "true" : "false");
    if (net->mixes && last == 0)
        emit_other_data(net);
    return (struct blob){"data", net->channels, net->height, net->width};
}

static void emit_solver(struct random_net *net, uint64_t seed)
{
    static const char *const types[] = {
        "base_lr: 0.01 momentum: 0.9 weight_decay: 0.001",
        "base_lr: 0.01 weight_decay: 0.0005 regularization_type: 'L1'",
        "type: 'Nesterov' base_lr: 0.005 momentum: 0.9",
        "type: 'Adam' base_lr: 0.002 momentum: 0.9 momentum2: 0.99 weight_decay: 0.001",
        "type: 'AdamW' base_lr: 0.002 momentum: 0.8 weight_decay: 0.1",
        "type: 'AdaGrad' base_lr: 0.01",
        "type: 'RMSProp' base_lr: 0.001 rms_decay: 0.9 weight_decay: 0.001",
        "type: 'AdaDelta' base_lr: 1 momentum: 0.9 delta: 1e-5",
        "type: 'Lion' base_lr: 0.0005 momentum: 0.9 momentum2: 0.95 weight_decay: 0.1",
        "type: 'LAMB' base_lr: 0.005 momentum: 0.9 momentum2: 0.95 weight_decay: 0.1",
        ("type: 'Muon' base_lr: 0.005 momentum: 0.9 weight_decay: 0.1 "
         "param_group { max_axes: 1 type: 'AdamW' momentum: 0.9 }"),
        "type: 'Adafactor' base_lr: 0.1 momentum: 0.9 weight_decay: 0.01"};
    static const char *const policies[] = {"'fixed'", "'inv' gamma: 0.1 power: 0.5",
                                           "'step' gamma: 0.5 stepsize: 2", "'cosine'",
                                           "'poly' power: 2"};
    EMIT("%s\nlr_policy: %s max_iter: 100 random_seed: %d iter_size: %d", types[draw(net, 0, 11)],
         policies[draw(net, 0, 4)], (int)(seed % 100000), net->iter_size);
    if (!net->mixes)
        EMIT(" micro_batch: %d", draw(net, 1, net->batch / 7));
    if (toss(net))
        EMIT(" clip_gradients: 0.%d", draw(net, 1, 9));
    if (toss(net))
        EMIT(" weight_average { decay: 0.9 }");
    if (toss(net))
        EMIT(" warmup_iter: 3 warmup_start: 0.1");
    EMIT(" average_loss: %d\n", draw(net, 1, 4));
    if (draw(net, 0, 2) == 0)
        EMIT("test_interval: %d test_iter: %d test_initialization: %s\n", draw(net, 1, 3),
             draw(net, 1, 2), toss(net) ? "true" : "false");
    else if (draw(net, 0, 5) == 0)
        EMIT("test_interval: 2 test_on_train: %d\n", draw(net, 24, 40)); /* a batch at least */
}

struct ls_text make_random_net(uint64_t seed)
{
    struct random_net made = {.key = ls_random_key(seed, LS_RANDOM_TEST, "net")}, *net = &made;
    net->batch = draw(net, 7, 24);
    net->iter_size = draw(net, 1, 3);
    net->group = toss(net) ? 0 : draw(net, 1, net->batch / 7);
    emit_solver(net, seed);
    EMIT("net_param {\n");
    struct blob blob = emit_data(net);
    for (int layers = draw(net, 1, 5); layers > 0; layers--) {
        static struct blob (*const kinds[])(struct random_net *, const struct blob *) = {
            emit_convolution, emit_convolution, emit_pooling,       emit_norm,   emit_pointwise,
            emit_pointwise,   emit_branch,      emit_deconvolution, emit_interp, emit_crop,
            emit_batch_norm,  emit_batch_norm,  emit_scale,         emit_slice,  emit_shape,
            emit_gate,        emit_volume,      emit_volume};
        blob = kinds[draw(net, 0, sizeof kinds / sizeof *kinds - 1)](net, &blob);
        if (draw(net, 0, 5) == 0)
            emit_side_loss(net, &blob);
    }
    if (draw(net, 0, 2) == 0)
        blob = emit_large_products(net, &blob);
    blob = emit_product(net, &blob, draw(net, 3, 40), NULL);
    blob = emit_pointwise(net, &blob);
    if (draw(net, 0, 3) == 0)
        blob = emit_batch_norm(net, &blob);
    for (int again = draw(net, 0, 2); again > 0; again--) /* one matrix, used several times */
        blob = emit_product(net, &blob, blob.channels, again == 2 || toss(net) ? "loop" : NULL);
    if (toss(net))
        emit_side_loss(net, &blob);
    blob = emit_product(net, &blob, 10, NULL);
    emit_loss(net, "SoftmaxWithLoss", &blob, "label", "");
    EMIT("}\n");
    if (net->group > 0 && net->grouped > 0 && net->others == 0 && toss(net))
        EMIT("follow_groups: true\n");
    return net->text;
}

struct ls_text make_random_caffe_net(uint64_t seed)
{
    struct random_net made = {.key = ls_random_key(seed, LS_RANDOM_TEST, "caffe")}, *net = &made;
    net->mixes = draw(net, 0, 3) == 0;
    net->batch = net->mixes ? draw(net, 3, 6) : draw(net, 7, 24);
    net->iter_size = net->mixes ? 7 : draw(net, 1, 3);
    emit_solver(net, seed);
    if (toss(net))
        EMIT("debug_info: true\n");
    EMIT("net_param {\n");
    struct blob blob = emit_data(net);
    for (int layers = draw(net, 2, 6); layers > 0; layers--) {
        blob = draw(net, 0, 3) == 0 ? emit_convolution(net, &blob) : emit_caffe_layer(net, &blob);
        if (net->mixes && toss(net))
            blob = emit_mixing_layer(net, &blob);
        if (draw(net, 0, 3) == 0)
            emit_caffe_loss(net, &blob);
    }
    blob = emit_product(net, &blob, 10, NULL);
    emit_loss(net, "SoftmaxWithLoss", &blob, "label", "");
    EMIT("}\n");
    return net->text;
}

struct ls_text make_random_sequence_net(uint64_t seed)
{
    struct random_net made = {.key = ls_random_key(seed, LS_RANDOM_TEST, "sequences")},
                      *net = &made;
    net->batch = draw(net, 7, 16);
    net->iter_size = draw(net, 1, 2);
    emit_solver(net, seed);
    EMIT("net_param {\n");
    emit_sequences(net);
    EMIT("}\n");
    return net->text;
}

struct ls_text make_random_mixed_net(uint64_t seed)
{
    static const char *const precisions[] = {"", " precision: BF16", " precision: BF16",
                                             " precision: FP32"};
    static const char layer[] = "layer {";
    struct random_net made = {.key = ls_random_key(seed, LS_RANDOM_TEST, "precision")},
                      *net = &made;
    struct ls_text plain = make_random_net(seed);
    const char *from = plain.data;
    EMIT("precision: %s\n", toss(net) ? "BF16" : "FP32");
    for (const char *next; (next = strstr(from, layer)) != NULL; from = next) {
        next += sizeof layer - 1;
        EMIT("%.*s%s", (int)(next - from), from, precisions[draw(net, 0, 3)]);
    }
    EMIT("%s", from);
    net->text.failed |= plain.failed;
    ls_text_free(&plain);
    return net->text;
}
