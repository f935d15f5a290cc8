/* Muon's updates of matrices, wide, high, of one row or one column, of four axes, with a gradient
 * of zeros: near what its formulas give in double, for gradients as the trainer hands them out.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

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

/* The matrices that are looked at. */
static const struct matrix {
    const char *name;
    int rows, columns;
    bool zero; /* its gradient */
} matrices[] = {{"conv.weight", 5, 9, false},   {"wide.weight", 31, 144, false},
                {"row.weight", 1, 31, false},   {"column.weight", 60, 1, false},
                {"square.weight", 7, 7, false}, {"high.weight", 60, 7, false},
                {"dead.weight", 10, 31, true}};
enum { MATRICES = sizeof matrices / sizeof *matrices };

static const struct settings {
    const char *text;
    bool nesterov, match_rms;
    int iterations;
} all_settings[] = {
    {"", true, false, 5},
    {"muon_param { newton_schulz: 1 }", true, false, 1},
    {"muon_param { nesterov: false scale: MATCH_RMS newton_schulz: 3 }", false, true, 3},
};
enum { SETTINGS = sizeof all_settings / sizeof *all_settings };

static const float momentum = 0.9F, rate = 0.05F, decay = 0.125F, delta = 1e-6F;

static struct lockstep_solver *make_solver(const struct settings *settings)
{
    return load_matrices("type: 'Muon' base_lr: 0.05 momentum: 0.9 weight_decay: 0.125 delta: 1e-6 "
                         "param_group { max_axes: 1 type: 'SGD' momentum: 0.9 weight_decay: 0 }",
                         settings->text);
}

/* ---- In double ------------------------------------------------------------------------------- */

/* out = a b, of [n, k] and [k, m] */
static void multiply(int n, int k, int m, const double *a, const double *b, double *out)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            double sum = 0;
            for (int t = 0; t < k; t++)
                sum += a[i * k + t] * b[t * m + j];
            out[i * m + j] = sum;
        }
}

static void transpose(int rows, int columns, const double *from, double *to)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

/* x = 3.4445 x - 4.775 (x x^T) x + 2.0315 (x x^T)^2 x, whichever side is the longer one: the three
 * products may be grouped as one likes. */
static void iterate(int rows, int columns, double *x)
{
    static double turned[MOST], square[MOST], first[MOST], second[MOST];
    transpose(rows, columns, x, turned);
    multiply(columns, rows, columns, turned, x, square);
    multiply(rows, columns, columns, x, square, first);
    multiply(rows, columns, columns, first, square, second);
    for (int i = 0; i < rows * columns; i++)
        x[i] = 3.4445 * x[i] - 4.775 * first[i] + 2.0315 * second[i];
}

static void orthogonalize(const struct settings *settings, int rows, int columns, double *x)
{
    static double turned[MOST];
    double squares = 0;
    const bool wide = columns > rows; /* the smaller square is the cheaper one here, too */
    const double scale = settings->match_rms ? 0.2 * sqrt(fmax(rows, columns))
                                             : sqrt(fmax(1, (double)rows / columns));
    for (int i = 0; i < rows * columns; i++)
        squares += x[i] * x[i];
    for (int i = 0; i < rows * columns; i++)
        x[i] /= sqrt(squares) + (double)delta;
    if (wide)
        transpose(rows, columns, x, turned);
    for (int i = 0; i < settings->iterations; i++)
        iterate(wide ? columns : rows, wide ? rows : columns, wide ? turned : x);
    if (wide)
        transpose(columns, rows, turned, x);
    for (int i = 0; i < rows * columns; i++)
        x[i] *= scale;
}

/* ---- Beside the trainer ---------------------------------------------------------------------- */

struct tracked {
    size_t parameter;
    float weight[MOST]; /* before the update */
    double history[MOST];
};

static struct tracked tracked[MATRICES];

static void read_weights(struct training *training, int m, float *to)
{
    const struct matrix *matrix = &matrices[m];
    assert_int_equal(lockstep_trainer_read_parameter(training->trainer, tracked[m].parameter, to,
                                                     (size_t)(matrix->rows * matrix->columns),
                                                     training->error),
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

static void check_matrix(struct training *training, const struct settings *settings, int m)
{
    static float gradient[MOST], after[MOST];
    static double step_of[MOST];
    const struct matrix *matrix = &matrices[m];
    const int size = matrix->rows * matrix->columns;
    struct tracked *t = &tracked[m];
    const double mu = (double)momentum;
    double largest = 0, gradients = 0;
    assert_int_equal(lockstep_trainer_read_gradient(training->trainer, t->parameter, gradient,
                                                    (size_t)size, training->error),
                     0);
    for (int i = 0; i < size; i++) {
        const double g = (double)gradient[i];
        t->history[i] = mu * t->history[i] + (1 - mu) * g;
        step_of[i] = settings->nesterov ? mu * t->history[i] + (1 - mu) * g : t->history[i];
        gradients = fmax(gradients, fabs(g));
    }
    assert_int_equal(gradients > 0, !matrix->zero);
    orthogonalize(settings, matrix->rows, matrix->columns, step_of);
    for (int i = 0; i < size; i++)
        largest = fmax(largest, fabs(step_of[i]));
    assert_int_equal(largest > 0.01, !matrix->zero);
    read_weights(training, m, after);
    for (int i = 0; i < size; i++) {
        const double w = (double)t->weight[i];
        const double expected = w - (double)rate * (step_of[i] + (double)decay * w);
        if (!(fabs((double)after[i] - expected) <= 1e-3 * (double)rate * largest + 1e-7))
            fail_msg("%s, '%s': element %d is %.9g, not %.9g", matrix->name, settings->text, i,
                     (double)after[i], expected);
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
            for (int u = 0; u < UPDATES; u++) {
                step(training, 1);
                for (int m = 0; m < MATRICES; m++)
                    check_matrix(training, &all_settings[s], m);
            }
            finish(training);
            lockstep_solver_free(solver);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(updates_are_those_of_the_formulas)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
