/* Speeds and times as people write and read them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_RATE_H
#define LS_CLI_RATE_H

#include <stdbool.h>

/* "20us", "1.5 ms", "42s", "800ns": seconds. Returns what follows, or NULL where it is not a time.
 */
const char *ls_cli_parse_time(const char *text, double *seconds);

/* What links carry: bytes a second, and seconds. */
struct ls_cli_link {
    double bandwidth, latency, message;
};
/* "RATE", "RATE,LATENCY" or "RATE,LATENCY,TIME OF A MESSAGE"; a rate is written as in "10Gbps",
 * "10 Gbit/s", "100Mbit" or "1.25GB/s", by powers of 1000. Leaves what the text does not say;
 * false where it is no link. */
bool ls_cli_parse_link(const char *text, struct ls_cli_link *link);

enum { LS_CLI_RATE_ROOM = 24 };
/* "10 Gbit/s", "2.5 Mbit/s"; the buffer is returned. */
const char *ls_cli_format_rate(double bytes, char buffer[LS_CLI_RATE_ROOM]);
/* "20 us", "1.25 ms", "3.2 s", and of a minute and more "1:23" or "2h05"; the buffer is returned.
 */
const char *ls_cli_format_time(double seconds, char buffer[LS_CLI_RATE_ROOM]);

#endif
