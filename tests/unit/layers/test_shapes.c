/* Shapes of tops, their samples and rows, for every layer type, against Caffe's rules.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_layer.h"

struct shape_case {
    const char *text, *bottoms, *tops;
};

#define LAYER(type) "name: 'l' type: '" type "' "
#define XY          "bottom: 'x' top: 'y' "

static const struct shape_case cases[] = {
    /* Convolution: floor((h + 2p - (d (k - 1) + 1)) / s) + 1, one to three spatial axes. */
    {LAYER("Convolution") XY "convolution_param { num_output: 20 kernel_size: 5 }", "64x1x28x28",
     "64x20x24x24!"},
    {LAYER("Convolution") XY "convolution_param { num_output: 96 kernel_size: 11 stride: 4 }",
     "2x3x227x227", "2x96x55x55!"},
    {LAYER("Convolution") XY
     "convolution_param { num_output: 6 kernel_size: 3 dilation: 2 pad: 1 stride: 2 group: 3 }",
     "2x9x11x12", "2x6x5x5!"},
    {LAYER("Convolution") XY
     "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 1 stride_h: 2 "
     "stride_w: 3 pad_h: 0 pad_w: 2 axis: -3 engine: CUDNN "
     "force_nd_im2col: true }",
     "2x3x9x9", "2x4x4x5!"},
    {LAYER("Convolution") XY "convolution_param { num_output: 4 kernel_size: [2, 3, 1] stride: 1 "
                             "pad: [0, 1, 0] dilation: [1, 1, 3] engine: CAFFE }",
     "2x3x5x6x7", "2x4x4x6x7!"},
    {LAYER("Convolution") XY "convolution_param { num_output: 4 kernel_size: 3 pad_w: 1 }",
     "2x3x8x8", "2x4x6x8!"},
    {LAYER("Convolution") XY "convolution_param { num_output: 4 kernel_size: 3 }", "2x3x8",
     "2x4x6!"},
    {LAYER("Convolution") XY "convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 }",
     "2x3x8x9x10", "2x4x4x5x5!"},
    /* What stands in front of the channels counts as samples. */
    {LAYER("Convolution") XY "convolution_param { num_output: 4 kernel_size: 3 axis: 2 }",
     "2x5x3x8x9", "2x5x4x6x7!"},
    {LAYER("Convolution") XY "convolution_param { num_output: 4 kernel_size: 3 axis: -2 }",
     "4x5x3x8/2", "4x5x4x6/2!"},
    {LAYER("Deconvolution") XY "convolution_param { num_output: 4 kernel_size: 2 stride: 2 }",
     "2x3x5x6x7!", "2x4x10x12x14!"},
    {LAYER("Deconvolution") XY
     "convolution_param { num_output: 4 kernel_size: 2 stride: 2 axis: 3 }",
     "2x3x5x6x7!", "2x3x5x4x14!"},
    {LAYER("Convolution") "bottom: 'a' bottom: 'b' top: 'y' top: 'z' "
                          "convolution_param { num_output: 4 kernel_size: 1 }",
     "2x3x8x8 2x3x8x8", "2x4x8x8!, 2x4x8x8!"},
    /* InnerProduct flattens from `axis` on and keeps what stands before. */
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 500 }", "64x50x4x4", "64x500!"},
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 7 axis: 2 }", "4x5x6x2", "4x5x7!"},
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 7 axis: -1 transpose: true }",
     "40x6/10", "40x7/10!"},
    /* Pooling rounds up, and leaves out a last window that would begin in the padding. */
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 stride: 2 }", "64x20x24x24",
     "64x20x12x12"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 3 stride: 2 }", "2x32x32x32", "2x32x16x16"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }",
     "2x32x32x32", "2x32x15x15"},
    {LAYER("Pooling") XY "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }",
     "2x32x14x13", "2x32x8x7"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 stride: 2 pad: 1 }", "2x3x3x4", "2x3x2x3"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 3 stride: 2 }", "2x3x2x5", "2x3x1x2"},
    {LAYER("Pooling") XY "pooling_param { pool: AVE global_pooling: true }", "2x3x7x9", "2x3x1x1"},
    {LAYER("Pooling") XY "pooling_param { kernel_h: 2 kernel_w: 3 stride_h: 1 stride_w: 3 pad_h: 0 "
                         "pad_w: 1 engine: CAFFE }",
     "2x3x6x6", "2x3x5x3"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 3 stride: 2 }", "2x3x7x7!", "2x3x3x3!"},
    /* The same over one and three spatial axes. */
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 stride: 2 }", "2x3x9!", "2x3x5!"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 stride: 2 }", "2x3x8x9x10!", "2x3x4x5x5!"},
    {LAYER("Pooling") XY
     "pooling_param { kernel_size: [1, 2, 3] stride: [1, 2, 3] pad: [0, 0, 1] }",
     "2x3x7x8x9", "2x3x7x4x4"},
    {LAYER("Pooling") XY "pooling_param { pool: AVE kernel_size: 3 stride: [2, 1, 2] pad: 1 "
                         "round_mode: FLOOR }",
     "2x3x7x8x8", "2x3x4x8x4"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: [2, 3] stride: [1, 3] }", "2x3x6x6",
     "2x3x5x2"},
    /* Padding along one axis leaves windows out along the others, too. */
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 stride: [2, 3, 2] pad: [1, 0, 0] }",
     "2x3x3x6x6", "2x3x2x2x3"},
    {LAYER("Pooling") XY "pooling_param { pool: AVE global_pooling: true }", "2x3x7x9x2!",
     "2x3x1x1x1!"},
    {LAYER("Pooling") XY "pooling_param { global_pooling: true }", "2x3x7/2", "2x3x1/2"},
    /* Elementwise. */
    {LAYER("ReLU") XY "relu_param { negative_slope: 0.1 engine: CUDNN }", "4x5!", "4x5!"},
    {LAYER("Sigmoid") XY "sigmoid_param { engine: CAFFE }", "4x5x6/2", "4x5x6/2"},
    {LAYER("TanH") XY, "4", "4"},
    {LAYER("Dropout") XY "dropout_param { dropout_ratio: 0.3 }", "4x5", "4x5"},
    {LAYER("LRN") XY "lrn_param { local_size: 7 alpha: 0.0001 k: 2 }", "4x5x6x7", "4x5x6x7"},
    {LAYER("LRN") XY "lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }", "4x5x6x7",
     "4x5x6x7"},
    {LAYER("Softmax") XY, "4x5x6", "4x5x6"},
    {LAYER("Softmax") XY "softmax_param { axis: -1 engine: CAFFE }", "4x5x6", "4x5x6"},
    /* Shapes. */
    {LAYER("Flatten") XY, "4x5x6x7", "4x210"},
    {LAYER("Flatten") XY "flatten_param { axis: 2 end_axis: -1 }", "4x5x6x7", "4x5x42"},
    {LAYER("Flatten") XY "flatten_param { axis: 1 end_axis: 2 }", "4x5x6x7", "4x30x7"},
    {LAYER("Flatten") XY "flatten_param { axis: 0 end_axis: 1 }", "4x5x6x7", "20x6x7/5"},
    {LAYER("Flatten") XY "flatten_param { axis: 0 }", "6x5/3", "30/15"},
    {LAYER("Flatten") XY "flatten_param { axis: 1 end_axis: 1 }", "4x5x6x7!", "4x5x6x7!"},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' bottom: 'c' top: 'y'", "4x5x2 4x1x2! 4x7x2",
     "4x13x2!"},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y' concat_param { concat_dim: 2 }",
     "4x5x2 4x5x3", "4x5x5"},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y' concat_param { axis: -1 }",
     "4x5x2/2 4x5x3/2", "4x5x5/2"},
    {LAYER("Concat") "bottom: 'a' top: 'y'", "4x5x2", "4x5x2"},
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y'", "4x5x2 4x5x2!", "4x5x2!"},
    {LAYER("Split") "bottom: 'a' top: 'y' top: 'z'", "4x5!", "4x5!, 4x5!"},
    {LAYER("Silence") "bottom: 'a' bottom: 'b'", "4x5 4", ""},
    /* Figures: no bytes, no samples. */
    {LAYER("SoftmaxWithLoss") "bottom: 'x' bottom: 'l' top: 'loss'", "4x10! 4", "figure"},
    {LAYER("SoftmaxWithLoss") "bottom: 'x' bottom: 'l'", "4x10! 4", "figure"},
    {LAYER("SoftmaxWithLoss") "bottom: 'x' bottom: 'l' top: 'loss' top: 'p'", "4x10x6x7! 4x1x6x7",
     "figure, 4x10x6x7!"},
    {LAYER("SoftmaxWithLoss") "bottom: 'x' bottom: 'l' top: 'loss' top: 'p'",
     "4x10x6x7x8! 4x1x6x7x8", "figure, 4x10x6x7x8!"},
    {LAYER("SoftmaxWithLoss") "bottom: 'x' bottom: 'l'", "4x10x6x7x8! 4x6x7x8", "figure"},
    {LAYER("Accuracy") "bottom: 'x' bottom: 'l' top: 'a' top: 'c'", "4x10x6x7x8! 4x6x7x8",
     "figure, 10 figures"},
    {LAYER("MeanIoU") "bottom: 'x' bottom: 'l' top: 'a'", "4x10x6x7x8! 4x1x6x7x8", "figure"},
    {LAYER("SoftmaxWithLoss") "bottom: 'x' bottom: 'l' softmax_param { axis: 2 }", "8x3x10/2 8x3/2",
     "figure"},
    {LAYER("MultinomialLogisticLoss") "bottom: 'x' bottom: 'l'", "4x10x1x1 4x1x1x1", "figure"},
    {LAYER("SigmoidCrossEntropyLoss") "bottom: 'x' bottom: 'l'", "4x10 4x10", "figure"},
    {LAYER("SigmoidCrossEntropyLoss") "bottom: 'x' bottom: 'l'", "4x10 4x5x2", "figure"},
    {LAYER("EuclideanLoss") "bottom: 'x' bottom: 'l'", "4x10 4x2x5", "figure"},
    {LAYER("Accuracy") "bottom: 'x' bottom: 'l' top: 'a'", "4x10 4", "figure"},
    {LAYER("Accuracy") "bottom: 'x' bottom: 'l' top: 'a' top: 'c'", "4x10x6x7! 4x1x6x7",
     "figure, 10 figures"},
    {LAYER("MeanIoU") "bottom: 'x' bottom: 'l' top: 'a' top: 'c'", "4x10x6x7! 4x1x6x7",
     "figure, 10 figures"},
    {LAYER("Accuracy") "bottom: 'x' bottom: 'l' top: 'a' top: 'c' accuracy_param { axis: -1 }",
     "4x6x10 4x6", "figure, 10 figures"},
    {LAYER("Accuracy") "bottom: 'x' bottom: 'l' top: 'a' top: 'c' top: 'm' "
                       "accuracy_param { confusion_matrix: true top_k: 3 }",
     "4x3 4", "figure, 3 figures, 9 figures"},
    {LAYER("Accuracy") "bottom: 'x' bottom: 'l' top: 'a' top: 'm' "
                       "accuracy_param { confusion_matrix: true }",
     "4x3 4", "figure, 9 figures"},
    /* Sources: the first extent of a definition is its batch; the graph has 10 samples. */
    {LAYER("Input") "top: 'x' input_param { shape { dim: 64 dim: 3 dim: 8 dim: 9 } }", "",
     "10x3x8x9"},
    {LAYER("Input") "top: 'x' top: 'l' input_param { shape { dim: [64, 3] } shape { dim: 64 } }",
     "", "10x3, 10"},
    {LAYER("Input") "top: 'x' top: 'z' input_param { shape { dim: [1, 3] } }", "", "10x3, 10x3"},
    {LAYER("DummyData") "top: 'x' top: 'z' dummy_data_param { num: 32 channels: 3 channels: 1 "
                        "height: 5 width: 6 width: 7 }",
     "", "10x3x5x6, 10x1x5x7"},
    {LAYER("DummyData") "top: 'x' top: 'z' dummy_data_param { shape { dim: [32, 4] } "
                        "shape { dim: 32 } data_filler { type: 'gaussian' std: 2 } }",
     "", "10x4, 10"},
    {LAYER("DummyData") "top: 'x' top: 'l' dummy_data_param { shape { dim: [32, 1, 8, 9, 7] } "
                        "shape { dim: [32, 8, 9, 7] } data_filler { type: 'gaussian' } "
                        "data_filler { } }",
     "", "10x1x8x9x7, 10x8x9x7"},
};

static void all_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one_layer one;
        struct ls_text tops = {0};
        open_layer(&one, cases[i].text, cases[i].bottoms, true);
        if (run_forward(&one) != 0)
            fail_msg("%s: %s", cases[i].text, one.error.problems[0].message);
        describe_tops(&tops, &one);
        if (strcmp(tops.data != NULL ? tops.data : "", cases[i].tops) != 0)
            fail_msg("%s: %s, not %s", cases[i].text, tops.data, cases[i].tops);
        ls_text_free(&tops);
        close_layer(&one);
    }
}

/* ---- Convolution and pooling over a grid of extents ------------------------------------------ */

static int64_t height_of(const char *text, int input)
{
    struct one_layer one;
    char bottom[64];
    snprintf(bottom, sizeof bottom, "2x1x%dx40", input);
    open_layer(&one, text, bottom, false);
    int64_t height = run_forward(&one) == 0 ? one.layer->top[0]->shape.dim[2] : -1;
    close_layer(&one);
    return height;
}

/* The number of positions at which the kernel lies inside the padded input, counted one by one. */
static int64_t count_positions(int input, int kernel, int stride, int pad, int dilation)
{
    int64_t count = 0;
    for (int start = 0; start + dilation * (kernel - 1) < input + 2 * pad; start += stride)
        count++;
    return count > 0 ? count : -1;
}

static void convolution_extents(void **state)
{
    (void)state;
    char text[300];
    for (int code = 0; code < 9 * 3 * 2 * 3 * 2; code++) {
        int input = code % 9 + 1, kernel = code / 9 % 3 + 1, stride = code / 27 % 2 + 1;
        int pad = code / 54 % 3, dilation = code / 162 % 2 + 1;
        snprintf(text, sizeof text,
                 LAYER("Convolution") XY
                 "convolution_param { num_output: 1 kernel_size: %d stride: %d pad: %d "
                 "dilation: %d }",
                 kernel, stride, pad, dilation);
        if (height_of(text, input) != count_positions(input, kernel, stride, pad, dilation))
            fail_msg("%s on %d: %d", text, input, (int)height_of(text, input));
    }
}

/* Windows that begin inside the input (or the padding in front of it): when rounding up, also those
 * that reach beyond the far padding by less than a stride; Caffe's rule in terms of windows. */
static int64_t count_windows(int input, int kernel, int stride, int pad, bool up)
{
    int64_t count = 0;
    for (int i = 0;; i++) {
        int beyond = i * stride + kernel - (input + 2 * pad);
        if (up ? beyond >= stride : beyond > 0)
            break;
        if (i * stride - pad >= input) {
            if (pad == 0)
                return -1; /* an empty window, which Caffe would fill with rubbish */
            break;
        }
        count++;
    }
    return count > 0 ? count : -1;
}

static void pooling_extents(void **state)
{
    (void)state;
    char text[300];
    for (int code = 0; code < 9 * 4 * 4 * 3 * 2; code++) {
        int input = code % 9 + 1, kernel = code / 9 % 4 + 1, stride = code / 36 % 4 + 1;
        int pad = code / 144 % 3;
        bool up = code / 432 == 0;
        if (pad >= kernel)
            continue; /* refused */
        snprintf(text, sizeof text,
                 LAYER("Pooling") XY "pooling_param { kernel_h: %d kernel_w: %d stride_h: %d "
                                     "stride_w: 1 pad: %d round_mode: %s }",
                 kernel, kernel, stride, pad, up ? "CEIL" : "FLOOR");
        if (height_of(text, input) != count_windows(input, kernel, stride, pad, up))
            fail_msg("%s on %d: %d, not %d", text, input, (int)height_of(text, input),
                     (int)count_windows(input, kernel, stride, pad, up));
    }
}

/* ---- Blobs ----------------------------------------------------------------------------------- */

static void blobs(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bottoms, *weight, *bias;
    } blob_cases[] = {
        {LAYER("Convolution") XY "convolution_param { num_output: 6 kernel_size: [3, 5] group: 2 }",
         "2x4x9x9", "6 2 3 5 (180)", "6 (6)"},
        {LAYER("Convolution") XY "convolution_param { num_output: 6 kernel_size: 1 bias_term: 0 }",
         "2x4x9", "6 4 1 (24)", NULL},
        {LAYER("InnerProduct") XY "inner_product_param { num_output: 5 }", "2x4x9", "5 36 (180)",
         "5 (5)"},
        {LAYER("InnerProduct") XY "inner_product_param { num_output: 5 transpose: true axis: 2 "
                                  "bias_term: false }",
         "2x4x9", "9 5 (45)", NULL},
    };
    for (size_t i = 0; i < sizeof blob_cases / sizeof *blob_cases; i++) {
        struct one_layer one;
        char text[160];
        open_layer(&one, blob_cases[i].text, blob_cases[i].bottoms, false);
        assert_int_equal(run_forward(&one), 0);
        assert_int_equal(one.layer->blobs, blob_cases[i].bias != NULL ? 2 : 1);
        assert_string_equal(ls_shape_text(&one.layer->request[0].shape, text, sizeof text),
                            blob_cases[i].weight);
        if (blob_cases[i].bias != NULL)
            assert_string_equal(ls_shape_text(&one.layer->request[1].shape, text, sizeof text),
                                blob_cases[i].bias);
        close_layer(&one);
    }
}

static void fillers_are_those_of_the_definition(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one,
               LAYER("InnerProduct") XY
               "inner_product_param { num_output: 5 "
               "weight_filler { type: 'xavier' } bias_filler { value: 2 } }",
               "2x4", false);
    assert_int_equal(run_forward(&one), 0);
    assert_string_equal(one.layer->request[0].filler->type, "xavier");
    assert_true(one.layer->request[1].filler->value == 2);
    close_layer(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes),
        cmocka_unit_test(convolution_extents),
        cmocka_unit_test(pooling_extents),
        cmocka_unit_test(blobs),
        cmocka_unit_test(fillers_are_those_of_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
