/* Tables of options: what sources read, as values and as text; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/options_inner.h"

/* ---- Tables ---------------------------------------------------------------------------------- */

/* "force_color" of "transform_param.force_color"; the fields of a message in data_param stay whole.
 */
const char *ls_option_shown(const char *name)
{
    static const char beside[] = "transform_param.";
    return strncmp(name, beside, sizeof beside - 1) == 0 ? name + sizeof beside - 1 : name;
}

const struct ls_option *ls_option_find(const struct ls_source_type *type, const char *name)
{
    for (const struct ls_option *o = type->options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

/* Whether a source reads a field of data_param, or something of a message there. */
bool ls_option_reads(const struct ls_source_type *type, const char *name, size_t length)
{
    for (const struct ls_option *o = type->options; o->name != NULL; o++)
        if (strncmp(o->name, name, length) == 0 &&
            (o->name[length] == '\0' || o->name[length] == '.'))
            return true;
    return false;
}

/* Length of the part of an option's name that belongs to its source alone: of a message in
 * data_param its name, as all of it is that source's; else all. */
size_t ls_option_owned(const char *name)
{
    return ls_option_shown(name) == name ? strcspn(name, ".") : strlen(name);
}

/* Adds "A", ", B" or " or C". */
static void add_name(struct ls_text *text, const char *name, size_t index, size_t count,
                     const char *last)
{
    const char *between = index == 0 ? "" : index + 1 < count ? ", " : last;
    ls_text_add(text, between);
    ls_text_add(text, name);
}

void ls_source_names(bool convertible, struct ls_text *text)
{
    size_t count = 0, index = 0;
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        count += !convertible || ls_source_types[i]->unconvertible == NULL;
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        if (!convertible || ls_source_types[i]->unconvertible == NULL)
            add_name(text, ls_source_types[i]->name, index++, count, " or ");
}

/* "LMDB" or "IMAGES and IMAGE_PAIRS": the sources that have an option. */
void ls_option_add_owners(struct ls_text *text, const char *name)
{
    size_t length = ls_option_owned(name), count = 0, index = 0;
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        count += ls_option_reads(ls_source_types[i], name, length);
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        if (ls_option_reads(ls_source_types[i], name, length))
            add_name(text, ls_source_types[i]->name, index++, count, " and ");
}

void ls_option_put(const struct ls_option *option, void *own, double value)
{
    void *member = (char *)own + option->offset;
    if (option->kind == LS_OPTION_INTEGER)
        *(int64_t *)member = (int64_t)value;
    else if (option->kind == LS_OPTION_UNSIGNED)
        *(uint64_t *)member = (uint64_t)value;
    else if (option->kind == LS_OPTION_NUMBER)
        *(double *)member = value;
    else if (option->kind == LS_OPTION_FLAG)
        *(bool *)member = value != 0;
    else if (option->kind == LS_OPTION_CHOICE)
        *(int *)member = (int)value;
}

int ls_option_start(const struct ls_source_type *type, struct ls_source_options *options,
                    struct ls_error *error)
{
    options->type = type;
    options->own = ls_alloc(1, type->options_size);
    if (options->own == NULL)
        return ls_fail_memory(error, "a data source");
    for (const struct ls_option *o = type->options; o->name != NULL; o++)
        ls_option_put(o, options->own, o->fallback);
    return 0;
}

void ls_source_options_free(struct ls_source_options *options)
{
    for (size_t i = 0; i < options->path_count; i++)
        ls_free(options->paths[i]);
    ls_free(options->paths);
    ls_free(options->own);
    *options = (struct ls_source_options){0};
}

/* ---- Checks that a layer and a tool have in common --------------------------------------------
 */

int ls_option_check_count(const struct ls_source_options *options, const struct ls_option *option,
                          size_t count, struct ls_error *error)
{
    const char *name = options->type->name;
    char hint[300];
    snprintf(hint, sizeof hint, "%s: %s", option->name, option->help);
    if ((double)count < option->least)
        return ls_option_fail(options, NULL, hint, error, "data of backend %s needs a %s", name,
                              option->name);
    if ((double)count > option->most && option->most == 1)
        return ls_option_fail(options, option->name, hint, error,
                              "data of backend %s has one %s, not %zu", name, option->name, count);
    if ((double)count > option->most)
        return ls_option_fail(options, option->name, hint, error,
                              "data of backend %s has at most %.0f files as %s, not %zu", name,
                              option->most, option->name, count);
    return 0;
}

int ls_option_check_range(const struct ls_source_options *options, const struct ls_option *option,
                          const char *name, double value, struct ls_error *error)
{
    bool limited = option->least != 0 || option->most != 0;
    if (!limited || (value >= option->least && value <= option->most))
        return 0;
    return ls_option_fail(options, option->name, NULL, error,
                          "%s is %.10g; it must lie in %.10g .. %.10g", name, value, option->least,
                          option->most);
}

/* ---- As text ----------------------------------------------------------------------------------
 */

const char *ls_source_options_name(const struct ls_source_options *options)
{
    for (const struct ls_option *o = options->type->options; o->name != NULL; o++) {
        const struct ls_option_files *files = (void *)((char *)options->own + o->offset);
        if (o->kind == LS_OPTION_FILES && files->count > 0)
            return files->item[0];
    }
    return options->type->name;
}

static void add_path(struct ls_text *text, const char *name, const char *path)
{
    char *real = path != NULL ? realpath(path, NULL) : NULL; /* one file has many names */
    ls_text_format(text, "%s=%s\n", name, real != NULL ? real : path != NULL ? path : "");
    free(real);
}

void ls_source_options_describe(const struct ls_source_options *options, struct ls_text *text)
{
    for (const struct ls_option *o = options->type->options; o->name != NULL; o++) {
        const void *member = (const char *)options->own + o->offset;
        const struct ls_option_files *files = member;
        if (o->keeps_records)
            continue;
        if (o->kind == LS_OPTION_FILES)
            for (size_t i = 0; i < files->count; i++)
                add_path(text, o->name, files->item[i]);
        else if (o->kind == LS_OPTION_FILE)
            add_path(text, o->name, *(const char *const *)member);
        else if (o->kind == LS_OPTION_NUMBER)
            ls_text_format(text, "%s=%a\n", o->name, *(const double *)member);
        else if (o->kind == LS_OPTION_FLAG)
            ls_text_format(text, "%s=%d\n", o->name, *(const bool *)member);
        else if (o->kind == LS_OPTION_CHOICE)
            ls_text_format(text, "%s=%d\n", o->name, *(const int *)member);
        else
            ls_text_format(text, "%s=%" PRIu64 "\n", o->name, *(const uint64_t *)member);
    }
    ls_text_format(text, "crop=%d\n", options->crop);
    if (options->type->splits && !options->split.all)
        ls_text_format(text, "split=%d %a\n", options->split.train, options->split.fraction);
    ls_text_format(text, "batch=%" PRId64 "\n", options->type->batches ? options->batch : 0);
}
