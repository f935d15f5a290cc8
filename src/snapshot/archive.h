/* An archive: named tensors and named strings in one file of the safetensors format.
 *
 *   bytes 0..7    N, the length of the header: 64 bits, little endian
 *   N bytes       JSON: {"__metadata__": {"key": "value", ...},
 *                        "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *   the rest      the tensors' elements, little endian, row-major, one after the other, no holes
 *
 * What we write
 *   - is a function of its content: the same tensors and notes in the same order give the same
 *     bytes. Tensors lie in the order of their element size (8, 4, 2, 1) and within one size in the
 *     order in which they were added, and the header is filled up with spaces to a multiple of 64,
 *     so that every tensor is aligned to its elements.
 *   - begins with two notes of our own: "lockstep.format" and "lockstep.checksum", the CRC-32 of
 *     the whole file with this checksum's digits as zeros. It finds damaged files; a file
 *     that was changed on purpose has to leave the note out.
 *
 * What we read is any safetensors file, hostile until proven otherwise: lengths, nesting, names
 * that occur twice, offsets that overlap or leave the file, sizes that do not fit the shape, bytes
 * that belong to nothing. Every failure has status LOCKSTEP_WEIGHTS and names the file and, where
 * there is one, the tensor.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_ARCHIVE_H
#define LS_SNAPSHOT_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "ir/dtype.h"
#include "ir/shape.h"

struct ls_tensor {
    char *name; /* owned by the archive */
    enum ls_dtype type;
    struct ls_shape shape; /* a dimension may be 0 */
    /* Row-major. To be written: the caller's, borrowed until the archive is freed, or NULL: it is
     * fetched when it is needed (ls_archive.fetch). As read: in the archive's mapping, not aligned
     * for sure; see ls_tensor_copy and ls_tensor_floats. */
    const void *data;
    size_t size; /* bytes */
};

/* A named string ("__metadata__" of safetensors). Both owned by the archive. */
struct ls_note {
    char *key, *value;
};

#define LS_NOTE_FORMAT   "lockstep.format"   /* "1"; set by the writer */
#define LS_NOTE_CHECKSUM "lockstep.checksum" /* set by the writer */

/* All zeros is an empty archive. */
struct ls_archive {
    struct ls_tensor *tensors; /* in the order of the header */
    size_t tensor_count, tensor_capacity;
    struct ls_note *notes; /* without the writer's own two */
    size_t note_count, note_capacity;
    /* To be written, for tensors without data: puts those of tensor `index` into `out`. Called once
     * for each, in the order of the file, so that one at a time needs to be in memory. */
    int (*fetch)(void *user, size_t index, void *out, struct ls_error *error);
    /* Called after every few megabytes that were written; NULL: no calls. */
    void (*wrote)(void *user);
    void *user; /* handed to both */
    /* What follows is set by ls_archive_read. */
    char *path;
    bool ours;          /* has our format's note and a checksum that was found right */
    size_t *by_name;    /* indices of `tensors`, sorted by name */
    size_t data_offset; /* where the elements begin in the file */
    size_t checksum_at; /* where the checksum's digits are; 0: there are none */
    uint32_t checksum;  /* what they say */
    struct ls_mapping mapping;
};

void ls_archive_free(struct ls_archive *archive); /* leaves an empty archive */

/* Appends a tensor; its data are borrowed, not copied. LOCKSTEP_INTERNAL for a shape that is not
 * valid or a name that is empty, not UTF-8 or
 * "__metadata__". Names must differ, which ls_archive_write checks. */
int ls_archive_add(struct ls_archive *archive, const char *name, enum ls_dtype type,
                   const struct ls_shape *shape, const void *data, struct ls_error *error);
/* As ls_archive_add, for `count` elements in one dimension. */
int ls_archive_add_list(struct ls_archive *archive, const char *name, enum ls_dtype type,
                        int64_t count, const void *data, struct ls_error *error);
/* Appends a note. The value is any UTF-8. Keys must differ and not be one of the writer's own. */
int ls_archive_add_note(struct ls_archive *archive, const char *key, const char *value,
                        struct ls_error *error);
int ls_archive_add_note_integer(struct ls_archive *archive, const char *key, int64_t value,
                                struct ls_error *error);

/* Writes the archive to `path`, atomically (ls_atomic_open). */
int ls_archive_write(const struct ls_archive *archive, const char *path, struct ls_error *error);

enum ls_archive_check {
    LS_ARCHIVE_CHECK, /* all of it, with the checksum where there is one */
    LS_ARCHIVE_HEADER /* only the structure; `ours` says that the file has our notes */
};

/* Maps `path` and checks it. On failure *archive is empty. */
int ls_archive_read(const char *path, enum ls_archive_check check, struct ls_archive *archive,
                    struct ls_error *error);

/* The tensor or the value of that name, or NULL. */
const struct ls_tensor *ls_archive_find(const struct ls_archive *archive, const char *name);
const char *ls_archive_note(const struct ls_archive *archive, const char *key);

/* Finds a tensor that must be there with this type and number of elements and copies it to `out`.
 * A failure is LOCKSTEP_WEIGHTS and says what is there instead. */
int ls_archive_take(const struct ls_archive *archive, const char *name, enum ls_dtype type,
                    int64_t count, void *out, struct ls_error *error);
/* Reads a note that must be there and be a decimal integer. */
int ls_archive_take_integer(const struct ls_archive *archive, const char *key, int64_t *value,
                            struct ls_error *error);

/* Copies the elements to `out`, which has room for tensor->size bytes and any alignment. */
void ls_tensor_copy(const struct ls_tensor *tensor, void *out);
/* Converts elements of a floating-point type to fp32 (ir/convert.h). */
void ls_tensor_floats(const struct ls_tensor *tensor, float *out);

#endif
