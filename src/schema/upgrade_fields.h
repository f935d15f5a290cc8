/* Inside of the upgrades: moving fields with their places.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_UPGRADE_FIELDS_H
#define LS_SCHEMA_UPGRADE_FIELDS_H

#include <stdbool.h>

#include "schema/definition.h"

/* Gives `to`.`to_name` the values that `from`.`from_name` has (types must agree; what they point
 * to is shared), and their places. Nothing happens if the field is not set. False: no memory. */
bool ls_upgrade_copy(struct ls_definition *definition, const ProtobufCMessage *from,
                     const char *from_name, ProtobufCMessage *to, const char *to_name);
/* The message in a singular field, made if it is not there, with the place of `origin`'s field
 * (NULL: of `origin`). NULL: no memory. */
ProtobufCMessage *ls_upgrade_child(struct ls_definition *definition, ProtobufCMessage *parent,
                                   const char *name, const ProtobufCMessage *origin,
                                   const char *origin_name);
/* A new message of a type with the place of `origin`. NULL: no memory. */
ProtobufCMessage *ls_upgrade_new(struct ls_definition *definition,
                                 const ProtobufCMessageDescriptor *type,
                                 const ProtobufCMessage *origin);
bool ls_upgrade_is_set(const ProtobufCMessage *message, const char *name);

/* Turns the V0 layers of a net into V1 layers, in place. */
int ls_upgrade_v0(struct ls_definition *definition, Lockstep__NetParameter *net,
                  struct ls_error *error);
/* Turns the V1 layers of a net into layers. */
int ls_upgrade_v1(struct ls_definition *definition, Lockstep__NetParameter *net,
                  struct ls_error *error);

#endif
