/* Pictures in the terminal: the exact characters.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/draw.h"
#include "support/support.h"

static char *text;
static size_t text_size;

static const char *draw(const struct ls_drawing *pictures, size_t count, int width,
                        enum ls_colours colours)
{
    free(text);
    FILE *out = open_memstream(&text, &text_size);
    assert_non_null(out);
    ls_draw_pictures(out, pictures, count, width, colours);
    fclose(out);
    return text;
}

static void grey_levels_become_characters(void **state)
{
    (void)state;
    /* Two rows of pixels become one of characters; the third one stands alone. */
    static const float pixels[3 * 4] = {0, 100, 255, 255, 0, 156, 255, 0, 26, 300, -5, 0};
    const struct ls_drawing pictures[2] = {{1, 3, 4, pixels, {"one", "right"}, 1},
                                           {1, 3, 4, pixels, {"a long caption", NULL}, -1}};
    assert_string_equal(draw(pictures, 2, 80, LS_COLOURS_NONE), " +@=   +@=\n"
                                                                ".@    .@  \n"
                                                                "one   a lo\n"
                                                                "right \n");
}

static void pictures_shrink_by_whole_factors(void **state)
{
    (void)state;
    static float pixels[28 * 28];
    for (int i = 0; i < 28 * 28; i++)
        pixels[i] = (i / 28 + i) % 2 == 0 ? 255 : 0; /* its means are all alike */
    struct ls_drawing pictures[10];
    for (int i = 0; i < 10; i++)
        pictures[i] = (struct ls_drawing){1, 28, 28, pixels, {"", ""}, 0};
    const char *drawn = draw(pictures, 10, 80, LS_COLOURS_NONE);
    assert_int_equal(strcspn(drawn, "\n"), 5 * 14 + 4 * 2); /* five in a row of 78 */
    assert_true(strncmp(drawn, "+++++++", 7) == 0 || strncmp(drawn, "=======", 7) == 0 ||
                strncmp(drawn, "*******", 7) == 0);
    drawn = draw(pictures, 10, 400, LS_COLOURS_NONE);
    assert_int_equal(strcspn(drawn, "\n"), 10 * 28 + 9 * 2); /* ten in a row as they are */
    drawn = draw(pictures, 1, 10, LS_COLOURS_NONE);
    assert_int_equal(strcspn(drawn, "\n"), 14); /* at least one, at least this size */
    for (int i = 0; i < 10; i++)
        pictures[i] =
            (struct ls_drawing){1, 24, 32, pixels, {"100% automobile", "no: airplane"}, -1};
    static const char captions[] = "100% automobile   100% automobile   100% automobile   100% "
                                   "automobile\n";
    assert_non_null(strstr(draw(pictures, 4, 80, LS_COLOURS_NONE), captions));
}

#define UP "\xe2\x96\x80"

static void colours_become_half_blocks(void **state)
{
    (void)state;
    static const float grey[2 * 2] = {0, 0, 255, 128};
    const struct ls_drawing picture = {1, 2, 2, grey, {"x", "y"}, -1};
    assert_string_equal(draw(&picture, 1, 80, LS_COLOURS_ALL),
                        "\033[38;2;0;0;0m\033[48;2;255;255;255m" UP "\033[48;2;128;128;128m" UP
                        "\033[0m\n\033[31mx\033[0m\n\033[31my\033[0m\n");
    assert_string_equal(draw(&picture, 1, 80, LS_COLOURS_256),
                        "\033[38;5;16m\033[48;5;231m" UP "\033[48;5;244m" UP
                        "\033[0m\n\033[31mx\033[0m\n\033[31my\033[0m\n");
    /* A red pixel above a blue one, and green alone. */
    static const float colours[3 * 3] = {255, 0, 0, 0, 0, 255, 0, 255, 0};
    const struct ls_drawing colourful = {3, 3, 1, colours, {NULL, NULL}, 1};
    assert_string_equal(draw(&colourful, 1, 80, LS_COLOURS_ALL),
                        "\033[38;2;255;0;0m\033[48;2;0;0;255m" UP "\033[0m\n"
                        "\033[38;2;0;255;0m\033[48;2;0;0;0m" UP "\033[0m\n");
    assert_string_equal(draw(&colourful, 1, 80, LS_COLOURS_256),
                        "\033[38;5;196m\033[48;5;21m" UP "\033[0m\n"
                        "\033[38;5;46m\033[48;5;16m" UP "\033[0m\n");
}

static void odd_input_is_drawn(void **state)
{
    (void)state;
    static const float strange[4] = {(float)NAN, (float)INFINITY, -1e30f, 1e30f};
    const struct ls_drawing pictures[2] = {{1, 1, 4, strange, {"\033[2J", NULL}, 0},
                                           {2, 1, 2, strange, {NULL, NULL}, 0}};
    assert_string_equal(draw(pictures, 2, 80, LS_COLOURS_NONE), " @ @   @\n?[2J  \n");
    assert_string_equal(draw(NULL, 0, 80, LS_COLOURS_NONE), "");
    free(text);
    text = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grey_levels_become_characters),
        cmocka_unit_test(pictures_shrink_by_whole_factors),
        cmocka_unit_test(colours_become_half_blocks),
        cmocka_unit_test(odd_input_is_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
