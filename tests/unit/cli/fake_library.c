/* The library's interface, without a library.
 *
 * The model that it knows has three classes, "cat", "dog, \"big\"" and one without a name; it
 * predicts 0.7, 0.2 and 0.1 for every picture, and for sample i the class i % 3. Samples are two
 * by two pixels in grey; there are four of them, labelled 0, 1, 0 and not at all.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_library.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

struct lockstep_error {
    char text[256];
};
struct lockstep_solver {
    int nothing;
};
struct lockstep_trainer {
    struct lockstep_callbacks callbacks;
    int64_t iteration;
};
struct lockstep_job {
    struct lockstep_job_options options;
};
struct lockstep_model {
    struct lockstep_callbacks callbacks;
};

void fake_reset(void)
{
    fake = (struct fake){.message = "net.prototxt:1:1: wrong. hint: right\nand more"};
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    size_t at = strlen(fake.calls);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fake.calls + at, sizeof fake.calls - at, format, arguments);
    va_end(arguments);
}

static const char *text(const char *string)
{
    return string != NULL ? string : "-";
}

static void *make(size_t size)
{
    fake.live_objects++;
    return calloc(1, size);
}

static void unmake(void *object)
{
    fake.live_objects -= object != NULL;
    free(object);
}

static int answer(int status, struct lockstep_error *error)
{
    if (status != 0 && error != NULL)
        snprintf(error->text, sizeof error->text, "%s", fake.message);
    return status;
}

static void send_events(const struct lockstep_callbacks *callbacks)
{
    for (size_t i = 0; i < fake.event_count && callbacks->event != NULL; i++)
        callbacks->event(callbacks->user, &fake.events[i]);
}

struct lockstep_error *lockstep_error_new(void)
{
    return make(sizeof(struct lockstep_error));
}

void lockstep_error_free(struct lockstep_error *error)
{
    unmake(error);
}

const char *lockstep_error_text(struct lockstep_error *error)
{
    return error->text;
}

const char *lockstep_version(void)
{
    return "1.2.3";
}

const char *lockstep_build_info(void)
{
    return "built on nothing";
}

void lockstep_job_options_init(struct lockstep_job_options *options)
{
    *options = (struct lockstep_job_options){.struct_size = sizeof *options, .timeout = 300};
}

int lockstep_job_launched(int *rank)
{
    if (rank != NULL)
        *rank = fake.rank;
    return fake.ranks > 1 ? fake.ranks : 1;
}

int lockstep_job_open(const struct lockstep_job_options *options, struct lockstep_job **job,
                      struct lockstep_error *error)
{
    *job = NULL;
    if (fake.ranks > 1 && fake.job_status == 0) {
        note("job(%g|%d|%s) ", options->timeout, options->dynamic_balance,
             text(options->status_file));
        *job = make(sizeof **job);
        (*job)->options = *options;
    }
    return answer(fake.job_status, error);
}

int lockstep_job_rank(const struct lockstep_job *job)
{
    return job != NULL ? fake.rank : 0;
}

int lockstep_job_size(const struct lockstep_job *job)
{
    return job != NULL ? fake.ranks : 1;
}

int lockstep_job_agree(struct lockstep_job *job, int status, struct lockstep_error *error)
{
    if (job == NULL || status != 0)
        return status;
    return answer(fake.agree_status, error);
}

void lockstep_job_poll_soon(struct lockstep_job *job)
{
    fake.looks += job != NULL;
}

int lockstep_job_close(struct lockstep_job *job, int status, struct lockstep_error *error)
{
    (void)error;
    if (job == NULL)
        return status;
    note("close(%d) ", status);
    if (fake.failure != NULL)
        job->options.failed(job->options.user, status, fake.failure);
    unmake(job);
    return status;
}

int lockstep_solver_load(const char *path, const char *const *set, size_t set_count,
                         struct lockstep_solver **solver, struct lockstep_error *error)
{
    note("load(%s", path);
    for (size_t i = 0; i < set_count; i++)
        note("|%s", set[i]);
    note(") ");
    *solver = fake.load_status == 0 ? make(sizeof **solver) : NULL;
    return answer(fake.load_status, error);
}

void lockstep_solver_free(struct lockstep_solver *solver)
{
    unmake(solver);
}

void lockstep_train_options_init(struct lockstep_train_options *options)
{
    *options = (struct lockstep_train_options){.struct_size = sizeof *options};
}

int lockstep_trainer_create(const struct lockstep_solver *solver,
                            const struct lockstep_train_options *options,
                            struct lockstep_trainer **trainer, struct lockstep_error *error)
{
    (void)solver;
    note("create(%d|%s|%s|%s|%s) ", options->workers, text(options->isa),
         text(options->snapshot_prefix), text(options->resume), text(options->weights));
    *trainer = NULL;
    if (fake.create_status == 0) {
        *trainer = make(sizeof **trainer);
        (*trainer)->callbacks = options->callbacks;
    }
    return answer(fake.create_status, error);
}

void lockstep_trainer_free(struct lockstep_trainer *trainer)
{
    unmake(trainer);
}

int lockstep_trainer_run(struct lockstep_trainer *trainer, int64_t iterations,
                         struct lockstep_error *error)
{
    note("run(%" PRId64 ") ", iterations);
    for (int i = 0; fake.signal != 0 && (i == 0 || i < fake.signals); i++)
        raise(fake.signal);
    for (int i = 0; i < fake.polls; i++)
        fake.polled[i] = trainer->callbacks.poll(trainer->callbacks.user);
    send_events(&trainer->callbacks);
    return answer(fake.run_status, error);
}

/* Replays: a trainer whose weights are 7 * iteration, and whose links lie at every second one. */
int lockstep_trainer_step(struct lockstep_trainer *trainer, int64_t count,
                          struct lockstep_error *error)
{
    trainer->iteration += count;
    return answer(fake.run_status, error);
}

int64_t lockstep_trainer_iteration(const struct lockstep_trainer *trainer)
{
    return trainer->iteration;
}

int lockstep_trainer_hash(struct lockstep_trainer *trainer, uint64_t *hash,
                          struct lockstep_error *error)
{
    *hash = 7 * (uint64_t)trainer->iteration;
    return answer(0, error);
}

int64_t lockstep_trainer_chain(const struct lockstep_trainer *trainer, uint64_t *weights,
                               uint64_t *chain, int64_t *begin)
{
    if (weights != NULL)
        *weights = 7 * (uint64_t)trainer->iteration;
    if (begin != NULL)
        *begin = 0;
    *chain = (uint64_t)trainer->iteration;
    return trainer->iteration / 2 * 2;
}

size_t lockstep_trainer_parameter_count(const struct lockstep_trainer *trainer)
{
    (void)trainer;
    return 0;
}

size_t lockstep_trainer_parameter_size(const struct lockstep_trainer *trainer, size_t index)
{
    (void)trainer, (void)index;
    return 0;
}

const char *lockstep_trainer_parameter_name(const struct lockstep_trainer *trainer, size_t index)
{
    (void)trainer, (void)index;
    return NULL;
}

int lockstep_trainer_read_parameter(const struct lockstep_trainer *trainer, size_t index,
                                    float *data, size_t size, struct lockstep_error *error)
{
    (void)trainer, (void)index, (void)data, (void)size;
    return answer(0, error);
}

void lockstep_verify_options_init(struct lockstep_verify_options *options)
{
    *options = (struct lockstep_verify_options){.struct_size = sizeof *options, .iterations = -1};
}

int lockstep_verify(const struct lockstep_solver *solver,
                    const struct lockstep_verify_options *options, struct lockstep_error *error)
{
    (void)solver;
    note("verify(%s|%s|", text(options->isa), text(options->weights));
    for (size_t i = 0; i < options->worker_count; i++)
        note("%dw", options->workers[i]);
    for (size_t i = 0; i < options->rank_count; i++)
        note("%dr", options->ranks[i]);
    for (size_t i = 0; i < options->dynamic_count; i++)
        note("%s", options->dynamic[i] ? "d" : "s");
    for (size_t i = 0; i < options->memory_count; i++)
        note("|%" PRIu64, options->memory[i]);
    note("|%d|%" PRId64 ") ", options->stops, options->iterations);
    send_events(&options->callbacks);
    struct lockstep_verified row = {
        .training = "1 worker", .hash = "abc", .iterations = 20, .seconds = 1.5, .same = 1};
    for (size_t i = 0; i < options->worker_count; i++) {
        options->trained(options->user, &row);
        row.training = "2 workers";
        row.same = fake.verify_status == 0;
    }
    return answer(fake.verify_status, error);
}

void lockstep_model_options_init(struct lockstep_model_options *options)
{
    *options = (struct lockstep_model_options){.struct_size = sizeof *options};
}

int lockstep_model_load(const char *path, const char *weights,
                        const struct lockstep_model_options *options, struct lockstep_model **model,
                        struct lockstep_error *error)
{
    note("model(%s|%s|%d|%d|%" PRId64, path, weights, options->workers, options->level,
         options->iterations);
    for (size_t i = 0; i < options->stage_count; i++)
        note("|%s", options->stages[i]);
    note(") ");
    *model = NULL;
    if (fake.load_status == 0) {
        *model = make(sizeof **model);
        (*model)->callbacks = options->callbacks;
    }
    return answer(fake.load_status, error);
}

void lockstep_model_free(struct lockstep_model *model)
{
    unmake(model);
}

int lockstep_model_test(struct lockstep_model *model, const struct lockstep_output **outputs,
                        size_t *count, int64_t *samples, struct lockstep_error *error)
{
    static const double values[] = {0.75, 0.5};
    static const struct lockstep_output all[] = {{"accuracy", values, 1, 0},
                                                 {"loss", values + 1, 1, 2}};
    bool tested = fake.test_status == 0 || fake.test_status == LOCKSTEP_DIVERGED;
    send_events(&model->callbacks);
    *outputs = tested ? all : NULL;
    *count = tested ? 2 : 0;
    *samples = 10000;
    return answer(fake.test_status, error);
}

size_t lockstep_model_output_positions(const struct lockstep_model *model)
{
    (void)model;
    return 1;
}
size_t lockstep_model_output_size(const struct lockstep_model *model)
{
    (void)model;
    return 3;
}

const char *lockstep_model_class_name(const struct lockstep_model *model, size_t index)
{
    static const char *const names[3] = {"cat", "dog, \"big\"", NULL};
    (void)model;
    return index < 3 ? names[index] : NULL;
}

int lockstep_model_predict_picture(struct lockstep_model *model, const char *path, float *output,
                                   struct lockstep_error *error)
{
    (void)model;
    output[0] = 0.2f;
    output[1] = 0.7f;
    output[2] = 0.1f;
    return answer(strncmp(path, "bad", 3) == 0 ? fake.picture_status : 0, error);
}

int lockstep_model_predict_sample(struct lockstep_model *model, int64_t index, int64_t shape[3],
                                  float *pixels, int *label, float *output,
                                  struct lockstep_error *error)
{
    static const int labels[4] = {0, 1, 0, -1};
    (void)model;
    (void)error;
    shape[0] = 1;
    shape[1] = shape[2] = 2;
    for (int i = 0; pixels != NULL && i < 4; i++)
        pixels[i] = i == index ? 255 : 0;
    *label = labels[index];
    for (int i = 0; i < 3; i++)
        output[i] = i == index % 3 ? 0.9f : 0.05f;
    return 0;
}

int64_t lockstep_model_sample_count(const struct lockstep_model *model)
{
    (void)model;
    return 4;
}

void lockstep_source_options_init(struct lockstep_source_options *options)
{
    *options = (struct lockstep_source_options){.struct_size = sizeof *options};
}

/* ---- Plans ---- */

void lockstep_plan_options_init(struct lockstep_plan_options *options)
{
    *options = (struct lockstep_plan_options){.struct_size = sizeof *options};
}

static const struct lockstep_plan_layer plan_layers[] = {
    {.name = "conv1", .type = "Convolution", .output = 2048, .kept = 1024, .parameters = 100}};
static const struct lockstep_plan_step plan_steps[] = {
    {.layer = "conv1", .op = "convolution", .implementation = "jit:best", .layout = "nChw16c"},
    {.layer = "conv1", .op = "reorder", .implementation = "jit:uni", .reorder = 1},
    {.layer = "conv1", .op = "synchronisation", .implementation = "", .sync = 1},
    {.layer = "conv1", .op = "lrn backward", .implementation = "ref:any", .backward = 1, .slow = 1},
    {.layer = "conv1", .op = "convolution", .implementation = "jit:best", .recomputed = 1},
    {.layer = "norm", .op = "batch norm", .implementation = "own", .chain = 2, .channels = 32},
    {.layer = "sum", .op = "eltwise", .implementation = "own"},
    {.layer = "ip", .op = "inner product", .implementation = "own", .gathered = 1}};
static const struct lockstep_plan_net plan_nets[] = {
    {.name = "train",
     .training = 1,
     .batch = 64,
     .micro_batch = 8,
     .micro_batches = 8,
     .layers = plan_layers,
     .layer_count = 1,
     .steps = plan_steps,
     .step_count = sizeof plan_steps / sizeof *plan_steps,
     .segments = 2,
     .arena = 3 << 20,
     .stashed = 4096,
     .recomputed_part = 0.125},
    {.name = "test", .batch = 10, .micro_batch = 1, .micro_batches = 10, .segments = 1}};

struct lockstep_plan {
    int nothing;
};

static int make_plan(const char *what, const struct lockstep_plan_options *options,
                     struct lockstep_plan **plan, struct lockstep_error *error)
{
    note("plan(%s|%d|%" PRIu64 ") ", what, options->workers, options->memory);
    *plan = fake.create_status == 0 ? make(sizeof **plan) : NULL;
    return answer(fake.create_status, error);
}

int lockstep_plan_training(const struct lockstep_solver *solver,
                           const struct lockstep_plan_options *options, struct lockstep_plan **plan,
                           struct lockstep_error *error)
{
    (void)solver;
    return make_plan("-", options, plan, error);
}

int lockstep_plan_model(const char *path, const struct lockstep_plan_options *options,
                        struct lockstep_plan **plan, struct lockstep_error *error)
{
    return make_plan(path, options, plan, error);
}

void lockstep_plan_free(struct lockstep_plan *plan)
{
    unmake(plan);
}

const struct lockstep_plan_memory *lockstep_plan_memory(const struct lockstep_plan *plan)
{
    static const struct lockstep_plan_memory memory = {
        .workers = 2, .arena = 3 << 20, .stashed = 4096, .stashes = 8, .total = 7 << 20};
    (void)plan;
    return &memory;
}

size_t lockstep_plan_net_count(const struct lockstep_plan *plan)
{
    (void)plan;
    return 2;
}

const struct lockstep_plan_net *lockstep_plan_net(const struct lockstep_plan *plan, size_t index)
{
    (void)plan;
    return &plan_nets[index];
}

int lockstep_plan_largest_batch(struct lockstep_plan *plan, size_t index, uint64_t memory,
                                int64_t *batch, int *bounded, struct lockstep_error *error)
{
    (void)plan;
    (void)memory;
    (void)error;
    *batch = index == 0 ? 208 : 4096;
    *bounded = index == 0;
    return 0;
}

/* ---- Where the time goes ---- */

struct lockstep_timing {
    int nothing;
};

/* ---- Several ranks --------------------------------------------------------------------------- */

struct lockstep_scaling {
    int nothing;
};

void lockstep_scaling_options_init(struct lockstep_scaling_options *options)
{
    *options = (struct lockstep_scaling_options){
        .struct_size = sizeof *options, .bandwidth = 1.25e9, .latency = 20e-6, .message = 1e-6};
}

int lockstep_plan_scaling(const struct lockstep_solver *solver,
                          const struct lockstep_scaling_options *options,
                          struct lockstep_scaling **scaling, struct lockstep_error *error)
{
    (void)solver;
    note("scaling(");
    for (size_t i = 0; i < options->count; i++)
        note("%d|", options->ranks[i]);
    note("%d|%g|%g|%g|%g|%" PRId64 ") ", options->workers, options->bandwidth, options->latency,
         options->message, options->compute, options->iterations);
    *scaling = fake.create_status == 0 ? make(sizeof **scaling) : NULL;
    return answer(fake.create_status, error);
}

void lockstep_scaling_free(struct lockstep_scaling *scaling)
{
    unmake(scaling);
}

const struct lockstep_scaling_total *lockstep_scaling_total(const struct lockstep_scaling *scaling)
{
    static const struct lockstep_scaling_total total = {.workers = 2,
                                                        .batch = 64,
                                                        .micro_batch = 8,
                                                        .micro_batches = 8,
                                                        .samples = 64,
                                                        .iterations = 5,
                                                        .sync_points = 3,
                                                        .useful = 8,
                                                        .fastest = 4,
                                                        .fastest_seconds = 0.025,
                                                        .summed = 1 << 20,
                                                        .bandwidth = 1.25e8,
                                                        .latency = 20e-6,
                                                        .message = 1e-6};
    (void)scaling;
    return &total;
}

const struct lockstep_scaling_row *lockstep_scaling_rows(const struct lockstep_scaling *scaling,
                                                         size_t *count)
{
    static const struct lockstep_scaling_row rows[] = {{.ranks = 2,
                                                        .seconds = 0.04,
                                                        .pass = 0.03,
                                                        .wait_sums = 0.01,
                                                        .efficiency = 0.8,
                                                        .micro_batches = 4,
                                                        .sent = {.sums = 1024, .small = 10},
                                                        .memory = 1 << 20},
                                                       {.ranks = 16,
                                                        .seconds = 0.1,
                                                        .efficiency = 0.1,
                                                        .micro_batches = 1,
                                                        .idle = 8,
                                                        .micro_batch = 2}};
    (void)scaling;
    *count = sizeof rows / sizeof *rows;
    return rows;
}

void lockstep_time_options_init(struct lockstep_time_options *options)
{
    *options = (struct lockstep_time_options){.struct_size = sizeof *options};
}

int lockstep_time(const struct lockstep_solver *solver, const struct lockstep_time_options *options,
                  struct lockstep_timing **timing, struct lockstep_error *error)
{
    (void)solver;
    note("time(%d|%" PRId64 "|%" PRIu64 ") ", options->workers, options->iterations,
         options->memory);
    *timing = fake.create_status == 0 ? make(sizeof **timing) : NULL;
    return answer(fake.create_status, error);
}

void lockstep_timing_free(struct lockstep_timing *timing)
{
    unmake(timing);
}

/* 100 GFLOP/s and 10 GB/s; an iteration of 10 ms with 0.5 GFLOP is half of that. */
const struct lockstep_time_total *lockstep_timing_total(const struct lockstep_timing *timing)
{
    static const struct lockstep_time_total total = {.workers = 2,
                                                     .iterations = 4,
                                                     .batch = 64,
                                                     .micro_batch = 8,
                                                     .samples = 256,
                                                     .seconds = 0.010,
                                                     .fastest = 0.009,
                                                     .median = 0.010,
                                                     .slowest = 0.011,
                                                     .barriers = 0.002,
                                                     .before = {2, 100e9, 10e9},
                                                     .after = {2, 100e9, 10e9}};
    (void)timing;
    return &total;
}

const struct lockstep_time_layer *lockstep_timing_layers(const struct lockstep_timing *timing,
                                                         size_t *count)
{
    static const struct lockstep_time_layer layers[] = {
        {.name = "data", .type = "Data"},
        {"conv1",
         "Convolution",
         {[LOCKSTEP_TIME_FORWARD] = {0.005, 0.3e9, 1e6},
          [LOCKSTEP_TIME_BACKWARD_WEIGHTS] = {0.003, 0.2e9, 1e6}}}};
    (void)timing;
    *count = 2;
    return layers;
}

void lockstep_tune_options_init(struct lockstep_tune_options *options)
{
    *options = (struct lockstep_tune_options){.struct_size = sizeof *options};
}

/* Micro-batches above 16 cannot be; up to 8 each is faster than a smaller one. */
int lockstep_tune(const struct lockstep_solver *solver, const struct lockstep_tune_options *options,
                  struct lockstep_tune_point *points, size_t count, struct lockstep_error *error)
{
    (void)solver;
    note("tune(%g", options->seconds);
    for (size_t i = 0; i < count; i++) {
        struct lockstep_tune_point *point = &points[i];
        note("|%d,%" PRId64 ",%" PRId64, point->workers, point->batch, point->micro_batch);
        point->memory = 1 << 20;
        if (point->micro_batch > 16) {
            point->status = LOCKSTEP_RESOURCE;
            snprintf(point->reason, sizeof point->reason, "too large");
            continue;
        }
        point->median =
            100.0 * point->workers * (double)(point->micro_batch < 8 ? point->micro_batch : 8);
        point->slowest = 0.99 * point->median;
        point->fastest = 1.01 * point->median;
    }
    note(") ");
    return answer(fake.create_status, error);
}

static void note_source(const char *what, const struct lockstep_source_options *source,
                        const char *path)
{
    note("%s(%s|%s|%s|%d|%d|%d|%d|%" PRId64 "|%s", what, source->backend,
         text(source->label_source), text(source->root_folder), source->resize_height,
         source->resize_width, source->gray, source->shuffle, source->seed, text(source->split));
    for (size_t i = 0; i < source->source_count; i++)
        note("|%s", source->source[i]);
    note("|%s) ", path);
    send_events(&source->callbacks);
}

int lockstep_convert(const struct lockstep_source_options *source, const char *path,
                     int64_t *records, struct lockstep_error *error)
{
    note_source("convert", source, path);
    *records = 60000;
    return answer(fake.convert_status, error);
}

int lockstep_diff(const char *first, const char *second, void (*tell)(void *user, const char *line),
                  void *user, struct lockstep_error *error)
{
    (void)error;
    note("diff(%s|%s) ", first, second);
    tell(user, "a line");
    return 0;
}

int lockstep_mean(const struct lockstep_source_options *source, const char *path,
                  double *channel_means, int *channels, struct lockstep_error *error)
{
    note_source("mean", source, path);
    *channels = 2;
    channel_means[0] = 104.5;
    channel_means[1] = 117;
    return answer(fake.convert_status, error);
}

void lockstep_check_options_init(struct lockstep_check_options *options)
{
    *options = (struct lockstep_check_options){.struct_size = sizeof *options};
}

int lockstep_check(const struct lockstep_solver *solver,
                   const struct lockstep_check_options *options, struct lockstep_error *error)
{
    (void)solver, (void)options, (void)error;
    return 0;
}

int lockstep_check_model(const char *path, const struct lockstep_check_options *options,
                         struct lockstep_error *error)
{
    (void)path, (void)options, (void)error;
    return 0;
}
