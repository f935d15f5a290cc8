/* Options of sources: the fields of data_param that a source reads, as a table.
 *
 * Each source has its own struct and a table that says which field fills which member. From the
 * tables come reading and checking of a Data layer and of the tools' options, the messages about
 * fields that belong to other sources, `lockstep help sources`, and a table in docs/data.md.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_OPTIONS_H
#define LS_DATA_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "data/order.h"
#include "lockstep/lockstep.h"
#include "schema/definition.h"

struct ls_class_names;
struct ls_source_type;

/* What an option is in the definition, and in the source's struct. */
enum ls_option_kind {
    LS_OPTION_FILES,    /* struct ls_option_files: paths, repeated */
    LS_OPTION_FILE,     /* const char *: a path; NULL: not given, or empty */
    LS_OPTION_INTEGER,  /* int64_t */
    LS_OPTION_UNSIGNED, /* uint64_t: any number of 64 bits */
    LS_OPTION_NUMBER,   /* double */
    LS_OPTION_FLAG,     /* bool */
    LS_OPTION_CHOICE    /* int: a name of an enum */
};

/* Paths of a definition are resolved: they can be opened from the working directory. */
struct ls_option_files {
    const char *const *item;
    size_t count;
};

struct ls_option {
    /* The field of data_param: "new_height"; or of a message in it, or beside it in the layer:
     * "synthetic_param.count", "transform_param.force_color". NULL ends a table. */
    const char *name;
    enum ls_option_kind kind;
    size_t offset;      /* in the source's struct */
    double fallback;    /* what a number or flag is if it is not given: also the schema's default */
    double least, most; /* what a number may be, how many files there may be; both 0: anything */
    bool
        keeps_records; /* records are the same whatever its value: it is no part of a cache's key */
    const char *help;
    const char *of;      /* (optional) what it is for, in messages: "encoded records of" */
    const char *instead; /* (optional) the option that does the same in other sources */
};

/* What opens a source. */
struct ls_source_options {
    const struct ls_source_type *type;
    void *own;             /* the source's struct, filled from its table */
    int64_t batch;         /* samples of a batch; 0: not known */
    int crop;              /* least side that the crop which follows needs; 0: no crop */
    bool test;             /* the test phase */
    struct ls_split split; /* for sources that cut themselves (ls_source_type.splits) */
    /* Bad records do not keep the source from being opened: they fail when they are read. */
    bool forgiving;
    bool skipping;  /* the same, but not for files that cannot be read: the caller skips them */
    bool annotated; /* without a layer: a database of pictures with boxes, as of AnnotatedData */
    /* What numbers classes have where data were trained on; NULL: these data number them. */
    const struct ls_class_names *known;
    /* Where the options come from, for messages; NULL: from a tool. */
    const Lockstep__LayerParameter *layer;
    const struct ls_definition *definition;
    char **paths; /* owned */
    size_t path_count, path_capacity;
};

/* Reads what a Data layer says. All problems are reported, each with its place. `options` must be
 * freed also after a failure. */
int ls_source_options_read(const Lockstep__LayerParameter *layer,
                           const struct ls_definition *definition, Lockstep__Phase phase,
                           struct ls_source_options *options, struct ls_error *error);
/* The same for the tools' options, whose strings must live as long as `options`. Paths are taken as
 * they are; failures are LOCKSTEP_USAGE. */
int ls_source_options_take(const struct lockstep_source_options *given,
                           struct ls_source_options *options, struct ls_error *error);
void ls_source_options_free(struct ls_source_options *options);

/* Fails with LOCKSTEP_DEFINITION at the place of a field (NULL: of data_param). */
int ls_option_fail(const struct ls_source_options *options, const char *field, const char *hint,
                   struct ls_error *error, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* For data of the test phase: the layer of the train phase that reads the same kind, the one of
 * this name, else the first. NULL: the definition has none. */
const Lockstep__LayerParameter *ls_source_training_layer(const struct ls_source_options *options);

/* The first file, which names the source in messages; the type's name where it has no files. */
const char *ls_source_options_name(const struct ls_source_options *options);
/* Everything that decides what the records are, as lines of text: the key of a cache. */
void ls_source_options_describe(const struct ls_source_options *options, struct ls_text *text);

/* Help for people: the sources (`backend` NULL), or the options of one, line by line. Fails with
 * LOCKSTEP_USAGE for a backend that there is not. */
int ls_source_help(const char *backend, void (*tell)(void *user, const char *line), void *user,
                   struct ls_error *error);
/* "LMDB, IDX or CIFAR": all sources, or those that convert and mean can read. */
void ls_source_names(bool convertible, struct ls_text *text);

#endif
