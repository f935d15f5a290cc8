/* Pictures and maps to the size and form of records.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_RESIZE_H
#define LS_DATA_RESIZE_H

#include "data/picture.h"

/* Makes the image of a record (C x H x W, BGR) of a picture; the pixels are in `buffer`. */
int ls_picture_to_record(const struct ls_picture *picture, struct ls_buffer *buffer,
                         struct ls_record *record, struct ls_problem *problem);

/* Resizes to height x width and makes a record as above. Bilinear, pixel centres aligned; when
 * shrinking, with `antialias` the triangle filter is widened so that no pixel of the picture is
 * left out; without, each pixel is made of the four nearest, as in OpenCV, to a difference of 1. In
 * integers, so the result is the same on every machine. */
int ls_picture_resize_to_record(const struct ls_picture *picture, int height, int width,
                                bool antialias, struct ls_buffer *buffer, struct ls_record *record,
                                struct ls_problem *problem);

/* Exchanges the first and the last of three channels of such a record, whose pixels are given:
 * blue, green, red become red, green, blue. */
void ls_record_swap_channels(const struct ls_record *record, uint8_t *pixels);

/* Resizes a map: output pixel i of n takes the input pixel that its centre lies in, of m that is
 * floor((i + 1/2) m / n). The result is in `buffer`, which `map` must not be. */
int ls_label_map_resize(struct ls_label_map *map, int height, int width, struct ls_buffer *buffer,
                        struct ls_problem *problem);

#endif
