/* Groups of parameters: which parameter has which settings of the optimizer.
 *
 * Each param_group of the solver is a group; the solver's own settings are those of the last one,
 * which has all parameters that no other matches.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_GROUPS_H
#define LS_SOLVER_GROUPS_H

#include "device/update.h"
#include "engine/store.h"
#include "ir/graph.h"
#include "schema/solver.h"

/* The settings of a group, in which the solver's stand for those that it does not say. */
struct ls_group {
    const char *name; /* "group 2" where it has none; of the last one "the rest" */
    const char *type; /* "AdamW" */
    enum ls_update_kind kind;
    double rate; /* factor of the schedule's rate */
    float lr_mult, decay_mult;
    float momentum, momentum2, delta, rms_decay, decay;
    bool corrected_delta;
    bool nesterov, match_rms; /* Muon's */
    int newton_schulz;
    bool relative_step, scale_parameter; /* Adafactor's */
    float scale_min, clip, decay_power, square_min;
    size_t parameters;          /* trained ones that it has */
    struct ls_update_rule rule; /* of the update at hand, before multipliers */
};

struct ls_groups {
    struct ls_group *group;           /* the last one: the rest */
    size_t count;                     /* 1 where the solver has no param_group */
    int *of;                          /* by parameter: its group */
    struct ls_optimizer_state *state; /* by parameter */
    char **names;                     /* owned */
};

/* Finds the group of each of the first `train_parameters` parameters; others are of the last. A
 * group, or a pattern of one, that matches nothing is a problem. */
int ls_groups_create(const struct ls_solver_definition *definition,
                     const struct ls_parameter_set *parameters, size_t train_parameters,
                     struct ls_groups **groups, struct ls_error *error);
void ls_groups_free(struct ls_groups *groups);

/* The rule by a solver's type; LOCKSTEP_DEFINITION for one that there is not. */
int ls_groups_kind(const char *type, enum ls_update_kind *kind, struct ls_error *error);

static inline const struct ls_group *ls_group_of(const struct ls_groups *groups,
                                                 const struct ls_parameter *parameter)
{
    return &groups->group[groups->of[parameter->index]];
}
/* Whether a trained parameter has this rule. */
bool ls_groups_use(const struct ls_groups *groups, enum ls_update_kind kind);
/* The group of a trained parameter whose rule is none of Caffe's or, where all are, not that of the
 * rest; NULL: Caffe could go on with all of them. */
const struct ls_group *ls_groups_beyond_caffe(const struct ls_groups *groups);

/* What all rules of an update have in common. */
struct ls_groups_update {
    double rate;       /* the schedule's */
    int64_t iteration; /* updates before this one */
    bool l1;
    float average_decay;
};
void ls_groups_set_rules(struct ls_groups *groups, const struct ls_groups_update *update);
/* What the norm for clipping asks for, of all rules. */
void ls_groups_scale_gradients(struct ls_groups *groups, float scale);
/* The rule for one parameter, with its multipliers. */
void ls_groups_rule(const struct ls_groups *groups, const struct ls_parameter *parameter,
                    struct ls_update_rule *rule);
/* What the square of a weight (or with L1 its magnitude) counts in the penalty that is shown, but
 * for the 1/2 of L2: 0 where weights decay by themselves. */
double ls_groups_penalty(const struct ls_groups *groups, const struct ls_parameter *parameter);
/* Whether that is more than 0 for any parameter. */
bool ls_groups_have_penalty(const struct ls_groups *groups);

#endif
