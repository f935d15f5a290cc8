/* Import of convolutions, pooling and resizing: layers, and the numbers of weights that do not
 * learn. SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "support/onnx_models.h"

static void set_text(struct model *m, const char *name, const char *value)
{
    Onnx__AttributeProto *a = attribute(m, name);
    a->has_s = 1;
    a->s.len = strlen(value);
    a->s.data = (uint8_t *)ls_arena_copy_string(m->arena, value);
}

/* Of x [2, 3, H, W] by a window of 3 places, 2 apart. */
static struct model pooling(const char *type, int64_t height, int64_t width)
{
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 3, height, width));
    node(&m, type, "x", "y");
    set_list(&m, "kernel_shape", 2, (int64_t[]){3, 3});
    set_list(&m, "strides", 2, (int64_t[]){2, 2});
    output(&m, "y");
    return m;
}

static void an_average_leaves_padding_out(void **state)
{
    (void)state;
    struct model m = pooling("AveragePool", 5, 5);
    set_list(&m, "pads", 4, (int64_t[]){1, 1, 1, 1});
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "pool: AVE kernel_size: 3 stride: 2 pad: 1 round_mode: FLOOR");
    expect_text(&net, "scale_param { axis: 2 num_axes: 2 }\n  param { lr_mult: 0 decay_mult: 0 }");
    /* At a corner 4 of 9 places count, at an edge 6. */
    const float *factors = net.weights[0].numbers;
    assert_int_equal(ls_shape_size(&net.weights[0].shape), 9);
    assert_true(factors[0] == 9.0F / 4 && factors[1] == 9.0F / 6 && factors[4] == 1);
    ls_onnx_net_free(&net);
    m = pooling("AveragePool", 5, 5); /* Caffe's averages are these */
    set_list(&m, "pads", 4, (int64_t[]){1, 1, 1, 1});
    set_integer(&m, "count_include_pad", 1);
    net = import(&m);
    assert_null(strstr(net.layers.data, "Scale"));
    ls_onnx_net_free(&net);
}

static void windows_that_round_up(void **state)
{
    (void)state;
    struct model m = pooling("MaxPool", 6, 6); /* Caffe's own way */
    set_integer(&m, "ceil_mode", 1);
    struct ls_onnx_net net = import(&m);
    assert_null(strstr(net.layers.data, "FLOOR"));
    assert_int_equal(net.output_shape.dim[2], 3);
    ls_onnx_net_free(&net);
    m = pooling("MaxPool", 6, 6); /* padding on one side: put on in front */
    set_integer(&m, "ceil_mode", 1);
    set_list(&m, "pads", 4, (int64_t[]){1, 1, 0, 0});
    net = import(&m);
    expect_text(&net, "axis: 2 before: 1 after: 0 axis: 3 before: 1 after: 0");
    assert_int_equal(net.output_shape.dim[2], 3);
    ls_onnx_net_free(&net);
    m = pooling("MaxPool", 6, 2);
    FAILS(&m, LOCKSTEP_DEFINITION, "larger than its input");
    m = pooling("MaxPool", 6, 6);
    set_list(&m, "pads", 4, (int64_t[]){3, 0, 0, 0});
    FAILS(&m, LOCKSTEP_DEFINITION, "padding is not smaller");
}

/* Of x [2, 4, 5, 5]. */
static struct model transposed(int64_t kernel, int64_t stride, int64_t pad, int64_t more)
{
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 4, 5, 5));
    weight(&m, "w", SHAPE(4, 3, kernel, kernel), 1);
    weight(&m, "b", SHAPE(3), 7);
    node(&m, "ConvTranspose", "x w b", "y");
    set_list(&m, "strides", 2, (int64_t[]){stride, stride});
    set_list(&m, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    set_list(&m, "output_padding", 2, (int64_t[]){more, more});
    output(&m, "y");
    return m;
}

static void output_padding_is_cut_or_put_on(void **state)
{
    (void)state;
    struct model m = transposed(3, 2, 1, 1); /* one less is cut off behind */
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "num_output: 3 kernel_size: 3 stride: 2 }");
    expect_text(&net, "slice_param { axis: 3 slice_point: 1 }");
    assert_int_equal(net.output_shape.dim[2], 10);
    ls_onnx_net_free(&net);
    m = transposed(2, 3, 0, 2); /* beyond the result there is the bias alone */
    net = import(&m);
    expect_text(&net, "bias_term: false");
    expect_text(&net, "axis: 2 before: 0 after: 2 axis: 3 before: 0 after: 2");
    expect_text(&net, "bias_param { axis: 1 }");
    assert_int_equal(net.output_shape.dim[2], 16);
    ls_onnx_net_free(&net);
    m = transposed(2, 2, 5, 0);
    FAILS(&m, LOCKSTEP_DEFINITION, "padding leaves nothing");
    m = transposed(2, 2, 0, -1);
    FAILS(&m, LOCKSTEP_DEFINITION, "output_padding is out of range");
}

/* Of x [2, 3, 4, 5], to a size along its last two axes. */
static struct model resizing(const char *mode, const char *place, int64_t height, int64_t width)
{
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 3, 4, 5));
    INTEGERS(&m, "size", 2, 3, height, width);
    integers(&m, "none", 0, &height); /* no numbers */
    node(&m, "Resize", "x none none size", "y");
    set_text(&m, "mode", mode);
    set_text(&m, "coordinate_transformation_mode", place);
    output(&m, "y");
    return m;
}

static void planes_are_resized(void **state)
{
    (void)state;
    const struct {
        const char *mode, *place, *text;
        int64_t height, width;
    } cases[] = {
        {"nearest", "half_pixel", "upsample_param { scale_h: 2 scale_w: 3 }", 8, 15},
        {"linear", "align_corners", "interp_param { height: 7 width: 6 }", 7, 6},
        {"linear", "half_pixel", "kernel_size: 4 stride: 2 pad: 3 group: 3", 8, 10},
        {"nearest", "half_pixel", "gather_param { axis: 2 }", 3, 5},
        {"cubic", "half_pixel", "inner_product_param { num_output: 7", 7, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = resizing(cases[i].mode, cases[i].place, cases[i].height, cases[i].width);
        struct ls_onnx_net net = import(&m);
        expect_text(&net, cases[i].text);
        assert_int_equal(net.output_shape.dim[3], cases[i].width);
        ls_onnx_net_free(&net);
    }
}

/* Rows of a matrix that resizes have the sum 1, and that of the middles of 4 to 2 is known. */
static void factors_of_a_resize_add_up(void **state)
{
    (void)state;
    struct model m = resizing("linear", "half_pixel", 2, 3);
    struct ls_onnx_net net = import(&m);
    const float *rows = net.weights[0].numbers;
    assert_int_equal(net.weights[0].shape.dim[1], 4);
    assert_true(rows[0] == 0.5F && rows[1] == 0.5F && rows[2] == 0 && rows[6] == 0.5F);
    const float *others = net.weights[1].numbers;
    for (int o = 0; o < 3; o++) {
        float sum = 0;
        for (int i = 0; i < 5; i++)
            sum += others[5 * o + i];
        assert_true(fabsf(sum - 1) < 1e-6F);
    }
    ls_onnx_net_free(&net);
}

static void what_resize_cannot(void **state)
{
    (void)state;
    struct model m = resizing("area", "half_pixel", 8, 8);
    FAILS(&m, LOCKSTEP_DEFINITION, "its mode has no equivalent");
    m = resizing("linear", "tf_crop_and_resize", 8, 8);
    FAILS(&m, LOCKSTEP_DEFINITION, "coordinate_transformation_mode has no equivalent");
    m = resizing("linear", "half_pixel", 2, 2);
    set_integer(&m, "antialias", 1);
    FAILS(&m, LOCKSTEP_DEFINITION, "antialias");
    m = resizing("linear", "half_pixel", -1, 2);
    FAILS(&m, LOCKSTEP_DEFINITION, "out of range");
    m = resizing("linear", "half_pixel", INT64_MAX, 2);
    FAILS(&m, LOCKSTEP_DEFINITION, "out of range");
    m = resizing("cubic", "half_pixel", 1 << 23, 5);
    FAILS(&m, LOCKSTEP_DEFINITION, "too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_average_leaves_padding_out),   cmocka_unit_test(windows_that_round_up),
        cmocka_unit_test(output_padding_is_cut_or_put_on), cmocka_unit_test(planes_are_resized),
        cmocka_unit_test(factors_of_a_resize_add_up),      cmocka_unit_test(what_resize_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
