/* Fitting nets into a limit on memory: what they take, plans that take less, and what would fit.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_FIT_H
#define LS_SOLVER_FIT_H

#include <stdint.h>

#include "engine/forecast.h"
#include "solver/trainer.h"

/* Nets that share workers, parameters and views; not bound yet. */
struct ls_fit {
    const char *what; /* "training", for messages */
    struct ls_net **nets;
    size_t count;
    const struct ls_parameter_set *set;
    struct ls_view_set *views;
    struct ls_store_options store;
    bool snapshots; /* are written now and then */
    bool audits;    /* of the first net's micro-batches */
    bool measures;  /* statistics of parameters */
    size_t trace;   /* bytes of a trace */
    size_t there;   /* bytes that the process can have at all; 0: not known */
    bool copies;    /* while training goes on, from a copy, if there is memory for it */
    /* The same with another micro_batch, for as long as it is looked at. */
    int (*open)(void *user, int64_t micro_batch, void **trial, struct ls_fit *fit,
                struct ls_error *error);
    void (*close)(void *trial);
    void *user;
};

/* In place of a limit. */
#define LS_MEMORY_LEAST SIZE_MAX

/* Of the memory that the process's control group has, what each of so many processes can have for
 * itself; 0: there is no limit. */
size_t ls_fit_there(int processes);

/* What the nets take as they are planned now. */
int ls_fit_forecast(const struct ls_fit *fit, struct ls_forecast *forecast, struct ls_error *error);
/* Plans them anew for so much memory of activations (1: the smallest plans). */
int ls_fit_limit(const struct ls_fit *fit, size_t activations, struct ls_forecast *forecast,
                 struct ls_error *error);
/* Plans that take at most `memory` in all (0: no limit; LS_MEMORY_LEAST: the smallest plans), and
 * no more than is there. forecast->limit is the limit that they were made for. LOCKSTEP_RESOURCE if
 * there are none, with what would fit. */
int ls_fit(const struct ls_fit *fit, size_t memory, struct ls_forecast *forecast,
           struct ls_error *error);
int ls_fit_of_trainer(struct ls_trainer *trainer, struct ls_fit *fit, struct ls_error *error);
/* Forecasts what a trainer with its nets takes, and plans the nets anew if that is more than
 * `memory` (0: no limit). If it cannot fit, the error says what would. */
int ls_fit_trainer(struct ls_trainer *trainer, size_t memory, struct ls_error *error);
/* Whether there are snapshots besides the last one. */
bool ls_fit_takes_snapshots(const struct ls_trainer *trainer);

#endif
