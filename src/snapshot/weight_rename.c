/* Renaming tensors. Each rule that a tensor's name fits is carried out once, for the first of its
 * names: what it joins is looked up by the names that the others must have.
 *
 * On the way to us a tensor loses leading axes of extent 1, is transposed, and is then joined with
 * others or cut; on the way back it is cut or joined, transposed, and gets its leading axes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/weight_rename.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/names.h"
#include "snapshot/weight_arrays.h"

struct job {
    const struct ls_weight_map *map;
    bool back;
    const struct ls_tensor *tensors;
    size_t count;
    char **names; /* of the tensors, those of the family with their prefix */
    struct ls_names by_name, made;
    const char *path;
    struct ls_renamed *renamed;
    struct ls_error *error;
    int status; /* of the first problem */
};

static int note(struct job *job, int status)
{
    if (job->status == 0)
        job->status = status;
    return status;
}

static int no_memory(const struct job *job)
{
    return ls_fail_memory(job->error, job->path);
}

/* A pattern with its words replaced, owned by the caller; NULL without memory. */
static char *filled(const char *pattern, const struct ls_pattern_match *match)
{
    struct ls_text text = {0};
    ls_pattern_fill(pattern, match, &text);
    if (text.failed)
        ls_text_free(&text);
    return text.data;
}

/* The tensor of a name that a pattern has become, or NULL. */
static int look_up(const struct job *job, const char *pattern, const struct ls_pattern_match *match,
                   const struct ls_tensor **tensor)
{
    size_t index;
    char *name = filled(pattern, match);
    if (name == NULL)
        return no_memory(job);
    *tensor = ls_names_find(&job->by_name, name, &index) ? &job->tensors[index] : NULL;
    ls_free(name);
    return 0;
}

/* Appends a tensor of what has been made, with a name that a pattern becomes. */
static int emit(struct job *job, const char *pattern, const struct ls_pattern_match *match,
                enum ls_dtype type, const struct ls_shape *shape, const void *data)
{
    struct ls_archive *archive = &job->renamed->archive;
    size_t index;
    char *name = filled(pattern, match);
    if (name == NULL)
        return no_memory(job);
    int status = 0;
    if (ls_names_find(&job->made, name, &index))
        status =
            ls_fail(job->error, LOCKSTEP_WEIGHTS, job->path, NULL, "two tensors become '%s'", name);
    else
        status = ls_archive_add(archive, name, type, shape, data, job->error);
    if (status == 0 &&
        !ls_names_set(&job->made, archive->tensors[archive->tensor_count - 1].name, 0))
        status = no_memory(job);
    ls_free(name);
    return status;
}

static int emit_array(struct job *job, const char *pattern, const struct ls_pattern_match *match,
                      const struct ls_array *array)
{
    return emit(job, pattern, match, LS_F32, &array->shape, array->data);
}

/* ---- Ours to theirs and theirs to ours ------------------------------------------------------- */

/* The tensors that a rule joins, as arrays: all of its names on the side that is read. */
static int gather(struct job *job, const struct ls_weight_fit *fit, struct ls_array *parts)
{
    const Lockstep__WeightMapRule *rule = fit->rule;
    char *const *patterns = job->back ? rule->to : rule->from;
    size_t count = job->back ? rule->n_to : rule->n_from;
    for (size_t i = 0; i < count; i++) {
        const struct ls_tensor *tensor = NULL;
        LS_TRY(look_up(job, patterns[i], &fit->match, &tensor));
        if (tensor == NULL) {
            char *name = filled(patterns[i], &fit->match),
                 *there = filled(patterns[fit->which], &fit->match);
            int status = name == NULL || there == NULL
                             ? no_memory(job)
                             : ls_fail(job->error, LOCKSTEP_WEIGHTS, job->path, NULL,
                                       "there is no tensor '%s' to go with '%s'", name, there);
            ls_free(name);
            ls_free(there);
            return status;
        }
        LS_TRY(ls_array_load(job->renamed, tensor, job->path, &parts[i], job->error));
    }
    return 0;
}

/* Writes 1 as what the numbers were multiplied by. */
static int emit_factor(struct job *job, const struct ls_weight_fit *fit)
{
    static const float one = 1;
    const struct ls_shape shape = {.rank = 1, .dim = {1}};
    size_t index;
    char *name = filled(fit->rule->factor, &fit->match);
    bool made = name != NULL && ls_names_find(&job->made, name, &index);
    int status = name == NULL ? no_memory(job) : 0;
    ls_free(name);
    return status != 0 || made ? status
                               : emit(job, fit->rule->factor, &fit->match, LS_F32, &shape, &one);
}

/* What a tensor of ours says the numbers were multiplied by; 1 without it. */
static int take_factor(const struct job *job, const struct ls_weight_fit *fit, float *factor)
{
    const struct ls_tensor *tensor = NULL;
    *factor = 1;
    LS_TRY(look_up(job, fit->rule->factor, &fit->match, &tensor));
    if (tensor != NULL && ls_dtype_is_float(tensor->type) && ls_shape_size(&tensor->shape) == 1)
        ls_tensor_floats(tensor, factor);
    return 0;
}

/* From the family to us. */
static int carry_in(struct job *job, const struct ls_weight_fit *fit)
{
    const Lockstep__WeightMapRule *rule = fit->rule;
    struct ls_array parts[16], whole;
    struct ls_renamed *room = job->renamed;
    LS_TRY(gather(job, fit, parts));
    for (size_t i = 0; i < rule->n_from; i++) {
        LS_TRY(ls_array_strip(&parts[i], rule->lead, job->path, job->error));
        if (rule->transpose)
            LS_TRY(ls_array_transpose(room, &parts[i], job->path, job->error));
    }
    if (rule->factor != NULL)
        LS_TRY(emit_factor(job, fit));
    if (rule->n_to == 1) {
        LS_TRY(ls_array_join(room, parts, rule->n_from, rule->axis, job->path, &whole, job->error));
        return emit_array(job, rule->to[0], &fit->match, &whole);
    }
    whole = parts[0];
    LS_TRY(ls_array_cut(room, &whole, rule->n_to, rule->axis, job->path, parts, job->error));
    for (size_t i = 0; i < rule->n_to; i++)
        LS_TRY(emit_array(job, rule->to[i], &fit->match, &parts[i]));
    return 0;
}

/* From us to the family. */
static int carry_out(struct job *job, const struct ls_weight_fit *fit)
{
    const Lockstep__WeightMapRule *rule = fit->rule;
    struct ls_array parts[16], whole;
    struct ls_renamed *room = job->renamed;
    LS_TRY(gather(job, fit, parts));
    LS_TRY(ls_array_join(room, parts, rule->n_to, rule->axis, job->path, &whole, job->error));
    if (rule->factor != NULL) {
        float factor;
        LS_TRY(take_factor(job, fit, &factor));
        LS_TRY(ls_array_divide(room, &whole, factor, job->path, job->error));
    }
    LS_TRY(ls_array_cut(room, &whole, rule->n_from, rule->axis, job->path, parts, job->error));
    for (size_t i = 0; i < rule->n_from; i++) {
        if (rule->transpose)
            LS_TRY(ls_array_transpose(room, &parts[i], job->path, job->error));
        LS_TRY(ls_array_lead(&parts[i], rule->lead, job->path, job->error));
        LS_TRY(emit_array(job, rule->from[i], &fit->match, &parts[i]));
    }
    return 0;
}

/* ---- One tensor after the other -------------------------------------------------------------- */

/* Whether a rule holds in this file. */
static int holds(const struct job *job, const struct ls_weight_fit *fit, bool *result)
{
    const struct ls_tensor *tensor = NULL;
    *result = true;
    if (job->back || fit->rule->when == NULL)
        return 0;
    LS_TRY(look_up(job, fit->rule->when, &fit->match, &tensor));
    *result = tensor != NULL;
    return 0;
}

/* Counters that the family has beside a tensor. */
static int emit_counters(struct job *job, const char *name)
{
    static const int64_t none = 0;
    const struct ls_shape scalar = {.rank = 0};
    struct ls_weight_fit fit;
    size_t next = 0;
    while (ls_weight_map_fit(job->map, true, name, next, &fit, &next))
        if (fit.rule->counter)
            LS_TRY(emit(job, fit.rule->from[0], &fit.match, LS_I64, &scalar, &none));
    return 0;
}

static int leave_out(struct job *job, const char *name)
{
    struct ls_renamed *renamed = job->renamed;
    char *copy = ls_copy_string(name);
    if (copy == NULL ||
        !LS_GROW(renamed->left_out, renamed->left_out_count, renamed->left_out_capacity)) {
        ls_free(copy);
        return no_memory(job);
    }
    renamed->left_out[renamed->left_out_count++] = copy;
    return 0;
}

/* Whether a tensor is the one of a rule's names for which the rule is carried out: the first that
 * is there. */
static int is_first(const struct job *job, const struct ls_weight_fit *fit, bool *first)
{
    *first = true;
    for (size_t i = 0; i < fit->which && *first; i++) {
        const struct ls_tensor *tensor = NULL;
        LS_TRY(
            look_up(job, job->back ? fit->rule->to[i] : fit->rule->from[i], &fit->match, &tensor));
        *first = tensor == NULL;
    }
    return 0;
}

static int rename_one(struct job *job, const char *name)
{
    struct ls_weight_fit fit;
    size_t next = 0;
    bool good = false;
    if (job->back ? ls_weight_map_is_factor(job->map, name) : ls_weight_map_ignores(job->map, name))
        return 0;
    if (job->back)
        LS_TRY(emit_counters(job, name));
    while (!good) {
        if (!ls_weight_map_fit(job->map, job->back, name, next, &fit, &next))
            return leave_out(job, name);
        if (job->back && fit.rule->counter)
            continue;
        LS_TRY(holds(job, &fit, &good));
    }
    bool first = false;
    LS_TRY(is_first(job, &fit, &first));
    if (!first || fit.rule->counter)
        return 0;
    return job->back ? carry_out(job, &fit) : carry_in(job, &fit);
}

/* What a file leaves out because it is the same as something else. */
static int fill_same(struct job *job)
{
    const struct ls_pattern_match none = {0};
    for (size_t r = 0; r < job->map->rules->n_map && !job->back; r++) {
        const Lockstep__WeightMapRule *rule = job->map->rules->map[r];
        const struct ls_tensor *own = NULL, *other = NULL;
        if (rule->same_as == NULL)
            continue;
        LS_TRY(look_up(job, rule->from[0], &none, &own));
        LS_TRY(look_up(job, rule->same_as, &none, &other));
        if (own != NULL || other == NULL)
            continue;
        struct ls_array array;
        LS_TRY(ls_array_load(job->renamed, other, job->path, &array, job->error));
        LS_TRY(emit_array(job, rule->to[0], &none, &array));
    }
    return 0;
}

/* Names as the map has them, with prefixes that the file leaves out. */
static int name_all(struct job *job)
{
    job->names = ls_alloc(job->count + 1, sizeof *job->names);
    if (job->names == NULL)
        return no_memory(job);
    for (size_t i = 0; i < job->count; i++) {
        const char *prefix = "";
        struct ls_text name = {0};
        if (!job->back)
            (void)ls_weight_map_knows(job->map, job->tensors[i].name, &prefix);
        ls_text_add(&name, prefix);
        ls_text_add(&name, job->tensors[i].name);
        if (name.failed) {
            ls_text_free(&name);
            return no_memory(job);
        }
        job->names[i] = name.data;
        size_t other;
        if (ls_names_find(&job->by_name, name.data, &other))
            return ls_fail(job->error, LOCKSTEP_WEIGHTS, job->path, NULL,
                           "'%s' is there with its prefix and without", name.data);
        if (!ls_names_set(&job->by_name, name.data, i))
            return no_memory(job);
    }
    return 0;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* How many names a map knows. */
static size_t count_known(const struct ls_weight_map *map, bool back,
                          const struct ls_tensor *tensors, size_t count)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        struct ls_weight_fit fit;
        const char *prefix;
        size_t next;
        known += back ? ls_weight_map_fit(map, true, tensors[i].name, 0, &fit, &next)
                      : ls_weight_map_knows(map, tensors[i].name, &prefix);
    }
    return known;
}

bool ls_weights_are_ours(const struct ls_weight_map *map, const struct ls_tensor *tensors,
                         size_t count)
{
    return count_known(map, true, tensors, count) > count_known(map, false, tensors, count);
}

/* Nothing fits: says which other map would know most. */
static int fail_empty(const struct job *job)
{
    struct ls_text hint = {0};
    size_t most = 0;
    for (const struct ls_builtin_map *other = ls_builtin_maps; other->name != NULL; other++) {
        struct ls_weight_map map;
        if (ls_weight_map_read(other->name, &map, NULL) != 0)
            continue;
        size_t known = count_known(&map, job->back, job->tensors, job->count);
        if (known > most) {
            hint.length = 0;
            ls_text_format(&hint, "map %s knows %zu of its %zu tensors", other->name, known,
                           job->count);
            most = known;
        }
        ls_weight_map_free(&map);
    }
    int status =
        ls_fail(job->error, LOCKSTEP_WEIGHTS, job->path, hint.data,
                "has no tensor that map '%s' knows; the first one is '%s'",
                job->map->definition->file, job->count > 0 ? job->tensors[0].name : "(none)");
    ls_text_free(&hint);
    return status;
}

int ls_weights_rename(const struct ls_weight_map *map, bool back, const struct ls_tensor *tensors,
                      size_t count, const char *path, struct ls_renamed *renamed,
                      struct ls_error *error)
{
    struct job job = {.map = map,
                      .back = back,
                      .tensors = tensors,
                      .count = count,
                      .path = path,
                      .renamed = renamed,
                      .error = error};
    int status = name_all(&job);
    for (size_t i = 0; i < count && status == 0; i++)
        if (note(&job, rename_one(&job, job.names[i])) == LOCKSTEP_RESOURCE)
            status = LOCKSTEP_RESOURCE;
    if (status == 0)
        status = job.status;
    if (status == 0)
        status = fill_same(&job);
    if (status == 0 && renamed->archive.tensor_count == 0)
        status = fail_empty(&job);
    for (size_t i = 0; job.names != NULL && i < count; i++)
        ls_free(job.names[i]);
    ls_free(job.names);
    ls_names_free(&job.by_name);
    ls_names_free(&job.made);
    return status;
}

void ls_renamed_free(struct ls_renamed *renamed)
{
    for (size_t i = 0; i < renamed->owned_count; i++)
        ls_free(renamed->owned[i]);
    for (size_t i = 0; i < renamed->left_out_count; i++)
        ls_free(renamed->left_out[i]);
    ls_free(renamed->owned);
    ls_free(renamed->left_out);
    ls_archive_free(&renamed->archive);
    *renamed = (struct ls_renamed){0};
}
