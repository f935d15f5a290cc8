/* Files of weights that are refused, and caffemodels that are written.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "weight_trial.h"

/* ---- Bad files ---- */

static void expect_refused(const void *bytes, size_t size, const char *say)
{
    const char *path = memory_file(bytes, size);
    struct ls_weights weights;
    struct ls_error error = {0};
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), LOCKSTEP_WEIGHTS);
    assert_string_equal(error.problems[0].place, path);
    char text[2048];
    ls_error_format(&error, text, sizeof text);
    if (strstr(text, say) == NULL)
        fail_msg("'%s' is not in '%s'", say, text);
}

static void other_kinds_of_files_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused("", 0, "is empty");
    expect_refused("\x89HDF\r\n\x1a\n....", 12, "HDF5");
    expect_refused("PK\x03\x04....", 8, "zip");
    expect_refused("\x1f\x8b......", 8, "gunzip");
    expect_refused("name: \"LeNet\"\nlayer {\n", 22,
                   "neither safetensors nor a caffemodel nor HDF5");
    expect_refused("version https://git-lfs.github.com/spec/v1\n", 43, "git lfs pull");
    expect_refused("\x0a\x03net", 5, "no layer with weights");
    expect_refused("\x08\x64\x12\x01x", 5, "solverstate");
    expect_refused("\x02\0\0\0\0\0\0\0{}", 10, "no tensor");
    struct ls_error error = {0};
    struct ls_weights weights;
    assert_int_equal(ls_weights_read("/nonexistent", LS_WEIGHTS_BEST, &weights, &error),
                     LOCKSTEP_WEIGHTS);
    assert_string_equal(error.problems[0].place, "/nonexistent");
}

/* Puts a blob into a net and expects the reader to refuse it. */
static void refuse_blob(struct ls_text *blob, const char *say)
{
    struct ls_text layer = {0}, net = {0};
    ls_wire_add_bytes(&layer, 1, "ip", 2);
    add_message(&layer, 7, blob);
    add_message(&net, 100, &layer);
    expect_refused(net.data, net.length, say);
    ls_text_free(&net);
}

static void malformed_blobs_are_refused(void **state)
{
    (void)state;
    struct ls_text blob = {0}, shape = {0};
    add_number(&blob, 1, 1); /* channels and so on are 0, as in Caffe */
    ls_wire_add_bytes(&blob, 5, sequence, 4);
    refuse_blob(&blob, "1 numbers");

    ls_wire_add_bytes(&shape, 1, "\x02\x03", 2);
    add_message(&blob, 7, &shape);
    ls_wire_add_bytes(&blob, 5, sequence, 20);
    refuse_blob(&blob, "blob 0 of layer 'ip' has shape 2 3 (6) and 5 numbers");

    ls_wire_add_bytes(&blob, 5, sequence, 7); /* not a whole number of floats */
    refuse_blob(&blob, "layer 'ip' cannot be read");

    add_number(&shape, 1, UINT64_MAX); /* -1 */
    add_message(&blob, 7, &shape);
    refuse_blob(&blob, "impossible shape");

    add_number(&shape, 1, UINT64_C(1) << 62);
    add_number(&shape, 1, 4);
    add_message(&blob, 7, &shape);
    refuse_blob(&blob, "impossible shape");

    add_number(&shape, 1, UINT64_C(1) << 40); /* much memory for a short file */
    add_message(&blob, 7, &shape);
    refuse_blob(&blob, "and 0 numbers");

    ls_wire_add_bytes(&shape, 1, "\1\1\1\1\1\1\1\1\1", 9);
    add_message(&blob, 7, &shape);
    refuse_blob(&blob, "cannot be read");
}

/* No prefix of a caffemodel and no flipped bit may crash the reader; a prefix is noticed unless it
 * ends between two layers. */
static void damaged_caffemodels_crash_nothing(void **state)
{
    (void)state;
    const char *paths[3] = {write_v0(), write_v1(), write_v2()};
    for (int p = 0; p < 3; p++) {
        size_t size;
        char *file = ls_test_read(paths[p], &size);
        for (size_t at = 0; at < size; at++) {
            struct ls_weights weights;
            const char *bad = memory_file(file, at);
            assert_int_equal(ls_weights_read(bad, LS_WEIGHTS_BEST, &weights, NULL),
                             LOCKSTEP_WEIGHTS);
            for (int bit = 0; bit < 8; bit++) {
                file[at] = (char)(file[at] ^ 1 << bit);
                bad = memory_file(file, size);
                int status = ls_weights_read(bad, LS_WEIGHTS_BEST, &weights, NULL);
                assert_true(status == 0 || status == LOCKSTEP_WEIGHTS);
                ls_weights_free(&weights);
                file[at] = (char)(file[at] ^ 1 << bit);
            }
        }
        free(file);
    }
}

static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    const char *path = write_v1();
    int failures = 0;
    for (long n = 0;; n++) {
        struct ls_weights weights;
        ls_fail_allocation_after(n);
        int status = ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL);
        ls_fail_allocation_after(-1);
        ls_weights_free(&weights);
        if (status == 0)
            break;
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        failures++;
    }
    assert_true(failures >= 6);
}

/* ---- Writing ---- */

static void written_caffemodels_read_back(void **state)
{
    (void)state;
    static const char *const names[2] = {"data", "ip"};
    const struct ls_caffemodel_blob blobs[3] = {{.shape = SHAPE2(2, 3), .data = sequence},
                                                {.shape = SHAPE1(2), .data = sequence + 6},
                                                {.shape = {0, {0}}, .data = sequence + 8}};
    const struct ls_caffemodel_layer layers[3] = {
        {.name = "data", .type = "Data", .tops = names, .top_count = 1},
        {.name = "ip",
         .type = "InnerProduct",
         .bottoms = names,
         .bottom_count = 1,
         .tops = names + 1,
         .top_count = 1,
         .blobs = blobs,
         .blob_count = 2},
        {.name = "prelu", .type = "PReLU", .blobs = blobs + 2, .blob_count = 1}};
    const char *path = ls_test_path("written.caffemodel");
    const char *again = ls_test_path("again.caffemodel");
    struct ls_error error = {0};
    assert_int_equal(ls_caffemodel_write(path, "net", layers, 3, &error), 0);
    assert_int_equal(ls_caffemodel_write(again, "net", layers, 3, &error), 0);
    size_t size[2];
    char *a = ls_test_read(path, &size[0]), *b = ls_test_read(again, &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, size[0]);
    free(a);
    free(b);

    struct ls_weights weights;
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), 0);
    assert_int_equal(weights.layer_count, 3);
    assert_int_equal(weights.layers[0].blob_count, 0);
    assert_string_equal(weights.layers[1].name, "ip");
    assert_int_equal(weights.layers[1].blob_count, 2);
    for (int i = 0; i < 2; i++) {
        const struct ls_weight_blob *blob = &weights.layers[1].blobs[i];
        assert_true(ls_shape_equal(&blob->shape, &blobs[i].shape));
        assert_false(blob->legacy);
        assert_memory_equal(blob->data, blobs[i].data,
                            (size_t)ls_shape_size(&blob->shape) * sizeof(float));
    }
    assert_int_equal(weights.layers[2].blobs[0].shape.rank, 0);
    assert_true(weights.layers[2].blobs[0].data[0] == 8);
    ls_weights_free(&weights);
}

/* Kernels over three axes: five extents in both kinds of files. */
static void blobs_of_five_extents_survive_both_formats(void **state)
{
    (void)state;
    const struct ls_shape shape = {5, {2, 1, 3, 1, 2}}, other = {5, {2, 1, 3, 2, 1}};
    const struct ls_caffemodel_blob blob = {.shape = shape, .data = sequence};
    const struct ls_caffemodel_layer layer = {
        .name = "c", .type = "Convolution", .blobs = &blob, .blob_count = 1};
    struct ls_archive archive = {0};
    const char *paths[2] = {ls_test_path("volume.caffemodel"), ls_test_path("volume.safetensors")};
    assert_int_equal(ls_caffemodel_write(paths[0], "net", &layer, 1, NULL), 0);
    assert_int_equal(ls_archive_add(&archive, "c.weight", LS_F32, &shape, sequence, NULL), 0);
    assert_int_equal(ls_archive_write(&archive, paths[1], NULL), 0);
    ls_archive_free(&archive);
    for (int i = 0; i < 2; i++)
        for (int turn = 0; turn < 2; turn++) {
            struct ls_weights weights;
            struct ls_weights_report report = {0};
            struct sink sink = {0};
            want(&sink, "c", 0, 1, turn == 0 ? shape : other);
            assert_int_equal(ls_weights_read(paths[i], LS_WEIGHTS_BEST, &weights, NULL), 0);
            assert_true(ls_shape_equal(&weights.layers[0].blobs[0].shape, &shape));
            int status = ls_weights_apply(&weights, sink.targets, 1, false, &report, NULL);
            assert_int_equal(status, turn == 0 ? 0 : LOCKSTEP_WEIGHTS);
            if (turn == 0)
                assert_memory_equal(sink.stored[0], sequence, 12 * sizeof(float));
            ls_weights_report_free(&report);
            ls_weights_free(&weights);
        }
}

static void caffemodels_of_2_gib_are_refused(void **state)
{
    (void)state;
    const struct ls_caffemodel_blob blob = {.shape = SHAPE1(600000000)};
    const struct ls_caffemodel_layer layer = {
        .name = "ip", .type = "InnerProduct", .blobs = &blob, .blob_count = 1};
    const char *path = ls_test_path("large.caffemodel");
    struct ls_error error = {0};
    assert_int_equal(ls_caffemodel_write(path, "net", &layer, 1, &error), LOCKSTEP_RESOURCE);
    assert_non_null(strstr(error.problems[0].message, "2 GiB"));
    assert_false(ls_file_exists(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_kinds_of_files_are_refused_by_name),
        cmocka_unit_test(malformed_blobs_are_refused),
        cmocka_unit_test(damaged_caffemodels_crash_nothing),
        cmocka_unit_test(out_of_memory_is_an_error),
        cmocka_unit_test(written_caffemodels_read_back),
        cmocka_unit_test(blobs_of_five_extents_survive_both_formats),
        cmocka_unit_test(caffemodels_of_2_gib_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
