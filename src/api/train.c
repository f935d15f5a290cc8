/* The public interface: solvers and trainers.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <string.h>

#include "api/api.h"
#include "api/cards.h"
#include "api/job.h"
#include "api/options.h"
#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/compare.h"
#include "schema/canonical.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"
#include "solver/added_losses.h"
#include "solver/check.h"
#include "solver/checkpoint.h"
#include "solver/dummy_data.h"
#include "solver/evaluate.h"
#include "solver/history.h"
#include "solver/loop.h"
#include "solver/resume.h"
#include "solver/snapshots.h"
#include "solver/environment.h"
#include "solver/trainer.h"
#include "solver/training_plan.h"
#include "solver/weights.h"
#include "transport/comm_job.h"
#include "transport/failure_end.h"

/* ---- Solvers --------------------------------------------------------------------------------- */

/* What else is wrong with a solver of which a part could not be read. Whether its data are there
 * is asked later: the caller may want others. */
static void tell_more(struct ls_solver_definition *definition, struct ls_error *error)
{
    struct lockstep_dummy_options missing;
    lockstep_dummy_options_init(&missing);
    (void)ls_dummy_data_solver(definition, &missing, NULL);
    ls_training_plan_check(definition, error);
}

int lockstep_solver_load(const char *path, const char *const *set, size_t set_count,
                         struct lockstep_solver **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    *out = NULL;
    LS_TRY(ls_api_require(path, "path", inner));
    struct lockstep_solver *solver = ls_alloc(1, sizeof *solver);
    if (solver == NULL)
        return ls_fail_memory(inner, "a solver");
    atomic_store(&solver->references, 1);
    int status = ls_solver_read_partly(path, set, set_count, &solver->definition, inner);
    if (status == 0) {
        *out = solver;
        return 0;
    }
    if (solver->definition != NULL)
        tell_more(solver->definition, inner);
    ls_solver_definition_free(solver->definition);
    ls_free(solver);
    return status;
}

void lockstep_solver_free(struct lockstep_solver *solver)
{
    if (solver == NULL || atomic_fetch_sub(&solver->references, 1) > 1)
        return;
    ls_api_forget_arrays(solver);
    ls_solver_definition_free(solver->definition);
    ls_free(solver->text);
    ls_free(solver);
}

const char *lockstep_solver_text(struct lockstep_solver *solver, struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct ls_text text = {0};
    int status = ls_definition_canonical(solver->definition, 0, &text, inner);
    if (status == 0 && text.failed)
        status = ls_fail_memory(inner, "a definition");
    if (status != 0) {
        ls_text_free(&text);
        return NULL;
    }
    ls_free(solver->text);
    solver->text = text.data;
    return solver->text;
}

/* The text of a solver that names a net and its state. */
static int write_solver(const char *path, int level, const char *const *stages, size_t stage_count,
                        struct ls_text *text, struct ls_error *error)
{
    ls_text_add(text, "net: ");
    ls_text_write_string(path, strlen(path), text);
    ls_text_format(text,
                   "\nbase_lr: 0 lr_policy: \"fixed\" max_iter: 1000000000\n"
                   "train_state { level: %d",
                   level);
    for (size_t i = 0; i < stage_count; i++) {
        ls_text_add(text, " stage: ");
        ls_text_write_string(stages[i], strlen(stages[i]), text);
    }
    ls_text_add(text, " }\n");
    return text->failed ? ls_fail_memory(error, "a solver") : 0;
}

int lockstep_solver_of_net(const char *path, int level, const char *const *stages,
                           size_t stage_count, struct lockstep_solver **out,
                           struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_text text = {0};
    *out = NULL;
    LS_TRY(ls_api_require(path, "path", inner));
    struct lockstep_solver *solver = ls_alloc(1, sizeof *solver);
    if (solver == NULL)
        return ls_fail_memory(inner, "a solver");
    atomic_store(&solver->references, 1);
    int status = write_solver(path, level, stages, stage_count, &text, inner);
    if (status == 0)
        status = ls_solver_read_text(path, text.data, &solver->definition, inner);
    if (status == 0)
        status = ls_add_losses(&solver->definition->train, inner);
    ls_text_free(&text);
    if (status == 0) {
        *out = solver;
        return 0;
    }
    if (solver->definition != NULL) /* its data may be missing: only its layers are looked at */
        ls_training_plan_check_types(solver->definition, inner);
    ls_solver_definition_free(solver->definition);
    ls_free(solver);
    return status;
}

void lockstep_dummy_options_init(struct lockstep_dummy_options *options)
{
    *options = (struct lockstep_dummy_options){.struct_size = sizeof *options};
}

int lockstep_solver_use_dummy_data(struct lockstep_solver *solver,
                                   const struct lockstep_dummy_options *options,
                                   struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_dummy_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_dummy_options_init", inner));
    return ls_dummy_data_solver(solver->definition, &mine, inner);
}

/* ---- Trainers -------------------------------------------------------------------------------- */

void lockstep_train_options_init(struct lockstep_train_options *options)
{
    *options = (struct lockstep_train_options){.struct_size = sizeof *options};
}

static int check_options(const struct lockstep_train_options *options, struct ls_error *error)
{
    if (options->workers < 0 || options->workers > 4096)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "use 1 to 4096, or leave it out",
                       "%d workers are not possible", options->workers);
    if (!(options->audit >= 0 && options->audit <= 1))
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "use 0 (none) to 1 (all)",
                       "%g of the micro-batches cannot be audited", options->audit);
    if (options->resume != NULL && options->weights != NULL)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "give a snapshot to resume from, or weights to start from, not both");
    if (options->resume != NULL && options->partial_weights != 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "partial weights are those to start from, and a resume takes all");
    if (options->resume != NULL && options->map != NULL)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "a map of names is for weights to start from, not for a resume");
    return 0;
}

int ls_api_solver_weights(const Lockstep__SolverParameter *solver, char **weights,
                          struct ls_error *error)
{
    struct ls_text text = {0};
    for (size_t i = 0; i < solver->n_weights; i++)
        ls_text_format(&text, "%s%s", i > 0 ? "," : "", solver->weights[i]);
    *weights = text.failed ? NULL : text.data;
    if (!text.failed)
        return 0;
    ls_text_free(&text);
    return ls_fail_memory(error, "names of weights");
}

static int start(struct ls_trainer *trainer, const struct lockstep_train_options *options,
                 struct ls_error *error)
{
    if (options->resume != NULL)
        return ls_trainer_resume(trainer, options->resume, error);
    if (options->weights != NULL)
        return ls_trainer_load_weights(trainer, options->weights, options->map,
                                       options->partial_weights != 0, error);
    char *weights;
    int status = ls_api_solver_weights(trainer->solver, &weights, error);
    if (status == 0 && weights == NULL && options->map != NULL)
        status = ls_fail(error, LOCKSTEP_USAGE, NULL, "name a file of weights, too",
                         "a map of names is given, but no weights to start from");
    else if (status == 0 && weights == NULL && options->partial_weights != 0)
        status = ls_fail(error, LOCKSTEP_USAGE, NULL, "name a file of weights, too",
                         "weights may be partial, but there are none to start from");
    LS_TRY(ls_comm_conclude(trainer->comm, status, error));
    status = weights != NULL ? ls_trainer_load_weights(trainer, weights, options->map,
                                                       options->partial_weights != 0, error)
                             : 0;
    ls_free(weights);
    return status;
}

/* Where other processes are lost nothing may be freed any more: the progress thread may be at work
 * on it, with what they send. So this is as far as the process gets (except in tests). Ranks of one
 * process have all ended their exchanges by then. */
static int unless_lost(struct lockstep_job *job, int status, const struct ls_error *error)
{
    char text[2048] = "other ranks are lost";
    if (status != LOCKSTEP_LOST || job == NULL)
        return status;
    if (error != NULL && error->count > 0)
        ls_error_format(error, text, sizeof text);
    return ls_detector_leave(ls_job_comm(job)->detector, status, text);
}

int ls_api_all_ranks(struct lockstep_trainer *trainer, ls_rank_threads_call *call, void *user,
                     struct ls_error *error)
{
    if (trainer->threads != NULL)
        return ls_rank_threads_run(trainer->threads, call, user, error);
    const int card = ls_thread_card();
    ls_thread_set_card(trainer->card);
    const int status = call(user, 0, error);
    ls_thread_set_card(card);
    return unless_lost(trainer->job, status, error);
}

/* A resume computes with the instruction set of its snapshot, unless another one is pinned. All
 * ranks hear of it from rank 0, which sees the snapshot. Whether another one was taken for it. */
static int offer_isa(const struct lockstep_solver *solver,
                     const struct lockstep_train_options *options, struct ls_comm *comm,
                     bool *taken, struct ls_error *error)
{
    const struct ls_solver_definition *definition = solver->definition;
    char isa[16] = "";
    int status = 0;
    *taken = false;
    if (options->resume != NULL && comm->rank == 0) {
        char *prefix =
            options->snapshot_prefix != NULL
                ? ls_snapshot_prefix(definition->definition->file, options->snapshot_prefix)
                : ls_copy_string(definition->solver->snapshot_prefix);
        status = prefix == NULL ? ls_fail_memory(error, "a trainer")
                                : ls_environment_isa(prefix, options->resume, isa, error);
        ls_free(prefix);
    }
    LS_TRY(ls_comm_agree(comm, status, error));
    LS_TRY(ls_comm_broadcast(comm, isa, sizeof isa, error));
    if (options->isa == NULL && isa[0] != '\0')
        *taken = ls_api_offer_isa(options->device, isa);
    return 0;
}

/* What a rank does by itself before it meets the others. */
static int prepare(const struct lockstep_train_options *options, struct ls_error *error)
{
    LS_TRY(check_options(options, error));
    return ls_api_select(options->device, options->isa, error);
}

/* Where snapshots will go, as the trainer finds it. */
static void place_status(const struct lockstep_solver *solver,
                         const struct lockstep_train_options *options)
{
    const struct ls_solver_definition *definition = solver->definition;
    if (options->snapshot_prefix == NULL && solver->definition->train.dummy)
        return; /* no snapshots */
    char *prefix = options->snapshot_prefix != NULL
                       ? ls_snapshot_prefix(definition->definition->file, options->snapshot_prefix)
                       : ls_copy_string(definition->solver->snapshot_prefix);
    if (prefix != NULL)
        ls_job_place_status(options->job, prefix);
    ls_free(prefix);
}

/* What a trainer is made of, for all its ranks. */
struct creation {
    const struct lockstep_solver *solver;
    const struct lockstep_train_options *options;
    struct lockstep_trainer *trainer; /* rank 0 makes it before the others begin */
    const int *cards;                 /* by rank, or NULL */
};

/* For what rank 0 says: the cards of all ranks. */
static int note_cards(const struct creation *creation, struct ls_trainer *rank,
                      struct ls_error *error)
{
    const struct ls_rank_threads *threads = creation->trainer->threads;
    if (threads == NULL || creation->cards == NULL)
        return 0;
    const size_t count = (size_t)ls_rank_threads_size(threads);
    rank->cards = ls_alloc(count, sizeof *rank->cards);
    if (rank->cards == NULL)
        return ls_fail_memory(error, "a list of cards");
    memcpy(rank->cards, creation->cards, count * sizeof *rank->cards);
    return 0;
}

/* One rank of it: `options` are its own. */
static int join(const struct creation *creation, const struct lockstep_train_options *options,
                struct ls_comm *comm, struct ls_trainer **rank, struct ls_error *error)
{
    bool isa_taken = false;
    int status = offer_isa(creation->solver, options, comm, &isa_taken, error);
    if (status == 0)
        status = ls_comm_agree(comm, prepare(options, error), error);
    if (status == 0)
        status = ls_trainer_join(creation->solver->definition, options, comm, rank, error);
    if (status == 0) {
        (*rank)->numerics.isa_taken = isa_taken;
        status = note_cards(creation, *rank, error);
    }
    if (status == 0)
        status = start(*rank, options, error);
    return status;
}

/* Ranks of one process share its memory; with cards, those that have one card share what may be
 * taken of it, and what is left there. (Each asks before it takes any.) */
static int share_memory(const struct creation *creation, int rank, uint64_t *memory,
                        struct ls_error *error)
{
    const struct ls_device *device;
    const int ranks = ls_rank_threads_size(creation->trainer->threads);
    size_t left;
    uint64_t sharers = 1; /* itself */
    for (int r = 0; r < ranks; r++)
        sharers +=
            r != rank && (creation->cards == NULL || creation->cards[r] == creation->cards[rank]);
    if (*memory > 0) /* 0 is no limit */
        *memory = *memory / sharers > 0 ? *memory / sharers : 1;
    LS_TRY(ls_device_find(creation->options->device, &device, error));
    if (creation->cards == NULL || sharers < 2 || device->memory->left == NULL)
        return 0;
    LS_TRY(device->memory->left(&left, error));
    if (*memory == 0 || left / sharers < *memory)
        *memory = left / sharers > 0 ? left / sharers : 1;
    return 0;
}

/* Only rank 0 is asked and told anything. */
static int join_rank(void *user, int rank, struct ls_error *error)
{
    const struct creation *creation = user;
    struct lockstep_trainer *trainer = creation->trainer;
    struct lockstep_train_options mine = *creation->options;
    struct ls_comm *comm = trainer->alone != NULL ? trainer->alone : ls_job_comm(mine.job);
    if (trainer->threads != NULL)
        comm = ls_rank_threads_comm(trainer->threads, rank);
    LS_ASSERT(comm != NULL);
    LS_TRY(share_memory(creation, rank, &mine.memory, error));
    if (rank > 0)
        mine.callbacks = (struct lockstep_callbacks){.user = NULL};
    return join(creation, &mine, comm, &trainer->ranks[rank], error);
}

/* As many workers as the process has cores for; a card needs one, which gives it its work. */
static int usual_workers(const struct lockstep_train_options *options, int ranks)
{
    const struct ls_device *device;
    if (ls_device_find(options->device, &device, NULL) == 0 && !device->memory->host_memory)
        return 1;
    const int workers = lockstep_job_workers(options->job) / ranks;
    return workers > 1 ? workers : 1;
}

static int make_ranks(struct lockstep_trainer *trainer,
                      const struct lockstep_train_options *options, int ranks, const int *cards,
                      struct ls_error *error)
{
    if (ranks > LS_RANK_THREADS_MAX)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "a process trains on at most %d cards, not on %d", LS_RANK_THREADS_MAX,
                       ranks);
    if (ranks > 1 && options->job != NULL)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "start as many processes as there are cards",
                       "each process of a job trains on one card, not on %d", ranks);
    trainer->ranks = ls_alloc((size_t)ranks, sizeof(struct ls_trainer *));
    if (trainer->ranks == NULL)
        return ls_fail_memory(error, "a trainer");
    if (ranks > 1)
        return ls_rank_threads_create(ranks, cards, &trainer->threads, error);
    return options->job == NULL ? ls_comm_create_alone(&trainer->alone, error) : 0;
}

static struct lockstep_trainer *new_trainer(const struct lockstep_solver *solver,
                                            const struct lockstep_train_options *options)
{
    struct lockstep_trainer *trainer = ls_alloc(1, sizeof *trainer);
    if (trainer == NULL)
        return NULL;
    trainer->solver = (struct lockstep_solver *)solver;
    atomic_fetch_add(&trainer->solver->references, 1);
    trainer->callbacks = options->callbacks;
    trainer->job = options->job;
    return trainer;
}

int ls_api_trainer_create(const struct lockstep_solver *solver,
                          const struct lockstep_train_options *options, int ranks, const int *cards,
                          struct lockstep_trainer **out, struct ls_error *error)
{
    struct lockstep_train_options mine = *options;
    struct lockstep_trainer *trainer = new_trainer(solver, options);
    *out = NULL;
    if (trainer == NULL)
        return ls_fail_memory(error, "a trainer");
    mine.callbacks = ls_caller_callbacks(&trainer->callbacks);
    if (mine.workers == 0)
        mine.workers = usual_workers(options, ranks);
    struct creation creation = {solver, &mine, trainer, cards};
    trainer->card = cards != NULL ? cards[0] : -1;
    place_status(solver, options);
    int status = make_ranks(trainer, options, ranks, cards, error);
    if (status == 0)
        status = ls_api_all_ranks(trainer, join_rank, &creation, error);
    trainer->inner = status == 0 ? trainer->ranks[0] : NULL;
    if (status != 0)
        lockstep_trainer_free(trainer);
    else
        *out = trainer;
    return status;
}

int lockstep_trainer_create(const struct lockstep_solver *solver,
                            const struct lockstep_train_options *options,
                            struct lockstep_trainer **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_train_options mine;
    *out = NULL;
    LS_TRY(ls_api_require(solver, "solver", inner));
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_train_options_init", inner));
    struct ls_api_cards cards;
    char name[LS_API_DEVICE_ROOM];
    if (lockstep_job_size(mine.job) == 1)
        mine.device = ls_api_solver_device(solver, mine.device, name);
    int status = ls_api_cards(mine.device, &cards, inner);
    if (mine.job != NULL) {
        status = ls_comm_agree(ls_job_comm(mine.job), status, inner);
        if (status == 0)
            status = ls_api_cards_of_job(mine.job, &cards, inner);
    }
    LS_TRY(status);
    return ls_api_trainer_create(solver, &mine, cards.count > 1 ? cards.count : 1,
                                 cards.count > 0 ? cards.card : NULL, out, inner);
}

static int free_rank(void *user, int rank, struct ls_error *error)
{
    struct lockstep_trainer *trainer = user;
    (void)error;
    ls_trainer_free(trainer->ranks[rank]);
    return 0;
}

void lockstep_trainer_free(struct lockstep_trainer *trainer)
{
    if (trainer == NULL)
        return;
    if (trainer->threads != NULL)
        (void)ls_rank_threads_run(trainer->threads, free_rank, trainer, NULL);
    else if (trainer->ranks != NULL)
        ls_trainer_free(trainer->ranks[0]);
    ls_rank_threads_free(trainer->threads);
    ls_comm_end(trainer->alone);
    lockstep_solver_free(trainer->solver);
    ls_free((void *)trainer->ranks);
    ls_free(trainer);
}

/* What a call of the interface asks of each rank's trainer. */
struct request {
    struct lockstep_trainer *trainer;
    int64_t count;    /* of updates */
    uint64_t hash;    /* of rank 0 */
    int index;        /* of a test */
    const char *path; /* of a snapshot */
};

static int run_rank(void *user, int rank, struct ls_error *error)
{
    const struct request *request = user;
    struct ls_trainer *trainer = request->trainer->ranks[rank];
    const int status = ls_trainer_run(trainer, request->count, error);
    ls_detector_note(trainer->comm->detector, trainer->iteration, NULL);
    return status;
}

int lockstep_trainer_run(struct lockstep_trainer *trainer, int64_t iterations,
                         struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct request request = {.trainer = trainer, .count = iterations};
    return ls_api_all_ranks(trainer, run_rank, &request, ls_api_error(error));
}

static int step_rank(void *user, int rank, struct ls_error *error)
{
    const struct request *request = user;
    struct ls_trainer *trainer = request->trainer->ranks[rank];
    int status = ls_trainer_check_averages(trainer, error);
    ls_thread_pool_enter(trainer->engine->pool); /* once, not around every update */
    for (int64_t i = 0; i < request->count && status == 0; i++)
        status = ls_trainer_update(trainer, error);
    ls_thread_pool_leave(trainer->engine->pool);
    return status;
}

int lockstep_trainer_step(struct lockstep_trainer *trainer, int64_t count,
                          struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct request request = {.trainer = trainer, .count = count};
    return ls_api_all_ranks(trainer, step_rank, &request, ls_api_error(error));
}

static int hash_rank(void *user, int rank, struct ls_error *error)
{
    struct request *request = user;
    struct ls_engine *engine = request->trainer->ranks[rank]->engine;
    uint64_t hash = 0;
    ls_thread_pool_enter(engine->pool);
    const int status = ls_compare_hash(engine, &hash, error);
    ls_thread_pool_leave(engine->pool);
    if (rank == 0)
        request->hash = hash;
    return status;
}

int lockstep_trainer_hash(struct lockstep_trainer *trainer, uint64_t *hash,
                          struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct request request = {.trainer = trainer};
    const int status = ls_api_all_ranks(trainer, hash_rank, &request, ls_api_error(error));
    *hash = request.hash;
    return status;
}

int64_t lockstep_trainer_chain(const struct lockstep_trainer *trainer, uint64_t *weights,
                               uint64_t *chain, int64_t *begin)
{
    const struct ls_chain *inner = &trainer->inner->chain;
    if (weights != NULL)
        *weights = inner->weights;
    if (begin != NULL)
        *begin = inner->begin;
    *chain = inner->value;
    return inner->linked;
}

int64_t lockstep_trainer_iteration(const struct lockstep_trainer *trainer)
{
    return trainer->inner->iteration;
}

int64_t lockstep_trainer_iteration_end(const struct lockstep_trainer *trainer)
{
    return trainer->inner->schedule.max_iter;
}

double lockstep_trainer_loss(const struct lockstep_trainer *trainer)
{
    return trainer->inner->figures.loss;
}

static int evaluate_rank(void *user, int rank, struct ls_error *error)
{
    const struct request *request = user;
    int64_t samples = 0;
    return ls_trainer_evaluate(request->trainer->ranks[rank], (size_t)request->index, &samples,
                               error);
}

int lockstep_trainer_evaluate(struct lockstep_trainer *trainer, int index,
                              const struct lockstep_output **outputs, size_t *count,
                              struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct request request = {.trainer = trainer, .index = index};
    *outputs = NULL;
    *count = 0;
    if (index < 0 || (size_t)index >= trainer->inner->test_count)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "there is no test net %d (of %zu)", index,
                       trainer->inner->test_count);
    LS_TRY(ls_api_all_ranks(trainer, evaluate_rank, &request, inner));
    *outputs = trainer->inner->figures.outputs.items;
    *count = trainer->inner->figures.outputs.count;
    return 0;
}

size_t lockstep_trainer_test_count(const struct lockstep_trainer *trainer)
{
    return trainer->inner->test_count;
}

static int snapshot_rank(void *user, int rank, struct ls_error *error)
{
    const struct request *request = user;
    struct ls_trainer *trainer = request->trainer->ranks[rank];
    return request->path != NULL ? ls_trainer_write(trainer, request->path, error)
                                 : ls_snapshots_take(trainer, true, error);
}

int lockstep_trainer_snapshot(struct lockstep_trainer *trainer, const char *path,
                              struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct request request = {.trainer = trainer, .path = path};
    return ls_api_all_ranks(trainer, snapshot_rank, &request, ls_api_error(error));
}

void lockstep_trainer_micro_batches(const struct lockstep_trainer *trainer, int64_t *counts,
                                    int workers)
{
    const struct ls_engine *engine = trainer->inner->engine;
    for (int i = 0; i < workers; i++)
        counts[i] = i < engine->workers ? engine->micro_batches[i] : 0;
}
