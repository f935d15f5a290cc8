/* The public interface: inputs of predictions.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/inputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/npy_header.h"
#include "data/numbers.h"
#include "data/picture_list.h"

enum { LINE_ROOM = PATH_MAX + 64 /* a path and a label */ };

struct ls_input_array {
    char *path;
    struct ls_mapping mapping;
    struct ls_npy_header header;
    size_t record; /* bytes of a sample */
};

/* A picture, or all samples of an array. */
struct entry {
    size_t path, name; /* where they begin in `text` */
    int64_t first;     /* how many inputs lie before it */
    struct ls_input_array *array;
    int32_t label;
    bool has_label;
};

struct lockstep_inputs {
    struct entry *entries;
    size_t count, capacity;
    struct ls_input_array **arrays;
    size_t array_count, array_capacity;
    struct ls_text text; /* each path with a NUL behind it */
    int64_t all;         /* inputs */
    int64_t left_out;
};

struct lockstep_inputs *lockstep_inputs_new(void)
{
    return ls_alloc(1, sizeof(struct lockstep_inputs));
}

static void free_array(struct ls_input_array *array)
{
    if (array == NULL)
        return;
    ls_file_unmap(&array->mapping);
    ls_free(array->path);
    ls_free(array);
}

void lockstep_inputs_free(struct lockstep_inputs *inputs)
{
    if (inputs == NULL)
        return;
    for (size_t i = 0; i < inputs->array_count; i++)
        free_array(inputs->arrays[i]);
    ls_free((void *)inputs->arrays);
    ls_free(inputs->entries);
    ls_text_free(&inputs->text);
    ls_free(inputs);
}

int64_t lockstep_inputs_count(const struct lockstep_inputs *inputs)
{
    return inputs->all;
}

int64_t lockstep_inputs_left_out(const struct lockstep_inputs *inputs)
{
    return inputs->left_out;
}

struct ls_one_input ls_inputs_at(const struct lockstep_inputs *inputs, int64_t ordinal)
{
    size_t low = 0, high = inputs->count; /* the last entry that begins at `ordinal` or before */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (inputs->entries[middle].first <= ordinal)
            low = middle;
        else
            high = middle;
    }
    const struct entry *entry = &inputs->entries[low];
    return (struct ls_one_input){.path = inputs->text.data + entry->path,
                                 .name = inputs->text.data + entry->name,
                                 .has_label = entry->has_label,
                                 .label = entry->label,
                                 .array = entry->array,
                                 .index = ordinal - entry->first};
}

bool ls_inputs_have_pictures(const struct lockstep_inputs *inputs)
{
    return inputs->count > inputs->array_count;
}

const struct ls_input_array *ls_inputs_array(const struct lockstep_inputs *inputs, size_t index)
{
    return index < inputs->array_count ? inputs->arrays[index] : NULL;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

const struct ls_shape *ls_input_array_shape(const struct ls_input_array *array)
{
    return &array->header.sample;
}

const char *ls_input_array_path(const struct ls_input_array *array)
{
    return array->path;
}

int ls_input_array_read(const struct ls_input_array *array, int64_t index, float *sample,
                        struct ls_error *error)
{
    const int64_t numbers = ls_shape_size(&array->header.sample);
    const enum ls_dtype type = array->header.type;
    /* A copy, as the file may become shorter, and its numbers need not be aligned. */
    void *copy = ls_alloc_aligned(array->record);
    if (copy == NULL)
        return ls_fail_memory(error, "a sample");
    memcpy(copy, array->mapping.data + array->header.size + (size_t)index * array->record,
           array->record);
    int status = ls_file_lost(&array->mapping, array->path, LOCKSTEP_DATA, error);
    const int64_t bad =
        status == 0 ? ls_numbers_to_f32(type, copy, numbers, false, sample) : numbers;
    if (bad < numbers) {
        char text[LS_NUMBER_TEXT];
        status =
            ls_fail(error, LOCKSTEP_DATA, array->path,
                    "save the array as float32: numpy.save(file, x.astype('float32'))",
                    "sample %lld, number %lld is %s, which %s", (long long)index, (long long)bad,
                    ls_number_text(type, copy, bad, text), ls_number_fault(type, copy, bad, false));
    }
    ls_free_aligned(copy);
    return status;
}

static int open_array(struct ls_input_array *array, const char *path, struct ls_error *error)
{
    struct ls_npy_header *header = &array->header;
    array->path = ls_copy_string(path);
    if (array->path == NULL)
        return ls_fail_memory(error, "a path");
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &array->mapping, error));
    int status = ls_npy_header_read(path, array->mapping.data, array->mapping.size, header, error);
    LS_TRY(ls_file_lost(&array->mapping, path, LOCKSTEP_DATA, error));
    LS_TRY(status);
    if (header->count == 0)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "has no samples: its axis 0 is 0");
    return ls_npy_record_size(path, header, array->mapping.size, &array->record, error);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* An entry of `samples` inputs; the name is the path from its byte `name` on. */
static int add_entry(struct lockstep_inputs *inputs, const char *path, size_t name,
                     struct ls_input_array *array, struct entry **entry, struct ls_error *error)
{
    const size_t begin = inputs->text.length;
    if (!LS_GROW(inputs->entries, inputs->count, inputs->capacity))
        return ls_fail_memory(error, "the list of inputs");
    ls_text_add_bytes(&inputs->text, path, strlen(path) + 1);
    if (inputs->text.failed)
        return ls_fail_memory(error, "the list of inputs");
    *entry = &inputs->entries[inputs->count++];
    **entry =
        (struct entry){.path = begin, .name = begin + name, .first = inputs->all, .array = array};
    inputs->all += array != NULL ? array->header.count : 1;
    return 0;
}

static int add_array(struct lockstep_inputs *inputs, const char *path, struct ls_error *error)
{
    struct entry *entry;
    struct ls_input_array *array = ls_alloc(1, sizeof *array);
    int status = array != NULL ? open_array(array, path, error) : ls_fail_memory(error, "an array");
    if (status == 0 && !LS_GROW(inputs->arrays, inputs->array_count, inputs->array_capacity))
        status = ls_fail_memory(error, "the list of inputs");
    if (status == 0)
        status = add_entry(inputs, path, 0, array, &entry, error);
    if (status == 0)
        inputs->arrays[inputs->array_count++] = array;
    else
        free_array(array);
    return status;
}

static int add_folder(struct lockstep_inputs *inputs, const char *path, struct ls_error *error)
{
    struct ls_picture_list list;
    struct entry *entry;
    LS_TRY(ls_picture_list_flat(path, &list, error));
    int status = 0;
    for (size_t i = 0; i < list.count && status == 0; i++)
        status = add_entry(inputs, ls_picture_path(&list, i), 0, NULL, &entry, error);
    inputs->left_out += (int64_t)list.left_out;
    ls_picture_list_free(&list);
    return status;
}

int lockstep_inputs_add(struct lockstep_inputs *inputs, const char *path,
                        struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct entry *entry;
    const size_t length = strlen(path);
    if (length == 0)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "an input has an empty path");
    if (ls_is_directory(path))
        return add_folder(inputs, path, inner);
    if (length > 4 && strcmp(path + length - 4, ".npy") == 0)
        return add_array(inputs, path, inner);
    return add_entry(inputs, path, 0, NULL, &entry, inner);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* A line of a list. A number at its end is a label, unless there is a file that is
 * called so. */
static int add_line(struct lockstep_inputs *inputs, const char *list, char *line,
                    struct ls_error *error)
{
    struct entry *entry;
    char *end, *path = ls_resolve_path(line, list);
    char *space = strrchr(line, ' '), *tab = strrchr(line, '\t');
    long label = 0;
    bool has_label = false;
    space = space == NULL || (tab != NULL && tab > space) ? tab : space;
    if (path != NULL && space != NULL && !ls_file_exists(path)) {
        errno = 0;
        label = strtol(space + 1, &end, 10);
        has_label = end != space + 1 && *end == '\0' && errno == 0 && label >= INT32_MIN &&
                    label <= INT32_MAX;
    }
    if (has_label) {
        ls_free(path);
        while (space > line && (space[-1] == ' ' || space[-1] == '\t'))
            space--;
        *space = '\0';
        path = ls_resolve_path(line, list);
    }
    int status = path == NULL
                     ? ls_fail_memory(error, "the list of inputs")
                     : add_entry(inputs, path, strlen(path) - strlen(line), NULL, &entry, error);
    if (status == 0 && has_label) {
        entry->has_label = true;
        entry->label = (int32_t)label;
    }
    ls_free(path);
    return status;
}

/* A list that is being read, from a file or a pipe. */
struct reading {
    FILE *file;
    const char *name; /* for messages */
    size_t line;      /* from 1 */
    char text[LINE_ROOM];
};

/* The next line, without blanks at its end; *there is false behind the last one. */
static int next_line(struct reading *reading, bool *there, struct ls_error *error)
{
    char place[PATH_MAX + 32];
    size_t length = 0;
    int c;
    errno = 0;
    reading->line++;
    while ((c = getc(reading->file)) != EOF && c != '\n' && c != '\0' && length + 1 < LINE_ROOM)
        reading->text[length++] = (char)c;
    *there = c != EOF || length > 0;
    if (ferror(reading->file))
        return ls_fail_errno(error, LOCKSTEP_DATA, reading->name, "cannot read");
    if (c != EOF && c != '\n') {
        snprintf(place, sizeof place, "%.4000s:%zu", reading->name, reading->line);
        return ls_fail(error, LOCKSTEP_DATA, place,
                       "a list has a path on each line, or a path, a space and a label",
                       c == '\0' ? "is not a text" : "the line is too long for a path");
    }
    while (length > 0 && strchr(" \t\r", reading->text[length - 1]) != NULL)
        length--;
    reading->text[length] = '\0';
    if (reading->line == 1 && strncmp(reading->text, "\xEF\xBB\xBF", 3) == 0)
        memmove(reading->text, reading->text + 3, length - 2); /* the mark of UTF-8 */
    return 0;
}

static int read_list(struct lockstep_inputs *inputs, const char *list, FILE *file,
                     struct ls_error *error)
{
    struct reading reading = {.file = file,
                              .name = strcmp(list, "-") == 0 ? "standard input" : list};
    const int64_t before = inputs->all;
    bool there = true;
    int status = 0;
    while (status == 0 && there) {
        status = next_line(&reading, &there, error);
        if (status == 0 && there && reading.text[0] != '\0')
            status = add_line(inputs, list, reading.text, error);
    }
    if (status == 0 && inputs->all == before)
        status = ls_fail(error, LOCKSTEP_DATA, reading.name, NULL, "lists no pictures");
    return status;
}

int lockstep_inputs_add_list(struct lockstep_inputs *inputs, const char *path,
                             struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    if (strcmp(path, "-") == 0)
        return read_list(inputs, path, stdin, inner);
    if (ls_is_directory(path))
        return ls_fail(inner, LOCKSTEP_DATA, path, "add it as an input, and not as a list",
                       "is a folder");
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return ls_fail_errno(inner, LOCKSTEP_DATA, path, "cannot open");
    int status = read_list(inputs, path, file, inner);
    (void)fclose(file); /* it was read only */
    return status;
}
