/* Maps of names: how a family of networks names its weights elsewhere, and what they are here.
 *
 * A map is a WeightMap in text form (proto/lockstep.proto). Those of share/maps are part of the
 * program and known by name ("gpt2"); others are files.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_WEIGHT_MAP_H
#define LS_SNAPSHOT_WEIGHT_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "schema/definition.h"
#include "snapshot/weight_pattern.h"

struct ls_weight_map {
    struct ls_definition *definition; /* owns all of it */
    const Lockstep__WeightMap *rules;
};

/* A map of the program's own. */
struct ls_builtin_map {
    const char *name, *text;
};
extern const struct ls_builtin_map ls_builtin_maps[]; /* ends with a name of NULL */

/* Reads a map: a file, or one of the program's by its name. A failure is LOCKSTEP_USAGE, with the
 * place in the file. On failure *map is empty. */
int ls_weight_map_read(const char *name, struct ls_weight_map *map, struct ls_error *error);
void ls_weight_map_free(struct ls_weight_map *map); /* leaves it empty */

/* A rule and a name that fits it. */
struct ls_weight_fit {
    const Lockstep__WeightMapRule *rule;
    size_t which; /* of its patterns `from`, or `to` */
    struct ls_pattern_match match;
};

/* The first rule from index `first` on that a name of the family (`back`: one of ours) fits; *next
 * is the index behind it. False: there is none. */
bool ls_weight_map_fit(const struct ls_weight_map *map, bool back, const char *name, size_t first,
                       struct ls_weight_fit *fit, size_t *next);
/* Whether a name of the family is one that says nothing. */
bool ls_weight_map_ignores(const struct ls_weight_map *map, const char *name);
/* Whether a name of ours is that of a factor. */
bool ls_weight_map_is_factor(const struct ls_weight_map *map, const char *name);
/* Whether a name of the family is known with a prefix in front, and with which one: *prefix is ""
 * where it is known as it is. */
bool ls_weight_map_knows(const struct ls_weight_map *map, const char *name, const char **prefix);

#endif
