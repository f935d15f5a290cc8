/* What a stream leads to: a terminal or not, how wide, how many colours.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_TERMINAL_H
#define LS_MONITOR_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* A terminal that understands how to go back to the start of a line (TERM is not "dumb"). */
bool ls_terminal(FILE *stream);

/* Columns of the terminal behind a stream; 80 where it does not say or is none. */
int ls_terminal_width(FILE *stream);
/* Its lines; 0 where it does not say or is none. */
int ls_terminal_height(FILE *stream);

/* Whether the environment says that text is UTF-8. */
bool ls_terminal_utf8(void);

/* What the user wishes of all streams: set once, before anything is written. */
enum ls_colour_choice { LS_COLOURS_AUTO, LS_COLOURS_ALWAYS, LS_COLOURS_NEVER };
enum ls_verbosity { LS_QUIET, LS_NORMAL, LS_VERBOSE };
void ls_terminal_choose(enum ls_colour_choice colours, enum ls_verbosity verbosity);
/* Whether no more than errors, warnings and results is wished. */
bool ls_quiet(void);
/* Whether details are wished, too (LOCKSTEP_EVENT_DETAIL). */
bool ls_verbose(void);

enum ls_colours {
    LS_COLOURS_NONE,
    LS_COLOURS_256,
    LS_COLOURS_ALL /* COLORTERM says truecolor or 24bit */
};
/* By the user's choice. LS_COLOURS_AUTO: none where NO_COLOR is set (and not empty); else some
 * where CLICOLOR_FORCE or FORCE_COLOR is set (and not 0), or on a terminal. */
enum ls_colours ls_terminal_colours(FILE *stream);

/* Writes text from outside, as ls_put_clean, with the words "error:", "warning:" and "hint:" in
 * their colours. */
void ls_put_marked(FILE *stream, const char *text, enum ls_colours colours);

/* Bytes of the character of UTF-8 that a text begins with; 0 if it is none (RFC 3629: no overlong
 * forms, no halves of UTF-16, nothing above U+10FFFF). */
int ls_character_bytes(const char *text);
/* Writes text from outside: control characters, which a terminal would obey, and what is no UTF-8
 * become '?'. */
void ls_put_clean(FILE *stream, const char *text);
/* As ls_put_clean, for a terminal of `width` columns with the cursor in `column`: a line that is
 * longer goes on, indented, behind a space. What has no space is left to the terminal. */
void ls_put_wrapped(FILE *stream, const char *text, int column, int width);

/* Columns that a UTF-8 text takes, each character counted as one. */
int ls_text_columns(const char *text);
/* Copies as many characters of `text` as fit into `columns` and into `size` bytes; shorter texts
 * are not filled up. */
void ls_text_cut(const char *text, int columns, char *out, size_t size);

#endif
