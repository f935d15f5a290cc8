/* Plans: what a training or a test will do, and in how much memory. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_PLAN_H
#define LOCKSTEP_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lockstep_plan_options {
    size_t struct_size;
    int workers;     /* 0: lockstep_default_workers() */
    const char *isa; /* as in lockstep_train_options */
    uint64_t memory; /* as in lockstep_train_options */
    int level;       /* lockstep_plan_model: as in lockstep_model_options */
    const char *const *stages;
    size_t stage_count;
    const char *device;                         /* as in lockstep_train_options */
    const struct lockstep_dummy_options *dummy; /* lockstep_plan_model: NULL: the net's own data */
    /* Gets a sentence, with its place, for each part of the definition that changes nothing; the
     * text is valid during the call. NULL: they are not told. */
    void (*warn)(void *user, const char *sentence);
    void *user;
};
LOCKSTEP_API void lockstep_plan_options_init(struct lockstep_plan_options *options);

/* What a training or a test will do and take, known before anything large is allocated. */
struct lockstep_plan;

/* Bytes of a layer: activations for one micro-batch, what is learned once. */
struct lockstep_plan_layer {
    const char *name, *type;
    uint64_t output;     /* what its tops hold, in place or not */
    uint64_t kept;       /* of what it writes, what stays for the backward pass */
    uint64_t scratch;    /* the most that one of its steps needs for itself */
    uint64_t parameters; /* its own; those that it shares are the owner's */
    uint64_t views;      /* copies of its parameters in other layouts and types */
    uint64_t gradients;  /* exact sums */
    uint64_t state;      /* what the optimizer remembers, and averages of the weights */
    /* Weights of its own, by number: those that training changes, those that it does not (lr_mult
     * 0, or no loss reaches them), and those that a mask keeps at zero. */
    uint64_t learned, fixed, masked;
};

/* A step, in the order in which a worker does them. */
struct lockstep_plan_step {
    const char *layer;          /* NULL: none */
    const char *op;             /* "convolution backward data" */
    const char *implementation; /* "jit:avx512_core" */
    const char *layout; /* of what it writes first, and its type where that is not F32: "nChw16c",
                           "plain I32"; NULL: it writes nothing */
    uint64_t scratch;   /* bytes */
    int backward;       /* part of the backward pass */
    int slow;           /* a reference path */
    int reorder;        /* changes nothing but a layout */
    int recomputed;     /* computes again what was not kept */
    int sync;           /* other micro-batches are waited for here */
    int gathered;       /* all workers share it, for the rows of all micro-batches */
    /* A chain begins: this step and those behind it, so many in all, are done together, some
     * channels at a time, so that they find in the caches what they share. 0: none begins. */
    size_t chain;
    int64_t channels; /* of a chain: at a time */
    int library; /* oneDNN computes it: its bits depend on the CPU's type and oneDNN's version */
};

/* A net of the plan. Its steps and layers are for a whole micro-batch. */
struct lockstep_plan_net {
    const char *name; /* "train", "test", "test #1" */
    int training;     /* with a backward pass */
    int64_t batch, micro_batch, micro_batches;
    const struct lockstep_plan_layer *layers;
    size_t layer_count;
    const struct lockstep_plan_step *steps;
    size_t step_count;
    size_t segments;        /* runs of steps between sync points that others are waited for at */
    uint64_t arena;         /* bytes of the arena that it takes of a worker */
    uint64_t stashed;       /* bytes that each micro-batch of a batch keeps across sync points */
    uint64_t scratch;       /* bytes of the largest step */
    double recomputed_part; /* work of recomputations as a part of all other */
    /* Layers with steps that a library computes (oneDNN; cuDNN, cuBLASLt), in order. Where there
     * are none, the bits are the same on all processors for which the same kernels are chosen, and
     * with every oneDNN. */
    const char *const *library_layers;
    size_t library_layer_count;
    /* Layers that round in one precision or the other, and how many of them compute in bf16. */
    size_t computing_layers, bf16_layers;
    /* The first layer that mixes samples, and its type, so that a batch is one micro-batch; NULL:
     * no layer does. */
    const char *mixer, *mixer_type;
    int any_processor; /* every x86-64 gives the same bits: all products are of BF16 or PORTABLE */
};

/* A parameter that training changes, and the settings of its group (the solver's param_group). */
struct lockstep_plan_parameter {
    const char *name;  /* "conv1.weight" */
    const char *group; /* "the rest" where no param_group matches */
    const char *type;  /* of the solver: "AdamW" */
    double rate;       /* what the rate of lr_policy is multiplied by, all multipliers included */
    double decay;      /* weight decay, too */
};

/* Where memory goes, in bytes. */
struct lockstep_plan_memory {
    int workers, stashes;    /* stashes: micro-batches that keep something across sync points */
    uint64_t arena, stashed; /* of each worker, of each stash */
    uint64_t parameters, views, gradients, state, averages;
    uint64_t statistics; /* sync points and records of micro-batches */
    uint64_t data;       /* samples decoded ahead */
    uint64_t snapshot;   /* while one is written */
    uint64_t code;       /* plans and kernels' code */
    uint64_t runtime;    /* libraries, threads */
    uint64_t total;      /* of all these; with a card, of those that lie in its memory */
    uint64_t cache;      /* decoded data that are kept, apart from the total */
    uint64_t limit;      /* lockstep_plan_options.memory, or that of this process's control group
                            where plans were made for it; 0: none */
    /* State per sample that goes on to the next update; in the total. */
    uint64_t sample_states;
};

/* Plans a training with its tests, or the test of a net (prototxt, or a solver's).
 * LOCKSTEP_RESOURCE where it does not fit `memory`: the error says what would. */
LOCKSTEP_API int lockstep_plan_training(const struct lockstep_solver *solver,
                                        const struct lockstep_plan_options *options,
                                        struct lockstep_plan **plan, struct lockstep_error *error);
LOCKSTEP_API int lockstep_plan_model(const char *path, const struct lockstep_plan_options *options,
                                     struct lockstep_plan **plan, struct lockstep_error *error);
LOCKSTEP_API void lockstep_plan_free(struct lockstep_plan *plan);

/* What these return belongs to the plan, with all that it points at, until lockstep_plan_free. */
LOCKSTEP_API const struct lockstep_plan_memory *
lockstep_plan_memory(const struct lockstep_plan *plan);
/* Bytes of it that are records of data sets in the memory of a card; in the total, too. */
LOCKSTEP_API uint64_t lockstep_plan_device_data(const struct lockstep_plan *plan);
/* There, samples and figures of the micro-batches that run; in the total, too. */
LOCKSTEP_API uint64_t lockstep_plan_staging(const struct lockstep_plan *plan);
/* With a card, what lies in the host's memory: data, snapshot, code and runtime, apart from the
 * total; else 0. */
LOCKSTEP_API uint64_t lockstep_plan_host(const struct lockstep_plan *plan);
LOCKSTEP_API size_t lockstep_plan_net_count(const struct lockstep_plan *plan);
/* In a training net 0 is the train net, test nets follow. NULL where there is no net `index`. */
LOCKSTEP_API const struct lockstep_plan_net *lockstep_plan_net(const struct lockstep_plan *plan,
                                                               size_t index);
/* What the bits of its library_layers depend on, in words; NULL: there are none on this device. */
LOCKSTEP_API const char *lockstep_plan_library(const struct lockstep_plan *plan);
/* The parameters that training changes, in the net's order; 0 of them in the plan of a test, and
 * NULL where there is no parameter `index`. */
LOCKSTEP_API size_t lockstep_plan_parameter_count(const struct lockstep_plan *plan);
LOCKSTEP_API const struct lockstep_plan_parameter *
lockstep_plan_parameter(const struct lockstep_plan *plan, size_t index);
/* How many groups the solver makes of them: 1 where it has no param_group, 0 in that of a test. */
LOCKSTEP_API size_t lockstep_plan_group_count(const struct lockstep_plan *plan);
/* The largest batch of net `index` that fits `memory`, with the micro_batch that it has: of the
 * train net while training, of a test net when that is tested alone. 0: none does. *bounded is 0
 * where memory does not limit it, and *batch is the largest that there can be then. A net that
 * mixes the samples of a batch is asked for its own batch only: that, or 0. */
LOCKSTEP_API int lockstep_plan_largest_batch(struct lockstep_plan *plan, size_t index,
                                             uint64_t memory, int64_t *batch, int *bounded,
                                             struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
