/* Weights in Caffe's HDF5, and from one format to another.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <hdf5.h>

#include "snapshot/caffemodel_hdf5.h"
#include "snapshot/prune.h"
#include "snapshot/weights_convert.h"
#include "weight_trial.h"

/* ---- Reading --------------------------------------------------------------------------------- */

/* An array as H5LTmake_dataset_float makes it. */
static void put(hid_t group, const char *name, int rank, const hsize_t *extents)
{
    hid_t space = H5Screate_simple(rank, extents, NULL);
    hid_t set =
        H5Dcreate2(group, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, sequence) >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

static hid_t put_group(hid_t where, const char *name)
{
    return H5Gcreate2(where, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
}

/* Written with the library as Caffe's Net::ToHDF5 does it: "ip" with two blobs, "relu" with none,
 * "twin", whose weight is ip's. */
static const char *write_caffes(void)
{
    const char *path = ls_test_path("net.caffemodel.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t data = put_group(file, "data"), ip = put_group(data, "ip"),
          twin = put_group(data, "twin");
    H5Gclose(put_group(data, "relu"));
    put(ip, "0", 2, (const hsize_t[]){2, 3});
    put(ip, "1", 1, (const hsize_t[]){2});
    put(twin, "1", 1, (const hsize_t[]){2});
    H5Gclose(twin);
    H5Gclose(ip);
    H5Gclose(data);
    H5Fclose(file);
    return path;
}

static void hdf5_of_caffe_fills_a_net(void **state)
{
    (void)state;
    struct ls_weights weights;
    struct ls_weights_report report = {0};
    struct ls_error error = {0};
    struct sink sink = {0};
    want(&sink, "ip", 0, 2, SHAPE2(2, 3));
    want(&sink, "ip", 1, 2, SHAPE1(2));
    want(&sink, "twin", 0, 2, SHAPE2(2, 3));
    sink.targets[2].shared = true;
    sink.targets[2].parameter = 0;
    want(&sink, "twin", 1, 2, SHAPE1(2));
    want(&sink, "fresh", 0, 1, SHAPE1(2));
    assert_int_equal(ls_weights_read(write_caffes(), LS_WEIGHTS_BEST, &weights, &error), 0);
    assert_int_equal(ls_weights_apply(&weights, sink.targets, sink.count, false, &report, &error),
                     0);
    assert_memory_equal(sink.stored[0], sequence, 6 * sizeof(float));
    assert_memory_equal(sink.stored[1], sequence, 2 * sizeof(float));
    assert_int_equal(sink.times[2], 0);
    assert_memory_equal(sink.stored[3], sequence, 2 * sizeof(float));
    /* A net that wants the twin's own weight finds too few blobs, and another shape is another. */
    sink.targets[2].shared = false;
    sink.targets[2].parameter = 2;
    sink.targets[0].shape = SHAPE2(3, 2);
    assert_int_equal(ls_weights_apply(&weights, sink.targets, sink.count, false, &report, &error),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(error.count, 2);
    assert_non_null(strstr(error.problems[0].message,
                           "blob 0 of layer 'ip' has shape 2 3 (6) in the file and 3 2 (6)"));
    assert_non_null(strstr(error.problems[0].hint, "'ip_new'"));
    assert_non_null(strstr(error.problems[1].message, "'twin' has 1 blobs"));
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

static void refuse(const char *path, const char *say)
{
    struct ls_weights weights;
    struct ls_error error = {0};
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), LOCKSTEP_WEIGHTS);
    char text[2048];
    ls_error_format(&error, text, sizeof text);
    if (strstr(text, say) == NULL)
        fail_msg("'%s' is not in '%s'", say, text);
}

static void other_hdf5_is_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("other.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    refuse(path, "has no group '/data'");
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(put_group(file, "history"));
    H5Fclose(file);
    refuse(path, "solverstate");
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t data = put_group(file, "data");
    put(data, "3", 1, (const hsize_t[]){1}); /* beside the layers, not in one */
    H5Gclose(data);
    H5Fclose(file);
    refuse(path, "no layer with weights");
    /* A group that holds itself. */
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    data = put_group(file, "data");
    H5Lcreate_hard(file, "/data", data, "again", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/data", data, "and again", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(data);
    H5Fclose(file);
    refuse(path, "more groups than a net has layers");
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    data = put_group(file, "data");
    hid_t ip = put_group(data, "ip");
    put(ip, "70", 1, (const hsize_t[]){1});
    H5Gclose(ip);
    H5Gclose(data);
    H5Fclose(file);
    refuse(path, "more than 64 blobs");
}

/* ---- Writing and converting ------------------------------------------------------------------ */

/* Blobs of layers whose names have slashes, with gradients. */
static void written_hdf5_reads_back(void **state)
{
    (void)state;
    const struct ls_caffemodel_blob blobs[3] = {{SHAPE2(2, 3), sequence, sequence + 1, false},
                                                {SHAPE1(2), sequence + 6, sequence, false},
                                                {SHAPE1(2), sequence, sequence, true}};
    const struct ls_caffemodel_layer layers[2] = {
        {.name = "a/1x1", .type = "InnerProduct", .blobs = blobs, .blob_count = 2},
        {.name = "a", .type = "InnerProduct", .blobs = blobs + 2, .blob_count = 1}};
    const char *path = ls_test_path("written.caffemodel.h5");
    struct ls_error error = {0};
    assert_int_equal(ls_caffemodel_write_hdf5(path, layers, 2, true, &error), 0);
    struct ls_weights weights;
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), 0);
    assert_int_equal(weights.layer_count, 1); /* the other one's blob is shared */
    assert_string_equal(weights.layers[0].name, "a/1x1");
    assert_int_equal(weights.layers[0].blob_count, 2);
    assert_memory_equal(weights.layers[0].blobs[0].data, sequence, 6 * sizeof(float));
    ls_weights_free(&weights);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "/diff/a/1x1/0", H5P_DEFAULT);
    float gradient[6];
    assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, gradient) >= 0);
    assert_memory_equal(gradient, sequence + 1, sizeof gradient);
    H5Dclose(set);
    H5Fclose(file);
}

static void take_line(void *user, const char *line)
{
    snprintf(user, 512, "%s", line);
}

static int convert(const char *from, const char *to, char *line, struct ls_error *error)
{
    ls_error_clear(error);
    line[0] = '\0';
    return ls_weights_convert(from, to, NULL, take_line, line, error);
}

/* Around through all formats, and back at the same bytes. */
static void conversions_keep_every_number(void **state)
{
    (void)state;
    const char *first = ls_test_path("first.safetensors"), *last = ls_test_path("last.safetensors");
    const char *caffemodel = ls_test_path("x.caffemodel"), *hdf5 = ls_test_path("x.caffemodel.h5");
    struct ls_error error = {0};
    char line[512];
    assert_int_equal(convert(write_caffes(), caffemodel, line, &error), LOCKSTEP_WEIGHTS);
    assert_non_null(strstr(error.problems[0].message, "blob 0 of layer 'twin' is not there"));
    assert_int_equal(convert(write_v2(), hdf5, line, &error), 0);
    assert_int_equal(convert(hdf5, first, line, &error), 0);
    assert_int_equal(convert(first, caffemodel, line, &error), 0);
    assert_int_equal(convert(caffemodel, last, line, &error), 0);
    assert_string_equal(line, "");
    size_t size, other_size;
    char *bytes = ls_test_read(first, &size), *other = ls_test_read(last, &other_size);
    assert_int_equal(size, other_size);
    assert_memory_equal(bytes, other, size);
    free(bytes);
    free(other);
    struct ls_weights weights;
    assert_int_equal(ls_weights_read(last, LS_WEIGHTS_BEST, &weights, &error), 0);
    assert_string_equal(weights.layers[0].name, "ip");
    assert_memory_equal(weights.layers[0].blobs[0].data, sequence, 6 * sizeof(float));
    ls_weights_free(&weights);
}

static void what_only_a_net_can_tell_is_an_error(void **state)
{
    (void)state;
    struct ls_error error = {0};
    char line[512];
    const char *to = ls_test_path("to.caffemodel.h5");
    assert_int_equal(convert(write_v0(), to, line, &error), LOCKSTEP_WEIGHTS);
    assert_int_equal(convert(write_v1(), to, line, &error), LOCKSTEP_WEIGHTS);
    assert_non_null(strstr(error.problems[0].message, "blob 0 of layer 'ip' has four extents"));
    assert_non_null(strstr(error.problems[0].hint, "--model"));
    assert_int_equal(convert(write_v2(), ls_test_path("to.onnx"), line, &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].hint, ".safetensors"));
}

/* Two layers, each with a weight of 2 x 3 (`empty`: the first with none), of these names. */
static const char *write_two(const char *first, const char *second, bool empty)
{
    const char *names[2] = {first, second};
    struct ls_text net = {0};
    for (int i = 0; i < 2; i++) {
        struct ls_text layer = {0}, weight = {0}, shape = {0};
        ls_wire_add_bytes(&shape, 1, "\2\3", 2);
        add_message(&weight, 7, &shape);
        ls_wire_add_bytes(&weight, 5, sequence, 6 * sizeof(float));
        ls_wire_add_bytes(&layer, 1, names[i], strlen(names[i]));
        if (i == 1 || !empty)
            add_message(&layer, 7, &weight);
        else
            ls_text_free(&weight);
        add_message(&net, 100, &layer);
    }
    const char *path = ls_test_path("two.caffemodel");
    write_text(path, &net);
    return path;
}

/* Names of layers from other programs: what two layers or a format cannot have is refused as a
 * fault of the weights by all that reads or writes them. */
static void names_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        bool empty, read, hdf5, safetensors;
    } cases[] = {
        {"ip", "ip", false, false, false, false},   {"ip", "ip", true, true, true, true},
        {"", "ip", false, false, false, false},     {"", "ip", true, true, true, true},
        {"IP", "ip", false, true, true, true},      {"a/b", "a/c", false, true, true, true},
        {"ip/0", "ip", false, true, false, true},   {"ip", "ip/0", false, true, false, true},
        {"ip", "ip/0/a", false, true, false, true}, {"/ip", "ip", false, true, false, true},
        {"a//b", "a/b", false, true, false, true},  {".", "ip", false, true, false, true},
        {"a/./b", "ip", false, true, false, true},  {"ip/", "ip", false, true, false, true},
        {"\377", "ip", false, true, true, false},   {"state", "ip", false, true, true, false},
    };
    const struct ls_prune_request half = {.sparsity = 0.5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = write_two(cases[i].first, cases[i].second, cases[i].empty);
        struct ls_weights weights;
        struct ls_error error = {0};
        char line[512];
        int64_t all, masked;
        assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error),
                         cases[i].read ? 0 : LOCKSTEP_WEIGHTS);
        ls_weights_free(&weights);
        assert_int_equal(convert(path, ls_test_path("named.h5"), line, &error),
                         cases[i].hdf5 ? 0 : LOCKSTEP_WEIGHTS);
        assert_int_equal(convert(path, ls_test_path("named.safetensors"), line, &error),
                         cases[i].safetensors ? 0 : LOCKSTEP_WEIGHTS);
        ls_error_clear(&error);
        int status = ls_prune(path, ls_test_path("mask.safetensors"), &half, &all, &masked, &error);
        assert_true(status == 0 || status == LOCKSTEP_WEIGHTS);
        assert_true(status == 0 || !cases[i].read || !cases[i].safetensors);
    }
}

static void add(struct ls_archive *archive, const char *name, struct ls_shape shape, int at)
{
    assert_int_equal(ls_archive_add(archive, name, LS_F32, &shape, sequence + at, NULL), 0);
}

/* Names of tensors become numbers of blobs, whatever their order. */
static void named_tensors_become_numbered_blobs(void **state)
{
    (void)state;
    struct ls_archive archive = {0};
    struct ls_error error = {0};
    char line[512];
    const char *from = ls_test_path("named.safetensors"), *to = ls_test_path("named.caffemodel");
    add(&archive, "norm.bias", SHAPE1(1), 4);
    add(&archive, "norm.scale", SHAPE1(1), 3);
    add(&archive, "norm.factor", SHAPE1(1), 2);
    add(&archive, "norm.variance", SHAPE1(1), 1);
    add(&archive, "norm.mean", SHAPE1(1), 0);
    add(&archive, "bn.mean", SHAPE1(1), 2);
    add(&archive, "bn.variance", SHAPE1(1), 3);
    add(&archive, "bn.bias", SHAPE1(1), 1);
    add(&archive, "bn.scale", SHAPE1(1), 0);
    add(&archive, "optimizer.step", SHAPE1(1), 0);
    assert_int_equal(ls_archive_write(&archive, from, NULL), 0);
    assert_int_equal(convert(from, to, line, &error), 0);
    assert_non_null(strstr(line, "'optimizer.step'"));
    struct ls_weights weights;
    assert_int_equal(ls_weights_read(to, LS_WEIGHTS_BEST, &weights, &error), 0);
    for (int layer = 0; layer < 2; layer++) {
        assert_int_equal(weights.layers[layer].blob_count, layer == 0 ? 5 : 4);
        for (int i = 0; i < weights.layers[layer].blob_count; i++)
            assert_true(weights.layers[layer].blobs[i].data[0] == sequence[i]);
    }
    ls_weights_free(&weights);
    ls_archive_free(&archive);
    add(&archive, "bias.bias", SHAPE1(1), 4);
    assert_int_equal(ls_archive_write(&archive, from, NULL), 0);
    assert_int_equal(convert(from, to, line, &error), LOCKSTEP_WEIGHTS);
    assert_non_null(strstr(error.problems[0].message, "'bias' of layer 'bias' does not say"));
    ls_archive_free(&archive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hdf5_of_caffe_fills_a_net),
        cmocka_unit_test(other_hdf5_is_refused),
        cmocka_unit_test(written_hdf5_reads_back),
        cmocka_unit_test(conversions_keep_every_number),
        cmocka_unit_test(what_only_a_net_can_tell_is_an_error),
        cmocka_unit_test(names_that_cannot_be_are_refused),
        cmocka_unit_test(named_tensors_become_numbered_blobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
