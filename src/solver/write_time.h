/* How long a snapshot will take to write.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_WRITE_TIME_H
#define LS_SOLVER_WRITE_TIME_H

#include <stddef.h>

/* Seconds that `bytes` bytes are expected to take to be on the disk in the folder of `prefix`, by
 * two small files that are written there and removed. Few bytes are not looked at; 0: nothing is
 * known.
 */
double ls_expected_write_time(const char *prefix, size_t bytes);

#endif
