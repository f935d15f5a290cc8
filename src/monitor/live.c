/* Composing and drawing live lines.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/live.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/terminal.h"

enum { PARTS = 6, PART_SIZE = 64, NAME_COLUMNS = 16 };
enum { BAR_MIN = 10, BAR_MAX = 32, BAR_STEP = 4, GAP = 2 };

/* ---- Figures --------------------------------------------------------------------------------- */

void ls_format_duration(double seconds, char *out, size_t size)
{
    /* Also what is not a number, or more than a century, must give a short text. */
    int64_t whole = seconds > 0 && seconds < 3e9 ? (int64_t)(seconds + 0.5) : seconds > 0 ? -1 : 0;
    if (whole < 0)
        snprintf(out, size, "ages");
    else if (whole < 60)
        snprintf(out, size, "%" PRId64 "s", whole);
    else if (whole < 3600)
        snprintf(out, size, "%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
    else if (whole < 86400)
        snprintf(out, size, "%" PRId64 "h%02" PRId64, whole / 3600, whole / 60 % 60);
    else
        snprintf(out, size, "%" PRId64 "d%02" PRId64 "h", whole / 86400, whole / 3600 % 24);
}

void ls_format_speed(double speed, char *out, size_t size)
{
    if (!(speed < 1e15))
        snprintf(out, size, "%.3g", speed);
    else if (speed < 9.95)
        snprintf(out, size, "%.2g", speed);
    else if (speed < 9999.5)
        snprintf(out, size, "%.0f", speed);
    else if (speed < 999.95e3)
        snprintf(out, size, "%.1fk", speed / 1e3);
    else
        snprintf(out, size, "%.1fM", speed / 1e6);
}

static double fraction_done(int64_t done, int64_t all)
{
    if (all <= 0 || done >= all)
        return 1;
    return done > 0 ? (double)done / (double)all : 0;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

enum form { HIDDEN, SHORT, WHOLE };

/* A part of the line in two lengths; empty: it is not known. */
struct part {
    char shorter[PART_SIZE], whole[PART_SIZE];
    int short_room, room; /* columns that each form takes now and then: parts shall stay */
    enum form shown;
};

enum { BAR = -1 };

/* What is taken into the line, one after the other, while there is room: what matters most first.
 */
struct step {
    int part; /* index, or BAR */
    enum form form;
};

struct line {
    struct part parts[PARTS]; /* in the order of the line */
    int count;
    double fraction;  /* of the bar */
    bool bar, no_bar; /* it is there; it is not wished */
    struct ls_live_bar *before;
};

static int columns_of(const struct part *part, enum form form)
{
    if (form == HIDDEN)
        return 0;
    int length = (int)strlen(form == WHOLE ? part->whole : part->shorter);
    int room = form == WHOLE ? part->room : part->short_room;
    return length > room ? length : room;
}

/* Returns the columns that are taken; those of the bar are BAR_MIN. */
static int choose_parts(struct line *line, const struct step *steps, size_t count, int width)
{
    int used = 0;
    for (size_t i = 0; i < count; i++) {
        struct part *part = steps[i].part == BAR ? NULL : &line->parts[steps[i].part];
        if (part != NULL ? part->whole[0] == '\0' : line->no_bar)
            continue;
        bool first = used == 0, fresh = part == NULL || part->shown == HIDDEN;
        int more = part == NULL ? BAR_MIN
                                : columns_of(part, steps[i].form) - columns_of(part, part->shown);
        more += fresh && !first ? GAP : 0;
        if (used + more > width)
            continue;
        used += more;
        if (part != NULL)
            part->shown = steps[i].form;
        else
            line->bar = true;
    }
    return used;
}

/* "[====>    ]" of `columns` columns. */
static void compose_bar(double fraction, int columns, char *out)
{
    int inner = columns - 2, done = (int)(fraction * inner);
    *out++ = '[';
    for (int i = 0; i < inner; i++)
        *out++ = i < done ? '=' : i == done ? '>' : ' ';
    *out++ = ']';
    *out = '\0';
}

/* Columns of the bar, of `left` more than its least: as many as before, where that fits. */
static int choose_bar(const struct line *line, int left, int width)
{
    const int more = left < BAR_MAX - BAR_MIN ? left : BAR_MAX - BAR_MIN;
    int columns = BAR_MIN + more / BAR_STEP * BAR_STEP;
    if (line->before == NULL)
        return columns;
    if (line->before->width == width && line->before->columns < columns &&
        line->before->columns > 0)
        columns = line->before->columns;
    *line->before = (struct ls_live_bar){columns, width};
    return columns;
}

/* The bar takes what remains, in steps, so that the line does not jump with every digit. */
static void put_line(struct line *line, const struct step *steps, size_t count, int width,
                     char *out, size_t size)
{
    char bar[BAR_MAX + 1] = "";
    int room = width < (int)size ? width : (int)size - 1;
    int left = room - choose_parts(line, steps, count, room);
    if (line->bar)
        compose_bar(line->fraction, choose_bar(line, left, width), bar);
    size_t at = (size_t)snprintf(out, size, "%s", bar);
    for (int i = 0; i < line->count; i++) {
        const struct part *part = &line->parts[i];
        if (part->shown != HIDDEN)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at > 0 ? "  " : "",
                                   part->shown == WHOLE ? part->whole : part->shorter);
    }
}

/* "12/100 things  12%"; where there is little room "12%". */
static void put_done(struct part *part, int64_t done, int64_t all, const char *what)
{
    int percent = (int)(100 * fraction_done(done, all));
    char digits[32];
    snprintf(part->whole, PART_SIZE, "%" PRId64 "/%" PRId64 "%s  %d%%", done, all, what, percent);
    snprintf(part->shorter, PART_SIZE, "%d%%", percent);
    part->short_room = (int)strlen("100%");
    part->room = 2 * snprintf(digits, sizeof digits, "%" PRId64, all) + 1 + (int)strlen(what) + 5;
}

static void put_time_left(struct part *part, double seconds)
{
    char left[24];
    ls_format_duration(seconds, left, sizeof left);
    snprintf(part->whole, PART_SIZE, "%s left", left);
    snprintf(part->shorter, PART_SIZE, "%s", part->whole);
}

static void put_speed(struct part *part, double speed, const char *what)
{
    char text[24];
    ls_format_speed(speed, text, sizeof text);
    snprintf(part->whole, PART_SIZE, "%s %s/s", text, what);
    snprintf(part->shorter, PART_SIZE, "%s/s", text);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

void ls_live_compose(const struct ls_live *live, int width, char *out, size_t size)
{
    enum { DONE, LOSS, LEFT, SCORE, SPEED, RATE, COUNT };
    static const struct step steps[] = {
        {DONE, SHORT}, {LOSS, SHORT}, {LEFT, SHORT},  {SCORE, SHORT}, {SPEED, SHORT}, {BAR, WHOLE},
        {DONE, WHOLE}, {LOSS, WHOLE}, {SCORE, WHOLE}, {SPEED, WHOLE}, {RATE, WHOLE}};
    struct line line = {.count = COUNT, .before = live->bar};
    struct part *parts = line.parts;
    line.fraction = fraction_done(live->iteration, live->iteration_end);
    put_done(&parts[DONE], live->iteration, live->iteration_end, "");
    snprintf(parts[LOSS].whole, PART_SIZE, "loss %.4g", live->loss);
    snprintf(parts[LOSS].shorter, PART_SIZE, "loss %.3g", live->loss);
    parts[LOSS].short_room = (int)strlen("loss 0.123");
    parts[LOSS].room = (int)strlen("loss 0.01234");
    if (live->seconds_left >= 0)
        put_time_left(&parts[LEFT], live->seconds_left);
    if (live->score_name != NULL) {
        snprintf(parts[SCORE].whole, PART_SIZE, "%.*s %.4g", NAME_COLUMNS, live->score_name,
                 live->score);
        snprintf(parts[SCORE].shorter, PART_SIZE, "%.*s %.3g", NAME_COLUMNS, live->score_name,
                 live->score);
    }
    if (live->samples_per_second > 0)
        put_speed(&parts[SPEED], live->samples_per_second, "samples");
    snprintf(parts[RATE].whole, PART_SIZE, "lr %.4g", live->learning_rate);
    put_line(&line, steps, sizeof steps / sizeof *steps, width, out, size);
}

void ls_live_compose_count(const struct ls_counted *counted, int width, char *out, size_t size)
{
    enum { DONE, SPEED, LEFT, COUNT };
    static const struct step steps[] = {{DONE, SHORT},  {LEFT, SHORT}, {DONE, WHOLE},
                                        {SPEED, SHORT}, {BAR, WHOLE},  {SPEED, WHOLE}};
    struct line line = {.count = COUNT, .no_bar = !counted->has_bar, .before = counted->bar};
    double done = (double)counted->done, all = (double)counted->all;
    char what[PART_SIZE / 2];
    snprintf(what, sizeof what, " %s", counted->what);
    line.fraction = fraction_done(counted->done, counted->all);
    put_done(&line.parts[DONE], counted->done, counted->all, what);
    if (counted->seconds > 0 && done > 0) {
        put_speed(&line.parts[SPEED], done / counted->seconds, counted->what);
        if (counted->done < counted->all)
            put_time_left(&line.parts[LEFT], counted->seconds * (all - done) / done);
    }
    put_line(&line, steps, sizeof steps / sizeof *steps, width, out, size);
}

/* ---- The screen ------------------------------------------------------------------------------ */

/* Whether the terminal breaks a line anew when it becomes narrower, as most do. xterm and rxvt cut
 * it off. */
static bool breaks_lines_anew(void)
{
    const char *term = getenv("TERM");
    if (getenv("TMUX") != NULL)
        return true;
    return getenv("XTERM_VERSION") == NULL &&
           (term == NULL || (strncmp(term, "rxvt", 4) != 0 && strcmp(term, "linux") != 0));
}

/* Goes to where the line begins and says how to remove what is behind. */
static const char *go_back(const struct ls_live_line *line, int width)
{
    putc('\r', line->out);
    int rows = width > 0 && breaks_lines_anew() ? (line->columns - 1) / width : 0;
    if (line->columns == 0 || rows == 0)
        return "\033[K";
    fprintf(line->out, "\033[%dA", rows);
    return "\033[J";
}

void ls_live_line_draw(struct ls_live_line *line, const char *text, int width)
{
    const char *erase = go_back(line, width);
    ls_put_clean(line->out, text);
    fputs(erase, line->out);
    fflush(line->out);
    line->columns = ls_text_columns(text);
}

void ls_live_line_clear(struct ls_live_line *line, int width)
{
    if (line->columns > 0)
        fputs(go_back(line, width), line->out);
    line->columns = 0;
}
