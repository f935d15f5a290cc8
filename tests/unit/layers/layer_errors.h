/* Tables of what layers refuse, and how they say so.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_LAYER_ERRORS_H
#define LS_TESTS_LAYER_ERRORS_H

#include "one_layer.h"

#define LAYER(type) "name: 'l' type: '" type "' "
#define XY          "bottom: 'x' top: 'y' "
#define XL          "bottom: 'x' bottom: 'l' top: 'y' "
#define XLS         "bottom: 'x' bottom: 'l' bottom: 's' top: 'y' "

/* `place` is line:column in "net.prototxt" of the first problem; NULL: somewhere in line 1. */
struct error_case {
    const char *text, *bottoms, *message, *place;
};

static void check_error(const struct error_case *c, const struct ls_error *error, int status)
{
    if (status == 0)
        fail_msg("%s: accepted", c->text);
    if (status != LOCKSTEP_DEFINITION || error->count < 1)
        fail_msg("%s: status %d, %d problems", c->text, status, error->count);
    const struct ls_problem *problem = &error->problems[0];
    if (strcmp(problem->message, c->message) != 0)
        fail_msg("%s:\n  %s\nnot\n  %s", c->text, problem->message, c->message);
    char place[64];
    snprintf(place, sizeof place, "net.prototxt:%s", c->place != NULL ? c->place : "1:");
    if (strncmp(problem->place, place, strlen(place)) != 0)
        fail_msg("%s: at %s, not %s", c->text, problem->place, place);
}

static void check_errors(const struct error_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct one_layer one;
        open_layer(&one, cases[i].text, cases[i].bottoms, !is_for_tests(cases[i].text));
        int status = run_forward(&one);
        check_error(&cases[i], &one.error, status);
        assert_int_equal(one.graph->op_count, 0); /* found before anything was emitted */
        close_layer(&one);
    }
}

#endif
