/* Predictions as text, JSON or CSV.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/predictions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "monitor/terminal.h"

const char *ls_cli_class_name(const struct lockstep_model *model, size_t index, char *buffer)
{
    const char *name = lockstep_model_class_name(model, index);
    if (name != NULL)
        return name;
    snprintf(buffer, 24, "%zu", index);
    return buffer;
}

/* Whether a value belongs before another one; NaN belongs before nothing. */
static bool before(float a, float b)
{
    return a > b || (a == a && b != b);
}

void ls_cli_rank(struct ls_cli_predictions *predictions, const float *values)
{
    size_t *order = predictions->order;
    size_t kept = 0;
    /* Insertion into a short list: `top` is small where the size is large. */
    for (size_t i = 0; i < predictions->size; i++) {
        size_t place = kept < predictions->top ? kept++ : predictions->top;
        while (place > 0 && before(values[i], values[order[place - 1]])) {
            if (place < predictions->top)
                order[place] = order[place - 1];
            place--;
        }
        if (place < predictions->top)
            order[place] = i;
    }
}

int ls_cli_predictions_begin(struct ls_cli_predictions *predictions, FILE *out,
                             enum ls_cli_format format, const struct lockstep_model *model,
                             size_t top)
{
    *predictions = (struct ls_cli_predictions){.out = out, .format = format, .model = model};
    predictions->size = lockstep_model_output_size(model);
    predictions->top = top < predictions->size ? top : predictions->size;
    predictions->json = (struct ls_json_writer){out, false};
    predictions->order = calloc(predictions->top + 1, sizeof *predictions->order);
    if (predictions->order == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "out of memory for the predictions");
    if (format == LS_CLI_FORMAT_JSON)
        ls_json_open(&predictions->json, NULL, '[');
    if (format == LS_CLI_FORMAT_CSV)
        fputs("input,label,rank,class,name,value\n", out);
    return 0;
}

void ls_cli_predictions_end(struct ls_cli_predictions *predictions)
{
    if (predictions->format == LS_CLI_FORMAT_JSON) {
        ls_json_close(&predictions->json, ']');
        putc('\n', predictions->out);
    }
    if (predictions->format == LS_CLI_FORMAT_JSONL && predictions->json.comma)
        putc('\n', predictions->out); /* behind the last line */
    free(predictions->order);
    predictions->order = NULL;
}

/* A field of CSV, quoted where it must be (RFC 4180). */
static void put_field(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

static void put_csv(struct ls_cli_predictions *predictions, const char *input, int label,
                    const float *values)
{
    FILE *out = predictions->out;
    for (size_t rank = 0; rank < predictions->top; rank++) {
        size_t class = predictions->order[rank];
        char number[24];
        put_field(out, input);
        putc(',', out);
        if (label >= 0)
            fprintf(out, "%d", label);
        fprintf(out, ",%zu,%zu,", rank + 1, class);
        put_field(out, ls_cli_class_name(predictions->model, class, number));
        fprintf(out, ",%.9g\n", (double)values[class]);
    }
}

static void put_json(struct ls_cli_predictions *predictions, const char *input, int label,
                     const float *values)
{
    struct ls_json_writer *json = &predictions->json;
    if (json->comma)
        fputs(predictions->format == LS_CLI_FORMAT_JSON ? ",\n " : "\n", json->stream);
    json->comma = false;
    ls_json_open(json, NULL, '{');
    ls_json_string(json, "input", input);
    if (label >= 0)
        ls_json_integer(json, "label", label);
    ls_json_open(json, "predictions", '[');
    for (size_t rank = 0; rank < predictions->top; rank++) {
        size_t class = predictions->order[rank];
        ls_json_open(json, NULL, '{');
        ls_json_integer(json, "class", (int64_t) class);
        ls_json_string(json, "name", lockstep_model_class_name(predictions->model, class));
        ls_json_number(json, "value", (double)values[class]);
        ls_json_close(json, '}');
    }
    ls_json_close(json, ']');
    ls_json_close(json, '}');
}

static void put_text(struct ls_cli_predictions *predictions, const char *input, int label,
                     const float *values)
{
    FILE *out = predictions->out;
    char number[24];
    ls_put_clean(out, input);
    if (label >= 0) {
        fputs(" (labelled ", out);
        ls_put_clean(out, ls_cli_class_name(predictions->model, (size_t)label, number));
        putc(')', out);
    }
    putc('\n', out);
    for (size_t rank = 0; rank < predictions->top; rank++) {
        size_t class = predictions->order[rank];
        double value = (double)values[class];
        /* Probabilities in columns; other figures with the digits that they need. */
        fprintf(out, value >= 0 && value <= 1 ? "  %8.4f  " : "  %8.4g  ", value);
        ls_put_clean(out, ls_cli_class_name(predictions->model, class, number));
        putc('\n', out);
    }
}

/* Once: weights of a training that diverged, or an input that is not finite, have more of them. */
static void warn_of_not_finite(struct ls_cli_predictions *predictions, const char *input,
                               const float *values)
{
    for (size_t i = 0; i < predictions->size && !predictions->warned; i++) {
        if (!isnan(values[i]) && values[i] != INFINITY) /* a logarithm may be -inf */
            continue;
        predictions->warned = true;
        ls_cli_error(
            0,
            "warning: %s: number %zu of its prediction is %g, as others may be: the input, or "
            "the weights, are not finite",
            input, i, (double)values[i]);
    }
}

void ls_cli_predictions_put(struct ls_cli_predictions *predictions, const char *input, int label,
                            const float *values)
{
    warn_of_not_finite(predictions, input, values);
    ls_cli_rank(predictions, values);
    if (predictions->format == LS_CLI_FORMAT_JSON || predictions->format == LS_CLI_FORMAT_JSONL)
        put_json(predictions, input, label, values);
    else if (predictions->format == LS_CLI_FORMAT_CSV)
        put_csv(predictions, input, label, values);
    else
        put_text(predictions, input, label, values);
}
