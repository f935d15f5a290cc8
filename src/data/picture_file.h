/* Picture files as records: what the sources of picture files share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PICTURE_FILE_H
#define LS_DATA_PICTURE_FILE_H

#include "data/picture.h"

/* Headers of at most this many pictures are looked at when a source is opened, so that a bad one
 * is found before training. Without resizing all are: their sizes must be known. */
enum { LS_PICTURE_LOOK_LIMIT = 50000 };

/* What pictures become. */
struct ls_picture_form {
    int height, width; /* to resize to; 0: not */
    bool antialias;
    int channels;
    int crop; /* the side that the transformation's crop needs; 0: none */
};

/* The options that sources of picture files share: their struct, which is `member` of the source's
 * struct `type`, and rows for the source's table. */
struct ls_picture_options {
    int64_t height, width;
    bool color, antialias;
};
/* clang-format off */
#define LS_PICTURE_OPTIONS(type, member)                                                           \
    {.name = "new_height",                                                                         \
     .kind = LS_OPTION_INTEGER,                                                                    \
     .offset = offsetof(type, member.height),                                                      \
     .most = 65536,                                                                                \
     .help = "resize to this height, together with new_width; 0: as they are"},                    \
    {.name = "new_width",                                                                          \
     .kind = LS_OPTION_INTEGER,                                                                    \
     .offset = offsetof(type, member.width),                                                       \
     .most = 65536,                                                                                \
     .help = "resize to this width, together with new_height; 0: as they are"},                    \
    {.name = "is_color",                                                                           \
     .kind = LS_OPTION_FLAG,                                                                       \
     .offset = offsetof(type, member.color),                                                       \
     .fallback = 1,                                                                                \
     .help = "three channels (blue, green, red); false: one, grey"},                               \
    {.name = "antialias",                                                                          \
     .kind = LS_OPTION_FLAG,                                                                       \
     .offset = offsetof(type, member.antialias),                                                   \
     .fallback = 1,                                                                                \
     .help = "resize so that every pixel counts; false: bilinear as OpenCV"}
/* clang-format on */

/* From a source's options; refuses sizes that make no sense. */
int ls_picture_form_init(const struct ls_source_options *options,
                         const struct ls_picture_options *own, struct ls_picture_form *form,
                         struct ls_error *error);

/* Fails with what is wrong with the picture, or the map, of record `index`. */
int ls_picture_file_bad(const char *path, int64_t index, const struct ls_problem *problem,
                        struct ls_error *error);
/* Reads the header of the picture of record `index`; *file: its bytes. A file that is none is
 * LOCKSTEP_DATA, naming it. */
int ls_picture_file_look(const char *path, int64_t index, struct ls_picture_header *header,
                         size_t *file, struct ls_error *error);
/* The shape of the record that a picture becomes. Fails if it is too small for the crop. */
int ls_picture_file_shape(const struct ls_picture_form *form, const char *path, int64_t index,
                          const struct ls_picture_header *header, int64_t shape[3],
                          struct ls_error *error);
/* Bytes that reading it takes, with its file in memory. */
size_t ls_picture_file_bytes(const struct ls_picture_form *form,
                             const struct ls_picture_header *header, size_t file);
/* Decodes record `index`, with its hash (the reader may want that alone); uses the reader's buffers
 * `picture` and `record`. */
int ls_picture_file_read(struct ls_source_reader *reader, const struct ls_picture_form *form,
                         const char *path, int64_t index, struct ls_record *record,
                         struct ls_error *error);

#endif
