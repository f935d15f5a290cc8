/* Messages of a definition: what data layers say about their pictures, and what DummyData layers
 * are made of. See solver/dummy_data.h. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_DUMMY_MESSAGES_H
#define LS_SOLVER_DUMMY_MESSAGES_H

#include "ir/shape.h"
#include "schema/definition.h"

/* What a definition says about the pictures of a layer; 0: nothing. */
struct ls_dummy_picture {
    int64_t batch, channels, height, width;
    double low, high; /* of random numbers */
};

/* What a data layer says about its pictures. */
struct ls_dummy_picture ls_dummy_describe(const Lockstep__LayerParameter *layer);
/* What an Input layer says of a top; rank 0: nothing. */
struct ls_shape ls_dummy_input_shape(const Lockstep__LayerParameter *layer, size_t top);

/* What any layer says of a top of `batch` samples: an Input layer, or windows of a text. */
struct ls_shape ls_dummy_known_shape(const Lockstep__LayerParameter *layer, size_t top,
                                     int64_t batch);

/* Messages in an arena; NULL: there is no memory. */
Lockstep__BlobShape *ls_dummy_make_shape(struct ls_arena *arena, const struct ls_shape *shape);
Lockstep__FillerParameter *ls_dummy_make_filler(struct ls_arena *arena, const char *type,
                                                double low, double high);
/* Takes away all parameters of the layer's type. */
void ls_dummy_clear_parameters(Lockstep__LayerParameter *layer);

#endif
