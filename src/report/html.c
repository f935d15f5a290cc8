/* Texts and numbers in HTML and SVG. See report/html.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd";

void ls_html_text(struct ls_text *page, const char *text)
{
    static const struct {
        char character;
        const char *written;
    } special[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (size_t left = strlen(text); left > 0;) {
        const size_t length = ls_utf8_length(text, left);
        const char *written = NULL;
        for (size_t i = 0; i < sizeof special / sizeof *special; i++)
            if (*text == special[i].character)
                written = special[i].written;
        const unsigned char c = (unsigned char)*text;
        if (length == 0 || (c < 32 && c != '\n' && c != '\t') || c == 127)
            written = replacement;
        if (written != NULL)
            ls_text_add(page, written);
        else
            ls_text_add_bytes(page, text, length);
        text += length > 0 ? length : 1;
        left -= length > 0 ? length : 1;
    }
}

void ls_html_json(struct ls_text *page, const char *text)
{
    ls_text_add(page, "\"");
    for (size_t left = strlen(text); left > 0;) {
        const size_t length = ls_utf8_length(text, left);
        const unsigned char c = (unsigned char)*text;
        /* '<' is written so that no "</script>" can end the element. */
        if (length == 0)
            ls_text_add(page, "\\ufffd");
        else if (c < 32 || c == 127 || c == '<' || c == '>' || c == '&' || c == '"' || c == '\\')
            ls_text_format(page, "\\u%04x", c);
        else
            ls_text_add_bytes(page, text, length);
        text += length > 0 ? length : 1;
        left -= length > 0 ? length : 1;
    }
    ls_text_add(page, "\"");
}

void ls_html_number(struct ls_text *page, double value)
{
    if (!isfinite(value))
        ls_text_add(page, "\xe2\x80\x93");
    else
        ls_text_format(page, "%.5g", value);
}

void ls_html_count(struct ls_text *page, int64_t value)
{
    char digits[32];
    const int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            ls_text_add(page, ",");
        ls_text_add_bytes(page, &digits[i], 1);
    }
}

void ls_html_time(struct ls_text *page, double seconds)
{
    if (!(seconds >= 0 && seconds < 1e15))
        ls_text_add(page, "\xe2\x80\x93");
    else if (seconds < 100)
        ls_text_format(page, "%.3g s", seconds);
    else if (seconds < 7200)
        ls_text_format(page, "%d min %d s", (int)(seconds / 60), (int)fmod(seconds, 60));
    else
        ls_text_format(page, "%.0f h %d min", floor(seconds / 3600),
                       (int)(fmod(seconds, 3600) / 60));
}
