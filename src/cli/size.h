/* Numbers and sizes of memory as people write and read them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_SIZE_H
#define LS_CLI_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a decimal number without sign or exponent, by no locale; returns what follows it, or NULL
 * where there is none, or one of more than 19 digits. (strtod would go by the locale, and take
 * "inf" and "0x10".) */
const char *ls_cli_parse_number(const char *text, double *number);

/* "1,2,4": 1 to `room` whole numbers from 1 to `most`. False where it is no such list. */
bool ls_cli_parse_counts(const char *text, int most, int *counts, size_t room, size_t *count);

/* "600MiB", "1.5 GiB", "512MB" (millions), "600M" (MiB), "1048576" (bytes), in any case of the
 * letters. False where it is no size, or no more than none, or more than fits. */
bool ls_cli_parse_size(const char *text, uint64_t *bytes);

enum { LS_CLI_SIZE_ROOM = 16 };
/* "-", "640 B", "12.5 KiB", "3.1 MiB", "1.2 GiB"; the buffer is returned. */
const char *ls_cli_format_size(uint64_t bytes, char buffer[LS_CLI_SIZE_ROOM]);

/* "68.5 FLOP", "162.7 MFLOP": by powers of 1000; the buffer is returned. */
const char *ls_cli_format_count(double count, const char *unit, char buffer[LS_CLI_SIZE_ROOM]);

#endif
