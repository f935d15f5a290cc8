/* Databases of Datum records: what the sources that read them share. Each says where the bytes of a
 * record are; the rest is here: looking at records when a database is opened, decoding, messages.
 * For an AnnotatedData layer records are AnnotatedDatum, and their second tensor is boxes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DATUM_STORE_H
#define LS_DATA_DATUM_STORE_H

#include "data/annotation.h"
#include "data/source.h"

/* The first member of such a source's state. */
struct ls_datum_store {
    const char *file; /* its path, for messages */
    uint64_t size;    /* bytes of all of it */
    int channels;     /* 3 or 1: what encoded records become; 0: as they are */
    bool annotated;   /* records are AnnotatedDatum */
    bool typed;       /* the layer says that annotations are boxes */
    int64_t boxes;    /* rows that each record has; 0: the most that one needs */
    bool measured;    /* that number is known: it is that of source->tensor[1] */
    uint64_t stamp;
    /* The bytes of a record. `reader` NULL: while the database is opened, valid until the next
     * call; else in the reader's buffers. Failures are LOCKSTEP_DATA or LS_BAD_RECORD. */
    int (*value)(const struct ls_source *source, struct ls_source_reader *reader, int64_t index,
                 const uint8_t **bytes, size_t *size, struct ls_error *error);
    /* The key of a record. */
    const char *(*key)(const struct ls_source *source, int64_t index, size_t *size);
};

/* The options of all of them: their struct, and a table with a help for `source`. */
struct ls_datum_options {
    struct ls_option_files folder;
    bool encoded_color, color, gray;
    int64_t max_boxes;
    const char *label_map;
};
/* clang-format off */
#define LS_DATUM_OPTIONS(source_help)                                                              \
    {.name = "source",                                                                             \
     .kind = LS_OPTION_FILES,                                                                      \
     .offset = offsetof(struct ls_datum_options, folder),                                          \
     .least = 1,                                                                                   \
     .most = 1,                                                                                    \
     .help = (source_help)},                                                                       \
    {.name = "force_encoded_color",                                                                \
     .kind = LS_OPTION_FLAG,                                                                       \
     .offset = offsetof(struct ls_datum_options, encoded_color),                                   \
     .help = "encoded records become blue, green, red",                                            \
     .instead = "is_color"},                                                                       \
    {.name = "transform_param.force_color",                                                        \
     .kind = LS_OPTION_FLAG,                                                                       \
     .offset = offsetof(struct ls_datum_options, color),                                           \
     .help = "encoded records become blue, green, red",                                            \
     .of = "encoded records of",                                                                   \
     .instead = "is_color"},                                                                       \
    {.name = "transform_param.force_gray",                                                         \
     .kind = LS_OPTION_FLAG,                                                                       \
     .offset = offsetof(struct ls_datum_options, gray),                                            \
     .help = "encoded records become grey",                                                        \
     .of = "encoded records of",                                                                   \
     .instead = "is_color"},                                                                       \
    {.name = "annotated_data_param.max_boxes",                                                     \
     .kind = LS_OPTION_INTEGER,                                                                    \
     .offset = offsetof(struct ls_datum_options, max_boxes),                                       \
     .most = LS_BOXES_MOST,                                                                        \
     .help = "rows of boxes that each sample has; 0: the most that a record has",                  \
     .of = "boxes in records of"},                                                                 \
    {.name = "annotated_data_param.label_map_file",                                                \
     .kind = LS_OPTION_FILE,                                                                       \
     .offset = offsetof(struct ls_datum_options, label_map),                                       \
     .keeps_records = true,                                                                        \
     .help = "names of the classes of boxes",                                                      \
     .of = "boxes in records of"},                                                                 \
    {.name = NULL}
/* clang-format on */

/* For a type's open, before the database is: tensors, what is forced. */
int ls_datum_store_begin(const struct ls_source_options *options, struct ls_source *source,
                         struct ls_error *error);
/* Refuses a folder in which another backend's database is: a file `other`, and none named `own`. */
int ls_datum_store_check_kind(const char *folder, const char *own, const char *other,
                              const char *backend, struct ls_error *error);
/* For a type's open, when source->count, the file and its size are known: looks at records. */
int ls_datum_store_inspect(struct ls_source *source, const struct ls_source_options *options,
                           struct ls_error *error);
/* The type's read, stamp and name_record. */
int ls_datum_store_read(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                        struct ls_record *record, struct ls_error *error);
uint64_t ls_datum_store_stamp(const struct ls_source *source);
void ls_datum_store_name(const struct ls_source *source, int64_t index, struct ls_text *text);

/* Fails with what is wrong with a record, with its key. */
int ls_datum_store_bad(const struct ls_source *source, int64_t index,
                       const struct ls_problem *problem, struct ls_error *error);

#endif
