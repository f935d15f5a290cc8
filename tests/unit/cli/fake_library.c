/* The library's interface, without a library.
 *
 * The model that it knows has three classes, "cat", "dog, \"big\"" and one without a name; it
 * predicts for sample i the class i % 3 (for pictures see fake_inputs.c). Samples are two by two
 * pixels in grey; there are four of them, labelled 0, 1, 0 and not at all.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

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

void fake_note(const char *format, ...)
{
    size_t at = strlen(fake.calls);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fake.calls + at, sizeof fake.calls - at, format, arguments);
    va_end(arguments);
}

void fake_note_device(const char *device)
{
    if (device != NULL)
        fake_note("device(%s) ", device);
}

const char *fake_text(const char *string)
{
    return string != NULL ? string : "-";
}

void *fake_make(size_t size)
{
    fake.live_objects++;
    return calloc(1, size);
}

void fake_unmake(void *object)
{
    fake.live_objects -= object != NULL;
    free(object);
}

int fake_answer(int status, struct lockstep_error *error)
{
    if (status != 0 && error != NULL)
        snprintf(error->text, sizeof error->text, "%s", fake.message);
    return status;
}

void fake_send_events(const struct lockstep_callbacks *callbacks)
{
    for (size_t i = 0; i < fake.event_count && callbacks->event != NULL; i++)
        callbacks->event(callbacks->user, &fake.events[i]);
}

struct lockstep_error *lockstep_error_new(void)
{
    return fake_make(sizeof(struct lockstep_error));
}

void lockstep_error_free(struct lockstep_error *error)
{
    fake_unmake(error);
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
        fake_note("job(%g|%d|%s) ", options->timeout, options->dynamic_balance,
                  fake_text(options->status_file));
        *job = fake_make(sizeof **job);
        (*job)->options = *options;
    }
    return fake_answer(fake.job_status, error);
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
    return fake_answer(fake.agree_status, error);
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
    fake_note("close(%d) ", status);
    if (fake.failure != NULL)
        job->options.failed(job->options.user, status, fake.failure);
    fake_unmake(job);
    return status;
}

int lockstep_solver_load(const char *path, const char *const *set, size_t set_count,
                         struct lockstep_solver **solver, struct lockstep_error *error)
{
    fake_note("load(%s", path);
    for (size_t i = 0; i < set_count; i++)
        fake_note("|%s", set[i]);
    fake_note(") ");
    *solver = fake.load_status == 0 ? fake_make(sizeof **solver) : NULL;
    return fake_answer(fake.load_status, error);
}

void lockstep_dummy_options_init(struct lockstep_dummy_options *options)
{
    *options = (struct lockstep_dummy_options){.struct_size = sizeof *options};
}

void fake_note_dummy(const struct lockstep_dummy_options *options)
{
    if (options == NULL || (!options->all && options->input_count == 0))
        return;
    fake_note("dummy(%d", options->all);
    for (size_t i = 0; i < options->input_count; i++)
        fake_note("|%s", options->inputs[i]);
    fake_note(") ");
    if (options->tell != NULL)
        options->tell(options->user, "layer 'data': random data");
}

int lockstep_solver_use_dummy_data(struct lockstep_solver *solver,
                                   const struct lockstep_dummy_options *options,
                                   struct lockstep_error *error)
{
    (void)solver, (void)error;
    fake_note_dummy(options);
    return 0;
}

int lockstep_model_extract(struct lockstep_model *model, int64_t batches, const char *path,
                           int64_t *records, struct lockstep_error *error)
{
    (void)model;
    fake_note("extract(%d|%s) ", (int)batches, path);
    *records = 10 * batches;
    return fake_answer(fake.convert_status, error);
}

int lockstep_upgrade_net(const char *from, const char *to, int binary, struct lockstep_error *error)
{
    fake_note("upgrade net(%s|%s|%d) ", from, to, binary);
    return fake_answer(fake.convert_status, error);
}

int lockstep_upgrade_solver(const char *from, const char *to, struct lockstep_error *error)
{
    fake_note("upgrade solver(%s|%s) ", from, to);
    return fake_answer(fake.convert_status, error);
}

int lockstep_solver_of_net(const char *path, int level, const char *const *stages,
                           size_t stage_count, struct lockstep_solver **solver,
                           struct lockstep_error *error)
{
    fake_note("net solver(%s|%d|%s) ", path, level, stage_count > 0 ? stages[0] : "-");
    *solver = fake.load_status == 0 ? fake_make(sizeof **solver) : NULL;
    return fake_answer(fake.load_status, error);
}

void lockstep_solver_free(struct lockstep_solver *solver)
{
    fake_unmake(solver);
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
    fake_note_device(options->device);
    fake_note("create(%d|%s|%s|%s|%s) ", options->workers, fake_text(options->isa),
              fake_text(options->snapshot_prefix), fake_text(options->resume),
              fake_text(options->weights));
    *trainer = NULL;
    if (fake.create_status == 0) {
        *trainer = fake_make(sizeof **trainer);
        (*trainer)->callbacks = options->callbacks;
    }
    return fake_answer(fake.create_status, error);
}

void lockstep_trainer_free(struct lockstep_trainer *trainer)
{
    fake_unmake(trainer);
}

int lockstep_trainer_run(struct lockstep_trainer *trainer, int64_t iterations,
                         struct lockstep_error *error)
{
    fake_note("run(%" PRId64 ") ", iterations);
    for (int i = 0; fake.signal != 0 && (i == 0 || i < fake.signals); i++)
        raise(fake.signal);
    for (int i = 0; i < fake.polls; i++)
        fake.polled[i] = trainer->callbacks.poll(trainer->callbacks.user);
    fake_send_events(&trainer->callbacks);
    return fake_answer(fake.run_status, error);
}

/* Replays: a trainer whose weights are 7 * iteration, with a link of the chain of hashes in
 * every second iteration. */
int lockstep_trainer_step(struct lockstep_trainer *trainer, int64_t count,
                          struct lockstep_error *error)
{
    trainer->iteration += count;
    return fake_answer(fake.run_status, error);
}

int64_t lockstep_trainer_iteration_end(const struct lockstep_trainer *trainer)
{
    (void)trainer;
    return 10;
}

int64_t lockstep_trainer_iteration(const struct lockstep_trainer *trainer)
{
    return trainer->iteration;
}

int lockstep_trainer_hash(struct lockstep_trainer *trainer, uint64_t *hash,
                          struct lockstep_error *error)
{
    *hash = 7 * (uint64_t)trainer->iteration;
    return fake_answer(trainer->iteration >= fake.hash_from ? fake.hash_status : 0, error);
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
    return fake_answer(0, error);
}

void lockstep_verify_options_init(struct lockstep_verify_options *options)
{
    *options = (struct lockstep_verify_options){.struct_size = sizeof *options, .iterations = -1};
}

int lockstep_verify(const struct lockstep_solver *solver,
                    const struct lockstep_verify_options *options, struct lockstep_error *error)
{
    (void)solver;
    fake_note_device(options->device);
    fake_note("verify(%s|%s|", fake_text(options->isa), fake_text(options->weights));
    for (size_t i = 0; i < options->worker_count; i++)
        fake_note("%dw", options->workers[i]);
    for (size_t i = 0; i < options->rank_count; i++)
        fake_note("%dr", options->ranks[i]);
    for (size_t i = 0; i < options->dynamic_count; i++)
        fake_note("%s", options->dynamic[i] ? "d" : "s");
    for (size_t i = 0; i < options->memory_count; i++)
        fake_note("|%" PRIu64, options->memory[i]);
    fake_note("|%d|%" PRId64 ") ", options->stops, options->iterations);
    fake_send_events(&options->callbacks);
    struct lockstep_verified row = {
        .training = "1 worker", .hash = "abc", .iterations = 20, .seconds = 1.5, .same = 1};
    for (size_t i = 0; i < options->worker_count; i++) {
        options->trained(options->user, &row);
        row.training = "2 workers";
        row.same = fake.verify_status == 0;
    }
    return fake_answer(fake.verify_status, error);
}

void lockstep_model_options_init(struct lockstep_model_options *options)
{
    *options = (struct lockstep_model_options){.struct_size = sizeof *options};
}

int lockstep_model_load(const char *path, const char *weights,
                        const struct lockstep_model_options *options, struct lockstep_model **model,
                        struct lockstep_error *error)
{
    fake_note_device(options->device);
    fake_note("model(%s|%s|%d|%d|%" PRId64, path, weights, options->workers, options->level,
              options->iterations);
    for (size_t i = 0; i < options->stage_count; i++)
        fake_note("|%s", options->stages[i]);
    fake_note(") ");
    *model = NULL;
    if (fake.load_status == 0) {
        *model = fake_make(sizeof **model);
        (*model)->callbacks = options->callbacks;
    }
    return fake_answer(fake.load_status, error);
}

void lockstep_model_free(struct lockstep_model *model)
{
    fake_unmake(model);
}

int lockstep_model_test(struct lockstep_model *model, const struct lockstep_output **outputs,
                        size_t *count, int64_t *samples, struct lockstep_error *error)
{
    static const double values[] = {0.75, 0.5};
    static const struct lockstep_output all[] = {{"accuracy", values, 1, 0, NULL, 1},
                                                 {"loss", values + 1, 1, 2, NULL, -1}};
    bool tested = fake.test_status == 0 || fake.test_status == LOCKSTEP_DIVERGED;
    fake_send_events(&model->callbacks);
    *outputs = tested ? all : NULL;
    *count = tested ? 2 : 0;
    *samples = 10000;
    return fake_answer(fake.test_status, error);
}

int lockstep_model_confusion(struct lockstep_model *model, int64_t samples, size_t worst,
                             const struct lockstep_confusion **confusion,
                             struct lockstep_error *error)
{
    static const int64_t matrix[] = {1500, 2, 0, 10, 0, 0, 0, 0, 0};
    static const struct lockstep_class_figures figures[] = {
        {"cat", 1502, 1510, 1500, 0.993377, 0.998668, 0.996016, 0.992063},
        {"dog, \"big\"", 10, 2, 0, 0, 0, 0, 0},
        {NULL, 0, 0, 0, NAN, NAN, NAN, NAN}};
    static const int32_t labels[] = {1, 0}, predicted[] = {0, 0};
    static const struct lockstep_worst_sample samples_kept[] = {
        {1, 0.05, &labels[0], &predicted[0]}, {0, 0.9, &labels[1], &predicted[1]}};
    static struct lockstep_confusion made = {.classes = 3,
                                             .positions = 1,
                                             .samples = 1512,
                                             .counted = 1512,
                                             .left_out = 3,
                                             .accuracy = 0.992063,
                                             .mean_iou = 0.5,
                                             .matrix = matrix,
                                             .figures = figures,
                                             .worst = samples_kept};
    (void)model;
    fake_note("confusion(%lld|%zu) ", (long long)samples, worst);
    made.worst_count = worst < 2 ? worst : 2;
    *confusion = fake.confusion_status == 0 ? &made : NULL;
    return fake_answer(fake.confusion_status, error);
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
    for (int i = 0; i < 3 && output != NULL; i++)
        output[i] = i == index % 3 ? 0.9f : 0.05f;
    return 0;
}

int64_t lockstep_model_sample_count(const struct lockstep_model *model)
{
    (void)model;
    return 4;
}
