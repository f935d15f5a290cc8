/* What is said of nets without being an error: parameter messages that layers of their type do not
 * read, what data sets have passed over, layers that cannot be meant.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_IGNORED_H
#define LS_ENGINE_IGNORED_H

#include "engine/net.h"

/* Calls `say` with a sentence for each data set that has a warning, and for each kind of message
 * and layer type, with the place of the first and how many there are, and for each layer that
 * cannot be meant (graph/odd_layers.h). */
void ls_ignored_tell(struct ls_net *const *nets, size_t count,
                     void (*say)(void *user, const char *sentence), void *user);

#endif
