/* Which nets a solver trains and tests, by Caffe's rules; what differs: test_iter may be missing,
 * then every test net runs over every sample once, and a common net is tested once (or once for
 * each test_state).
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "schema/net_state.h"
#include "schema/solver_parts.h"
#include "schema/upgrade.h"

/* Where a net comes from: a file, or a message in the solver. */
struct source {
    const char *field;
    size_t index; /* of a repeated field */
    const char *file;
    Lockstep__NetParameter *inside;
};

/* Says where the file was named, which tells more than where it is not. */
static int missing_file(struct ls_solver_reading *reading, const struct source *source)
{
    char place[LS_PLACE_MAX];
    ls_place_index(reading->out->definition, reading->solver, source->field, source->index, place,
                   sizeof place);
    return ls_fail(reading->error, LOCKSTEP_DEFINITION, place,
                   "a path is tried from the working directory, then from the solver's folder",
                   "there is no file '%s'", source->file);
}

/* Whether a file's problems have been reported for another net. */
static bool has_failed(const struct ls_solver_reading *reading, const char *path)
{
    for (size_t i = 0; i < reading->failed_count; i++)
        if (strcmp(reading->failed[i], path) == 0)
            return true;
    return false;
}

char *ls_solver_passed_over(const char *path, const char *definition)
{
    const char *slash = definition != NULL ? strrchr(definition, '/') : NULL;
    struct ls_text beside = {0};
    if (path[0] == '/' || slash == NULL || !ls_file_exists(path))
        return NULL;
    ls_text_add_bytes(&beside, definition, (size_t)(slash - definition) + 1);
    ls_text_add(&beside, path);
    if (!beside.failed && ls_file_exists(beside.data) && !ls_same_file(path, beside.data))
        return beside.data;
    ls_text_free(&beside);
    return NULL;
}

/* Reads and upgrades a file; a failure is remembered, so that it is reported once. *damage is that
 * of reading what could be read all the same. */
static int read_new_file(struct ls_solver_reading *reading, const struct source *source,
                         const char *path, struct ls_definition **out, int *damage)
{
    struct ls_solver_definition *solver = reading->out;
    char *other = ls_solver_passed_over(source->file, solver->definition->file);
    if (other != NULL)
        ls_solver_warn(reading, source->field,
                       "the net is '%s' of the working directory, not '%s', which is there, too",
                       path, other);
    ls_free(other);
    int status = ls_file_exists(path)
                     ? ls_definition_read_partly(path, &lockstep__net_parameter__descriptor,
                                                 LOCKSTEP_DEFINITION, out, reading->error)
                     : missing_file(reading, source);
    if (*out != NULL) { /* there is room for one file a net */
        *damage = status;
        reading->damage[solver->file_count] = status;
        solver->file[solver->file_count++] = *out;
        status = ls_net_upgrade(*out, (Lockstep__NetParameter *)(*out)->message, reading->error);
    }
    if (status != 0) {
        const char *copy = ls_arena_copy_string(solver->definition->arena, path);
        if (copy != NULL)
            reading->failed[reading->failed_count++] = copy;
    }
    return status;
}

/* The definition of a net's file, read and upgraded once. */
static int read_file(struct ls_solver_reading *reading, const struct source *source,
                     struct ls_definition **out, int *damage)
{
    struct ls_solver_definition *solver = reading->out;
    char *path = ls_resolve_path(source->file, solver->definition->file);
    if (path == NULL)
        return ls_fail_memory(reading->error, "a path");
    int status = 0;
    *out = NULL;
    for (size_t i = 0; i < solver->file_count; i++)
        if (strcmp(solver->file[i]->file, path) == 0) {
            *out = solver->file[i];
            *damage = reading->damage[i];
        }
    if (has_failed(reading, path))
        status = LOCKSTEP_DEFINITION;
    else if (*out == NULL)
        status = read_new_file(reading, source, path, out, damage);
    ls_free(path);
    return status;
}

/* Reads a net and filters it for phase < the net's own state < the solver's. */
static int read_net(struct ls_solver_reading *reading, const struct source *source,
                    Lockstep__Phase phase, const Lockstep__NetState *given,
                    struct ls_net_definition *out)
{
    struct ls_definition *definition = reading->out->definition;
    const Lockstep__NetParameter *net = source->inside;
    int damage = reading->status;
    if (net == NULL) {
        LS_TRY(read_file(reading, source, &definition, &damage));
        net = (const Lockstep__NetParameter *)definition->message;
    }
    struct ls_arena *arena = definition->arena;
    Lockstep__NetState *state =
        (Lockstep__NetState *)ls_arena_message(arena, &lockstep__net_state__descriptor);
    if (state == NULL)
        return ls_fail_memory(reading->error, "a definition");
    state->has_phase = state->has_level = 1;
    state->phase = phase;
    if (!ls_state_merge(arena, state, net->state) || !ls_state_merge(arena, state, given))
        return ls_fail_memory(reading->error, "a definition");
    LS_TRY(ls_net_filter_state(definition, net, state, out, reading->error));
    out->status = damage;
    ls_net_take_solver(out, reading->solver);
    out->debug_info = reading->solver->debug_info && phase == LOCKSTEP__PHASE__TRAIN;
    return 0;
}

/* The solver's net, or net_param; false if there is neither. */
static bool common_source(const Lockstep__SolverParameter *solver, struct source *source)
{
    *source = (struct source){.field = solver->net != NULL ? "net" : "net_param",
                              .file = solver->net,
                              .inside = solver->net != NULL ? NULL : solver->net_param};
    return source->file != NULL || source->inside != NULL;
}

/* Exactly one of four fields names the net to train. */
static int find_train_net(struct ls_solver_reading *reading, bool complete)
{
    static const char *const fields[] = {"net", "net_param", "train_net", "train_net_param"};
    const Lockstep__SolverParameter *solver = reading->solver;
    const char *found[4];
    size_t count = 0;
    for (size_t i = 0; i < 4; i++)
        if (ls_solver_has(reading, fields[i]))
            found[count++] = fields[i];
    if (count == 0 && !complete)
        return LOCKSTEP_DEFINITION;
    if (count == 0)
        return ls_solver_problem(reading, NULL, "write net: \"file.prototxt\"",
                                 "the solver names no net to train: net, net_param, train_net or "
                                 "train_net_param");
    if (count > 1)
        return ls_solver_problem(reading, found[1], "keep one of them",
                                 "the solver names more than one net to train: %s and %s", found[0],
                                 found[1]);
    struct source source;
    if (!common_source(solver, &source))
        source = (struct source){
            .field = found[0], .file = solver->train_net, .inside = solver->train_net_param};
    return read_net(reading, &source, LOCKSTEP__PHASE__TRAIN, solver->train_state,
                    &reading->out->train);
}

/* How many test nets there are. */
static size_t count_test_nets(const Lockstep__SolverParameter *solver)
{
    struct source common;
    bool has_common = common_source(solver, &common);
    size_t named = solver->n_test_net_param + solver->n_test_net;
    if (solver->n_test_iter > 0)
        return has_common && solver->n_test_iter > named ? solver->n_test_iter : named;
    if (has_common && solver->n_test_state > named)
        return solver->n_test_state;
    bool interval = solver->test_interval > 0 || solver->has_test_interval_epoch;
    return has_common && named == 0 && interval ? 1 : named;
}

/* Whether what is given for each test net is given as often as there are test nets, and whether
 * they are ever tested. */
static int check_test_counts(struct ls_solver_reading *reading, size_t count)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    bool interval = solver->test_interval > 0 || solver->has_test_interval_epoch;
    if (solver->n_test_iter > 0 && count == 0 && !interval)
        ls_solver_warn(reading, "test_iter", "test_iter does nothing without a test net");
    else if (solver->n_test_iter > 0 && solver->n_test_iter != count)
        return ls_solver_problem(reading, "test_iter", "one for each, or none for all samples",
                                 "test_iter is given %zu times for %zu test nets",
                                 solver->n_test_iter, count);
    if (solver->n_test_state > 0 && solver->n_test_state != count)
        return ls_solver_problem(reading, "test_state", "one for each, or none",
                                 "test_state is given %zu times for %zu test nets",
                                 solver->n_test_state, count);
    if (count > 0 && !interval)
        return ls_solver_problem(reading, solver->n_test_iter > 0 ? "test_iter" : NULL,
                                 "say how often: test_interval or test_interval_epoch",
                                 "there are test nets, but they are never tested");
    return 0;
}

/* Where the index-th test net comes from: Caffe's order. */
static struct source test_source(const Lockstep__SolverParameter *solver, size_t index)
{
    struct source source;
    if (index < solver->n_test_net_param)
        return (struct source){
            .field = "test_net_param", .index = index, .inside = solver->test_net_param[index]};
    index -= solver->n_test_net_param;
    if (index < solver->n_test_net)
        return (struct source){
            .field = "test_net", .index = index, .file = solver->test_net[index]};
    common_source(solver, &source);
    return source;
}

/* Reads all test nets, also behind one that fails. */
static int find_test_nets(struct ls_solver_reading *reading, size_t count)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    struct ls_solver_definition *out = reading->out;
    int status = 0;
    out->test = ls_arena_alloc(out->definition->arena, count, sizeof *out->test);
    if (out->test == NULL)
        return ls_fail_memory(reading->error, "a definition");
    for (size_t i = 0; i < count; i++) {
        struct source source = test_source(solver, i);
        int found =
            read_net(reading, &source, LOCKSTEP__PHASE__TEST,
                     i < solver->n_test_state ? solver->test_state[i] : NULL, &out->test[i]);
        out->test[i].test_iter = i < solver->n_test_iter ? solver->test_iter[i] : 0;
        status = status != 0 ? status : found;
    }
    out->test_count = count;
    return status;
}

int ls_solver_find_nets(struct ls_solver_reading *reading, bool complete)
{
    size_t count = count_test_nets(reading->solver);
    reading->out->file = ls_alloc(count + 1, sizeof *reading->out->file);
    reading->failed =
        ls_arena_alloc(reading->out->definition->arena, count + 1, sizeof *reading->failed);
    reading->damage =
        ls_arena_alloc(reading->out->definition->arena, count + 1, sizeof *reading->damage);
    if (reading->out->file == NULL || reading->failed == NULL || reading->damage == NULL)
        return ls_fail_memory(reading->error, "a definition");
    int train = find_train_net(reading, complete);
    int counts = complete ? check_test_counts(reading, count) : 0;
    int tests = find_test_nets(reading, count);
    return train != 0 ? train : counts != 0 ? counts : tests;
}
