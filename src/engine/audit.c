/* Audits. See engine/audit.h.
 *
 * A micro-batch that is audited has a line of hashes for each of its computations: a hash for each
 * parameter, for each sync point, and for the record; behind them the worker and core that ran it.
 * Computation 0 is the update's own, 1 audits it, 2 and 3 decide between them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/audit.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "engine/micro_batch.h"
#include "ir/layer.h"
#include "transport/comm.h"

enum {
    COMPUTATIONS = 4,
    REPEATS_MAX = 8, /* of a pass, before it is not the accident of a core any more */
    HOST_SIZE = 64   /* as in struct ls_transport */
};

/* Who computes. */
struct place {
    int rank, worker;
};

/* A micro-batch that is audited. */
struct audited {
    size_t unit;
    struct place by[COMPUTATIONS];
    bool wanted; /* in the computation at hand */
    bool differs;
};

/* What a worker needs for itself. */
struct bench {
    struct ls_reader **readers; /* by data set */
    void **inputs;
    double *record;
    struct ls_mirror rows;
};

struct ls_audit {
    struct ls_pass *pass;
    uint64_t key;
    uint64_t threshold; /* of 2^32: runs of micro-batches whose number is below are audited */
    size_t parameters, syncs, things, line; /* a line: hashes of all things, then who */
    struct audited *items;
    size_t count;
    int *index; /* by unit: of `items`; -1: not audited */
    uint64_t *hash[COMPUTATIONS];
    int *owners; /* by item: the rank that has its line */
    int round;   /* the computation at hand */
    struct bench *benches;
    char (*hosts)[HOST_SIZE]; /* by rank; known after the first finding */
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

static uint64_t *audit_line_of(const struct ls_audit *audit, int computation, size_t item)
{
    return audit->hash[computation] + item * audit->line;
}

/* ---- Creation -------------------------------------------------------------------------------- */

static int audit_create_bench(struct ls_audit *audit, struct bench *bench, struct ls_error *error)
{
    const struct ls_pass *pass = audit->pass;
    const struct ls_net *net = pass->net;
    bench->readers = ls_alloc((size_t)net->dataset_count + 1, sizeof(struct ls_reader *));
    bench->inputs = ls_alloc((size_t)net->input_count + 1, sizeof(void *));
    bench->record = ls_alloc(pass->record_size + 1, sizeof *bench->record);
    if (bench->readers == NULL || bench->inputs == NULL || bench->record == NULL)
        return ls_fail_memory(error, "audits");
    LS_TRY(ls_mirror_create(&bench->rows, pass->engine->device->memory,
                            pass->exchange->row_doubles * sizeof(double) + 1, "audits", error));
    for (int d = 0; d < net->dataset_count; d++)
        LS_TRY(ls_reader_open(net->datasets[d], &bench->readers[d], error));
    for (int i = 0; i < net->input_count; i++)
        if ((bench->inputs[i] = ls_alloc_aligned(ls_net_input_bytes(net, i))) == NULL)
            return ls_fail_memory(error, "audits");
    return 0;
}

static int audit_create(struct ls_audit *audit, struct ls_error *error)
{
    const struct ls_pass *pass = audit->pass;
    const struct ls_graph *graph = ls_net_graph(pass->net);
    size_t units = pass->unit_capacity, workers = (size_t)pass->engine->workers;
    size_t ranks = (size_t)pass->engine->comm->size;
    audit->parameters = graph->parameters->count;
    audit->syncs = graph->sync_count;
    audit->things = audit->parameters + audit->syncs + 1;
    audit->line = audit->things + 1;
    audit->items = ls_alloc(units, sizeof *audit->items);
    audit->index = ls_alloc(units, sizeof *audit->index);
    audit->runners = ls_alloc(units, sizeof *audit->runners);
    audit->owners = ls_alloc(units, sizeof *audit->owners);
    audit->hosts = ls_alloc(ranks, sizeof *audit->hosts);
    audit->benches = ls_alloc(workers, sizeof *audit->benches);
    bool ready = audit->items != NULL && audit->index != NULL && audit->runners != NULL &&
                 audit->owners != NULL && audit->hosts != NULL && audit->benches != NULL;
    for (int c = 0; c < COMPUTATIONS && ready; c++)
        ready = (audit->hash[c] = ls_alloc(units * audit->line, sizeof(uint64_t))) != NULL;
    if (!ready)
        return ls_fail_memory(error, "audits");
    for (size_t w = 0; w < workers; w++)
        LS_TRY(audit_create_bench(audit, &audit->benches[w], error));
    return 0;
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
    const struct ls_net *net = audit->pass->net;
    for (int w = 0; w < audit->pass->engine->workers && audit->benches != NULL; w++) {
        struct bench *bench = &audit->benches[w];
        for (int d = 0; d < net->dataset_count && bench->readers != NULL; d++)
            ls_reader_close(bench->readers[d]);
        for (int i = 0; i < net->input_count && bench->inputs != NULL; i++)
            ls_free_aligned(bench->inputs[i]);
        ls_free((void *)bench->readers);
        ls_free((void *)bench->inputs);
        ls_free(bench->record);
        ls_mirror_free(&bench->rows);
    }
    for (int c = 0; c < COMPUTATIONS; c++)
        ls_free(audit->hash[c]);
    ls_free(audit->items);
    ls_free(audit->index);
    ls_free(audit->runners);
    ls_free(audit->owners);
    ls_free(audit->hosts);
    ls_free(audit->benches);
    ls_free(audit);
}

/* What a micro-batch has at sync points, as the exchange places it. */
static size_t audit_row_doubles(const struct ls_net *net)
{
    const struct ls_graph *graph = ls_net_graph(net);
    size_t doubles = 0;
    for (size_t s = 0; s < graph->sync_count; s++) {
        const struct ls_sync *sync = &graph->syncs[s];
        if (sync->grouping >= 0)
            doubles += (size_t)(ls_exchange_parts(ls_batching_largest(&net->batching),
                                                  graph->groupings[sync->grouping]) *
                                ls_sync_row(sync));
    }
    return doubles;
}

size_t ls_audit_bytes(const struct ls_net *net, int workers)
{
    const struct ls_graph *graph = ls_net_graph(net);
    size_t units = (size_t)ls_pass_update_micro_batches(net);
    size_t line = graph->parameters->count + graph->sync_count + 2;
    size_t each = ((size_t)graph->record_size + audit_row_doubles(net)) * sizeof(double);
    for (int i = 0; i < net->input_count; i++)
        each += ls_net_input_bytes(net, i);
    return units * (COMPUTATIONS * line * sizeof(uint64_t) + sizeof(struct audited)) +
           (size_t)workers * each;
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
        memset(audit_line_of(audit, 0, audit->count), 0, audit->line * sizeof(uint64_t));
        audit->items[audit->count++] = (struct audited){.unit = unit};
    }
}

/* ---- Listening ------------------------------------------------------------------------------- */

static int audit_before(void *user, const struct ls_op *op, const float *numbers,
                        const struct ls_context *context, struct ls_error *error)
{
    struct ls_audit_listener *listener = user;
    const bool record = op->kind == LS_OP_RECORD;
    const struct ls_parameter *parameter = record ? op->attr.record.parameter : op->attr.parameter;
    uint64_t *hash = &listener->hash[parameter->index];
    uint64_t seed = *hash + 1 + (record ? 1 + (uint64_t)op->attr.record.side : 0);
    size_t bytes = ls_value_bytes(op->input[0]);
    LS_TRY(listener->device->streams->wait(context->stream, error));
    LS_TRY(listener->device->memory->hash(numbers, bytes, seed, hash, error));
    return listener->observer.before != NULL
               ? listener->observer.before(listener->observer.user, op, numbers, context, error)
               : 0;
}

static int audit_after(void *user, const struct ls_op *op, const struct ls_context *context,
                       struct ls_error *error)
{
    struct ls_audit_listener *listener = user;
    return listener->observer.after != NULL
               ? listener->observer.after(listener->observer.user, op, context, error)
               : 0;
}

/* Hashes what a run hands over into a line. */
static void audit_observe(const struct ls_audit *audit, struct ls_audit_listener *listener,
                          uint64_t *line, struct ls_run *run)
{
    *listener = (struct ls_audit_listener){
        .device = audit->pass->engine->device, .hash = line, .observer = run->observer};
    run->observer =
        (struct ls_observer){.before = audit_before, .after = audit_after, .user = listener};
}

/* The worker and core that made a line. */
static uint64_t audit_signature(int worker)
{
    return (uint64_t)(uint32_t)worker | (uint64_t)(uint32_t)sched_getcpu() << 32;
}

static int audit_worker_of(const struct ls_audit *audit, const uint64_t *line)
{
    return (int)(uint32_t)line[audit->things];
}

static int audit_core_of(const struct ls_audit *audit, const uint64_t *line)
{
    return (int)(uint32_t)(line[audit->things] >> 32);
}

void ls_audit_listen(struct ls_audit *audit, int worker, size_t unit,
                     struct ls_audit_listener *listener, struct ls_run *run)
{
    if (!audit->doubts)
        audit->runners[unit] = audit_signature(worker);
    if (audit->index[unit] < 0)
        return;
    uint64_t *line = audit_line_of(audit, 0, (size_t)audit->index[unit]);
    audit_observe(audit, listener, line, run);
    line[audit->things] = audit_signature(worker);
}

/* Hashes what a unit has left at sync points and in its record. */
static void audit_hash_rest(const struct ls_audit *audit, size_t unit, const double *rows,
                            const double *numbers, uint64_t *line)
{
    const struct ls_pass *pass = audit->pass;
    for (size_t s = 0; s < audit->syncs; s++)
        line[audit->parameters + s] = ls_exchange_hash(pass->exchange, (int)s, unit, rows);
    line[audit->things - 1] = ls_hash(numbers, pass->record_size * sizeof *numbers, 0);
}

/* ---- Computing again ------------------------------------------------------------------------- */

/* One micro-batch by itself, segment by segment; what sync points merged is there. */
static void audit_compute_one(struct ls_audit *audit, size_t item, int worker)
{
    struct ls_pass *pass = audit->pass;
    struct bench *bench = &audit->benches[worker];
    size_t unit = audit->items[item].unit;
    const struct ls_net_plan *plan = pass->units[unit].plan;
    uint64_t *line = audit_line_of(audit, audit->round, item);
    struct ls_error *error = ls_pass_error();
    memset(line, 0, audit->line * sizeof *line);
    memset(bench->record, 0, pass->record_size * sizeof *bench->record);
    if (ls_micro_batch_fetch(pass, bench->readers, unit, bench->inputs, error) != 0) {
        ls_pass_note_failure(pass, unit, error);
        return;
    }
    struct ls_audit_listener listener;
    struct ls_run run = ls_micro_batch_prepare(pass, worker, unit);
    ls_exchange_context(pass->exchange, worker, unit, bench->rows.device, &run.context);
    run.inputs = bench->inputs;
    run.context.partials = bench->record;
    run.context.accumulator = NULL; /* nothing of it is added */
    run.factors = NULL;
    run.observer = (struct ls_observer){0};
    audit_observe(audit, &listener, line, &run);
    int segments = (int)plan->plan->segments;
    for (int s = 0; s < segments; s++)
        if (ls_micro_batch_compute(pass, plan, worker, segments > 1 ? s : LS_RUN_ALL, &run,
                                   error) != 0) {
            ls_pass_note_failure(pass, unit, error);
            return;
        }
    if (ls_mirror_read(&bench->rows, 0, pass->exchange->row_doubles * sizeof(double), error) != 0) {
        ls_pass_note_failure(pass, unit, error);
        return;
    }
    audit_hash_rest(audit, unit, bench->rows.host, bench->record, line);
    line[audit->things] = audit_signature(worker);
}

static void audit_compute_some(void *argument, int worker)
{
    struct ls_audit *audit = argument;
    int rank = audit->pass->engine->comm->rank;
    for (size_t i = 0; i < audit->count; i++) {
        const struct audited *item = &audit->items[i];
        if (item->wanted && item->by[audit->round].rank == rank &&
            item->by[audit->round].worker == worker)
            audit_compute_one(audit, i, worker);
    }
}

/* Hands a computation's lines to all ranks. */
static int audit_share(struct ls_audit *audit, int computation, struct ls_error *error)
{
    size_t bytes = audit->line * sizeof(uint64_t);
    for (size_t i = 0; i < audit->count; i++)
        audit->owners[i] = audit->items[i].by[computation].rank;
    return ls_comm_all_gather_items(audit->pass->engine->comm, audit->hash[computation], bytes,
                                    bytes, audit->owners, audit->count, error);
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

static bool audit_same_line(const struct ls_audit *audit, size_t item, int a, int b)
{
    return memcmp(audit_line_of(audit, a, item), audit_line_of(audit, b, item),
                  audit->things * sizeof(uint64_t)) == 0;
}

/* The first thing that two computations do not have alike, and how many there are. */
static const char *audit_first_difference(const struct ls_audit *audit, size_t item, int a, int b,
                                          size_t *count)
{
    const struct ls_graph *graph = ls_net_graph(audit->pass->net);
    const uint64_t *x = audit_line_of(audit, a, item), *y = audit_line_of(audit, b, item);
    const char *name = NULL;
    *count = 0;
    for (size_t t = 0; t < audit->things; t++) {
        if (x[t] == y[t])
            continue;
        const char *what = t < audit->parameters   ? graph->parameters->items[t]->name
                           : t < audit->things - 1 ? graph->syncs[t - audit->parameters].layer->name
                                                   : "losses and figures";
        name = (*count)++ == 0 ? what : name;
    }
    return name;
}

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
        .core = audit_core_of(audit, audit_line_of(audit, computation, item)),
        .micro_batch = what->unit,
        .first = range->ordinal,
        .last = range->ordinal + range->count - 1};
    if (audit->knows_hosts)
        finding.host = audit->hosts[finding.rank];
    finding.name = audit_first_difference(audit, item, computation, right, &finding.differing);
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
    int right = audit_same_line(audit, item, 0, 2)   ? 0
                : audit_same_line(audit, item, 1, 2) ? 1
                                                     : -1;
    if (right < 0 || !audit_same_place(what->by[right], what->by[2]))
        return right < 0 ? -1 : 1 - right;
    return fourth && !audit_same_line(audit, item, 1 - right, 3) ? 1 - right : -1;
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
        bool first = audit_same_line(audit, i, 0, 2), second = audit_same_line(audit, i, 1, 2);
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
            audit_hash_rest(audit, item->unit, NULL, ls_pass_record(pass, item->unit),
                            audit_line_of(audit, 0, i));
    }
    LS_TRY(audit_share(audit, 0, error));
    for (size_t i = 0; i < audit->count; i++) {
        struct audited *item = &audit->items[i];
        item->by[0].worker = audit_worker_of(audit, audit_line_of(audit, 0, i));
        item->by[1] = audit_elsewhere(audit, item->by, 1, i);
        item->wanted = true;
    }
    LS_TRY(audit_compute(audit, 1, error));
    for (size_t i = 0; i < audit->count; i++) {
        audit->items[i].differs = !audit_same_line(audit, i, 0, 1);
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
