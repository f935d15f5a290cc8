/* What the files of options share; for them only.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_OPTIONS_INNER_H
#define LS_DATA_OPTIONS_INNER_H

#include "data/options.h"
#include "data/source.h"
#include "schema/fields.h"

/* ---- options_field.c: fields of a definition ---- */

/* A field and the message that may have it. */
struct ls_option_field {
    const ProtobufCMessage *message; /* NULL: it is not given */
    const ProtobufCFieldDescriptor *descriptor;
};

/* The field of an option's name, "a" or "a.b"; `outer`: of "a.b" the field a. */
struct ls_option_field ls_option_field(const Lockstep__LayerParameter *layer, const char *name,
                                       bool outer);
/* A number or flag; of one that is not given the schema's default. */
double ls_option_number(struct ls_option_field field);
/* The name of a value of an enum; "" if it has none. */
const char *ls_option_choice(const ProtobufCFieldDescriptor *descriptor, double value);
/* Whether a field says something: what is given as zero, false or "", and is that anyway, does not.
 */
bool ls_option_is_said(struct ls_option_field field);

/* ---- options.c: tables ---- */

const struct ls_option *ls_option_find(const struct ls_source_type *type, const char *name);
/* "force_color" of "transform_param.force_color"; names in data_param stay whole. */
const char *ls_option_shown(const char *name);
/* Whether a source reads the field that is the first `length` bytes of a name, or something of a
 * message there. */
bool ls_option_reads(const struct ls_source_type *type, const char *name, size_t length);
/* Length of the part of an option's name that belongs to its source alone: of a message in
 * data_param its name, as all of it is that source's; else all. */
size_t ls_option_owned(const char *name);
/* Adds "LMDB" or "IMAGES and IMAGE_PAIRS": the sources that have an option. */
void ls_option_add_owners(struct ls_text *text, const char *name);
/* Sets a number or flag in a source's struct. */
void ls_option_put(const struct ls_option *option, void *own, double value);
/* Makes the struct of a type, with all defaults. */
int ls_option_start(const struct ls_source_type *type, struct ls_source_options *options,
                    struct ls_error *error);
/* Fail unless there are as many files, or a number is as large, as a table says. */
int ls_option_check_count(const struct ls_source_options *options, const struct ls_option *option,
                          size_t count, struct ls_error *error);
int ls_option_check_range(const struct ls_source_options *options, const struct ls_option *option,
                          const char *name, double value, struct ls_error *error);

#endif
