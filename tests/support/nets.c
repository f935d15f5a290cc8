/* Nets of tests: see nets.h. SPDX-License-Identifier: BSD-2-Clause */
#include "support/nets.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

enum { NETS = 16, TEXTS = 16, VALUES_MAX = 32 };

static const char *const letters = "abcdefghijklmnopqrstuvwxyz_0123456789";

/* The length of the placeholder that begins at `at`, with its two signs; 0: none does. */
static size_t placeholder_length(const char *at)
{
    if (at[0] != '@')
        return 0;
    size_t letter_count = strspn(at + 1, letters);
    return letter_count > 0 && at[1 + letter_count] == '@' ? letter_count + 2 : 0;
}

/* The number of the value for a placeholder; -1: there is none. */
static int find_value(const struct ls_test_value *values, const char *name, size_t length)
{
    for (int i = 0; i < VALUES_MAX && values != NULL && values[i].name != NULL; i++)
        if (strlen(values[i].name) == length && memcmp(values[i].name, name, length) == 0)
            return i;
    return -1;
}

/* The length of the comment line that begins at `at`; 0: none does. */
static size_t comment_length(const char *text, const char *at)
{
    bool line_begins = at == text || at[-1] == '\n';
    size_t indent = strspn(at, " ");
    return line_begins && at[indent] == '#' ? strcspn(at, "\n") : 0;
}

/* The name of the first text that no placeholder asked for; NULL: there is none. */
static const char *find_unused(const struct ls_test_value *values, const bool *used)
{
    for (int i = 0; values != NULL && values[i].name != NULL; i++)
        if (i == VALUES_MAX || (values[i].text != NULL && !used[i]))
            return values[i].name;
    return NULL;
}

char *ls_test_fill(const char *text, const struct ls_test_value *values, char *problem, size_t size)
{
    char *filled = NULL;
    size_t bytes = 0;
    bool used[VALUES_MAX] = {false};
    FILE *stream = open_memstream(&filled, &bytes);
    if (stream == NULL)
        abort();
    problem[0] = '\0';
    for (const char *at = text; *at != '\0' && problem[0] == '\0';) {
        size_t comment = comment_length(text, at), length = placeholder_length(at);
        int value = length > 0 ? find_value(values, at + 1, length - 2) : -1;
        if (comment > 0 || length == 0) {
            size_t as_it_is = comment > 0 ? comment : 1;
            fwrite(at, 1, as_it_is, stream);
            at += as_it_is;
            continue;
        }
        if (value >= 0) {
            used[value] = true;
            fputs(values[value].text != NULL ? values[value].text : "", stream);
        } else if (strncmp(at, "@directory@", length) == 0) {
            fputs(ls_test_directory(), stream);
        } else {
            snprintf(problem, size, "the placeholder %.*s has no value", (int)length, at);
        }
        at += length;
    }
    const char *unused = find_unused(values, used);
    if (problem[0] == '\0' && unused != NULL)
        snprintf(problem, size, "there is no placeholder @%s@", unused);
    fclose(stream);
    if (problem[0] == '\0')
        return filled;
    free(filled);
    return NULL;
}

const char *ls_test_net(const char *name, const struct ls_test_value *values)
{
    static char *nets[NETS];
    static unsigned next;
    char problem[256];
    size_t size;
    const char *path = ls_test_source(ls_test_text("tests/nets/%s.prototxt", name));
    char *text = ls_test_read(path, &size);
    char *net = ls_test_fill(text, values, problem, sizeof problem);
    free(text);
    if (net == NULL)
        fail_msg("%s: %s", path, problem);
    unsigned turn = next++ % NETS;
    free(nets[turn]);
    nets[turn] = net;
    return net;
}

const char *ls_test_text(const char *format, ...)
{
    static char *texts[TEXTS];
    static unsigned next;
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        abort();
    unsigned turn = next++ % TEXTS;
    free(texts[turn]);
    texts[turn] = text;
    return text;
}
