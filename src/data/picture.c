/* JPEG through libjpeg-turbo, PNG through libpng. Both report errors by a call that must not
 * return: it jumps back to where decoding began (setjmp), where everything is released.
 *
 * The decoder's choices that change pixels are fixed: the accurate integer DCT and "fancy"
 * upsampling, whose results do not depend on the processor.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/picture.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include "base/memory.h"

enum { SCANS_MAX = 200 }; /* of a progressive JPEG; each costs a pass over the picture */

static const char *check_size(uint64_t height, uint64_t width)
{
    if (height < 1 || width < 1)
        return "the picture has no pixels";
    if (height > LS_PICTURE_SIDE_MAX || width > LS_PICTURE_SIDE_MAX ||
        height * width > LS_PICTURE_PIXELS_MAX)
        return "the picture is too large (at most 30000 pixels a side and 67 million in all)";
    return NULL;
}

/* ---- JPEG ---- */

struct jpeg_job {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr handler;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    const char *problem;
};

static _Thread_local char jpeg_message[JMSG_LENGTH_MAX + 32];

_Noreturn static void jpeg_give_up(struct jpeg_job *job, const char *problem)
{
    job->problem = problem;
    longjmp(job->back, 1);
}

static void jpeg_failed(j_common_ptr common)
{
    struct jpeg_job *job = common->client_data;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    snprintf(jpeg_message, sizeof jpeg_message, "damaged JPEG: %s", text);
    jpeg_give_up(job, jpeg_message);
}

/* Level -1 is a warning. After most of them pixels are made up: failures here. Odd marks of
 * programs and extra bytes between markers are common in good files. */
static void jpeg_warned(j_common_ptr common, int level)
{
    if (level != -1)
        return;
    switch (common->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
        return;
    default:
        jpeg_failed(common);
    }
}

static void jpeg_silent(j_common_ptr common)
{
    (void)common;
}

static void jpeg_progress(j_common_ptr common)
{
    const struct jpeg_decompress_struct *jpeg = (const struct jpeg_decompress_struct *)common;
    if (jpeg->input_scan_number > SCANS_MAX)
        jpeg_give_up(common->client_data, "the JPEG has too many scans");
}

/* Up to the header. jpeg_create_decompress must already be covered by setjmp of the caller. */
static void jpeg_begin(struct jpeg_job *job, const uint8_t *bytes, size_t size)
{
    jpeg_create_decompress(&job->jpeg);
    job->jpeg.client_data = job;
    job->progress.progress_monitor = jpeg_progress;
    job->jpeg.progress = &job->progress;
    jpeg_mem_src(&job->jpeg, bytes, (unsigned long)size);
    jpeg_read_header(&job->jpeg, TRUE);
    const char *problem = check_size(job->jpeg.image_height, job->jpeg.image_width);
    if (problem != NULL)
        jpeg_give_up(job, problem);
}

static struct jpeg_job *jpeg_new(void)
{
    struct jpeg_job *job = ls_alloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->jpeg.err = jpeg_std_error(&job->handler);
    job->jpeg.client_data = job;
    job->handler.error_exit = jpeg_failed;
    job->handler.emit_message = jpeg_warned;
    job->handler.output_message = jpeg_silent;
    return job;
}

static void jpeg_free(struct jpeg_job *job)
{
    jpeg_destroy_decompress(&job->jpeg);
    ls_free(job);
}

/* The coefficients of a picture that comes in several scans are kept until the last one. */
static size_t jpeg_coefficients(struct jpeg_decompress_struct *jpeg)
{
    size_t bytes = 0;
    if (!jpeg_has_multiple_scans(jpeg))
        return 0;
    for (int i = 0; i < jpeg->num_components; i++) {
        const jpeg_component_info *component = &jpeg->comp_info[i];
        bytes += (size_t)component->width_in_blocks * component->height_in_blocks * sizeof(JBLOCK);
    }
    return bytes;
}

static const char *jpeg_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header)
{
    struct jpeg_job *job = jpeg_new();
    if (job == NULL)
        return ls_record_no_memory;
    if (setjmp(job->back) == 0) {
        jpeg_begin(job, bytes, size);
        header->height = (int)job->jpeg.image_height;
        header->width = (int)job->jpeg.image_width;
        header->channels = job->jpeg.num_components == 1 ? 1 : 3;
        header->whole = jpeg_coefficients(&job->jpeg);
    }
    const char *problem = job->problem;
    jpeg_free(job);
    return problem;
}

/* A row of CMYK to RGB, in place. Adobe's programs, which are the ones that write such files, store
 * the complements. */
static void cmyk_row(uint8_t *row, int width, bool complements)
{
    uint8_t *rgb = row;
    for (int x = 0; x < width; x++, row += 4, rgb += 3) {
        unsigned key = complements ? row[3] : 255U - row[3];
        for (int c = 0; c < 3; c++) {
            unsigned ink = complements ? row[c] : 255U - row[c];
            rgb[c] = (uint8_t)((ink * key + 127) / 255);
        }
    }
}

static void grey_row(uint8_t *row, int width)
{
    for (int x = 0; x < width; x++) {
        const uint8_t *rgb = row + (size_t)3 * (size_t)x;
        row[x] = (uint8_t)((299U * rgb[0] + 587U * rgb[1] + 114U * rgb[2] + 500U) / 1000U);
    }
}

/* Decodes all rows. Four components need a wider buffer for the row at hand, so one extra pixel a
 * row is reserved at the very end of the picture. */
static void jpeg_rows(struct jpeg_job *job, int channels, struct ls_buffer *buffer,
                      struct ls_picture *picture)
{
    struct jpeg_decompress_struct *jpeg = &job->jpeg;
    if (channels == 0)
        channels = jpeg->num_components == 1 ? 1 : 3;
    bool cmyk = jpeg->num_components == 4;
    jpeg->out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    jpeg_start_decompress(jpeg);
    int width = (int)jpeg->output_width, height = (int)jpeg->output_height;
    size_t row_bytes = (size_t)width * (size_t)channels;
    uint8_t *pixels = ls_buffer_reserve(buffer, row_bytes * (size_t)height + 4 * (size_t)width, 1);
    if (pixels == NULL)
        jpeg_give_up(job, ls_record_no_memory);
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *row = pixels + row_bytes * jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, &row, 1);
        if (cmyk)
            cmyk_row(row, width, jpeg->saw_Adobe_marker);
        if (cmyk && channels == 1)
            grey_row(row, width);
    }
    jpeg_finish_decompress(jpeg);
    *picture = (struct ls_picture){height, width, channels, pixels};
}

static const char *jpeg_decode(const uint8_t *bytes, size_t size, int channels,
                               struct ls_buffer *buffer, struct ls_picture *picture)
{
    struct jpeg_job *job = jpeg_new();
    if (job == NULL)
        return ls_record_no_memory;
    if (setjmp(job->back) == 0) {
        jpeg_begin(job, bytes, size);
        jpeg_rows(job, channels, buffer, picture);
    }
    const char *problem = job->problem;
    jpeg_free(job);
    return problem;
}

/* ---- PNG ---- */

struct png_job {
    png_structp png;
    png_infop info;
    const uint8_t *at, *end;
    const char *problem;
};

static _Thread_local char png_message[160];

_Noreturn static void png_give_up(png_structp png, const char *problem)
{
    struct png_job *job = png_get_error_ptr(png);
    job->problem = problem;
    longjmp(png_jmpbuf(png), 1);
}

_Noreturn static void png_failed(png_structp png, png_const_charp text)
{
    snprintf(png_message, sizeof png_message, "damaged PNG: %s", text);
    png_give_up(png, png_message);
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
    const char *problem =
        check_size(png_get_image_height(png, job->info), png_get_image_width(png, job->info));
    if (problem != NULL)
        png_give_up(png, problem);
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
        png_give_up(png, "damaged PNG: odd rows");
    uint8_t *pixels = ls_buffer_reserve(buffer, height, row_bytes);
    if (pixels == NULL)
        png_give_up(png, ls_record_no_memory);
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < height; y++)
            png_read_row(png, pixels + y * row_bytes, NULL);
    png_read_end(png, NULL);
    if (colour && channels == 1)
        for (size_t y = 0; y < height; y++) {
            grey_row(pixels + y * row_bytes, (int)width);
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
        png_give_up(job->png, "a label map has one number for each pixel: a PNG file of grey "
                              "values or with a palette, without transparency");
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
        png_give_up(png, "damaged PNG: odd rows");
    uint16_t *labels = ls_buffer_reserve(buffer, height * width, sizeof *labels);
    if (labels == NULL)
        png_give_up(png, ls_record_no_memory);
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

/* What to do with a file: what is not NULL is filled in. */
struct png_task {
    struct ls_picture_header *header;
    struct ls_picture *picture; /* with `channels` */
    struct ls_label_map *map;
    bool is_map;
    int channels;
    struct ls_buffer *buffer;
};

static void png_do(struct png_job *job, const struct png_task *task)
{
    png_set_up(job);
    if (task->is_map)
        png_check_map(job);
    if (task->header != NULL)
        *task->header = (struct ls_picture_header){(int)png_get_image_height(job->png, job->info),
                                                   (int)png_get_image_width(job->png, job->info),
                                                   png_is_colour(job) && !task->is_map ? 3 : 1, 0};
    if (task->picture != NULL)
        png_rows(job, task->channels, task->buffer, task->picture);
    if (task->map != NULL)
        png_labels(job, task->buffer, task->map);
}

/* Runs a task under libpng's setjmp. */
static const char *png_run(const uint8_t *bytes, size_t size, const struct png_task *task)
{
    struct png_job *job = ls_alloc(1, sizeof *job);
    if (job == NULL)
        return ls_record_no_memory;
    job->at = bytes;
    job->end = bytes + size;
    job->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, job, png_failed, png_warned);
    if (job->png != NULL)
        job->info = png_create_info_struct(job->png);
    if (job->info == NULL)
        job->problem = ls_record_no_memory;
    else if (setjmp(png_jmpbuf(job->png)) == 0)
        png_do(job, task);
    const char *problem = job->problem;
    if (job->png != NULL)
        png_destroy_read_struct(&job->png, &job->info, NULL);
    ls_free(job);
    return problem;
}

/* ---- Both ---- */

enum kind { UNKNOWN, JPEG, PNG };

static enum kind kind_of(const uint8_t *bytes, size_t size)
{
    if (size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
        return JPEG;
    if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        return PNG;
    return UNKNOWN;
}

static const char *unknown(size_t size)
{
    return size == 0 ? "the picture is empty" : "the picture is neither JPEG nor PNG";
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

const char *ls_picture_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header)
{
    switch (kind_of(bytes, size)) {
    case JPEG:
        return jpeg_look(bytes, size, header);
    case PNG:
        return png_run(bytes, size, &(struct png_task){.header = header});
    default:
        return unknown(size);
    }
}

const char *ls_picture_decode(const uint8_t *bytes, size_t size, int channels,
                              struct ls_buffer *buffer, struct ls_picture *picture)
{
    switch (kind_of(bytes, size)) {
    case JPEG:
        return jpeg_decode(bytes, size, channels, buffer, picture);
    case PNG:
        return png_run(
            bytes, size,
            &(struct png_task){.picture = picture, .channels = channels, .buffer = buffer});
    default:
        return unknown(size);
    }
}

static const char *map_run(const uint8_t *bytes, size_t size, const struct png_task *task)
{
    if (kind_of(bytes, size) == PNG)
        return png_run(bytes, size, task);
    return size == 0 ? "the label map is empty" : "a label map must be a PNG file";
}

const char *ls_label_map_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header)
{
    return map_run(bytes, size, &(struct png_task){.header = header, .is_map = true});
}

const char *ls_label_map_decode(const uint8_t *bytes, size_t size, struct ls_buffer *buffer,
                                struct ls_label_map *map)
{
    return map_run(bytes, size, &(struct png_task){.map = map, .is_map = true, .buffer = buffer});
}
