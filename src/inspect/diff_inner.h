/* Between the files of diff. See inspect/diff.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_INSPECT_DIFF_INNER_H
#define LS_INSPECT_DIFF_INNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "inspect/elements.h"
#include "inspect/kind.h"

/* Who is told, line by line. */
struct ls_diff_report {
    const char *names[2];
    void (*tell)(void *user, const char *line);
    void *user;
};
void ls_diff_say(const struct ls_diff_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "tensor 'conv.weight': 3 of 36 elements differ, the first is ..."; whether they differ. */
bool ls_diff_elements(const struct ls_diff_report *report, const char *name, enum ls_dtype type,
                      const void *a, const void *b, size_t bytes);

/* Each compares report->names and ends with LOCKSTEP_DIFFERENT where they differ: two files of
 * weights of any format, layer by layer; two definitions of one kind, field by field. */
int ls_diff_weights(const struct ls_diff_report *report, struct ls_error *error);
int ls_diff_definitions(const struct ls_diff_report *report, enum ls_file_kind kind,
                        struct ls_error *error);

#endif
