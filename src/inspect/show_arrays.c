/* Files of arrays: IDX, HDF5, NumPy's, token ids. See inspect/show.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/hdf5_arrays.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/npy_header.h"
#include "inspect/elements.h"
#include "inspect/show_inner.h"
#include "text/token_sheet.h"

enum { FIRST = 32, DEPTH_MAX = 16, LLMC_HEADER = 1024 };
/* Numbers of an array of HDF5 whose figures are computed: they have to be read for it. */
static const int64_t FIGURES_MAX = 1 << 26;

/* The first numbers, as one line. */
static void show_numbers(const struct ls_showing *showing, enum ls_dtype type, const void *data,
                         int64_t count)
{
    struct ls_text text = {0};
    double values[FIRST];
    size_t shown = count < FIRST ? (size_t)count : FIRST;
    ls_elements_read(type, data, shown, values);
    for (size_t i = 0; i < shown; i++)
        ls_text_format(&text, "%s%.7g", i > 0 ? " " : "", values[i]);
    if (text.data != NULL && showing->records > 0)
        ls_show_fact(showing, "begins with", "%s%s", text.data, count > FIRST ? " ..." : "");
    ls_text_free(&text);
}

/* The file of labels; those of pictures are a source. zlib reads files that are not packed, too. */
static int show_labels(const struct ls_showing *showing, gzFile file, struct ls_error *error)
{
    unsigned char header[4], bytes[FIRST];
    int read = gzread(file, header, sizeof header);
    if (read < 4 || gzread(file, header, 4) < 4)
        return ls_fail(error, LOCKSTEP_DATA, showing->path, NULL, "is cut off in its header");
    int64_t count = (int64_t)header[0] << 24 | header[1] << 16 | header[2] << 8 | header[3];
    int shown = gzread(file, bytes, sizeof bytes);
    ls_show_fact(showing, "labels", "%" PRId64, count);
    if (shown > 0)
        show_numbers(showing, LS_U8, bytes, shown < count ? shown : count);
    return shown >= (count < FIRST ? count : FIRST)
               ? 0
               : ls_fail(error, LOCKSTEP_DATA, showing->path, NULL, "is cut off");
}

int ls_show_idx(const struct ls_showing *showing, struct ls_error *error)
{
    gzFile file = gzopen(showing->path, "rb");
    unsigned char header[4] = {0};
    if (file == NULL)
        return ls_fail_errno(error, LOCKSTEP_DATA, showing->path, "cannot open");
    bool whole = gzread(file, header, sizeof header) == (int)sizeof header;
    bool labels = whole && header[0] == 0 && header[1] == 0 && header[2] == 8 && header[3] == 1;
    gzrewind(file);
    int status = labels ? show_labels(showing, file, error) : 0;
    gzclose(file);
    return labels ? status : ls_show_source(showing, "IDX", error);
}

static int show_array(const struct ls_showing *showing, struct ls_hdf5 *file, const char *path,
                      struct ls_error *error)
{
    struct ls_hdf5_shape shape;
    struct ls_shape shown = {0};
    struct ls_error reason = {0};
    if (ls_hdf5_shape(file, path, &shape, &reason) != 0) {
        ls_show_fact(showing, path, "%s", reason.problems[0].message); /* texts, for example */
        return 0;
    }
    float *numbers = shape.count <= FIGURES_MAX && shape.count > 0 && shape.rank <= LS_RANK_MAX
                         ? ls_alloc((size_t)shape.count, sizeof *numbers)
                         : NULL;
    int status = numbers != NULL ? ls_hdf5_read(file, path, numbers, error) : 0;
    shown.rank = shape.rank <= LS_RANK_MAX ? shape.rank : 0;
    for (int i = 0; i < shown.rank; i++)
        shown.dim[i] = shape.dim[i];
    if (status == 0)
        ls_show_tensor(showing, path, LS_F32, &shown, numbers);
    ls_free(numbers);
    return status;
}

static int show_group(const struct ls_showing *showing, struct ls_hdf5 *file, const char *group,
                      int depth, struct ls_error *error);

/* One entry of a group. What is damaged is named, and the others are shown. */
static int show_entry(const struct ls_showing *showing, struct ls_hdf5 *file, const char *path,
                      int depth, struct ls_error *error)
{
    switch (ls_hdf5_kind(file, path)) {
    case LS_HDF5_GROUP:
        if (!ls_hdf5_is_link(file, path)) /* it may lead back */
            return show_group(showing, file, path, depth + 1, error);
        ls_show_fact(showing, path, "a link to a group");
        return 0;
    case LS_HDF5_ARRAY:
        return show_array(showing, file, path, error);
    case LS_HDF5_OUTSIDE:
        ls_show_fact(showing, path, "a link to another file or to nothing");
        return 0;
    case LS_HDF5_DAMAGED:
        return ls_fail(error, LOCKSTEP_WEIGHTS, showing->path, NULL, "'%s' is damaged", path);
    default:
        return 0;
    }
}

static int show_group(const struct ls_showing *showing, struct ls_hdf5 *file, const char *group,
                      int depth, struct ls_error *error)
{
    struct ls_hdf5_names names;
    if (depth > DEPTH_MAX)
        return ls_fail(error, LOCKSTEP_DATA, showing->path, NULL,
                       "has groups that are nested more than %d deep", DEPTH_MAX);
    LS_TRY(ls_hdf5_list(file, group, &names, error));
    int status = 0;
    for (size_t i = 0; i < names.count && status != LOCKSTEP_RESOURCE; i++) {
        struct ls_text path = {0};
        ls_text_format(&path, "%s/%s", strcmp(group, "/") == 0 ? "" : group, names.items[i]);
        const int shown = path.failed ? ls_fail_memory(error, showing->path)
                                      : show_entry(showing, file, path.data, depth, error);
        status = status == 0 || shown == LOCKSTEP_RESOURCE ? shown : status;
        ls_text_free(&path);
    }
    ls_hdf5_names_free(&names);
    return status;
}

int ls_show_hdf5(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_hdf5 *file;
    LS_TRY(ls_hdf5_open(showing->path, LOCKSTEP_WEIGHTS, &file, error));
    int status = show_group(showing, file, "/", 0, error);
    ls_hdf5_close(file);
    return status;
}

/* An array behind a header in a file; the file is checked to hold all of it. */
static int show_mapped(const struct ls_showing *showing, const struct ls_mapping *file,
                       size_t offset, enum ls_dtype type, const struct ls_shape *shape,
                       struct ls_error *error)
{
    uint64_t count = (uint64_t)ls_shape_size(shape), size = ls_dtype_size(type);
    if (count > (file->size - offset) / size)
        return ls_fail(error, LOCKSTEP_DATA, showing->path, NULL,
                       "is cut off: %zu bytes of %" PRIu64 " are there", file->size,
                       offset + count * size);
    ls_show_tensor(showing, "array", type, shape, file->data + offset);
    show_numbers(showing, type, file->data + offset, (int64_t)count);
    return ls_file_lost(file, showing->path, LOCKSTEP_DATA, error);
}

int ls_show_npy(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_mapping file;
    struct ls_npy_header header;
    LS_TRY(ls_file_map(showing->path, LOCKSTEP_DATA, &file, error));
    int status = ls_npy_header_read(showing->path, file.data, file.size, &header, error);
    if (status == 0) {
        struct ls_shape shape = {.rank = header.sample.rank + 1, .dim = {header.count}};
        bool fits = shape.rank <= LS_RANK_MAX;
        for (int i = 1; i < shape.rank && fits; i++)
            shape.dim[i] = header.sample.dim[i - 1];
        if (!fits || !ls_shape_valid(&shape, true))
            status = ls_fail(error, LOCKSTEP_DATA, showing->path, NULL,
                             "has an array of a shape that is not possible here");
        else
            status = show_mapped(showing, &file, header.size, header.type, &shape, error);
    }
    ls_file_unmap(&file);
    return status;
}

static uint32_t number_at(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

int ls_show_llmc(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_mapping file;
    LS_TRY(ls_file_map(showing->path, LOCKSTEP_DATA, &file, error));
    int status = 0;
    if (file.size < LLMC_HEADER) {
        status = ls_fail(error, LOCKSTEP_DATA, showing->path, NULL, "is cut off in its header");
    } else {
        /* 20240520 has ids of 16 bits. */
        enum ls_dtype type = number_at(file.data) == 20240520 ? LS_U16 : LS_U32;
        struct ls_shape shape = {.rank = 1, .dim = {number_at(file.data + 8)}};
        ls_show_fact(showing, "version", "%" PRIu32, number_at(file.data + 4));
        status = show_mapped(showing, &file, LLMC_HEADER, type, &shape, error);
    }
    ls_file_unmap(&file);
    return status;
}

int ls_show_ids(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_mapping file;
    struct ls_token_sheet sheet;
    LS_TRY(ls_token_sheet_read(showing->path, &sheet, error));
    LS_TRY(ls_file_map(showing->path, LOCKSTEP_DATA, &file, error));
    const struct ls_shape shape = {.rank = 1, .dim = {(int64_t)sheet.count}};
    ls_show_fact(showing, "vocabulary", "%" PRIu32, sheet.vocabulary);
    ls_show_fact(showing, "tokenizer", "%016" PRIx64, sheet.tokenizer);
    int status =
        show_mapped(showing, &file, 0, sheet.type_size == 2 ? LS_U16 : LS_U32, &shape, error);
    ls_file_unmap(&file);
    return status;
}
