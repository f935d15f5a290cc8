/* CIFAR-10's binary files: made-up ones, and one of the original (unpacked with xz).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "data/source.h"
#include "data_trial.h"

enum { RECORD = 3073 };

static int open_files(const char *const *paths, size_t count, struct ls_source **source,
                      struct ls_error *error)
{
    struct ls_text text = {0};
    for (size_t i = 0; i < count; i++)
        ls_text_format(&text, "source: '%s' ", paths[i]);
    int status = trial_source(source, error, "data_param { backend: CIFAR %s }",
                              text.data != NULL ? text.data : "");
    ls_text_free(&text);
    return status;
}

/* `count` records: label (i + salt) % 10, pixel p = i + p + salt. */
static void write_file(const char *path, int count, int salt)
{
    uint8_t *bytes = calloc((size_t)count + 1, RECORD);
    for (int i = 0; i < count; i++)
        for (int p = 0; p < RECORD; p++)
            bytes[i * RECORD + p] = (uint8_t)(p == 0 ? (i + salt) % 10 : i + p - 1 + salt);
    ls_test_write(path, bytes, (size_t)count * RECORD);
    free(bytes);
}

static void several_files_are_one_source(void **state)
{
    (void)state;
    const char *paths[3] = {ls_test_path("a.bin"), ls_test_path("b.bin"), ls_test_path("c.bin")};
    const int counts[3] = {3, 1, 5}, salts[3] = {0, 7, 2};
    for (int i = 0; i < 3; i++)
        write_file(paths[i], counts[i], salts[i]);
    struct ls_source *source;
    assert_int_equal(open_files(paths, 3, &source, NULL), 0);
    assert_int_equal(source->count, 9);
    assert_null(source->class_name);
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    int64_t index = 8; /* backwards: any order will do */
    for (int f = 2; f >= 0; f--)
        for (int i = counts[f] - 1; i >= 0; i--, index--) {
            struct ls_record r;
            assert_int_equal(ls_source_read(reader, index, LS_ALL_TENSORS, &r, NULL), 0);
            assert_int_equal(trial_label(&r), (i + salts[f]) % 10);
            assert_int_equal(r.tensor[0].shape.dim[0] * r.tensor[0].shape.dim[1] *
                                 r.tensor[0].shape.dim[2],
                             3072);
            for (int p = 0; p < 3072; p++)
                assert_int_equal(trial_bytes(&r)[p], (uint8_t)(i + p + salts[f]));
        }
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void must_fail(const char *path, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    assert_int_equal(open_files(&path, 1, &source, error), LOCKSTEP_DATA);
    assert_says(error, path);
    assert_says(error, words);
    free(error);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("bad.bin");
    write_file(path, 2, 0);
    size_t size;
    char *bytes = ls_test_read(path, &size);
    for (size_t cut = 1; cut < size; cut += 97) {
        if (cut % RECORD == 0)
            continue;
        ls_test_write(path, bytes, cut);
        must_fail(path, "not a multiple of 3073");
    }
    ls_test_write(path, bytes, 0);
    must_fail(path, "is empty");
    bytes[RECORD] = 10;
    ls_test_write(path, bytes, size);
    must_fail(path, "record 1 has label 10");
    free(bytes);
    must_fail(ls_test_path("none.bin"), "there is no file or folder");
    struct ls_source *source;
    assert_int_equal(open_files(NULL, 0, &source, NULL), LOCKSTEP_DEFINITION);
}

static void class_names_are_read_beside_the_files(void **state)
{
    (void)state;
    const char *path = ls_test_path("named.bin");
    write_file(path, 2, 0);
    ls_test_write_text(
        ls_test_path("batches.meta.txt"),
        "airplane\nautomobile\nbird\r\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
    struct ls_source *source;
    assert_int_equal(open_files(&path, 1, &source, NULL), 0);
    assert_int_equal(source->class_count, 10);
    assert_string_equal(source->class_name[2], "bird");
    assert_string_equal(source->class_name[9], "truck");
    ls_source_close(source);
    ls_test_write_text(ls_test_path("batches.meta.txt"), "airplane\nautomobile\n");
    assert_int_equal(open_files(&path, 1, &source, NULL), 0);
    assert_int_equal(source->class_count, 0);
    ls_source_close(source);
    unlink(ls_test_path("batches.meta.txt"));
}

static void the_original_test_batch_is_read(void **state)
{
    (void)state;
    const char *packed = ls_test_data_or_skip("cifar10/test_batch.bin.xz");
    const char *path = ls_test_path("test_batch.bin");
    char command[2048];
    snprintf(command, sizeof command, "xz -dc '%s' > '%s'", packed, path);
    if (system(command) != 0)
        ls_test_skip("xz is not here");
    struct ls_source *source;
    assert_int_equal(open_files(&path, 1, &source, NULL), 0);
    assert_int_equal(source->count, 10000);
    assert_int_equal(source->tensor[1].largest, 9);
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    int seen[10] = {0};
    for (int64_t i = 0; i < source->count; i++) {
        struct ls_record record;
        assert_int_equal(ls_source_read(reader, i, LS_TENSOR(1), &record, NULL), 0);
        assert_null(trial_bytes(&record));
        seen[trial_label(&record)]++;
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(seen[i], 1000);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_files_are_one_source),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(class_names_are_read_beside_the_files),
        cmocka_unit_test(the_original_test_batch_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
