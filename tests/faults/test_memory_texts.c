/* Memory runs out at every allocation, as in test_memory.c: in trainings on texts and on records of
 * different lengths, with tokenizers, with maps of names, and in a net that writes a text.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/allocations.h"
#include "support/npy_files.h"

static const char solver[] =
    "net: '%s.prototxt' type: 'LAMB' base_lr: 0.01 lr_policy: 'cosine' warmup_iter: 1 "
    "cosine_after_warmup: true max_iter: 2 micro_batch: 2 snapshot_after_train: true "
    "param_group { max_axes: 1 decay_mult: 0 type: 'Lion' } param_group { match: 'wte.*' }";

static const char text_net[] =
    "layer { name: 'text' type: 'Data' top: 'tokens' top: 'target' top: 'segment' top: 'mask'\n"
    "  data_param { backend: TEXT source: 'text.txt' batch_size: 4 shuffle: true\n"
    "    tensor { name: 'tokens' } tensor { name: 'target' } tensor { name: 'segment' }\n"
    "    tensor { name: 'mask' }\n"
    "    text_param { window: 8 separator: 32 documents: WHOLE lengths: PACK } } }\n";
static const char input_net[] =
    "layer { name: 'in' type: 'Input' top: 'tokens' top: 'segment' top: 'mask' top: 'target'\n"
    "  input_param { shape { dim: 1 dim: 8 } } }\n";
static const char body[] =
    "layer { name: 'wte' type: 'Embed' bottom: 'tokens' top: 'x' param { name: 'w' }\n"
    "  embed_param { input_dim: 12 num_output: 4 bias_term: false } }\n"
    "block { name: 'h' repeat: 2 bottom: 'x' top: 'x'\n"
    "  layer { name: 'n' type: 'RMSNorm' bottom: 'x' top: 'n' }\n"
    "  layer { name: 'qkv' type: 'InnerProduct' bottom: 'n' top: 'qkv'\n"
    "    inner_product_param { num_output: 12 axis: 2 weight_filler { type: 'xavier' } } }\n"
    "  layer { name: 'a' type: 'Attention' bottom: 'qkv' bottom: 'segment' bottom: 'mask' top: "
    "'a'\n"
    "    attention_param { num_heads: 2 causal: true rotary { } extra: SEGMENTS\n"
    "      extra: KEY_MASK } }\n"
    "  layer { name: 'glu' type: 'GLU' bottom: 'a' bottom: 'n' top: 'g' }\n"
    "  layer { name: 'sum' type: 'Eltwise' bottom: 'x' bottom: 'g' top: 'x' } }\n"
    "layer { name: 'loss' type: 'LinearSoftmaxLoss' bottom: 'x' bottom: 'target' top: 'loss'\n"
    "  param { name: 'w' } loss_param { ignore_label: -1 }\n"
    "  linear_softmax_loss_param { num_output: 12 } }\n";
static const char records_net[] =
    "layer { name: 'd' type: 'Data' top: 'w' top: 'm' data_param { backend: RECORDS batch_size: 4\n"
    "  source: 'w.npy' source: 'w.offsets.npy' shuffle: true\n"
    "  records_param { lengths: BUCKET bucket: 2 } tensor { name: 'w' }\n"
    "  tensor { name: 'w.mask' } } }\n"
    "layer { name: 'wte' type: 'Embed' bottom: 'w' top: 'x' embed_param { input_dim: 9\n"
    "  num_output: 4 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'm' top: 'l'\n"
    "  softmax_param { axis: 2 } }\n";
static const char tokenizer[] =
    "{\"added_tokens\":[{\"id\":9,\"content\":\"<s>\",\"special\":true,\"rstrip\":true}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":"
    "\"Replace\",\"pattern\":{\"String\":\"b\"},\"content\":\"a\"}]},"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
    "\"Regex\":\"\\\\s+\"},\"behavior\":\"Isolated\"},{\"type\":\"Digits\"}]},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
    "\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"Sequence\":"
    "{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],"
    "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[9],\"tokens\":[\"<s>\"]}}},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\" \":1,\"aa\":2},\"merges\":[\"a a\"]}}";

static int do_text(struct lockstep_error *error)
{
    return train_from("text_solver.prototxt", "text", NULL, NULL, error);
}

static int do_records(struct lockstep_error *error)
{
    return train_from("records_solver.prototxt", "records", NULL, NULL, error);
}

/* To ids, with all that a tokenizer may have, and back. */
static int do_tokenize(struct lockstep_error *error)
{
    struct lockstep_tokenize_options options;
    const char *input = ls_test_path("text.txt"), *ids = ls_test_path("ids.bin");
    lockstep_tokenize_options_init(&options);
    options.tokenizer = ls_test_path("t.json");
    options.inputs = &input;
    options.input_count = 1;
    options.documents = "lines";
    options.special = 1;
    options.output = ids;
    int status = lockstep_tokenize(&options, NULL, error);
    if (status != 0)
        return status;
    options.inputs = &ids;
    options.documents = NULL;
    options.output = ls_test_path("back.txt");
    options.decode = 1;
    return lockstep_tokenize(&options, NULL, error);
}

/* To the other names and back, where two tensors are cut and joined. */
static int do_map(struct lockstep_error *error)
{
    int status = lockstep_convert_weight_names(ls_test_path("kept.safetensors"),
                                               ls_test_path("theirs.safetensors"),
                                               ls_test_path("x.map"), NULL, NULL, error);
    return status != 0 ? status
                       : lockstep_convert_weight_names(ls_test_path("theirs.safetensors"),
                                                       ls_test_path("ours.safetensors"),
                                                       ls_test_path("x.map"), NULL, NULL, error);
}

static int do_generate(struct lockstep_error *error)
{
    struct lockstep_generator_options options;
    struct lockstep_generator *generator = NULL;
    const int32_t prompt[] = {1, 2, 3};
    int32_t ids[2];
    lockstep_generator_options_init(&options);
    options.workers = 2;
    options.samples = 2;
    options.top_k = 3;
    options.callbacks.event = count_warnings;
    int status =
        lockstep_generator_load(ls_test_path("deploy.prototxt"), ls_test_path("kept.safetensors"),
                                &options, &generator, error);
    if (status == 0)
        status = lockstep_generator_begin(generator, prompt, 3, error);
    for (int i = 0; i < 8 && status == 0; i++)
        status = lockstep_generator_next(generator, ids, error);
    lockstep_generator_free(generator);
    return status;
}

static void training_on_texts_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("training on a text", do_text, 1);
}

static void training_on_records_survives_every_failed_allocation(void **state)
{
    (void)state;
    /* The plan for the longest records, which no batch may come to, is made to forecast memory. */
    fail_each_with("training on records", do_records, step_of_some(), 200);
}

static void tokenizing_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("tokenizing", do_tokenize, 1);
}

static void mapping_names_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("mapping names", do_map, 1);
}

static void writing_a_text_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each("writing a text", do_generate, 1);
}

static void write_two(const char *name, const char *first, const char *second)
{
    char *text = malloc(strlen(first) + strlen(second) + 1);
    assert_non_null(text);
    strcpy(text, first);
    strcat(text, second);
    ls_test_write_text(ls_test_path(name), text);
    free(text);
}

static int prepare(void **state)
{
    (void)state;
    char text[sizeof solver + 40];
    int32_t numbers[60], offsets[] = {0, 3, 4, 9, 11, 18, 22, 30, 44, 60};
    size_t size;
    struct lockstep_error *error = lockstep_error_new();
    for (int i = 0; i < 60; i++)
        numbers[i] = i % 9;
    write_npy(ls_test_path("w.npy"), "<i4", "(60,)", numbers, sizeof numbers);
    write_npy(ls_test_path("w.offsets.npy"), "<i4", "(10,)", offsets, sizeof offsets);
    ls_test_write_text(ls_test_path("text.txt"), "a bad cab is a bag\nabba ad aged egg\n");
    ls_test_write_text(ls_test_path("t.json"), tokenizer);
    ls_test_write_text(ls_test_path("records.prototxt"), records_net);
    write_two("text.prototxt", text_net, body);
    write_two("deploy.prototxt", input_net, body);
    ls_test_write_text(ls_test_path("x.map"),
                       "map { from: 'q.{i}' from: 'k.{i}' from: 'v.{i}' to: 'h.{i}.qkv.weight' }\n"
                       "map { from: '{x}.w' to: '{x}.weight' } map { from: '{x}.b' to: '{x}.bias' }"
                       "\nmap { from: '{x}.s' to: '{x}.scale' }");
    snprintf(text, sizeof text, solver, "text");
    ls_test_write_text(ls_test_path("text_solver.prototxt"), text);
    snprintf(text, sizeof text, solver, "records");
    ls_test_write_text(ls_test_path("records_solver.prototxt"), text);
    const int status = do_text(error);
    if (status != 0)
        printf("%s\n", lockstep_error_text(error));
    lockstep_error_free(error);
    if (status != 0)
        return status;
    char *snapshot = ls_test_read(ls_test_path("text_iter_2.safetensors"), &size);
    ls_test_write(ls_test_path("kept.safetensors"), snapshot, size);
    free(snapshot);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_on_texts_survives_every_failed_allocation),
        cmocka_unit_test(training_on_records_survives_every_failed_allocation),
        cmocka_unit_test(tokenizing_survives_every_failed_allocation),
        cmocka_unit_test(mapping_names_survives_every_failed_allocation),
        cmocka_unit_test(writing_a_text_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
