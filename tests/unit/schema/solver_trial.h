/* What the tests of solvers share: solvers from text, which work or fail with some problems.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_SOLVER_TRIAL_H
#define LS_TESTS_SOLVER_TRIAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schema/solver.h"
#include "support/support.h"

enum { SET_MAX = 8 };

/* What every solver below needs, and names nothing that is missing. */
#define BASE "net: 'net.prototxt' base_lr: 1 lr_policy: 'fixed' max_iter: 9 "

static char solver_path[512], net_path[512];

static inline int set_up(void **state)
{
    (void)state;
    strcpy(net_path, ls_test_path("net.prototxt"));
    strcpy(solver_path, ls_test_path("solver.prototxt"));
    ls_test_write_text(net_path, "layer { name: 'a' include { phase: TRAIN } }\n"
                                 "layer { name: 'b' include { phase: TEST } }\n"
                                 "layer { name: 'c' include { stage: 's' } }\n"
                                 "layer { name: 'd' include { stage: 't' } }");
    return 0;
}

/* Reads a text as a solver's file; *problems (8192 bytes) gets what was reported, with "S:" for the
 * solver's path and "N:" for the net's. */
static inline struct ls_solver_definition *read_text(const char *text, const char *const *set,
                                                     size_t count, char *problems)
{
    struct ls_error error = {0};
    struct ls_solver_definition *solver;
    ls_test_write_text(solver_path, text);
    int status = ls_solver_read(solver_path, set, count, &solver, &error);
    assert_int_equal(status == 0, solver != NULL);
    assert_int_equal(status == 0, error.count == 0);
    if (status != 0)
        assert_int_equal(status, LOCKSTEP_DEFINITION);
    char raw[8192];
    ls_error_format(&error, raw, sizeof raw);
    char *out = problems;
    for (const char *at = raw; *at != '\0';) {
        if (strncmp(at, solver_path, strlen(solver_path)) == 0) {
            at += strlen(solver_path);
            *out++ = 'S';
        } else if (strncmp(at, net_path, strlen(net_path)) == 0) {
            at += strlen(net_path);
            *out++ = 'N';
        } else {
            *out++ = *at++;
        }
    }
    *out = '\0';
    return solver;
}

static inline void fails_with(const char *text, const char *wanted)
{
    char problems[8192];
    struct ls_solver_definition *solver = read_text(text, NULL, 0, problems);
    if (strcmp(problems, wanted) != 0)
        fail_msg("%s\nsays\n%s\nand not\n%s", text, problems, wanted);
    ls_solver_definition_free(solver);
}

static inline struct ls_solver_definition *works(const char *text)
{
    char problems[8192];
    struct ls_solver_definition *solver = read_text(text, NULL, 0, problems);
    assert_string_equal(problems, "");
    return solver;
}

static inline void net_is(const struct ls_net_definition *net, const char *wanted)
{
    char names[64] = "";
    for (size_t i = 0; i < net->net->n_layer; i++)
        strcat(names, net->net->layer[i]->name);
    assert_string_equal(names, wanted);
}

#endif
