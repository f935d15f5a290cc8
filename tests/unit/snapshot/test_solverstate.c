/* Caffe's solver states.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/solverstate.h"

#include <hdf5.h>

#include "weight_trial.h"

static void check_sample(const struct ls_solverstate *state)
{
    assert_int_equal(state->iteration, 300);
    assert_int_equal(state->current_step, 2);
    assert_string_equal(state->learned_net, "nets/x_iter_300.caffemodel");
    assert_int_equal(state->history.layer_count, 12);
    for (size_t i = 0; i < 12; i++) {
        const struct ls_weight_blob *blob = &state->history.layers[i].blobs[0];
        assert_int_equal(state->history.layers[i].blob_count, 1);
        assert_int_equal(blob->shape.rank, i == 0 ? 2 : 1);
        assert_true(blob->data[0] == sequence[i]);
    }
}

/* Twelve blobs: the names of ten and eleven do not come last in the order of bytes. */
static const char *write_sample(const char *name)
{
    struct ls_caffemodel_blob history[12] = {{.shape = SHAPE2(2, 3), .data = sequence}};
    struct ls_solverstate_draft draft = {.iteration = 300,
                                         .current_step = 2,
                                         .learned_net = "nets/x_iter_300.caffemodel",
                                         .history = history,
                                         .count = 12};
    for (int i = 1; i < 12; i++)
        history[i] = (struct ls_caffemodel_blob){.shape = SHAPE1(1), .data = sequence + i};
    const char *path = ls_test_path(name);
    assert_int_equal(ls_solverstate_write(path, &draft, NULL), 0);
    return path;
}

static void both_forms_read_back(void **state)
{
    (void)state;
    static const char *const names[2] = {"x.solverstate", "x.solverstate.h5"};
    for (int i = 0; i < 2; i++) {
        struct ls_solverstate read;
        struct ls_error error = {0};
        const char *path = write_sample(names[i]);
        assert_true(ls_solverstate_named(path));
        assert_int_equal(ls_solverstate_read(path, &read, &error), 0);
        check_sample(&read);
        ls_solverstate_free(&read);
    }
    assert_false(ls_solverstate_named("x.caffemodel.h5"));
    assert_false(ls_solverstate_named("x.safetensors"));
}

/* As Caffe's hdf5_save_int, hdf5_save_string and hdf5_save_nd_dataset make it. */
static void hdf5_of_caffe_is_read(void **state)
{
    (void)state;
    const char *path = ls_test_path("caffe.solverstate.h5");
    const hsize_t one = 1, two = 2;
    const int numbers[2] = {7000, 3};
    const char *names[2] = {"iter", "current_step"};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 2; i++) {
        hid_t space = H5Screate_simple(1, &one, NULL);
        hid_t set = H5Dcreate2(file, names[i], H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT,
                               H5P_DEFAULT);
        H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &numbers[i]);
        H5Dclose(set);
        H5Sclose(space);
    }
    hid_t type = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
    H5Tset_size(type, 6);
    hid_t text =
        H5Dcreate2(file, "learned_net", type, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(text, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, "n.h5\0");
    H5Dclose(text);
    H5Sclose(scalar);
    H5Tclose(type);
    hid_t group = H5Gcreate2(file, "history", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &two, NULL);
    hid_t set =
        H5Dcreate2(group, "0", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, sequence + 4);
    H5Dclose(set);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
    struct ls_solverstate read;
    struct ls_error error = {0};
    assert_int_equal(ls_solverstate_read(path, &read, &error), 0);
    assert_int_equal(read.iteration, 7000);
    assert_int_equal(read.current_step, 3);
    assert_string_equal(read.learned_net, "n.h5");
    assert_int_equal(read.history.layer_count, 1);
    assert_true(read.history.layers[0].blobs[0].data[1] == 5);
    ls_solverstate_free(&read);
}

/* What Caffe itself wrote in 2014. */
static void the_state_of_a_training_of_2014_is_read(void **state)
{
    (void)state;
    const char *path =
        ls_test_data_or_skip("caffemodels/bvlc_examples_2014/lenet_iter_10000.solverstate");
    static const int64_t sizes[8] = {500, 20, 25000, 50, 400000, 500, 5000, 10};
    struct ls_solverstate read;
    struct ls_error error = {0};
    assert_int_equal(ls_solverstate_read(path, &read, &error), 0);
    assert_int_equal(read.iteration, 10000);
    assert_non_null(strstr(read.learned_net, "lenet_iter_10000"));
    assert_int_equal(read.history.layer_count, 8);
    for (int i = 0; i < 8; i++) {
        assert_true(read.history.layers[i].blobs[0].legacy);
        assert_int_equal(ls_shape_size(&read.history.layers[i].blobs[0].shape), sizes[i]);
    }
    ls_solverstate_free(&read);
}

static void refuse(const char *path, const char *say)
{
    struct ls_solverstate read;
    struct ls_error error = {0};
    assert_int_equal(ls_solverstate_read(path, &read, &error), LOCKSTEP_WEIGHTS);
    assert_null(read.history.layers);
    if (strstr(error.problems[0].message, say) == NULL)
        fail_msg("'%s' is not in '%s'", say, error.problems[0].message);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    refuse(memory_file("", 0), "no solver state");
    refuse(memory_file("name: \"net\"", 11), "no solver state");
    refuse(memory_file("\x12\x01x", 3), "no solver state"); /* no iteration */
    refuse(memory_file("\x08\x01\x12\x02x\0", 6), "no solver state");
    refuse(memory_file("\x08\x01\x1a\x05\x2a\x03xyz", 9), "layer '0' cannot be read");
    refuse(memory_file("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), "of iteration -1");
    refuse(write_v2(), "no solver state");
    struct ls_error error = {0};
    struct ls_solverstate read;
    const char *path = ls_test_path("weights.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    refuse(path, "has no '/iter'");
    assert_int_equal(ls_solverstate_read("/absent", &read, &error), LOCKSTEP_WEIGHTS);
}

/* No cut and no flipped bit may crash the reader. */
static void damaged_states_crash_nothing(void **state)
{
    (void)state;
    size_t size;
    char *bytes = ls_test_read(write_sample("sound.solverstate"), &size);
    for (size_t at = 0; at < size; at++) {
        struct ls_solverstate read;
        (void)ls_solverstate_read(memory_file(bytes, at), &read, NULL);
        ls_solverstate_free(&read);
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] = (char)(bytes[at] ^ 1 << bit);
            int status = ls_solverstate_read(memory_file(bytes, size), &read, NULL);
            assert_true(status == 0 || status == LOCKSTEP_WEIGHTS);
            ls_solverstate_free(&read);
            bytes[at] = (char)(bytes[at] ^ 1 << bit);
        }
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_read_back),
        cmocka_unit_test(hdf5_of_caffe_is_read),
        cmocka_unit_test(the_state_of_a_training_of_2014_is_read),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(damaged_states_crash_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
