/* Decoding and resizing pictures.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/orientation.h"
#include "data/picture.h"
#include "data/resize.h"
#include "data_trial.h"
#include "picture_files.h"
#include "support/memory_limit.h"
#include "support/turned_picture.h"

static struct ls_buffer buffer, second;

static struct ls_picture decode(const uint8_t *bytes, size_t size, int channels)
{
    struct ls_picture picture;
    struct ls_problem problem;
    if (ls_picture_decode(bytes, size, channels, &buffer, &picture, &problem) != 0)
        fail_msg("%s", problem.message);
    return picture;
}

static int grey_of(const uint8_t *rgb)
{
    return (int)floor(0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] + 0.5);
}

static void png_is_decoded_exactly(void **state)
{
    (void)state;
    for (int interlaced = 0; interlaced < 2; interlaced++)
        for (int channels = 1; channels <= 3; channels += 2) {
            uint8_t *pixels = picture_pixels(13, 9, channels, 5);
            size_t size;
            uint8_t *file = png_file(pixels, (size_t)(9 * channels), 13, 9,
                                     channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8,
                                     interlaced, &size);
            struct ls_picture_header header;
            assert_int_equal(ls_picture_look(file, size, &header, NULL), 0);
            assert_int_equal(header.height, 13);
            assert_int_equal(header.width, 9);
            assert_int_equal(header.channels, channels);
            struct ls_picture p = decode(file, size, 0);
            assert_int_equal(p.channels, channels);
            assert_memory_equal(p.pixels, pixels, (size_t)(13 * 9 * channels));
            p = decode(file, size, 3);
            for (int i = 0; i < 13 * 9 * 3; i++)
                assert_int_equal(p.pixels[i], pixels[channels == 3 ? i : i / 3]);
            p = decode(file, size, 1);
            for (int i = 0; i < 13 * 9; i++)
                assert_int_equal(p.pixels[i], channels == 3 ? grey_of(pixels + 3 * i) : pixels[i]);
            free(file);
            free(pixels);
        }
}

/* Memory of decoding: the pixels, a record, rows between two sizes; of a JPEG in several scans
 * also its coefficients (blocks of 8 x 8, here for three planes of two sizes). */
static void decoding_takes_the_bytes_foretold(void **state)
{
    (void)state;
    uint8_t *pixels = picture_pixels(80, 96, 3, 5);
    for (int scans = 0; scans < 2; scans++) {
        size_t size, whole = scans == 0 ? 0 : (10 * 12 + 2 * 5 * 6) * 64 * sizeof(short);
        uint8_t *file = jpeg_file(pixels, 80, 96, 3, scans == 1, &size);
        struct ls_picture_header header;
        assert_int_equal(ls_picture_look(file, size, &header, NULL), 0);
        assert_int_equal(header.whole, whole);
        size_t decoded = whole + 80 * 96 * 3 + 96 * 4;
        assert_int_equal(ls_picture_bytes(&header, 0, 0, 0), decoded + 80 * 96 * 3);
        assert_int_equal(ls_picture_bytes(&header, 1, 0, 0), decoded + 80 * 96);
        assert_int_equal(ls_picture_bytes(&header, 3, 20, 30), decoded + 80 * 30 * 2 + 20 * 30 * 3);
        free(file);
    }
    free(pixels);
}

/* Palettes, transparency, sixteen bits, one bit: all become eight-bit grey or colour. */
static void all_kinds_of_png_become_grey_or_colour(void **state)
{
    (void)state;
    uint8_t rows[4 * 64];
    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (uint8_t)(i * 37 + 1);
    size_t size;
    uint8_t *file = png_file(rows, 8, 4, 4, PNG_COLOR_TYPE_GRAY_ALPHA, 8, false, &size);
    struct ls_picture p = decode(file, size, 0);
    assert_int_equal(p.channels, 1);
    assert_int_equal(p.pixels[5], rows[8 + 2]);
    free(file);
    file = png_file(rows, 16, 4, 4, PNG_COLOR_TYPE_RGB_ALPHA, 8, false, &size);
    p = decode(file, size, 0);
    assert_int_equal(p.channels, 3);
    assert_int_equal(p.pixels[3 * 5 + 2], rows[16 + 4 + 2]);
    free(file);
    file = png_file(rows, 24, 4, 4, PNG_COLOR_TYPE_RGB, 16, false, &size);
    p = decode(file, size, 0);
    assert_int_equal(p.pixels[3 * 5 + 1], rows[24 + 6 + 2]);
    free(file);
    file = png_file(rows, 1, 4, 4, PNG_COLOR_TYPE_GRAY, 1, false, &size);
    p = decode(file, size, 0);
    assert_int_equal(p.pixels[0], (rows[0] & 0x80) != 0 ? 255 : 0);
    free(file);
    file = png_file(rows, 2, 4, 4, PNG_COLOR_TYPE_PALETTE, 4, false, &size);
    p = decode(file, size, 0);
    assert_int_equal(p.channels, 3);
    assert_int_equal(p.pixels[1], (rows[0] >> 4) * 16);
    free(file);
}

static void jpeg_is_decoded_within_its_loss(void **state)
{
    (void)state;
    for (int progressive = 0; progressive < 2; progressive++)
        for (int channels = 1; channels <= 3; channels += 2) {
            uint8_t *pixels = picture_pixels(24, 40, channels, 0);
            size_t size;
            uint8_t *file = jpeg_file(pixels, 24, 40, channels, progressive, &size);
            struct ls_picture p = decode(file, size, 0);
            assert_int_equal(p.channels, channels);
            double sum = 0;
            for (int i = 0; i < 24 * 40 * channels; i++)
                sum += abs(p.pixels[i] - pixels[i]);
            assert_true(sum / (24 * 40 * channels) < 4);
            p = decode(file, size, 4 - channels);
            assert_int_equal(p.channels, 4 - channels);
            free(file);
            free(pixels);
        }
}

static void cmyk_becomes_colour(void **state)
{
    (void)state;
    uint8_t pixels[16 * 16 * 4];
    for (int i = 0; i < 256; i++) { /* as Adobe stores it: 255 is no ink */
        const uint8_t orange[4] = {255, 128, 0, 200};
        memcpy(pixels + 4 * i, orange, 4);
    }
    size_t size;
    uint8_t *file = jpeg_file(pixels, 16, 16, 4, false, &size);
    struct ls_picture p = decode(file, size, 0);
    assert_int_equal(p.channels, 3);
    assert_in_range(p.pixels[0], 195, 203); /* 255 x 200 / 255 */
    assert_in_range(p.pixels[1], 95, 105);
    assert_in_range(p.pixels[2], 0, 4);
    p = decode(file, size, 1);
    assert_in_range(p.pixels[255], 113, 124);
    free(file);
}

/* A truncated file is refused, wherever it ends: only whole pictures are accepted. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    uint8_t *pixels = picture_pixels(20, 20, 3, 9);
    for (int kind = 0; kind < 3; kind++) {
        size_t size;
        uint8_t *file = kind == 0 ? png_file(pixels, 60, 20, 20, PNG_COLOR_TYPE_RGB, 8, 0, &size)
                                  : jpeg_file(pixels, 20, 20, 3, kind == 2, &size);
        for (size_t n = 0; n < size; n++) {
            uint8_t *cut = malloc(n + (n == 0));
            memcpy(cut, file, n);
            struct ls_picture picture;
            /* The very last bytes of a JPEG are marks behind its pixels. */
            if (ls_picture_decode(cut, n, 3, &buffer, &picture, NULL) == 0 && n + 4 < size)
                fail_msg("kind %d is accepted with %zu of %zu bytes", kind, n, size);
            free(cut);
        }
        free(file);
    }
    free(pixels);
}

/* Damage at any place gives pixels within the sizes, or a message. */
static void random_damage_is_answered(void **state)
{
    (void)state;
    uint8_t *pixels = picture_pixels(17, 11, 3, 1);
    uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "picture");
    for (int kind = 0; kind < 3; kind++) {
        size_t size;
        uint8_t *file = kind == 0 ? png_file(pixels, 33, 17, 11, PNG_COLOR_TYPE_RGB, 8, 1, &size)
                                  : jpeg_file(pixels, 17, 11, 3, kind == 2, &size);
        int refused = 0;
        for (uint64_t trial = 0; trial < 1500; trial++) {
            uint8_t *copy = malloc(size);
            memcpy(copy, file, size);
            copy[ls_random_below(key, trial, 0, (uint32_t)size)] = (uint8_t)trial;
            struct ls_picture p;
            struct ls_picture_header header;
            (void)ls_picture_look(copy, size, &header, NULL);
            if (ls_picture_decode(copy, size,
                                  (int)(trial % 3 == 0   ? 1
                                        : trial % 3 == 1 ? 3
                                                         : 0),
                                  &buffer, &p, NULL) != 0)
                refused++;
            else
                assert_true(p.height > 0 && p.width > 0 && p.pixels != NULL);
            free(copy);
        }
        assert_true(refused > 20);
        free(file);
    }
    free(pixels);
}

static void pictures_beyond_the_limits_are_refused(void **state)
{
    (void)state;
    /* A header that asks for 60000 x 60000 pixels. */
    uint8_t row[1] = {0};
    size_t size;
    uint8_t *file = png_file(row, 1, 1, 1, PNG_COLOR_TYPE_GRAY, 8, false, &size);
    struct ls_picture_header header;
    put_u32(file + 16, 60000);
    put_u32(file + 20, 60000);
    put_u32(file + 29, (uint32_t)crc32(0, file + 12, 17));
    assert_int_equal(ls_picture_look(file, size, &header, NULL), LOCKSTEP_DATA);
    put_u32(file + 16, 29000);
    put_u32(file + 20, 29000);
    put_u32(file + 29, (uint32_t)crc32(0, file + 12, 17));
    struct ls_problem problem;
    assert_int_equal(ls_picture_look(file, size, &header, &problem), LOCKSTEP_DATA);
    assert_non_null(strstr(problem.message, "too large"));
    free(file);
    const uint8_t *gif = (const uint8_t *)"GIF89a";
    assert_int_equal(ls_picture_look(gif, 6, &header, &problem), LOCKSTEP_DATA);
    assert_string_equal(problem.message, "the picture is neither JPEG nor PNG");
    assert_int_equal(ls_picture_look(NULL, 0, &header, &problem), LOCKSTEP_DATA);
    assert_string_equal(problem.message, "the picture is empty");
}

/* Memory that cannot be had is no damage of the file: wherever an allocation fails, libpng's too,
 * decoding says so. */
static void a_failed_allocation_is_no_damage(void **state)
{
    (void)state;
    uint8_t *pixels = picture_pixels(20, 20, 3, 9);
    for (int kind = 0; kind < 3; kind++) {
        size_t size;
        uint8_t *file = kind == 0 ? png_file(pixels, 60, 20, 20, PNG_COLOR_TYPE_RGB, 8, 0, &size)
                                  : jpeg_file(pixels, 20, 20, 3, kind == 2, &size);
        int status = LOCKSTEP_RESOURCE;
        long n = 0;
        for (; status != 0; n++) {
            struct ls_picture p;
            struct ls_problem problem;
            ls_buffer_free(&buffer);
            ls_fail_allocation_after(n);
            status = ls_picture_decode(file, size, 3, &buffer, &p, &problem);
            ls_fail_allocation_after(-1);
            if (status != 0) {
                assert_int_equal(status, LOCKSTEP_RESOURCE);
                assert_string_equal(problem.message, "out of memory");
            }
        }
        assert_true(n > (kind == 0 ? 4 : 2)); /* libpng's are among them */
        free(file);
    }
    free(pixels);
}

/* The same of libjpeg, which takes its memory from the C library: the coefficients of a JPEG in
 * several scans, 24 MB, do not fit into what the process may still take. */
static void a_jpeg_without_memory_is_not_damaged(void **state)
{
    (void)state;
    enum { SIDE = 2000 };
    need_memory_limit();
    struct ls_picture p;
    struct ls_problem problem;
    size_t size;
    uint8_t *pixels = picture_pixels(SIDE, SIDE, 3, 9);
    uint8_t *file = jpeg_file(pixels, SIDE, SIDE, 3, true, &size);
    struct rlimit before = limit_memory(8 << 20);
    int status = ls_picture_decode(file, size, 3, &buffer, &p, &problem);
    unlimit_memory(before);
    assert_int_equal(status, LOCKSTEP_RESOURCE);
    assert_string_equal(problem.message, "out of memory");
    assert_int_equal(ls_picture_decode(file, size, 3, &buffer, &p, &problem), 0);
    free(file);
    free(pixels);
}

/* ---- Resizing ---- */

/* The definition in double: the triangle filter, in both directions at once. */
static double resized(const struct ls_picture *p, bool antialias, int c, int height, int width,
                      int y, int x)
{
    double sy = (double)p->height / height, sx = (double)p->width / width;
    double ry = antialias && sy > 1 ? sy : 1, rx = antialias && sx > 1 ? sx : 1;
    double cy = (y + 0.5) * sy - 0.5, cx = (x + 0.5) * sx - 0.5;
    double sum = 0, total = 0;
    for (int i = 0; i < p->height; i++)
        for (int j = 0; j < p->width; j++) {
            double wy = 1 - fabs(i - cy) / ry, wx = 1 - fabs(j - cx) / rx;
            if (wy <= 0 || wx <= 0)
                continue;
            sum += wy * wx * p->pixels[(i * p->width + j) * p->channels + c];
            total += wy * wx;
        }
    return sum / total;
}

static void resizing_follows_its_definition(void **state)
{
    (void)state;
    const int sizes[][4] = {{7, 5, 14, 10}, {16, 16, 7, 9}, {30, 20, 3, 40}, {1, 1, 6, 6},
                            {9, 9, 1, 1},   {8, 8, 8, 4},   {33, 17, 10, 1}, {5, 200, 11, 13}};
    uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "resize");
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int form = 0; form < 4; form++) {
            int channels = form < 2 ? 1 : 3;
            bool antialias = form % 2 == 0;
            int h = sizes[k][0], w = sizes[k][1], nh = sizes[k][2], nw = sizes[k][3];
            uint8_t *pixels = malloc((size_t)(h * w * channels));
            for (int i = 0; i < h * w * channels; i++)
                pixels[i] = (uint8_t)ls_random_below(key, k, (uint64_t)i, 2) * 255;
            struct ls_picture p = {h, w, channels, pixels};
            struct ls_record r;
            assert_int_equal(ls_picture_resize_to_record(&p, nh, nw, antialias, &second, &r, NULL),
                             0);
            assert_int_equal(r.tensor[0].shape.dim[0], channels);
            assert_int_equal(r.tensor[0].shape.dim[1], nh);
            assert_int_equal(r.tensor[0].shape.dim[2], nw);
            for (int c = 0; c < channels; c++)
                for (int y = 0; y < nh; y++)
                    for (int x = 0; x < nw; x++) {
                        int from = channels == 3 ? 2 - c : c;
                        double expected = resized(&p, antialias, from, nh, nw, y, x);
                        assert_true(fabs(trial_bytes(&r)[(c * nh + y) * nw + x] - expected) < 0.52);
                    }
            free(pixels);
        }
}

/* What OpenCV makes of these pictures (opencv_resize.py). Its weights have 11 bits, so that pixels
 * may differ by 1. */
static void resizing_without_antialiasing_is_opencvs(void **state)
{
    (void)state;
    static const struct {
        int h, w, nh, nw;
        uint8_t pixels[64];
    } pictures[] = {
        {11, 7, 5, 5, {66, 157, 175, 102, 131, 175, 119, 53,  192, 136, 79,  82, 85,
                       88, 91,  147, 76,  117, 127, 55,  123, 130, 148, 135, 50}},
        {9, 16, 4, 3, {150, 97, 151, 95, 49, 190, 99, 98, 95, 120, 162, 188}},
        {4, 5, 7, 9, {0,   38,  100, 163, 226, 146, 95,  158, 196, 24,  65,  133, 161,
                      179, 156, 141, 159, 170, 62,  109, 186, 159, 104, 172, 215, 161,
                      128, 101, 110, 126, 141, 158, 173, 175, 120, 87,  139, 111, 65,
                      125, 211, 164, 120, 85,  63,  177, 155, 118, 122, 136, 99,  80,
                      135, 168, 201, 182, 151, 120, 89,  58,  55,  166, 233}},
    };
    for (size_t k = 0; k < sizeof pictures / sizeof pictures[0]; k++) {
        uint8_t pixels[200];
        int h = pictures[k].h, w = pictures[k].w, count = pictures[k].nh * pictures[k].nw;
        for (int i = 0; i < h * w; i++)
            pixels[i] = (uint8_t)(i / w * 67 + i % w * 113 + (i / w) * (i % w) * 29);
        struct ls_picture p = {h, w, 1, pixels};
        struct ls_record r;
        assert_int_equal(ls_picture_resize_to_record(&p, pictures[k].nh, pictures[k].nw, false,
                                                     &second, &r, NULL),
                         0);
        for (int i = 0; i < count; i++)
            assert_true(abs(trial_bytes(&r)[i] - pictures[k].pixels[i]) <= 1);
    }
}

static void constant_pictures_stay_constant(void **state)
{
    (void)state;
    uint8_t pixels[60 * 50];
    for (int value = 0; value < 256; value += 51) {
        memset(pixels, value, sizeof pixels);
        struct ls_picture p = {60, 50, 1, pixels};
        for (int size = 1; size < 150; size += 7) {
            struct ls_record r;
            assert_int_equal(
                ls_picture_resize_to_record(&p, size, 151 - size, size % 2 == 0, &second, &r, NULL),
                0);
            for (int i = 0; i < size * (151 - size); i++)
                assert_int_equal(trial_bytes(&r)[i], value);
        }
    }
}

static void records_are_planes_in_bgr_order(void **state)
{
    (void)state;
    const uint8_t pixels[] = {1, 2, 3, 4, 5, 6};
    struct ls_picture p = {1, 2, 3, pixels};
    struct ls_record r;
    assert_int_equal(ls_picture_to_record(&p, &second, &r, NULL), 0);
    const uint8_t expected[] = {3, 6, 2, 5, 1, 4};
    assert_memory_equal(trial_bytes(&r), expected, 6);
}

static void real_pictures_are_decoded(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int height, width, channels;
    } file[] = {{"caffe_samples/cat.jpg", 360, 480, 3},
                {"caffe_samples/cat_gray.jpg", 360, 480, 1},
                {"caffe_samples/fish-bike.jpg", 323, 481, 3},
                {"caffemodels/lenet_2015/samples/img_7_0.png", 28, 28, 1}};
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        size_t size;
        char *bytes = ls_test_read(ls_test_data_or_skip(file[i].name), &size);
        struct ls_picture p = decode((const uint8_t *)bytes, size, 0);
        assert_int_equal(p.height, file[i].height);
        assert_int_equal(p.width, file[i].width);
        assert_int_equal(p.channels, file[i].channels);
        free(bytes);
    }
}

static int free_buffers(void **state)
{
    (void)state;
    ls_buffer_free(&buffer);
    ls_buffer_free(&second);
    return 0;
}

/* In both orders of bytes; what is cut or is no mark is none. */
static void orientation_marks_are_found(void **state)
{
    (void)state;
    for (int orientation = 0; orientation < 10; orientation++)
        for (int big = 0; big < 2; big++) {
            uint8_t *bytes;
            const size_t size = ls_turned_picture(3, 5, orientation, big, &bytes);
            const bool turned = orientation > 1 && orientation < 9;
            assert_int_equal(ls_picture_is_turned(bytes, size), turned);
            for (size_t cut = 0; cut < 2 + LS_TURNED_SEGMENT; cut++) {
                uint8_t *part = malloc(cut + 1); /* so that reading on is found */
                memcpy(part, bytes, cut);
                assert_false(ls_picture_is_turned(part, cut));
                free(part);
            }
            for (size_t i = 0; i < LS_TURNED_SEGMENT; i++) { /* any number in any place */
                bytes[2 + i] ^= 0xFF;
                (void)ls_picture_is_turned(bytes, size);
                bytes[2 + i] ^= 0xFF;
            }
            free(bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orientation_marks_are_found),
        cmocka_unit_test(png_is_decoded_exactly),
        cmocka_unit_test(decoding_takes_the_bytes_foretold),
        cmocka_unit_test(all_kinds_of_png_become_grey_or_colour),
        cmocka_unit_test(jpeg_is_decoded_within_its_loss),
        cmocka_unit_test(cmyk_becomes_colour),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(random_damage_is_answered),
        cmocka_unit_test(pictures_beyond_the_limits_are_refused),
        cmocka_unit_test(a_failed_allocation_is_no_damage),
        cmocka_unit_test(a_jpeg_without_memory_is_not_damaged),
        cmocka_unit_test(resizing_follows_its_definition),
        cmocka_unit_test(resizing_without_antialiasing_is_opencvs),
        cmocka_unit_test(constant_pictures_stay_constant),
        cmocka_unit_test(records_are_planes_in_bgr_order),
        cmocka_unit_test(real_pictures_are_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, free_buffers);
}
