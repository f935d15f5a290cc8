/* Snappy's compressed form, in which LevelDB keeps its blocks: read only.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_SNAPPY_H
#define LS_DATA_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of what was compressed; false: this is no such form, or it claims more than compression
 * can do. */
bool ls_snappy_size(const uint8_t *bytes, size_t size, size_t *plain);
/* Writes the `plain` bytes; false: damaged. */
bool ls_snappy_read(const uint8_t *bytes, size_t size, uint8_t *out, size_t plain);

#endif
