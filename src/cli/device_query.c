/* device_query, a name of Caffe's: the processor and the cards that can compute here.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cards.h"
#include "cli/caffe_tools.h"
#include "cli/report.h"
#include "monitor/json.h"

struct values {
    int json, to_stderr; /* messages go to stderr in any case */
    const char *gpu;
};

/* ---- Text ------------------------------------------------------------------------------------ */

static void put_card(void (*put)(void *user, const char *line), void *user, size_t index,
                     const struct lockstep_card *card)
{
    char line[384];
#define LINE(...)                                                                                  \
    do {                                                                                           \
        snprintf(line, sizeof line, __VA_ARGS__);                                                  \
        put(user, line);                                                                           \
    } while (0)
    LINE("Card:                          %zu", index);
    LINE("Name:                          %s", card->name);
    LINE("UUID:                          %s", card->uuid);
    LINE("Compute capability:            %d.%d", card->major, card->minor);
    LINE("Memory:                        %.1f GiB", (double)card->memory / 1073741824);
    LINE("Multiprocessors:               %d", card->multiprocessors);
    LINE("Lockstep's code runs on it:    %s", card->runs ? "yes" : "no: it needs 8.0 or more");
#undef LINE
}

/* The cards that are there, where all that a list (NULL: all) names are among them. */
static int find(const char *gpu, struct lockstep_cards **cards, struct lockstep_error *error)
{
    int status = lockstep_cards_find(cards, error);
    if (status != 0 || gpu == NULL)
        return status;
    status = lockstep_cards_check(*cards, gpu, error);
    if (status != 0) {
        lockstep_cards_free(*cards);
        *cards = NULL;
    }
    return status;
}

int ls_cli_describe_cards(const char *gpu, void (*put)(void *user, const char *line), void *user,
                          struct lockstep_error *error)
{
    struct lockstep_cards *cards;
    const int status = find(gpu, &cards, error);
    if (status != 0)
        return status;
    for (size_t i = 0; i < lockstep_cards_count(cards); i++)
        if (ls_cli_is_listed(gpu, i))
            put_card(put, user, i, lockstep_cards_get(cards, i));
    for (const char *line = lockstep_cards_libraries(cards); *line != '\0';) {
        char text[128];
        const size_t length = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)length, line);
        put(user, text);
        line += length + (line[length] == '\n');
    }
    put(user, lockstep_cards_tested(cards));
    lockstep_cards_free(cards);
    return 0;
}

bool ls_cli_is_listed(const char *gpu, size_t card)
{
    if (gpu == NULL || strcmp(gpu, "all") == 0)
        return true;
    for (;;) {
        char *end;
        const unsigned long long number = strtoull(gpu, &end, 10);
        if (end == gpu)
            return false;
        if (number == card)
            return true;
        if (*end != ',')
            return false;
        gpu = end + 1;
    }
}

void ls_cli_note_cards(const char *device)
{
    struct lockstep_cards *cards;
    if (device == NULL || strncmp(device, "cuda", 4) != 0)
        return;
    if (lockstep_cards_find(&cards, NULL) == 0)
        ls_cli_error(0, "%s", lockstep_cards_tested(cards));
    lockstep_cards_free(cards);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_cards(struct ls_json_writer *json, const struct lockstep_cards *cards,
                       const char *gpu)
{
    for (size_t i = 0; i < lockstep_cards_count(cards); i++) {
        const struct lockstep_card *card = lockstep_cards_get(cards, i);
        char capability[24];
        if (!ls_cli_is_listed(gpu, i))
            continue;
        snprintf(capability, sizeof capability, "%d.%d", card->major, card->minor);
        ls_json_open(json, NULL, '{');
        ls_json_integer(json, "card", (int64_t)i);
        ls_json_string(json, "name", card->name);
        ls_json_string(json, "uuid", card->uuid);
        ls_json_string(json, "compute_capability", capability);
        ls_json_integer(json, "memory", (int64_t)card->memory);
        ls_json_integer(json, "multiprocessors", card->multiprocessors);
        ls_json_boolean(json, "runs", card->runs != 0);
        ls_json_close(json, '}');
    }
}

static void json_libraries(struct ls_json_writer *json, const struct lockstep_cards *cards)
{
    ls_json_open(json, "libraries", '{');
    for (const char *line = lockstep_cards_libraries(cards); *line != '\0';) {
        char key[64], value[64];
        const size_t length = strcspn(line, "\n"), name = strcspn(line, "=");
        snprintf(key, sizeof key, "%.*s", (int)name, line);
        snprintf(value, sizeof value, "%.*s", (int)(length - name - 1), line + name + 1);
        ls_json_string(json, key, value);
        line += length + (line[length] == '\n');
    }
    ls_json_close(json, '}');
    ls_json_string(json, "tested", lockstep_cards_tested(cards));
}

static void put_json(const char *gpu, const struct lockstep_cards *cards,
                     struct lockstep_error *error)
{
    struct ls_json_writer json = {.stream = stdout};
    ls_json_open(&json, NULL, '{');
    ls_json_integer(&json, "workers", lockstep_default_workers());
    ls_json_open(&json, "cards", '[');
    if (cards != NULL)
        json_cards(&json, cards, gpu);
    ls_json_close(&json, ']');
    if (cards != NULL)
        json_libraries(&json, cards);
    else
        ls_json_string(&json, "no_cards", lockstep_error_text(error));
    ls_json_close(&json, '}');
    putchar('\n');
}

/* ---- The command ----------------------------------------------------------------------------- */

static void put_line(void *user, const char *line)
{
    (void)user;
    puts(line);
}

static int run_json(const struct values *values, struct lockstep_error *error)
{
    struct lockstep_cards *cards;
    int status = find(values->gpu, &cards, error);
    if (status == 0 || values->gpu == NULL)
        put_json(values->gpu, cards, error);
    else
        ls_cli_report(status, error);
    lockstep_cards_free(cards);
    return values->gpu == NULL ? 0 : status;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_error *error = lockstep_error_new();
    int status = 0;
    if (values->json) {
        status = run_json(values, error);
    } else {
        if (values->gpu == NULL)
            ls_cli_describe_machine(put_line, NULL);
        status = ls_cli_describe_cards(values->gpu, put_line, NULL, error);
        if (status != 0 && values->gpu == NULL) { /* asked for nothing that is not there */
            printf("No card: %s\n", lockstep_error_text(error));
            status = 0;
        } else if (status != 0) {
            ls_cli_report(status, error);
        }
    }
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "gpu", "LIST", struct values, gpu, 0,
               "these cards alone, 0,1 say, or all; without one that is an error"),
    LS_CLI_JSON(struct values, json),
    LS_CLI_ROW(LS_CLI_FLAG, "logtostderr", NULL, struct values, to_stderr, 0,
               "as always: messages go to stderr"),
    LS_CLI_ROW(LS_CLI_FLAG, "alsologtostderr", NULL, struct values, to_stderr, 0, "the same"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_device_query = {
    .name = "device_query",
    .summary = "says which processor and which cards can compute here",
    .usage = "[--gpu LIST] [--json]",
    .options = options,
    .example = "device_query\n"
               "device_query --gpu all --json",
    .run = run,
    .values_size = sizeof(struct values),
};
