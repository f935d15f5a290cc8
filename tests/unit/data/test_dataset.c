/* Data sets: every sample comes once in an epoch, is the same for every reader, and wrong layers
 * are refused.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "data/reader.h"
#include "data/samples.h"
#include "data_trial.h"
#include "picture_files.h"

/* IDX of 1 x 6 x 6 pictures whose first two pixels are the record's number. */
static const char *numbered(uint32_t count)
{
    static char layer[2048];
    const char *images = ls_test_path("numbered"), *labels = ls_test_path("numbered_labels");
    write_pair(images, labels, count, 6, 6);
    size_t size;
    char *bytes = ls_test_read(images, &size);
    for (uint32_t i = 0; i < count; i++) {
        bytes[16 + 36 * i] = (char)(i & 255);
        bytes[16 + 36 * i + 1] = (char)(i >> 8);
    }
    ls_test_write(images, bytes, size);
    free(bytes);
    snprintf(layer, sizeof layer,
             "name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: '%s' "
             "label_source: '%s' backend: IDX batch_size: 10",
             images, labels);
    return layer;
}

/* The record that a fetched sample came from. */
static int fetch_number(struct ls_reader *reader, int64_t ordinal)
{
    float sample[36], label;
    assert_int_equal(trial_fetch(reader, ordinal, sample, &label, NULL), 0);
    int number = (int)sample[0] + 256 * (int)sample[1];
    assert_int_equal((int)label, number % 10);
    return number;
}

static void every_record_comes_once_an_epoch(void **state)
{
    (void)state;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct ls_definition *layer =
            trial_layer("%s shuffle: %s }", numbered(1003), shuffle ? "true" : "false");
        struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 4);
        struct ls_reader *reader;
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        assert_int_equal(ls_dataset_size(set), 1003);
        int moved = 0, first[1003];
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            uint8_t seen[1003] = {0};
            for (int64_t i = 0; i < 1003; i++) {
                int number = fetch_number(reader, epoch * 1003 + i);
                assert_int_equal(seen[number]++, 0);
                if (epoch == 0)
                    first[i] = number;
                moved += number != first[i];
                if (!shuffle)
                    assert_int_equal(number, i);
            }
        }
        assert_true(shuffle ? moved > 1950 : moved == 0);
        assert_true(ls_dataset_reads(set) == 3 * 1003);
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

/* Two layers of different names and one seed have the same order, so that pictures and targets
 * stay together. */
static void order_follows_from_the_seed_alone(void **state)
{
    (void)state;
    const char *form = numbered(300);
    struct ls_definition *a = trial_layer("%s shuffle: true }", form);
    struct ls_definition *b = trial_layer("%s shuffle: true }", form);
    ((Lockstep__LayerParameter *)b->message)->name = (char *)(uintptr_t) "other";
    struct ls_dataset *x = trial_dataset(a, LOCKSTEP__PHASE__TRAIN, 1);
    struct ls_dataset *y = trial_dataset(b, LOCKSTEP__PHASE__TRAIN, 1);
    struct ls_dataset *z = trial_dataset(a, LOCKSTEP__PHASE__TRAIN, 2);
    struct ls_reader *rx, *ry, *rz;
    assert_int_equal(ls_reader_open(x, &rx, NULL), 0);
    assert_int_equal(ls_reader_open(y, &ry, NULL), 0);
    assert_int_equal(ls_reader_open(z, &rz, NULL), 0);
    int same = 0;
    for (int64_t i = 0; i < 600; i++) {
        int number = fetch_number(rx, i);
        assert_int_equal(number, fetch_number(ry, i));
        same += number == fetch_number(rz, i);
    }
    assert_in_range(same, 0, 20);
    ls_reader_close(rx);
    ls_reader_close(ry);
    ls_reader_close(rz);
    ls_dataset_close(x);
    ls_dataset_close(y);
    ls_dataset_close(z);
    ls_definition_free(a);
    ls_definition_free(b);
}

/* The two sides of a split have each record once, with any seeds of the two runs. */
static void the_two_sides_of_a_split_share_no_record(void **state)
{
    (void)state;
    const char *form = numbered(1003);
    struct ls_definition *a = trial_layer("%s shuffle: true split: 'train:0.8' }", form);
    struct ls_definition *b = trial_layer("%s split: 'test:0.8' }", form);
    struct ls_dataset *x = trial_dataset(a, LOCKSTEP__PHASE__TRAIN, 11);
    struct ls_dataset *y = trial_dataset(b, LOCKSTEP__PHASE__TEST, 12);
    assert_int_equal(ls_dataset_size(x) + ls_dataset_size(y), 1003);
    assert_in_range(ls_dataset_size(x), 750, 850);
    uint8_t seen[1003] = {0};
    for (int k = 0; k < 2; k++) {
        struct ls_reader *reader;
        struct ls_dataset *set = k == 0 ? x : y;
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        for (int64_t i = 0; i < ls_dataset_size(set); i++)
            assert_int_equal(seen[fetch_number(reader, i)]++, 0);
        ls_reader_close(reader);
    }
    assert_int_equal(ls_dataset_last_batch(x), LS_LAST_WRAP);
    assert_int_equal(ls_dataset_last_batch(y), LS_LAST_PARTIAL);
    ls_dataset_close(x);
    ls_dataset_close(y);
    ls_definition_free(a);
    ls_definition_free(b);
}

/* ---- The same bytes for every thread ---- */

struct job {
    struct ls_dataset *set;
    const float *expected;
    int first, step, count;
    size_t size;
    pthread_t thread;
    int wrong;
};

static void *fetch_all(void *argument)
{
    struct job *job = argument;
    struct ls_reader *reader;
    float *sample = malloc(job->size * sizeof *sample);
    if (ls_reader_open(job->set, &reader, NULL) != 0)
        return argument;
    for (int i = 0; i < job->count; i++) {
        int64_t ordinal = (job->first + (int64_t)i * job->step) % job->count;
        if (trial_fetch(reader, ordinal, sample, NULL, NULL) != 0 ||
            memcmp(sample, job->expected + (size_t)ordinal * job->size, job->size * 4) != 0)
            job->wrong++;
    }
    ls_reader_close(reader);
    free(sample);
    return NULL;
}

static void check_threads(struct ls_dataset *set, int count)
{
    size_t size = 1;
    for (int i = 0; i < 3; i++)
        size *= (size_t)ls_dataset_shape(set)[i];
    float *expected = malloc((size_t)count * size * sizeof *expected);
    struct ls_reader *reader;
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(trial_fetch(reader, i, expected + (size_t)i * size, NULL, NULL), 0);
    ls_reader_close(reader);
    const int steps[4] = {1, 7, 11, 13};
    struct job job[4];
    for (int i = 0; i < 4; i++) {
        job[i] = (struct job){set, expected, i * 17, steps[i], count, size, 0, 0};
        assert_int_equal(pthread_create(&job[i].thread, NULL, fetch_all, &job[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(job[i].thread, NULL);
        assert_int_equal(job[i].wrong, 0);
    }
    free(expected);
}

static void readers_of_several_threads_agree(void **state)
{
    (void)state;
    char folder[512];
    snprintf(folder, sizeof folder, "%s", ls_test_path("pictures"));
    char name[600];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "mkdir -p '%s/%c'", folder, "ab"[i % 2]);
        assert_int_equal(system(name), 0);
        snprintf(name, sizeof name, "%s/%c/%d.%s", folder, "ab"[i % 2], i, i % 3 ? "jpg" : "png");
        write_picture(name, 20 + i, 30 - i, 3, i);
    }
    for (int cache = 0; cache < 2; cache++) {
        struct ls_definition *layer = trial_layer(
            "name: 'd' type: 'Data' top: 'data' data_param { source: '%s' backend: IMAGES "
            "shuffle: true new_height: 16 new_width: 18 cache: %s } transform_param { crop_size: "
            "14 pad: 2 pad_mode: REFLECT mirror: true brightness: 20 contrast_lower: 0.5 "
            "contrast_upper: 1.5 standardize: true }",
            folder, cache ? "true" : "false");
        struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
        assert_true(ls_dataset_encoded(set));
        assert_int_equal(ls_dataset_classes(set), 2);
        assert_string_equal(ls_dataset_class_name(set, 1), "b");
        assert_null(ls_dataset_class_name(set, 2));
        check_threads(set, 30);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

/* In the test phase, or un-augmented, nothing is random. */
static void samples_without_augmentation_are_not_random(void **state)
{
    (void)state;
    struct ls_definition *layer = trial_layer(
        "%s } transform_param { crop_size: 4 mirror: true brightness: 9 }", numbered(20));
    struct ls_dataset *plain, *test = trial_dataset(layer, LOCKSTEP__PHASE__TEST, 1);
    struct ls_dataset *train = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 1);
    assert_int_equal(ls_dataset_open((const Lockstep__LayerParameter *)layer->message, layer,
                                     LOCKSTEP__PHASE__TRAIN, 1, &(struct ls_dataset_wishes){0},
                                     &plain, NULL),
                     0);
    struct ls_reader *r[3];
    assert_int_equal(ls_reader_open(test, &r[0], NULL), 0);
    assert_int_equal(ls_reader_open(plain, &r[1], NULL), 0);
    assert_int_equal(ls_reader_open(train, &r[2], NULL), 0);
    int same = 0;
    for (int64_t i = 0; i < 20; i++) {
        float sample[3][16], raw[36];
        int64_t shape[3];
        int label;
        for (int k = 0; k < 3; k++)
            assert_int_equal(trial_fetch(r[k], i, sample[k], NULL, NULL), 0);
        assert_int_equal(ls_reader_fetch_raw(r[0], i, shape, NULL, NULL, NULL), 0);
        assert_int_equal(shape[0] * shape[1] * shape[2], 36);
        assert_int_equal(ls_reader_fetch_raw(r[0], i, shape, raw, &label, NULL), 0);
        assert_int_equal(label, i % 10);
        for (int y = 0; y < 4; y++)
            assert_memory_equal(sample[0] + 4 * y, raw + 6 * (y + 1) + 1, 16);
        assert_memory_equal(sample[0], sample[1], sizeof sample[0]);
        same += memcmp(sample[0], sample[2], sizeof sample[0]) == 0;
    }
    assert_in_range(same, 0, 2);
    for (int k = 0; k < 3; k++)
        ls_reader_close(r[k]);
    ls_dataset_close(plain);
    ls_dataset_close(test);
    ls_dataset_close(train);
    ls_definition_free(layer);
}

/* A picture of the folder, read as a picture, is equal to the sample of the test phase. */
static void a_picture_from_outside_is_the_sample_of_the_test_phase(void **state)
{
    (void)state;
    char folder[512], file[600];
    snprintf(folder, sizeof folder, "%s", ls_test_path("one"));
    snprintf(file, sizeof file, "mkdir -p '%s/c'", folder);
    assert_int_equal(system(file), 0);
    snprintf(file, sizeof file, "%s/c/1.png", folder);
    write_picture(file, 30, 20, 3, 7);
    struct ls_definition *layer = trial_layer(
        "name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: '%s' backend: "
        "IMAGES new_height: 12 new_width: 10 } transform_param { crop_size: 8 mirror: true "
        "mean_value: 100 mean_value: 110 mean_value: 120 scale: 0.5 }",
        folder);
    struct ls_dataset *train = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 1);
    struct ls_dataset *test = trial_dataset(layer, LOCKSTEP__PHASE__TEST, 1);
    struct ls_reader *a, *b;
    assert_int_equal(ls_reader_open(train, &a, NULL), 0);
    assert_int_equal(ls_reader_open(test, &b, NULL), 0);
    float x[192], y[192], raw[360];
    int64_t shape[3];
    assert_int_equal(ls_reader_picture(a, file, x, NULL, NULL), 0);
    assert_int_equal(trial_fetch(b, 0, y, NULL, NULL), 0);
    assert_memory_equal(x, y, sizeof x);
    /* Samples have blue first; what is shown has red first. */
    assert_int_equal(ls_reader_fetch_raw(b, 0, shape, raw, NULL, NULL), 0);
    assert_true((raw[2 * 120 + 2 * 10 + 1] - 100) * 0.5F == y[0]);
    assert_true((raw[2 * 10 + 1] - 120) * 0.5F == y[128]);
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_reader_picture(a, ls_test_path("none.png"), x, NULL, error), LOCKSTEP_DATA);
    assert_says(error, "none.png: cannot open");
    free(error);
    ls_reader_close(a);
    ls_reader_close(b);
    ls_dataset_close(train);
    ls_dataset_close(test);
    ls_definition_free(layer);
}

/* Synthetic samples of the two phases differ; fingerprints tell data apart and nothing else. */
static void fingerprints_tell_data_apart_and_nothing_else(void **state)
{
    (void)state;
    const char *form = "name: 'd' type: 'Data' top: 'data' top: 'label' data_param { backend: "
                       "SYNTHETIC batch_size: 4 synthetic_param { count: 100 seed: %d } }";
    struct ls_definition *one = trial_layer(form, 1), *two = trial_layer(form, 2);
    struct ls_dataset *a = trial_dataset(one, LOCKSTEP__PHASE__TRAIN, 1);
    struct ls_dataset *b = trial_dataset(one, LOCKSTEP__PHASE__TEST, 1);
    struct ls_dataset *c = trial_dataset(one, LOCKSTEP__PHASE__TRAIN, 9);
    struct ls_dataset *d = trial_dataset(two, LOCKSTEP__PHASE__TRAIN, 1);
    assert_true(trial_fingerprint(a) == trial_fingerprint(c));
    assert_true(trial_fingerprint(a) != trial_fingerprint(b));
    assert_true(trial_fingerprint(a) != trial_fingerprint(d));
    assert_int_equal(ls_dataset_classes(a), 10);
    assert_int_equal(ls_dataset_largest(a, 1), 9);
    ls_dataset_close(a);
    ls_dataset_close(b);
    ls_dataset_close(c);
    ls_dataset_close(d);
    ls_definition_free(one);
    ls_definition_free(two);
}

/* A label alone is read without its picture. */
static void a_label_is_read_without_its_picture(void **state)
{
    (void)state;
    struct ls_definition *layer = trial_layer("%s shuffle: true }", numbered(50));
    struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 1);
    struct ls_reader *reader;
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int64_t i = 0; i < 50; i++) {
        float label;
        assert_int_equal(trial_fetch(reader, i, NULL, &label, NULL), 0);
        assert_int_equal((int)label, fetch_number(reader, i) % 10);
    }
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(layer);
}

/* rand_skip turns every epoch around: no sample is lost and none comes twice. */
static void epochs_begin_where_the_seed_says(void **state)
{
    (void)state;
    const char *form = numbered(50);
    int64_t plain[150], begins = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct ls_definition *layers[] = {trial_layer("%s }", form),
                                          trial_layer("%s rand_skip: 20 }", form)};
        int64_t skip = 0;
        for (int k = 0; k < 2; k++) {
            struct ls_dataset *dataset;
            struct ls_reader *reader;
            assert_int_equal(trial_open(layers[k], LOCKSTEP__PHASE__TRAIN, seed, &dataset, NULL),
                             0);
            assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
            for (int64_t i = 0; i < 150; i++) {
                uint64_t hash;
                int64_t record;
                assert_int_equal(ls_reader_hash(reader, i, LS_ALL_TENSORS, &record, &hash, NULL),
                                 0);
                if (k == 0)
                    plain[i] = record;
                else if (i == 0)
                    skip = record;
                if (k == 1)
                    assert_int_equal(record, plain[i / 50 * 50 + (i % 50 + skip) % 50]);
            }
            ls_reader_close(reader);
            ls_dataset_close(dataset);
            ls_definition_free(layers[k]);
        }
        assert_in_range(skip, 0, 19);
        begins |= INT64_C(1) << skip;
    }
    assert_true((begins & (begins - 1)) != 0); /* not the same for all seeds */
}

static void must_fail(const struct ls_definition *layer, int status, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_dataset *dataset;
    assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &dataset, error), status);
    assert_null(dataset);
    assert_says(error, words);
    free(error);
}

static void fields_that_do_not_fit_the_source_are_refused(void **state)
{
    (void)state;
    const char *form = numbered(12);
    const struct {
        const char *text;
        int status;
        const char *words;
    } bad[] = {
        {"new_height: 3 }", LOCKSTEP_DEFINITION, "new_height is for IMAGES"},
        {"is_color: true }", LOCKSTEP_DEFINITION, "is_color is for IMAGES"},
        {"root_folder: 'x' }", LOCKSTEP_DEFINITION, "root_folder is for IMAGES"},
        {"synthetic_param { } }", LOCKSTEP_DEFINITION, "synthetic_param is for SYNTHETIC"},
        {"rand_skip: 13 }", LOCKSTEP_DEFINITION, "rand_skip is 13, but there are only 12 samples"},
        {"prefetch: 0 }", LOCKSTEP_DEFINITION, "prefetch is 0; it must lie in 1 .. 1024"},
        {"prefetch: 1025 }", LOCKSTEP_DEFINITION, "prefetch is 1025; it must lie in 1 .. 1024"},
        {"split: 'half' }", LOCKSTEP_DEFINITION, "split \"half\" is not understood"},
        {"split: 'test:0.999999' }", LOCKSTEP_DATA, "has none of the 12 records"},
        {"} transform_param { force_gray: true }", LOCKSTEP_DEFINITION,
         "encoded records of LEVELDB and LMDB"},
        {"} transform_param { crop_size: 7 }", LOCKSTEP_DEFINITION, "is larger than the records"},
        {"} transform_param { mean_file: 'nowhere' }", LOCKSTEP_DATA, "nowhere: cannot open"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_definition *layer = trial_layer("%s %s", form, bad[i].text);
        must_fail(layer, bad[i].status, bad[i].words);
        ls_definition_free(layer);
    }
    struct ls_definition *missing = trial_layer(
        "name: 'd' top: 'data' data_param { backend: CIFAR source: '/'\nsource: 'nowhere.bin' }");
    must_fail(
        missing, LOCKSTEP_DATA,
        "trial.prototxt:2:1: layer 'd': there is no file or folder 'nowhere.bin'. hint: a path "
        "is tried from the working directory, then from the definition's folder");
    ls_definition_free(missing);
    const struct {
        const char *text, *words;
    } whole[] = {
        {"name: 'd' type: 'Data'", "a Data layer needs data_param"},
        {"name: 'd' data_param { }", "data of backend LEVELDB needs a source"},
        {"name: 'd' data_param { source: '' backend: LMDB }", "source is empty"},
        {"name: 'd' data_param { source: 'x' source: 'y' backend: LMDB }", "has one source, not 2"},
        {"name: 'd' data_param { source: 'x' backend: SYNTHETIC }", "SYNTHETIC has no source"},
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        struct ls_definition *layer = trial_layer("%s", whole[i].text);
        must_fail(layer, LOCKSTEP_DEFINITION, whole[i].words);
        ls_definition_free(layer);
    }
    struct ls_definition *layer =
        trial_layer("name: 'd' top: 'data' top: 'label' data_param { source: '%s' backend: IDX }",
                    ls_test_path("numbered"));
    must_fail(layer, LOCKSTEP_DEFINITION, "the layer has a top for labels");
    ls_definition_free(layer);
}

/* Out of memory at any allocation is an error, and nothing is lost. */
static void out_of_memory_is_an_error_and_loses_nothing(void **state)
{
    (void)state;
    struct ls_definition *layer =
        trial_layer("%s shuffle: true split: 'train:0.5' cache: true } transform_param { "
                    "mean_value: 3 }",
                    numbered(40));
    assert_true(trial_fail_allocations(layer, 0, NULL) >= 8);
    ls_definition_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_comes_once_an_epoch),
        cmocka_unit_test(order_follows_from_the_seed_alone),
        cmocka_unit_test(the_two_sides_of_a_split_share_no_record),
        cmocka_unit_test(readers_of_several_threads_agree),
        cmocka_unit_test(samples_without_augmentation_are_not_random),
        cmocka_unit_test(a_picture_from_outside_is_the_sample_of_the_test_phase),
        cmocka_unit_test(fingerprints_tell_data_apart_and_nothing_else),
        cmocka_unit_test(a_label_is_read_without_its_picture),
        cmocka_unit_test(epochs_begin_where_the_seed_says),
        cmocka_unit_test(fields_that_do_not_fit_the_source_are_refused),
        cmocka_unit_test(out_of_memory_is_an_error_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
