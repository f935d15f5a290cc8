/* What each layer type refuses, and how it says so; test_detection_errors.c and
 * test_sequence_errors.c have those of nets that detect objects, and of nets of sequences.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layer_errors.h"

#define CONV LAYER("Convolution") XY "convolution_param { num_output: 4 "
#define POOL LAYER("Pooling") XY "pooling_param { "

static const struct error_case cases[] = {
    /* The place is that of the field, where it was given. */
    {"name: 'pool1'\ntype: 'Pooling'\nbottom: 'x'\ntop: 'y'\npooling_param {\n  kernel_size: 5 }",
     "2x3x4x9", "pool1: kernel_size 5 is larger than the padded input 4 (height)", "6:3"},
    {"name: 'ip'\ntype: 'InnerProduct'\nbottom: 'x'\ntop: 'y'\ninner_product_param { }", "2x3",
     "ip: num_output is missing", "5:1"},

    {LAYER("HingeLoss") XL, "4x3 4x2", "l: 'l' must be one label a sample, but is 4 2 (8)", NULL},
    {LAYER("ContrastiveLoss") XLS, "4x3 4x2 4",
     "l: its bottoms must have equally many elements, but 'x' is 4 3 (12) and 'l' is 4 2 (8)",
     NULL},
    {LAYER("ContrastiveLoss") XLS, "4x3 4x3 4x2",
     "l: 's' must be one number for each row of 'x', but is 4 2 (8)", NULL},
    {LAYER("ContrastiveLoss") XLS "contrastive_loss_param { margin: nan }", "4x3 4x3 4",
     "l: margin must be a finite number", NULL},
    {LAYER("InfogainLoss") XL, "4x3 4", "l: it needs a matrix: a source, or a third bottom", NULL},
    {LAYER("InfogainLoss") XL "infogain_loss_param { source: '/nowhere/at/all' }", "4x3 4",
     "l: '/nowhere/at/all': cannot open: No such file or directory", NULL},
    {LAYER("InfogainLoss") XLS, "4x3 4 3x2?",
     "l: its bottom 's' must be a matrix of 3 x 3 numbers, but is 3 2 (6)", NULL},
    {LAYER("SmoothL1Loss") XL "smooth_l1_loss_param { sigma: 0 }", "4x3 4x3",
     "l: sigma 0 must be a number above 0", NULL},
    {LAYER("SmoothL1Loss") XLS, "4x3 4x3 4x2",
     "l: its bottoms must have equally many elements, but 'x' is 4 3 (12) and 's' is 4 2 (8)",
     NULL},
    {LAYER("SmoothL1Loss") XL "loss_param { normalization: PRE_FIXED\n pre_fixed_normalizer: 0 }",
     "4x3 4x3", "l: pre_fixed_normalizer 0 must be a number above 0", "2:2"},
    {LAYER("SmoothL1LossOHEM") XL "loss_param { class_weight: 1 }", "4x3 4x3",
     "l: a SmoothL1LossOHEM layer takes no class_weight: its targets name no classes", NULL},
    {LAYER("Parameter") "top: 'y'", "", "l: shape is missing", NULL},
    {LAYER("Parameter") "top: 'y' parameter_param { shape { dim: [2, 0] } }", "",
     "l: extent 0 of axis 1 is not possible", NULL},
    {LAYER("BatchReindex") XL, "2x3 4x2",
     "l: 'l' must be a list of numbers of rows, with one axis, but is 4 2 (8)", NULL},
    {LAYER("Filter") XL, "4x3 4x2",
     "l: its last bottom, the selector 'l', must be one number a "
     "sample, but is 4 2 (8)",
     NULL},
    {LAYER("Filter") XLS, "4x3 4x2 4",
     "l: it needs a top for each of its bottoms but the last, the selector: 2, not 1", NULL},
    {LAYER("HDF5Output") "bottom: 'x' bottom: 'l'", "4x3 4",
     "l: it needs the name of a file to write", NULL},
    {LAYER("HDF5Output") "bottom: 'x' bottom: 'l' hdf5_output_param { file_name: '' }", "4x3 4",
     "l: it needs the name of a file to write", NULL},
    {LAYER("HDF5Output") "bottom: 'x' bottom: 'l' hdf5_output_param { file_name: 'f' }", "4x3 4",
     "l: an HDF5Output layer writes what a test computes, and this net is trained", NULL},
    {CONV "}", "2x3x8x8", "l: kernel_size is missing", NULL},
    {LAYER("Convolution") XY, "2x3x8x8", "l: num_output is missing", NULL},
    {LAYER("Convolution") XY "convolution_param { num_output: 0 kernel_size: 1 }", "2x3x8x8",
     "l: num_output must be at least 1", NULL},
    {CONV "kernel_size: 0 }", "2x3x8x8",
     "l: kernel_size 0 is out of range; it must be 1 to 2147483647", NULL},
    {CONV "kernel_size: 4294967295 }", "2x3x8x8",
     "l: kernel_size 4294967295 is out of range; it must be 1 to 2147483647", NULL},
    {CONV "kernel_size: 3 stride: 0 }", "2x3x8x8",
     "l: stride 0 is out of range; it must be 1 to 2147483647", NULL},
    {CONV "kernel_size: 3 dilation: 0 }", "2x3x8x8",
     "l: dilation 0 is out of range; it must be 1 to 2147483647", NULL},
    {CONV "kernel_size: 3 pad: 3000000000 }", "2x3x8x8",
     "l: pad 3000000000 is out of range; it must be 0 to 2147483647", NULL},
    {CONV "kernel_size: 2147483647 dilation: 2147483647 }", "2x3x8x8",
     "l: the kernel covers 4611686011984936963 positions, more than the padded input's 8 (height)",
     NULL},
    {CONV "kernel_size: 3 kernel_h: 3 kernel_w: 3 }", "2x3x8x8",
     "l: kernel_size and kernel_h cannot both be given", NULL},
    {CONV "kernel_h: 3 }", "2x3x8x8", "l: kernel_h and kernel_w must be given together", NULL},
    {CONV "kernel_h: 3 kernel_w: 1 }", "2x3x8",
     "l: kernel_h is for bottoms with two spatial axes; this one has 1", NULL},
    {CONV "kernel_size: [3, 3, 3] }", "2x3x8x8",
     "l: kernel_size is given 3 times; it must be given once, or once for each of the 2 spatial "
     "axes",
     NULL},
    {CONV "kernel_size: 3 stride: 1 stride_w: 2 }", "2x3x8x8",
     "l: stride and stride_w cannot both be given", NULL},
    {CONV "kernel_size: 9 pad: 0 }", "2x3x10x8",
     "l: the kernel covers 9 positions, more than the padded input's 8 (width)", NULL},
    {CONV "kernel_size: 1 group: 2 }", "2x3x8x8",
     "l: the 3 channels of 'x' cannot be divided into 2 groups", NULL},
    {CONV "kernel_size: 1 group: 3 }", "2x3x8x8", "l: num_output 4 cannot be divided into 3 groups",
     NULL},
    {CONV "kernel_size: 1 group: 0 }", "2x3x8x8", "l: group must be at least 1", NULL},
    {CONV "kernel_size: 1 axis: 0 }", "2x3x8x8",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches",
     NULL},
    {CONV "kernel_size: 1 axis: 7 }", "2x3x8x8",
     "l: axis 7 is out of range for 'x' with shape 2 3 8 8 (384)", NULL},
    {CONV "kernel_size: 1 axis: 3 }", "2x3x8x8",
     "l: its bottom 'x' must have 1 to 3 spatial axes behind axis 3, the channels, but is 2 3 8 8 "
     "(384)",
     NULL},
    {CONV "kernel_size: 1 }", "2x3",
     "l: its bottom 'x' must have 1 to 3 spatial axes behind axis 1, the channels, but is 2 3 (6)",
     NULL},
    {CONV "kernel_size: 1 }", "2x3x2x2x2x2",
     "l: its bottom 'x' must have 1 to 3 spatial axes behind axis 1, the channels, but is 2 3 2 2 "
     "2 2 (96)",
     NULL},
    {CONV "kernel_size: 3 }", "2x3x8x2x8",
     "l: the kernel covers 3 positions, more than the padded input's 2 (height)", NULL},
    {CONV "kernel_size: [1, 1, 9] }", "2x3x8x8x8",
     "l: the kernel covers 9 positions, more than the padded input's 8 (width)", NULL},
    {CONV "kernel_size: [3, 3] }", "2x3x8x8x8",
     "l: kernel_size is given 2 times; it must be given once, or once for each of the 3 spatial "
     "axes",
     NULL},
    {CONV "kernel_h: 3 kernel_w: 3 }", "2x3x8x8x8",
     "l: kernel_h is for bottoms with two spatial axes; this one has 3", NULL},
    {CONV "kernel_size: 1 stride: [1, 0, 1] }", "2x3x8x8x8",
     "l: stride 0 is out of range; it must be 1 to 2147483647", NULL},
    {CONV "kernel_size: 1 dilation: [1, 1, 1, 1] }", "2x3x8x8x8",
     "l: dilation is given 4 times; it must be given once, or once for each of the 3 spatial axes",
     NULL},
    {CONV "kernel_size: 1 }", "2x3x4x5?",
     "l: axis 0 of its bottom 'x' does not hold the samples of the batch", NULL},
    {CONV "kernel_size: 1 pad: 2147483647 }", "2x3x8x8",
     "l: the top would be 2 x 4 x 4294967302 x 4294967302, which is empty or larger than a tensor "
     "may be",
     NULL},
    {LAYER("Convolution") "bottom: 'a' bottom: 'b' top: 'y' "
                          "convolution_param { num_output: 4 kernel_size: 1 }",
     "2x3x8x8 2x3x8x8", "l: has 2 bottoms and 1 tops; each bottom needs a top", NULL},
    {LAYER("Convolution") "bottom: 'a' bottom: 'b' top: 'y' top: 'z' "
                          "convolution_param { num_output: 4 kernel_size: 1 }",
     "2x3x8x8 2x3x8x9",
     "l: its bottoms share weights and must have one shape, but 'a' is 2 3 8 8 (384) and 'b' is 2 "
     "3 "
     "8 9 (432)",
     NULL},

    {LAYER("InnerProduct") XY "inner_product_param { num_output: 3 axis: 0 }", "2x3",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches",
     NULL},
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 3 axis: 2 }", "2x3",
     "l: axis 2 is out of range for 'x' with shape 2 3 (6)", NULL},
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 2000000000 }", "1x99999",
     "l: the weight would be 2000000000 x 99999, which is empty or larger than a tensor may be",
     NULL},

    {POOL "}", "2x3x8x8", "l: kernel_size is missing", NULL},
    {POOL "kernel_size: 2 round_mode: FLOOR\n  ceil_mode: true }", "2x3x8x8",
     "l: ceil_mode and round_mode round in different ways", "2:3"},
    {POOL "kernel_size: 2 pad: 1 pool: STOCHASTIC }", "2x3x8x8",
     "l: pool: STOCHASTIC has no padding", NULL},
    {LAYER("Permute") XY "permute_param { order: 4 }", "2x3x8x8",
     "l: order names axis 4, but 'x' has 4 axes", NULL},
    {LAYER("Permute") XY "permute_param { order: 1 order: 1 }", "2x3x8x8",
     "l: order names axis 1 twice", NULL},
    {LAYER("ShuffleChannel") XY "shuffle_channel_param { group: 2 }", "2x3x8x8",
     "l: the 3 channels of 'x' cannot be divided into 2 groups", NULL},
    {LAYER("Reorg") XY, "2x4x8x8", "l: stride is missing", NULL},
    {LAYER("Reorg") XY "reorg_param { stride: 0 }", "2x4x8x8", "l: stride must be 1 to 32768",
     NULL},
    {LAYER("Reorg") XY "reorg_param { stride: 2 }", "2x3x8x8",
     "l: axis 1 of 'x' has extent 3, which is no multiple of 4", NULL},
    {LAYER("Reorg") XY "reorg_param { stride: 2 }", "2x4x8x7",
     "l: axis 3 of 'x' has extent 7, which is no multiple of 2", NULL},
    {LAYER("Axpy") XLS, "2x3 2x4x5 2x4x5",
     "l: its bottom 'x' must have one number for each channel of 'l', which is 2 4 5 (40), but is "
     "2 3 (6)",
     NULL},
    {LAYER("Axpy") XLS, "2x4 2x4x5 2x4x6",
     "l: its bottoms 'l' and 's' must have one shape, but are 2 4 5 (40) and 2 4 6 (48)", NULL},
    {LAYER("Normalize") XY "norm_param { eps: 0 }", "2x3x4",
     "l: eps 0 must be a number above 0: values that are all equal are divided by it", NULL},
    {LAYER("ReLU6") XY "relu_param { negative_slope: inf }", "2x3",
     "l: negative_slope must be a finite number", NULL},
    {LAYER("Im2col") XY, "2x3x8x8", "l: kernel_size is missing", NULL},
    {LAYER("Im2col") XY "convolution_param { kernel_size: 9 }", "2x3x8x8",
     "l: the kernel covers 9 positions, more than the padded input's 8 (height)", NULL},
    {LAYER("Im2col") XY "convolution_param { kernel_size: 3 axis: 2 }", "2x3x8x8",
     "l: the channels of an Im2col layer are axis 1", NULL},
    {LAYER("SPP") XY, "2x3x8x8", "l: pyramid_height is missing", NULL},
    {LAYER("SPP") XY "spp_param { pyramid_height: 3 }", "2x3x8x5",
     "l: level 2 of the pyramid has 4 cells, too many for an axis of extent 5 of 'x'", NULL},
    {LAYER("SPP") XY "spp_param { pyramid_height: 1 pool: STOCHASTIC }", "2x3x8x5",
     "l: pool: STOCHASTIC is not for padded windows, as those of a pyramid are", NULL},
    {LAYER("ConvolutionDepthwise") XY "convolution_param { num_output: 4 kernel_size: 1 }",
     "2x3x8x8", "l: num_output 4 cannot be divided into 3 groups", NULL},
    {LAYER("Pooling") XY "top: 'mask' pooling_param { kernel_size: 2 pool: AVE }", "2x3x8x8",
     "l: only pool: MAX has a second top, which says where the maxima were", NULL},
    {POOL "kernel_size: 2 kernel_h: 2 kernel_w: 2 }", "2x3x8x8",
     "l: kernel_size and kernel_h cannot both be given", NULL},
    {POOL "kernel_w: 2 }", "2x3x8x8", "l: kernel_h and kernel_w must be given together", NULL},
    {POOL "kernel_size: 2 stride_h: 2 }", "2x3x8x8",
     "l: stride_h and stride_w must be given together", NULL},
    {POOL "kernel_size: 2 pad: 0 pad_h: 1 pad_w: 1 }", "2x3x8x8",
     "l: pad and pad_h cannot both be given", NULL},
    {POOL "kernel_size: 0 }", "2x3x8x8",
     "l: kernel_size 0 is out of range; it must be 1 to 2147483647", NULL},
    {POOL "kernel_size: 2 stride: 0 }", "2x3x8x8",
     "l: stride 0 is out of range; it must be 1 to 2147483647", NULL},
    {POOL "kernel_size: 2 pad: 2 }", "2x3x8x8",
     "l: pad 2 must be smaller than the window's 2 (height)", NULL},
    {POOL "kernel_size: [2, 3] }", "2x3x8x8x8",
     "l: kernel_size is given 2 times; it must be given once, or once for each of the 3 spatial "
     "axes",
     NULL},
    {POOL "kernel_size: 2 stride: [1, 2, 3] }", "2x3x8x8",
     "l: stride is given 3 times; it must be given once, or once for each of the 2 spatial axes",
     NULL},
    {POOL "kernel_size: 2 pad: [0, 1] }", "2x3x8",
     "l: pad is given 2 times; it must be given once, or once for each of the 1 spatial axes",
     NULL},
    {POOL "kernel_h: 2 kernel_w: 2 }", "2x3x8x8x8",
     "l: kernel_h is for bottoms with two spatial axes; this one has 3", NULL},
    {POOL "kernel_size: 2 stride_h: 2 stride_w: 2 }", "2x3x8",
     "l: stride_h is for bottoms with two spatial axes; this one has 1", NULL},
    {POOL "kernel_size: [2, 2, 0] }", "2x3x8x8x8",
     "l: kernel_size 0 is out of range; it must be 1 to 2147483647", NULL},
    {POOL "kernel_size: [2, 2, 4294967295] }", "2x3x8x8x8",
     "l: kernel_size 4294967295 is out of range; it must be 1 to 2147483647", NULL},
    {POOL "kernel_size: [4, 1, 1] round_mode: FLOOR }", "2x3x3x8x8",
     "l: kernel_size 4 is larger than the padded input 3 (depth)", NULL},
    {POOL "kernel_size: 2 pad: [0, 0, 2] }", "2x3x8x8x8",
     "l: pad 2 must be smaller than the window's 2 (width)", NULL},
    {POOL "kernel_size: 1 stride: [5, 1, 1] }", "2x3x2x2x2",
     "l: the last window would begin at 5, behind the input of 2 (depth)", NULL},
    {POOL "global_pooling: true stride: [1, 1, 2] }", "2x3x2x2x2",
     "l: with global_pooling, pad must be 0 and stride 1", NULL},
    {POOL "global_pooling: true kernel_size: [2, 2, 2] }", "2x3x2x2x2",
     "l: with global_pooling the window is the whole plane; a kernel size cannot be given", NULL},
    {POOL "kernel_size: 1 }", "2x3",
     "l: its bottom 'x' must have 3 to 5 axes (samples, channels, 1 to 3 spatial ones), but is 2 3 "
     "(6)",
     NULL},
    {POOL "kernel_size: 1 }", "2x3x2x2x2x2",
     "l: its bottom 'x' must have 3 to 5 axes (samples, channels, 1 to 3 spatial ones), but is 2 3 "
     "2 2 2 2 (96)",
     NULL},
    {POOL "kernel_h: 3 kernel_w: 2 pad_h: 2 pad_w: 2 }", "2x3x8x8",
     "l: pad_w 2 must be smaller than the window's 2 (width)", NULL},
    {POOL "kernel_size: 9 stride: 2 round_mode: FLOOR }", "2x3x8x8",
     "l: kernel_size 9 is larger than the padded input 8 (height)", NULL},
    {POOL "kernel_size: 10 stride: 2 }", "2x3x8x8",
     "l: kernel_size 10 is larger than the padded input 8 (height)", NULL},
    {POOL "kernel_size: 1 stride: 3 }", "2x3x5x4",
     "l: the last window would begin at 6, behind the input of 5 (height)", NULL},
    {POOL "global_pooling: true kernel_size: 2 }", "2x3x8x8",
     "l: with global_pooling the window is the whole plane; a kernel size cannot be given", NULL},
    {POOL "global_pooling: true stride: 2 }", "2x3x8x8",
     "l: with global_pooling, pad must be 0 and stride 1", NULL},

    {LAYER("ReLU") XY "relu_param { negative_slope: nan }", "2x3",
     "l: negative_slope must be a finite number", NULL},
    {LAYER("Dropout") XY "dropout_param { dropout_ratio: 1 }", "2x3",
     "l: dropout_ratio 1 must be at least 0 and less than 1", NULL},
    {LAYER("Dropout") XY "dropout_param { dropout_ratio: nan }", "2x3",
     "l: dropout_ratio nan must be at least 0 and less than 1", NULL},
    {LAYER("Dropout") XY, "2x3?", "l: 'x' has no axis of samples, by which the mask goes", NULL},
    {LAYER("LRN") XY "lrn_param { local_size: 4 }", "2x3x4x4",
     "l: local_size 4 must be an odd number", NULL},
    {LAYER("LRN") XY "lrn_param { alpha: inf }", "2x3x4x4", "l: alpha must be a finite number",
     NULL},
    {LAYER("LRN") XY "lrn_param { norm_region: WITHIN_CHANNEL k: 2 }", "2x3x4x4",
     "l: k has no effect within channels, where 1 takes its place", NULL},
    {LAYER("LRN") XY, "2x3",
     "l: its bottom 'x' must have 4 axes (samples, channels, height, width), but is 2 3 (6)", NULL},
    {LAYER("LRN") XY, "2x3x4x4x4",
     "l: its bottom 'x' must have 4 axes (samples, channels, height, width), but is 2 3 4 4 4 "
     "(384)",
     NULL},
    {LAYER("Softmax") XY "softmax_param { axis: 0 }", "2x3",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches",
     NULL},
    {LAYER("Softmax") XY, "2", "l: axis 1 is out of range for 'x' with shape 2 (2)", NULL},

    {LAYER("Flatten") XY "flatten_param { axis: 2 end_axis: 1 }", "2x3x4",
     "l: end_axis 1 lies before axis 2", NULL},
    {LAYER("Flatten") XY, "2", "l: axis 1 is out of range for 'x' with shape 2 (2)", NULL},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y' concat_param { axis: 0 }", "2x3 2x3",
     "l: axis 0 of 'a' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches",
     NULL},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y' concat_param { axis: 1 concat_dim: 1 }",
     "2x3 2x3", "l: axis and concat_dim cannot both be given", NULL},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y' concat_param { concat_dim: 4294967295 }",
     "2x3 2x3", "l: axis 8 is out of range for 'a' with shape 2 3 (6)", NULL},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y'", "2x3x4 2x3x5",
     "l: its bottoms must agree in all axes but axis 1, but 'a' is 2 3 4 (24) and 'b' is 2 3 5 "
     "(30)",
     NULL},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y'", "2x3 2x3x1",
     "l: its bottoms must agree in all axes but axis 1, but 'a' is 2 3 (6) and 'b' is 2 3 1 (6)",
     NULL},
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y'", "2x3 2x4",
     "l: its bottoms must have one shape, but 'a' is 2 3 (6) and 'b' is 2 4 (8)", NULL},
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' eltwise_param { coeff: 2 }", "2x3 2x3",
     "l: coeff must be given once for each of the 2 bottoms, or not at all; it is given 1 times",
     NULL},
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' eltwise_param { operation: MAX coeff: 1 "
                      "coeff: 2 }",
     "2x3 2x3", "l: coeff is for operation: SUM only", NULL},
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' eltwise_param { coeff: [1, inf] }",
     "2x3 2x3", "l: coeff must be finite numbers", NULL},

    {LAYER("SoftmaxWithLoss") XL, "4x3 5",
     "l: its bottoms must agree in axis 0, but 'x' is 4 3 (12) and 'l' is 5 (5)", NULL},
    {LAYER("SoftmaxWithLoss") XL, "4x3x2 4",
     "l: 'l' has 4 labels, but 'x' has 8 positions to label (all its axes but axis 1, the classes)",
     NULL},
    {LAYER("SoftmaxWithLoss") XL "softmax_param { axis: 0 }", "4x3 4",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches",
     NULL},
    {LAYER("SoftmaxWithLoss") XL, "4x3? 4",
     "l: no axis of its bottom 'x' holds the samples of the batch", NULL},
    {LAYER("SoftmaxWithLoss") XL "loss_param {\n label_smoothing: 1 }", "4x3 4",
     "l: label_smoothing 1 must be at least 0 and below 1", "2:2"},
    {LAYER("SoftmaxWithLoss") XL "loss_param { label_smoothing: -0.5 }", "4x3 4",
     "l: label_smoothing -0.5 must be at least 0 and below 1", NULL},
    {LAYER("SoftmaxWithLoss") XL "loss_param { label_smoothing: nan }", "4x3 4",
     "l: label_smoothing nan must be at least 0 and below 1", NULL},
    {LAYER("SoftmaxWithLoss") XL "loss_param {\n class_weight: [1, 2] }", "4x3 4",
     "l: class_weight must be given once for each of the 3 classes, or not at all; it is given 2 "
     "times",
     "2:17"},
    {LAYER("SoftmaxWithLoss") XL "loss_param { class_weight: [1, -1, 2] }", "4x3 4",
     "l: class_weight must be finite numbers of at least 0, but that of class 1 is -1", NULL},
    {LAYER("SoftmaxWithLoss") XL "loss_param { class_weight: [1, 1, inf] }", "4x3 4",
     "l: class_weight must be finite numbers of at least 0, but that of class 2 is inf", NULL},
    {LAYER("SoftmaxWithLoss") XL "loss_param { class_weight: [nan, 1, 1] }", "4x3 4",
     "l: class_weight must be finite numbers of at least 0, but that of class 0 is nan", NULL},
    {LAYER("SoftmaxWithLoss") XL "loss_param { normalization: WEIGHTS }", "4x3 4",
     "l: normalization: WEIGHTS divides by class weights, but there are none", NULL},
    {LAYER("MultinomialLogisticLoss") XL "loss_param { label_smoothing: 0.1 }", "4x3 4",
     "l: a MultinomialLogisticLoss layer takes no label_smoothing", NULL},
    {LAYER("MultinomialLogisticLoss") XL "loss_param { class_weight: 1 }", "4x3 4",
     "l: class_weight must be given once for each of the 3 classes, or not at all; it is given 1 "
     "times",
     NULL},
    {LAYER("SigmoidCrossEntropyLoss") XL "loss_param { class_weight: [1, 1, 1] }", "4x3 4x3",
     "l: a SigmoidCrossEntropyLoss layer takes no class_weight: its targets name no classes", NULL},
    {LAYER("SigmoidCrossEntropyLoss") XL "loss_param { label_smoothing: 0 }", "4x3 4x3",
     "l: a SigmoidCrossEntropyLoss layer takes no label_smoothing", NULL},
    {LAYER("SigmoidCrossEntropyLoss") XL "loss_param { normalization: WEIGHTS }", "4x3 4x3",
     "l: normalization: WEIGHTS divides by class weights, but there are none", NULL},
    {LAYER("MultinomialLogisticLoss") XL, "4x3 4x2",
     "l: 'l' must be one label a sample, but is 4 2 (8)", NULL},
    {LAYER("MultinomialLogisticLoss") XL, "4 4",
     "l: 'x' has no axis of classes behind that of the samples", NULL},
    {LAYER("SigmoidCrossEntropyLoss") XL, "4x3 4x4",
     "l: its bottoms must have equally many elements, but 'x' is 4 3 (12) and 'l' is 4 4 (16)",
     NULL},
    {LAYER("EuclideanLoss") XL, "4x3 4x4",
     "l: its bottoms must have equally many elements, but 'x' is 4 3 (12) and 'l' is 4 4 (16)",
     NULL},
    {LAYER("EuclideanLoss") XL, "4x3 4x3/2",
     "l: its bottoms must agree in axis 0, but 'x' is 4 3 (12) and 'l' is 4 3 (12)", NULL},
    {LAYER("Accuracy") XL "accuracy_param { top_k: 4 }", "4x3 4",
     "l: top_k 4 must be 1 to 3, the number of classes", NULL},
    {LAYER("Accuracy") XL "accuracy_param { top_k: 0 }", "4x3 4",
     "l: top_k 0 must be 1 to 3, the number of classes", NULL},
    {LAYER("Accuracy") XL, "4x3 8",
     "l: 'l' has 8 labels, but 'x' has 4 positions to label (all its axes but axis 1, the classes)",
     NULL},
    {LAYER("MeanIoU") XL, "4x3x2x2 4x1x2x3",
     "l: 'l' has 24 labels, but 'x' has 16 positions to label (all its axes but axis 1, the "
     "classes)",
     NULL},
    {LAYER("MeanIoU") XL "mean_iou_param { axis: 0 }", "4x3 3",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches",
     NULL},
    {LAYER("MeanIoU") XL, "4x3? 4", "l: no axis of its bottom 'x' holds the samples of the batch",
     NULL},
    {LAYER("MeanIoU") XL "loss_weight: 1", "4x3 4",
     "l: a MeanIoU layer has no gradient and cannot be a loss", NULL},
    {LAYER("MeanIoU") XL, "1x1048577 1",
     "l: axis 1 of 'x' has 1048577 classes; the limit is 1048576", NULL},
    {LAYER("Accuracy") XL "accuracy_param { axis: 0 }", "4x3 3",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches",
     NULL},
    {LAYER("Accuracy") XL "loss_weight: 1", "4x3 4",
     "l: an Accuracy layer has no gradient and cannot be a loss", NULL},
    {LAYER("Accuracy") XL "accuracy_param { confusion_matrix: true }", "4x3 4",
     "l: there is no top for the confusion matrix", NULL},
    {LAYER("Accuracy") XL "top: 'b' top: 'c'", "4x3 4",
     "l: has 3 tops; without confusion_matrix: true there are only the accuracy and that of each "
     "class",
     NULL},
    {LAYER("Accuracy") XL "top: 'm' accuracy_param { confusion_matrix: true }", "2x2049 2",
     "l: a confusion matrix of 2049 classes was asked for; the limit is 2048", NULL},

    {LAYER("Input") "top: 'x'", "", "l: input_param is missing", NULL},
    {LAYER("Input") "top: 'x' input_param { }", "", "l: input_param has no shape", NULL},
    {LAYER("HDF5Data") "top: 'x' hdf5_data_param { source: 's' }", "", "l: batch_size is missing",
     NULL},
    {LAYER("MemoryData") "top: 'x'", "", "l: memory_data_param is missing", NULL},
    {LAYER("MemoryData") "top: 'x' memory_data_param { channels: 1 height: 2 width: 2 }", "",
     "l: extent 0 of axis 0 is not possible", NULL},
    {LAYER("MemoryData") "top: 'x' memory_data_param { batch_size: 3 height: 2 width: 2 }", "",
     "l: extent 0 of axis 1 is not possible", NULL},
    {LAYER("Input") "top: 'x' input_param { shape { } }", "",
     "l: a shape needs 1 to 8 extents (dim), the first one being the batch; this one has 0", NULL},
    {LAYER("Input") "top: 'x' input_param { shape { dim: [1, 1, 1, 1, 1, 1, 1, 1, 1] } }", "",
     "l: a shape needs 1 to 8 extents (dim), the first one being the batch; this one has 9", NULL},
    {LAYER("Input") "top: 'x' input_param { shape { dim: [1, -3] } }", "",
     "l: extent -3 of axis 1 is not possible", NULL},
    {LAYER("Input") "top: 'x' input_param { shape { dim: [1, 1099511627777] } }", "",
     "l: the top would be 1 x 1099511627777, which is empty or larger than a tensor may be", NULL},
    {LAYER("Input") "top: 'x' top: 'y' top: 'z' input_param { shape { dim: 1 } shape { dim: 1 } }",
     "", "l: shape must be given once, or once for each of the 3 tops; it is given 2 times", NULL},
    {LAYER("DummyData") "top: 'x'", "",
     "l: shape must be given once, or once for each of the 1 tops; it is given 0 times", NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { num: 1 channels: 1 height: 1 }", "",
     "l: width must be given once, or once for each of the 1 tops; it is given 0 times", NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { num: 0 channels: 1 height: 1 width: 1 }", "",
     "l: a batch of 0 samples is not possible", NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { num: 2 channels: 0 height: 1 width: 1 }", "",
     "l: the top would be 2 x 0 x 1 x 1, which is empty or larger than a tensor may be", NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { num: 1 channels: 1 height: 1 width: 1 "
                        "shape { dim: 1 } }",
     "", "l: shape and num, channels, height, width cannot both be given", NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { shape { dim: 1 } data_filler { } "
                        "data_filler { } }",
     "",
     "l: data_filler must be given at most once, or once for each of the 1 tops; it is given 2 "
     "times",
     NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { shape { dim: 1 } "
                        "data_filler { type: 'bilinear' } }",
     "", "l: filler 'bilinear' is for weights only", NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { shape { dim: 1 } "
                        "data_filler { type: 'gausian' } }",
     "", "l: there is no filler 'gausian'", NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { shape { dim: 1 } "
                        "data_filler { type: 'gaussian' sparse: 3 } }",
     "", "l: sparse depends on the size of the batch and is for weights only", NULL},
    {LAYER("DummyData") "top: 'x' dummy_data_param { shape { dim: 1 } "
                        "data_filler { type: 'xavier' variance_norm: AVERAGE } }",
     "", "l: FAN_OUT and AVERAGE depend on the size of the batch and are for weights only", NULL},

    {LAYER("Data") "top: 'x'", "", "l: data_param is missing", NULL},
    {LAYER("AnnotatedData") "top: 'x' annotated_data_param { }", "", "l: data_param is missing",
     NULL},
    {LAYER("Data") "top: 'x' data_param { source: 'd' }", "", "l: batch_size is missing", NULL},
    {LAYER("Data") "top: 'x' data_param { source: 'd' batch_size: 0 }", "",
     "l: a batch of 0 samples is not possible", NULL},
    {LAYER("Data") "top: 'x' data_param { source: 'd' batch_size: 5 }", "",
     "l: its data set is not open", NULL},
};

static void all_errors(void **state)
{
    (void)state;
    check_errors(cases, sizeof cases / sizeof *cases);
}

/* All problems of a layer come in one go. */
static void several_at_once(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one,
               LAYER("Convolution") XY
               "convolution_param { kernel_size: 3 stride: 0 pad: [1, 2, 3] "
               "group: 2 dilation: 0 }",
               "2x3x8x8", true);
    assert_int_equal(run_forward(&one), LOCKSTEP_DEFINITION);
    assert_int_equal(one.error.count, 5);
    close_layer(&one);
    open_layer(&one,
               LAYER("Accuracy") XL "accuracy_param { top_k: 9 } loss_weight: 1 top: 'b' top: 'c'",
               "4x3 5", true);
    assert_int_equal(run_forward(&one), LOCKSTEP_DEFINITION);
    assert_int_equal(one.error.count, 4);
    close_layer(&one);
}

/* Caffe's "cannot backpropagate to label inputs"; where the definition stops the gradient, fine. */
static void learned_labels(void **state)
{
    (void)state;
    static const char *const types[] = {"SoftmaxWithLoss", "MultinomialLogisticLoss",
                                        "SigmoidCrossEntropyLoss", "HingeLoss"};
    for (int stopped = 0; stopped < 2; stopped++) {
        for (int i = 0; i < 4; i++) {
            char text[200];
            struct one_layer one;
            snprintf(text, sizeof text, "name: 'l' type: '%s' " XL "%s", types[i],
                     stopped ? "propagate_down: true propagate_down: false" : "");
            open_layer(&one, text, i == 2 ? "4x3! 4x3!" : "4x3! 4!", true);
            assert_int_equal(run_forward(&one), 0);
            assert_int_equal(run_backward(&one), stopped ? 0 : LOCKSTEP_DEFINITION);
            if (!stopped)
                assert_non_null(strstr(one.error.problems[0].message,
                                       "cannot backpropagate to its labels, but 'l' depends on"));
            close_layer(&one);
        }
    }
}

/* The same of other bottoms that get no gradient. */
static void learned_others(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bottoms, *message;
    } others[] = {
        {LAYER("ContrastiveLoss") XLS, "4x3! 4x3 4!",
         "a ContrastiveLoss layer cannot backpropagate to its bottom 2, but 's' depends on"},
        {LAYER("InfogainLoss") XLS, "4x3! 4 3x3?!",
         "a InfogainLoss layer cannot backpropagate to its bottom 2"},
        {LAYER("SmoothL1Loss") XLS, "4x3! 4x3 4x3!",
         "a SmoothL1Loss layer cannot backpropagate to its bottom 2"},
        {LAYER("LinearSoftmaxLoss") XL "linear_softmax_loss_param { num_output: 5 }", "4x3! 4!",
         "a LinearSoftmaxLoss layer cannot backpropagate to its labels, but 'l' depends on"},
        {LAYER("LinearSoftmaxLoss") XLS
         "top: 'z' linear_softmax_loss_param { num_output: 5 metric: BITS_PER_BYTE }",
         "4x3! 4 4!", "a LinearSoftmaxLoss layer cannot backpropagate to its bottom 2"},
        {LAYER("Embed") XY "embed_param { num_output: 2 input_dim: 3 }", "4!",
         "an Embed layer cannot backpropagate to its indices, but 'x' depends on"},
        {LAYER("EmbeddingBag") XL "embedding_bag_param { num_output: 2 input_dim: 3 }", "4x2 4!",
         "an EmbeddingBag layer cannot backpropagate to its indices and lengths, but 'l' depends"},
        {LAYER("Gather") XL, "4x3! 4x2!",
         "a Gather layer cannot backpropagate to its numbers of places, but 'l' depends on"},
        {LAYER("Softmax") XL, "4x3! 4x3!",
         "a Softmax layer cannot backpropagate to its mask, but 'l' depends on"},
        {LAYER("Attention") XL "attention_param { num_heads: 2 extra: ADDED_MASK }",
         "4x5x12! 4x5x5!",
         "an Attention layer cannot backpropagate to bottoms of extra, but 'l' depends on"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct one_layer one;
        open_layer(&one, others[i].text, others[i].bottoms, true);
        assert_int_equal(run_forward(&one), 0);
        assert_int_equal(run_backward(&one), LOCKSTEP_DEFINITION);
        if (strstr(one.error.problems[0].message, others[i].message) == NULL)
            fail_msg("%s: %s", others[i].text, one.error.problems[0].message);
        close_layer(&one);
    }
}

/* Nor do bottoms get one from the losses of positions. */
static void losses_of_positions_have_no_gradient(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bottoms;
    } tops[] = {
        {LAYER("SoftmaxWithLoss") XL "top: 'p' top: 'z'", "4x3! 4"},
        {LAYER("SoftmaxWithLossOHEM") XL "top: 'p' top: 'z' loss_weight: [0, 0, 0]", "4x3! 4"},
        {LAYER("SmoothL1Loss") XL "top: 'z'", "4x3! 4x3"},
        {LAYER("SmoothL1LossOHEM") XL "top: 'z' loss_weight: [0, 0]", "4x3! 4x3"},
    };
    for (size_t i = 0; i < 2 * sizeof tops / sizeof *tops; i++) {
        struct one_layer one;
        open_layer(&one, tops[i / 2].text, tops[i / 2].bottoms, true);
        assert_int_equal(run_forward(&one), 0);
        struct ls_value *each = one.layer->top[one.layer->tops - 1];
        if (i % 2 == 0)
            ls_graph_add_gradient(one.graph, each, ls_graph_gradient_value(one.graph, each));
        assert_int_equal(run_backward(&one), i % 2 == 0 ? LOCKSTEP_DEFINITION : 0);
        if (i % 2 == 0 && strstr(one.error.problems[0].message,
                                 "its top 'z', the losses of positions, has no gradient") == NULL)
            fail_msg("%s: %s", tops[i / 2].text, one.error.problems[0].message);
        close_layer(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_errors),
        cmocka_unit_test(several_at_once),
        cmocka_unit_test(learned_labels),
        cmocka_unit_test(learned_others),
        cmocka_unit_test(losses_of_positions_have_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
