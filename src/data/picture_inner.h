/* What pictures are decoded with; for the files of pictures only.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PICTURE_INNER_H
#define LS_DATA_PICTURE_INNER_H

#include "data/picture.h"

/* That a picture is not larger than what is decoded. */
int ls_picture_check_size(uint64_t height, uint64_t width, struct ls_problem *problem);
/* LOCKSTEP_RESOURCE. */
int ls_picture_no_memory(struct ls_problem *problem);
/* A row of red, green, blue becomes grey, in place. */
void ls_picture_grey_row(uint8_t *row, int width);

/* The functions of picture.h for files that are known to be JPEG. */
int ls_jpeg_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header,
                 struct ls_problem *problem);
int ls_jpeg_decode(const uint8_t *bytes, size_t size, int channels, struct ls_buffer *buffer,
                   struct ls_picture *picture, struct ls_problem *problem);

/* What to do with a PNG file: what is not NULL is filled in. */
struct ls_png_task {
    struct ls_picture_header *header;
    struct ls_picture *picture; /* with `channels` */
    struct ls_label_map *map;
    bool is_map;
    int channels;
    struct ls_buffer *buffer;
};

int ls_png_run(const uint8_t *bytes, size_t size, const struct ls_png_task *task,
               struct ls_problem *problem);

#endif
