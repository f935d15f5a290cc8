/* Sources: where records come from. One file each, a list of them, and one way to read record i.
 *
 * A record is a list of tensors, each with a type and a shape; all records of a source have the
 * same list. Sources of pictures have an image (C x H x W) and mostly a label, a number or a map of
 * numbers. Sources are read-only and know nothing of order, epochs or transformations. Any number
 * of readers may read any record at the same time; a reader belongs to one thread.
 *
 * Channel order: pictures decoded by us (IMAGES, encoded Datum records) are BGR, as OpenCV gives
 * them to Caffe, so that weights and means made with Caffe fit. CIFAR and IDX are as stored; so are
 * raw Datum records (BGR where Caffe's convert_imageset wrote them).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_SOURCE_H
#define LS_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "data/options.h"
#include "data/record.h"
#include "lockstep_names.h"

/* What transform_param does to a tensor. */
enum ls_tensor_role {
    LS_TENSOR_PLAIN,   /* nothing */
    LS_TENSOR_IMAGE,   /* C x H x W: all of it. Only the first tensor of a record can be one */
    LS_TENSOR_MAP,     /* 1 x H x W, a number for each pixel of the image: it is padded, cropped and
                          mirrored with it */
    LS_TENSOR_BOXES,   /* 1 x G x 8, rows of boxes (data/annotation.h): they go with the image. Only
                          the second tensor of a record can be boxes, which every read brings */
    LS_TENSOR_SEQUENCE /* steps x ...: as PLAIN, but how many steps it has may differ from record to
                          record; all sequences of a record have the same number */
};

/* What is known of a tensor of all records. Heights and widths of images and maps, and the steps of
 * sequences, may differ from record to record (ls_source.varies). */
struct ls_tensor_info {
    char name[64];
    enum ls_tensor_role role;
    enum ls_dtype type;    /* of the first record */
    struct ls_shape shape; /* of the first record; rank 0: one number */
    int64_t largest;       /* number in it; -1: not known without reading all */
};

struct ls_source_type;
struct ls_picture; /* data/picture.h */

struct ls_source {
    const struct ls_source_type *type;
    void *state;   /* the type's own */
    int64_t count; /* records, at least 1, at most UINT32_MAX */
    int tensors;   /* of a record */
    struct ls_tensor_info tensor[LS_RECORD_TENSORS];
    bool forgiving, skipping; /* as the options say */
    bool varies;              /* heights or widths are known to differ from record to record */
    int64_t steps;            /* of the sequences of the first record; 0: there are no sequences */
    /* Owned. Height and width of each record, where they vary; NULL where all are as the first. Of
     * sequences, which are taken for images of 1 x steps x 1: the steps, and 1. */
    int32_t (*sizes)[2];
    /* Where batches have two kinds of records: of each `period` records the first `period_first`
     * are of the one kind, the others of the other, and shuffling keeps it so. 0: there is one. */
    int64_t period, period_first;
    uint32_t label_pad;  /* what padding puts around maps */
    bool encoded;        /* records must be decoded: worth several threads */
    size_t decode_bytes; /* the most that a reader takes for a record, of those looked at */
    bool bgr;            /* it has three channels: blue, green, red */
    bool interpolates;   /* pictures are resized without antialiasing, as OpenCV does it */
    /* A mean picture that records are without, three channels of mean_side; NULL: there is none. */
    const float *mean;
    int64_t mean_side[2];
    uint64_t labels_hash; /* of all labels, where opening reads them anyway; else 0 */
    char **class_name;    /* owned; NULL if not known */
    int class_count;
    bool vocabulary;    /* the class names are the vocabulary: under others its ids mean nothing */
    uint64_t tokenizer; /* a hash of what its ids stand for; 0: not known */
    /* Of the pictures that were looked at, those with an orientation mark, which is not followed,
     * and the first of them. */
    int64_t looked_at, turned;
    char first_turned[200];
    char *warning;   /* owned: what its users should hear once; NULL: nothing */
    int64_t streams; /* that go on from batch to batch, sample by sample; 0: there are none */
};

/* A buffer that grows and is used again for the next record. */
struct ls_buffer {
    void *data;
    size_t capacity; /* bytes */
};
/* Room for `count` elements of `size` bytes, aligned to 64; NULL when there is no memory. What was
 * in the buffer is lost if it grows. */
void *ls_buffer_reserve(struct ls_buffer *buffer, size_t count, size_t size);
void ls_buffer_free(struct ls_buffer *buffer);

/* What a type returns where a record is bad: its bytes can be read, but not decoded, or its label
 * or size is impossible. Errors of a whole file (it is missing, became shorter, cannot be read) are
 * LOCKSTEP_DATA. ls_source_read and ls_source_open return LOCKSTEP_DATA for both. */
enum { LS_BAD_RECORD = 1000 };
/* That in place of LOCKSTEP_DATA; other statuses stay. */
int ls_source_bad_record(int status);

/* What one thread needs to read. */
struct ls_source_reader {
    const struct ls_source *source;
    bool hash_only;    /* tensors are wanted for their hash alone: nothing is decoded */
    bool bad;          /* the last record that was read is bad itself, not its file */
    int height, width; /* of the picture that was decoded last, before it was resized */
    struct ls_buffer file, picture, record, map, boxes; /* of the types, as they like */
    int32_t label;                                      /* of the record that was read last */
};

struct ls_source_type {
    const char *name;    /* "LMDB" */
    int backend;         /* Lockstep__DataParameter__DB */
    const char *summary; /* what it reads, in one line */
    bool splits;         /* `split` is a part of its stream, which it takes itself */
    bool batches;        /* records depend on batch_size */
    bool pads;           /* `tensor { pad }` is for its sequences */
    bool bgr;            /* three channels are blue, green, red */
    /* Why convert and mean cannot read it; NULL: they can. */
    const char *unconvertible;
    const struct ls_option *options; /* its table */
    size_t options_size;             /* of the struct that the table fills */
    /* Fills in `source` (zeroed) from options->own, which the checks of the table have passed. On
     * failure the caller calls `close`. Errors: LOCKSTEP_DATA naming the file, LOCKSTEP_DEFINITION
     * for options that do not fit together. */
    int (*open)(const struct ls_source_options *options, struct ls_source *source,
                struct ls_error *error);
    void (*close)(struct ls_source *source); /* (optional) */
    /* Reads the wanted tensors of record `index`. `record` has all tensors without data, with the
     * shapes that are known; what is not wanted may be filled in if that is free. Errors:
     * LOCKSTEP_DATA or LS_BAD_RECORD, naming file and record. */
    int (*read)(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                struct ls_record *record, struct ls_error *error);
    /* (optional) What the source's files look like from outside (ls_file_stamp), of all of them. */
    uint64_t (*stamp)(const struct ls_source *source);
    /* (optional) Appends the name of a record (its path, its key) to `text`. */
    void (*name_record)(const struct ls_source *source, int64_t index, struct ls_text *text);
    /* (optional) Makes the image of a record of a picture that stands in for one of its own; where
     * there is none, the picture gets the size of the first record. */
    int (*stand_in)(struct ls_source_reader *reader, const struct ls_picture *picture,
                    struct ls_record *record, struct ls_problem *problem);
    /* (optional) The picture file that a record is; the source keeps the path. */
    const char *(*record_file)(const struct ls_source *source, int64_t index);
};

/* All sources, ls_source_NAME for each NAME in DataParameter.DB of proto/lockstep.proto (in small
 * letters): a new one is a file of its own and a line there. LOCKSTEP_DATA_BACKENDS is that list
 * (cmake/protobuf_c.cmake). */
#define LS_SOURCE_DECLARE(name) extern const struct ls_source_type ls_source_##name;
LOCKSTEP_DATA_BACKENDS(LS_SOURCE_DECLARE)
/* The same as a list that ends with NULL. */
extern const struct ls_source_type *const ls_source_types[];

/* The type of a backend by number or by name (any case); NULL if there is none. */
const struct ls_source_type *ls_source_type_of(int backend);
const struct ls_source_type *ls_source_type_named(const char *name);

int ls_source_open(const struct ls_source_options *options, struct ls_source **source,
                   struct ls_error *error);
void ls_source_close(struct ls_source *source);

int ls_source_reader_open(const struct ls_source *source, struct ls_source_reader **reader,
                          struct ls_error *error);
void ls_source_reader_close(struct ls_source_reader *reader);
/* As the type's read, after a check of the index. */
int ls_source_read(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                   struct ls_record *record, struct ls_error *error);

/* ---- Images ---- */

/* The product of an image's shape whose parts have been checked, and the check: each part at least
 * 1, at most 2^16 channels and 2^16 pixels a side, 2^28 numbers in all. */
int64_t ls_record_size(const int64_t shape[3]);
bool ls_record_shape_valid(const int64_t shape[3]);

/* Whether records have an image, which is their first tensor then; and its channels, height and
 * width in the first record. */
bool ls_source_has_image(const struct ls_source *source);
static inline const int64_t *ls_source_image(const struct ls_source *source)
{
    return source->tensor[0].shape.dim;
}
/* Whether records have boxes, which are their second tensor then. */
bool ls_source_has_boxes(const struct ls_source *source);
/* For a type's open: records have an image, and one label. The label's info is returned. */
void ls_source_add_image(struct ls_source *source);
struct ls_tensor_info *ls_source_add_label(struct ls_source *source);
/* For a type's read: the image and the label of a record. */
void ls_record_set_image(struct ls_record *record, enum ls_dtype type, const int64_t shape[3],
                         const void *data);
void ls_record_set_label(struct ls_source_reader *reader, struct ls_record *record, int32_t label);
/* Numbers and bytes of a tensor. */
int64_t ls_tensor_numbers(const struct ls_record_tensor *tensor);
size_t ls_tensor_bytes(const struct ls_record_tensor *tensor);

/* ---- For types ---- */

/* Another tensor of all records; the caller sets its shape. */
struct ls_tensor_info *ls_source_add_tensor(struct ls_source *source, const char *name,
                                            enum ls_tensor_role role, enum ls_dtype type);

/* For a type's open: what is known of the shape of a record's image; that of record 0 first. Fails
 * if it cannot be a record, or if there is no memory. */
int ls_source_note_shape(struct ls_source *source, int64_t index, const int64_t shape[3],
                         struct ls_error *error);
/* For a type's open: where to report a problem of a record, and the status that follows from it. A
 * forgiving source ignores all problems, one that skips ignores those of bad records. */
struct ls_error *ls_source_aside(const struct ls_source *source, struct ls_error *error);
int ls_source_forgive(const struct ls_source *source, int status, struct ls_error *error);
/* The first record that can be decoded, or -1, for a source that is forgiving or skips; else 0. */
int ls_source_first_good(const struct ls_source *source, int64_t *index, struct ls_error *error);
/* For a type's open: a picture was looked at; its name, or NULL: it is a record of this index. */
void ls_source_note_picture(struct ls_source *source, bool turned, const char *name, int64_t index);
/* For a type's open, too: what a reader takes for a record. */
void ls_source_note_bytes(struct ls_source *source, size_t bytes);
/* The shape of a record's image as it was noted; and of any tensor. */
void ls_source_shape_of(const struct ls_source *source, int64_t index, int64_t shape[3]);
void ls_source_tensor_shape(const struct ls_source *source, int64_t index, int tensor,
                            struct ls_shape *shape);

#endif
