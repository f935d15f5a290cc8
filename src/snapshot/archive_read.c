/* Reading archives: nothing in the file is believed before it was checked.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"
#include "snapshot/archive.h"
#include "snapshot/archive_layout.h"
#include "base/json.h"

/* A reader at work. */
struct reader {
    struct ls_archive *archive;
    struct ls_json json; /* over the header */
    const char *path;
    uint64_t data_size;
    bool has_format;
    struct ls_error *error;
};

static int fail_json(struct reader *reader)
{
    return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                   "the header is damaged: %s (byte %zu)",
                   reader->json.problem != NULL ? reader->json.problem : "unexpected text",
                   8 + reader->json.at);
}

/* A string of the header, owned by the caller; NULL after a failure, which *status is. */
static char *read_string(struct reader *reader, int *status)
{
    struct ls_text text = {0};
    bool good = ls_json_read_string(&reader->json, &text);
    if (good && !text.failed)
        return text.data;
    ls_text_free(&text);
    *status = good ? ls_fail_memory(reader->error, reader->path) : fail_json(reader);
    return NULL;
}

/* Keeps where the digits of our checksum are, if `value` is one: "crc32:0123abcd" was the last
 * thing read, and its closing quote stands before the reader's place. */
static void note_checksum(struct reader *reader, const char *value)
{
    size_t kind = strlen(LS_CHECKSUM_KIND);
    if (strlen(value) != kind + 8 || strncmp(value, LS_CHECKSUM_KIND, kind) != 0 ||
        strspn(value + kind, "0123456789abcdef") != 8)
        return;
    /* An escape would make the text in the file longer than the string. */
    size_t end = reader->json.at - 1;
    if (memcmp(reader->json.text + end - 8, value + kind, 8) != 0)
        return;
    reader->archive->checksum_at = 8 + end - 8;
    reader->archive->checksum = (uint32_t)strtoul(value + kind, NULL, 16);
}

/* Whether a name is one of the writer's own with some of its characters wrong. Without this, damage
 * to the checksum's name would let all other damage pass. */
static bool is_damaged(const char *key, const char *own)
{
    size_t length = strlen(own), wrong = 0;
    if (strlen(key) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        wrong += key[i] != own[i];
    return wrong > 0 && wrong <= length / 2;
}

/* Takes notice of a note that the writer adds by itself; *own says whether this is one. */
static int check_own_note(struct reader *reader, const char *key, const char *value, bool *own)
{
    *own = false;
    if (is_damaged(key, LS_NOTE_FORMAT) || is_damaged(key, LS_NOTE_CHECKSUM))
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, "the file is damaged",
                       "the name of note '%s' is wrong", key);
    bool format = strcmp(key, LS_NOTE_FORMAT) == 0;
    bool checksum = strcmp(key, LS_NOTE_CHECKSUM) == 0;
    *own = format || checksum;
    if ((format && reader->has_format) || (checksum && reader->archive->checksum_at != 0))
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                       "note '%s' is there twice", key);
    if (format && strcmp(value, "1") != 0)
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path,
                       "it was written by a newer version of Lockstep, or is damaged",
                       "has format '%s'; this version knows format 1", value);
    reader->has_format = reader->has_format || format;
    if (checksum)
        note_checksum(reader, value);
    if (checksum && reader->archive->checksum_at == 0)
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                       "the checksum is damaged");
    return 0;
}

/* Stores a note of the caller's. Owns both strings from here on. */
static int keep_note(struct reader *reader, char *key, char *value)
{
    struct ls_archive *archive = reader->archive;
    bool own;
    int status = check_own_note(reader, key, value, &own);
    if (status == 0 && !own) {
        if (LS_GROW(archive->notes, archive->note_count, archive->note_capacity)) {
            archive->notes[archive->note_count++] = (struct ls_note){key, value};
            return 0;
        }
        status = ls_fail_memory(reader->error, reader->path);
    }
    ls_free(key);
    ls_free(value);
    return status;
}

/* {"key": "value", ...} */
static int read_notes(struct reader *reader)
{
    struct ls_json *json = &reader->json;
    if (!ls_json_expect(json, '{', "the metadata are not an object"))
        return fail_json(reader);
    if (ls_json_take(json, '}'))
        return 0;
    do {
        int status = 0;
        char *key = read_string(reader, &status);
        if (key == NULL)
            return status;
        char *value = NULL;
        if (!ls_json_expect(json, ':', "a colon was expected"))
            status = fail_json(reader);
        else
            value = read_string(reader, &status);
        if (value == NULL) {
            ls_free(key);
            return status;
        }
        LS_TRY(keep_note(reader, key, value));
    } while (ls_json_take(json, ','));
    return ls_json_expect(json, '}', "a comma or a brace was expected") ? 0 : fail_json(reader);
}

static int read_dtype(struct reader *reader, struct ls_tensor *tensor)
{
    int status = 0;
    char *name = read_string(reader, &status);
    if (name == NULL)
        return status;
    if (!ls_dtype_find(name, &tensor->type))
        status = ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                         "tensor '%s' has the unknown type '%s'", tensor->name, name);
    ls_free(name);
    return status;
}

/* [a, b, ...] of at most `room` numbers. */
static int read_numbers(struct reader *reader, const char *name, int64_t *numbers, int room,
                        int *count)
{
    struct ls_json *json = &reader->json;
    *count = 0;
    if (!ls_json_expect(json, '[', "a list was expected"))
        return fail_json(reader);
    if (ls_json_take(json, ']'))
        return 0;
    do {
        if (*count == room)
            return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                           "tensor '%s' has more than %d dimensions", name, room);
        if (!ls_json_read_integer(json, &numbers[(*count)++]))
            return fail_json(reader);
    } while (ls_json_take(json, ','));
    return ls_json_expect(json, ']', "a comma or a bracket was expected") ? 0 : fail_json(reader);
}

/* What was read of a tensor's three fields. */
enum { GOT_DTYPE = 1, GOT_SHAPE = 2, GOT_OFFSETS = 4 };

static int read_field(struct reader *reader, struct ls_tensor *tensor, int64_t offsets[2], int *got)
{
    int status = 0;
    char *key = read_string(reader, &status);
    if (key == NULL)
        return status;
    int field = strcmp(key, "dtype") == 0          ? GOT_DTYPE
                : strcmp(key, "shape") == 0        ? GOT_SHAPE
                : strcmp(key, "data_offsets") == 0 ? GOT_OFFSETS
                                                   : 0;
    if (field == 0 || (*got & field) != 0)
        status = ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                         "tensor '%s' has %s field '%s'", tensor->name,
                         field == 0 ? "an unknown" : "twice the", key);
    ls_free(key);
    LS_TRY(status);
    if (!ls_json_expect(&reader->json, ':', "a colon was expected"))
        return fail_json(reader);
    *got |= field;
    if (field == GOT_DTYPE)
        return read_dtype(reader, tensor);
    if (field == GOT_SHAPE)
        return read_numbers(reader, tensor->name, tensor->shape.dim, LS_RANK_MAX,
                            &tensor->shape.rank);
    int count;
    LS_TRY(read_numbers(reader, tensor->name, offsets, 2, &count));
    if (count != 2)
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                       "tensor '%s' has %d offsets instead of two", tensor->name, count);
    return 0;
}

/* Checks the fields against each other and against the file; sets data and size. */
static int place_tensor(struct reader *reader, struct ls_tensor *tensor, const int64_t offsets[2])
{
    char shape[128];
    if (!ls_shape_valid(&tensor->shape, true))
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                       "tensor '%s' has an impossible shape", tensor->name);
    if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > reader->data_size)
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path,
                       "the file is damaged or was cut off",
                       "tensor '%s' lies at bytes %" PRId64 " to %" PRId64
                       " of the data, of which there are %" PRIu64,
                       tensor->name, offsets[0], offsets[1], reader->data_size);
    /* At most 2^40 elements of 8 bytes: the product fits. */
    int64_t size = ls_shape_size(&tensor->shape) * (int64_t)ls_dtype_size(tensor->type);
    if (size != offsets[1] - offsets[0])
        return ls_fail(
            reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
            "tensor '%s' of type %s and shape %s needs %" PRId64 " bytes and has %" PRId64,
            tensor->name, ls_dtype_name(tensor->type),
            ls_shape_text(&tensor->shape, shape, sizeof shape), size, offsets[1] - offsets[0]);
    tensor->data = reader->archive->mapping.data + reader->archive->data_offset + offsets[0];
    tensor->size = (size_t)size;
    return 0;
}

/* {"dtype": ..., "shape": [...], "data_offsets": [...]} of a tensor whose name was read. */
static int read_tensor(struct reader *reader, struct ls_tensor *tensor)
{
    struct ls_json *json = &reader->json;
    int64_t offsets[2] = {0};
    int got = 0;
    if (!ls_json_expect(json, '{', "a tensor is not an object"))
        return fail_json(reader);
    if (!ls_json_take(json, '}')) {
        do
            LS_TRY(read_field(reader, tensor, offsets, &got));
        while (ls_json_take(json, ','));
        if (!ls_json_expect(json, '}', "a comma or a brace was expected"))
            return fail_json(reader);
    }
    if (got != (GOT_DTYPE | GOT_SHAPE | GOT_OFFSETS))
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                       "tensor '%s' lacks its type, its shape or its offsets", tensor->name);
    return place_tensor(reader, tensor, offsets);
}

/* One entry of the header: the metadata or a tensor. */
static int read_entry(struct reader *reader, bool *has_notes)
{
    struct ls_archive *archive = reader->archive;
    int status = 0;
    char *name = read_string(reader, &status);
    if (name == NULL)
        return status;
    if (!ls_json_expect(&reader->json, ':', "a colon was expected")) {
        ls_free(name);
        return fail_json(reader);
    }
    if (strcmp(name, "__metadata__") == 0) {
        ls_free(name);
        if (*has_notes)
            return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                           "the metadata are there twice");
        *has_notes = true;
        return read_notes(reader);
    }
    if (!LS_GROW(archive->tensors, archive->tensor_count, archive->tensor_capacity)) {
        ls_free(name);
        return ls_fail_memory(reader->error, reader->path);
    }
    struct ls_tensor *tensor = &archive->tensors[archive->tensor_count++];
    *tensor = (struct ls_tensor){.name = name};
    return read_tensor(reader, tensor);
}

static int read_header(struct reader *reader)
{
    struct ls_json *json = &reader->json;
    bool has_notes = false;
    if (!ls_json_expect(json, '{', "a brace was expected"))
        return fail_json(reader);
    if (!ls_json_take(json, '}')) {
        do
            LS_TRY(read_entry(reader, &has_notes));
        while (ls_json_take(json, ','));
        if (!ls_json_expect(json, '}', "a comma or a brace was expected"))
            return fail_json(reader);
    }
    return ls_json_end(json) ? 0 : fail_json(reader);
}

static int compare_places(const void *a, const void *b)
{
    const struct ls_tensor *left = *(const struct ls_tensor *const *)a;
    const struct ls_tensor *right = *(const struct ls_tensor *const *)b;
    if (left->data != right->data)
        return (const char *)left->data < (const char *)right->data ? -1 : 1;
    return (left->size > right->size) - (left->size < right->size);
}

/* Tensors in the order of the file must follow each other without holes up to its end. */
static int check_places(struct reader *reader)
{
    struct ls_archive *archive = reader->archive;
    const struct ls_tensor **order = ls_alloc(archive->tensor_count, sizeof *order);
    if (order == NULL)
        return ls_fail_memory(reader->error, reader->path);
    for (size_t i = 0; i < archive->tensor_count; i++)
        order[i] = &archive->tensors[i];
    qsort(order, archive->tensor_count, sizeof *order, compare_places);
    const char *begin = (const char *)archive->mapping.data + archive->data_offset;
    size_t end = 0;
    int status = 0;
    for (size_t i = 0; i < archive->tensor_count && status == 0; i++) {
        size_t at = (size_t)((const char *)order[i]->data - begin);
        if (at != end)
            status = ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                             at < end ? "tensor '%s' overlaps the one before it"
                                      : "there is a hole before tensor '%s'",
                             order[i]->name);
        end = at + order[i]->size;
    }
    if (status == 0 && end != reader->data_size)
        status = ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path,
                         "the file is damaged, or something was appended to it",
                         "%" PRIu64 " bytes behind the last tensor belong to nothing",
                         reader->data_size - end);
    ls_free(order);
    return status;
}

/* qsort has no room for a context: names are sorted with their index behind them. */
struct named {
    const char *name;
    size_t index;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* Fills by_name, and refuses what is there twice. */
static int index_names(struct reader *reader)
{
    struct ls_archive *archive = reader->archive;
    LS_TRY(ls_archive_check_names(archive, LOCKSTEP_WEIGHTS, reader->path, reader->error));
    struct named *sorted = ls_alloc(archive->tensor_count, sizeof *sorted);
    archive->by_name = ls_alloc(archive->tensor_count, sizeof *archive->by_name);
    if (sorted == NULL || archive->by_name == NULL) {
        ls_free(sorted);
        return ls_fail_memory(reader->error, reader->path);
    }
    for (size_t i = 0; i < archive->tensor_count; i++)
        sorted[i] = (struct named){archive->tensors[i].name, i};
    qsort(sorted, archive->tensor_count, sizeof *sorted, compare_names);
    for (size_t i = 0; i < archive->tensor_count; i++)
        archive->by_name[i] = sorted[i].index;
    ls_free(sorted);
    return 0;
}

/* Goes through a part of the file without keeping it in memory. */
static uint32_t crc_of(const struct ls_mapping *file, size_t begin, size_t end, uint32_t crc)
{
    const size_t step = (size_t)1 << 20;
    for (size_t at = begin; at < end; at += step) {
        size_t size = end - at < step ? end - at : step;
        crc = ls_archive_crc(crc, file->data + at, size);
        ls_file_forget(file, file->data + at, size);
        ls_progress_tell();
    }
    return crc;
}

/* Compares the checksum with the file's bytes, its own digits taken as zeros. */
static int verify_checksum(struct reader *reader)
{
    const struct ls_archive *archive = reader->archive;
    const struct ls_mapping *file = &archive->mapping;
    uint32_t crc = crc_of(file, 0, archive->checksum_at, 0);
    crc = ls_archive_crc(crc, "00000000", 8);
    crc = crc_of(file, archive->checksum_at + 8, file->size, crc);
    if (crc == archive->checksum)
        return 0;
    return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path,
                   "if the file was changed on purpose, leave '" LS_NOTE_CHECKSUM
                   "' out of its metadata",
                   "the checksum is wrong: the file is damaged");
}

/* What does not even begin as a header: most often a file of Caffe's, or another one by mistake. */
static int fail_format(struct reader *reader)
{
    const char *dot = strrchr(reader->path, '.');
    bool caffe = dot != NULL && (strcmp(dot, ".solverstate") == 0 ||
                                 strcmp(dot, ".caffemodel") == 0 || strcmp(dot, ".h5") == 0);
    return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path,
                   caffe ? "a resume takes Lockstep's own snapshots, or a .solverstate; --weights "
                           "starts a training from a caffemodel, and 'lockstep convert-weights' "
                           "makes a safetensors file of it"
                         : NULL,
                   "is no safetensors file%s", caffe ? "" : ", or its header is damaged");
}

static int read_mapped(struct reader *reader, enum ls_archive_check check)
{
    struct ls_archive *archive = reader->archive;
    const struct ls_mapping *file = &archive->mapping;
    uint64_t length;
    if (file->size < 10)
        return ls_fail(reader->error, LOCKSTEP_WEIGHTS, reader->path, NULL,
                       file->size == 0 ? "is empty" : "has %zu bytes and is no safetensors file",
                       file->size);
    memcpy(&length, file->data, sizeof length);
    if (((const char *)file->data)[sizeof length] != '{')
        return fail_format(reader);
    if (length > LS_HEADER_LIMIT || length > file->size - 8)
        return ls_fail(
            reader->error, LOCKSTEP_WEIGHTS, reader->path, "the file is damaged, or was cut off",
            "the header should have %" PRIu64 " bytes; the file has %zu", length, file->size);
    archive->data_offset = 8 + (size_t)length;
    reader->data_size = file->size - archive->data_offset;
    reader->json = (struct ls_json){(const char *)file->data + 8, (size_t)length, 0, NULL};
    LS_TRY(read_header(reader));
    LS_TRY(check_places(reader));
    LS_TRY(index_names(reader));
    if (archive->checksum_at != 0 && check == LS_ARCHIVE_CHECK)
        LS_TRY(verify_checksum(reader));
    archive->ours = reader->has_format && archive->checksum_at != 0;
    return 0;
}

int ls_archive_read(const char *path, enum ls_archive_check check, struct ls_archive *archive,
                    struct ls_error *error)
{
    *archive = (struct ls_archive){0};
    LS_TRY(ls_file_map(path, LOCKSTEP_WEIGHTS, &archive->mapping, error));
    struct reader reader = {.archive = archive, .path = path, .error = error};
    archive->path = ls_copy_string(path);
    int status = archive->path != NULL ? read_mapped(&reader, check) : ls_fail_memory(error, path);
    if (status == 0)
        status = ls_file_lost(&archive->mapping, path, LOCKSTEP_WEIGHTS, error);
    if (status != 0)
        ls_archive_free(archive);
    return status;
}
