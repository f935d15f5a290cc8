/* Mean files: BlobProto, as Caffe's compute_image_mean writes it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_MEAN_FILE_H
#define LS_DATA_MEAN_FILE_H

#include <stdint.h>

#include "base/error.h"

/* The shape of a mean file (BlobProto, binary or text): that of the records that it belongs to. */
int ls_mean_shape(const char *path, int64_t shape[3], struct ls_error *error);
/* Reads a mean file that must have `shape`; *mean is freed with ls_free. */
int ls_mean_read(const char *path, const int64_t shape[3], float **mean, struct ls_error *error);
/* Writes one that Caffe reads, atomically. */
int ls_mean_write(const char *path, const int64_t shape[3], const float *mean,
                  struct ls_error *error);

#endif
