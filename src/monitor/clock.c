/* See monitor/clock.h. SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/clock.h"

#include <time.h>

double ls_monitor_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
