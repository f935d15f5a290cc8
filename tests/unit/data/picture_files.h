/* Small JPEG and PNG files for tests, made with the libraries themselves.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_PICTURE_FILES_H
#define LS_TESTS_PICTURE_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h>
#include <png.h>

#include "support/support.h"

/* "<test directory>/<folder>/<name>", its folders made; one of the eight asked for last. */
static inline const char *file_at(const char *folder, const char *name)
{
    static char path[8][1024];
    static int next;
    char *out = path[next++ % 8];
    snprintf(out, sizeof path[0], "%s/%s", ls_test_path(folder), name);
    for (char *p = out + 1; *p != '\0'; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(out, 0777);
            *p = '/';
        }
    return out;
}

/* Pixel (y, x, c) of the picture that the functions below write: smooth, so that JPEG keeps it. */
static inline uint8_t picture_pixel(int y, int x, int c, int salt)
{
    return (uint8_t)((y * 3 + x * 2 + c * 40 + salt) % 200 + 20);
}

static inline uint8_t *picture_pixels(int height, int width, int channels, int salt)
{
    uint8_t *pixels = malloc((size_t)height * (size_t)width * (size_t)channels);
    uint8_t *at = pixels;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *at++ = picture_pixel(y, x, c, salt);
    return pixels;
}

/* H x W x C pixels as a file in memory, to be freed with free(). Channels: 1, 3, or 4 for CMYK. */
static inline uint8_t *jpeg_file(const uint8_t *pixels, int height, int width, int channels,
                                 bool progressive, size_t *size)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr handler;
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    jpeg.err = jpeg_std_error(&handler);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &length);
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    jpeg.input_components = channels;
    jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    if (progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)jpeg.next_scanline * (size_t)width *
                                                          (size_t)channels);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    *size = length;
    return bytes;
}

struct png_sink {
    uint8_t *bytes;
    size_t size;
};

static inline void png_sink_write(png_structp png, png_bytep bytes, size_t count)
{
    struct png_sink *sink = png_get_io_ptr(png);
    sink->bytes = realloc(sink->bytes, sink->size + count);
    memcpy(sink->bytes + sink->size, bytes, count);
    sink->size += count;
}

/* Rows of `row_bytes` to a file of any colour type; a palette of 16 greens for
 * PNG_COLOR_TYPE_PALETTE.
 */
static inline uint8_t *png_file(const uint8_t *rows, size_t row_bytes, int height, int width,
                                int type, int bits, bool interlaced, size_t *size)
{
    struct png_sink sink = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &sink, png_sink_write, NULL);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, bits, type,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_color palette[16];
    for (int i = 0; i < 16; i++)
        palette[i] = (png_color){(png_byte)i, (png_byte)(i * 16), (png_byte)(255 - i)};
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, 1 << bits);
    png_bytep *pointers = calloc((size_t)height, sizeof *pointers);
    for (int y = 0; y < height; y++)
        pointers[y] = (png_bytep)(uintptr_t)(rows + (size_t)y * row_bytes);
    png_write_info(png, info);
    png_write_image(png, pointers);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(pointers);
    *size = sink.size;
    return sink.bytes;
}

/* The smooth picture as a JPEG or PNG file, by the ending of the name. */
static inline void write_picture(const char *path, int height, int width, int channels, int salt)
{
    uint8_t *pixels = picture_pixels(height, width, channels, salt);
    size_t size, length = strlen(path);
    bool png = length > 4 && (path[length - 1] == 'g' || path[length - 1] == 'G') &&
               (path[length - 2] == 'n' || path[length - 2] == 'N');
    uint8_t *bytes =
        png ? png_file(pixels, (size_t)width * (size_t)channels, height, width,
                       channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8, false, &size)
            : jpeg_file(pixels, height, width, channels, false, &size);
    ls_test_write(path, bytes, size);
    free(bytes);
    free(pixels);
}

#endif
