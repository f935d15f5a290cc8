/* Pictures: JPEG and PNG files in memory to pixels, and their sizes.
 *
 * What is wrong is LOCKSTEP_DATA ("it is cut off"), but for memory that cannot be had:
 * LOCKSTEP_RESOURCE.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PICTURE_H
#define LS_DATA_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "data/source.h"

/* Limits on what a file may ask us to decode. */
enum { LS_PICTURE_SIDE_MAX = 30000, LS_PICTURE_PIXELS_MAX = 1 << 26 };

struct ls_picture_header {
    int height, width;
    int channels; /* as they are: 1 grey, 3 colour (transparency is left out) */
    bool turned;  /* a mark says that it is to be turned, which is not done */
    size_t whole; /* bytes that the decoder needs for all of it at once: coefficients of a JPEG that
                     comes in several scans; 0: it goes row by row */
};

struct ls_picture {
    int height, width;
    int channels;          /* 1, or 3: red, green, blue */
    const uint8_t *pixels; /* H x W x C */
};

/* Reads the header of a JPEG or PNG file. */
int ls_picture_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header,
                    struct ls_problem *problem);

/* Decodes a file to `channels` (3 or 1; 0: as it is). A file whose pixels are cut off or damaged
 * is refused. The pixels are in `buffer`. Grey from a JPEG is its luma; from other colours
 * 0.299 R + 0.587 G + 0.114 B, rounded, as in OpenCV. Orientation marks are not followed. */
int ls_picture_decode(const uint8_t *bytes, size_t size, int channels, struct ls_buffer *buffer,
                      struct ls_picture *picture, struct ls_problem *problem);

/* Bytes that decoding it takes, and making a record of `channels` (0: as they are) of it, resized
 * to height x width (0: not). */
size_t ls_picture_bytes(const struct ls_picture_header *header, int channels, int height,
                        int width);

/* Label maps: PNG files whose pixels are numbers, of 1 to 16 bits, grey or by palette. The number
 * that is stored is the label, whatever colour it stands for. */
struct ls_label_map {
    int height, width;
    uint16_t *labels; /* H x W */
};
/* Reads the header of a map. */
int ls_label_map_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header,
                      struct ls_problem *problem);
/* Decodes a map; the labels are in `buffer`. */
int ls_label_map_decode(const uint8_t *bytes, size_t size, struct ls_buffer *buffer,
                        struct ls_label_map *map, struct ls_problem *problem);

#endif
