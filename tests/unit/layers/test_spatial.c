/* Deconvolution, Interp, Upsample and Crop: shapes of tops, blobs, ops, costs, and what they
 * refuse. SPDX-License-Identifier: BSD-2-Clause */
#include "one_layer.h"

#define LAYER(type) "name: 'l' type: '" type "' "
#define XY          "bottom: 'x' top: 'y' "
#define XRY         "bottom: 'x' bottom: 'r' top: 'y' "
#define DECONV      LAYER("Deconvolution") XY "convolution_param { num_output: 4 "
#define INTERP      LAYER("Interp") XY "interp_param { "
#define UPSAMPLE    LAYER("Upsample") XY "upsample_param { "
#define CROP        LAYER("Crop") XRY "crop_param { "

/* ---- Shapes ---------------------------------------------------------------------------------- */

static const struct {
    const char *text, *bottoms, *tops;
} shapes[] = {
    /* s (h - 1) + d (k - 1) + 1 - 2p */
    {DECONV "kernel_size: 4 stride: 2 pad: 1 }", "2x3x7x9", "2x4x14x18!"},
    {DECONV "kernel_size: 64 stride: 32 }", "2x3x16x15", "2x4x544x512!"},
    {DECONV "kernel_size: 3 }", "2x3x1x1/2", "2x4x3x3/2!"},
    {DECONV "kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 3 pad_h: 1 dilation: [2, 1] }",
     "2x3x5x6", "2x4x11x17!"},
    {DECONV "kernel_size: 5 stride: 2 }", "2x3x8", "2x4x19!"},
    {DECONV "kernel_size: [2, 3, 1] stride: [2, 1, 3] pad: [0, 1, 0] }", "2x3x4x5x6",
     "2x4x8x5x16!"},
    {LAYER("Deconvolution") "bottom: 'a' bottom: 'b' top: 'y' top: 'z' "
                            "convolution_param { num_output: 2 kernel_size: 2 stride: 2 }",
     "2x3x4x4 2x3x4x4", "2x2x8x8!, 2x2x8x8!"},
    {INTERP "height: 33 width: 17 }", "2x3x5x9!", "2x3x33x17!"},
    {INTERP "zoom_factor: 8 }", "2x3x41x41", "2x3x321x321"},
    {INTERP "zoom_factor: 2 }", "2x3x1x5", "2x3x1x9"},
    {INTERP "shrink_factor: 2 }", "2x3x41x40", "2x3x21x20"},
    {INTERP "shrink_factor: 2 zoom_factor: 3 }", "2x3x8x9", "2x3x10x13"},
    {INTERP "shrink_factor: 1 }", "2x3x8x9", "2x3x8x9"},
    {INTERP "zoom_factor: 2 pad_beg: -1 pad_end: -2 }", "2x3x8x9", "2x3x9x11"},
    {INTERP "height: 5 width: 6 pad_beg: -7 }", "2x3x8x9/2", "2x3x5x6/2"},
    {LAYER("Interp") XRY, "2x3x8x9 2x5x31x7!", "2x3x31x7"},
    {LAYER("Interp") XRY "interp_param { pad_end: -1 }", "2x3x8x9! 7x5x31x7?", "2x3x31x7!"},
    {LAYER("Upsample") XY, "2x3x5x9!", "2x3x10x18!"},
    {UPSAMPLE "scale: 3 }", "2x3x5x9/2", "2x3x15x27/2"},
    {UPSAMPLE "scale_h: 1 scale_w: 4 }", "2x3x5x9", "2x3x5x36"},
    {LAYER("Crop") XRY, "2x3x8x9! 2x5x6x7", "2x3x6x7!"},
    {CROP "offset: 2 }", "2x3x8x9 2x5x6x7!", "2x3x6x7"},
    {CROP "axis: 1 offset: [1, 0, 2] }", "2x3x8x9 2x2x6x7", "2x2x6x7"},
    {CROP "axis: -1 offset: 4 }", "2x3x8x9/2 2x3x1x5", "2x3x8x5/2"},
    {CROP "axis: 1 offset: 3 }", "4x9 7x2?", "4x2"},
    {LAYER("Crop") XRY, "2x3x8x9x7! 2x5x6x7x1", "2x3x6x7x1!"},
    {CROP "offset: [1, 0, 2] }", "2x3x8x9x7 2x5x6x9x4!", "2x3x6x9x4"},
};

static void all_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct one_layer one;
        struct ls_text tops = {0};
        open_layer(&one, shapes[i].text, shapes[i].bottoms, true);
        if (run_forward(&one) != 0)
            fail_msg("%s: %s", shapes[i].text, one.error.problems[0].message);
        describe_tops(&tops, &one);
        if (strcmp(tops.data, shapes[i].tops) != 0)
            fail_msg("%s: %s, not %s", shapes[i].text, tops.data, shapes[i].tops);
        ls_text_free(&tops);
        close_layer(&one);
    }
}

/* What a deconvolution makes, a convolution with the same parameters takes back to the same
 * extent. */
static void deconvolution_undoes_extents(void **state)
{
    (void)state;
    char text[300], bottom[64];
    for (int code = 0; code < 6 * 4 * 3 * 3 * 2; code++) {
        int input = code % 6 + 1, kernel = code / 6 % 4 + 1, stride = code / 24 % 3 + 1;
        int pad = code / 72 % 3, dilation = code / 216 % 2 + 1;
        int64_t extent = stride * (input - 1) + dilation * (kernel - 1) + 1 - 2 * pad;
        for (int turn = 0; turn < 2; turn++) {
            struct one_layer one;
            snprintf(text, sizeof text,
                     "name: 'l' type: '%s' bottom: 'x' top: 'y' convolution_param { num_output: 1 "
                     "kernel_size: %d stride: %d pad: %d dilation: %d }",
                     turn == 0 ? "Deconvolution" : "Convolution", kernel, stride, pad, dilation);
            snprintf(bottom, sizeof bottom, "2x1x%d", turn == 0 ? input : (int)extent);
            open_layer(&one, text, bottom, false);
            int status = run_forward(&one);
            if (extent < 1)
                assert_int_equal(status, LOCKSTEP_DEFINITION);
            else
                assert_int_equal(one.layer->top[0]->shape.dim[2], turn == 0 ? extent : input);
            close_layer(&one);
            if (extent < 1)
                break;
        }
    }
}

static void blobs(void **state)
{
    (void)state;
    struct one_layer one;
    char text[160];
    open_layer(&one,
               LAYER("Deconvolution") XY
               "convolution_param { num_output: 6 kernel_size: [3, 5] group: 2 "
               "weight_filler { type: 'bilinear' } bias_filler { value: 2 } }",
               "2x4x9x9", false);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(one.layer->blobs, 2);
    const struct ls_blob_request *request = one.layer->request;
    assert_string_equal(ls_shape_text(&request[0].shape, text, sizeof text), "4 3 3 5 (180)");
    assert_string_equal(ls_shape_text(&request[1].shape, text, sizeof text), "6 (6)");
    assert_string_equal(request[0].filler->type, "bilinear");
    assert_true(request[1].filler->value == 2);
    close_layer(&one);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *bottoms, *forward, *backward;
} ops[] = {
    {DECONV "kernel_size: 2 }", "2x3x4x4!", "deconvolution(x l.weight l.bias > y)",
     "deconvolution backward weights(x grad(y) > grad(l.weight) grad(l.bias)); "
     "accumulate(grad(l.weight)); accumulate(grad(l.bias)); "
     "deconvolution backward data(grad(y) l.weight > grad(x))"},
    /* Fixed bilinear enlargement. */
    {LAYER("Deconvolution") XY "param { lr_mult: 0 } convolution_param { num_output: 3 group: 3 "
                               "kernel_size: 4 stride: 2 pad: 1 bias_term: false "
                               "weight_filler { type: 'bilinear' } }",
     "2x3x4x4!", "deconvolution(x l.weight - > y)",
     "deconvolution backward data(grad(y) l.weight > grad(x))"},
    /* Channels along another axis: the same ops between views. */
    {DECONV "kernel_size: 2 axis: 2 }", "2x5x3x4x4!",
     "view(x > x); deconvolution(x l.weight l.bias > y); view(y > y)",
     "view(grad(y) > grad(y)); "
     "deconvolution backward weights(x grad(y) > grad(l.weight) grad(l.bias)); "
     "accumulate(grad(l.weight)); accumulate(grad(l.bias)); "
     "deconvolution backward data(grad(y) l.weight > grad(x)); view(grad(x) > grad(x))"},
    {DECONV "kernel_size: 2 axis: 2 }", "2x5x3x4x4",
     "view(x > x); deconvolution(x l.weight l.bias > y); view(y > y)",
     "view(grad(y) > grad(y)); "
     "deconvolution backward weights(x grad(y) > grad(l.weight) grad(l.bias)); "
     "accumulate(grad(l.weight)); accumulate(grad(l.bias))"},
    {INTERP "zoom_factor: 2 }", "2x3x4x4!", "resize(x > y)", "resize backward(grad(y) > grad(x))"},
    {INTERP "zoom_factor: 2 } propagate_down: false", "2x3x4x4!", "resize(x > y)", ""},
    {INTERP "zoom_factor: 1 }", "2x3x4x4!", "", ""},
    {INTERP "height: 4 width: 4 pad_beg: -1 }", "2x3x4x4!", "resize(x > y)",
     "resize backward(grad(y) > grad(x))"},
    {LAYER("Interp") XRY, "2x3x4x4! 2x3x8x8!", "resize(x > y)",
     "resize backward(grad(y) > grad(x))"},
    {LAYER("Interp") XRY, "2x3x4x4 2x3x8x8!", "resize(x > y)", ""},
    {LAYER("Upsample") XY, "2x3x4x4!", "upsample(x > y)", "upsample backward(grad(y) > grad(x))"},
    {UPSAMPLE "} propagate_down: false", "2x3x4x4!", "upsample(x > y)", ""},
    {LAYER("Crop") XRY, "2x3x4x4! 2x3x2x4!", "crop(x > y)", "crop backward(grad(y) > grad(x))"},
    {LAYER("Crop") XRY, "2x3x4x4 2x3x2x4!", "crop(x > y)", ""},
    {LAYER("Crop") XRY, "2x3x4x4! 2x7x4x4!", "", ""},
};

static void check(const char *text, const char *what, const struct ls_text *got, const char *wanted)
{
    const char *ops_text = got->data != NULL ? got->data : "";
    if (strcmp(ops_text, wanted) != 0)
        fail_msg("%s, %s:\n  %s\nnot\n  %s", text, what, ops_text, wanted);
}

static void all_ops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct one_layer one;
        struct ls_text forward = {0}, backward = {0};
        open_layer(&one, ops[i].text, ops[i].bottoms, true);
        if (run_forward(&one) != 0)
            fail_msg("%s: %s", ops[i].text, one.error.problems[0].message);
        size_t forward_ops = one.graph->op_count;
        describe_ops(&forward, one.graph, 0);
        check(ops[i].text, "forward", &forward, ops[i].forward);
        assert_int_equal(run_backward(&one), 0);
        describe_ops(&backward, one.graph, forward_ops);
        check(ops[i].text, "backward", &backward, ops[i].backward);
        assert_null(one.layer->bottoms > 1 ? ls_graph_gradient(one.graph, one.layer->bottom[1])
                                           : NULL);
        ls_text_free(&forward);
        ls_text_free(&backward);
        close_layer(&one);
    }
}

static void attributes(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, INTERP "zoom_factor: 2 pad_beg: -1 pad_end: -2 }", "2x3x8x8!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(one.graph->ops[i]->attr.resize.begin, 1);
        assert_int_equal(one.graph->ops[i]->attr.resize.end, 2);
    }
    close_layer(&one);
    open_layer(&one, CROP "axis: 1 offset: [1, 0, 2] }", "2x3x8x9! 2x2x6x7", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    static const int64_t offsets[] = {0, 1, 0, 2};
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(one.graph->ops[i]->attr.crop.offset, offsets, sizeof offsets);
    close_layer(&one);
    open_layer(&one, LAYER("Crop") XRY "crop_param { offset: 3 }", "2x3x8x9 2x2x5x6", true);
    assert_int_equal(run_forward(&one), 0);
    static const int64_t same[] = {0, 0, 3, 3};
    assert_memory_equal(one.graph->ops[0]->attr.crop.offset, same, sizeof same);
    close_layer(&one);
}

/* ---- Cost ------------------------------------------------------------------------------------ */

static struct ls_cost cost_of(const char *text, const char *bottoms)
{
    struct one_layer one;
    struct ls_cost cost = {0};
    open_layer(&one, text, bottoms, true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    one.layer->type->cost(one.layer, &cost);
    close_layer(&one);
    return cost;
}

static void costs(void **state)
{
    (void)state;
    struct ls_cost cost = cost_of(DECONV "kernel_size: 5 stride: 5 group: 2 }", "3x2x6x7!");
    double flops = 2.0 * 3 * 2 * 6 * 7 * 2 * 5 * 5;
    double bytes = 4.0 * (3 * 2 * 6 * 7 + 2 * 2 * 5 * 5 + 3 * 4 * 30 * 35);
    assert_true(cost.forward_flops == flops && cost.forward_bytes == bytes);
    assert_true(cost.backward_weights_flops == flops && cost.backward_data_flops == flops);
    assert_true(cost.backward_bytes == 2 * bytes);
    cost = cost_of(INTERP "zoom_factor: 2 }", "2x3x4x4!");
    assert_true(cost.forward_bytes == 4.0 * (96 + 294) && cost.backward_bytes == 4.0 * (96 + 294));
    assert_true(cost.forward_flops > 0 && cost.backward_data_flops > 0);
    cost = cost_of(INTERP "zoom_factor: 2 }", "2x3x4x4");
    assert_true(cost.forward_bytes > 0 && cost.backward_bytes == 0);
    cost = cost_of(LAYER("Crop") XRY, "2x3x4x4! 2x3x2x2");
    assert_true(cost.forward_bytes == 8.0 * 24 && cost.backward_bytes == 4.0 * (96 + 24));
    cost = cost_of(LAYER("Crop") XRY, "2x3x4x4! 2x3x4x4");
    assert_true(cost.forward_bytes == 0 && cost.backward_bytes == 0);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* `place` is line:column in "net.prototxt" of the first problem; NULL: somewhere in line 1. */
static const struct {
    const char *text, *bottoms, *message, *place;
} errors[] = {
    {LAYER("Deconvolution") XY "\n  convolution_param { num_output: 1 kernel_size: 3\n  pad: 2 }",
     "2x3x2x9", "l: the top would have 0 positions along an axis (height)", "3:3"},
    {LAYER("Deconvolution") XY "\n  convolution_param { num_output: 1 kernel_size: 3 pad_h: 0\n "
                               "pad_w: 9 }",
     "2x3x9x9", "l: the top would have -7 positions along an axis (width)", "3:2"},
    {DECONV "}", "2x3x4x4", "l: kernel_size is missing", NULL},
    {LAYER("Deconvolution") XY, "2x3x8x8", "l: num_output is missing", NULL},
    {DECONV "kernel_size: 1 group: 2 }", "2x3x8x8",
     "l: the 3 channels of 'x' cannot be divided into 2 groups", NULL},
    {DECONV "kernel_size: 1 group: 3 }", "2x3x8x8",
     "l: num_output 4 cannot be divided into 3 groups", NULL},
    {DECONV "kernel_size: 1 stride: 0 }", "2x3x8x8",
     "l: stride 0 is out of range; it must be 1 to 2147483647", NULL},
    {DECONV "kernel_size: 2147483647 dilation: 2147483647 stride: 2147483647 }", "2x3x8x8",
     "l: the top would be 2 x 4 x 4611686027017322492 x 4611686027017322492, which is empty or "
     "larger than a tensor may be",
     NULL},
    {DECONV "kernel_size: 1 }", "2x3",
     "l: its bottom 'x' must have 1 to 3 spatial axes behind axis 1, the channels, but is 2 3 (6)",
     NULL},
    {DECONV "kernel_size: 1 }", "2x3x4x5?",
     "l: axis 0 of its bottom 'x' does not hold the samples of the batch", NULL},

    {INTERP "height: 3\n zoom_factor: 2 }", "2x3x8x8", "l: height and width must be given together",
     NULL},
    {INTERP "height: 3 width: 3\n  zoom_factor: 2 }", "2x3x8x8",
     "l: the size of the top is given twice, by height and width and by a factor", "2:3"},
    {INTERP "height: 3 width: 3\n  shrink_factor: 2 }", "2x3x8x8",
     "l: the size of the top is given twice, by height and width and by a factor", "2:3"},
    {LAYER("Interp") XRY "interp_param {\n zoom_factor: 2 }", "2x3x8x8 2x3x9x9",
     "l: the size of the top is given twice, here and by the second bottom", "2:2"},
    {INTERP "}", "2x3x8x8", "l: nothing gives the size of the top", NULL},
    {LAYER("Interp") XY, "2x3x8x8", "l: nothing gives the size of the top", NULL},
    {INTERP "height: 0 width: 3 }", "2x3x8x8", "l: height 0 is out of range; it must be at least 1",
     NULL},
    {INTERP "height: 3 width: -3 }", "2x3x8x8",
     "l: width -3 is out of range; it must be at least 1", NULL},
    {INTERP "zoom_factor: 0 }", "2x3x8x8",
     "l: zoom_factor 0 is out of range; it must be at least 1", NULL},
    {INTERP "shrink_factor: -2147483648 }", "2x3x8x8",
     "l: shrink_factor -2147483648 is out of range; it must be at least 1", NULL},
    {INTERP "zoom_factor: 2\n  pad_beg: 1 }", "2x3x8x8", "l: pad_beg 1 must not be positive",
     "2:3"},
    {INTERP "zoom_factor: 2\n  pad_end: 9 }", "2x3x8x8", "l: pad_end 9 must not be positive",
     "2:3"},
    {INTERP "zoom_factor: 2 pad_beg: -4 pad_end: -5 }", "2x3x12x9",
     "l: pad_beg -4 and pad_end -5 leave nothing of the 9 positions of 'x' (width)", NULL},
    {INTERP "zoom_factor: 2 pad_beg: -2147483648 pad_end: -2147483648 }", "2x3x12x9",
     "l: pad_beg -2147483648 and pad_end -2147483648 leave nothing of the 12 positions of 'x' "
     "(height)",
     NULL},
    {INTERP "zoom_factor: 2147483647 }", "2x3x8x8",
     "l: an axis of more than 2^24 positions cannot be resized (height)", NULL},
    {INTERP "height: 2147483647 width: 2147483647 }", "2x3x8x8",
     "l: an axis of more than 2^24 positions cannot be resized (height)", NULL},
    {INTERP "zoom_factor: 2 }", "2x3x8",
     "l: its bottom 'x' must have 4 axes (samples, channels, height, width), but is 2 3 8 (48)",
     NULL},
    {INTERP "zoom_factor: 2 }", "2x3x8x8x8",
     "l: its bottom 'x' must have 4 axes (samples, channels, height, width), but is 2 3 8 8 8 "
     "(3072)",
     NULL},
    {LAYER("Interp") XRY, "2x3x8x8 2x3",
     "l: its bottom 'r' must have 4 axes (samples, channels, height, width), but is 2 3 (6)", NULL},
    {INTERP "zoom_factor: 2 }", "2x3x8x8?",
     "l: axis 0 of its bottom 'x' does not hold the samples of the batch", NULL},

    {UPSAMPLE "scale: 0 }", "2x3x8x8", "l: a factor of 0 leaves nothing; it must be at least 1",
     NULL},
    {UPSAMPLE "scale_h: 2 }", "2x3x8x8", "l: scale_h and scale_w must be given together", NULL},
    {UPSAMPLE "scale_h: 2 scale_w: 2\n  scale: 2 }", "2x3x8x8",
     "l: the factors are given twice, by scale and by scale_h and scale_w", "2:3"},
    {UPSAMPLE "scale: 2\n  upsample_h: 15 }", "2x3x8x8",
     "l: the size is that of a second bottom, which says where maxima were; there is none", "2:3"},
    {UPSAMPLE "scale: 4294967295 }", "2x3x2147483647x8",
     "l: the top would be 2 x 3 x 9223372030412324865 x 34359738360, which is empty or larger than "
     "a "
     "tensor may be",
     NULL},
    {LAYER("Upsample") XY, "2x3x8",
     "l: its bottom 'x' must have 4 axes (samples, channels, height, width), but is 2 3 8 (48)",
     NULL},
    {LAYER("Upsample") XRY, "2x3x8x8 2x3x8x8",
     "l: its second bottom 'r' does not say where maxima were", NULL},

    {LAYER("Crop") XRY "\n  crop_param {\n  offset: 4 }", "2x3x8x9 2x3x5x5",
     "l: 5 positions from 4 on do not fit into the 8 of 'x' along axis 2", "3:3"},
    {LAYER("Crop") XRY, "2x3x8x9 2x3x8x10",
     "l: 10 positions from 0 on do not fit into the 9 of 'x' along axis 3", NULL},
    {CROP "offset: 4294967295 }", "2x3x8x9 2x3x1x1",
     "l: 1 positions from 4294967295 on do not fit into the 8 of 'x' along axis 2", NULL},
    {CROP "offset: [1, 2, 3] }", "2x3x8x9 2x3x5x5",
     "l: offset is given 3 times; it must be given once, or once for each of the 2 axes from 2 on",
     NULL},
    {CROP "axis: 0 }", "2x3x8x9 2x3x5x5",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches",
     NULL},
    {CROP "axis: -4 }", "2x3x8x9? 2x3x5x5", "l: axis 0 cannot be cropped", NULL},
    {CROP "axis: 4 }", "2x3x8x9 2x3x5x5",
     "l: axis 4 is out of range for 'x' with shape 2 3 8 9 (432)", NULL},
    {LAYER("Crop") XRY, "2x3 2x3", "l: axis 2 is out of range for 'x' with shape 2 3 (6)", NULL},
    {LAYER("Crop") XRY, "2x3x8x9 2x3x5",
     "l: its bottoms must have as many axes as each other, but 'x' is 2 3 8 9 (432) and 'r' is 2 3 "
     "5 (30)",
     NULL},
};

static void all_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct one_layer one;
        open_layer(&one, errors[i].text, errors[i].bottoms, true);
        if (run_forward(&one) != LOCKSTEP_DEFINITION)
            fail_msg("%s is accepted", errors[i].text);
        const struct ls_problem *problem = &one.error.problems[0];
        if (strcmp(problem->message, errors[i].message) != 0)
            fail_msg("%s:\n  %s\nnot\n  %s", errors[i].text, problem->message, errors[i].message);
        char place[64];
        snprintf(place, sizeof place, "net.prototxt:%s",
                 errors[i].place != NULL ? errors[i].place : "1:");
        if (strncmp(problem->place, place, strlen(place)) != 0)
            fail_msg("%s: at %s, not %s", errors[i].text, problem->place, place);
        close_layer(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes), cmocka_unit_test(deconvolution_undoes_extents),
        cmocka_unit_test(blobs),      cmocka_unit_test(all_ops),
        cmocka_unit_test(attributes), cmocka_unit_test(costs),
        cmocka_unit_test(all_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
