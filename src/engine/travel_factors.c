/* Factors between ranks: each has the rows of its own micro-batches of x and dy, all get all.
 *
 * Where every rank's rows lie in a row, in the order of ranks, they travel from where they are to
 * where they belong; else they are packed.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "engine/travel_inner.h"
#include "transport/peers.h"

struct side {
    struct ls_parcel parcel;
    struct ls_factor_travel *travel;
    size_t factor;
    enum ls_factor_side side;
    _Atomic int left; /* micro-batches that have not recorded here */
    float *packed;    /* all ranks' rows, rank by rank; NULL while nobody needed it */
    size_t capacity;  /* numbers */
};

struct ls_factor_travel {
    struct ls_factors *factors;
    struct ls_peers *peers;
    struct side *sides; /* [factor][side] */
    int *owner;         /* by micro-batch */
    size_t units, unit_capacity;
    bool known;     /* owners */
    bool in_order;  /* the rows of ranks lie one behind the other */
    size_t *blocks; /* [2 * ranks]: of the parcel that is started */
};

static size_t side_index(size_t factor, enum ls_factor_side side)
{
    return factor * LS_FACTOR_SIDES + (size_t)side;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Copies the rows of micro-batches between their places and `packed`, rank by rank: of the own ones
 * to there, of the others from there. */
static void copy_rows(struct side *side, bool pack)
{
    const struct ls_factor_travel *travel = side->travel;
    size_t width;
    float *rows = ls_factors_side(travel->factors, side->factor, side->side, &width);
    float *at = side->packed;
    for (int r = 0; r < travel->peers->size; r++)
        for (size_t u = 0; u < travel->units; u++) {
            if (travel->owner[u] != r)
                continue;
            size_t begin = ls_factors_row(travel->factors, side->factor, u);
            size_t numbers = (ls_factors_row(travel->factors, side->factor, u + 1) - begin) * width;
            bool own = r == travel->peers->rank;
            if (pack && own)
                memcpy(at, rows + begin * width, numbers * sizeof *at);
            else if (!pack && !own)
                memcpy(rows + begin * width, at, numbers * sizeof *at);
            at += numbers;
        }
}

static int start(struct ls_parcel *parcel, struct ls_link *link, struct ls_link_op **op)
{
    struct side *side = parcel->user;
    struct ls_factor_travel *travel = side->travel;
    size_t ranks = (size_t)travel->peers->size, width, at = 0;
    size_t *bytes = travel->blocks, *offset = bytes + ranks;
    float *rows = ls_factors_side(travel->factors, side->factor, side->side, &width);
    memset(bytes, 0, ranks * sizeof *bytes);
    for (size_t u = 0; u < travel->units; u++)
        bytes[travel->owner[u]] += (ls_factors_row(travel->factors, side->factor, u + 1) -
                                    ls_factors_row(travel->factors, side->factor, u)) *
                                   width * sizeof(float);
    for (size_t r = 0; r < ranks; at += bytes[r++])
        offset[r] = at;
    if (!travel->in_order) {
        copy_rows(side, true);
        rows = side->packed;
    }
    size_t rank = (size_t)travel->peers->rank;
    atomic_fetch_add_explicit(&travel->peers->sent[LS_TRAFFIC_FACTORS], bytes[rank] * (ranks - 1),
                              memory_order_relaxed);
    const struct ls_link_blocks blocks = {bytes, offset};
    return link->calls->gather(link, LS_CHANNEL_BULK, (unsigned char *)rows + offset[rank], rows,
                               &blocks, op);
}

static void finish(struct ls_parcel *parcel)
{
    struct side *side = parcel->user;
    if (!side->travel->in_order)
        copy_rows(side, false);
}

/* ---- A pass ---------------------------------------------------------------------------------- */

/* By the worker that recorded it. */
static void recorded(void *user, size_t factor, enum ls_factor_side which)
{
    struct ls_factor_travel *travel = user;
    struct side *side = &travel->sides[side_index(factor, which)];
    if (atomic_fetch_sub(&side->left, 1) == 1)
        ls_courier_ready(travel->peers->courier, &side->parcel);
}

void ls_factor_travel_ready(struct ls_factor_travel *travel)
{
    size_t count = ls_factors_count(travel->factors) * LS_FACTOR_SIDES;
    for (size_t i = 0; i < count; i++)
        ls_courier_ready(travel->peers->courier, &travel->sides[i].parcel);
}

/* Room to pack all rows, where they do not lie as they travel. */
static int reserve(struct ls_factor_travel *travel, struct ls_error *error)
{
    size_t count = ls_factors_count(travel->factors) * LS_FACTOR_SIDES;
    for (size_t i = 0; i < count && !travel->in_order; i++) {
        struct side *side = &travel->sides[i];
        size_t width;
        (void)ls_factors_side(travel->factors, side->factor, side->side, &width);
        size_t numbers = ls_factors_row(travel->factors, side->factor, travel->units) * width;
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

static int learn_owners(struct ls_factor_travel *travel, const int *owner, size_t units,
                        struct ls_error *error)
{
    if (units > travel->unit_capacity) {
        int *longer = ls_resize(travel->owner, units, sizeof *longer);
        if (longer == NULL)
            return ls_fail_memory(error, "an exchange between ranks");
        travel->owner = longer;
        travel->unit_capacity = units;
    }
    travel->units = units;
    travel->in_order = travel->known = true;
    for (size_t u = 0; u < units; u++) {
        travel->owner[u] = owner[u];
        travel->in_order &= u == 0 || owner[u] >= owner[u - 1];
    }
    return reserve(travel, error);
}

int ls_factor_travel_begin(struct ls_factor_travel *travel, const int *owner, size_t units, int own,
                           struct ls_error *error)
{
    size_t count = ls_factors_count(travel->factors) * LS_FACTOR_SIDES;
    if (count == 0)
        return 0;
    travel->known = false;
    for (size_t i = 0; i < count; i++) /* more than ever come, if it is not known how many */
        atomic_store(&travel->sides[i].left, owner != NULL ? own : (int)units + 1);
    return owner != NULL ? learn_owners(travel, owner, units, error) : 0;
}

int ls_factor_travel_end(struct ls_factor_travel *travel, const int *owner, size_t units,
                         struct ls_error *error)
{
    if (ls_factors_count(travel->factors) == 0)
        return 0;
    if (!travel->known)
        LS_TRY(learn_owners(travel, owner, units, error));
    ls_factor_travel_ready(travel);
    return 0;
}

/* ---- Creation -------------------------------------------------------------------------------- */

int ls_factor_travel_create(struct ls_store *store, struct ls_peers *peers,
                            struct ls_factor_travel **out, struct ls_error *error)
{
    *out = NULL;
    size_t count = ls_factors_count(store->factors) * LS_FACTOR_SIDES;
    struct ls_factor_travel *travel = ls_alloc(1, sizeof *travel);
    if (travel == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    travel->factors = store->factors;
    travel->peers = peers;
    travel->sides = ls_alloc(count + 1, sizeof *travel->sides);
    travel->blocks = ls_alloc(2 * (size_t)peers->size, sizeof *travel->blocks);
    if (travel->sides == NULL || travel->blocks == NULL) {
        ls_factor_travel_free(travel);
        return ls_fail_memory(error, "an exchange between ranks");
    }
    for (size_t i = 0; i < count; i++) {
        struct side *side = &travel->sides[i];
        side->travel = travel;
        side->factor = i / LS_FACTOR_SIDES;
        side->side = (enum ls_factor_side)(i % LS_FACTOR_SIDES);
        side->parcel.start = start;
        side->parcel.finish = finish;
        side->parcel.user = side;
    }
    if (count > 0)
        ls_factors_tell(store->factors, recorded, travel);
    *out = travel;
    return 0;
}

void ls_factor_travel_free(struct ls_factor_travel *travel)
{
    if (travel == NULL)
        return;
    size_t count = ls_factors_count(travel->factors) * LS_FACTOR_SIDES;
    for (size_t i = 0; i < count && travel->sides != NULL; i++)
        ls_free_aligned(travel->sides[i].packed);
    ls_free(travel->sides);
    ls_free(travel->owner);
    ls_free(travel->blocks);
    ls_free(travel);
}

struct ls_parcel *ls_factor_travel_parcel(struct ls_factor_travel *travel, size_t factor,
                                          enum ls_factor_side side)
{
    return &travel->sides[side_index(factor, side)].parcel;
}
