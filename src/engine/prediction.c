/* Predictions. See engine/prediction.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/prediction.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "engine/binding.h"
#include "engine/exchange.h"
#include "engine/pass.h"
#include "engine/plans.h"
#include "ir/convert.h"
#include "ir/op_type.h"

struct ls_prediction {
    struct ls_engine *engine;
    struct ls_net_plan *plan;     /* for one sample, or the batch of a net that mixes samples */
    int data_input;               /* which graph input takes the samples; -1: none */
    int other_input;              /* another one that the output depends on; -1: none */
    struct ls_exchange *exchange; /* sync points of single samples, by worker */
    double **records;             /* by worker: what metrics write to */
    double *normalizers;          /* ones */
    struct bench {
        void **inputs; /* by graph input */
        void *output;  /* a copy of it, where the host cannot read the device's memory */
    } * benches;       /* by worker */
    void **zeros;      /* by graph input: stands in for labels */
};

/* ---- Creation -------------------------------------------------------------------------------- */

static int prediction_allocate(struct ls_prediction *prediction, struct ls_error *error)
{
    const struct ls_net_plan *plan = prediction->plan;
    const struct ls_graph *graph = plan->plan->graph;
    const struct ls_device *device = prediction->engine->device;
    size_t workers = (size_t)prediction->engine->workers;
    prediction->records = ls_alloc(workers, sizeof *prediction->records);
    prediction->benches = ls_alloc(workers, sizeof *prediction->benches);
    prediction->normalizers =
        ls_alloc(graph->normalizer_count + 1, sizeof *prediction->normalizers);
    prediction->zeros = ls_alloc(graph->input_count + 1, sizeof *prediction->zeros);
    bool ready = prediction->records != NULL && prediction->benches != NULL &&
                 prediction->normalizers != NULL && prediction->zeros != NULL;
    for (size_t w = 0; w < workers && ready; w++) {
        double **record = &prediction->records[w];
        struct bench *bench = &prediction->benches[w];
        *record = ls_alloc(ls_graph_record_doubles(graph) + 1, sizeof **record);
        bench->inputs = ls_alloc(graph->input_count + 1, sizeof *bench->inputs);
        ready = *record != NULL && bench->inputs != NULL;
        if (ready && plan->output != NULL && !device->memory->host_memory)
            ready = (bench->output = ls_alloc_aligned(ls_value_bytes(plan->output))) != NULL;
    }
    for (size_t i = 0; i < graph->normalizer_count && ready; i++)
        prediction->normalizers[i] = 1;
    for (size_t i = 0; i < graph->input_count && ready; i++)
        ready = graph->inputs[i].cache ||
                (prediction->zeros[i] = ls_alloc_aligned(ls_value_bytes(graph->inputs[i].value))) !=
                    NULL;
    return ready ? 0 : ls_fail_memory(error, "predictions");
}

/* A sample is a batch of its own where a net normalises by the batch in its test phase. */
static int prediction_create_exchange(struct ls_prediction *prediction, struct ls_error *error)
{
    int workers = prediction->engine->workers;
    struct ls_exchange_options options = {.graph = prediction->plan->plan->graph,
                                          .device = prediction->engine->device,
                                          .workers = workers,
                                          .units = workers,
                                          .largest = prediction->plan->samples,
                                          .batch = prediction->plan->samples,
                                          .batches = workers};
    LS_TRY(ls_exchange_create(&options, &prediction->exchange, error));
    for (int w = 0; w < workers; w++)
        ls_exchange_add(prediction->exchange,
                        &(struct ls_batch){.count = prediction->plan->samples},
                        &(struct ls_micro){.count = prediction->plan->samples}, 1, (size_t)w);
    return 0;
}

/* Follows the other inputs through the ops to the output. */
static int prediction_find_other_input(struct ls_prediction *prediction, struct ls_error *error)
{
    const struct ls_graph *graph = prediction->plan->plan->graph;
    const struct ls_value *output = prediction->plan->output;
    int *from = ls_alloc(graph->value_count + 1, sizeof *from); /* by value: an input + 1, or 0 */
    if (from == NULL)
        return ls_fail_memory(error, "predictions");
    for (size_t i = 0; i < graph->input_count; i++)
        if ((int)i != prediction->data_input)
            from[graph->inputs[i].value->index] = (int)i + 1;
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        bool has_labels = ls_op_type(op->kind)->labels != NULL;
        int other = 0;
        for (int k = 0; k < op->inputs && other == 0; k++)
            if (op->input[k] != NULL && !(has_labels && k == 1))
                other = from[op->input[k]->index];
        for (int k = 0; k < op->outputs && other != 0; k++)
            if (op->output[k] != NULL)
                from[op->output[k]->index] = other;
    }
    if (output != NULL)
        prediction->other_input = from[output->index] - 1;
    ls_free(from);
    return 0;
}

static int prediction_create(struct ls_prediction *prediction, struct ls_net *net,
                             struct ls_error *error)
{
    struct ls_engine *engine = prediction->engine;
    struct ls_micro one = {.count = ls_net_sample_count(net)};
    if (net->varying >= 0)
        memcpy(one.shape, net->plans[0]->shape, sizeof one.shape);
    LS_TRY(ls_plans_require(net, &one, &prediction->plan, error));
    prediction->plan->kept = true;
    LS_TRY(ls_engine_make_room(engine, net, prediction->plan->plan, error));
    LS_TRY(ls_engine_bind_plan(engine, net, prediction->plan, error));
    LS_TRY(prediction_create_exchange(prediction, error));
    const struct ls_graph *graph = prediction->plan->plan->graph;
    for (size_t i = 0; i < graph->input_count && prediction->data_input < 0; i++)
        if (graph->inputs[i].top == 0)
            prediction->data_input = (int)i;
    LS_TRY(prediction_find_other_input(prediction, error));
    return prediction_allocate(prediction, error);
}

int ls_prediction_create(struct ls_engine *engine, struct ls_net *net, struct ls_prediction **out,
                         struct ls_error *error)
{
    *out = NULL;
    struct ls_prediction *prediction = ls_alloc(1, sizeof *prediction);
    if (prediction == NULL)
        return ls_fail_memory(error, "predictions");
    prediction->engine = engine;
    prediction->data_input = prediction->other_input = -1;
    int status = prediction_create(prediction, net, error);
    if (status != 0)
        ls_prediction_free(prediction);
    else
        *out = prediction;
    return status;
}

void ls_prediction_free(struct ls_prediction *prediction)
{
    if (prediction == NULL)
        return;
    size_t workers = (size_t)prediction->engine->workers;
    for (size_t w = 0; w < workers; w++) {
        if (prediction->records != NULL)
            ls_free(prediction->records[w]);
        if (prediction->benches != NULL) {
            ls_free((void *)prediction->benches[w].inputs);
            ls_free_aligned(prediction->benches[w].output);
        }
    }
    for (size_t i = 0; prediction->zeros != NULL && i < prediction->plan->plan->graph->input_count;
         i++)
        ls_free_aligned(prediction->zeros[i]);
    ls_exchange_free(prediction->exchange);
    ls_free(prediction->records);
    ls_free(prediction->benches);
    ls_free(prediction->normalizers);
    ls_free((void *)prediction->zeros);
    ls_free(prediction);
}

const struct ls_value *ls_prediction_input(const struct ls_prediction *prediction)
{
    const struct ls_graph *graph = prediction->plan->plan->graph;
    return prediction->data_input >= 0 ? graph->inputs[prediction->data_input].value : NULL;
}

const struct ls_value *ls_prediction_other_input(const struct ls_prediction *prediction)
{
    const struct ls_graph *graph = prediction->plan->plan->graph;
    return prediction->other_input >= 0 ? graph->inputs[prediction->other_input].value : NULL;
}

const struct ls_value *ls_prediction_output(const struct ls_prediction *prediction)
{
    return prediction->plan->output;
}

/* ---- Running --------------------------------------------------------------------------------- */

struct samples {
    struct ls_prediction *prediction;
    const float *input;             /* of the one that takes samples; or */
    struct ls_prediction_rows rows; /* with those of all, which NULL stands for */
    size_t count;
    _Atomic size_t next;
    struct ls_worker_failure failure;
};

void ls_prediction_to_plain(const struct ls_value *value, const void *numbers, int64_t begin,
                            int64_t count, float *target)
{
    const struct ls_shape *shape = &value->shape;
    const float *source = numbers;
    int64_t block = value->layout->block;
    if (block <= 1 || shape->rank < 2) {
        ls_dtype_convert(value->type,
                         (const char *)numbers + (size_t)begin * ls_dtype_size(value->type), LS_F32,
                         target, (size_t)count);
        return;
    }
    int64_t channels = shape->dim[1], blocks = (channels + block - 1) / block;
    int64_t inner = ls_shape_count(shape, 2, shape->rank);
    for (int64_t at = begin; at < begin + count; at++) {
        const int64_t row = at / (channels * inner), c = at / inner % channels, i = at % inner;
        *target++ = source[((row * blocks + c / block) * inner + i) * block + c % block];
    }
}

/* One sample, in the memory of a worker. */
static int prediction_run_sample(const struct samples *samples, size_t sample, int worker,
                                 struct ls_error *error)
{
    const struct ls_prediction *prediction = samples->prediction;
    const struct ls_prediction_rows *rows = &samples->rows;
    const struct ls_net_plan *plan = prediction->plan;
    const struct ls_graph *graph = plan->plan->graph;
    void **inputs = prediction->benches[worker].inputs;
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct ls_value *value = graph->inputs[i].value;
        const size_t bytes = (size_t)ls_shape_size(&value->shape) * ls_dtype_size(value->type);
        const void *from = rows->inputs != NULL               ? rows->inputs[i]
                           : (int)i == prediction->data_input ? samples->input
                                                              : NULL;
        inputs[i] = from != NULL ? (char *)from + sample * bytes : prediction->zeros[i];
    }
    struct ls_run run = {.inputs = inputs,
                         .context = {.stream = prediction->engine->streams[worker],
                                     .worker = worker,
                                     .first_ordinal = (int64_t)sample * plan->samples,
                                     .samples = plan->samples,
                                     .position = rows->position,
                                     .normalizers = prediction->normalizers,
                                     .partials = prediction->records[worker]},
                         .rows = {rows->states, rows->row + (int64_t)sample, true}};
    ls_exchange_context(prediction->exchange, worker, (size_t)worker, NULL, &run.context);
    LS_TRY(ls_binding_run(plan, worker, LS_RUN_ALL, &run, error));
    if (rows->output == NULL)
        return 0;
    const struct ls_device_memory *memory = prediction->engine->device->memory;
    const void *numbers = ls_binding_value(plan, worker, plan->output, inputs);
    if (!memory->host_memory) {
        void *copy = prediction->benches[worker].output;
        LS_TRY(memory->read(NULL, copy, numbers, ls_value_bytes(plan->output), error));
        numbers = copy;
    }
    ls_prediction_to_plain(plan->output, numbers, rows->begin, rows->numbers,
                           rows->output + sample * (size_t)rows->numbers);
    return 0;
}

static void prediction_run_some(void *argument, int worker)
{
    struct samples *samples = argument;
    struct ls_error *error = ls_worker_error();
    int status = 0;
    for (size_t i; status == 0 && (i = atomic_fetch_add(&samples->next, 1)) < samples->count;)
        status = prediction_run_sample(samples, i, worker, error);
    ls_worker_failure_note(&samples->failure, status, error);
}

static int prediction_run_all(struct samples *samples)
{
    struct ls_thread_pool *pool = samples->prediction->engine->pool;
    ls_thread_pool_enter(pool);
    ls_thread_pool_run(pool, prediction_run_some, samples);
    ls_thread_pool_leave(pool);
    return atomic_load(&samples->failure.status);
}

/* All of the output, of samples whose states are zeros. */
static struct ls_prediction_rows prediction_whole(const struct ls_prediction *prediction,
                                                  const float *const *inputs, float *output)
{
    return (struct ls_prediction_rows){.inputs = (const void *const *)inputs,
                                       .numbers = ls_shape_size(&prediction->plan->output->shape),
                                       .output = output};
}

int ls_prediction_run(struct ls_prediction *prediction, const float *input, size_t count,
                      float *output, struct ls_error *error)
{
    struct samples samples = {.prediction = prediction,
                              .input = input,
                              .rows = prediction_whole(prediction, NULL, output),
                              .count = count,
                              .failure = {.error = error}};
    return prediction_run_all(&samples);
}

size_t ls_prediction_inputs(const struct ls_prediction *prediction)
{
    return prediction->plan->plan->graph->input_count;
}

const struct ls_value *ls_prediction_input_at(const struct ls_prediction *prediction, size_t index)
{
    return prediction->plan->plan->graph->inputs[index].value;
}

int ls_prediction_run_inputs(struct ls_prediction *prediction, const float *const *inputs,
                             size_t count, float *output, struct ls_error *error)
{
    struct samples samples = {.prediction = prediction,
                              .rows = prediction_whole(prediction, inputs, output),
                              .count = count,
                              .failure = {.error = error}};
    return prediction_run_all(&samples);
}

int ls_prediction_run_rows(struct ls_prediction *prediction, const struct ls_prediction_rows *rows,
                           struct ls_error *error)
{
    struct samples samples = {
        .prediction = prediction, .rows = *rows, .count = rows->count, .failure = {.error = error}};
    return prediction_run_all(&samples);
}
