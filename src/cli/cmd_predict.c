/* lockstep predict: what a trained net says about pictures, or about samples of its test data.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/gallery.h"
#include "cli/model.h"
#include "cli/output_file.h"
#include "cli/predict_each.h"
#include "cli/predictions.h"
#include "cli/report.h"
#include "cli/signals.h"

struct values {
    struct ls_cli_model_values model;
    const char *format, *output_file;
    int64_t top, samples, first;
    int draw, skip_damaged;
    struct ls_cli_list inputs, lists;
};

/* A run of the command. */
struct session {
    const struct values *values;
    struct lockstep_model *model;
    struct lockstep_error *error; /* of the input at hand */
    struct ls_cli_predictions predictions;
    struct ls_cli_gallery gallery;
    float *output;
    int64_t labelled, right;
    bool whole; /* all was predicted that can be */
};

/* Reports the problem of one input and makes room for the next one's. */
static int report_input(struct session *session, int status)
{
    ls_cli_report(status, session->error);
    lockstep_error_free(session->error);
    session->error = lockstep_error_new();
    return status;
}

/* A sample with its pixels, which the gallery takes. */
static int draw_sample(struct session *session, int64_t index)
{
    int64_t shape[3];
    int label;
    int status = lockstep_model_predict_sample(session->model, index, shape, NULL, &label,
                                               session->output, session->error);
    if (status != 0)
        return status;
    float *pixels = calloc((size_t)(shape[0] * shape[1] * shape[2]) + 1, sizeof *pixels);
    if (pixels == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "out of memory for the picture of sample %" PRId64,
                            index);
    status = lockstep_model_predict_sample(session->model, index, shape, pixels, &label,
                                           session->output, session->error);
    if (status != 0) {
        free(pixels);
        return status;
    }
    ls_cli_rank(&session->predictions, session->output);
    ls_cli_gallery_add(&session->gallery, stdout, shape, pixels, &session->predictions,
                       session->output, label);
    session->labelled += label >= 0;
    session->right += label >= 0 && (size_t)label == session->predictions.order[0];
    return 0;
}

static int tell_sample(struct session *session, int64_t index)
{
    int64_t shape[3];
    int label;
    int status = lockstep_model_predict_sample(session->model, index, shape, NULL, &label,
                                               session->output, session->error);
    if (status != 0)
        return status;
    char name[48];
    snprintf(name, sizeof name, "sample %" PRId64, index);
    ls_cli_predictions_put(&session->predictions, name, label, session->output);
    session->labelled += label >= 0;
    session->right += label >= 0 && (size_t)label == session->predictions.order[0];
    return 0;
}

static int predict_samples(struct session *session)
{
    const struct values *values = session->values;
    int64_t end = lockstep_model_sample_count(session->model);
    if (end == 0)
        return ls_cli_usage_error("predict: the net has no test data to take samples from");
    if (values->first >= end)
        return ls_cli_usage_error("predict: there is no sample %" PRId64
                                  "; the net's test data have %" PRId64,
                                  values->first, end);
    if (values->samples < end - values->first)
        end = values->first + values->samples;
    int result = 0;
    for (int64_t index = values->first; index < end && !ferror(session->predictions.out); index++) {
        int status = values->draw ? draw_sample(session, index) : tell_sample(session, index);
        if (status != 0)
            status = report_input(session, status);
        result = result != 0 ? result : status;
        if (status == LOCKSTEP_USAGE) /* no sample has what is asked for */
            break;
    }
    session->whole = result == 0 || result == LOCKSTEP_DATA;
    ls_cli_gallery_draw(&session->gallery, stdout);
    if (session->predictions.format == LS_CLI_FORMAT_TEXT && session->labelled > 0)
        printf("%" PRId64 " of %" PRId64 " right\n", session->right, session->labelled);
    return result;
}

/* predict names a class for each picture. */
static int refuse_maps(const struct lockstep_model *model)
{
    size_t size = lockstep_model_output_size(model);
    size_t positions = lockstep_model_output_positions(model);
    const char *hint = "'lockstep test' measures such a net; lockstep_model_predict, or "
                       "Net.predict_picture of Python, gives a program its numbers";
    if (size == positions)
        return ls_cli_error(LOCKSTEP_DEFINITION,
                            "predict names the class of a picture, but this net gives %zu numbers "
                            "that are no scores of classes, such as rows of boxes, or a map. "
                            "hint: %s",
                            size, hint);
    return ls_cli_error(LOCKSTEP_DEFINITION,
                        "predict names the class of a picture, but this net classifies each of "
                        "%zu positions (%zu scores per position). hint: %s",
                        positions, size / positions, hint);
}

static int predict(struct session *session, FILE *out, enum ls_cli_format format,
                   const struct lockstep_inputs *inputs)
{
    const struct values *values = session->values;
    const struct ls_cli_predict_each each = {.inputs = &values->inputs,
                                             .lists = &values->lists,
                                             .predictions = &session->predictions,
                                             .skip_damaged = values->skip_damaged != 0,
                                             .output_file = values->output_file};
    size_t size = lockstep_model_output_size(session->model);
    if (lockstep_model_output_positions(session->model) > 1)
        return refuse_maps(session->model);
    session->output = calloc(size + 1, sizeof *session->output);
    if (size == 0 || session->output == NULL)
        return ls_cli_error(size == 0 ? LOCKSTEP_DEFINITION : LOCKSTEP_RESOURCE,
                            size == 0
                                ? "predict: the net ends with losses and metrics alone. hint: "
                                  "'lockstep test' measures it, 'lockstep generate' writes "
                                  "texts; a deploy form, without the loss, predicts"
                                : "out of memory");
    int status = ls_cli_predictions_begin(&session->predictions, out, format, session->model,
                                          (size_t)values->top);
    if (status != 0)
        return status;
    status = inputs == NULL ? predict_samples(session)
                            : ls_cli_predict_each(&each, session->model, inputs, &session->whole);
    ls_cli_predictions_end(&session->predictions);
    return status;
}

/* The same into the file that the user names. Where an input cannot be read, the file has the
 * others, which the status says. */
static int predict_to_file(struct session *session, enum ls_cli_format format,
                           const struct lockstep_inputs *inputs)
{
    struct ls_cli_output_file file;
    int status = ls_cli_output_open(session->values->output_file, &file);
    if (status != 0)
        return status;
    status = predict(session, file.stream, format, inputs);
    if (session->whole) {
        int written = ls_cli_output_commit(&file);
        if (written == 0)
            printf("Wrote the predictions to %s\n", session->values->output_file);
        return written != 0 ? written : status;
    }
    if (ferror(file.stream)) /* its reason is told by what fails last */
        return ls_cli_output_commit(&file);
    ls_cli_output_abandon(&file);
    return status;
}

/* What is read stays. */
static int check_output(const struct values *values)
{
    const struct ls_cli_list *lists[] = {&values->inputs, &values->lists};
    int status = ls_cli_check_model_output("predict", values->output_file, &values->model);
    for (size_t i = 0; i < sizeof lists / sizeof *lists && status == 0; i++)
        status =
            ls_cli_check_output("predict", values->output_file, lists[i]->items, lists[i]->count);
    return status;
}

/* What the options say together; LOCKSTEP_USAGE after a message if that is nonsense. */
static int check(const struct values *values, enum ls_cli_format *format)
{
    static const char *const names[] = {"text", "json", "jsonl", "csv", NULL};
    int index = 0;
    while (names[index] != NULL && strcmp(names[index], values->format) != 0)
        index++;
    if (names[index] == NULL)
        return ls_cli_usage_error("predict: --format %s is unknown. hint: text, json, jsonl or csv",
                                  values->format);
    *format = (enum ls_cli_format)index;
    const bool outside = values->inputs.count > 0 || values->lists.count > 0;
    if ((values->samples > 0) == outside)
        return ls_cli_usage_error("predict: give either inputs (pictures, folders, .npy files, "
                                  "--list FILE) or --samples N, the first N of the net's test "
                                  "data");
    if (values->draw &&
        (values->samples == 0 || *format != LS_CLI_FORMAT_TEXT || values->output_file != NULL))
        return ls_cli_usage_error("predict: --draw goes with --samples N and --format text, and "
                                  "not with --output-file");
    return check_output(values);
}

static enum lockstep_request poll(void *user)
{
    (void)user;
    return ls_cli_signal_request();
}

/* Predictions are on stdout. */
static void hear(void *user, const struct lockstep_event *event)
{
    (void)user;
    if (event->kind == LOCKSTEP_EVENT_WARNING)
        ls_cli_error(0, "warning: %s", event->text);
}

static int load_and_predict(struct session *session, enum ls_cli_format format,
                            const struct lockstep_inputs *inputs)
{
    const struct values *values = session->values;
    struct lockstep_callbacks callbacks = {.event = hear};
    if (values->output_file != NULL) { /* whose part would be left behind */
        ls_cli_catch_signals(NULL);
        callbacks.poll = poll;
    }
    int status = ls_cli_load_model("predict", &values->model, 0, 0, callbacks, &session->model);
    if (status != 0)
        return status;
    session->error = lockstep_error_new();
    status = values->output_file != NULL ? predict_to_file(session, format, inputs)
                                         : predict(session, stdout, format, inputs);
    free(session->output);
    lockstep_error_free(session->error);
    lockstep_model_free(session->model);
    return status;
}

static int run(const void *data)
{
    struct session session = {.values = data};
    enum ls_cli_format format = LS_CLI_FORMAT_TEXT;
    struct lockstep_inputs *inputs = NULL;
    const struct ls_cli_predict_each each = {.inputs = &session.values->inputs,
                                             .lists = &session.values->lists};
    int status = check(session.values, &format);
    if (status == 0 && session.values->samples == 0)
        status = ls_cli_read_inputs(&each, &inputs);
    if (status == 0)
        status = load_and_predict(&session, format, inputs);
    lockstep_inputs_free(inputs);
    return status;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->format = "text";
    values->top = 5;
}

/* How both commands write predictions. */
#define OUTPUT_OPTIONS                                                                             \
    LS_CLI_ROW(LS_CLI_INTEGER, "top", "K", struct values, top, 1,                                  \
               "show the K best classes; default: 5"),                                             \
        LS_CLI_CHOICE("format", "KIND", struct values, format, "text json jsonl csv",              \
                      "text, json, jsonl (an object a line) or csv; default: text"),               \
        LS_CLI_ROW(LS_CLI_TEXT, "output-file", "FILE", struct values, output_file, 0,              \
                   "write the predictions there; default: to the standard output"),                \
        LS_CLI_ROW(LS_CLI_FLAG, "skip-damaged", NULL, struct values, skip_damaged, 0,              \
                   "report inputs that cannot be read, without failing")

static const struct ls_cli_option options[] = {
    LS_CLI_MODEL_OPTIONS(struct values, model),
    LS_CLI_PICTURE_OPTIONS(struct values, model),
    OUTPUT_OPTIONS,
    LS_CLI_ROW(LS_CLI_LIST, "list", "FILE", struct values, lists, 0,
               "pictures of a list, a path a line, with a space and a label behind it\n"
               "or without; - is the standard input; may be given several times"),
    LS_CLI_ROW(LS_CLI_INTEGER, "samples", "N", struct values, samples, 1,
               "instead of pictures: the first N samples of the net's test data"),
    LS_CLI_ROW(LS_CLI_INTEGER, "first", "I", struct values, first, 0,
               "begin with sample I; default: 0"),
    LS_CLI_ROW(LS_CLI_FLAG, "draw", NULL, struct values, draw, 0, "draw these samples"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_predict = {
    .name = "predict",
    .summary = "classifies pictures with a trained net",
    .usage = "--model FILE --weights FILE [OPTIONS] INPUTS...",
    .options = options,
    .arguments = offsetof(struct values, inputs),
    .arguments_max = SIZE_MAX,
    .arguments_name = "INPUTS",
    .example = "lockstep predict --model lenet.prototxt --weights lenet_iter_10000.safetensors "
               "--top 3 photo.jpg\n"
               "lockstep predict --model lenet.prototxt --weights lenet_iter_10000.safetensors \\\n"
               "    --format csv --output-file scores.csv photos/ --list more.txt\n"
               "lockstep predict --model lenet.prototxt --weights lenet_iter_10000.safetensors "
               "--samples 10 --draw",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};

static const struct ls_cli_option classify_options[] = {
    LS_CLI_MODEL_OPTIONS(struct values, model),
    LS_CLI_PICTURE_OPTIONS(struct values, model),
    OUTPUT_OPTIONS,
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_classify = {
    .name = "classify",
    .summary = "names the best classes of pictures, with a published net",
    .usage = "--model FILE --weights FILE [--mean MEAN] [--labels FILE] PICTURE...",
    .options = classify_options,
    .arguments = offsetof(struct values, inputs),
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .arguments_name = "PICTURES",
    .example = "lockstep classify --model deploy.prototxt --weights bvlc_googlenet.caffemodel \\\n"
               "    --mean 104,117,123 --resize 256 --labels synset_words.txt cat.jpg",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
