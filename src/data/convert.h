/* A database of any source.
 *
 * It takes the options of the public interface, which explains them; callbacks report progress
 * (NOTICE lines as Caffe's tools write them) and can stop the work (LOCKSTEP_STOPPED). The seed of
 * a shuffle is the options', 1 if that is negative. Paths are taken as they are.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_CONVERT_H
#define LS_DATA_CONVERT_H

#include "base/error.h"
#include "data/class_names.h"
#include "lockstep/lockstep.h"

/* Writes an LMDB database of Datum records to the folder `path`, which must not exist; *records
 * (may be NULL) are how many. Classes have the numbers that they are `known` by (NULL: those of the
 * source); where they have names, these are written beside the records. Pixels are written as they
 * are read, in the source's order of channels; keys are "%08d_<name>" with the position in the
 * database and the record's name, or
 * "%08d" where it has none. After a failure nothing is left at `path`. */
int ls_convert(const struct lockstep_source_options *source, const struct ls_class_names *known,
               const char *path, int64_t *records, struct ls_error *error);

#endif
