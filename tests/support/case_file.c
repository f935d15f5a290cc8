/* Reading files of cases: see case_file.h. SPDX-License-Identifier: BSD-2-Clause */
#include "support/case_file.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

/* Before any test runs there is none to fail. */
static void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void *checked(void *memory)
{
    if (memory == NULL)
        stop("no memory for cases");
    return memory;
}

static void append(char **text, const char *more, size_t length)
{
    size_t old = *text != NULL ? strlen(*text) : 0;
    *text = checked(realloc(*text, old + length + 1));
    memcpy(*text + old, more, length);
    (*text)[old + length] = '\0';
}

static struct case_item *add(struct case_list *list, const char *name, size_t length)
{
    list->items = checked(realloc(list->items, (list->count + 1) * sizeof *list->items));
    struct case_item *item = &list->items[list->count++];
    *item = (struct case_item){0};
    append(&item->name, name, length);
    append(&item->text, "", 0);
    return item;
}

static struct case_item *find(const struct case_list *list, const char *name, size_t length)
{
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->items[i].name) == length && memcmp(list->items[i].name, name, length) == 0)
            return &list->items[i];
    return NULL;
}

/* The text of a layer with " FIELDS" after each "MESSAGE {". */
static void append_layer(char **text, const char *layer, size_t length, const char *message,
                         const char *fields)
{
    char start[72];
    size_t size = (size_t)snprintf(start, sizeof start, "%s {", message);
    for (const char *end = layer + length; layer < end;) {
        const char *found = *message != '\0' ? strstr(layer, start) : NULL;
        if (found == NULL || found >= end) {
            append(text, layer, (size_t)(end - layer));
            return;
        }
        append(text, layer, (size_t)(found - layer) + size);
        append(text, fields, strlen(fields));
        layer = found + size;
    }
}

/* "@layers FILE [in MESSAGE FIELDS]": layers begin with a line "layer {..." each; Data layers are
 * left out. */
static void append_layers(char **text, const char *line, size_t length)
{
    char note[256], file[128], message[64] = "";
    size_t size;
    int used = 0;
    snprintf(note, sizeof note, "%.*s", (int)length, line);
    if (sscanf(note, "@layers %127s in %63s%n", file, message, &used) < 1)
        stop("a file is missing: %s", note);
    const char *fields = *message != '\0' ? note + used : "";
    char *bytes = ls_test_read(ls_test_source(file), &size);
    const char *layer = strstr(bytes, "\nlayer {");
    while (layer != NULL) {
        const char *next = strstr(++layer, "\nlayer {");
        size_t count = next != NULL ? (size_t)(next + 1 - layer) : strlen(layer);
        const char *data = strstr(layer, "type: \"Data\"");
        if (data == NULL || data >= layer + count)
            append_layer(text, layer, count, message, fields);
        layer = next;
    }
    free(bytes);
}

/* Blocks that begin with "== name". The names of fragments begin with "@". */
static void read_cases(const char *bytes, struct case_list *list)
{
    struct case_list fragments = {0};
    struct case_item *item = NULL;
    for (const char *line = bytes; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, "== ", 3) == 0) {
            item = add(line[3] == '@' ? &fragments : list, line + 3, length - 3);
        } else if (item != NULL && strncmp(line, "@layers ", 8) == 0) {
            append_layers(&item->text, line, length);
        } else if (item != NULL) {
            const struct case_item *fragment = find(&fragments, line, length);
            if (fragment != NULL)
                append(&item->text, fragment->text, strlen(fragment->text));
            else
                append(&item->text, line, length + (line[length] == '\n'));
        }
        line += length + (line[length] == '\n');
    }
    case_list_free(&fragments);
}

static void read_values(const char *bytes, struct case_list *list)
{
    struct case_item *item = NULL;
    for (const char *line = bytes; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, "case ", 5) == 0) {
            item = find(list, line + 5, length - 5);
            if (item == NULL)
                stop("values of a case that is not there: %.*s", (int)length, line);
        } else if (item != NULL) {
            append(&item->reference, line, length + 1);
        }
        line += length + (line[length] == '\n');
    }
}

void case_list_read(const char *name, struct case_list *list)
{
    char path[256];
    size_t size;
    *list = (struct case_list){0};
    snprintf(path, sizeof path, "tests/compat/cases/%s.cases", name);
    char *bytes = ls_test_read(ls_test_source(path), &size);
    read_cases(bytes, list);
    free(bytes);
    snprintf(path, sizeof path, "tests/compat/reference/%s.txt", name);
    bytes = ls_test_read(ls_test_source(path), &size);
    read_values(bytes, list);
    free(bytes);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].reference == NULL)
            stop("no values for case %s: run tools/reference/make.py", list->items[i].name);
}

void case_list_free(struct case_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].text);
        free(list->items[i].reference);
    }
    free(list->items);
    *list = (struct case_list){0};
}

const char *case_note(const struct case_item *item, const char *kind, size_t index)
{
    static char note[256];
    char start[32];
    int length = snprintf(start, sizeof start, "# %s: ", kind);
    for (const char *line = item->text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, start, (size_t)length) != 0 || index-- > 0)
            continue;
        snprintf(note, sizeof note, "%.*s", (int)strcspn(line + length, "\n"), line + length);
        return note;
    }
    return NULL;
}
