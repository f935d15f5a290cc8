/* Texts and numbers in HTML and SVG.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_HTML_H
#define LS_REPORT_HTML_H

#include <stdint.h>

#include "base/text.h"

/* A text from outside: nothing in it is an element or an attribute's end, and what is neither UTF-8
 * nor a character that people see becomes U+FFFD. */
void ls_html_text(struct ls_text *page, const char *text);
/* A text in a string of JSON inside of a <script> element, with its quotes. */
void ls_html_json(struct ls_text *page, const char *text);
/* A number with so many digits that people read ("0.0123", "1.5e-07"). NaN is a dash. */
void ls_html_number(struct ls_text *page, double value);
/* "1,234,567". */
void ls_html_count(struct ls_text *page, int64_t value);
/* "1 h 23 min", "12.3 s". */
void ls_html_time(struct ls_text *page, double seconds);

#endif
