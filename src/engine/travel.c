/* Gradients and weights between ranks. See engine/travel.h.
 *
 * A bucket's sums travel in pieces, each a stretch of every rank's part, so that what is packed and
 * what arrives needs little memory besides.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/travel.h"

#include "base/memory.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "engine/travel_inner.h"
#include "transport/watch.h"
#include "transport/wire.h"

enum {
    PIECE = 1 << 18, /* elements that travel at a time */
    STAY_WIDE = 100, /* updates with 64 bits after one that needed them */
    NOBODY_KNOWS = LS_SUMS_CONTRIBUTIONS_MAX + 1
};

/* Memory for a piece on its way. */
struct staging {
    unsigned char *out, *in;
    const struct ls_parcel *user; /* NULL: free */
};

struct lane {
    const struct ls_bucket *bucket;
    struct piece {
        struct ls_parcel parcel;
        struct ls_travel *travel;
        struct lane *lane;
        size_t begin, count; /* of each rank's part: elements [begin, begin + count), if so many */
        struct staging *staging;
    } * pieces;
    size_t piece_count;
    struct ls_parcel weights;
    _Atomic int left; /* parameters that are not finished here */
};

struct ls_travel {
    struct ls_store *store;
    struct ls_peers *peers;
    struct lane *lanes; /* by bucket */
    size_t lane_count;
    struct ls_factor_travel *factors;
    _Atomic int *left; /* by parameter: contributions that are still to come here */
    _Atomic bool open; /* it is not known how many: more than there can be */
    struct staging staging[LS_COURIER_UNDER_WAY]; /* more pieces are never under way */
    struct ls_parcel **order;                     /* gradients and factors, as they are finished */
    size_t order_count;
    int64_t iteration;
    bool wide;
    int wide_left;          /* updates that it stays so */
    _Atomic bool too_large; /* a sum did not fit on its way */
    _Atomic bool surplus;   /* a contribution came after the bucket had left */
    struct note *notes;     /* of this rank, then of all */
    size_t *blocks;         /* the courier's: [4 * ranks] */
};

/* ---- Sums ------------------------------------------------------------------------------------ */

/* The stretch of rank r's part that travels with a piece. */
static void stretch(const struct piece *piece, int rank, size_t *begin, size_t *count)
{
    const size_t *cut = piece->lane->bucket->cut;
    size_t part = cut[rank + 1] - cut[rank];
    size_t first = piece->begin < part ? piece->begin : part, left = part - first;
    *begin = cut[rank] + first;
    *count = left < piece->count ? left : piece->count;
}

static struct staging *take_staging(struct ls_travel *travel, const struct ls_parcel *parcel)
{
    struct staging *staging = travel->staging;
    while (staging->user != NULL) /* there are as many as the courier has under way */
        staging++;
    staging->user = parcel;
    return staging;
}

static int start_sums(struct ls_parcel *parcel, struct ls_link *link, struct ls_link_op **op)
{
    struct piece *piece = parcel->user;
    struct ls_travel *travel = piece->travel;
    const struct ls_slices *slices = travel->store->slices;
    const struct ls_bucket *bucket = piece->lane->bucket;
    const int64_t *sums = ls_sums_all(travel->store->sums);
    size_t ranks = (size_t)travel->peers->size, *bytes = travel->blocks,
           *offset = bytes + 2 * ranks;
    size_t at = 0, own, count;
    for (size_t i = bucket->first; i <= bucket->last && piece->begin == 0; i++)
        ls_sums_clear_rest(travel->store->sums, slices->order[i]);
    piece->staging = take_staging(travel, parcel);
    stretch(piece, travel->peers->rank, &own, &count);
    for (int r = 0; r < travel->peers->size; r++) {
        size_t begin, n;
        bool mine = r == travel->peers->rank;
        stretch(piece, r, &begin, &n);
        bytes[r] = mine ? 0 : ls_wire_bytes(n, travel->wide);
        offset[r] = at;
        at += bytes[r];
        if (!mine && !ls_wire_pack(piece->staging->out + offset[r], sums + begin, n, travel->wide))
            atomic_store(&travel->too_large, true);
        size_t each = ls_wire_bytes(count, travel->wide);
        bytes[ranks + (size_t)r] = mine ? 0 : each;
        offset[ranks + (size_t)r] = (size_t)(r - (r > travel->peers->rank)) * each;
    }
    atomic_fetch_add_explicit(&travel->peers->sent[LS_TRAFFIC_SUMS], at, memory_order_relaxed);
    const struct ls_link_blocks out = {bytes, offset}, in = {bytes + ranks, offset + ranks};
    return link->calls->exchange(link, LS_CHANNEL_BULK, piece->staging->out, &out,
                                 piece->staging->in, &in, op);
}

static void finish_sums(struct ls_parcel *parcel)
{
    struct piece *piece = parcel->user;
    struct ls_travel *travel = piece->travel;
    int64_t *sums = ls_sums_all(travel->store->sums);
    size_t own, count;
    stretch(piece, travel->peers->rank, &own, &count);
    size_t each = ls_wire_bytes(count, travel->wide);
    int others = travel->peers->size - 1;
    if (LS_MUTANT(DEAF)) /* a rank does not hear the last of the others */
        others -= travel->peers->rank == 0;
    for (int from = 0; from < others; from++)
        ls_wire_add(sums + own, piece->staging->in + (size_t)from * each, count, travel->wide);
    piece->staging->user = NULL;
}

static void lane_is_ready(struct ls_travel *travel, struct lane *lane)
{
    for (size_t i = 0; i < lane->piece_count; i++)
        ls_courier_ready(travel->peers->courier, &lane->pieces[i].parcel);
}

/* By the worker that made it: a contribution has been added. */
static void contributed(void *user, int parameter)
{
    struct ls_travel *travel = user;
    int before = atomic_fetch_sub(&travel->left[parameter], 1);
    if (before <= 0)
        atomic_store(&travel->surplus, true);
    struct lane *lane = &travel->lanes[travel->store->slices->bucket[parameter]];
    if (before == 1 && atomic_fetch_sub(&lane->left, 1) == 1)
        lane_is_ready(travel, lane);
}

/* ---- Weights --------------------------------------------------------------------------------- */

static int start_weights(struct ls_parcel *parcel, struct ls_link *link, struct ls_link_op **op)
{
    struct ls_travel *travel = parcel->user;
    const size_t *cut = travel->lanes[parcel->index].bucket->cut;
    float *bucket = travel->store->flat + cut[0]; /* from there: links count no further than ints */
    size_t ranks = (size_t)travel->peers->size, *bytes = travel->blocks,
           *offset = bytes + 2 * ranks;
    for (size_t r = 0; r < ranks; r++) {
        bytes[r] = (cut[r + 1] - cut[r]) * sizeof(float);
        offset[r] = (cut[r] - cut[0]) * sizeof(float);
    }
    size_t rank = (size_t)travel->peers->rank;
    atomic_fetch_add_explicit(&travel->peers->sent[LS_TRAFFIC_WEIGHTS], bytes[rank] * (ranks - 1),
                              memory_order_relaxed);
    const struct ls_link_blocks blocks = {bytes, offset};
    return link->calls->gather(link, LS_CHANNEL_BULK, travel->store->flat + cut[rank], bucket,
                               &blocks, op);
}

static void finish_weights(struct ls_parcel *parcel)
{
    struct ls_travel *travel = parcel->user;
    ls_store_convert_bucket(travel->store, (int)parcel->index);
}

int ls_travel_send_weights(struct ls_travel *travel, struct ls_error *error)
{
    if (travel == NULL)
        return 0;
    LS_TRY(ls_travel_settle(travel, error));
    for (size_t i = travel->lane_count; i-- > 0;) { /* as the forward pass wants them */
        ls_courier_queue(travel->peers->courier, &travel->lanes[i].weights);
        ls_courier_ready(travel->peers->courier, &travel->lanes[i].weights);
    }
    return 0;
}

void ls_travel_await(struct ls_travel *travel, int first, int last)
{
    for (int b = last; b >= first; b--) {
        if (ls_parcel_done(&travel->lanes[b].weights))
            continue;
        uint64_t start = ls_nanoseconds();
        (void)ls_courier_wait(travel->peers->courier, &travel->lanes[b].weights, NULL);
        travel->peers->waited[LS_WAIT_WEIGHTS] += ls_nanoseconds() - start;
    }
}

int ls_travel_settle(struct ls_travel *travel, struct ls_error *error)
{
    for (size_t i = 0; travel != NULL && i < travel->lane_count; i++)
        LS_TRY(ls_courier_wait(travel->peers->courier, &travel->lanes[i].weights, error));
    if (travel == NULL || !atomic_load(&travel->store->not_converted))
        return 0;
    int status = ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                         "cannot bring the weights into the layouts of the kernels");
    return ls_peers_lone_failure(travel->peers, status, error);
}

/* ---- Where this rank is ---------------------------------------------------------------------- */

void ls_travel_iteration(struct ls_travel *travel, int64_t iteration)
{
    if (travel == NULL)
        return;
    travel->iteration = iteration;
    ls_watch_note(travel->peers->watch, iteration, NULL);
}

void ls_travel_note(struct ls_travel *travel, const char *layer)
{
    ls_watch_note(travel->peers->watch, travel->iteration, layer);
}

/* ---- A pass ---------------------------------------------------------------------------------- */

int ls_travel_begin(struct ls_travel *travel, const int *owner, size_t units,
                    struct ls_error *error)
{
    if (travel == NULL)
        return 0;
    const struct ls_slices *slices = travel->store->slices;
    int own = 0;
    atomic_store(&travel->open, owner == NULL);
    for (size_t u = 0; u < units && owner != NULL; u++)
        own += owner[u] == travel->peers->rank;
    LS_TRY(ls_factor_travel_begin(travel->factors, owner, units, own, error));
    for (size_t i = 0; i < travel->order_count; i++)
        ls_courier_queue(travel->peers->courier, travel->order[i]);
    for (size_t b = 0; b < travel->lane_count; b++) {
        struct lane *lane = &travel->lanes[b];
        int open = 0;
        for (size_t i = lane->bucket->first; i <= lane->bucket->last; i++) {
            int uses = travel->store->slots[slices->order[i]].parameter->uses;
            int left = owner != NULL ? uses * own : NOBODY_KNOWS;
            atomic_store(&travel->left[slices->order[i]], left);
            open += left > 0;
        }
        atomic_store(&lane->left, open);
        if (open == 0)
            lane_is_ready(travel, lane);
    }
    if (own == 0 && owner != NULL)
        ls_factor_travel_ready(travel->factors);
    return 0;
}

void ls_travel_expect(struct ls_travel *travel, int own)
{
    if (travel == NULL || !atomic_exchange(&travel->open, false))
        return;
    const struct ls_store *store = travel->store;
    for (size_t b = 0; b < travel->lane_count; b++) {
        struct lane *lane = &travel->lanes[b];
        for (size_t i = lane->bucket->first; i <= lane->bucket->last; i++) {
            int parameter = store->slices->order[i];
            int surplus = NOBODY_KNOWS - store->slots[parameter].parameter->uses * own;
            if (atomic_fetch_sub(&travel->left[parameter], surplus) == surplus &&
                atomic_fetch_sub(&lane->left, 1) == 1)
                lane_is_ready(travel, lane);
        }
    }
}

int ls_travel_arrive(struct ls_travel *travel, const int *owner, size_t units,
                     struct ls_error *error)
{
    if (travel == NULL)
        return 0;
    LS_TRY(ls_factor_travel_end(travel->factors, owner, units, error));
    for (size_t b = 0; b < travel->lane_count; b++)
        lane_is_ready(travel, &travel->lanes[b]);
    uint64_t start = ls_nanoseconds();
    for (size_t i = 0; i < travel->order_count; i++)
        LS_TRY(ls_courier_wait(travel->peers->courier, travel->order[i], error));
    travel->peers->waited[LS_WAIT_SUMS] += ls_nanoseconds() - start;
    int status = 0;
    if (atomic_load(&travel->surplus))
        status = ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                         "a gradient left for other ranks before it was finished");
    return ls_peers_lone_failure(travel->peers, status, error);
}

/* ---- What ranks noted ------------------------------------------------------------------------ */

/* Of a rank: this, notes of sums, notes of factors. */
struct note {
    uint32_t requests, too_large;
};

size_t ls_travel_note_bytes(size_t parameters, size_t rows, size_t factors)
{
    return sizeof(struct note) + ls_sums_note_bytes(parameters, rows) +
           factors * sizeof(struct ls_factor_note);
}

static size_t note_bytes(const struct ls_travel *travel)
{
    return ls_travel_note_bytes(travel->store->set->count, ls_sums_all_rows(travel->store->sums),
                                ls_factors_count(travel->store->factors));
}

int ls_travel_agree(struct ls_travel *travel, uint32_t *requests, bool *again,
                    struct ls_error *error)
{
    *again = false;
    if (travel == NULL)
        return 0;
    struct ls_store *store = travel->store;
    size_t bytes = note_bytes(travel), sums = sizeof(struct note);
    size_t factors = sums + ls_sums_note_bytes(store->set->count, ls_sums_all_rows(store->sums));
    unsigned char *mine = (unsigned char *)travel->notes, *all = mine + bytes;
    *travel->notes = (struct note){*requests, atomic_exchange(&travel->too_large, false)};
    ls_sums_note(store->sums, mine + sums);
    ls_factors_note(store->factors, (struct ls_factor_note *)(void *)(mine + factors));
    LS_TRY(ls_peers_gather(travel->peers, mine, bytes, all, error));
    for (int r = 0; r < travel->peers->size; r++, all += bytes) {
        const struct note *note = (const struct note *)(void *)all;
        *requests |= note->requests;
        *again |= note->too_large != 0;
        ls_sums_hear(store->sums, all + sums);
        ls_factors_hear(store->factors, (const struct ls_factor_note *)(void *)(all + factors));
    }
    travel->wide_left = *again ? STAY_WIDE : travel->wide_left - travel->wide;
    travel->wide = travel->wide_left > 0;
    return 0;
}

/* ---- Creation -------------------------------------------------------------------------------- */

/* The largest part that any rank has of a bucket. */
static size_t largest_part(const struct ls_slices *slices, size_t bucket)
{
    const size_t *cut = slices->buckets[bucket].cut;
    size_t largest = 0;
    for (int r = 0; r < slices->ranks; r++)
        largest = cut[r + 1] - cut[r] > largest ? cut[r + 1] - cut[r] : largest;
    return largest;
}

/* Elements of each part that travel at a time. */
static size_t piece_elements(const struct ls_slices *slices)
{
    size_t each = PIECE / (size_t)slices->ranks / 16 * 16, largest = 0;
    for (size_t b = 0; b < slices->bucket_count; b++) {
        size_t part = largest_part(slices, b);
        largest = part > largest ? part : largest;
    }
    each = each < 1024 ? 1024 : each;
    return largest < each ? largest : each;
}

size_t ls_travel_pieces(const struct ls_slices *slices, size_t bucket)
{
    size_t part = largest_part(slices, bucket), each = piece_elements(slices);
    return each > 0 ? (part + each - 1) / each : 0;
}

size_t ls_travel_bytes(const struct ls_slices *slices)
{
    size_t ranks = slices->ranks > 1 ? (size_t)slices->ranks : 0;
    return 2 * LS_COURIER_UNDER_WAY * ls_wire_bytes(piece_elements(slices) * ranks, false);
}

static int create_lane(struct ls_travel *travel, size_t index, struct ls_error *error)
{
    struct lane *lane = &travel->lanes[index];
    lane->bucket = &travel->store->slices->buckets[index];
    lane->weights = (struct ls_parcel){
        .start = start_weights, .finish = finish_weights, .user = travel, .index = index};
    size_t each = piece_elements(travel->store->slices);
    lane->piece_count = ls_travel_pieces(travel->store->slices, index);
    lane->pieces = ls_alloc(lane->piece_count + 1, sizeof *lane->pieces);
    if (lane->pieces == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    for (size_t i = 0; i < lane->piece_count; i++) {
        struct piece *piece = &lane->pieces[i];
        piece->travel = travel;
        piece->lane = lane;
        piece->begin = i * each;
        piece->count = each;
        piece->parcel.start = start_sums;
        piece->parcel.finish = finish_sums;
        piece->parcel.user = piece;
    }
    return 0;
}

/* Inputs of inner products in forward order; then backwards, factors and buckets as they come. */
static void put_in_order(struct ls_travel *travel)
{
    const struct ls_slices *slices = travel->store->slices;
    struct ls_parcel **next = travel->order;
    size_t factors = ls_factors_count(travel->store->factors);
    for (size_t f = 0; f < factors; f++)
        *next++ = ls_factor_travel_parcel(travel->factors, f, LS_FACTOR_INPUT);
    size_t bucket = 0;
    for (size_t f = factors; f-- > 0 || bucket < travel->lane_count;) {
        bool more = f < factors; /* else it has passed the first one */
        int weight = more ? ls_factors_weight(travel->store->factors, f)->index : -1;
        for (; bucket < travel->lane_count; bucket++) {
            const struct lane *lane = &travel->lanes[bucket];
            if (slices->order[lane->bucket->last] < weight)
                break;
            for (size_t i = 0; i < lane->piece_count; i++)
                *next++ = &travel->lanes[bucket].pieces[i].parcel;
        }
        if (!more)
            break;
        *next++ = ls_factor_travel_parcel(travel->factors, f, LS_FACTOR_OUTPUT);
    }
    travel->order_count = (size_t)(next - travel->order);
}

static int create(struct ls_travel *travel, struct ls_error *error)
{
    struct ls_store *store = travel->store;
    size_t ranks = (size_t)travel->peers->size, parcels = 2 * ls_factors_count(store->factors);
    travel->lanes = ls_alloc(store->slices->bucket_count + 1, sizeof *travel->lanes);
    travel->lane_count = travel->lanes != NULL ? store->slices->bucket_count : 0;
    travel->left = ls_alloc(store->set->count + 1, sizeof *travel->left);
    travel->blocks = ls_alloc(4 * ranks, sizeof *travel->blocks);
    travel->notes = ls_alloc(ranks + 1, note_bytes(travel));
    if (travel->lanes == NULL || travel->left == NULL || travel->blocks == NULL ||
        travel->notes == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    for (size_t b = 0; b < travel->lane_count; b++) {
        LS_TRY(create_lane(travel, b, error));
        parcels += travel->lanes[b].piece_count;
    }
    size_t bytes = ls_wire_bytes(piece_elements(store->slices) * ranks, true);
    for (int i = 0; i < LS_COURIER_UNDER_WAY && travel->lane_count > 0; i++) {
        travel->staging[i].out = ls_alloc_aligned(bytes);
        travel->staging[i].in = ls_alloc_aligned(bytes);
        if (travel->staging[i].out == NULL || travel->staging[i].in == NULL)
            return ls_fail_memory(error, "an exchange between ranks");
    }
    LS_TRY(ls_factor_travel_create(store, travel->peers, &travel->factors, error));
    travel->order = ls_alloc(parcels + 1, sizeof *travel->order);
    if (travel->order == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    put_in_order(travel);
    ls_sums_tell(store->sums, contributed, travel);
    return 0;
}

int ls_travel_create(struct ls_store *store, struct ls_travel **out, struct ls_error *error)
{
    *out = NULL;
    if (!ls_peers_several(store->peers) || store->sums == NULL)
        return 0;
    struct ls_travel *travel = ls_alloc(1, sizeof *travel);
    if (travel == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    travel->store = store;
    travel->peers = store->peers;
    int status = create(travel, error);
    if (status != 0)
        ls_travel_free(travel);
    else
        *out = travel;
    return status;
}

void ls_travel_free(struct ls_travel *travel)
{
    if (travel == NULL)
        return;
    (void)ls_travel_settle(travel, NULL);
    for (size_t b = 0; b < travel->lane_count && travel->lanes != NULL; b++)
        ls_free(travel->lanes[b].pieces);
    for (int i = 0; i < LS_COURIER_UNDER_WAY; i++) {
        ls_free_aligned(travel->staging[i].out);
        ls_free_aligned(travel->staging[i].in);
    }
    ls_factor_travel_free(travel->factors);
    ls_free(travel->lanes);
    ls_free((void *)travel->left);
    ls_free((void *)travel->order);
    ls_free(travel->notes);
    ls_free(travel->blocks);
    ls_free(travel);
}
