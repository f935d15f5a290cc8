/* Weights with the names of other programs: patterns, maps, both directions, several files.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "snapshot/catalog.h"
#include "snapshot/weight_rename.h"
#include "snapshot/weight_shards.h"
#include "snapshot/weights.h"
#include "snapshot/weights_convert.h"
#include "support/support.h"

/* ---- Patterns -------------------------------------------------------------------------------- */

static void names_fit_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name, *other, *becomes;
    } cases[] = {
        {"a.weight", "a.weight", "b.bias", "b.bias"},
        {"h.{i}.w", "h.12.w", "block.{i}.x", "block.12.x"},
        {"h.{i}.w", "h..w", "", NULL},
        {"h.{i}.w", "h.1x.w", "", NULL},
        {"h.{i}.w", "h.1.w.w", "", NULL},
        {"h.{i}.w", "h.1", "", NULL},
        {"{i}.{j}", "3.4", "{j}-{i}", "4-3"},
        {"{i}.{i}", "3.3", "{i}", "3"},
        {"{i}.{i}", "3.33", "", NULL},
        {"{x}.running_mean", "layer1.0.bn1.running_mean", "{x}.mean", "layer1.0.bn1.mean"},
        {"{x}.running_mean", ".running_mean", "", NULL},
        {"{x}.running_mean", "running_mean", "", NULL},
        {"{x}.weight", "a.weight.weight", "{x}", "a.weight"},
        {"m.{x}.{i}", "m.a.1.23", "{i}:{x}", "23:a.1"},
        {"m.{x}.{i}", "m.a.1.", "", NULL},
        {"{i}.{x}.{i}", "7.y.7", "{x}{i}", "y7"},
        {"{i}.{x}.{i}", "7.y.8", "", NULL},
        {"a{x}b", "ab", "", NULL},
        {"a{x}b", "acb", "{x}", "c"},
        {"abc{x}cba", "abcba", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ls_pattern_match match;
        bool fits = ls_pattern_fits(cases[i].pattern, cases[i].name, &match);
        if (fits != (cases[i].becomes != NULL))
            fail_msg("%s against %s", cases[i].name, cases[i].pattern);
        if (!fits)
            continue;
        struct ls_text text = {0};
        ls_pattern_fill(cases[i].other, &match, &text);
        assert_string_equal(text.data, cases[i].becomes);
        ls_text_free(&text);
    }
}

static void patterns_are_checked(void **state)
{
    (void)state;
    assert_null(ls_pattern_problem("h.{i}.{x}.{j}"));
    assert_non_null(ls_pattern_problem(""));
    assert_non_null(ls_pattern_problem("a{"));
    assert_non_null(ls_pattern_problem("a}"));
    assert_non_null(ls_pattern_problem("{y}"));
    assert_non_null(ls_pattern_problem("{i}{j}"));
    assert_non_null(ls_pattern_problem("{x}.{x}"));
    assert_true(ls_pattern_same_words("{i}{i}.{x}", "{x}.{i}"));
    assert_false(ls_pattern_same_words("{i}", "{j}"));
    assert_true(ls_pattern_has_words("{i}.{x}", "{x}"));
    assert_false(ls_pattern_has_words("{i}", "{x}"));
}

/* ---- Maps ------------------------------------------------------------------------------------ */

static const char *map_file(const char *text)
{
    const char *path = ls_test_path("test.map");
    ls_test_write_text(path, text);
    return path;
}

static void refuses_map(const char *text, const char *say)
{
    struct ls_weight_map map;
    struct ls_error error = {0};
    char all[1024];
    assert_int_equal(ls_weight_map_read(map_file(text), &map, &error), LOCKSTEP_USAGE);
    ls_error_format(&error, all, sizeof all);
    if (strstr(all, say) == NULL)
        fail_msg("'%s' is not in '%s'", say, all);
}

static void mistakes_of_maps_have_places(void **state)
{
    (void)state;
    refuses_map("", "needs a rule");
    refuses_map("map { from: 'a' }", ":1:1: a rule needs `from` and `to`");
    refuses_map("map { from: 'a'\nto: 'b{i}' }", ":2:1: to has other words");
    refuses_map("map { from: 'a{i}' from: 'b' to: 'c{i}' }", ":1:20: from has other words");
    refuses_map("map { from: 'a{' to: 'c' }", ":1:7: from has braces");
    refuses_map("map { from: 'a' from: 'b' to: 'c' to: 'd' }", "several `from` and several `to`");
    refuses_map("map { from: 'a' to: 'c' when: '{i}' }", "when has words in braces that");
    refuses_map("map { from: 'a{i}' to: 'c{i}' same_as: 'b' }", "with `same_as` has no words");
    refuses_map("map { from: 'a' to: 'c' same_as: 'b' transpose: true }", "and nothing else");
    refuses_map("map { from: 'a' from: 'b' to: 'c' counter: true }", "of a counter");
    refuses_map("map { from: 'a' to: 'b' lead: 8 }", "more axes in `lead`");
    refuses_map("map { form: 'a' to: 'b' }", "did you mean 'from'?");
    refuses_map("map { from: 'a' to: 'b' } ignore: '{x'", "ignore has braces");
    struct ls_weight_map map;
    struct ls_error error = {0};
    assert_int_equal(ls_weight_map_read("no_such_map", &map, &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].hint, "gpt2"));
}

static void maps_of_the_program_are_good(void **state)
{
    (void)state;
    size_t count = 0;
    for (const struct ls_builtin_map *own = ls_builtin_maps; own->name != NULL; own++, count++) {
        struct ls_weight_map map;
        struct ls_error error = {0};
        if (ls_weight_map_read(own->name, &map, &error) != 0)
            fail_msg("%s: %s", error.problems[0].place, error.problems[0].message);
        ls_weight_map_free(&map);
    }
    assert_true(count >= 4);
}

/* Weights whose layers have these names, each with a weight and a bias. */
static void suggests(const char *const *layers, size_t count, const char *note, const char *map)
{
    struct ls_weight_blob blobs[2] = {{.present = true, .number = 0},
                                      {.present = true, .number = 1}};
    struct ls_weight_layer list[4];
    struct ls_note iteration = {.key = (char *)(uintptr_t)note, .value = (char *)(uintptr_t) "5"};
    static char average[] = "layer1.bn1.running_mean", *averages[] = {average};
    struct ls_weights weights = {.unused = averages,
                                 .unused_count = map != NULL && strcmp(map, "torchvision") == 0,
                                 .layers = list,
                                 .layer_count = count,
                                 .notes = &iteration,
                                 .note_count = note != NULL};
    for (size_t i = 0; i < count; i++)
        list[i] = (struct ls_weight_layer){(char *)(uintptr_t)layers[i], blobs, 2};
    const char *found = ls_weights_suggest_map(&weights);
    if (map == NULL)
        assert_null(found);
    else
        assert_string_equal(found, map);
}

static void maps_are_suggested(void **state)
{
    (void)state;
    static const char *const gpt2[] = {"transformer.h.0.attn.c_attn", "transformer.ln_f", "other"};
    static const char *const bert[] = {"bert.encoder.layer.3.output.dense", "bert.pooler.dense"};
    suggests(gpt2, 3, NULL, "gpt2");
    suggests(gpt2 + 1, 2, NULL, "gpt2"); /* half of them */
    suggests(gpt2 + 2, 1, NULL, NULL);
    suggests(bert, 2, NULL, "bert");
    suggests((const char *[]){"layer1.bn1"}, 1, NULL, "torchvision");
    suggests(bert, 2, LS_NOTE_ITERATION, NULL); /* a snapshot has our names */
}

/* ---- Renaming -------------------------------------------------------------------------------- */

/* Adds a tensor with the numbers first, first + 1, ... */
static void add(struct ls_archive *archive, const char *name, int rank, int64_t a, int64_t b,
                int64_t c, float first)
{
    struct ls_shape shape = {.rank = rank, .dim = {a, b, c}};
    size_t count = (size_t)ls_shape_size(&shape);
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = first + (float)i;
    assert_int_equal(ls_archive_add(archive, name, LS_F32, &shape, data, NULL), 0);
}

static void free_tensors(struct ls_archive *archive)
{
    for (size_t i = 0; i < archive->tensor_count; i++)
        free((void *)(uintptr_t)archive->tensors[i].data);
    ls_archive_free(archive);
}

/* "name 2x3: 0 1 2 3 4 5\n" of each tensor. */
static char *describe(const struct ls_archive *archive)
{
    struct ls_text text = {0};
    ls_text_add(&text, "");
    for (size_t i = 0; i < archive->tensor_count; i++) {
        const struct ls_tensor *tensor = &archive->tensors[i];
        ls_text_format(&text, "%s ", tensor->name);
        for (int axis = 0; axis < tensor->shape.rank; axis++)
            ls_text_format(&text, "%s%d", axis > 0 ? "x" : "", (int)tensor->shape.dim[axis]);
        ls_text_add(&text, tensor->type == LS_I64 ? " counter" : ":");
        for (int64_t k = 0; tensor->type == LS_F32 && k < ls_shape_size(&tensor->shape); k++) {
            float number;
            memcpy(&number, (const char *)tensor->data + (size_t)k * sizeof number, sizeof number);
            ls_text_format(&text, " %g", (double)number);
        }
        ls_text_add(&text, "\n");
    }
    return text.data;
}

static void becomes(const char *map_text, const struct ls_archive *from, bool back,
                    const char *wanted, const char *left_out)
{
    struct ls_weight_map map;
    struct ls_renamed renamed = {0};
    struct ls_error error = {0};
    assert_int_equal(ls_weight_map_read(map_file(map_text), &map, &error), 0);
    if (ls_weights_rename(&map, back, from->tensors, from->tensor_count, "file", &renamed,
                          &error) != 0)
        fail_msg("%s", error.problems[0].message);
    char *found = describe(&renamed.archive);
    assert_string_equal(found, wanted);
    ls_free(found);
    assert_int_equal(renamed.left_out_count, left_out != NULL);
    if (left_out != NULL)
        assert_string_equal(renamed.left_out[0], left_out);
    ls_renamed_free(&renamed);
    ls_weight_map_free(&map);
}

static void tensors_are_transposed_joined_and_cut(void **state)
{
    (void)state;
    static const char map[] =
        "prefix: 'm.'\n"
        "map { from: 'm.{i}.c.weight' to: 'h.{i}.c.weight' transpose: true }\n"
        "map { from: 'm.{i}.q' from: 'm.{i}.k' to: 'h.{i}.qk.weight' axis: 1 }\n"
        "map { from: 'm.all' to: 'a.weight' to: 'b.weight' }\n"
        "map { from: 'm.position' to: 'position.weight' lead: 1 }\n"
        "map { from: 'head' to: 'head.weight' same_as: 'm.all' }\n"
        "ignore: 'm.{i}.mask'\n";
    struct ls_archive theirs = {0};
    add(&theirs, "0.k", 2, 2, 1, 0, 20);
    add(&theirs, "0.c.weight", 2, 2, 3, 0, 0);
    add(&theirs, "m.0.q", 2, 2, 2, 0, 10);
    add(&theirs, "all", 1, 4, 0, 0, 1);
    add(&theirs, "m.7.mask", 1, 9, 0, 0, 0);
    add(&theirs, "position", 3, 1, 2, 2, 0);
    add(&theirs, "odd", 1, 1, 0, 0, 0);
    becomes(map, &theirs, false,
            "h.0.c.weight 3x2: 0 3 1 4 2 5\n"
            "h.0.qk.weight 2x3: 10 11 20 12 13 21\n"
            "a.weight 2: 1 2\nb.weight 2: 3 4\n"
            "position.weight 2x2: 0 1 2 3\n"
            "head.weight 4: 1 2 3 4\n",
            "odd");
    struct ls_archive ours = {0};
    add(&ours, "b.weight", 1, 2, 0, 0, 3);
    add(&ours, "a.weight", 1, 2, 0, 0, 1);
    add(&ours, "h.0.c.weight", 2, 3, 2, 0, 0);
    add(&ours, "h.0.qk.weight", 2, 2, 4, 0, 0);
    add(&ours, "position.weight", 2, 2, 2, 0, 0);
    becomes(map, &ours, true,
            "m.all 4: 1 2 3 4\n"
            "m.0.c.weight 2x3: 0 2 4 1 3 5\n"
            "m.0.q 2x2: 0 1 4 5\nm.0.k 2x2: 2 3 6 7\n"
            "m.position 1x2x2: 0 1 2 3\n",
            NULL);
    free_tensors(&theirs);
    free_tensors(&ours);
}

static void a_torchvision_net_goes_there_and_back(void **state)
{
    (void)state;
    struct ls_weight_map map;
    struct ls_renamed renamed = {0}, again = {0};
    struct ls_archive theirs = {0}, ours = {0};
    add(&theirs, "l.bn.num_batches_tracked", 1, 1, 0, 0, 5);
    add(&theirs, "l.bn.weight", 1, 2, 0, 0, 1);
    add(&theirs, "l.bn.bias", 1, 2, 0, 0, 3);
    add(&theirs, "l.bn.running_mean", 1, 2, 0, 0, 5);
    add(&theirs, "l.bn.running_var", 1, 2, 0, 0, 7);
    add(&theirs, "fc.weight", 1, 2, 0, 0, 9);
    assert_int_equal(ls_weight_map_read("torchvision", &map, NULL), 0);
    assert_false(ls_weights_are_ours(&map, theirs.tensors, theirs.tensor_count));
    assert_int_equal(
        ls_weights_rename(&map, false, theirs.tensors, theirs.tensor_count, "file", &renamed, NULL),
        0);
    char *found = describe(&renamed.archive);
    assert_string_equal(found, "l.bn.scale 2: 1 2\nl.bn.bias 2: 3 4\nl.bn.factor 1: 1\n"
                               "l.bn.mean 2: 5 6\nl.bn.variance 2: 7 8\nfc.weight 2: 9 10\n");
    ls_free(found);
    assert_true(ls_weights_are_ours(&map, renamed.archive.tensors, renamed.archive.tensor_count));
    /* as a training leaves it: sums that have been counted four times */
    add(&ours, "l.bn.factor", 1, 1, 0, 0, 4);
    add(&ours, "l.bn.mean", 1, 2, 0, 0, 8);
    add(&ours, "l.bn.variance", 1, 2, 0, 0, 4);
    add(&ours, "l.bn.scale", 1, 2, 0, 0, 1);
    add(&ours, "odd.thing", 1, 2, 0, 0, 1);
    assert_int_equal(
        ls_weights_rename(&map, true, ours.tensors, ours.tensor_count, "file", &again, NULL), 0);
    found = describe(&again.archive);
    assert_string_equal(found, "l.bn.num_batches_tracked  counter\nl.bn.running_mean 2: 2 2.25\n"
                               "l.bn.running_var 2: 1 1.25\nl.bn.weight 2: 1 2\n");
    ls_free(found);
    assert_int_equal(again.left_out_count, 1);
    assert_string_equal(again.left_out[0], "odd.thing");
    ls_renamed_free(&renamed);
    ls_renamed_free(&again);
    free_tensors(&theirs);
    free_tensors(&ours);
    ls_weight_map_free(&map);
}

static void fails_with(const char *map_text, const struct ls_archive *from, bool back,
                       const char *wanted)
{
    struct ls_weight_map map;
    struct ls_renamed renamed = {0};
    struct ls_error error = {0};
    char all[2048];
    assert_int_equal(ls_weight_map_read(map_file(map_text), &map, &error), 0);
    assert_int_equal(
        ls_weights_rename(&map, back, from->tensors, from->tensor_count, "file", &renamed, &error),
        LOCKSTEP_WEIGHTS);
    ls_error_format(&error, all, sizeof all);
    assert_string_equal(all, wanted);
    ls_renamed_free(&renamed);
    ls_weight_map_free(&map);
}

static void all_that_does_not_fit_is_told_at_once(void **state)
{
    (void)state;
    static const char map[] = "map { from: 'q{i}' from: 'k{i}' to: 'h.{i}.weight' }"
                              "map { from: 't' to: 't.weight' transpose: true }"
                              "map { from: 's' to: 'a.weight' to: 'b.weight' }"
                              "map { from: 'l' to: 'l.weight' lead: 1 }"
                              "map { from: 'u' to: 'u.weight' } map { from: 'v' to: 'u.weight' }";
    struct ls_archive theirs = {0}, ours = {0}, none = {0};
    add(&theirs, "q0", 2, 1, 2, 0, 0);
    add(&theirs, "k1", 2, 1, 2, 0, 0);
    add(&theirs, "q2", 2, 1, 2, 0, 0);
    add(&theirs, "k2", 2, 1, 3, 0, 0);
    add(&theirs, "t", 3, 1, 2, 3, 0);
    add(&theirs, "s", 1, 3, 0, 0, 0);
    add(&theirs, "l", 2, 2, 2, 0, 0);
    add(&theirs, "u", 1, 1, 0, 0, 0);
    add(&theirs, "v", 1, 1, 0, 0, 0);
    fails_with(map, &theirs, false,
               "file: there is no tensor 'k0' to go with 'q0'\n"
               "file: there is no tensor 'q1' to go with 'k1'\n"
               "file: tensor 'k2' has shape 1 3 (3), which does not fit what it is joined with\n"
               "file: tensor 't' has shape 1 2 3 (6), which has not the two axes that `transpose` "
               "asks for\n"
               "file: tensor 's' has shape 3 (3), which cannot be cut into so many equal parts\n"
               "file: tensor 'l' has shape 2 2 (4), which does not begin with the axes of extent 1 "
               "that `lead` says\n"
               "file: two tensors become 'u.weight'");
    add(&ours, "b.weight", 1, 2, 0, 0, 0);
    add(&ours, "h.3.weight", 2, 3, 2, 0, 0);
    fails_with(
        map, &ours, true,
        "file: there is no tensor 'a.weight' to go with 'b.weight'\n"
        "file: tensor 'h.3.weight' has shape 3 2 (6), which cannot be cut into so many equal "
        "parts");
    add(&none, "transformer.wte.weight", 1, 1, 0, 0, 0);
    struct ls_weight_map bert;
    struct ls_renamed renamed = {0};
    struct ls_error error = {0};
    assert_int_equal(ls_weight_map_read("bert", &bert, NULL), 0);
    assert_int_equal(ls_weights_rename(&bert, false, none.tensors, 1, "file", &renamed, &error),
                     LOCKSTEP_WEIGHTS);
    assert_string_equal(error.problems[0].hint, "map gpt2 knows 1 of its 1 tensors");
    ls_renamed_free(&renamed);
    ls_weight_map_free(&bert);
    free_tensors(&theirs);
    free_tensors(&ours);
    free_tensors(&none);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void write_archive(const char *path, struct ls_archive *archive)
{
    struct ls_error error = {0};
    if (ls_archive_write(archive, path, &error) != 0)
        fail_msg("%s", error.problems[0].message);
    free_tensors(archive);
}

static void files_are_converted_there_and_back(void **state)
{
    (void)state;
    struct ls_archive theirs = {0}, back;
    const char *map = map_file("map { from: 'm.{i}.w' to: 'h.{i}.weight' transpose: true }\n"
                               "map { from: 'm.b' to: 'end.bias' }");
    const char *first = ls_test_path("theirs.safetensors"),
               *ours = ls_test_path("ours.safetensors"), *last = ls_test_path("last.safetensors");
    struct ls_weights weights;
    struct ls_error error = {0};
    add(&theirs, "m.0.w", 2, 2, 3, 0, 0);
    add(&theirs, "m.1.w", 2, 2, 2, 0, 9);
    add(&theirs, "m.b", 1, 2, 0, 0, 5);
    write_archive(first, &theirs);
    assert_int_equal(ls_weights_convert_names(first, ours, map, NULL, NULL, &error), 0);
    assert_int_equal(ls_weights_convert_names(ours, last, map, NULL, NULL, &error), 0);
    assert_int_equal(ls_archive_read(last, LS_ARCHIVE_CHECK, &back, &error), 0);
    assert_string_equal(ls_archive_note(&back, "format"), "pt");
    char *found = describe(&back);
    assert_string_equal(found, "m.0.w 2x3: 0 1 2 3 4 5\nm.1.w 2x2: 9 10 11 12\nm.b 2: 5 6\n");
    ls_free(found);
    ls_archive_free(&back);
    assert_int_equal(ls_weights_read_mapped(first, LS_WEIGHTS_BEST, map, &weights, &error), 0);
    assert_int_equal(weights.layer_count, 3);
    assert_string_equal(weights.layers[1].name, "h.1");
    assert_true(weights.layers[1].blobs[0].data[1] == 11);
    ls_weights_free(&weights);
    assert_int_equal(ls_weights_read_mapped(ours, LS_WEIGHTS_BEST, map, &weights, &error),
                     LOCKSTEP_WEIGHTS);
    assert_string_equal(error.problems[0].hint, "leave the map out");
    ls_error_clear(&error);
    assert_int_equal(ls_weights_convert_names(ours, ls_test_path("x.h5"), map, NULL, NULL, &error),
                     LOCKSTEP_USAGE);
    ls_error_clear(&error);
    assert_int_equal(ls_weights_read_mapped(first, LS_WEIGHTS_BEST, "nothing", &weights, &error),
                     LOCKSTEP_USAGE);
    assert_int_equal(weights.layer_count, 0);
}

static void an_index_names_several_files(void **state)
{
    (void)state;
    struct ls_archive a = {0}, b = {0};
    const char *path = ls_test_path("model.safetensors.index.json");
    struct ls_weights weights;
    struct ls_error error = {0};
    add(&a, "in.weight", 1, 2, 0, 0, 0);
    add(&b, "out.weight", 1, 2, 0, 0, 3);
    write_archive(ls_test_path("a.safetensors"), &a);
    write_archive(ls_test_path("b.safetensors"), &b);
    ls_test_write_text(path, "{\"metadata\": {\"total_size\": -1.5e3, \"x\": [\"}\", {}]},\n"
                             "\"weight_map\": {\"in.weight\": \"a.safetensors\", "
                             "\"out.weight\": \"b.safetensors\"}}\n");
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), 0);
    assert_int_equal(weights.layer_count, 2);
    assert_string_equal(weights.layers[1].name, "out");
    assert_true(weights.layers[1].blobs[0].data[1] == 4);
    ls_weights_free(&weights);
    static const struct {
        const char *text, *say;
    } bad[] = {
        {"", "a brace was expected"},
        {"{}", "a string"},
        {"{\"weight_map\": {}}", "has no 'weight_map' that names files"},
        {"{\"a\": 3}", "has no 'weight_map' that names files"},
        {"{\"weight_map\": 3}", "'weight_map' is no object"},
        {"{\"weight_map\": {\"in.weight\": \"b.safetensors\"}}", "which does not have it"},
        {"{\"weight_map\": {\"in.weight\": \"../a.safetensors\"}}", "no name of a file beside"},
        {"{\"weight_map\": {\"in.weight\": \"/etc/passwd\"}}", "no name of a file beside"},
        {"{\"weight_map\": {\"in.weight\": \"none.safetensors\"}}", "No such file"},
        {"{\"weight_map\": {\"in.weight\": \"a.safetensors\"}} x", "the index is damaged"},
        {"{\"weight_map\": {\"in.weight\": \"a.safetensors\"", "the index is damaged"},
        {"{\"a\": [[[\"", "the index is damaged"},
        {"{\"a\": [[[", "the index is damaged"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char all[2048];
        ls_error_clear(&error);
        ls_test_write_text(path, bad[i].text);
        assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error),
                         LOCKSTEP_WEIGHTS);
        ls_error_format(&error, all, sizeof all);
        if (strstr(all, bad[i].say) == NULL)
            fail_msg("'%s' is not in '%s'", bad[i].say, all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_fit_patterns),
        cmocka_unit_test(patterns_are_checked),
        cmocka_unit_test(mistakes_of_maps_have_places),
        cmocka_unit_test(maps_of_the_program_are_good),
        cmocka_unit_test(maps_are_suggested),
        cmocka_unit_test(tensors_are_transposed_joined_and_cut),
        cmocka_unit_test(a_torchvision_net_goes_there_and_back),
        cmocka_unit_test(all_that_does_not_fit_is_told_at_once),
        cmocka_unit_test(files_are_converted_there_and_back),
        cmocka_unit_test(an_index_names_several_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
