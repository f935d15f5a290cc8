/* Fields that the schema does not know, collected while a text is read and told in groups: one
 * field in many layers is one problem. Fields of forks that change no number become one warning.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_UNKNOWN_H
#define LS_SCHEMA_UNKNOWN_H

#include "base/names.h"
#include "schema/definition.h"
#include "schema/lex.h"

struct ls_unknown;

struct ls_unknown_list {
    struct ls_unknown *items;
    size_t count, capacity;
    struct ls_names names; /* "Message.field" */
};

/* Adds an occurrence at `token`, in a message of `type` within `layer` (a layer of either form, or
 * NULL); `value` is a word that an enum does not have, or NULL. False: no memory. */
bool ls_unknown_add(struct ls_unknown_list *list, struct ls_arena *arena,
                    const ProtobufCMessageDescriptor *type, const char *name, const char *value,
                    const ProtobufCMessage *layer, const struct ls_token *token);

/* Tells what was collected and forgets it: refused fields as problems at `file` (with line and
 * column unless `whole`), the others as the definition's warning. Returns the number of problems,
 * -1 without memory. */
int ls_unknown_tell(struct ls_unknown_list *list, struct ls_definition *definition,
                    const char *file, bool whole, struct ls_error *error);
void ls_unknown_free(struct ls_unknown_list *list);

#endif
