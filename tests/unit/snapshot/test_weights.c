/* Reading weights of every form, and giving them to nets.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/wire.h"
#include "snapshot/caffemodel.h"
#include "snapshot/weights.h"
#include "support/support.h"

#include "memory_file.h"

/* ---- Targets that write down what they get ---- */

enum { MOST = 16 };
struct sink {
    struct ls_weight_target targets[MOST];
    float stored[MOST][64];
    int times[MOST];
    size_t count;
};

static int store(void *user, const struct ls_weight_target *target, const float *data,
                 struct ls_error *error)
{
    (void)error;
    struct sink *sink = user;
    size_t index = (size_t)(target - sink->targets);
    assert_true(ls_shape_size(&target->shape) <= 64);
    memcpy(sink->stored[index], data, (size_t)ls_shape_size(&target->shape) * sizeof(float));
    sink->times[index]++;
    return 0;
}

static void want(struct sink *sink, const char *layer, int blob, int blob_count,
                 struct ls_shape shape)
{
    sink->targets[sink->count++] = (struct ls_weight_target){.layer = layer,
                                                             .blob = blob,
                                                             .blob_count = blob_count,
                                                             .shape = shape,
                                                             .store = store,
                                                             .user = sink};
}

#define SHAPE1(a)    ((struct ls_shape){1, {a}})
#define SHAPE2(a, b) ((struct ls_shape){2, {a, b}})

/* ---- Caffemodels made by hand ---- */

static void add_message(struct ls_text *text, uint32_t number, struct ls_text *inner)
{
    ls_wire_add_bytes(text, number, inner->data, inner->length);
    ls_text_free(inner);
}

static void add_number(struct ls_text *text, uint32_t number, uint64_t value)
{
    ls_wire_add_varint(text, (uint64_t)number << 3 | LS_WIRE_VARINT);
    ls_wire_add_varint(text, value);
}

static const float sequence[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

/* A blob with legacy extents and packed floats. */
static void add_legacy_blob(struct ls_text *text, uint32_t number, const int extents[4])
{
    struct ls_text blob = {0};
    size_t count = 1;
    for (uint32_t i = 0; i < 4; i++) {
        add_number(&blob, i + 1, (uint64_t)extents[i]);
        count *= (size_t)extents[i];
    }
    ls_wire_add_bytes(&blob, 5, sequence, count * sizeof(float));
    add_message(text, number, &blob);
}

static void write_text(const char *path, struct ls_text *text)
{
    assert_false(text->failed);
    ls_test_write(path, text->data, text->length);
    ls_text_free(text);
}

/* A V1 net: "ip" with a weight of 1x1x2x3 and a bias of 1x1x1x2, and a layer without blobs. */
static const char *write_v1(void)
{
    struct ls_text net = {0}, layer = {0}, plain = {0};
    ls_wire_add_bytes(&net, 1, "old", 3);
    ls_wire_add_bytes(&plain, 4, "relu", 4);
    add_message(&net, 2, &plain);
    ls_wire_add_bytes(&layer, 4, "ip", 2);
    add_number(&layer, 5, 14);
    add_legacy_blob(&layer, 6, (const int[4]){1, 1, 2, 3});
    add_legacy_blob(&layer, 6, (const int[4]){1, 1, 1, 2});
    add_message(&net, 2, &layer);
    const char *path = ls_test_path("v1.caffemodel");
    write_text(path, &net);
    return path;
}

static const char *write_v0(void)
{
    struct ls_text net = {0}, v1 = {0}, v0 = {0};
    ls_wire_add_bytes(&v0, 1, "ip", 2);
    ls_wire_add_bytes(&v0, 2, "innerproduct", 12);
    add_legacy_blob(&v0, 50, (const int[4]){1, 1, 2, 3});
    add_legacy_blob(&v0, 50, (const int[4]){1, 1, 1, 2});
    ls_wire_add_bytes(&v1, 2, "data", 4);
    add_message(&v1, 1, &v0);
    add_message(&net, 2, &v1);
    const char *path = ls_test_path("v0.caffemodel");
    write_text(path, &net);
    return path;
}

/* A net of the present form with doubles and with floats one by one, in two parts. */
static const char *write_v2(void)
{
    struct ls_text net = {0}, layer = {0}, weight = {0}, bias = {0}, shape = {0};
    double doubles[6];
    for (int i = 0; i < 6; i++)
        doubles[i] = sequence[i];
    add_number(&shape, 1, 2); /* dimensions one by one, too */
    add_number(&shape, 1, 3);
    add_message(&weight, 7, &shape);
    ls_wire_add_bytes(&weight, 8, doubles, sizeof doubles);
    ls_wire_add_bytes(&shape, 1, "\x02", 1);
    add_message(&bias, 7, &shape);
    for (int i = 0; i < 2; i++) {
        ls_wire_add_varint(&bias, 5 << 3 | LS_WIRE_32);
        ls_text_add_bytes(&bias, &sequence[i], 4);
    }
    ls_wire_add_bytes(&bias, 6, sequence, 4); /* a diff, of a wrong size: of no interest */
    add_message(&layer, 7, &weight);
    ls_wire_add_bytes(&layer, 1, "ip", 2);
    add_message(&layer, 7, &bias);
    add_number(&layer, 149, 7); /* a fork's own field */
    add_message(&net, 100, &layer);
    const char *path = ls_test_path("v2.caffemodel");
    write_text(path, &net);
    return path;
}

/* All three forms fill the same two blobs. */
static void test_forms_of_caffe(void **state)
{
    (void)state;
    const char *paths[3] = {write_v0(), write_v1(), write_v2()};
    for (int i = 0; i < 3; i++) {
        struct ls_weights weights;
        struct ls_error error = {0};
        struct ls_weights_report report = {0};
        struct sink sink = {0};
        want(&sink, "ip", 0, 2, SHAPE2(2, 3));
        want(&sink, "ip", 1, 2, SHAPE1(2));
        assert_int_equal(ls_weights_read(paths[i], LS_WEIGHTS_BEST, &weights, &error), 0);
        assert_int_equal(ls_weights_apply(&weights, sink.targets, 2, &report, &error), 0);
        assert_memory_equal(sink.stored[0], sequence, 6 * sizeof(float));
        assert_memory_equal(sink.stored[1], sequence, 2 * sizeof(float));
        assert_int_equal(report.stored, 2);
        assert_int_equal(report.ignored_count, 0);
        assert_int_equal(report.kept_count, 0);
        ls_weights_report_free(&report);
        ls_weights_free(&weights);
    }
}

/* A legacy 1x1x2x3 fits 2x3 and 1x1x2x3, but neither 3x2 nor 2x3x1. A shape fits only itself. */
static void test_legacy_shapes(void **state)
{
    (void)state;
    static const struct {
        struct ls_shape shape;
        bool legacy, present;
    } cases[] = {{{2, {2, 3}}, true, true},           {{3, {1, 2, 3}}, true, false},
                 {{4, {1, 1, 2, 3}}, true, false},    {{2, {3, 2}}, false, false},
                 {{3, {2, 3, 1}}, false, false},      {{1, {6}}, false, false},
                 {{5, {1, 1, 1, 2, 3}}, false, false}};
    const char *paths[2] = {write_v1(), write_v2()};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int i = 0; i < 2; i++) {
            struct ls_weights weights;
            struct ls_weights_report report = {0};
            struct sink sink = {0};
            want(&sink, "ip", 0, 2, cases[c].shape);
            want(&sink, "ip", 1, 2, SHAPE1(2));
            assert_int_equal(ls_weights_read(paths[i], LS_WEIGHTS_BEST, &weights, NULL), 0);
            int status = ls_weights_apply(&weights, sink.targets, 2, &report, NULL);
            assert_int_equal(status == 0, i == 0 ? cases[c].legacy : cases[c].present);
            assert_int_equal(sink.times[1], status == 0); /* all or nothing */
            ls_weights_report_free(&report);
            ls_weights_free(&weights);
        }
    }
}

/* ---- Rules of apply ---- */

static const char *write_archive(const char *name, const char *const *tensors, size_t count)
{
    struct ls_archive archive = {0};
    for (size_t i = 0; i < count; i++) {
        float *value = ls_alloc(1, sizeof *value);
        *value = (float)i;
        assert_int_equal(ls_archive_add_list(&archive, tensors[i], LS_F32, 1, value, NULL), 0);
    }
    assert_int_equal(ls_archive_add_note(&archive, "classes", "cat\ndog", NULL), 0);
    const char *path = ls_test_path(name);
    assert_int_equal(ls_archive_write(&archive, path, NULL), 0);
    for (size_t i = 0; i < count; i++)
        ls_free((void *)(uintptr_t)archive.tensors[i].data);
    ls_archive_free(&archive);
    return path;
}

static void test_names(void **state)
{
    (void)state;
    static const char *const tensors[] = {
        "a.b.weight", "a.b.bias",           "bn.0",   "bn.1", "bn.2",
        "c.64",       "c.weight",           "d.07",   "e",    ".weight",
        "f.running",  "state.m.a.b.weight", "state.x"};
    const char *path =
        write_archive("names.safetensors", tensors, sizeof tensors / sizeof tensors[0]);
    struct ls_weights weights;
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
    assert_int_equal(weights.layer_count, 3);
    assert_string_equal(weights.layers[0].name, "a.b");
    assert_int_equal(weights.layers[0].blob_count, 2);
    assert_int_equal(weights.layers[1].blob_count, 3);
    assert_true(weights.layers[1].blobs[2].data[0] == 4);
    assert_int_equal(weights.unused_count, 5);
    assert_string_equal(weights.unused[0], "c.64");
    assert_string_equal(ls_weights_note(&weights, "classes"), "cat\ndog");
    assert_null(ls_weights_note(&weights, "iteration"));
    assert_false(weights.averaged);
    ls_weights_free(&weights);
    assert_true(ls_weights_name_reserved("average.fc"));
    assert_true(ls_weights_name_reserved("state"));
    assert_false(ls_weights_name_reserved("averages.fc"));
}

/* Blobs go by their names; a foreign "weight" and "bias" by number where the layer's blobs have
 * other names, but they are no layer's saved averages. */
static void test_blob_names(void **state)
{
    (void)state;
    static const char *const tensors[] = {"bn.bias",     "bn.factor", "bn.mean", "bn.scale",
                                          "bn.variance", "s.weight",  "s.bias",  "b.bias"};
    static const char *const names[] = {"mean", "variance", "factor", "scale", "bias"};
    static const float values[] = {2, 4, 1, 3, 0};
    const char *path = write_archive("blobs.safetensors", tensors, 8);
    struct ls_weights weights;
    struct ls_weights_report report = {0};
    struct sink sink = {0};
    for (int i = 0; i < 5; i++) {
        want(&sink, "bn", i, 5, SHAPE1(1));
        sink.targets[i].name = names[i];
        sink.targets[i].average = i < 3;
    }
    want(&sink, "s", 0, 2, SHAPE1(1));
    want(&sink, "s", 1, 2, SHAPE1(1));
    want(&sink, "b", 0, 1, SHAPE1(1));
    sink.targets[5].name = "scale";
    sink.targets[6].name = "bias";
    sink.targets[7].name = "bias";
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 8, &report, NULL), 0);
    assert_int_equal(report.stored, 8);
    for (int i = 0; i < 5; i++)
        assert_true(sink.stored[i][0] == values[i]);
    for (int i = 5; i < 8; i++)
        assert_true(sink.stored[i][0] == (float)i);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);

    static const char *const foreign[] = {"bn.weight", "bn.bias", "bn.2"};
    path = write_archive("foreign.safetensors", foreign, 3);
    struct sink other = {0};
    for (int i = 0; i < 3; i++) {
        want(&other, "bn", i, 3, SHAPE1(1));
        other.targets[i].name = names[i];
        other.targets[i].average = true;
    }
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
    assert_int_equal(ls_weights_apply(&weights, other.targets, 3, &report, NULL), LOCKSTEP_WEIGHTS);
    assert_int_equal(other.times[2], 0);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

/* A vector of channels: 1xC in one fork's layers is 1xCx1x1 in another's. */
static void test_channel_shapes(void **state)
{
    (void)state;
    static const struct {
        struct ls_shape shape;
        bool fits;
    } cases[] = {{{2, {1, 2}}, true},       {{4, {1, 2, 1, 1}}, true},  {{4, {2, 1, 1, 1}}, false},
                 {{1, {2}}, false},         {{4, {1, 1, 1, 2}}, false}, {{3, {1, 2, 1}}, false},
                 {{4, {1, 3, 1, 1}}, false}};
    struct ls_text net = {0}, layer = {0}, blob = {0}, shape = {0};
    ls_wire_add_bytes(&shape, 1, "\x01\x02", 2);
    add_message(&blob, 7, &shape);
    ls_wire_add_bytes(&blob, 5, sequence, 2 * sizeof *sequence);
    ls_wire_add_bytes(&layer, 1, "bn", 2);
    add_message(&layer, 7, &blob);
    add_message(&net, 100, &layer);
    const char *path = ls_test_path("channels.caffemodel");
    write_text(path, &net);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct ls_weights weights;
        struct ls_weights_report report = {0};
        struct sink sink = {0};
        want(&sink, "bn", 0, 1, cases[c].shape);
        assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
        assert_int_equal(ls_weights_apply(&weights, sink.targets, 1, &report, NULL) == 0,
                         cases[c].fits);
        ls_weights_report_free(&report);
        ls_weights_free(&weights);
    }
}

static void test_averages(void **state)
{
    (void)state;
    /* What has no average (statistics, say) is taken as it is. */
    static const char *const tensors[] = {"ip.weight", "bn.0", "average.ip.weight"};
    static const char *const plain[] = {"ip.weight", "bn.0"};
    const char *path = write_archive("average.safetensors", tensors, 3);
    struct ls_weights weights;
    static const struct {
        enum ls_weights_set set;
        float value;
    } cases[] = {{LS_WEIGHTS_BEST, 2}, {LS_WEIGHTS_AVERAGED, 2}, {LS_WEIGHTS_PLAIN, 0}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ls_weights_read(path, cases[i].set, &weights, NULL), 0);
        assert_int_equal(weights.averaged, cases[i].set != LS_WEIGHTS_PLAIN);
        assert_int_equal(weights.layer_count, 2);
        for (size_t l = 0; l < 2; l++) {
            bool bn = strcmp(weights.layers[l].name, "bn") == 0;
            assert_true(weights.layers[l].blobs[0].data[0] == (bn ? 1 : cases[i].value));
        }
        ls_weights_free(&weights);
    }
    path = write_archive("plain.safetensors", plain, 2);
    struct ls_error error = {0};
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_AVERAGED, &weights, &error),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), 0);
    assert_false(weights.averaged);
    ls_weights_free(&weights);
}

static void test_report(void **state)
{
    (void)state;
    static const char *const tensors[] = {"old.weight", "both.weight", "older.weight"};
    const char *path = write_archive("report.safetensors", tensors, 3);
    struct ls_weights weights;
    struct ls_weights_report report = {0};
    struct sink sink = {0};
    want(&sink, "new", 0, 1, SHAPE1(1));
    want(&sink, "both", 0, 1, SHAPE1(1));
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 2, &report, NULL), 0);
    assert_int_equal(report.stored, 1);
    assert_int_equal(report.ignored_count, 2);
    assert_string_equal(report.ignored[0], "old");
    assert_string_equal(report.ignored[1], "older");
    assert_int_equal(report.kept_count, 1);
    assert_string_equal(report.kept[0], "new");
    assert_int_equal(sink.times[0], 0);
    assert_true(sink.stored[1][0] == 1);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

/* All problems at once, and nothing stored. */
static void test_mismatches(void **state)
{
    (void)state;
    static const char *const tensors[] = {"a.weight", "b.weight", "b.bias",
                                          "c.weight", "d.bias",   "good.weight"};
    const char *path = write_archive("mismatch.safetensors", tensors, 6);
    struct ls_weights weights;
    struct ls_weights_report report = {0};
    struct ls_error error = {0};
    struct sink sink = {0};
    want(&sink, "good", 0, 1, SHAPE1(1));
    want(&sink, "a", 0, 2, SHAPE1(1)); /* the file has no bias */
    want(&sink, "a", 1, 2, SHAPE1(1));
    want(&sink, "b", 0, 1, SHAPE1(1));    /* the net has no bias */
    want(&sink, "c", 0, 1, SHAPE2(1, 2)); /* another shape */
    want(&sink, "d", 0, 2, SHAPE1(1));    /* the file has only the bias */
    want(&sink, "d", 1, 2, SHAPE1(1));
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
    assert_int_equal(ls_weights_apply(&weights, sink.targets, sink.count, &report, &error),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(error.count, 4);
    assert_string_equal(error.problems[0].message,
                        "layer 'a' has 1 blobs of weights in the file and 2 in the net");
    assert_string_equal(error.problems[1].message,
                        "layer 'b' has 2 blobs of weights in the file and 1 in the net");
    assert_string_equal(error.problems[2].message,
                        "blob 0 of layer 'c' has shape 1 (1) in the file and 1 2 (2) in the net");
    assert_non_null(strstr(error.problems[2].hint, "rename"));
    assert_non_null(strstr(error.problems[3].message, "'d'"));
    for (size_t i = 0; i < sink.count; i++)
        assert_int_equal(sink.times[i], 0);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

/* A layer that shares its weight with another one has only its bias in a snapshot. */
static void test_shared_parameters(void **state)
{
    (void)state;
    static const char *const tensors[] = {"ip.weight", "ip.bias", "twin.bias"};
    const char *path = write_archive("shared.safetensors", tensors, 3);
    struct ls_weights weights;
    struct ls_weights_report report = {0};
    struct ls_error error = {0};
    struct sink sink = {0};
    want(&sink, "ip", 0, 2, SHAPE1(1));
    want(&sink, "ip", 1, 2, SHAPE1(1));
    want(&sink, "twin", 0, 2, SHAPE1(1));
    sink.targets[2].shared = true;
    want(&sink, "twin", 1, 2, SHAPE1(1));
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 4, &report, &error), 0);
    assert_int_equal(sink.times[2], 0);
    assert_true(sink.stored[3][0] == 2);
    sink.targets[2].shared = false;
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 4, &report, &error),
                     LOCKSTEP_WEIGHTS);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

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

static void test_other_files(void **state)
{
    (void)state;
    expect_refused("", 0, "is empty");
    expect_refused("\x89HDF\r\n\x1a\n....", 12, "HDF5");
    expect_refused("PK\x03\x04....", 8, "zip");
    expect_refused("\x1f\x8b......", 8, "gunzip");
    expect_refused("name: \"LeNet\"\nlayer {\n", 22, "neither safetensors nor a caffemodel");
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

static void test_bad_blobs(void **state)
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
static void test_damaged_caffemodels(void **state)
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

static void test_out_of_memory(void **state)
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

static void test_write_caffemodel(void **state)
{
    (void)state;
    static const char *const names[2] = {"data", "ip"};
    const struct ls_caffemodel_blob blobs[3] = {
        {SHAPE2(2, 3), sequence}, {SHAPE1(2), sequence + 6}, {{0, {0}}, sequence + 8}};
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
static void test_volumes(void **state)
{
    (void)state;
    const struct ls_shape shape = {5, {2, 1, 3, 1, 2}}, other = {5, {2, 1, 3, 2, 1}};
    const struct ls_caffemodel_blob blob = {shape, sequence};
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
            int status = ls_weights_apply(&weights, sink.targets, 1, &report, NULL);
            assert_int_equal(status, turn == 0 ? 0 : LOCKSTEP_WEIGHTS);
            if (turn == 0)
                assert_memory_equal(sink.stored[0], sequence, 12 * sizeof(float));
            ls_weights_report_free(&report);
            ls_weights_free(&weights);
        }
}

static void test_too_large_for_caffe(void **state)
{
    (void)state;
    const struct ls_caffemodel_blob blob = {SHAPE1(600000000), NULL};
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
        cmocka_unit_test(test_forms_of_caffe),
        cmocka_unit_test(test_legacy_shapes),
        cmocka_unit_test(test_blob_names),
        cmocka_unit_test(test_channel_shapes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_averages),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_mismatches),
        cmocka_unit_test(test_shared_parameters),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_bad_blobs),
        cmocka_unit_test(test_damaged_caffemodels),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_write_caffemodel),
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_too_large_for_caffe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
