/* Files of cases: definitions beside the values that another program computed for them. Their
 * format is described in tools/reference/make.py. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CASE_FILE_H
#define LS_TESTS_CASE_FILE_H

#include <stddef.h>

struct case_item {
    char *name;
    char *text;      /* of the case, its fragments put in */
    char *reference; /* its lines of the reference file, from "loss" on */
};

struct case_list {
    struct case_item *items;
    size_t count;
};

/* Reads tests/compat/cases/<name>.cases and tests/compat/reference/<name>.txt. A case without
 * values, or values without a case, stop the test program. */
void case_list_read(const char *name, struct case_list *list);
void case_list_free(struct case_list *list);

/* The rest of the index-th line of a case that begins with "# <kind>: ", in a static buffer;
 * NULL: there is none. */
const char *case_note(const struct case_item *item, const char *kind, size_t index);

/* Trains the case's updates with `workers` (or as the case says) on a device (NULL: the CPU), with
 * an instruction set (NULL: the best), and compares with the reference. Fails the running test
 * where something differs. */
void case_run(const struct case_item *item, int workers, const char *device, const char *isa);

#endif
