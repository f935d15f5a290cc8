/* Every message type of the language: found from the roots by their fields.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_ALL_TYPES_H
#define LS_TESTS_ALL_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/definition.h"

enum { ALL_TYPES_MAX = 256 };

struct all_types {
    const ProtobufCMessageDescriptor *type[ALL_TYPES_MAX];
    size_t count;
};

static inline void all_types_from(struct all_types *all, const ProtobufCMessageDescriptor *type)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->type[i] == type)
            return;
    all->type[all->count++] = type;
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            all_types_from(all, type->fields[i].descriptor);
}

static inline struct all_types all_types(void)
{
    struct all_types all = {.count = 0};
    all_types_from(&all, &lockstep__solver_parameter__descriptor);
    all_types_from(&all, &lockstep__solver_state__descriptor);
    all_types_from(&all, &lockstep__datum__descriptor);
    all_types_from(&all, &lockstep__blob_proto_vector__descriptor);
    all_types_from(&all, &lockstep__weight_map__descriptor);
    return all;
}

#endif
