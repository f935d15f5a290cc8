/* Names of classes from a file, as SSD's fork has them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_LABEL_MAP_H
#define LS_DATA_LABEL_MAP_H

#include "data/source.h"

/* Reads a LabelMap in text format and gives the source its names; a class without one is "". Errors
 * name the file. */
int ls_label_map_names(const char *path, struct ls_source *source, struct ls_error *error);

#endif
