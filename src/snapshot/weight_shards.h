/* Weights in safetensors, in one file or in several with an index.
 *
 * An index is JSON: {"metadata": {...}, "weight_map": {"tensor": "file", ...}}; its files lie
 * beside it. Names of such files end in ".index.json".
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_WEIGHT_SHARDS_H
#define LS_SNAPSHOT_WEIGHT_SHARDS_H

#include "snapshot/archive.h"

/* All zeros is empty. */
struct ls_weight_shards {
    struct ls_archive *files;
    size_t count, capacity;
    struct ls_tensor *tensors; /* of all files; names and data are theirs */
    size_t tensor_count;
};

/* Whether a name is that of an index. */
bool ls_weight_shards_is_index(const char *path);
/* Reads a file or an index with all its files. Every tensor of the index must be in its file.
 * Failures are LOCKSTEP_WEIGHTS; on failure *shards is empty. */
int ls_weight_shards_read(const char *path, struct ls_weight_shards *shards,
                          struct ls_error *error);
void ls_weight_shards_free(struct ls_weight_shards *shards); /* leaves it empty */

#endif
