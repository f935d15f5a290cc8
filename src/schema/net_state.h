/* Inside of nets and solvers: states as messages.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_NET_STATE_H
#define LS_SCHEMA_NET_STATE_H

#include "schema/net.h"

/* Puts what `more` says (NULL: nothing) over `state`: phase and level replace, stages are added.
 * False: no memory. */
bool ls_state_merge(struct ls_arena *arena, Lockstep__NetState *state,
                    const Lockstep__NetState *more);
/* The same with what a caller says, whose level 0 means nothing. */
bool ls_state_add(struct ls_arena *arena, Lockstep__NetState *state,
                  const struct ls_net_state *more);
/* As ls_net_filter, for a state that is a message; the result keeps it. */
int ls_net_filter_state(struct ls_definition *definition, const Lockstep__NetParameter *net,
                        Lockstep__NetState *state, struct ls_net_definition *out,
                        struct ls_error *error);

#endif
