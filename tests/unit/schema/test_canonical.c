/* The canonical definition: its contents, and the changes that a resume may make.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/canonical.h"
#include "support/support.h"

#define NET                                                                                        \
    "name: 'n' layer { name: 'd' type: 'Data' top: 'd' include { phase: TRAIN } data_param {"      \
    " source: 'x/y' batch_size: 8 backend: IDX } }"                                                \
    "layer { name: 'd' type: 'Data' include { phase: TEST } data_param { source: 'z' } }"          \
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'd' top: 'ip'"                                \
    " inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }"
#define SOLVER "base_lr: 0.1 lr_policy: 'fixed' max_iter: 10 "

/* The canonical text of a solver's and a net's text. */
static struct ls_text canonical_of(const char *solver_text, const char *net_text,
                                   int32_t micro_batch)
{
    struct ls_error error = {0};
    struct ls_solver_definition *solver;
    struct ls_text text = {0};
    char path[512], solver_file[1024], problems[2048];
    strcpy(path, ls_test_path("solver.prototxt"));
    snprintf(solver_file, sizeof solver_file, "net: 'net.prototxt' %s", solver_text);
    ls_test_write_text(path, solver_file);
    ls_test_write_text(ls_test_path("net.prototxt"), net_text);
    ls_solver_read(path, NULL, 0, &solver, &error);
    ls_error_format(&error, problems, sizeof problems);
    assert_string_equal(problems, "");
    assert_int_equal(ls_definition_canonical(solver, micro_batch, &text, &error), 0);
    ls_solver_definition_free(solver);
    return text;
}

static void blocks_are_what_they_are_written_out_as(void **state)
{
    (void)state;
    struct ls_text block = canonical_of(
        SOLVER,
        NET "block { name: 'h' repeat: 2 bottom: 'ip' top: 'y' layer { name: 'sum' type: "
            "'ReLU' bottom: 'ip' top: 'y' include { phase: TRAIN } } }"
            "layer { name: 'end' type: 'Silence' bottom: 'y' }",
        0);
    struct ls_text layers =
        canonical_of(SOLVER,
                     NET "layer { name: 'h.0.sum' type: 'ReLU' bottom: 'ip' top: 'h.0.y' }"
                         "layer { name: 'h.1.sum' type: 'ReLU' bottom: 'h.0.y' top: 'h.1.y' }"
                         "layer { name: 'end' type: 'Silence' bottom: 'h.1.y' }",
                     0);
    assert_string_equal(block.data, layers.data);
    ls_text_free(&block);
    ls_text_free(&layers);
}

static void what_is_in_it(void **state)
{
    (void)state;
    struct ls_text text = canonical_of(
        SOLVER "snapshot_prefix: '/home/p' weights: 'w' device_id: 3 solver_mode: GPU display: 7 "
               "test_interval: 5 test_iter: 2 random_seed: -3 train_state { level: 2 }",
        NET, 4);
    assert_string_equal(text.data, "test_iter: 2\n"
                                   "test_interval: 5\n"
                                   "base_lr: 0.1\n"
                                   "display: 7\n"
                                   "max_iter: 10\n"
                                   "lr_policy: \"fixed\"\n"
                                   "random_seed: 1\n"
                                   "train_net_param {\n"
                                   "  name: \"n\"\n"
                                   "  state {\n"
                                   "    phase: TRAIN\n"
                                   "  }\n"
                                   "  layer {\n"
                                   "    name: \"d\"\n"
                                   "    type: \"Data\"\n"
                                   "    top: \"d\"\n"
                                   "    data_param {\n"
                                   "      batch_size: 8\n"
                                   "      backend: IDX\n"
                                   "    }\n"
                                   "  }\n"
                                   "  layer {\n"
                                   "    name: \"ip\"\n"
                                   "    type: \"InnerProduct\"\n"
                                   "    bottom: \"d\"\n"
                                   "    top: \"ip\"\n"
                                   "    inner_product_param {\n"
                                   "      num_output: 3\n"
                                   "      weight_filler {\n"
                                   "        type: \"xavier\"\n"
                                   "      }\n"
                                   "    }\n"
                                   "  }\n"
                                   "}\n"
                                   "micro_batch: 4\n");
    ls_text_free(&text);
}

/* Compares two definitions; *out (4096 bytes) gets a line for each change. Returns how many are
 * not allowed. */
static size_t changes_between(const char *solver_a, const char *net_a, const char *solver_b,
                              const char *net_b, char *out)
{
    struct ls_error error = {0};
    struct ls_changes changes;
    struct ls_text a = canonical_of(solver_a, net_a, 0), b = canonical_of(solver_b, net_b, 0);
    assert_int_equal(
        ls_canonical_compare(NULL, a.data, a.length, b.data, b.length, &changes, &error), 0);
    out[0] = '\0';
    for (size_t i = 0; i < changes.count; i++) {
        const struct ls_change *c = &changes.change[i];
        sprintf(out + strlen(out), "%s%s %s -> %s\n", c->allowed ? "" : "! ", c->what, c->before,
                c->after);
    }
    size_t forbidden = changes.forbidden;
    ls_changes_free(&changes);
    ls_text_free(&a);
    ls_text_free(&b);
    return forbidden;
}

static void same_is_same(void **state)
{
    (void)state;
    char out[4096];
    /* what was only written differently, or where and on what it runs, is no change */
    assert_int_equal(changes_between(SOLVER, NET,
                                     SOLVER "random_seed: 1 momentum: 0 weights: 'w' device_id: 1 "
                                            "snapshot_prefix: 'q' iter_size: 1",
                                     "layer { name: 'e' exclude { phase: TRAIN } }" NET, out),
                     0);
    assert_string_equal(out, "");
}

/* Moved data are the same data; a snapshot of an older version may have paths in it. */
static void paths_do_not_count(void **state)
{
    (void)state;
    char out[4096];
    static const char here[] =
        "layer { name: 'd' data_param { source: 'a' source: 'b' label_source: 'l' root_folder: 'r' "
        "batch_size: 8 tokens_param { window: 3 bytes_file: 't' } text_param { window: 4 "
        "vocabulary: 'v' } } transform_param { mean_file: 'm' scale: 2 } }";
    static const char there[] =
        "layer { name: 'd' data_param { source: 'x/a' label_source: 'x/l' batch_size: 8 "
        "tokens_param { window: 3 } text_param { window: 4 vocabulary: 'x/v' } } "
        "transform_param { scale: 2 } }";
    struct ls_text text = canonical_of(SOLVER, here, 0);
    assert_non_null(strstr(text.data, "batch_size: 8"));
    assert_null(strstr(text.data, "source"));
    assert_null(strstr(text.data, "folder"));
    assert_null(strstr(text.data, "mean_file"));
    assert_null(strstr(text.data, "bytes_file"));
    assert_null(strstr(text.data, "vocabulary"));
    assert_non_null(strstr(text.data, "window: 3"));
    assert_non_null(strstr(text.data, "window: 4"));
    ls_text_free(&text);
    assert_int_equal(changes_between(SOLVER, here, SOLVER, there, out), 0);
    assert_string_equal(out, "");
    static const char old[] = "train_net_param { layer { name: 'd' data_param { source: 'old' "
                              "batch_size: 8 } } }";
    struct ls_error error = {0};
    struct ls_changes changes;
    assert_int_equal(
        ls_canonical_compare(NULL, old, strlen(old),
                             "train_net_param { layer { name: 'd' data_param { batch_size: 8 } } }",
                             68, &changes, &error),
        0);
    assert_int_equal(changes.count, 0);
    ls_changes_free(&changes);
}

static void allowed_changes(void **state)
{
    (void)state;
    char out[4096];
    size_t forbidden = changes_between(
        SOLVER, NET,
        "base_lr: 0.01 lr_policy: 'multistep' gamma: .5 stepvalue: [3, 4] max_epoch: 2 "
        "display: 3 test_interval: 9 average_loss: 2 snapshot: 4 snapshot_keep: 2 warmup_iter: 2 "
        "test_on_train: 5",
        NET, out);
    assert_int_equal(forbidden, 0);
    assert_string_equal(out, "test_interval 0 -> 9\n"
                             "base_lr 0.1 -> 0.01\n"
                             "display unset -> 3\n"
                             "max_iter 10 -> unset\n"
                             "lr_policy \"fixed\" -> \"multistep\"\n"
                             "gamma unset -> 0.5\n"
                             "snapshot 0 -> 4\n"
                             "average_loss 1 -> 2\n"
                             "stepvalue unset -> [3, 4]\n"
                             "max_epoch unset -> 2\n"
                             "warmup_iter unset -> 2\n"
                             "test_on_train 0 -> 5\n"
                             "snapshot_keep 0 -> 2\n");
    forbidden = changes_between(SOLVER, "layer { name: 'c' relu_param { engine: CAFFE } }", SOLVER,
                                "name: 'x' layer { name: 'c' relu_param { engine: CUDNN } }", out);
    assert_int_equal(forbidden, 0);
    assert_string_equal(out, "layer 'c': relu_param.engine CAFFE -> CUDNN\n");
}

static void forbidden_changes(void **state)
{
    (void)state;
    static const char *const fields[][2] = {
        {"random_seed: 5", "! random_seed 1 -> 5\n"},
        {"micro_batch: 5", "! micro_batch 0 -> 5\n"},
        {"iter_size: 5", "! iter_size 1 -> 5\n"},
        {"momentum: .5", "! momentum unset -> 0.5\n"},
        {"weight_decay: .5", "! weight_decay unset -> 0.5\n"},
        {"type: 'Nesterov'", "! type \"SGD\" -> \"Nesterov\"\n"},
        {"regularization_type: 'L1'", "! regularization_type \"L2\" -> \"L1\"\n"},
        {"clip_gradients: 3", "! clip_gradients -1 -> 3\n"},
        {"weight_average {}", "! weight_average unset -> { }\n"},
        {"param_group { match: '*' }", "! param_group unset -> [{ match: [\"*\"] }]\n"},
        {"weight_average { decay: .5 } display: 2",
         "! weight_average unset -> { decay: 0.5 }\ndisplay unset -> 2\n"},
    };
    char out[4096], text[256];
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        snprintf(text, sizeof text, SOLVER "%s", fields[i][0]);
        assert_int_equal(changes_between(SOLVER, NET, text, NET, out), 1);
        assert_string_equal(out, fields[i][1]);
    }
}

static void changes_of_nets(void **state)
{
    (void)state;
    char out[4096];
    static const char a[] = "layer { name: 'a' type: 'Data' data_param { batch_size: 8 } }"
                            "layer { name: 'b' convolution_param { kernel_size: [1, 2]"
                            " weight_filler { std: 1 } } param { lr_mult: 1 } }"
                            "layer { name: 'c' type: 'ReLU' } layer { name: 'd' } ";
    static const char b[] = "force_backward: true "
                            "layer { name: 'a' type: 'Data' data_param { batch_size: 9 } }"
                            "layer { name: 'b' convolution_param { kernel_size: [1, 3]"
                            " weight_filler { std: 2 } } param { lr_mult: 2 } param {} }"
                            "layer { name: 'd' type: 'ReLU' } layer { name: 'e' } ";
    assert_int_equal(changes_between(SOLVER, a, SOLVER, b, out), 9);
    assert_string_equal(out, "! the net's force_backward false -> true\n"
                             "! layer 'a': data_param.batch_size 8 -> 9\n"
                             "! layer 'b': param [{ lr_mult: 1 }] -> [{ lr_mult: 2 }, { }]\n"
                             "! layer 'b': convolution_param.kernel_size [1, 2] -> [1, 3]\n"
                             "! layer 'b': convolution_param.weight_filler.std 1 -> 2\n"
                             "! layer 'c' there -> not there\n"
                             "! layer 'd': type unset -> \"ReLU\"\n"
                             "! layer 'd' at its place -> moved\n"
                             "! layer 'e' not there -> there\n");
    assert_int_equal(changes_between(SOLVER, "layer { name: 'a' } layer { name: 'b' }", SOLVER,
                                     "layer { name: 'b' } layer { name: 'a' }", out),
                     2);
    /* layers of one name are told apart by their order */
    assert_int_equal(changes_between(SOLVER, "layer { top: 'a' } layer { top: 'b' }", SOLVER,
                                     "layer { top: 'a' } layer { top: 'c' }", out),
                     1);
    assert_string_equal(out, "! layer '': top [\"b\"] -> [\"c\"]\n");
}

/* What a layer does not say is what the solver says, and that is not always FP32. */
static void precisions_of_layers_follow_the_solver(void **state)
{
    (void)state;
    char out[4096];
#define LAYERS(first, second) "layer { name: 'a' " first "} layer { name: 'b' " second "}"
    static const char unset[] = LAYERS("", ""), fp32[] = LAYERS("", "precision: FP32"),
                      bf16[] = LAYERS("precision: BF16", "");
    assert_int_equal(changes_between(SOLVER, unset, SOLVER "precision: FP32", fp32, out), 0);
    assert_string_equal(out, "");
    assert_int_equal(changes_between(SOLVER, unset, SOLVER, bf16, out), 1);
    assert_string_equal(out, "! layer 'a': precision FP32 -> BF16\n");
#define BF16 SOLVER "precision: BF16"
    assert_int_equal(changes_between(BF16, unset, BF16, bf16, out), 0);
    assert_string_equal(out, "");
    assert_int_equal(changes_between(BF16, unset, BF16, fp32, out), 1);
    assert_string_equal(out, "! layer 'b': precision BF16 -> FP32\n");
    assert_int_equal(changes_between(BF16, fp32, BF16, unset, out), 1);
    assert_string_equal(out, "! layer 'b': precision FP32 -> BF16\n");
    assert_int_equal(changes_between(SOLVER, unset, BF16, unset, out), 1);
    assert_string_equal(out, "! precision FP32 -> BF16\n");
}

/* The same of algorithms, in layers that have one. */
static void algorithms_of_layers_follow_the_solver(void **state)
{
    (void)state;
    char out[4096];
#define NETS(algorithm)                                                                            \
    "layer { name: 'a' convolution_param { num_output: 2 kernel_size: 1 } } "                      \
    "layer { name: 'b' inner_product_param { num_output: 2 " algorithm " } } "                     \
    "layer { name: 'c' }"
#define PORTABLE SOLVER "algorithm: PORTABLE"
    static const char unset[] = NETS(""), automatic[] = NETS("algorithm: AUTO"),
                      portable[] = NETS("algorithm: PORTABLE");
    assert_int_equal(changes_between(SOLVER, unset, SOLVER "algorithm: AUTO", automatic, out), 0);
    assert_string_equal(out, "");
    assert_int_equal(changes_between(SOLVER, unset, SOLVER, portable, out), 1);
    assert_string_equal(out, "! layer 'b': inner_product_param.algorithm AUTO -> PORTABLE\n");
    assert_int_equal(changes_between(PORTABLE, unset, PORTABLE, portable, out), 0);
    assert_string_equal(out, "");
    assert_int_equal(changes_between(PORTABLE, unset, PORTABLE, automatic, out), 1);
    assert_string_equal(out, "! layer 'b': inner_product_param.algorithm PORTABLE -> AUTO\n");
    assert_int_equal(changes_between(SOLVER, unset, PORTABLE, unset, out), 1);
    assert_string_equal(out, "! algorithm AUTO -> PORTABLE\n");
}

static void the_list_is_limited(void **state)
{
    (void)state;
    char net[8192] = "", *at = net;
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "layer { name: 'l%d' type: 'ReLU' } ", i);
    struct ls_error error = {0};
    struct ls_changes changes;
    struct ls_text a = canonical_of(SOLVER "display: 3", net, 0), b = canonical_of(SOLVER, "", 0);
    assert_int_equal(
        ls_canonical_compare(NULL, a.data, a.length, b.data, b.length, &changes, &error), 0);
    assert_int_equal(changes.count, 64);
    assert_int_equal(changes.forbidden, 100);
    ls_changes_free(&changes);
    ls_text_free(&a);
    ls_text_free(&b);
}

static void unreadable_definitions(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "base_lr: 'x'", "\x01", "net: 'a'"};
    for (size_t i = 0; i < 4; i++) {
        struct ls_error error = {0};
        struct ls_changes changes;
        struct ls_text good = canonical_of(SOLVER, NET, 0);
        assert_int_equal(ls_canonical_compare("s.safetensors", bad[i], strlen(bad[i]), good.data,
                                              good.length, &changes, &error),
                         LOCKSTEP_WEIGHTS);
        assert_int_equal(error.count, 1);
        assert_string_equal(error.problems[0].place, "s.safetensors");
        assert_non_null(
            strstr(error.problems[0].message, "the definition in the snapshot cannot be read"));
        ls_changes_free(&changes);
        ls_text_free(&good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_what_they_are_written_out_as),
        cmocka_unit_test(what_is_in_it),
        cmocka_unit_test(same_is_same),
        cmocka_unit_test(paths_do_not_count),
        cmocka_unit_test(allowed_changes),
        cmocka_unit_test(forbidden_changes),
        cmocka_unit_test(changes_of_nets),
        cmocka_unit_test(precisions_of_layers_follow_the_solver),
        cmocka_unit_test(algorithms_of_layers_follow_the_solver),
        cmocka_unit_test(the_list_is_limited),
        cmocka_unit_test(unreadable_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
