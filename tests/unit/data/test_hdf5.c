/* Arrays of HDF5 files.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <hdf5.h>

#include "data/source.h"
#include "data_trial.h"

/* How an array is stored. */
enum form { PLAIN, DOUBLES, INTEGERS, CHUNKED, PACKED, FORMS };

/* Adds an array of `rows` records of 3 x 2 numbers (or one number: `flat`): 100 x number of the
 * record + place. */
static void add_array(hid_t file, const char *name, enum form form, int64_t first, int64_t rows,
                      bool flat)
{
    hsize_t dim[] = {(hsize_t)rows, 3, 2}, chunk[] = {4, 3, 1};
    int each = flat ? 1 : 6;
    float *numbers = calloc((size_t)(rows * each) + 1, sizeof *numbers);
    for (int64_t i = 0; i < rows * each; i++)
        numbers[i] = (float)((first + i / each) * 100 + i % each) + 0.5F;
    hid_t space = H5Screate_simple(flat ? 1 : 3, dim, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    if (form == CHUNKED || form == PACKED)
        H5Pset_chunk(made, flat ? 1 : 3, chunk);
    if (form == PACKED)
        H5Pset_deflate(made, 6);
    hid_t type = form == DOUBLES    ? H5T_IEEE_F64LE
                 : form == INTEGERS ? H5T_STD_I16LE
                                    : H5T_IEEE_F32LE;
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, made, H5P_DEFAULT);
    assert_true(set >= 0);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(set);
    H5Pclose(made);
    H5Sclose(space);
    free(numbers);
}

static hid_t new_file(const char *name)
{
    hid_t file = H5Fcreate(ls_test_path(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

/* "name_0.h5" with 7 records, "name_1.h5" with none, "name_2.h5" with 4, and the list of them. */
static void write_set(const char *name, enum form form)
{
    static const int64_t rows[] = {7, 0, 4};
    char path[64];
    struct ls_text list = {0};
    for (int i = 0; i < 3; i++) {
        if (rows[i] == 0)
            continue;
        snprintf(path, sizeof path, "%s_%d.h5", name, i);
        hid_t file = new_file(path);
        add_array(file, "data", form, i == 2 ? 7 : 0, rows[i], false);
        add_array(file, "label", i == 2 ? PLAIN : form, i == 2 ? 7 : 0, rows[i], true);
        H5Fclose(file);
        ls_text_format(&list, "%s  \n\n", path); /* beside the list */
    }
    snprintf(path, sizeof path, "%s.txt", name);
    ls_test_write_text(ls_test_path(path), list.data);
    ls_text_free(&list);
}

static void check_record(struct ls_source_reader *reader, int64_t index, enum form form)
{
    struct ls_record record;
    struct ls_error *error = calloc(1, sizeof *error);
    if (ls_source_read(reader, index, LS_ALL_TENSORS, &record, error) != 0)
        fail_msg("%s", trial_text(error));
    const float *data = record.tensor[0].data, *label = record.tensor[1].data;
    const float part = form == INTEGERS ? 0 : 0.5F;
    for (int i = 0; i < 6; i++)
        assert_true(data[i] == (float)(index * 100 + i) + part);
    assert_true(label[0] == (float)(index * 100) + (index >= 7 ? 0.5F : part));
    free(error);
}

static void records_of_all_forms(void **state)
{
    (void)state;
    for (enum form form = 0; form < FORMS; form++) {
        struct ls_error *error = calloc(1, sizeof *error);
        struct ls_source *source;
        struct ls_source_reader *reader;
        write_set("set", form);
        if (trial_source(&source, error, "data_param { backend: HDF5 source: '%s' }",
                         ls_test_path("set.txt")) != 0)
            fail_msg("%s", trial_text(error));
        assert_int_equal(source->count, 11);
        assert_int_equal(source->tensors, 2);
        assert_string_equal(source->tensor[0].name, "data");
        assert_int_equal(source->tensor[0].shape.rank, 2);
        assert_int_equal(source->tensor[0].shape.dim[0], 3);
        assert_int_equal(source->tensor[0].shape.dim[1], 2);
        assert_int_equal(source->tensor[1].shape.rank, 0);
        assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
        for (int64_t i = 0; i < 11; i++)
            check_record(reader, i, form);
        for (int64_t i = 0; i < 40; i++)
            check_record(reader, i * 7 % 11, form);
        ls_source_reader_close(reader);
        ls_source_close(source);
        free(error);
    }
}

/* Blocks of records that go through the library end where a file does. */
static void more_records_than_a_block(void **state)
{
    (void)state;
    enum { ROWS = 30000 };
    struct ls_source *source;
    struct ls_source_reader *reader;
    hid_t file = new_file("many.h5");
    add_array(file, "data", PACKED, 0, ROWS, false);
    add_array(file, "label", PACKED, 0, ROWS, true);
    H5Fclose(file);
    assert_int_equal(trial_source(&source, NULL, "data_param { backend: HDF5 source: '%s' }",
                                  ls_test_path("many.h5")),
                     0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    for (int64_t i = 0; i < ROWS; i += i < 100 || i > ROWS - 100 ? 1 : 997)
        check_record(reader, i, PACKED);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void tensors_are_chosen_by_name(void **state)
{
    (void)state;
    struct ls_source *source;
    write_set("set", PLAIN);
    assert_int_equal(trial_source(&source, NULL,
                                  "data_param { backend: HDF5 source: '%s' tensor { name: 'label' "
                                  "} tensor { name: 'label' } }",
                                  ls_test_path("set_0.h5")),
                     0);
    assert_int_equal(source->tensors, 1);
    assert_string_equal(source->tensor[0].name, "label");
    assert_int_equal(source->count, 7);
    ls_source_close(source);
}

static void must_fail(const char *source_file, const char *more, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    int status = trial_source(&source, error, "data_param { backend: HDF5 source: '%s' %s }",
                              ls_test_path(source_file), more);
    assert_int_equal(status, LOCKSTEP_DATA);
    assert_says(error, words);
    free(error);
}

static void files_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    write_set("set", PLAIN);
    must_fail("set_0.h5", "tensor { name: 'nothing' }",
              "set_0.h5: has no '/nothing'. hint: a top is read from the array of its name; the "
              "file has '");
    hid_t file = new_file("uneven.h5");
    add_array(file, "a", PLAIN, 0, 4, false);
    add_array(file, "b", PLAIN, 0, 5, true);
    H5Fclose(file);
    must_fail("uneven.h5", "", "'/b' has 5 records, but '/a' has 4");
    file = new_file("other.h5");
    add_array(file, "data", PLAIN, 0, 4, true);
    add_array(file, "label", PLAIN, 0, 4, true);
    H5Fclose(file);
    ls_test_write_text(ls_test_path("two.txt"), "set_0.h5\nother.h5\n");
    must_fail("two.txt", "", "the records of '/data' have another shape than in");
    ls_test_write_text(ls_test_path("lost.txt"), "nowhere.h5\n");
    must_fail("lost.txt", "", "lost.txt:1: there is no file");
    ls_test_write_text(ls_test_path("empty.txt"), "\n \n");
    must_fail("empty.txt", "", "lists no files");
    ls_test_write(ls_test_path("zeros.txt"), "set\0x", 5);
    must_fail("zeros.txt", "", "is neither an HDF5 file nor a list");
    file = new_file("leads.h5"); /* a link that leads nowhere is no reason to take the others */
    add_array(file, "label", PLAIN, 0, 4, true);
    H5Lcreate_soft("/nothing", file, "data", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    must_fail("leads.h5", "", "'/data' is a link to another file or to nothing");
    file = new_file("bare.h5");
    H5Fclose(file);
    must_fail("bare.h5", "", "has no arrays of numbers");
}

/* Whatever is damaged in a file, it is an error with its name or numbers, never more. */
/* Records are read many at once; which of them are bad does not depend on that. */
static void good_records_beside_bad_ones_are_read(void **state)
{
    (void)state;
    struct ls_source *source;
    struct ls_source_reader *reader;
    struct ls_record record;
    const hsize_t second[] = {4, 0, 0};
    hid_t file = new_file("partly.h5");
    add_array(file, "data", PACKED, 0, 16, false);
    add_array(file, "label", PACKED, 0, 16, true);
    hid_t set = H5Dopen2(file, "data", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, second, 1, "x") >= 0);
    H5Dclose(set);
    H5Fclose(file);
    assert_int_equal(trial_source(&source, NULL, "data_param { backend: HDF5 source: '%s' }",
                                  ls_test_path("partly.h5")),
                     0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    for (int64_t i = 0; i < 16; i++)
        if (i / 4 == 1)
            assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &record, NULL),
                             LOCKSTEP_DATA);
        else
            check_record(reader, i, PACKED);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void damaged_files_are_no_more_than_errors(void **state)
{
    (void)state;
    write_set("set", PACKED);
    size_t size;
    char *bytes = ls_test_read(ls_test_path("set_0.h5"), &size);
    int opened = 0, refused = 0;
    for (size_t i = 0; i < 400; i++) {
        size_t at = i * size / 400;
        const char before = bytes[at];
        bytes[at] = (char)(before ^ (i % 2 == 0 ? 0xff : 1));
        ls_test_write(ls_test_path("hurt.h5"), bytes, i % 7 == 0 ? at : size);
        bytes[at] = before;
        struct ls_error *error = calloc(1, sizeof *error);
        struct ls_source *source = NULL;
        int status = trial_source(&source, error, "data_param { backend: HDF5 source: '%s' }",
                                  ls_test_path("hurt.h5"));
        struct ls_source_reader *reader;
        struct ls_record record;
        opened += status == 0;
        if (status == 0) {
            assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
            for (int64_t k = 0; k < source->count && k < 20; k++)
                status = ls_source_read(reader, k, LS_ALL_TENSORS, &record, error);
            ls_source_reader_close(reader);
        }
        refused += status != 0;
        if (status != 0)
            assert_int_equal(status, LOCKSTEP_DATA);
        ls_source_close(source);
        free(error);
    }
    assert_true(opened > 20 && refused > 20);
    free(bytes);
}

static void memory_failures_are_reported(void **state)
{
    (void)state;
    write_set("set", DOUBLES);
    struct ls_definition *layer =
        trial_layer("name: 'd' top: 'data' top: 'label' data_param { backend: HDF5 source: '%s' }",
                    ls_test_path("set.txt"));
    float data[6], label;
    void *out[LS_RECORD_TENSORS] = {data, &label};
    assert_true(trial_fail_allocations(layer, 3, out) > 10);
    ls_definition_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_all_forms),
        cmocka_unit_test(more_records_than_a_block),
        cmocka_unit_test(tensors_are_chosen_by_name),
        cmocka_unit_test(files_that_do_not_fit_are_refused),
        cmocka_unit_test(good_records_beside_bad_ones_are_read),
        cmocka_unit_test(damaged_files_are_no_more_than_errors),
        cmocka_unit_test(memory_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
