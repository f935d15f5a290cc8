/* Names of classes: what the numbers of labels mean. Where a training has names, other data are
 * held against them, so that a number is the same class everywhere.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_CLASS_NAMES_H
#define LS_DATA_CLASS_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct ls_source;
struct ls_source_options;

/* Names that are known already, by number; "" is a number without a name. */
struct ls_class_names {
    const char *const *name;
    int count;
    const char *of;     /* whose names they are, for messages */
    uint64_t tokenizer; /* what ids of tokens stand for (text/token_sheet.h); 0: not known */
};

/* A list of names, which it owns. */
struct ls_class_list {
    char **name;
    int count;
};
/* Adds the lines of a text to an empty list. */
int ls_class_list_lines(const char *text, struct ls_class_list *list, struct ls_error *error);
/* The lines of a file; an empty list where it has none, or is no text. `status`: what a file that
 * cannot be read fails with. */
int ls_class_list_read(const char *path, int status, struct ls_class_list *list,
                       struct ls_error *error);
/* The names that lie in the folder of a database that was made of named classes; an empty list
 * where there are none. */
int ls_class_list_beside(const char *folder, struct ls_class_list *list, struct ls_error *error);
void ls_class_list_free(struct ls_class_list *list);

/* The file in such a folder: a name on each line, beginning with that of class 0. */
#define LS_CLASS_NAMES_FILE "class_names.txt"

/* The number of a class; -1: there is none of this name. */
int ls_class_names_find(const struct ls_class_names *names, const char *name);

/* How names of class folders are sorted (for qsort): by value where both are whole numbers, which
 * come first; else by bytes. */
int ls_class_names_order(const void *a, const void *b);

/* Whether the labels of the data that are opened reach a net: a layer without a top for them may
 * read any pictures. */
bool ls_class_names_matter(const struct ls_source_options *options);

/* Fails where ids of both are known to be those of tokenizers, and of different ones. And fails
 * where a name of one side has another number on the other, or where the same number has two names:
 * of sources whose numbers are those of their files. For a vocabulary all must be equal. */
int ls_class_names_check(const struct ls_class_names *own, bool vocabulary,
                         const struct ls_class_names *known, struct ls_error *error);

#endif
