/* The line that is redrawn in place while a training runs.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_LIVE_H
#define LS_MONITOR_LIVE_H

#include <stddef.h>
#include <stdint.h>

struct ls_live {
    int64_t iteration, iteration_end;
    double loss, learning_rate;
    double samples_per_second; /* 0: not known yet */
    double seconds_left;       /* < 0: not known yet */
};

/* Composes the line, at most `width` columns of ASCII, in `out` of `size` bytes:
 *     [=====>     ]  1234/10000  12%  loss 0.0123  1:23 left  8123 samples/s  lr 0.01
 * What does not fit is left out, from the right; the bar takes what remains. */
void ls_live_compose(const struct ls_live *live, int width, char *out, size_t size);

/* "59s", "1:23" (minutes), "2h05" or "3d04h". */
void ls_format_duration(double seconds, char *out, size_t size);

#endif
