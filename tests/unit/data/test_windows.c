/* Windows of pictures, for WindowData layers.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "data/mean_file.h"
#include "data/reader.h"
#include "data/source.h"
#include "data_trial.h"
#include "picture_files.h"

enum { HEIGHT = 30, WIDTH = 44, SIDE = 12, SHOWN = 62 };

static void write_one_picture(void)
{
    write_picture(ls_test_path("w.png"), HEIGHT, WIDTH, 3, 5);
}

/* A source of windows of w.png. */
static int open_text(const char *text, const char *fields, struct ls_source **source,
                     struct ls_error *error)
{
    ls_test_write_text(ls_test_path("windows.txt"), text);
    return trial_source(source, error,
                        "data_param { backend: WINDOWS batch_size: 4 source: '%s' } "
                        "window_data_param { %s }",
                        ls_test_path("windows.txt"), fields);
}

/* Every seventh number of what Caffe makes of these (opencv_windows.py): OpenCV's weights are
 * coarser, so that numbers may differ by 1. */
static void windows_are_caffes(void **state)
{
    (void)state;
    static const struct {
        int box[4], pad, square;
        float number[SHOWN];
    } windows[] = {
        {{5, 4, 30, 20}, 0, 0, {119,  149,  132,  162,  145,  175,  157,  140,  170,  153,  183,
                                166,  148,  179,  161,  192,  174,  205,  187,  170,  200,  82,
                                112,  95,   77,   107,  90,   120,  103,  133,  116,  98,   129,
                                112,  142,  124,  107,  137,  120,  150,  133,  163,  44.5, 26.5,
                                57.5, 39.5, 70.5, 52.5, 35.5, 65.5, 48.5, 78.5, 61.5, 91.5, 73.5,
                                56.5, 86.5, 69.5, 99.5, 82.5, 64.5, 95.5}},
        {{5, 4, 30, 20}, 0, 1, {108,  139,  124,  155,   140,  171,  155,  139,  171,  155,  187,
                                171,  155,  187,  171,   203,  187,  18,   202,  187,  18,   71,
                                103,  87,   72,   103,   87,   119,  103,  135,  119,  103,  134,
                                119,  150,  135,  119,   150,  134,  166,  150,  182,  34.5, 18.5,
                                50.5, 34.5, 65.5, 50.5,  34.5, 66.5, 50.5, 81.5, 65.5, 97.5, 81.5,
                                66.5, 97.5, 81.5, 113.5, 97.5, 81.5, 113.5}},
        {{0, 0, 9, 25}, 3, 0, {0,   0,    0,    0,     0,   0,    111, 0,    131,  126,  151,
                               146, 0,    166,  0,     186, 181,  206, 0,    0,    0,    0,
                               0,   0,    0,    0,     0,   72,   67,  92,   87,   0,    107,
                               102, 127,  122,  0,     142, 0,    0,   0,    0,    0,    0,
                               0,   0,    0,    7.5,   0,   27.5, 0,   47.5, 42.5, 67.5, 62.5,
                               0,   82.5, 77.5, 102.5, 0,   0,    0}},
        {{30, 2, 43, 29}, 2, 0, {0,     0,     162,   0,    180,   0,     199, 191,   18,
                                 121,   0,     29,    21,   48,    40,    0,   0,     0,
                                 0,     0,     0,     0,    0,     123,   115, 142,   134,
                                 0,     153,   0,     172,  164,   190,   183, 0,     10,
                                 0,     0,     0,     0,    0,     0,     0,   57.5,  83.5,
                                 75.5,  0,     94.5,  87.5, 113.5, 105.5, 0,   124.5, 0,
                                 143.5, 135.5, 162.5, 0,    0,     0,     0,   0}},
        {{2, 20, 40, 29}, 2, 1, {0,    0,    105,  173,  139, 0,    174,  0,     153,  175, 43,
                                 87,   0,    0,    0,    0,   0,    0,    0,     0,    0,   0,
                                 0,    84,   0,    119,  85,  153,  119,  0,     154,  0,   189,
                                 0,    0,    0,    0,    0,   0,    0,    0,     0,    0,   0,
                                 63.5, 29.5, 97.5, 63.5, 0,   98.5, 64.5, 132.5, 98.5, 0,   0,
                                 0,    0,    0,    0,    0,   0,    0}},
        {{8, 8, 8, 8}, 0, 0, {135,  135,  135,  135,  135,  135,  135,  135,  135,  135,  135,
                              135,  135,  135,  135,  135,  135,  135,  135,  135,  135,  85,
                              85,   85,   85,   85,   85,   85,   85,   85,   85,   85,   85,
                              85,   85,   85,   85,   85,   85,   85,   85,   85,   34.5, 34.5,
                              34.5, 34.5, 34.5, 34.5, 34.5, 34.5, 34.5, 34.5, 34.5, 34.5, 34.5,
                              34.5, 34.5, 34.5, 34.5, 34.5, 34.5, 34.5}},
    };
    write_one_picture();
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        char text[400], fields[400];
        const int *box = windows[i].box;
        snprintf(text, sizeof text, "# 0\nw.png\n3\n%d\n%d\n1\n7 0.9 %d %d %d %d\n", HEIGHT, WIDTH,
                 box[0], box[1], box[2], box[3]);
        snprintf(fields, sizeof fields,
                 "crop_size: 12 fg_fraction: 1 context_pad: %d crop_mode: '%s' mean_value: 10 "
                 "mean_value: 20 mean_value: 30.5",
                 windows[i].pad, windows[i].square ? "square" : "warp");
        struct ls_error *error = calloc(1, sizeof *error);
        struct ls_source *source;
        struct ls_source_reader *reader;
        struct ls_record record;
        if (open_text(text, fields, &source, error) != 0)
            fail_msg("%s", trial_text(error));
        assert_int_equal(source->count, 4);
        assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
        if (ls_source_read(reader, 0, LS_ALL_TENSORS, &record, error) != 0)
            fail_msg("%s", trial_text(error));
        const float *numbers = record.tensor[0].data;
        for (int k = 0; k < SHOWN; k++)
            if (!(fabsf(numbers[7 * k] - windows[i].number[k]) <= 1))
                fail_msg("window %zu, number %d: %g, not %g", i, 7 * k, (double)numbers[7 * k],
                         (double)windows[i].number[k]);
        assert_int_equal(*(const int32_t *)record.tensor[1].data, 7);
        ls_source_reader_close(reader);
        ls_source_close(source);
        free(error);
    }
}

/* 3 windows of foreground and 9 of background; one is neither. */
static const char *many(void)
{
    static char text[2000];
    size_t at = (size_t)snprintf(text, sizeof text, "# 0\nw.png\n3\n30\n44\n13\n");
    for (int i = 0; i < 13; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%d %s %d 0 %d 9\n", i < 3 ? i + 1 : 8,
                               i < 3    ? "0.7"
                               : i == 3 ? "0.4"
                                        : "0.1",
                               i, i + 9);
    return text;
}

/* The left edge of a window, which says which one it is. */
static int window_at(struct ls_reader *reader, int64_t ordinal, struct ls_text *name,
                     const struct ls_dataset *dataset)
{
    int64_t record;
    uint64_t hash;
    int left;
    ls_text_free(name);
    assert_int_equal(ls_reader_hash(reader, ordinal, LS_ALL_TENSORS, &record, &hash, NULL), 0);
    ls_dataset_name_record(dataset, record, name);
    assert_non_null(strstr(name->data, "window "));
    assert_int_equal(sscanf(strstr(name->data, "window "), "window %d", &left), 1);
    return left;
}

static void batches_have_their_share_of_foreground(void **state)
{
    (void)state;
    write_one_picture();
    ls_test_write_text(ls_test_path("windows.txt"), many());
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct ls_definition *layer = trial_layer(
            "name: 'd' top: 'x' top: 'y' data_param { backend: WINDOWS batch_size: 4 source: '%s' "
            "shuffle: %s } window_data_param { crop_size: 12 fg_fraction: 0.25 bg_threshold: 0.3 }",
            ls_test_path("windows.txt"), shuffle ? "true" : "false");
        struct ls_dataset *dataset;
        struct ls_reader *reader;
        struct ls_text name = {0};
        int first[12], moved = 0;
        assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &dataset, NULL), 0);
        assert_int_equal(ls_dataset_size(dataset), 12); /* 3 batches bring all */
        assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
        for (int epoch = 0; epoch < 4; epoch++) {
            uint32_t seen = 0;
            for (int i = 0; i < 12; i++) {
                int window = window_at(reader, epoch * 12 + i, &name, dataset);
                assert_true(i % 4 == 3 ? window < 3 : window >= 4); /* 3 is neither */
                assert_int_equal(seen >> window & 1, 0);
                seen |= 1U << window;
                moved += epoch > 0 && first[i] != window;
                if (epoch == 0)
                    first[i] = window;
            }
            assert_int_equal(seen, 0x1ff7);
        }
        assert_true(shuffle ? moved > 10 : moved == 0);
        ls_text_free(&name);
        ls_reader_close(reader);
        ls_dataset_close(dataset);
        ls_definition_free(layer);
    }
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fields;
        int status;
        const char *words;
    } bad[] = {
        {"", "crop_size: 12", LOCKSTEP_DATA,
         "has no windows of background, and each batch needs 3"},
        {NULL, "crop_size: 12 fg_threshold: 2", LOCKSTEP_DATA, "has no windows of foreground"},
        {NULL, "", LOCKSTEP_DEFINITION, "crop_size 0 must be more than twice context_pad"},
        {NULL, "crop_size: 12 context_pad: 6", LOCKSTEP_DEFINITION, "must be more than twice"},
        {NULL, "crop_size: 12 crop_mode: 'round'", LOCKSTEP_DEFINITION, "no crop_mode 'round'"},
        {NULL, "crop_size: 12 fg_fraction: 2", LOCKSTEP_DEFINITION, "fg_fraction is 2; it must"},
        {NULL, "crop_size: 12 mean_value: 1 mean_value: 2", LOCKSTEP_DEFINITION,
         "give one mean_value, or 3"},
        {NULL, "crop_size: 12 mean_file: 'nowhere'", LOCKSTEP_DATA, "no file or folder 'nowhere'"},
        {"w.png\n", "crop_size: 12", LOCKSTEP_DATA, "windows.txt:1: '#' is missing"},
        {"# 0\n", "crop_size: 12", LOCKSTEP_DATA, "the file is cut off"},
        {"# 0\nx.png\n", "crop_size: 12", LOCKSTEP_DATA, "there is no such picture"},
        {"# 0\nw.png\n3\n30\n44\n2\n1 0.5 0 0 1 1\n", "crop_size: 12", LOCKSTEP_DATA,
         "the file is cut off"},
        {"# 0\nw.png\n3\n30\n44\n1\n1 0.5 0 0 x 1\n", "crop_size: 12", LOCKSTEP_DATA,
         "windows.txt:7: a number is missing, or is not possible"},
        {"# 0\nw.png\n3\n30\n44\n1\n1 0.5 0 0 131073 1\n", "crop_size: 12", LOCKSTEP_DATA,
         "windows.txt:7: a number is missing, or is not possible"},
        {"# 0\nw.png\n3\n30\n44\n1\n1 0.5 0.5 0 1 1\n", "crop_size: 12", LOCKSTEP_DATA,
         "a number is not whole"},
        {"# 0\nw.png\n3\n30\n44\n1\n0 0.5 0 0 1 1\n", "crop_size: 12", LOCKSTEP_DATA,
         "a window that overlaps an object has class 0"},
    };
    write_one_picture();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_error *error = calloc(1, sizeof *error);
        struct ls_source *source;
        assert_int_equal(
            open_text(bad[i].text != NULL ? bad[i].text : many(), bad[i].fields, &source, error),
            bad[i].status);
        assert_says(error, bad[i].words);
        free(error);
    }
}

/* Windows that do not lie in the picture make bad records. */
static void windows_beyond_the_picture_are_bad_records(void **state)
{
    (void)state;
    static const char *const boxes[] = {"-1 0 9 9", "0 0 44 9", "0 0 9 30", "9 0 3 9"};
    write_one_picture();
    for (int i = 0; i < 4; i++) {
        char text[200];
        struct ls_error *error = calloc(1, sizeof *error);
        struct ls_source *source;
        struct ls_source_reader *reader;
        struct ls_record record;
        snprintf(text, sizeof text, "# 0\nw.png\n3\n30\n44\n1\n1 0.9 %s\n", boxes[i]);
        assert_int_equal(open_text(text, "crop_size: 12 fg_fraction: 1", &source, error), 0);
        assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
        assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
        assert_says(error, "does not lie in the picture");
        assert_true(reader->bad);
        ls_source_reader_close(reader);
        ls_source_close(source);
        free(error);
    }
}

/* The centre of a larger mean picture is subtracted; nothing is where the window reaches beyond the
 * picture. */
static void mean_pictures(void **state)
{
    (void)state;
    enum { MEAN = 16 };
    static float mean[3 * MEAN * MEAN];
    const int64_t shape[3] = {3, MEAN, MEAN};
    for (int i = 0; i < 3 * MEAN * MEAN; i++)
        mean[i] = (float)i;
    assert_int_equal(ls_mean_write(ls_test_path("m.binaryproto"), shape, mean, NULL), 0);
    write_one_picture();
    char fields[600];
    snprintf(fields, sizeof fields, "crop_size: 12 fg_fraction: 1 context_pad: 3 mean_file: '%s'",
             ls_test_path("m.binaryproto"));
    struct ls_source *with, *without;
    struct ls_source_reader *reader[2];
    struct ls_record record[2];
    static const char text[] = "# 0\nw.png\n3\n30\n44\n1\n1 0.9 0 0 9 25\n";
    assert_int_equal(open_text(text, fields, &with, NULL), 0);
    assert_int_equal(open_text(text, "crop_size: 12 fg_fraction: 1 context_pad: 3", &without, NULL),
                     0);
    assert_int_equal(ls_source_reader_open(with, &reader[0], NULL), 0);
    assert_int_equal(ls_source_reader_open(without, &reader[1], NULL), 0);
    for (int k = 0; k < 2; k++)
        assert_int_equal(ls_source_read(reader[k], 0, LS_ALL_TENSORS, &record[k], NULL), 0);
    const float *a = record[0].tensor[0].data, *b = record[1].tensor[0].data;
    int beyond = 0;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++, a++, b++) {
                float at = mean[(c * MEAN + y + 2) * MEAN + x + 2];
                assert_true(*b == 0 ? *a == 0 : *a == *b - at); /* no pixel of it is 0 */
                beyond += *b == 0;
            }
    assert_true(beyond > 50);
    for (int k = 0; k < 2; k++)
        ls_source_reader_close(reader[k]);
    ls_source_close(with);
    ls_source_close(without);
}

static void memory_failures_are_reported(void **state)
{
    (void)state;
    write_one_picture();
    ls_test_write_text(ls_test_path("windows.txt"), many());
    struct ls_definition *layer = trial_layer(
        "name: 'd' top: 'x' top: 'y' data_param { backend: WINDOWS batch_size: 4 source: '%s' "
        "} window_data_param { crop_size: 12 context_pad: 2 bg_threshold: 0.3 }",
        ls_test_path("windows.txt"));
    static float data[3 * SIDE * SIDE];
    float label;
    void *out[LS_RECORD_TENSORS] = {data, &label};
    assert_true(trial_fail_allocations(layer, 2, out) > 10);
    ls_definition_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_caffes),
        cmocka_unit_test(batches_have_their_share_of_foreground),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(windows_beyond_the_picture_are_bad_records),
        cmocka_unit_test(mean_pictures),
        cmocka_unit_test(memory_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
