/* What a program will take in memory, found from its nets before anything large is allocated.
 *
 * All of it is what the process will have touched of its own (anonymous) memory when it has trained
 * or tested for a while. Files that are mapped are the kernel's to keep or to drop.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_FORECAST_H
#define LS_ENGINE_FORECAST_H

#include "engine/net.h"
#include "engine/store.h"

struct ls_forecast {
    int workers, slots;
    size_t arena, stashed;    /* of each worker, of each slot */
    size_t weights, views;    /* of parameters, and their copies in other layouts */
    size_t gradients;         /* exact sums, or the factors that stand for them */
    size_t history, averages; /* what the optimizer remembers; moving averages of weights: the part
                                 of the rank that has most */
    size_t statistics;        /* sync points and records of micro-batches */
    size_t sample_states;     /* state per sample */
    size_t data;              /* micro-batches decoded ahead, and what decodes them */
    size_t snapshot;          /* while a snapshot is written */
    size_t programs;          /* plans and the code that kernels are */
    size_t base;              /* libraries and the definition */
    size_t cache;             /* decoded data that are kept; apart, not in the total */
    bool copies;              /* a snapshot is written from a copy, which is in `snapshot` */
    bool apart;               /* the device has memory of its own: the total is of that alone */
    size_t records;           /* there: of data sets that lie there */
    size_t limit;             /* that plans were made for; 0: none */
    bool contained;           /* it is that of the process's control group */
    size_t staging;           /* there: samples and figures of the micro-batches that run */
};

/* Forecasts for nets that share workers, parameters and views; all of them are fed. Where samples
 * differ in size it is for the largest. */
int ls_forecast_nets(struct ls_net *const *nets, size_t count, const struct ls_parameter_set *set,
                     const struct ls_view_set *views, const struct ls_store_options *store,
                     struct ls_forecast *forecast, struct ls_error *error);

/* Activations: arenas and what micro-batches hold. */
size_t ls_forecast_activations(const struct ls_forecast *forecast);
/* Everything in the memory that kernels work in: but the cache and, where that is not the host's,
 * what the host has. */
size_t ls_forecast_total(const struct ls_forecast *forecast);
/* What the host has besides, where the device has memory of its own; else 0. */
size_t ls_forecast_host(const struct ls_forecast *forecast);
/* Bytes of all arrays of a snapshot, in the file's order: what a copy takes, which rank 0 makes. */
size_t ls_forecast_copy(const struct ls_parameter_set *set, const struct ls_store_options *store);
/* Adds what writing a snapshot takes, which goes parameter by parameter. */
void ls_forecast_add_snapshot(struct ls_forecast *forecast, const struct ls_parameter_set *set,
                              const struct ls_store_options *store);

/* What the gradient of a parameter is summed in. */
size_t ls_gradient_bytes(const struct ls_parameter *parameter);

#endif
