/* The mean of the records of any source; options and callbacks as of ls_convert (convert.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_MEAN_H
#define LS_DATA_MEAN_H

#include "base/error.h"
#include "lockstep/lockstep.h"

/* Writes the mean of all records as a binaryproto that Caffe reads. Sums are exact for pixels and
 * in double for floats. `channel_means` has room for 16 or is NULL; *channels may be NULL. With
 * `path` NULL nothing is written. */
int ls_mean(const struct lockstep_source_options *source, const char *path, double *channel_means,
            int *channels, struct ls_error *error);

#endif
