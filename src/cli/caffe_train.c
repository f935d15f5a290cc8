/* caffe train. See cli/caffe_train.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/caffe_train.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/caffe.h"
#include "cli/report.h"
#include "cli/signals.h"

enum { PATH_ROOM = 1024, SETS = 4, TEXT_ROOM = 512 };

/* A training under way, as its callbacks see it. */
struct session {
    const char *device; /* NULL: the CPU, or what the solver says */
    const struct ls_glog *log;
    char name[256];         /* of what is trained */
    char policy[64];        /* of the learning rate */
    bool solving;           /* "Solving" was written, which programs take for the start */
    bool stopped;           /* that it stops was written */
    int64_t last_displayed; /* the iteration behind which the loss was told last */
};

static const char solver_place[] = "solver.cpp:239", rate_place[] = "sgd_solver.cpp:105";

/* ---- Events ---------------------------------------------------------------------------------- */

/* Once, behind all that is said about the start. */
static void put_start(struct session *session)
{
    if (session->solving)
        return;
    session->solving = true;
    ls_glog_put(session->log, LS_GLOG_INFO, "caffe.cpp:251", "Starting Optimization");
    ls_glog_put(session->log, LS_GLOG_INFO, "solver.cpp:279", "Solving %s", session->name);
    ls_glog_put(session->log, LS_GLOG_INFO, "solver.cpp:280", "Learning Rate Policy: %s",
                session->policy);
}

/* Caffe counts from 0: the update that led to N is iteration N - 1. */
static void put_display(struct session *session, const struct lockstep_event *event)
{
    const int64_t number = event->iteration - 1, count = event->iteration - session->last_displayed;
    ls_glog_put(session->log, LS_GLOG_INFO, solver_place,
                "Iteration %" PRId64 " (%.6g iter/s, %.6gs/%" PRId64 " iters), loss = %.6g", number,
                event->seconds > 0 ? (double)count / event->seconds : 0, event->seconds, count,
                event->data_loss);
    ls_caffe_put_outputs(session->log, "solver.cpp:258", "    Train net output", true,
                         event->outputs, event->output_count);
    ls_glog_put(session->log, LS_GLOG_INFO, rate_place, "Iteration %" PRId64 ", lr = %.6g", number,
                event->learning_rate);
    session->last_displayed = event->iteration;
}

static void put_test(const struct session *session, const struct lockstep_event *event)
{
    ls_glog_put(session->log, LS_GLOG_INFO, "solver.cpp:347",
                "Iteration %" PRId64 ", Testing net (#%d)", event->iteration,
                event->test_net < 0 ? 0 : event->test_net);
    if (event->data_loss != 0)
        ls_glog_put(session->log, LS_GLOG_INFO, "solver.cpp:396", "Test loss: %.6g",
                    event->data_loss);
    ls_caffe_put_outputs(session->log, "solver.cpp:414", "    Test net output", true,
                         event->outputs, event->output_count);
}

/* The first of "STEM<ending>" that there is, HDF5 where that ends in h5; the snapshot itself where
 * there is none. */
static void put_snapshot_file(const struct session *session, const char *place, const char *what,
                              const char *path, const char *const *endings)
{
    static const char own[] = ".safetensors";
    char other[PATH_ROOM];
    const char *form = "binary proto";
    size_t length = strlen(path), ending = sizeof own - 1;
    if (length > ending && strcmp(path + length - ending, own) == 0)
        for (; *endings != NULL; endings++) {
            snprintf(other, sizeof other, "%.*s%s", (int)(length - ending), path, *endings);
            if (access(other, F_OK) == 0) {
                path = other;
                form = strstr(*endings, ".h5") != NULL ? "HDF5" : form;
                break;
            }
        }
    ls_glog_put(session->log, LS_GLOG_INFO, place, "%s to %s file %s", what, form, path);
}

static void put_snapshot(const struct session *session, const char *path)
{
    static const char *const models[] = {".caffemodel", ".caffemodel.h5", NULL};
    static const char *const states[] = {".solverstate", ".solverstate.h5", NULL};
    put_snapshot_file(session, "solver.cpp:464", "Snapshotting", path, models);
    put_snapshot_file(session, "sgd_solver.cpp:273", "Snapshotting solver state", path, states);
}

static void put_end(const struct session *session, const struct lockstep_event *event)
{
    if (session->last_displayed != event->iteration && event->iteration > 0)
        ls_glog_put(session->log, LS_GLOG_INFO, "solver.cpp:327",
                    "Iteration %" PRId64 ", loss = %.6g", event->iteration - 1, event->data_loss);
    ls_glog_put(session->log, LS_GLOG_INFO, "solver.cpp:332", "Optimization Done.");
}

static void on_event(void *user, const struct lockstep_event *event)
{
    struct session *session = user;
    if (event->kind == LOCKSTEP_EVENT_RUN && event->run != NULL) {
        snprintf(session->policy, sizeof session->policy, "%s",
                 event->run->lr_policy != NULL ? event->run->lr_policy : "fixed");
        session->last_displayed = event->run->first_iteration;
    }
    switch (event->kind) {
    case LOCKSTEP_EVENT_DISPLAY:
        put_start(session);
        put_display(session, event);
        break;
    case LOCKSTEP_EVENT_TEST:
        put_start(session);
        put_test(session, event);
        break;
    case LOCKSTEP_EVENT_SNAPSHOT:
        put_snapshot(session, event->text);
        break;
    case LOCKSTEP_EVENT_END:
        put_end(session, event);
        break;
    case LOCKSTEP_EVENT_PROGRESS:
        put_start(session);
        break;
    default:
        ls_caffe_put_event(session->log, "solver.cpp:60", event);
    }
}

static enum lockstep_request on_poll(void *user)
{
    struct session *session = user;
    enum lockstep_request request = ls_cli_signal_request();
    if (request == LOCKSTEP_SNAPSHOT_AND_STOP && !session->stopped) {
        session->stopped = true;
        ls_glog_put(session->log, LS_GLOG_INFO, "solver.cpp:295",
                    "Stopping with a snapshot; the same signal again stops at once.");
    }
    return request;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* The state of one of our own runs has a snapshot beside it that says more: from it the training
 * goes on with the same bits. */
static const char *snapshot_of(const char *state, const struct ls_glog *log, char path[PATH_ROOM])
{
    static const char *const endings[] = {".solverstate", ".solverstate.h5"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(state), ending = strlen(endings[i]);
        if (length <= ending || strcmp(state + length - ending, endings[i]) != 0)
            continue;
        snprintf(path, PATH_ROOM, "%.*s.safetensors", (int)(length - ending), state);
        if (access(path, F_OK) != 0)
            continue;
        ls_glog_put(log, LS_GLOG_INFO, "caffe.cpp:243",
                    "Resuming from %s beside it, which has all of the training's state", path);
        return path;
    }
    return state;
}

/* What Caffe's flags mean for the solver, as overrides; how many there are. */
static size_t make_sets(const struct ls_caffe_flags *flags, char text[SETS][TEXT_ROOM],
                        const char *sets[SETS])
{
    size_t count = 0;
    snprintf(text[count], TEXT_ROOM, "snapshot_format?=BINARYPROTO"); /* Caffe's default */
    sets[count] = text[count];
    count++;
    if (flags->level != 0) {
        snprintf(text[count], TEXT_ROOM, "train_state.level=%" PRId64, flags->level);
        sets[count] = text[count];
        count++;
    }
    if (flags->stages > 0) {
        size_t length = (size_t)snprintf(text[count], TEXT_ROOM, "train_state.stage=[");
        for (size_t i = 0; i < flags->stages && length < TEXT_ROOM; i++)
            length += (size_t)snprintf(text[count] + length, TEXT_ROOM - length, "%s\"%s\"",
                                       i > 0 ? ", " : "", flags->stage[i]);
        if (length < TEXT_ROOM)
            snprintf(text[count] + length, TEXT_ROOM - length, "]");
        sets[count] = text[count];
        count++;
    }
    return count;
}

static int load_solver(const struct ls_caffe_flags *flags, const struct ls_glog *log,
                       struct lockstep_solver **solver, struct lockstep_error *error)
{
    char text[SETS][TEXT_ROOM];
    const char *sets[SETS];
    size_t count = make_sets(flags, text, sets);
    int status = lockstep_solver_load(flags->solver, sets, count, solver, error);
    struct lockstep_dummy_options dummy;
    if (status != 0 || !ls_caffe_dummy_options(flags, log, &dummy))
        return status;
    return lockstep_solver_use_dummy_data(*solver, &dummy, error);
}

static int train(const struct ls_caffe_flags *flags, struct session *session,
                 struct lockstep_error *error)
{
    struct lockstep_solver *solver = NULL;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_train_options options;
    char path[PATH_ROOM];
    lockstep_train_options_init(&options);
    options.workers = (int)flags->workers;
    options.weights = flags->weights;
    options.device = session->device;
    if (flags->snapshot != NULL)
        options.resume = snapshot_of(flags->snapshot, session->log, path);
    options.overwrite = 1; /* as Caffe does */
    options.partial_weights = flags->partial_weights;
    options.callbacks = (struct lockstep_callbacks){session, on_event, on_poll};
    int status = load_solver(flags, session->log, &solver, error);
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &trainer, error);
    lockstep_solver_free(solver);
    if (status == 0)
        status = lockstep_trainer_run(trainer, -1, error);
    lockstep_trainer_free(trainer);
    return status;
}

/* The name of a file without its folder and its ending. */
static void name_of(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash != NULL ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot != NULL && dot != name)
        *dot = '\0';
}

static int effect_of(const char *flag, const char *text, enum ls_cli_effect *effect)
{
    static const char *const names[] = {
        [LS_CLI_STOP] = "stop", [LS_CLI_SNAPSHOT] = "snapshot", [LS_CLI_NOTHING] = "none"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text != NULL && strcmp(names[i], text) == 0) {
            *effect = (enum ls_cli_effect)i;
            return 0;
        }
    return ls_cli_usage_error("caffe train: -%s '%s' is none of snapshot, stop and none", flag,
                              text != NULL ? text : "");
}

int ls_caffe_train(const struct ls_caffe_flags *flags, const struct ls_glog *log)
{
    struct session session = {.log = log, .policy = "fixed"};
    char name[LS_CAFFE_DEVICE_ROOM];
    enum ls_cli_effect interrupt = LS_CLI_STOP, hang_up = LS_CLI_SNAPSHOT;
    if (flags->solver == NULL)
        return ls_cli_usage_error("caffe train: need a solver definition to train: -solver FILE");
    if (flags->snapshot != NULL && flags->weights != NULL)
        return ls_cli_usage_error("caffe train: give a snapshot to resume training or weights to "
                                  "finetune but not both");
    int status = effect_of("sigint_effect", flags->sigint_effect, &interrupt);
    if (status == 0)
        status = effect_of("sighup_effect", flags->sighup_effect, &hang_up);
    if (status != 0)
        return status;
    name_of(flags->solver, session.name, sizeof session.name);
    session.device = ls_caffe_choose_device(flags, log, name);
    ls_cli_catch_signals(NULL);
    ls_cli_set_signal_effects(interrupt, hang_up);
    struct lockstep_error *error = lockstep_error_new();
    status = train(flags, &session, error);
    if (status == 0) {
        ls_glog_put(log, LS_GLOG_INFO, "caffe.cpp:262", "Optimization Done.");
    } else if (status == LOCKSTEP_STOPPED) { /* which is a success in Caffe */
        ls_glog_put(log, LS_GLOG_INFO, "solver.cpp:318", "Optimization stopped early.");
        status = 0;
    } else {
        ls_caffe_report(log, status, error);
    }
    lockstep_error_free(error);
    return status;
}
