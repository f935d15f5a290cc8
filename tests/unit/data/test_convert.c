/* Databases that are made from other sources, and means. SPDX-License-Identifier: BSD-2-Clause */
#include "data/convert.h"

#include <lmdb.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "data/datum.h"
#include "data/mean.h"
#include "data/picture_write.h"
#include "data/mean_file.h"
#include "data/order.h"
#include "data/source.h"
#include "data_trial.h"
#include "picture_files.h"

static struct lockstep_source_options idx_options(uint32_t count, uint32_t height, uint32_t width)
{
    static const char *images;
    images = ls_test_path("images");
    const char *labels = ls_test_path("labels");
    write_pair(images, labels, count, height, width);
    return (struct lockstep_source_options){.struct_size = sizeof(struct lockstep_source_options),
                                            .backend = "idx",
                                            .source = &images,
                                            .source_count = 1,
                                            .label_source = labels,
                                            .seed = 1};
}

static void must_convert(const struct lockstep_source_options *options, const char *path,
                         int64_t expected)
{
    struct ls_error *error = calloc(1, sizeof *error);
    int64_t records = -1;
    if (ls_convert(options, NULL, path, &records, error) != 0)
        fail_msg("%s", trial_text(error));
    assert_int_equal(records, expected);
    free(error);
}

/* Reads a database with the LMDB library itself; calls `check` for each record. */
typedef void check_record(int64_t i, const char *key, const struct ls_datum *datum, void *user);

static int64_t read_back(const char *path, check_record *check, void *user)
{
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_dbi database;
    MDB_cursor *cursor;
    MDB_val key, value;
    assert_int_equal(mdb_env_create(&environment), 0);
    assert_int_equal(mdb_env_open(environment, path, MDB_RDONLY, 0), 0);
    assert_int_equal(mdb_txn_begin(environment, NULL, MDB_RDONLY, &transaction), 0);
    assert_int_equal(mdb_dbi_open(transaction, NULL, 0, &database), 0);
    assert_int_equal(mdb_cursor_open(transaction, database, &cursor), 0);
    int64_t count = 0;
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        char text[600];
        struct ls_datum datum;
        snprintf(text, sizeof text, "%.*s", (int)key.mv_size, (const char *)key.mv_data);
        assert_int_equal(ls_datum_read(value.mv_data, value.mv_size, &datum, NULL), 0);
        assert_int_equal(ls_datum_check(&datum, NULL), 0);
        check(count++, text, &datum, user);
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(transaction);
    mdb_env_close(environment);
    return count;
}

static void check_idx(int64_t i, const char *key, const struct ls_datum *datum, void *user)
{
    const char *bytes = user;
    char expected[16];
    snprintf(expected, sizeof expected, "%08d", (int)i);
    assert_string_equal(key, expected);
    assert_int_equal(datum->label, i % 10);
    assert_int_equal(datum->shape[1], 5);
    assert_memory_equal(datum->data, bytes + 16 + 30 * i, 30);
}

static void idx_files_become_a_database(void **state)
{
    (void)state;
    struct lockstep_source_options options = idx_options(2345, 5, 6);
    const char *path = ls_test_path("database");
    must_convert(&options, path, 2345);
    size_t size;
    char *bytes = ls_test_read(ls_test_path("images"), &size);
    assert_int_equal(ls_test_count_files(path), 1); /* no lock file is left behind */
    assert_int_equal(read_back(path, check_idx, bytes), 2345);
    free(bytes);
    /* Once more is refused, and harms nothing. */
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_convert(&options, NULL, path, NULL, error), LOCKSTEP_USAGE);
    assert_says(error, "database: exists already");
    free(error);
}

/* A converted data set is the same data set: our own reader reads equal records from both. */
static void a_converted_data_set_is_the_same_data_set(void **state)
{
    (void)state;
    struct lockstep_source_options options = idx_options(321, 9, 4);
    const char *path = ls_test_path("round"), *again = ls_test_path("round2");
    must_convert(&options, path, 321);
    struct lockstep_source_options second = {.backend = "LMDB", .source = &path, .source_count = 1};
    must_convert(&second, again, 321);
    struct ls_source *source;
    struct ls_source_reader *reader;
    assert_int_equal(
        trial_source(&source, NULL, "data_param { backend: LMDB source: '%s' }", again), 0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    size_t size, one, two;
    char *bytes = ls_test_read(ls_test_path("images"), &size);
    for (int64_t i = 320; i >= 0; i--) {
        struct ls_record r;
        assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &r, NULL), 0);
        assert_int_equal(trial_label(&r), i % 10);
        assert_memory_equal(trial_bytes(&r), bytes + 16 + 36 * i, 36);
    }
    free(bytes);
    ls_source_reader_close(reader);
    ls_source_close(source);
    /* And the files are equal, byte for byte: conversion is a function of the records. */
    char file[600];
    snprintf(file, sizeof file, "%s/data.mdb", path);
    bytes = ls_test_read(file, &one);
    snprintf(file, sizeof file, "%s/data.mdb", again);
    char *other = ls_test_read(file, &two);
    assert_int_equal(one, two);
    assert_memory_equal(bytes, other, one);
    free(bytes);
    free(other);
}

struct seen {
    int count[400];
    int64_t in_place;
};

static void check_shuffled(int64_t i, const char *key, const struct ls_datum *datum, void *user)
{
    (void)key;
    struct seen *seen = user;
    /* write_idx: the first byte of record i is 36 i x 7 + 3, unique modulo 256 for 64 records. */
    int number = -1;
    for (int k = 0; k < 60; k++)
        if (datum->data[0] == (uint8_t)(36 * 7 * k + 3) && datum->label == k % 10)
            number = k;
    assert_in_range(number, 0, 59);
    seen->count[number]++;
    seen->in_place += number == i;
}

static void shuffling_and_splits_choose_records(void **state)
{
    (void)state;
    struct lockstep_source_options options = idx_options(60, 6, 6);
    struct seen seen = {0};
    options.shuffle = 1;
    options.split = "train:0.7";
    struct ls_split split;
    uint32_t kept, others;
    assert_int_equal(ls_split_parse("train:0.7", NULL, &split, NULL), 0);
    ls_free(ls_split_records(&split, 60, &kept));
    must_convert(&options, ls_test_path("part1"), kept);
    read_back(ls_test_path("part1"), check_shuffled, &seen);
    assert_true(seen.in_place < kept / 2);
    options.split = "test:0.7";
    others = 60 - kept;
    must_convert(&options, ls_test_path("part2"), others);
    read_back(ls_test_path("part2"), check_shuffled, &seen);
    for (int i = 0; i < 60; i++)
        assert_int_equal(seen.count[i], 1);
}

static void check_names(int64_t i, const char *key, const struct ls_datum *datum, void *user)
{
    const char *names[] = {"00000000_a/1.png", "00000001_b/2.png", "00000002_b/3.png"};
    assert_string_equal(key, names[i]);
    assert_int_equal(datum->label, i > 0);
    assert_int_equal(datum->data[0], picture_pixel(0, 0, 2, *(int *)user)); /* blue first */
}

static void pictures_keep_their_names(void **state)
{
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "mkdir -p '%s/a' '%s/b'", ls_test_path("zoo"),
             ls_test_path("zoo"));
    assert_int_equal(system(command), 0);
    int salt = 4;
    write_picture(ls_test_path("zoo/a/1.png"), 6, 6, 3, salt);
    write_picture(ls_test_path("zoo/b/2.png"), 6, 6, 3, salt);
    write_picture(ls_test_path("zoo/b/3.png"), 6, 6, 3, salt);
    const char *source = ls_test_path("zoo"), *path = ls_test_path("zoo_lmdb/");
    struct lockstep_source_options options = {
        .backend = "IMAGES", .source = &source, .source_count = 1};
    must_convert(&options, path, 3);
    assert_int_equal(read_back(path, check_names, &salt), 3);
}

/* The names go with the numbers: they lie beside the records, and are read with them. */
static void names_of_classes_go_with_a_database(void **state)
{
    (void)state;
    assert_int_equal(mkdir(ls_test_path("named"), 0777), 0);
    assert_int_equal(mkdir(ls_test_path("named/b"), 0777), 0);
    write_picture(ls_test_path("named/b/1.png"), 6, 6, 3, 1);
    static const char *const names[] = {"x", "b", "a"};
    const struct ls_class_names known = {names, 3, "x.safetensors", 0};
    const char *source = ls_test_path("named"), *path = ls_test_path("named_lmdb");
    struct lockstep_source_options options = {
        .backend = "IMAGES", .source = &source, .source_count = 1};
    assert_int_equal(ls_convert(&options, &known, path, NULL, NULL), 0);
    struct ls_source *made;
    struct ls_source_reader *reader;
    struct ls_record record;
    assert_int_equal(trial_source(&made, NULL, "data_param { backend: LMDB source: '%s' }", path),
                     0);
    assert_int_equal(made->class_count, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(made->class_name[i], names[i]);
    assert_int_equal(ls_source_reader_open(made, &reader, NULL), 0);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &record, NULL), 0);
    assert_int_equal(trial_label(&record), 1);
    ls_source_reader_close(reader);
    ls_source_close(made);
    /* Numbers of a database cannot be changed: other ones are refused. */
    static const char *const others[] = {"b", "x", "a"};
    const struct ls_class_names other = {others, 3, "y.safetensors", 0};
    struct lockstep_source_options second = {.backend = "LMDB", .source = &path, .source_count = 1};
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_convert(&second, &other, ls_test_path("no"), NULL, error), LOCKSTEP_DATA);
    assert_says(error, "class 0 is 'x' here, but 'x' is number 1 there (y.safetensors)");
    free(error);
}

/* Lines of a text, whichever editor has written it. */
static void names_of_classes_are_the_lines_of_a_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"big dog\ncat\n", "\357\273\277big dog\r\ncat\r\n",
                                        "big dog\ncat"};
    const char *path = ls_test_path("names.txt");
    struct ls_class_list list;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ls_test_write_text(path, texts[i]);
        assert_int_equal(ls_class_list_read(path, LOCKSTEP_USAGE, &list, NULL), 0);
        assert_int_equal(list.count, 2);
        assert_string_equal(list.name[0], "big dog");
        assert_string_equal(list.name[1], "cat");
        ls_class_list_free(&list);
    }
    ls_test_write_text(path, "\r\n");
    assert_int_equal(ls_class_list_read(path, LOCKSTEP_USAGE, &list, NULL), 0);
    assert_int_equal(list.count, 0);
    assert_int_equal(ls_class_list_read(ls_test_path("none"), LOCKSTEP_USAGE, &list, NULL),
                     LOCKSTEP_USAGE);
}

static void check_nothing(int64_t i, const char *key, const struct ls_datum *datum, void *user)
{
    (void)i;
    (void)key;
    (void)user;
    assert_int_equal(datum->data_size, 150 * 150);
}

/* More than the first map holds: it grows under way. */
static void the_map_of_a_large_database_grows(void **state)
{
    (void)state;
    struct lockstep_source_options options = idx_options(1100, 150, 150);
    must_convert(&options, ls_test_path("large"), 1100);
    assert_int_equal(read_back(ls_test_path("large"), check_nothing, NULL), 1100);
}

/* ---- Failures leave nothing ---- */

static void a_full_disk_leaves_no_files(void **state)
{
    (void)state;
    struct lockstep_source_options options = idx_options(3000, 30, 30);
    size_t before = ls_test_count_files(ls_test_directory());
    struct rlimit old, small = {1 << 20, RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct ls_error *error = calloc(1, sizeof *error);
    int status = ls_convert(&options, NULL, ls_test_path("full"), NULL, error);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, LOCKSTEP_RESOURCE);
    assert_says(error, "full.part-");
    assert_int_equal(ls_test_count_files(ls_test_directory()), before);
    free(error);
}

static void a_bad_record_leaves_no_files(void **state)
{
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "mkdir -p '%s/c'", ls_test_path("bad"));
    assert_int_equal(system(command), 0);
    write_picture(ls_test_path("bad/c/1.jpg"), 50, 50, 3, 1);
    write_picture(ls_test_path("bad/c/2.jpg"), 50, 50, 3, 1);
    size_t size;
    char *bytes = ls_test_read(ls_test_path("bad/c/2.jpg"), &size);
    ls_test_write(ls_test_path("bad/c/2.jpg"), bytes, size * 2 / 3);
    free(bytes);
    const char *source = ls_test_path("bad"), *path = ls_test_path("bad_lmdb");
    struct lockstep_source_options options = {
        .backend = "IMAGES", .source = &source, .source_count = 1};
    size_t before = ls_test_count_files(ls_test_directory());
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_convert(&options, NULL, path, NULL, error), LOCKSTEP_DATA);
    assert_says(error, "bad/c/2.jpg: record 1: damaged JPEG");
    assert_int_equal(ls_test_count_files(ls_test_directory()), before);
    ls_error_clear(error);
    assert_int_equal(ls_mean(&options, ls_test_path("bad_mean"), NULL, NULL, error), LOCKSTEP_DATA);
    assert_int_equal(ls_test_count_files(ls_test_directory()), before);
    ls_error_clear(error);
    assert_int_equal(ls_convert(&options, NULL, ls_test_path("no/where"), NULL, error),
                     LOCKSTEP_RESOURCE);
    assert_says(error, "cannot make the folder");
    free(error);
}

static enum lockstep_request stop_later(void *user)
{
    return --*(int *)user < 0 ? LOCKSTEP_SNAPSHOT_AND_STOP : LOCKSTEP_GO_ON;
}

static void count_event(void *user, const struct lockstep_event *event)
{
    (void)user;
    static const char *expected[] = {"Processed 1000 records.", "Processed 2000 records.",
                                     "Processed 2500 records."};
    assert_int_equal(event->kind, LOCKSTEP_EVENT_NOTICE);
    assert_int_equal(event->iteration_end, 2500);
    assert_string_equal(event->text, expected[(event->samples + 999) / 1000 - 1]);
}

static void callbacks_report_progress_and_can_stop(void **state)
{
    (void)state;
    struct lockstep_source_options options = idx_options(2500, 3, 3);
    int polls = 100;
    options.callbacks =
        (struct lockstep_callbacks){.user = &polls, .event = count_event, .poll = stop_later};
    must_convert(&options, ls_test_path("watched"), 2500);
    assert_true(polls < 100);
    polls = 1;
    size_t before = ls_test_count_files(ls_test_directory());
    assert_int_equal(ls_convert(&options, NULL, ls_test_path("stopped"), NULL, NULL),
                     LOCKSTEP_STOPPED);
    polls = 1200;
    assert_int_equal(ls_mean(&options, ls_test_path("stopped"), NULL, NULL, NULL),
                     LOCKSTEP_STOPPED);
    assert_int_equal(ls_test_count_files(ls_test_directory()), before);
}

static void hear_warning(void *user, const struct lockstep_event *event)
{
    if (event->kind == LOCKSTEP_EVENT_WARNING)
        snprintf(user, 200, "%s", event->text);
}

static void red_in_front_is_warned_of(void **state)
{
    (void)state;
    static const char picture[3073] = {1};
    char heard[200] = "";
    const char *path = ls_test_path("red.bin");
    ls_test_write(path, picture, sizeof picture);
    struct lockstep_source_options options = {.struct_size = sizeof options,
                                              .backend = "cifar",
                                              .source = &path,
                                              .source_count = 1,
                                              .seed = 1};
    options.callbacks = (struct lockstep_callbacks){.user = heard, .event = hear_warning};
    must_convert(&options, ls_test_path("red_first"), 1);
    assert_non_null(strstr(heard, "channels stay red, green, blue"));
    heard[0] = '\0';
    struct lockstep_source_options grey = idx_options(2, 3, 3);
    grey.callbacks = options.callbacks;
    must_convert(&grey, ls_test_path("grey"), 2);
    assert_string_equal(heard, "");
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct lockstep_source_options good = idx_options(5, 3, 3), bad;
    const char *path = ls_test_path("never");
    for (int k = 0; k < 8; k++) {
        bad = good;
        if (k == 0)
            bad.backend = NULL;
        else if (k == 1)
            bad.backend = "BERKELEYDB";
        else if (k == 2)
            bad.label_source = NULL;
        else if (k == 3)
            bad.root_folder = "x";
        else if (k == 4)
            bad.resize_height = bad.resize_width = 4;
        else if (k == 5)
            bad.gray = 1;
        else if (k == 6)
            bad.backend = "CIFAR";
        else
            bad.split = "train:2";
        assert_int_equal(ls_convert(&bad, NULL, path, NULL, NULL),
                         k == 7 ? LOCKSTEP_DEFINITION : LOCKSTEP_USAGE);
    }
    assert_int_equal(ls_convert(&good, NULL, "", NULL, NULL), LOCKSTEP_USAGE);
    struct stat info;
    assert_int_not_equal(stat(path, &info), 0);
}

/* Columns of 255 0 0 255: the nearest ones alone, or all. */
static void pictures_are_resized_either_way(void **state)
{
    (void)state;
    static uint8_t planes[3 * 16 * 16], *bytes;
    char picture[512], list[600];
    size_t size;
    double mean[16];
    for (int i = 0; i < 3 * 16 * 16; i++)
        planes[i] = i % 4 == 0 || i % 4 == 3 ? 255 : 0;
    assert_int_equal(
        ls_picture_encode(planes, (const int64_t[]){3, 16, 16}, "png", &bytes, &size, NULL), 0);
    snprintf(picture, sizeof picture, "%s", ls_test_path("stripes.png"));
    ls_test_write(picture, bytes, size);
    ls_free(bytes);
    snprintf(list, sizeof list, "%s 0\n", picture);
    ls_test_write_text(ls_test_path("stripes.txt"), list);
    const char *source = ls_test_path("stripes.txt");
    struct lockstep_source_options options = {.struct_size = sizeof options,
                                              .backend = "IMAGES",
                                              .source = &source,
                                              .source_count = 1,
                                              .resize_height = 4,
                                              .resize_width = 4};
    for (int opencv = 0; opencv < 2; opencv++) {
        options.no_antialias = opencv;
        assert_int_equal(ls_mean(&options, NULL, mean, NULL, NULL), 0);
        assert_true(opencv ? mean[0] == 0 : mean[0] > 100);
    }
    options.backend = "IDX";
    assert_int_equal(ls_mean(&options, NULL, mean, NULL, NULL), LOCKSTEP_USAGE);
}

/* ---- Means ---- */

static void means_are_exact(void **state)
{
    (void)state;
    struct lockstep_source_options options = idx_options(1003, 7, 5);
    const char *path = ls_test_path("exact.binaryproto");
    double means[16];
    int channels;
    assert_int_equal(ls_mean(&options, path, means, &channels, NULL), 0);
    assert_int_equal(channels, 1);
    size_t size;
    const uint8_t *bytes = (uint8_t *)ls_test_read(ls_test_path("images"), &size);
    const int64_t shape[3] = {1, 7, 5};
    float *mean;
    assert_int_equal(ls_mean_read(path, shape, &mean, NULL), 0);
    double all = 0;
    for (int p = 0; p < 35; p++) {
        int64_t sum = 0;
        for (int i = 0; i < 1003; i++)
            sum += bytes[16 + 35 * i + p];
        assert_true(mean[p] == (float)((double)sum / 1003));
        all += (double)sum / 1003 / 35;
    }
    assert_true(fabs(all - means[0]) < 1e-10);
    ls_free(mean);
    free((void *)(uintptr_t)bytes);
}

/* A database of float records goes through both tools. */
static void float_records_are_converted_and_averaged(void **state)
{
    (void)state;
    const char *path = ls_test_path("floats");
    assert_int_equal(mkdir(path, 0777), 0);
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_dbi database;
    assert_int_equal(mdb_env_create(&environment), 0);
    assert_int_equal(mdb_env_open(environment, path, 0, 0666), 0);
    assert_int_equal(mdb_txn_begin(environment, NULL, 0, &transaction), 0);
    assert_int_equal(mdb_dbi_open(transaction, NULL, 0, &database), 0);
    struct ls_buffer buffer = {0};
    for (int i = 0; i < 20; i++) {
        float numbers[12];
        for (int k = 0; k < 12; k++)
            numbers[k] = (float)(i * k) / 8 - 3;
        struct ls_record record = trial_record(LS_F32, 3, 2, 2, numbers, &i);
        char name[16];
        snprintf(name, sizeof name, "key%02d", i);
        MDB_val key = {.mv_size = strlen(name), .mv_data = name}, value;
        value.mv_data = (void *)(uintptr_t)ls_datum_write(&record, true, &buffer, &value.mv_size);
        assert_int_equal(mdb_put(transaction, database, &key, &value, 0), 0);
    }
    assert_int_equal(mdb_txn_commit(transaction), 0);
    mdb_env_close(environment);
    ls_buffer_free(&buffer);
    struct lockstep_source_options options = {
        .backend = "LMDB", .source = &path, .source_count = 1};
    double means[16];
    assert_int_equal(ls_mean(&options, ls_test_path("float_mean"), means, NULL, NULL), 0);
    /* The mean over i of i k / 8 - 3 is 9.5 k / 8 - 3; channel 1 has k = 4 .. 7. */
    assert_true(fabs(means[1] - (9.5 * 5.5 / 8 - 3)) < 1e-12);
    const char *copy = ls_test_path("floats2");
    must_convert(&options, copy, 20);
    struct ls_source *source;
    struct ls_source_reader *reader;
    assert_int_equal(trial_source(&source, NULL, "data_param { backend: LMDB source: '%s' }", copy),
                     0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    struct ls_record r;
    assert_int_equal(ls_source_read(reader, 19, LS_ALL_TENSORS, &r, NULL), 0);
    assert_null(trial_bytes(&r));
    assert_true(trial_floats(&r)[11] == 19 * 11 / 8.0F - 3);
    struct ls_text name = {0};
    source->type->name_record(source, 19, &name);
    assert_string_equal(name.data, "key19");
    ls_text_free(&name);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idx_files_become_a_database),
        cmocka_unit_test(a_converted_data_set_is_the_same_data_set),
        cmocka_unit_test(shuffling_and_splits_choose_records),
        cmocka_unit_test(pictures_keep_their_names),
        cmocka_unit_test(names_of_classes_go_with_a_database),
        cmocka_unit_test(names_of_classes_are_the_lines_of_a_text),
        cmocka_unit_test(the_map_of_a_large_database_grows),
        cmocka_unit_test(a_full_disk_leaves_no_files),
        cmocka_unit_test(a_bad_record_leaves_no_files),
        cmocka_unit_test(callbacks_report_progress_and_can_stop),
        cmocka_unit_test(red_in_front_is_warned_of),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(pictures_are_resized_either_way),
        cmocka_unit_test(means_are_exact),
        cmocka_unit_test(float_records_are_converted_and_averaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
