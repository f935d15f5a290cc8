/* Layer types of one's own: the interface of a plugin, a shared object that Lockstep loads
 * (--plugin FILE, lockstep_plugin_load). Nothing else of Lockstep is needed to build one:
 *
 *     cc -O2 -shared -fPIC -I include -o mine.so mine.c
 *
 * A plugin exports one variable, lockstep_plugin. A layer of one of its types is written
 *
 *     layer {
 *       name: "s" type: "Shrink" bottom: "x" top: "y"
 *       plugin_param { threshold: 0.5 mode: "soft" sizes: [1, 2] }
 *     }
 *
 * Lockstep cuts a batch into micro-batches, which any worker of any process may compute, in any
 * order, more than once. So that the results have the same bits wherever they are computed, what a
 * layer computes must be a function of what it is handed alone:
 *
 *   - forward and backward write every element of their outputs, and nothing else; they do not
 *     read outputs or scratch before they have written them;
 *   - they keep nothing from call to call (no static variables), take no time, address, thread or
 *     random number of the system into account; random numbers are made of `key` and the ordinal of
 *     the sample (first_ordinal + i);
 *   - row i of a top depends on row i of the bottoms, unless the type says LOCKSTEP_PLUGIN_MIXES:
 *     then a micro-batch is a whole batch, and more workers are of no use;
 *   - they may be called by several threads at the same time, which round to nearest and take
 *     denormals for zero; what they set in the floating-point unit is undone when they return.
 *
 * `lockstep check-plugin` tests all of that, and gradients by finite differences. Tensors are fp32,
 * row-major, without gaps. A part of lockstep/lockstep.h's version, but of no other header.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_PLUGIN_H
#define LOCKSTEP_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a plugin that was built with an older header could not be used. Structures grow at
 * their ends; each says with struct_size how much of it its maker knows. */
#define LOCKSTEP_PLUGIN_ABI 1

enum {
    LOCKSTEP_PLUGIN_AXES = 8,   /* of a tensor, at most */
    LOCKSTEP_PLUGIN_VALUES = 8, /* bottoms, or tops, of a layer, at most */
    LOCKSTEP_PLUGIN_BLOBS = 8,  /* learned parameters of a layer, at most */
    LOCKSTEP_PLUGIN_TEXT = 256  /* bytes of a message, with its end */
};

struct lockstep_plugin_shape {
    int axes;
    int64_t dim[LOCKSTEP_PLUGIN_AXES]; /* outermost first */
};

/* A field of plugin_param: numbers and words as they were written, strings without quotes. */
struct lockstep_plugin_setting {
    const char *key;
    const char *const *values;
    size_t count;
};

/* A learned parameter that a layer asks for. It begins with a constant, or with uniform random
 * numbers of [minimum, maximum); in files of weights it is called by its number ("layer.0"). */
struct lockstep_plugin_blob {
    struct lockstep_plugin_shape shape;
    int uniform; /* 0: constant */
    float constant, minimum, maximum;
};

/* What a layer is asked and answers before anything is computed; once for each phase and size of
 * micro-batches. What stands behind `tops` is zeroed, and is the layer's to fill in. */
struct lockstep_plugin_setup {
    size_t struct_size;
    const char *layer; /* its name in the definition */
    int test;          /* the phase is TEST */
    const struct lockstep_plugin_setting *settings;
    size_t setting_count;
    int bottoms;
    const struct lockstep_plugin_shape *bottom; /* axis 0 of each holds the samples */
    int tops;
    /* Filled in: */
    struct lockstep_plugin_shape top[LOCKSTEP_PLUGIN_VALUES]; /* axis 0: as many samples as bottom
                                                                 0, unless the type mixes samples */
    int blobs;
    struct lockstep_plugin_blob blob[LOCKSTEP_PLUGIN_BLOBS];
    size_t scratch_bytes; /* memory that forward and backward have for themselves */
    void *state;          /* state_size zeroed bytes: what forward and backward need to know */
    char message[LOCKSTEP_PLUGIN_TEXT]; /* what is wrong, where setup returns another number than 0
                                         */
};

/* What forward and backward are handed. */
struct lockstep_plugin_call {
    size_t struct_size;
    const void *state;
    int64_t first_ordinal; /* of sample 0, over the whole training */
    uint64_t key;          /* of the layer: a function of the seed and its name */
    const float *const *bottom;
    const float *const *blob;
    float *const *top; /* forward: to be written; backward: NULL, or what was, with READS_TOPS */
    void *scratch;
    /* Backward alone. NULL in these lists: no gradient, or none is wanted. */
    const float *const *top_gradient;
    float *const *bottom_gradient;
    float *const *blob_gradient; /* of this micro-batch; Lockstep adds them up, exactly */
    char *message;               /* LOCKSTEP_PLUGIN_TEXT bytes for what went wrong */
};

enum {
    LOCKSTEP_PLUGIN_MIXES = 1,     /* rows of tops depend on other rows of the bottoms */
    LOCKSTEP_PLUGIN_READS_TOPS = 2 /* backward reads the tops; they are kept for it */
};

/* A layer type. */
struct lockstep_plugin_layer {
    size_t struct_size;
    const char *type;    /* "Shrink" */
    const char *summary; /* what it computes, in a line */
    int bottoms_min, bottoms_max, tops_min, tops_max;
    unsigned flags;
    size_t state_size;
    /* These return 0, or another number after they have set the message. */
    int (*setup)(struct lockstep_plugin_setup *setup);
    int (*forward)(const struct lockstep_plugin_call *call);
    int (*backward)(const struct lockstep_plugin_call *call); /* NULL: gradients stop here */
};

struct lockstep_plugin {
    uint32_t abi; /* LOCKSTEP_PLUGIN_ABI */
    size_t struct_size;
    const char *name, *version;
    const struct lockstep_plugin_layer *const *layers; /* up to a NULL */
};

#if defined(__GNUC__)
#define LOCKSTEP_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define LOCKSTEP_PLUGIN_EXPORT
#endif

/* What a plugin exports. */
extern LOCKSTEP_PLUGIN_EXPORT const struct lockstep_plugin lockstep_plugin;

#ifdef __cplusplus
}
#endif

#endif
