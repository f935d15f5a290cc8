/* Reading weights of every form, and giving them to nets.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "weight_trial.h"

/* All three forms fill the same two blobs. */
static void all_forms_of_caffe_fill_the_same_blobs(void **state)
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
        assert_int_equal(ls_weights_apply(&weights, sink.targets, 2, false, &report, &error), 0);
        assert_memory_equal(sink.stored[0], sequence, 6 * sizeof(float));
        assert_memory_equal(sink.stored[1], sequence, 2 * sizeof(float));
        assert_int_equal(report.taken, 2);
        assert_int_equal(report.count, 2);
        ls_weights_report_free(&report);
        ls_weights_free(&weights);
    }
}

/* A legacy 1x1x2x3 fits 2x3 and 1x1x2x3, but neither 3x2 nor 2x3x1. A shape fits only itself. */
static void legacy_shapes_fit_without_leading_ones(void **state)
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
            int status = ls_weights_apply(&weights, sink.targets, 2, false, &report, NULL);
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

static void names_of_tensors_tell_layers_and_blobs(void **state)
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
static void blobs_go_by_their_names(void **state)
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
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 8, false, &report, NULL), 0);
    assert_int_equal(report.taken, 8);
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
    assert_int_equal(ls_weights_apply(&weights, other.targets, 3, false, &report, NULL),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(other.times[2], 0);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

/* A vector of channels: 1xC in one fork's layers is 1xCx1x1 in another's. */
static void channel_vectors_fit_in_any_form(void **state)
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
        assert_int_equal(ls_weights_apply(&weights, sink.targets, 1, false, &report, NULL) == 0,
                         cases[c].fits);
        ls_weights_report_free(&report);
        ls_weights_free(&weights);
    }
}

static void averages_are_taken_where_they_exist(void **state)
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

static void the_report_names_what_was_not_used(void **state)
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
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 2, false, &report, NULL), 0);
    assert_int_equal(report.taken, 1);
    assert_int_equal(report.count, 3);
    for (size_t i = 0; i < 3; i++) {
        struct ls_text name = {0};
        ls_weights_name_blob(report.fates[i].layer, report.fates[i].blob, &name);
        assert_string_equal(name.data, tensors[i]);
        assert_ptr_equal(report.fates[i].target, i == 1 ? &sink.targets[1] : NULL);
        ls_text_free(&name);
    }
    assert_int_equal(sink.times[0], 0);
    assert_true(sink.stored[1][0] == 1);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

/* All problems at once, and nothing stored. */
static void all_mismatches_are_told_and_nothing_is_stored(void **state)
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
    assert_int_equal(ls_weights_apply(&weights, sink.targets, sink.count, false, &report, &error),
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
static void a_layer_with_a_shared_weight_has_only_its_bias(void **state)
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
    sink.targets[2].parameter = 0;
    want(&sink, "twin", 1, 2, SHAPE1(1));
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 4, false, &report, &error), 0);
    assert_int_equal(sink.times[2], 0);
    assert_true(sink.stored[3][0] == 2);
    sink.targets[2].shared = false;
    sink.targets[2].parameter = 2;
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 4, false, &report, &error),
                     LOCKSTEP_WEIGHTS);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

/* One parameter of three names: a file may have it under any of them. */
static void a_tied_weight_has_any_of_its_names(void **state)
{
    (void)state;
    static const struct {
        const char *tensors[4];
        size_t count;
        float stored; /* -1: it is refused */
        float partial;
    } cases[] = {
        {{"wte.weight"}, 1, 0, 0},
        {{"lm_head.weight"}, 1, 0, 0},
        {{"other.weight", "third.weight"}, 2, 1, 1},
        {{"wte.weight", "lm_head.weight"}, 2, -1, 0}, /* write_archive numbers them */
        {{"lm_head.weight", "wte.weight"}, 2, -1, 1},
        {{"third.weight", "lm_head.weight"}, 2, -1, 1}, /* the first in the net's order */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int partial = 0; partial < 2; partial++) {
            const char *path = write_archive("tied.safetensors", cases[c].tensors, cases[c].count);
            struct ls_weights weights;
            struct ls_weights_report report = {0};
            struct ls_error error = {0};
            struct sink sink = {0};
            want(&sink, "wte", 0, 1, SHAPE1(1));
            want(&sink, "lm_head", 0, 1, SHAPE1(1));
            want(&sink, "third", 0, 1, SHAPE1(1));
            for (int i = 1; i < 3; i++) {
                sink.targets[i].shared = true;
                sink.targets[i].parameter = 0;
            }
            assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), 0);
            const int status =
                ls_weights_apply(&weights, sink.targets, 3, partial != 0, &report, &error);
            const float wanted = partial ? cases[c].partial : cases[c].stored;
            assert_int_equal(status, wanted < 0 ? LOCKSTEP_WEIGHTS : 0);
            float stored = -1;
            int times = 0;
            for (int i = 0; i < 3; i++) {
                times += sink.times[i];
                stored = sink.times[i] > 0 ? sink.stored[i][0] : stored;
            }
            assert_int_equal(times, wanted < 0 ? 0 : 1);
            assert_true(stored == wanted);
            if (wanted < 0)
                assert_non_null(strstr(error.problems[0].message, "are one parameter of the net"));
            ls_weights_report_free(&report);
            ls_weights_free(&weights);
        }
}

static void a_tied_weight_may_have_the_same_numbers_twice(void **state)
{
    (void)state;
    struct ls_archive archive = {0};
    const float one = 7;
    assert_int_equal(ls_archive_add_list(&archive, "wte.weight", LS_F32, 1, &one, NULL), 0);
    assert_int_equal(ls_archive_add_list(&archive, "lm_head.weight", LS_F32, 1, &one, NULL), 0);
    const char *path = ls_test_path("same.safetensors");
    assert_int_equal(ls_archive_write(&archive, path, NULL), 0);
    ls_archive_free(&archive);
    struct ls_weights weights;
    struct ls_weights_report report = {0};
    struct sink sink = {0};
    want(&sink, "wte", 0, 1, SHAPE1(1));
    want(&sink, "lm_head", 0, 1, SHAPE1(1));
    sink.targets[1].shared = true;
    sink.targets[1].parameter = 0;
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, NULL), 0);
    assert_int_equal(ls_weights_apply(&weights, sink.targets, 2, false, &report, NULL), 0);
    assert_int_equal(report.taken, 2);
    assert_int_equal(sink.times[0], 1);
    assert_int_equal(sink.times[1], 0);
    ls_weights_report_free(&report);
    ls_weights_free(&weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms_of_caffe_fill_the_same_blobs),
        cmocka_unit_test(legacy_shapes_fit_without_leading_ones),
        cmocka_unit_test(names_of_tensors_tell_layers_and_blobs),
        cmocka_unit_test(blobs_go_by_their_names),
        cmocka_unit_test(channel_vectors_fit_in_any_form),
        cmocka_unit_test(averages_are_taken_where_they_exist),
        cmocka_unit_test(the_report_names_what_was_not_used),
        cmocka_unit_test(all_mismatches_are_told_and_nothing_is_stored),
        cmocka_unit_test(a_layer_with_a_shared_weight_has_only_its_bias),
        cmocka_unit_test(a_tied_weight_has_any_of_its_names),
        cmocka_unit_test(a_tied_weight_may_have_the_same_numbers_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
