/* Caches of decoded records: the same samples with and without, within a budget, decoded once
 * and shared, without further allocations. A test removes the file of a record to see whether it
 * is decoded again.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/reader.h"
#include "data_trial.h"
#include "picture_files.h"

enum { PICTURES = 12, SIDE = 40, RECORD = 3 * SIDE * SIDE };

/* A list file in a folder of its own, so that tests do not share a cache. */
static const char *write_pictures(const char *folder)
{
    static char list[600];
    char text[700];
    snprintf(text, sizeof text, "mkdir -p '%s'", ls_test_path(folder));
    assert_int_equal(system(text), 0);
    snprintf(list, sizeof list, "%s/list.txt", ls_test_path(folder));
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    for (int i = 0; i < PICTURES; i++) {
        snprintf(text, sizeof text, "%s/%d.png", ls_test_path(folder), i);
        write_picture(text, SIDE, SIDE, 3, i);
        fprintf(file, "%s %d\n", text, i % 5);
    }
    fclose(file);
    return list;
}

static void remove_pictures(const char *folder)
{
    char path[700];
    for (int i = 0; i < PICTURES; i++) {
        snprintf(path, sizeof path, "%s/%d.png", ls_test_path(folder), i);
        assert_int_equal(unlink(path), 0);
    }
}

static struct ls_definition *pictures_layer(const char *list, const char *fields)
{
    return trial_layer("name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: '%s' "
                       "backend: IMAGES shuffle: true %s } transform_param { crop_size: 32 mirror: "
                       "true brightness: 20 scale: 0.01 }",
                       list, fields);
}

struct sample {
    float data[3 * 32 * 32], label;
};

/* Fetches samples [0, count); false where one cannot be read. */
static bool fetch(struct ls_dataset *set, int count, struct sample *samples)
{
    struct ls_reader *reader;
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    bool good = true;
    for (int i = 0; i < count && good; i++)
        good = trial_fetch(reader, i, samples[i].data, &samples[i].label, NULL) == 0;
    ls_reader_close(reader);
    return good;
}

/* Every budget gives the same samples: none of it, a part, all. */
static void every_budget_gives_the_same_samples(void **state)
{
    (void)state;
    static const char *const fields[] = {"", "cache: true", "cache: true cache_mb: 1"};
    const char *list = write_pictures("same");
    static struct sample plain[3 * PICTURES], cached[3 * PICTURES];
    for (int i = 0; i < 3; i++) {
        struct ls_definition *layer = pictures_layer(list, fields[i]);
        struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
        assert_true((ls_dataset_cache(set) != NULL) == (i > 0));
        assert_true(fetch(set, 3 * PICTURES, i == 0 ? plain : cached));
        if (i > 0)
            assert_memory_equal(plain, cached, sizeof plain);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

/* After an epoch all records are in the cache: nothing is read or allocated any more. */
static void after_an_epoch_nothing_is_decoded_again(void **state)
{
    (void)state;
    const char *list = write_pictures("once");
    static struct sample first[2 * PICTURES], again[2 * PICTURES];
    struct ls_definition *layer = pictures_layer(list, "cache: true");
    struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
    struct ls_reader *reader;
    assert_int_equal(ls_cache_records(ls_dataset_cache(set)), PICTURES);
    assert_false(ls_cache_full(ls_dataset_cache(set)));
    assert_true(fetch(set, 2 * PICTURES, first));
    remove_pictures("once");
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    uint64_t before = ls_allocations();
    for (int i = 0; i < 2 * PICTURES; i++)
        assert_int_equal(trial_fetch(reader, i, again[i].data, &again[i].label, NULL), 0);
    assert_int_equal(ls_allocations(), before);
    assert_memory_equal(first, again, sizeof first);
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(layer);
}

/* Another picture in place of the one at `path`, of the same size, written at another time. */
static void change_picture(const char *folder, int index)
{
    char path[700];
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    snprintf(path, sizeof path, "%s/%d.png", ls_test_path(folder), index);
    assert_int_equal(unlink(path), 0);
    write_picture(path, SIDE, SIDE, 3, index + 7);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A test phase that opens a changed file does not find it in the cache of the train phase, which
 * opened the old one: each reads the file that it opened. */
static void a_changed_file_is_not_found_in_the_cache(void **state)
{
    (void)state;
    const char *list = write_pictures("changed");
    static struct sample before[PICTURES], after[PICTURES], again[PICTURES], plain[PICTURES];
    struct ls_definition *layer = pictures_layer(list, "cache: true");
    struct ls_definition *without = pictures_layer(list, "");
    struct ls_dataset *one = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
    assert_true(fetch(one, PICTURES, before));
    change_picture("changed", PICTURES / 2);
    struct ls_dataset *two = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
    struct ls_dataset *three = trial_dataset(without, LOCKSTEP__PHASE__TRAIN, 3);
    assert_ptr_not_equal(ls_dataset_cache(one), ls_dataset_cache(two));
    assert_true(fetch(two, PICTURES, after) && fetch(three, PICTURES, plain));
    assert_memory_equal(after, plain, sizeof after);
    assert_memory_not_equal(after, before, sizeof after);
    assert_true(fetch(one, PICTURES, again));
    assert_memory_equal(again, before, sizeof again);
    ls_dataset_close(one);
    ls_dataset_close(two);
    ls_dataset_close(three);
    ls_definition_free(layer);
    ls_definition_free(without);
}

/* The test phase uses what the train phase has decoded, also where each has its part of a split;
 * another source, or another way to decode it, has another cache. */
static void phases_share_decoded_records_of_the_same_source(void **state)
{
    (void)state;
    const char *list = write_pictures("shared");
    static struct sample samples[PICTURES];
    struct ls_definition *layer = pictures_layer(list, "cache: true");
    struct ls_definition *part = pictures_layer(list, "cache: true split: 'train:0.5'");
    struct ls_definition *rest = pictures_layer(list, "cache: true split: 'test:0.5'");
    struct ls_definition *gray = pictures_layer(list, "cache: true is_color: false");
    struct ls_dataset *one = trial_dataset(part, LOCKSTEP__PHASE__TRAIN, 3);
    const struct ls_cache *cache = ls_dataset_cache(one);
    int64_t records = ls_cache_records(cache);
    size_t bytes = ls_cache_bytes(cache);
    assert_int_equal(records, ls_dataset_size(one));
    struct ls_dataset *two = trial_dataset(rest, LOCKSTEP__PHASE__TEST, 3);
    assert_ptr_equal(ls_dataset_cache(two), cache);
    assert_int_equal(ls_cache_records(cache), PICTURES);
    assert_int_equal(ls_cache_bytes(cache) - bytes,
                     (size_t)(PICTURES - records) * (RECORD + sizeof(int32_t)));
    struct ls_dataset *all = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
    struct ls_dataset *other = trial_dataset(gray, LOCKSTEP__PHASE__TRAIN, 3);
    assert_ptr_equal(ls_dataset_cache(all), cache);
    assert_ptr_not_equal(ls_dataset_cache(other), cache);
    assert_true(fetch(one, (int)ls_dataset_size(one), samples));
    assert_true(fetch(two, (int)ls_dataset_size(two), samples));
    ls_dataset_close(one);
    ls_dataset_close(two);
    remove_pictures("shared");
    assert_true(fetch(all, PICTURES, samples));
    assert_false(fetch(other, PICTURES, samples));
    ls_dataset_close(all);
    ls_dataset_close(other);
    ls_definition_free(layer);
    ls_definition_free(part);
    ls_definition_free(rest);
    ls_definition_free(gray);
}

/* Synthetic pictures of almost 1/4 MiB: a budget of 1 MiB holds four of them, and the others are
 * drawn each time, to the same numbers. */
static void a_budget_holds_as_many_records_as_fit(void **state)
{
    (void)state;
    enum { COUNT = 7, SIZE = 512 * 511 };
    static float plain[SIZE], cached[SIZE];
    struct ls_dataset *set[2];
    struct ls_reader *reader[2];
    struct ls_definition *layer[2];
    for (int i = 0; i < 2; i++) {
        layer[i] = trial_layer("name: 'd' type: 'Data' top: 'data' data_param { backend: SYNTHETIC "
                               "%s synthetic_param { count: %d height: 512 width: 511 } }",
                               i == 0 ? "" : "cache: true cache_mb: 1", COUNT);
        set[i] = trial_dataset(layer[i], LOCKSTEP__PHASE__TRAIN, 1);
        assert_int_equal(ls_reader_open(set[i], &reader[i], NULL), 0);
    }
    assert_int_equal(ls_cache_records(ls_dataset_cache(set[1])), 4);
    assert_true(ls_cache_full(ls_dataset_cache(set[1])));
    assert_in_range(ls_cache_bytes(ls_dataset_cache(set[1])), (1 << 20) - 4096,
                    (1 << 20) + COUNT * 64);
    for (int64_t i = 0; i < 2 * COUNT; i++) {
        assert_int_equal(trial_fetch(reader[0], i, plain, NULL, NULL), 0);
        assert_int_equal(trial_fetch(reader[1], i, cached, NULL, NULL), 0);
        assert_memory_equal(plain, cached, sizeof plain);
    }
    for (int i = 0; i < 2; i++) {
        ls_reader_close(reader[i]);
        ls_dataset_close(set[i]);
        ls_definition_free(layer[i]);
    }
}

struct thread {
    struct ls_dataset *set;
    struct sample samples[4 * PICTURES];
    bool good;
};

static void *fetch_all(void *argument)
{
    struct thread *thread = argument;
    thread->good = fetch(thread->set, 4 * PICTURES, thread->samples);
    return NULL;
}

/* Threads that meet at the same records, none of them decoded before. */
static void threads_that_meet_at_a_record_get_the_same_samples(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    static struct thread threads[THREADS];
    pthread_t id[THREADS];
    const char *list = write_pictures("threads");
    struct ls_definition *layer = pictures_layer(list, "cache: true");
    struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
    for (int i = 0; i < THREADS; i++) {
        threads[i].set = set;
        assert_int_equal(pthread_create(&id[i], NULL, fetch_all, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(id[i], NULL);
        assert_true(threads[i].good);
        assert_memory_equal(threads[i].samples, threads[0].samples, sizeof threads[0].samples);
    }
    ls_dataset_close(set);
    ls_definition_free(layer);
}

/* A budget without a cache is refused; each failed allocation is an error. */
static void a_budget_without_a_cache_is_refused_and_no_memory_is_an_error(void **state)
{
    (void)state;
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_dataset *set;
    struct ls_definition *layer = trial_layer(
        "name: 'd' type: 'Data' top: 'data' data_param { backend: SYNTHETIC cache_mb: 5 }");
    assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &set, error),
                     LOCKSTEP_DEFINITION);
    assert_says(error, "cache_mb is for cache: true");
    ls_definition_free(layer);
    layer = trial_layer("name: 'd' type: 'Data' top: 'data' data_param { backend: SYNTHETIC cache: "
                        "true synthetic_param { count: 50 } }");
    assert_in_range(trial_fail_allocations(layer, 0, NULL), 5, 100);
    ls_definition_free(layer);
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_budget_gives_the_same_samples),
        cmocka_unit_test(after_an_epoch_nothing_is_decoded_again),
        cmocka_unit_test(a_changed_file_is_not_found_in_the_cache),
        cmocka_unit_test(phases_share_decoded_records_of_the_same_source),
        cmocka_unit_test(a_budget_holds_as_many_records_as_fit),
        cmocka_unit_test(threads_that_meet_at_a_record_get_the_same_samples),
        cmocka_unit_test(a_budget_without_a_cache_is_refused_and_no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
