/* Colours changed at random; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/distort.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "lockstep.pb-c.h"

enum draw {
    DRAW_WHEN, /* contrast second or last */
    DRAW_BRIGHTNESS,
    DRAW_CONTRAST = 3,
    DRAW_SATURATION = 5,
    DRAW_HUE = 7,
    DRAW_ORDER = 9
};

static const float DELTA_MOST = 1e6F;

/* ---- Parameters ------------------------------------------------------------------------------ */

static bool is_share(float x)
{
    return x >= 0 && x <= 1;
}

const char *ls_distortion_check(const Lockstep__DistortionParameter *p, const char **why)
{
    const struct {
        const char *field;
        float value;
    } shares[] = {{"brightness_prob", p->brightness_prob},
                  {"contrast_prob", p->contrast_prob},
                  {"saturation_prob", p->saturation_prob},
                  {"hue_prob", p->hue_prob},
                  {"random_order_prob", p->random_order_prob}};
    *why = "must be a probability, from 0 to 1";
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        if (!is_share(shares[i].value))
            return shares[i].field;
    /* Twice the number must be finite, too. */
    *why = "must be a number from 0 to 1000000";
    if (!(p->brightness_delta >= 0 && p->brightness_delta <= DELTA_MOST))
        return "brightness_delta";
    if (!(p->hue_delta >= 0 && p->hue_delta <= DELTA_MOST))
        return "hue_delta";
    *why = "must be a finite number, at least contrast_lower, which is at least 0";
    if (!(p->contrast_lower >= 0) || !(p->contrast_upper >= p->contrast_lower) ||
        !isfinite(p->contrast_upper))
        return "contrast_upper";
    *why = "must be a finite number, at least saturation_lower, which is at least 0";
    if (!(p->saturation_lower >= 0) || !(p->saturation_upper >= p->saturation_lower) ||
        !isfinite(p->saturation_upper))
        return "saturation_upper";
    return NULL;
}

bool ls_distortion_of_colours(const Lockstep__DistortionParameter *p)
{
    return p->saturation_prob > 0 || p->hue_prob > 0 || p->random_order_prob > 0;
}

/* ---- Drawing --------------------------------------------------------------------------------- */

/* A number of [lower, upper) with a probability, else `fallback`. */
static float draw(float probability, float lower, float upper, float fallback, uint64_t key,
                  uint64_t ordinal, uint64_t element)
{
    if (!(ls_random_uniform(key, ordinal, element) < probability))
        return fallback;
    return lower + ls_random_uniform(key, ordinal, element + 1) * (upper - lower);
}

struct ls_distortion ls_distortion_draw(const Lockstep__DistortionParameter *p, uint64_t key,
                                        uint64_t ordinal, uint64_t first)
{
    struct ls_distortion d = {
        .late_contrast = ls_random_below(key, ordinal, first + DRAW_WHEN, 2) == 0,
        .brightness = draw(p->brightness_prob, -p->brightness_delta, p->brightness_delta, 0, key,
                           ordinal, first + DRAW_BRIGHTNESS),
        .contrast = draw(p->contrast_prob, p->contrast_lower, p->contrast_upper, 1, key, ordinal,
                         first + DRAW_CONTRAST),
        .saturation = draw(p->saturation_prob, p->saturation_lower, p->saturation_upper, 1, key,
                           ordinal, first + DRAW_SATURATION),
        .hue = draw(p->hue_prob, -p->hue_delta, p->hue_delta, 0, key, ordinal, first + DRAW_HUE)};
    if (ls_random_uniform(key, ordinal, first + DRAW_ORDER) < p->random_order_prob)
        d.order = (int)ls_random_below(key, ordinal, first + DRAW_ORDER + 1, 6);
    return d;
}

bool ls_distortion_changes(const struct ls_distortion *d)
{
    return d->brightness != 0 || d->contrast != 1 || d->saturation != 1 || d->hue != 0 ||
           d->order != 0;
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

/* The nearest of 0..255; halves upwards. */
static uint8_t to_byte(float x)
{
    return x <= 0 ? 0 : x >= 255 ? 255 : (uint8_t)floorf(x + 0.5F);
}

/* What x * factor + shift is for each byte. */
static void make_table(float factor, float shift, uint8_t table[256])
{
    for (int i = 0; i < 256; i++)
        table[i] = to_byte((float)i * factor + shift);
}

static void look_up(const uint8_t table[256], int64_t count, uint8_t *bytes)
{
    for (int64_t i = 0; i < count; i++)
        bytes[i] = table[bytes[i]];
}

/* x / y to the nearest, halves upwards; y > 0. */
static int32_t divide(int32_t x, int32_t y)
{
    const int32_t twice = 2 * x + y, whole = twice / (2 * y);
    return twice < 0 && whole * 2 * y != twice ? whole - 1 : whole;
}

struct hsv {
    uint8_t hue, saturation, value; /* 0..179, 0..255, 0..255 */
};

static struct hsv to_hsv(int32_t b, int32_t g, int32_t r)
{
    const int32_t low = b < g ? (b < r ? b : r) : (g < r ? g : r);
    const int32_t high = b > g ? (b > r ? b : r) : (g > r ? g : r);
    const int32_t span = high - low;
    if (span == 0)
        return (struct hsv){0, 0, (uint8_t)high};
    const int32_t angle = high == r ? g - b : high == g ? b - r + 2 * span : r - g + 4 * span;
    const int32_t hue = divide(30 * angle, span); /* a sixth of the circle is 30 */
    return (struct hsv){(uint8_t)(hue < 0      ? hue + 180
                                  : hue >= 180 ? hue - 180
                                               : hue),
                        (uint8_t)divide(255 * span, high), (uint8_t)high};
}

/* value x (1 - saturation / 255 x part / 30) */
static uint8_t darker(struct hsv c, int32_t part)
{
    return (uint8_t)divide(c.value * (255 * 30 - c.saturation * part), 255 * 30);
}

/* Hues beyond 179 begin again at 0. */
static void from_hsv(struct hsv c, uint8_t *b, uint8_t *g, uint8_t *r)
{
    const int32_t hue = c.hue % 180, part = hue % 30;
    const uint8_t low = darker(c, 30), falls = darker(c, part), rises = darker(c, 30 - part);
    const uint8_t high = c.value;
    const uint8_t red[] = {high, falls, low, low, rises, high};
    const uint8_t green[] = {rises, high, high, falls, low, low};
    const uint8_t blue[] = {low, low, rises, high, high, falls};
    *r = red[hue / 30];
    *g = green[hue / 30];
    *b = blue[hue / 30];
}

/* Changes hue or saturation; the other is a table that changes nothing. */
static void change_colours(const uint8_t hues[256], const uint8_t saturations[256], int64_t size,
                           uint8_t *b, uint8_t *g, uint8_t *r)
{
    for (int64_t i = 0; i < size; i++) {
        struct hsv c = to_hsv(b[i], g[i], r[i]);
        c.hue = hues[c.hue];
        c.saturation = saturations[c.saturation];
        from_hsv(c, &b[i], &g[i], &r[i]);
    }
}

static void reorder(int order, int64_t size, uint8_t *planes)
{
    static const int from[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int64_t i = 0; i < size; i++) {
        const uint8_t pixel[3] = {planes[i], planes[size + i], planes[2 * size + i]};
        for (int c = 0; c < 3; c++)
            planes[c * size + i] = pixel[from[order][c]];
    }
}

static void change_contrast(const struct ls_distortion *d, int64_t count, uint8_t *planes)
{
    uint8_t table[256];
    if (d->contrast == 1)
        return;
    make_table(d->contrast, 0, table);
    look_up(table, count, planes);
}

void ls_distortion_apply(const struct ls_distortion *d, int64_t channels, int64_t size,
                         uint8_t *planes)
{
    uint8_t table[256], same[256];
    const int64_t count = channels * size;
    if (d->brightness != 0) {
        make_table(1, d->brightness, table);
        look_up(table, count, planes);
    }
    if (!d->late_contrast)
        change_contrast(d, count, planes);
    make_table(1, 0, same);
    if (channels == 3 && d->saturation != 1) {
        make_table(d->saturation, 0, table);
        change_colours(same, table, size, planes, planes + size, planes + 2 * size);
    }
    if (channels == 3 && d->hue != 0) {
        make_table(1, d->hue, table);
        change_colours(table, same, size, planes, planes + size, planes + 2 * size);
    }
    if (d->late_contrast)
        change_contrast(d, count, planes);
    if (channels == 3 && d->order != 0)
        reorder(d->order, size, planes);
}
