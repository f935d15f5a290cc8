/* Numbers that are not finite end a training before the weights change, with a message that names
 * the iteration, the layer or parameter, and the samples: the same on any number of workers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "trainings/training.h"
#include "snapshot/archive.h"
#include "solver/notes.h"

static const int counts[] = {1, 2, 3, 5, 8};
enum { COUNTS = sizeof counts / sizeof *counts, SAMPLES = 200, SIDE = 4 };

/* What a training said, and a hash of what it left behind. */
struct ending {
    char message[1024];
    struct bytes state;
};

/* All parameters of a trainer, one behind the other. */
static struct bytes read_weights(const struct training *training)
{
    struct bytes bytes = {0};
    for (size_t i = 0; i < lockstep_trainer_parameter_count(training->trainer); i++) {
        size_t size = lockstep_trainer_parameter_size(training->trainer, i);
        bytes.data = realloc(bytes.data, bytes.size + size * sizeof(float));
        float *to = (float *)(void *)(bytes.data + bytes.size);
        assert_int_equal(lockstep_trainer_read_parameter(training->trainer, i, to, size, NULL), 0);
        bytes.size += size * sizeof(float);
    }
    return bytes;
}

/* Sets all elements of a parameter. */
static void set_parameter(struct training *training, size_t index, float value)
{
    size_t size = lockstep_trainer_parameter_size(training->trainer, index);
    float *data = malloc(size * sizeof *data);
    for (size_t i = 0; i < size; i++)
        data[i] = value;
    assert_int_equal(lockstep_trainer_write_parameter(training->trainer, index, data, size, NULL),
                     0);
    free(data);
}

/* Trains until it diverges, which must leave weights and iteration as they were. */
static struct ending diverge(struct training *training, int64_t iteration)
{
    struct ending ending;
    for (int64_t i = 0; i < iteration; i++)
        step(training, 1);
    struct bytes before = read_weights(training);
    int status = lockstep_trainer_step(training->trainer, 1, training->error);
    assert_int_equal(status, LOCKSTEP_DIVERGED);
    assert_int_equal(lockstep_error_status(training->error), LOCKSTEP_DIVERGED);
    assert_int_equal(lockstep_trainer_iteration(training->trainer), iteration);
    struct bytes after = read_weights(training);
    assert_true(same_bytes(before, after));
    free(before.data);
    free(after.data);
    snprintf(ending.message, sizeof ending.message, "%s", lockstep_error_text(training->error));
    ending.state = snapshot(training);
    return ending;
}

/* Whether the message has all of these, in any order; the list ends with NULL. */
static void check_message(const char *message, const char *const *parts)
{
    for (; *parts != NULL; parts++)
        if (strstr(message, *parts) == NULL)
            fail_msg("'%s' is not in: %s", *parts, message);
}

/* `prepare` (may be NULL) is called before the first update. */
static void check_divergence(const struct lockstep_solver *solver,
                             void (*prepare)(struct training *training), int64_t iteration,
                             const char *const *parts)
{
    struct ending first = {0};
    for (int i = 0; i < COUNTS; i++) {
        struct training *training = start(solver, counts[i], NULL, NULL);
        if (prepare != NULL)
            prepare(training);
        struct ending ending = diverge(training, iteration);
        check_message(ending.message, parts);
        if (i == 0)
            first = ending;
        else {
            assert_string_equal(ending.message, first.message);
            check_same(first.state, ending.state, "%d workers", counts[i]);
        }
        finish(training);
    }
    free(first.state.data);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

#define IDX_DATA                                                                                   \
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label'\n"                                 \
    "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 100 } }\n"

/* The first update makes the weights huge; the second one's loss is not finite. */
static void a_loss_that_is_not_finite_ends_the_training(void **state)
{
    (void)state;
    static const char *const parts[] = {"iteration 1: the loss 'loss'", "layer 'loss'",
                                        "samples 100 to 110", NULL};
    struct lockstep_solver *solver = load_solver(
        "base_lr: 1e25 lr_policy: 'fixed' max_iter: 10 micro_batch: 12\n"
        "net_param {\n" IDX_DATA
        "layer { name: 'ip1' type: 'InnerProduct' bottom: 'data' top: 'ip1'\n"
        "  inner_product_param { num_output: 8 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip1' top: 'ip2'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }\n"
        "}\n",
        ls_test_path("images"), ls_test_path("labels"));
    check_divergence(solver, NULL, 1, parts);
    lockstep_solver_free(solver);
}

/* Labels outside the classes of the net, which are found only when they are read. */
static void a_label_that_is_no_class_ends_the_training(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "iteration 0: the loss 'loss'",
        "layer 'loss'",
        "samples 10 to 19",
        ": label 10 is none of the 10 classes of layer 'loss' in 'label'",
        "hint: look at what makes these numbers",
        NULL};
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 10 micro_batch: 10\n"
        "net_param {\n"
        "layer { name: 'dummy' type: 'DummyData' top: 'data' top: 'zeros'\n"
        "  dummy_data_param { shape { dim: 100 dim: 3 } shape { dim: 100 }\n"
        "    data_filler { type: 'gaussian' } data_filler { type: 'integer' max: 9 } } }\n"
        "layer { name: 'shift' type: 'Power' bottom: 'zeros' top: 'label'\n"
        "  power_param { shift: 1 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
        "}\n");
    check_divergence(solver, NULL, 0, parts);
    lockstep_solver_free(solver);
}

/* A layer that makes no number of what it gets, whatever the rate is: it is named, with the number
 * and the sample, and no rates are spoken of. */
static void the_layer_that_makes_it_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *layer, *parts[6];
    } cases[] = {
        {"layer { name: 'odd' type: 'Log' bottom: 'bn' top: 'odd' }\n",
         {"layer 'odd' (", "makes NaN", "in 'odd', sample ", "images: record ",
          "hint: no update has changed a weight yet", NULL}},
        {"layer { name: 'odd' type: 'Power' bottom: 'bn' top: 'odd' power_param { power: 0.5 } }\n",
         {"layer 'odd' (", "makes NaN", "in 'odd', sample ", "images: record ",
          "hint: no update has changed a weight yet", NULL}},
        {"layer { name: 'odd' type: 'Exp' bottom: 'bn' top: 'odd' exp_param { scale: 1000 } }\n",
         {"layer 'odd' (", "makes inf", "in 'odd', sample ", "images: record ",
          "hint: no update has changed a weight yet", NULL}},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct lockstep_solver *solver = load_solver(
            "base_lr: %s lr_policy: 'fixed' max_iter: 10 micro_batch: 12\n"
            "net_param {\n" IDX_DATA
            "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'bn' }\n"
            "%s"
            "layer { name: 'ip' type: 'InnerProduct' bottom: 'odd' top: 'ip'\n"
            "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
            "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' "
            "}\n"
            "}\n",
            i % 2 == 0 ? "0" : "0.01", ls_test_path("images"), ls_test_path("labels"),
            cases[i / 2].layer);
        check_divergence(solver, NULL, 0, cases[i / 2].parts);
        lockstep_solver_free(solver);
    }
}

/* ---- Gradients ------------------------------------------------------------------------------- */

enum { BRIGHT = 157 }; /* the one sample that is not black */

static struct lockstep_solver *distance_solver(void)
{
    return load_solver(
        "base_lr: 1e-30 lr_policy: 'fixed' max_iter: 10 micro_batch: 12\n"
        "net_param {\n" IDX_DATA
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  inner_product_param { num_output: 1 } }\n"
        "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'label' top: 'loss'\n"
        "  loss_weight: 10 }\n"
        "}\n",
        ls_test_path("black"), ls_test_path("labels"));
}

/* Gradients that go with the weight, and no samples beside which others vanish. */
static struct lockstep_solver *steady_solver(void)
{
    return load_solver(
        "base_lr: 1e-30 lr_policy: 'fixed' max_iter: 100 micro_batch: 12\n"
        "net_param {\n" IDX_DATA
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  inner_product_param { num_output: 1 } }\n"
        "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
        "}\n",
        ls_test_path("images"), ls_test_path("labels"));
}

/* A weight whose loss, which is summed in double, is finite, and whose gradient is not. */
static void set_large(struct training *training)
{
    set_parameter(training, 0, 1e34F);
}

/* Update 1 holds samples 100 to 199 in 9 micro-batches: 157 is in the one from 155 to 165. */
static void a_gradient_that_is_not_finite_is_told_with_its_samples(void **state)
{
    (void)state;
    static const char *const parts[] = {"iteration 1: the gradient of 'ip.weight'",
                                        "samples 155 to 165", NULL};
    struct lockstep_solver *solver = distance_solver();
    check_divergence(solver, set_large, 1, parts);
    lockstep_solver_free(solver);
}

/* After the weights are repaired the training goes on, with the same update. */
static void training_goes_on_after_weights_are_repaired(void **state)
{
    (void)state;
    struct lockstep_solver *solver = distance_solver();
    struct bytes first = {0};
    for (int i = 0; i < COUNTS; i++) {
        struct training *training = start(solver, counts[i], NULL, NULL);
        set_large(training);
        struct ending ending = diverge(training, 1);
        set_parameter(training, 0, 0.5F);
        step(training, 3);
        assert_int_equal(lockstep_trainer_iteration(training->trainer), 4);
        assert_true(isfinite(lockstep_trainer_loss(training->trainer)));
        count_micro_batches(training);
        struct bytes bytes = snapshot(training);
        if (i == 0)
            first = bytes;
        else
            check_same(first, bytes, "going on, %d workers", counts[i]);
        free(ending.state.data);
        finish(training);
    }
    free(first.data);
    lockstep_solver_free(solver);
}

/* ---- Signs ----------------------------------------------------------------------------------- */

enum { SIGN = 12 }; /* the iteration */

struct sign {
    int count;
    char text[1024];
};

static void note_sign(void *user, const struct lockstep_event *event)
{
    struct sign *sign = user;
    if (event->text == NULL || strstr(event->text, "times as large as any lately") == NULL)
        return;
    sign->count++;
    snprintf(sign->text, sizeof sign->text, "%s", event->text);
}

/* Between two updates the weights grow so much that their gradient is 2^`growth` times its
 * earlier maximum: the notices, and what a snapshot keeps of them. */
static void grow(const struct lockstep_solver *solver, int workers, int growth, struct sign *sign,
                 char *note, size_t size)
{
    struct training *training = start(solver, workers, NULL, NULL);
    training->trainer->inner->callbacks =
        (struct lockstep_callbacks){.user = sign, .event = note_sign};
    set_parameter(training, 0, 1000);
    step(training, SIGN);
    assert_int_equal(sign->count, 0);
    set_parameter(training, 0, ldexpf(1000, growth));
    step(training, 1);
    free(snapshot(training).data);
    struct ls_archive archive;
    assert_int_equal(
        ls_archive_read(ls_test_path("snapshot.safetensors"), LS_ARCHIVE_CHECK, &archive, NULL), 0);
    const char *value = ls_archive_note(&archive, LS_NOTE_OUTGREW);
    snprintf(note, size, "%s", value != NULL ? value : "none");
    ls_archive_free(&archive);
    finish(training);
}

/* A gradient that grows by 2^16 is reported with its parameter, an explanation and a hint; one
 * that grows by 2^5 is not. */
static void a_gradient_that_grows_suddenly_is_told(void **state)
{
    (void)state;
    static const char *const parts[] = {"Iteration 12: the gradient of 'ip.weight' is 2^",
                                        "first sign of divergence", "a lower base_lr", NULL};
    struct lockstep_solver *solver = steady_solver();
    char first[1024] = "", note[64];
    for (int i = 0; i < COUNTS; i++) {
        struct sign sign = {0}, none = {0};
        grow(solver, counts[i], 16, &sign, note, sizeof note);
        assert_int_equal(sign.count, 1);
        check_message(sign.text, parts);
        assert_string_equal(note, "12 12");
        if (i == 0)
            snprintf(first, sizeof first, "%s", sign.text);
        assert_string_equal(sign.text, first);
        grow(solver, counts[i], 5, &none, note, sizeof note);
        assert_int_equal(none.count, 0);
        assert_string_equal(note, "none");
    }
    lockstep_solver_free(solver);
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* Loss and gradient are finite, the new weights are not: this is found after the update, and
 * reported at once. */
static void weights_that_are_not_finite_end_the_training(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load_solver(
        "base_lr: 3e38 lr_policy: 'fixed' max_iter: 10 micro_batch: 12\n"
        "net_param {\n" IDX_DATA
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
        "}\n",
        ls_test_path("images"), ls_test_path("labels"));
    char first[1024] = "";
    for (int i = 0; i < COUNTS; i++) {
        struct training *training = start(solver, counts[i], NULL, NULL);
        int status = lockstep_trainer_step(training->trainer, 1, training->error);
        assert_int_equal(status, LOCKSTEP_DIVERGED);
        const char *message = lockstep_error_text(training->error);
        check_message(message, (const char *const[]){"iteration 0", "ip.weight", NULL});
        if (i == 0)
            snprintf(first, sizeof first, "%s", message);
        assert_string_equal(message, first);
        finish(training);
    }
    lockstep_solver_free(solver);
}

/* The pictures of write_idx_pair, all black but one. */
static void write_black(const char *path)
{
    enum { SIZE = SIDE * SIDE };
    size_t size;
    char *bytes = ls_test_read(ls_test_path("images"), &size);
    for (int i = 0; i < SAMPLES; i++)
        memset(bytes + 16 + i * SIZE, i == BRIGHT ? 255 : 0, SIZE);
    ls_test_write(path, bytes, size);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_that_is_not_finite_ends_the_training),
        cmocka_unit_test(a_label_that_is_no_class_ends_the_training),
        cmocka_unit_test(the_layer_that_makes_it_is_named),
        cmocka_unit_test(a_gradient_that_is_not_finite_is_told_with_its_samples),
        cmocka_unit_test(training_goes_on_after_weights_are_repaired),
        cmocka_unit_test(a_gradient_that_grows_suddenly_is_told),
        cmocka_unit_test(weights_that_are_not_finite_end_the_training),
    };
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, SIDE);
    write_black(ls_test_path("black"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
