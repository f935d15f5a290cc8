/* The all-gather of factors: each rank records rows of x and dy for its own micro-batches, and gets
 * those of all ranks.
 *
 * Where every rank's rows are contiguous, in the order of ranks, they are sent and received in
 * place; else they are packed.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/reducer_factors.h"

#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "transport/comm.h"

struct side {
    struct ls_collective collective;
    struct ls_reducer_factors *reducer;
    size_t factor;
    enum ls_factor_side side;
    _Atomic int left;         /* micro-batches that have not recorded here */
    struct ls_event **events; /* by worker: the last that it recorded */
    float *packed;            /* all ranks' rows, rank by rank; NULL until it is needed */
    size_t capacity;          /* numbers */
};

struct ls_reducer_factors {
    const struct ls_device *device;
    struct ls_factors *factors;
    struct ls_comm *comm;
    int workers;
    _Atomic int status; /* of the device */
    struct side *sides; /* [factor][side] */
    int *owner;         /* by micro-batch */
    size_t units, unit_capacity;
    bool known;     /* owners */
    bool in_order;  /* the rows of ranks lie one behind the other, in the host's memory */
    size_t *blocks; /* [2 * ranks]: of the collective that is started */
};

static size_t reducer_factors_side_index(size_t factor, enum ls_factor_side side)
{
    return factor * LS_FACTOR_SIDES + (size_t)side;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Copies rows of micro-batches, rank by rank: this rank's into `packed` (pack), or the other ranks'
 * out of it. */
static void reducer_factors_copy_rows(struct side *side, bool pack)
{
    struct ls_reducer_factors *reducer = side->reducer;
    const struct ls_device_memory *memory = reducer->device->memory;
    int status = 0;
    size_t width;
    float *rows = ls_factors_side(reducer->factors, side->factor, side->side, &width);
    float *at = side->packed;
    for (int r = 0; r < reducer->comm->size; r++)
        for (size_t u = 0; u < reducer->units; u++) {
            if (reducer->owner[u] != r)
                continue;
            size_t begin = ls_factors_row(reducer->factors, side->factor, u);
            size_t numbers =
                (ls_factors_row(reducer->factors, side->factor, u + 1) - begin) * width;
            bool own = r == reducer->comm->rank;
            if (pack && own)
                status = memory->read(NULL, at, rows + begin * width, numbers * sizeof *at, NULL);
            else if (!pack && !own)
                status = memory->write(NULL, rows + begin * width, at, numbers * sizeof *at, NULL);
            if (status != 0)
                atomic_store(&reducer->status, status);
            at += numbers;
        }
}

static int reducer_factors_start(struct ls_collective *collective, struct ls_transport *transport,
                                 struct ls_transport_op **op)
{
    struct side *side = collective->user;
    struct ls_reducer_factors *reducer = side->reducer;
    size_t ranks = (size_t)reducer->comm->size, width, at = 0;
    size_t *bytes = reducer->blocks, *offset = bytes + ranks;
    float *rows = ls_factors_side(reducer->factors, side->factor, side->side, &width);
    for (int w = 0; w < reducer->workers; w++)
        if (reducer->device->streams->event_wait(side->events[w], NULL) != 0)
            atomic_store(&reducer->status, LOCKSTEP_INTERNAL);
    memset(bytes, 0, ranks * sizeof *bytes);
    for (size_t u = 0; u < reducer->units; u++)
        bytes[reducer->owner[u]] += (ls_factors_row(reducer->factors, side->factor, u + 1) -
                                     ls_factors_row(reducer->factors, side->factor, u)) *
                                    width * sizeof *rows;
    for (size_t r = 0; r < ranks; at += bytes[r++])
        offset[r] = at;
    if (!reducer->in_order) {
        reducer_factors_copy_rows(side, true);
        rows = side->packed;
    }
    size_t rank = (size_t)reducer->comm->rank;
    atomic_fetch_add_explicit(&reducer->comm->sent[LS_TRAFFIC_FACTORS], bytes[rank] * (ranks - 1),
                              memory_order_relaxed);
    const struct ls_transport_blocks blocks = {bytes, offset};
    return transport->calls->gather(transport, LS_CHANNEL_BULK,
                                    (unsigned char *)rows + offset[rank], rows, &blocks, op);
}

static void reducer_factors_finish(struct ls_collective *collective)
{
    struct side *side = collective->user;
    if (!side->reducer->in_order)
        reducer_factors_copy_rows(side, false);
}

/* ---- A pass ---------------------------------------------------------------------------------- */

int ls_reducer_factors_recorded(struct ls_reducer_factors *reducer,
                                const struct ls_record_attr *record,
                                const struct ls_context *context, struct ls_error *error)
{
    size_t factor = ls_factors_of(reducer->factors, record->parameter);
    struct side *side = &reducer->sides[reducer_factors_side_index(factor, record->side)];
    if (!LS_MUTANT(UNHEARD))
        LS_TRY(reducer->device->streams->event_record(side->events[context->worker],
                                                      context->stream, error));
    if (atomic_fetch_sub(&side->left, 1) == 1)
        ls_progress_thread_ready(reducer->comm->progress_thread, &side->collective);
    return 0;
}

int ls_reducer_factors_status(const struct ls_reducer_factors *reducer)
{
    return reducer != NULL ? atomic_load(&reducer->status) : 0;
}

void ls_reducer_factors_ready(struct ls_reducer_factors *reducer)
{
    size_t count = ls_factors_count(reducer->factors) * LS_FACTOR_SIDES;
    for (size_t i = 0; i < count; i++)
        ls_progress_thread_ready(reducer->comm->progress_thread, &reducer->sides[i].collective);
}

/* Memory to pack all rows, where they are not contiguous. */
static int reducer_factors_reserve(struct ls_reducer_factors *reducer, struct ls_error *error)
{
    size_t count = ls_factors_count(reducer->factors) * LS_FACTOR_SIDES;
    for (size_t i = 0; i < count && !reducer->in_order; i++) {
        struct side *side = &reducer->sides[i];
        size_t width;
        (void)ls_factors_side(reducer->factors, side->factor, side->side, &width);
        size_t numbers = ls_factors_row(reducer->factors, side->factor, reducer->units) * width;
        if (numbers <= side->capacity)
            continue;
        ls_free_aligned(side->packed);
        side->capacity = 0;
        side->packed = ls_alloc_aligned(numbers * sizeof *side->packed);
        if (side->packed == NULL)
            return ls_fail_memory(error, "an exchange between ranks");
        side->capacity = numbers;
    }
    return 0;
}

static int reducer_factors_learn_owners(struct ls_reducer_factors *reducer, const int *owner,
                                        size_t units, struct ls_error *error)
{
    if (units > reducer->unit_capacity) {
        int *longer = ls_resize(reducer->owner, units, sizeof *longer);
        if (longer == NULL)
            return ls_fail_memory(error, "an exchange between ranks");
        reducer->owner = longer;
        reducer->unit_capacity = units;
    }
    reducer->units = units;
    reducer->known = true;
    reducer->in_order = reducer->device->memory->host_memory;
    for (size_t u = 0; u < units; u++) {
        reducer->owner[u] = owner[u];
        reducer->in_order &= u == 0 || owner[u] >= owner[u - 1];
    }
    return reducer_factors_reserve(reducer, error);
}

int ls_reducer_factors_begin(struct ls_reducer_factors *reducer, const int *owner, size_t units,
                             int own, struct ls_error *error)
{
    size_t count = ls_factors_count(reducer->factors) * LS_FACTOR_SIDES;
    if (count == 0)
        return 0;
    reducer->known = false;
    for (size_t i = 0; i < count; i++) /* more than ever come, if it is not known how many */
        atomic_store(&reducer->sides[i].left, owner != NULL ? own : (int)units + 1);
    return owner != NULL ? reducer_factors_learn_owners(reducer, owner, units, error) : 0;
}

int ls_reducer_factors_end(struct ls_reducer_factors *reducer, const int *owner, size_t units,
                           struct ls_error *error)
{
    if (ls_factors_count(reducer->factors) == 0)
        return 0;
    if (!reducer->known)
        LS_TRY(reducer_factors_learn_owners(reducer, owner, units, error));
    ls_reducer_factors_ready(reducer);
    return 0;
}

/* ---- Creation -------------------------------------------------------------------------------- */

static int reducer_factors_create_events(struct side *side, struct ls_error *error)
{
    const struct ls_reducer_factors *reducer = side->reducer;
    side->events = ls_alloc((size_t)reducer->workers + 1, sizeof(struct ls_event *));
    if (side->events == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    for (int w = 0; w < reducer->workers; w++)
        LS_TRY(reducer->device->streams->event_create(&side->events[w], error));
    return 0;
}

static void reducer_factors_free_side(const struct ls_reducer_factors *reducer, struct side *side)
{
    for (int w = 0; side->events != NULL && w < reducer->workers; w++)
        if (side->events[w] != NULL)
            reducer->device->streams->event_free(side->events[w]);
    ls_free((void *)side->events);
    ls_free_aligned(side->packed);
}

int ls_reducer_factors_create(struct ls_store *store, struct ls_comm *comm,
                              struct ls_reducer_factors **out, struct ls_error *error)
{
    *out = NULL;
    size_t count = ls_factors_count(store->factors) * LS_FACTOR_SIDES;
    struct ls_reducer_factors *reducer = ls_alloc(1, sizeof *reducer);
    if (reducer == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    reducer->device = store->device;
    reducer->factors = store->factors;
    reducer->comm = comm;
    reducer->workers = comm->workers;
    reducer->sides = ls_alloc(count + 1, sizeof *reducer->sides);
    reducer->blocks = ls_alloc(2 * (size_t)comm->size, sizeof *reducer->blocks);
    if (reducer->sides == NULL || reducer->blocks == NULL) {
        ls_reducer_factors_free(reducer);
        return ls_fail_memory(error, "an exchange between ranks");
    }
    for (size_t i = 0; i < count; i++) {
        struct side *side = &reducer->sides[i];
        side->reducer = reducer;
        side->factor = i / LS_FACTOR_SIDES;
        side->side = (enum ls_factor_side)(i % LS_FACTOR_SIDES);
        side->collective.start = reducer_factors_start;
        side->collective.finish = reducer_factors_finish;
        side->collective.user = side;
    }
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++)
        status = reducer_factors_create_events(&reducer->sides[i], error);
    if (status != 0)
        ls_reducer_factors_free(reducer);
    else
        *out = reducer;
    return status;
}

void ls_reducer_factors_free(struct ls_reducer_factors *reducer)
{
    if (reducer == NULL)
        return;
    size_t count = ls_factors_count(reducer->factors) * LS_FACTOR_SIDES;
    for (size_t i = 0; i < count && reducer->sides != NULL; i++)
        reducer_factors_free_side(reducer, &reducer->sides[i]);
    ls_free(reducer->sides);
    ls_free(reducer->owner);
    ls_free(reducer->blocks);
    ls_free(reducer);
}

struct ls_collective *ls_reducer_factors_collective(struct ls_reducer_factors *reducer,
                                                    size_t factor, enum ls_factor_side side)
{
    return &reducer->sides[reducer_factors_side_index(factor, side)].collective;
}
