/* One op on bf16 numbers, or on fp32 numbers with the algorithm PORTABLE, carried out by the kernel
 * that the CPU's table has for it, on every instruction set, and by the reference device: its
 * outputs are compared with those of the definition, bit by bit, and these with sums in double,
 * within what rounding changes. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_BF16_TRIAL_H
#define LS_TESTS_KERNELS_BF16_TRIAL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "ir/kernel.h"

#include "kernels/bf16_model.h"

enum { TRIAL_X, TRIAL_W, TRIAL_Y, TRIAL_B, TRIAL_VALUES };

struct bf16_trial {
    struct ls_op op;
    bool f32; /* of fp32 numbers, else of bf16 */
    struct ls_value value[TRIAL_VALUES];
    struct ls_value *in[3], *out[2];
    const float *given[TRIAL_VALUES]; /* in Caffe's order: what is read */
    float *expected[2];               /* by output */
    /* Lays weights out as the kernel asks for them. */
    void (*lay_out)(const struct bf16_trial *trial, const struct ls_layout *layout,
                    const float *from, float *to);
    const void *user;
    int64_t terms; /* at most, of a sum */
    const char *what;
    void *data[TRIAL_VALUES];
};

/* Appends a value to the inputs or outputs of the op. */
void bf16_trial_in(struct bf16_trial *trial, int value);
void bf16_trial_out(struct bf16_trial *trial, int value);
/* Carries out and compares all that is said above. */
void bf16_trial_all(struct bf16_trial *trial);

/* Random numbers, to be freed: that bf16 has, or (f32, biases) has not. */
float *bf16_trial_numbers(bool f32, int64_t count, uint64_t salt);
float *bf16_trial_biases(int64_t count, uint64_t salt);

#endif
