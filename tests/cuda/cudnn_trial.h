/* A convolution of any kind on the fake of cuDNN, in any layout, compared with the reference
 * device. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CUDA_CUDNN_TRIAL_H
#define LS_TESTS_CUDA_CUDNN_TRIAL_H

#include "kernels/op_scene.h"

enum { CUDNN_KINDS = 6, CUDNN_CARD_BYTES = 1 << 28 };
extern const enum ls_op_kind cudnn_kinds[CUDNN_KINDS];

struct cudnn_trial {
    struct op_scene scene;
    struct ls_prepared prepared;
    void *in[3], *out[2], *scratch;
    struct ls_stream *stream;
    float *expected[2]; /* by output, of the reference device */
};

/* A random op of a kind: `bf16` says that operands are, and the result is where it may be; layouts
 * are those that the kernel asks for, or, of values and weights, `layout`. */
void cudnn_trial_make(struct cudnn_trial *trial, enum ls_op_kind kind, int round, bool bf16,
                      const struct ls_layout *layout);
/* The same for an op that the caller has described in trial->scene. */
void cudnn_trial_settle(struct cudnn_trial *trial, bool bf16, const struct ls_layout *layout);
/* Makes it ready on the calling thread's card; the status of what failed. */
int cudnn_trial_prepare(struct cudnn_trial *trial, struct ls_error *error);
/* Gives its work to a stream, and waits for it. */
int cudnn_trial_give(const struct cudnn_trial *trial, struct ls_stream *stream,
                     struct ls_error *error);
int cudnn_trial_run(const struct cudnn_trial *trial, struct ls_error *error);
/* Fails unless the results are those of the reference device, within rounding. */
void cudnn_trial_compare(const struct cudnn_trial *trial);
/* Clears the results. */
void cudnn_trial_clear(const struct cudnn_trial *trial);
/* Frees all but the scene. */
void cudnn_trial_release(struct cudnn_trial *trial);
void cudnn_trial_free(struct cudnn_trial *trial);

#endif
