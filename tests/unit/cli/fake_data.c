/* The fake library: data tools, differences of snapshots, checks.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lockstep_source_options_init(struct lockstep_source_options *options)
{
    *options = (struct lockstep_source_options){.struct_size = sizeof *options};
}

int lockstep_source_help(const char *backend, void (*tell)(void *user, const char *line),
                         void *user, struct lockstep_error *error)
{
    (void)error;
    if (backend != NULL && strcmp(backend, "IDX") != 0)
        return LOCKSTEP_USAGE;
    tell(user, backend != NULL ? "IDX: fields" : "  IDX  images");
    return 0;
}

static void note_source(const char *what, const struct lockstep_source_options *source,
                        const char *path)
{
    fake_note("%s(%s|%s|%s|%d|%d|%d|%d|%" PRId64 "|%s", what, source->backend,
              fake_text(source->label_source), fake_text(source->root_folder),
              source->resize_height, source->resize_width, source->gray, source->shuffle,
              source->seed, fake_text(source->split));
    for (size_t i = 0; i < source->source_count; i++)
        fake_note("|%s", source->source[i]);
    fake_note("|%s) ", path);
    fake_send_events(&source->callbacks);
}

int lockstep_convert(const struct lockstep_source_options *source, const char *path,
                     int64_t *records, struct lockstep_error *error)
{
    note_source("convert", source, path);
    *records = 60000;
    return fake_answer(fake.convert_status, error);
}

void lockstep_tokenize_options_init(struct lockstep_tokenize_options *options)
{
    *options = (struct lockstep_tokenize_options){.struct_size = sizeof *options};
}

int lockstep_tokenize(const struct lockstep_tokenize_options *options,
                      struct lockstep_tokenize_counts *counts, struct lockstep_error *error)
{
    fake_note("tokenize(%s|%s|%s|%s|%s|%s|%g|%" PRId64 "|%d|%d|%d", options->tokenizer,
              fake_text(options->output), fake_text(options->format), fake_text(options->documents),
              fake_text(options->separator), fake_text(options->bytes), options->split,
              options->max_length, options->special, options->pairs, options->decode);
    for (size_t i = 0; i < options->input_count; i++)
        fake_note("|%s", options->inputs[i]);
    fake_note(") ");
    fake_send_events(&options->callbacks);
    *counts = (struct lockstep_tokenize_counts){.documents = 2,
                                                .bytes = 100,
                                                .characters = 90,
                                                .tokens = 40,
                                                .unknown = 1,
                                                .distinct = 30,
                                                .cut = options->max_length > 0,
                                                .train = options->split > 0 ? 36 : 0,
                                                .size = 1000,
                                                .type_size = 2};
    return fake_answer(fake.convert_status, error);
}

int lockstep_diff(const char *first, const char *second, void (*tell)(void *user, const char *line),
                  void *user, struct lockstep_error *error)
{
    (void)error;
    fake_note("diff(%s|%s) ", first, second);
    tell(user, "a line");
    return 0;
}

int lockstep_list_snapshots(const char *prefix,
                            void (*tell)(void *user, const struct lockstep_listed_snapshot *),
                            void *user, struct lockstep_error *error)
{
    (void)error;
    fake_note("list(%s) ", prefix);
    tell(user, &(struct lockstep_listed_snapshot){.path = "p_iter_20.safetensors",
                                                  .iteration = 20,
                                                  .bytes = 2048,
                                                  .has_best = 1,
                                                  .best = 0.75,
                                                  .is_best = 1,
                                                  .caffemodel = 1});
    tell(user, &(struct lockstep_listed_snapshot){
                   .path = "p_iter_40.safetensors", .iteration = 40, .problem = "is\x1b short"});
    return 0;
}

void lockstep_show_options_init(struct lockstep_show_options *options)
{
    *options = (struct lockstep_show_options){.struct_size = sizeof *options, .records = -1};
}

int lockstep_show(const char *path, const struct lockstep_show_options *options,
                  struct lockstep_error *error)
{
    static const int64_t shape[] = {3, 2};
    static const float pixels[] = {0, 255, 255, 0};
    fake_note("show(%s|%d) ", path, (int)options->records);
    options->kind(options->user, "lmdb", "a database");
    options->fact(options->user, "records", "2");
    options->fact(options->user, "classes", "cat\ndog\n");
    options->tensor(options->user, &(struct lockstep_shown_tensor){.name = "conv.weight",
                                                                   .type = "F32",
                                                                   .rank = 2,
                                                                   .shape = shape,
                                                                   .count = 6,
                                                                   .has_figures = 1,
                                                                   .most = 0.5,
                                                                   .not_finite = 1});
    options->record(options->user, &(struct lockstep_shown_record){.index = 1,
                                                                   .name = "k\x1b",
                                                                   .text = "image 1x2x2 U8",
                                                                   .label = 7,
                                                                   .shape = {1, 2, 2},
                                                                   .pixels = pixels});
    return fake_answer(fake.convert_status, error);
}

int lockstep_mean(const struct lockstep_source_options *source, const char *path,
                  double *channel_means, int *channels, struct lockstep_error *error)
{
    note_source("mean", source, path);
    *channels = 2;
    channel_means[0] = 104.5;
    channel_means[1] = 117;
    return fake_answer(fake.convert_status, error);
}

int lockstep_plugin_load(const char *path, struct lockstep_error *error)
{
    fake_note("plugin(%s) ", path);
    return fake_answer(fake.load_status, error);
}

void lockstep_plugin_check_options_init(struct lockstep_plugin_check_options *options)
{
    *options = (struct lockstep_plugin_check_options){.struct_size = sizeof *options};
}

int lockstep_plugin_check(const char *path, const struct lockstep_plugin_check_options *options,
                          struct lockstep_error *error)
{
    fake_note("plugin_check(%s|%s|%zu|%zu) ", path, fake_text(options->type),
              options->setting_count, options->bottom_count);
    options->tell(options->user, "a type: passes");
    return fake_answer(fake.load_status, error);
}

int lockstep_convert_weights(const char *from, const char *to,
                             void (*tell)(void *user, const char *line), void *user,
                             struct lockstep_error *error)
{
    fake_note("convert_weights(%s|%s) ", from, to);
    tell(user, "a line");
    return fake_answer(fake.convert_status, error);
}

int lockstep_convert_weight_names(const char *from, const char *to, const char *map,
                                  void (*tell)(void *user, const char *line), void *user,
                                  struct lockstep_error *error)
{
    fake_note("convert_weight_names(%s|%s|%s) ", from, to, map);
    tell(user, "a line");
    return fake_answer(fake.convert_status, error);
}

void lockstep_import_options_init(struct lockstep_import_options *options)
{
    *options = (struct lockstep_import_options){.struct_size = sizeof *options};
}

int lockstep_import_onnx(const char *path, const char *prefix,
                         const struct lockstep_import_options *options,
                         void (*tell)(void *user, const char *line), void *user,
                         struct lockstep_error *error)
{
    fake_note("import(%s|%s|%s|%d", path, prefix, options->loss != NULL ? options->loss : "-",
              options->solver);
    for (size_t i = 0; i < options->shape_count; i++)
        fake_note("|%s", options->shapes[i]);
    fake_note(") ");
    tell(user, "a file");
    return fake_answer(fake.convert_status, error);
}

void lockstep_prune_options_init(struct lockstep_prune_options *options)
{
    *options = (struct lockstep_prune_options){.struct_size = sizeof *options};
}

int lockstep_prune(const char *weights, const char *path,
                   const struct lockstep_prune_options *options, int64_t *size, int64_t *masked,
                   struct lockstep_error *error)
{
    fake_note("prune(%s|%s|%g|%d", weights, path, options->sparsity, options->global);
    for (size_t i = 0; i < options->layer_count; i++)
        fake_note("|%s", options->layers[i]);
    fake_note(") ");
    options->tell(options->user, "conv.weight", 300, 75);
    *size = 400;
    *masked = 100;
    return fake_answer(fake.convert_status, error);
}

void lockstep_onnx_options_init(struct lockstep_onnx_options *options)
{
    *options = (struct lockstep_onnx_options){.struct_size = sizeof *options};
}

int lockstep_model_export_onnx(struct lockstep_model *model, const char *path,
                               const struct lockstep_onnx_options *options,
                               struct lockstep_error *error)
{
    (void)model;
    fake_note("export_onnx(%s|%d|%lld|%d|%d) ", path, options->opset, (long long)options->batch,
              options->external, options->preprocessing);
    options->tell(options->user, "a line");
    return fake_answer(fake.convert_status, error);
}

int lockstep_model_save(struct lockstep_model *model, const char *path,
                        struct lockstep_error *error)
{
    (void)model;
    fake_note("save(%s) ", path);
    return fake_answer(fake.convert_status, error);
}

void lockstep_check_options_init(struct lockstep_check_options *options)
{
    *options = (struct lockstep_check_options){.struct_size = sizeof *options};
}

int lockstep_check(const struct lockstep_solver *solver,
                   const struct lockstep_check_options *options, struct lockstep_error *error)
{
    (void)solver, (void)options, (void)error;
    return 0;
}

int lockstep_check_model(const char *path, const struct lockstep_check_options *options,
                         struct lockstep_error *error)
{
    (void)path, (void)options, (void)error;
    return 0;
}

int lockstep_source_survey(const struct lockstep_source_options *source,
                           struct lockstep_source_facts *facts, struct lockstep_error *error)
{
    (void)source;
    (void)error;
    *facts = (struct lockstep_source_facts){.records = 100,
                                            .channels = 1,
                                            .height = 28,
                                            .width = 28,
                                            .height_least = 28,
                                            .height_most = 28,
                                            .width_least = 28,
                                            .width_most = 28,
                                            .classes = 2,
                                            .class_records = {50, 50}};
    return 0;
}
