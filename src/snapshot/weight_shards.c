/* Reading weights that lie in several files. See snapshot/weight_shards.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/weight_shards.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"

static const char ending[] = ".index.json";
enum { INDEX_LIMIT = 64 << 20, FILES_MAX = 1000, TENSORS_MAX = 100000 };

bool ls_weight_shards_is_index(const char *path)
{
    size_t length = strlen(path), wanted = sizeof ending - 1;
    return length > wanted && strcmp(path + length - wanted, ending) == 0;
}

struct index_reader {
    struct ls_weight_shards *shards;
    struct ls_json json;
    const char *path;
    struct ls_names names; /* of files: their indices */
    char **file;           /* their names, owned */
    size_t file_capacity;
    struct ls_error *error;
};

static int fail_json(const struct index_reader *reader)
{
    return ls_fail(
        reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL, "the index is damaged: %s (byte %zu)",
        reader->json.problem != NULL ? reader->json.problem : "unexpected text", reader->json.at);
}

static int read_string(struct index_reader *reader, struct ls_text *text)
{
    text->length = 0;
    if (!ls_json_read_string(&reader->json, text))
        return fail_json(reader);
    return text->failed ? ls_fail_memory(reader->error, reader->path) : 0;
}

/* The path of a file beside the index; NULL without memory. */
static char *path_beside(const char *index, const char *name)
{
    const char *slash = strrchr(index, '/');
    struct ls_text text = {0};
    if (slash != NULL)
        ls_text_add_bytes(&text, index, (size_t)(slash + 1 - index));
    ls_text_add(&text, name);
    if (text.failed)
        ls_text_free(&text);
    return text.data;
}

/* Opens a file of the index, once. */
static int open_file(struct index_reader *reader, const char *name, size_t *index)
{
    struct ls_weight_shards *shards = reader->shards;
    if (ls_names_find(&reader->names, name, index))
        return 0;
    if (strchr(name, '/') != NULL || name[0] == '.' || name[0] == '\0')
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                       "'%s' is no name of a file beside the index", name);
    if (shards->count == FILES_MAX)
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                       "names more than %d files", FILES_MAX);
    size_t count = shards->count;
    if (!LS_GROW(shards->files, count, shards->capacity) ||
        !LS_GROW(reader->file, count, reader->file_capacity))
        return ls_fail_memory(reader->error, reader->path);
    char *path = path_beside(reader->path, name);
    if (path == NULL)
        return ls_fail_memory(reader->error, reader->path);
    int status =
        ls_archive_read(path, LS_ARCHIVE_CHECK, &shards->files[shards->count], reader->error);
    ls_free(path);
    LS_TRY(status);
    char *copy = ls_copy_string(name);
    reader->file[shards->count++] = copy;
    *index = shards->count - 1;
    return copy != NULL && ls_names_set(&reader->names, copy, *index)
               ? 0
               : ls_fail_memory(reader->error, reader->path);
}

/* "tensor": "file" */
static int read_pair(struct index_reader *reader, struct ls_text *tensor, struct ls_text *file)
{
    size_t index;
    LS_TRY(read_string(reader, tensor));
    if (!ls_json_expect(&reader->json, ':', "a colon was expected"))
        return fail_json(reader);
    LS_TRY(read_string(reader, file));
    LS_TRY(open_file(reader, file->data, &index));
    if (ls_archive_find(&reader->shards->files[index], tensor->data) != NULL)
        return 0;
    return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, "are all files of one download?",
                   "says that tensor '%s' is in '%s', which does not have it", tensor->data,
                   file->data);
}

static int read_map(struct index_reader *reader)
{
    struct ls_text tensor = {0}, file = {0};
    int status = 0;
    if (!ls_json_expect(&reader->json, '{', "'weight_map' is no object"))
        return fail_json(reader);
    if (ls_json_take(&reader->json, '}'))
        return 0;
    do
        status = read_pair(reader, &tensor, &file);
    while (status == 0 && ls_json_take(&reader->json, ','));
    ls_text_free(&tensor);
    ls_text_free(&file);
    LS_TRY(status);
    return ls_json_expect(&reader->json, '}', "a comma or a brace was expected")
               ? 0
               : fail_json(reader);
}

/* Goes over a value that does not matter: brackets are counted, and strings taken as a whole. */
static int skip_value(struct index_reader *reader)
{
    struct ls_json *json = &reader->json;
    struct ls_text ignored = {0};
    int status = 0, depth = 0;
    while (json->at < json->size && status == 0) {
        char c = json->text[json->at];
        if (depth == 0 && (c == ',' || c == '}'))
            break;
        if (c == '"') {
            status = read_string(reader, &ignored);
            continue;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        json->at++;
    }
    ls_text_free(&ignored);
    return status;
}

static int read_index(struct index_reader *reader)
{
    struct ls_json *json = &reader->json;
    struct ls_text key = {0};
    bool found = false;
    int status = 0;
    if (!ls_json_expect(json, '{', "a brace was expected"))
        return fail_json(reader);
    do {
        status = read_string(reader, &key);
        if (status == 0 && !ls_json_expect(json, ':', "a colon was expected"))
            status = fail_json(reader);
        bool is_map = status == 0 && strcmp(key.data, "weight_map") == 0;
        if (status == 0)
            status = is_map ? read_map(reader) : skip_value(reader);
        found |= is_map;
    } while (status == 0 && ls_json_take(json, ','));
    ls_text_free(&key);
    LS_TRY(status);
    if (!ls_json_expect(json, '}', "a comma or a brace was expected") || !ls_json_end(json))
        return fail_json(reader);
    return found && reader->shards->count > 0
               ? 0
               : ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                         "has no 'weight_map' that names files");
}

/* The tensors of all files as one list. */
static int list_tensors(struct ls_weight_shards *shards, const char *path, struct ls_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < shards->count; i++)
        count += shards->files[i].tensor_count;
    if (count > TENSORS_MAX)
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL, "has %zu tensors; at most %d are read",
                       count, TENSORS_MAX);
    shards->tensors = ls_alloc(count + 1, sizeof *shards->tensors);
    if (shards->tensors == NULL)
        return ls_fail_memory(error, path);
    for (size_t i = 0; i < shards->count; i++)
        for (size_t t = 0; t < shards->files[i].tensor_count; t++)
            shards->tensors[shards->tensor_count++] = shards->files[i].tensors[t];
    return 0;
}

static int read_files(const char *path, struct ls_weight_shards *shards, struct ls_error *error)
{
    if (!ls_weight_shards_is_index(path)) {
        if (!LS_GROW(shards->files, shards->count, shards->capacity))
            return ls_fail_memory(error, path);
        LS_TRY(ls_archive_read(path, LS_ARCHIVE_CHECK, &shards->files[0], error));
        shards->count = 1;
        return 0;
    }
    char *text;
    size_t size;
    LS_TRY(ls_file_read_text(path, INDEX_LIMIT, LOCKSTEP_WEIGHTS, &text, &size, error));
    struct index_reader reader = {
        .shards = shards, .json = {.text = text, .size = size}, .path = path, .error = error};
    int status = read_index(&reader);
    for (size_t i = 0; i < shards->count; i++)
        ls_free(reader.file[i]);
    ls_free(reader.file);
    ls_names_free(&reader.names);
    ls_free(text);
    return status;
}

int ls_weight_shards_read(const char *path, struct ls_weight_shards *shards, struct ls_error *error)
{
    *shards = (struct ls_weight_shards){0};
    int status = read_files(path, shards, error);
    if (status == 0)
        status = list_tensors(shards, path, error);
    if (status != 0)
        ls_weight_shards_free(shards);
    return status;
}

void ls_weight_shards_free(struct ls_weight_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++)
        ls_archive_free(&shards->files[i]);
    ls_free(shards->files);
    ls_free(shards->tensors);
    *shards = (struct ls_weight_shards){0};
}
