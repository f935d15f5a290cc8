/* What is in a file. See inspect/show.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "inspect/elements.h"
#include "inspect/show_inner.h"

enum { RECORDS = 10 };

void ls_show_announce(const struct ls_showing *showing)
{
    if (!*showing->announced && showing->options->kind != NULL)
        showing->options->kind(showing->options->user, ls_file_kind_name(showing->kind),
                               ls_file_kind_summary(showing->kind));
    *showing->announced = true;
}

void ls_show_text(const struct ls_showing *showing, const char *name, const char *value)
{
    ls_show_announce(showing);
    if (showing->options->fact != NULL)
        showing->options->fact(showing->options->user, name, value);
}

void ls_show_fact(const struct ls_showing *showing, const char *name, const char *format, ...)
{
    char value[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    ls_show_text(showing, name, value);
}

void ls_show_tensor(const struct ls_showing *showing, const char *name, enum ls_dtype type,
                    const struct ls_shape *shape, const void *data)
{
    struct lockstep_shown_tensor tensor = {.name = name,
                                           .type = ls_dtype_name(type),
                                           .rank = shape->rank,
                                           .shape = shape->dim,
                                           .count = ls_shape_size(shape)};
    ls_show_announce(showing);
    if (showing->options->tensor == NULL)
        return;
    if (data != NULL && tensor.count > 0) {
        struct ls_figures figures = ls_elements_figures(type, data, (size_t)tensor.count);
        tensor.has_figures = 1;
        tensor.least = figures.least;
        tensor.most = figures.most;
        tensor.mean = figures.mean;
        tensor.norm = figures.norm;
        tensor.zeros = figures.zeros;
        tensor.not_finite = figures.not_finite;
    }
    showing->options->tensor(showing->options->user, &tensor);
}

void ls_show_record(const struct ls_showing *showing, int64_t index, const char *name,
                    const char *text)
{
    struct lockstep_shown_record record = {.index = index, .name = name, .text = text, .label = -1};
    ls_show_announce(showing);
    if (showing->options->record != NULL)
        showing->options->record(showing->options->user, &record);
}

/* What nothing is known of may be token ids: of these without a header the file says nothing. */
static int refuse_unknown(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_mapping file;
    LS_TRY(ls_file_map(showing->path, LOCKSTEP_USAGE, &file, error));
    const size_t size = file.size;
    char bytes[64] = "", ids[160] = "";
    for (size_t i = 0; i < size && i < 16; i++)
        snprintf(bytes + 3 * i, sizeof bytes - 3 * i, " %02x", file.data[i]);
    for (size_t i = 0; i + 1 < size && i < 16; i += 2) {
        const size_t length = strlen(ids);
        snprintf(ids + length, sizeof ids - length, " %u",
                 file.data[i] | (unsigned)file.data[i + 1] << 8);
    }
    ls_file_unmap(&file);
    if (size == 0)
        return ls_fail(error, LOCKSTEP_USAGE, showing->path, NULL, "is empty");
    return ls_fail(error, LOCKSTEP_USAGE, showing->path,
                   "token ids without a header look like anything; 'lockstep tokenize --decode' "
                   "reads them",
                   "is a file of unknown kind: %zu bytes that begin with%s (as 16-bit "
                   "numbers:%s)",
                   size, bytes, ids);
}

static int refuse_foreign(const struct ls_showing *showing, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_DATA, showing->path,
                   showing->kind == LS_KIND_NIFTI
                       ? "write its numbers as arrays of NumPy: "
                         "numpy.save('x.npy', nibabel.load(file).get_fdata('float32'))"
                       : "unpack it: gzip -dk FILE",
                   "is %s, which is not read here", ls_file_kind_summary(showing->kind));
}

static int show_kind(const struct ls_showing *showing, struct ls_error *error)
{
    switch (showing->kind) {
    case LS_KIND_SAFETENSORS:
        return ls_show_archive(showing, error);
    case LS_KIND_SHARDS:
        return ls_show_shards(showing, error);
    case LS_KIND_CAFFEMODEL:
    case LS_KIND_CAFFEMODEL_HDF5:
        return ls_show_weights(showing, error);
    case LS_KIND_SOLVERSTATE:
    case LS_KIND_SOLVERSTATE_HDF5:
        return ls_show_solverstate(showing, error);
    case LS_KIND_BLOB:
        return ls_show_blob(showing, error);
    case LS_KIND_LMDB:
        return ls_show_source(showing, "LMDB", error);
    case LS_KIND_LEVELDB:
        return ls_show_source(showing, "LEVELDB", error);
    case LS_KIND_CIFAR:
        return ls_show_source(showing, "CIFAR", error);
    case LS_KIND_IDX:
    case LS_KIND_IDX_GZIP:
        return ls_show_idx(showing, error);
    case LS_KIND_HDF5:
        return ls_show_hdf5(showing, error);
    case LS_KIND_NPY:
        return ls_show_npy(showing, error);
    case LS_KIND_LLMC:
        return ls_show_llmc(showing, error);
    case LS_KIND_IDS:
        return ls_show_ids(showing, error);
    case LS_KIND_TOKENIZER:
        return ls_show_tokenizer(showing, error);
    case LS_KIND_JSON:
        return ls_show_json(showing, error);
    case LS_KIND_TEXT:
        return ls_show_lines(showing, error);
    case LS_KIND_NET:
        return ls_show_net(showing, error);
    case LS_KIND_SOLVER:
        return ls_show_solver(showing, error);
    case LS_KIND_PICTURE:
        return ls_show_picture(showing, error);
    case LS_KIND_FOLDER:
        return ls_show_folder(showing, error);
    case LS_KIND_ONNX:
        return ls_show_onnx(showing, error);
    case LS_KIND_LOG:
        return 0;
    case LS_KIND_NIFTI:
    case LS_KIND_GZIP:
        return refuse_foreign(showing, error);
    default:
        return refuse_unknown(showing, error);
    }
}

int ls_show(const char *path, const struct lockstep_show_options *options, struct ls_error *error)
{
    bool announced = false;
    struct ls_showing showing = {
        .path = path, .options = options, .records = options->records, .announced = &announced};
    if (showing.records < 0)
        showing.records = RECORDS;
    LS_TRY(ls_file_kind(path, &showing.kind, error));
    LS_TRY(show_kind(&showing, error));
    ls_show_announce(&showing);
    return 0;
}
