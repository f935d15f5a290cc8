/* LevelDB databases, made with its own library and read by ours.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <unistd.h>

#include "data/datum.h"
#include "data/leveldb_block.h"
#include "data/leveldb_index.h"
#include "data/snappy.h"
#include "data/source.h"
#include "data_trial.h"
#include "support/leveldb_files.h"
#include "support/memory_limit.h"

enum { RECORDS = 300, SIDE = 20 };

/* Takes away a folder of files. */
static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char file[1024];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(path);
}

static uint8_t pixel_of(int record, int at)
{
    return (uint8_t)(record * 7 + at / 3 * (record % 5));
}

/* The bytes of a record, of a size that depends on it, in `room`. */
static const uint8_t *datum_of(int record, struct ls_buffer *room, size_t *size)
{
    static uint8_t pixels[SIDE * SIDE];
    static int32_t label;
    struct ls_record made = {.count = 2};
    const int64_t shape[3] = {1, SIDE, SIDE};
    for (int i = 0; i < SIDE * SIDE; i++)
        pixels[i] = pixel_of(record, i);
    label = record % 10;
    ls_record_set_image(&made, LS_U8, shape, pixels);
    made.tensor[1].data = &label;
    return ls_datum_write(&made, true, room, size);
}

/* Records whose keys are not written in their order; some are written twice, others again taken
 * away. `buffer`: how much stays in the log. */
static const char *write_database(const char *name, bool packed, size_t buffer)
{
    struct leveldb_writer writer;
    struct ls_buffer room = {0};
    const char *path = ls_test_path(name);
    size_t size;
    remove_folder(path);
    leveldb_begin(&writer, path, packed, buffer);
    for (int i = 0; i < RECORDS; i++) {
        int record = i * 7 % RECORDS;
        char key[40];
        snprintf(key, sizeof key, "%08d_a/%d", record, record);
        const uint8_t *bytes = datum_of(i % 3 == 0 ? record + 1 : record, &room, &size);
        leveldb_add(&writer, key, bytes, size);
        if (i % 3 == 0) { /* the second write holds */
            bytes = datum_of(record, &room, &size);
            leveldb_add(&writer, key, bytes, size);
        }
        snprintf(key, sizeof key, "%08d_z", record);
        leveldb_add(&writer, key, bytes, size);
        leveldb_add(&writer, key, NULL, 0);
        if (i % 40 == 0)
            leveldb_commit(&writer);
    }
    leveldb_end(&writer);
    ls_buffer_free(&room);
    return path;
}

static void check_record(struct ls_source_reader *reader, int64_t index)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_record record;
    if (ls_source_read(reader, index, LS_ALL_TENSORS, &record, error) != 0)
        fail_msg("%s", trial_text(error));
    const uint8_t *pixels = record.tensor[0].data;
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_int_equal(pixels[i], pixel_of((int)index, i));
    assert_int_equal(*(const int32_t *)record.tensor[1].data, index % 10);
    free(error);
}

static struct ls_source *must_open(const char *path)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    if (trial_source(&source, error, "data_param { backend: LEVELDB source: '%s' }", path) != 0)
        fail_msg("%s", trial_text(error));
    free(error);
    return source;
}

static void records_in_the_order_of_their_keys(void **state)
{
    (void)state;
    /* All in the log, as Caffe's tools leave a small database; in tables; in both. */
    static const size_t buffers[] = {(size_t)1 << 28, 65536, 100000};
    for (int form = 0; form < 6; form++) {
        const char *path = write_database("db", form < 3, buffers[form % 3]);
        struct ls_source *source = must_open(path);
        struct ls_source_reader *reader;
        struct ls_text name = {0};
        assert_int_equal(source->count, RECORDS);
        assert_int_equal(source->tensor[1].largest, 9);
        assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
        for (int64_t i = 0; i < RECORDS; i++)
            check_record(reader, i);
        for (int64_t i = 0; i < RECORDS; i++)
            check_record(reader, i * 11 % RECORDS);
        source->type->name_record(source, 17, &name);
        assert_string_equal(name.data, "a/17");
        ls_text_free(&name);
        ls_source_reader_close(reader);
        ls_source_close(source);
        /* LevelDB makes tables of the log when it opens the database again. */
        struct leveldb_writer writer;
        leveldb_begin(&writer, path, form < 3, 65536);
        leveldb_end(&writer);
        source = must_open(path);
        assert_int_equal(source->count, RECORDS);
        assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
        for (int64_t i = 0; i < RECORDS; i++)
            check_record(reader, i);
        ls_source_reader_close(reader);
        ls_source_close(source);
    }
}

/* A value longer than a block of a log, and of a table. */
static void long_records(void **state)
{
    (void)state;
    enum { LONG = 200000 };
    struct leveldb_writer writer;
    struct ls_leveldb db;
    struct ls_buffer value = {0}, block = {0};
    char *bytes = malloc(LONG);
    for (int i = 0; i < LONG; i++)
        bytes[i] = (char)(i * i % 251);
    for (int form = 0; form < 4; form++) {
        const char *path = ls_test_path("long");
        remove_folder(path);
        leveldb_begin(&writer, path, form % 2 == 0, form < 2 ? (size_t)1 << 28 : 65536);
        for (int i = 0; i < 7; i++)
            leveldb_add(&writer, (const char *[]){"d", "a", "c", "b", "f", "e", "g"}[i], bytes + i,
                        (size_t)(LONG - 30000 * i - 7));
        leveldb_end(&writer);
        struct ls_error *error = calloc(1, sizeof *error);
        if (ls_leveldb_open(path, &db, error) != 0)
            fail_msg("%s", trial_text(error));
        assert_int_equal(db.count, 7);
        for (size_t i = 0; i < 7; i++) {
            const size_t written = (size_t[]){1, 3, 2, 0, 5, 4, 6}[i];
            const uint8_t *found;
            size_t size;
            assert_int_equal(ls_leveldb_read(&db, i, &value, &block, &found, &size, error), 0);
            assert_int_equal(size, LONG - 30000 * written - 7);
            assert_memory_equal(found, bytes + written, size);
        }
        ls_leveldb_free(&db);
        free(error);
    }
    ls_buffer_free(&value);
    ls_buffer_free(&block);
    free(bytes);
}

static void compressed_bytes(void **state)
{
    (void)state;
    /* "abcdabcdabcdabcd!": four bytes as they are, a copy of twelve, one byte. */
    static const uint8_t packed[] = {17, 3 << 2, 'a', 'b', 'c', 'd', 11 << 2 | 2, 4, 0, 0, '!'};
    uint8_t out[32];
    size_t size;
    assert_true(ls_snappy_size(packed, sizeof packed, &size));
    assert_int_equal(size, 17);
    assert_true(ls_snappy_read(packed, sizeof packed, out, size));
    assert_memory_equal(out, "abcdabcdabcdabcd!", 17);
    for (size_t cut = 1; cut < sizeof packed; cut++)
        assert_false(ls_snappy_read(packed, cut, out, size));
    uint8_t bad[sizeof packed];
    memcpy(bad, packed, sizeof packed);
    bad[7] = 5; /* from before the beginning */
    assert_false(ls_snappy_read(bad, sizeof bad, out, size));
    bad[7] = 0;
    assert_false(ls_snappy_read(bad, sizeof bad, out, size));
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 15, 0};
    assert_false(ls_snappy_size(huge, sizeof huge, &size));
}

static void what_is_no_database_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *current, *words;
    } bad[] = {
        {"MANIFEST-000099\n", "MANIFEST-000099: cannot open"},
        {"MANIFEST-000002", "does not name a manifest"}, /* cut off */
        {"MANIFEST-000002\nmore\n", "does not name a manifest"},
        {"nothing\n", "does not name a manifest: this is no LevelDB database"},
        {"MANIFEST-/../x\n", "does not name a manifest"},
    };
    const char *path = write_database("db", true, 65536);
    char current[1024];
    snprintf(current, sizeof current, "%s/CURRENT", path);
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ls_error_clear(error);
        ls_test_write_text(current, bad[i].current);
        assert_int_equal(trial_source(&source, error, "data_param { source: '%s' }", path),
                         LOCKSTEP_DATA);
        assert_says(error, bad[i].words);
    }
    unlink(current);
    ls_error_clear(error);
    assert_int_equal(trial_source(&source, error, "data_param { source: '%s' }", path),
                     LOCKSTEP_DATA);
    assert_says(error, "CURRENT: cannot open");
    ls_error_clear(error);
    char other[1024];
    snprintf(other, sizeof other, "%s/data.mdb", path);
    ls_test_write_text(other, "");
    assert_int_equal(trial_source(&source, error, "data_param { source: '%s' }", path),
                     LOCKSTEP_DATA);
    assert_says(error, "db: is a database of another kind: LMDB. hint: write backend: LMDB");
    unlink(other);
    ls_test_write_text(current, "MANIFEST-000001");
    ls_error_clear(error);
    assert_int_equal(
        trial_source(&source, error, "data_param { backend: LMDB source: '%s' }", path),
        LOCKSTEP_DATA);
    assert_says(error, "db: is a database of another kind: LEVELDB. hint: write backend: LEVELDB");
    free(error);
}

/* Damage anywhere is found, by checksums, or is where nothing is read. */
static void damaged_files_are_errors(void **state)
{
    (void)state;
    int found = 0, same = 0;
    for (int packed = 0; packed < 2; packed++) {
        const char *path = write_database("db", packed == 1, 65536);
        DIR *dir = opendir(path);
        for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            char file[1024];
            size_t size;
            snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
            if (strstr("LOCK LOG LOG.old . ..", entry->d_name) != NULL)
                continue;
            char *bytes = ls_test_read(file, &size);
            for (int i = 0; i < 60 && size > 0; i++) {
                size_t at = (size_t)i * size / 60;
                bytes[at] = (char)(bytes[at] ^ (1 << i % 8));
                ls_test_write(file, bytes, i % 9 == 8 ? at : size);
                bytes[at] = (char)(bytes[at] ^ (1 << i % 8));
                struct ls_error *error = calloc(1, sizeof *error);
                struct ls_source *source;
                int status = trial_source(&source, error,
                                          "data_param { backend: LEVELDB source: '%s' }", path);
                found += status != 0;
                if (status != 0) {
                    assert_int_equal(status, LOCKSTEP_DATA);
                } else {
                    struct ls_source_reader *reader;
                    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
                    /* a log that is cut off has fewer records */
                    same += source->count == RECORDS;
                    for (int64_t k = 0; k < source->count && source->count == RECORDS; k += 13)
                        check_record(reader, k);
                    ls_source_reader_close(reader);
                }
                ls_source_close(source);
                free(error);
            }
            ls_test_write(file, bytes, size);
            free(bytes);
        }
        closedir(dir);
    }
    assert_true(found > 100);
    assert_true(same < found);
}

/* The file of a database whose name has `part` in it; `file` has room for its path. */
static char *read_part(const char *folder, const char *part, char file[1024], size_t *size)
{
    DIR *dir = opendir(folder);
    file[0] = '\0';
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strstr(entry->d_name, part) != NULL)
            snprintf(file, 1024, "%s/%s", folder, entry->d_name);
    closedir(dir);
    assert_true(file[0] != '\0');
    return ls_test_read(file, size);
}

/* Opens a database, and puts its warning, or what is wrong with it, in `said`; the records. */
static int64_t open_and_say(const char *path, char said[1024])
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    int64_t count = -1;
    if (trial_source(&source, error, "data_param { backend: LEVELDB source: '%s' }", path) == 0) {
        snprintf(said, 1024, "%s", source->warning != NULL ? source->warning : "");
        count = source->count;
    } else {
        ls_error_format(error, said, 1024);
    }
    ls_source_close(source);
    free(error);
    return count;
}

/* A manifest that is cut off names an earlier state of the database: no part of it may pass for the
 * whole without a word. */
static void a_manifest_that_is_cut_off_is_refused(void **state)
{
    (void)state;
    const char *path = write_database("db", true, 65536);
    char file[1024], said[1024];
    size_t size, refused = 0;
    assert_int_equal(open_and_say(path, said), RECORDS);
    assert_string_equal(said, "");
    char *bytes = read_part(path, "MANIFEST-", file, &size);
    for (size_t cut = 0; cut < size; cut++) {
        ls_test_write(file, bytes, cut);
        const int64_t count = open_and_say(path, said);
        refused += count < 0;
        assert_true(count < 0 || said[0] != '\0');
        assert_true(count >= 0 || strstr(said, "anifest") != NULL);
    }
    assert_true(refused > size - 8); /* the others are whole changes */
    memset(bytes, 0, 7);             /* as if room had been set aside */
    ls_test_write(file, bytes, size);
    assert_int_equal(open_and_say(path, said), -1);
    free(bytes);
}

/* A database with tables of 50 records, whose keys no other one has. */
static const char *write_other(const char *name)
{
    static const char value[2000];
    struct leveldb_writer writer;
    const char *path = ls_test_path(name);
    char key[40];
    leveldb_begin(&writer, path, false, 65536);
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof key, "other %d", i);
        leveldb_add(&writer, key, value, sizeof value);
        leveldb_commit(&writer);
    }
    leveldb_compact_range(writer.db, NULL, 0, NULL, 0);
    leveldb_end(&writer);
    return path;
}

/* Adds records to a database, which are in its log alone then. */
static void write_log(const char *path, int count)
{
    struct leveldb_writer writer;
    struct ls_buffer room = {0};
    char key[40];
    size_t size;
    leveldb_begin(&writer, path, true, 1 << 20);
    for (int i = 0; i < count; i++) {
        const uint8_t *bytes = datum_of(i, &room, &size);
        snprintf(key, sizeof key, "more %d", i);
        leveldb_add(&writer, key, bytes, size);
        leveldb_commit(&writer);
    }
    leveldb_end(&writer);
    ls_buffer_free(&room);
}

static void what_may_be_missing_is_said(void **state)
{
    (void)state;
    enum { MORE = 4 };
    const char *path = write_database("db", true, 65536);
    char file[1024], said[1024], other[1100];
    size_t size;
    write_log(path, MORE);
    assert_int_equal(open_and_say(path, said), RECORDS + MORE);
    assert_string_equal(said, "");
    char *bytes = read_part(path, ".log", file, &size);
    ls_test_write(file, bytes, size - 30); /* behind it is an empty write */
    assert_int_equal(open_and_say(path, said), RECORDS + MORE - 1);
    assert_non_null(strstr(said, ".log ends within a write: what was in it is missing"));
    unlink(file);
    assert_int_equal(open_and_say(path, said), RECORDS);
    assert_non_null(strstr(said, ".log is not there: records in it are missing"));
    /* A table of another database, with keys that this one does not have. */
    char theirs[1024], *folder = strdup(path);
    size_t their_size;
    char *table = read_part(write_other("other"), ".ldb", theirs, &their_size);
    snprintf(other, sizeof other, "%s/000999.ldb", folder);
    ls_test_write(other, table, their_size);
    assert_int_equal(open_and_say(folder, said), -1);
    assert_non_null(strstr(said, "and does not name tables that are: it is damaged"));
    ls_test_write(file, bytes, size);
    assert_int_equal(open_and_say(folder, said), RECORDS + MORE);
    assert_non_null(strstr(said, " records are not read, as the manifest does not name"));
    ls_test_write(other, table, their_size / 2); /* which a stopped compaction leaves */
    assert_int_equal(open_and_say(folder, said), RECORDS + MORE);
    assert_string_equal(said, "");
    free(table);
    free(folder);
    free(bytes);
}

/* Opens the list of blocks of a table that was read into `bytes`. */
static struct ls_leveldb_block open_list(const struct ls_leveldb_file *file, const uint8_t *bytes)
{
    struct ls_leveldb_bytes footer = {bytes + file->size - LS_LEVELDB_FOOTER, bytes + file->size};
    struct ls_leveldb_block list = {0};
    struct ls_buffer plain = {0};
    uint64_t skipped;
    assert_true(ls_leveldb_take_number(&footer, &skipped) &&
                ls_leveldb_take_number(&footer, &skipped) &&
                ls_leveldb_take_number(&footer, &list.place) &&
                ls_leveldb_take_number(&footer, &list.stored));
    assert_int_equal(ls_leveldb_open_block(file, bytes, true, &plain, &list, NULL), 0);
    assert_false(list.packed);
    return list;
}

/* Moves the second block of a table to within the first one; false: it has no two. */
static bool move_block(uint8_t *bytes, const struct ls_leveldb_block *list)
{
    struct ls_leveldb_bytes in = list->content, value = {0};
    struct ls_text key = {0};
    bool two = true;
    for (int i = 0; i < 2; i++)
        two = two && ls_leveldb_next_entry(&in, &key, &value);
    ls_text_free(&key);
    if (!two)
        return false;
    assert_true(value.end - value.at > 3 && value.at[1] > 127 && value.at[2] < 128);
    bytes[value.at - bytes + 2] = 0; /* the upper digit of where it lies */
    uint8_t *trailer = bytes + list->place + list->stored;
    uint32_t sum = ls_leveldb_checksum(bytes + list->place, list->stored, trailer[0]);
    for (int i = 0; i < 4; i++)
        trailer[1 + i] = (uint8_t)(sum >> (8 * i));
    return true;
}

/* A small file whose list names the same bytes many times would take any amount of memory. */
static void blocks_that_overlap_are_refused(void **state)
{
    (void)state;
    const char *path = write_database("db", false, 65536);
    DIR *dir = opendir(path);
    int tables = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char name[1024];
        const char *ending = strrchr(entry->d_name, '.');
        if (ending == NULL || (strcmp(ending, ".ldb") != 0 && strcmp(ending, ".sst") != 0))
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        struct ls_leveldb_file file = {.table = true, .path = name};
        uint8_t *bytes = (uint8_t *)ls_test_read(name, &file.size);
        struct ls_leveldb_block list = open_list(&file, bytes);
        tables += move_block(bytes, &list);
        ls_test_write(name, bytes, file.size);
        free(bytes);
    }
    closedir(dir);
    assert_true(tables > 0);
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    assert_int_equal(
        trial_source(&source, error, "data_param { backend: LEVELDB source: '%s' }", path),
        LOCKSTEP_DATA);
    assert_says(error, "a block lies over the one before it");
    free(error);
}

static void memory_failures_are_reported(void **state)
{
    (void)state;
    const char *path = write_database("db", true, 65536);
    struct ls_definition *layer = trial_layer(
        "name: 'd' top: 'data' top: 'label' data_param { backend: LEVELDB source: '%s' }", path);
    static float data[SIDE * SIDE];
    float label;
    void *out[LS_RECORD_TENSORS] = {data, &label};
    assert_true(trial_fail_allocations(layer, 2, out) > 10);
    ls_definition_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_in_the_order_of_their_keys),
        cmocka_unit_test(long_records),
        cmocka_unit_test(compressed_bytes),
        cmocka_unit_test(what_is_no_database_is_refused),
        cmocka_unit_test(damaged_files_are_errors),
        cmocka_unit_test(a_manifest_that_is_cut_off_is_refused),
        cmocka_unit_test(what_may_be_missing_is_said),
        cmocka_unit_test(blocks_that_overlap_are_refused),
        cmocka_unit_test(memory_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
