/* The start of a run: what matters about it, in a few lines, and warnings about what is probably
 * not meant. SPDX-License-Identifier: BSD-2-Clause */
#include "solver/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/units.h"
#include "data/cache.h"
#include "engine/ignored.h"
#include "engine/residents.h"
#include "ir/layer.h"
#include "solver/caffe_files.h"
#include "solver/card.h"
#include "solver/checkpoint.h"
#include "solver/environment.h"
#include "solver/events.h"
#include "solver/fit.h"
#include "solver/history.h"
#include "solver/masks.h"
#include "solver/state.h"
#include "solver/trainer.h"
#include "solver/write_time.h"
#include "transport/comm.h"

#define SAY(...)  ls_events_say(trainer, LOCKSTEP_EVENT_START, __VA_ARGS__)
#define WARN(...) ls_events_say(trainer, LOCKSTEP_EVENT_WARNING, __VA_ARGS__)

static long long ll(int64_t number)
{
    return (long long)number;
}

/* Where workers wait for each other inside the net. */
static void report_sync_points(struct ls_trainer *trainer)
{
    size_t points = ls_net_first_plan(trainer->train)->sync_cuts;
    if (points > 0)
        SAY("Sync points inside the net: %zu (there the micro-batches of a batch wait for each "
            "other, and merge their batch statistics)",
            points);
}

/* Returns how many there are on all ranks. */
static int report_workers(struct ls_trainer *trainer, int64_t useful)
{
    const struct ls_comm *comm = trainer->comm;
    int workers = trainer->engine->workers;
    if (comm->size == 1) {
        SAY("Workers: %d (up to %lld are useful; the result is the same on any number)", workers,
            ll(useful));
        return workers;
    }
    workers = comm->first[comm->size];
    SAY("Workers: %d on %d ranks (up to %lld are useful; the result is the same on any number)",
        workers, comm->size, ll(useful));
    if (trainer->engine->workers > ls_cpu_count())
        WARN("rank 0 has %d workers on %d core%s: a launcher may have bound it there ('mpirun "
             "--bind-to none' does not)",
             trainer->engine->workers, ls_cpu_count(), ls_cpu_count() > 1 ? "s" : "");
    return workers;
}

static void report_batch(struct ls_trainer *trainer)
{
    const struct ls_batching *batching = &trainer->train->batching;
    int64_t n = ls_batching_most(batching, batching->batch);
    int64_t useful = n * batching->iter_size;
    bool varying = batching->size_of != NULL;
    int64_t largest = ls_batching_largest(batching);
    largest = largest < batching->batch ? largest : batching->batch;
    SAY("Batch %lld%s, cut into %s%lld micro-batch%s of at most %lld sample%s%s",
        ll(batching->batch), batching->iter_size > 1 ? " (one of several in an update)" : "",
        varying ? "at most " : "", ll(n), n == 1 ? "" : "es", ll(largest), largest == 1 ? "" : "s",
        varying                            ? " of equal size"
        : batching->group > 0              ? ", along the groups of batch norm"
        : trainer->train->mixer != NULL    ? ""
        : trainer->solver->micro_batch > 0 ? ""
                                           : " (the default; micro_batch sets it)");
    if (trainer->train->mixer != NULL)
        SAY("Layer '%s' (%s) mixes the samples of a batch, so that a batch is one micro-batch, "
            "which "
            "one worker computes; iter_size gives others work",
            ls_net_mixer_name(trainer->train), trainer->train->mixer->type);
    report_sync_points(trainer);
    if (batching->iter_size > 1)
        SAY("iter_size %d: an update sees %lld samples", batching->iter_size,
            ll(batching->batch * batching->iter_size));
    int workers = report_workers(trainer, useful);
    if (workers > useful && trainer->train->mixer != NULL)
        WARN("%d workers share %lld micro-batch%s, so that %lld of them idle", workers, ll(useful),
             useful == 1 ? "" : "es", ll(workers - useful));
    else if (workers > useful)
        WARN("%d workers share %lld micro-batch%s, so that %lld of them idle; %s would use them "
             "(and %s another training)",
             workers, ll(useful), useful == 1 ? "" : "es", ll(workers - useful),
             batching->group > 0 ? "smaller groups of batch norm" : "a smaller micro_batch",
             batching->group > 0 ? "are" : "is");
}

static void report_data(struct ls_trainer *trainer, int64_t end)
{
    const struct ls_batching *batching = &trainer->train->batching;
    if (batching->samples == INT64_MAX) {
        SAY("%s", trainer->definition->train.dummy
                      ? "Random training data: an epoch counts as one iteration"
                      : "Training data without end");
        return;
    }
    double per_epoch = ls_batching_updates_per_epoch(batching);
    SAY("Training data: %lld samples, %.6g iterations an epoch; %lld iterations are %.4g epochs",
        ll(batching->samples), per_epoch, ll(end), (double)end / per_epoch);
    if (batching->batch > batching->samples)
        WARN("the batch (%lld) is larger than the training data (%lld samples)",
             ll(batching->batch), ll(batching->samples));
    if ((double)(end + 1) <= per_epoch &&  /* not one epoch in whole updates */
        end >= trainer->schedule.max_iter) /* nor what is cut on purpose */
        WARN("%lld iterations are less than an epoch (%.6g): not all training data will be seen",
             ll(end), per_epoch);
    if (batching->last == LS_LAST_DROP && batching->samples % batching->batch != 0)
        WARN("last_batch: DROP leaves out %lld samples of every epoch",
             ll(batching->samples % batching->batch));
}

/* Whether an earlier data set of the trainer has the same cache. */
static bool cache_is_known(const struct ls_trainer *trainer, const struct ls_net *net, int dataset)
{
    const struct ls_cache *cache = ls_dataset_cache(net->datasets[dataset]);
    for (size_t i = 0; i <= trainer->test_count; i++) {
        const struct ls_net *other = i == 0 ? trainer->train : trainer->tests[i - 1].net;
        for (int d = 0; d < other->dataset_count; d++) {
            if (other == net && d == dataset)
                return false;
            if (ls_dataset_cache(other->datasets[d]) == cache)
                return true;
        }
    }
    return false;
}

static void report_caches(struct ls_trainer *trainer, const struct ls_net *net)
{
    for (int d = 0; d < net->dataset_count; d++) {
        const struct ls_dataset *dataset = net->datasets[d];
        const struct ls_cache *cache = ls_dataset_cache(dataset);
        if (cache == NULL || cache_is_known(trainer, net, d))
            continue;
        char bytes[LS_UNITS_ROOM];
        SAY("Cache of layer '%s': room for %lld records, %s%s", net->shapes[d].layer,
            ll(ls_cache_records(cache)), ls_format_size(bytes, (double)ls_cache_bytes(cache)),
            ls_cache_full(cache) ? "; the others are decoded each time" : "");
    }
}

/* How the data of a net get to a device with memory of its own. */
static void report_residents(struct ls_trainer *trainer, const struct ls_net *net)
{
    for (int d = 0; net->residents != NULL && d < net->dataset_count; d++) {
        char bytes[LS_UNITS_ROOM];
        const char *why;
        if (ls_residents_has(net, d, &why))
            SAY("Data of layer '%s' in the device's memory: %lld records, %s", net->shapes[d].layer,
                ll(ls_dataset_size(net->datasets[d])),
                ls_format_size(bytes, (double)ls_residents_dataset_bytes(net, d)));
        else if (why != NULL)
            SAY("Data of layer '%s' are copied to the device for each micro-batch, because %s",
                net->shapes[d].layer, why);
    }
}

/* Folders of classes are read class by class: batches of one class only teach little. */
static void warn_of_order(struct ls_trainer *trainer)
{
    for (int i = 0; i < trainer->train->dataset_count; i++) {
        const Lockstep__LayerParameter *layer = trainer->train->data_layers[i];
        const Lockstep__DataParameter *data = layer->data_param;
        if (data != NULL && data->backend == LOCKSTEP__DATA_PARAMETER__DB__IMAGES && !data->shuffle)
            WARN("layer '%s' reads the pictures in the order of the source, class by class for a "
                 "folder; shuffle: true mixes them",
                 layer->name);
    }
}

/* What Caffe has no state for. */
static const char *missing_in_caffe(const struct ls_trainer *trainer)
{
    const struct ls_group *beyond = ls_groups_beyond_caffe(trainer->groups);
    if (beyond == NULL)
        return "averages of weights";
    return beyond->kind > LS_UPDATE_ADAM ? beyond->type : "groups of several types of solvers";
}

static void report_groups(struct ls_trainer *trainer)
{
    const struct ls_groups *groups = trainer->groups;
    for (size_t g = 0; groups->count > 1 && g < groups->count; g++) {
        const struct ls_group *group = &groups->group[g];
        SAY("Parameters of %s: %zu, by %s, rate x %.6g, weight decay %.6g", group->name,
            group->parameters, group->type, group->rate * (double)group->lr_mult,
            (double)group->decay * (double)group->decay_mult);
    }
}

static void report_warning(void *user, const char *sentence)
{
    struct ls_trainer *trainer = user;
    WARN("%s", sentence);
}

static void report_rate(struct ls_trainer *trainer)
{
    const struct ls_schedule *schedule = &trainer->schedule;
    const Lockstep__SolverParameter *solver = trainer->solver;
    char rate[32];
    ls_format_float(rate, (float)schedule->base_lr);
    SAY("Solver: %s, base_lr %s, lr_policy \"%s\"", solver->type != NULL ? solver->type : "SGD",
        rate, solver->lr_policy != NULL ? solver->lr_policy : "fixed");
    if (schedule->lr_scale != 1)
        SAY("base_lr is %.6g times the solver's, for a batch of %lld instead of %d",
            schedule->lr_scale,
            ll(trainer->train->batching.batch * trainer->train->batching.iter_size),
            solver->base_batch_size);
    if (schedule->warmup > 0 && schedule->warmup_rate >= 0)
        SAY("Warm-up over %lld iterations, from the rate %.6g", ll(schedule->warmup),
            schedule->warmup_rate);
    else if (schedule->warmup > 0)
        SAY("Warm-up over %lld iterations, from %.6g of the rate", ll(schedule->warmup),
            schedule->warmup_start);
    ls_schedule_tell_odd(schedule, report_warning, trainer);
    if (ls_caffe_files_wanted(trainer) && !ls_caffe_files_have_state(trainer))
        SAY("Caffe has no %s: its weights are written, but no .solverstate",
            missing_in_caffe(trainer));
    report_groups(trainer);
    if (!solver->has_random_seed || solver->random_seed < 0)
        SAY("Random seed 1 (none is given)");
    else
        SAY("Random seed %llu", (unsigned long long)trainer->seed);
}

static void report_model(struct ls_trainer *trainer)
{
    int64_t learned = 0, fixed = 0;
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        const struct ls_parameter *parameter = trainer->parameters->items[i];
        int64_t size = ls_shape_size(&parameter->shape);
        if (parameter->trained)
            learned += size - (parameter->mask != NULL ? parameter->mask->masked : 0);
        else
            fixed += size;
        if (!parameter->trained && parameter->lr_mult != 0)
            WARN("no loss reaches parameter '%s': it will not change", parameter->name);
    }
    const struct ls_plan *plan = ls_net_first_plan(trainer->train);
    struct ls_cost cost;
    ls_graph_cost(plan->graph, &cost);
    char held[80] = "", arena[LS_UNITS_ROOM], flops[LS_UNITS_ROOM];
    if (plan->stashed_bytes > 0)
        snprintf(held, sizeof held, " and %s for each of %d micro-batches",
                 ls_format_size(arena, (double)plan->stashed_bytes), trainer->engine->room.slots);
    char masked[60] = "";
    if (ls_masks_count(trainer->parameters) > 0)
        snprintf(masked, sizeof masked, ", %lld masked (zero)",
                 ll(ls_masks_count(trainer->parameters)));
    SAY("Parameters: %lld learned, %lld fixed%s; activations: %s a worker%s; to train: %s a sample",
        ll(learned), ll(fixed), masked,
        ls_format_size(arena, (double)ls_room_arena(&trainer->engine->room, trainer->workers)),
        held,
        ls_format_flops(
            flops, (cost.forward_flops + cost.backward_data_flops + cost.backward_weights_flops) /
                       (double)plan->graph->samples));
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct ls_prepared *prepared = &plan->steps[i].prepared;
        if (prepared->slow)
            WARN("%s of layer '%s' has only a slow kernel here (%s)",
                 ls_op_kind_name(prepared->op->kind),
                 prepared->op->layer != NULL ? prepared->op->layer->name : "?",
                 prepared->implementation);
    }
}

enum { SECONDS_GIVEN = 30 }; /* by schedulers, between a signal and the end */

static void report_snapshots(struct ls_trainer *trainer)
{
    char bytes[LS_UNITS_ROOM], time[LS_UNITS_ROOM];
    ls_format_size(bytes, (double)ls_checkpoint_bytes(trainer));
    if (ls_fit_takes_snapshots(trainer) && !trainer->forecast.copies)
        SAY("Training waits while snapshots are written: a copy to write from, %s, does not fit "
            "the limit on memory",
            bytes);
    double seconds = ls_expected_write_time(trainer->prefix, ls_checkpoint_bytes(trainer));
    if (seconds > SECONDS_GIVEN)
        WARN("a snapshot of %s is expected to take about %s here: schedulers give %d s between a "
             "signal and the end, unless they are set to give more",
             bytes, ls_format_seconds(time, seconds), SECONDS_GIVEN);
}

static void say_precision(struct ls_trainer *trainer, const char *precision, size_t layers,
                          size_t computing)
{
    char some[60] = "";
    if (layers < computing)
        snprintf(some, sizeof some, " in %zu of %zu layers", layers, computing);
    if (layers > 0)
        SAY("Precision: %s%s", precision, some);
}

static void report_precision(struct ls_trainer *trainer)
{
    const struct ls_graph *graph = ls_net_graph(trainer->train);
    const struct ls_precision_counts counts = ls_graph_count_precisions(graph);
    say_precision(trainer, "BF16", counts.bf16, counts.computing);
    say_precision(trainer, "TF32", counts.tf32, counts.computing);
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        if (layer->definition->has_precision && !layer->rounds)
            WARN("layer '%s': precision changes nothing, because this %s layer rounds nothing",
                 layer->name, layer->type->type);
    }
}

/* What the bits depend on besides definition, data and seed, and what they have depended on. */
static void report_environment(struct ls_trainer *trainer)
{
    enum { SHOWN = 4 };
    const char *names[SHOWN];
    size_t layers = ls_environment_layers(trainer->train, names, SHOWN);
    const struct ls_device *device = trainer->engine->device;
    const bool chosen = device->select_isa != NULL; /* an instruction set is in use */
    struct ls_text history = {0};
    char list[400] = "", more[40] = "";
    for (size_t i = 0, length = 0; i < layers && i < SHOWN; i++, length = strlen(list))
        snprintf(list + length, sizeof list - length, "%s%.90s", i > 0 ? ", " : "", names[i]);
    if (layers > SHOWN)
        snprintf(more, sizeof more, " and %zu more", layers - SHOWN);
    if (layers > 0)
        SAY("Bits depend on %s%s%s%s through %zu layer%s: %s%s", device->environment->library,
            chosen ? " (" : "", chosen ? device->environment->isa() : "", chosen ? " here)" : "",
            layers, layers == 1 ? "" : "s", list, more);
    else if (device->environment->library == NULL || chosen)
        SAY("Bits depend neither on oneDNN's version nor on the CPU's type");
    else
        SAY("Bits do not depend on %s", device->environment->library);
    ls_environment_say_history(trainer->numerics.history, &history);
    if (history.length > 0)
        SAY("Numeric environments of this training: %s", history.data);
    ls_text_free(&history);
}

/* What is foreseen, and what a limit costs. */
static void report_memory(struct ls_trainer *trainer)
{
    size_t total = ls_forecast_total(&trainer->forecast), recomputations = 0;
    double part = 0;
    for (size_t i = 0; i < trainer->train->plan_count; i++) {
        const struct ls_plan *plan = trainer->train->plans[i]->plan;
        if (plan->recomputations > recomputations && plan->work > 0) {
            recomputations = plan->recomputations;
            part = plan->recompute_work / plan->work;
        }
    }
    char all[LS_UNITS_ROOM], most[LS_UNITS_ROOM];
    ls_format_size(all, (double)total);
    ls_format_size(most, (double)trainer->forecast.limit);
    const char *whose = trainer->forecast.contained ? " that this container has for it" : "";
    if (trainer->forecast.limit == 0)
        SAY("Memory: about %s in all ('lockstep plan' says for what)", all);
    else if (recomputations == 0)
        SAY("Memory: about %s in all, of at most %s%s", all, most, whose);
    else
        SAY("Memory: about %s in all, of at most %s%s; %zu steps are recomputed in the backward "
            "pass, about %.1f %% more work",
            all, most, whose, recomputations, 100 * part);
}

/* Which workers recompute audited micro-batches. */
static void report_audits(struct ls_trainer *trainer)
{
    bool several = trainer->comm->size > 1;
    if (!(trainer->audited_part > 0))
        return;
    SAY("Audits: %g %% of the micro-batches are computed a second time, by %s",
        100 * trainer->audited_part,
        several                ? "another rank"
        : trainer->workers > 1 ? "another worker"
                               : "the same worker, for there is no other: what goes wrong now and "
                                 "then is found, but no core that is always wrong");
}

static void report_tests(struct ls_trainer *trainer)
{
    for (size_t i = 0; i < trainer->test_count; i++) {
        const struct ls_batching *batching = &trainer->tests[i].net->batching;
        int64_t seen = trainer->tests[i].batches * batching->batch;
        bool on_train = trainer->train_test.there && i == trainer->test_count - 1;
        if (batching->samples == INT64_MAX)
            continue;
        if (on_train)
            SAY("Test on the first %lld training samples, un-augmented", ll(batching->samples));
        else
            SAY("Test data #%zu: %lld samples, in batches of %lld", i, ll(batching->samples),
                ll(batching->batch));
        if (!on_train && trainer->definition->test[i].test_iter > 0 && seen != batching->samples)
            WARN("test net #%zu: test_iter %d x batch %lld = %lld samples, but the test data have "
                 "%lld; without test_iter every sample is tested once",
                 i, trainer->definition->test[i].test_iter, ll(batching->batch), ll(seen),
                 ll(batching->samples));
    }
}

static int fail_best(const struct ls_trainer *trainer, const char *hint, const char *problem,
                     struct ls_error *error)
{
    char place[320];
    ls_place(trainer->definition->definition, trainer->solver, "snapshot_best", place,
             sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "snapshot_best: %s", problem);
}

/* An output with more figures than one has no best, nor one of which no layer says which way it is
 * better. */
static int check_figure(const struct ls_trainer *trainer, const struct ls_metric *metric,
                        struct ls_error *error)
{
    char problem[400];
    if (metric->entries == 1 &&
        (metric->better != LS_BETTER_UNKNOWN || trainer->solver->has_snapshot_best_mode))
        return 0;
    if (metric->entries == 1) {
        snprintf(problem, sizeof problem,
                 "whether a larger or a smaller '%.200s' is better is not known", metric->name);
        return fail_best(trainer, "write snapshot_best_mode: MAX or snapshot_best_mode: MIN",
                         problem, error);
    }
    snprintf(problem, sizeof problem, "output '%.200s' has %d values, and none of them counts",
             metric->name, metric->entries);
    return fail_best(trainer, "name an output with one value, such as the mean of these", problem,
                     error);
}

/* snapshot_best must name a figure of the first test net. */
static int check_best(struct ls_trainer *trainer, struct ls_error *error)
{
    const char *wanted = trainer->solver->snapshot_best;
    if (wanted == NULL || wanted[0] == '\0')
        return 0;
    const char *names[64];
    size_t count = 0;
    if (trainer->definition->test_count > 0) {
        const struct ls_graph *graph = ls_net_graph(trainer->tests[0].net);
        for (size_t i = 0; i < graph->metric_count; i++) {
            const struct ls_metric *metric = &graph->metrics[i];
            if (metric->is_output && strcmp(metric->name, wanted) == 0)
                return check_figure(trainer, metric, error);
            if (metric->is_output && metric->entries == 1 && count < 64)
                names[count++] = metric->name;
        }
    }
    const char *near = ls_suggest(wanted, names, count);
    char hint[300] = "name an output of the first test net, such as \"accuracy\"", problem[400];
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean '%s'?", near);
    snprintf(problem, sizeof problem, "the first test net has no output '%.300s'", wanted);
    return fail_best(trainer, hint, problem, error);
}

/* The name of the trained net; without one, that of the solver's file, without its folder and what
 * follows the dot. */
static int name_net(const struct ls_trainer *trainer, struct ls_text *name, struct ls_error *error)
{
    const char *own = trainer->definition->train.net->name,
               *file = trainer->definition->definition->file;
    const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file;
    if (own != NULL && *own != '\0')
        ls_text_add(name, own);
    else
        ls_text_add_bytes(name, base, strcspn(base, "."));
    return name->failed ? ls_fail_memory(error, "a name") : 0;
}

/* The same as figures. */
static int report_facts(struct ls_trainer *trainer, int64_t end, struct ls_error *error)
{
    const struct ls_schedule *schedule = &trainer->schedule;
    const struct ls_batching *batching = &trainer->train->batching;
    const struct ls_plan *plan = ls_net_first_plan(trainer->train);
    const struct ls_comm *comm = trainer->comm;
    bool endless = batching->samples == INT64_MAX;
    struct ls_cost cost;
    struct ls_text definition = {0}, net = {0};
    int status = ls_state_definition(trainer, &definition, error);
    if (status == 0)
        status = name_net(trainer, &net, error);
    ls_graph_cost(plan->graph, &cost);
    struct lockstep_run run = {
        .version = LOCKSTEP_VERSION,
        .environment = trainer->numerics.environment,
        .solver = trainer->solver->type != NULL ? trainer->solver->type : "SGD",
        .lr_policy = trainer->solver->lr_policy != NULL ? trainer->solver->lr_policy : "fixed",
        .base_lr = schedule->base_lr,
        .seed = trainer->seed,
        .first_iteration = trainer->iteration,
        .iteration_end = end,
        .max_iter = schedule->max_iter,
        .display = schedule->display,
        .test_interval = schedule->test_interval,
        .snapshot_interval = schedule->snapshot_interval,
        .batch = batching->batch,
        .iter_size = batching->iter_size,
        .micro_batches = ls_batching_most(batching, batching->batch),
        .micro_batch = ls_batching_largest(batching),
        .samples = endless ? 0 : batching->samples,
        .iterations_per_epoch = endless ? 0 : ls_batching_updates_per_epoch(batching),
        .ranks = comm->size,
        .workers = comm->first[comm->size],
        .flops_per_sample =
            (cost.forward_flops + cost.backward_data_flops + cost.backward_weights_flops) /
            (double)plan->graph->samples,
        .memory = ls_forecast_total(&trainer->forecast),
        .memory_limit = trainer->forecast.limit,
        .definition = definition.data != NULL ? definition.data : "",
        .net = net.data != NULL ? net.data : ""};
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        const struct ls_parameter *parameter = trainer->parameters->items[i];
        *(parameter->trained ? &run.learned : &run.fixed) += ls_shape_size(&parameter->shape);
    }
    struct lockstep_event event = {
        .kind = LOCKSTEP_EVENT_RUN, .iteration_end = end, .penalty = (double)NAN, .run = &run};
    if (status == 0)
        ls_events_send(trainer, &event);
    ls_text_free(&definition);
    ls_text_free(&net);
    return status;
}

/* Parameters that layers do not read. */
static int report_ignored(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_net **nets = ls_alloc(trainer->test_count + 1, sizeof *nets);
    if (nets == NULL)
        return ls_fail_memory(error, "a list of nets");
    nets[0] = trainer->train;
    for (size_t i = 0; i < trainer->test_count; i++)
        nets[i + 1] = trainer->tests[i].net;
    ls_ignored_tell(nets, trainer->test_count + 1, report_warning, trainer);
    ls_free(nets);
    return 0;
}

/* The cards of ranks that are threads of this process. `name` is that of rank 0's. */
static int report_cards(struct ls_trainer *trainer, const char *name, struct ls_error *error)
{
    const struct ls_device_cards *cards = trainer->device->cards;
    struct ls_text list = {0};
    bool same = true;
    for (int rank = 0; rank < trainer->comm->size; rank++) {
        struct ls_card_facts facts;
        const int status = cards->describe(trainer->cards[rank], &facts, error);
        if (status != 0) {
            ls_text_free(&list);
            return status;
        }
        same = same && strcmp(facts.name, name) == 0;
        ls_text_format(&list, "%s%d", rank > 0 ? "," : "", trainer->cards[rank]);
    }
    if (!list.failed)
        SAY("Computing on cards %s (%s%s); %s", list.data, name, same ? "" : " and others",
            cards->tested);
    const int status = list.failed ? ls_fail_memory(error, "a list of cards") : 0;
    ls_text_free(&list);
    return status;
}

/* What has not run on a card is called that. */
static int report_card(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_card_facts facts;
    const struct ls_device_cards *cards = trainer->device->cards;
    const int card = ls_thread_card() > 0 ? ls_thread_card() : 0;
    LS_TRY(cards->describe(card, &facts, error));
    if (trainer->cards != NULL)
        return report_cards(trainer, facts.name, error);
    SAY("Computing on card %d (%s)%s; %s", card, facts.name,
        trainer->comm->size > 1 ? " and those of the other ranks" : "", cards->tested);
    return 0;
}

/* solver_mode is GPU, and the CPU computes. */
static int report_no_card(struct ls_trainer *trainer, struct ls_error *error)
{
    int card;
    struct ls_error *why = ls_alloc(1, sizeof *why);
    if (why == NULL)
        return ls_fail_memory(error, "a message");
    if (ls_solver_card(trainer->definition, &card, why) != 0)
        SAY("solver_mode GPU: using the CPU, because %s", why->problems[0].message);
    else
        SAY("solver_mode GPU: using the CPU, because %s",
            trainer->comm->size > 1 ? "several ranks compute and no cards were named"
                                    : "another device was asked for");
    ls_free(why);
    return 0;
}

int ls_trainer_report_start(struct ls_trainer *trainer, int64_t iterations, struct ls_error *error)
{
    LS_TRY(check_best(trainer, error));
    if (trainer->device->cards != NULL)
        LS_TRY(report_card(trainer, error));
    else if (trainer->definition->gpu_asked)
        LS_TRY(report_no_card(trainer, error));
    LS_TRY(report_facts(trainer, iterations, error));
    report_batch(trainer);
    report_data(trainer, iterations);
    warn_of_order(trainer);
    report_rate(trainer);
    report_model(trainer);
    report_memory(trainer);
    report_audits(trainer);
    if (trainer->statistics != NULL && trainer->schedule.display <= 0)
        WARN("statistics of parameters are found at displays, and the solver has none "
             "(display: 0)");
    if (trainer->comm->rank == 0)
        report_snapshots(trainer);
    report_precision(trainer);
    report_environment(trainer);
    report_tests(trainer);
    report_caches(trainer, trainer->train);
    report_residents(trainer, trainer->train);
    for (size_t i = 0; i < trainer->test_count; i++) {
        report_caches(trainer, trainer->tests[i].net);
        report_residents(trainer, trainer->tests[i].net);
    }
    for (size_t i = 0; i < trainer->definition->warning_count; i++)
        WARN("%s", trainer->definition->warning[i]);
    return report_ignored(trainer, error);
}
