/* What a slot has in the memory of a device that has memory of its own: copies of what comes from
 * the host with each micro-batch, and of what goes back to it.
 *
 * Nothing here waits for the work of the micro-batch at hand, so the next one is copied while this
 * one is computed: into another buffer, in a stream for copies. What a stream still reads is
 * guarded by events: a buffer is written to when the micro-batch before the last is over, which the
 * stream for copies waits for; what kernels are told has several places in the host's memory, and
 * the host waits where all of them are on their way.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_STAGING_H
#define LS_ENGINE_STAGING_H

#include "device/device.h"
#include "ir/graph.h"

enum {
    LS_STAGING_BUFFERS = 2,
    LS_STAGING_TOLD = 4 /* places for what kernels are told */
};

/* How inputs get to a device: in a stream of their own, and an event that is over when the host may
 * change them. All zeros: in the stream of the micro-batch. */
struct ls_copying {
    struct ls_stream *stream;
    struct ls_event *over;
};

/* All zeros where the device's memory is the host's. */
struct ls_staging {
    const struct ls_device *device; /* NULL: nothing is copied */
    void **inputs; /* by input of the graph, in the device's memory: of the micro-batch at hand */
    struct ls_staging_buffer {
        void **inputs;
        struct ls_sample_draw *draws; /* by input, of all samples; NULL: it makes no samples */
        struct ls_event *read;        /* the last micro-batch that reads them is over */
    } buffers[LS_STAGING_BUFFERS];
    int buffer_count, buffer;         /* how many there are, and which is at hand */
    double *record;                   /* in the device's memory: where kernels measure */
    struct ls_batch_numbers *numbers; /* in the device's memory */
    struct ls_pinned told;            /* LS_STAGING_TOLD copies of `numbers` in the host's */
    struct ls_event *told_over[LS_STAGING_TOLD];
    int next_told;
};

/* What a slot has there for a graph. */
size_t ls_staging_bytes(const struct ls_graph *graph, int buffers);

/* ls_staging_free must be called also where this fails, when nothing of it is under way. */
int ls_staging_create(struct ls_staging *staging, const struct ls_device *device,
                      const struct ls_graph *graph, int buffers, struct ls_error *error);
void ls_staging_free(struct ls_staging *staging, const struct ls_graph *graph);

/* The inputs of a micro-batch, in the host's memory (NULL: not needed). */
struct ls_inputs {
    void *const *at;
    /* By input: of what samples the device makes it, of the draws that are there then; NULL: it
     * is copied. NULL: all are. */
    const struct ls_sample_making *const *making;
    struct ls_copying copying;
};

/* Gives the inputs of a micro-batch to its stream, or to that for copies, and clears the record. */
int ls_staging_begin(struct ls_staging *staging, const struct ls_graph *graph,
                     const struct ls_inputs *inputs, struct ls_stream *stream,
                     struct ls_error *error);
/* Gives what kernels are told of the micro-batch to its stream, and has the context point to it. */
int ls_staging_tell(struct ls_staging *staging, const struct ls_graph *graph,
                    struct ls_context *context);
/* Kernels that read the inputs were given to the stream. */
int ls_staging_note_read(const struct ls_staging *staging, struct ls_stream *stream,
                         struct ls_error *error);
/* Brings the record to the host, or to another place in the device's memory, in the order of the
 * stream. */
int ls_staging_read_record(const struct ls_staging *staging, const struct ls_graph *graph,
                           double *record, struct ls_stream *stream, struct ls_error *error);
int ls_staging_copy_record(const struct ls_staging *staging, const struct ls_graph *graph,
                           double *there, struct ls_stream *stream, struct ls_error *error);

#endif
