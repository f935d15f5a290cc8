/* See engine/staging.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/staging.h"

#include <string.h>

#include "base/memory.h"

static size_t staging_numbers_bytes(const struct ls_graph *graph)
{
    return sizeof(struct ls_batch_numbers) + graph->normalizer_count * sizeof(double);
}

size_t ls_staging_bytes(const struct ls_graph *graph)
{
    size_t bytes = (ls_graph_record_doubles(graph) + 1) * sizeof(double);
    for (size_t i = 0; i < graph->input_count; i++)
        bytes += graph->inputs[i].cache ? 0 : ls_value_bytes(graph->inputs[i].value);
    return bytes + staging_numbers_bytes(graph);
}

int ls_staging_create(struct ls_staging *staging, const struct ls_device_memory *memory,
                      const struct ls_graph *graph, struct ls_error *error)
{
    *staging = (struct ls_staging){0};
    if (memory->host_memory)
        return 0;
    staging->memory = memory;
    staging->record =
        memory->create((ls_graph_record_doubles(graph) + 1) * sizeof *staging->record);
    staging->numbers = memory->create(staging_numbers_bytes(graph));
    staging->told = ls_alloc(1, staging_numbers_bytes(graph));
    staging->inputs = ls_alloc(graph->input_count + 1, sizeof *staging->inputs);
    if (staging->record == NULL || staging->numbers == NULL || staging->told == NULL ||
        staging->inputs == NULL)
        return ls_fail_memory(error, "a worker");
    for (size_t i = 0; i < graph->input_count; i++) {
        if (graph->inputs[i].cache) /* it is there already */
            continue;
        staging->inputs[i] = memory->create(ls_value_bytes(graph->inputs[i].value));
        if (staging->inputs[i] == NULL)
            return ls_fail_memory(error, "a worker");
    }
    return 0;
}

void ls_staging_free(struct ls_staging *staging, const struct ls_graph *graph)
{
    const struct ls_device_memory *memory = staging->memory;
    if (memory == NULL)
        return;
    for (size_t i = 0; staging->inputs != NULL && i < graph->input_count; i++)
        if (!graph->inputs[i].cache)
            memory->free(staging->inputs[i]);
    ls_free((void *)staging->inputs);
    ls_free(staging->told);
    memory->free(staging->numbers);
    memory->free(staging->record);
    *staging = (struct ls_staging){0};
}

int ls_staging_begin(const struct ls_staging *staging, const struct ls_graph *graph,
                     void *const *inputs, struct ls_stream *stream, struct ls_error *error)
{
    const struct ls_device_memory *memory = staging->memory;
    if (memory == NULL)
        return 0;
    for (size_t i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].cache)
            staging->inputs[i] = inputs[i];
        else if (inputs[i] != NULL)
            LS_TRY(memory->write(stream, staging->inputs[i], inputs[i],
                                 ls_value_bytes(graph->inputs[i].value), error));
    return memory->zero(stream, staging->record,
                        ls_graph_record_doubles(graph) * sizeof *staging->record, error);
}

int ls_staging_tell(const struct ls_staging *staging, const struct ls_graph *graph,
                    struct ls_context *context)
{
    if (staging->memory == NULL)
        return 0;
    *staging->told = (struct ls_batch_numbers){.first_ordinal = context->first_ordinal,
                                               .samples = context->samples,
                                               .position = context->position,
                                               .micro_batch = context->micro_batch};
    if (context->normalizers != NULL && graph->normalizer_count > 0)
        memcpy(staging->told->normalizers, context->normalizers,
               graph->normalizer_count * sizeof(double));
    context->numbers = staging->numbers;
    return staging->memory->write(context->stream, staging->numbers, staging->told,
                                  staging_numbers_bytes(graph), context->error);
}

int ls_staging_read_record(const struct ls_staging *staging, const struct ls_graph *graph,
                           double *record, struct ls_stream *stream, struct ls_error *error)
{
    if (staging->memory == NULL)
        return 0;
    return staging->memory->read(stream, record, staging->record,
                                 ls_graph_record_doubles(graph) * sizeof *record, error);
}
