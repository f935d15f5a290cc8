/* Regular expressions of tokenizers. See text/pattern.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/pattern.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include "base/memory.h"
#include "text/characters.h"
#include "text/pattern_syntax.h"

enum {
    PATTERN_MAX = 16384, /* bytes */
    STEPS_LEAST = 10000000,
    STEPS_PER_BYTE = 8,
    /* A match looks at so many bytes at first, with so many steps a byte; where that is not enough,
     * at more. */
    VIEW_LEAST = 512,
    VIEW_GROWTH = 4,
    VIEW_STEPS = 64,
    /* All further views of a text have so many bytes, and so many for each of its own. */
    VIEWS_LEAST = 16 << 20,
    VIEWS_PER_BYTE = 64,
    HEAP_KIB = 1 << 20,
    STACK_LEAST = 32 << 10,
    STACK_MOST = 64 << 20
};

struct ls_pattern {
    pcre2_code *code;
};

struct ls_matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    uint64_t views; /* bytes of further views that are left to the text */
};

static int compile(const char *pattern, bool literal, struct ls_pattern *out,
                   struct ls_problem *problem)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    int code;
    PCRE2_SIZE at;
    if (context == NULL)
        return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    out->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | (literal ? PCRE2_LITERAL
                                           : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C),
                      &code, &at, context);
    pcre2_compile_context_free(context);
    if (out->code == NULL) {
        char message[160];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "the regular expression cannot be read: %s", message);
    }
    /* Where there is no compiler for this machine, patterns are interpreted. */
    (void)pcre2_jit_compile(out->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    return 0;
}

bool ls_pattern_is_script(const char *name)
{
    char pattern[96];
    int code;
    PCRE2_SIZE at;
    snprintf(pattern, sizeof pattern, "\\p{sc:%.64s}", name);
    pcre2_code *found =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code, &at, NULL);
    pcre2_code_free(found);
    return found != NULL;
}

int ls_pattern_compile(const char *pattern, enum ls_pattern_syntax syntax, struct ls_pattern **out,
                       struct ls_problem *problem)
{
    struct ls_text translated = {0};
    int status = 0;
    *out = NULL;
    if (strlen(pattern) > PATTERN_MAX)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "a regular expression of %zu bytes; at most %d are read",
                              strlen(pattern), PATTERN_MAX);
    struct ls_pattern *mine = ls_alloc(1, sizeof *mine);
    if (mine == NULL)
        return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    if (syntax == LS_PATTERN_ONIGURUMA)
        status = ls_pattern_translate(pattern, &translated, problem);
    if (status == 0)
        status = compile(syntax == LS_PATTERN_ONIGURUMA ? translated.data : pattern,
                         syntax == LS_PATTERN_LITERAL, mine, problem);
    ls_text_free(&translated);
    if (status == 0)
        *out = mine;
    else
        ls_free(mine);
    return status;
}

void ls_pattern_free(struct ls_pattern *pattern)
{
    if (pattern == NULL)
        return;
    pcre2_code_free(pattern->code);
    ls_free(pattern);
}

struct ls_matcher *ls_matcher_new(void)
{
    struct ls_matcher *matcher = ls_alloc(1, sizeof *matcher);
    if (matcher == NULL)
        return NULL;
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    matcher->stack = pcre2_jit_stack_create(STACK_LEAST, STACK_MOST, NULL);
    if (matcher->data == NULL || matcher->context == NULL) {
        ls_matcher_free(matcher);
        return NULL;
    }
    pcre2_set_heap_limit(matcher->context, HEAP_KIB);
    if (matcher->stack != NULL)
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    ls_matcher_begin(matcher, 0);
    return matcher;
}

void ls_matcher_begin(struct ls_matcher *matcher, size_t length)
{
    matcher->views = VIEWS_LEAST + (uint64_t)VIEWS_PER_BYTE * length;
}

void ls_matcher_free(struct ls_matcher *matcher)
{
    if (matcher == NULL)
        return;
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    ls_free(matcher);
}

/* Looks at the text up to `view` alone, with so many steps. What would be found otherwise in the
 * rest of the text is PCRE2_ERROR_PARTIAL. */
static int match(const struct ls_pattern *pattern, struct ls_matcher *matcher, const char *text,
                 size_t view, size_t from, uint32_t options, uint64_t steps)
{
    const uint32_t limit = steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps;
    pcre2_set_match_limit(matcher->context, limit);
    pcre2_set_depth_limit(matcher->context, limit);
    return pcre2_match(pattern->code, (PCRE2_SPTR)text, view, from, options, matcher->data,
                       matcher->context);
}

/* Where a view of `bytes` from `from` on ends: behind a whole character. */
static size_t view_end(const char *text, size_t length, size_t from, size_t bytes)
{
    if (length - from <= bytes)
        return length;
    size_t end = from + bytes;
    while (((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    return end;
}

/* Whether a match in a view leaves open what one in the text would be. */
static bool is_open(int found, bool only_there)
{
    return found == PCRE2_ERROR_PARTIAL || found == PCRE2_ERROR_MATCHLIMIT ||
           found == PCRE2_ERROR_DEPTHLIMIT || (found == PCRE2_ERROR_NOMATCH && !only_there);
}

/* Views grow until one settles the match, so that one that ends soon costs what it looks at,
 * however long the text is, and all that cost more are counted against the text. */
enum ls_found ls_pattern_find(const struct ls_pattern *pattern, struct ls_matcher *matcher,
                              const char *text, size_t length, size_t from, int only_there,
                              size_t *begin, size_t *end)
{
    const uint64_t most = STEPS_LEAST + (uint64_t)STEPS_PER_BYTE * length;
    const uint32_t options = PCRE2_NO_UTF_CHECK | (only_there ? PCRE2_ANCHORED : 0);
    int found = PCRE2_ERROR_PARTIAL;
    for (size_t bytes = VIEW_LEAST; is_open(found, only_there); bytes *= VIEW_GROWTH) {
        const size_t view = view_end(text, length, from, bytes);
        const uint64_t steps = (uint64_t)VIEW_STEPS * bytes;
        const bool last = view == length && steps >= most;
        if (bytes > VIEW_LEAST && bytes > matcher->views)
            return LS_FOUND_LIMIT;
        if (bytes > VIEW_LEAST)
            matcher->views -= bytes;
        found = match(pattern, matcher, text, view, from,
                      view < length ? options | PCRE2_PARTIAL_HARD : options, last ? most : steps);
        if (last || (view == length && found == PCRE2_ERROR_NOMATCH))
            break;
    }
    if (found == PCRE2_ERROR_NOMATCH)
        return LS_FOUND_NONE;
    if (found == PCRE2_ERROR_NOMEMORY)
        return LS_FOUND_MEMORY;
    if (found < 0)
        return LS_FOUND_LIMIT;
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(matcher->data);
    *begin = place[0];
    *end = place[1];
    return LS_FOUND;
}

void ls_text_describe(struct ls_text *out)
{
    char version[64] = "", unicode[64] = "";
    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) < (int)sizeof version)
        (void)pcre2_config(PCRE2_CONFIG_VERSION, version);
    if (pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) < (int)sizeof unicode)
        (void)pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, unicode);
    version[strcspn(version, " ")] = '\0'; /* a date follows */
    ls_text_format(out, "text=PCRE2 %s (Unicode %s), utf8proc %s (Unicode %s)\n", version, unicode,
                   utf8proc_version(), utf8proc_unicode_version());
}
