/* JSON (RFC 8259). A scanner, for a reader that knows which value comes next, so that nesting is
 * as deep as the format and hostile input cannot make it deeper (the header of a safetensors file);
 * base/json_tree.h makes a tree of any JSON with it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_JSON_H
#define LS_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct ls_json {
    const char *text; /* borrowed */
    size_t size, at;
    const char *problem; /* what is wrong at `at`: a constant; NULL while all is well */
};

/* Skips white space and takes `wanted` if it comes next. Its absence is no problem yet. */
bool ls_json_take(struct ls_json *json, char wanted);
/* As ls_json_take, but its absence is a problem, described by `problem`. */
bool ls_json_expect(struct ls_json *json, char wanted, const char *problem);

/* Appends the string that comes next, unescaped, to *out, which becomes "" rather than NULL for an
 * empty one. Refuses NUL, bare control characters, surrogates without their partner and what is
 * not UTF-8. */
bool ls_json_read_string(struct ls_json *json, struct ls_text *out);

/* Reads an integer from 0 to INT64_MAX, without sign, fraction or exponent. */
bool ls_json_read_integer(struct ls_json *json, int64_t *value);

/* True when nothing but white space is left. */
bool ls_json_end(struct ls_json *json);

#endif
