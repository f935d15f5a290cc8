/* Figures in units. See base/units.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/units.h"

#include <stddef.h>
#include <stdio.h>

/* Divides by `step` until less than `step` is left, but for what "%.1f" would round up to it.
 * Returns how often, at most `most` times. */
static size_t scale(double *number, double step, size_t most)
{
    size_t times = 0;
    for (; *number >= step - 0.05 && times < most; times++)
        *number /= step;
    return times;
}

const char *ls_format_size(char out[LS_UNITS_ROOM], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = scale(&bytes, 1024, sizeof units / sizeof *units - 1);
    snprintf(out, LS_UNITS_ROOM, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return out;
}

const char *ls_format_flops(char out[LS_UNITS_ROOM], double flops)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P"};
    size_t unit = scale(&flops, 1000, sizeof units / sizeof *units - 1);
    snprintf(out, LS_UNITS_ROOM, "%.4g %sFLOP", flops, units[unit]);
    return out;
}

const char *ls_format_seconds(char out[LS_UNITS_ROOM], double seconds)
{
    if (!(seconds >= 59.95) || seconds > 1e12) {
        snprintf(out, LS_UNITS_ROOM, seconds > 1e12 ? "%.3g s" : "%.1f s", seconds);
        return out;
    }
    long long whole = (long long)(seconds + 0.5);
    if (whole < 3600)
        snprintf(out, LS_UNITS_ROOM, "%lld min %02lld s", whole / 60, whole % 60);
    else
        snprintf(out, LS_UNITS_ROOM, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
    return out;
}
