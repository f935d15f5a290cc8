/* Pictures as JPEG and PNG files. See data/picture_write.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/picture_write.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "base/memory.h"

enum { QUALITY = 95, JPEG_SIDE_MAX = JPEG_MAX_DIMENSION, PNG_SIDE_MAX = 1000000 };

/* Row `y` with the channels of a pixel side by side, red first. */
static void interleave(const uint8_t *planes, const int64_t shape[3], int64_t y, uint8_t *row)
{
    const int64_t channels = shape[0], plane = shape[1] * shape[2];
    for (int64_t x = 0; x < shape[2]; x++)
        for (int64_t c = 0; c < channels; c++)
            row[x * channels + c] = planes[(channels - 1 - c) * plane + y * shape[2] + x];
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

struct jpeg_failure {
    struct jpeg_error_mgr manager;
    jmp_buf back;
};

static void fail_jpeg(j_common_ptr common)
{
    struct jpeg_failure *failure = (struct jpeg_failure *)(void *)common->err;
    longjmp(failure->back, 1);
}

/* The library allocates *file with malloc. */
static bool encode_jpeg(const uint8_t *planes, const int64_t shape[3], uint8_t *row,
                        unsigned char **file, unsigned long *size)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_failure failure;
    jpeg.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = fail_jpeg;
    if (setjmp(failure.back) != 0) {
        jpeg_destroy_compress(&jpeg);
        return false;
    }
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, file, size);
    jpeg.image_height = (JDIMENSION)shape[1];
    jpeg.image_width = (JDIMENSION)shape[2];
    jpeg.input_components = (int)shape[0];
    jpeg.in_color_space = shape[0] == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, QUALITY, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        interleave(planes, shape, (int64_t)jpeg.next_scanline, row);
        JSAMPROW rows[1] = {row};
        jpeg_write_scanlines(&jpeg, rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return true;
}

/* ---- PNG ------------------------------------------------------------------------------------- */

/* A file that grows; malloc's, as that of the JPEG library. */
struct png_file {
    unsigned char *bytes;
    size_t size, room;
};

static void append_png(png_structp png, png_bytep bytes, size_t size)
{
    struct png_file *file = png_get_io_ptr(png);
    if (file->room - file->size < size) {
        const size_t room = 2 * (file->room + size);
        unsigned char *more = realloc(file->bytes, room);
        if (more == NULL)
            png_error(png, "out of memory");
        file->bytes = more;
        file->room = room;
    }
    memcpy(file->bytes + file->size, bytes, size);
    file->size += size;
}

static void flush_png(png_structp png)
{
    (void)png;
}

/* In place of the library's own, which print. */
static void fail_png(png_structp png, png_const_charp message)
{
    (void)message;
    png_longjmp(png, 1);
}

static void warn_png(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static bool encode_png(const uint8_t *planes, const int64_t shape[3], uint8_t *row,
                       struct png_file *file)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, fail_png, warn_png);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    if (info == NULL || setjmp(png_jmpbuf(png)) != 0) {
        png_destroy_write_struct(&png, &info);
        return false;
    }
    png_set_write_fn(png, file, append_png, flush_png);
    png_set_IHDR(png, info, (png_uint_32)shape[2], (png_uint_32)shape[1], 8,
                 shape[0] == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int64_t y = 0; y < shape[1]; y++) {
        interleave(planes, shape, y, row);
        png_write_row(png, row);
    }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return true;
}

/* ---- Both ------------------------------------------------------------------------------------ */

int ls_picture_encode(const uint8_t *planes, const int64_t shape[3], const char *type,
                      uint8_t **bytes, size_t *size, struct ls_error *error)
{
    const bool jpeg = strcmp(type, "jpg") == 0 || strcmp(type, "jpeg") == 0;
    *bytes = NULL;
    *size = 0;
    if (!jpeg && strcmp(type, "png") != 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "use jpg or png",
                       "pictures cannot be written as '%s'", type);
    if (shape[0] != 1 && shape[0] != 3)
        return ls_fail(error, LOCKSTEP_DATA, NULL, NULL,
                       "a picture of %lld channels has no file format", (long long)shape[0]);
    const int64_t most = jpeg ? JPEG_SIDE_MAX : PNG_SIDE_MAX;
    if (shape[1] > most || shape[2] > most)
        return ls_fail(error, LOCKSTEP_DATA, NULL, NULL,
                       "a picture of %lld x %lld pixels is too large for %s, whose sides have at "
                       "most %lld",
                       (long long)shape[1], (long long)shape[2], jpeg ? "JPEG" : "PNG",
                       (long long)most);
    unsigned char *file = NULL;
    unsigned long length = 0;
    struct png_file png = {NULL, 0, 0};
    uint8_t *row = ls_alloc((size_t)(shape[0] * shape[2]), 1);
    bool made = row != NULL && (jpeg ? encode_jpeg(planes, shape, row, &file, &length)
                                     : encode_png(planes, shape, row, &png));
    if (!jpeg) {
        file = png.bytes;
        length = (unsigned long)png.size;
    }
    if (made)
        *bytes = ls_alloc(length, 1);
    made = made && *bytes != NULL;
    if (made) {
        memcpy(*bytes, file, length);
        *size = length;
    }
    free(file);
    ls_free(row);
    return made ? 0 : ls_fail_memory(error, "a picture's file");
}
