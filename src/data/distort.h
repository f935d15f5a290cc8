/* Colours changed at random: distort_param of SSD's fork.
 *
 * Brightness, contrast, saturation, hue, and the order of the channels, each with its probability.
 * In half of the samples contrast comes second, in the others behind the hue. Saturation and hue
 * are those of HSV as OpenCV has it in 8 bits: hues are 0..179, everything else 0..255.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DISTORT_H
#define LS_DATA_DISTORT_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep_names.h"

/* What was drawn for a sample. */
struct ls_distortion {
    bool late_contrast;
    float brightness; /* added; 0: none */
    float contrast;   /* a factor; 1: none */
    float saturation; /* a factor; 1: none */
    float hue;        /* added; 0: none */
    int order;        /* of six; 0: blue, green, red, as they are */
};

/* What is wrong with the numbers of a message: the field and why, or NULL. */
const char *ls_distortion_check(const Lockstep__DistortionParameter *param, const char **why);
/* Whether it needs three channels. */
bool ls_distortion_of_colours(const Lockstep__DistortionParameter *param);

/* Draws with elements from `first` on, of which it takes LS_DISTORTION_DRAWS. */
enum { LS_DISTORTION_DRAWS = 11 };
struct ls_distortion ls_distortion_draw(const Lockstep__DistortionParameter *param, uint64_t key,
                                        uint64_t ordinal, uint64_t first);
/* Whether a sample is changed at all. */
bool ls_distortion_changes(const struct ls_distortion *distortion);
/* Changes `channels` planes of `size` pixels, 1 or blue, green, red. Every number is rounded to
 * the nearest, halves upwards, and kept in 0..255 after each step. */
void ls_distortion_apply(const struct ls_distortion *distortion, int64_t channels, int64_t size,
                         uint8_t *planes);

#endif
