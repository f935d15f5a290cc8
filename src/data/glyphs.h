/* The digits of the synthetic source as strokes, in a box of 1 x 1 (x to the right, y down).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_GLYPHS_H
#define LS_DATA_GLYPHS_H

enum { LS_GLYPH_STROKES = 4, LS_GLYPH_POINTS = 14 };

/* A stroke goes through its points: in straight lines, or in a smooth curve. */
struct ls_stroke {
    int points; /* 0: no more strokes */
    int smooth;
    double at[LS_GLYPH_POINTS][2];
};

/* Ways of writing each digit; the second one may be empty. */
extern const struct ls_stroke ls_glyphs[10][2][LS_GLYPH_STROKES];

#endif
