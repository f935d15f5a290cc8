/* What the numbers of labels mean; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/class_names.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/options.h"

static const size_t FILE_MOST = (size_t)1 << 26; /* bytes */

/* Without the carriage return that editors of Windows put behind it. */
static size_t line_length(const char *line)
{
    const size_t length = strcspn(line, "\n");
    return length > 0 && line[length - 1] == '\r' ? length - 1 : length;
}

int ls_class_list_lines(const char *text, struct ls_class_list *list, struct ls_error *error)
{
    size_t count = 1;
    for (const char *c = text; *c != '\0'; c++)
        count += *c == '\n';
    *list = (struct ls_class_list){.name = ls_alloc(count, sizeof *list->name)};
    bool made = list->name != NULL && count <= INT_MAX;
    for (const char *name = text; made && list->count < (int)count; list->count += made) {
        list->name[list->count] = ls_copy_bytes(name, line_length(name));
        made = list->name[list->count] != NULL;
        name += strcspn(name, "\n");
        name += *name == '\n';
    }
    if (made)
        return 0;
    ls_class_list_free(list);
    return ls_fail_memory(error, "class names");
}

int ls_class_list_read(const char *path, int status, struct ls_class_list *list,
                       struct ls_error *error)
{
    char *text = NULL;
    size_t size = 0;
    *list = (struct ls_class_list){.count = 0};
    LS_TRY(ls_file_read_text(path, FILE_MOST, status, &text, &size, error));
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        text[--size] = '\0';
    status = size > 0 && strlen(text) == size ? ls_class_list_lines(text, list, error) : 0;
    ls_free(text);
    return status;
}

int ls_class_list_beside(const char *folder, struct ls_class_list *list, struct ls_error *error)
{
    struct ls_text path = {0};
    *list = (struct ls_class_list){.count = 0};
    ls_text_format(&path, "%s/" LS_CLASS_NAMES_FILE, folder);
    int status = path.failed ? ls_fail_memory(error, "a path") : 0;
    if (status == 0 && ls_file_exists(path.data))
        status = ls_class_list_read(path.data, LOCKSTEP_DATA, list, error);
    ls_text_free(&path);
    return status;
}

void ls_class_list_free(struct ls_class_list *list)
{
    for (int i = 0; i < list->count; i++)
        ls_free(list->name[i]);
    ls_free((void *)list->name);
    *list = (struct ls_class_list){.count = 0};
}

int ls_class_names_find(const struct ls_class_names *names, const char *name)
{
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return i;
    return -1;
}

static bool is_number(const char *name)
{
    return name[0] != '\0' && name[strspn(name, "0123456789")] == '\0';
}

/* Whole numbers of any length. */
static int by_value(const char *a, const char *b)
{
    a += strspn(a, "0");
    b += strspn(b, "0");
    const size_t first = strlen(a), second = strlen(b);
    return first != second ? (first > second) - (first < second) : strcmp(a, b);
}

int ls_class_names_order(const void *a, const void *b)
{
    const char *first = *(const char *const *)a, *second = *(const char *const *)b;
    const bool number = is_number(first), other = is_number(second);
    if (number != other)
        return number ? -1 : 1;
    const int order = number ? by_value(first, second) : 0;
    return order != 0 ? order : strcmp(first, second);
}

bool ls_class_names_matter(const struct ls_source_options *options)
{
    return options->layer == NULL || options->layer->n_top != 1;
}

static int other_vocabulary(const struct ls_class_names *own, const struct ls_class_names *known,
                            struct ls_error *error)
{
    int i = 0;
    while (i < known->count && i < own->count && strcmp(known->name[i], own->name[i]) == 0)
        i++;
    if (i == known->count && i == own->count)
        return 0;
    const bool here = i < own->count, there = i < known->count;
    return ls_fail(error, LOCKSTEP_DATA, own->of,
                   "text_param { vocabulary: FILE } names the text that the net was trained on",
                   "its vocabulary has %d characters, and that of %.200s %d; number %d is %s%s%s "
                   "here and %s%s%s there",
                   own->count, known->of, known->count, i, here ? "'" : "",
                   here ? own->name[i] : "none", here ? "'" : "", there ? "'" : "",
                   there ? known->name[i] : "none", there ? "'" : "");
}

int ls_class_names_check(const struct ls_class_names *own, bool vocabulary,
                         const struct ls_class_names *known, struct ls_error *error)
{
    if (own->tokenizer != 0 && known->tokenizer != 0 && own->tokenizer != known->tokenizer)
        return ls_fail(error, LOCKSTEP_DATA, own->of,
                       "make the ids with the tokenizer that the net was trained with "
                       "(lockstep tokenize --tokenizer)",
                       "vocabulary: its ids are those of another tokenizer (%016" PRIx64
                       ") than those of %.200s (%016" PRIx64 "), so that they stand for other "
                       "texts",
                       own->tokenizer, known->of, known->tokenizer);
    if (vocabulary && known->count > 0)
        return other_vocabulary(own, known, error);
    for (int i = 0; i < own->count; i++) {
        const char *other = i < known->count ? known->name[i] : "";
        if (own->name[i][0] == '\0' || strcmp(own->name[i], other) == 0)
            continue;
        const int there = ls_class_names_find(known, own->name[i]);
        if (there < 0 && other[0] == '\0')
            continue; /* one side has no name for it */
        char what[300];
        snprintf(what, sizeof what,
                 there >= 0 ? "'%.200s' is number %d there" : "%.0s%d is '%.200s' there",
                 own->name[i], there >= 0 ? there : i, other);
        return ls_fail(
            error, LOCKSTEP_DATA, own->of, "a number must be the same class in all data of a net",
            "class %d is '%.200s' here, but %s (%.200s)", i, own->name[i], what, known->of);
    }
    return 0;
}
