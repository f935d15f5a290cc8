/* What stands behind struct lockstep_plan. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_PLAN_H
#define LS_API_PLAN_H

#include "api/model.h"
#include "api/plan_rows.h"
#include "solver/fit.h"

struct lockstep_plan {
    struct lockstep_solver *solver; /* a reference, or NULL */
    struct ls_trainer *trainer;     /* of a training, or NULL */
    struct lockstep_model *model;   /* of a test, or NULL */
    int workers, card;              /* card: -1: none */
    const char *library;            /* what layers of libraries depend on */
    struct ls_plan_net *nets;
    size_t net_count;
    struct lockstep_plan_memory memory;
    uint64_t device_data, staging, host;        /* see lockstep_plan_device_data, ... */
    struct lockstep_plan_parameter *parameters; /* of a training */
    size_t parameter_count;
};

#endif
