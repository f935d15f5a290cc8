/* Pictures of either format.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "data/orientation.h"
#include "data/picture_inner.h"

int ls_picture_check_size(uint64_t height, uint64_t width, struct ls_problem *problem)
{
    if (height < 1 || width < 1)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL, "the picture has no pixels");
    if (height > LS_PICTURE_SIDE_MAX || width > LS_PICTURE_SIDE_MAX ||
        height * width > LS_PICTURE_PIXELS_MAX)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "the picture is too large (at most 30000 pixels a side and 67 "
                              "million in all)");
    return 0;
}

int ls_picture_no_memory(struct ls_problem *problem)
{
    return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
}

void ls_picture_grey_row(uint8_t *row, int width)
{
    for (int x = 0; x < width; x++) {
        const uint8_t *rgb = row + (size_t)3 * (size_t)x;
        row[x] = (uint8_t)((299U * rgb[0] + 587U * rgb[1] + 114U * rgb[2] + 500U) / 1000U);
    }
}

enum kind { UNKNOWN, JPEG, PNG };

static enum kind kind_of(const uint8_t *bytes, size_t size)
{
    if (size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
        return JPEG;
    if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        return PNG;
    return UNKNOWN;
}

static int unknown(size_t size, struct ls_problem *problem)
{
    return ls_problem_set(problem, LOCKSTEP_DATA, NULL, "the picture is %s",
                          size == 0 ? "empty" : "neither JPEG nor PNG");
}

size_t ls_picture_bytes(const struct ls_picture_header *header, int channels, int height, int width)
{
    size_t pixels = (size_t)header->height * (size_t)header->width;
    size_t made = height > 0 ? (size_t)height * (size_t)width : pixels;
    size_t columns = made != pixels ? (size_t)header->height * (size_t)width : 0; /* resized */
    int kept = channels > 0 ? channels : header->channels;
    int decoded = kept > header->channels ? kept : header->channels;
    return header->whole + pixels * (size_t)decoded + 4 * (size_t)header->width +
           columns * sizeof(uint16_t) + made * (size_t)kept;
}

static int look(const uint8_t *bytes, size_t size, struct ls_picture_header *header,
                struct ls_problem *problem)
{
    switch (kind_of(bytes, size)) {
    case JPEG:
        return ls_jpeg_look(bytes, size, header, problem);
    case PNG:
        return ls_png_run(bytes, size, &(struct ls_png_task){.header = header}, problem);
    default:
        return unknown(size, problem);
    }
}

int ls_picture_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header,
                    struct ls_problem *problem)
{
    LS_TRY(look(bytes, size, header, problem));
    header->turned = ls_picture_is_turned(bytes, size);
    return 0;
}

int ls_picture_decode(const uint8_t *bytes, size_t size, int channels, struct ls_buffer *buffer,
                      struct ls_picture *picture, struct ls_problem *problem)
{
    const struct ls_png_task task = {.picture = picture, .channels = channels, .buffer = buffer};
    switch (kind_of(bytes, size)) {
    case JPEG:
        return ls_jpeg_decode(bytes, size, channels, buffer, picture, problem);
    case PNG:
        return ls_png_run(bytes, size, &task, problem);
    default:
        return unknown(size, problem);
    }
}

static int map_run(const uint8_t *bytes, size_t size, const struct ls_png_task *task,
                   struct ls_problem *problem)
{
    if (kind_of(bytes, size) == PNG)
        return ls_png_run(bytes, size, task, problem);
    return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                          size == 0 ? "the label map is empty" : "a label map must be a PNG file");
}

int ls_label_map_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header,
                      struct ls_problem *problem)
{
    return map_run(bytes, size, &(struct ls_png_task){.header = header, .is_map = true}, problem);
}

int ls_label_map_decode(const uint8_t *bytes, size_t size, struct ls_buffer *buffer,
                        struct ls_label_map *map, struct ls_problem *problem)
{
    return map_run(bytes, size, &(struct ls_png_task){.map = map, .is_map = true, .buffer = buffer},
                   problem);
}
