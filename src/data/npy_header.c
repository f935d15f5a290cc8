/* Headers of .npy files; see the header.
 *
 * Of Python's syntax there is what NumPy writes, with any spaces and in any order: a dict with the
 * keys 'descr', 'fortran_order' and 'shape', whose values are a string, True or False, and a tuple
 * of whole numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/npy_header.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { MAGIC_SIZE = 6, HEADER_MAX = 1 << 20, TEXT_MAX = 24 };

struct reading {
    const char *name;
    const char *text; /* the dict */
    size_t size, at;
    size_t offset; /* of the dict in the file */
    char descr[TEXT_MAX];
    bool fortran;
    int64_t dim[LS_RANK_MAX];
    int rank;
    struct ls_error *error;
};

static int npy_fail(const struct reading *r, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int npy_fail(const struct reading *r, const char *hint, const char *format, ...)
{
    char message[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return ls_fail(r->error, LOCKSTEP_DATA, r->name, hint, "byte %zu of its header: %s",
                   r->offset + r->at, message);
}

static char peek(struct reading *r)
{
    while (r->at < r->size && (r->text[r->at] == ' ' || r->text[r->at] == '\n'))
        r->at++;
    return r->at < r->size ? r->text[r->at] : '\0';
}

static int expect(struct reading *r, char wanted)
{
    if (peek(r) != wanted)
        return npy_fail(r, NULL, "'%c' is missing", wanted);
    r->at++;
    return 0;
}

/* A string between quotes of either kind. */
static int read_string(struct reading *r, char out[TEXT_MAX])
{
    char quote = peek(r);
    size_t length = 0;
    if (quote == '[')
        return npy_fail(r, "write each field as an array of its own",
                        "its numbers are records of several fields");
    if (quote != '\'' && quote != '"')
        return npy_fail(r, NULL, "a string is missing");
    for (r->at++; r->at < r->size && r->text[r->at] != quote; r->at++) {
        if (length == TEXT_MAX - 1 || r->text[r->at] < ' ')
            return npy_fail(r, NULL, "a string is not one that NumPy writes");
        out[length++] = r->text[r->at];
    }
    out[length] = '\0';
    return expect(r, quote);
}

static int read_flag(struct reading *r, bool *flag)
{
    static const char *const words[] = {"False", "True"};
    (void)peek(r);
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(words[i]);
        if (r->size - r->at >= length && memcmp(r->text + r->at, words[i], length) == 0) {
            r->at += length;
            *flag = i == 1;
            return 0;
        }
    }
    return npy_fail(r, NULL, "neither True nor False");
}

static int read_number(struct reading *r, int64_t *number)
{
    char c = peek(r);
    if (c < '0' || c > '9')
        return npy_fail(r, NULL, "an extent is no whole number");
    for (*number = 0; r->at < r->size && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++) {
        if (*number > INT64_MAX / 10 - 1)
            return npy_fail(r, NULL, "an extent is too large");
        *number = *number * 10 + (r->text[r->at] - '0');
    }
    return 0;
}

static int read_shape(struct reading *r)
{
    LS_TRY(expect(r, '('));
    for (r->rank = 0; peek(r) != ')';) {
        if (r->rank == LS_RANK_MAX)
            return npy_fail(r, NULL, "it has more than %d axes", LS_RANK_MAX);
        LS_TRY(read_number(r, &r->dim[r->rank++]));
        if (peek(r) != ')')
            LS_TRY(expect(r, ','));
    }
    return expect(r, ')');
}

static int read_dict(struct reading *r)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false};
    char key[TEXT_MAX];
    LS_TRY(expect(r, '{'));
    while (peek(r) != '}') {
        int which = 0;
        LS_TRY(read_string(r, key));
        while (which < 3 && strcmp(keys[which], key) != 0)
            which++;
        if (which == 3 || seen[which])
            return npy_fail(r, NULL, "'%s' is unknown, or is there twice", key);
        seen[which] = true;
        LS_TRY(expect(r, ':'));
        LS_TRY(which == 0   ? read_string(r, r->descr)
               : which == 1 ? read_flag(r, &r->fortran)
                            : read_shape(r));
        if (peek(r) != '}')
            LS_TRY(expect(r, ','));
    }
    r->at++;
    if (peek(r) != '\0' || r->at < r->size)
        return npy_fail(r, NULL, "something follows the dict");
    for (int i = 0; i < 3; i++)
        if (!seen[i])
            return npy_fail(r, NULL, "'%s' is missing", keys[i]);
    return 0;
}

int ls_npy_type(const char *name, const char *descr, enum ls_dtype *type, struct ls_error *error)
{
    static const struct {
        const char *name;
        enum ls_dtype type;
    } types[] = {{"f4", LS_F32}, {"f8", LS_F64}, {"f2", LS_F16}, {"V2", LS_BF16}, {"i1", LS_I8},
                 {"i2", LS_I16}, {"i4", LS_I32}, {"i8", LS_I64}, {"u1", LS_U8},   {"u2", LS_U16},
                 {"u4", LS_U32}, {"u8", LS_U64}, {"b1", LS_BOOL}};
    char order = descr[0];
    if (order == '>')
        return ls_fail(error, LOCKSTEP_DATA, name,
                       "numpy.save(file, array.astype(array.dtype.newbyteorder('<')))",
                       "has big-endian numbers (%s)", descr);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if ((order == '<' || order == '|' || order == '=') &&
            strcmp(descr + 1, types[i].name) == 0) {
            *type = types[i].type;
            return 0;
        }
    return ls_fail(error, LOCKSTEP_DATA, name,
                   "integers and floating-point numbers are read, and booleans",
                   "has numbers of type '%.24s', which is not supported", descr);
}

/* Finds the dict behind the version and the length. */
static int find_dict(struct reading *r, const uint8_t *bytes, size_t size)
{
    static const uint8_t magic[MAGIC_SIZE] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (size < MAGIC_SIZE + 4 || memcmp(bytes, magic, MAGIC_SIZE) != 0)
        return ls_fail(r->error, LOCKSTEP_DATA, r->name, "numpy.save(file, array) writes one",
                       size == 0 ? "is empty" : "is no .npy file");
    int version = bytes[MAGIC_SIZE];
    if (version < 1 || version > 3 || bytes[MAGIC_SIZE + 1] != 0)
        return ls_fail(r->error, LOCKSTEP_DATA, r->name, NULL,
                       "is a .npy file of version %d.%d; 1.0, 2.0 and 3.0 are read", version,
                       bytes[MAGIC_SIZE + 1]);
    int digits = version == 1 ? 2 : 4;
    r->offset = (size_t)MAGIC_SIZE + 2 + (size_t)digits;
    if (size < r->offset)
        return ls_fail(r->error, LOCKSTEP_DATA, r->name, "write it again",
                       "is cut off in its header");
    r->size = 0;
    for (int i = digits; i-- > 0;)
        r->size = r->size << 8 | bytes[MAGIC_SIZE + 2 + i];
    if (r->size > HEADER_MAX)
        return ls_fail(r->error, LOCKSTEP_DATA, r->name, NULL,
                       "has a header of %zu bytes; no array needs that", r->size);
    if (r->size > size - r->offset)
        return ls_fail(r->error, LOCKSTEP_DATA, r->name, "write it again",
                       "is cut off in its header");
    r->text = (const char *)bytes + r->offset;
    return 0;
}

int ls_npy_header_read(const char *name, const uint8_t *bytes, size_t size,
                       struct ls_npy_header *header, struct ls_error *error)
{
    struct reading r = {.name = name, .error = error};
    *header = (struct ls_npy_header){0};
    LS_TRY(find_dict(&r, bytes, size));
    LS_TRY(read_dict(&r));
    LS_TRY(ls_npy_type(name, r.descr, &header->type, error));
    if (r.rank == 0)
        return ls_fail(error, LOCKSTEP_DATA, name, "axis 0 counts the records",
                       "is a single number, and not an array of records");
    if (r.fortran && r.rank > 1)
        return ls_fail(error, LOCKSTEP_DATA, name,
                       "numpy.save(file, numpy.ascontiguousarray(array))",
                       "has its numbers in Fortran's order");
    header->count = r.dim[0];
    header->sample.rank = r.rank - 1;
    memcpy(header->sample.dim, r.dim + 1, (size_t)(r.rank - 1) * sizeof *r.dim);
    header->size = r.offset + r.size;
    return 0;
}

int ls_npy_record_size(const char *name, const struct ls_npy_header *header, size_t size,
                       size_t *record, struct ls_error *error)
{
    int64_t bytes, all;
    if (!ls_shape_valid(&header->sample, false))
        return ls_fail(error, LOCKSTEP_DATA, name, NULL,
                       "has records of no numbers, or of too many");
    if (!ls_multiply(ls_shape_size(&header->sample), (int64_t)ls_dtype_size(header->type),
                     &bytes) ||
        !ls_multiply(bytes, header->count, &all))
        return ls_fail(error, LOCKSTEP_DATA, name, NULL, "has impossible extents");
    *record = (size_t)bytes;
    if (size == 0 || (uint64_t)all == size - header->size)
        return 0;
    const bool cut = (uint64_t)all > size - header->size;
    return ls_fail(error, LOCKSTEP_DATA, name, cut ? "write it again" : NULL,
                   "%s: %zu bytes of numbers where %" PRId64 " should be",
                   cut ? "is cut off" : "has something behind its end", size - header->size, all);
}
