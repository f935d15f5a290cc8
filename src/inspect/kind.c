/* What a file is, by its content. See inspect/kind.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "inspect/kind.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/hdf5.h"
#include "base/wire.h"
#include "schema/definition.h"
#include "schema/text_format.h"
#include "snapshot/weight_shards.h"
#include "text/token_sheet.h"

static const struct {
    const char *name, *summary;
} kinds[LS_KINDS] = {
    [LS_KIND_UNKNOWN] = {"unknown", "unknown kind"},
    [LS_KIND_SAFETENSORS] = {"safetensors", "safetensors: named tensors"},
    [LS_KIND_SHARDS] = {"safetensors-index", "an index of several safetensors files"},
    [LS_KIND_CAFFEMODEL] = {"caffemodel", "Caffe's weights (binary NetParameter)"},
    [LS_KIND_CAFFEMODEL_HDF5] = {"caffemodel-hdf5", "Caffe's weights (HDF5)"},
    [LS_KIND_SOLVERSTATE] = {"solverstate", "Caffe's solver state (binary SolverState)"},
    [LS_KIND_SOLVERSTATE_HDF5] = {"solverstate-hdf5", "Caffe's solver state (HDF5)"},
    [LS_KIND_BLOB] = {"binaryproto", "a blob of Caffe's (BlobProto), as mean files are"},
    [LS_KIND_ONNX] = {"onnx", "an ONNX model"},
    [LS_KIND_LMDB] = {"lmdb", "an LMDB database"},
    [LS_KIND_LEVELDB] = {"leveldb", "a LevelDB database"},
    [LS_KIND_IDX] = {"idx", "numbers in the format of MNIST's files (IDX)"},
    [LS_KIND_IDX_GZIP] = {"idx-gzip", "compressed numbers in the format of MNIST's files (IDX)"},
    [LS_KIND_CIFAR] = {"cifar", "pictures in the format of CIFAR-10's files"},
    [LS_KIND_HDF5] = {"hdf5", "arrays in HDF5"},
    [LS_KIND_NPY] = {"npy", "an array of NumPy"},
    [LS_KIND_LLMC] = {"tokens", "token ids with llm.c's header"},
    [LS_KIND_IDS] = {"tokens", "token ids, as lockstep tokenize writes them"},
    [LS_KIND_TOKENIZER] = {"tokenizer", "a tokenizer (tokenizer.json)"},
    [LS_KIND_LOG] = {"log", "a training's log (a JSON object a line)"},
    [LS_KIND_JSON] = {"json", "JSON"},
    [LS_KIND_NET] = {"net", "the definition of a net (prototxt)"},
    [LS_KIND_SOLVER] = {"solver", "the definition of a solver (prototxt)"},
    [LS_KIND_PICTURE] = {"picture", "a picture (JPEG or PNG)"},
    [LS_KIND_FOLDER] = {"folder", "a folder"},
    [LS_KIND_TEXT] = {"text", "a text"},
    [LS_KIND_NIFTI] = {"nifti", "a NIfTI volume"},
    [LS_KIND_GZIP] = {"gzip", "a file that gzip has compressed"},
};

const char *ls_file_kind_name(enum ls_file_kind kind)
{
    return kinds[kind].name;
}

const char *ls_file_kind_summary(enum ls_file_kind kind)
{
    return kinds[kind].summary;
}

static bool begins(const struct ls_mapping *file, size_t at, const char *bytes, size_t size)
{
    return file->size >= at + size && memcmp(file->data + at, bytes, size) == 0;
}

static bool contains(const struct ls_mapping *file, size_t most, const char *word)
{
    size_t size = file->size < most ? file->size : most;
    return memmem(file->data, size, word, strlen(word)) != NULL;
}

static bool has_entry(const char *folder, const char *name)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && length < (int)sizeof path && ls_file_exists(path);
}

static enum ls_file_kind kind_of_folder(const char *path)
{
    if (has_entry(path, "data.mdb"))
        return LS_KIND_LMDB;
    return has_entry(path, "CURRENT") ? LS_KIND_LEVELDB : LS_KIND_FOLDER;
}

/* Messages by the numbers and wire types of all their outermost fields. */
static const struct message {
    enum ls_file_kind kind;
    struct {
        uint8_t number;
        enum ls_wire_type type;
    } fields[16];
} messages[] = {
    {LS_KIND_SOLVERSTATE,
     {{1, LS_WIRE_VARINT}, {2, LS_WIRE_BYTES}, {3, LS_WIRE_BYTES}, {4, LS_WIRE_VARINT}}},
    {LS_KIND_BLOB,
     {{1, LS_WIRE_VARINT},
      {2, LS_WIRE_VARINT},
      {3, LS_WIRE_VARINT},
      {4, LS_WIRE_VARINT},
      {5, LS_WIRE_BYTES},
      {5, LS_WIRE_32},
      {6, LS_WIRE_BYTES},
      {6, LS_WIRE_32},
      {7, LS_WIRE_BYTES},
      {8, LS_WIRE_BYTES},
      {9, LS_WIRE_BYTES}}},
    {LS_KIND_ONNX,
     {{1, LS_WIRE_VARINT},
      {2, LS_WIRE_BYTES},
      {3, LS_WIRE_BYTES},
      {4, LS_WIRE_BYTES},
      {5, LS_WIRE_VARINT},
      {6, LS_WIRE_BYTES},
      {7, LS_WIRE_BYTES},
      {8, LS_WIRE_BYTES},
      {14, LS_WIRE_BYTES},
      {20, LS_WIRE_BYTES},
      {25, LS_WIRE_BYTES}}},
};

static bool message_allows(const struct message *message, const struct ls_wire_field *field)
{
    size_t count = sizeof message->fields / sizeof message->fields[0];
    for (size_t i = 0; i < count && message->fields[i].number != 0; i++)
        if (message->fields[i].number == field->number && message->fields[i].type == field->type)
            return true;
    return false;
}

static bool message_fits(const struct message *message, const struct ls_mapping *file)
{
    struct ls_wire wire = ls_wire_open(file->data, file->size);
    struct ls_wire_field field;
    size_t count = 0;
    for (; ls_wire_next(&wire, &field); count++)
        if (!message_allows(message, &field))
            return false;
    return count > 1;
}

/* Forks of Caffe have fields of their own in nets; one is known by a name or an input in front, and
 * by layers. */
static bool is_net(const struct ls_mapping *file)
{
    struct ls_wire wire = ls_wire_open(file->data, file->size);
    struct ls_wire_field field;
    bool layers = false;
    for (size_t count = 0; ls_wire_next(&wire, &field); count++) {
        if (count == 0 && field.type != LS_WIRE_BYTES)
            return false;
        layers =
            layers || (field.type == LS_WIRE_BYTES && (field.number == 100 || field.number == 2));
    }
    return layers;
}

static enum ls_file_kind kind_of_message(const struct ls_mapping *file)
{
    for (size_t m = 0; m < sizeof messages / sizeof messages[0]; m++)
        if (message_fits(&messages[m], file))
            return messages[m].kind;
    return is_net(file) ? LS_KIND_CAFFEMODEL : LS_KIND_UNKNOWN;
}

static bool is_text(const struct ls_mapping *file)
{
    size_t most = file->size < 4096 ? file->size : 4096;
    for (size_t i = 0; i < most; i++) {
        unsigned char c = file->data[i];
        if ((c < ' ' && (c < '\t' || c > '\r')) || c == 0x7f)
            return false;
    }
    return most > 0;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), size = strlen(ending);
    return length >= size && strcmp(text + length - size, ending) == 0;
}

/* The first lines decide; a text that is no message, but is called one, is a damaged one. */
static enum ls_file_kind kind_of_text(const char *path, const struct ls_mapping *file)
{
    size_t first = 0;
    while (first < file->size && strchr(" \t\r\n", file->data[first]) != NULL)
        first++;
    char c = first < file->size ? (char)file->data[first] : '\0';
    if (c == '{' || c == '[') {
        if (c == '{' && contains(file, 512, "\"event\":"))
            return LS_KIND_LOG;
        if (ls_weight_shards_is_index(path) || contains(file, SIZE_MAX, "\"weight_map\""))
            return LS_KIND_SHARDS;
        bool tokenizer =
            contains(file, SIZE_MAX, "\"pre_tokenizer\"") || contains(file, SIZE_MAX, "\"merges\"");
        return tokenizer ? LS_KIND_TOKENIZER : LS_KIND_JSON;
    }
    const char *text = (const char *)file->data;
    int net = ls_text_affinity(text, file->size, &lockstep__net_parameter__descriptor);
    int solver = ls_text_affinity(text, file->size, &lockstep__solver_parameter__descriptor);
    if (net > 0 || solver > 0)
        return solver > net ? LS_KIND_SOLVER : LS_KIND_NET;
    if (ends_with(path, ".prototxt"))
        return strstr(path, "solver") != NULL ? LS_KIND_SOLVER : LS_KIND_NET;
    return LS_KIND_TEXT;
}

/* What HDF5 holds: groups of weights, the history of a solver, or arrays. */
static int kind_of_hdf5(const char *path, enum ls_file_kind *kind, struct ls_error *error)
{
    struct ls_hdf5 *file;
    LS_TRY(ls_hdf5_open(path, LOCKSTEP_WEIGHTS, &file, error));
    *kind = LS_KIND_HDF5;
    if (ls_hdf5_kind(file, "/history") == LS_HDF5_GROUP)
        *kind = LS_KIND_SOLVERSTATE_HDF5;
    else if (ls_hdf5_kind(file, "/data") == LS_HDF5_GROUP)
        *kind = LS_KIND_CAFFEMODEL_HDF5;
    ls_hdf5_close(file);
    return 0;
}

/* The header of an IDX file in so many bytes, of a file of `size` bytes that has room for its
 * numbers (or a part of them: it may be cut). */
static bool is_idx(const unsigned char *bytes, size_t there, uint64_t size)
{
    static const unsigned char sizes[] = {1, 1, 0, 2, 4, 4, 8}; /* types 8 to 14 */
    if (there < 8 || bytes[0] != 0 || bytes[1] != 0 || bytes[2] < 8 || bytes[2] > 14 ||
        sizes[bytes[2] - 8] == 0 || bytes[3] < 1 || bytes[3] > 8)
        return false;
    uint64_t numbers = sizes[bytes[2] - 8];
    for (size_t i = 0; i < bytes[3] && 8 + 4 * i <= there; i++) {
        const unsigned char *at = bytes + 4 + 4 * i;
        const uint64_t extent =
            (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
        if (extent > UINT32_MAX >> 1 || numbers > UINT64_MAX / (extent + 1))
            return false;
        numbers *= extent;
    }
    return size == 0 || numbers <= 64 * size;
}

static bool is_nifti(const unsigned char *bytes, size_t there)
{
    return there >= 348 &&
           (memcmp(bytes + 344, "n+1", 4) == 0 || memcmp(bytes + 344, "ni1", 4) == 0);
}

/* Records of a label and a picture, without a header: known by their size and all labels. */
static bool is_cifar(const struct ls_mapping *file)
{
    enum { RECORD = 1 + 3 * 32 * 32, CLASSES = 10 };
    if (file->size == 0 || file->size % RECORD != 0)
        return false;
    for (size_t i = 0; i < file->size; i += RECORD)
        if (file->data[i] >= CLASSES)
            return false;
    return true;
}

/* What gzip has compressed: known by its first bytes. */
static enum ls_file_kind kind_of_gzip(const char *path)
{
    unsigned char bytes[352];
    gzFile file = gzopen(path, "rb");
    const int read = file != NULL ? gzread(file, bytes, sizeof bytes) : 0;
    if (file != NULL)
        gzclose(file);
    if (read > 0 && is_idx(bytes, (size_t)read, 0))
        return LS_KIND_IDX_GZIP;
    return read > 0 && is_nifti(bytes, (size_t)read) ? LS_KIND_NIFTI : LS_KIND_GZIP;
}

static enum ls_file_kind kind_of_bytes(const char *path, const struct ls_mapping *file)
{
    if (begins(file, 0, "\x89PNG\r\n", 6) || begins(file, 0, "\xff\xd8\xff", 3))
        return LS_KIND_PICTURE;
    if (file->size > 8 && file->data[8] == '{' && begins(file, 4, "\0\0\0\0", 4))
        return LS_KIND_SAFETENSORS;
    if (begins(file, 0, "\x93NUMPY", 6))
        return LS_KIND_NPY;
    /* 20240520 and 20240801, little-endian. */
    if (begins(file, 0, "\x88\xd8\x34\x01", 4) || begins(file, 0, "\xa1\xd9\x34\x01", 4))
        return LS_KIND_LLMC;
    if (begins(file, 16, "\xde\xc0\xef\xbe", 4))
        return LS_KIND_LMDB;
    if (is_idx(file->data, file->size, file->size))
        return LS_KIND_IDX;
    if (is_nifti(file->data, file->size))
        return LS_KIND_NIFTI;
    if (is_cifar(file))
        return LS_KIND_CIFAR;
    if (begins(file, 0, "\x1f\x8b", 2))
        return kind_of_gzip(path);
    return is_text(file) ? kind_of_text(path, file) : kind_of_message(file);
}

int ls_file_kind(const char *path, enum ls_file_kind *kind, struct ls_error *error)
{
    *kind = LS_KIND_UNKNOWN;
    if (ls_is_directory(path)) {
        *kind = kind_of_folder(path);
        return 0;
    }
    struct ls_mapping file;
    struct ls_token_sheet sheet;
    LS_TRY(ls_file_map(path, LOCKSTEP_WEIGHTS, &file, error));
    int status = 0;
    if (file.size > 0 && ls_token_sheet_read(path, &sheet, NULL) == 0 && sheet.there &&
        sheet.count * (uint64_t)sheet.type_size == file.size)
        *kind = LS_KIND_IDS;
    else if (file.size > 0 && ls_hdf5_begins(file.data, file.size))
        status = kind_of_hdf5(path, kind, error);
    else if (file.size > 0)
        *kind = kind_of_bytes(path, &file);
    if (status == 0)
        status = ls_file_lost(&file, path, LOCKSTEP_WEIGHTS, error);
    ls_file_unmap(&file);
    return status;
}
