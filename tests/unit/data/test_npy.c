/* NPY: arrays of all types and shapes, files that belong together, and what damage leads to.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "data/reader.h"
#include "data/samples.h"
#include "data_trial.h"
#include "support/npy_files.h"

/* Bytes as numpy.save(file, numpy.array([[1, 2, 3], [4, 5, 6]], '<f4')) writes them (NumPy 2.4). */
static const char written_by_numpy[] =
    "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    "                                                          \n"
    "\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@";

static void file_of_numpy_is_read(void **state)
{
    (void)state;
    const char *path = ls_test_path("numpy.npy");
    ls_test_write(path, written_by_numpy, sizeof written_by_numpy - 1);
    struct ls_source *source;
    struct ls_error *error = calloc(1, sizeof *error);
    if (trial_source(&source, error, "data_param { backend: NPY source: '%s' }", path) != 0)
        fail_msg("%s", trial_text(error));
    free(error);
    assert_int_equal(source->count, 2);
    assert_int_equal(source->tensors, 1);
    assert_string_equal(source->tensor[0].name, "numpy");
    assert_int_equal(source->tensor[0].type, LS_F32);
    assert_int_equal(source->tensor[0].shape.rank, 1);
    assert_int_equal(source->tensor[0].shape.dim[0], 3);
    struct ls_source_reader *reader;
    struct ls_record record;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    assert_int_equal(ls_source_read(reader, 1, LS_ALL_TENSORS, &record, NULL), 0);
    assert_memory_equal(record.tensor[0].data, ((const float[]){4, 5, 6}), 12);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void write_three(void)
{
    int32_t tokens[5 * 4];
    float mask[5 * 2 * 3];
    double target[5];
    for (int i = 0; i < 20; i++)
        tokens[i] = 100000000 + i;
    for (int i = 0; i < 30; i++)
        mask[i] = (float)i;
    for (int i = 0; i < 5; i++)
        target[i] = i * 0.25;
    write_npy(ls_test_path("tokens.npy"), "<i4", "(5, 4)", tokens, sizeof tokens);
    write_npy(ls_test_path("mask.npy"), "<f4", "(5, 2, 3)", mask, sizeof mask);
    write_npy(ls_test_path("target.npy"), "<f8", "(5,)", target, sizeof target);
}

/* Three tops of different shapes and types; in another order where `tensor` says so. */
static void tops_get_the_tensors_that_they_name(void **state)
{
    (void)state;
    write_three();
    for (int named = 0; named < 2; named++) {
        char fields[3000];
        snprintf(fields, sizeof fields,
                 "top: 'a' top: 'b' top: 'c' data_param { backend: NPY source: '%s' source: '%s' "
                 "source: '%s' %s }",
                 ls_test_path("tokens.npy"), ls_test_path("mask.npy"), ls_test_path("target.npy"),
                 named ? "tensor { name: 'target' } tensor { name: 'tokens' type: I32 } tensor { "
                         "name: 'mask' }"
                       : "tensor { type: I32 } tensor { } tensor { }");
        struct ls_definition *layer;
        struct ls_dataset *set = trial_fields(fields, &layer);
        int tokens = named ? 1 : 0, mask = named ? 2 : 1, target = named ? 0 : 2;
        assert_int_equal(ls_dataset_tensors(set), 3);
        assert_int_equal(ls_dataset_tensor(set, tokens)->type, LS_I32);
        assert_int_equal(ls_dataset_tensor(set, mask)->type, LS_F32);
        assert_int_equal(ls_dataset_tensor(set, tokens)->shape.rank, 1);
        assert_int_equal(ls_dataset_tensor(set, mask)->shape.rank, 2);
        assert_int_equal(ls_dataset_tensor(set, target)->shape.rank, 0);
        assert_false(ls_dataset_varies(set));
        struct ls_reader *reader;
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        for (int64_t i = 0; i < 10; i++) {
            int32_t x[4];
            float y[6], z = -1;
            void *out[3];
            out[tokens] = x;
            out[mask] = y;
            out[target] = i < 5 ? &z : NULL;
            assert_int_equal(ls_reader_fetch(reader, i, out, NULL), 0);
            assert_int_equal(x[3], 100000000 + 4 * (i % 5) + 3);
            assert_true(y[5] == (float)(6 * (i % 5) + 5));
            assert_true(z == (i < 5 ? (float)i * 0.25F : -1));
        }
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

/* A record's hash is that of what is read of it: each tensor counts, at its place. */
static void hashes_tell_tensors_apart(void **state)
{
    (void)state;
    write_three();
    char fields[3000];
    snprintf(fields, sizeof fields,
             "top: 'a' top: 'b' top: 'c' data_param { backend: NPY source: '%s' source: '%s' "
             "source: '%s' tensor { type: I32 } tensor { } tensor { } }",
             ls_test_path("tokens.npy"), ls_test_path("mask.npy"), ls_test_path("target.npy"));
    struct ls_definition *layer;
    struct ls_dataset *set = trial_fields(fields, &layer);
    struct ls_reader *reader;
    uint64_t hash[8], whole;
    int64_t record;
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (uint32_t wanted = 1; wanted < 8; wanted++) {
        assert_int_equal(ls_reader_hash(reader, 2, wanted, &record, &hash[wanted], NULL), 0);
        for (uint32_t other = 1; other < wanted; other++)
            assert_true(hash[other] != hash[wanted]);
    }
    assert_int_equal(ls_reader_hash_record(reader, 2, &whole, NULL), 0);
    assert_true(whole == hash[7]);
    int32_t x[4];
    float y[6], z;
    assert_int_equal(ls_reader_fetch(reader, 2, (void *[]){x, y, &z}, NULL), 0);
    ls_reader_last(reader, &record, &whole);
    assert_true(whole == hash[7]);
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(layer);
}

static void wrong_fields_are_refused(void **state)
{
    (void)state;
    write_three();
    char two[2000];
    const char *a = ls_test_path("tokens.npy"), *b = ls_test_path("mask.npy");
    snprintf(two, sizeof two, "source: '%s' source: '%s'", a, b);
    const struct {
        const char *tops, *fields, *behind, *words;
    } bad[] = {
        {"top: 'a' top: 'b' top: 'c'", "", "",
         "the layer has 3 tops, but the records have 2 tensors. hint: tokens, mask"},
        {"top: 'a'", "tensor { name: 'tokens' } tensor { name: 'mask' }", "",
         "tensor is given 2 times, but the layer has 1 tops"},
        {"top: 'a'", "\ntensor { name: 'token' }", "",
         "trial.prototxt:2:1: layer 'd': there is no tensor 'token'. hint: the records have: "
         "tokens, mask"},
        {"top: 'a'", "\ntensor { name: 'mask' shape { dim: 3 dim: 2 } }", "",
         "trial.prototxt:2:1: layer 'd': tensor 'mask' of the records is 2 3 (6), not 3 2 (6)"},
        {"top: 'a'", "new_height: 3", "", "new_height is for IMAGES and IMAGE_PAIRS"},
        {"top: 'a'", "", "transform_param { scale: 2 }",
         "transform_param is for images, and NPY has none"},
    };
    struct ls_error *error = calloc(1, sizeof *error);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_dataset *set;
        struct ls_definition *layer =
            trial_layer("name: 'd' %s data_param { backend: NPY %s %s } %s", bad[i].tops, two,
                        bad[i].fields, bad[i].behind);
        ls_error_clear(error);
        assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &set, error),
                         LOCKSTEP_DEFINITION);
        assert_says(error, bad[i].words);
        ls_definition_free(layer);
    }
    free(error);
    trial_source_fails("NPY", "", LOCKSTEP_DEFINITION, "data of backend NPY needs a source");
    snprintf(two, sizeof two, "source: '%s' source: '%s'", a, ls_test_path("other.npy"));
    write_npy(ls_test_path("other.npy"), "<f4", "(4, 1)", written_by_numpy, 16);
    trial_source_fails("NPY", two, LOCKSTEP_DATA, "other.npy: has 4 records, but '");
}

/* ---- Damage ---- */

/* Every file that ends early is refused, at any byte. */
static void truncated_files_are_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("cut.npy");
    char field[600];
    snprintf(field, sizeof field, "source: '%s'", path);
    for (size_t size = 0; size < sizeof written_by_numpy - 1; size++) {
        ls_test_write(path, written_by_numpy, size);
        trial_source_fails("NPY", field, LOCKSTEP_DATA,
                           size < 10
                               ? (size == 0 ? "cut.npy: is empty" : "cut.npy: is no .npy file")
                           : size < 128 ? "cut.npy: is cut off in its header"
                                        : "cut.npy: is cut off: ");
    }
    char *longer = malloc(sizeof written_by_numpy);
    memcpy(longer, written_by_numpy, sizeof written_by_numpy);
    ls_test_write(path, longer, sizeof written_by_numpy);
    trial_source_fails("NPY", field, LOCKSTEP_DATA,
                       "has something behind its end: 25 bytes of numbers where 24");
    free(longer);
}

static void headers_are_not_believed(void **state)
{
    (void)state;
    const struct {
        const char *dict, *words;
    } bad[] = {
        {"", "byte 64 of its header: '{' is missing"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "',' is missing"},
        {"{'descr': '<f4', 'fortran_order': False}", "'shape' is missing"},
        {"{'descr': '<f4', 'shape': (2, 3)}", "'fortran_order' is missing"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3)}", "neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
         "has its numbers in Fortran's order. hint: numpy.save(file, numpy.ascontiguousarray("},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", "has big-endian numbers"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3)}",
         "has numbers of type '<c8', which is not supported"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}",
         "its numbers are records of several fields"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3)}", "'descr' is unknown, or is there"},
        {"{'descr': '<f4', 'more': False, 'shape': (2, 3)}", "'more' is unknown"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "is a single number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}", "is no whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}", "has records of no numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}", "has no records"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999)}",
         "an extent is too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4611686018427387904, 8)}",
         "has records of no numbers, or of too many"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775000, 3)}",
         "has impossible extents"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 6)}",
         "it has more than 8 axes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", "something follows"},
        {"{'descr': '<f4 which is far too long a name', 'fortran_order': False}",
         "a string is not one that NumPy writes"},
    };
    const char *path = ls_test_path("header.npy");
    char field[600];
    snprintf(field, sizeof field, "source: '%s'", path);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t size;
        char *file = npy_bytes(bad[i].dict, written_by_numpy + 128, 24, &size);
        ls_test_write(path, file, size);
        trial_source_fails("NPY", field, LOCKSTEP_DATA, bad[i].words);
        free(file);
    }
    char version[sizeof written_by_numpy];
    memcpy(version, written_by_numpy, sizeof version);
    version[6] = 4;
    ls_test_write(path, version, sizeof version - 1);
    trial_source_fails("NPY", field, LOCKSTEP_DATA,
                       "is a .npy file of version 4.0; 1.0, 2.0 and 3.0 are read");
}

/* Versions 2.0 and 3.0 have a longer length. */
static void later_versions_are_read(void **state)
{
    (void)state;
    char file[sizeof written_by_numpy + 2];
    for (int version = 2; version < 4; version++) {
        struct ls_source *source;
        memcpy(file, written_by_numpy, 10);
        file[6] = (char)version;
        file[10] = file[11] = 0;
        memcpy(file + 12, written_by_numpy + 10, sizeof written_by_numpy - 11);
        ls_test_write(ls_test_path("version.npy"), file, sizeof file - 1);
        assert_int_equal(trial_source(&source, NULL, "data_param { backend: NPY source: '%s' }",
                                      ls_test_path("version.npy")),
                         0);
        ls_source_close(source);
    }
}

/* A file that becomes shorter while it is in use is an error, and never zeros. */
static void file_cut_while_in_use_is_found(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    const char *path = ls_test_path("long.npy");
    float *numbers = calloc(COUNT, sizeof *numbers);
    write_npy(path, "<f4", "(50000,)", numbers, COUNT * sizeof *numbers);
    free(numbers);
    struct ls_source *source;
    struct ls_source_reader *reader;
    struct ls_record record;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(trial_source(&source, NULL, "data_param { backend: NPY source: '%s' }", path),
                     0);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    assert_int_equal(ls_source_read(reader, COUNT - 1, LS_ALL_TENSORS, &record, NULL), 0);
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(ls_source_read(reader, COUNT - 1, LS_ALL_TENSORS, &record, error),
                     LOCKSTEP_DATA);
    assert_says(error, "long.npy: ");
    free(error);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

/* Out of memory at any allocation of opening and reading is an error, and nothing is lost. */
static void out_of_memory_is_an_error_and_loses_nothing(void **state)
{
    (void)state;
    write_three();
    struct ls_definition *layer = trial_layer(
        "name: 'd' top: 'a' top: 'b' data_param { backend: NPY cache: true source: '%s' source: "
        "'%s' }",
        ls_test_path("mask.npy"), ls_test_path("target.npy"));
    float y[6], z;
    assert_true(trial_fail_allocations(layer, 1, (void *[]){y, &z}) >= 8);
    ls_definition_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: cmocka's handler of SIGBUS must not come behind that of the first view. */
        cmocka_unit_test(file_cut_while_in_use_is_found),
        cmocka_unit_test(file_of_numpy_is_read),
        cmocka_unit_test(tops_get_the_tensors_that_they_name),
        cmocka_unit_test(hashes_tell_tensors_apart),
        cmocka_unit_test(wrong_fields_are_refused),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(headers_are_not_believed),
        cmocka_unit_test(later_versions_are_read),
        cmocka_unit_test(out_of_memory_is_an_error_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
