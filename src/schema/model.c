/* A net for use without a solver: to test, to predict, to look at. The file may be a net or a
 * solver, which is found out from what it says, because both end in .prototxt.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "schema/net_state.h"
#include "schema/upgrade.h"

/* What a solver says about the net to use: its first test net, else the one that it trains. */
struct choice {
    const char *file;
    const char *field;
    Lockstep__NetParameter *inside;
    const Lockstep__NetState *state;
};

/* In the order in which a solver would test: what is named for tests goes first. */
static void choose(const Lockstep__SolverParameter *solver, struct choice *choice)
{
    *choice = (struct choice){.field = "net"};
    if (solver->n_test_state > 0)
        choice->state = solver->test_state[0];
    if (solver->n_test_net_param > 0)
        choice->inside = solver->test_net_param[0];
    else if (solver->n_test_net > 0)
        *choice = (struct choice){solver->test_net[0], "test_net", NULL, choice->state};
    else if (solver->net != NULL)
        choice->file = solver->net;
    else if (solver->net_param != NULL)
        choice->inside = solver->net_param;
    else if (solver->train_net != NULL)
        *choice = (struct choice){solver->train_net, "train_net", NULL, choice->state};
    else
        choice->inside = solver->train_net_param;
}

void ls_net_take_solver(struct ls_net_definition *net, const Lockstep__SolverParameter *solver)
{
    net->precision = solver->precision;
    net->portable = solver->algorithm == LOCKSTEP__SOLVER_PARAMETER__ALGORITHM__PORTABLE;
    net->class_figures = solver->show_per_class_result;
    net->average_precision = strcmp(solver->ap_version, "11point") == 0 ? LS_PRECISION_11_POINT
                             : strcmp(solver->ap_version, "MaxIntegral") == 0
                                 ? LS_PRECISION_MAX_INTEGRAL
                                 : LS_PRECISION_INTEGRAL;
}

/* Filters for the phase, then what the net says, the solver, the caller. */
static int filter(struct ls_definition *definition, const Lockstep__NetParameter *net,
                  const Lockstep__NetState *of_solver, const struct ls_net_state *wanted,
                  struct ls_net_definition *out, struct ls_error *error)
{
    struct ls_arena *arena = definition->arena;
    Lockstep__NetState *state =
        (Lockstep__NetState *)ls_arena_message(arena, &lockstep__net_state__descriptor);
    if (state == NULL || !ls_state_merge(arena, state, net->state) ||
        !ls_state_merge(arena, state, of_solver) || !ls_state_add(arena, state, wanted))
        return ls_fail_memory(error, "a definition");
    return ls_net_filter_state(definition, net, state, out, error);
}

/* Reads the file of a net and makes the chosen state part of what it says. */
static int read_net_file(const char *path, const Lockstep__NetState *of_solver,
                         const struct ls_net_state *wanted, struct ls_net_definition *out,
                         struct ls_error *error)
{
    struct ls_definition *definition;
    int read = ls_definition_read_partly(path, &lockstep__net_parameter__descriptor,
                                         LOCKSTEP_DEFINITION, &definition, error);
    if (definition == NULL)
        return read;
    Lockstep__NetParameter *net = (Lockstep__NetParameter *)definition->message;
    int status = ls_net_upgrade(definition, net, error);
    if (status == 0)
        status = filter(definition, net, of_solver, wanted, out, error);
    out->status = read;
    if (status == 0) { /* the solver, and its state with it, may go away */
        const Lockstep__NetState *state = out->net->state;
        for (size_t i = 0; i < state->n_stage && status == 0; i++) {
            state->stage[i] = ls_arena_copy_string(definition->arena, state->stage[i]);
            status = state->stage[i] != NULL ? 0 : ls_fail_memory(error, "a definition");
        }
    }
    if (status != 0) {
        ls_definition_free(definition);
        *out = (struct ls_net_definition){0};
    }
    return status;
}

/* The net that a solver names; if it is inside, the solver's definition becomes the net's. */
static int read_solver_net(struct ls_definition *definition, const struct ls_net_state *wanted,
                           struct ls_net_definition *out, struct ls_error *error)
{
    Lockstep__SolverParameter *solver = (Lockstep__SolverParameter *)definition->message;
    struct choice choice;
    choose(solver, &choice);
    if (choice.file != NULL) {
        char *path = ls_resolve_path(choice.file, definition->file);
        if (path == NULL)
            return ls_fail_memory(error, "a path");
        int status = read_net_file(path, choice.state, wanted, out, error);
        ls_free(path);
        ls_net_take_solver(out, solver);
        return status;
    }
    if (choice.inside == NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, definition->file, NULL,
                       "the solver names no net");
    LS_TRY(ls_net_upgrade(definition, choice.inside, error));
    int status = filter(definition, choice.inside, choice.state, wanted, out, error);
    ls_net_take_solver(out, solver);
    return status;
}

int ls_net_read(const char *path, const struct ls_net_state *state, struct ls_net_definition *out,
                struct ls_error *error)
{
    const ProtobufCMessageDescriptor *type = &lockstep__net_parameter__descriptor;
    *out = (struct ls_net_definition){0};
    LS_TRY(ls_definition_guess(path, &type, error));
    if (type == &lockstep__net_parameter__descriptor)
        return read_net_file(path, NULL, state, out, error);
    struct ls_definition *solver;
    LS_TRY(ls_definition_read_file(path, type, LOCKSTEP_DEFINITION, &solver, error));
    int status = read_solver_net(solver, state, out, error);
    if (status != 0 || out->definition != solver) /* else the solver is what `out` owns */
        ls_definition_free(solver);
    return status;
}
