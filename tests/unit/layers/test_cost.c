/* What layers say they cost: 2 FLOPs a multiply-add, 4 bytes a number, nothing where nothing runs.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_layer.h"

#define LAYER(type) "name: 'l' type: '" type "' "
#define XY          "bottom: 'x' top: 'y' "

static struct ls_cost cost_of(const char *text, const char *bottoms, bool training)
{
    struct one_layer one;
    struct ls_cost cost = {0};
    open_layer(&one, text, bottoms, training);
    if (run_forward(&one) != 0)
        fail_msg("%s: %s", text, one.error.problems[0].message);
    if (training)
        assert_int_equal(run_backward(&one), 0);
    if (one.layer->type->cost != NULL)
        one.layer->type->cost(one.layer, &cost);
    close_layer(&one);
    return cost;
}

static void is(double got, double wanted)
{
    assert_float_equal((float)got, (float)wanted, 0);
}

static void convolution(void **state)
{
    (void)state;
    /* LeNet's second convolution at batch 64: 50 x 8 x 8 outputs of 20 x 5 x 5 inputs. */
    const char *text =
        LAYER("Convolution") XY "convolution_param { num_output: 50 kernel_size: 5 }";
    double flops = 2.0 * 64 * 50 * 8 * 8 * 20 * 5 * 5;
    double bytes = 4.0 * (64 * 20 * 12 * 12 + 50 * 20 * 5 * 5 + 64 * 50 * 8 * 8);
    struct ls_cost cost = cost_of(text, "64x20x12x12!", true);
    is(cost.forward_flops, flops);
    is(cost.backward_weights_flops, flops);
    is(cost.backward_data_flops, flops);
    is(cost.forward_bytes, bytes);
    is(cost.backward_bytes, 2 * bytes);
    cost = cost_of(text, "64x20x12x12", true); /* the first layer: no gradient of data */
    is(cost.backward_weights_flops, flops);
    is(cost.backward_data_flops, 0);
    is(cost.backward_bytes, bytes);
    cost = cost_of(text, "64x20x12x12!", false);
    is(cost.forward_flops, flops);
    is(cost.backward_weights_flops + cost.backward_data_flops + cost.backward_bytes, 0);
    cost = cost_of(LAYER("Convolution") XY "convolution_param { num_output: 50 kernel_size: 5 "
                                           "group: 10 }",
                   "64x20x12x12!", true);
    is(cost.forward_flops, flops / 10);
}

static void inner_product(void **state)
{
    (void)state;
    const char *text = LAYER("InnerProduct") XY "inner_product_param { num_output: 500 }";
    struct ls_cost cost = cost_of(text, "64x50x4x4!", true);
    is(cost.forward_flops, 2.0 * 64 * 500 * 800);
    is(cost.backward_weights_flops, 2.0 * 64 * 500 * 800);
    is(cost.backward_data_flops, 2.0 * 64 * 500 * 800);
    is(cost.forward_bytes, 4.0 * (64 * 800 + 800 * 500 + 64 * 500));
    cost = cost_of(LAYER("InnerProduct") XY "inner_product_param { num_output: 500 } "
                                            "param { lr_mult: 0 }",
                   "64x50x4x4!", true);
    is(cost.backward_weights_flops, 0);
    is(cost.backward_data_flops, 2.0 * 64 * 500 * 800);
}

/* Every type: no negative or absurd number, backward costs only in training. */
static void all_types(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bottoms;
        bool costs, costs_backward;
    } cases[] = {
        {LAYER("Pooling") XY "pooling_param { kernel_size: 2 }", "4x3x8x8!", true, true},
        {LAYER("Pooling") XY "pooling_param { pool: AVE kernel_size: 2 }", "4x3x8x8!", true, true},
        {LAYER("ReLU") XY, "4x3!", true, true},
        {LAYER("Sigmoid") XY, "4x3!", true, true},
        {LAYER("TanH") XY, "4x3!", true, true},
        {LAYER("ELU") XY, "4x3!", true, true},
        {LAYER("Power") XY "power_param { power: 2 }", "4x3!", true, true},
        {LAYER("Power") XY, "4x3!", false, false},
        {LAYER("Threshold") XY, "4x3!", true, false},
        {LAYER("PReLU") XY, "4x3!", true, true},
        {LAYER("BatchReindex") "bottom: 'x' bottom: 'i' top: 'y'", "4x3! 7", true, true},
        {LAYER("BatchReindex") "bottom: 'x' bottom: 'i' top: 'y'", "4x3 7", true, false},
        {LAYER("Filter") "bottom: 'x' bottom: 's' top: 'y'", "4x3! 4", true, true},
        {LAYER("Filter") "bottom: 'x' bottom: 's' top: 'y'", "4x3 4", true, false},
        {LAYER("Parameter") "top: 'y' parameter_param { shape { dim: 4 } }", "", true, true},
        {LAYER("ROIPooling") "bottom: 'x' bottom: 'r' top: 'y' roi_pooling_param { pooled_h: 2 "
                             "pooled_w: 2 }",
         "4x3x5x5! 7x5", true, true},
        {LAYER("PSROIPooling") "bottom: 'x' bottom: 'r' top: 'y' psroi_pooling_param { "
                               "spatial_scale: 1 output_dim: 3 group_size: 1 }",
         "4x3x5x5! 7x5", true, true},
        {LAYER("PReLU") XY, "4x3", true, true},
        {LAYER("GroupNorm") XY "group_norm_param { groups: 1 }", "4x3x2!", true, true},
        {LAYER("LayerNorm") XY, "4x3", true, true},
        {LAYER("RMSNorm") XY, "4x3", true, true},
        {LAYER("GELU") XY, "4x3!", true, true},
        {LAYER("SiLU") XY, "4x3!", true, true},
        {LAYER("GLU") XY, "4x6!", true, true},
        {LAYER("GLU") "bottom: 'a' bottom: 'b' top: 'y'", "4x3 4x3!", true, true},
        {LAYER("GLU") "bottom: 'a' bottom: 'b' top: 'y'", "4x3 4x3", true, false},
        {LAYER("MatMul") "bottom: 'a' bottom: 'b' top: 'y'", "4x3x2! 4x2x5", true, true},
        {LAYER("MatMul") "bottom: 'a' bottom: 'b' top: 'y'", "4x3x2 4x2x5", true, false},
        {LAYER("Gather") "bottom: 'a' bottom: 'b' top: 'y'", "4x3x2! 4x5", true, true},
        {LAYER("Gather") "bottom: 'a' bottom: 'b' top: 'y'", "4x3x2 4x5", true, false},
        {LAYER("Pad") XY "pad_param { before: 1 }", "4x3!", true, true},
        {LAYER("Pad") XY "pad_param { before: 0 }", "4x3!", false, false},
        {LAYER("Positions") XY, "4x3!", true, false},
        {LAYER("EmbeddingBag") XY "embedding_bag_param { num_output: 5 input_dim: 7 }", "4x3", true,
         true},
        {LAYER("MVN") XY, "4x3x2!", true, true},
        {LAYER("InstanceNorm") XY, "4x3x2", true, false},
        {LAYER("LRN") XY, "4x3x5x5!", true, true},
        {LAYER("LRN") XY "lrn_param { norm_region: WITHIN_CHANNEL }", "4x3x5x5!", true, true},
        {LAYER("Dropout") XY "dropout_param { dropout_ratio: 0 }", "4x3!", false, false},
        {LAYER("Softmax") XY, "4x3!", true, true},
        {LAYER("Flatten") XY, "4x3x2!", false, false},
        {LAYER("Split") XY, "4x3x2!", false, false},
        {LAYER("Silence") "bottom: 'x'", "4x3x2!", false, false},
        {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y'", "4x3! 4x3", true, true},
        {LAYER("Concat") "bottom: 'a' top: 'y'", "4x3!", false, false},
        {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y'", "4x3! 4x3!", true, false},
        {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' eltwise_param { operation: MAX }",
         "4x3! 4x3!", true, true},
        {LAYER("SoftmaxWithLoss") "bottom: 'x' bottom: 'l'", "4x3! 4", true, true},
        {LAYER("MultinomialLogisticLoss") "bottom: 'x' bottom: 'l'", "4x3! 4", true, true},
        {LAYER("SigmoidCrossEntropyLoss") "bottom: 'x' bottom: 'l'", "4x3! 4x3", true, true},
        {LAYER("EuclideanLoss") "bottom: 'x' bottom: 'l'", "4x3! 4x3", true, true},
        {LAYER("EuclideanLoss") "bottom: 'x' bottom: 'l' loss_weight: 0", "4x3! 4x3", true, false},
        {LAYER("Accuracy") "bottom: 'x' bottom: 'l' top: 'a'", "4x3! 4", true, false},
        {LAYER("MeanIoU") "bottom: 'x' bottom: 'l' top: 'a'", "4x3! 4", true, false},
        {LAYER("Input") "top: 'x' input_param { shape { dim: [1, 3] } }", "", true, false},
        {LAYER("DummyData") "top: 'x' dummy_data_param { shape { dim: [1, 3] } }", "", true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ls_cost cost = cost_of(cases[i].text, cases[i].bottoms, true);
        struct ls_cost test = cost_of(cases[i].text, cases[i].bottoms, false);
        if ((cost.forward_bytes > 0) != cases[i].costs ||
            (cost.backward_bytes > 0) != cases[i].costs_backward ||
            (cost.backward_data_flops > 0 && !cases[i].costs_backward))
            fail_msg("%s: forward %g bytes, backward %g", cases[i].text, cost.forward_bytes,
                     cost.backward_bytes);
        is(test.backward_bytes + test.backward_data_flops + test.backward_weights_flops, 0);
    }
    struct ls_cost cost = cost_of(LAYER("ReLU") XY, "4x3!", true);
    is(cost.forward_flops, 12);
    is(cost.forward_bytes, 2 * 48);
    is(cost.backward_bytes, 3 * 48); /* dy, y, dx */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution),
        cmocka_unit_test(inner_product),
        cmocka_unit_test(all_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
