/* LMDB: databases that Caffe wrote, and the consequences of damage.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <lmdb.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "data/convert.h"
#include "data/datum.h"
#include "data/lmdb_index.h"
#include "data/mean.h"
#include "data/mean_file.h"
#include "data/reader.h"
#include "data/samples.h"
#include "data/source.h"
#include "data_trial.h"
#include "picture_files.h"

static int open_database(const char *path, struct ls_source **source, struct ls_error *error)
{
    return trial_source(source, error, "data_param { backend: LMDB source: '%s' }", path);
}

/* The archive of databases, unpacked once; skips without it. */
static const char *unpacked(const char *name)
{
    static bool done;
    const char *archive = ls_test_data_or_skip("lmdb/lmdb.tar.xz");
    char command[2048];
    snprintf(command, sizeof command, "tar -C '%s' -xJf '%s'", ls_test_directory(), archive);
    if (!done && system(command) != 0)
        ls_test_skip("tar or xz is not here");
    done = true;
    return ls_test_path(name);
}

static void databases_written_by_caffe_are_read(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int64_t count, side;
    } database[] = {{"caffestart/train_lmdb", 12, 256},
                    {"caffestart/test_lmdb", 8, 256},
                    {"coiss32/test_lmdb", 380, 32}};
    for (size_t k = 0; k < 3; k++) {
        const char *path = unpacked(database[k].name); /* may skip the test */
        struct ls_error *error = calloc(1, sizeof *error);
        struct ls_source *source;
        if (open_database(path, &source, error) != 0)
            fail_msg("%s", trial_text(error));
        free(error);
        assert_int_equal(source->count, database[k].count);
        assert_int_equal(source->tensor[0].shape.dim[0], 3);
        assert_int_equal(source->tensor[0].shape.dim[1], database[k].side);
        assert_int_equal(source->tensor[0].shape.dim[2], database[k].side);
        struct ls_source_reader *reader;
        assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
        for (int64_t i = source->count - 1; i >= 0; i--) {
            struct ls_record r;
            struct ls_text name = {0};
            assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &r, NULL), 0);
            assert_in_range(trial_label(&r), 0, source->tensor[1].largest);
            source->type->name_record(source, i, &name);
            assert_true(name.length > 4); /* the name of a picture */
            assert_non_null(strchr(name.data, '.'));
            ls_text_free(&name);
        }
        ls_source_reader_close(reader);
        ls_source_close(source);
    }
}

/* The mean of the pictures is Caffe's, within the rounding of its float sums. */
static void the_mean_is_that_of_caffe(void **state)
{
    (void)state;
    const char *database = unpacked("caffestart/train_lmdb");
    struct lockstep_source_options options = {
        .struct_size = sizeof options, .backend = "lmdb", .source = &database, .source_count = 1};
    double means[16];
    int channels = 0;
    const char *path = ls_test_path("mean");
    assert_int_equal(ls_mean(&options, path, means, &channels, NULL), 0);
    assert_int_equal(channels, 3);
    const int64_t shape[3] = {3, 256, 256};
    float *ours, *caffe;
    assert_int_equal(ls_mean_read(path, shape, &ours, NULL), 0);
    assert_int_equal(ls_mean_read(ls_test_path("caffestart/train_mean"), shape, &caffe, NULL), 0);
    double total = 0;
    for (int i = 0; i < 3 * 256 * 256; i++) {
        assert_true(ours[i] - caffe[i] < 1e-3F && caffe[i] - ours[i] < 1e-3F);
        total += (double)ours[i];
    }
    assert_true(total / (3 * 65536) - (means[0] + means[1] + means[2]) / 3 < 1e-4);
    ls_free(ours);
    ls_free(caffe);
}

/* ---- Encoded records ---- */

/* A database of PNG files as Caffe's convert_imageset --encoded writes it: height 10 + i * grow. */
static void write_encoded(const char *path, int count, int grow, bool cut)
{
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_dbi database;
    mkdir(path, 0777);
    assert_int_equal(mdb_env_create(&environment), 0);
    assert_int_equal(mdb_env_open(environment, path, 0, 0666), 0);
    assert_int_equal(mdb_txn_begin(environment, NULL, 0, &transaction), 0);
    assert_int_equal(mdb_dbi_open(transaction, NULL, 0, &database), 0);
    for (int i = 0; i < count; i++) {
        int height = 10 + i * grow;
        uint8_t *pixels = picture_pixels(height, 8, 3, i);
        Lockstep__Datum datum = LOCKSTEP__DATUM__INIT;
        datum.has_data = datum.has_encoded = datum.has_label = datum.encoded = 1;
        datum.label = i;
        datum.data.data =
            png_file(pixels, 24, height, 8, PNG_COLOR_TYPE_RGB, 8, false, &datum.data.len);
        datum.data.len -= cut && i == count - 1 ? 20 : 0;
        uint8_t packed[4096];
        char name[32];
        snprintf(name, sizeof name, "%08d_%d.png", i, i);
        MDB_val key = {strlen(name), name};
        MDB_val value = {lockstep__datum__pack(&datum, packed), packed};
        assert_int_equal(mdb_put(transaction, database, &key, &value, 0), 0);
        free(datum.data.data);
        free(pixels);
    }
    assert_int_equal(mdb_txn_commit(transaction), 0);
    mdb_env_close(environment);
}

static void encoded_records_are_decoded(void **state)
{
    (void)state;
    const char *path = ls_test_path("encoded");
    write_encoded(path, 5, 0, false);
    static const char *const forced[] = {"", "force_gray: true", "force_color: true"};
    for (int kind = 0; kind < 3; kind++) { /* as it is, grey, colour */
        struct ls_source *source;
        struct ls_source_reader *reader;
        assert_int_equal(trial_source(&source, NULL,
                                      "data_param { backend: LMDB source: '%s' } "
                                      "transform_param { %s }",
                                      path, forced[kind]),
                         0);
        assert_int_equal(source->tensor[0].shape.dim[0], kind == 1 ? 1 : 3);
        assert_true(source->encoded);
        assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
        for (int i = 0; i < 5; i++) {
            struct ls_record r;
            assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &r, NULL), 0);
            assert_int_equal(trial_label(&r), i);
            assert_int_equal(r.tensor[0].shape.dim[1] * 100 + r.tensor[0].shape.dim[2], 1008);
            for (int c = 0; c < 3 && kind != 1; c++) /* blue, green, red */
                assert_int_equal(trial_bytes(&r)[c * 80 + 13], picture_pixel(1, 5, 2 - c, i));
        }
        ls_source_reader_close(reader);
        ls_source_close(source);
    }
    struct ls_source *source;
    assert_int_equal(trial_source(&source, NULL,
                                  "data_param { backend: LMDB source: '%s' force_encoded_color: "
                                  "true } transform_param { force_gray: true }",
                                  path),
                     LOCKSTEP_DEFINITION);
}

/* Records of different sizes, cropped and not; a truncated picture is named when it is read. */
static void encoded_records_of_several_sizes_are_read(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s", ls_test_path("sizes"));
    write_encoded(path, 4, 3, true);
    struct ls_definition *layer = trial_layer(
        "name: 'd' top: 'data' data_param { source: '%s' backend: LMDB batch_size: 1 }", path);
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_dataset *set;
    assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &set, error), LOCKSTEP_DATA);
    assert_says(error, "data.mdb: record 3 (key \"00000003_3.png\"): damaged PNG");
    ls_definition_free(layer);
    write_encoded(ls_test_path("sizes2"), 4, 3, false);
    layer = trial_layer("name: 'd' top: 'data' data_param { source: '%s' backend: LMDB }",
                        ls_test_path("sizes2"));
    set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 1);
    assert_true(ls_dataset_varies(set));
    for (int i = 0; i < 8; i++) { /* as they are, from their heads */
        int64_t shape[3];
        assert_int_equal(ls_dataset_sample_shape(set, i, shape, NULL), 0);
        assert_int_equal(shape[1], 10 + 3 * (i % 4));
    }
    ls_dataset_close(set);
    ls_definition_free(layer);
    layer = trial_layer("name: 'd' top: 'data' data_param { source: '%s' backend: LMDB batch_size: "
                        "1 } transform_param { crop_size: 8 }",
                        ls_test_path("sizes2"));
    set = trial_dataset(layer, LOCKSTEP__PHASE__TEST, 1);
    struct ls_reader *reader;
    float sample[192];
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int i = 0; i < 4; i++) { /* the centre: rows from (10 + 3 i - 8) / 2 */
        assert_int_equal(trial_fetch(reader, i, sample, NULL, NULL), 0);
        assert_true(sample[0] == picture_pixel((2 + 3 * i) / 2, 0, 2, i));
    }
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(layer);
    struct ls_source *source;
    struct ls_source_reader *inner;
    struct ls_record r;
    assert_int_equal(open_database(path, &source, NULL), 0);
    assert_int_equal(ls_source_reader_open(source, &inner, NULL), 0);
    ls_error_clear(error);
    assert_int_equal(ls_source_read(inner, 3, LS_ALL_TENSORS, &r, error), LOCKSTEP_DATA);
    assert_says(error, "data.mdb: record 3 (key \"00000003_3.png\"): damaged PNG");
    ls_source_reader_close(inner);
    ls_source_close(source);
    free(error);
}

/* Pixels are not encoded: to force their colour makes no sense. */
static void forced_colours_of_plain_pixels_are_refused(void **state)
{
    (void)state;
    const char *path = unpacked("coiss32/test_lmdb");
    struct ls_source *source;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(trial_source(&source, error,
                                  "data_param { backend: LMDB source: '%s' }\n"
                                  "transform_param { force_gray: true }",
                                  path),
                     LOCKSTEP_DEFINITION);
    assert_says(error, "trial.prototxt:2:19: layer 'd': force_color and force_gray are for encoded "
                       "records only");
    free(error);
}

/* ---- Damage ---- */

/* A small database with records in its pages and beyond them, and a tree of two levels. */
static char *small_database(size_t *size)
{
    const char *images = ls_test_path("images"), *labels = ls_test_path("labels");
    write_pair(images, labels, 150, 7, 8);
    struct lockstep_source_options options = {.struct_size = sizeof options,
                                              .backend = "IDX",
                                              .source = &images,
                                              .source_count = 1,
                                              .label_source = labels};
    const char *path = ls_test_path("small");
    struct stat info;
    if (stat(path, &info) != 0)
        assert_int_equal(ls_convert(&options, NULL, path, NULL, NULL), 0);
    char file[512];
    snprintf(file, sizeof file, "%s/data.mdb", path);
    return ls_test_read(file, size);
}

/* Reads as many records as can be read, and returns their number, or -1 if the database is
 * refused. The bytes stand at the end of a mapping, so that reading beyond them would be a
 * fault. */
static int64_t read_all(const char *path)
{
    struct ls_source *source;
    if (open_database(path, &source, NULL) != 0)
        return -1;
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    int64_t good = 0;
    for (int64_t i = 0; i < source->count; i++) {
        struct ls_record r;
        if (ls_source_read(reader, i, LS_ALL_TENSORS, &r, NULL) == 0)
            good += trial_bytes(&r) != NULL || trial_floats(&r) != NULL;
    }
    ls_source_reader_close(reader);
    ls_source_close(source);
    return good;
}

static void truncated_databases_are_refused(void **state)
{
    (void)state;
    size_t size;
    char *bytes = small_database(&size);
    const char *path = ls_test_path("cut.mdb");
    for (size_t n = 0; n < size; n += n < 300 ? 1 : 509) {
        ls_test_write(path, bytes, n);
        struct ls_error *error = calloc(1, sizeof *error);
        struct ls_source *source;
        assert_int_equal(open_database(path, &source, error), LOCKSTEP_DATA);
        assert_says(error, "cut.mdb");
        free(error);
    }
    ls_test_write(path, bytes, size);
    assert_int_equal(read_all(path), 150);
    free(bytes);
}

/* Any byte of any page may have any value: the database is refused or read, within its bounds
 * (sanitizers watch). */
static void any_changed_byte_is_answered(void **state)
{
    (void)state;
    size_t size;
    char *original = small_database(&size);
    uint8_t *bytes = malloc(size);
    const uint8_t values[] = {0x00, 0x01, 0x7f, 0xff};
    size_t refused = 0;
    for (size_t i = 0; i < size; i++) {
        if (i % 4096 > 340 && i % 4096 < 3200 && i % 61 != 0)
            continue; /* pixels, mostly */
        memcpy(bytes, original, size);
        bytes[i] = values[(i + i / 4096) % 4];
        struct ls_lmdb_entry *entries;
        size_t count;
        int status = ls_lmdb_index("changed", bytes, size, &entries, &count, NULL);
        refused += status != 0;
        for (size_t e = 0; status == 0 && e < count; e++) {
            struct ls_datum datum;
            assert_true(entries[e].value + entries[e].value_size <= size);
            assert_true(entries[e].key + entries[e].key_size <= size);
            (void)ls_datum_read(bytes + entries[e].value, entries[e].value_size, &datum, NULL);
        }
        ls_free(entries);
    }
    assert_true(refused > 100);
    free(bytes);
    free(original);
}

static void what_is_no_database_is_refused(void **state)
{
    (void)state;
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    assert_int_equal(open_database(ls_test_path("nowhere"), &source, error), LOCKSTEP_DATA);
    assert_says(error, "there is no file or folder");
    ls_error_clear(error);
    assert_int_equal(open_database(ls_test_directory(), &source, error), LOCKSTEP_DATA);
    assert_says(error, "data.mdb");
    ls_error_clear(error);
    char zeros[8192] = {0};
    ls_test_write(ls_test_path("zeros"), zeros, sizeof zeros);
    assert_int_equal(open_database(ls_test_path("zeros"), &source, error), LOCKSTEP_DATA);
    assert_says(error, "is not an LMDB database");
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(databases_written_by_caffe_are_read),
        cmocka_unit_test(the_mean_is_that_of_caffe),
        cmocka_unit_test(encoded_records_are_decoded),
        cmocka_unit_test(encoded_records_of_several_sizes_are_read),
        cmocka_unit_test(forced_colours_of_plain_pixels_are_refused),
        cmocka_unit_test(truncated_databases_are_refused),
        cmocka_unit_test(any_changed_byte_is_answered),
        cmocka_unit_test(what_is_no_database_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
