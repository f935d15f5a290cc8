/* What SSD's fork does to a picture and its boxes before the picture has the size of a sample:
 *
 *   1. distort_param   colours (data/distort.h)
 *   2. expand_param    the picture is put somewhere on a larger canvas of mean values
 *   3. batch_sampler   a part of that is taken: one of those that satisfy the constraints
 *   4. resize_param    what is left gets another size
 * 1 to 3 are random, and happen in training only. Boxes go with the picture; those of which
 * nothing is left, or which emit_constraint leaves out, are dropped.
 *
 * Random choices are functions of a key, the ordinal of the sample and a number of the draw (enum
 * draw of augment.c), like those of data/transform.h, whose part this is.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_AUGMENT_H
#define LS_DATA_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/distort.h"
#include "data/resample.h"
#include "data/source.h"

enum { LS_AUGMENT_FILTERS = 16 /* of interp_mode */ };

struct ls_part_sampler; /* data/part_sampler.h */

struct ls_augment {
    bool resizes, pads, shortest; /* pads: FIT_LARGE_SIZE_AND_PAD; shortest: FIT_SMALL_SIZE */
    int64_t height, width;        /* of resize_param */
    enum ls_filter filter[LS_AUGMENT_FILTERS];
    int filters;
    Lockstep__ResizeParameter__PadMode pad_mode;
    uint8_t *pad_value;  /* by channel; owned */
    uint8_t *fill_value; /* what expand_param puts around a picture, by channel; owned */
    bool distorts, expands;
    Lockstep__DistortionParameter distortion;
    float expand_probability, expand_most;
    struct ls_part_sampler *sampler; /* NULL: there are none; owned */
    bool constrained, overlaps;      /* emit_constraint, and whether it is MIN_OVERLAP */
    float emit_overlap;
};

/* A rectangle in sizes of a picture. */
struct ls_rectangle {
    double xmin, ymin, xmax, ymax;
};

/* What becomes of the picture at an ordinal, in pixels. */
struct ls_sample_view {
    int64_t height, width;               /* of the picture */
    int64_t canvas_height, canvas_width; /* the picture itself, where it is not expanded */
    int64_t top, left;                   /* of the picture on the canvas */
    int64_t y, x, rows, columns;         /* the part of the canvas that is taken */
    enum ls_filter filter;
    int64_t scaled_height, scaled_width; /* what that part is resized to */
    int64_t out_height, out_width;       /* with padding */
    int64_t out_top, out_left;           /* of the resized part in there */
};

/* Buffers of a reader for one picture after the other. */
struct ls_augment_room {
    struct ls_buffer row, boxes, colours, part, resized, scratch;
};
void ls_augment_room_free(struct ls_augment_room *room);

void ls_augment_free(struct ls_augment *augment);
/* Whether anything is done to pictures. */
bool ls_augment_is_used(const struct ls_augment *augment);
/* The height and width that a picture of this shape becomes; where it is not resized to one size,
 * without what is random. */
void ls_augment_shape(const struct ls_augment *augment, const int64_t record[3], int64_t shape[3]);
/* Whether all pictures become one size. */
static inline bool ls_augment_fixes_size(const struct ls_augment *augment)
{
    return augment->resizes && !augment->shortest;
}

/* Draws what becomes of a picture of this shape, and writes its boxes as they are then to `boxes`;
 * *count: how many are left. `random` false: nothing is random. `row` has `rows` rows
 * (data/annotation.h); `boxes` has room for as many. */
void ls_augment_draw(const struct ls_augment *augment, uint64_t key, uint64_t ordinal, bool random,
                     const int64_t record[3], const float *row, int64_t rows,
                     struct ls_sample_view *view, float *boxes, int64_t *count);
/* Makes the picture of a view; *out is in `room`, or the image itself where nothing is done. */
int ls_augment_picture(const struct ls_augment *augment, uint64_t key, uint64_t ordinal,
                       bool random, const struct ls_record_tensor *image,
                       const struct ls_sample_view *view, struct ls_augment_room *room,
                       struct ls_record_tensor *out, struct ls_problem *problem);
/* Takes boxes from a picture to a part of it, given in sizes of the picture: those of which nothing
 * is left, or which emit_constraint leaves out, are dropped. Returns how many are left. */
int64_t ls_augment_take_part(const struct ls_augment *augment, const struct ls_rectangle *part,
                             float *boxes, int64_t count);

#endif
