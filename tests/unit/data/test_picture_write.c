/* Pictures written as files.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/picture.h"
#include "data/picture_write.h"
#include "data/resize.h"
#include "data_trial.h"

enum { HEIGHT = 7, WIDTH = 9, PIXELS = HEIGHT * WIDTH };

/* What was written is what is read: PNG to the bit, JPEG nearly. */
static void written_pictures_are_read(void **state)
{
    (void)state;
    static const char *const types[] = {"png", "jpg", "jpeg"};
    uint8_t planes[3 * PIXELS];
    for (int i = 0; i < 3 * PIXELS; i++)
        planes[i] = (uint8_t)(100 + i % WIDTH * 3 + i / PIXELS * 20);
    for (size_t t = 0; t < 3; t++)
        for (int channels = 1; channels <= 3; channels += 2) {
            const int64_t shape[3] = {channels, HEIGHT, WIDTH};
            struct ls_buffer buffer = {0};
            struct ls_picture picture;
            struct ls_problem problem;
            uint8_t *bytes;
            size_t size;
            assert_int_equal(ls_picture_encode(planes, shape, types[t], &bytes, &size, NULL), 0);
            assert_int_equal(ls_picture_decode(bytes, size, channels, &buffer, &picture, &problem),
                             0);
            assert_int_equal(picture.height, HEIGHT);
            assert_int_equal(picture.width, WIDTH);
            for (int i = 0; i < PIXELS; i++)
                for (int c = 0; c < channels; c++) /* blue is the first plane, red of a pixel */
                    assert_true(abs(picture.pixels[i * channels + c] -
                                    planes[(channels - 1 - c) * PIXELS + i]) <= (t == 0 ? 0 : 12));
            ls_buffer_free(&buffer);
            ls_free(bytes);
        }
}

static void refuse(const char *type, int64_t channels, int64_t height, int64_t width, int status,
                   const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    uint8_t *planes = calloc((size_t)(channels * height * width), 1), *bytes;
    const int64_t shape[3] = {channels, height, width};
    size_t size;
    assert_int_equal(ls_picture_encode(planes, shape, type, &bytes, &size, error), status);
    assert_says(error, words);
    free(planes);
    free(error);
}

static void what_no_file_holds(void **state)
{
    (void)state;
    refuse("gif", 1, 2, 2, LOCKSTEP_USAGE, "cannot be written as 'gif'");
    refuse("png", 2, 2, 2, LOCKSTEP_DATA, "a picture of 2 channels has no file format");
    refuse("jpg", 1, 65501, 1, LOCKSTEP_DATA, "65501 x 1 pixels is too large for JPEG");
    refuse("png", 1, 1, 1000001, LOCKSTEP_DATA, "1 x 1000001 pixels is too large for PNG");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_pictures_are_read),
        cmocka_unit_test(what_no_file_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
