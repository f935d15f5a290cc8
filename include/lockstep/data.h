/* Data tools: converting, mean pictures, checking. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_DATA_H
#define LOCKSTEP_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/net.h"
#include "lockstep/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tells line by line which kinds of sources there are (`backend` NULL), or what one of them reads:
 * the fields of `data_param`, their types, limits and defaults. */
LOCKSTEP_API int lockstep_source_help(const char *backend,
                                      void (*tell)(void *user, const char *line), void *user,
                                      struct lockstep_error *error);

/* Which source, and its options: those that it does not read must be NULL or 0. */
struct lockstep_source_options {
    size_t struct_size;
    const char *backend;       /* as `data_param.backend`; lockstep_source_help lists them */
    const char *const *source; /* files or folders, as `data_param.source` */
    size_t source_count;
    const char *label_source;        /* as `data_param.label_source`; NULL: none */
    const char *root_folder;         /* as `data_param.root_folder`; NULL: none */
    int resize_height, resize_width; /* as new_height and new_width; 0: as they are */
    int gray;                        /* is_color: false */
    int shuffle;                     /* convert: in a random order of `seed` */
    int64_t seed;
    const char *split; /* "train:0.9" and the like, or NULL */
    struct lockstep_callbacks callbacks;
    /* convert: records hold picture files. Where a source has files of the type that is wanted, and
     * they are not to be resized or made grey, these are taken as they are; else pictures are
     * written as JPEG (of quality 95) or PNG. */
    int encoded;
    const char *encode_type; /* "jpg" or "png"; NULL: the source's files, or PNG */
    int any_size;            /* convert: records may differ in size, as in Caffe's tool */
    /* Where the numbers of classes are from: a file with a name on each line, the folder that was
     * trained on, a database that was made of it, or a snapshot. NULL: the source numbers them. */
    const char *classes;
    /* Pictures are resized as OpenCV's INTER_LINEAR does it, of the four nearest pixels; 0: so that
     * every pixel counts. */
    int no_antialias;
};
LOCKSTEP_API void lockstep_source_options_init(struct lockstep_source_options *options);
/* Writes every record of a source into a new LMDB database of Caffe's Datum records. */
LOCKSTEP_API int lockstep_convert(const struct lockstep_source_options *source, const char *path,
                                  int64_t *records, struct lockstep_error *error);
/* Writes the mean over all records as a binaryproto that Caffe reads; `channel_means` (room for
 * 16, may be NULL) gets the mean of each channel, and *channels their number. */
LOCKSTEP_API int lockstep_mean(const struct lockstep_source_options *source, const char *path,
                               double *channel_means, int *channels, struct lockstep_error *error);

/* What a source of pictures has. Sizes and classes are those of all records, mean and deviation
 * those of the pixels of up to 500 records, spread evenly. With label maps class_records are the
 * pixels of each label, in these records. */
enum { LOCKSTEP_SOURCE_CLASSES = 1000, LOCKSTEP_SOURCE_CHANNELS = 4 };
struct lockstep_source_facts {
    int64_t records;
    int channels;
    int height, height_least, height_most; /* pixels: the median, the least, the largest */
    int width, width_least, width_most;
    double mean[LOCKSTEP_SOURCE_CHANNELS], deviation[LOCKSTEP_SOURCE_CHANNELS];
    int classes; /* the largest label and 1; 0: labels are no classes */
    int64_t class_records[LOCKSTEP_SOURCE_CLASSES];
};
/* Fills `facts`. LOCKSTEP_DATA where a record cannot be read, or a label is not below
 * LOCKSTEP_SOURCE_CLASSES; LOCKSTEP_USAGE where records have no pictures, or no labels. */
LOCKSTEP_API int lockstep_source_survey(const struct lockstep_source_options *source,
                                        struct lockstep_source_facts *facts,
                                        struct lockstep_error *error);

/* A record that cannot be trained on or tested with, and a source that was read to its end. `net`
 * is "train", "test" or "test #1"; `name` is that of a picture or key, or empty. Strings live as
 * long as the call of the callback. */
struct lockstep_bad_record {
    const char *net, *layer, *source, *name, *reason;
    int64_t record;
};
struct lockstep_checked_source {
    const char *net, *layer, *source;
    int64_t records, bad;
    int64_t skippable; /* bad ones in whose place on_bad_record: SKIP would put others */
    double seconds;
};
struct lockstep_check_options {
    size_t struct_size;
    int threads; /* that read; 0: as many as there are cores */
    void *user;  /* for the two below, which may be NULL */
    void (*bad)(void *user, const struct lockstep_bad_record *record);
    void (*source)(void *user, const struct lockstep_checked_source *source);
    struct lockstep_callbacks callbacks; /* progress as that of lockstep_convert */
};
LOCKSTEP_API void lockstep_check_options_init(struct lockstep_check_options *options);
/* Reads every record of every data layer of a solver's nets, or of a net's test phase, once, as
 * training or testing would, and tells of each that is bad: cannot be read or decoded, has a size
 * that does not fit, or a label that is no class of a layer that takes it. LOCKSTEP_DATA if there
 * are any, or if a source cannot be opened at all; LOCKSTEP_DEFINITION where records differ in size
 * and the net has layers that cannot take some of the sizes (all are named, with a record). */
LOCKSTEP_API int lockstep_check(const struct lockstep_solver *solver,
                                const struct lockstep_check_options *options,
                                struct lockstep_error *error);
LOCKSTEP_API int lockstep_check_model(const char *path,
                                      const struct lockstep_check_options *options,
                                      struct lockstep_error *error);

/* Numbers in the program's memory that a net is trained with or tested on. */
struct lockstep_array {
    /* What a Data layer of backend NPY calls it, as if it were a file: `source: "train_x.npy"`. Or
     * a top of an Input or MemoryData layer, all tops of which are arrays: "data" in the train net,
     * "test:data" in test nets. */
    const char *name;
    const char *type; /* as .npy files have it: "<f4", "|u1", "<i8" ... */
    int rank;
    int64_t extent[LOCKSTEP_AXES_MAX]; /* records along the first axis */
    /* All records, in C order. They stay the caller's, and stay as they are, until the solver and
     * all that was made of it are freed. */
    const void *data;
    /* In place of `data`: brings record `index` to `record`, which has room for it. Asked by any
     * thread, by several at once, in any order; for one index it brings the same bytes each time.
     * 0: it did; anything else ends what asks for it with LOCKSTEP_DATA. */
    int (*read)(void *user, int64_t index, void *record);
    void *user;
};
/* Gives a solver arrays, before a trainer or a plan is made of it, once. An Input or MemoryData
 * layer becomes a Data layer of backend NPY: records come in their order, and begin anew after the
 * last. LOCKSTEP_USAGE for an array that cannot be, or that no net asks for;
 * LOCKSTEP_DEFINITION where an array does not have the shape that a layer says. */
LOCKSTEP_API int lockstep_solver_use_arrays(struct lockstep_solver *solver,
                                            const struct lockstep_array *arrays, size_t count,
                                            struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
