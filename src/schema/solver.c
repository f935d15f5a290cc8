/* The steps of reading a solver, and how its problems and warnings are told.
 *
 * file -> overrides -> upgrade -> nets (read, upgraded, filtered) -> checks
 *
 * A step goes on after the problems of those before it, so that a user sees all of them at once;
 * but nothing is said about fields that may be missing only because they could not be read.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/solver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "schema/fields.h"
#include "schema/solver_parts.h"
#include "schema/text_format.h"
#include "schema/suggest.h"
#include "schema/upgrade.h"

enum { WARNINGS_MAX = 64 };

bool ls_solver_has(const struct ls_solver_reading *reading, const char *field)
{
    const ProtobufCMessage *message = &reading->solver->base;
    return ls_field_count(message, ls_field_named(message->descriptor, field)) > 0;
}

static int problem(struct ls_solver_reading *reading, const void *at, const char *field,
                   const char *hint, const char *format, va_list arguments)
{
    char place[LS_PLACE_MAX], message[700];
    vsnprintf(message, sizeof message, format, arguments);
    ls_place(reading->out->definition, at, field, place, sizeof place);
    return ls_fail(reading->error, LOCKSTEP_DEFINITION, place, hint, "%s", message);
}

int ls_solver_problem(struct ls_solver_reading *reading, const char *field, const char *hint,
                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = problem(reading, reading->solver, field, hint, format, arguments);
    va_end(arguments);
    return status;
}

int ls_solver_problem_at(struct ls_solver_reading *reading, const void *message, const char *field,
                         const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = problem(reading, message, field, hint, format, arguments);
    va_end(arguments);
    return status;
}

/* Keeps a warning, unless it is there already: nets of one file have much in common. */
static void keep_warning(struct ls_solver_reading *reading, const char *text)
{
    struct ls_arena *arena = reading->out->definition->arena;
    for (size_t i = 0; i < reading->warning_count; i++)
        if (strcmp(reading->warning[i], text) == 0)
            return;
    if (reading->warning == NULL)
        reading->warning = ls_arena_alloc(arena, WARNINGS_MAX, sizeof *reading->warning);
    char *copy = ls_arena_copy_string(arena, text);
    if (reading->warning != NULL && copy != NULL && reading->warning_count < WARNINGS_MAX)
        reading->warning[reading->warning_count++] = copy;
}

/* What was read over in a file. */
static void keep_definition_warning(struct ls_solver_reading *reading,
                                    const struct ls_definition *definition)
{
    if (definition->warning != NULL)
        keep_warning(reading, definition->warning);
}

static void warn(struct ls_solver_reading *reading, const struct ls_definition *definition,
                 const void *message, const char *field, const char *format, va_list arguments)
{
    char text[LS_PLACE_MAX + 700];
    ls_place(definition, message, field, text, LS_PLACE_MAX);
    size_t length = strlen(text);
    length += (size_t)snprintf(text + length, sizeof text - length, ": ");
    vsnprintf(text + length, sizeof text - length, format, arguments);
    keep_warning(reading, text);
}

void ls_solver_warn(struct ls_solver_reading *reading, const char *field, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    warn(reading, reading->out->definition, reading->solver, field, format, arguments);
    va_end(arguments);
}

void ls_solver_warn_at(struct ls_solver_reading *reading, const struct ls_definition *definition,
                       const void *message, const char *field, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    warn(reading, definition, message, field, format, arguments);
    va_end(arguments);
}

int ls_solver_unknown(struct ls_solver_reading *reading, const char *field, const char *what,
                      const char *word, const char *const *known, size_t count)
{
    return ls_solver_unknown_at(reading, reading->solver, field, what, word, known, count);
}

int ls_solver_unknown_at(struct ls_solver_reading *reading, const void *message, const char *field,
                         const char *what, const char *word, const char *const *known, size_t count)
{
    struct ls_text all = {0};
    char meant[LS_MEANT_MAX];
    ls_did_you_mean(word, known, count, meant);
    for (size_t i = 0; i < count; i++)
        ls_text_format(&all, "%s%s",
                       i == 0          ? "known are "
                       : i + 1 < count ? ", "
                                       : " and ",
                       known[i]);
    int status = ls_solver_problem_at(reading, message, field, meant[0] == '\0' ? all.data : NULL,
                                      "unknown %s '%s'%s", what, word, meant);
    ls_text_free(&all);
    return status;
}

uint64_t ls_solver_seed(const Lockstep__SolverParameter *solver)
{
    return solver->has_random_seed && solver->random_seed >= 0 ? (uint64_t)solver->random_seed : 1;
}

void ls_solver_definition_free(struct ls_solver_definition *solver)
{
    if (solver == NULL)
        return;
    for (size_t i = 0; i < solver->file_count; i++)
        ls_definition_free(solver->file[i]);
    ls_free(solver->file);
    ls_definition_free(solver->definition);
    ls_free(solver);
}

/* The status of the first problem. */
static int first_of(int status, int next)
{
    return status != 0 ? status : next;
}

/* All steps; goes on after problems as long as what follows makes sense. `status` is that of
 * reading the file. *nets_known tells whether the nets themselves could be read. */
static int read_solver(struct ls_solver_reading *reading, int status, const char *const *set,
                       size_t set_count, bool *nets_known)
{
    struct ls_solver_definition *out = reading->out;
    for (size_t i = 0; i < set_count; i++)
        status = first_of(status, ls_solver_set(reading, set[i]));
    reading->status = status;
    bool complete = status == 0; /* else what seems to be missing may only be misspelt */
    status = first_of(status, ls_solver_upgrade(out->definition, reading->solver, reading->error));
    int nets = ls_solver_find_nets(reading, complete);
    *nets_known = nets == 0 && out->train.net != NULL;
    status = first_of(status, nets);
    status = first_of(status, ls_solver_set_batch(reading));
    status = first_of(status, out->train.status);
    for (size_t i = 0; i < out->test_count; i++)
        status = first_of(status, out->test[i].status);
    keep_definition_warning(reading, out->definition);
    for (size_t i = 0; i < out->file_count; i++)
        keep_definition_warning(reading, out->file[i]);
    if (complete)
        status = first_of(status, ls_solver_check(reading, nets == 0));
    out->gpu_asked = reading->solver->has_solver_mode &&
                     reading->solver->solver_mode == LOCKSTEP__SOLVER_PARAMETER__SOLVER_MODE__GPU;
    out->warning = reading->warning;
    out->warning_count = reading->warning_count;
    return status;
}

int ls_solver_read_partly(const char *path, const char *const *set, size_t set_count,
                          struct ls_solver_definition **out, struct ls_error *error)
{
    const ProtobufCMessageDescriptor *type = &lockstep__solver_parameter__descriptor;
    *out = NULL;
    LS_TRY(ls_definition_guess(path, &type, error));
    if (type != &lockstep__solver_parameter__descriptor)
        return ls_fail(error, LOCKSTEP_DEFINITION, path,
                       "a solver names a net (net: \"net.prototxt\") and says how to train it",
                       "this is a net, not a solver");
    struct ls_solver_definition *solver = ls_alloc(1, sizeof *solver);
    if (solver == NULL)
        return ls_fail_memory(error, "a solver");
    bool nets = false;
    int status =
        ls_definition_read_partly(path, type, LOCKSTEP_DEFINITION, &solver->definition, error);
    if (solver->definition != NULL) {
        struct ls_solver_reading reading = {.out = solver, .error = error};
        reading.solver = (Lockstep__SolverParameter *)solver->definition->message;
        solver->solver = reading.solver;
        status = read_solver(&reading, status, set, set_count, &nets);
    }
    if (status == 0 || (status == LOCKSTEP_DEFINITION && nets))
        *out = solver;
    else
        ls_solver_definition_free(solver);
    return status;
}

int ls_solver_read_text(const char *path, const char *text, struct ls_solver_definition **out,
                        struct ls_error *error)
{
    *out = NULL;
    struct ls_solver_definition *solver = ls_alloc(1, sizeof *solver);
    if (solver == NULL)
        return ls_fail_memory(error, "a solver");
    bool nets = false;
    int status = ls_text_read(path, text, strlen(text), &lockstep__solver_parameter__descriptor,
                              &solver->definition, error);
    if (status == 0) {
        struct ls_solver_reading reading = {.out = solver, .error = error};
        reading.solver = (Lockstep__SolverParameter *)solver->definition->message;
        solver->solver = reading.solver;
        status = read_solver(&reading, 0, NULL, 0, &nets);
    }
    if (status == 0 || (status == LOCKSTEP_DEFINITION && nets))
        *out = solver;
    else
        ls_solver_definition_free(solver);
    return status;
}

int ls_solver_read(const char *path, const char *const *set, size_t set_count,
                   struct ls_solver_definition **out, struct ls_error *error)
{
    int status = ls_solver_read_partly(path, set, set_count, out, error);
    if (status != 0) {
        ls_solver_definition_free(*out);
        *out = NULL;
    }
    return status;
}
