/* lockstep tokenize: text to files of token ids, and back.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/size.h"
#include "monitor/monitor.h"
#include "monitor/progress.h"

struct values {
    const char *tokenizer, *output, *format, *documents, *separator, *bytes;
    double split;
    int64_t max_length;
    int special, pairs, decode, count;
    struct ls_cli_list inputs;
};

static void report(struct ls_monitor *monitor, const struct values *values,
                   const struct lockstep_tokenize_counts *counts)
{
    const char *documents = values->pairs                                  ? "pairs"
                            : values->documents != NULL && !values->decode ? values->documents
                                                                           : "files";
    char size[LS_CLI_SIZE_ROOM];
    ls_monitor_say(monitor, "%" PRId64 " %s, %s, %" PRId64 " characters", counts->documents,
                   documents, ls_cli_format_size((uint64_t)counts->bytes, size),
                   counts->characters);
    ls_monitor_say(monitor,
                   "%" PRId64 " tokens: %.4g bytes each, %" PRId64 " of %" PRIu32
                   " ids occur, %" PRId64 " unknown",
                   counts->tokens,
                   counts->tokens > 0 ? (double)counts->bytes / (double)counts->tokens : 0.0,
                   counts->distinct, counts->size, counts->unknown);
    if (counts->cut > 0)
        ls_monitor_say(monitor, "%" PRId64 " were cut to %" PRId64 " tokens", counts->cut,
                       values->max_length);
    if (values->output == NULL)
        return;
    if (values->split > 0)
        ls_monitor_say(monitor,
                       "Wrote %" PRId64 " tokens to train with and %" PRId64 " to test with",
                       counts->train, counts->tokens - counts->train);
    else
        ls_monitor_say(monitor, "Wrote %s%s", values->output,
                       values->pairs ? " (_ids, _segments, _mask)" : "");
    if (values->format == NULL && !values->pairs && !values->decode)
        ls_monitor_say(monitor, "ids are of type %s", counts->type_size == 2 ? "U16" : "U32");
}

static int run(const void *data)
{
    const struct values *values = data;
    const bool to_stdout =
        values->decode && (values->output == NULL || strcmp(values->output, "-") == 0);
    if (values->tokenizer == NULL)
        return ls_cli_usage_error("tokenize: --tokenizer PATH is missing");
    if (values->output == NULL && values->bytes == NULL && !values->decode && !values->count)
        return ls_cli_usage_error("tokenize: nothing is to be written. hint: give --output FILE, "
                                  "--bytes FILE, or --count for the counts alone");
    struct lockstep_tokenize_options options;
    struct lockstep_tokenize_counts counts;
    struct ls_monitor monitor;
    struct ls_progress progress;
    ls_monitor_init(&monitor, stdout, NULL, NULL);
    ls_progress_init(&progress, stdout, NULL);
    lockstep_tokenize_options_init(&options);
    options.tokenizer = values->tokenizer;
    options.inputs = values->inputs.items;
    options.input_count = values->inputs.count;
    options.output = values->output;
    options.format = values->format;
    options.documents = values->documents;
    options.separator = values->separator;
    options.bytes = values->bytes;
    options.split = values->split;
    options.max_length = values->max_length;
    options.special = values->special;
    options.pairs = values->pairs;
    options.decode = values->decode;
    if (!to_stdout)
        options.callbacks = (struct lockstep_callbacks){&progress, ls_progress_event, NULL};
    struct lockstep_error *error = lockstep_error_new();
    const int status = lockstep_tokenize(&options, &counts, error);
    ls_progress_clear(&progress);
    if (status != 0)
        ls_cli_report(status, error);
    else if (!to_stdout && values->inputs.count > 0)
        report(&monitor, values, &counts);
    if (status == 0 && values->bytes != NULL && !to_stdout)
        ls_monitor_say(&monitor, "Wrote the bytes of %" PRIu32 " ids to %s", counts.size,
                       values->bytes);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "tokenizer", "PATH", struct values, tokenizer, 0,
               "tokenizer.json, vocab.json (GPT-2, with merges.txt beside it), vocab.txt\n"
               "(BERT), or a folder with one of them"),
    LS_CLI_ROW(LS_CLI_TEXT, "output", "FILE", struct values, output, 0,
               "where to write ids (also -o), or with --decode text"),
    LS_CLI_CHOICE("format", "NAME", struct values, format, "bin npy llmc",
                  "of ids: bin (ids alone, of 16 bits, or of 32 where there are more than\n"
                  "65536), npy, llmc (llm.c's); default: bin"),
    LS_CLI_CHOICE("documents", "WHAT", struct values, documents, "files lines",
                  "files or lines: what is encoded by itself; default: files"),
    LS_CLI_ROW(LS_CLI_TEXT, "separator", "TOKEN", struct values, separator, 0,
               "a token in front of each document, such as '<|endoftext|>'"),
    LS_CLI_ROW(LS_CLI_FLAG, "special", NULL, struct values, special, 0,
               "with the special tokens that the tokenizer's template puts around a\n"
               "text; with --decode: also special tokens are written"),
    LS_CLI_ROW(LS_CLI_INTEGER, "max-length", "N", struct values, max_length, 1,
               "leave out what is more than N tokens of a document, or pair"),
    LS_CLI_ROW(LS_CLI_PART, "split", "PART", struct values, split, 0,
               "two files: this part of the tokens (of lines, if they are documents) to\n"
               "OUTPUT_train, the rest to OUTPUT_test"),
    LS_CLI_ROW(LS_CLI_FLAG, "pairs", NULL, struct values, pairs, 0,
               "lines of two texts with a tab between them, to OUTPUT_ids.npy,\n"
               "OUTPUT_segments.npy and OUTPUT_mask.npy of --max-length each"),
    LS_CLI_ROW(LS_CLI_FLAG, "decode", NULL, struct values, decode, 0,
               "ids of --format back to text, to --output or standard output"),
    LS_CLI_ROW(LS_CLI_TEXT, "bytes", "FILE", struct values, bytes, 0,
               "a .npy file of how many bytes each id stands for (tokens_param.bytes_file)"),
    LS_CLI_ROW(LS_CLI_FLAG, "count", NULL, struct values, count, 0,
               "count tokens only, and write nothing"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_tokenize = {
    .name = "tokenize",
    .summary = "makes files of token ids of text, as Hugging Face's tokenizers do, and back",
    .usage = "--tokenizer PATH -o FILE [OPTIONS] TEXTS",
    .notes = "TEXTS are files in UTF-8; - is standard input.",
    .options = options,
    .arguments = offsetof(struct values, inputs),
    .arguments_min = 0,
    .arguments_max = SIZE_MAX,
    .arguments_name = "TEXTS",
    .example = "lockstep tokenize --tokenizer gpt2 --split 0.9 -o tokens.bin input.txt\n"
               "lockstep tokenize --tokenizer gpt2 --decode tokens_test.bin",
    .run = run,
    .values_size = sizeof(struct values),
};
