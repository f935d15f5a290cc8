/* RECORDS: sequences and fixed tensors, filled up and packed, and what damage leads to.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdint.h>
#include <unistd.h>

#include "data/reader.h"
#include "data/samples.h"
#include "data_trial.h"
#include "support/npy_files.h"

enum { COUNT = 7 };
/* Lengths of the records; record i of `tokens` has the numbers 10 i, 10 i + 1 and so on. */
static const int32_t lengths[COUNT] = {3, 5, 0, 8, 2, 4, 1};

static void write_all(void)
{
    uint16_t tokens[64];
    double pairs[64][2];
    int32_t offsets[COUNT + 1] = {0};
    float label[COUNT];
    char shape[32];
    int at = 0;
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < lengths[i]; k++, at++) {
            tokens[at] = (uint16_t)(10 * i + k);
            pairs[at][0] = i + 0.5;
            pairs[at][1] = -k;
        }
        offsets[i + 1] = at;
        label[i] = (float)i;
    }
    snprintf(shape, sizeof shape, "(%d,)", at);
    write_npy(ls_test_path("tokens.npy"), "<u2", shape, tokens, (size_t)at * 2);
    write_npy(ls_test_path("tokens.offsets.npy"), "<i4", "(8,)", offsets, sizeof offsets);
    snprintf(shape, sizeof shape, "(%d, 2)", at);
    write_npy(ls_test_path("pairs.npy"), "<f8", shape, pairs, (size_t)at * 16);
    write_npy(ls_test_path("pairs.offsets.npy"), "<i4", "(8,)", offsets, sizeof offsets);
    write_npy(ls_test_path("label.npy"), "<f4", "(7,)", label, sizeof label);
}

/* "source: 'tokens.npy' source: ..." of some names. */
static const char *sources(const char *const *names)
{
    static char text[4000];
    text[0] = '\0';
    for (; *names != NULL; names++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "source: '%s' ",
                 ls_test_path(*names));
    return text;
}

static const char *const all[] = {"tokens.npy",        "tokens.offsets.npy", "pairs.npy",
                                  "pairs.offsets.npy", "label.npy",          NULL};
static const char *const ragged[] = {"tokens.npy", "tokens.offsets.npy", "pairs.npy",
                                     "pairs.offsets.npy", NULL};

static void check_sample(int64_t index, int64_t steps, const int32_t *tokens, const float *pairs,
                         const int32_t *mask, float label)
{
    for (int64_t k = 0; k < steps; k++) {
        const bool real = k < lengths[index];
        assert_int_equal(tokens[k], real ? 10 * index + k : -1);
        assert_true(pairs[2 * k] == (real ? (float)index + 0.5F : 0.25F));
        assert_true(pairs[2 * k + 1] == (real ? (float)-k : 0.25F));
        assert_int_equal(mask[k], real);
    }
    assert_true(label == (float)index);
}

/* Records are filled up to the window, to the longest, or to a multiple of the bucket. */
static void shorter_records_are_filled_up(void **state)
{
    (void)state;
    static const struct {
        const char *way;
        int64_t window, bucket;
    } ways[] = {{"lengths: PAD window: 10", 10, 0},
                {"lengths: PAD", 8, 0},
                {"lengths: BUCKET window: 10 bucket: 3", 10, 3},
                {"lengths: BUCKET bucket: 4", 8, 4}};
    write_all();
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        char fields[6000];
        snprintf(fields, sizeof fields,
                 "top: 'a' top: 'b' top: 'c' top: 'd' data_param { backend: RECORDS batch_size: 2 "
                 "%s records_param { %s } tensor { name: 'tokens' type: I32 pad: -1 } tensor { "
                 "name: 'pairs' pad: 0.25 } tensor { name: 'tokens.mask' type: I32 } tensor { "
                 "name: 'label' } }",
                 sources(all), ways[w].way);
        struct ls_definition *layer;
        struct ls_dataset *set = trial_fields(fields, &layer);
        struct ls_reader *reader;
        bool seen[COUNT] = {false};
        assert_int_equal(ls_dataset_size(set), COUNT);
        assert_int_equal(ls_dataset_varies(set), ways[w].bucket > 0);
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        for (int64_t i = 0; i < COUNT; i++) {
            int32_t tokens[10], mask[10];
            float pairs[20], label;
            int64_t index, shape[3];
            uint64_t hash;
            void *out[4] = {tokens, pairs, mask, &label};
            assert_int_equal(ls_reader_fetch(reader, i, out, NULL), 0);
            ls_reader_last(reader, &index, &hash);
            assert_false(seen[index]);
            seen[index] = true;
            assert_int_equal(ls_dataset_sample_shape(set, i, shape, NULL), 0);
            int64_t steps = ways[w].window;
            if (ways[w].bucket > 0) {
                const int64_t length = lengths[index] > 0 ? lengths[index] : 1;
                steps = (length + ways[w].bucket - 1) / ways[w].bucket * ways[w].bucket;
                steps = steps < ways[w].window ? steps : ways[w].window;
                assert_int_equal(shape[1], steps);
            }
            struct ls_shape of;
            ls_dataset_tensor_shape(set, 1, shape, &of);
            assert_int_equal(of.rank, 2);
            assert_int_equal(of.dim[0], steps);
            assert_int_equal(of.dim[1], 2);
            check_sample(index, steps, tokens, pairs, mask, label);
        }
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

/* Windows of 8 hold records 0 1 2, 3, 4 5 6: each goes where there is room first. */
static void records_are_packed_by_first_fit(void **state)
{
    (void)state;
    write_all();
    char fields[6000];
    snprintf(fields, sizeof fields,
             "data_param { backend: RECORDS %s records_param { lengths: "
             "PACK window: 8 } tensor { name: 'tokens' pad: -1 } }",
             sources(ragged));
    struct ls_source *source;
    struct ls_source_reader *reader;
    struct ls_record record;
    struct ls_error *error = calloc(1, sizeof *error);
    if (trial_source(&source, error, "%s", fields) != 0)
        fail_msg("%s", trial_text(error));
    free(error);
    assert_int_equal(source->count, 3);
    assert_int_equal(source->tensors, 6);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    static const int32_t tokens[3][8] = {{0, 1, 2, 10, 11, 12, 13, 14},
                                         {30, 31, 32, 33, 34, 35, 36, 37},
                                         {40, 41, 50, 51, 52, 53, 60, -1}};
    static const int32_t segment[3][8] = {{0, 0, 0, 1, 1, 1, 1, 1}, {0}, {0, 0, 1, 1, 1, 1, 2, 3}};
    static const int32_t position[3][8] = {
        {0, 1, 2, 0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 0, 1, 2, 3, 0, 0}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &record, NULL), 0);
        assert_memory_equal(record.tensor[0].data, tokens[i], 32);
        assert_memory_equal(record.tensor[2].data, position[i], 32);
        assert_memory_equal(record.tensor[3].data, segment[i], 32);
        const int32_t *cont = record.tensor[4].data, *mask = record.tensor[5].data;
        for (int k = 0; k < 8; k++) {
            assert_int_equal(cont[k], position[i][k] > 0);
            assert_int_equal(mask[k], tokens[i][k] >= 0);
        }
    }
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void fixed_tensors_are_as_they_are(void **state)
{
    (void)state;
    char fields[6000];
    write_all();
    snprintf(fields, sizeof fields, "top: 'x' data_param { backend: RECORDS source: '%s' }",
             ls_test_path("label.npy"));
    struct ls_definition *layer;
    struct ls_dataset *set = trial_fields(fields, &layer);
    struct ls_reader *reader;
    float x;
    assert_int_equal(ls_dataset_tensors(set), 1);
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    assert_int_equal(trial_fetch(reader, 9, &x, NULL, NULL), 0);
    assert_true(x == 2);
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(layer);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *descr, *shape;
        int32_t numbers[9];
        size_t bytes;
        const char *words;
    } cases[] = {
        {"<i4", "(8,)", {1, 3, 8, 8, 16, 18, 22, 23}, 32, "begins with 1; the first record begins"},
        {"<i4",
         "(8,)",
         {0, 3, 2, 8, 16, 18, 22, 23},
         32,
         "its number 2 is 2, which lies outside of 3"},
        {"<i4",
         "(8,)",
         {0, 3, 8, 8, 99, 18, 22, 23},
         32,
         "number 4 is 99, which lies outside of 8 to 23"},
        {"<i4", "(8,)", {0, 3, 8, 8, 16, 18, 22, 22}, 32, "its last number is 22, and"},
        {"<i4", "(8,)", {0, -3, 8, 8, 16, 18, 22, 23}, 32, "number 1 is -3"},
        {"<u4", "(8,)", {0, -3, 8, 8, 16, 18, 22, 23}, 32, "number 1 is 4294967293"},
        {"<u8", "(2,)", {0, 0, 23, INT32_MIN}, 16, "number 1 is 9223372036854775807"},
        {"<i8", "(2,)", {0, 0, -10, -1}, 16, "number 1 is -10"},
        {"<i4", "(7,)", {0, 3, 8, 8, 16, 18, 23}, 28, "has 7 records, but"},
        {"<i4", "(0,)", {0}, 0, "has no numbers; records have one more"},
        {"<f4", "(8,)", {0}, 32, "has no list of whole numbers"},
        {"<i4", "(4, 2)", {0}, 32, "has no list of whole numbers"},
        {"<i4", "(9,)", {0}, 32, "is cut off: 32 bytes of numbers where 36 should be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char fields[6000];
        write_all();
        write_npy(ls_test_path("tokens.offsets.npy"), cases[i].descr, cases[i].shape,
                  cases[i].numbers, cases[i].bytes);
        snprintf(fields, sizeof fields, "%s", sources(all));
        trial_source_fails("RECORDS", fields, LOCKSTEP_DATA, cases[i].words);
    }
}

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    char fields[6000];
    write_all();
    static const struct {
        const char *more, *words;
        bool fixed;
    } cases[] = {
        {"records_param { lengths: PACK window: 8 }", "and 'label' has one number for each record",
         true},
        {"records_param { lengths: PACK }", "lengths: PACK needs a window", false},
        {"records_param { lengths: BUCKET }", "BUCKET and bucket belong together", false},
        {"records_param { bucket: 4 }", "BUCKET and bucket belong together", false},
        {"tensor { name: 'label' pad: 1 }", "pad is for sequences, and 'label' is none", true},
        {"tensor { name: 'tokens' pad: 0.5 }", "pad is 0.5; 'tokens' has whole numbers", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(fields, sizeof fields, "%s %s", sources(cases[i].fixed ? all : ragged),
                 cases[i].more);
        trial_source_fails("RECORDS", fields, LOCKSTEP_DEFINITION, cases[i].words);
    }
    trial_source_fails("RECORDS", sources((const char *const[]){"tokens.offsets.npy", NULL}),
                       LOCKSTEP_DEFINITION, "there are offsets, and no arrays");
    trial_source_fails("RECORDS",
                       sources((const char *const[]){"label.npy", "tokens.offsets.npy", NULL}),
                       LOCKSTEP_DATA, "has the offsets of tokens.npy, which is no source");
    trial_source_fails("RECORDS", sources((const char *const[]){"tokens.npy", "label.npy", NULL}),
                       LOCKSTEP_DATA, "has 7 records, but");
    snprintf(fields, sizeof fields, "source: '%s' records_param { window: 4 }",
             ls_test_path("label.npy"));
    trial_source_fails("RECORDS", fields, LOCKSTEP_DEFINITION, "all records have one length");
    snprintf(fields, sizeof fields, "%s records_param { lengths: PACK window: 7 }",
             sources(ragged));
    trial_source_fails("RECORDS", fields, LOCKSTEP_DATA,
                       "record 3: it has 8 steps, and a window 7");
    struct ls_definition *layer =
        trial_layer("name: 'd' type: 'Data' top: 'x' data_param { backend: NPY source: '%s' tensor "
                    "{ pad: 1 } }",
                    ls_test_path("label.npy"));
    struct ls_dataset *set;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &set, error),
                     LOCKSTEP_DEFINITION);
    assert_says(error, "tensor { pad } is for backend RECORDS");
    free(error);
    ls_definition_free(layer);
}

/* A record that is too long, or has a number that its type does not have, is bad by itself. */
static void bad_records_are_told_apart(void **state)
{
    (void)state;
    char fields[6000];
    write_all();
    snprintf(fields, sizeof fields,
             "data_param { backend: RECORDS %s records_param { window: 5 } }", sources(all));
    struct ls_source *source;
    struct ls_source_reader *reader;
    struct ls_record record;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(trial_source(&source, error, "%s", fields), 0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    for (int i = 0; i < COUNT; i++) {
        ls_error_clear(error);
        int status = ls_source_read(reader, i, LS_ALL_TENSORS, &record, error);
        assert_int_equal(status, lengths[i] > 5 ? LOCKSTEP_DATA : 0);
        assert_int_equal(reader->bad, lengths[i] > 5);
        if (status != 0)
            assert_says(error, "record 3: it has 8 steps, and a window 5");
    }
    ls_source_reader_close(reader);
    ls_source_close(source);
    write_npy(ls_test_path("pairs.npy"), "<f8", "(23,)", (const double[23]){[16] = 1.0 / 3}, 184);
    assert_int_equal(
        trial_source(&source, error, "data_param { backend: RECORDS %s }", sources(all)), 0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    ls_error_clear(error);
    assert_int_equal(ls_source_read(reader, 4, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
    assert_true(reader->bad);
    assert_says(error, "record 4: it has the number 0.333");
    assert_int_equal(ls_source_read(reader, 5, LS_ALL_TENSORS, &record, NULL), 0);
    ls_source_reader_close(reader);
    ls_source_close(source);
    write_npy(ls_test_path("pairs.npy"), "<f4", "(23,)", (const float[23]){[16] = NAN}, 92);
    assert_int_equal(
        trial_source(&source, error, "data_param { backend: RECORDS %s }", sources(all)), 0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    ls_error_clear(error);
    assert_int_equal(ls_source_read(reader, 4, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
    assert_true(reader->bad);
    assert_says(error, "record 4: it has the number NaN, which is not finite");
    ls_source_reader_close(reader);
    ls_source_close(source);
    free(error);
}

static void a_file_that_shrinks_ends_the_reading(void **state)
{
    (void)state;
    enum { ROWS = 50000 };
    int32_t *numbers = calloc(ROWS, sizeof *numbers);
    const int64_t offsets[3] = {0, 10, ROWS};
    write_npy(ls_test_path("x.npy"), "<i4", "(50000,)", numbers, ROWS * 4);
    write_npy(ls_test_path("x.offsets.npy"), "<i8", "(3,)", offsets, sizeof offsets);
    struct ls_source *source;
    struct ls_source_reader *reader;
    struct ls_record record;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(trial_source(&source, error, "data_param { backend: RECORDS %s }",
                                  sources((const char *const[]){"x.npy", "x.offsets.npy", NULL})),
                     0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    assert_int_equal(truncate(ls_test_path("x.npy"), 4096), 0);
    assert_int_equal(ls_source_read(reader, 1, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
    assert_false(reader->bad);
    assert_says(error, "x.npy");
    ls_source_reader_close(reader);
    ls_source_close(source);
    free(error);
    free(numbers);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    write_all();
    static const char *const ways[] = {"PAD", "BUCKET bucket: 3", "PACK window: 8"};
    for (int i = 0; i < 3; i++) {
        struct ls_definition *layer = trial_layer(
            "name: 'd' type: 'Data' top: 'x' data_param { backend: RECORDS batch_size: 2 %s "
            "records_param { lengths: %s } }",
            sources(ragged), ways[i]);
        float out[8];
        void *outs[LS_RECORD_TENSORS] = {out};
        assert_true(trial_fail_allocations(layer, 3, outs) > 8);
        ls_definition_free(layer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: cmocka's handler of SIGBUS must not come behind that of the first view. */
        cmocka_unit_test(a_file_that_shrinks_ends_the_reading),
        cmocka_unit_test(shorter_records_are_filled_up),
        cmocka_unit_test(records_are_packed_by_first_fit),
        cmocka_unit_test(fixed_tensors_are_as_they_are),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(bad_records_are_told_apart),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
