/* Sequences of micro-batches; see the header.
 *
 * Both strategies walk over batches with a cursor, which knows which batch is cut and how many
 * micro-batches of its update lie before that.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/sequence.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"

enum { BATCHES_SEARCHED = 1000 };

/* A batch of an update, and its cut. */
struct cursor {
    int64_t update;
    int index; /* of the next micro-batch, over all batches of the update */
    int batch; /* which of `batches` */
    int batch_count;
    struct ls_batch *batches; /* of `update` */
    struct ls_micro *micro;   /* the cut of the current batch; room for any */
    int64_t micro_count;      /* 0: it is not cut yet */
    int64_t next, end;        /* in order: which of `micro`, and the end of the share */
};

struct request {
    int64_t update;
    int index;
};

/* Requests, first come, first served: a ring. */
struct queue {
    struct request *items;
    size_t first, count, capacity;
};

struct ls_sequence {
    const struct strategy *strategy;
    const struct ls_batching *batching;
    struct ls_share share;
    int64_t updates_end;
    bool started;
    struct cursor cursor;
    int64_t wanted;         /* in order: the last update that a taker waited for; -1: none */
    struct queue queue;     /* on request */
    struct ls_batch *check; /* room for the batches of an update */
    int status;             /* not 0: a batch cannot be cut, `error` says why */
    struct ls_error *error;
};

struct strategy {
    bool (*next)(struct ls_sequence *sequence, struct ls_sequence_item *item);
    int (*expect)(struct ls_sequence *sequence, int64_t update, int index, struct ls_error *error);
};

/* ---- The cursor ------------------------------------------------------------------------------ */

/* Goes to the first batch of an update. */
static void enter(struct ls_sequence *sequence, int64_t update)
{
    struct cursor *c = &sequence->cursor;
    c->update = update;
    c->index = c->batch = 0;
    c->micro_count = c->next = 0;
    c->batch_count = update < sequence->updates_end
                         ? ls_batching_update(sequence->batching, update, c->batches)
                         : 0;
}

static int cut(struct ls_sequence *sequence)
{
    struct cursor *c = &sequence->cursor;
    return ls_batching_cut(sequence->batching, &c->batches[c->batch], c->micro, &c->micro_count,
                           sequence->error);
}

static void name_item(const struct cursor *c, const struct ls_micro *micro, int index,
                      struct ls_sequence_item *item)
{
    *item = (struct ls_sequence_item){
        .update = c->update, .index = index, .ordinal = micro->ordinal, .samples = micro->count};
    memcpy(item->shape, micro->shape, sizeof item->shape);
}

static int fail_asked(int64_t update, int index, const char *what, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                   "micro-batch %d of update %" PRId64 " was asked for, which %s", index, update,
                   what);
}

/* ---- In order -------------------------------------------------------------------------------- */

/* Goes on to the next batch, past what is left of this one. */
static void leave(struct ls_sequence *sequence)
{
    struct cursor *c = &sequence->cursor;
    c->index += (int)(c->micro_count - c->next);
    c->micro_count = c->next = 0;
    if (++c->batch == c->batch_count)
        enter(sequence, c->update + 1);
}

/* Makes `next` a micro-batch of the share. A share may have nothing of many batches, or of all that
 * there ever will be: the search ends before it takes long, unless a taker waits. */
static bool find_next(struct ls_sequence *sequence)
{
    struct cursor *c = &sequence->cursor;
    for (int batches = 0; sequence->started && sequence->status == 0 && c->batch_count > 0;
         batches++) {
        if (batches > BATCHES_SEARCHED && c->update > sequence->wanted)
            break;
        if (c->micro_count == 0) {
            sequence->status = cut(sequence);
            if (sequence->status != 0)
                break;
            ls_share_run(&sequence->share, c->micro_count, &c->next, &c->end);
            c->index += (int)c->next;
        }
        if (c->next < c->end)
            return true;
        leave(sequence);
    }
    return false;
}

static bool next_in_order(struct ls_sequence *sequence, struct ls_sequence_item *item)
{
    struct cursor *c = &sequence->cursor;
    if (!find_next(sequence))
        return false;
    name_item(c, &c->micro[c->next], c->index, item);
    c->index++;
    if (++c->next == c->end)
        leave(sequence);
    return true;
}

/* How many micro-batches an update has at most: exact where sizes and groups play no part. Where
 * they do, the cursor skips what does not exist, so no taker waits for it forever. */
static int64_t most_of(struct ls_sequence *sequence, int64_t update)
{
    int64_t count = 0;
    int batches = ls_batching_update(sequence->batching, update, sequence->check);
    for (int i = 0; i < batches; i++)
        count += ls_batching_most(sequence->batching, sequence->check[i].count);
    return count;
}

static int expect_in_order(struct ls_sequence *sequence, int64_t update, int index,
                           struct ls_error *error)
{
    const struct cursor *c = &sequence->cursor;
    bool exists = sequence->started && update >= 0 && update < sequence->updates_end &&
                  index >= 0 && index < most_of(sequence, update);
    if (!exists)
        return fail_asked(update, index, "does not exist", error);
    if (update < c->update || (update == c->update && index < c->index))
        return fail_asked(update, index, "has been handed out or never was", error);
    if (sequence->status != 0)
        ls_error_add(error, sequence->error);
    sequence->wanted = update > sequence->wanted ? update : sequence->wanted;
    return sequence->status;
}

static const struct strategy in_order = {next_in_order, expect_in_order};

/* ---- On request ------------------------------------------------------------------------------ */

static bool make_longer(struct queue *queue)
{
    size_t capacity = queue->capacity > 0 ? 2 * queue->capacity : 16;
    struct request *items = ls_alloc(capacity, sizeof *items);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < queue->count; i++)
        items[i] = queue->items[(queue->first + i) % queue->capacity];
    ls_free(queue->items);
    *queue = (struct queue){.items = items, .count = queue->count, .capacity = capacity};
    return true;
}

/* Adds a request behind the others, or in front of them. */
static bool add_request(struct queue *queue, int64_t update, int index, bool front)
{
    if (queue->count == queue->capacity && !make_longer(queue))
        return false;
    if (front)
        queue->first = (queue->first + queue->capacity - 1) % queue->capacity;
    size_t at = (queue->first + (front ? 0 : queue->count)) % queue->capacity;
    queue->items[at] = (struct request){.update = update, .index = index};
    queue->count++;
    return true;
}

static bool is_requested(const struct queue *queue, int64_t update, int index)
{
    for (size_t i = 0; i < queue->count; i++) {
        const struct request *request = &queue->items[(queue->first + i) % queue->capacity];
        if (request->update == update && request->index == index)
            return true;
    }
    return false;
}

/* Goes to the batch of a micro-batch; false: there is none, or sequence->status says why that is
 * not known. The cursor's index is that of the first micro-batch of its batch. */
static bool locate(struct ls_sequence *sequence, int64_t update, int index)
{
    struct cursor *c = &sequence->cursor;
    if (update < 0 || update >= sequence->updates_end || index < 0 || sequence->status != 0)
        return false;
    if (c->update != update || index < c->index)
        enter(sequence, update);
    while (c->batch < c->batch_count) {
        if (c->micro_count == 0)
            sequence->status = cut(sequence);
        if (sequence->status != 0)
            return false;
        if (index < c->index + c->micro_count)
            return true;
        c->index += (int)c->micro_count;
        c->micro_count = 0;
        c->batch++;
    }
    enter(sequence, update);
    return false;
}

static bool next_on_request(struct ls_sequence *sequence, struct ls_sequence_item *item)
{
    struct queue *queue = &sequence->queue;
    while (sequence->started && queue->count > 0 && sequence->status == 0) {
        struct request request = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        if (locate(sequence, request.update, request.index)) {
            const struct cursor *c = &sequence->cursor;
            name_item(c, &c->micro[request.index - c->index], request.index, item);
            return true;
        }
    }
    return false;
}

static int expect_on_request(struct ls_sequence *sequence, int64_t update, int index,
                             struct ls_error *error)
{
    bool exists = sequence->started && locate(sequence, update, index);
    if (sequence->status != 0) {
        ls_error_add(error, sequence->error);
        return sequence->status;
    }
    if (!exists)
        return fail_asked(update, index, "does not exist", error);
    if (!is_requested(&sequence->queue, update, index) &&
        !add_request(&sequence->queue, update, index, true))
        return ls_fail_memory(error, "a prefetcher of data");
    return 0;
}

static const struct strategy on_request = {next_on_request, expect_on_request};

/* ---- Both ------------------------------------------------------------------------------------ */

int ls_sequence_open(const struct ls_sequence_options *options, struct ls_sequence **out,
                     struct ls_error *error)
{
    const struct ls_batching *batching = options->batching;
    struct ls_sequence *sequence = *out = ls_alloc(1, sizeof *sequence);
    if (sequence == NULL)
        return ls_fail_memory(error, "the micro-batches of a batch");
    sequence->strategy = options->share.any ? &on_request : &in_order;
    sequence->batching = batching;
    sequence->share = options->share;
    sequence->updates_end = options->updates_end;
    sequence->wanted = -1;
    struct cursor *c = &sequence->cursor;
    c->batches = ls_alloc((size_t)batching->iter_size, sizeof *c->batches);
    c->micro = ls_alloc((size_t)ls_batching_most(batching, batching->batch), sizeof *c->micro);
    sequence->check = ls_alloc((size_t)batching->iter_size, sizeof *sequence->check);
    sequence->error = ls_alloc(1, sizeof *sequence->error);
    if (c->batches != NULL && c->micro != NULL && sequence->check != NULL &&
        sequence->error != NULL)
        return 0;
    ls_sequence_close(sequence);
    *out = NULL;
    return ls_fail_memory(error, "the micro-batches of a batch");
}

void ls_sequence_close(struct ls_sequence *sequence)
{
    if (sequence == NULL)
        return;
    ls_free(sequence->cursor.batches);
    ls_free(sequence->cursor.micro);
    ls_free(sequence->check);
    ls_free(sequence->error);
    ls_free(sequence->queue.items);
    ls_free(sequence);
}

void ls_sequence_seek(struct ls_sequence *sequence, int64_t update)
{
    sequence->started = true;
    sequence->status = 0;
    sequence->wanted = -1;
    ls_error_clear(sequence->error);
    sequence->queue.count = 0;
    enter(sequence, update);
}

void ls_sequence_stop(struct ls_sequence *sequence)
{
    sequence->started = false;
}

bool ls_sequence_next(struct ls_sequence *sequence, struct ls_sequence_item *item)
{
    return sequence->strategy->next(sequence, item);
}

int ls_sequence_expect(struct ls_sequence *sequence, int64_t update, int index,
                       struct ls_error *error)
{
    return sequence->strategy->expect(sequence, update, index, error);
}

bool ls_sequence_request(struct ls_sequence *sequence, int64_t update, int index)
{
    /* Without memory it is decoded when it is taken. */
    return sequence->strategy == &on_request && sequence->started &&
           !is_requested(&sequence->queue, update, index) &&
           add_request(&sequence->queue, update, index, false);
}
