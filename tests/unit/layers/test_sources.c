/* Where data enter: Data, Input, DummyData, and the batch that they agree on.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_layer.h"

#define DATA "name: 'd' type: 'Data' top: 'x' top: 'l' data_param { source: 'f' batch_size: 64 } "

/* Pictures with labels, or with maps. */
static struct ls_source_tensor other[] = {{{3, {9, 9, 9}}, LS_F32}, {{3, {1, 9, 9}}, LS_F32}};
static struct ls_source_tensor labelled[] = {{{3, {3, 32, 30}}, LS_F32}, {{0, {0}}, LS_F32}};
static struct ls_source_tensor mapped[] = {{{3, {3, 32, 30}}, LS_F32}, {{3, {1, 32, 30}}, LS_F32}};

static const struct ls_source_shape shapes[] = {{.layer = "other", .tensor = other, .tensors = 2},
                                                {.layer = "d", .tensor = labelled, .tensors = 2}};

static int open_source(struct one_layer *one, const char *text,
                       const struct ls_source_shapes *sources)
{
    open_layer(one, text, "", true);
    one->graph->sources = sources;
    return run_forward(one);
}

static void data_shapes(void **state)
{
    (void)state;
    const struct ls_source_shapes sources = {shapes, 2, 64};
    struct one_layer one;
    struct ls_text tops = {0};
    assert_int_equal(open_source(&one, DATA "transform_param { crop_size: 28 }", &sources), 0);
    describe_tops(&tops, &one);
    assert_string_equal(tops.data, "10x3x32x30, 10");
    assert_int_equal(one.graph->input_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(one.graph->inputs[i].value, one.layer->top[i]);
        assert_int_equal(one.layer->top[i]->storage, LS_STORE_INPUT);
        assert_int_equal(one.layer->top[i]->sample_axis, 0);
        assert_false(one.layer->top[i]->learned);
    }
    assert_int_equal(one.graph->op_count, 0);
    ls_text_free(&tops);
    close_layer(&one);
}

/* Label maps have one channel and their picture's height and width. */
static void map_shapes(void **state)
{
    (void)state;
    const struct ls_source_shape shape = {.layer = "d", .tensor = mapped, .tensors = 2};
    const struct ls_source_shapes sources = {&shape, 1, 64};
    struct one_layer one;
    struct ls_text tops = {0};
    assert_int_equal(open_source(&one, DATA, &sources), 0);
    describe_tops(&tops, &one);
    assert_string_equal(tops.data, "10x3x32x30, 10x1x32x30");
    assert_int_equal(one.layer->top[1]->sample_axis, 0);
    ls_text_free(&tops);
    close_layer(&one);
}

/* Where a layer says so, samples lie behind axes of their own; not where they differ in size. */
static void samples_lie_along_any_axis_of_a_data_layer(void **state)
{
    (void)state;
    static const char layer[] =
        "name: 'd' type: 'Data' top: 'x' top: 'l' data_param { source: 'f' batch_size: 64 "
        "tensor { sample_axis: 2 } tensor { sample_axis: 0 } }";
    struct ls_source_tensor steps[] = {{{2, {5, 7}}, LS_F32}, {{0, {0}}, LS_F32}};
    struct ls_source_shape shape = {.layer = "d", .tensor = steps, .tensors = 2};
    const struct ls_source_shapes sources = {&shape, 1, 64};
    struct one_layer one;
    struct ls_text tops = {0};
    assert_int_equal(open_source(&one, layer, &sources), 0);
    describe_tops(&tops, &one);
    assert_string_equal(tops.data, "5x7x10@2, 10");
    ls_text_free(&tops);
    close_layer(&one);
    shape.varies = true;
    assert_int_equal(open_source(&one, layer, &sources), LOCKSTEP_DEFINITION);
    assert_non_null(strstr(one.error.problems[0].message, "that differ in size lie along axis 0"));
    close_layer(&one);
}

/* Any number of tops of any shape and type. */
static void tensors_of_records(void **state)
{
    (void)state;
    struct ls_source_tensor tensors[] = {
        {{1, {7}}, LS_I32}, {{0, {0}}, LS_F32}, {{4, {2, 3, 4, 5}}, LS_F32}};
    const struct ls_source_shape shape = {.layer = "d", .tensor = tensors, .tensors = 3};
    const struct ls_source_shapes sources = {&shape, 1, 64};
    struct one_layer one;
    struct ls_text tops = {0};
    assert_int_equal(open_source(&one,
                                 "name: 'd' type: 'Data' top: 'x' top: 'y' top: 'z' data_param { "
                                 "source: 'f' batch_size: 64 }",
                                 &sources),
                     0);
    describe_tops(&tops, &one);
    assert_string_equal(tops.data, "10x7%I32, 10, 10x2x3x4x5");
    assert_int_equal(one.layer->top[0]->type, LS_I32);
    assert_int_equal(one.layer->top[2]->type, LS_F32);
    ls_text_free(&tops);
    close_layer(&one);
    tensors[0].shape.rank = LS_RANK_MAX; /* there is no axis left for samples */
    assert_int_equal(open_source(&one,
                                 "name: 'd' type: 'Data' top: 'x' data_param { source: 'f' "
                                 "batch_size: 64 }",
                                 &sources),
                     LOCKSTEP_DEFINITION);
    close_layer(&one);
}

static void one_batch_for_all(void **state)
{
    (void)state;
    const struct ls_source_shapes sources = {shapes, 2, 32};
    static const char *const texts[] = {
        DATA,
        "name: 'i' type: 'Input' top: 'x' input_param { shape { dim: [64, 3] } }",
        "name: 'z' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: [64, 3] } }",
        ("name: 'z' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { num: 32 num: 64 "
         "channels: 1 height: 1 width: 1 }"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct one_layer one;
        assert_int_equal(open_source(&one, texts[i], &sources), LOCKSTEP_DEFINITION);
        assert_int_equal(one.error.count, 1);
        assert_non_null(strstr(one.error.problems[0].message,
                               "has batches of 64 samples, but those of the net have 32"));
        close_layer(&one);
    }
}

static void hostile_sizes(void **state)
{
    (void)state;
    struct ls_source_tensor large[] = {{{3, {INT64_C(1) << 30, 1 << 20, 3}}, LS_F32}};
    const struct ls_source_shape huge = {.layer = "d", .tensor = large, .tensors = 1};
    const struct ls_source_shapes sources = {&huge, 1, 0};
    struct one_layer one;
    assert_int_equal(open_source(&one, DATA, &sources), LOCKSTEP_DEFINITION);
    assert_non_null(strstr(one.error.problems[0].message, "larger than a tensor may be"));
    close_layer(&one);
}

static void declared_batches(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t batch;
    } cases[] = {
        {DATA, 64},
        {"name: 'd' type: 'Data' top: 'x'", 0},
        {"name: 'i' type: 'Input' top: 'x' input_param { shape { dim: [7, 3] } }", 7},
        {"name: 'i' type: 'Input' top: 'x' input_param { shape { dim: [7, 3] } sample_axis: 1 }",
         3},
        {"name: 'i' type: 'Input' top: 'x' input_param { shape { dim: [7, 3] } sample_axis: 2 }",
         0},
        {"name: 'i' type: 'Input' top: 'x' input_param { shape { } }", 0},
        {"name: 'i' type: 'Input' top: 'x' input_param { shape { dim: -7 } }", 0},
        {"name: 'i' type: 'Input' top: 'x'", 0},
        {"name: 'z' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: [8, 3] } }", 8},
        {"name: 'z' type: 'DummyData' top: 'x' dummy_data_param { num: 9 }", 9},
        {"name: 'z' type: 'DummyData' top: 'x'", 0},
        {"name: 'r' type: 'ReLU' top: 'x' data_param { batch_size: 3 }", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one_layer one;
        open_layer(&one, cases[i].text, "", false);
        assert_int_equal(ls_source_batch(one.layer->definition), cases[i].batch);
        close_layer(&one);
    }
}

/* Samples of an Input layer lie along the axis that it says, for all tops or for each. */
static void samples_lie_along_any_axis_of_an_input(void **state)
{
    (void)state;
    static const struct {
        const char *text, *tops; /* "no: " and what is wrong */
    } cases[] = {
        {"top: 'a' input_param { shape { dim: [5, 64, 3] } sample_axis: 1 }", "5x10x3@1"},
        {"top: 'a' top: 'b' input_param { shape { dim: [64, 64] } sample_axis: 1 }",
         "64x10@1, 64x10@1"},
        {"top: 'a' top: 'b' input_param { shape { dim: [64, 64] } sample_axis: [1, 0] }",
         "64x10@1, 10x64"},
        {"top: 'a' top: 'b' input_param { shape { dim: [5, 7, 64] } shape { dim: 64 } "
         "sample_axis: [2, 0] }",
         "5x7x10@2, 10"},
        {"top: 'a' input_param { shape { dim: [5, 64, 3] } }",
         "no: has batches of 5 samples, but those of the net have 64"},
        {"top: 'a' input_param { shape { dim: [5, 64] } sample_axis: 2 }",
         "no: along axis 2, which a shape of 2 extents does not have"},
        {"top: 'a' top: 'b' top: 'c' input_param { shape { dim: 64 } sample_axis: [0, 0] }",
         "no: sample_axis must be given once, or once for each of the 3 tops"},
    };
    const struct ls_source_shapes sources = {NULL, 0, 64};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one_layer one;
        struct ls_text text = {0}, tops = {0};
        ls_text_format(&text, "name: 'i' type: 'Input' %s", cases[i].text);
        int status = open_source(&one, text.data, &sources);
        if (status == 0)
            describe_tops(&tops, &one);
        if (strncmp(cases[i].tops, "no: ", 4) != 0) {
            assert_string_equal(tops.data, cases[i].tops);
        } else {
            assert_int_equal(status, LOCKSTEP_DEFINITION);
            assert_non_null(strstr(one.error.problems[0].message, cases[i].tops + 4));
        }
        ls_text_free(&text);
        ls_text_free(&tops);
        close_layer(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_shapes),
        cmocka_unit_test(map_shapes),
        cmocka_unit_test(tensors_of_records),
        cmocka_unit_test(one_batch_for_all),
        cmocka_unit_test(hostile_sizes),
        cmocka_unit_test(declared_batches),
        cmocka_unit_test(samples_lie_along_any_axis_of_a_data_layer),
        cmocka_unit_test(samples_lie_along_any_axis_of_an_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
