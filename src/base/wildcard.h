/* Names by patterns, as a shell matches files, but the same in every locale.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_WILDCARD_H
#define LS_BASE_WILDCARD_H

#include <stdbool.h>

/* Whether all of `name` matches: '*' any characters, '?' one, "[a-c_]" one of these, "[!a-c]" one
 * that is none of these, '\' takes the next character as it is. '[' without an end is itself. Upper
 * and lower case differ. */
bool ls_wildcard_matches(const char *pattern, const char *name);

#endif
