/* State per sample. See engine/sample_states.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/sample_states.h"

#include <string.h>

#include "base/align.h"
#include "base/memory.h"
#include "engine/pass.h"
#include "ir/layer.h"
#include "transport/comm.h"

enum {
    WORD = 4, /* what ranks exchange is a multiple of this */
    NO_RANK = -1
};

/* ---- Creation -------------------------------------------------------------------------------- */

static int64_t sample_states_rows(const struct ls_net *net)
{
    return net->batching.batch * net->batching.iter_size;
}

/* A state with so many rows; where it lies is not set. */
static struct ls_state_tensor sample_states_describe(const struct ls_sample_state *state,
                                                     int64_t rows)
{
    const struct ls_value *value = state->value;
    struct ls_state_tensor tensor = {.name = state->name,
                                     .layer = state->layer,
                                     .type = value->type,
                                     .shape = value->shape,
                                     .runs = 1};
    for (int axis = 0; axis < value->sample_axis; axis++)
        tensor.runs *= (size_t)value->shape.dim[axis];
    tensor.run = (size_t)ls_value_sample_size(value) / tensor.runs * ls_dtype_size(value->type);
    tensor.shape.dim[value->sample_axis] = rows * value->rows;
    tensor.bytes = tensor.runs * (size_t)rows * tensor.run;
    tensor.whole = ls_layer_is_mixed(state->layer, value);
    return tensor;
}

/* Places the states of a graph one behind the other; *row_bytes: of a row of all of them. */
static size_t sample_states_place(const struct ls_graph *graph, int64_t rows,
                                  struct ls_state_tensor *tensors, size_t *row_bytes)
{
    size_t bytes = 0;
    *row_bytes = 0;
    for (size_t i = 0; i < graph->sample_state_count; i++) {
        struct ls_state_tensor tensor = sample_states_describe(&graph->sample_states[i], rows);
        tensor.offset = bytes;
        bytes += ls_align(tensor.bytes);
        *row_bytes += tensor.runs * tensor.run;
        if (tensors != NULL)
            tensors[i] = tensor;
    }
    *row_bytes = (*row_bytes + WORD - 1) / WORD * WORD;
    return bytes;
}

size_t ls_sample_states_bytes(const struct ls_net *net, int ranks)
{
    const struct ls_graph *graph = ls_net_graph(net);
    const size_t rows = (size_t)sample_states_rows(net);
    size_t row_bytes, bytes = sample_states_place(graph, (int64_t)rows, NULL, &row_bytes);
    if (graph->sample_state_count == 0)
        return 0;
    size_t all = 2 * bytes + rows * sizeof(int);
    if (!net->options.device->memory->host_memory)
        all += bytes;
    /* The rows of an exchange, here and where they arrive. */
    return ranks > 1 ? all + rows * (2 * row_bytes + sizeof(int)) : all;
}

size_t ls_sample_states_snapshot_bytes(const struct ls_net *net)
{
    size_t row_bytes;
    return sample_states_place(ls_net_graph(net), sample_states_rows(net), NULL, &row_bytes);
}

static int sample_states_check_size(const struct ls_state_tensor *tensor, struct ls_error *error)
{
    char place[LS_PLACE_SIZE];
    if (ls_shape_valid(&tensor->shape, false))
        return 0;
    ls_layer_place(tensor->layer, NULL, NULL, place);
    return ls_fail(
        error, LOCKSTEP_DEFINITION, place, "use a smaller batch",
        "the state '%s' of all samples of an update would be larger than a tensor may be",
        tensor->name);
}

static int sample_states_allocate(struct ls_sample_states *states, struct ls_error *error)
{
    const size_t rows = (size_t)states->rows;
    const bool ranks = states->comm->size > 1;
    for (int c = 0; c < 2; c++)
        states->copy[c] = states->memory->create(states->bytes);
    states->owner = ls_alloc(rows, sizeof *states->owner);
    if (!states->memory->host_memory)
        states->staging = ls_alloc_aligned(states->bytes);
    if (ranks) {
        states->exchanged = ls_alloc(rows, states->row_bytes);
        states->exchanged_owner = ls_alloc(rows, sizeof *states->exchanged_owner);
    }
    bool there = states->copy[0] != NULL && states->copy[1] != NULL && states->owner != NULL &&
                 (states->staging != NULL || states->memory->host_memory) &&
                 (!ranks || (states->exchanged != NULL && states->exchanged_owner != NULL));
    return there ? 0 : ls_fail_memory(error, "the state of samples");
}

int ls_sample_states_open(const struct ls_graph *graph, const struct ls_device_memory *memory,
                          struct ls_comm *comm, int64_t rows, struct ls_sample_states **out,
                          struct ls_error *error)
{
    *out = NULL;
    if (graph->sample_state_count == 0)
        return 0;
    struct ls_sample_states *states = *out = ls_alloc(1, sizeof *states);
    if (states == NULL)
        return ls_fail_memory(error, "the state of samples");
    states->memory = memory;
    states->comm = comm;
    states->count = graph->sample_state_count;
    states->rows = rows;
    states->tensors = ls_alloc(states->count, sizeof *states->tensors);
    if (states->tensors == NULL)
        return ls_fail_memory(error, "the state of samples");
    states->bytes = sample_states_place(graph, states->rows, states->tensors, &states->row_bytes);
    for (size_t i = 0; i < states->count; i++)
        LS_TRY(sample_states_check_size(&states->tensors[i], error));
    return sample_states_allocate(states, error);
}

int ls_sample_states_create(struct ls_pass *pass, struct ls_error *error)
{
    return ls_sample_states_open(ls_net_graph(pass->net), pass->engine->device->memory,
                                 pass->engine->comm, sample_states_rows(pass->net), &pass->states,
                                 error);
}

void ls_sample_states_free(struct ls_sample_states *states)
{
    if (states == NULL)
        return;
    for (int c = 0; c < 2; c++)
        states->memory->free(states->copy[c]);
    ls_free_aligned(states->staging);
    ls_free(states->exchanged);
    ls_free(states->exchanged_owner);
    ls_free(states->owner);
    ls_free(states->tensors);
    ls_free(states);
}

int ls_sample_states_clear(struct ls_sample_states *states, struct ls_error *error)
{
    return states != NULL
               ? states->memory->zero(NULL, states->copy[states->old], states->bytes, error)
               : 0;
}

/* ---- Within a pass --------------------------------------------------------------------------- */

/* Where part `part` of a row lies in a copy. */
static size_t sample_states_at(const struct ls_sample_states *states,
                               const struct ls_state_tensor *tensor, size_t part, int64_t row)
{
    return tensor->offset + (part * (size_t)states->rows + (size_t)row) * tensor->run;
}

int ls_sample_states_recall(const struct ls_sample_states *states, int state, int64_t row,
                            int64_t samples, struct ls_stream *stream, void *value,
                            struct ls_error *error)
{
    const struct ls_state_tensor *tensor = &states->tensors[state];
    const unsigned char *old = states->copy[states->old];
    const size_t bytes = (tensor->whole ? 1 : (size_t)samples) * tensor->run;
    for (size_t part = 0; part < tensor->runs; part++)
        LS_TRY(states->memory->copy(stream, (unsigned char *)value + part * bytes,
                                    old + sample_states_at(states, tensor, part, row), bytes,
                                    error));
    return 0;
}

int ls_sample_states_keep(const struct ls_sample_states *states, int state, int64_t row,
                          int64_t samples, struct ls_stream *stream, const void *value,
                          struct ls_error *error)
{
    const struct ls_state_tensor *tensor = &states->tensors[state];
    unsigned char *new = states->copy[!states->old];
    const size_t bytes = (tensor->whole ? 1 : (size_t)samples) * tensor->run;
    for (size_t part = 0; part < tensor->runs; part++)
        LS_TRY(states->memory->copy(stream, new + sample_states_at(states, tensor, part, row),
                                    (const unsigned char *)value + part * bytes, bytes, error));
    return 0;
}

/* ---- Publishing ------------------------------------------------------------------------------ */

/* Which rank has computed each row of the pass. */
static void sample_states_find_owners(struct ls_sample_states *states, const struct ls_pass *pass)
{
    for (int64_t row = 0; row < states->rows; row++)
        states->owner[row] = NO_RANK;
    for (size_t unit = 0; unit < pass->unit_count; unit++) {
        const struct ls_unit *what = &pass->units[unit];
        for (int64_t i = 0; i < what->range.count; i++)
            states->owner[what->row + i] = pass->owners[unit];
    }
}

/* Copies all states of a row to `out`, or from there. */
static void sample_states_pack_row(const struct ls_sample_states *states, const unsigned char *host,
                                   int64_t row, unsigned char *out)
{
    for (size_t i = 0; i < states->count; i++) {
        const struct ls_state_tensor *tensor = &states->tensors[i];
        for (size_t part = 0; part < tensor->runs; part++, out += tensor->run)
            memcpy(out, host + sample_states_at(states, tensor, part, row), tensor->run);
    }
}

static void sample_states_unpack_row(const struct ls_sample_states *states, const unsigned char *in,
                                     int64_t row, unsigned char *host)
{
    for (size_t i = 0; i < states->count; i++) {
        const struct ls_state_tensor *tensor = &states->tensors[i];
        for (size_t part = 0; part < tensor->runs; part++, in += tensor->run)
            memcpy(host + sample_states_at(states, tensor, part, row), in, tensor->run);
    }
}

/* *host: the copy in the host's memory, with bytes [offset, offset + bytes) as they are now. */
static int sample_states_to_host(const struct ls_sample_states *states, int copy, size_t offset,
                                 size_t bytes, unsigned char **host, struct ls_error *error)
{
    unsigned char *device = states->copy[copy];
    *host = states->memory->host_memory ? device : states->staging;
    return states->memory->host_memory
               ? 0
               : states->memory->read(NULL, *host + offset, device + offset, bytes, error);
}

/* Brings the rows that other ranks have computed here, and ours to them. */
static int sample_states_share(struct ls_sample_states *states, struct ls_error *error)
{
    unsigned char *host;
    size_t count = 0;
    const int new = !states->old;
    LS_TRY(sample_states_to_host(states, new, 0, states->bytes, &host, error));
    for (int64_t row = 0; row < states->rows; row++) {
        if (states->owner[row] == NO_RANK)
            continue;
        if (states->owner[row] == states->comm->rank)
            sample_states_pack_row(states, host, row,
                                   states->exchanged + count * states->row_bytes);
        states->exchanged_owner[count++] = states->owner[row];
    }
    LS_TRY(ls_comm_all_gather_items(states->comm, states->exchanged, states->row_bytes,
                                    states->row_bytes, states->exchanged_owner, count, error));
    const unsigned char *in = states->exchanged;
    for (int64_t row = 0; row < states->rows; row++) {
        if (states->owner[row] == NO_RANK)
            continue;
        if (states->owner[row] != states->comm->rank)
            sample_states_unpack_row(states, in, row, host);
        in += states->row_bytes;
    }
    return states->memory->host_memory
               ? 0
               : states->memory->write(NULL, states->copy[new], host, states->bytes, error);
}

/* Rows that no micro-batch has had stay as they were. */
static int sample_states_carry_over(const struct ls_sample_states *states, struct ls_error *error)
{
    const unsigned char *old = states->copy[states->old];
    unsigned char *new = states->copy[!states->old];
    for (int64_t begin = 0, end; begin < states->rows; begin = end) {
        bool computed = states->owner[begin] != NO_RANK;
        for (end = begin + 1; end < states->rows; end++)
            if ((states->owner[end] != NO_RANK) != computed)
                break;
        for (size_t i = 0; i < states->count && !computed; i++) {
            const struct ls_state_tensor *tensor = &states->tensors[i];
            for (size_t part = 0; part < tensor->runs; part++) {
                size_t at = sample_states_at(states, tensor, part, begin);
                LS_TRY(states->memory->copy(NULL, new + at, old + at,
                                            (size_t)(end - begin) * tensor->run, error));
            }
        }
    }
    return 0;
}

int ls_sample_states_publish(const struct ls_pass *pass, struct ls_error *error)
{
    struct ls_sample_states *states = pass->states;
    if (states == NULL)
        return 0;
    sample_states_find_owners(states, pass);
    if (states->comm->size > 1)
        LS_TRY(sample_states_share(states, error));
    LS_TRY(sample_states_carry_over(states, error));
    states->old = !states->old;
    return 0;
}

/* ---- Without a pass -------------------------------------------------------------------------- */

void ls_sample_states_turn(struct ls_sample_states *states)
{
    if (states != NULL)
        states->old = !states->old;
}

int ls_sample_states_spread(struct ls_sample_states *states, struct ls_error *error)
{
    for (size_t i = 0; states != NULL && i < states->count; i++) {
        const struct ls_state_tensor *tensor = &states->tensors[i];
        unsigned char *copy = states->copy[states->old];
        for (size_t part = 0; part < tensor->runs; part++)
            for (int64_t row = 1; row < states->rows; row++)
                LS_TRY(states->memory->copy(
                    NULL, copy + sample_states_at(states, tensor, part, row),
                    copy + sample_states_at(states, tensor, part, 0), tensor->run, error));
    }
    return 0;
}

/* ---- For snapshots --------------------------------------------------------------------------- */

int ls_sample_states_read(const struct ls_sample_states *states, size_t state, const void **data,
                          struct ls_error *error)
{
    const struct ls_state_tensor *tensor = &states->tensors[state];
    unsigned char *host;
    LS_TRY(sample_states_to_host(states, states->old, tensor->offset, tensor->bytes, &host, error));
    *data = host + tensor->offset;
    return 0;
}

int ls_sample_states_write(struct ls_sample_states *states, size_t state, const void *data,
                           struct ls_error *error)
{
    const struct ls_state_tensor *tensor = &states->tensors[state];
    return states->memory->write(NULL, (unsigned char *)states->copy[states->old] + tensor->offset,
                                 data, tensor->bytes, error);
}
