/* See monitor/clock.h. SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/clock.h"

#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double ls_monitor_clock(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double ls_monitor_time(void)
{
    return seconds_of(CLOCK_REALTIME);
}
