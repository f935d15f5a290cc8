/* A net's plan as rows that a person reads. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_PLAN_ROWS_H
#define LS_API_PLAN_ROWS_H

#include "engine/forecast.h"
#include "lockstep/lockstep.h"

/* A net's rows; all strings but `name` and what is copied belong to the definition or are
 * constants. */
struct ls_plan_net {
    struct lockstep_plan_net shown;
    char name[32];
    struct lockstep_plan_layer *layers;
    struct lockstep_plan_step *steps;
    char (*implementations)[64]; /* by step */
    char (*layouts)[64];         /* by step: "nChw16c", "plain I32" */
    const char **library_layers;
};

/* Makes the rows of a net. */
int ls_plan_rows(const struct ls_net *net, const struct ls_view_set *views,
                 const struct ls_store_options *store, struct ls_plan_net *rows,
                 struct ls_error *error);
void ls_plan_rows_free(struct ls_plan_net *rows);

#endif
