/* Sources of every kind, in which some records are bad.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_BAD_SOURCES_H
#define LS_TESTS_BAD_SOURCES_H

#include <lmdb.h>
#include <math.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/check.h"
#include "data/datum.h"
#include "data/digest.h"
#include "data_trial.h"
#include "map_files.h"

enum { RECORDS = 9, NUMBERS = 3 * 32 * 32, SIDE = 8 };

struct sample {
    float data[NUMBERS], label[SIDE * SIDE * 4];
};

/* A way to store records: `write` writes RECORDS records to a folder, some of them bad; `param`
 * has the fields of a layer's data_param. */
struct way {
    const char *name;
    void (*write)(const char *folder, const bool *bad);
    const char *param; /* %s: the folder; may come twice */
    bool by_label;     /* numbers are all that is bad, so that opening does not show it */
};

/* ---- Sources --------------------------------------------------------------------------------- */

static inline void write_bytes(const char *folder, const char *name, const void *bytes, size_t size)
{
    ls_test_write(file_at(folder, name), bytes, size);
}

static inline void write_idx_records(const char *folder, const bool *bad)
{
    char labels[1024];
    snprintf(labels, sizeof labels, "%s", file_at(folder, "labels"));
    write_pair(file_at(folder, "images"), labels, RECORDS, SIDE, SIDE);
    FILE *file = fopen(labels, "r+b");
    assert_non_null(file);
    for (int i = 0; i < RECORDS; i++)
        if (bad[i]) {
            assert_int_equal(fseek(file, 8 + i, SEEK_SET), 0);
            fputc(10 + i, file);
        }
    fclose(file);
}

static inline void write_cifar_records(const char *folder, const bool *bad)
{
    uint8_t *bytes = calloc(RECORDS, 3073);
    for (int i = 0; i < RECORDS * 3073; i++)
        bytes[i] = (uint8_t)(i * 11 + i / 3073);
    for (int i = 0; i < RECORDS; i++)
        bytes[(size_t)i * 3073] = (uint8_t)(bad[i] ? 200 + i : i);
    write_bytes(folder, "batch.bin", bytes, (size_t)RECORDS * 3073);
    free(bytes);
}

/* Damage of several kinds: nothing, no picture, half of one. */
static inline void damage(const char *path, int kind)
{
    size_t size;
    char *bytes = ls_test_read(path, &size);
    if (kind % 3 == 0)
        ls_test_write(path, "", 0);
    else if (kind % 3 == 1)
        ls_test_write_text(path, "this is no picture");
    else
        ls_test_write(path, bytes, size / 2);
    free(bytes);
}

static inline void write_list(const char *folder, const bool *bad, bool vary)
{
    char name[32], text[RECORDS * 40] = "";
    for (int i = 0; i < RECORDS; i++) {
        snprintf(name, sizeof name, "%d.%s", i, i % 2 == 0 ? "png" : "jpg");
        const char *path = file_at(folder, name);
        write_picture(path, SIDE + (vary ? i % 3 : 0), SIDE, 3, 5 * i);
        if (bad[i])
            damage(path, i);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %d\n", name, i);
    }
    write_bytes(folder, "list.txt", text, strlen(text));
}

static inline void write_images(const char *folder, const bool *bad)
{
    write_list(folder, bad, false);
}

static inline void write_varied_images(const char *folder, const bool *bad)
{
    write_list(folder, bad, true);
}

/* Bad ones have labels that no class is. */
static inline void write_labelled_images(const char *folder, const bool *bad)
{
    static const bool none[RECORDS];
    char text[RECORDS * 40] = "";
    write_list(folder, none, true);
    for (int i = 0; i < RECORDS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d.%s %d\n", i,
                 i % 2 == 0 ? "png" : "jpg", bad[i] ? (i % 2 == 0 ? -1 : 1 << 25) : i);
    write_bytes(folder, "list.txt", text, strlen(text));
}

/* The picture or the map is damaged, or the map has another size. */
static inline void write_pairs_of(const char *folder, const bool *bad, bool vary)
{
    char name[32];
    for (int i = 0; i < RECORDS; i++) {
        int height = SIDE + (vary ? i % 3 : 0);
        snprintf(name, sizeof name, "pictures/%d.png", i);
        write_picture(file_at(folder, name), height, SIDE, 3, i);
        if (bad[i] && i % 3 == 0)
            damage(file_at(folder, name), i / 3);
        snprintf(name, sizeof name, "maps/%d.png", i);
        write_map(file_at(folder, name), height, SIDE + (bad[i] && i % 3 == 1), PNG_COLOR_TYPE_GRAY,
                  2, false, i);
        if (bad[i] && i % 3 == 2)
            damage(file_at(folder, name), i / 3);
    }
}

static inline void write_pairs(const char *folder, const bool *bad)
{
    write_pairs_of(folder, bad, false);
}

static inline void write_varied_pairs(const char *folder, const bool *bad)
{
    write_pairs_of(folder, bad, true);
}

/* The maps of bad records have labels up to 15, those of good ones up to 3. */
static inline void write_labelled_pairs(const char *folder, const bool *bad)
{
    char name[32];
    for (int i = 0; i < RECORDS; i++) {
        snprintf(name, sizeof name, "pictures/%d.png", i);
        write_picture(file_at(folder, name), SIDE + i % 3, SIDE, 3, i);
        snprintf(name, sizeof name, "maps/%d.png", i);
        write_map(file_at(folder, name), SIDE + i % 3, SIDE, PNG_COLOR_TYPE_GRAY, bad[i] ? 4 : 2,
                  false, i);
    }
}

static inline void put_records(const char *folder, uint8_t *const *values, const size_t *lengths)
{
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_dbi database;
    const char *path = file_at(folder, "db");
    mkdir(path, 0777);
    unlink(file_at(folder, "db/data.mdb"));
    assert_int_equal(mdb_env_create(&environment), 0);
    assert_int_equal(mdb_env_open(environment, path, 0, 0666), 0);
    assert_int_equal(mdb_txn_begin(environment, NULL, 0, &transaction), 0);
    assert_int_equal(mdb_dbi_open(transaction, NULL, 0, &database), 0);
    for (int i = 0; i < RECORDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%08d", i);
        MDB_val key = {8, name}, value = {lengths[i], values[i]};
        assert_int_equal(mdb_put(transaction, database, &key, &value, 0), 0);
        free(values[i]);
    }
    assert_int_equal(mdb_txn_commit(transaction), 0);
    mdb_env_close(environment);
}

/* Bad: no Datum; other extents than numbers; a label beyond 2^24; another number of channels. */
static inline void write_database(const char *folder, const bool *bad)
{
    struct ls_buffer buffer = {0};
    uint8_t pixels[3 * SIDE * SIDE], *values[RECORDS];
    size_t lengths[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        for (size_t k = 0; k < sizeof pixels; k++)
            pixels[k] = (uint8_t)((size_t)i * 31 + k * 3);
        int32_t label = bad[i] && i % 4 == 2 ? 1 << 25 : i;
        int channels = bad[i] && i % 4 == 3 ? 1 : 3;
        struct ls_record record = trial_record(LS_U8, channels, SIDE, SIDE, pixels, &label);
        const uint8_t *bytes = ls_datum_write(&record, true, &buffer, &lengths[i]);
        assert_non_null(bytes);
        values[i] = malloc(lengths[i]);
        memcpy(values[i], bytes, lengths[i]);
        if (bad[i] && i % 4 == 0)
            memset(values[i], 0xff, lengths[i]);
        if (bad[i] && i % 4 == 1)
            values[i][3] = (uint8_t)(values[i][3] + 1); /* the height */
    }
    put_records(folder, values, lengths);
    ls_buffer_free(&buffer);
}

/* Feature vectors (float_data); those of bad records have a number that is not finite. */
static inline void write_features(const char *folder, const bool *bad)
{
    struct ls_buffer buffer = {0};
    float numbers[3 * SIDE * SIDE];
    uint8_t *values[RECORDS];
    size_t lengths[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        const int32_t label = i;
        for (size_t k = 0; k < 3 * SIDE * SIDE; k++)
            numbers[k] = (float)i / 4 + (float)k / 8;
        if (bad[i])
            numbers[7 * i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
        struct ls_record record = trial_record(LS_F32, 3, SIDE, SIDE, numbers, &label);
        const uint8_t *bytes = ls_datum_write(&record, true, &buffer, &lengths[i]);
        assert_non_null(bytes);
        values[i] = malloc(lengths[i]);
        memcpy(values[i], bytes, lengths[i]);
    }
    put_records(folder, values, lengths);
    ls_buffer_free(&buffer);
}

/* data = 4, of up to 2^14 bytes; label = 5; encoded = 7. */
static inline void write_encoded_of(const char *folder, const bool *bad, bool vary)
{
    uint8_t *values[RECORDS];
    size_t lengths[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        size_t size;
        const char *path = file_at(folder, i % 2 == 0 ? "one.png" : "one.jpg");
        write_picture(path, SIDE + (vary ? i % 3 : 0), SIDE, 3, i);
        if (bad[i])
            damage(path, i);
        char *file = ls_test_read(path, &size);
        assert_true(size < 1 << 14);
        uint8_t *value = values[i] = malloc(size + 8);
        value[0] = 4 << 3 | 2;
        value[1] = (uint8_t)(size & 127) | 128;
        value[2] = (uint8_t)(size >> 7);
        memcpy(value + 3, file, size);
        value[size + 3] = 5 << 3;
        value[size + 4] = (uint8_t)i;
        value[size + 5] = 7 << 3;
        value[size + 6] = 1;
        lengths[i] = size + 7;
        free(file);
    }
    put_records(folder, values, lengths);
}

static inline void write_encoded(const char *folder, const bool *bad)
{
    write_encoded_of(folder, bad, false);
}

static inline void write_varied_encoded(const char *folder, const bool *bad)
{
    write_encoded_of(folder, bad, true);
}

#define LIST  "backend: IMAGES source: '%s/list.txt'"
#define PAIRS "backend: IMAGE_PAIRS source: '%s/pictures' label_source: '%s/maps'"

static const struct way ways[] = {
    {"idx", write_idx_records, "backend: IDX source: '%s/images' label_source: '%s/labels'", true},
    {"cifar", write_cifar_records, "backend: CIFAR source: '%s/batch.bin'", false},
    {"images", write_images, LIST, false},
    {"sizes", write_varied_images, LIST, false},
    {"resized", write_varied_images, LIST " new_height: 9 new_width: 7", false},
    {"labels", write_labelled_images, LIST, true},
    {"pairs", write_pairs, PAIRS, false},
    {"varied pairs", write_varied_pairs, PAIRS, false},
    {"resized pairs", write_varied_pairs, PAIRS " new_height: 7 new_width: 8", false},
    {"labelled pairs", write_labelled_pairs, PAIRS, true},
    {"lmdb", write_database, "backend: LMDB source: '%s/db'", false},
    {"encoded", write_encoded, "backend: LMDB source: '%s/db'", false},
    {"varied lmdb", write_varied_encoded, "backend: LMDB source: '%s/db'", false},
    {"features", write_features, "backend: LMDB source: '%s/db'", true},
};
enum { WAYS = sizeof ways / sizeof *ways };

#endif
