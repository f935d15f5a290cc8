/* Solvers with their nets: read, overridden, checked.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_SOLVER_H
#define LS_SCHEMA_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/definition.h"
#include "schema/net.h"

struct ls_solver_definition {
    const Lockstep__SolverParameter *solver; /* with overrides, upgraded */
    struct ls_definition *definition;        /* its file; also of nets inside it */
    struct ls_net_definition train;
    struct ls_net_definition *test; /* in Caffe's order: test_net_param, test_net, net */
    size_t test_count;
    const char *const *warning; /* sentences with places: settings that will change nothing */
    size_t warning_count;
    bool gpu_asked; /* the file says solver_mode: GPU: solver/card.h */

    struct ls_definition **file; /* the nets' files, each read once */
    size_t file_count;
};

/* Reads a solver, applies the overrides `set` ("field=value", "field.field=value"; the value in
 * the text format, quotes of a string may be missing; the last of several holds; "field?=value"
 * holds where the file does not say the field; "batch=N" is batch_size of the data layers of the
 * train net), finds its nets and checks every field. An override
 * of one of a pair (max_iter or max_epoch ...) replaces the other. All problems are reported in one
 * go, also those of the nets' files. Free with ls_solver_definition_free. */
int ls_solver_read(const char *path, const char *const *set, size_t set_count,
                   struct ls_solver_definition **out, struct ls_error *error);
/* As ls_solver_read, but after problems *out has what could be read if that includes all nets, so
 * that a caller can look for problems of theirs (it is of no other use), else NULL. */
int ls_solver_read_partly(const char *path, const char *const *set, size_t set_count,
                          struct ls_solver_definition **out, struct ls_error *error);
/* As ls_solver_read_partly, for a text; `path` is what it is called, and where its paths are looked
 * for. */
int ls_solver_read_text(const char *path, const char *text, struct ls_solver_definition **out,
                        struct ls_error *error);
void ls_solver_definition_free(struct ls_solver_definition *solver);

/* The seed of all random numbers: random_seed, or 1 if that is missing or negative. */
uint64_t ls_solver_seed(const Lockstep__SolverParameter *solver);

#endif
