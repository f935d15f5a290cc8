/* The sources of a net: the batch that all of them agree on, and the data sets behind its Data
 * layers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_SOURCES_H
#define LS_ENGINE_SOURCES_H

#include "engine/net.h"

/* For ls_net_open: finds the batch that all sources of the net hand out, opens
 * the data sets of its Data layers. They report all that is wrong and return 0 or a status. */
int ls_sources_find_batch(struct ls_net *net, struct ls_error *error);
int ls_sources_open(struct ls_net *net, struct ls_error *error);
/* Makes the shapes of the data set whose samples differ in size those of an image of this shape. */
void ls_sources_set_size(struct ls_net *net, const int64_t size[3]);

/* The data set of a net whose names of classes are those of its snapshots: the first that has some;
 * NULL: none has. */
const struct ls_dataset *ls_sources_named(const struct ls_net *net);
/* Its names; none where there is no such data set. */
struct ls_class_names ls_sources_class_names(const struct ls_net *net);

#endif
