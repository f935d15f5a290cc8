/* lockstep replay: trains an interval of an earlier training again and compares the weights' hashes
 * with those of its log, and with a snapshot.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cards.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "monitor/monitor.h"

enum { LINE_MAX_BYTES = 1 << 16, HASHES_MAX = 1 << 24 };

struct values {
    const char *solver, *from, *expect, *log, *isa, *device;
    int64_t to, workers;
    uint64_t memory;
    double audit;
    struct ls_cli_list set;
};

/* What a log says of the weights after an iteration. */
struct hash {
    int64_t iteration, chain_begin;
    uint64_t weights, chain;
};

struct log {
    struct hash *hashes; /* as they come: a run that was resumed has some twice */
    size_t count, capacity;
};

/* ---- The log --------------------------------------------------------------------------------- */

/* The text behind `"key": ` in a line that our own log has; NULL: there is none. */
static const char *field(const char *line, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *found = strstr(line, quoted);
    return found != NULL ? found + strlen(quoted) : NULL;
}

static bool read_line(const char *line, struct hash *hash)
{
    const char *event = field(line, "event"), *iteration = field(line, "iteration");
    const char *weights = field(line, "weights"), *chain = field(line, "chain");
    const char *begin = field(line, "chain_begin");
    return event != NULL && strncmp(event, "\"hash\"", 6) == 0 && iteration != NULL &&
           sscanf(iteration, "%18" SCNd64, &hash->iteration) == 1 && weights != NULL &&
           sscanf(weights, "\"%16" SCNx64 "\"", &hash->weights) == 1 && chain != NULL &&
           sscanf(chain, "\"%16" SCNx64 "\"", &hash->chain) == 1 && begin != NULL &&
           sscanf(begin, "%18" SCNd64, &hash->chain_begin) == 1;
}

static int add_hash(struct log *log, const struct hash *hash)
{
    if (log->count == log->capacity) {
        size_t capacity = log->capacity > 0 ? 2 * log->capacity : 256;
        struct hash *longer =
            capacity <= HASHES_MAX ? realloc(log->hashes, capacity * sizeof *longer) : NULL;
        if (longer == NULL)
            return ls_cli_error(LOCKSTEP_RESOURCE, "out of memory for the log");
        log->hashes = longer;
        log->capacity = capacity;
    }
    log->hashes[log->count++] = *hash;
    return 0;
}

/* The hashes of iterations [begin, end] in a log. */
static int read_log(const char *path, int64_t begin, int64_t end, struct log *log)
{
    FILE *file = fopen(path, "re");
    char *line = malloc(LINE_MAX_BYTES);
    int status = 0;
    if (file == NULL)
        status = ls_cli_error(LOCKSTEP_USAGE, "%s: cannot be read: %s", path, strerror(errno));
    else if (line == NULL)
        status = ls_cli_error(LOCKSTEP_RESOURCE, "out of memory for the log");
    while (status == 0 && line != NULL && file != NULL &&
           fgets(line, LINE_MAX_BYTES, file) != NULL) {
        struct hash hash;
        if (read_line(line, &hash) && hash.iteration >= begin && hash.iteration <= end)
            status = add_hash(log, &hash);
    }
    if (status == 0 && log->count == 0)
        status = ls_cli_error(LOCKSTEP_USAGE,
                              "%s: has no hashes of the weights of iterations %" PRId64
                              " to %" PRId64 ". hint: every 20th iteration and the last one of a "
                              "run have some, in a log of --log-json",
                              path, begin, end);
    if (file != NULL)
        fclose(file);
    free(line);
    return status;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

struct replay {
    const struct values *values;
    struct lockstep_trainer *trainer, *expected; /* expected: --expect, or NULL */
    struct log log;
    int64_t begin;   /* the snapshot's iteration */
    int64_t seen;    /* the last iteration whose weights were hashed, */
    int64_t same;    /* and the last one where they are known to be the same */
    size_t compared; /* hashes of the log */
};

static int part(const struct replay *replay, const char *with)
{
    int64_t iteration = lockstep_trainer_iteration(replay->trainer);
    if (replay->compared == 0 && iteration == replay->begin)
        return ls_cli_error(LOCKSTEP_DIFFERENT,
                            "%s: has other weights for iteration %" PRId64 " than the snapshot "
                            "that the replay begins at. hint: is it of another training? if not, "
                            "one of the two was computed wrongly before",
                            with, iteration);
    return ls_cli_error(LOCKSTEP_DIFFERENT,
                        "%s: the trainings part after iteration %" PRId64 " and not later than "
                        "%" PRId64 ". hint: one of them computed wrongly, in another numeric "
                        "environment or from other data; replay both on another machine",
                        with, replay->same, iteration);
}

/* Compares the weights as they are now with what the log says of them. */
static int compare(struct replay *replay, uint64_t weights, const uint64_t *chain, int64_t begin)
{
    int64_t iteration = lockstep_trainer_iteration(replay->trainer);
    size_t before = replay->compared;
    replay->seen = iteration;
    for (size_t i = 0; i < replay->log.count; i++) {
        const struct hash *hash = &replay->log.hashes[i];
        if (hash->iteration != iteration)
            continue;
        if (hash->weights != weights)
            return part(replay, replay->values->log);
        if (chain != NULL && hash->chain_begin == begin && hash->chain != *chain)
            return ls_cli_error(LOCKSTEP_DIFFERENT,
                                "%s: the weights of iteration %" PRId64 " are the same, but the "
                                "log's training and that of the snapshot had others before",
                                replay->values->log, iteration);
        replay->compared++;
    }
    if (replay->compared > before)
        replay->same = iteration;
    printf("Iteration %" PRId64 ": weights %016" PRIx64 "%s\n", iteration, weights,
           replay->compared > before ? ", as in the log" : "");
    return 0;
}

/* Hashes the weights as they are now, between links of the chain, and compares them. */
static int hash_and_compare(struct replay *replay, struct lockstep_error *error)
{
    uint64_t weights = 0;
    int status = lockstep_trainer_hash(replay->trainer, &weights, error);
    return status != 0 ? ls_cli_report(status, error) : compare(replay, weights, NULL, 0);
}

/* One update, and a comparison where it made a link of the chain. */
static int step(struct replay *replay, struct lockstep_error *error)
{
    uint64_t weights = 0, chain = 0;
    int64_t begin = 0;
    int status = lockstep_trainer_step(replay->trainer, 1, error);
    if (status != 0)
        return ls_cli_report(status, error);
    if (lockstep_trainer_chain(replay->trainer, &weights, &chain, &begin) !=
        lockstep_trainer_iteration(replay->trainer))
        return 0;
    return compare(replay, weights, &chain, begin);
}

static struct lockstep_train_options train_options(const struct values *values,
                                                   struct ls_monitor *monitor, const char *from)
{
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = (int)values->workers;
    options.isa = values->isa;
    options.device = values->device;
    ls_cli_note_cards(values->device);
    options.memory = values->memory;
    options.audit = values->audit;
    options.resume = from;
    if (monitor != NULL)
        options.callbacks = (struct lockstep_callbacks){monitor, ls_monitor_event, NULL};
    return options;
}

/* Names the first parameter that two trainers do not have alike. */
static int name_difference(const struct replay *replay, const struct lockstep_trainer *other,
                           struct lockstep_error *error)
{
    size_t count = lockstep_trainer_parameter_count(replay->trainer);
    const char *name = "its weights";
    for (size_t i = 0; i < count; i++) {
        size_t size = lockstep_trainer_parameter_size(replay->trainer, i);
        float *mine = calloc(size + 1, sizeof *mine), *theirs = calloc(size + 1, sizeof *theirs);
        int status = mine == NULL || theirs == NULL ? LOCKSTEP_RESOURCE : 0;
        if (status == 0)
            status = lockstep_trainer_read_parameter(replay->trainer, i, mine, size, error);
        if (status == 0)
            status = lockstep_trainer_read_parameter(other, i, theirs, size, error);
        bool same = status == 0 && memcmp(mine, theirs, size * sizeof *mine) == 0;
        free(mine);
        free(theirs);
        if (!same) {
            name = lockstep_trainer_parameter_name(replay->trainer, i);
            break;
        }
    }
    char with[512];
    snprintf(with, sizeof with, "%.300s: %.150s", replay->values->expect, name);
    return part(replay, with);
}

/* Opens the snapshot that the weights at the end are compared with. */
static int open_expected(struct replay *replay, const struct lockstep_solver *solver,
                         struct lockstep_error *error)
{
    const struct values *values = replay->values;
    struct lockstep_train_options options = train_options(values, NULL, values->expect);
    int status = lockstep_trainer_create(solver, &options, &replay->expected, error);
    if (status != 0)
        return ls_cli_report(status, error);
    int64_t iteration = lockstep_trainer_iteration(replay->expected);
    if (iteration == values->to)
        return 0;
    return ls_cli_error(LOCKSTEP_USAGE,
                        "%s: is of iteration %" PRId64 ", not of %" PRId64 " (--to)",
                        values->expect, iteration, values->to);
}

/* Compares the weights at the end with those of that snapshot. */
static int compare_snapshot(struct replay *replay, struct lockstep_error *error)
{
    const struct values *values = replay->values;
    struct lockstep_trainer *other = replay->expected;
    uint64_t mine = 0, theirs = 0, chain = 0, other_chain = 0;
    int64_t begin = 0, other_begin = 0;
    int status = lockstep_trainer_hash(replay->trainer, &mine, error);
    if (status == 0)
        status = lockstep_trainer_hash(other, &theirs, error);
    if (status != 0) {
        ls_cli_report(status, error);
    } else if (mine != theirs) {
        status = name_difference(replay, other, error);
    } else {
        lockstep_trainer_chain(replay->trainer, NULL, &chain, &begin);
        lockstep_trainer_chain(other, NULL, &other_chain, &other_begin);
        if (begin == other_begin && chain != other_chain)
            status = ls_cli_error(LOCKSTEP_DIFFERENT,
                                  "%s: has the same weights, but they were others before",
                                  values->expect);
    }
    return status;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int replay_from(struct replay *replay, const struct lockstep_solver *solver,
                       struct lockstep_error *error)
{
    const struct values *values = replay->values;
    int64_t begin = lockstep_trainer_iteration(replay->trainer);
    if (values->to < begin)
        return ls_cli_usage_error("replay: --to %" PRId64
                                  " is before the snapshot's iteration, %" PRId64,
                                  values->to, begin);
    replay->begin = replay->same = begin;
    int status = values->log != NULL ? read_log(values->log, begin, values->to, &replay->log) : 0;
    if (status == 0 && values->expect != NULL)
        status = open_expected(replay, solver, error);
    if (status == 0)
        status = hash_and_compare(replay, error);
    while (status == 0 && lockstep_trainer_iteration(replay->trainer) < values->to)
        status = step(replay, error);
    if (status == 0 && replay->seen < values->to)
        status = hash_and_compare(replay, error);
    if (status == 0 && values->expect != NULL)
        status = compare_snapshot(replay, error);
    if (status != 0)
        return status;
    printf("Replayed: iterations %" PRId64 " to %" PRId64, begin, values->to);
    if (replay->compared > 0)
        printf("; the same as in %zu line%s of the log", replay->compared,
               replay->compared > 1 ? "s" : "");
    if (values->expect != NULL)
        printf("; the same weights as in %s", values->expect);
    puts(replay->compared > 0 || values->expect != NULL ? "." : "; nothing was compared.");
    return 0;
}

static int run(const void *data)
{
    const struct values *values = data;
    if (values->solver == NULL || values->from == NULL || values->to < 0)
        return ls_cli_usage_error("replay: --%s is missing", values->solver == NULL ? "solver FILE"
                                                             : values->from == NULL ? "from FILE"
                                                                                    : "to N");
    struct ls_monitor monitor;
    struct lockstep_solver *solver = NULL;
    struct replay replay = {.values = values};
    struct lockstep_error *error = lockstep_error_new();
    ls_monitor_init(&monitor, stdout, NULL, NULL);
    struct lockstep_train_options options = train_options(values, &monitor, values->from);
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &replay.trainer, error);
    if (status != 0)
        ls_cli_report(status, error);
    else
        status = replay_from(&replay, solver, error);
    lockstep_trainer_free(replay.trainer);
    lockstep_trainer_free(replay.expected);
    lockstep_solver_free(solver);
    free(replay.log.hashes);
    lockstep_error_free(error);
    return status;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->to = -1;
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOLVER(struct values, solver, ""),
    LS_CLI_ROW(LS_CLI_TEXT, "from", "FILE", struct values, from, 0, "the snapshot to begin at"),
    LS_CLI_ROW(LS_CLI_INTEGER, "to", "N", struct values, to, 0,
               "train as far as iteration N; nothing is written"),
    LS_CLI_ROW(LS_CLI_TEXT, "log", "FILE", struct values, log, 0,
               "compare with the hashes in this log, which --log-json wrote"),
    LS_CLI_ROW(LS_CLI_TEXT, "expect", "FILE", struct values, expect, 0,
               "compare in the end with this snapshot of iteration N"),
    LS_CLI_WORKER_COUNT(struct values, workers, ""),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "limit on memory, as 'train' does"),
    LS_CLI_ROW(LS_CLI_PART, "audit", "P", struct values, audit, 0,
               "audit this part of the micro-batches, as 'train' does"),
    LS_CLI_SET(struct values, set),
    LS_CLI_ISA(struct values, isa),
    LS_CLI_DEVICE(struct values, device),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_replay = {
    .name = "replay",
    .summary = "trains a part of a training again and compares the weights",
    .usage = "--solver FILE --from SNAPSHOT --to N [--log LOG] [--expect SNAPSHOT]",
    .options = options,
    .example =
        "lockstep replay --solver lenet_solver.prototxt --from lenet_iter_500.safetensors \\\n"
        "  --to 1000 --log train.json --expect lenet_iter_1000.safetensors",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
