/* The state of the calling thread does not change the results: rounding, traps, denormals,
 * OpenMP's threads, the locale, whether it is set before a call or in a callback. After a call
 * the thread finds its state as it was.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <fenv.h>
#include <locale.h>
#include <omp.h>

#include "base/thread.h"
#include "trainings/training.h"

enum { HALF = 5, WHOLE = 9 };

/* ---- States ---------------------------------------------------------------------------------- */

static void set_nothing(void)
{
}

static void set_upward(void)
{
    assert_int_equal(fesetround(FE_UPWARD), 0);
}

static void set_downward(void)
{
    assert_int_equal(fesetround(FE_DOWNWARD), 0);
}

static void set_flushing(void)
{
    ls_set_float_mode();
}

static void set_traps(void)
{
    assert_true(feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW) >= 0);
}

static void set_threads(void)
{
    omp_set_num_threads(4);
}

static void set_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "es_ES.UTF-8",
                                        "pt_BR.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i]) != NULL)
            return;
}

/* What there is to find again. */
struct found {
    int rounding, traps, threads;
    uint64_t mode;
    char locale[64];
};

static struct found look(void)
{
    struct found found = {.rounding = fegetround(),
                          .threads = omp_get_max_threads(),
                          .traps = fegetexcept(),
                          .mode = ls_float_mode() & ~UINT64_C(0x3f)}; /* without what happened */
    snprintf(found.locale, sizeof found.locale, "%s", setlocale(LC_ALL, NULL));
    return found;
}

static void reset(void)
{
    setlocale(LC_ALL, "C");
    fedisableexcept(FE_ALL_EXCEPT);
    fesetenv(FE_DFL_ENV);
    omp_set_num_threads(1);
}

/* ---- Trainings ------------------------------------------------------------------------------- */

struct host {
    void (*set)(void); /* called in each callback */
    struct found found;
    bool changed; /* a callback found another state than its predecessor left */
};

/* A callback finds what the one before it set. */
static void act(struct host *host)
{
    struct found found = look();
    host->changed |= memcmp(&found, &host->found, sizeof found) != 0;
    host->set();
    host->found = look();
}

static void event(void *user, const struct lockstep_event *event)
{
    (void)event;
    act(user);
}

static enum lockstep_request poll(void *user)
{
    act(user);
    return LOCKSTEP_GO_ON;
}

static struct lockstep_solver *make_solver(void)
{
    return load_solver(
        "base_lr: 0.013 momentum: 0.9 weight_decay: 0.0003 lr_policy: 'exp' gamma: 0.97\n"
        "max_iter: 9 test_interval: 2 snapshot_best: 'loss' display: 1 average_loss: 3\n"
        "weight_average { decay: 0.9 } clip_gradients: 0.9\n"
        "net_param { %s }\n",
        ls_test_net("caller", NULL));
}

static void run(struct host *host, int64_t iterations, const char *resume)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver = make_solver();
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.workers = 2;
    options.snapshot_prefix = ls_test_path("host");
    options.resume = resume;
    options.callbacks = (struct lockstep_callbacks){.user = host, .event = event, .poll = poll};
    host->found = look();
    if (lockstep_trainer_create(solver, &options, &trainer, error) != 0 ||
        lockstep_trainer_run(trainer, iterations, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
}

/* Half of the training, and the rest from the snapshot; `before` is called once, `during` in each
 * callback. */
static struct bytes train(void (*before)(void), void (*during)(void), const char *what)
{
    struct host host = {.set = during};
    before();
    struct found found = look();
    run(&host, HALF, NULL);
    run(&host, -1, ls_test_path("host_iter_5.safetensors"));
    struct found left = look();
    reset();
    if (host.changed || (during == set_nothing && memcmp(&found, &left, sizeof found) != 0))
        fail_msg("%s: the caller's state was changed", what);
    return read_bytes(ls_test_path("host_iter_9.safetensors"));
}

static void the_callers_floating_point_state_changes_no_bit(void **state)
{
    static const struct {
        const char *name;
        void (*set)(void);
    } states[] = {{"rounding up", set_upward},
                  {"rounding down", set_downward},
                  {"flushing denormals", set_flushing},
                  {"trapping", set_traps},
                  {"OpenMP on four threads", set_threads},
                  {"a decimal comma", set_comma}};
    (void)state;
    reset();
    struct bytes first = train(set_nothing, set_nothing, "nothing");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        check_same(first, train(states[i].set, set_nothing, states[i].name), "%s before",
                   states[i].name);
        check_same(first, train(set_nothing, states[i].set, states[i].name), "%s in callbacks",
                   states[i].name);
    }
    free(first.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_callers_floating_point_state_changes_no_bit)};
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 300, 16);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
