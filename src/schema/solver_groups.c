/* Types of solvers and groups of parameters: what their settings may be.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "schema/fields.h"
#include "schema/solver_parts.h"

static const char *const types[] = {"SGD",      "Nesterov", "Adam", "AdamW", "AdaGrad",  "RMSProp",
                                    "AdaDelta", "Lion",     "LAMB", "Muon",  "Adafactor"};
enum { TYPES = sizeof types / sizeof types[0] };

/* The settings of the solver, or of a group with the solver's in place of those that it does not
 * say. */
struct settings {
    const void *message; /* where problems are */
    const char *type;
    float momentum;
    bool has_momentum, has_momentum2; /* in one of the two */
    const char *momentum_field;       /* NULL: it is the solver's */
};

static bool is_type(const char *word)
{
    for (size_t i = 0; i < TYPES; i++)
        if (strcmp(word, types[i]) == 0)
            return true;
    return false;
}

static bool is(const char *type, const char *a, const char *b)
{
    return strcmp(type, a) == 0 || strcmp(type, b) == 0;
}

/* Whether weights decay by themselves, and not through their gradient. */
static bool decouples(const char *type)
{
    return is(type, "AdamW", "Lion") || is(type, "LAMB", "Muon") || strcmp(type, "Adafactor") == 0;
}

/* What a type makes of settings. Momentum with AdaGrad and RMSProp is refused as in Caffe. */
static int check_settings(struct ls_solver_reading *reading, const struct settings *settings)
{
    const char *type = settings->type;
    const struct ls_definition *definition = reading->out->definition;
    bool two = strncmp(type, "Adam", 4) == 0 || is(type, "Lion", "LAMB");
    if (is(type, "AdaGrad", "RMSProp") && settings->momentum != 0)
        return ls_solver_problem_at(
            reading, settings->message, settings->momentum_field,
            settings->momentum_field != NULL ? "leave it out" : "write momentum: 0 in the group",
            "momentum cannot be used with type '%s'", type);
    if (two && !settings->has_momentum)
        ls_solver_warn_at(reading, definition, settings->message, "type",
                          "%s without momentum: its first decay rate is 0", type);
    if (strcmp(type, "Muon") == 0 && !settings->has_momentum)
        ls_solver_warn_at(reading, definition, settings->message, "type",
                          "Muon without momentum: its author has 0.95");
    if (strcmp(type, "AdaDelta") == 0 && !settings->has_momentum)
        ls_solver_warn_at(reading, definition, settings->message, "type",
                          "AdaDelta without momentum: its decay rate is 0");
    if (strcmp(type, "Lion") == 0 && !settings->has_momentum2)
        ls_solver_warn_at(reading, definition, settings->message, "type",
                          "Lion without momentum2: its second decay rate is 0.999; its authors "
                          "have 0.99");
    if (decouples(type) && strcmp(reading->solver->regularization_type, "L2") != 0)
        return ls_solver_problem(reading, "regularization_type", "leave it out",
                                 "%s decays weights themselves; there is no other kind", type);
    return 0;
}

/* ---- The solver's own ------------------------------------------------------------------------ */

/* Whether the solver, or a group, has one of these types. */
static bool some_type(const struct ls_solver_reading *reading, bool (*wanted)(const char *type))
{
    const Lockstep__SolverParameter *solver = reading->solver;
    for (size_t i = 0; i < solver->n_param_group; i++)
        if (solver->param_group[i]->type != NULL && wanted(solver->param_group[i]->type))
            return true;
    return wanted(solver->type);
}

static bool reads_momentum2(const char *type)
{
    return strncmp(type, "Adam", 4) == 0 || is(type, "Lion", "LAMB");
}

static bool reads_delta(const char *type)
{
    return !is(type, "SGD", "Nesterov") && strcmp(type, "Lion") != 0;
}

static bool reads_rms_decay(const char *type)
{
    return strcmp(type, "RMSProp") == 0;
}

static bool orthogonalizes(const char *type)
{
    return strcmp(type, "Muon") == 0;
}

static bool factors(const char *type)
{
    return strcmp(type, "Adafactor") == 0;
}

static bool corrects_delta(const char *type)
{
    return is(type, "Adam", "AdamW");
}

/* Fields that only some rules read. */
static const struct {
    const char *field;
    bool (*read)(const char *type);
} some_read[] = {{"momentum2", reads_momentum2}, {"delta", reads_delta},
                 {"rms_decay", reads_rms_decay}, {"corrected_delta", corrects_delta},
                 {"muon_param", orthogonalizes}, {"adafactor_param", factors}};
enum { SOME_READ = sizeof some_read / sizeof some_read[0] };

static void warn_unused(struct ls_solver_reading *reading)
{
    for (size_t i = 0; i < SOME_READ; i++)
        if (ls_solver_has(reading, some_read[i].field) && !some_type(reading, some_read[i].read))
            ls_solver_warn(reading, some_read[i].field, "%s does nothing with type '%s'",
                           some_read[i].field, reading->solver->type);
}

/* The same of a group's own fields. */
static void warn_unused_in_group(struct ls_solver_reading *reading,
                                 const Lockstep__ParameterGroup *group, const char *type)
{
    for (size_t i = 0; i < SOME_READ; i++) {
        const ProtobufCFieldDescriptor *field =
            ls_field_named(group->base.descriptor, some_read[i].field);
        if (ls_field_count(&group->base, field) > 0 && !some_read[i].read(type))
            ls_solver_warn_at(reading, reading->out->definition, group, field->name,
                              "%s does nothing with type '%s'", field->name, type);
    }
}

static int check_muon(struct ls_solver_reading *reading, const Lockstep__MuonParameter *muon)
{
    static const struct ls_solver_range ranges[] = {{"newton_schulz", 1, 20, false, false}};
    return muon != NULL ? ls_solver_check_ranges(reading, &muon->base, ranges, 1) : 0;
}

static int check_adafactor(struct ls_solver_reading *reading,
                           const Lockstep__AdafactorParameter *adafactor)
{
    static const struct ls_solver_range ranges[] = {{"scale_min", 0, INFINITY, false, true},
                                                    {"clip", 0, INFINITY, true, true},
                                                    {"decay_power", 0, INFINITY, false, true},
                                                    {"square_min", 0, INFINITY, false, true}};
    return adafactor != NULL ? ls_solver_check_ranges(reading, &adafactor->base, ranges,
                                                      sizeof ranges / sizeof ranges[0])
                             : 0;
}

int ls_solver_check_type(struct ls_solver_reading *reading)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    LS_TRY(check_muon(reading, solver->muon_param));
    LS_TRY(check_adafactor(reading, solver->adafactor_param));
    if (!is_type(solver->type))
        return ls_solver_unknown(reading, "type", "solver type", solver->type, types, TYPES);
    warn_unused(reading);
    return check_settings(reading, &(struct settings){.message = solver,
                                                      .type = solver->type,
                                                      .momentum = solver->momentum,
                                                      .has_momentum = solver->has_momentum,
                                                      .has_momentum2 = solver->has_momentum2,
                                                      .momentum_field = "momentum"});
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static const struct ls_solver_range ranges[] = {
    {"min_axes", 0, INFINITY, false, false}, {"max_axes", 0, INFINITY, false, false},
    {"lr_mult", 0, INFINITY, false, true},   {"decay_mult", 0, INFINITY, false, true},
    {"base_lr", 0, INFINITY, false, true},   {"momentum", 0, 1, false, true},
    {"momentum2", 0, 1, false, true},        {"delta", 0, INFINITY, true, true},
    {"rms_decay", 0, 1, false, true},        {"weight_decay", 0, INFINITY, false, true},
};

static int check_matches(struct ls_solver_reading *reading, const Lockstep__ParameterGroup *group)
{
    const bool every = group->n_match == 0 && !group->has_min_axes && !group->has_max_axes;
    for (size_t i = 0; i < group->n_match; i++)
        if (group->match[i][0] == '\0')
            return ls_solver_problem_at(reading, group, "match", "write match: \"*.bias\"",
                                        "an empty pattern matches no parameter");
    if (group->has_min_axes && group->has_max_axes && group->min_axes > group->max_axes)
        return ls_solver_problem_at(reading, group, "max_axes", NULL,
                                    "max_axes is less than min_axes");
    if (every)
        return ls_solver_problem_at(reading, group, NULL,
                                    "write match: \"*.bias\", min_axes or max_axes",
                                    "a param_group must say which parameters it is for");
    return 0;
}

/* What the solver must say, too. */
static int check_rate(struct ls_solver_reading *reading, const Lockstep__ParameterGroup *group)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    if (!group->has_base_lr || solver->base_lr > 0)
        return 0;
    return ls_solver_problem_at(reading, group, "base_lr", "write lr_mult in the group",
                                "base_lr of a param_group needs a base_lr above 0 in the solver: "
                                "rates of the policy are multiplied by their quotient");
}

static int check_name(struct ls_solver_reading *reading, size_t index)
{
    Lockstep__ParameterGroup *const *groups = reading->solver->param_group;
    const char *name = groups[index]->name;
    for (size_t i = 0; i < index && name != NULL; i++)
        if (groups[i]->name != NULL && strcmp(groups[i]->name, name) == 0)
            return ls_solver_problem_at(reading, groups[index], "name", NULL,
                                        "there is another param_group '%.100s' above", name);
    return 0;
}

static int check_group(struct ls_solver_reading *reading, size_t index)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    const Lockstep__ParameterGroup *group = solver->param_group[index];
    const char *type = group->type != NULL ? group->type : solver->type;
    int status =
        ls_solver_check_ranges(reading, &group->base, ranges, sizeof ranges / sizeof ranges[0]);
    const int found[] = {check_matches(reading, group), check_rate(reading, group),
                         check_name(reading, index), check_muon(reading, group->muon_param),
                         check_adafactor(reading, group->adafactor_param)};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        status = status != 0 ? status : found[i];
    if (!is_type(type)) {
        if (group->type != NULL) /* else it is said of the solver's */
            return ls_solver_unknown_at(reading, group, "type", "solver type", type, types, TYPES);
        return status;
    }
    warn_unused_in_group(reading, group, type);
    const struct settings settings = {
        .message = group,
        .type = type,
        .momentum = group->has_momentum ? group->momentum : solver->momentum,
        .has_momentum = group->has_momentum || solver->has_momentum,
        .has_momentum2 = group->has_momentum2 || solver->has_momentum2,
        .momentum_field = group->has_momentum ? "momentum" : NULL};
    const bool own = group->type != NULL || group->has_momentum; /* else as the solver's */
    int checked = own ? check_settings(reading, &settings) : 0;
    return status != 0 ? status : checked;
}

int ls_solver_check_groups(struct ls_solver_reading *reading)
{
    int status = 0;
    for (size_t i = 0; i < reading->solver->n_param_group; i++) {
        int found = check_group(reading, i);
        status = status != 0 ? status : found;
    }
    return status;
}
