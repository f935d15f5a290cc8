/* A bottom that no layer above makes: reported with what may be meant, or with what leaves the
 * layer out that makes it. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_UNKNOWN_BOTTOM_H
#define LS_GRAPH_UNKNOWN_BOTTOM_H

#include "ir/layer.h"
#include "schema/net.h"

/* `names`: blobs that there are. */
int ls_graph_unknown_bottom(const struct ls_net_definition *net, const struct ls_layer *layer,
                            int index, const char *const *names, size_t count,
                            struct ls_error *error);

#endif
