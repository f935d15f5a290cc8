/* Groups of parameters. See solver/groups.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/groups.h"

#include <math.h>
#include <sleef.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/wildcard.h"
#include "schema/suggest.h"

static const struct {
    const char *name;
    enum ls_update_kind kind;
} kinds[] = {{"SGD", LS_UPDATE_SGD},
             {"Nesterov", LS_UPDATE_NESTEROV},
             {"Adam", LS_UPDATE_ADAM},
             {"AdamW", LS_UPDATE_ADAMW},
             {"AdaGrad", LS_UPDATE_ADAGRAD},
             {"RMSProp", LS_UPDATE_RMSPROP},
             {"AdaDelta", LS_UPDATE_ADADELTA},
             {"Lion", LS_UPDATE_LION},
             {"LAMB", LS_UPDATE_LAMB},
             {"Muon", LS_UPDATE_MUON},
             {"Adafactor", LS_UPDATE_ADAFACTOR}};

int ls_groups_kind(const char *type, enum ls_update_kind *kind, struct ls_error *error)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, type) == 0) {
            *kind = kinds[i].kind;
            return 0;
        }
    return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL, "unknown solver type '%s'", type);
}

/* ---- Settings -------------------------------------------------------------------------------- */

static void set_muon(struct ls_group *group, const Lockstep__MuonParameter *muon)
{
    if (muon == NULL)
        return;
    group->nesterov = muon->nesterov;
    group->newton_schulz = muon->newton_schulz;
    group->match_rms = muon->scale == LOCKSTEP__MUON_PARAMETER__SCALE__MATCH_RMS;
}

static void set_adafactor(struct ls_group *group, const Lockstep__AdafactorParameter *adafactor)
{
    if (adafactor == NULL)
        return;
    group->relative_step = adafactor->relative_step;
    group->scale_parameter = adafactor->scale_parameter;
    group->scale_min = adafactor->scale_min;
    group->clip = adafactor->clip;
    group->decay_power = adafactor->decay_power;
    group->square_min = adafactor->square_min;
}

static struct ls_group group_of_solver(const Lockstep__SolverParameter *solver)
{
    struct ls_group group = {.name = "the rest",
                             .type = solver->type != NULL ? solver->type : "SGD",
                             .rate = 1,
                             .lr_mult = 1,
                             .decay_mult = 1,
                             .momentum = solver->momentum,
                             .momentum2 = solver->momentum2,
                             .delta = solver->delta,
                             .rms_decay = solver->rms_decay,
                             .decay = solver->weight_decay,
                             .corrected_delta = solver->corrected_delta,
                             .nesterov = true,
                             .newton_schulz = 5};
    const Lockstep__AdafactorParameter defaults = LOCKSTEP__ADAFACTOR_PARAMETER__INIT;
    set_muon(&group, solver->muon_param);
    set_adafactor(&group, solver->adafactor_param != NULL ? solver->adafactor_param : &defaults);
    return group;
}

/* The schema has seen to it that the solver's base_lr is not 0 where the group has one. */
static struct ls_group group_of(const Lockstep__SolverParameter *solver,
                                const Lockstep__ParameterGroup *from)
{
    struct ls_group group = group_of_solver(solver);
    group.lr_mult = from->lr_mult;
    group.decay_mult = from->decay_mult;
    if (from->type != NULL)
        group.type = from->type;
    if (from->has_base_lr)
        group.rate = (double)from->base_lr / (double)solver->base_lr;
    if (from->has_momentum)
        group.momentum = from->momentum;
    if (from->has_momentum2)
        group.momentum2 = from->momentum2;
    if (from->has_delta)
        group.delta = from->delta;
    if (from->has_rms_decay)
        group.rms_decay = from->rms_decay;
    if (from->has_weight_decay)
        group.decay = from->weight_decay;
    if (from->has_corrected_delta)
        group.corrected_delta = from->corrected_delta;
    set_muon(&group, from->muon_param);
    set_adafactor(&group, from->adafactor_param);
    return group;
}

static char *name_of(const Lockstep__ParameterGroup *group, size_t index)
{
    if (group->name != NULL)
        return ls_copy_string(group->name);
    struct ls_text text = {0};
    ls_text_format(&text, "group %zu", index + 1);
    char *name = text.failed ? NULL : ls_copy_string(text.data);
    ls_text_free(&text);
    return name;
}

static int read_settings(struct ls_groups *groups, const Lockstep__SolverParameter *solver,
                         struct ls_error *error)
{
    size_t count = solver->n_param_group;
    for (size_t i = 0; i < count; i++) {
        groups->group[i] = group_of(solver, solver->param_group[i]);
        groups->names[i] = name_of(solver->param_group[i], i);
        groups->group[i].name = groups->names[i];
        if (groups->names[i] == NULL)
            return ls_fail_memory(error, "groups of parameters");
        LS_TRY(ls_groups_kind(groups->group[i].type, &groups->group[i].kind, error));
    }
    groups->group[count] = group_of_solver(solver);
    return ls_groups_kind(groups->group[count].type, &groups->group[count].kind, error);
}

/* ---- Which parameters a group has ------------------------------------------------------------ */

struct search {
    const struct ls_solver_definition *definition;
    const struct ls_parameter_set *set;
    size_t parameters;
    struct ls_groups *groups;
    struct ls_error *error;
};

static bool axes_fit(const Lockstep__ParameterGroup *group, const struct ls_parameter *parameter)
{
    return (!group->has_min_axes || parameter->shape.rank >= group->min_axes) &&
           (!group->has_max_axes || parameter->shape.rank <= group->max_axes);
}

static bool matches(const Lockstep__ParameterGroup *group, const struct ls_parameter *parameter)
{
    bool named = group->n_match == 0;
    for (size_t i = 0; i < group->n_match && !named; i++)
        named = ls_wildcard_matches(group->match[i], parameter->name);
    return named && axes_fit(group, parameter);
}

static int nothing_found(const struct search *search, const Lockstep__ParameterGroup *group,
                         const char *field, const char *hint, const char *what)
{
    char place[LS_PLACE_MAX];
    ls_place(search->definition->definition, group, field, place, sizeof place);
    return ls_fail(search->error, LOCKSTEP_DEFINITION, place, hint, "%s", what);
}

/* A pattern that no parameter's name matches. */
static int check_pattern(const struct search *search, const Lockstep__ParameterGroup *group,
                         const char *pattern)
{
    const char **names = ls_alloc(search->parameters + 1, sizeof *names);
    char meant[LS_MEANT_MAX] = "";
    bool found = false;
    if (names == NULL)
        return ls_fail_memory(search->error, "groups of parameters");
    for (size_t i = 0; i < search->parameters; i++) {
        names[i] = search->set->items[i]->name;
        found = found || ls_wildcard_matches(pattern, names[i]);
    }
    int status = 0;
    if (!found) {
        struct ls_text text = {0}, hint = {0};
        ls_did_you_mean(pattern, names, search->parameters, meant);
        ls_text_format(&text, "param_group matches '%.100s', but no parameter has such a name%s",
                       pattern, meant);
        ls_text_format(&hint, "names are like '%.100s'; lockstep plan without the group shows all",
                       search->parameters > 0 ? names[0] : "");
        status = text.failed || hint.failed
                     ? ls_fail_memory(search->error, "groups of parameters")
                     : nothing_found(search, group, "match", meant[0] == '\0' ? hint.data : NULL,
                                     text.data);
        ls_text_free(&text);
        ls_text_free(&hint);
    }
    ls_free((void *)names);
    return status;
}

/* A group of which nothing became a member. */
static int check_members(const struct search *search, const Lockstep__ParameterGroup *group,
                         size_t index)
{
    bool named = false, any = false, member = false;
    for (size_t i = 0; i < search->parameters; i++) {
        any = any || axes_fit(group, search->set->items[i]);
        named = named || matches(group, search->set->items[i]);
        member = member || search->groups->of[i] == (int)index;
    }
    if (member)
        return 0;
    if (named)
        return nothing_found(search, group, NULL, "put it before the others, or leave it out",
                             "all parameters that this param_group matches belong to groups before "
                             "it");
    return nothing_found(search, group, group->has_max_axes ? "max_axes" : "min_axes",
                         "a bias has one axis, the weights of an inner product have two, those of "
                         "a convolution four",
                         any ? "no parameter that this param_group matches has that many axes"
                             : "no parameter has that many axes");
}

/* Parameters that the train net has: moving averages are of no group, since nothing trains them. */
static int find_members(const struct search *search)
{
    const Lockstep__SolverParameter *solver = search->definition->solver;
    struct ls_groups *groups = search->groups;
    int status = 0;
    for (size_t p = 0; p < search->set->count; p++) {
        const struct ls_parameter *parameter = search->set->items[p];
        size_t g = 0;
        while (g < solver->n_param_group && (p >= search->parameters || parameter->average ||
                                             !matches(solver->param_group[g], parameter)))
            g++;
        groups->of[p] = (int)g;
        groups->group[g].parameters += parameter->trained;
    }
    for (size_t g = 0; g < solver->n_param_group; g++) {
        int found = 0;
        for (size_t i = 0; i < solver->param_group[g]->n_match && found == 0; i++)
            found = check_pattern(search, solver->param_group[g], solver->param_group[g]->match[i]);
        if (found == 0)
            found = check_members(search, solver->param_group[g], g);
        status = status != 0 ? status : found;
    }
    return status;
}

/* Muon is for matrices. */
static int check_matrices(const struct search *search)
{
    const Lockstep__SolverParameter *solver = search->definition->solver;
    const struct ls_groups *groups = search->groups;
    for (size_t i = 0; i < search->parameters; i++) {
        const struct ls_parameter *parameter = search->set->items[i];
        const size_t g = (size_t)groups->of[i];
        const void *message =
            g < solver->n_param_group ? (const void *)solver->param_group[g] : (const void *)solver;
        const bool own = g == solver->n_param_group || solver->param_group[g]->type != NULL;
        char place[LS_PLACE_MAX];
        if (groups->group[g].kind != LS_UPDATE_MUON || !parameter->trained ||
            parameter->shape.rank >= 2)
            continue;
        ls_place(search->definition->definition, message, own ? "type" : NULL, place, sizeof place);
        return ls_fail(search->error, LOCKSTEP_DEFINITION, place,
                       "give such parameters another type: param_group { max_axes: 1 type: "
                       "\"AdamW\" momentum: 0.9 }, before groups that match them",
                       "Muon is for weights of two axes or more, but '%.100s' has %d",
                       parameter->name, parameter->shape.rank);
    }
    return 0;
}

/* What a rule remembers of a parameter, and asks for. */
static struct ls_optimizer_state state_of(const struct ls_group *group,
                                          const struct ls_parameter *parameter)
{
    const bool adafactor = group->kind == LS_UPDATE_ADAFACTOR;
    struct ls_optimizer_state state = {.whole = group->kind == LS_UPDATE_MUON || adafactor,
                                       .orthogonal = group->kind == LS_UPDATE_MUON,
                                       .norms = group->kind == LS_UPDATE_LAMB,
                                       .factored = adafactor && parameter->shape.rank >= 2};
    for (int h = 0; h < ls_update_histories(group->kind); h++)
        state.history[h] = true;
    if (adafactor) {
        state.history[0] = group->momentum > 0;
        state.history[1] = !state.factored;
    }
    return state;
}

int ls_groups_create(const struct ls_solver_definition *definition,
                     const struct ls_parameter_set *parameters, size_t train_parameters,
                     struct ls_groups **out, struct ls_error *error)
{
    struct ls_groups *groups = *out = ls_alloc(1, sizeof *groups);
    if (groups == NULL)
        return ls_fail_memory(error, "groups of parameters");
    groups->count = definition->solver->n_param_group + 1;
    groups->group = ls_alloc(groups->count, sizeof *groups->group);
    groups->names = ls_alloc(groups->count, sizeof *groups->names);
    groups->of = ls_alloc(parameters->count + 1, sizeof *groups->of);
    groups->state = ls_alloc(parameters->count + 1, sizeof *groups->state);
    if (groups->group == NULL || groups->names == NULL || groups->of == NULL ||
        groups->state == NULL)
        return ls_fail_memory(error, "groups of parameters"); /* its owner frees it */
    LS_TRY(read_settings(groups, definition->solver, error));
    const struct search search = {.definition = definition,
                                  .set = parameters,
                                  .parameters = train_parameters,
                                  .groups = groups,
                                  .error = error};
    LS_TRY(find_members(&search));
    LS_TRY(check_matrices(&search));
    for (size_t i = 0; i < parameters->count; i++)
        groups->state[i] =
            state_of(ls_group_of(groups, parameters->items[i]), parameters->items[i]);
    return 0;
}

void ls_groups_free(struct ls_groups *groups)
{
    if (groups == NULL)
        return;
    for (size_t i = 0; groups->names != NULL && i < groups->count; i++)
        ls_free(groups->names[i]);
    ls_free((void *)groups->names);
    ls_free(groups->group);
    ls_free(groups->of);
    ls_free(groups->state);
    ls_free(groups);
}

bool ls_groups_use(const struct ls_groups *groups, enum ls_update_kind kind)
{
    for (size_t g = 0; g < groups->count; g++)
        if (groups->group[g].kind == kind && groups->group[g].parameters > 0)
            return true;
    return false;
}

const struct ls_group *ls_groups_beyond_caffe(const struct ls_groups *groups)
{
    const enum ls_update_kind kind = groups->group[groups->count - 1].kind;
    for (size_t g = 0; g < groups->count; g++)
        if (groups->group[g].parameters > 0 && groups->group[g].kind > LS_UPDATE_ADAM)
            return &groups->group[g];
    for (size_t g = 0; g < groups->count; g++)
        if (groups->group[g].parameters > 0 && groups->group[g].kind != kind)
            return &groups->group[g];
    return NULL;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void set_adafactor_rule(const struct ls_group *group, int64_t t, struct ls_update_rule *rule)
{
    const double most = group->relative_step ? 1 / sqrt((double)t) : INFINITY;
    rule->fresh = (float)Sleef_cinz_powd1_u10purec((double)t, -(double)group->decay_power);
    rule->rate_most = (float)most;
    rule->square_min = group->square_min;
    rule->clip = group->clip;
    rule->scale_parameter = group->scale_parameter;
    rule->scale_min = group->scale_min;
}

static void set_rule(struct ls_group *group, const struct ls_groups_update *update)
{
    const int64_t t = update->iteration + 1;
    struct ls_update_rule *rule = &group->rule;
    const bool adam = group->kind == LS_UPDATE_ADAM || group->kind == LS_UPDATE_ADAMW;
    const bool lamb = group->kind == LS_UPDATE_LAMB;
    *rule = (struct ls_update_rule){.kind = group->kind,
                                    .rate = (float)(update->rate * group->rate),
                                    .momentum = group->momentum,
                                    .momentum2 = group->momentum2,
                                    .delta = group->delta,
                                    .nesterov = group->nesterov,
                                    .iterations = group->newton_schulz,
                                    .match_rms = group->match_rms,
                                    .rms_decay = group->rms_decay,
                                    .decay = group->decay,
                                    .l1 = update->l1,
                                    .gradient_scale = 1,
                                    .average_decay = update->average_decay};
    if (group->kind == LS_UPDATE_ADAFACTOR)
        set_adafactor_rule(group, t, rule);
    if (adam || lamb)
        rule->correction = ls_adam_correction(rule->momentum, rule->momentum2, t);
    if (lamb || (adam && group->corrected_delta))
        rule->delta = ls_adam_delta(rule->delta, rule->momentum2, t);
}

void ls_groups_set_rules(struct ls_groups *groups, const struct ls_groups_update *update)
{
    for (size_t g = 0; g < groups->count; g++)
        set_rule(&groups->group[g], update);
}

void ls_groups_scale_gradients(struct ls_groups *groups, float scale)
{
    for (size_t g = 0; g < groups->count; g++)
        groups->group[g].rule.gradient_scale = scale;
}

void ls_groups_rule(const struct ls_groups *groups, const struct ls_parameter *parameter,
                    struct ls_update_rule *rule)
{
    const struct ls_group *group = ls_group_of(groups, parameter);
    *rule = group->rule;
    rule->rate *= group->lr_mult;
    rule->rate *= parameter->lr_mult;
    rule->decay *= group->decay_mult;
    rule->decay *= parameter->decay_mult;
}

double ls_groups_penalty(const struct ls_groups *groups, const struct ls_parameter *parameter)
{
    const struct ls_group *group = ls_group_of(groups, parameter);
    if (ls_update_decouples(group->kind))
        return 0;
    return (double)group->decay * (double)group->decay_mult * (double)parameter->decay_mult;
}

bool ls_groups_have_penalty(const struct ls_groups *groups)
{
    for (size_t g = 0; g < groups->count; g++)
        if (!ls_update_decouples(groups->group[g].kind) && groups->group[g].decay > 0)
            return true;
    return false;
}
