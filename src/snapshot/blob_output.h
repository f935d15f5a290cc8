/* Writing Caffe's binary messages with blobs in them. Everything but the numbers is put into texts
 * first, so that the lengths that stand before each message are known; the numbers are written from
 * where they are.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_BLOB_OUTPUT_H
#define LS_SNAPSHOT_BLOB_OUTPUT_H

#include "base/atomic_file.h"
#include "base/text.h"
#include "snapshot/caffemodel.h"

/* Where the bytes go: counted only, as long as there is no file. */
struct ls_blob_output {
    struct ls_atomic_file *file;
    uint64_t size;
    struct ls_error *error;
};

int ls_blob_output_put(struct ls_blob_output *output, const void *bytes, uint64_t size);
/* The same of a text, which is freed, also on failure. */
int ls_blob_output_text(struct ls_blob_output *output, struct ls_text *text);
/* A BlobProto as field `number` of the message that is being written. */
int ls_blob_output_blob(struct ls_blob_output *output, uint32_t number,
                        const struct ls_caffemodel_blob *blob);

/* Writes `path` atomically by calling `put` twice: for its size, and for its bytes. A file of 2 GiB
 * or more, which Caffe cannot read, is refused with LOCKSTEP_RESOURCE before anything is written.
 */
int ls_blob_output_write(const char *path, const char *what,
                         int (*put)(struct ls_blob_output *output, const void *user),
                         const void *user, struct ls_error *error);

#endif
