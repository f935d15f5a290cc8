/* HDF5 files (base/hdf5.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/hdf5_arrays.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hdf5_write.h"
#include "base/memory.h"
#include "support/support.h"

static const float numbers[6] = {1, 2.5F, -3, 4, 5, 1e-30F};

static void write_file(const char *path)
{
    struct ls_error error = {0};
    struct ls_hdf5 *file;
    assert_int_equal(ls_hdf5_create(path, &file, &error), 0);
    assert_int_equal(ls_hdf5_add_group(file, "/data", &error), 0);
    assert_int_equal(ls_hdf5_add_group(file, "/data/pool/1", &error), 0);
    assert_int_equal(ls_hdf5_add_group(file, "/data/pool", &error), 0);
    assert_int_equal(ls_hdf5_add_floats(file, "/data/ip/0", 2, (int64_t[]){3, 2}, numbers, &error),
                     0);
    assert_int_equal(ls_hdf5_add_floats(file, "/data/ip/1", 0, NULL, numbers + 1, &error), 0);
    assert_int_equal(ls_hdf5_add_integer(file, "/iter", 70000, &error), 0);
    assert_int_equal(ls_hdf5_add_string(file, "/learned_net", "net.caffemodel.h5", &error), 0);
    assert_int_equal(ls_hdf5_commit(file, &error), 0);
}

static struct ls_hdf5 *open_file(const char *path)
{
    struct ls_error error = {0};
    struct ls_hdf5 *file;
    assert_int_equal(ls_hdf5_open(path, LOCKSTEP_WEIGHTS, &file, &error), 0);
    return file;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    const char *path = ls_test_path("numbers.h5");
    write_file(path);
    struct ls_error error = {0};
    struct ls_hdf5 *file = open_file(path);
    struct ls_hdf5_names names;
    assert_int_equal(ls_hdf5_list(file, "/data", &names, &error), 0);
    assert_int_equal(names.count, 2);
    assert_string_equal(names.items[0], "ip");
    assert_string_equal(names.items[1], "pool");
    ls_hdf5_names_free(&names);
    assert_int_equal(ls_hdf5_kind(file, "/data/pool/1"), LS_HDF5_GROUP);
    assert_int_equal(ls_hdf5_kind(file, "/data/ip/0"), LS_HDF5_ARRAY);
    assert_int_equal(ls_hdf5_kind(file, "/data/ip/2"), LS_HDF5_ABSENT);
    assert_int_equal(ls_hdf5_kind(file, "/data/ip/0/1"), LS_HDF5_ABSENT);
    struct ls_hdf5_shape shape;
    assert_int_equal(ls_hdf5_shape(file, "/data/ip/0", &shape, &error), 0);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.dim[0], 3);
    assert_int_equal(shape.count, 6);
    float all[6], rows[4], one;
    assert_int_equal(ls_hdf5_read(file, "/data/ip/0", all, &error), 0);
    assert_memory_equal(all, numbers, sizeof all);
    assert_int_equal(ls_hdf5_read_rows(file, "/data/ip/0", 1, 2, rows, &error), 0);
    assert_memory_equal(rows, numbers + 2, sizeof rows);
    assert_int_equal(ls_hdf5_shape(file, "/data/ip/1", &shape, &error), 0);
    assert_int_equal(shape.rank, 0);
    assert_int_equal(ls_hdf5_read(file, "/data/ip/1", &one, &error), 0);
    assert_true(one == numbers[1]);
    int64_t iteration;
    char *net;
    assert_int_equal(ls_hdf5_read_integer(file, "/iter", &iteration, &error), 0);
    assert_int_equal(iteration, 70000);
    assert_int_equal(ls_hdf5_read_string(file, "/learned_net", &net, &error), 0);
    assert_string_equal(net, "net.caffemodel.h5");
    ls_free(net);
    ls_hdf5_close(file);
}

static void bytes_follow_from_the_contents(void **state)
{
    (void)state;
    const char *first = ls_test_path("first.h5"), *second = ls_test_path("second.h5");
    write_file(first);
    usleep(1100000); /* times are kept in seconds */
    write_file(second);
    size_t size, other_size;
    char *bytes = ls_test_read(first, &size), *other = ls_test_read(second, &other_size);
    assert_int_equal(size, other_size);
    assert_memory_equal(bytes, other, size);
    free(bytes);
    free(other);
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    const char *path = ls_test_path("absent.h5");
    write_file(path);
    struct ls_hdf5 *file = open_file(path);
    struct ls_error error = {0};
    struct ls_hdf5_names names;
    struct ls_hdf5_shape shape;
    float rows[6];
    int64_t value;
    char *text;
    assert_int_equal(ls_hdf5_list(file, "/diff", &names, &error), LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_hdf5_shape(file, "/data", &shape, &error), LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_hdf5_shape(file, "/learned_net", &shape, &error), LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_hdf5_read_rows(file, "/data/ip/0", 2, 2, rows, &error), LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_hdf5_read_integer(file, "/data/ip/0", &value, &error), LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_hdf5_read_string(file, "/iter", &text, &error), LOCKSTEP_WEIGHTS);
    char all[4096];
    ls_error_format(&error, all, sizeof all);
    assert_non_null(strstr(all, "has no group '/diff'"));
    assert_non_null(strstr(all, "'/data' is no array"));
    assert_non_null(strstr(all, "'/learned_net' holds no numbers"));
    assert_non_null(strstr(all, "'/data/ip/0' has fewer rows than were asked for"));
    assert_non_null(strstr(all, "'/data/ip/0' is not one number"));
    assert_non_null(strstr(all, "has no string '/iter'"));
    ls_hdf5_close(file);
}

/* A file that another program made, with the library itself. */
static hid_t make_foreign(const char *path)
{
    return H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

static void compressed_integers_and_doubles_are_read(void **state)
{
    (void)state;
    const char *path = ls_test_path("foreign.h5");
    hid_t id = make_foreign(path), made = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t extent[2] = {100, 1000}, chunk[2] = {10, 100};
    static double doubles[100][1000];
    for (int i = 0; i < 100; i++)
        doubles[i][7] = i;
    H5Pset_chunk(made, 2, chunk);
    H5Pset_deflate(made, 9);
    hid_t space = H5Screate_simple(2, extent, NULL);
    hid_t set = H5Dcreate2(id, "doubles", H5T_IEEE_F64BE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, doubles);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(id);
    struct ls_hdf5 *file = open_file(path);
    struct ls_error error = {0};
    static float row[1000];
    assert_int_equal(ls_hdf5_read_rows(file, "/doubles", 42, 1, row, &error), 0);
    assert_true(row[7] == 42);
    ls_hdf5_close(file);
}

/* Pieces with checksums that are too short to have one made the library read behind their ends. */
static void pieces_too_short_for_their_checksums_are_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("checked.h5");
    hid_t id = make_foreign(path), made = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t extent[2] = {20, 30}, chunk[2] = {4, 16}, short_one[2] = {8, 16};
    static float values[20][30];
    values[13][29] = 7;
    H5Pset_chunk(made, 2, chunk);
    H5Pset_deflate(made, 9);
    H5Pset_fletcher32(made);
    hid_t space = H5Screate_simple(2, extent, NULL);
    hid_t set = H5Dcreate2(id, "checked", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, made, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, short_one, 1, "x") >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(id);
    struct ls_hdf5 *file = open_file(path);
    struct ls_error error = {0};
    static float read[20][30];
    assert_int_equal(ls_hdf5_read_rows(file, "/checked", 12, 8, read[0], &error), 0);
    assert_true(read[1][29] == 7);
    assert_int_equal(ls_hdf5_read_rows(file, "/checked", 0, 8, read[0], &error), 0);
    assert_int_not_equal(ls_hdf5_read_rows(file, "/checked", 11, 2, read[0], &error), 0);
    assert_non_null(strstr(error.problems[0].message, "'/checked' is damaged"));
    assert_int_not_equal(ls_hdf5_read(file, "/checked", read[0], &error), 0);
    ls_hdf5_close(file);
}

static void what_leads_to_other_files_is_refused(void **state)
{
    (void)state;
    const char *other = ls_test_path("secret.h5");
    write_file(other);
    const char *path = ls_test_path("links.h5");
    hid_t id = make_foreign(path), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Lcreate_external(other, "/data/ip", id, "ip", H5P_DEFAULT, H5P_DEFAULT);
    hsize_t extent = 4;
    H5Pset_external(made, other, 0, 16);
    hid_t space = H5Screate_simple(1, &extent, NULL);
    H5Dclose(H5Dcreate2(id, "raw", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, made, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(id);
    struct ls_hdf5 *file = open_file(path);
    struct ls_error error = {0};
    struct ls_hdf5_shape shape;
    assert_int_equal(ls_hdf5_kind(file, "/ip"), LS_HDF5_OUTSIDE);
    assert_int_equal(ls_hdf5_kind(file, "/ip/0"), LS_HDF5_OUTSIDE);
    assert_int_equal(ls_hdf5_shape(file, "/raw", &shape, &error), LOCKSTEP_WEIGHTS);
    assert_non_null(strstr(error.problems[0].message, "lies in other files"));
    ls_hdf5_close(file);
}

/* An array of which nothing was written can have any extents. */
/* Soft links within a file, and h5py's booleans, an enumeration. */
static void links_within_the_file_and_booleans_are_read(void **state)
{
    (void)state;
    const char *path = ls_test_path("links.h5");
    static const int8_t values[3] = {1, 0, 1};
    const int8_t no = 0, yes = 1;
    const hsize_t extent = 3;
    hid_t id = make_foreign(path), type = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    hid_t space = H5Screate_simple(1, &extent, NULL);
    hid_t group = H5Gcreate2(id, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t set = H5Dcreate2(group, "flags", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Lcreate_soft("flags", group, "again", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/g/again", id, "link", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/g", id, "folder", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("circle", id, "circle", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nothing", id, "dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(set);
    H5Gclose(group);
    H5Sclose(space);
    H5Tclose(type);
    H5Fclose(id);
    struct ls_hdf5 *file;
    assert_int_equal(ls_hdf5_open(path, LOCKSTEP_DATA, &file, NULL), 0);
    static const char *const names[] = {"/g/flags", "/link", "/folder/flags", "/folder/again"};
    for (int i = 0; i < 4; i++) {
        float out[3] = {-1, -1, -1};
        assert_int_equal(ls_hdf5_read(file, names[i], out, NULL), 0);
        assert_true(out[0] == 1 && out[1] == 0 && out[2] == 1);
    }
    assert_int_equal(ls_hdf5_kind(file, "/circle"), LS_HDF5_OUTSIDE);
    assert_int_equal(ls_hdf5_kind(file, "/dangling"), LS_HDF5_OUTSIDE);
    assert_int_equal(ls_hdf5_kind(file, "/absent"), LS_HDF5_ABSENT);
    assert_true(ls_hdf5_is_link(file, "/folder") && !ls_hdf5_is_link(file, "/g"));
    ls_hdf5_close(file);
}

/* A filter that the library does not have is named. */
static void unknown_filters_are_named(void **state)
{
    (void)state;
    const char *path = ls_test_path("lzf.h5");
    const hsize_t extent = 8;
    hid_t id = make_foreign(path), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(made, 1, &extent);
    H5Pset_filter(made, 32000, H5Z_FLAG_OPTIONAL, 0, NULL);
    hid_t space = H5Screate_simple(1, &extent, NULL);
    H5Dclose(H5Dcreate2(id, "x", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, made, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(id);
    struct ls_hdf5 *file;
    struct ls_hdf5_shape shape;
    static struct ls_error error;
    assert_int_equal(ls_hdf5_open(path, LOCKSTEP_DATA, &file, NULL), 0);
    assert_int_equal(ls_hdf5_shape(file, "/x", &shape, &error), LOCKSTEP_DATA);
    assert_non_null(strstr(error.problems[0].message, "compressed by filter 32000, lzf, which"));
    ls_hdf5_close(file);
}

static void extents_beyond_the_file_are_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("large.h5");
    hid_t id = make_foreign(path), made = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t extent[2] = {1 << 30, 1 << 20}, chunk[2] = {1, 16};
    H5Pset_chunk(made, 2, chunk);
    H5Pset_deflate(made, 9);
    hid_t space = H5Screate_simple(2, extent, NULL);
    H5Dclose(H5Dcreate2(id, "large", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, made, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(id);
    struct ls_hdf5 *file = open_file(path);
    struct ls_error error = {0};
    struct ls_hdf5_shape shape;
    assert_int_equal(ls_hdf5_shape(file, "/large", &shape, &error), LOCKSTEP_WEIGHTS);
    assert_non_null(strstr(error.problems[0].message, "fewer numbers than its extents say"));
    ls_hdf5_close(file);
}

static void files_cut_off_are_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("whole.h5");
    write_file(path);
    size_t size;
    char *bytes = ls_test_read(path, &size);
    for (size_t kept = 0; kept < size; kept += 97) {
        const char *cut = ls_test_path("cut.h5");
        ls_test_write(cut, bytes, kept);
        struct ls_error error = {0};
        struct ls_hdf5 *file;
        if (ls_hdf5_open(cut, LOCKSTEP_WEIGHTS, &file, &error) != LOCKSTEP_WEIGHTS)
            fail_msg("%zu of %zu bytes", kept, size);
        assert_null(file);
    }
    free(bytes);
}

/* Whatever a byte becomes, reading ends with numbers or a message. */
static void damaged_files_are_refused_or_read(void **state)
{
    (void)state;
    const char *path = ls_test_path("sound.h5"), *damaged = ls_test_path("damaged.h5");
    write_file(path);
    size_t size, refused = 0;
    char *bytes = ls_test_read(path, &size);
    for (size_t at = 0; at < size; at++) {
        char kept = bytes[at];
        bytes[at] = (char)(kept ^ (1 << at % 8) ^ (at % 3 == 0 ? 0x7f : 0));
        ls_test_write(damaged, bytes, size);
        bytes[at] = kept;
        struct ls_error error = {0};
        struct ls_hdf5 *file;
        if (ls_hdf5_open(damaged, LOCKSTEP_WEIGHTS, &file, &error) != 0) {
            refused++;
            continue;
        }
        struct ls_hdf5_names names;
        struct ls_hdf5_shape shape;
        if (ls_hdf5_list(file, "/data", &names, &error) == 0)
            ls_hdf5_names_free(&names);
        float numbers_read[64];
        int64_t value;
        char *text;
        if (ls_hdf5_shape(file, "/data/ip/0", &shape, &error) == 0 && shape.count <= 64)
            (void)ls_hdf5_read(file, "/data/ip/0", numbers_read, &error);
        (void)ls_hdf5_read_integer(file, "/iter", &value, &error);
        if (ls_hdf5_read_string(file, "/learned_net", &text, &error) == 0)
            ls_free(text);
        refused += error.count > 0;
        ls_hdf5_close(file);
    }
    free(bytes);
    assert_true(refused > 100);
}

static void what_cannot_be_written_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = ls_test_path("old.h5");
    write_file(path);
    struct ls_error error = {0};
    struct ls_hdf5 *file;
    assert_int_equal(ls_hdf5_create(path, &file, &error), 0);
    assert_int_equal(ls_hdf5_add_integer(file, "/iter", 1, &error), 0);
    assert_int_equal(ls_hdf5_add_integer(file, "/iter", 2, &error), LOCKSTEP_RESOURCE);
    ls_hdf5_abandon(file);
    file = open_file(path);
    assert_int_equal(ls_hdf5_kind(file, "/data/ip/0"), LS_HDF5_ARRAY);
    ls_hdf5_close(file);
    assert_int_equal(ls_hdf5_create("/absent/folder/x.h5", &file, &error), LOCKSTEP_RESOURCE);
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(bytes_follow_from_the_contents),
        cmocka_unit_test(what_is_not_there_is_said),
        cmocka_unit_test(compressed_integers_and_doubles_are_read),
        cmocka_unit_test(pieces_too_short_for_their_checksums_are_refused),
        cmocka_unit_test(what_leads_to_other_files_is_refused),
        cmocka_unit_test(extents_beyond_the_file_are_refused),
        cmocka_unit_test(links_within_the_file_and_booleans_are_read),
        cmocka_unit_test(unknown_filters_are_named),
        cmocka_unit_test(files_cut_off_are_refused),
        cmocka_unit_test(damaged_files_are_refused_or_read),
        cmocka_unit_test(what_cannot_be_written_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
