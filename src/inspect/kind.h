/* What a file is, by its content.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_INSPECT_KIND_H
#define LS_INSPECT_KIND_H

#include "base/error.h"

enum ls_file_kind {
    LS_KIND_UNKNOWN,
    LS_KIND_SAFETENSORS, /* snapshots are such files, too */
    LS_KIND_SHARDS,      /* an index of several safetensors files */
    LS_KIND_CAFFEMODEL,
    LS_KIND_CAFFEMODEL_HDF5,
    LS_KIND_SOLVERSTATE,
    LS_KIND_SOLVERSTATE_HDF5,
    LS_KIND_BLOB, /* binaryproto: a mean picture, mostly */
    LS_KIND_ONNX,
    LS_KIND_LMDB,
    LS_KIND_LEVELDB,
    LS_KIND_IDX,
    LS_KIND_IDX_GZIP,
    LS_KIND_CIFAR,
    LS_KIND_HDF5,
    LS_KIND_NPY,
    LS_KIND_LLMC, /* token ids with the header of llm.c */
    LS_KIND_IDS,  /* token ids alone, with a text beside them that says so */
    LS_KIND_TOKENIZER,
    LS_KIND_LOG, /* of a training: a JSON object a line */
    LS_KIND_JSON,
    LS_KIND_NET,
    LS_KIND_SOLVER,
    LS_KIND_PICTURE,
    LS_KIND_FOLDER,
    LS_KIND_TEXT,
    LS_KIND_NIFTI, /* known, but not read */
    LS_KIND_GZIP,
    LS_KINDS
};

/* *kind is LS_KIND_UNKNOWN where nothing fits. Fails (LOCKSTEP_WEIGHTS) where the file cannot be
 * read. */
int ls_file_kind(const char *path, enum ls_file_kind *kind, struct ls_error *error);

/* "snapshot", "lmdb": for programs; and for people. */
const char *ls_file_kind_name(enum ls_file_kind kind);
const char *ls_file_kind_summary(enum ls_file_kind kind);

#endif
