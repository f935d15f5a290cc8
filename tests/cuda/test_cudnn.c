/* Convolutions by cuDNN on a fake of it: what they compute in all layouts and types, which engines
 * are taken, what happens where cuDNN has none, and each call failing once.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>

#include "cuda/cudnn_trial.h"
#include "cuda/fake/fake.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"

enum { ROUNDS = 16, MANY = 120 };

static int rounds(void)
{
    return getenv("LOCKSTEP_ALL") != NULL ? MANY : ROUNDS;
}

static void begin(int round)
{
    fake_begin(1, CUDNN_CARD_BYTES, (uint64_t)round);
}

static void end(void)
{
    ls_card_end_thread();
    fake_end();
}

static void check_made(int status, const struct ls_error *error)
{
    if (status != 0)
        fail_msg("%s", error->problems[0].message);
}

/* Carries a trial out, and frees it. */
static void expect_numbers(struct cudnn_trial *trial)
{
    struct ls_error error = {0};
    check_made(cudnn_trial_prepare(trial, &error), &error);
    check_made(cudnn_trial_run(trial, &error), &error);
    cudnn_trial_compare(trial);
    cudnn_trial_free(trial);
}

static void try_all(bool bf16, const struct ls_layout *layout, unsigned lacks)
{
    for (int k = 0; k < CUDNN_KINDS; k++)
        for (int round = 0; round < rounds(); round++) {
            struct cudnn_trial trial;
            begin(round);
            cudnn_trial_make(&trial, cudnn_kinds[k], round, bf16, layout);
            fake_cudnn_lacks(lacks);
            expect_numbers(&trial);
            end();
        }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void fp32_is_computed_in_all_layouts(void **state)
{
    (void)state;
    try_all(false, NULL, 0);
    try_all(false, &ls_layout_channels_last, 0);
}

static void bf16_is_computed_in_all_layouts(void **state)
{
    (void)state;
    try_all(true, NULL, 0);
    try_all(true, &ls_layout_plain, 0);
}

static void what_has_no_engine_is_computed_all_the_same(void **state)
{
    static const unsigned lacks[] = {FAKE_CUDNN_ENDS,
                                     FAKE_CUDNN_MIXED,
                                     FAKE_CUDNN_BF16,
                                     FAKE_CUDNN_ENDS | FAKE_CUDNN_MIXED,
                                     FAKE_CUDNN_ENDS | FAKE_CUDNN_BF16,
                                     FAKE_CUDNN_ALL};
    (void)state;
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        try_all(true, NULL, lacks[i]);
        try_all(false, NULL, lacks[i]);
        try_all(false, &ls_layout_channels_last, lacks[i]);
    }
}

/* ---- Engines --------------------------------------------------------------------------------- */

/* A convolution of two samples with two groups of axes, in so many axes in front of its channels.
 */
static void make_windows(struct cudnn_trial *trial, enum ls_op_kind kind, int64_t kernel,
                         enum ls_convolution_algorithm algorithm, bool bf16)
{
    static Lockstep__LayerParameter definition;
    *trial = (struct cudnn_trial){.scene = {.round = 2}};
    struct op_scene *scene = &trial->scene;
    struct ls_convolution_attr *attr = &scene->op.attr.convolution;
    const int64_t size = 7 - kernel;
    const struct ls_shape x = {4, {2, 3, 6, 6}}, w = {4, {4, 3, kernel, kernel}};
    const struct ls_shape y = {4, {2, 4, size, size}};
    scene->op.kind = kind;
    *attr = (struct ls_convolution_attr){.window = {.axes = 2},
                                         .group = 1,
                                         .algorithm = algorithm,
                                         .bias = kind == LS_OP_CONVOLUTION,
                                         .relu = kind == LS_OP_CONVOLUTION};
    for (int a = 0; a < 3; a++) {
        attr->window.kernel[a] = a < 2 ? kernel : 1;
        attr->window.stride[a] = attr->window.dilation[a] = 1;
    }
    scene_in(scene, kind == LS_OP_CONVOLUTION_DATA ? y : x, -1, 1);
    scene_in(scene, kind == LS_OP_CONVOLUTION_WEIGHTS ? y : w, -1, 1);
    if (attr->bias)
        scene_in(scene, (struct ls_shape){1, {4}}, -1, 1);
    scene_out(scene, kind == LS_OP_CONVOLUTION ? y : kind == LS_OP_CONVOLUTION_DATA ? x : w);
    cudnn_trial_settle(trial, bf16, NULL);
    scene->layer.name = "conv1";
    scene->layer.graph = &scene->graph;
    scene->layer.definition = &definition;
    scene->op.layer = &scene->layer;
}

struct choice {
    enum ls_op_kind kind;
    int64_t kernel;
    enum ls_convolution_algorithm algorithm;
    bool bf16;
    unsigned lacks;
    long engine; /* -1: none */
    const char *implementation;
};

static const struct choice choices[] = {
    {LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false, 0, 9, "cudnn:engine 9, choice 7"},
    {LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_DIRECT, false, 0, 12, "cudnn:engine 12, choice 8"},
    {LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_WINOGRAD, false, 0, 9, "cudnn:engine 9, choice 7"},
    {LS_OP_CONVOLUTION, 5, LS_CONVOLUTION_AUTO, false, 0, 12, "cudnn:engine 12, choice 7"},
    {LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_DIRECT, false, FAKE_CUDNN_ENDS, 12,
     "cudnn:engine 12, choice 8, ends apart"},
    {LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false, FAKE_CUDNN_ALL, -1, "lockstep:cuda"},
    {LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, true, 0, 21, "cudnn:engine 21, choice 5"},
    {LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, true, FAKE_CUDNN_ENDS, 21,
     "cudnn:engine 21, choice 5, ends apart"},
    {LS_OP_CONVOLUTION, 5, LS_CONVOLUTION_AUTO, true, FAKE_CUDNN_ENDS | FAKE_CUDNN_BF16, 20,
     "cudnn:engine 20, choice 6, ends apart, widened"},
    {LS_OP_CONVOLUTION_WEIGHTS, 3, LS_CONVOLUTION_WINOGRAD, false, 0, 12,
     "cudnn:engine 12, choice 7"},
    {LS_OP_CONVOLUTION_WEIGHTS, 3, LS_CONVOLUTION_AUTO, true, FAKE_CUDNN_MIXED, 20,
     "cudnn:engine 20, choice 6, widened"},
};

static void the_first_engine_that_may_be_taken_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct choice *of = &choices[i];
        struct cudnn_trial trial;
        struct ls_error error = {0};
        begin((int)i);
        make_windows(&trial, of->kind, of->kernel, of->algorithm, of->bf16);
        fake_cudnn_lacks(of->lacks);
        check_made(cudnn_trial_prepare(&trial, &error), &error);
        assert_string_equal(trial.prepared.implementation, of->implementation);
        assert_int_equal(trial.prepared.slow, of->engine < 0);
        check_made(cudnn_trial_run(&trial, &error), &error);
        assert_int_equal(fake_cudnn_engine(), of->engine);
        cudnn_trial_compare(&trial);
        cudnn_trial_free(&trial);
        end();
    }
}

static void rare_shapes_get_engines_of_the_fallback(void **state)
{
    struct cudnn_trial trial;
    struct ls_error error = {0};
    (void)state;
    begin(0);
    make_windows(&trial, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false);
    trial.scene.op.attr.convolution.window.dilation[0] = 2;
    trial.scene.out[0]->shape.dim[2] = 2;
    check_made(cudnn_trial_prepare(&trial, &error), &error);
    assert_string_equal(trial.prepared.implementation, "cudnn:engine 0, choice 1");
    cudnn_trial_free(&trial);
    end();
}

static void a_card_without_winograd_refuses_it(void **state)
{
    struct cudnn_trial trial;
    struct ls_error error = {0};
    (void)state;
    begin(0);
    make_windows(&trial, LS_OP_CONVOLUTION, 5, LS_CONVOLUTION_WINOGRAD, false);
    assert_int_equal(cudnn_trial_prepare(&trial, &error), LOCKSTEP_DEFINITION);
    assert_non_null(strstr(error.problems[0].message, "conv1"));
    assert_non_null(strstr(error.problems[0].message, "Winograd"));
    cudnn_trial_free(&trial);
    end();
}

static void layouts_follow_the_arithmetic(void **state)
{
    struct cudnn_trial trial;
    (void)state;
    begin(0);
    make_windows(&trial, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false);
    assert_ptr_equal(trial.scene.in[0]->layout, &ls_layout_plain);
    trial.scene.op.tf32 = true;
    settle_layouts(trial.prepared.kernel, &trial.scene.op, &ls_layout_plain);
    assert_ptr_equal(trial.scene.in[0]->layout, &ls_layout_channels_last);
    struct ls_error error = {0};
    check_made(cudnn_trial_prepare(&trial, &error), &error);
    assert_string_equal(trial.prepared.implementation, "cudnn:engine 20, choice 6");
    cudnn_trial_free(&trial);
    make_windows(&trial, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, true);
    assert_ptr_equal(trial.scene.in[0]->layout, &ls_layout_channels_last);
    assert_ptr_equal(trial.scene.in[1]->layout, &ls_layout_channels_last);
    assert_ptr_equal(trial.scene.in[2]->layout, &ls_layout_plain);
    assert_ptr_equal(trial.scene.out[0]->layout, &ls_layout_channels_last);
    cudnn_trial_free(&trial);
    end();
}

/* Axes in front of the channels are samples of one tensor, which is plain then. */
static void axes_in_front_of_channels_are_samples(void **state)
{
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct cudnn_trial trial;
        begin(bf16);
        make_windows(&trial, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, bf16 != 0);
        struct ls_value *const values[] = {trial.scene.in[0], trial.scene.out[0]};
        for (int i = 0; i < 2; i++) {
            struct ls_shape *shape = &values[i]->shape;
            memmove(shape->dim + 1, shape->dim, 4 * sizeof *shape->dim);
            shape->dim[0] = 1;
            shape->rank = 5;
        }
        settle_layouts(trial.prepared.kernel, &trial.scene.op, &ls_layout_plain);
        assert_ptr_equal(values[0]->layout, &ls_layout_plain);
        assert_ptr_equal(values[1]->layout, &ls_layout_plain);
        assert_ptr_equal(trial.scene.in[1]->layout, &ls_layout_plain);
        expect_numbers(&trial);
        assert_int_equal(fake_cudnn_engine(), bf16 ? 21 : 9);
        end();
    }
}

static void portable_convolutions_are_not_for_cudnn(void **state)
{
    struct cudnn_trial trial;
    (void)state;
    begin(0);
    make_windows(&trial, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false);
    trial.scene.op.attr.convolution.algorithm = LS_CONVOLUTION_PORTABLE;
    assert_false(ls_kernel_find(ls_device_cuda.kernels(), &trial.scene.op)->library);
    cudnn_trial_free(&trial);
    end();
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static void equal_convolutions_share_a_plan(void **state)
{
    struct cudnn_trial first, second, other;
    struct ls_error error = {0};
    (void)state;
    begin(0);
    make_windows(&first, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false);
    make_windows(&second, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false);
    make_windows(&other, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_DIRECT, false);
    check_made(cudnn_trial_prepare(&first, &error), &error);
    const long made = fake_calls("cudnnBackendCreateDescriptor");
    check_made(cudnn_trial_prepare(&second, &error), &error);
    assert_int_equal(fake_calls("cudnnBackendCreateDescriptor"), made);
    check_made(cudnn_trial_prepare(&other, &error), &error);
    assert_true(fake_calls("cudnnBackendCreateDescriptor") > made);
    cudnn_trial_free(&first);
    check_made(cudnn_trial_run(&second, &error), &error);
    check_made(cudnn_trial_run(&other, &error), &error);
    cudnn_trial_compare(&second);
    cudnn_trial_compare(&other);
    cudnn_trial_free(&second);
    cudnn_trial_free(&other);
    end();
}

static int chosen_card;

static int choose_card(void)
{
    return chosen_card;
}

static void each_card_has_plans_and_handles_of_its_own(void **state)
{
    struct cudnn_trial trial[2];
    struct ls_error error = {0};
    int (*const before)(void) = ls_card_of_thread;
    (void)state;
    fake_begin(2, CUDNN_CARD_BYTES, 5);
    ls_card_of_thread = choose_card;
    for (chosen_card = 0; chosen_card < 2; chosen_card++) {
        make_windows(&trial[chosen_card], LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false);
        check_made(cudnn_trial_prepare(&trial[chosen_card], &error), &error);
    }
    for (chosen_card = 1; chosen_card >= 0; chosen_card--) {
        check_made(cudnn_trial_run(&trial[chosen_card], &error), &error);
        cudnn_trial_compare(&trial[chosen_card]);
        cudnn_trial_free(&trial[chosen_card]);
    }
    assert_int_equal(fake_calls("cudnnCreate"), 4); /* to make plans, and to carry them out */
    chosen_card = 0;
    end();
    ls_card_of_thread = before;
}

/* ---- Threads and recordings ------------------------------------------------------------------ */

struct worker {
    struct cudnn_trial *trial;
    bool recorded;
};

/* Carries a plan out with a handle of the thread's own, which is made while it records. */
static void *work(void *user)
{
    const struct worker *worker = user;
    struct ls_stream *stream = NULL;
    struct ls_recording *recording = NULL;
    struct ls_error error = {0};
    int status = ls_card_streams.create(&stream, &error);
    if (status == 0 && worker->recorded)
        status = ls_card_recordings.begin(stream, &error);
    if (status == 0)
        status = cudnn_trial_give(worker->trial, stream, &error);
    if (status == 0 && worker->recorded)
        status = ls_card_recordings.end(stream, &recording, &error);
    for (int i = 0; i < 3 && status == 0 && worker->recorded; i++)
        status = ls_card_recordings.play(recording, stream, &error);
    if (status == 0)
        status = ls_card_streams.wait(stream, &error);
    ls_card_recordings.free(recording);
    ls_card_streams.free(stream);
    if (status != 0)
        fprintf(stderr, "a worker: %s\n", error.problems[0].message);
    return status == 0 ? NULL : user;
}

static void run_worker(struct cudnn_trial *trial, bool recorded)
{
    struct worker worker = {trial, recorded};
    pthread_t thread;
    void *failed = NULL;
    assert_int_equal(pthread_create(&thread, NULL, work, &worker), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    cudnn_trial_compare(trial);
    cudnn_trial_clear(trial);
}

static void plans_are_carried_out_by_any_thread_and_recorded(void **state)
{
    (void)state;
    for (int k = 0; k < CUDNN_KINDS; k++)
        for (int lacks = 0; lacks < 3; lacks++) {
            struct cudnn_trial trial;
            struct ls_error error = {0};
            begin(k);
            cudnn_trial_make(&trial, cudnn_kinds[k], 3 + lacks, true, NULL);
            fake_cudnn_lacks(lacks == 0   ? 0
                             : lacks == 1 ? FAKE_CUDNN_ENDS | FAKE_CUDNN_BF16
                                          : FAKE_CUDNN_ALL);
            check_made(cudnn_trial_prepare(&trial, &error), &error);
            run_worker(&trial, false);
            run_worker(&trial, true);
            cudnn_trial_free(&trial);
            end();
        }
}

static void *prepare_elsewhere(void *user)
{
    struct ls_error error = {0};
    return cudnn_trial_prepare(user, &error) == 0 ? NULL : user;
}

static void plans_outlive_the_thread_that_made_them(void **state)
{
    struct cudnn_trial trial;
    struct ls_error error = {0};
    pthread_t thread;
    void *failed = NULL;
    (void)state;
    begin(4);
    make_windows(&trial, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false);
    assert_int_equal(pthread_create(&thread, NULL, prepare_elsewhere, &trial), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    check_made(cudnn_trial_run(&trial, &error), &error);
    cudnn_trial_compare(&trial);
    cudnn_trial_free(&trial);
    end();
}

static void several_threads_share_one_plan(void **state)
{
    enum { THREADS = 4 };
    (void)state;
    struct cudnn_trial trial[THREADS];
    struct worker worker[THREADS];
    pthread_t thread[THREADS];
    struct ls_error error = {0};
    begin(9);
    for (int i = 0; i < THREADS; i++) {
        make_windows(&trial[i], LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, false);
        check_made(cudnn_trial_prepare(&trial[i], &error), &error);
    }
    for (int i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){&trial[i], i % 2 == 0};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
        cudnn_trial_compare(&trial[i]);
        cudnn_trial_free(&trial[i]);
    }
    end();
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* From beginning to end; the status of what failed. */
static int go(enum ls_op_kind kind, unsigned lacks, struct ls_error *error)
{
    struct cudnn_trial trial;
    make_windows(&trial, kind, 3, LS_CONVOLUTION_AUTO, kind == LS_OP_CONVOLUTION_WEIGHTS);
    fake_cudnn_lacks(lacks);
    int status = cudnn_trial_prepare(&trial, error);
    if (status == 0)
        status = cudnn_trial_run(&trial, error);
    cudnn_trial_free(&trial);
    return status;
}

static long fail_each(const char *name, enum ls_op_kind kind, unsigned lacks)
{
    for (long after = 0;; after++) {
        struct ls_error error = {0};
        begin((int)after);
        fake_fail(name, after);
        const int status = go(kind, lacks, &error);
        const bool failed = fake_has_failed();
        fake_fail(NULL, 0);
        end();
        if (!failed) {
            assert_int_equal(status, 0);
            return after;
        }
        if (status != LOCKSTEP_INTERNAL && status != LOCKSTEP_RESOURCE)
            fail_msg("%s failed, and the status is %d", name, status);
        const char *message = error.problems[0].message;
        if (strstr(message, "card 0 could not") == NULL || strstr(message, "'conv1'") == NULL ||
            strstr(message, "cuDNN: CUDNN_STATUS") == NULL)
            fail_msg("%s failed, and the message is: %s", name, message);
    }
}

static void every_call_that_fails_is_told(void **state)
{
    static const char *const calls[] = {
        "cudnnCreate",          "cudnnSetStream",           "cudnnBackendCreateDescriptor",
        "cudnnBackendFinalize", "cudnnBackendSetAttribute", "cudnnBackendGetAttribute",
        "cudnnBackendExecute"};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_true(fail_each(calls[i], LS_OP_CONVOLUTION, 0) > 0);
        assert_true(fail_each(calls[i], LS_OP_CONVOLUTION, FAKE_CUDNN_ENDS) > 0);
        assert_true(fail_each(calls[i], LS_OP_CONVOLUTION_WEIGHTS, FAKE_CUDNN_MIXED) > 0);
    }
}

static void launches_that_fail_are_told(void **state)
{
    (void)state;
    for (long after = 0;; after++) {
        struct ls_error error = {0};
        begin((int)after);
        struct cudnn_trial trial;
        make_windows(&trial, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, true);
        fake_cudnn_lacks(FAKE_CUDNN_ENDS | FAKE_CUDNN_BF16);
        check_made(cudnn_trial_prepare(&trial, &error), &error);
        fake_fail("a launch", after);
        const int status = cudnn_trial_run(&trial, &error);
        const bool failed = fake_has_failed();
        fake_fail(NULL, 0);
        if (failed) {
            assert_int_equal(status, LOCKSTEP_INTERNAL);
            assert_non_null(strstr(error.problems[0].message, "convolution of layer 'conv1'"));
        }
        cudnn_trial_free(&trial);
        end();
        if (!failed) {
            assert_int_equal(after, 3); /* two operands are widened, the result is ended */
            return;
        }
    }
}

/* What is chosen decides the bits, so a resume and other ranks are told where it differs: engines
 * may be missing for other reasons than another version. */
static void the_environment_follows_the_engine(void **state)
{
    const struct ls_device_environment *environment = ls_device_cuda.environment;
    uint64_t hash[3], work = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct cudnn_trial trial;
        struct ls_error error = {0};
        begin(i);
        make_windows(&trial, LS_OP_CONVOLUTION, 3, LS_CONVOLUTION_AUTO, true);
        fake_cudnn_lacks(i == 1 ? FAKE_CUDNN_ENDS : 0);
        check_made(cudnn_trial_prepare(&trial, &error), &error);
        assert_true(environment->probes(&trial.prepared));
        assert_int_equal(environment->probe(&trial.prepared, 1, &work, &hash[i], &error), 0);
        cudnn_trial_free(&trial);
        end();
    }
    assert_true(hash[0] == hash[2]);
    assert_true(hash[0] != hash[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_follows_the_engine),
        cmocka_unit_test(fp32_is_computed_in_all_layouts),
        cmocka_unit_test(bf16_is_computed_in_all_layouts),
        cmocka_unit_test(what_has_no_engine_is_computed_all_the_same),
        cmocka_unit_test(the_first_engine_that_may_be_taken_is),
        cmocka_unit_test(rare_shapes_get_engines_of_the_fallback),
        cmocka_unit_test(a_card_without_winograd_refuses_it),
        cmocka_unit_test(layouts_follow_the_arithmetic),
        cmocka_unit_test(axes_in_front_of_channels_are_samples),
        cmocka_unit_test(portable_convolutions_are_not_for_cudnn),
        cmocka_unit_test(equal_convolutions_share_a_plan),
        cmocka_unit_test(each_card_has_plans_and_handles_of_its_own),
        cmocka_unit_test(plans_are_carried_out_by_any_thread_and_recorded),
        cmocka_unit_test(plans_outlive_the_thread_that_made_them),
        cmocka_unit_test(several_threads_share_one_plan),
        cmocka_unit_test(every_call_that_fails_is_told),
        cmocka_unit_test(launches_that_fail_are_told),
    };
    reference_device()->enter_thread();
    cmocka_set_test_filter(getenv("LOCKSTEP_TEST_FILTER")); /* no helper is used that would */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
