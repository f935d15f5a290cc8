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
    (void)pcre2_jit_compile(out->code, PCRE2_JIT_COMPLETE);
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
    return matcher;
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

enum ls_found ls_pattern_find(const struct ls_pattern *pattern, struct ls_matcher *matcher,
                              const char *text, size_t length, size_t from, int only_there,
                              size_t *begin, size_t *end)
{
    const uint64_t steps = STEPS_LEAST + (uint64_t)STEPS_PER_BYTE * length;
    const uint32_t options = PCRE2_NO_UTF_CHECK | (only_there ? PCRE2_ANCHORED : 0);
    pcre2_set_match_limit(matcher->context, steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps);
    pcre2_set_depth_limit(matcher->context, steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps);
    const int found = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, from, options,
                                  matcher->data, matcher->context);
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
