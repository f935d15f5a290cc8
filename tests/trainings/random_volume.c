/* Volumes in random networks: see random_volume.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/random_volume.h"

struct volume {
    struct blob blob; /* name and channels */
    int extent[3];
};

static void emit_list(struct random_net *net, const char *field, const int values[3])
{
    EMIT("%s: [%d, %d, %d] ", field, values[0], values[1], values[2]);
}

/* Windows along all three axes, and the extents that they make. */
static void emit_windows(struct random_net *net, struct volume *volume, bool dilate)
{
    int kernel[3], stride[3], pad[3], dilation[3];
    for (int i = 0; i < 3; i++) {
        struct window w = draw_window(net, volume->extent[i], dilate, &volume->extent[i]);
        kernel[i] = w.kernel;
        stride[i] = w.stride;
        pad[i] = w.pad;
        dilation[i] = w.dilation;
    }
    emit_list(net, "kernel_size", kernel);
    emit_list(net, "stride", stride);
    emit_list(net, "pad", pad);
    if (dilate)
        emit_list(net, "dilation", dilation);
}

static void emit_volume_layer(struct random_net *net, struct volume *volume)
{
    struct blob *blob = &volume->blob;
    bool small = volume->extent[0] * volume->extent[1] * volume->extent[2] <= 200;
    switch (draw(net, 0, 5)) {
    case 0:
    case 1:
        *blob = begin_layer(net, "Convolution", blob);
        EMIT("convolution_param { ");
        emit_windows(net, volume, true);
        blob->channels = draw(net, 0, 3) == 0 ? 16 : draw(net, 1, 6);
        EMIT("num_output: %d weight_filler { type: 'msra' } } }\n", blob->channels);
        return;
    case 2:
        *blob = begin_layer(net, "Pooling", blob);
        EMIT("pooling_param { round_mode: FLOOR pool: %s ", toss(net) ? "MAX" : "AVE");
        emit_windows(net, volume, false);
        EMIT("} }\n");
        return;
    case 3:
        if (small) {
            *blob = begin_layer(net, "Deconvolution", blob);
            blob->channels = draw(net, 1, 5);
            for (int i = 0; i < 3; i++)
                volume->extent[i] *= 2;
            EMIT("convolution_param { num_output: %d kernel_size: 2 stride: 2 weight_filler { "
                 "type: 'xavier' } } }\n",
                 blob->channels);
            return;
        }
        break;
    case 4:
        *blob = begin_either(net, "BatchNorm", blob);
        EMIT("batch_norm_param { eps: 0.01 scale_bias: true } }\n");
        net->others += net->group != 0;
        net->grouped += net->group == 0;
        return;
    default:
        break;
    }
    *blob = begin_either(net, toss(net) ? "ReLU" : "Dropout", blob);
    EMIT("}\n");
}

struct blob emit_volume(struct random_net *net, const struct blob *bottom)
{
    int channels = bottom->channels % 3 == 0 ? 3 : bottom->channels % 2 == 0 ? 2 : 1;
    if (bottom->channels * bottom->height * bottom->width > 3000)
        return emit_pooling(net, bottom);
    struct volume volume = {begin_layer(net, "Reshape", bottom),
                            {bottom->channels / channels, bottom->height, bottom->width}};
    volume.blob.channels = channels;
    EMIT("reshape_param { shape { dim: [0, %d, %d, %d, %d] } } }\n", channels, volume.extent[0],
         volume.extent[1], volume.extent[2]);
    for (int layers = draw(net, 1, 4); layers > 0; layers--)
        emit_volume_layer(net, &volume);
    struct blob top = begin_layer(net, "Reshape", &volume.blob);
    top.height = volume.extent[0] * volume.extent[1];
    top.width = volume.extent[2];
    EMIT("reshape_param { shape { dim: [0, %d, %d, %d] } } }\n", top.channels, top.height,
         top.width);
    return top;
}
