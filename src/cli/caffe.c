/* Caffe's program: which action, tests, times, and what they share. See cli/caffe.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/caffe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/caffe_train.h"
#include "cli/cards.h"
#include "cli/job.h"
#include "cli/report.h"
#include "monitor/terminal.h"

/* ---- Lines of the log ------------------------------------------------------------------------ */

void ls_caffe_put_outputs(const struct ls_glog *log, const char *place, const char *what,
                          bool numbered, const struct lockstep_output *outputs, size_t count)
{
    size_t number = 0;
    for (size_t i = 0; i < count; i++) {
        const double weight = outputs[i].loss_weight;
        for (size_t v = 0; v < outputs[i].count; v++) {
            const double value = outputs[i].values[v];
            char label[48] = "", loss[80] = "";
            if (numbered)
                snprintf(label, sizeof label, "%s #%zu: ", what, number++);
            if (weight != 0)
                snprintf(loss, sizeof loss, " (* %.6g = %.6g loss)", weight, weight * value);
            ls_glog_put(log, LS_GLOG_INFO, place, "%s%s = %.6g%s", label, outputs[i].name, value,
                        loss);
        }
    }
}

void ls_caffe_put_event(const struct ls_glog *log, const char *place,
                        const struct lockstep_event *event)
{
    enum ls_glog_level level = event->kind == LOCKSTEP_EVENT_WARNING ? LS_GLOG_WARNING
                               : event->kind == LOCKSTEP_EVENT_AUDIT ? LS_GLOG_ERROR
                                                                     : LS_GLOG_INFO;
    if (event->text != NULL && (event->kind != LOCKSTEP_EVENT_DETAIL || ls_verbose()))
        ls_glog_put(log, level, place, "%s", event->text);
}

static void tell_dummy(void *user, const char *line)
{
    ls_glog_put(user, LS_GLOG_WARNING, "net.cpp:51", "%s", line);
}

bool ls_caffe_dummy_options(const struct ls_caffe_flags *flags, const struct ls_glog *log,
                            struct lockstep_dummy_options *options)
{
    lockstep_dummy_options_init(options);
    options->all = flags->dummy_data;
    options->inputs = flags->input;
    options->input_count = flags->inputs;
    options->tell = tell_dummy;
    options->user = (void *)(uintptr_t)log;
    return flags->dummy_data || flags->inputs > 0;
}

/* How many GPUs are asked for: "0,1" are two; -1: all. */
static int count_gpus(const char *gpu)
{
    int count = 1;
    if (strcmp(gpu, "all") == 0)
        return -1;
    for (; *gpu != '\0'; gpu++)
        count += *gpu == ',';
    return count;
}

/* On several GPUs Caffe trains another thing than on one. */
static void tell_batch(const struct ls_caffe_flags *flags, const struct ls_glog *log)
{
    if (count_gpus(flags->gpu) != 1 && flags->solver != NULL)
        ls_glog_put(log, LS_GLOG_WARNING, "caffe.cpp:219",
                    "batch_size is the whole batch here. On several GPUs Caffe takes so many "
                    "samples on each: for the same training multiply batch_size of the train net "
                    "by their number.");
}

const char *ls_caffe_choose_device(const struct ls_caffe_flags *flags, const struct ls_glog *log,
                                   char name[LS_CAFFE_DEVICE_ROOM])
{
    const int workers = flags->workers > 0 ? (int)flags->workers : lockstep_default_workers();
    struct lockstep_cards *cards;
    if (flags->gpu == NULL) {
        ls_glog_put(log, LS_GLOG_INFO, "caffe.cpp:213", "Use CPU with %d workers.", workers);
        return NULL;
    }
    struct lockstep_error *error = lockstep_error_new();
    const bool there = lockstep_cards_find(&cards, error) == 0;
    if (there) {
        const size_t first = strcmp(flags->gpu, "all") == 0 ? 0 : strcspn(flags->gpu, ",");
        if (flags->solver != NULL)
            snprintf(name, LS_CAFFE_DEVICE_ROOM, "cuda:%s", flags->gpu);
        else
            snprintf(name, LS_CAFFE_DEVICE_ROOM, "cuda:%.*s", first > 0 ? (int)first : 1,
                     first > 0 ? flags->gpu : "0");
        ls_glog_put(log, LS_GLOG_INFO, "caffe.cpp:218", "Using GPUs %s; %s", name + 5,
                    lockstep_cards_tested(cards));
    } else {
        ls_glog_put(log, LS_GLOG_WARNING, "caffe.cpp:218",
                    "-gpu %s: using the CPU with %d workers, on whose number the result does not "
                    "depend: %s",
                    flags->gpu, workers, error != NULL ? lockstep_error_text(error) : "no memory");
    }
    tell_batch(flags, log);
    lockstep_cards_free(cards);
    lockstep_error_free(error);
    return there ? name : NULL;
}

int ls_caffe_report(const struct ls_glog *log, int status, struct lockstep_error *error)
{
    const char *text = error != NULL ? lockstep_error_text(error) : "out of memory";
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        ls_glog_put(log, LS_GLOG_FATAL, "caffe.cpp:60", "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
    return status;
}

/* ---- caffe test ------------------------------------------------------------------------------ */

static void on_event(void *user, const struct lockstep_event *event)
{
    ls_caffe_put_event(user, "net.cpp:744", event);
}

static double sum_losses(const struct lockstep_output *outputs, size_t count)
{
    double loss = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t v = 0; v < outputs[i].count; v++)
            loss += outputs[i].loss_weight * outputs[i].values[v];
    return loss;
}

static int run_test(const struct ls_caffe_flags *flags, const struct ls_glog *log,
                    const char *device, struct lockstep_error *error)
{
    struct lockstep_model *model = NULL;
    struct lockstep_model_options options;
    struct lockstep_dummy_options dummy;
    lockstep_model_options_init(&options);
    options.workers = (int)flags->workers;
    options.level = (int)flags->level;
    options.stages = (const char *const *)flags->stage;
    options.stage_count = flags->stages;
    options.iterations = flags->iterations;
    options.device = device;
    options.dummy = ls_caffe_dummy_options(flags, log, &dummy) ? &dummy : NULL;
    options.callbacks = (struct lockstep_callbacks){(void *)(uintptr_t)log, on_event, NULL};
    const struct lockstep_output *outputs = NULL;
    size_t count = 0;
    int status = lockstep_model_load(flags->model, flags->weights, &options, &model, error);
    if (status == 0) {
        ls_glog_put(log, LS_GLOG_INFO, "caffe.cpp:290", "Running for %" PRId64 " iterations.",
                    flags->iterations);
        status = lockstep_model_test(model, &outputs, &count, NULL, error);
    }
    if (count > 0) {
        ls_glog_put(log, LS_GLOG_INFO, "caffe.cpp:318", "Loss: %.6g", sum_losses(outputs, count));
        ls_caffe_put_outputs(log, "caffe.cpp:330", "", false, outputs, count);
    }
    lockstep_model_free(model);
    return status;
}

static int test(const struct ls_caffe_flags *flags, const struct ls_glog *log)
{
    if (flags->model == NULL)
        return ls_cli_usage_error("caffe test: need a model definition to score: -model FILE");
    if (flags->weights == NULL)
        return ls_cli_usage_error("caffe test: need model weights to score: -weights FILE");
    if (flags->iterations < 1)
        return ls_cli_usage_error("caffe test: -iterations must be at least 1");
    char name[LS_CAFFE_DEVICE_ROOM];
    const char *device = ls_caffe_choose_device(flags, log, name);
    struct lockstep_error *error = lockstep_error_new();
    int status = run_test(flags, log, device, error);
    if (status != 0)
        ls_caffe_report(log, status, error);
    lockstep_error_free(error);
    return status;
}

/* ---- caffe time ------------------------------------------------------------------------------ */

static const char time_place[] = "caffe.cpp:414";

static double forward_of(const struct lockstep_time_layer *layer)
{
    return layer->part[LOCKSTEP_TIME_FORWARD].seconds;
}

/* All that a layer takes besides its forward pass; what is done again there is part of it. */
static double backward_of(const struct lockstep_time_layer *layer)
{
    double seconds = 0;
    for (int kind = 0; kind < LOCKSTEP_TIME_KINDS; kind++)
        if (kind != LOCKSTEP_TIME_FORWARD && kind != LOCKSTEP_TIME_UPDATE)
            seconds += layer->part[kind].seconds;
    return seconds;
}

static void put_times(const struct ls_glog *log, const struct lockstep_timing *timing)
{
    size_t count;
    const struct lockstep_time_layer *layers = lockstep_timing_layers(timing, &count);
    const struct lockstep_time_total *total = lockstep_timing_total(timing);
    double forward = 0, backward = 0;
    ls_glog_put(log, LS_GLOG_INFO, time_place, "Average time per layer: ");
    for (size_t i = 0; i < count; i++) {
        forward += forward_of(&layers[i]);
        backward += backward_of(&layers[i]);
        ls_glog_put(log, LS_GLOG_INFO, time_place, "%10s forward: %.6g ms.", layers[i].name,
                    1e3 * forward_of(&layers[i]));
        ls_glog_put(log, LS_GLOG_INFO, time_place, "%10s backward: %.6g ms.", layers[i].name,
                    1e3 * backward_of(&layers[i]));
    }
    ls_glog_put(log, LS_GLOG_INFO, time_place, "Average Forward pass: %.6g ms.", 1e3 * forward);
    ls_glog_put(log, LS_GLOG_INFO, time_place, "Average Backward pass: %.6g ms.", 1e3 * backward);
    ls_glog_put(log, LS_GLOG_INFO, time_place,
                "Average Forward-Backward: %.6g ms. (%.6g ms with the update and waiting)",
                1e3 * (forward + backward), 1e3 * total->seconds);
    ls_glog_put(log, LS_GLOG_INFO, time_place, "Total Time: %.6g ms.",
                1e3 * total->seconds * (double)total->iterations);
}

static int load_net(const struct ls_caffe_flags *flags, const struct ls_glog *log,
                    struct lockstep_solver **solver, struct lockstep_error *error)
{
    struct lockstep_dummy_options dummy;
    (void)ls_caffe_dummy_options(flags, log, &dummy);
    int status =
        lockstep_solver_of_net(flags->model, (int)flags->level, (const char *const *)flags->stage,
                               flags->stages, solver, error);
    if (status == 0)
        status = lockstep_solver_use_dummy_data(*solver, &dummy, error);
    return status;
}

static int take_time(const struct ls_caffe_flags *flags, const struct ls_glog *log)
{
    if (flags->model == NULL)
        return ls_cli_usage_error("caffe time: need a model definition to time: -model FILE");
    if (flags->iterations < 1)
        return ls_cli_usage_error("caffe time: -iterations must be at least 1");
    char name[LS_CAFFE_DEVICE_ROOM];
    const char *device = ls_caffe_choose_device(flags, log, name);
    if (flags->phase != NULL && strcmp(flags->phase, "TRAIN") != 0)
        ls_glog_put(log, LS_GLOG_WARNING, "caffe.cpp:60",
                    "-phase %s: times are those of the train phase, forward and backward",
                    flags->phase);
    struct lockstep_solver *solver = NULL;
    struct lockstep_timing *timing = NULL;
    struct lockstep_time_options options;
    lockstep_time_options_init(&options);
    options.workers = (int)flags->workers;
    options.iterations = flags->iterations;
    options.device = device;
    struct lockstep_error *error = lockstep_error_new();
    int status = load_net(flags, log, &solver, error);
    if (status == 0) {
        ls_glog_put(log, LS_GLOG_INFO, time_place, "*** Benchmark begins ***");
        ls_glog_put(log, LS_GLOG_INFO, time_place, "Testing for %" PRId64 " iterations.",
                    flags->iterations);
        status = lockstep_time(solver, &options, &timing, error);
    }
    if (status == 0) {
        put_times(log, timing);
        ls_glog_put(log, LS_GLOG_INFO, time_place, "*** Benchmark ends ***");
    } else {
        ls_caffe_report(log, status, error);
    }
    lockstep_timing_free(timing);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
    return status;
}

/* ---- caffe device_query ---------------------------------------------------------------------- */

void ls_cli_describe_machine(void (*put)(void *user, const char *line), void *user)
{
    char line[256];
    struct lockstep_probe probe;
    const char *info = lockstep_build_info();
    put(user, "Device id:                     0");
    put(user, "Name:                          cpu");
    snprintf(line, sizeof line, "Workers by default:            %d", lockstep_default_workers());
    put(user, line);
    if (lockstep_probe(0, &probe, NULL) == 0) {
        snprintf(line, sizeof line, "Cores that this process has:   %d", probe.cores);
        put(user, line);
        snprintf(line, sizeof line, "Measured, fp32:                %.1f GFLOP/s",
                 probe.flops * 1e-9);
        put(user, line);
        snprintf(line, sizeof line, "Measured, memory:              %.1f GB/s", probe.bytes * 1e-9);
        put(user, line);
    }
    while (*info != '\0') {
        size_t length = strcspn(info, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, info);
        put(user, line);
        info += length + (info[length] == '\n');
    }
}

static void put_device_line(void *user, const char *line)
{
    ls_glog_put(user, LS_GLOG_INFO, "common.cpp:199", "%s", line);
}

static int query(const struct ls_caffe_flags *flags, const struct ls_glog *log)
{
    void *user = (void *)(uintptr_t)log;
    struct lockstep_error *error = lockstep_error_new();
    const char *gpu = flags->gpu != NULL ? flags->gpu : "all";
    ls_glog_put(log, LS_GLOG_INFO, "caffe.cpp:138", "Querying GPUs %s, and the CPU", gpu);
    ls_cli_describe_machine(put_device_line, user);
    int status = ls_cli_describe_cards(gpu, put_device_line, user, error);
    if (status == LOCKSTEP_USAGE) {
        ls_caffe_report(log, status, error);
    } else if (status != 0) {
        ls_glog_put(log, LS_GLOG_INFO, "common.cpp:199", "No card: %s",
                    error != NULL ? lockstep_error_text(error) : "no memory");
        status = 0; /* Where there is no card, -gpu stands for the CPU. */
    }
    lockstep_error_free(error);
    return status;
}

/* ---- The program ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const struct ls_caffe_flags *flags, const struct ls_glog *log);
} actions[] = {
    {"train", ls_caffe_train}, {"test", test}, {"time", take_time}, {"device_query", query}};

const char ls_caffe_usage[] =
    "caffe: the command lines of Caffe's program, done by Lockstep\n"
    "usage: caffe <command> <flags>\n\n"
    "commands:\n"
    "  train           train or finetune a model\n"
    "  test            score a model\n"
    "  device_query    show what computes\n"
    "  time            benchmark model execution time\n\n"
    "flags (-x value or -x=value):\n"
    "  -solver FILE        train: the solver's definition\n"
    "  -snapshot FILE      train: go on from this state (.solverstate, or a snapshot of ours)\n"
    "  -weights A,B        train: finetune from these weights; test: score them\n"
    "  -model FILE         test, time: the net's definition\n"
    "  -iterations N       test, time: how many batches; default: 50\n"
    "  -gpu 0,1|all        compute on these cards; where there are none, on the CPU, and that is\n"
    "                      said\n"
    "  -phase, -level, -stage a,b   the state of the net\n"
    "  -sigint_effect, -sighup_effect snapshot|stop|none; default: stop, snapshot\n"
    "  -logtostderr, -alsologtostderr, -log_dir DIR, -minloglevel N, -stderrthreshold N\n"
    "  -workers N          ours: workers that compute; default: all cores. The result does not\n"
    "                      depend on it\n"
    "  -dummy_data         ours: random data in place of those of the definition; a\n"
    "                      training on them writes no snapshot\n"
    "  -partial_weights    ours: with -weights, layers may stay random although a\n"
    "                      blob of their shape is left over\n"
    "  -input data=N,C,H,W ours: the shape of an input, in place of its data\n"
    "  -plugin FILE        ours: a shared object with layer types of its own\n\n"
    "docs/caffe.md says what is different from Caffe, and why.";

static int run_action(const struct ls_caffe_flags *flags)
{
    struct ls_glog log;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(actions[i].name, flags->argument[0]) != 0)
            continue;
        int status = ls_cli_refuse_ranks("caffe");
        if (status == 0)
            status = ls_caffe_flags_log(flags, &log);
        if (status != 0)
            return status;
        status = actions[i].run(flags, &log);
        ls_glog_close(&log);
        return status;
    }
    return ls_cli_usage_error("caffe: unknown action '%s'. hint: it is train, test, time or "
                              "device_query",
                              flags->argument[0]);
}

int ls_caffe_main(int count, char **arguments)
{
    struct ls_caffe_flags flags;
    int status = ls_caffe_flags_parse(count, arguments, &flags);
    if (status == 0 && flags.version)
        printf("caffe version 1.0.0 (Lockstep %s)\n", lockstep_version());
    else if (status == 0 && (flags.help || flags.arguments != 1))
        puts(ls_caffe_usage);
    else if (status == 0)
        status = run_action(&flags);
    if (status == 0 && flags.arguments != 1 && !flags.help && !flags.version)
        status = LOCKSTEP_USAGE;
    ls_caffe_flags_free(&flags);
    int written = ls_cli_finish_output();
    return status != 0 ? status : written;
}
