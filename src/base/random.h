/* Random numbers as functions of (key, counter), never as streams.
 *
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC
 * 2011). The order of requests does not matter: the number for element e of sample s under key k
 * is ls_philox(k, s, e / 4)[e % 4].
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_RANDOM_H
#define LS_BASE_RANDOM_H

#include <stdint.h>

/* What a number is for; part of the key, so that uses are independent of each other. */
enum ls_purpose {
    LS_RANDOM_FILLER = 1,  /* counter: (0, element / 4) of a parameter */
    LS_RANDOM_DROPOUT = 2, /* counter: (sample ordinal, element of the sample / 4) */
    LS_RANDOM_AUGMENT = 3, /* counter: (sample ordinal, draw / 4) */
    LS_RANDOM_SHUFFLE = 4, /* counter: (epoch, ...) */
    LS_RANDOM_SPLIT = 5,   /* counter: (record index, 0) */
    LS_RANDOM_DATA = 6,    /* synthetic samples: (sample index, draw / 4) */
    LS_RANDOM_TEST = 7,    /* test programs */
    LS_RANDOM_AUDIT = 8,   /* what is audited: (update, run of micro-batches) */
    LS_RANDOM_POOLING = 9, /* counter: (sample ordinal, element of the top's sample / 4) */
    LS_RANDOM_TOKEN = 10,  /* a token of a text: (sample, position) */
    LS_RANDOM_SWEEP = 11,  /* a field of a run of a sweep: (run, attempt) */
    LS_RANDOM_PLUGIN = 30, /* layers of plugins, which choose the counter */
};

/* The key of one use: `name` is the layer's (or parameter's) name. */
uint64_t ls_random_key(uint64_t seed, enum ls_purpose purpose, const char *name);

/* Four independent 32-bit numbers. */
void ls_philox(uint64_t key, uint64_t counter_high, uint64_t counter_low, uint32_t out[4]);

/* The element-th 32-bit number of (key, ordinal). */
uint32_t ls_random_u32(uint64_t key, uint64_t ordinal, uint64_t element);
/* Uniform in [0, 1): 24 bits, exact in fp32. */
float ls_random_uniform(uint64_t key, uint64_t ordinal, uint64_t element);
/* Uniform integer in [0, n), n >= 1, by multiplication (bias below 2^-32 n). */
uint32_t ls_random_below(uint64_t key, uint64_t ordinal, uint64_t element, uint32_t n);
/* Standard normal (Box-Muller in double with fixed functions), one per `element`. It is what
 * ops/cpu/vector/normal.h is measured by, which makes the numbers of fillers. */
double ls_random_normal(uint64_t key, uint64_t ordinal, uint64_t element);

#endif
