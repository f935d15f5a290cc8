/* Exchange: the memory of sync points, and merging of the partial results of micro-batches.
 *
 * Each micro-batch of an update has rows of partial results, one for every part of it (the samples
 * that it shares with one group). Rows stay until the update ends, because the moving averages are
 * advanced from them. Where micro-batches go through the net together, merged results exist once
 * for all workers, by group of the update: the backward pass needs them again, after the worker has
 * run other micro-batches. Where every group of the net lies within a micro-batch, each worker has
 * its own. Every rank of a job gets the rows of all ranks and merges them itself: the same bits on
 * all.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_EXCHANGE_H
#define LS_ENGINE_EXCHANGE_H

#include "data/batching.h"
#include "ir/graph.h"
#include "device/device.h"

struct ls_comm;

/* Members of the groups of one grouping, over all batches of an update. */
struct ls_members {
    int64_t parts_most;   /* of a micro-batch */
    struct ls_part *part; /* by micro-batch, parts_most each */
    struct ls_member {
        size_t unit; /* micro-batch */
        int part;
    } * member;    /* group by group, in the order of the micro-batches */
    size_t *start; /* of group i in `member`; groups of all batches in a row, one more at the end */
    size_t members, groups;
};

struct ls_exchange {
    const struct ls_graph *graph; /* any of the net: sync points are the same in all */
    const struct ls_device *device;
    int workers;
    bool together; /* some sync point concerns more than one micro-batch */
    size_t syncs, groupings;
    struct ls_members *members; /* by grouping */
    struct ls_parts *parts;     /* by micro-batch and grouping */
    size_t *row_offset;         /* by sync: of its rows among those of a micro-batch, in doubles */
    size_t row_doubles;         /* of a micro-batch */
    size_t kept_doubles;        /* the first of these: needed by moving averages only */
    struct ls_mirror rows;
    const double **list; /* by worker: the rows of the group that it merges, `units` of them */
    size_t units;
    float **merged;   /* by worker and sync */
    double **partial; /* by worker and sync: of the micro-batch that it runs */
    void **owned;     /* what `merged` points into */
    size_t owned_count;
};

struct ls_exchange_options {
    const struct ls_graph *graph;
    const struct ls_device *device;
    int workers;
    int64_t units;   /* micro-batches of an update at most */
    int64_t largest; /* samples of a micro-batch at most */
    int64_t batch;   /* samples of a batch at most */
    int64_t batches; /* of an update at most */
    bool (*local)(const void *user, int64_t group);
    const void *user;
};

/* How many groups of so many samples (0: the batch) a micro-batch of `largest` meets at most. */
int64_t ls_exchange_parts(int64_t largest, int64_t group);

/* Memory for the sync points of a net; nothing is allocated where it has none. */
int ls_exchange_create(const struct ls_exchange_options *options, struct ls_exchange **exchange,
                       struct ls_error *error);
void ls_exchange_free(struct ls_exchange *exchange);

/* Forgets all micro-batches. */
void ls_exchange_begin(struct ls_exchange *exchange);
/* Adds a batch, whose micro-batches are units [first, first + n). */
void ls_exchange_add(struct ls_exchange *exchange, const struct ls_batch *batch,
                     const struct ls_micro *micro, int64_t n, size_t first);

/* What a worker's kernels need to see when it runs a micro-batch. `rows`: where in the device's
 * memory its rows go instead of to their place, row_doubles numbers; NULL: to their place. */
void ls_exchange_context(struct ls_exchange *exchange, int worker, size_t unit, double *rows,
                         struct ls_context *context);
/* Brings the rows of units [begin, end) to the host. */
int ls_exchange_fetch(const struct ls_exchange *exchange, size_t begin, size_t end,
                      struct ls_error *error);
/* A hash of what a micro-batch has left at a sync point, there or (NULL) at its place: rows that
 * the host has. */
uint64_t ls_exchange_hash(const struct ls_exchange *exchange, int sync, size_t unit,
                          const double *rows);

/* A worker's share of merging a sync point over the batch whose units are [begin, end). Between two
 * barriers; or, for one worker alone, in the order of its stream (NULL: it is over when the
 * function returns). */
int ls_exchange_merge(struct ls_exchange *exchange, struct ls_stream *stream, int sync,
                      size_t begin, size_t end, int worker, struct ls_error *error);
/* Shares what the units [begin, end) of a batch left at a sync point with the other ranks of the
 * job; owner[i] is the rank of unit i. By one thread, before the merging. */
int ls_exchange_share(struct ls_exchange *exchange, struct ls_comm *comm, int sync, size_t begin,
                      size_t end, const int *owner, struct ls_error *error);
/* The same, after the pass, for what moving averages are made of and no sync point has shared. The
 * host has the rows of all units then. */
int ls_exchange_share_kept(struct ls_exchange *exchange, struct ls_comm *comm, size_t units,
                           const int *owner, struct ls_error *error);
/* Merges channels [begin, end) of a sync point whose groups lie within the micro-batch that the
 * context is of. */
int ls_exchange_merge_local(const struct ls_device *device, const struct ls_graph *graph, int sync,
                            const struct ls_context *context, int64_t begin, int64_t end);
/* The groups of a sync point over all batches of the update, and the statistics of one, merged
 * anew: `merged`, the device's, has room for ls_sync_merged; *count is the number of its values,
 * from rows that the host has. */
size_t ls_exchange_groups(const struct ls_exchange *exchange, int sync);
int ls_exchange_group(const struct ls_exchange *exchange, int sync, size_t group, float *merged,
                      double *count, struct ls_error *error);

#endif
