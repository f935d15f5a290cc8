/* What a slot has in the memory of a device that has memory of its own: copies of what comes from
 * the host with each micro-batch, and of what goes back to it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_STAGING_H
#define LS_ENGINE_STAGING_H

#include "device/device.h"
#include "ir/graph.h"

/* All zeros where the device's memory is the host's. */
struct ls_staging {
    const struct ls_device_memory *memory; /* NULL: nothing is copied */
    void **inputs;                         /* by input of the graph, in the device's memory */
    double *record;                        /* in the device's memory: where kernels measure */
    struct ls_batch_numbers *numbers;      /* in the device's memory */
    struct ls_batch_numbers *told;         /* the host's copy of `numbers` */
};

/* What a slot has there for a graph. */
size_t ls_staging_bytes(const struct ls_graph *graph);

/* ls_staging_free must be called also where this fails. */
int ls_staging_create(struct ls_staging *staging, const struct ls_device_memory *memory,
                      const struct ls_graph *graph, struct ls_error *error);
void ls_staging_free(struct ls_staging *staging, const struct ls_graph *graph);

/* Gives the inputs of a micro-batch (the host's pointers; NULL: not needed) to a stream, and clears
 * the record. */
int ls_staging_begin(const struct ls_staging *staging, const struct ls_graph *graph,
                     void *const *inputs, struct ls_stream *stream, struct ls_error *error);
/* Gives what kernels are told of the micro-batch to its stream, and has the context point to it. */
int ls_staging_tell(const struct ls_staging *staging, const struct ls_graph *graph,
                    struct ls_context *context);
/* Brings the record to the host, in the order of the stream. */
int ls_staging_read_record(const struct ls_staging *staging, const struct ls_graph *graph,
                           double *record, struct ls_stream *stream, struct ls_error *error);

#endif
