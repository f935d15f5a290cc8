/* Names that forks of Caffe added to its language: fields and layer types that Lockstep does not
 * have, with what to do about them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_FORKS_H
#define LS_SCHEMA_FORKS_H

#include <stdbool.h>

enum ls_fork_effect {
    LS_FORK_IGNORED, /* changes no number: read over, with one warning for all of them */
    LS_FORK_RENAMED, /* `hint` is the name of the same field here */
    LS_FORK_REFUSED  /* `hint` says what to write instead */
};

struct ls_fork_field {
    const char *message; /* "LayerParameter"; NULL: any */
    const char *field;
    const char *fork; /* "SSD" */
    enum ls_fork_effect effect;
    const char *hint; /* may be NULL */
};

/* What is known of a field of a message, or NULL. */
const struct ls_fork_field *ls_fork_field(const char *message, const char *field);

/* Whether a fork gives a field several times that is given once here: the first counts, so that the
 * net can be planned; where it is used, ls_definition_repeats tells. */
bool ls_fork_repeats(const char *message, const char *field);

/* Whether a fork gives a list for a field that takes one value here, and that changes no number:
 * devices of TSN's solvers. */
bool ls_fork_lists(const char *message, const char *field);

struct ls_fork_type {
    const char *type; /* of a layer */
    const char *fork;
    const char *hint;
};

/* What is known of a layer type, or NULL. */
const struct ls_fork_type *ls_fork_type(const char *type);
/* All of them, in the order of their names, up to one whose `type` is NULL. */
extern const struct ls_fork_type ls_fork_types[];

/* What to do about a Python layer, by its module and class (either may be NULL). */
const char *ls_fork_python_hint(const char *module, const char *layer);

#endif
