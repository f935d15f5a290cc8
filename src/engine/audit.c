/* Audits. See engine/audit.h.
 *
 * A micro-batch that is audited has a line of hashes for each of its computations
 * (engine/audit_lines.h). Here is which are audited, on which workers, and what follows from the
 * lines.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/audit.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "engine/audit_bench.h"
#include "ir/layer.h"
#include "transport/comm.h"

enum {
    REPEATS_MAX = 8, /* of a pass, before it is not the accident of a core any more */
    HOST_SIZE = 64   /* as in struct ls_transport */
};

/* A worker of a rank. */
struct place {
    int rank, worker;
};

/* A micro-batch that is audited. */
struct audited {
    size_t unit;
    struct place by[LS_AUDIT_COMPUTATIONS];
    bool wanted; /* in the computation at hand */
    bool differs;
};

struct ls_audit {
    struct ls_pass *pass;
    uint64_t key;
    uint64_t threshold; /* of 2^32: runs of micro-batches whose number is below are audited */
    struct ls_audit_lines lines;
    struct audited *items;
    size_t count;
    int *index;                     /* by unit: of `items`; -1: not audited */
    int *owners;                    /* by item: the rank that has its line */
    int round;                      /* the computation at hand */
    struct ls_audit_bench *benches; /* by worker */
    char (*hosts)[HOST_SIZE];       /* by rank; known after the first finding */
    bool knows_hosts;
    int repeats;
    bool doubts;     /* `doubtful` had something that is not finite: all is audited */
    size_t doubtful; /* unit, */
    int doubtful_rank;
    uint64_t *runners; /* by unit: its worker, here or in the pass in doubt on any rank */
    struct ls_audit_finding findings[LS_AUDIT_FINDINGS];
    size_t finding_count;
    int64_t audited, wrong;
};

/* ---- Creation -------------------------------------------------------------------------------- */

static int audit_create(struct ls_audit *audit, struct ls_error *error)
{
    const struct ls_pass *pass = audit->pass;
    size_t units = pass->unit_capacity, ranks = (size_t)pass->engine->comm->size;
    audit->items = ls_alloc(units, sizeof *audit->items);
    audit->index = ls_alloc(units, sizeof *audit->index);
    audit->runners = ls_alloc(units, sizeof *audit->runners);
    audit->owners = ls_alloc(units, sizeof *audit->owners);
    audit->hosts = ls_alloc(ranks, sizeof *audit->hosts);
    if (audit->items == NULL || audit->index == NULL || audit->runners == NULL ||
        audit->owners == NULL || audit->hosts == NULL)
        return ls_fail_memory(error, "audits");
    LS_TRY(ls_audit_lines_create(&audit->lines, ls_net_graph(pass->net), units, error));
    return ls_audit_bench_create(pass, &audit->benches, error);
}

int ls_audit_create(struct ls_pass *pass, double part, uint64_t seed, struct ls_audit **out,
                    struct ls_error *error)
{
    *out = NULL;
    struct ls_audit *audit = ls_alloc(1, sizeof *audit);
    if (audit == NULL)
        return ls_fail_memory(error, "audits");
    audit->pass = pass;
    audit->key = ls_random_key(seed, LS_RANDOM_AUDIT, "micro-batches");
    audit->threshold = (uint64_t)(part * 4294967296.0);
    int status = audit_create(audit, error);
    if (status != 0)
        ls_audit_free(audit);
    else
        *out = audit;
    return status;
}

void ls_audit_free(struct ls_audit *audit)
{
    if (audit == NULL)
        return;
    ls_audit_bench_free(audit->pass, audit->benches);
    ls_audit_lines_free(&audit->lines);
    ls_free(audit->items);
    ls_free(audit->index);
    ls_free(audit->runners);
    ls_free(audit->owners);
    ls_free(audit->hosts);
    ls_free(audit);
}

size_t ls_audit_bytes(const struct ls_net *net, int workers)
{
    size_t units = (size_t)ls_pass_update_micro_batches(net);
    return ls_audit_lines_bytes(ls_net_graph(net), units) + units * sizeof(struct audited) +
           ls_audit_bench_bytes(net, workers);
}

/* ---- What is audited ------------------------------------------------------------------------- */

void ls_audit_begin_update(struct ls_audit *audit)
{
    audit->finding_count = 0;
    audit->repeats = 0;
    audit->doubts = false;
}

void ls_audit_begin(struct ls_audit *audit)
{
    const struct ls_pass *pass = audit->pass;
    audit->count = 0;
    for (size_t unit = 0; unit < pass->unit_count; unit++) {
        uint64_t update = (uint64_t)pass->units[unit].update;
        bool drawn = audit->doubts ||
                     ls_random_u32(audit->key, update, unit / LS_AUDIT_RUN) < audit->threshold;
        audit->index[unit] = drawn ? (int)audit->count : -1;
        if (!drawn)
            continue;
        ls_audit_lines_clear(&audit->lines, ls_audit_lines_of(&audit->lines, 0, audit->count));
        audit->items[audit->count++] = (struct audited){.unit = unit};
    }
}

/* ---- Listening ------------------------------------------------------------------------------- */

void ls_audit_listen(struct ls_audit *audit, int worker, size_t unit,
                     struct ls_audit_listener *listener, struct ls_run *run)
{
    if (!audit->doubts)
        audit->runners[unit] = ls_audit_signature(worker);
    if (audit->index[unit] < 0)
        return;
    uint64_t *line = ls_audit_lines_of(&audit->lines, 0, (size_t)audit->index[unit]);
    ls_audit_lines_observe(&audit->lines, audit->pass->engine->device, listener, line, run);
    ls_audit_lines_sign(&audit->lines, worker, line);
}

/* ---- Computing again ------------------------------------------------------------------------- */

static void audit_compute_some(void *argument, int worker)
{
    struct ls_audit *audit = argument;
    int rank = audit->pass->engine->comm->rank;
    for (size_t i = 0; i < audit->count; i++) {
        const struct audited *item = &audit->items[i];
        if (item->wanted && item->by[audit->round].rank == rank &&
            item->by[audit->round].worker == worker)
            ls_audit_bench_compute(audit->pass, audit->benches, worker, item->unit, &audit->lines,
                                   ls_audit_lines_of(&audit->lines, audit->round, i));
    }
}

/* Hands a computation's lines to all ranks. */
static int audit_share(struct ls_audit *audit, int computation, struct ls_error *error)
{
    size_t bytes = audit->lines.length * sizeof(uint64_t);
    for (size_t i = 0; i < audit->count; i++)
        audit->owners[i] = audit->items[i].by[computation].rank;
    return ls_comm_all_gather_items(audit->pass->engine->comm, audit->lines.hash[computation],
                                    bytes, bytes, audit->owners, audit->count, error);
}

/* Computes all items that are wanted. */
static int audit_compute(struct ls_audit *audit, int computation, struct ls_error *error)
{
    struct ls_pass *pass = audit->pass;
    audit->round = computation;
    ls_thread_pool_run(pass->engine->pool, audit_compute_some, audit);
    if (pass->failed_unit != SIZE_MAX) {
        if (error != NULL)
            *error = pass->failure;
        return pass->failure.status;
    }
    return audit_share(audit, computation, error);
}

/* ---- Choice of workers ----------------------------------------------------------------------- */

static bool audit_same_place(struct place a, struct place b)
{
    return a.rank == b.rank && a.worker == b.worker;
}

/* Another rank than those of `avoid` if there is one, or another worker than those; each time
 * others. */
static struct place audit_elsewhere(const struct ls_audit *audit, const struct place *avoid,
                                    int count, size_t turn)
{
    const struct ls_comm *comm = audit->pass->engine->comm;
    const int *first = comm->first, ranks = comm->size;
    const size_t all = (size_t)first[ranks];
    struct place found = avoid[0];
    int best = 0;
    for (size_t i = 0; i < all && best < 3; i++) {
        int number = (int)(((size_t)(first[avoid[0].rank] + avoid[0].worker) + 1 + turn + i) % all);
        struct place place = {0, number};
        while (place.rank + 1 < ranks && number >= first[place.rank + 1])
            place.rank++;
        place.worker = number - first[place.rank];
        bool other_rank = true, other_worker = true;
        for (int a = 0; a < count; a++) {
            other_rank &= avoid[a].rank != place.rank;
            other_worker &= !audit_same_place(avoid[a], place);
        }
        int worth = 2 * other_rank + other_worker;
        if (worth > best) {
            best = worth;
            found = place;
        }
    }
    return found;
}

/* ---- Findings -------------------------------------------------------------------------------- */

static int audit_learn_hosts(struct ls_audit *audit, struct ls_error *error)
{
    struct ls_comm *comm = audit->pass->engine->comm;
    if (audit->knows_hosts || comm->size == 1) /* alone, no host is named */
        return 0;
    audit->knows_hosts = true;
    return ls_comm_all_gather(comm, comm->transport->host, HOST_SIZE, audit->hosts, error);
}

static struct ls_audit_finding audit_finding_of(const struct ls_audit *audit, size_t item,
                                                int computation, int right)
{
    const struct audited *what = &audit->items[item];
    const struct ls_batch *range = &audit->pass->units[what->unit].range;
    struct ls_audit_finding finding = {
        .own = computation == 0,
        .rank = what->by[computation].rank,
        .worker = what->by[computation].worker,
        .core =
            ls_audit_lines_core(&audit->lines, ls_audit_lines_of(&audit->lines, computation, item)),
        .micro_batch = what->unit,
        .first = range->ordinal,
        .last = range->ordinal + range->count - 1};
    if (audit->knows_hosts)
        finding.host = audit->hosts[finding.rank];
    finding.name = ls_audit_lines_differ(&audit->lines, ls_net_graph(audit->pass->net), item,
                                         computation, right, &finding.differing);
    return finding;
}

static void audit_keep_finding(struct ls_audit *audit, const struct ls_audit_finding *finding)
{
    size_t last = LS_AUDIT_FINDINGS - 1;
    audit->wrong++;
    audit->findings[audit->finding_count < last ? audit->finding_count : last] = *finding;
    audit->finding_count += audit->finding_count <= last;
}

/* "worker 1 on core 5", with its rank and host where there are several. */
static void audit_name_place(const struct ls_audit_finding *finding, char *text, size_t size)
{
    char rank[HOST_SIZE + 40] = "";
    if (finding->host != NULL)
        snprintf(rank, sizeof rank, "rank %d (%.63s), ", finding->rank, finding->host);
    snprintf(text, size, "%sworker %d on core %d", rank, finding->worker, finding->core);
}

static int audit_fail_undecided(const struct ls_audit *audit, size_t item, int64_t iteration,
                                struct ls_error *error)
{
    struct ls_audit_finding a = audit_finding_of(audit, item, 0, 1),
                            b = audit_finding_of(audit, item, 1, 0);
    char first[200], second[200];
    audit_name_place(&a, first, sizeof first);
    audit_name_place(&b, second, sizeof second);
    return ls_fail(error, LOCKSTEP_DIFFERENT, a.name,
                   "a core or memory is faulty: find out which, go on from a snapshot without it, "
                   "and check what was trained before ('lockstep replay')",
                   "iteration %lld: the micro-batch of samples %lld to %lld has other bits each "
                   "time that it is computed, first by %s and then by %s, and no two cores agree",
                   (long long)iteration, (long long)a.first, (long long)a.last, first, second);
}

static int audit_fail_repeats(const struct ls_audit *audit, int64_t iteration,
                              struct ls_error *error)
{
    const struct ls_audit_finding *last = &audit->findings[audit->finding_count - 1];
    char who[200];
    audit_name_place(last, who, sizeof who);
    return ls_fail(
        error, LOCKSTEP_DIFFERENT, last->name,
        "that core or its memory is faulty: go on from a snapshot without it, and check "
        "what was trained before ('lockstep replay')",
        "iteration %lld: the update was computed %d times, and was wrong each time, last "
        "by %s",
        (long long)iteration, REPEATS_MAX + 1, who);
}

/* Which of computations 0 and 1 was wrong; -1: that cannot be told (yet, with three). What two
 * different cores have alike is right; what one core has alike twice is, if the other one agrees in
 * the end or has other bits each time. */
static int audit_judge(const struct ls_audit *audit, size_t item, bool fourth)
{
    const struct audited *what = &audit->items[item];
    int right = ls_audit_lines_same(&audit->lines, item, 0, 2)   ? 0
                : ls_audit_lines_same(&audit->lines, item, 1, 2) ? 1
                                                                 : -1;
    if (right < 0 || !audit_same_place(what->by[right], what->by[2]))
        return right < 0 ? -1 : 1 - right;
    return fourth && !ls_audit_lines_same(&audit->lines, item, 1 - right, 3) ? 1 - right : -1;
}

/* The third computation of what differs, and a fourth where the third was made by one of the two
 * that it agrees with. */
static int audit_compute_more(struct ls_audit *audit, struct ls_error *error)
{
    bool more = false;
    for (size_t i = 0; i < audit->count; i++) {
        struct audited *item = &audit->items[i];
        item->wanted = item->differs;
        item->by[2] = audit_elsewhere(audit, item->by, 2, i);
    }
    LS_TRY(audit_compute(audit, 2, error));
    for (size_t i = 0; i < audit->count; i++) {
        struct audited *item = &audit->items[i];
        bool first = ls_audit_lines_same(&audit->lines, i, 0, 2),
             second = ls_audit_lines_same(&audit->lines, i, 1, 2);
        item->wanted = item->differs && (first || second) && audit_judge(audit, i, false) < 0;
        item->by[3] = item->by[first ? 1 : 0];
        more |= item->wanted;
    }
    return more ? audit_compute(audit, 3, error) : 0;
}

/* Reports, for each difference, the core that was wrong. */
static int audit_decide(struct ls_audit *audit, int64_t iteration, bool *wrong,
                        struct ls_error *error)
{
    LS_TRY(audit_compute_more(audit, error));
    LS_TRY(audit_learn_hosts(audit, error));
    for (size_t i = 0; i < audit->count; i++) {
        if (!audit->items[i].differs)
            continue;
        int which = audit_judge(audit, i, audit->items[i].wanted);
        if (which < 0)
            return ls_comm_common(audit->pass->engine->comm,
                                  audit_fail_undecided(audit, i, iteration, error));
        *wrong |= which == 0;
        struct ls_audit_finding finding = audit_finding_of(audit, i, which, 1 - which);
        audit_keep_finding(audit, &finding);
    }
    if (*wrong && ++audit->repeats > REPEATS_MAX)
        return ls_comm_common(audit->pass->engine->comm,
                              audit_fail_repeats(audit, iteration, error));
    return 0;
}

int ls_audit_check(struct ls_audit *audit, int64_t iteration, bool *wrong, struct ls_error *error)
{
    const struct ls_pass *pass = audit->pass;
    const int rank = pass->engine->comm->rank;
    bool differ = false;
    *wrong = false;
    if (audit->count == 0)
        return 0;
    LS_TRY(ls_exchange_fetch(pass->exchange, 0, pass->unit_count, error));
    for (size_t i = 0; i < audit->count; i++) {
        struct audited *item = &audit->items[i];
        item->by[0].rank = pass->owners[item->unit];
        if (item->by[0].rank == rank)
            ls_audit_lines_add_rest(&audit->lines, pass, item->unit, NULL,
                                    ls_pass_record(pass, item->unit),
                                    ls_audit_lines_of(&audit->lines, 0, i));
    }
    LS_TRY(audit_share(audit, 0, error));
    for (size_t i = 0; i < audit->count; i++) {
        struct audited *item = &audit->items[i];
        item->by[0].worker =
            ls_audit_lines_worker(&audit->lines, ls_audit_lines_of(&audit->lines, 0, i));
        item->by[1] = audit_elsewhere(audit, item->by, 1, i);
        item->wanted = true;
    }
    LS_TRY(audit_compute(audit, 1, error));
    for (size_t i = 0; i < audit->count; i++) {
        audit->items[i].differs = !ls_audit_lines_same(&audit->lines, i, 0, 1);
        differ |= audit->items[i].differs;
    }
    audit->audited += (int64_t)audit->count;
    return differ ? audit_decide(audit, iteration, wrong, error) : 0;
}

bool ls_audit_doubt(struct ls_audit *audit, size_t unit)
{
    bool first = !audit->doubts;
    audit->doubts = true;
    if (first) {
        audit->doubtful = unit;
        audit->doubtful_rank = audit->pass->owners[unit];
    }
    return first;
}

int ls_audit_clear(struct ls_audit *audit, struct ls_error *error)
{
    struct ls_comm *comm = audit->pass->engine->comm;
    const struct ls_batch *range = &audit->pass->units[audit->doubtful].range;
    size_t unit = audit->doubtful;
    int rank = audit->doubtful_rank;
    if (!audit->doubts)
        return 0;
    audit->doubts = false;
    LS_TRY(audit_learn_hosts(audit, error));
    LS_TRY(ls_comm_all_gather_items(comm, &audit->runners[unit], sizeof *audit->runners,
                                    sizeof *audit->runners, &rank, 1, error));
    struct ls_audit_finding finding = {.own = true,
                                       .rank = rank,
                                       .worker = (int)(uint32_t)audit->runners[unit],
                                       .core = (int)(uint32_t)(audit->runners[unit] >> 32),
                                       .micro_batch = unit,
                                       .first = range->ordinal,
                                       .last = range->ordinal + range->count - 1,
                                       .name = "a number that was not finite",
                                       .differing = 1};
    if (audit->knows_hosts)
        finding.host = audit->hosts[rank];
    audit_keep_finding(audit, &finding);
    return 0;
}

const struct ls_audit_finding *ls_audit_findings(const struct ls_audit *audit, size_t *count)
{
    *count = audit->finding_count;
    return audit->findings;
}

void ls_audit_count(const struct ls_audit *audit, int64_t *audited, int64_t *wrong)
{
    *audited = audit->audited;
    *wrong = audit->wrong;
}
