/* The environments that a training has had: reading what snapshots say of them, comparing, going
 * on. See solver/environment.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/history.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/devices.h"
#include "snapshot/catalog.h"
#include "solver/environment.h"
#include "solver/events.h"
#include "solver/notes.h"
#include "transport/comm.h"

enum { NOTE_MAX = 1 << 16, SHOWN_MAX = 600 };

/* ---- Lists of "key=value" -------------------------------------------------------------------- */

/* The next "key=value" of a list whose items end with one of `ends` and perhaps a space; false
 * behind the last. */
static bool next_item(const char **list, const char *ends, const char **item, int *length)
{
    *list += strspn(*list, ends);
    *list += strspn(*list, " ");
    *item = *list;
    *length = (int)strcspn(*list, ends);
    *list += *length;
    return *length > 0;
}

static int key_length(const char *item, int length)
{
    const char *equals = memchr(item, '=', (size_t)length);
    return equals != NULL ? (int)(equals - item) : length;
}

/* The value of a key; false where the list does not have it. */
static bool find(const char *list, const char *ends, const char *key, int key_size,
                 const char **value, int *size)
{
    const char *item;
    for (int length; next_item(&list, ends, &item, &length);)
        if (key_length(item, length) == key_size && memcmp(item, key, (size_t)key_size) == 0) {
            int from = key_size < length ? key_size + 1 : length;
            *value = item + from;
            *size = length - from;
            return true;
        }
    return false;
}

/* Values that only say that something is different. */
static bool is_hash(const char *key, int length)
{
    static const char *const hashes[] = {"net", "own", "functions", "decoders"};
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        if ((int)strlen(hashes[i]) == length && memcmp(key, hashes[i], (size_t)length) == 0)
            return true;
    return false;
}

/* What a list without a value means: snapshots name a device that is not the first one. */
static const char *missing_value(const char *key, int length)
{
    bool device = length == 6 && memcmp(key, "device", 6) == 0;
    return device ? ls_device_default()->name : "none";
}

static void add_difference(struct ls_text *text, const char *key, int key_size, const char *there,
                           int there_size, const char *here, int here_size)
{
    ls_text_format(text, "%s%.*s ", text->length > 0 ? "; " : "", key_size, key);
    if (is_hash(key, key_size) && there_size > 0 && here_size > 0)
        ls_text_add(text, "(what it gives)");
    else
        ls_text_format(text, "%.*s, here %.*s", there_size > 0 ? there_size : INT_MAX,
                       there_size > 0 ? there : missing_value(key, key_size),
                       here_size > 0 ? here_size : INT_MAX,
                       here_size > 0 ? here : missing_value(key, key_size));
}

/* What is not the same in two environments. */
static void find_differences(const char *before, const char *now, struct ls_text *text)
{
    const char *item, *list = before, *value;
    int size;
    for (int length; next_item(&list, "\n", &item, &length);) {
        int key = key_length(item, length), from = key < length ? key + 1 : length;
        if (!find(now, "\n", item, key, &value, &size))
            add_difference(text, item, key, item + from, length - from, "", 0);
        else if (size != length - from || memcmp(value, item + from, (size_t)size) != 0)
            add_difference(text, item, key, item + from, length - from, value, size);
    }
    list = now;
    for (int length; next_item(&list, "\n", &item, &length);) {
        int key = key_length(item, length), from = key < length ? key + 1 : length;
        if (!find(before, "\n", item, key, &value, &size))
            add_difference(text, item, key, "", 0, item + from, length - from);
    }
}

/* ---- Histories ------------------------------------------------------------------------------- */

/* A line of a history: the iteration and the list behind it. */
static bool next_entry(const char **history, int64_t *iteration, const char **list, int *length)
{
    char *end;
    if (**history < '0' || **history > '9')
        return false;
    *iteration = strtoll(*history, &end, 10);
    if (*end != ' ')
        return false;
    *list = end + 1;
    *length = (int)strcspn(*list, "\n");
    *history = *list + *length;
    *history += **history == '\n';
    return true;
}

/* Whether it is lines as above, with iterations that grow and characters that can be shown. */
static bool is_history(const char *history)
{
    int64_t last = -1, iteration;
    const char *rest = history, *list;
    int length;
    if (strlen(history) > NOTE_MAX)
        return false;
    for (const char *c = history; *c != '\0'; c++)
        if (*c != '\n' && (*c < ' ' || *c > '~'))
            return false;
    while (*rest != '\0') {
        if (!next_entry(&rest, &iteration, &list, &length) || iteration <= last)
            return false;
        last = iteration;
    }
    return last >= 0;
}

/* Whether the last entry is this environment. */
static bool ends_with(const char *history, const char *environment)
{
    const char *list = "", *item, *rest;
    int64_t iteration;
    int length = 0, at = 0;
    while (next_entry(&history, &iteration, &list, &length))
        ;
    rest = environment;
    for (int size; next_item(&rest, "\n", &item, &size);) {
        if (at > 0 && strncmp(list + at, ", ", 2) != 0)
            return false;
        at += at > 0 ? 2 : 0;
        if (size > length - at || memcmp(list + at, item, (size_t)size) != 0)
            return false;
        at += size;
    }
    return at == length;
}

/* Whether an item of an entry has another value, or is missing, in some entry. */
static bool changes(const char *history, const char *item, int length)
{
    const char *list;
    int64_t iteration;
    for (int size; next_entry(&history, &iteration, &list, &size);) {
        char line[1024];
        const char *value;
        int value_size, key = key_length(item, length), from = key < length ? key + 1 : length;
        snprintf(line, sizeof line, "%.*s", size, list);
        if (!find(line, ",", item, key, &value, &value_size) || value_size != length - from ||
            memcmp(value, item + from, (size_t)value_size) != 0)
            return true;
    }
    return false;
}

/* What of an entry is not the same in all; hashes where there is nothing else. */
static void say_entry(const char *history, const char *line, struct ls_text *text)
{
    size_t before = text->length;
    for (int hashes = 0; hashes < 2 && text->length == before; hashes++) {
        const char *rest = line, *item;
        for (int length; next_item(&rest, ",", &item, &length);)
            if (is_hash(item, key_length(item, length)) == (hashes == 1) &&
                changes(history, item, length))
                ls_text_format(text, "%s%.*s", text->length > before ? ", " : "", length, item);
    }
    if (text->length == before)
        ls_text_add(text, "any instruction set");
}

void ls_environment_say_history(const char *history, struct ls_text *text)
{
    const char *rest = history, *list;
    int64_t iteration;
    size_t entries = 0;
    for (const char *c = history; *c != '\0'; c++)
        entries += *c == '\n';
    if (entries < 2 || !is_history(history))
        return;
    for (int length; next_entry(&rest, &iteration, &list, &length);) {
        char line[1024];
        if (text->length > 0)
            ls_text_format(text, " until %" PRId64 "; ", iteration);
        snprintf(line, sizeof line, "%.*s", length, list);
        say_entry(history, line, text);
    }
}

/* ---- Resuming -------------------------------------------------------------------------------- */

static int refuse(const struct ls_trainer *trainer, const char *path, const char *before,
                  const char *differences, struct ls_error *error)
{
    const struct ls_device *device = trainer->engine->device;
    const char *value, *go_on = "--allow-other-numerics goes on all the same, and every snapshot "
                                "from there on says so";
    char hint[400], isa[16] = "", number[16], other[32];
    int size;
    snprintf(number, sizeof number, "%d", LOCKSTEP_NUMERICS);
    if (find(before, "\n", "isa", 3, &value, &size))
        snprintf(isa, sizeof isa, "%.*s", size, value);
    snprintf(other, sizeof other, "%s", ls_device_default()->name);
    if (find(before, "\n", "device", 6, &value, &size))
        snprintf(other, sizeof other, "%.*s", size, value);
    bool same_number = find(before, "\n", "numerics", 8, &value, &size) &&
                       size == (int)strlen(number) && memcmp(value, number, (size_t)size) == 0;
    if (!same_number)
        snprintf(hint, sizeof hint,
                 "that version of Lockstep trained other bits: resume with it; %s", go_on);
    else if (strcmp(other, device->name) != 0)
        snprintf(hint, sizeof hint, "--device %s; %s", other, go_on);
    else if (isa[0] != '\0' && strcmp(isa, device->environment->isa()) != 0)
        snprintf(hint, sizeof hint,
                 "--isa %s, where the processor has it and the process has not begun with "
                 "another; %s",
                 isa, go_on);
    else
        snprintf(hint, sizeof hint, "resume where it was trained, or on a machine like that; %s",
                 go_on);
    return ls_fail(error, LOCKSTEP_DIFFERENT, path, hint,
                   "was made in another numeric environment, from which this one would go on with "
                   "other bits: %.*s",
                   SHOWN_MAX, differences);
}

/* The history of a snapshot; one that has none was made in one environment. */
static int take_history(const struct ls_archive *archive, const char *before,
                        struct ls_text *history, struct ls_error *error)
{
    const char *note = ls_archive_note(archive, LS_NOTE_HISTORY);
    if (note != NULL && (!is_history(note) || !ends_with(note, before)))
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL,
                       "its note of the numeric environments so far is damaged");
    if (note != NULL)
        ls_text_add(history, note);
    else
        LS_TRY(ls_environment_add(history, 0, before, error));
    return history->failed ? ls_fail_memory(error, "the history of a training") : 0;
}

/* Another environment from `iteration` on. One that no update was made in leaves no trace. */
static int extend(struct ls_text *history, int64_t iteration, const char *environment,
                  struct ls_error *error)
{
    size_t last = history->length;
    while (last > 1 && history->data[last - 2] != '\n')
        last--;
    last = last > 0 ? last - 1 : 0;
    if (strtoll(history->data + last, NULL, 10) == iteration) {
        history->length = last;
        history->data[last] = '\0';
    }
    return ls_environment_add(history, iteration, environment, error);
}

static int go_on(struct ls_trainer *trainer, const struct ls_archive *archive, const char *before,
                 int64_t iteration, struct ls_text *history, struct ls_error *error)
{
    struct ls_text differences = {0};
    int status = 0;
    LS_TRY(take_history(archive, before, history, error));
    if (strcmp(before, trainer->numerics.environment) == 0)
        return 0;
    find_differences(before, trainer->numerics.environment, &differences);
    const char *what = differences.data != NULL ? differences.data : "";
    if (!trainer->numerics.allow_other) {
        status = refuse(trainer, archive->path, before, what, error);
    } else {
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                      "going on in another numeric environment, with other bits than where the "
                      "snapshot was made: %.*s",
                      SHOWN_MAX, what);
        status = extend(history, iteration, trainer->numerics.environment, error);
    }
    ls_text_free(&differences);
    return status;
}

int ls_environment_resume(struct ls_trainer *trainer, const struct ls_archive *archive,
                          int64_t iteration, struct ls_error *error)
{
    const char *before = ls_archive_note(archive, LS_NOTE_ENVIRONMENT);
    const char *version = ls_archive_note(archive, LS_NOTE_VERSION);
    struct ls_text history = {0};
    before = before != NULL ? before : "";
    for (const char *c = before; *c != '\0'; c++)
        if (*c != '\n' && (*c < ' ' || *c > '~'))
            return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL,
                           "its note of the numeric environment is damaged");
    int status = go_on(trainer, archive, before, iteration, &history, error);
    if (status != 0) {
        ls_text_free(&history);
        return status;
    }
    ls_free(trainer->numerics.history);
    trainer->numerics.history = history.data;
    if (version != NULL && strcmp(version, LOCKSTEP_VERSION) != 0)
        ls_events_say(trainer, LOCKSTEP_EVENT_NOTICE,
                      "The snapshot was written by Lockstep %.40s; this is %s", version,
                      LOCKSTEP_VERSION);
    return 0;
}

/* ---- The instruction set --------------------------------------------------------------------- */

/* *found: the file has a note of its environment. */
static int isa_of(const char *path, char isa[16], bool *found, struct ls_error *error)
{
    struct ls_archive archive = {0};
    const char *value;
    int size;
    *found = false;
    int status = ls_archive_read(path, LS_ARCHIVE_HEADER, &archive, NULL);
    if (status != 0)
        return status == LOCKSTEP_RESOURCE ? ls_fail_memory(error, path) : 0;
    const char *note = archive.ours ? ls_archive_note(&archive, LS_NOTE_ENVIRONMENT) : NULL;
    if (note != NULL && find(note, "\n", "isa", 3, &value, &size) && size < 16)
        snprintf(isa, 16, "%.*s", size, value);
    *found = note != NULL;
    ls_archive_free(&archive);
    return 0;
}

int ls_environment_isa(const char *prefix, const char *resume, char isa[16], struct ls_error *error)
{
    struct ls_catalog catalog;
    bool found = false;
    isa[0] = '\0';
    if (strcmp(resume, "auto") != 0)
        return isa_of(resume, isa, &found, error);
    int status = ls_catalog_list(prefix, &catalog, NULL);
    if (status != 0)
        return status == LOCKSTEP_RESOURCE ? ls_fail_memory(error, prefix) : 0;
    for (size_t i = catalog.count; i-- > 0 && !found && status == 0;)
        status = isa_of(catalog.entries[i].path, isa, &found, error);
    ls_catalog_free(&catalog);
    return status;
}
