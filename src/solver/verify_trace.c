/* What a verification notes. See solver/verify_trace.h.
 *
 * After each update all ranks meet once more, to read what is learned in the order of snapshots,
 * and rank 0 hashes it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/verify_trace.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "engine/copies.h"
#include "engine/exponents.h"
#include "engine/pass.h"
#include "engine/sample_states.h"
#include "solver/outputs.h"
#include "solver/state.h"
#include "transport/comm.h"

void ls_trace_free(struct ls_trace *trace)
{
    ls_free(trace->hash);
    ls_free(trace->figures);
    *trace = (struct ls_trace){0};
}

void ls_close_up_free(struct ls_close_up *close_up)
{
    for (int a = 0; a < LS_STATE_ARRAYS; a++)
        ls_free(close_up->array[a]);
    ls_free(close_up->exponents);
    ls_free(close_up->figures);
    *close_up = (struct ls_close_up){0};
}

/* ---- Tests and snapshots --------------------------------------------------------------------- */

static int add_figures(struct ls_figure **figures, size_t *count, size_t *capacity,
                       int64_t iteration, int net, const struct lockstep_output *outputs,
                       size_t output_count, struct ls_error *error)
{
    for (size_t i = 0; i < output_count; i++)
        for (size_t k = 0; k < outputs[i].count; k++) {
            if (!LS_GROW(*figures, *count, *capacity))
                return ls_fail_memory(error, "a verification");
            struct ls_figure *figure = &(*figures)[(*count)++];
            *figure = (struct ls_figure){
                .iteration = iteration, .net = net, .entry = (int)k, .value = outputs[i].values[k]};
            snprintf(figure->name, sizeof figure->name, "%s", outputs[i].name);
        }
    return 0;
}

int ls_trace_add_test(struct ls_trace *trace, const struct lockstep_event *event,
                      struct ls_error *error)
{
    return add_figures(&trace->figures, &trace->figure_count, &trace->figure_capacity,
                       event->iteration, event->test_net, event->outputs, event->output_count,
                       error);
}

int ls_trace_add_snapshot(struct ls_trace *trace, const char *path, struct ls_error *error)
{
    struct ls_mapping file;
    struct ls_sha256 tensors, all;
    uint64_t header = 0;
    LS_TRY(ls_file_map(path, LOCKSTEP_RESOURCE, &file, error));
    if (file.size >= sizeof header)
        memcpy(&header, file.data, sizeof header);
    size_t begin = header < file.size ? sizeof header + (size_t)header : file.size;
    begin = begin < file.size ? begin : file.size;
    ls_sha256_begin(&tensors);
    ls_sha256_add(&tensors, file.data + begin, file.size - begin);
    ls_sha256_end(&tensors, trace->tensors);
    ls_sha256_begin(&all);
    ls_sha256_add(&all, file.data, file.size);
    ls_sha256_end(&all, trace->file);
    ls_file_unmap(&file);
    return 0;
}

/* ---- Updates --------------------------------------------------------------------------------- */

static bool is_rank_0(const struct ls_tracer *tracer)
{
    return tracer->trainer->comm->rank == 0;
}

int ls_tracer_begin(struct ls_tracer *tracer, struct ls_error *error)
{
    const struct ls_trainer *trainer = tracer->trainer;
    size_t largest = 0;
    if (!is_rank_0(tracer))
        return 0;
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        size_t bytes = ls_parameter_plain_bytes(trainer->parameters->items[i]);
        largest = bytes > largest ? bytes : largest;
    }
    tracer->trace->parameters = trainer->parameters->count;
    tracer->trace->states = ls_net_graph(trainer->train)->sample_state_count;
    tracer->plain = ls_alloc_aligned(largest);
    return tracer->plain != NULL ? 0 : ls_fail_memory(error, "a verification");
}

void ls_tracer_end(struct ls_tracer *tracer)
{
    ls_free_aligned(tracer->plain);
    tracer->plain = NULL;
}

/* An array of a parameter into rank 0's room. All ranks call it. */
static int read_array(const struct ls_tracer *tracer, size_t parameter, enum ls_store_array array,
                      struct ls_error *error)
{
    const struct ls_engine *engine = tracer->trainer->engine;
    if (is_rank_0(tracer))
        return ls_copies_read(engine, (int)parameter, array, tracer->plain, error);
    return ls_copies_in_parts(engine, (int)parameter, array)
               ? ls_copies_read(engine, (int)parameter, array, NULL, error)
               : 0;
}

/* The hash of all that belongs to a parameter; its arrays to the close-up, where that is the one.
 */
static int hash_parameter(const struct ls_tracer *tracer, size_t parameter,
                          struct ls_close_up *close_up, uint64_t *hash, struct ls_error *error)
{
    const struct ls_trainer *trainer = tracer->trainer;
    const struct ls_shape *whole = &trainer->parameters->items[parameter]->shape;
    size_t rows = ls_sums_rows(trainer->store->sums, (int)parameter);
    const int32_t *exponents = ls_sums_state(trainer->store->sums, (int)parameter);
    *hash = ls_hash(exponents, rows * sizeof *exponents, parameter);
    for (int a = 0; a < LS_STATE_ARRAYS; a++) {
        const struct ls_shape shape = ls_store_array_shape(whole, ls_state_arrays[a].array);
        const size_t bytes = (size_t)ls_shape_size(&shape) * ls_dtype_size(LS_F32);
        if (!ls_state_has(trainer, parameter, ls_state_arrays[a].array))
            continue;
        LS_TRY(read_array(tracer, parameter, ls_state_arrays[a].array, error));
        if (!is_rank_0(tracer))
            continue;
        *hash = ls_hash_wide(tracer->plain, bytes, *hash + (uint64_t)a);
        if (close_up == NULL)
            continue;
        float *copy = close_up->array[ls_state_arrays[a].array] = ls_alloc(bytes, 1);
        if (copy == NULL)
            return ls_fail_memory(error, "a verification");
        memcpy(copy, tracer->plain, bytes);
    }
    if (close_up == NULL || !is_rank_0(tracer))
        return 0;
    snprintf(close_up->name, sizeof close_up->name, "%s",
             trainer->parameters->items[parameter]->name);
    close_up->shape = *whole;
    close_up->exponents = ls_alloc(rows + 1, sizeof *exponents);
    if (close_up->exponents == NULL)
        return ls_fail_memory(error, "a verification");
    close_up->exponent_count = rows;
    memcpy(close_up->exponents, exponents, rows * sizeof *exponents);
    return 0;
}

/* Rank 0: the hashes of all states per sample, which it has whole. */
static int hash_states(const struct ls_tracer *tracer, struct ls_close_up *close_up, uint64_t *hash,
                       struct ls_error *error)
{
    const struct ls_sample_states *states = tracer->trainer->train_pass->states;
    const size_t parameters = tracer->trainer->parameters->count;
    for (size_t i = 0; states != NULL && i < states->count; i++) {
        const struct ls_state_tensor *tensor = &states->tensors[i];
        const void *data;
        LS_TRY(ls_sample_states_read(states, i, &data, error));
        hash[i] = ls_hash_wide(data, tensor->bytes, i);
        if (close_up == NULL || close_up->parameter != (int)(parameters + i))
            continue;
        snprintf(close_up->name, sizeof close_up->name, "%s", tensor->name);
        close_up->state = hash[i];
    }
    return 0;
}

static uint64_t hash_losses(const struct ls_trainer *trainer)
{
    const struct ls_graph *graph = ls_net_graph(trainer->train);
    uint64_t hash = ls_hash(trainer->figures.totals.record,
                            (size_t)graph->record_size * sizeof *trainer->figures.totals.record, 0);
    return ls_hash(trainer->figures.totals.normalizers,
                   graph->normalizer_count * sizeof *trainer->figures.totals.normalizers, hash);
}

/* Rank 0's room for an update; *row NULL elsewhere. */
static int make_row(const struct ls_tracer *tracer, int64_t update, uint64_t **row,
                    struct ls_error *error)
{
    struct ls_trace *trace = tracer->trace;
    size_t width = ls_trace_width(trace), wanted = ((size_t)update + 1) * width;
    *row = NULL;
    if (!is_rank_0(tracer))
        return 0;
    if (wanted > trace->capacity) {
        uint64_t *longer = ls_resize(trace->hash, 2 * wanted, sizeof *longer);
        if (longer == NULL)
            return ls_fail_memory(error, "a verification");
        trace->hash = longer;
        trace->capacity = 2 * wanted;
    }
    *row = trace->hash + (size_t)update * width;
    return 0;
}

/* What the losses and metrics of the update show. */
static int add_losses(struct ls_close_up *close_up, struct ls_trainer *trainer,
                      struct ls_error *error)
{
    struct ls_outputs *outputs = &trainer->figures.outputs;
    LS_TRY(ls_outputs_set(outputs, ls_net_graph(trainer->train), NULL,
                          trainer->figures.totals.record, error));
    return add_figures(&close_up->figures, &close_up->figure_count, &close_up->figure_capacity,
                       close_up->update, -1, outputs->items, outputs->count, error);
}

int ls_tracer_note(struct ls_tracer *tracer, struct ls_error *error)
{
    struct ls_trainer *trainer = tracer->trainer;
    const int64_t update = trainer->iteration - 1;
    struct ls_close_up *close_up = tracer->close_up;
    if (close_up != NULL && close_up->update != update)
        close_up = NULL;
    uint64_t *row, hash = 0;
    LS_TRY(make_row(tracer, update, &row, error));
    LS_TRY(ls_copies_gather_weights(trainer->engine, error));
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        const bool near = close_up != NULL && close_up->parameter == (int)i;
        LS_TRY(hash_parameter(tracer, i, near ? close_up : NULL, &hash, error));
        if (row != NULL)
            row[1 + i] = hash;
    }
    if (row == NULL)
        return 0;
    row[0] = hash_losses(trainer);
    LS_TRY(hash_states(tracer, close_up, row + 1 + trainer->parameters->count, error));
    tracer->trace->updates = update + 1;
    return close_up != NULL ? add_losses(close_up, trainer, error) : 0;
}
