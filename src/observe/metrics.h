/* A training in Prometheus' text format. See include/lockstep/observe.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OBSERVE_METRICS_H
#define LS_OBSERVE_METRICS_H

#include "base/error.h"
#include "lockstep/observe.h"

/* `clock` gives seconds since 1970; NULL: the system's. */
int ls_metrics_new(const char *path, double (*clock)(void), struct lockstep_metrics **metrics,
                   struct ls_error *error);
int ls_metrics_event(struct lockstep_metrics *metrics, const struct lockstep_event *event,
                     struct ls_error *error);
int ls_metrics_flush(struct lockstep_metrics *metrics, struct ls_error *error);
int ls_metrics_end(struct lockstep_metrics *metrics, int code, struct ls_error *error);
void ls_metrics_free(struct lockstep_metrics *metrics);

#endif
