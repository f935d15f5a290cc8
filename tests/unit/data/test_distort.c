/* Colours changed at random: OpenCV's colours, and what is drawn.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/random.h"
#include "data/distort.h"
#include "data_trial.h"

enum { COLOURS = 24 };

static void fill(uint8_t *planes)
{
    for (int i = 0; i < COLOURS; i++)
        for (int c = 0; c < 3; c++)
            planes[c * COLOURS + i] = (uint8_t)(i * 89 + c * 57 + i * c * 31);
}

/* What OpenCV makes of these colours (opencv_augment.py), pixel by pixel. It computes in fp32 and
 * by tables, so that numbers may differ by 1, and by 2 where a hue or a saturation does. */
static void colours_are_opencvs(void **state)
{
    (void)state;
    static const uint8_t expected[6][3 * COLOURS] = {
        /* brightness */ {17,  74,  131, 106, 194, 26,  195, 58,  177, 28,  178, 72, 117, 42,  223,
                          206, 162, 118, 39,  26,  255, 128, 146, 164, 217, 255, 59, 50,  130, 210,
                          139, 250, 105, 228, 114, 255, 61,  234, 151, 150, 98,  46, 239, 218, 197,
                          72,  82,  92,  161, 202, 243, 250, 66,  138, 83,  186, 33, 172, 50,  184,
                          255, 170, 79,  94,  34,  230, 183, 154, 125, 255, 18,  20},
        /* contrast */ {0,   78,  157, 122, 243, 12,  245, 56,  220, 15,  221, 76, 138, 34,  255,
                        255, 199, 139, 30,  12,  255, 153, 177, 202, 255, 255, 58, 45,  155, 255,
                        168, 255, 121, 255, 133, 255, 60,  255, 184, 183, 111, 40, 255, 255, 248,
                        76,  89,  103, 198, 254, 255, 255, 67,  166, 91,  232, 22, 213, 45,  230,
                        255, 210, 85,  106, 23,  255, 228, 188, 148, 255, 1,   4},
        /* saturation */ {43,  78,  114, 121, 177, 72,  178, 93,  167, 67,  161, 95,  138, 93,  206,
                          189, 162, 134, 110, 100, 252, 125, 136, 147, 219, 249, 120, 93,  143, 193,
                          164, 233, 143, 221, 151, 239, 109, 217, 167, 133, 101, 68,  222, 209, 196,
                          63,  69,  75,  175, 200, 226, 233, 118, 164, 105, 169, 74,  159, 83,  167,
                          244, 187, 130, 127, 90,  213, 166, 148, 130, 255, 96,  96},
        /* saturation */ {0,   57,  114, 83,  177, 0,   178, 0,   154, 0,   161, 48, 82,  0,   206,
                          189, 123, 57,  17,  0,   252, 93,  120, 147, 191, 249, 0,  0,   97,  193,
                          66,  233, 16,  197, 27,  239, 0,   217, 116, 133, 66,  0,  222, 191, 159,
                          45,  60,  75,  102, 164, 226, 233, 0,   93,  56,  169, 0,  150, 0,   167,
                          244, 122, 0,   64,  0,   213, 166, 122, 79,  255, 0,   0},
        /* hue */ {0,   106, 114, 160, 177, 9,   137, 41,  178, 31,  161, 11, 25,  31,  206,
                   189, 107, 101, 9,   98,  252, 111, 145, 147, 249, 208, 42, 33,  182, 193,
                   185, 233, 88,  149, 97,  239, 44,  217, 62,  133, 36,  29, 222, 183, 180,
                   55,  74,  75,  144, 221, 226, 233, 49,  202, 133, 169, 16, 95,  33,  167,
                   244, 74,  62,  17,  43,  213, 166, 112, 108, 255, 1,   111},
        /* hue */ {0,   0,   114, 9,   177, 26,  178, 41,  82,  11,  161, 141, 200, 25,  206,
                   183, 189, 101, 163, 9,   252, 111, 111, 147, 83,  249, 42,  33,  33,  193,
                   88,  233, 136, 239, 97,  187, 44,  200, 217, 126, 133, 29,  219, 222, 180,
                   55,  55,  75,  144, 144, 226, 233, 80,  49,  16,  169, 52,  167, 33,  104,
                   232, 244, 62,  187, 17,  213, 162, 166, 108, 255, 145, 1},
    };
    const struct ls_distortion same = {.contrast = 1, .saturation = 1};
    struct ls_distortion change[6] = {same, same, same, same, same, same};
    change[0].brightness = 17.25F;
    change[1].contrast = 1.375F;
    change[2].saturation = 0.625F;
    change[3].saturation = 1.5F;
    change[4].hue = 13;
    change[5].hue = -17;
    for (int k = 0; k < 6; k++) {
        uint8_t planes[3 * COLOURS];
        fill(planes);
        assert_true(ls_distortion_changes(&change[k]));
        ls_distortion_apply(&change[k], 3, COLOURS, planes);
        for (int i = 0; i < 3 * COLOURS; i++)
            assert_in_range(planes[i % 3 * COLOURS + i / 3] - expected[k][i] + 2, 0, 4);
    }
}

/* Contrast before or behind the colours; channels in another order. */
static void steps_follow_each_other(void **state)
{
    (void)state;
    struct ls_distortion d = {.contrast = 2, .brightness = 60, .saturation = 0.5F};
    uint8_t early[3] = {10, 100, 60}, late[3] = {10, 100, 60}, turned[3] = {10, 100, 60};
    ls_distortion_apply(&d, 3, 1, early);
    d.late_contrast = true;
    ls_distortion_apply(&d, 3, 1, late);
    /* 70 160 120 -> 140 255 240, half as far from white; 70 160 120 -> 115 160 140 -> x 2 */
    assert_memory_equal(early, ((uint8_t[]){197, 255, 247}), 3);
    assert_memory_equal(late, ((uint8_t[]){230, 255, 255}), 3);
    const struct ls_distortion order = {.contrast = 1, .saturation = 1, .order = 3};
    ls_distortion_apply(&order, 3, 1, turned);
    assert_memory_equal(turned, ((uint8_t[]){100, 60, 10}), 3);
}

/* Each kind as often as it should be, within its limits, and the same again for the same sample. */
static void draws_have_their_probabilities(void **state)
{
    (void)state;
    Lockstep__DistortionParameter p = LOCKSTEP__DISTORTION_PARAMETER__INIT;
    const char *why;
    p.brightness_prob = 0.5F;
    p.brightness_delta = 32;
    p.contrast_prob = 0.25F;
    p.contrast_lower = 0.5F;
    p.contrast_upper = 1.5F;
    p.random_order_prob = 1;
    assert_null(ls_distortion_check(&p, &why));
    int bright = 0, contrast = 0, late = 0, orders[6] = {0};
    for (uint64_t i = 0; i < 4000; i++) {
        const struct ls_distortion d = ls_distortion_draw(&p, 77, i, 8);
        const struct ls_distortion again = ls_distortion_draw(&p, 77, i, 8);
        assert_true(d.brightness == again.brightness && d.contrast == again.contrast);
        assert_int_equal(d.order, again.order);
        bright += d.brightness != 0;
        contrast += d.contrast != 1;
        late += d.late_contrast;
        orders[d.order]++;
        assert_true(d.brightness >= -32 && d.brightness <= 32);
        assert_true(d.contrast >= 0.5F && d.contrast <= 1.5F);
        assert_true(d.saturation == 1 && d.hue == 0);
    }
    assert_in_range(bright, 1850, 2150);
    assert_in_range(contrast, 880, 1120);
    assert_in_range(late, 1850, 2150);
    for (int i = 0; i < 6; i++)
        assert_in_range(orders[i], 560, 780);
}

static void numbers_are_checked(void **state)
{
    (void)state;
    Lockstep__DistortionParameter p = LOCKSTEP__DISTORTION_PARAMETER__INIT;
    const char *why;
    p.hue_prob = 1.5F;
    assert_string_equal(ls_distortion_check(&p, &why), "hue_prob");
    p.hue_prob = 1;
    p.hue_delta = -1;
    assert_string_equal(ls_distortion_check(&p, &why), "hue_delta");
    p.hue_delta = 1;
    p.brightness_delta = 2e38F;
    assert_string_equal(ls_distortion_check(&p, &why), "brightness_delta");
    p.brightness_delta = 32;
    p.hue_delta = 2e38F; /* twice that is infinite */
    assert_string_equal(ls_distortion_check(&p, &why), "hue_delta");
    p.hue_delta = 1;
    p.saturation_lower = 2;
    assert_string_equal(ls_distortion_check(&p, &why), "saturation_upper");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_opencvs),
        cmocka_unit_test(steps_follow_each_other),
        cmocka_unit_test(draws_have_their_probabilities),
        cmocka_unit_test(numbers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
