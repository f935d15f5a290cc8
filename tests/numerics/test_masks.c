/* Weights that a mask keeps at zero: whatever changes weights leaves +0 there, in the weights, in
 * what the optimizer keeps and in the averages; on any number of workers and ranks, and after
 * resumes. All other weights learn.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "engine/norms.h"
#include "snapshot/archive.h"
#include "trainings/masks.h"
#include "trainings/ranks.h"

enum { SAMPLES = 97, FACTORS = 1 };

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 16);
    const struct ls_shape small = {.rank = 2, .dim = {10, 64}};
    write_mask(ls_test_path("small.safetensors"), "small.weight", &small, 3);
    return 0;
}

/* Slices of a convolution in blocks: filters 3 to 5, and the last column of filters' windows; of a
 * large inner product all but some; of a shared one a corner; of a small one what a file says; and
 * of biases. */
static const char conv[] = "param { mask { slice { range { begin: 3 end: 6 } } } } "
                           "param { mask { slice { range { begin: 14 } } } }";
static const char conv2[] = "param { mask { slice { range { axis: -1 begin: 2 } range { axis: 1 "
                            "begin: 5 end: 11 } } slice { range { end: 1 } } } }";
static const char large[] = "param { mask { slice { range { axis: 1 begin: 100 end: 1400 } } } } "
                            "param { mask { slice { } } }";
static const char shared[] =
    "param { name: 'w' mask { slice { range { end: 9 } range { axis: 1 begin: 60 } } } }";

static struct lockstep_solver *make_solver(const char *settings, const char *again,
                                           const char *small)
{
    const char *file = small != NULL ? small
                                     : ls_test_text("param { mask { source: '%s' } }",
                                                    ls_test_path("small.safetensors"));
    const char *net =
        ls_test_net("masks", LS_TEST_VALUES({"data", "batch_size: 24 shuffle: true"},
                                            {"conv", conv}, {"conv2", conv2}, {"large", large},
                                            {"shared", shared}, {"again", again}, {"small", file}));
    return load_solver("%s lr_policy: 'fixed' max_iter: 40 random_seed: 3 micro_batch: 4\n"
                       "net_param { %s }\n",
                       settings, net);
}

static const char *const solvers[] = {
    "base_lr: 0.05 momentum: 0.9 weight_decay: 0.001 clip_gradients: 0.5 ",
    "type: 'Nesterov' base_lr: 0.02 momentum: 0.9 regularization_type: 'L1' weight_decay: 0.001 ",
    "type: 'Adam' base_lr: 0.002 momentum: 0.9 momentum2: 0.99 iter_size: 2 weight_decay: 0.01 ",
    "type: 'AdamW' base_lr: 0.002 momentum: 0.9 weight_decay: 0.05 weight_average { decay: 0.9 } ",
    "type: 'AdaGrad' base_lr: 0.01 ",
    "type: 'RMSProp' base_lr: 0.001 rms_decay: 0.95 delta: 1e-4 weight_average { decay: 0.5 } ",
    "type: 'AdaDelta' base_lr: 1 momentum: 0.95 delta: 1e-5 ",
    "type: 'Lion' base_lr: 0.0005 momentum: 0.9 momentum2: 0.98 weight_decay: 0.1 ",
    ("type: 'LAMB' base_lr: 0.005 momentum: 0.9 momentum2: 0.99 weight_decay: 0.1 "
     "weight_average { decay: 0.9 } clip_gradients: 0.5 "),
    ("type: 'Muon' base_lr: 0.01 momentum: 0.9 weight_decay: 0.1 weight_average { decay: 0.9 } "
     "param_group { max_axes: 1 type: 'SGD' } "),
    "type: 'Adafactor' base_lr: 0.5 momentum: 0.9 weight_decay: 0.01 ",
};
enum { SOLVERS = sizeof solvers / sizeof *solvers };

/* ---- What is zero ---------------------------------------------------------------------------- */

static bool is_masked(const char *name, int64_t i)
{
    if (strcmp(name, "conv.weight") == 0)
        return i / 9 >= 3 && i / 9 < 6;
    if (strcmp(name, "conv.bias") == 0)
        return i >= 14;
    if (strcmp(name, "conv2.weight") == 0)
        return (i % 3 == 2 && i / 9 % 16 >= 5 && i / 9 % 16 < 11) || i < 16 * 9;
    if (strcmp(name, "large.weight") == 0)
        return i % 1568 >= 100 && i % 1568 < 1400;
    if (strcmp(name, "large.bias") == 0)
        return true;
    if (strcmp(name, "ip1.weight") == 0)
        return i / 64 < 9 && i % 64 >= 60;
    if (strcmp(name, "small.weight") == 0)
        return i % 3 == 0;
    return false;
}

/* Checks an array of a snapshot: masked elements have no bit set. Returns how many there are. */
static int64_t check_array(const struct ls_tensor *tensor, const char *name)
{
    int64_t size = ls_shape_size(&tensor->shape), masked = 0, other = 0;
    for (int64_t i = 0; i < size; i++) {
        uint32_t bits;
        memcpy(&bits, (const char *)tensor->data + 4 * i, sizeof bits);
        if (!is_masked(name, i))
            other += bits != 0;
        else if (bits != 0)
            fail_msg("%s: masked element %lld has bits %08x", tensor->name, (long long)i, bits);
        else
            masked++;
    }
    if (strcmp(tensor->name, name) == 0 && other < (size - masked) / 2)
        fail_msg("%s: only %lld elements of %lld are learned", tensor->name, (long long)other,
                 (long long)(size - masked));
    return masked;
}

/* All arrays of a snapshot: weights, histories, averages. */
static void check_snapshot(const char *path, int64_t expected)
{
    static const char *const names[] = {"conv.weight", "conv.bias",  "conv2.weight", "large.weight",
                                        "large.bias",  "ip1.weight", "small.weight"};
    static const char *const prefixes[] = {"", "average.", "state.history0.", "state.history1."};
    struct ls_archive archive = {0};
    struct ls_error error = {0};
    int64_t masked = 0;
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &archive, &error), 0);
    for (size_t p = 0; p < 4; p++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            const struct ls_tensor *tensor =
                ls_archive_find(&archive, ls_test_text("%s%s", prefixes[p], names[n]));
            if (tensor != NULL)
                masked += check_array(tensor, names[n]);
        }
    ls_archive_free(&archive);
    assert_int_equal(masked, expected);
}

enum { CONV2 = 144 + 31 * 6 * 3, ALL = 27 + 2 + CONV2 + 64 * 1300 + 64 + 9 * 4 + 214 };

/* Masked elements of all arrays of a snapshot. Adafactor has a second array for vectors alone. */
static int64_t masked_of(const char *settings)
{
    bool two = strstr(settings, "Adam") != NULL || strstr(settings, "AdaDelta") != NULL ||
               strstr(settings, "LAMB") != NULL;
    const int64_t vectors = strstr(settings, "Adafactor") != NULL ? 2 + 64 : 0;
    return ALL * (2 + two + (strstr(settings, "weight_average") != NULL)) + vectors;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void masked_weights_stay_zero_with_every_solver(void **state)
{
    (void)state;
    static const int workers[] = {1, 2, 3, 5};
    for (int s = 0; s < SOLVERS; s++) {
        struct lockstep_solver *solver = make_solver(solvers[s], "param { name: 'w' }", NULL);
        struct bytes first = {0};
        for (size_t w = 0; w < sizeof workers / sizeof *workers; w++) {
            struct training *training = start(solver, workers[w], NULL, NULL);
            const char *path = ls_test_path("masked.safetensors");
            assert_int_equal(ls_factors_count(training->trainer->inner->store->factors), FACTORS);
            step(training, 6);
            assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error),
                             0);
            check_snapshot(path, masked_of(solvers[s]));
            finish(training);
            struct bytes bytes = read_bytes(path);
            if (w == 0)
                first = bytes;
            else
                check_same(first, bytes, "%s, %d workers", solvers[s], workers[w]);
        }
        free(first.data);
        lockstep_solver_free(solver);
    }
}

static void a_resume_on_other_workers_gives_the_same_bits(void **state)
{
    (void)state;
    for (int s = 2; s < 4; s++) {
        struct lockstep_solver *solver = make_solver(solvers[s], shared, NULL);
        check_resumed(solver, 2, 3);
        lockstep_solver_free(solver);
    }
}

static void any_ranks_give_the_same_bits(void **state)
{
    (void)state;
    for (int s = 0; s < SOLVERS; s += 3) {
        struct lockstep_solver *solver = make_solver(solvers[s], "param { name: 'w' }", NULL);
        struct bytes expected = run_alone(solver, 3);
        for (int ranks = 2; ranks <= 3; ranks++) {
            struct job job = {.solver = solver, .ranks = ranks, .workers = {1, 2, 1}, .updates = 3};
            check_job(&job, expected, solvers[s]);
        }
        free(expected.data);
        lockstep_solver_free(solver);
    }
}

/* Two files of the same size with other masks. */
static void ranks_with_other_masks_are_refused(void **state)
{
    (void)state;
    const struct ls_shape small = {.rank = 2, .dim = {10, 64}};
    struct lockstep_solver *solver[2];
    struct rank ranks[RANKS_MAX];
    for (int i = 0; i < 2; i++) {
        const char *path = ls_test_text("%s.%d", ls_test_path("rank"), i);
        write_mask(path, "small.weight", &small, i == 0 ? 3 : 4);
        solver[i] =
            make_solver(ls_test_text("base_lr: 0.01 mask: '%s'", path), "param { name: 'w' }", "");
    }
    const struct job job = {.solver = solver[0],
                            .other = {NULL, solver[1]},
                            .ranks = 2,
                            .workers = {1, 1},
                            .updates = 1,
                            .together = true};
    run_job(&job, ranks);
    assert_int_equal(ranks[1].status, LOCKSTEP_DIFFERENT);
    assert_non_null(strstr(ranks[1].error->problems[0].message, "here 'masks: "));
    free_ranks(&job, ranks);
    lockstep_solver_free(solver[0]);
    lockstep_solver_free(solver[1]);
}

static void weights_from_outside_are_masked(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(solvers[3], "param { name: 'w' }", NULL);
    struct training *training = start(solver, 2, NULL, NULL);
    const char *path = ls_test_path("given.safetensors");
    size_t count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t i = 0; i < count; i++) {
        size_t size = lockstep_trainer_parameter_size(training->trainer, i);
        float *ones = malloc(size * sizeof *ones);
        for (size_t k = 0; k < size; k++)
            ones[k] = -1;
        assert_int_equal(
            lockstep_trainer_write_parameter(training->trainer, i, ones, size, training->error), 0);
        free(ones);
    }
    step(training, 1);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error), 0);
    check_snapshot(path, masked_of(solvers[3]));
    finish(training);
    lockstep_solver_free(solver);
}

/* What a mask leaves is what counts for clipping. */
static void the_norm_of_the_gradient_leaves_masked_weights_out(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(solvers[0], "param { name: 'w' }", NULL);
    struct training *training = start(solver, 3, NULL, NULL);
    struct ls_engine *engine = training->trainer->inner->engine;
    double norm = 0, squares = 0;
    step(training, 2);
    size_t count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t i = 0; i < count; i++) {
        size_t size = lockstep_trainer_parameter_size(training->trainer, i);
        const char *name = lockstep_trainer_parameter_name(training->trainer, i);
        float *gradient = malloc(size * sizeof *gradient);
        assert_int_equal(
            lockstep_trainer_read_gradient(training->trainer, i, gradient, size, training->error),
            0);
        for (size_t k = 0; k < size; k++) {
            if (is_masked(name, (int64_t)k))
                assert_true(gradient[k] == 0);
            squares += (double)gradient[k] * (double)gradient[k];
        }
        free(gradient);
    }
    ls_thread_pool_enter(engine->pool);
    assert_int_equal(ls_norms_gradient(engine, &norm, NULL), 0);
    ls_thread_pool_leave(engine->pool);
    assert_true(norm > 0 && fabs(norm - sqrt(squares)) < 1e-6 * norm);
    finish(training);
    lockstep_solver_free(solver);
}

/* A solver's file says the same as a layer's. */
static void a_file_of_the_solver_gives_the_bits_of_slices(void **state)
{
    (void)state;
    const struct ls_shape shape = {.rank = 2, .dim = {64, 64}};
    const char *path = ls_test_path("whole.safetensors"), *settings = solvers[0];
    struct bytes bytes[2];
    write_mask(path, "ip1.weight", &shape, 64); /* the first column */
    for (int i = 0; i < 2; i++) {
        const char *param = i == 0
                                ? "param { name: 'w' mask { slice { range { axis: 1 end: 1 } } } }"
                                : "param { name: 'w' }";
        const char *net =
            ls_test_net("masks", LS_TEST_VALUES({"data", "batch_size: 24"}, {"conv", ""},
                                                {"conv2", ""}, {"large", ""}, {"shared", param},
                                                {"again", "param { name: 'w' }"}, {"small", ""}));
        struct lockstep_solver *solver =
            load_solver("%s lr_policy: 'fixed' max_iter: 40 random_seed: 3 %s\nnet_param { %s }\n",
                        settings, i == 0 ? "" : ls_test_text("mask: '%s'", path), net);
        struct training *training = start(solver, 2, NULL, NULL);
        size_t p = 0, size;
        while (strcmp(lockstep_trainer_parameter_name(training->trainer, p), "ip1.weight") != 0)
            p++;
        step(training, 3);
        size = lockstep_trainer_parameter_size(training->trainer, p);
        bytes[i] = (struct bytes){malloc(4 * size), 4 * size};
        assert_int_equal(lockstep_trainer_read_parameter(training->trainer, p,
                                                         (float *)(void *)bytes[i].data, size,
                                                         training->error),
                         0);
        finish(training);
        lockstep_solver_free(solver);
    }
    check_same(bytes[0], bytes[1], "a file");
    free(bytes[0].data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_weights_stay_zero_with_every_solver),
        cmocka_unit_test(a_resume_on_other_workers_gives_the_same_bits),
        cmocka_unit_test(any_ranks_give_the_same_bits),
        cmocka_unit_test(ranks_with_other_masks_are_refused),
        cmocka_unit_test(weights_from_outside_are_masked),
        cmocka_unit_test(the_norm_of_the_gradient_leaves_masked_weights_out),
        cmocka_unit_test(a_file_of_the_solver_gives_the_bits_of_slices),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
