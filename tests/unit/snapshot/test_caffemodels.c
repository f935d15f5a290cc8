/* Real caffemodels of several ages, where they are on this machine.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/caffemodel.h"
#include "snapshot/weights.h"
#include "support/support.h"

static void read_model(const char *name, struct ls_weights *weights)
{
    struct ls_error error = {0};
    const char *path = ls_test_data_or_skip(name);
    if (ls_weights_read(path, LS_WEIGHTS_BEST, weights, &error) != 0)
        fail_msg("%s: %s", error.problems[0].place, error.problems[0].message);
}

static const struct ls_weight_layer *find(const struct ls_weights *weights, const char *name)
{
    for (size_t i = 0; i < weights->layer_count; i++) {
        if (strcmp(weights->layers[i].name, name) == 0)
            return &weights->layers[i];
    }
    fail_msg("no layer '%s'", name);
    return NULL;
}

/* The same net in the form of 2014 and in that of 2015: names, sizes, and which shapes. */
static void check_lenet(const char *name, bool legacy)
{
    static const struct {
        const char *name;
        int64_t weights, biases;
    } layers[] = {{"conv1", 20 * 25, 20},
                  {"conv2", 50 * 20 * 25, 50},
                  {"ip1", 500 * 800, 500},
                  {"ip2", 10 * 500, 10}};
    struct ls_weights weights;
    read_model(name, &weights);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const struct ls_weight_layer *layer = find(&weights, layers[i].name);
        assert_int_equal(layer->blob_count, 2);
        assert_int_equal(layer->blobs[0].legacy, legacy);
        assert_int_equal(layer->blobs[0].shape.rank, legacy || i < 2 ? 4 : 2);
        assert_int_equal(ls_shape_size(&layer->blobs[0].shape), layers[i].weights);
        assert_int_equal(ls_shape_size(&layer->blobs[1].shape), layers[i].biases);
        double largest = 0; /* trained weights are small numbers, not all zero */
        for (int64_t e = 0; e < layers[i].weights; e++) {
            double size =
                layer->blobs[0].data[e] < 0 ? -layer->blobs[0].data[e] : layer->blobs[0].data[e];
            largest = size > largest ? size : largest;
        }
        assert_true(largest > 0.01 && largest < 10);
    }
    ls_weights_free(&weights);
}

static void lenet_of_2014_is_read(void **state)
{
    (void)state;
    check_lenet("caffemodels/bvlc_examples_2014/lenet_iter_10000.caffemodel", true);
}

static void lenet_of_2015_is_read(void **state)
{
    (void)state;
    check_lenet("caffemodels/lenet_2015/lenet_iter_10000.caffemodel", false);
}

/* How many blobs and numbers each file holds. */
static void every_stored_caffemodel_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int blobs;
        int64_t numbers;
    } files[] = {
        {"bvlc_examples_2014/cifar10_full_iter_60000.caffemodel", 8, 89578},
        {"bvlc_examples_2014/cifar10_full_iter_70000.caffemodel", 8, 89578},
        {"bvlc_examples_2014/cifar10_quick_iter_4000.caffemodel", 10, 145578},
        {"bvlc_examples_2014/cifar10_quick_iter_5000.caffemodel", 10, 145578},
        {"ultraface/RFB-320.caffemodel", 104, 273888},
        {"ultraface/slim-320.caffemodel", 84, 257916},
    };
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        char name[256];
        snprintf(name, sizeof name, "caffemodels/%s", files[f].name);
        struct ls_weights weights;
        read_model(name, &weights);
        int blobs = 0;
        int64_t numbers = 0;
        for (size_t i = 0; i < weights.layer_count; i++) {
            for (int b = 0; b < weights.layers[i].blob_count; b++) {
                blobs++;
                numbers += ls_shape_size(&weights.layers[i].blobs[b].shape);
            }
        }
        if (blobs != files[f].blobs || numbers != files[f].numbers)
            fail_msg("%s: %d blobs, %jd numbers", name, blobs, (intmax_t)numbers);
        ls_weights_free(&weights);
    }
}

static void a_solverstate_is_refused(void **state)
{
    (void)state;
    const char *path =
        ls_test_data_or_skip("caffemodels/bvlc_examples_2014/lenet_iter_10000.solverstate");
    struct ls_weights weights;
    struct ls_error error = {0};
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), LOCKSTEP_WEIGHTS);
    assert_non_null(strstr(error.problems[0].message, "solverstate"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lenet_of_2014_is_read),
        cmocka_unit_test(lenet_of_2015_is_read),
        cmocka_unit_test(every_stored_caffemodel_is_read),
        cmocka_unit_test(a_solverstate_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
