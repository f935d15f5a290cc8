/* Events of a training as TensorBoard's event files. See include/lockstep/observe.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OBSERVE_TENSORBOARD_H
#define LS_OBSERVE_TENSORBOARD_H

#include "base/error.h"
#include "lockstep/observe.h"

/* `clock` gives seconds since 1970; NULL: the system's. */
int ls_tensorboard_new(const char *folder, double (*clock)(void),
                       struct lockstep_tensorboard **board, struct ls_error *error);
int ls_tensorboard_event(struct lockstep_tensorboard *board, const struct lockstep_event *event,
                         struct ls_error *error);
int ls_tensorboard_flush(struct lockstep_tensorboard *board, struct ls_error *error);
void ls_tensorboard_free(struct lockstep_tensorboard *board);

#endif
