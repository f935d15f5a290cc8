/* Gradients that outgrow their exact sums: the update is repeated with other exponents, with the
 * same bytes on any number of workers, and the log reports it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "engine/exponents.h"
#include "engine/rows.h"
#include "trainings/training.h"
#include "snapshot/archive.h"

static const int counts[] = {1, 2, 3, 5, 8};
enum { COUNTS = sizeof counts / sizeof *counts };

/* ---- Exponents that do not fit --------------------------------------------------------------- */

static struct lockstep_solver *image_solver(void)
{
    return load_solver(
        "type: 'Nesterov' base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: 20\n"
        "clip_gradients: 3 iter_size: 2 micro_batch: 6\n"
        "net_param { %s }\n",
        ls_test_net("drawn_digits", NULL));
}

/* Moves exponents out of what fits: sums that overflow, that are coarse, or both. */
static void spoil_exponents(struct training *training, int which)
{
    struct ls_sums *sums = training->trainer->inner->store->sums;
    size_t count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t i = 0; i < count; i++) {
        int way = which == 2 ? (int)(i % 3) : which;
        int by = way == 0 ? 25 : way == 1 ? -12 : 0;
        ls_sums_set_exponent(sums, (int)i, ls_sums_exponent(sums, (int)i) + by);
    }
}

static void an_overflow_repeats_the_update_with_same_bits_on_any_workers(void **state)
{
    (void)state;
    struct lockstep_solver *solver = image_solver();
    struct training *undisturbed = start(solver, 1, NULL, NULL);
    step(undisturbed, 6);
    double loss = lockstep_trainer_loss(undisturbed->trainer);
    assert_int_equal(undisturbed->repeats, 0);
    int64_t micro_batches = count_micro_batches(undisturbed);
    finish(undisturbed);
    for (int which = 0; which < 3; which++) {
        struct bytes first = {0};
        for (int i = 0; i < COUNTS; i++) {
            struct training *training = start(solver, counts[i], NULL, NULL);
            step(training, 3);
            spoil_exponents(training, which);
            step(training, 1);
            const int repeats = which != 1;
            assert_int_equal(training->repeats, repeats);
            step(training, 2);
            assert_int_equal(training->repeats, repeats);
            /* 100 samples in micro-batches of at most 6 */
            assert_int_equal(count_micro_batches(training), micro_batches + 18 * repeats);
            assert_true(fabs(lockstep_trainer_loss(training->trainer) - loss) < 1e-5);
            struct bytes bytes = snapshot(training);
            if (i == 0)
                first = bytes;
            else
                check_same(first, bytes, "spoiled in way %d, %d workers", which, counts[i]);
            finish(training);
        }
        free(first.data);
    }
    lockstep_solver_free(solver);
}

/* The first row of the first weights gets an exponent that does not fit; the others of the
 * parameter are as large as ever, so that none of them has outgrown what they were. */
static void spoil_row(struct training *training)
{
    struct ls_sums *sums = training->trainer->inner->store->sums;
    for (int i = 0; i < (int)lockstep_trainer_parameter_count(training->trainer); i++) {
        int32_t state[6]; /* one for each output */
        if (strcmp(lockstep_trainer_parameter_name(training->trainer, (size_t)i), "conv1.weight") !=
            0)
            continue;
        memcpy(state, ls_sums_state(sums, i), sizeof state);
        state[0] = ls_sums_state_of(ls_sums_exponent(sums, i) + 25);
        ls_sums_set_state(sums, i, state);
    }
}

/* Of many repeated updates the log reports the first three, the 10th and the 100th. */
static void of_many_repeats_only_some_are_told(void **state)
{
    (void)state;
    struct lockstep_solver *solver = image_solver();
    struct training *training = start(solver, 2, NULL, NULL);
    const int told[] = {1, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4};
    step(training, 1); /* measures exponents */
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        spoil_row(training);
        step(training, 1);
        assert_int_equal(training->repeats, told[i]);
    }
    finish(training);
    lockstep_solver_free(solver);
}

/* A repeated update advances the moving averages once: they are those of an update without a
 * repeat, which starts from the same weights. */
static void a_repeated_update_advances_the_averages_once(void **state)
{
    (void)state;
    struct lockstep_solver *solver =
        load_solver("base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: 20 micro_batch: 6\n"
                    "net_param { %s }\n",
                    ls_test_net("drawn_digits_normed", NULL));
    struct training *once = start(solver, 2, NULL, NULL), *twice = start(solver, 2, NULL, NULL);
    step(once, 4);
    step(twice, 3);
    spoil_exponents(twice, 0);
    step(twice, 1);
    assert_int_equal(once->repeats, 0);
    assert_int_equal(twice->repeats, 1);
    size_t averages = 0;
    for (size_t i = 0; i < lockstep_trainer_parameter_count(once->trainer); i++) {
        const char *name = lockstep_trainer_parameter_name(once->trainer, i);
        size_t size = lockstep_trainer_parameter_size(once->trainer, i);
        float a[12], b[12];
        if (strncmp(name, "norm.", 5) != 0)
            continue;
        assert_in_range(size, 1, 12);
        assert_int_equal(lockstep_trainer_read_parameter(once->trainer, i, a, size, NULL), 0);
        assert_int_equal(lockstep_trainer_read_parameter(twice->trainer, i, b, size, NULL), 0);
        if (memcmp(a, b, size * sizeof *a) != 0)
            fail_msg("%s is advanced otherwise where the update is repeated", name);
        averages++;
    }
    assert_int_equal(averages, 3);
    finish(once);
    finish(twice);
    lockstep_solver_free(solver);
}

/* Writes a snapshot as versions of numerics 1 did: with one exponent for each parameter. */
static void write_as_before(const char *path, const char *out, const int32_t *exponents,
                            size_t count)
{
    struct ls_archive from = {0}, to = {0};
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &from, NULL), 0);
    for (size_t i = 0; i < from.tensor_count; i++) {
        const struct ls_tensor *tensor = &from.tensors[i];
        if (strcmp(tensor->name, "state.row_exponents") != 0)
            assert_int_equal(
                ls_archive_add(&to, tensor->name, tensor->type, &tensor->shape, tensor->data, NULL),
                0);
    }
    assert_int_equal(to.tensor_count, from.tensor_count - 1);
    assert_int_equal(
        ls_archive_add_list(&to, "state.exponents", LS_I32, (int64_t)count, exponents, NULL), 0);
    for (size_t i = 0; i < from.note_count; i++)
        assert_int_equal(ls_archive_add_note(&to, from.notes[i].key, from.notes[i].value, NULL), 0);
    assert_int_equal(ls_archive_write(&to, out, NULL), 0);
    ls_archive_free(&to);
    ls_archive_free(&from);
}

/* All rows of a parameter get the one exponent that was saved. */
static void snapshots_of_numerics_1_give_all_rows_one_exponent(void **state)
{
    (void)state;
    struct lockstep_solver *solver = image_solver();
    struct training *training = start(solver, 2, NULL, NULL);
    const char *half = ls_test_path("half.safetensors"), *old = ls_test_path("old.safetensors");
    struct ls_sums *sums = training->trainer->inner->store->sums;
    size_t count = lockstep_trainer_parameter_count(training->trainer);
    int32_t exponents[16];
    step(training, 3);
    assert_in_range(count, 1, 16);
    for (size_t i = 0; i < count; i++)
        exponents[i] = ls_sums_exponent(sums, (int)i);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, half, NULL), 0);
    write_as_before(half, old, exponents, count);
    struct training *resumed = start(solver, 3, NULL, old);
    sums = resumed->trainer->inner->store->sums;
    for (size_t i = 0; i < count; i++) {
        int32_t plain[4096]; /* without a layout's padding, of which nothing is known */
        size_t rows = ls_rows_count(resumed->trainer->inner->store, (int)i);
        assert_in_range(rows, 1, sizeof plain / sizeof *plain);
        assert_int_equal(ls_rows_read(resumed->trainer->inner->store, (int)i, plain, NULL), 0);
        assert_int_equal(ls_sums_exponent(sums, (int)i), exponents[i]);
        for (size_t row = 1; row < rows; row++)
            assert_int_equal(plain[row], plain[0]);
    }
    step(training, 3);
    step(resumed, 3);
    assert_int_equal(resumed->repeats, 0);
    assert_true(fabs(lockstep_trainer_loss(training->trainer) -
                     lockstep_trainer_loss(resumed->trainer)) < 1e-4);
    finish(training);
    finish(resumed);
    lockstep_solver_free(solver);
}

/* States that no training can reach become the nearest possible ones, in every layout. */
static void impossible_states_become_the_nearest_possible(void **state)
{
    (void)state;
    static const int32_t given[] = {INT32_MAX, LS_SUMS_STATE_UNSET + 1, INT32_MIN, -5000};
    const int32_t least = ls_sums_state_of(-1000);
    const int32_t expected[] = {LS_SUMS_STATE_UNSET, LS_SUMS_STATE_UNSET, least, least};
    struct lockstep_solver *solver = image_solver();
    struct training *training = start(solver, 1, NULL, NULL);
    struct ls_store *store = training->trainer->inner->store;
    for (size_t n = 0; n < sizeof given / sizeof *given; n++)
        for (int i = 0; i < (int)store->set->count; i++) {
            size_t rows = ls_rows_count(store, i);
            int32_t *states = malloc((rows + 1) * sizeof *states);
            for (size_t row = 0; row < rows; row++)
                states[row] = given[n];
            assert_int_equal(ls_rows_write(store, i, states, NULL), 0);
            assert_int_equal(ls_rows_read(store, i, states, NULL), 0);
            for (size_t row = 0; row < rows; row++)
                assert_int_equal(states[row], expected[n]);
            free(states);
        }
    finish(training);
    lockstep_solver_free(solver);
}

/* ---- Gradients that jump --------------------------------------------------------------------- */

enum { JUMP_SAMPLES = 400, JUMP_SIDE = 4 };

/* Half of the samples are dark with target 1, the others bright with target 255: the gradient
 * jumps by about 2^16 between the halves. */
static struct lockstep_solver *jumping_solver(void)
{
    static uint8_t pixels[JUMP_SAMPLES][JUMP_SIDE * JUMP_SIDE], labels[JUMP_SAMPLES];
    for (uint32_t i = 0; i < JUMP_SAMPLES; i++) {
        bool bright = i >= JUMP_SAMPLES / 2;
        labels[i] = bright ? 255 : 1;
        for (uint32_t k = 0; k < JUMP_SIDE * JUMP_SIDE; k++)
            pixels[i][k] = (uint8_t)((bright ? 254 : 0) + ls_random_below(3, i, k, 2));
    }
    write_idx(ls_test_path("jump-images"), ls_test_path("jump-labels"), JUMP_SAMPLES, JUMP_SIDE,
              JUMP_SIDE, pixels[0], labels);
    return load_solver(
        "base_lr: 1e-9 momentum: 0.9 lr_policy: 'fixed' max_iter: 30 micro_batch: 4\n"
        "net_param {\n"
        "layer { name: 'jump' type: 'Data' top: 'data' top: 'label'\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 40 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  inner_product_param { num_output: 1\n"
        "    weight_filler { type: 'gaussian' std: 0.001 } } }\n"
        "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
        "}\n",
        ls_test_path("jump-images"), ls_test_path("jump-labels"));
}

/* The gradients jump up after 5 updates, down after 10, and so on. Exponents follow, and stay
 * large for a while. No update is repeated. */
static void gradients_that_jump_repeat_no_update_and_resume_with_same_bits(void **state)
{
    (void)state;
    struct lockstep_solver *solver = jumping_solver();
    struct bytes first = {0};
    for (int i = 0; i < COUNTS; i++) {
        int resumed_on = counts[COUNTS - 1 - i];
        struct training *training = start(solver, counts[i], NULL, NULL);
        step(training, 15);
        assert_int_equal(training->repeats, 0);
        const char *half = ls_test_path("half.safetensors");
        assert_int_equal(lockstep_trainer_snapshot(training->trainer, half, NULL), 0);
        struct training *resumed = start(solver, resumed_on, NULL, half);
        step(training, 12);
        step(resumed, 12);
        assert_int_equal(training->repeats, 0);
        assert_int_equal(resumed->repeats, 0);
        count_micro_batches(resumed);
        struct bytes bytes = snapshot(training);
        check_same(bytes, snapshot(resumed), "resumed on %d workers", resumed_on);
        if (i == 0)
            first = bytes;
        else
            check_same(first, bytes, "%d workers", counts[i]);
        finish(training);
        finish(resumed);
    }
    free(first.data);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overflow_repeats_the_update_with_same_bits_on_any_workers),
        cmocka_unit_test(of_many_repeats_only_some_are_told),
        cmocka_unit_test(a_repeated_update_advances_the_averages_once),
        cmocka_unit_test(snapshots_of_numerics_1_give_all_rows_one_exponent),
        cmocka_unit_test(impossible_states_become_the_nearest_possible),
        cmocka_unit_test(gradients_that_jump_repeat_no_update_and_resume_with_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
