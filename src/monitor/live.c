/* Composing the live line.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PARTS = 5, PART_SIZE = 48, BAR_MIN = 12, BAR_MAX = 32, BAR_STEP = 4 };

void ls_format_duration(double seconds, char *out, size_t size)
{
    /* Also what is not a number, or more than a century, must give a short text. */
    int64_t whole = seconds > 0 && seconds < 3e9 ? (int64_t)(seconds + 0.5) : seconds > 0 ? -1 : 0;
    if (whole < 0)
        snprintf(out, size, "ages");
    else if (whole < 60)
        snprintf(out, size, "%" PRId64 "s", whole);
    else if (whole < 3600)
        snprintf(out, size, "%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
    else if (whole < 86400)
        snprintf(out, size, "%" PRId64 "h%02" PRId64, whole / 3600, whole / 60 % 60);
    else
        snprintf(out, size, "%" PRId64 "d%02" PRId64 "h", whole / 86400, whole / 3600 % 24);
}

static double fraction_done(const struct ls_live *live)
{
    if (live->iteration_end <= 0 || live->iteration >= live->iteration_end)
        return 1;
    return live->iteration > 0 ? (double)live->iteration / (double)live->iteration_end : 0;
}

/* The parts in the order of their importance. Returns how many there are. */
static int compose_parts(const struct ls_live *live, char parts[PARTS][PART_SIZE])
{
    int count = 0;
    snprintf(parts[count++], PART_SIZE, "%" PRId64 "/%" PRId64 "  %d%%", live->iteration,
             live->iteration_end, (int)(100 * fraction_done(live)));
    snprintf(parts[count++], PART_SIZE, "loss %.4g", live->loss);
    if (live->seconds_left >= 0) {
        char left[24];
        ls_format_duration(live->seconds_left, left, sizeof left);
        snprintf(parts[count++], PART_SIZE, "%s left", left);
    }
    if (live->samples_per_second > 0)
        snprintf(parts[count++], PART_SIZE, "%.0f samples/s", live->samples_per_second);
    snprintf(parts[count++], PART_SIZE, "lr %.4g", live->learning_rate);
    return count;
}

/* "[====>    ]" of `columns` columns. */
static void compose_bar(double fraction, int columns, char *out)
{
    int inner = columns - 2, done = (int)(fraction * inner);
    *out++ = '[';
    for (int i = 0; i < inner; i++)
        *out++ = i < done ? '=' : i == done ? '>' : ' ';
    *out++ = ']';
    *out = '\0';
}

void ls_live_compose(const struct ls_live *live, int width, char *out, size_t size)
{
    char parts[PARTS][PART_SIZE], bar[BAR_MAX + 1] = "";
    int count = compose_parts(live, parts);
    int room = width < (int)size ? width : (int)size - 1;
    int used = 0, shown = 0;
    while (shown < count) {
        int length = (int)strlen(parts[shown]) + (shown > 0 ? 2 : 0);
        if (used + length > room)
            break;
        used += length;
        shown++;
    }
    /* In steps, so that the line does not jump with every digit more or less. */
    int columns = (room - used - 2) / BAR_STEP * BAR_STEP;
    if (shown == count && columns >= BAR_MIN)
        compose_bar(fraction_done(live), columns < BAR_MAX ? columns : BAR_MAX, bar);
    int at = bar[0] != '\0' ? snprintf(out, size, "%s  ", bar) : 0;
    out[at] = '\0';
    for (int i = 0; i < shown; i++)
        at += snprintf(out + at, size - (size_t)at, "%s%s", i > 0 ? "  " : "", parts[i]);
}
