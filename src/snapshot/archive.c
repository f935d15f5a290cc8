/* Building and writing archives, and looking things up in them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "snapshot/archive_layout.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files hold numbers as memory does");

void ls_archive_free(struct ls_archive *archive)
{
    for (size_t i = 0; i < archive->tensor_count; i++)
        ls_free(archive->tensors[i].name);
    for (size_t i = 0; i < archive->note_count; i++) {
        ls_free(archive->notes[i].key);
        ls_free(archive->notes[i].value);
    }
    ls_free(archive->tensors);
    ls_free(archive->notes);
    ls_free(archive->path);
    ls_free(archive->by_name);
    ls_file_unmap(&archive->mapping);
    *archive = (struct ls_archive){0};
}

int ls_archive_add(struct ls_archive *archive, const char *name, enum ls_dtype type,
                   const struct ls_shape *shape, const void *data, struct ls_error *error)
{
    if (!ls_shape_valid(shape, true))
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "tensor '%s' has a shape that archives do not have", name);
    if (name[0] == '\0' || strcmp(name, "__metadata__") == 0 || !ls_utf8_valid(name, strlen(name)))
        return ls_fail(error, LOCKSTEP_WEIGHTS, NULL, "rename the layer",
                       "'%s' is not a name that a tensor can have in a file", name);
    if (!LS_GROW(archive->tensors, archive->tensor_count, archive->tensor_capacity))
        return ls_fail_memory(error, name);
    struct ls_tensor *tensor = &archive->tensors[archive->tensor_count];
    *tensor = (struct ls_tensor){.name = ls_copy_string(name),
                                 .type = type,
                                 .shape = *shape,
                                 .data = data,
                                 .size = (size_t)ls_shape_size(shape) * ls_dtype_size(type)};
    if (tensor->name == NULL)
        return ls_fail_memory(error, name);
    archive->tensor_count++;
    return 0;
}

int ls_archive_add_list(struct ls_archive *archive, const char *name, enum ls_dtype type,
                        int64_t count, const void *data, struct ls_error *error)
{
    struct ls_shape shape = {.rank = 1, .dim = {count}};
    return ls_archive_add(archive, name, type, &shape, data, error);
}

int ls_archive_add_note(struct ls_archive *archive, const char *key, const char *value,
                        struct ls_error *error)
{
    if (!ls_utf8_valid(key, strlen(key)) || !ls_utf8_valid(value, strlen(value)) ||
        strcmp(key, LS_NOTE_FORMAT) == 0 || strcmp(key, LS_NOTE_CHECKSUM) == 0)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "note '%s' cannot be kept in a file: it is not UTF-8, or has a name that "
                       "the file itself uses",
                       key);
    if (!LS_GROW(archive->notes, archive->note_count, archive->note_capacity))
        return ls_fail_memory(error, key);
    struct ls_note *note = &archive->notes[archive->note_count];
    *note = (struct ls_note){ls_copy_string(key), ls_copy_string(value)};
    if (note->key == NULL || note->value == NULL) {
        ls_free(note->key);
        ls_free(note->value);
        return ls_fail_memory(error, key);
    }
    archive->note_count++;
    return 0;
}

int ls_archive_add_note_integer(struct ls_archive *archive, const char *key, int64_t value,
                                struct ls_error *error)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return ls_archive_add_note(archive, key, text, error);
}

/* Tensors lie in the file by element size, the largest first, so that all are aligned. */
static const size_t element_sizes[] = {8, 4, 2, 1};
enum { ELEMENT_SIZES = sizeof element_sizes / sizeof element_sizes[0] };

/* Gives every tensor its offset. */
static void place_tensors(const struct ls_archive *archive, uint64_t *offsets)
{
    uint64_t at = 0;
    for (int s = 0; s < ELEMENT_SIZES; s++) {
        for (size_t i = 0; i < archive->tensor_count; i++) {
            if (ls_dtype_size(archive->tensors[i].type) != element_sizes[s])
                continue;
            offsets[i] = at;
            at += archive->tensors[i].size;
        }
    }
}

static void add_notes(const struct ls_archive *archive, struct ls_text *header)
{
    ls_text_add(header, "{\"__metadata__\":{\"" LS_NOTE_FORMAT "\":\"1\",\"" LS_NOTE_CHECKSUM
                        "\":\"" LS_CHECKSUM_KIND "00000000\"");
    for (size_t i = 0; i < archive->note_count; i++) {
        ls_text_add(header, ",");
        ls_text_add_json(header, archive->notes[i].key);
        ls_text_add(header, ":");
        ls_text_add_json(header, archive->notes[i].value);
    }
    ls_text_add(header, "}");
}

/* The header, padded, with the checksum's digits still zero. */
static void build_header(const struct ls_archive *archive, const uint64_t *offsets,
                         struct ls_text *header)
{
    add_notes(archive, header);
    for (size_t i = 0; i < archive->tensor_count; i++) {
        const struct ls_tensor *tensor = &archive->tensors[i];
        ls_text_add(header, ",");
        ls_text_add_json(header, tensor->name);
        ls_text_format(header, ":{\"dtype\":\"%s\",\"shape\":[", ls_dtype_name(tensor->type));
        for (int axis = 0; axis < tensor->shape.rank; axis++)
            ls_text_format(header, "%s%" PRId64, axis > 0 ? "," : "", tensor->shape.dim[axis]);
        ls_text_format(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offsets[i],
                       offsets[i] + tensor->size);
    }
    ls_text_add(header, "}");
    while (!header->failed && (header->length + 8) % LS_HEADER_ALIGNMENT != 0)
        ls_text_add(header, " ");
}

/* CRC-32 of any number of bytes; zlib's own function counts in 32 bits. */
uint32_t ls_archive_crc(uint32_t crc, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    while (size > 0) {
        uInt part = size < (1u << 30) ? (uInt)size : 1u << 30;
        crc = (uint32_t)crc32(crc, from, part);
        from += part;
        size -= part;
    }
    return crc;
}

/* Room for the largest tensor that has to be fetched; NULL where there is none. */
static int make_room(const struct ls_archive *archive, void **room, struct ls_error *error)
{
    size_t most = 0;
    for (size_t i = 0; i < archive->tensor_count; i++)
        if (archive->tensors[i].data == NULL && archive->tensors[i].size > most)
            most = archive->tensors[i].size;
    *room = most > 0 ? ls_alloc_aligned(most) : NULL;
    return most == 0 || *room != NULL ? 0 : ls_fail_memory(error, "a tensor to be written");
}

enum { PIECE = 4 << 20 }; /* bytes that are written at a time */

/* A file while it is written. */
struct output {
    const struct ls_archive *archive;
    struct ls_atomic_file *file;
    uint32_t crc; /* of all that was written */
};

static int put(struct output *output, const void *bytes, size_t size, struct ls_error *error)
{
    const unsigned char *from = bytes;
    do {
        size_t part = size < PIECE ? size : PIECE;
        output->crc = ls_archive_crc(output->crc, from, part);
        LS_TRY(ls_atomic_write(output->file, from, part, error));
        if (output->archive->wrote != NULL)
            output->archive->wrote(output->archive->user);
        from += part;
        size -= part;
    } while (size > 0);
    return 0;
}

static int put_tensors(struct output *output, const struct ls_archive *archive, void *room,
                       struct ls_error *error)
{
    for (int s = 0; s < ELEMENT_SIZES; s++) {
        for (size_t i = 0; i < archive->tensor_count; i++) {
            const struct ls_tensor *tensor = &archive->tensors[i];
            const void *bytes = tensor->data != NULL ? tensor->data : room;
            if (ls_dtype_size(tensor->type) != element_sizes[s])
                continue;
            if (tensor->data == NULL && tensor->size > 0)
                LS_TRY(archive->fetch(archive->user, i, room, error));
            LS_TRY(put(output, bytes, tensor->size, error));
        }
    }
    return 0;
}

/* Writes the checksum's digits into the header, when all else has been written. */
static int sign(const struct output *output, const struct ls_text *header, struct ls_error *error)
{
    char digits[9];
    snprintf(digits, sizeof digits, "%08" PRIx32, output->crc);
    /* Our notes are the first ones, so that the first hit is the place. */
    const char *place = strstr(header->data, LS_CHECKSUM_KIND) + strlen(LS_CHECKSUM_KIND);
    size_t offset = sizeof(uint64_t) + (size_t)(place - header->data);
    return ls_atomic_rewrite(output->file, offset, digits, 8, error);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether two of `count` names are the same; *twice is one that is. */
static bool find_twice(const char **names, size_t count, const char **twice)
{
    qsort(names, count, sizeof *names, compare_strings);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            *twice = names[i];
            return true;
        }
    }
    return false;
}

int ls_archive_check_names(const struct ls_archive *archive, int status, const char *path,
                           struct ls_error *error)
{
    size_t most =
        archive->tensor_count > archive->note_count ? archive->tensor_count : archive->note_count;
    const char **names = ls_alloc(most, sizeof *names);
    if (names == NULL)
        return ls_fail_memory(error, path);
    const char *twice;
    int result = 0;
    for (size_t i = 0; i < archive->tensor_count; i++)
        names[i] = archive->tensors[i].name;
    if (find_twice(names, archive->tensor_count, &twice))
        result = ls_fail(error, status, path, NULL, "tensor '%s' is there twice", twice);
    for (size_t i = 0; i < archive->note_count; i++)
        names[i] = archive->notes[i].key;
    if (result == 0 && find_twice(names, archive->note_count, &twice))
        result = ls_fail(error, status, path, NULL, "note '%s' is there twice", twice);
    ls_free(names);
    return result;
}

static int write_all(const struct ls_archive *archive, void *room, const struct ls_text *header,
                     const char *path, struct ls_error *error)
{
    struct output output = {.archive = archive};
    LS_TRY(ls_atomic_open(path, &output.file, error));
    uint64_t length = header->length;
    int status = put(&output, &length, sizeof length, error);
    if (status == 0)
        status = put(&output, header->data, header->length, error);
    if (status == 0)
        status = put_tensors(&output, archive, room, error);
    if (status == 0)
        status = sign(&output, header, error);
    if (status == 0)
        return ls_atomic_commit(output.file, error);
    ls_atomic_abandon(output.file);
    return status;
}

int ls_archive_write(const struct ls_archive *archive, const char *path, struct ls_error *error)
{
    LS_TRY(ls_archive_check_names(archive, LOCKSTEP_INTERNAL, path, error));
    uint64_t *offsets = ls_alloc(archive->tensor_count, sizeof *offsets);
    if (offsets == NULL)
        return ls_fail_memory(error, path);
    place_tensors(archive, offsets);
    struct ls_text header = {0};
    build_header(archive, offsets, &header);
    ls_free(offsets);
    int status;
    if (header.failed) {
        status = ls_fail_memory(error, path);
    } else if (header.length > LS_HEADER_LIMIT) {
        status = ls_fail(error, LOCKSTEP_RESOURCE, path, NULL,
                         "the header would have %zu bytes; readers take at most %d", header.length,
                         LS_HEADER_LIMIT);
    } else {
        void *room = NULL;
        status = make_room(archive, &room, error);
        if (status == 0)
            status = write_all(archive, room, &header, path, error);
        ls_free_aligned(room);
    }
    ls_text_free(&header);
    return status;
}
