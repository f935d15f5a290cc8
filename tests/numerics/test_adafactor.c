/* Adafactor's updates of matrices, windows of a convolution, vectors, with a gradient of zeros:
 * near what its formulas give in double, for gradients as the trainer hands them out; what
 * snapshots hold of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "snapshot/archive.h"
#include "trainings/data_files.h"
#include "trainings/matrices.h"
#include "trainings/training.h"

enum { SAMPLES = 40, UPDATES = 4, MOST = 60 * 144 };

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 12);
    return 0;
}

/* The parameters that are looked at; a vector has no rows. */
static const struct matrix {
    const char *name;
    int matrices, rows, columns;
    bool zero; /* its gradient */
} matrices[] = {{"conv.weight", 5, 3, 3, false},   {"wide.weight", 1, 31, 144, false},
                {"row.weight", 1, 1, 31, false},   {"column.weight", 1, 60, 1, false},
                {"square.weight", 1, 7, 7, false}, {"wide.bias", 1, 0, 31, false},
                {"row.bias", 1, 0, 1, false},      {"dead.weight", 1, 10, 31, true},
                {"dead.bias", 1, 0, 10, true}};
enum { MATRICES = sizeof matrices / sizeof *matrices };

static int size_of(const struct matrix *matrix)
{
    return matrix->matrices * (matrix->rows > 0 ? matrix->rows : 1) * matrix->columns;
}

static const struct settings {
    const char *text;
    double rate, momentum, square_min, scale_min, clip, decay_power;
    bool relative_step, scale_parameter;
} all_settings[] = {
    {"base_lr: 0.75", 0.75, 0, 1e-30, 1e-3, 1, 0.8, true, true},
    {"base_lr: 0.01 momentum: 0.9 adafactor_param { relative_step: false scale_parameter: false "
     "clip: 0.5 decay_power: 0.5 square_min: 0 }",
     0.01, 0.9, 0, 1e-3, 0.5, 0.5, false, false},
    {"base_lr: 0.25 adafactor_param { scale_min: 0.25 square_min: 0.0001 decay_power: 0 }", 0.25, 0,
     1e-4, 0.25, 1, 0, true, true},
};
enum { SETTINGS = sizeof all_settings / sizeof *all_settings };

static const double decay = 0.125;

static struct lockstep_solver *make_solver(const struct settings *settings)
{
    return load_matrices("type: 'Adafactor' weight_decay: 0.125", settings->text);
}

/* ---- In double ------------------------------------------------------------------------------- */

struct tracked {
    size_t parameter;
    float weight[MOST]; /* before the update */
    double rows[MOST], columns[MOST], history[MOST];
};

static struct tracked tracked[MATRICES];

static double mean_square(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum / n;
}

/* From a gradient to the step before the rate, of a matrix or a vector; second moments move. */
static void divide(const struct settings *settings, int rows, int columns, double fresh,
                   double *row_moments, double *column_moments, double *g)
{
    double all = 0;
    for (int i = 0; i < rows; i++) {
        row_moments[i] = (1 - fresh) * row_moments[i] +
                         fresh * (mean_square(g + i * columns, columns) + settings->square_min);
        all += row_moments[i] / rows;
    }
    for (int j = 0; j < columns; j++) {
        double sum = 0;
        for (int i = 0; i < (rows > 0 ? rows : 1); i++)
            sum += g[i * columns + j] * g[i * columns + j] / (rows > 0 ? rows : 1);
        column_moments[j] = (1 - fresh) * column_moments[j] + fresh * (sum + settings->square_min);
        for (int i = 0; i < (rows > 0 ? rows : 1); i++) {
            const double part = rows > 0 ? row_moments[i] / all : 1;
            double *to = &g[i * columns + j];
            *to = *to != 0 ? *to / sqrt(part * column_moments[j]) : 0;
        }
    }
}

/* The change of weights without their decay, in place of the gradient. */
static void make_step(const struct settings *settings, const struct matrix *matrix,
                      struct tracked *t, int update, double *g)
{
    const int size = size_of(matrix), each = size / matrix->matrices;
    const double fresh = pow(update, -settings->decay_power);
    double rate = settings->rate, weights = 0;
    if (settings->relative_step)
        rate = fmin(rate, 1 / sqrt(update));
    for (int i = 0; i < size; i++)
        weights += (double)t->weight[i] * (double)t->weight[i] / size;
    if (settings->scale_parameter)
        rate *= fmax(settings->scale_min, sqrt(weights));
    for (int m = 0; m < matrix->matrices; m++)
        divide(settings, matrix->rows, matrix->columns, fresh, t->rows + m * matrix->rows,
               t->columns + m * matrix->columns, g + m * each);
    rate /= fmax(1, sqrt(mean_square(g, size)) / settings->clip);
    for (int i = 0; i < size; i++) {
        t->history[i] = settings->momentum * t->history[i] + (1 - settings->momentum) * rate * g[i];
        g[i] = t->history[i];
    }
}

/* ---- Beside the trainer ---------------------------------------------------------------------- */

static void read_weights(struct training *training, int m, float *to)
{
    const struct matrix *matrix = &matrices[m];
    assert_int_equal(lockstep_trainer_read_parameter(training->trainer, tracked[m].parameter, to,
                                                     (size_t)size_of(matrix), training->error),
                     0);
}

static void find_matrices(struct training *training)
{
    for (int m = 0; m < MATRICES; m++) {
        size_t p = 0;
        while (strcmp(lockstep_trainer_parameter_name(training->trainer, p), matrices[m].name) != 0)
            assert_true(++p < lockstep_trainer_parameter_count(training->trainer));
        memset(&tracked[m], 0, sizeof tracked[m]);
        tracked[m].parameter = p;
        read_weights(training, m, tracked[m].weight);
    }
}

static void check_parameter(struct training *training, const struct settings *settings, int update,
                            int m)
{
    static float gradient[MOST], after[MOST];
    static double step_of[MOST];
    const struct matrix *matrix = &matrices[m];
    const int size = size_of(matrix);
    struct tracked *t = &tracked[m];
    double largest = 0, gradients = 0;
    assert_int_equal(lockstep_trainer_read_gradient(training->trainer, t->parameter, gradient,
                                                    (size_t)size, training->error),
                     0);
    for (int i = 0; i < size; i++) {
        step_of[i] = (double)gradient[i];
        gradients = fmax(gradients, fabs(step_of[i]));
    }
    assert_int_equal(gradients > 0, !matrix->zero);
    make_step(settings, matrix, t, update, step_of);
    for (int i = 0; i < size; i++)
        largest = fmax(largest, fabs(step_of[i]));
    assert_int_equal(largest > 1e-5, !matrix->zero);
    read_weights(training, m, after);
    for (int i = 0; i < size; i++) {
        const double w = (double)t->weight[i];
        const double expected = w - step_of[i] - settings->rate * decay * w;
        if (!(fabs((double)after[i] - expected) <= 1e-5 * largest + 2e-7 * fabs(w)))
            fail_msg("%s, '%s', update %d: element %d is %.9g, not %.9g", matrix->name,
                     settings->text, update, i, (double)after[i], expected);
        t->weight[i] = after[i];
    }
}

static void updates_are_those_of_the_formulas(void **state)
{
    (void)state;
    for (int s = 0; s < SETTINGS; s++)
        for (int workers = 1; workers <= 3; workers += 2) {
            struct lockstep_solver *solver = make_solver(&all_settings[s]);
            struct training *training = start(solver, workers, NULL, NULL);
            find_matrices(training);
            for (int u = 1; u <= UPDATES; u++) {
                step(training, 1);
                for (int m = 0; m < MATRICES; m++)
                    check_parameter(training, &all_settings[s], u, m);
            }
            finish(training);
            lockstep_solver_free(solver);
        }
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static void expect_tensor(const struct ls_archive *archive, const char *name, int rank,
                          const int64_t *dim, const double *values)
{
    const struct ls_tensor *tensor = ls_archive_find(archive, name);
    if (rank == 0 && tensor != NULL)
        fail_msg("there is '%s'", name);
    if (rank > 0 && tensor == NULL)
        fail_msg("there is no '%s'", name);
    if (rank == 0)
        return;
    assert_int_equal(tensor->shape.rank, rank);
    for (int axis = 0; axis < rank; axis++)
        assert_int_equal(tensor->shape.dim[axis], dim[axis]);
    for (int64_t i = 0; i < ls_shape_size(&tensor->shape); i++) {
        float value;
        memcpy(&value, (const char *)tensor->data + 4 * i, sizeof value);
        assert_true(fabs((double)value - values[i]) <= 1e-5 * values[i]);
    }
}

/* Moments of rows and columns are what the formulas have, and in place of arrays of the size of the
 * weights. */
static void snapshots_hold_moments_of_rows_and_columns(void **state)
{
    (void)state;
    const char *path = ls_test_path("adafactor.safetensors");
    struct lockstep_solver *solver = make_solver(&all_settings[0]);
    struct training *training = start(solver, 2, NULL, NULL);
    struct ls_archive archive = {0};
    struct ls_error error = {0};
    find_matrices(training);
    for (int u = 1; u <= UPDATES; u++) {
        step(training, 1);
        for (int m = 0; m < MATRICES; m++)
            check_parameter(training, &all_settings[0], u, m);
    }
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error), 0);
    finish(training);
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &archive, &error), 0);
    const int64_t conv[] = {5, 1, 3}, rows[] = {31}, columns[] = {144}, one[] = {1};
    expect_tensor(&archive, "state.rows.conv.weight", 3, conv, tracked[0].rows);
    expect_tensor(&archive, "state.columns.conv.weight", 3, conv, tracked[0].columns);
    expect_tensor(&archive, "state.rows.wide.weight", 1, rows, tracked[1].rows);
    expect_tensor(&archive, "state.columns.wide.weight", 1, columns, tracked[1].columns);
    expect_tensor(&archive, "state.rows.row.weight", 1, one, tracked[2].rows);
    expect_tensor(&archive, "state.history1.wide.bias", 1, rows, tracked[5].columns);
    expect_tensor(&archive, "state.rows.wide.bias", 0, NULL, NULL);
    expect_tensor(&archive, "state.columns.wide.bias", 0, NULL, NULL);
    expect_tensor(&archive, "state.history0.wide.weight", 0, NULL, NULL);
    expect_tensor(&archive, "state.history1.wide.weight", 0, NULL, NULL);
    ls_archive_free(&archive);
    lockstep_solver_free(solver);
}

static void rename_in(struct bytes bytes, const char *name, const char *other)
{
    for (size_t i = 0; i + strlen(name) <= bytes.size; i++)
        if (memcmp(bytes.data + i, name, strlen(name)) == 0) {
            memcpy(bytes.data + i, other, strlen(name));
            return;
        }
    fail_msg("there is no '%s'", name);
}

/* A snapshot that lacks moments is refused, with their name. */
static void a_resume_without_moments_is_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("cut.safetensors");
    struct lockstep_solver *solver = make_solver(&all_settings[0]);
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, 1);
    assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error), 0);
    finish(training);
    struct bytes bytes = read_bytes(path);
    rename_in(bytes, "state.rows.wide.weight", "state.rowz.wide.weight");
    rename_in(bytes, "lockstep.checksum", "it.was.left.out..");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    fclose(file);
    free(bytes.data);
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    options.resume = path;
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error), LOCKSTEP_WEIGHTS);
    if (strstr(lockstep_error_text(error), "state.rows.wide.weight") == NULL)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_the_formulas),
        cmocka_unit_test(snapshots_hold_moments_of_rows_and_columns),
        cmocka_unit_test(a_resume_without_moments_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
