/* Values move by sharing what they point to: everything belongs to one arena. What moves takes its
 * place along, and what is made has the place of what it was made from.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/upgrade_fields.h"

#include "schema/fields.h"
#include "schema/places.h"

bool ls_upgrade_copy(struct ls_definition *definition, const ProtobufCMessage *from,
                     const char *from_name, ProtobufCMessage *to, const char *to_name)
{
    const ProtobufCFieldDescriptor *source = ls_field_named(from->descriptor, from_name);
    const ProtobufCFieldDescriptor *target = ls_field_named(to->descriptor, to_name);
    size_t count = ls_field_count(from, source);
    for (size_t i = 0; i < count; i++) {
        /* a singular field may become a repeated one (pad, source), never the reverse */
        size_t index = ls_field_is_repeated(target) ? ls_field_count(to, target) : 0;
        if (!ls_field_put(definition->arena, to, target, ls_field_at(from, source, i)) ||
            !ls_places_copy(definition->places, from, source->id, (uint32_t)i, to, target->id,
                            (uint32_t)index))
            return false;
    }
    return true;
}

ProtobufCMessage *ls_upgrade_new(struct ls_definition *definition,
                                 const ProtobufCMessageDescriptor *type,
                                 const ProtobufCMessage *origin)
{
    ProtobufCMessage *message = ls_arena_message(definition->arena, type);
    if (message == NULL ||
        !ls_places_copy(definition->places, origin, LS_FIELD_NONE, 0, message, LS_FIELD_NONE, 0))
        return NULL;
    return message;
}

ProtobufCMessage *ls_upgrade_child(struct ls_definition *definition, ProtobufCMessage *parent,
                                   const char *name, const ProtobufCMessage *origin,
                                   const char *origin_name)
{
    const ProtobufCFieldDescriptor *field = ls_field_named(parent->descriptor, name);
    if (ls_field_count(parent, field) > 0)
        return *(ProtobufCMessage *const *)ls_field_at(parent, field, 0);
    uint32_t number = LS_FIELD_NONE;
    if (origin_name != NULL)
        number = ls_field_named(origin->descriptor, origin_name)->id;
    ProtobufCMessage *child = ls_arena_message(definition->arena, field->descriptor);
    struct ls_places *places = definition->places;
    /* both the message and the field that holds it are asked for by their places */
    if (child == NULL || !ls_field_put(definition->arena, parent, field, &child) ||
        !ls_places_copy(places, origin, number, 0, child, LS_FIELD_NONE, 0) ||
        !ls_places_copy(places, origin, number, 0, parent, field->id, 0))
        return NULL;
    return child;
}

bool ls_upgrade_is_set(const ProtobufCMessage *message, const char *name)
{
    return ls_field_count(message, ls_field_named(message->descriptor, name)) > 0;
}
