/* See engine/staging.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/staging.h"

#include <string.h>

#include "base/align.h"
#include "base/memory.h"
#include "base/mutant.h"

static size_t staging_numbers_bytes(const struct ls_graph *graph)
{
    return sizeof(struct ls_batch_numbers) + graph->normalizer_count * sizeof(double);
}

static size_t staging_draws_bytes(const struct ls_graph *graph)
{
    return (graph->input_count * (size_t)graph->samples + 1) * sizeof(struct ls_sample_draw);
}

size_t ls_staging_bytes(const struct ls_graph *graph, int buffers)
{
    size_t bytes = (ls_graph_record_doubles(graph) + 1) * sizeof(double) +
                   (size_t)buffers * staging_draws_bytes(graph);
    for (size_t i = 0; i < graph->input_count; i++)
        bytes +=
            graph->inputs[i].cache ? 0 : (size_t)buffers * ls_value_bytes(graph->inputs[i].value);
    return bytes + staging_numbers_bytes(graph);
}

/* ---- Creation -------------------------------------------------------------------------------- */

static int staging_create_buffer(struct ls_staging *staging, const struct ls_graph *graph,
                                 struct ls_staging_buffer *buffer, struct ls_error *error)
{
    const struct ls_device_memory *memory = staging->device->memory;
    buffer->inputs = ls_alloc(graph->input_count + 1, sizeof *buffer->inputs);
    if (buffer->inputs == NULL)
        return ls_fail_memory(error, "a worker");
    for (size_t i = 0; i < graph->input_count; i++) {
        if (graph->inputs[i].cache) /* it is there already */
            continue;
        buffer->inputs[i] = memory->create(ls_value_bytes(graph->inputs[i].value));
        if (buffer->inputs[i] == NULL)
            return ls_fail_memory(error, "a worker");
    }
    if (staging->device->make_samples != NULL) {
        buffer->draws = memory->create(staging_draws_bytes(graph));
        if (buffer->draws == NULL)
            return ls_fail_memory(error, "a worker");
    }
    return staging->device->streams->event_create(&buffer->read, error);
}

int ls_staging_create(struct ls_staging *staging, const struct ls_device *device,
                      const struct ls_graph *graph, int buffers, struct ls_error *error)
{
    const struct ls_device_memory *memory = device->memory;
    *staging = (struct ls_staging){0};
    if (memory->host_memory)
        return 0;
    staging->device = device;
    staging->record =
        memory->create((ls_graph_record_doubles(graph) + 1) * sizeof *staging->record);
    staging->numbers = memory->create(staging_numbers_bytes(graph));
    const bool told = ls_pinned_create(&staging->told, memory->pinning,
                                       LS_STAGING_TOLD * ls_align(staging_numbers_bytes(graph)));
    if (staging->record == NULL || staging->numbers == NULL || !told)
        return ls_fail_memory(error, "a worker");
    for (int i = 0; i < LS_STAGING_TOLD; i++)
        LS_TRY(device->streams->event_create(&staging->told_over[i], error));
    for (int i = 0; i < buffers; i++)
        LS_TRY(staging_create_buffer(staging, graph, &staging->buffers[i], error));
    staging->buffer_count = buffers;
    staging->inputs = staging->buffers[0].inputs;
    return 0;
}

void ls_staging_free(struct ls_staging *staging, const struct ls_graph *graph)
{
    if (staging->device == NULL)
        return;
    const struct ls_device_memory *memory = staging->device->memory;
    const struct ls_device_streams *streams = staging->device->streams;
    for (int b = 0; b < LS_STAGING_BUFFERS; b++) {
        struct ls_staging_buffer *buffer = &staging->buffers[b];
        for (size_t i = 0; buffer->inputs != NULL && i < graph->input_count; i++)
            if (!graph->inputs[i].cache)
                memory->free(buffer->inputs[i]);
        ls_free((void *)buffer->inputs);
        memory->free(buffer->draws);
        if (buffer->read != NULL)
            streams->event_free(buffer->read);
    }
    for (int i = 0; i < LS_STAGING_TOLD; i++)
        if (staging->told_over[i] != NULL)
            streams->event_free(staging->told_over[i]);
    ls_pinned_free(&staging->told);
    memory->free(staging->numbers);
    memory->free(staging->record);
    *staging = (struct ls_staging){0};
}

/* ---- A micro-batch --------------------------------------------------------------------------- */

static int staging_make(const struct ls_staging *staging, const struct ls_graph *graph,
                        size_t input, const struct ls_inputs *inputs, struct ls_stream *stream,
                        struct ls_error *error)
{
    const size_t samples = (size_t)graph->samples;
    struct ls_sample_draw *draws = staging->buffers[staging->buffer].draws + input * samples;
    LS_TRY(staging->device->memory->write(stream, draws, inputs->at[input], samples * sizeof *draws,
                                          error));
    return staging->device->make_samples(stream, inputs->making[input], draws, graph->samples,
                                         staging->inputs[input], error);
}

static int staging_write_inputs(const struct ls_staging *staging, const struct ls_graph *graph,
                                const struct ls_inputs *inputs, struct ls_stream *stream,
                                struct ls_error *error)
{
    for (size_t i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].cache)
            staging->inputs[i] = inputs->at[i];
        else if (inputs->at[i] != NULL && inputs->making != NULL && inputs->making[i] != NULL)
            LS_TRY(staging_make(staging, graph, i, inputs, stream, error));
        else if (inputs->at[i] != NULL)
            LS_TRY(staging->device->memory->write(stream, staging->inputs[i], inputs->at[i],
                                                  ls_value_bytes(graph->inputs[i].value), error));
    return 0;
}

/* In the stream for copies: behind the kernels that read what was there, and in front of those of
 * this micro-batch. */
static int staging_copy_ahead(const struct ls_staging *staging, const struct ls_graph *graph,
                              const struct ls_inputs *inputs, struct ls_stream *stream,
                              struct ls_error *error)
{
    const struct ls_device_streams *streams = staging->device->streams;
    const struct ls_copying *copying = &inputs->copying;
    if (!LS_MUTANT(OVERWRITES))
        LS_TRY(streams->follow(copying->stream, staging->buffers[staging->buffer].read, error));
    LS_TRY(staging_write_inputs(staging, graph, inputs, copying->stream, error));
    LS_TRY(streams->event_record(copying->over, copying->stream, error));
    return LS_MUTANT(AHEAD) ? 0 : streams->follow(stream, copying->over, error);
}

int ls_staging_begin(struct ls_staging *staging, const struct ls_graph *graph,
                     const struct ls_inputs *inputs, struct ls_stream *stream,
                     struct ls_error *error)
{
    if (staging->device == NULL)
        return 0;
    staging->buffer = (staging->buffer + 1) % staging->buffer_count;
    staging->inputs = staging->buffers[staging->buffer].inputs;
    if (inputs->copying.stream != NULL)
        LS_TRY(staging_copy_ahead(staging, graph, inputs, stream, error));
    else
        LS_TRY(staging_write_inputs(staging, graph, inputs, stream, error));
    return staging->device->memory->zero(
        stream, staging->record, ls_graph_record_doubles(graph) * sizeof *staging->record, error);
}

int ls_staging_tell(struct ls_staging *staging, const struct ls_graph *graph,
                    struct ls_context *context)
{
    if (staging->device == NULL)
        return 0;
    const size_t bytes = staging_numbers_bytes(graph);
    struct ls_event *over = staging->told_over[staging->next_told];
    struct ls_batch_numbers *told =
        (void *)(staging->told.memory + (size_t)staging->next_told * ls_align(bytes));
    staging->next_told = (staging->next_told + 1) % LS_STAGING_TOLD;
    if (!LS_MUTANT(RETOLD))
        LS_TRY(staging->device->streams->event_wait(over, context->error));
    *told = (struct ls_batch_numbers){.first_ordinal = context->first_ordinal,
                                      .samples = context->samples,
                                      .position = context->position,
                                      .micro_batch = context->micro_batch};
    if (context->normalizers != NULL && graph->normalizer_count > 0)
        memcpy(told->normalizers, context->normalizers, graph->normalizer_count * sizeof(double));
    context->numbers = staging->numbers;
    LS_TRY(staging->device->memory->write(context->stream, staging->numbers, told, bytes,
                                          context->error));
    return staging->device->streams->event_record(over, context->stream, context->error);
}

int ls_staging_note_read(const struct ls_staging *staging, struct ls_stream *stream,
                         struct ls_error *error)
{
    return staging->device == NULL ? 0
                                   : staging->device->streams->event_record(
                                         staging->buffers[staging->buffer].read, stream, error);
}

int ls_staging_read_record(const struct ls_staging *staging, const struct ls_graph *graph,
                           double *record, struct ls_stream *stream, struct ls_error *error)
{
    return staging->device == NULL
               ? 0
               : staging->device->memory->read(stream, record, staging->record,
                                               ls_graph_record_doubles(graph) * sizeof *record,
                                               error);
}

int ls_staging_copy_record(const struct ls_staging *staging, const struct ls_graph *graph,
                           double *there, struct ls_stream *stream, struct ls_error *error)
{
    return staging->device->memory->copy(stream, there, staging->record,
                                         ls_graph_record_doubles(graph) * sizeof *there, error);
}
