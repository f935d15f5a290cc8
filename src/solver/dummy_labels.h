/* What labels of dummy data must be like. See solver/dummy_data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_DUMMY_LABELS_H
#define LS_SOLVER_DUMMY_LABELS_H

#include "ir/shape.h"
#include "schema/net.h"

/* A top of a data layer that losses and accuracies compare with what the net computes, or that
 * holds indices. */
struct ls_dummy_label {
    const char *name;
    size_t layer;          /* of the data layer */
    struct ls_shape shape; /* for a whole batch; rank 0 until it is known */
    int64_t classes;       /* it holds whole numbers below this; 0: any numbers from 0 to 1 */
    bool tokens;           /* where `classes` is 0, it holds whole numbers nevertheless */
    bool boxes;            /* rows of true boxes, with classes from 1 to `classes` - 1 */
    bool settled;          /* all of that is known, and the DummyData layer has it */
};

/* Whether all that reads a top of layer `layer` takes it as labels or the like. */
bool ls_dummy_is_label(const Lockstep__NetParameter *net, size_t layer, const char *name);

/* Finds shapes and classes, in a net whose data layers are DummyData already. What cannot be found
 * out stays as it is. Returns whether the part of the net that does not depend on labels, but for
 * those that are settled, can be built. */
bool ls_dummy_find_labels(const struct ls_net_definition *net, int64_t batch,
                          struct ls_dummy_label *labels, size_t count);

#endif
