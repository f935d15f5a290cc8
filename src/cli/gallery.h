/* Samples drawn in the terminal with what the net says about them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_GALLERY_H
#define LS_CLI_GALLERY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/predictions.h"
#include "lockstep/lockstep.h"

enum { LS_CLI_GALLERY_MAX = 10 }; /* pictures in a row at most */

/* Pictures that wait to be drawn together. */
struct ls_cli_gallery {
    float *pixels[LS_CLI_GALLERY_MAX];
    int64_t shapes[LS_CLI_GALLERY_MAX][3];
    char captions[LS_CLI_GALLERY_MAX][2][96];
    int marks[LS_CLI_GALLERY_MAX];
    size_t count;
};

/* Takes a sample's picture (`pixels` becomes the gallery's) with its prediction and its label
 * (< 0: not known). Draws the gallery to `out` first if it is full. */
void ls_cli_gallery_add(struct ls_cli_gallery *gallery, FILE *out, const int64_t shape[3],
                        float *pixels, const struct ls_cli_predictions *ranked, const float *values,
                        int label);

/* The same with two lines below the picture. */
void ls_cli_gallery_put(struct ls_cli_gallery *gallery, FILE *out, const int64_t shape[3],
                        float *pixels, const char *first, const char *second);

/* Draws what is left, and frees it. */
void ls_cli_gallery_draw(struct ls_cli_gallery *gallery, FILE *out);

#endif
