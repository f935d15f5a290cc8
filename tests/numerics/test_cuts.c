/* A stop and a resume leave no trace. Wherever a training is cut (after some iterations, by a
 * request between updates, in the middle of a test), all of its snapshots are the same bytes,
 * and the same snapshot is the best.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <unistd.h>

#include "trainings/training.h"

enum { END = 14, TESTS = 4 };

/* Epochs end with a batch of one sample, and so do tests. */
static struct lockstep_solver *make_solver(int average_loss)
{
    return load_solver(
        "base_lr: 0.02 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'inv' gamma: 0.1 power: 0.5\n"
        "max_iter: 14 snapshot: 5 test_interval: 4 snapshot_best: 'accuracy' average_loss: %d\n"
        "iter_size: 2 micro_batch: 9 weight_average { decay: 0.8 } warmup_iter: 3\n"
        "net_param { %s }\n",
        average_loss, ls_test_net("cuts", NULL));
}

/* ---- What a training leaves ------------------------------------------------------------------ */

static const char *file_of(const char *prefix, int iteration)
{
    char name[64];
    if (iteration < 0)
        snprintf(name, sizeof name, "%s_best.safetensors", prefix);
    else
        snprintf(name, sizeof name, "%s_iter_%d.safetensors", prefix, iteration);
    return ls_test_path(name);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* All files of the uninterrupted training are there; other files are removed. */
static void check_files(const char *whole, const char *cut, const char *what)
{
    for (int i = -1; i <= END; i++) {
        if (exists(file_of(whole, i))) {
            if (!exists(file_of(cut, i)))
                fail_msg("%s: %s is missing", what, file_of(cut, i));
            struct bytes first = read_bytes(file_of(whole, i));
            check_same(first, read_bytes(file_of(cut, i)), "%s: %s", what, file_of(cut, i));
            free(first.data);
        }
        unlink(file_of(cut, i));
    }
}

static void run_until(struct training *training, int64_t iterations)
{
    if (lockstep_trainer_run(training->trainer, iterations, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
}

/* ---- Cuts by number -------------------------------------------------------------------------- */

static void stop_and_resume_at_every_iteration_gives_same_bits(void **state)
{
    const struct lockstep_solver *solver = *state;
    for (int cut = 1; cut < END; cut++) {
        char what[64];
        struct training *training = start(solver, 2, "cut", NULL);
        run_until(training, cut);
        snprintf(what, sizeof what, "cut at %d, the same trainer goes on", cut);
        run_until(training, -1);
        finish(training);
        check_files("whole", "cut", what);

        training = start(solver, 1, "cut", NULL);
        run_until(training, cut);
        finish(training);
        training = start(solver, 3, "cut", "auto");
        assert_int_equal(lockstep_trainer_iteration(training->trainer), cut);
        run_until(training, -1);
        finish(training);
        snprintf(what, sizeof what, "cut at %d, resumed", cut);
        check_files("whole", "cut", what);
    }
}

/* A resume reads everything that a snapshot holds: a training that was just resumed writes the
 * file that it was resumed from. */
static void a_resumed_training_writes_the_snapshot_it_was_resumed_from(void **state)
{
    const struct lockstep_solver *solver = *state;
    for (int i = 5; i <= END; i += 5) {
        struct training *training = start(solver, 2, "at_once", file_of("whole", i));
        struct bytes file = read_bytes(file_of("whole", i));
        check_same(file, snapshot(training), "resumed at %d, nothing done", i);
        free(file.data);
        finish(training);
    }
}

/* ---- Cuts by request ------------------------------------------------------------------------- */

struct asker {
    int questions, stop_at;
    enum lockstep_request answer;
};

static enum lockstep_request ask(void *user)
{
    struct asker *asker = user;
    return asker->questions++ == asker->stop_at ? asker->answer : LOCKSTEP_GO_ON;
}

/* Returns what the run did. */
static int run_asking(const struct lockstep_solver *solver, struct asker *asker, bool resume)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.workers = 2;
    options.snapshot_prefix = ls_test_path("asked");
    options.resume = resume ? "auto" : NULL;
    options.callbacks = (struct lockstep_callbacks){.user = asker, .poll = ask};
    int status = lockstep_trainer_create(solver, &options, &trainer, error);
    if (status == 0)
        status = lockstep_trainer_run(trainer, -1, error);
    if (status != 0 && status != LOCKSTEP_STOPPED)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_trainer_free(trainer);
    lockstep_error_free(error);
    return status;
}

/* At every poll of a run, between updates and in tests, until there are no more: stops there, or
 * writes a snapshot. */
static void check_questions(const struct lockstep_solver *solver, enum lockstep_request answer)
{
    bool stops = answer == LOCKSTEP_SNAPSHOT_AND_STOP;
    for (int at = 0;; at++) {
        char what[64];
        struct asker asker = {.stop_at = at, .answer = answer};
        int status = run_asking(solver, &asker, false);
        bool asked = asker.questions > at;
        assert_int_equal(status, asked && stops ? LOCKSTEP_STOPPED : 0);
        if (asked && stops) {
            asker = (struct asker){.stop_at = -1};
            assert_int_equal(run_asking(solver, &asker, true), 0);
        }
        snprintf(what, sizeof what, "%s at question %d", stops ? "stopped" : "a snapshot", at);
        check_files("whole", "asked", what);
        if (!asked) {
            assert_true(at > END + TESTS); /* tests ask, too */
            return;
        }
    }
}

static void a_stop_at_every_question_resumes_with_same_bits(void **state)
{
    check_questions(*state, LOCKSTEP_SNAPSHOT_AND_STOP);
}

static void a_snapshot_at_every_question_changes_no_bit(void **state)
{
    check_questions(*state, LOCKSTEP_SNAPSHOT_AND_GO_ON);
}

/* ---- The loss that is shown ------------------------------------------------------------------ */

struct shown {
    double mean[END + 1]; /* by updates done: what was shown */
};

static void note_progress(void *user, const struct lockstep_event *event)
{
    struct shown *shown = user;
    if (event->kind == LOCKSTEP_EVENT_PROGRESS)
        shown->mean[event->iteration] = event->data_loss;
}

static void run_shown(int window, int64_t until, const char *resume, struct shown *shown)
{
    struct lockstep_solver *solver = make_solver(window);
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.workers = 1;
    options.snapshot_prefix = ls_test_path("shown");
    options.resume = resume;
    options.callbacks = (struct lockstep_callbacks){.user = shown, .event = note_progress};
    if (lockstep_trainer_create(solver, &options, &trainer, error) != 0 ||
        lockstep_trainer_run(trainer, until, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
}

/* A resume may change average_loss. With a shorter window the loss is that of a training that
 * always had it; with a longer one it is the mean of the known losses. */
static void a_resume_may_change_the_window_of_the_average_loss(void **state)
{
    enum { CUT = 7, SHORT = 2, LONG = 5 };
    (void)state;
    struct shown each = {0}, narrow = {0}, narrowed = {0}, widened = {0};
    run_shown(1, END, NULL, &each);
    run_shown(SHORT, END, NULL, &narrow);
    run_shown(LONG, CUT, NULL, &narrowed);
    run_shown(SHORT, END, file_of("shown", CUT), &narrowed);
    for (int i = CUT + 1; i <= END; i++)
        assert_memory_equal(&narrowed.mean[i], &narrow.mean[i], sizeof narrow.mean[i]);
    run_shown(SHORT, CUT, NULL, &widened);
    run_shown(LONG, END, file_of("shown", CUT), &widened);
    for (int i = CUT + 1; i <= END; i++) {
        int count = i - CUT + SHORT < LONG ? i - CUT + SHORT : LONG;
        double sum = 0;
        for (int k = 0; k < count; k++)
            sum += each.mean[i - k];
        assert_true(fabs(widened.mean[i] - sum / count) < 1e-12);
    }
}

static int set_up(void **state)
{
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 251, 12);
    struct lockstep_solver *solver = make_solver(4);
    struct training *training = start(solver, 3, "whole", NULL);
    run_until(training, -1);
    finish(training);
    *state = solver;
    return exists(file_of("whole", -1)) ? 0 : 1;
}

static int tear_down(void **state)
{
    lockstep_solver_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_and_resume_at_every_iteration_gives_same_bits),
        cmocka_unit_test(a_resumed_training_writes_the_snapshot_it_was_resumed_from),
        cmocka_unit_test(a_stop_at_every_question_resumes_with_same_bits),
        cmocka_unit_test(a_snapshot_at_every_question_changes_no_bit),
        cmocka_unit_test(a_resume_may_change_the_window_of_the_average_loss)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
