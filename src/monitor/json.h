/* Writing JSON (RFC 8259) piece by piece to a stream. Numbers have all their digits; NaN and the
 * infinities, which JSON does not have, become null.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_JSON_H
#define LS_MONITOR_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Where the next piece goes: whether a comma is due before it. Begin with {stream, false}. */
struct ls_json_writer {
    FILE *stream;
    bool comma;
};

/* '{', '[' and their counterparts. `key` is NULL in an array and at the top. */
void ls_json_open(struct ls_json_writer *json, const char *key, char bracket);
void ls_json_close(struct ls_json_writer *json, char bracket);
void ls_json_string(struct ls_json_writer *json, const char *key, const char *value); /* or null */
void ls_json_number(struct ls_json_writer *json, const char *key, double value);
void ls_json_integer(struct ls_json_writer *json, const char *key, int64_t value);
void ls_json_boolean(struct ls_json_writer *json, const char *key, bool value);
/* A number of bytes. */
void ls_json_bytes(struct ls_json_writer *json, const char *key, uint64_t value);

#endif
