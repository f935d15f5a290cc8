/* Numbers of all types become fp32 or int32 exactly, or are refused.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <fenv.h>
#include <math.h>

#include "base/thread.h"
#include "data/bad_records.h"
#include "data/check.h"
#include "data/numbers.h"
#include "data/oddities.h"
#include "data/reader.h"
#include "data/samples.h"
#include "data_trial.h"
#include "support/npy_files.h"

/* Each type becomes fp32 with the same values. */
static void every_type_becomes_fp32(void **state)
{
    (void)state;
    static const double exact[] = {0.5, -3, 16777216};
    static const float f4[] = {0.1F, -INFINITY, 1e-42F};
    static const uint16_t f2[] = {0x3800, 0xc200, 0x0001}, bf[] = {0x3f00, 0xc040, 0x7f80};
    static const int8_t i1[] = {-128, 0, 127};
    static const int16_t i2[] = {-32768, 1, 32767};
    static const int32_t i4[] = {-16777216, 5, 16777216};
    static const int64_t i8[] = {-16777216, 5, 16777216};
    static const uint8_t u1[] = {0, 1, 255}, b1[] = {0, 1, 1};
    static const uint16_t u2[] = {0, 1, 65535};
    static const uint32_t u4[] = {0, 1, 16777216};
    static const uint64_t u8[] = {0, 1, 16777216};
    const struct {
        const char *descr;
        const void *numbers;
        size_t size;
        float expected[3];
    } types[] = {
        {"<f4", f4, 4, {0.1F, -INFINITY, 1e-42F}},
        {"<f8", exact, 8, {0.5F, -3, 16777216}},
        {"<f2", f2, 2, {0.5F, -3, 0x1p-24F}},
        {"<V2", bf, 2, {0.5F, -3, INFINITY}},
        {"|i1", i1, 1, {-128, 0, 127}},
        {"<i2", i2, 2, {-32768, 1, 32767}},
        {"<i4", i4, 4, {-16777216, 5, 16777216}},
        {"<i8", i8, 8, {-16777216, 5, 16777216}},
        {"|u1", u1, 1, {0, 1, 255}},
        {"<u2", u2, 2, {0, 1, 65535}},
        {"<u4", u4, 4, {0, 1, 16777216}},
        {"<u8", u8, 8, {0, 1, 16777216}},
        {"|b1", b1, 1, {0, 1, 1}},
    };
    const char *path = ls_test_path("types.npy");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char fields[700];
        struct ls_definition *layer;
        struct ls_reader *reader;
        write_npy(path, types[i].descr, "(1, 3)", types[i].numbers, 3 * types[i].size);
        snprintf(fields, sizeof fields, "top: 'x' data_param { backend: NPY source: '%s' }", path);
        struct ls_dataset *set = trial_fields(fields, &layer);
        float x[3];
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        assert_int_equal(ls_reader_fetch(reader, 0, (void *[]){x}, NULL), 0);
        if (memcmp(x, types[i].expected, sizeof x) != 0)
            fail_msg("%s: %g %g %g", types[i].descr, (double)x[0], (double)x[1], (double)x[2]);
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

/* What fp32 or int32 does not have is refused, with the record, the number and what to do. */
static void numbers_are_never_rounded(void **state)
{
    (void)state;
    static const double third = 1.0 / 3, large = 1e39, half = 0.5, tiny = 0x1p-150;
    static const uint64_t nan64 = UINT64_C(0x7ff8000000000000);
    static const uint32_t nan32 = 0xffc00000; /* a negative one */
    static const uint16_t nan16 = 0x7e00;
    static const int32_t beyond = (1 << 24) + 1;
    static const int64_t long_one = INT64_C(1) << 40;
    static const uint64_t longest = UINT64_MAX;
    const struct {
        const char *descr;
        const void *number;
        size_t size;
        const char *type, *words, *hint;
    } bad[] = {
        {"<f8", &third, 8, "F32", "its bad has the number 0.33333333333333331, which fp32 does",
         "round the numbers to fp32"},
        {"<f8", &large, 8, "F32", "its bad has the number 9.9999999999999994e+38, which fp32", ""},
        {"<f8", &tiny, 8, "F32", "which fp32 does not have", ""},
        {"<i4", &beyond, 4, "F32", "its bad has the number 16777217, which is beyond 2^24",
         "type: I32"},
        {"<i8", &long_one, 8, "F32", "1099511627776, which is beyond 2^24", NULL},
        {"<u8", &longest, 8, "F32", "18446744073709551615, which is beyond 2^24", NULL},
        {"<i8", &long_one, 8, "I32", "1099511627776, which is no integer of 32 bits", NULL},
        {"<u8", &longest, 8, "I32", "18446744073709551615, which is no integer of 32 bits", ""},
        {"<f8", &half, 8, "I32", "0.5, which is no integer of 32 bits", "whole numbers"},
        {"<f8", &nan64, 8, "F32", "its bad has the number NaN, which is not finite", ""},
        {"<f4", &nan32, 4, "F32", "its bad has the number NaN, which is not finite", ""},
        {"<f2", &nan16, 2, "F32", "its bad has the number NaN, which is not finite", ""},
        {"<f4", &nan32, 4, "I32", "its bad has the number NaN, which is not finite", ""},
    };
    const char *path = ls_test_path("bad.npy");
    struct ls_error *error = calloc(1, sizeof *error);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char numbers[32] = {0}, fields[700];
        struct ls_definition *layer;
        struct ls_reader *reader;
        memcpy(numbers + 3 * bad[i].size, bad[i].number, bad[i].size);
        write_npy(path, bad[i].descr, "(2, 2)", numbers, 4 * bad[i].size);
        snprintf(fields, sizeof fields,
                 "top: 'x' data_param { backend: NPY source: '%s' tensor { type: %s } }", path,
                 bad[i].type);
        struct ls_dataset *set = trial_fields(fields, &layer);
        uint32_t x[2];
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        assert_int_equal(ls_reader_fetch(reader, 0, (void *[]){x}, NULL), 0);
        ls_error_clear(error);
        assert_int_equal(ls_reader_fetch(reader, 1, (void *[]){x}, error), LOCKSTEP_DATA);
        assert_says(error, "bad.npy: record 1: ");
        assert_says(error, bad[i].words);
        assert_says(error, bad[i].hint != NULL ? bad[i].hint : "");
        if (bad[i].hint == NULL) /* there is nothing that would help */
            assert_null(strstr(error->problems[0].hint, "I32"));
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
    free(error);
}

/* Infinities can be meant, as in masks; where no layer takes them so, they are as bad as NaN. */
static void infinities_can_be_refused(void **state)
{
    (void)state;
    static const uint64_t doubles[] = {UINT64_C(0x3ff0000000000000), UINT64_C(0xfff0000000000000)};
    static const float floats[] = {1, INFINITY};
    static const uint16_t halves[] = {0x3c00, 0xfc00};
    const struct {
        const char *descr;
        const void *numbers;
        size_t size;
        const char *words;
    } cases[] = {
        {"<f8", doubles, sizeof doubles, "its odd has the number -inf, which is not finite"},
        {"<f4", floats, sizeof floats, "its odd has the number inf, which is not finite"},
        {"<f2", halves, sizeof halves, "its odd has the number -inf, which is not finite"}};
    struct ls_error *error = calloc(1, sizeof *error);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char fields[700];
        struct ls_definition *layer;
        struct ls_reader *reader;
        float x;
        const char *path = ls_test_path("odd.npy");
        write_npy(path, cases[i].descr, "(2,)", cases[i].numbers, cases[i].size);
        snprintf(fields, sizeof fields, "top: 'x' data_param { backend: NPY source: '%s' }", path);
        struct ls_dataset *set = trial_fields(fields, &layer);
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        assert_int_equal(ls_reader_fetch(reader, 1, (void *[]){&x}, NULL), 0);
        assert_true(isinf(x));
        ls_dataset_refuse_infinities(set, 0);
        ls_error_clear(error);
        assert_int_equal(ls_reader_fetch(reader, 0, (void *[]){&x}, error), 0);
        assert_int_equal(ls_reader_fetch(reader, 1, (void *[]){&x}, error), LOCKSTEP_DATA);
        assert_says(error, cases[i].words);
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
    free(error);
}

/* Targets that cannot be meant are named once, by the first sample that has one, and are read. */
static void odd_numbers_are_named_once(void **state)
{
    (void)state;
    static const float targets[] = {0, 0.5F, 1, 255, -1, 1, 0, 7};
    const struct ls_number_rule rule = {
        .layer = "loss",
        .place = "net:3:1",
        .taken = {.kind = LS_TAKEN_SHARES, .has_ignore = true, .ignore_label = -1}};
    const char *path = ls_test_path("targets.npy");
    char fields[700], text[500];
    struct ls_definition *layer;
    struct ls_reader *reader;
    int64_t record = -1;
    float out[2];
    write_npy(path, "<f4", "(4, 2)", targets, sizeof targets);
    snprintf(fields, sizeof fields, "top: 'x' data_param { backend: NPY source: '%s' }", path);
    struct ls_dataset *set = trial_fields(fields, &layer);
    assert_int_equal(ls_dataset_look_for(set, &rule, 1, NULL), 0);
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int i = 3; i >= 0; i--)
        assert_int_equal(ls_reader_fetch(reader, i, (void *[]){out}, NULL), 0);
    assert_false(ls_dataset_next_oddity(set, 1, &record, text, sizeof text));
    assert_true(ls_dataset_next_oddity(set, 2, &record, text, sizeof text));
    assert_int_equal(record, 1);
    assert_string_equal(text, "its target 255 is outside of 0 to 1, so that the loss of layer "
                              "'loss' can fall without end (net:3:1)");
    assert_int_equal(ls_reader_fetch(reader, 3, (void *[]){out}, NULL), 0);
    assert_false(ls_dataset_next_oddity(set, 8, &record, text, sizeof text));
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(layer);
}

/* A layer may take a part of each row only. */
static void odd_numbers_of_other_layers_do_not_count(void **state)
{
    (void)state;
    static const float targets[] = {0, 0.5F, 1, 255, 0, 0, 1, 7};
    char fields[700], text[500];
    struct ls_definition *layer;
    float out[2];
    const char *path = ls_test_path("rows.npy");
    write_npy(path, "<f4", "(4, 2)", targets, sizeof targets);
    snprintf(fields, sizeof fields, "top: 'x' data_param { backend: NPY source: '%s' }", path);
    for (int column = 0; column < 2; column++) {
        const struct ls_number_rule rule = {.layer = "loss",
                                            .place = "net:3:1",
                                            .taken = {.kind = LS_TAKEN_SHARES},
                                            .block = 2,
                                            .begin = column,
                                            .end = column + 1};
        int64_t record = -1;
        struct ls_reader *reader;
        struct ls_dataset *set = trial_fields(fields, &layer);
        assert_int_equal(ls_dataset_look_for(set, &rule, 1, NULL), 0);
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(ls_reader_fetch(reader, i, (void *[]){out}, NULL), 0);
        assert_int_equal(ls_dataset_next_oddity(set, 4, &record, text, sizeof text), column);
        assert_int_equal(record, column == 0 ? -1 : 1);
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

/* Threads that decode flush denormals, others do not: both see the same numbers. */
static void numbers_are_the_same_in_every_thread(void **state)
{
    (void)state;
    const double numbers[] = {-0.0, 5, -0x1p31, 0x1p-1060};
    const float tiny = 0x1p-140F;
    for (int flush = 0; flush < 2; flush++) {
        fenv_t before;
        int32_t out[4] = {1, 1, 1, 1};
        float single[4];
        fegetenv(&before);
        if (flush)
            ls_set_float_mode();
        int64_t whole = ls_numbers_to_i32(LS_F64, numbers, 4, out);
        int64_t none = ls_numbers_to_i32(LS_F32, &tiny, 1, NULL);
        int64_t exact = ls_numbers_to_f32(LS_F64, numbers, 4, false, single);
        fesetenv(&before);
        assert_int_equal(whole, 3);
        assert_int_equal(none, 0);
        assert_int_equal(exact, 3);
        assert_true(out[0] == 0 && out[1] == 5 && out[2] == INT32_MIN && out[3] == 1);
    }
}

static const struct ls_number_rule labels_of_loss = {
    .layer = "loss", .taken = {.kind = LS_TAKEN_CLASSES, .count = (1 << 24) + 1}};

static void note_bad(void *user, int64_t record, const char *name, const char *reason)
{
    (void)name;
    char *notes = user;
    snprintf(notes + strlen(notes), 400 - strlen(notes), "%d: %s; ", (int)record, reason);
}

static void check_found(const struct ls_dataset *set)
{
    char notes[400] = "";
    const struct ls_check check = {
        .threads = 1, .rules = &labels_of_loss, .rule_count = 1, .bad = note_bad, .user = notes};
    int64_t bad, skippable;
    assert_int_equal(ls_dataset_check(set, &check, &bad, &skippable, NULL), 0);
    assert_string_equal(notes, "1: its label 33554432 is none of the 16777217 classes of layer "
                               "'loss'; 2: its label -33554432 is none of the 16777217 classes of "
                               "layer 'loss'; ");
}

static void check_skipped(struct ls_dataset *set)
{
    struct ls_reader *reader;
    int32_t out[10];
    assert_int_equal(ls_dataset_set_rules(set, &labels_of_loss, 1, NULL), 0);
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ls_reader_fetch(reader, i, (void *[]){out}, NULL), 0);
        assert_int_equal(ls_reader_replaced(reader), i > 0);
    }
    ls_reader_close(reader);
}

/* Labels of int32 beyond 2^24 are no class, wherever they lie: they are found, and skipped. */
static void large_labels_are_found(void **state)
{
    (void)state;
    enum { RECORDS = 3, PIXELS = 10 };
    int32_t labels[RECORDS * PIXELS] = {0};
    labels[PIXELS + 2] = 1 << 25;        /* alone; */
    labels[2 * PIXELS + 2] = 1 << 23;    /* beyond one that fp32 has, */
    labels[2 * PIXELS + 3] = -(1 << 25); /* and below */
    const char *path = ls_test_path("labels.npy");
    char fields[700];
    write_npy(path, "<i4", "(3, 10)", labels, sizeof labels);
    for (int skips = 0; skips < 2; skips++) {
        struct ls_definition *layer;
        struct ls_dataset *set;
        snprintf(fields, sizeof fields,
                 "top: 'y' data_param { backend: NPY source: '%s' tensor { type: I32 } %s }", path,
                 skips ? "on_bad_record: SKIP" : "");
        set = trial_fields(fields, &layer);
        if (skips)
            check_skipped(set);
        else
            check_found(set);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

static void nothing_is_bad(void *user, int64_t record, const char *name, const char *reason)
{
    (void)user;
    fail_msg("record %d (%s): %s", (int)record, name, reason);
}

/* Numbers that fp32 does not have are no fault of records where the layer has no top for them: they
 * are trained on, checked and skipped alike. */
static void numbers_without_a_top_do_not_count(void **state)
{
    (void)state;
    const double thirds[] = {1.0 / 3, 2.0 / 3};
    const float whole[] = {1, 2};
    const struct ls_check check = {.threads = 1, .bad = nothing_is_bad};
    const char *x = ls_test_path("whole.npy"), *y = ls_test_path("thirds.npy");
    write_npy(x, "<f4", "(2,)", whole, sizeof whole);
    write_npy(y, "<f8", "(2,)", thirds, sizeof thirds);
    for (int skips = 0; skips < 2; skips++) {
        char fields[1500];
        struct ls_definition *layer;
        struct ls_reader *reader;
        float number;
        int64_t bad, skippable;
        snprintf(fields, sizeof fields,
                 "top: 'x' data_param { backend: NPY source: '%s' source: '%s' %s }", x, y,
                 skips ? "on_bad_record: SKIP" : "");
        struct ls_dataset *set = trial_fields(fields, &layer);
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        assert_int_equal(ls_reader_fetch(reader, 1, (void *[]){&number, NULL}, NULL), 0);
        assert_true(number == 2 && !ls_reader_replaced(reader));
        assert_int_equal(ls_dataset_check(set, &check, &bad, &skippable, NULL), 0);
        assert_int_equal(bad, 0);
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_becomes_fp32),
        cmocka_unit_test(numbers_are_never_rounded),
        cmocka_unit_test(infinities_can_be_refused),
        cmocka_unit_test(odd_numbers_are_named_once),
        cmocka_unit_test(odd_numbers_of_other_layers_do_not_count),
        cmocka_unit_test(numbers_are_the_same_in_every_thread),
        cmocka_unit_test(large_labels_are_found),
        cmocka_unit_test(numbers_without_a_top_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
