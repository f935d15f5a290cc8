/* Sizes, counts of operations and times in units that people read.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_UNITS_H
#define LS_BASE_UNITS_H

enum { LS_UNITS_ROOM = 32 };

/* "0 B", "640 B", "12.5 KiB", "3.1 MiB", "1.2 GiB". Each function returns `out`. */
const char *ls_format_size(char out[LS_UNITS_ROOM], double bytes);
/* "68.5 FLOP", "162.7 MFLOP", "3.1 GFLOP": multiplications and additions. */
const char *ls_format_flops(char out[LS_UNITS_ROOM], double flops);
/* "0.5 s", "59.9 s", "12 min 05 s", "2 h 05 min". */
const char *ls_format_seconds(char out[LS_UNITS_ROOM], double seconds);

#endif
