/* Reading maps of names, and looking names up in them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/weight_map.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "schema/text_format.h"

enum { MAP_LIMIT = 1 << 20, RULES_MAX = 1000, PARTS_MAX = 16, NAME_LIMIT = 1000 };

/* ---- Reading --------------------------------------------------------------------------------- */

static const struct ls_builtin_map *find_builtin(const char *name)
{
    for (const struct ls_builtin_map *map = ls_builtin_maps; map->name != NULL; map++)
        if (strcmp(map->name, name) == 0)
            return map;
    return NULL;
}

static int refuse(const struct ls_definition *definition, const void *message, const char *field,
                  size_t index, const char *what, const char *why, struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    ls_place_index(definition, message, field, index, place, sizeof place);
    return ls_fail(error, LOCKSTEP_USAGE, place, "docs/weights.md says how maps are written",
                   "%s %s", what, why);
}

static int check_patterns(const struct ls_definition *definition, const void *message,
                          const char *field, char *const *patterns, size_t count,
                          struct ls_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const char *problem = ls_pattern_problem(patterns[i]);
        if (problem == NULL && !ls_pattern_same_words(patterns[0], patterns[i]) &&
            strcmp(field, "ignore") != 0)
            problem = "has other words in braces than the first one";
        if (problem != NULL)
            return refuse(definition, message, field, i, field, problem, error);
    }
    return 0;
}

/* One of the patterns that a rule may have besides its names. */
static int check_other(const struct ls_definition *definition, const Lockstep__WeightMapRule *rule,
                       const char *field, const char *pattern, struct ls_error *error)
{
    const char *problem = pattern != NULL ? ls_pattern_problem(pattern) : NULL;
    if (pattern != NULL && problem == NULL && !ls_pattern_has_words(rule->from[0], pattern))
        problem = "has words in braces that `from` does not have";
    return problem == NULL ? 0 : refuse(definition, rule, field, 0, field, problem, error);
}

static int check_rule(const struct ls_definition *definition, const Lockstep__WeightMapRule *rule,
                      struct ls_error *error)
{
    const char *problem = NULL;
    if (rule->n_from == 0 || rule->n_to == 0)
        problem = "needs `from` and `to`";
    else if (rule->n_from > 1 && rule->n_to > 1)
        problem = "has several `from` and several `to`";
    else if (rule->n_from > PARTS_MAX || rule->n_to > PARTS_MAX)
        problem = "has more than 16 names";
    else if (rule->counter && (rule->n_from > 1 || rule->n_to > 1))
        problem = "of a counter has one `from` and one `to`";
    else if (rule->same_as != NULL && (rule->n_from > 1 || rule->n_to > 1 || rule->transpose ||
                                       rule->lead > 0 || rule->factor != NULL || rule->counter))
        problem = "with `same_as` has one `from`, one `to`, and nothing else";
    else if (rule->same_as != NULL && !ls_pattern_same_words(rule->from[0], ""))
        problem = "with `same_as` has no words in braces";
    else if (rule->lead >= 8)
        problem = "has more axes in `lead` than a tensor";
    if (problem != NULL)
        return refuse(definition, rule, NULL, 0, "a rule", problem, error);
    LS_TRY(check_patterns(definition, rule, "from", rule->from, rule->n_from, error));
    LS_TRY(check_patterns(definition, rule, "to", rule->to, rule->n_to, error));
    if (!ls_pattern_same_words(rule->from[0], rule->to[0]))
        return refuse(definition, rule, "to", 0, "to", "has other words in braces than `from`",
                      error);
    LS_TRY(check_other(definition, rule, "when", rule->when, error));
    LS_TRY(check_other(definition, rule, "same_as", rule->same_as, error));
    return check_other(definition, rule, "factor", rule->factor, error);
}

static int check(const struct ls_weight_map *map, struct ls_error *error)
{
    const Lockstep__WeightMap *rules = map->rules;
    if (rules->n_map == 0 || rules->n_map > RULES_MAX)
        return refuse(map->definition, rules, NULL, 0, "a map",
                      rules->n_map == 0 ? "needs a rule: map { from: \"a\" to: \"b.weight\" }"
                                        : "has more than 1,000 rules",
                      error);
    int status = 0;
    for (size_t i = 0; i < rules->n_map; i++) {
        int found = check_rule(map->definition, rules->map[i], error);
        status = status != 0 ? status : found;
    }
    int found =
        check_patterns(map->definition, rules, "ignore", rules->ignore, rules->n_ignore, error);
    return status != 0 ? status : found;
}

static int unknown_map(const char *name, struct ls_error *error)
{
    struct ls_text hint = {0};
    ls_text_add(&hint, "write the path of a file, or one of");
    for (const struct ls_builtin_map *map = ls_builtin_maps; map->name != NULL; map++)
        ls_text_format(&hint, "%s %s", map == ls_builtin_maps ? "" : ",", map->name);
    int status = ls_fail(error, LOCKSTEP_USAGE, NULL, hint.data, "there is no map '%s'", name);
    ls_text_free(&hint);
    return status;
}

/* Problems of a text are those of an option, whatever the reader calls them. */
static int as_usage(int status, struct ls_error *error)
{
    if (status != LOCKSTEP_DEFINITION)
        return status;
    if (error != NULL)
        error->status = LOCKSTEP_USAGE;
    return LOCKSTEP_USAGE;
}

int ls_weight_map_read(const char *name, struct ls_weight_map *map, struct ls_error *error)
{
    const struct ls_builtin_map *builtin = find_builtin(name);
    char *text = NULL;
    size_t length = builtin != NULL ? strlen(builtin->text) : 0;
    *map = (struct ls_weight_map){0};
    if (builtin == NULL && !ls_file_exists(name))
        return unknown_map(name, error);
    if (builtin == NULL)
        LS_TRY(ls_file_read_text(name, MAP_LIMIT, LOCKSTEP_USAGE, &text, &length, error));
    int status = ls_text_read(name, builtin != NULL ? builtin->text : text, length,
                              &lockstep__weight_map__descriptor, &map->definition, error);
    ls_free(text);
    LS_TRY(as_usage(status, error));
    map->rules = (const Lockstep__WeightMap *)map->definition->message;
    status = check(map, error);
    if (status != 0)
        ls_weight_map_free(map);
    return status;
}

void ls_weight_map_free(struct ls_weight_map *map)
{
    ls_definition_free(map->definition);
    *map = (struct ls_weight_map){0};
}

/* ---- Looking up ------------------------------------------------------------------------------ */

bool ls_weight_map_fit(const struct ls_weight_map *map, bool back, const char *name, size_t first,
                       struct ls_weight_fit *fit, size_t *next)
{
    if (strnlen(name, NAME_LIMIT) == NAME_LIMIT)
        return false;
    for (size_t r = first; r < map->rules->n_map; r++) {
        const Lockstep__WeightMapRule *rule = map->rules->map[r];
        size_t count = back ? rule->n_to : rule->n_from;
        for (size_t i = 0; i < count; i++) {
            if (!ls_pattern_fits(back ? rule->to[i] : rule->from[i], name, &fit->match))
                continue;
            fit->rule = rule;
            fit->which = i;
            *next = r + 1;
            return true;
        }
    }
    return false;
}

bool ls_weight_map_ignores(const struct ls_weight_map *map, const char *name)
{
    struct ls_pattern_match match;
    for (size_t i = 0; i < map->rules->n_ignore; i++)
        if (ls_pattern_fits(map->rules->ignore[i], name, &match))
            return true;
    return false;
}

bool ls_weight_map_is_factor(const struct ls_weight_map *map, const char *name)
{
    struct ls_pattern_match match;
    for (size_t i = 0; i < map->rules->n_map; i++)
        if (map->rules->map[i]->factor != NULL &&
            ls_pattern_fits(map->rules->map[i]->factor, name, &match))
            return true;
    return false;
}

static bool is_known(const struct ls_weight_map *map, const char *name)
{
    struct ls_weight_fit fit;
    size_t next;
    return ls_weight_map_fit(map, false, name, 0, &fit, &next) || ls_weight_map_ignores(map, name);
}

bool ls_weight_map_knows(const struct ls_weight_map *map, const char *name, const char **prefix)
{
    *prefix = "";
    if (is_known(map, name))
        return true;
    for (size_t i = 0; i < map->rules->n_prefix; i++) {
        struct ls_text full = {0};
        ls_text_add(&full, map->rules->prefix[i]);
        ls_text_add(&full, name);
        bool known = !full.failed && is_known(map, full.data);
        ls_text_free(&full);
        if (known) {
            *prefix = map->rules->prefix[i];
            return true;
        }
    }
    return false;
}
