/* Oniguruma's regular expressions in PCRE2's words. See text/pattern_syntax.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/pattern_syntax.h"

#include <string.h>

#include "text/pattern.h"

struct translation {
    const char *whole, *at;
    struct ls_text *out;
    struct ls_problem *problem;
    bool in_class;
};

static int refuse(const struct translation *t, const char *what)
{
    return ls_problem_set(t->problem, LOCKSTEP_DATA,
                          "write the regular expression without it, in the same meaning",
                          "the regular expression has %s at its byte %zu, which is not supported",
                          what, (size_t)(t->at - t->whole));
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Copies `count` bytes of the pattern. */
static int copy(struct translation *t, size_t count)
{
    ls_text_add_bytes(t->out, t->at, count);
    t->at += count;
    return 0;
}

/* Writes something else for `count` bytes of the pattern. */
static int put(struct translation *t, size_t count, const char *words)
{
    ls_text_add(t->out, words);
    t->at += count;
    return 0;
}

/* \p{Name}, \P{Name}, \p{^Name} */
static int property(struct translation *t)
{
    char name[64];
    const char *begin = t->at + 3, *end = strchr(t->at, '}');
    if (t->at[2] != '{' || end == NULL)
        return refuse(t, "\\p without {}");
    if (*begin == '^')
        begin++;
    const size_t length = (size_t)(end - begin);
    if (length == 0 || length >= sizeof name)
        return refuse(t, "an unknown property");
    memcpy(name, begin, length);
    name[length] = '\0';
    if (length <= 2 || !ls_pattern_is_script(name))
        return copy(t, (size_t)(end - t->at) + 1);
    copy(t, (size_t)(begin - t->at));
    ls_text_add(t->out, "sc:");
    return copy(t, length + 1);
}

/* \xHH, \x{H...} and \uHHHH */
static int number(struct translation *t)
{
    if (t->at[1] == 'x') {
        size_t length = t->at[2] == '{' ? 3 : 2;
        while (is_hex(t->at[length]))
            length++;
        if (t->at[2] == '{')
            return length > 3 && t->at[length] == '}' ? copy(t, length + 1)
                                                      : refuse(t, "\\x{ without its digits");
        return length >= 4 ? copy(t, 4) : refuse(t, "\\x without two digits");
    }
    for (int i = 2; i < 6; i++)
        if (!is_hex(t->at[i]))
            return refuse(t, "\\u without four digits");
    ls_text_add(t->out, "\\x{");
    t->at += 2;
    copy(t, 4);
    ls_text_add(t->out, "}");
    return 0;
}

static int word(struct translation *t)
{
    static const char boundary[] = "(?:(?<=[" LS_PATTERN_WORD "])(?![" LS_PATTERN_WORD
                                   "])|(?<![" LS_PATTERN_WORD "])(?=[" LS_PATTERN_WORD "]))";
    static const char inside[] = "(?:(?<=[" LS_PATTERN_WORD "])(?=[" LS_PATTERN_WORD
                                 "])|(?<![" LS_PATTERN_WORD "])(?![" LS_PATTERN_WORD "]))";
    const char c = t->at[1];
    if (t->in_class)
        return c == 'w'   ? put(t, 2, LS_PATTERN_WORD)
               : c == 'b' ? put(t, 2, "\\x08")
                          : refuse(t, c == 'W' ? "\\W in a class" : "\\B in a class");
    return put(t, 2,
               c == 'w'   ? "[" LS_PATTERN_WORD "]"
               : c == 'W' ? "[^" LS_PATTERN_WORD "]"
               : c == 'b' ? boundary
                          : inside);
}

static int escape(struct translation *t)
{
    const char c = t->at[1];
    char what[] = "\\?";
    what[1] = c;
    if (c == '\0')
        return refuse(t, "a \\ at its end");
    if (strchr("wWbB", c) != NULL)
        return word(t);
    if (strchr("pP", c) != NULL)
        return property(t);
    if (strchr("xu", c) != NULL)
        return number(t);
    switch (c) {
    case 's':
        return put(t, 2, "\\p{White_Space}");
    case 'S':
        return put(t, 2, "\\P{White_Space}");
    case 'd':
        return put(t, 2, "\\p{Nd}");
    case 'D':
        return put(t, 2, "\\P{Nd}");
    case 'v':
        return put(t, 2, "\\x0b");
    default:
        break;
    }
    if (strchr("rntfae", c) != NULL || (!t->in_class && strchr("AzZ", c) != NULL))
        return copy(t, 2);
    if ((unsigned char)c >= 0x80)
        return put(t, 1, "");
    const bool letter = is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter ? refuse(t, what) : copy(t, 2);
}

/* What begins with '(' */
static int group(struct translation *t)
{
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    if (t->at[1] == '*')
        return refuse(t, "(*");
    if (t->at[1] != '?')
        return copy(t, 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(t->at, kinds[i], strlen(kinds[i])) == 0)
            return copy(t, strlen(kinds[i]));
    if (t->at == t->whole && strncmp(t->at, "(?i)", 4) == 0)
        return copy(t, 4);
    return refuse(t, "a group of an unusual kind");
}

/* {n}, {n,}, {,m}, {n,m}; other braces are characters like others. */
static int interval(struct translation *t)
{
    const char *p = t->at + 1;
    const char *low = p;
    while (is_digit(*p))
        p++;
    const bool has_low = p > low, comma = *p == ',';
    const char *high = comma ? ++p : p;
    while (comma && is_digit(*p))
        p++;
    if (*p != '}' || (!has_low && p == high))
        return put(t, 1, "\\{");
    if (p[1] == '+' || (p[1] == '?' && !comma)) {
        t->at = p + 1;
        return refuse(t, "a second sign behind {}");
    }
    if (!has_low) {
        ls_text_add(t->out, "{0");
        t->at++;
    }
    return copy(t, (size_t)(p + 1 - t->at));
}

/* One step inside [ ]. */
static int in_class(struct translation *t)
{
    if (*t->at == '[')
        return refuse(t, "a class in a class");
    if (t->at[0] == '&' && t->at[1] == '&')
        return refuse(t, "&& in a class");
    t->in_class = *t->at != ']';
    return copy(t, 1);
}

static int class_begins(struct translation *t)
{
    t->in_class = true;
    copy(t, t->at[1] == '^' ? 2 : 1);
    return *t->at == ']' ? refuse(t, "] as the first of a class") : 0;
}

int ls_pattern_translate(const char *pattern, struct ls_text *out, struct ls_problem *problem)
{
    struct translation t = {.whole = pattern, .at = pattern, .out = out, .problem = problem};
    ls_text_add(out, "");
    while (*t.at != '\0') {
        if (*t.at == '\\')
            LS_TRY(escape(&t));
        else if (t.in_class)
            LS_TRY(in_class(&t));
        else if (*t.at == '[')
            LS_TRY(class_begins(&t));
        else if (*t.at == '(')
            LS_TRY(group(&t));
        else if (*t.at == '{')
            LS_TRY(interval(&t));
        else
            copy(&t, 1);
    }
    return out->failed ? ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory") : 0;
}
