/* The fake library: plans, times, tuning, many ranks.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Plans ---- */

void lockstep_plan_options_init(struct lockstep_plan_options *options)
{
    *options = (struct lockstep_plan_options){.struct_size = sizeof *options};
}

static const struct lockstep_plan_layer plan_layers[] = {{.name = "conv1",
                                                          .type = "Convolution",
                                                          .output = 2048,
                                                          .kept = 1024,
                                                          .parameters = 100,
                                                          .learned = 30,
                                                          .fixed = 60,
                                                          .masked = 10}};
static const struct lockstep_plan_step plan_steps[] = {
    {.layer = "conv1", .op = "convolution", .implementation = "jit:best", .layout = "nChw16c"},
    {.layer = "conv1", .op = "reorder", .implementation = "jit:uni", .reorder = 1},
    {.layer = "conv1", .op = "synchronisation", .implementation = "", .sync = 1},
    {.layer = "conv1", .op = "lrn backward", .implementation = "ref:any", .backward = 1, .slow = 1},
    {.layer = "conv1", .op = "convolution", .implementation = "jit:best", .recomputed = 1},
    {.layer = "norm", .op = "batch norm", .implementation = "own", .chain = 2, .channels = 32},
    {.layer = "sum", .op = "eltwise", .implementation = "own"},
    {.layer = "ip", .op = "inner product", .implementation = "own", .gathered = 1},
    {.layer = "ip", .op = "record factor", .implementation = "own"}};
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
    fake_note_device(options->device);
    fake_note_dummy(options->dummy);
    fake_note("plan(%s|%d|%" PRIu64 ") ", what, options->workers, options->memory);
    *plan = fake.create_status == 0 ? fake_make(sizeof **plan) : NULL;
    return fake_answer(fake.create_status, error);
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
    fake_unmake(plan);
}

uint64_t lockstep_plan_device_data(const struct lockstep_plan *plan)
{
    (void)plan;
    return 0;
}

uint64_t lockstep_plan_staging(const struct lockstep_plan *plan)
{
    (void)plan;
    return 0;
}

uint64_t lockstep_plan_host(const struct lockstep_plan *plan)
{
    (void)plan;
    return 0;
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

const char *lockstep_plan_library(const struct lockstep_plan *plan)
{
    (void)plan;
    return "oneDNN's version and the CPU's type";
}

const struct lockstep_plan_net *lockstep_plan_net(const struct lockstep_plan *plan, size_t index)
{
    (void)plan;
    return &plan_nets[index];
}

size_t lockstep_plan_parameter_count(const struct lockstep_plan *plan)
{
    (void)plan;
    return 1;
}

const struct lockstep_plan_parameter *lockstep_plan_parameter(const struct lockstep_plan *plan,
                                                              size_t index)
{
    static const struct lockstep_plan_parameter parameter = {
        .name = "conv.bias", .group = "biases", .type = "AdamW", .rate = 2, .decay = 0.25};
    (void)plan;
    return index == 0 ? &parameter : NULL;
}

size_t lockstep_plan_group_count(const struct lockstep_plan *plan)
{
    (void)plan;
    return 2;
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
    fake_note_device(options->device);
    fake_note("scaling(");
    for (size_t i = 0; i < options->count; i++)
        fake_note("%d|", options->ranks[i]);
    fake_note("%d|%g|%g|%g|%g|%" PRId64 ") ", options->workers, options->bandwidth,
              options->latency, options->message, options->compute, options->iterations);
    *scaling = fake.create_status == 0 ? fake_make(sizeof **scaling) : NULL;
    return fake_answer(fake.create_status, error);
}

void lockstep_scaling_free(struct lockstep_scaling *scaling)
{
    fake_unmake(scaling);
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
    fake_note_device(options->device);
    fake_note("time(%d|%" PRId64 "|%" PRIu64 ") ", options->workers, options->iterations,
              options->memory);
    *timing = fake.create_status == 0 ? fake_make(sizeof **timing) : NULL;
    return fake_answer(fake.create_status, error);
}

void lockstep_timing_free(struct lockstep_timing *timing)
{
    fake_unmake(timing);
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
    fake_note_device(options->device);
    fake_note("tune(%g", options->seconds);
    for (size_t i = 0; i < count; i++) {
        struct lockstep_tune_point *point = &points[i];
        fake_note("|%d,%" PRId64 ",%" PRId64, point->workers, point->batch, point->micro_batch);
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
    fake_note(") ");
    return fake_answer(fake.create_status, error);
}

/* ---- The machine ---- */

int lockstep_default_workers(void)
{
    return 7;
}

int lockstep_probe(int cores, struct lockstep_probe *probe, struct lockstep_error *error)
{
    (void)cores, (void)error;
    *probe = (struct lockstep_probe){7, 2e11, 3e10};
    return 0;
}

/* ---- Nets ---- */

static const char *const net_bottoms[] = {"data"};
static const struct lockstep_blob net_blobs[] = {
    {.name = "data", .rank = 4, .extent = {10, 3, 8, 8}},
    {.name = "label", .rank = 1, .extent = {10}},
    {.name = "conv1", .rank = 4, .extent = {10, 20, 4, 4}},
    {.name = "weight", .rank = 4, .extent = {20, 3, 5, 5}},
    {.name = "bias", .rank = 1, .extent = {20}},
    {.name = "loss"}};
static const struct lockstep_net_layer net_layers[] = {
    {.name = "data", .type = "DummyData", .tops = net_blobs, .top_count = 2, .bytes = 7720},
    {.name = "conv1",
     .type = "Convolution",
     .bottoms = net_bottoms,
     .bottom_count = 1,
     .tops = net_blobs + 2,
     .top_count = 1,
     .parameters = net_blobs + 3,
     .parameter_count = 2,
     .flops = 48000,
     .bytes = 12800},
    {.name = "relu1",
     .type = "ReLU",
     .bottoms = (const char *const[]){"conv1"},
     .bottom_count = 1,
     .tops = net_blobs + 2,
     .top_count = 1,
     .bytes = 12800},
    {.name = "loss",
     .type = "SoftmaxWithLoss",
     .bottoms = (const char *const[]){"conv1", "label"},
     .bottom_count = 2,
     .tops = net_blobs + 5,
     .top_count = 1}};

struct lockstep_net {
    int nothing;
};

void lockstep_net_options_init(struct lockstep_net_options *options)
{
    *options = (struct lockstep_net_options){.struct_size = sizeof *options};
}

int lockstep_net_load(const char *path, const struct lockstep_net_options *options,
                      struct lockstep_net **net, struct lockstep_error *error)
{
    fake_note_dummy(options->dummy);
    fake_note("net(%s|%s|%d|%s) ", path, fake_text(options->phase), options->level,
              options->stage_count > 0 ? options->stages[0] : "-");
    *net = fake.load_status == 0 ? fake_make(sizeof **net) : NULL;
    return fake_answer(fake.load_status, error);
}

void lockstep_net_free(struct lockstep_net *net)
{
    fake_unmake(net);
}

const char *lockstep_net_name(const struct lockstep_net *net)
{
    (void)net;
    return "a <net> & more";
}

const char *lockstep_net_phase(const struct lockstep_net *net)
{
    (void)net;
    return "TEST";
}

int64_t lockstep_net_batch(const struct lockstep_net *net)
{
    (void)net;
    return 10;
}

const struct lockstep_net_layer *lockstep_net_layers(const struct lockstep_net *net, size_t *count)
{
    (void)net;
    *count = sizeof net_layers / sizeof *net_layers;
    return net_layers;
}
