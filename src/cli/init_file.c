/* Files of text and of token ids, for `lockstep init`. See cli/init_data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/init_file.h"
#include "cli/report.h"

enum { TOKENS_LEAST = 2000, DIFFERENT_MOST = 1000 };

/* The bytes of the character of UTF-8 that a byte begins; 0: none does. */
static int begins_character(int byte)
{
    return byte < 0x80                   ? 1
           : byte >= 0xc2 && byte < 0xe0 ? 2
           : byte >= 0xe0 && byte < 0xf0 ? 3
           : byte >= 0xf0 && byte < 0xf5 ? 4
                                         : 0;
}

/* Counts characters; false: the text is not UTF-8. */
static bool count_characters(FILE *file, unsigned char *seen, struct ls_init_data *data)
{
    for (int byte; (byte = getc(file)) != EOF;) {
        int length = begins_character(byte);
        uint32_t code = (uint32_t)(length == 1 ? byte : byte & (0x7f >> length));
        for (int i = 1; i < length; i++) {
            int next = getc(file);
            if (next == EOF || (next & 0xc0) != 0x80)
                return false;
            code = code << 6 | (uint32_t)(next & 0x3f);
        }
        if (length == 0 || byte == 0 || code >= 0x110000)
            return false;
        data->different += (seen[code / 8] >> code % 8 & 1) == 0;
        seen[code / 8] |= (unsigned char)(1u << code % 8);
        data->characters++;
    }
    return true;
}

static int too_short(const char *path, const struct ls_init_data *data)
{
    return ls_cli_error(LOCKSTEP_DATA, "%s: a text of %lld %s is too short to train on", path,
                        data->characters, data->type != NULL ? "tokens" : "characters");
}

static int look_at_text(const char *path, struct ls_init_data *data)
{
    FILE *file = fopen(path, "re");
    unsigned char *seen = calloc(0x110000 / 8, 1);
    if (file == NULL || seen == NULL) {
        int status = ls_cli_error(LOCKSTEP_DATA, "%s: cannot be read: %s", path, strerror(errno));
        if (file != NULL)
            fclose(file);
        free(seen);
        return status;
    }
    data->backend = "TEXT";
    data->bytes = !count_characters(file, seen, data) || data->different > DIFFERENT_MOST;
    if (data->bytes) {
        fseek(file, 0, SEEK_END);
        data->characters = ftell(file);
        data->different = 256;
    }
    fclose(file);
    free(seen);
    return data->characters < TOKENS_LEAST ? too_short(path, data) : 0;
}

/* ---- Token ids ------------------------------------------------------------------------------- */

/* What lockstep show knows of a file. */
struct shown {
    char kind[24], summary[120], type[8];
    int rank;
    long long count, vocabulary;
    double largest;
};

static void take_kind(void *user, const char *name, const char *summary)
{
    struct shown *shown = user;
    snprintf(shown->kind, sizeof shown->kind, "%s", name);
    snprintf(shown->summary, sizeof shown->summary, "%s", summary);
}

static void take_fact(void *user, const char *name, const char *value)
{
    struct shown *shown = user;
    if (strcmp(name, "vocabulary") == 0)
        shown->vocabulary = atoll(value);
}

static void take_tensor(void *user, const struct lockstep_shown_tensor *tensor)
{
    struct shown *shown = user;
    snprintf(shown->type, sizeof shown->type, "%s", tensor->type);
    shown->rank = tensor->rank;
    shown->count = (long long)tensor->count;
    shown->largest = tensor->most;
}

/* A file of no known kind keeps kind "". A file that is damaged fails after a message. */
static int ask_show(const char *path, struct shown *shown)
{
    struct lockstep_show_options options;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_show_options_init(&options);
    options.records = 0;
    options.user = shown;
    options.kind = take_kind;
    options.fact = take_fact;
    options.tensor = take_tensor;
    int status = lockstep_show(path, &options, error);
    if (status == LOCKSTEP_USAGE && shown->kind[0] == '\0')
        status = 0;
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

/* Ids alone, of 16 bits or, where every second number of 16 bits is 0 or nearly, of 32. */
static int look_at_ids(const char *path, struct ls_init_data *data)
{
    unsigned char four[4];
    FILE *file = fopen(path, "rbe");
    unsigned long largest = 0, low = 0, high = 0;
    long long words = 0;
    if (file == NULL)
        return ls_cli_error(LOCKSTEP_DATA, "%s: cannot be read: %s", path, strerror(errno));
    for (size_t read; (read = fread(four, 1, 4, file)) > 0; words += (long long)(read / 2)) {
        const unsigned long first = four[0] | (unsigned long)four[1] << 8;
        const unsigned long second = read == 4 ? four[2] | (unsigned long)four[3] << 8 : 0;
        low = first > low ? first : low;
        high = second > high ? second : high;
        largest = (second << 16 | first) > largest ? second << 16 | first : largest;
    }
    fclose(file);
    const bool wide = words % 2 == 0 && high <= 3 && low > high;
    data->type = wide ? "U32" : "U16";
    data->characters = wide ? words / 2 : words;
    data->different = (long long)(wide ? largest : low > high ? low : high) + 1;
    return 0;
}

static int look_at_tokens(const char *path, const struct shown *shown, struct ls_init_data *data)
{
    data->backend = "TOKENS";
    if (shown->kind[0] == '\0') {
        int status = look_at_ids(path, data);
        if (status != 0)
            return status;
    } else {
        data->type = strcmp(shown->kind, "npy") == 0 ? "" : shown->type;
        data->characters = shown->count;
        data->different = shown->vocabulary > 0 ? shown->vocabulary : (long long)shown->largest + 1;
    }
    return data->characters < TOKENS_LEAST ? too_short(path, data) : 0;
}

static bool are_ids(const struct shown *shown)
{
    return strcmp(shown->kind, "tokens") == 0 ||
           (strcmp(shown->kind, "npy") == 0 && shown->rank == 1 &&
            (strcmp(shown->type, "U16") == 0 || strcmp(shown->type, "U32") == 0 ||
             strcmp(shown->type, "I32") == 0));
}

int ls_init_file_look(const char *path, const struct ls_init_hints *hints,
                      struct ls_init_data *data)
{
    struct shown shown = {.count = 0};
    struct stat info;
    if (stat(path, &info) == 0 && info.st_size == 0)
        return too_short(path, data);
    int status = ask_show(path, &shown);
    if (status != 0)
        return status;
    if (hints->backend != NULL && strcmp(hints->backend, "TEXT") == 0)
        return look_at_text(path, data);
    if (are_ids(&shown) || hints->backend != NULL)
        return look_at_tokens(path, &shown, data);
    if (strcmp(shown.kind, "text") == 0)
        return look_at_text(path, data);
    if (shown.kind[0] == '\0')
        return ls_init_unclear(data, "backend", "TOKENS", "TEXT",
                               "%s is no text, and has no header that says what it is: are these "
                               "token ids (TOKENS), or bytes to train on as they are (TEXT)?",
                               path);
    if (strcmp(shown.kind, "cifar") == 0)
        return ls_cli_error(LOCKSTEP_DATA,
                            "%s: is a part of CIFAR-10. hint: give the folder that has "
                            "data_batch_1.bin and the others",
                            path);
    if (strstr(" json net solver log tokenizer ", shown.kind) != NULL)
        return ls_init_unclear(data, "backend", "TEXT", "TOKENS",
                               "%s is %s: is it a text to train on (TEXT)?", path, shown.summary);
    return ls_cli_error(LOCKSTEP_DATA,
                        "%s: is %s, for which 'init' has no net. hint: it knows texts and token "
                        "ids; 'lockstep help init' lists all",
                        path, shown.summary);
}
