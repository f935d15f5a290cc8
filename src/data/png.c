/* PNG through libpng, which reports errors as libjpeg does (jpeg.c): pictures, and label maps.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "base/memory.h"
#include "data/picture_inner.h"

struct png_job {
    png_structp png;
    png_infop info;
    const uint8_t *at, *end;
    bool starved; /* libpng, or zlib below it, got no memory */
    int status;
    struct ls_problem *problem; /* the caller's */
};

_Noreturn static void png_give_up(png_structp png, int status)
{
    struct png_job *job = png_get_error_ptr(png);
    job->status = status;
    longjmp(png_jmpbuf(png), 1);
}

/* A file that needs memory which is not there is not damaged. */
_Noreturn static void png_failed(png_structp png, png_const_charp text)
{
    struct png_job *job = png_get_error_ptr(png);
    png_give_up(png, job->starved ? ls_picture_no_memory(job->problem)
                                  : ls_problem_set(job->problem, LOCKSTEP_DATA, NULL,
                                                   "damaged PNG: %s", text));
}

static png_voidp png_allocate(png_structp png, png_alloc_size_t size)
{
    struct png_job *job = png_get_mem_ptr(png);
    void *memory = ls_resize(NULL, 1, size);
    job->starved = job->starved || memory == NULL;
    return memory;
}

static void png_release(png_structp png, png_voidp memory)
{
    (void)png;
    ls_free(memory);
}

static void png_warned(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void png_take(png_structp png, png_bytep to, size_t count)
{
    struct png_job *job = png_get_io_ptr(png);
    if (count > (size_t)(job->end - job->at))
        png_failed(png, "the file is cut off");
    memcpy(to, job->at, count);
    job->at += count;
}

/* Rows of 8-bit grey or RGB, whatever the file has. Grey to colour is done by libpng, colour to
 * grey by us, so that its arithmetic is ours. */
static void png_set_up(struct png_job *job)
{
    png_structp png = job->png;
    png_set_user_limits(png, LS_PICTURE_SIDE_MAX, LS_PICTURE_SIDE_MAX);
    png_set_chunk_malloc_max(png, 8 << 20);
    png_set_read_fn(png, job, png_take);
    png_read_info(png, job->info);
    int status = ls_picture_check_size(png_get_image_height(png, job->info),
                                       png_get_image_width(png, job->info), job->problem);
    if (status != 0)
        png_give_up(png, status);
}

static bool png_is_colour(const struct png_job *job)
{
    return (png_get_color_type(job->png, job->info) & PNG_COLOR_MASK_COLOR) != 0;
}

static void png_rows(struct png_job *job, int channels, struct ls_buffer *buffer,
                     struct ls_picture *picture)
{
    png_structp png = job->png;
    bool colour = png_is_colour(job);
    if (channels == 0)
        channels = colour ? 3 : 1;
    png_set_strip_16(png);
    png_set_packing(png);
    png_set_expand(png); /* palettes to RGB, few bits to eight */
    png_set_strip_alpha(png);
    if (channels == 3 && !colour)
        png_set_gray_to_rgb(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, job->info);
    size_t width = png_get_image_width(png, job->info);
    size_t height = png_get_image_height(png, job->info);
    size_t row_bytes = png_get_rowbytes(png, job->info);
    if (row_bytes != width * (colour || channels == 3 ? 3 : 1))
        png_failed(png, "odd rows");
    uint8_t *pixels = ls_buffer_reserve(buffer, height, row_bytes);
    if (pixels == NULL)
        png_give_up(png, ls_picture_no_memory(job->problem));
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < height; y++)
            png_read_row(png, pixels + y * row_bytes, NULL);
    png_read_end(png, NULL);
    if (colour && channels == 1)
        for (size_t y = 0; y < height; y++) {
            ls_picture_grey_row(pixels + y * row_bytes, (int)width);
            memmove(pixels + y * width, pixels + y * row_bytes, width);
        }
    *picture = (struct ls_picture){(int)height, (int)width, channels, pixels};
}

/* Bytes [count, 2 count) become the first `count` numbers: each is read before it is overwritten.
 */
static void widen(uint8_t *bytes, size_t count, uint16_t *out)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t number = bytes[count + i];
        memcpy(out + i, &number, sizeof number);
    }
}

/* PNG stores the high byte first. */
static void join_bytes(uint8_t *bytes, size_t count, uint16_t *out)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t number = (uint16_t)(bytes[2 * i] << 8 | bytes[2 * i + 1]);
        memcpy(out + i, &number, sizeof number);
    }
}

static void png_check_map(struct png_job *job)
{
    int type = png_get_color_type(job->png, job->info);
    if (type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE)
        png_give_up(job->png,
                    ls_problem_set(job->problem, LOCKSTEP_DATA, NULL,
                                   "a label map has one number for each pixel: a PNG file of grey "
                                   "values or with a palette, without transparency"));
}

static void png_labels(struct png_job *job, struct ls_buffer *buffer, struct ls_label_map *map)
{
    png_structp png = job->png;
    size_t bytes = png_get_bit_depth(png, job->info) == 16 ? 2 : 1;
    png_set_packing(png); /* few bits to eight, as numbers */
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, job->info);
    size_t width = png_get_image_width(png, job->info);
    size_t height = png_get_image_height(png, job->info);
    if (png_get_rowbytes(png, job->info) != width * bytes)
        png_failed(png, "odd rows");
    uint16_t *labels = ls_buffer_reserve(buffer, height * width, sizeof *labels);
    if (labels == NULL)
        png_give_up(png, ls_picture_no_memory(job->problem));
    uint8_t *whole = buffer->data;
    uint8_t *rows = bytes == 1 ? whole + height * width : whole;
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < height; y++)
            png_read_row(png, rows + y * width * bytes, NULL);
    png_read_end(png, NULL);
    if (bytes == 1)
        widen(whole, height * width, labels);
    else
        join_bytes(whole, height * width, labels);
    *map = (struct ls_label_map){(int)height, (int)width, labels};
}

static void png_do(struct png_job *job, const struct ls_png_task *task)
{
    png_set_up(job);
    if (task->is_map)
        png_check_map(job);
    if (task->header != NULL)
        *task->header =
            (struct ls_picture_header){.height = (int)png_get_image_height(job->png, job->info),
                                       .width = (int)png_get_image_width(job->png, job->info),
                                       .channels = png_is_colour(job) && !task->is_map ? 3 : 1};
    if (task->picture != NULL)
        png_rows(job, task->channels, task->buffer, task->picture);
    if (task->map != NULL)
        png_labels(job, task->buffer, task->map);
}

/* Runs a task under libpng's setjmp. */
int ls_png_run(const uint8_t *bytes, size_t size, const struct ls_png_task *task,
               struct ls_problem *problem)
{
    struct png_job *job = ls_alloc(1, sizeof *job);
    if (job == NULL)
        return ls_picture_no_memory(problem);
    job->problem = problem;
    job->at = bytes;
    job->end = bytes + size;
    job->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, job, png_failed, png_warned, job,
                                        png_allocate, png_release);
    if (job->png != NULL)
        job->info = png_create_info_struct(job->png);
    if (job->info == NULL)
        job->status = ls_picture_no_memory(problem);
    else if (setjmp(png_jmpbuf(job->png)) == 0)
        png_do(job, task);
    int status = job->status;
    if (job->png != NULL)
        png_destroy_read_struct(&job->png, &job->info, NULL);
    ls_free(job);
    return status;
}
