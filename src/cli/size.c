/* Numbers and sizes of memory. See cli/size.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const struct {
    const char *name;
    double bytes;
} units[] = {{"", 1},       {"B", 1},        {"K", 0x1p10},   {"KiB", 0x1p10}, {"KB", 1e3},
             {"M", 0x1p20}, {"MiB", 0x1p20}, {"MB", 1e6},     {"G", 0x1p30},   {"GiB", 0x1p30},
             {"GB", 1e9},   {"T", 0x1p40},   {"TiB", 0x1p40}, {"TB", 1e12}};

const char *ls_cli_parse_number(const char *text, double *number)
{
    double scale = 1;
    int digits = 0;
    bool point = false;
    *number = 0;
    for (;; text++) {
        if (*text == '.' && !point) {
            point = true;
        } else if (isdigit((unsigned char)*text)) {
            *number = *number * 10 + (*text - '0');
            scale *= point ? 10 : 1;
            digits++;
        } else {
            break;
        }
    }
    *number /= scale;
    return digits > 0 && digits < 20 ? text : NULL;
}

bool ls_cli_parse_counts(const char *text, int most, int *counts, size_t room, size_t *count)
{
    for (*count = 0;; text++) {
        char *end;
        errno = 0;
        long number = strtol(text, &end, 10);
        if (errno != 0 || end == text || number < 1 || number > most || *count == room ||
            (*end != ',' && *end != '\0'))
            return false;
        counts[(*count)++] = (int)number;
        if (*end == '\0')
            return true;
        text = end;
    }
}

bool ls_cli_parse_size(const char *text, uint64_t *bytes)
{
    double number;
    const char *unit = ls_cli_parse_number(text, &number);
    if (unit == NULL)
        return false;
    while (*unit == ' ')
        unit++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcasecmp(unit, units[i].name) == 0) {
            number *= units[i].bytes;
            if (!(number >= 1 && number < 0x1p62))
                return false;
            *bytes = (uint64_t)number;
            return true;
        }
    return false;
}

const char *ls_cli_format_size(uint64_t bytes, char buffer[LS_CLI_SIZE_ROOM])
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB"};
    double number = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes == 0)
        return "-";
    if (bytes < 1024) {
        snprintf(buffer, LS_CLI_SIZE_ROOM, "%u B", (unsigned)bytes);
        return buffer;
    }
    while (number >= 1023.95 && unit < 3) {
        number /= 1024;
        unit++;
    }
    snprintf(buffer, LS_CLI_SIZE_ROOM, "%.1f %s", number, names[unit]);
    return buffer;
}

const char *ls_cli_format_count(double count, const char *unit, char buffer[LS_CLI_SIZE_ROOM])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    for (; count >= 999.95 && i + 1 < sizeof prefixes / sizeof *prefixes; i++)
        count /= 1000;
    snprintf(buffer, LS_CLI_SIZE_ROOM, "%.4g %s%s", count, prefixes[i], unit);
    return buffer;
}
