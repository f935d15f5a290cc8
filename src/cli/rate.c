/* Speeds and times. See cli/rate.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/rate.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/size.h"
#include "monitor/live.h"

struct unit {
    const char *name;
    double factor;
};

static const struct unit prefixes[] = {{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"", 1}};
static const struct unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

/* Of a byte, by how speeds are written; longer names first. */
static const struct unit speeds[] = {{"bit/s", 0.125}, {"bits/s", 0.125}, {"bps", 0.125},
                                     {"b/s", 0.125},   {"bit", 0.125},    {"B/s", 1}};

/* Reads a number and the blanks behind it. */
static const char *number_of(const char *text, double *number)
{
    const char *end = ls_cli_parse_number(text, number);
    while (end != NULL && *end == ' ')
        end++;
    return end;
}

/* Whether `text` begins with a word, and what follows is none of its letters. */
static bool begins(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && !isalpha((unsigned char)text[length]) &&
           text[length] != '/';
}

/* Bytes a second; what follows them, or NULL where it is no speed. */
static const char *parse_rate(const char *text, double *bytes)
{
    double number;
    const char *unit = number_of(text, &number);
    for (size_t p = 0; unit != NULL && p < sizeof prefixes / sizeof *prefixes; p++) {
        size_t length = strlen(prefixes[p].name);
        if (strncasecmp(unit, prefixes[p].name, length) != 0)
            continue;
        for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
            if (begins(unit + length, speeds[i].name)) {
                *bytes = number * prefixes[p].factor * speeds[i].factor;
                return unit + length + strlen(speeds[i].name);
            }
    }
    return NULL;
}

const char *ls_cli_parse_time(const char *text, double *seconds)
{
    double number;
    const char *unit = number_of(text, &number);
    for (size_t i = 0; unit != NULL && i < sizeof times / sizeof *times; i++)
        if (begins(unit, times[i].name)) {
            *seconds = number * times[i].factor;
            return unit + strlen(times[i].name);
        }
    return NULL;
}

bool ls_cli_parse_link(const char *text, struct ls_cli_link *link)
{
    const char *at = parse_rate(text, &link->bandwidth);
    double *const more[] = {&link->latency, &link->message};
    for (size_t i = 0; i < 2 && at != NULL && *at == ','; i++)
        at = ls_cli_parse_time(at + 1, more[i]);
    return at != NULL && *at == '\0' && link->bandwidth > 0;
}

const char *ls_cli_format_rate(double bytes, char buffer[LS_CLI_RATE_ROOM])
{
    static const char *const names[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
    double bits = 8 * bytes;
    size_t i = 0;
    for (; bits >= 999.5 && i + 1 < sizeof names / sizeof *names; i++)
        bits /= 1000;
    snprintf(buffer, LS_CLI_RATE_ROOM, "%.3g %s", bits, names[i]);
    return buffer;
}

const char *ls_cli_format_time(double seconds, char buffer[LS_CLI_RATE_ROOM])
{
    static const char *const names[] = {"ns", "us", "ms", "s"};
    double time = seconds * 1e9;
    size_t i = 0;
    if (seconds >= 59.95) {
        ls_format_duration(seconds, buffer, LS_CLI_RATE_ROOM);
        return buffer;
    }
    for (; time >= 999.5 && i + 1 < sizeof names / sizeof *names; i++)
        time /= 1000;
    snprintf(buffer, LS_CLI_RATE_ROOM, "%.3g %s", time, names[i]);
    return buffer;
}
