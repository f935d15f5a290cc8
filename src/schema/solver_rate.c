/* The learning rate's settings: which policy needs which fields.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "schema/solver_parts.h"

enum { USES_MAX = 4 };

/* `needs`: alternatives are separated by '|'. `takes`: what may be given, too. */
static const struct policy {
    const char *name;
    const char *needs[USES_MAX];
    const char *takes[USES_MAX];
} policies[] = {
    {"fixed", {NULL}, {NULL}},
    {"step", {"gamma", "stepsize|step_epoch"}, {NULL}},
    {"exp", {"gamma"}, {NULL}},
    {"inv", {"gamma", "power"}, {NULL}},
    {"multistep", {"gamma", "stepvalue|stepvalue_epoch"}, {NULL}},
    {"poly", {"power"}, {NULL}},
    {"sigmoid", {"gamma", "stepsize|step_epoch"}, {NULL}},
    {"cosine", {NULL}, {"lr_min", "cosine_after_warmup"}},
    {"onecycle", {NULL}, {"pct_start", "div_factor", "final_div_factor"}},
    {"multifixed", {"stagelr", "stageiter"}, {NULL}},
};
enum { POLICIES = sizeof policies / sizeof policies[0] };

/* All fields that belong to some policies only. */
static const char *const policy_fields[] = {
    "gamma",
    "power",
    "stepsize",
    "step_epoch",
    "stepvalue",
    "stepvalue_epoch",
    "lr_min",
    "pct_start",
    "div_factor",
    "final_div_factor",
    "stagelr",
    "stageiter",
    "cosine_after_warmup",
};

/* NULL for a name that is not in the table. */
static const struct policy *find_policy(const char *name)
{
    for (size_t i = 0; i < POLICIES; i++)
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    return NULL;
}

/* Whether a word is among alternatives "a|b". */
static bool is_alternative(const char *alternatives, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = alternatives; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, length) == 0 && (at[length] == '\0' || at[length] == '|'))
            return true;
    }
    return false;
}

/* Whether a field means something to a policy. */
static bool uses(const struct policy *policy, const char *field)
{
    for (size_t i = 0; i < USES_MAX; i++)
        if ((policy->needs[i] != NULL && is_alternative(policy->needs[i], field)) ||
            (policy->takes[i] != NULL && strcmp(policy->takes[i], field) == 0))
            return true;
    return false;
}

/* Whether one of the alternatives "a|b" is given. */
static bool has_alternative(struct ls_solver_reading *reading, const char *alternatives)
{
    size_t count = sizeof policy_fields / sizeof policy_fields[0];
    for (size_t i = 0; i < count; i++)
        if (is_alternative(alternatives, policy_fields[i]) &&
            ls_solver_has(reading, policy_fields[i]))
            return true;
    return false;
}

/* Needed and missing: a problem. Given and not used: a warning, as many a file has it. */
static int check_policy_fields(struct ls_solver_reading *reading, const struct policy *policy)
{
    int status = 0;
    for (size_t i = 0; i < USES_MAX && policy->needs[i] != NULL; i++) {
        const char *needs = policy->needs[i], *bar = strchr(needs, '|');
        int first = bar != NULL ? (int)(bar - needs) : (int)strlen(needs);
        if (!has_alternative(reading, needs))
            status = ls_solver_problem(reading, "lr_policy", NULL, "lr_policy '%s' needs %.*s%s%s",
                                       policy->name, first, needs, bar != NULL ? " or " : "",
                                       bar != NULL ? bar + 1 : "");
    }
    for (size_t i = 0; i < sizeof policy_fields / sizeof policy_fields[0]; i++)
        if (!uses(policy, policy_fields[i]) && ls_solver_has(reading, policy_fields[i]))
            ls_solver_warn(reading, policy_fields[i], "%s does nothing with lr_policy '%s'",
                           policy_fields[i], policy->name);
    if (reading->solver->gamma < 0 && strcmp(policy->name, "sigmoid") != 0 && uses(policy, "gamma"))
        status = ls_solver_problem(reading, "gamma", NULL,
                                   "gamma must not be negative with lr_policy '%s'", policy->name);
    return status;
}

/* A name of the table, with the fields that it needs. */
static int check_policy(struct ls_solver_reading *reading)
{
    const char *name = reading->solver->lr_policy;
    if (name == NULL)
        return ls_solver_problem(reading, NULL, "write lr_policy: \"fixed\", or another",
                                 "the solver has no lr_policy");
    const struct policy *policy = find_policy(name);
    if (policy != NULL)
        return check_policy_fields(reading, policy);
    const char *names[POLICIES];
    for (size_t i = 0; i < POLICIES; i++)
        names[i] = policies[i].name;
    return ls_solver_unknown(reading, "lr_policy", "lr_policy", name, names, POLICIES);
}

/* Caffe would take a step that lies behind its predecessor one iteration after it. */
static int check_steps(struct ls_solver_reading *reading)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    const char *wrong = NULL;
    for (size_t i = 1; i < solver->n_stepvalue; i++)
        if (solver->stepvalue[i] <= solver->stepvalue[i - 1])
            wrong = "stepvalue";
    for (size_t i = 1; i < solver->n_stepvalue_epoch; i++)
        if (!(solver->stepvalue_epoch[i] > solver->stepvalue_epoch[i - 1]))
            wrong = "stepvalue_epoch";
    for (size_t i = 1; i < solver->n_stageiter; i++)
        if (solver->stageiter[i] <= solver->stageiter[i - 1])
            wrong = "stageiter";
    if (wrong != NULL)
        return ls_solver_problem(reading, wrong, NULL, "the values of %s must ascend", wrong);
    if (solver->n_stagelr == solver->n_stageiter)
        return 0;
    return ls_solver_problem(reading, solver->n_stageiter > 0 ? "stageiter" : "stagelr",
                             "one of both for each stage",
                             "stagelr is given %zu times and stageiter %zu times",
                             solver->n_stagelr, solver->n_stageiter);
}

/* lr_scaling and base_batch_size make sense together only. */
static int check_scaling(struct ls_solver_reading *reading)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    bool scales = solver->lr_scaling != LOCKSTEP__SOLVER_PARAMETER__LEARNING_RATE_SCALING__NONE;
    if (scales && !solver->has_base_batch_size)
        return ls_solver_problem(reading, "lr_scaling", "write base_batch_size: N",
                                 "lr_scaling needs the batch that base_lr is meant for");
    if (!scales && solver->has_base_batch_size)
        ls_solver_warn(reading, "base_batch_size",
                       "base_batch_size does nothing without lr_scaling: LINEAR or SQRT");
    return 0;
}

int ls_solver_check_rate(struct ls_solver_reading *reading)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    int status = check_policy(reading), found = check_steps(reading);
    status = status != 0 ? status : found;
    found = check_scaling(reading);
    status = status != 0 ? status : found;
    bool stages = solver->lr_policy != NULL && strcmp(solver->lr_policy, "multifixed") == 0;
    if (!solver->has_base_lr && !stages)
        status = ls_solver_problem(reading, NULL, "write base_lr: 0.01, or another rate",
                                   "the solver has no base_lr");
    if (solver->has_lr_min && solver->lr_min > solver->base_lr)
        status = ls_solver_problem(reading, "lr_min", NULL, "lr_min is larger than base_lr");
    bool warms = solver->warmup_iter > 0 || (solver->has_warmup_epoch && solver->warmup_epoch > 0);
    const char *start = solver->has_warmup_start      ? "warmup_start"
                        : solver->has_warmup_start_lr ? "warmup_start_lr"
                                                      : NULL;
    if (start != NULL && !warms)
        ls_solver_warn(reading, start, "%s does nothing without warmup_iter or warmup_epoch",
                       start);
    return status;
}
