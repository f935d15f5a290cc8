/* The time that has passed, for what a person sees; no result depends on it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_CLOCK_H
#define LS_MONITOR_CLOCK_H

/* Seconds of a clock that only goes forward. */
double ls_monitor_clock(void);
/* Seconds since 1970. */
double ls_monitor_time(void);

#endif
