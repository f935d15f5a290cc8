/* Resampling: OpenCV's pictures, and what every filter must do.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/resample.h"
#include "data_trial.h"

enum { SIDE = 24 };

static void fill(uint8_t *pixels, int height, int width)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            pixels[y * width + x] = (uint8_t)(y * 67 + x * 113 + y * x * 29);
}

static void resample(const uint8_t *in, int64_t count, int64_t h, int64_t w, enum ls_filter filter,
                     int64_t height, int64_t width, uint8_t *out)
{
    const struct ls_pixel_planes planes = {count, h, w, in};
    struct ls_buffer scratch = {0};
    assert_int_equal(ls_resample(&planes, filter, height, width, &scratch, out, NULL), 0);
    ls_buffer_free(&scratch);
}

/* What OpenCV makes of these pictures (opencv_augment.py). Its weights have 11 bits, so that pixels
 * may differ by 1. */
static void pixels_are_opencvs(void **state)
{
    (void)state;
    static const struct {
        int h, w, height, width;
        enum ls_filter filter;
        int expected[63];
    } made[] = {
        {11, 7, 5, 5, LS_FILTER_LINEAR, {66,  157, 175, 102, 131, 175, 119, 53, 192,
                                         136, 79,  82,  85,  88,  91,  147, 76, 117,
                                         127, 55,  123, 130, 148, 135, 50}},
        {11, 7, 5, 5, LS_FILTER_AREA, {74,  159, 158, 106, 126, 138, 146, 115, 167,
                                       141, 100, 152, 145, 88,  90,  117, 118, 125,
                                       115, 66,  119, 135, 132, 146, 62}},
        {11, 7, 5, 5, LS_FILTER_NEAREST, {0,   113, 226, 196, 53,  134, 49,  220, 50,
                                          221, 12,  241, 214, 160, 133, 146, 177, 208,
                                          14,  45,  24,  113, 202, 124, 213}},
        {11, 7, 5, 5, LS_FILTER_CUBIC, {62, 159, 188, 84, 127, 193, 108, 34,  225, 137, 79,  82, 85,
                                        88, 91,  153, 47, 106, 147, 49,  131, 121, 166, 130, 46}},
        {11, 7, 5, 5, LS_FILTER_LANCZOS4, {70,  160, 183, 82,  123, 191, 110, 21, 238,
                                           132, 79,  82,  85,  88,  91,  149, 45, 93,
                                           158, 42,  143, 106, 173, 125, 45}},
        {9, 16, 4, 3, LS_FILTER_LINEAR, {150, 97, 151, 95, 49, 190, 99, 98, 95, 120, 162, 188}},
        {9, 16, 4, 3, LS_FILTER_AREA, {128, 120, 133, 140, 119, 151, 123, 104, 118, 118, 125, 132}},
        {9, 16, 4, 3, LS_FILTER_NEAREST, {0, 53, 106, 134, 221, 52, 12, 133, 254, 146, 45, 200}},
        {9, 16, 4, 3, LS_FILTER_CUBIC, {133, 86, 173, 80, 22, 200, 90, 99, 89, 110, 173, 221}},
        {9, 16, 4, 3, LS_FILTER_LANCZOS4, {113, 71, 191, 77, 14, 197, 89, 96, 86, 98, 167, 227}},
        {4, 5, 7, 9, LS_FILTER_LINEAR, {0,   38,  100, 163, 226, 146, 95,  158, 196, 24,  65,
                                        133, 161, 179, 156, 141, 159, 170, 62,  109, 186, 159,
                                        104, 172, 215, 161, 128, 101, 110, 126, 141, 158, 173,
                                        175, 120, 87,  139, 111, 65,  125, 211, 164, 120, 85,
                                        63,  177, 155, 118, 122, 136, 99,  80,  135, 168, 201,
                                        182, 151, 120, 89,  58,  55,  166, 233}},
        {4, 5, 7, 9, LS_FILTER_AREA, {0,   23,  113, 158, 226, 140, 83,  173, 196, 17,  41,
                                      137, 159, 193, 150, 122, 166, 178, 67,  95,  209, 163,
                                      95,  180, 237, 146, 123, 101, 106, 129, 140, 158, 174,
                                      186, 106, 87,  134, 117, 49,  117, 220, 169, 135, 67,
                                      50,  184, 171, 121, 121, 122, 84,  59,  161, 187, 201,
                                      190, 145, 123, 89,  55,  33,  193, 233}},
        {4, 5, 7, 9, LS_FILTER_NEAREST, {0,   0,   113, 113, 226, 226, 83,  83,  196, 0,   0,
                                         113, 113, 226, 226, 83,  83,  196, 67,  67,  209, 209,
                                         95,  95,  237, 237, 123, 67,  67,  209, 209, 95,  95,
                                         237, 237, 123, 134, 134, 49,  49,  220, 220, 135, 135,
                                         50,  134, 134, 49,  49,  220, 220, 135, 135, 50,  201,
                                         201, 145, 145, 89,  89,  33,  33,  233}},
        {4, 5, 7, 9, LS_FILTER_CUBIC, {0,   20,  84,  188, 239, 140, 69,  151, 217, 5,   61,
                                       142, 180, 174, 154, 143, 163, 179, 45,  114, 205, 165,
                                       97,  174, 232, 170, 120, 98,  108, 125, 140, 158, 205,
                                       200, 112, 48,  150, 102, 44,  120, 218, 187, 112, 73,
                                       50,  190, 155, 107, 118, 141, 89,  66,  129, 177, 213,
                                       195, 165, 119, 76,  16,  40,  176, 255}},
        {4, 5, 7, 9, LS_FILTER_LANCZOS4, {0,   6,   72,  200, 246, 139, 62,  137, 221, 4,   62,
                                          150, 187, 166, 139, 144, 170, 191, 39,  124, 211, 160,
                                          94,  165, 236, 180, 116, 98,  110, 127, 131, 157, 213,
                                          206, 110, 37,  157, 92,  41,  118, 220, 197, 106, 62,
                                          57,  195, 146, 95,  123, 149, 90,  54,  121, 184, 208,
                                          198, 169, 131, 69,  10,  47,  184, 255}},
    };
    for (size_t k = 0; k < sizeof made / sizeof made[0]; k++) {
        uint8_t pixels[SIDE * SIDE], out[63];
        fill(pixels, made[k].h, made[k].w);
        resample(pixels, 1, made[k].h, made[k].w, made[k].filter, made[k].height, made[k].width,
                 out);
        for (int i = 0; i < made[k].height * made[k].width; i++)
            assert_in_range(out[i] - made[k].expected[i] + 1, 0, 2);
    }
}

static void an_even_picture_stays_even(void **state)
{
    (void)state;
    uint8_t pixels[SIDE * SIDE], out[SIDE * SIDE];
    memset(pixels, 201, sizeof pixels);
    for (int filter = LS_FILTER_LINEAR; filter <= LS_FILTER_LANCZOS4; filter++)
        for (int h = 1; h <= SIDE; h += 3)
            for (int height = 1; height <= SIDE; height += 2) {
                resample(pixels, 1, h, SIDE, filter, height, SIDE - h + 1, out);
                for (int i = 0; i < height * (SIDE - h + 1); i++)
                    assert_int_equal(out[i], 201);
            }
}

static void the_same_size_is_the_same_picture(void **state)
{
    (void)state;
    uint8_t pixels[SIDE * SIDE], out[SIDE * SIDE];
    fill(pixels, SIDE, SIDE);
    for (int filter = LS_FILTER_LINEAR; filter <= LS_FILTER_LANCZOS4; filter++) {
        resample(pixels, 1, SIDE, SIDE, filter, SIDE, SIDE, out);
        assert_memory_equal(out, pixels, sizeof out);
    }
}

/* Each plane by itself; a whole factor makes means, rounded to the nearest. */
static void area_takes_means(void **state)
{
    (void)state;
    uint8_t pixels[2 * SIDE * SIDE], out[2 * SIDE * SIDE / 6];
    fill(pixels, 2 * SIDE, SIDE);
    resample(pixels, 2, SIDE, SIDE, LS_FILTER_AREA, SIDE / 2, SIDE / 3, out);
    for (int c = 0; c < 2; c++)
        for (int y = 0; y < SIDE / 2; y++)
            for (int x = 0; x < SIDE / 3; x++) {
                int sum = 0;
                for (int i = 0; i < 6; i++)
                    sum += pixels[(c * SIDE + 2 * y + i / 3) * SIDE + 3 * x + i % 3];
                const int made = out[(c * SIDE / 2 + y) * (SIDE / 3) + x];
                assert_in_range(6 * made - sum + 4, 0, 8); /* weights of 1/3 are rounded, too */
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_opencvs),
        cmocka_unit_test(an_even_picture_stays_even),
        cmocka_unit_test(the_same_size_is_the_same_picture),
        cmocka_unit_test(area_takes_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
