/* The memory of sync points. See engine/exchange.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/exchange.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "transport/comm.h"

/* ---- Creation -------------------------------------------------------------------------------- */

/* A group of a batch has at least half of `group` samples, rounded up, unless it is the only one:
 * so a micro-batch meets at most so many. */
int64_t ls_exchange_parts(int64_t largest, int64_t group)
{
    int64_t smallest = (group + 1) / 2;
    if (group <= 0)
        return 1;
    int64_t parts = largest / smallest + 2;
    return parts < largest ? parts : largest;
}

static int64_t exchange_most_groups(const struct ls_exchange_options *options, int64_t group)
{
    return ls_batching_groups(options->batch, group);
}

static int exchange_create_members(struct ls_exchange *exchange,
                                   const struct ls_exchange_options *options,
                                   struct ls_error *error)
{
    for (size_t g = 0; g < exchange->groupings; g++) {
        struct ls_members *members = &exchange->members[g];
        int64_t group = options->graph->groupings[g];
        if (options->local != NULL && !options->local(options->user, group))
            exchange->together = true;
        members->parts_most = ls_exchange_parts(options->largest, group);
        size_t parts = (size_t)(options->units * members->parts_most);
        size_t groups = (size_t)(options->batches * exchange_most_groups(options, group));
        members->part = ls_alloc(parts, sizeof *members->part);
        members->member = ls_alloc(parts, sizeof *members->member);
        members->start = ls_alloc(groups + 1, sizeof *members->start);
        if (members->part == NULL || members->member == NULL || members->start == NULL)
            return ls_fail_memory(error, "batch statistics");
    }
    return 0;
}

/* Memory for what one sync point merges, for `groups` groups; freed with the exchange. */
static float *exchange_own_merged(struct ls_exchange *exchange, const struct ls_sync *sync,
                                  int64_t groups)
{
    size_t numbers = (size_t)(groups * ls_sync_merged(sync));
    float *memory = exchange->device->memory->create(numbers * sizeof *memory);
    exchange->owned[exchange->owned_count++] = memory;
    return memory;
}

static int exchange_create_merged(struct ls_exchange *exchange,
                                  const struct ls_exchange_options *options, struct ls_error *error)
{
    for (size_t s = 0; s < exchange->syncs; s++) {
        const struct ls_sync *sync = &exchange->graph->syncs[s];
        if (sync->grouping < 0)
            continue;
        int64_t groups = options->batches *
                         exchange_most_groups(options, exchange->graph->groupings[sync->grouping]);
        if (!exchange->together)
            groups = exchange->members[sync->grouping].parts_most;
        float *memory = NULL;
        for (int w = 0; w < exchange->workers; w++) {
            if (w == 0 || !exchange->together)
                memory = exchange_own_merged(exchange, sync, groups);
            if (memory == NULL)
                return ls_fail_memory(error, "batch statistics");
            exchange->merged[(size_t)w * exchange->syncs + s] = memory;
        }
    }
    return 0;
}

/* Whether the rows of a sync point are needed by moving averages only. */
static bool exchange_is_kept(const struct ls_exchange_options *options, const struct ls_sync *sync)
{
    return sync->kind == LS_SYNC_MOMENTS && sync->averages.mean != NULL && options->local != NULL &&
           options->local(options->user, options->graph->groupings[sync->grouping]);
}

static void exchange_place_rows(struct ls_exchange *exchange,
                                const struct ls_exchange_options *options, bool kept)
{
    for (size_t s = 0; s < exchange->syncs; s++) {
        const struct ls_sync *sync = &exchange->graph->syncs[s];
        if (sync->grouping < 0 || exchange_is_kept(options, sync) != kept)
            continue;
        exchange->row_offset[s] = exchange->row_doubles;
        exchange->row_doubles +=
            (size_t)(exchange->members[sync->grouping].parts_most * ls_sync_row(sync));
    }
}

static int exchange_create_rows(struct ls_exchange *exchange,
                                const struct ls_exchange_options *options, struct ls_error *error)
{
    exchange_place_rows(exchange, options, true);
    exchange->kept_doubles = exchange->row_doubles;
    exchange_place_rows(exchange, options, false);
    size_t doubles = (size_t)options->units * exchange->row_doubles;
    return ls_mirror_create(&exchange->rows, exchange->device->memory, doubles * sizeof(double) + 1,
                            "batch statistics", error);
}

static int exchange_create(struct ls_exchange *exchange, const struct ls_exchange_options *options,
                           struct ls_error *error)
{
    exchange->graph = options->graph;
    exchange->device = options->device;
    exchange->workers = options->workers;
    exchange->units = (size_t)options->units;
    exchange->syncs = options->graph->sync_count;
    exchange->groupings = options->graph->grouping_count;
    if (exchange->syncs == 0)
        return 0;
    size_t pointers = (size_t)options->workers * exchange->syncs;
    exchange->members = ls_alloc(exchange->groupings + 1, sizeof *exchange->members);
    exchange->parts =
        ls_alloc((size_t)options->units * exchange->groupings + 1, sizeof *exchange->parts);
    exchange->row_offset = ls_alloc(exchange->syncs, sizeof *exchange->row_offset);
    exchange->merged = ls_alloc(pointers, sizeof *exchange->merged);
    exchange->partial = ls_alloc(pointers, sizeof *exchange->partial);
    exchange->list = ls_alloc((size_t)options->workers * exchange->units, sizeof *exchange->list);
    exchange->owned = ls_alloc(pointers + exchange->syncs, sizeof *exchange->owned);
    if (exchange->members == NULL || exchange->parts == NULL || exchange->row_offset == NULL ||
        exchange->merged == NULL || exchange->partial == NULL || exchange->list == NULL ||
        exchange->owned == NULL)
        return ls_fail_memory(error, "batch statistics");
    for (size_t s = 0; s < exchange->syncs; s++)
        exchange->together |= exchange->graph->syncs[s].grouping < 0;
    LS_TRY(exchange_create_members(exchange, options, error));
    LS_TRY(exchange_create_rows(exchange, options, error));
    return exchange_create_merged(exchange, options, error);
}

int ls_exchange_create(const struct ls_exchange_options *options, struct ls_exchange **out,
                       struct ls_error *error)
{
    *out = NULL;
    struct ls_exchange *exchange = ls_alloc(1, sizeof *exchange);
    if (exchange == NULL)
        return ls_fail_memory(error, "batch statistics");
    int status = exchange_create(exchange, options, error);
    if (status != 0)
        ls_exchange_free(exchange);
    else
        *out = exchange;
    return status;
}

void ls_exchange_free(struct ls_exchange *exchange)
{
    if (exchange == NULL)
        return;
    for (size_t g = 0; exchange->members != NULL && g < exchange->groupings; g++) {
        ls_free(exchange->members[g].part);
        ls_free(exchange->members[g].member);
        ls_free(exchange->members[g].start);
    }
    for (size_t i = 0; i < exchange->owned_count; i++)
        exchange->device->memory->free(exchange->owned[i]);
    ls_free(exchange->members);
    ls_free(exchange->parts);
    ls_free(exchange->row_offset);
    ls_mirror_free(&exchange->rows);
    ls_free(exchange->merged);
    ls_free(exchange->partial);
    ls_free((void *)exchange->list);
    ls_free(exchange->owned);
    ls_free(exchange);
}

/* ---- Members of groups ----------------------------------------------------------------------- */

void ls_exchange_begin(struct ls_exchange *exchange)
{
    for (size_t g = 0; g < exchange->groupings; g++)
        exchange->members[g].members = exchange->members[g].groups = 0;
}

/* Cuts the micro-batches of a batch where groups end. */
static void exchange_add_members(struct ls_exchange *exchange, size_t grouping,
                                 const struct ls_batch *batch, const struct ls_micro *micro,
                                 int64_t n, size_t first)
{
    struct ls_members *members = &exchange->members[grouping];
    int64_t groups = ls_batching_groups(batch->count, exchange->graph->groupings[grouping]);
    int64_t group = -1, group_end = 0;
    for (int64_t i = 0; i < n; i++) {
        size_t unit = first + (size_t)i;
        struct ls_part *part = members->part + unit * (size_t)members->parts_most;
        int64_t begin = micro[i].ordinal - batch->ordinal, end = begin + micro[i].count;
        int count = 0;
        for (int64_t at = begin; at < end; count++) {
            if (at == group_end) {
                group_end = ls_even_cut(batch->count, groups, ++group + 1);
                members->start[members->groups++] = members->members;
            }
            int64_t stop = group_end < end ? group_end : end;
            part[count] = (struct ls_part){
                .first = at - begin,
                .count = stop - at,
                .group = group,
                .merged = exchange->together ? (int64_t)members->groups - 1 : count};
            members->member[members->members++] = (struct ls_member){.unit = unit, .part = count};
            at = stop;
        }
        exchange->parts[unit * exchange->groupings + grouping] =
            (struct ls_parts){.part = part, .count = count};
    }
    members->start[members->groups] = members->members;
}

void ls_exchange_add(struct ls_exchange *exchange, const struct ls_batch *batch,
                     const struct ls_micro *micro, int64_t n, size_t first)
{
    for (size_t g = 0; g < exchange->groupings; g++)
        exchange_add_members(exchange, g, batch, micro, n, first);
}

/* Where a row is among those of all micro-batches, in doubles. */
static size_t exchange_place_of(const struct ls_exchange *exchange, int sync,
                                const struct ls_member *member)
{
    return member->unit * exchange->row_doubles + exchange->row_offset[sync] +
           (size_t)(member->part * ls_sync_row(&exchange->graph->syncs[sync]));
}

int ls_exchange_fetch(const struct ls_exchange *exchange, size_t begin, size_t end,
                      struct ls_error *error)
{
    size_t bytes = exchange->row_doubles * sizeof(double);
    return ls_mirror_read(&exchange->rows, begin * bytes, (end - begin) * bytes, error);
}

void ls_exchange_context(struct ls_exchange *exchange, int worker, size_t unit, double *rows,
                         struct ls_context *context)
{
    if (exchange->syncs == 0)
        return;
    size_t from = (size_t)worker * exchange->syncs;
    if (rows == NULL)
        rows = (double *)exchange->rows.device + unit * exchange->row_doubles;
    for (size_t s = 0; s < exchange->syncs; s++)
        exchange->partial[from + s] = rows + exchange->row_offset[s];
    context->parts = exchange->parts + unit * exchange->groupings;
    context->partial = exchange->partial + from;
    context->merged = exchange->merged + from;
}

uint64_t ls_exchange_hash(const struct ls_exchange *exchange, int sync, size_t unit,
                          const double *rows)
{
    const struct ls_sync *what = &exchange->graph->syncs[sync];
    uint64_t hash = 0;
    if (what->grouping < 0)
        return hash;
    if (rows == NULL)
        rows = (const double *)exchange->rows.host + unit * exchange->row_doubles;
    const double *row = rows + exchange->row_offset[sync];
    const size_t padded = (size_t)ls_sync_padded(what),
                 bytes = (size_t)what->channels * sizeof *row;
    int parts = exchange->parts[unit * exchange->groupings + (size_t)what->grouping].count;
    for (int p = 0; p < parts; p++, row += ls_sync_row(what)) {
        hash = ls_hash(row, bytes, hash);
        hash = ls_hash(row + padded, bytes, hash);
        hash = ls_hash(row + 2 * padded, sizeof *row, hash);
    }
    return hash;
}

/* ---- Other ranks ----------------------------------------------------------------------------- */

/* Rows that the host has, to the device. */
static int exchange_give_back(const struct ls_exchange *exchange, size_t begin, size_t end,
                              struct ls_error *error)
{
    size_t bytes = exchange->row_doubles * sizeof(double);
    return ls_mirror_write(&exchange->rows, begin * bytes, (end - begin) * bytes, error);
}

int ls_exchange_share(struct ls_exchange *exchange, struct ls_comm *comm, int sync, size_t begin,
                      size_t end, const int *owner, struct ls_error *error)
{
    const struct ls_sync *what = &exchange->graph->syncs[sync];
    int parts = 0;
    for (size_t unit = begin; unit < end; unit++) {
        int own = exchange->parts[unit * exchange->groupings + (size_t)what->grouping].count;
        parts = own > parts ? own : parts;
    }
    size_t bytes = (size_t)(parts * ls_sync_row(what)) * sizeof(double);
    double *rows =
        (double *)exchange->rows.host + begin * exchange->row_doubles + exchange->row_offset[sync];
    LS_TRY(ls_exchange_fetch(exchange, begin, end, error));
    LS_TRY(ls_comm_all_gather_items(comm, rows, exchange->row_doubles * sizeof(double), bytes,
                                    owner + begin, end - begin, error));
    for (size_t i = 0; LS_MUTANT(SELFISH) && i < end - begin; i++) /* a rank's own samples */
        for (size_t own = 0; own < end - begin && owner[begin + i] != comm->rank; own++)
            if (owner[begin + own] == comm->rank)
                memcpy(rows + i * exchange->row_doubles, rows + own * exchange->row_doubles, bytes);
    return exchange_give_back(exchange, begin, end, error);
}

int ls_exchange_share_kept(struct ls_exchange *exchange, struct ls_comm *comm, size_t units,
                           const int *owner, struct ls_error *error)
{
    LS_TRY(ls_exchange_fetch(exchange, 0, units, error));
    LS_TRY(ls_comm_all_gather_items(comm, exchange->rows.host,
                                    exchange->row_doubles * sizeof(double),
                                    exchange->kept_doubles * sizeof(double), owner, units, error));
    return exchange_give_back(exchange, 0, units, error);
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* Merges channels [begin, end) of group `group` (over the update). */
static int exchange_merge_group(const struct ls_exchange *exchange, struct ls_stream *stream,
                                int worker, int sync, size_t group, int64_t begin, int64_t end,
                                float *merged, struct ls_error *error)
{
    const struct ls_members *members = &exchange->members[exchange->graph->syncs[sync].grouping];
    const struct ls_member *member = members->member + members->start[group];
    size_t count = members->start[group + 1] - members->start[group];
    const double **rows = exchange->list + (size_t)worker * exchange->units;
    for (size_t i = 0; i < count; i++)
        rows[i] =
            (const double *)exchange->rows.device + exchange_place_of(exchange, sync, &member[i]);
    if (LS_MUTANT(STATISTICS)) { /* statistics of a worker's own samples */
        size_t own = 0;
        for (size_t i = 0; i < count; i++)
            if (member[i].unit % (size_t)exchange->workers == (size_t)worker)
                rows[own++] = rows[i];
        count = own > 0 ? own : count;
    }
    return exchange->device->merge(stream, &exchange->graph->syncs[sync], rows, (int)count, begin,
                                   end, merged, error);
}

int ls_exchange_merge(struct ls_exchange *exchange, struct ls_stream *stream, int sync,
                      size_t begin, size_t end, int worker, struct ls_error *error)
{
    const struct ls_sync *what = &exchange->graph->syncs[sync];
    const struct ls_members *members = &exchange->members[what->grouping];
    int64_t blocks = ls_sync_padded(what) / LS_SYNC_BLOCK;
    float *merged = exchange->merged[sync];
    size_t first = 0;
    while (members->member[members->start[first]].unit < begin)
        first++;
    size_t last = first;
    while (last < members->groups && members->member[members->start[last]].unit < end)
        last++;
    int64_t items = (int64_t)(last - first) * blocks;
    int64_t item = ls_even_cut(items, exchange->workers, worker);
    int64_t stop = ls_even_cut(items, exchange->workers, worker + 1);
    while (item < stop) { /* as many channels of one group as are this worker's */
        int64_t group = item / blocks, block = item % blocks;
        int64_t until = block + (stop - item) < blocks ? block + (stop - item) : blocks;
        LS_TRY(exchange_merge_group(exchange, stream, worker, sync, first + (size_t)group,
                                    block * LS_SYNC_BLOCK, until * LS_SYNC_BLOCK,
                                    merged + ((int64_t)first + group) * ls_sync_merged(what),
                                    error));
        item += until - block;
    }
    return 0;
}

int ls_exchange_merge_local(const struct ls_device *device, const struct ls_graph *graph, int sync,
                            const struct ls_context *context, int64_t begin, int64_t end)
{
    const struct ls_sync *what = &graph->syncs[sync];
    if (what->grouping < 0)
        return 0;
    const struct ls_parts *parts = &context->parts[what->grouping];
    for (int p = 0; p < parts->count; p++) {
        const double *row = context->partial[sync] + p * ls_sync_row(what);
        float *merged = context->merged[sync] + parts->part[p].merged * ls_sync_merged(what);
        LS_TRY(device->merge(context->stream, what, &row, 1, begin, end, merged, context->error));
    }
    return 0;
}

size_t ls_exchange_groups(const struct ls_exchange *exchange, int sync)
{
    int grouping = exchange->graph->syncs[sync].grouping;
    return grouping >= 0 ? exchange->members[grouping].groups : 0;
}

int ls_exchange_group(const struct ls_exchange *exchange, int sync, size_t group, float *merged,
                      double *count, struct ls_error *error)
{
    const struct ls_sync *what = &exchange->graph->syncs[sync];
    const struct ls_members *members = &exchange->members[what->grouping];
    *count = 0;
    for (size_t i = members->start[group]; i < members->start[group + 1]; i++)
        *count += ((const double *)
                       exchange->rows.host)[exchange_place_of(exchange, sync, &members->member[i]) +
                                            2 * (size_t)ls_sync_padded(what)];
    return exchange_merge_group(exchange, NULL, 0, sync, group, 0, ls_sync_padded(what), merged,
                                error);
}
