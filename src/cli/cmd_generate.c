/* lockstep generate: texts that a trained net writes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cards.h"
#include "cli/commands.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/size.h"
#include "cli/stops.h"
#include "cli/written.h"
#include "monitor/terminal.h"

enum {
    PROMPT_MAX = 64 << 20,     /* bytes */
    SIDE_BY_SIDE_MAX = 1 << 20 /* tokens of each of several texts, which are kept until they end */
};

struct values {
    struct ls_cli_model_values model;
    const char *prompt, *prompt_file, *temperature, *top_p, *tokenizer;
    int64_t length, top_k, seed, samples;
    int greedy, ids, whole, no_prompt, ignore_end;
    struct ls_cli_list stop;
};

/* A run of the command. */
struct session {
    const struct values *values;
    struct lockstep_generator *generator;
    struct lockstep_error *error;
    char *text; /* the prompt, where it was read from a file */
    size_t length;
    int32_t *ids; /* its tokens */
    size_t count;
    int32_t *stop; /* with --ids: tokens that end a text, as many as there are --stop */
    struct ls_cli_written *written; /* by sample */
    struct ls_cli_held *held;       /* the same: what may be the beginning of a --stop */
    int32_t *next;                  /* the same: its next token */
    bool *ended;                    /* the same */
};

/* ---- The prompt ------------------------------------------------------------------------------ */

/* All of a file, or of standard input, which "-" stands for. */
static int read_prompt(struct session *session, const char *path)
{
    const bool outside = strcmp(path, "-") == 0;
    FILE *file = outside ? stdin : fopen(path, "rb");
    if (file == NULL)
        return ls_cli_error(LOCKSTEP_USAGE, "generate: cannot read '%s': %s", path,
                            strerror(errno));
    size_t room = 0;
    int status = 0;
    while (status == 0 && !feof(file) && !ferror(file)) {
        if (session->length == room) {
            room = room == 0 ? 4096 : 2 * room;
            char *more = room <= PROMPT_MAX ? realloc(session->text, room) : NULL;
            if (more == NULL) {
                status = ls_cli_error(LOCKSTEP_RESOURCE, "generate: '%s' is more than %d bytes",
                                      path, PROMPT_MAX);
                break;
            }
            session->text = more;
        }
        session->length += fread(session->text + session->length, 1, room - session->length, file);
    }
    if (status == 0 && ferror(file))
        status =
            ls_cli_error(LOCKSTEP_USAGE, "generate: cannot read '%s': %s", path, strerror(errno));
    if (!outside)
        fclose(file);
    return status;
}

/* Numbers between white space or commas. */
static int parse_ids(const char *text, size_t length, int32_t **ids, size_t *count)
{
    *ids = calloc(length + 1, sizeof **ids);
    if (*ids == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "generate: out of memory");
    for (size_t at = 0; at < length;) {
        if (isspace((unsigned char)text[at]) || text[at] == ',') {
            at++;
            continue;
        }
        int64_t number = 0;
        const size_t begin = at;
        while (at < length && isdigit((unsigned char)text[at]) && number <= INT32_MAX)
            number = 10 * number + (text[at++] - '0');
        if (at == begin || number > INT32_MAX)
            return ls_cli_usage_error("generate: byte %zu of the prompt is no part of a number of "
                                      "a token",
                                      at + 1);
        (*ids)[(*count)++] = (int32_t)number;
    }
    return 0;
}

/* The tokens of a text as the command line has it. */
static int encode(struct session *session, const char *text, size_t length, int32_t **ids,
                  size_t *count)
{
    const int32_t *found;
    *ids = NULL;
    *count = 0;
    if (session->values->ids)
        return parse_ids(text, length, ids, count);
    int status =
        lockstep_generator_encode(session->generator, text, length, &found, count, session->error);
    if (status != 0)
        return ls_cli_report(status, session->error);
    *ids = calloc(*count + 1, sizeof **ids);
    if (*ids == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "generate: out of memory");
    memcpy(*ids, found, *count * sizeof **ids);
    return 0;
}

/* A text must begin with something: without a prompt that is what stands between texts. */
static int set_prompt(struct session *session)
{
    const struct values *values = session->values;
    int status = 0;
    if (values->prompt_file != NULL)
        status = read_prompt(session, values->prompt_file);
    const char *text = values->prompt != NULL ? values->prompt : session->text;
    const size_t length = values->prompt != NULL ? strlen(values->prompt) : session->length;
    if (status == 0 && length > 0)
        status = encode(session, text, length, &session->ids, &session->count);
    return status;
}

/* The token that --stop names. */
static int find_stop(const char *text, int32_t *stop)
{
    int32_t *ids;
    size_t count = 0;
    int status = parse_ids(text, strlen(text), &ids, &count);
    if (status == 0 && count != 1)
        status = ls_cli_usage_error(
            "generate: --stop '%s' is %zu numbers of tokens; it must be one", text, count);
    if (status == 0)
        *stop = ids[0];
    free(ids);
    return status;
}

static int find_stops(struct session *session)
{
    const struct ls_cli_list *stop = &session->values->stop;
    session->stop = calloc(stop->count + 1, sizeof *session->stop);
    if (session->stop == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "generate: out of memory");
    int status = 0;
    for (size_t i = 0; i < stop->count && status == 0; i++)
        if (session->values->ids)
            status = find_stop(stop->items[i], &session->stop[i]);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_number(struct ls_cli_written *written, int32_t id)
{
    char number[16];
    snprintf(number, sizeof number, "%s%" PRId32, written->begun ? " " : "", id);
    ls_cli_written_put(written, number, strlen(number));
}

/* The bytes of a token of a text; NULL: it has none. */
static const char *bytes_of(struct session *session, size_t sample, int32_t id, bool begins,
                            size_t *length)
{
    return lockstep_generator_token(
        session->generator, id,
        begins && !session->written[sample].begun && session->held[sample].length == 0, length);
}

static void put_prompt(struct session *session, size_t sample)
{
    size_t length;
    for (size_t i = 0; i < session->count; i++) {
        const char *bytes =
            session->values->ids ? NULL : bytes_of(session, sample, session->ids[i], true, &length);
        if (session->values->ids)
            put_number(&session->written[sample], session->ids[i]);
        else if (bytes != NULL)
            ls_cli_written_put(&session->written[sample], bytes, length);
    }
}

/* Puts what comes behind the prompt, but for what --stop names. */
static int put_text(struct session *session, size_t sample, int32_t id)
{
    const struct ls_cli_list *stop = &session->values->stop;
    struct ls_cli_held *held = &session->held[sample];
    const bool begins = session->count == 0;
    size_t length, ready;
    bool stopped;
    const char *bytes = bytes_of(session, sample, id, begins, &length);
    if (bytes == NULL)
        return 0;
    if (!ls_cli_held_add(held, bytes, length, stop->items, stop->count, &ready, &stopped))
        return ls_cli_error(LOCKSTEP_RESOURCE, "generate: out of memory");
    ls_cli_written_put(&session->written[sample], held->bytes, ready);
    ls_cli_held_drop(held, stopped ? held->length : ready);
    session->ended[sample] = stopped;
    return 0;
}

static bool is_stop(const struct session *session, int32_t id)
{
    for (size_t i = 0; session->values->ids && i < session->values->stop.count; i++)
        if (id == session->stop[i])
            return true;
    return !session->values->ignore_end && lockstep_generator_ends(session->generator, id);
}

/* Puts the next token of each text, and notes those that end; how many go on. */
static int put_next(struct session *session, int64_t *left)
{
    int status = 0;
    *left = 0;
    for (int64_t s = 0; s < session->values->samples && status == 0; s++) {
        session->ended[s] = session->ended[s] || is_stop(session, session->next[s]);
        if (session->ended[s])
            continue;
        if (session->values->ids)
            put_number(&session->written[s], session->next[s]);
        else
            status = put_text(session, (size_t)s, session->next[s]);
        *left += !session->ended[s];
    }
    return status;
}

static int write_texts(struct session *session)
{
    const struct values *values = session->values;
    const int32_t start = lockstep_generator_start(session->generator);
    int64_t left = values->samples;
    if (session->count == 0 && start < 0)
        return ls_cli_usage_error(
            "generate: the prompt has no tokens, and it is not known what a text "
            "begins with: the vocabulary has no token for that. hint: --prompt "
            "with a first word or character");
    int status =
        lockstep_generator_begin(session->generator, session->count > 0 ? session->ids : &start,
                                 session->count > 0 ? session->count : 1, session->error);
    for (int64_t s = 0; s < values->samples && status == 0 && !values->no_prompt; s++)
        put_prompt(session, (size_t)s);
    for (int64_t i = 0; i < values->length && status == 0 && left > 0 && !ferror(stdout); i++) {
        status = lockstep_generator_next(session->generator, session->next, session->error);
        if (status == 0 && put_next(session, &left) != 0)
            return LOCKSTEP_RESOURCE;
    }
    return status != 0 ? ls_cli_report(status, session->error) : 0;
}

static int put_texts(struct session *session)
{
    const int64_t samples = session->values->samples;
    session->written = calloc((size_t)samples, sizeof *session->written);
    session->held = calloc((size_t)samples, sizeof *session->held);
    session->next = calloc((size_t)samples, sizeof *session->next);
    session->ended = calloc((size_t)samples, sizeof *session->ended);
    if (session->written == NULL || session->held == NULL || session->next == NULL ||
        session->ended == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "generate: out of memory");
    if (samples == 1) /* comes as it is written */
        session->written[0].out = stdout;
    int status = write_texts(session);
    bool whole = true;
    if (status == LOCKSTEP_USAGE)
        return status; /* nothing was written */
    for (int64_t s = 0; s < samples; s++) {
        if (samples > 1 && !session->values->ids)
            printf("--- text %" PRId64 "\n", s + 1);
        ls_cli_written_put(&session->written[s], session->held[s].bytes, session->held[s].length);
        whole = ls_cli_written_end(&session->written[s], stdout) && whole;
    }
    return status == 0 && !whole ? ls_cli_error(LOCKSTEP_RESOURCE, "generate: out of memory")
                                 : status;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* A number that an option gives; false: it is none. */
static bool read_number(const char *text, double *number)
{
    const char *end = text != NULL ? ls_cli_parse_number(text, number) : "";
    return end != NULL && *end == '\0';
}

static int set_options(const struct values *values, struct lockstep_generator_options *options)
{
    lockstep_generator_options_init(options);
    options->workers = (int)values->model.workers;
    options->isa = values->model.isa;
    options->device = values->model.device;
    ls_cli_note_cards(values->model.device);
    options->level = (int)values->model.level;
    options->stages = values->model.stages.items;
    options->stage_count = values->model.stages.count;
    options->map = values->model.map;
    options->output = values->model.output;
    options->samples = (int)values->samples;
    options->whole = values->whole;
    options->top_k = values->top_k;
    options->seed = (uint64_t)values->seed;
    options->tokenizer = values->tokenizer;
    if (!read_number(values->temperature, &options->temperature))
        return ls_cli_usage_error("generate: --temperature '%s' is no number of at least 0",
                                  values->temperature);
    if (!read_number(values->top_p, &options->top_p))
        return ls_cli_usage_error("generate: --top-p '%s' is no number above 0 and at most 1",
                                  values->top_p);
    if (values->greedy && values->temperature != NULL)
        return ls_cli_usage_error("generate: give --greedy or --temperature, not both");
    if (values->greedy)
        options->temperature = 0;
    return 0;
}

static int check(const struct values *values)
{
    if (values->model.model == NULL)
        return ls_cli_usage_error("generate: --model FILE is missing");
    if (values->model.weights == NULL)
        return ls_cli_usage_error("generate: --weights FILE is missing");
    if (values->prompt != NULL && values->prompt_file != NULL)
        return ls_cli_usage_error("generate: give --prompt or --prompt-file, not both");
    if (values->tokenizer != NULL && values->ids)
        return ls_cli_usage_error("generate: give --tokenizer or --ids, not both");
    if (values->samples > 1 && values->length > SIDE_BY_SIDE_MAX)
        return ls_cli_usage_error("generate: several texts have at most %d tokens each; one text "
                                  "can be longer",
                                  SIDE_BY_SIDE_MAX);
    return 0;
}

static int generate(struct session *session)
{
    const struct values *values = session->values;
    struct lockstep_generator_options options;
    int status = check(values);
    if (status == 0)
        status = set_options(values, &options);
    if (status != 0)
        return status;
    options.callbacks.event = ls_cli_put_event;
    status = lockstep_generator_load(values->model.model, values->model.weights, &options,
                                     &session->generator, session->error);
    if (status != 0)
        return ls_cli_report(status, session->error);
    status = set_prompt(session);
    if (status == 0)
        status = find_stops(session);
    return status == 0 ? put_texts(session) : status;
}

static int run(const void *data)
{
    struct session session = {.values = data, .error = lockstep_error_new()};
    int status = generate(&session);
    lockstep_generator_free(session.generator);
    lockstep_error_free(session.error);
    for (int64_t s = 0; session.written != NULL && s < session.values->samples; s++)
        free(session.written[s].kept);
    for (int64_t s = 0; session.held != NULL && s < session.values->samples; s++)
        free(session.held[s].bytes);
    free(session.written);
    free(session.held);
    free(session.text);
    free(session.ids);
    free(session.stop);
    free(session.next);
    free(session.ended);
    return status;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->length = 200;
    values->samples = 1;
}

static const struct ls_cli_option options[] = {
    LS_CLI_MODEL_OPTIONS(struct values, model),
    LS_CLI_ROW(LS_CLI_TEXT, "tokenizer", "FILE", struct values, tokenizer, 0,
               "tokenizer.json, vocab.json beside merges.txt, vocab.txt, or a folder with\n"
               "one of them; default: the characters or bytes that the weights name"),
    LS_CLI_ROW(LS_CLI_TEXT, "prompt", "TEXT", struct values, prompt, LS_CLI_EMPTY,
               "what the text begins with; default: nothing, that is the token that\n"
               "separates texts, or the end of a line"),
    LS_CLI_ROW(LS_CLI_TEXT, "prompt-file", "FILE", struct values, prompt_file, 0,
               "the same from a file; -: from standard input"),
    LS_CLI_ROW(LS_CLI_INTEGER, "length", "N", struct values, length, 0,
               "tokens to write; default: 200"),
    LS_CLI_ROW(LS_CLI_TEXT, "temperature", "T", struct values, temperature, 0,
               "below 1: more probable tokens; above 1: more varied ones; default: 1"),
    LS_CLI_ROW(LS_CLI_INTEGER, "top-k", "K", struct values, top_k, 1,
               "choose from the K most probable tokens; default: from all"),
    LS_CLI_ROW(LS_CLI_TEXT, "top-p", "P", struct values, top_p, 0,
               "choose from the most probable tokens that have the probability P\n"
               "together; default: 1, from all"),
    LS_CLI_ROW(LS_CLI_FLAG, "greedy", NULL, struct values, greedy, 0,
               "take the most probable token each time, as --temperature 0 does"),
    LS_CLI_ROW(LS_CLI_INTEGER, "seed", "N", struct values, seed, 0,
               "the same seed writes the same text; default: 0"),
    LS_CLI_ROW(LS_CLI_LIST, "stop", "TEXT", struct values, stop, 0,
               "end in front of this text (with --ids: this token); may be given several\n"
               "times"),
    LS_CLI_ROW(LS_CLI_FLAG, "ignore-end", NULL, struct values, ignore_end, 0,
               "go on behind the token that ends texts"),
    LS_CLI_ROW(LS_CLI_INTEGER, "samples", "K", struct values, samples, 1,
               "write K texts side by side; default: 1"),
    LS_CLI_ROW(LS_CLI_FLAG, "ids", NULL, struct values, ids, 0,
               "read and write numbers of tokens instead of a text"),
    LS_CLI_ROW(LS_CLI_FLAG, "no-prompt", NULL, struct values, no_prompt, 0,
               "write what comes behind the prompt alone"),
    LS_CLI_ROW(LS_CLI_TEXT, "output", "BLOB", struct values, model.output, 0,
               "the logits of the next token; default: what the net ends with"),
    LS_CLI_ROW(LS_CLI_FLAG, "whole", NULL, struct values, whole, 0,
               "compute all of the text again for each token, instead of keeping keys,\n"
               "values and states"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_generate = {
    .name = "generate",
    .summary = "writes texts with a trained net",
    .usage = "--model FILE --weights FILE [--prompt TEXT] [OPTIONS]",
    .options = options,
    .example =
        "lockstep generate --model gpt_train_test.prototxt --weights gpt_iter_5000.safetensors "
        "\\\n    --prompt 'To be, or not' --length 500 --temperature 0.8 --top-k 40",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
