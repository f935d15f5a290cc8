/* Reads all numbers of a file of weights; for fuzzers, too, which link no library of the tests.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_READ_WEIGHTS_H
#define LS_TESTS_READ_WEIGHTS_H

#include "snapshot/weights.h"

/* Stores a blob: here, adds its numbers up. */
static inline int add_up(void *user, const struct ls_weight_target *target, const float *data,
                         struct ls_error *error)
{
    (void)error;
    volatile float *sum = user;
    for (int64_t i = 0; i < ls_shape_size(&target->shape); i++)
        *sum += data[i];
    return 0;
}

static inline void read_blob(struct ls_weights *weights, const struct ls_weight_layer *layer,
                             int blob, struct ls_error *error)
{
    float sum = 0;
    struct ls_weight_target target = {.layer = layer->name,
                                      .blob = blob,
                                      .blob_count = layer->blob_count,
                                      .shape = layer->blobs[blob].shape,
                                      .store = add_up,
                                      .user = &sum};
    struct ls_weights_report report = {0};
    ls_weights_apply(weights, &target, 1, false, &report, error);
    ls_weights_report_free(&report);
}

/* Gives each blob of the first `layers` layers to a parameter of its shape, as a training does, and
 * reads every number there, so that a sanitizer sees a blob that is shorter than its shape. */
static inline void ls_test_read_weights(struct ls_weights *weights, size_t layers,
                                        struct ls_error *error)
{
    for (size_t i = 0; i < weights->layer_count && i < layers; i++)
        for (int b = 0; b < weights->layers[i].blob_count; b++)
            if (weights->layers[i].blobs[b].present)
                read_blob(weights, &weights->layers[i], b, error);
}

#endif
