/* Pictures and their label maps go through the same geometry.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/reader.h"
#include "data/samples.h"
#include "data_trial.h"
#include "map_files.h"

enum { N = 5 };

/* Maps of 8 bits, 1 and above, and the same files as grey pictures, in <name>/both. */
static void write_same(const char *name, int height, int width)
{
    char file[100];
    for (int i = 0; i < N; i++) {
        uint8_t *pixels = malloc((size_t)height * (size_t)width);
        for (int k = 0; k < height * width; k++)
            pixels[k] = (uint8_t)(1 + map_label(k / width, k % width, 7, i));
        size_t size;
        uint8_t *bytes =
            png_file(pixels, (size_t)width, height, width, PNG_COLOR_TYPE_GRAY, 8, false, &size);
        snprintf(file, sizeof file, "both/%d.png", i);
        ls_test_write(file_at(name, file), bytes, size);
        free(bytes);
        free(pixels);
    }
}

static struct ls_dataset *open_same(const char *name, const char *data, const char *transform,
                                    struct ls_definition **layer)
{
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/both", ls_test_path(name));
    *layer = trial_layer("name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: '%s' "
                         "label_source: '%s' backend: IMAGE_PAIRS is_color: false shuffle: true "
                         "%s } transform_param { %s }",
                         folder, folder, data, transform);
    return trial_dataset(*layer, LOCKSTEP__PHASE__TRAIN, 3);
}

/* With the same numbers in both, the results are the same numbers, or those of the padding. */
static void pictures_and_maps_go_through_the_same_geometry(void **state)
{
    (void)state;
    static const char *const transforms[] = {"",
                                             "mirror: true",
                                             "crop_size: 9",
                                             "pad: 3",
                                             "pad: 3 crop_size: 12 mirror: true",
                                             "pad: 4 pad_mode: REFLECT",
                                             "pad: 4 pad_mode: REFLECT crop_size: 15 mirror: true"};
    static const char *const datas[] = {"", "label_pad: 200", "cache: true", "label_pad: 0"};
    write_same("same", 14, 11);
    for (size_t t = 0; t < sizeof transforms / sizeof transforms[0]; t++)
        for (size_t d = 0; d < sizeof datas / sizeof datas[0]; d++) {
            struct ls_definition *layer;
            struct ls_dataset *set = open_same("same", datas[d], transforms[t], &layer);
            const int64_t *shape = ls_dataset_shape(set);
            assert_true(ls_dataset_tensor(set, 1)->shape.rank == 3 && !ls_dataset_varies(set));
            float x[22 * 22], y[22 * 22], alone[22 * 22];
            float pad = d == 1 ? 200 : d == 3 ? 0 : 255;
            struct ls_reader *reader;
            assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
            for (int64_t i = 0; i < 6 * N; i++) {
                assert_int_equal(trial_fetch(reader, i, NULL, alone, NULL), 0);
                assert_int_equal(trial_fetch(reader, i, x, y, NULL), 0);
                for (int64_t k = 0; k < shape[1] * shape[2]; k++) {
                    assert_true(y[k] == (x[k] == 0 ? pad : x[k]));
                    assert_true(alone[k] == y[k]);
                }
            }
            ls_reader_close(reader);
            ls_dataset_close(set);
            ls_definition_free(layer);
        }
}

/* Light, mean and scale change the picture and leave the map alone. */
static void light_mean_and_scale_leave_maps_alone(void **state)
{
    (void)state;
    write_same("light", 14, 11);
    struct ls_definition *layer[2];
    struct ls_dataset *set[2];
    struct ls_reader *reader[2];
    set[0] = open_same("light", "", "crop_size: 8 mirror: true", &layer[0]);
    set[1] = open_same("light", "",
                       "crop_size: 8 mirror: true brightness: 40 contrast_lower: 0.5 "
                       "contrast_upper: 1.5 mean_value: 30 scale: 0.25 standardize: true",
                       &layer[1]);
    for (int k = 0; k < 2; k++)
        assert_int_equal(ls_reader_open(set[k], &reader[k], NULL), 0);
    for (int64_t i = 0; i < 4 * N; i++) {
        float x[2][64], y[2][64];
        for (int k = 0; k < 2; k++)
            assert_int_equal(trial_fetch(reader[k], i, x[k], y[k], NULL), 0);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        assert_memory_not_equal(x[0], x[1], sizeof x[0]);
        assert_memory_equal(x[0], y[0], sizeof y[0]);
    }
    for (int k = 0; k < 2; k++) {
        ls_reader_close(reader[k]);
        ls_dataset_close(set[k]);
        ls_definition_free(layer[k]);
    }
}

static void resizing_maps_takes_the_nearest_label(void **state)
{
    (void)state;
    write_same("nearest", 14, 11);
    static const int sizes[][2] = {{7, 5}, {14, 11}, {28, 33}, {13, 40}, {1, 1}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        char text[100];
        int h = sizes[s][0], w = sizes[s][1];
        snprintf(text, sizeof text, "new_height: %d new_width: %d", h, w);
        struct ls_definition *layer;
        struct ls_dataset *set = open_same("nearest", text, "", &layer);
        struct ls_reader *reader;
        float y[40 * 40];
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        assert_int_equal(ls_dataset_shape(set)[1] * 100 + ls_dataset_shape(set)[2], h * 100 + w);
        for (int64_t i = 0; i < N; i++) {
            int found = 0; /* the order is shuffled: exactly one file has all these labels */
            assert_int_equal(trial_fetch(reader, i, NULL, y, NULL), 0);
            for (int file = 0; file < N; file++) {
                bool all = true;
                for (int k = 0; k < h * w; k++) {
                    int row = (int)((k / w + 0.5) * 14 / h), column = (int)((k % w + 0.5) * 11 / w);
                    all = all && y[k] == (float)(1 + map_label(row, column, 7, file));
                }
                found += all;
            }
            assert_int_equal(found, 1);
        }
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

static void labels_are_clipped(void **state)
{
    (void)state;
    write_same("clip", 14, 11);
    struct ls_definition *layer[2];
    struct ls_dataset *set[2] = {open_same("clip", "", "pad: 1", &layer[0]),
                                 open_same("clip", "label_clip: 50", "pad: 1", &layer[1])};
    struct ls_reader *reader[2];
    float y[2][16 * 13];
    int clipped = 0, padded = 0;
    for (int k = 0; k < 2; k++)
        assert_int_equal(ls_reader_open(set[k], &reader[k], NULL), 0);
    for (int64_t i = 0; i < N; i++) {
        for (int k = 0; k < 2; k++)
            assert_int_equal(trial_fetch(reader[k], i, NULL, y[k], NULL), 0);
        for (int k = 0; k < 16 * 13; k++) {
            bool outside = y[0][k] == 255; /* what is put around is not clipped */
            assert_true(y[1][k] == (outside || y[0][k] <= 50 ? y[0][k] : 50));
            clipped += y[1][k] != y[0][k];
            padded += outside;
        }
    }
    assert_true(clipped > N);
    assert_int_equal(padded, N * (16 * 13 - 14 * 11));
    for (int k = 0; k < 2; k++) {
        ls_reader_close(reader[k]);
        ls_dataset_close(set[k]);
        ls_definition_free(layer[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_and_maps_go_through_the_same_geometry),
        cmocka_unit_test(light_mean_and_scale_leave_maps_alone),
        cmocka_unit_test(resizing_maps_takes_the_nearest_label),
        cmocka_unit_test(labels_are_clipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
