/* What a stream leads to.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The parent of a process; 0 where that cannot be found out. */
static long parent_of(long process)
{
    char path[64], state;
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    /* "PID (NAME) STATE PARENT ..."; a name may have spaces, but its end is the last bracket. */
    char line[512] = "";
    const char *end = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    if (end == NULL || sscanf(end + 1, " %c %ld", &state, &parent) != 2)
        parent = 0;
    fclose(file);
    return parent;
}

/* Open MPI's mpirun gives ranks a pseudo-terminal and copies what they write to its own output,
 * which may be a file. What counts is where the nearest ancestor writes whose output is another
 * one: mpirun, if it runs on this machine. */
static bool launcher_has_terminal(int fd)
{
    enum { ANCESTORS = 16 };
    char own[64] = "", path[64];
    if (ttyname_r(fd, own, sizeof own) != 0)
        return false;
    long process = getppid();
    for (int i = 0; i < ANCESTORS && process > 1; i++, process = parent_of(process)) {
        char leads_to[64] = "";
        snprintf(path, sizeof path, "/proc/%ld/fd/1", process);
        if (readlink(path, leads_to, sizeof leads_to - 1) <= 0)
            return false;
        if (strcmp(leads_to, own) != 0)
            return strncmp(leads_to, "/dev/pts/", 9) == 0 || strncmp(leads_to, "/dev/tty", 8) == 0;
    }
    return false;
}

bool ls_terminal(FILE *stream)
{
    int fd = fileno(stream);
    const char *term = getenv("TERM");
    if (fd < 0 || !isatty(fd) || (term != NULL && strcmp(term, "dumb") == 0))
        return false;
    return getenv("OMPI_COMM_WORLD_SIZE") == NULL || launcher_has_terminal(fd);
}

int ls_terminal_width(FILE *stream)
{
    struct winsize size;
    int fd = fileno(stream);
    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

int ls_terminal_height(FILE *stream)
{
    struct winsize size;
    int fd = fileno(stream);
    return fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

static struct {
    enum ls_colour_choice colours;
    enum ls_verbosity verbosity;
} chosen = {LS_COLOURS_AUTO, LS_NORMAL};

void ls_terminal_choose(enum ls_colour_choice colours, enum ls_verbosity verbosity)
{
    chosen.colours = colours;
    chosen.verbosity = verbosity;
}

bool ls_quiet(void)
{
    return chosen.verbosity == LS_QUIET;
}

bool ls_verbose(void)
{
    return chosen.verbosity == LS_VERBOSE;
}

/* The value of a variable of the environment; "" where it is not set. */
static const char *value_of(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL ? value : "";
}

static bool forces(const char *variable)
{
    const char *value = value_of(variable);
    return value[0] != '\0' && strcmp(value, "0") != 0;
}

static bool colours_by_environment(FILE *stream)
{
    return value_of("NO_COLOR")[0] == '\0' &&
           (forces("CLICOLOR_FORCE") || forces("FORCE_COLOR") || ls_terminal(stream));
}

enum ls_colours ls_terminal_colours(FILE *stream)
{
    const char *depth = getenv("COLORTERM");
    if (chosen.colours == LS_COLOURS_NEVER ||
        (chosen.colours == LS_COLOURS_AUTO && !colours_by_environment(stream)))
        return LS_COLOURS_NONE;
    bool all = depth != NULL && (strcmp(depth, "truecolor") == 0 || strcmp(depth, "24bit") == 0);
    return all ? LS_COLOURS_ALL : LS_COLOURS_256;
}

int ls_character_bytes(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = *p < 0x80 ? 1 : *p < 0xc0 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf8 ? 4 : 0;
    if (length < 2)
        return length;
    uint32_t code = *p & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) /* the end of the text is none, too */
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    bool valid = code >= least[length] && code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    return valid ? length : 0;
}

/* Control characters and what is no UTF-8 become question marks. U+0080 to U+009F are control
 * characters, too. */
static void put(FILE *stream, const char *text, size_t size)
{
    for (const char *p = text, *end = text + size; p < end;) {
        const unsigned char first = (unsigned char)*p,
                            second = first != 0 ? (unsigned char)p[1] : 0;
        const int length = ls_character_bytes(p);
        const bool control = first < 0x20 || first == 0x7f || (first == 0xc2 && second < 0xa0);
        if (control || length == 0 || length > end - p)
            putc('?', stream);
        else
            fwrite(p, 1, (size_t)length, stream);
        p += length > 0 ? length : 1;
    }
}

void ls_put_clean(FILE *stream, const char *text)
{
    put(stream, text, strlen(text));
}

void ls_put_marked(FILE *stream, const char *text, enum ls_colours colours)
{
    static const struct {
        const char *word, *colour;
    } marks[] = {{"error:", "\033[1;31m"}, {"warning:", "\033[1;33m"}, {"hint:", "\033[1;36m"}};
    const char *begun = text; /* what is not written yet */
    for (const char *p = text; *p != '\0' && colours != LS_COLOURS_NONE; p++)
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            size_t length = strlen(marks[i].word);
            if ((p > text && p[-1] != ' ') || strncmp(p, marks[i].word, length) != 0)
                continue;
            put(stream, begun, (size_t)(p - begun));
            fprintf(stream, "%s%s\033[0m", marks[i].colour, marks[i].word);
            begun = p + length;
        }
    ls_put_clean(stream, begun);
}

/* Whether a byte begins a character. */
static bool begins(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

static int count_columns(const char *text, size_t size)
{
    int columns = 0;
    for (size_t i = 0; i < size; i++)
        columns += begins(text[i]);
    return columns;
}

int ls_text_columns(const char *text)
{
    return count_columns(text, strlen(text));
}

void ls_put_wrapped(FILE *stream, const char *text, int column, int width)
{
    enum { INDENT = 4 };
    while (*text != '\0') {
        size_t spaces = strspn(text, " "), size = spaces + strcspn(text + spaces, " ");
        if (column > INDENT && column + count_columns(text, size) > width) {
            fprintf(stream, "\n%*s", INDENT, "");
            column = INDENT;
            text += spaces;
            size -= spaces;
        }
        put(stream, text, size);
        column += count_columns(text, size);
        text += size;
    }
}

void ls_text_cut(const char *text, int columns, char *out, size_t size)
{
    size_t end = 0;
    for (size_t at = 0; at < size; at++) {
        if (text[at] == '\0' || begins(text[at])) {
            end = at; /* whole characters until here */
            if (text[at] == '\0' || columns-- == 0)
                break;
        }
    }
    memcpy(out, text, end);
    out[end] = '\0';
}

bool ls_terminal_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}
