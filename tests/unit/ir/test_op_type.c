/* The records of op kinds (ir/op_type.h): complete, in order, and of one mind.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "ir/op_type.h"
#include "ir/taken.h"

static void every_kind_has_its_record(void **state)
{
    (void)state;
    for (int kind = 0; kind < LS_OP_KINDS; kind++) {
        const struct ls_op_type *type = ls_op_type((enum ls_op_kind)kind);
        if (type->kind != (enum ls_op_kind)kind)
            fail_msg("the record '%s' stands in the place of kind %d", type->name, kind);
        assert_true(type->name != NULL && type->name[0] != '\0');
        assert_true(type->flops != NULL && type->traffic >= 0);
        for (int other = 0; other < kind; other++)
            assert_string_not_equal(ls_op_type((enum ls_op_kind)other)->name, type->name);
    }
    assert_string_equal(ls_op_kind_name(LS_OP_CONVOLUTION_DATA), "convolution backward data");
    assert_string_equal(ls_op_kind_name(LS_OP_KINDS), "unknown op");
}

/* In how many records a kind stands as what a gradient is made of. */
static int count_as_backward(enum ls_op_kind kind)
{
    int count = 0;
    for (int other = 0; other < LS_OP_KINDS; other++)
        for (int i = 0; i < LS_OP_BACKWARD_MAX; i++)
            count += ls_op_type((enum ls_op_kind)other)->backward[i] == kind;
    return count;
}

/* Kinds that serve the backward pass alone say so by their names; each is of one forward kind. */
static void backward_kinds_belong_to_one_forward_kind(void **state)
{
    (void)state;
    for (int kind = 1; kind < LS_OP_KINDS; kind++) {
        const struct ls_op_type *type = ls_op_type((enum ls_op_kind)kind);
        bool backward = strstr(type->name, "backward") != NULL;
        if (backward && count_as_backward(type->kind) != 1)
            fail_msg("'%s' is what the gradients of %d kinds are made of", type->name,
                     count_as_backward(type->kind));
        if (backward || type->timing != LS_TIMING_PASS)
            assert_int_equal(type->backward[0], 0);
        if (type->timing == LS_TIMING_WEIGHTS || type->timing == LS_TIMING_WEIGHTS_IF_MADE)
            assert_true(backward);
        assert_false(backward && type->heavy); /* only the forward pass is recomputed */
    }
}

/* A measure adds to a record, labels of classes are for measures, and each rank of measures by
 * which a prediction is found has some. */
static void measures_alone_read_labels_and_predictions(void **state)
{
    (void)state;
    int found[LS_PREDICTS_INPUT_MAX + 1] = {0};
    for (int kind = 0; kind < LS_OP_KINDS; kind++) {
        const struct ls_op_type *type = ls_op_type((enum ls_op_kind)kind);
        /* a row of its table, not a class */
        const bool index = type->kind == LS_OP_EMBED || type->kind == LS_OP_EMBED_BAG;
        if ((type->labels != NULL && !index) || type->predicts_output || type->predicts_input != 0)
            assert_int_equal(type->effect, LS_EFFECT_METRIC);
        assert_in_range(type->predicts_input, 0, LS_PREDICTS_INPUT_MAX);
        found[type->predicts_input]++;
        assert_int_equal(ls_op_has_effect(type->kind), type->effect != LS_EFFECT_NONE);
    }
    for (int rank = 1; rank <= LS_PREDICTS_INPUT_MAX; rank++)
        assert_true(found[rank] > 0); /* of one rank the first op of the net counts */
}

static void labels_are_those_of_the_attributes(void **state)
{
    (void)state;
    struct ls_value scores = {.shape = {4, {2, 21, 3, 5}}};
    struct ls_value *in[2] = {&scores, NULL};
    struct ls_op op = {.kind = LS_OP_SOFTMAX_LOSS, .inputs = 2, .input = in};
    struct ls_op_labels labels = {0};
    op.attr.loss = (struct ls_loss_attr){.axis = 1, .has_ignore = true, .ignore_label = 255};
    ls_op_type(LS_OP_SOFTMAX_LOSS)->labels(&op, &labels);
    assert_true(labels.classes == 21 && labels.has_ignore && labels.ignore_label == 255);
    ls_op_type(LS_OP_LOG_LOSS)->labels(&op, &labels);
    assert_int_equal(labels.classes, 21 * 3 * 5);
    op.attr.accuracy = (struct ls_accuracy_attr){.classes = 7};
    ls_op_type(LS_OP_ACCURACY)->labels(&op, &labels);
    assert_true(labels.classes == 7 && !labels.has_ignore);
    op.attr.mean_iou = (struct ls_mean_iou_attr){.classes = 9, .has_ignore = true};
    ls_op_type(LS_OP_MEAN_IOU)->labels(&op, &labels);
    assert_true(labels.classes == 9 && labels.has_ignore && labels.ignore_label == 0);
}

static void flops_follow_shapes_and_attributes(void **state)
{
    (void)state;
    struct ls_value x = {.shape = {4, {2, 3, 8, 8}}}, w = {.shape = {4, {5, 3, 3, 3}}};
    struct ls_value y = {.shape = {4, {2, 5, 6, 6}}};
    struct ls_value *in[2] = {&x, &w}, *out[1] = {&y};
    struct ls_op op = {.inputs = 2, .outputs = 1, .input = in, .output = out};
    assert_true(ls_op_type(LS_OP_CONVOLUTION)->flops(&op) == 2.0 * 360 * 27);
    assert_true(ls_op_operand_bytes(&op) == 4.0 * (384 + 135 + 360));
    assert_true(ls_op_type(LS_OP_ELTWISE)->flops(&op) == 2.0 * 360);
    op.attr.pooling.window = (struct ls_window){.axes = 2, .kernel = {3, 2, 9}};
    assert_true(ls_op_type(LS_OP_POOLING)->flops(&op) == 6.0 * 360);
    op.attr.inner_product = (struct ls_inner_product_attr){.m = 4, .k = 300, .n = 33};
    assert_true(ls_op_type(LS_OP_INNER_PRODUCT)->flops(&op) == 2.0 * 4 * 300 * 33);
    op.outputs = 0;
    assert_true(ls_op_type(LS_OP_ACCUMULATE)->flops(&op) == 0);
}

/* Numbers that an op takes, and what is wrong with them: where the first one is that it cannot
 * take, and the first that cannot be meant; -1: there is none. */
static const struct {
    struct ls_taken taken;
    float numbers[16];
    int64_t count, bad, odd;
    const char *text; /* of the first of them */
} taken_cases[] = {
    {{.kind = LS_TAKEN_CLASSES, .count = 3},
     {0, 2, 3},
     3,
     2,
     -1,
     "label 3 is none of the 3 classes of layer 'l'"},
    {{.kind = LS_TAKEN_CLASSES, .count = 3},
     {0, 1.5F},
     2,
     1,
     -1,
     "label 1.5 is none of the 3 classes of layer 'l'"},
    {{.kind = LS_TAKEN_CLASSES, .count = 3, .has_ignore = true, .ignore_label = -1},
     {-1, 2},
     2,
     -1,
     -1,
     NULL},
    {{.kind = LS_TAKEN_ROWS, .count = 4},
     {-1},
     1,
     0,
     -1,
     "number -1 is none of the 4 rows of layer 'l'"},
    {{.kind = LS_TAKEN_SHARES}, {0, 1, 0.5F}, 3, -1, -1, NULL},
    {{.kind = LS_TAKEN_SHARES, .has_ignore = true, .ignore_label = 255},
     {255, -0.5F},
     2,
     -1,
     1,
     "target -0.5 is outside of 0 to 1, so that the loss of layer 'l' can fall without end"},
    {{.kind = LS_TAKEN_FLAGS},
     {0, 1, -1},
     3,
     -1,
     2,
     "flag -1 is neither 0 nor 1; layer 'l' takes it for 1, which is 'similar'"},
    {{.kind = LS_TAKEN_BOXES, .count = 3},
     {0, 1, 0, 0.1F, 0.1F, 1.1F, 0.9F, 0, 0, 3, 0, 0, 0, 1, 1, 0},
     16,
     8,
     -1,
     "box 2 has class 3, and those of layer 'l' are 1 to 2"},
    {{.kind = LS_TAKEN_BOXES, .count = 3},
     {0, 0, 0, 0.1F, 0.1F, 0.2F, 0.2F, 0},
     8,
     -1,
     0,
     "box 1 has class 0, which is the background of layer 'l'"},
    {{.kind = LS_TAKEN_BOXES, .first = 1, .count = 2, .background = -1},
     {-1, -1, -1, -1, -1, -1, -1, -1, 0, 2, 0, 2, 4, 10, 12, 0},
     16,
     -1,
     8,
     "box 2 (2, 4 to 10, 12) is outside of the picture, whose sides are 0 to 1 for layer 'l' "
     "(are these pixels?)"},
    {{.kind = LS_TAKEN_BOXES, .count = 3}, {0, 1, 0, 0, 0, 20, 30, 0}, 8, -1, 0, NULL},
};

static void numbers_that_cannot_be_taken_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof taken_cases / sizeof *taken_cases; i++) {
        char text[300];
        const int64_t bad =
            ls_taken_find_bad(&taken_cases[i].taken, taken_cases[i].numbers, taken_cases[i].count);
        const int64_t odd =
            ls_taken_find_odd(&taken_cases[i].taken, taken_cases[i].numbers, taken_cases[i].count);
        assert_int_equal(bad, taken_cases[i].bad);
        assert_int_equal(odd, taken_cases[i].odd);
        const int64_t at = bad >= 0 ? bad : odd;
        if (taken_cases[i].text == NULL)
            continue;
        ls_taken_tell(&taken_cases[i].taken, taken_cases[i].numbers + at, at, "l", text,
                      sizeof text);
        assert_string_equal(text, taken_cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_record),
        cmocka_unit_test(backward_kinds_belong_to_one_forward_kind),
        cmocka_unit_test(measures_alone_read_labels_and_predictions),
        cmocka_unit_test(labels_are_those_of_the_attributes),
        cmocka_unit_test(flops_follow_shapes_and_attributes),
        cmocka_unit_test(numbers_that_cannot_be_taken_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
