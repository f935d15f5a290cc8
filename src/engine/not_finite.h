/* Where numbers that are not finite come from: a micro-batch that has left one is computed once
 * more, step by step, and the first step that makes one is found.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_NOT_FINITE_H
#define LS_ENGINE_NOT_FINITE_H

#include <stdbool.h>
#include <stddef.h>

struct ls_pass;

enum { LS_NOT_FINITE_TEXT = 600, LS_NOT_FINITE_HINT = 200 };

/* What was found. */
struct ls_not_finite {
    char text[LS_NOT_FINITE_TEXT]; /* "layer 'log' (net.prototxt:2:1) makes -inf of 0 ..."; empty:
                                      nothing was */
    char hint[LS_NOT_FINITE_HINT]; /* what to do about it; empty: nothing is known */
    bool learned;                  /* weights have a part in it */
};

/* Computes a unit of a pass again, which has run; nothing that it leaves counts. What fails in that
 * is no failure of the pass: nothing is found then. By worker 0. */
void ls_not_finite_find(struct ls_pass *pass, size_t unit, struct ls_not_finite *found);

#endif
