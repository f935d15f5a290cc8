/* A net's layers, with their shapes and what they cost, without weights. A part of
 * lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_NET_H
#define LOCKSTEP_NET_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lockstep_net_options {
    size_t struct_size;
    const char *phase; /* "TRAIN" or "TEST"; NULL: TEST, or TRAIN where that alone has data */
    int level;         /* the net's state, for include and exclude rules */
    const char *const *stages;
    size_t stage_count;
    const struct lockstep_dummy_options *dummy; /* NULL: the net's own data */
};
LOCKSTEP_API void lockstep_net_options_init(struct lockstep_net_options *options);

/* What a net is in one phase. */
struct lockstep_net;

enum { LOCKSTEP_AXES_MAX = 8 };

/* A blob, or a parameter. Rank 0: one number. */
struct lockstep_blob {
    const char *name;
    int rank;
    int64_t extent[LOCKSTEP_AXES_MAX]; /* for a whole batch */
};

struct lockstep_net_layer {
    const char *name, *type;
    const char *const *bottoms; /* the names of the blobs that it reads */
    size_t bottom_count;
    const struct lockstep_blob *tops;
    size_t top_count;
    const struct lockstep_blob *parameters; /* "weight", "bias"; also those that it shares */
    size_t parameter_count;
    int shares;     /* its parameters are those of a layer above */
    double flops;   /* of a sample forward, two a multiply-add */
    uint64_t bytes; /* of its tops, for a whole batch */
};

/* `path` is a net prototxt, or a solver's. */
LOCKSTEP_API int lockstep_net_load(const char *path, const struct lockstep_net_options *options,
                                   struct lockstep_net **net, struct lockstep_error *error);
LOCKSTEP_API void lockstep_net_free(struct lockstep_net *net);
/* What these return belongs to the net until lockstep_net_free. */
LOCKSTEP_API const char *lockstep_net_name(const struct lockstep_net *net);  /* "" without one */
LOCKSTEP_API const char *lockstep_net_phase(const struct lockstep_net *net); /* "TRAIN", "TEST" */
LOCKSTEP_API int64_t lockstep_net_batch(const struct lockstep_net *net);
/* All `count` layers, in order. */
LOCKSTEP_API const struct lockstep_net_layer *lockstep_net_layers(const struct lockstep_net *net,
                                                                  size_t *count);

#ifdef __cplusplus
}
#endif
#endif
