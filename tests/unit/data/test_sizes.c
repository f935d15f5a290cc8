/* Samples of different sizes: shapes by ordinal, the samples themselves, and prefetchers that
 * follow the sizes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <zlib.h>

#include "data/prefetcher.h"
#include "data/reader.h"
#include "data/samples.h"
#include "data/source.h"
#include "data_trial.h"
#include "map_files.h"

enum { N = 9, SIDE = 40 };

/* Sizes come in runs and alone. */
static const int sizes[N][2] = {{9, 12}, {9, 12}, {9, 12}, {9, 13}, {20, 12},
                                {9, 12}, {9, 12}, {5, 30}, {30, 31}};

/* Pictures of these sizes with their maps; file i has the salt i. */
static void write_files(const char *name)
{
    char file[100];
    for (int i = 0; i < N; i++) {
        snprintf(file, sizeof file, "x/%d.png", i);
        write_picture(file_at(name, file), sizes[i][0], sizes[i][1], 3, i);
        snprintf(file, sizeof file, "y/%d.png", i);
        write_map(file_at(name, file), sizes[i][0], sizes[i][1], PNG_COLOR_TYPE_GRAY, 8, false, i);
    }
}

static struct ls_definition *layer_of(const char *name, const char *data, const char *transform)
{
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", ls_test_path(name));
    return trial_layer("name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: '%s/x' "
                       "label_source: '%s/y' backend: IMAGE_PAIRS %s } transform_param { %s }",
                       folder, folder, data, transform);
}

/* The number of a sample's file, found by its size and its first pixels; -1: none. */
static int file_of(const float *x, const int64_t shape[3], int pad)
{
    for (int i = 0; i < N; i++) {
        if (shape[1] != sizes[i][0] + 2 * pad || shape[2] != sizes[i][1] + 2 * pad)
            continue;
        if (x[pad * shape[2] + pad] == picture_pixel(0, 0, 2, i))
            return i;
    }
    return -1;
}

/* That a sample is all of a file, with its map. */
static void check_sample(const float *x, const float *y, const int64_t shape[3], int file, int pad)
{
    for (int64_t k = 0; k < shape[1] * shape[2]; k++) {
        int row = (int)(k / shape[2]) - pad, column = (int)(k % shape[2]) - pad;
        bool outside = row < 0 || column < 0 || row >= sizes[file][0] || column >= sizes[file][1];
        for (int c = 0; c < 3; c++)
            assert_true(x[c * shape[1] * shape[2] + k] ==
                        (outside ? 0 : picture_pixel(row, column, 2 - c, file)));
        assert_true(y[k] == (outside ? 255 : map_label(row, column, 8, file)));
    }
}

static void shapes_and_samples_follow_each_record(void **state)
{
    (void)state;
    static const char *const datas[] = {"", "shuffle: true", "cache: true shuffle: true"};
    write_files("samples");
    float *x = malloc(3 * SIDE * SIDE * sizeof *x), *y = malloc(SIDE * SIDE * sizeof *y);
    for (int pad = 0; pad <= 3; pad += 3)
        for (int d = 0; d < 3; d++) {
            struct ls_definition *layer = layer_of("samples", datas[d], pad > 0 ? "pad: 3" : "");
            struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 5);
            struct ls_reader *reader;
            assert_true(ls_dataset_varies(set));
            assert_int_equal(ls_dataset_shape(set)[1], sizes[0][0] + 2 * pad);
            assert_int_equal(ls_dataset_largest_shape(set)[1], 30 + 2 * pad);
            assert_int_equal(ls_dataset_largest_shape(set)[2], 31 + 2 * pad);
            assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
            for (int64_t epoch = 0; epoch < 3; epoch++) {
                int seen = 0;
                for (int64_t i = epoch * N; i < (epoch + 1) * N; i++) {
                    int64_t shape[3];
                    assert_int_equal(ls_dataset_sample_shape(set, i, shape, NULL), 0);
                    assert_int_equal(shape[0], 3);
                    assert_int_equal(trial_fetch(reader, i, x, y, NULL), 0);
                    int file = file_of(x, shape, pad);
                    assert_in_range(file, 0, N - 1);
                    assert_true(d > 0 || file == i % N);
                    check_sample(x, y, shape, file, pad);
                    seen |= 1 << file;
                }
                assert_int_equal(seen, (1 << N) - 1);
            }
            ls_reader_close(reader);
            ls_dataset_close(set);
            ls_definition_free(layer);
        }
    free(x);
    free(y);
}

/* One size, or a crop: nothing varies, and shapes are those of record 0. */
static void crops_and_equal_sizes_do_not_vary(void **state)
{
    (void)state;
    write_files("alike");
    static const char *const texts[][2] = {{"", "crop_size: 5"},
                                           {"new_height: 8 new_width: 6", ""},
                                           {"split: 'train:0.5'", "crop_size: 2 pad: 1"}};
    for (int k = 0; k < 3; k++) {
        struct ls_definition *layer = layer_of("alike", texts[k][0], texts[k][1]);
        struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 5);
        assert_false(ls_dataset_varies(set));
        for (int64_t i = 0; i < 2 * N; i++) {
            int64_t shape[3];
            assert_int_equal(ls_dataset_sample_shape(set, i, shape, NULL), 0);
            assert_memory_equal(shape, ls_dataset_shape(set), sizeof shape);
        }
        assert_memory_equal(ls_dataset_shape(set), ls_dataset_largest_shape(set),
                            3 * sizeof(int64_t));
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

static void must_not_open(const struct ls_definition *layer, int status, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_dataset *set;
    assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &set, error), status);
    assert_says(error, words);
    free(error);
}

static void fields_that_need_one_size_are_refused(void **state)
{
    (void)state;
    write_files("refused");
    const struct {
        const char *text;
        int status;
        const char *words;
    } bad[] = {
        {"mean_file: 'none'", LOCKSTEP_DEFINITION, "mean_file needs records of one size"},
        {"pad: 7 pad_mode: REFLECT", LOCKSTEP_DATA,
         "record 7 (7.png): it is smaller than the reflecting pad"},
        {"crop_size: 10", LOCKSTEP_DATA,
         "x/0.png: record 0: has 9 x 12 pixels (height x width), too few"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_definition *layer = layer_of("refused", "", bad[i].text);
        must_not_open(layer, bad[i].status, bad[i].words);
        ls_definition_free(layer);
    }
    /* Headers with sizes beyond the limits: nothing is allocated for them. */
    uint8_t row[64] = {0};
    size_t size;
    uint8_t *bytes = png_file(row, 8, 4, 8, PNG_COLOR_TYPE_GRAY, 8, false, &size);
    put_u32(bytes + 16, 30000);
    put_u32(bytes + 20, 30000);
    put_u32(bytes + 29, (uint32_t)crc32(0, bytes + 12, 17));
    ls_test_write(file_at("refused", "x/4.png"), bytes, size);
    free(bytes);
    struct ls_definition *layer = layer_of("refused", "", "");
    must_not_open(layer, LOCKSTEP_DATA, "x/4.png: record 4: the picture is too large");
    ls_definition_free(layer);
}

/* A file that grows after its size was read does not get more memory than was reserved. */
static void a_file_that_grows_later_gets_no_more_memory(void **state)
{
    (void)state;
    write_files("changes");
    struct ls_definition *layer = layer_of("changes", "", "");
    struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 5);
    struct ls_reader *reader;
    float *x = malloc(3 * SIDE * SIDE * sizeof *x), *y = malloc(SIDE * SIDE * sizeof *y);
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    write_picture(file_at("changes", "x/3.png"), 30, 40, 3, 1);
    write_map(file_at("changes", "y/3.png"), 30, 40, PNG_COLOR_TYPE_GRAY, 8, false, 1);
    assert_int_equal(trial_fetch(reader, 3, x, NULL, error), LOCKSTEP_DATA);
    assert_says(error, "record 3 (3.png): it has another height or width than when");
    ls_error_clear(error);
    assert_int_equal(trial_fetch(reader, 3, NULL, y, error), LOCKSTEP_DATA);
    assert_says(error, "y/3.png: record 3: has 30 x 40 labels");
    assert_int_equal(trial_fetch(reader, 2, x, y, NULL), 0);
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(layer);
    free(error);
    free(x);
    free(y);
}

/* A picture from outside gets the shape of record 0, for which there is room. */
static void a_picture_from_outside_gets_the_shape_of_record_0(void **state)
{
    (void)state;
    write_files("outside");
    write_picture(file_at("outside", "large.png"), 200, 300, 3, 1);
    struct ls_definition *layer = layer_of("outside", "", "");
    struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TEST, 5);
    struct ls_reader *reader;
    float x[3 * 9 * 12 + 1];
    x[3 * 9 * 12] = -1;
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    assert_int_equal(ls_reader_picture(reader, file_at("outside", "large.png"), x, NULL, NULL), 0);
    assert_true(x[3 * 9 * 12] == -1);
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(layer);
}

/* ---- Prefetchers ---- */

struct sizer {
    struct ls_dataset *set;
    int64_t fails; /* at this ordinal; -1: never */
};

static int size_of(void *user, int64_t ordinal, int64_t shape[3], struct ls_error *error)
{
    const struct sizer *sizer = user;
    if (ordinal == sizer->fails)
        return ls_fail(error, LOCKSTEP_DATA, "x/4.png", NULL, "cannot be looked at");
    return ls_dataset_sample_shape(sizer->set, ordinal, shape, error);
}

static int open_prefetcher(struct sizer *sizer, int threads, size_t memory,
                           struct ls_prefetcher **prefetcher)
{
    static const int both[2][2] = {{0, 1}, {0, 0}};
    struct ls_prefetcher_options options = {.datasets = &sizer->set,
                                            .dataset_count = 1,
                                            .inputs = both,
                                            .input_count = 2,
                                            .batching = {.samples = N,
                                                         .batch = 4,
                                                         .micro_batch = 2,
                                                         .iter_size = 2,
                                                         .size_of = size_of,
                                                         .user = sizer},
                                            .updates_end = INT64_MAX,
                                            .threads = threads,
                                            .memory = memory};
    return ls_prefetcher_open(&options, prefetcher, NULL);
}

/* Takes an update's micro-batches, checks all of their samples, and returns the number of micro-
 * batches. */
static int take_update(struct ls_prefetcher *prefetcher, int64_t update)
{
    int64_t next = update * 8;
    int index = 0;
    for (; next < (update + 1) * 8; index++) {
        const struct ls_prefetch_item *item;
        assert_int_equal(ls_prefetcher_take(prefetcher, update, index, &item, NULL), 0);
        assert_int_equal(item->ordinal, next);
        assert_in_range(item->samples, 1, 2);
        size_t plane = (size_t)(item->shape[1] * item->shape[2]);
        assert_int_equal(item->shape[0], 3);
        assert_int_equal(((uintptr_t)item->input[0] | (uintptr_t)item->input[1]) % 64, 0);
        const float *maps = item->input[0], *images = item->input[1];
        for (int64_t s = 0; s < item->samples; s++)
            check_sample(images + (size_t)s * 3 * plane, maps + (size_t)s * plane, item->shape,
                         (int)((item->ordinal + s) % N), 0);
        next += item->samples;
        ls_prefetcher_release(prefetcher, item);
    }
    assert_int_equal(next, (update + 1) * 8);
    return index;
}

static void prefetchers_follow_sizes(void **state)
{
    (void)state;
    write_files("prefetcher");
    struct ls_definition *layer = layer_of("prefetcher", "", "");
    struct sizer sizer = {trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 5), -1};
    struct ls_prefetcher *prefetcher;
    for (int threads = 1; threads <= 3; threads++) {
        assert_int_equal(open_prefetcher(&sizer, threads, threads == 3 ? 1 : 0, &prefetcher), 0);
        for (int round = 0; round < 2; round++) {
            ls_prefetcher_seek(prefetcher, round * 3);
            for (int64_t u = round * 3; u < 12; u++) {
                int count = take_update(prefetcher, u);
                /* Files 0 1 2 3 and 4 5 6 7: 2 + 1 + 1 and 1 + 1 (two alike) + 1. */
                if (u == 0)
                    assert_int_equal(count, 3 + 3);
            }
        }
        /* What does not exist is told, though only cutting shows that it does not. */
        const struct ls_prefetch_item *item;
        ls_prefetcher_seek(prefetcher, 0);
        assert_int_equal(ls_prefetcher_take(prefetcher, 0, 7, &item, NULL), LOCKSTEP_INTERNAL);
        ls_prefetcher_close(prefetcher);
    }
    struct ls_prefetcher_options options = {
        .datasets = &sizer.set,
        .dataset_count = 1,
        .batching = {.samples = N, .batch = 4, .micro_batch = 2, .iter_size = 1}};
    assert_int_equal(ls_prefetcher_open(&options, &prefetcher, NULL), LOCKSTEP_INTERNAL);
    ls_dataset_close(sizer.set);
    ls_definition_free(layer);
}

static void prefetchers_report_a_size_that_cannot_be_read(void **state)
{
    (void)state;
    write_files("unknown");
    struct ls_definition *layer = layer_of("unknown", "", "");
    struct sizer sizer = {trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 5), 13};
    struct ls_prefetcher *prefetcher;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(open_prefetcher(&sizer, 2, 0, &prefetcher), 0);
    ls_prefetcher_seek(prefetcher, 0);
    const struct ls_prefetch_item *item;
    assert_int_equal(take_update(prefetcher, 0), 6);
    for (int index = 3; index < 6; index++) { /* update 1 begins with 8 and 0, and 1 with 2 */
        ls_error_clear(error);
        assert_int_equal(ls_prefetcher_take(prefetcher, 1, index, &item, error), LOCKSTEP_DATA);
        assert_says(error, "x/4.png: cannot be looked at");
        assert_null(item);
    }
    assert_int_equal(ls_prefetcher_take(prefetcher, 2, 0, &item, NULL), LOCKSTEP_DATA);
    sizer.fails = -1; /* it was a disk that came back */
    ls_prefetcher_seek(prefetcher, 1);
    take_update(prefetcher, 1);
    ls_prefetcher_close(prefetcher);
    ls_dataset_close(sizer.set);
    ls_definition_free(layer);
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_samples_follow_each_record),
        cmocka_unit_test(crops_and_equal_sizes_do_not_vary),
        cmocka_unit_test(fields_that_need_one_size_are_refused),
        cmocka_unit_test(a_file_that_grows_later_gets_no_more_memory),
        cmocka_unit_test(a_picture_from_outside_gets_the_shape_of_record_0),
        cmocka_unit_test(prefetchers_follow_sizes),
        cmocka_unit_test(prefetchers_report_a_size_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
