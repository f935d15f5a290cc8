/* A net with two norms, and its updates as plain loops in double precision over all samples: the
 * reference of test_batch_statistics.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_BATCH_STATISTICS_H
#define LS_TESTS_BATCH_STATISTICS_H

#include <math.h>

#include "support/reference_batch_norm.h"
#include "trainings/training.h"

enum { SIDE = 4, PIXELS = SIDE * SIDE, HIDDEN = 5, SAMPLES = 40, BATCH = 20, MOST = 2 * BATCH };

/* ---- The net --------------------------------------------------------------------------------- */

struct settings {
    int batch, micro_batch, group, iter_size;
    double offset; /* is added to all pixels */
    const char *fields, *more;
};

static struct lockstep_solver *make_solver(const struct settings *s)
{
    const char *fields = s->fields != NULL ? s->fields : "";
    return load_solver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 100 random_seed: 3 iter_size: %d\n"
        "micro_batch: %d %s\n"
        "net_param { %s }\n",
        s->iter_size, s->micro_batch, s->more != NULL ? s->more : "",
        ls_test_net("batch_statistics",
                    LS_TEST_VALUES({"offset", ls_test_text("%g", -s->offset)},
                                   {"batch", ls_test_text("%d", s->batch)},
                                   {"group", ls_test_text("%d", s->group)}, {"fields", fields})));
}

enum parameter {
    MEAN_0,
    VARIANCE_0,
    FACTOR_0,
    SCALE_0,
    BIAS_0,
    WEIGHT_1,
    OFFSET_1,
    MEAN_1,
    VARIANCE_1,
    FACTOR_1,
    SCALE_1,
    BIAS_1,
    WEIGHT_2,
    OFFSET_2,
    PARAMETERS
};
enum { ELEMENTS = HIDDEN * PIXELS };

static const struct {
    const char *name;
    int size;
} parameters[PARAMETERS] = {
    {"n0.mean", 1},     {"n0.variance", 1},      {"n0.factor", 1}, {"n0.scale", 1},
    {"n0.bias", 1},     {"i1.weight", ELEMENTS}, {"i1.bias", 5},   {"n1.mean", 5},
    {"n1.variance", 5}, {"n1.factor", 1},        {"n1.scale", 5},  {"n1.bias", 5},
    {"i2.weight", 5},   {"i2.bias", 1},
};

static size_t index_of(const struct training *training, enum parameter which)
{
    size_t count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t i = 0; i < count; i++)
        if (strcmp(lockstep_trainer_parameter_name(training->trainer, i), parameters[which].name) ==
            0)
            return i;
    fail_msg("no parameter is called %s", parameters[which].name);
    return 0;
}

static void read_parameter(const struct training *training, enum parameter which, float *values)
{
    int status =
        lockstep_trainer_read_parameter(training->trainer, index_of(training, which), values,
                                        (size_t)parameters[which].size, training->error);
    if (status != 0)
        fail_msg("%s", lockstep_error_text(training->error));
}

static void read_gradient(const struct training *training, enum parameter which, float *values)
{
    int status =
        lockstep_trainer_read_gradient(training->trainer, index_of(training, which), values,
                                       (size_t)parameters[which].size, training->error);
    if (status != 0)
        fail_msg("%s", lockstep_error_text(training->error));
}

/* ---- The reference --------------------------------------------------------------------------- */

/* An update in double precision. */
struct update {
    int n;
    int group_end[MOST], groups;
    double x[MOST * PIXELS], y0[MOST * PIXELS], z1[MOST * HIDDEN], y1[MOST * HIDDEN];
    double dy0[MOST * PIXELS], dz1[MOST * HIDDEN], dy1[MOST * HIDDEN];
    double w[PARAMETERS][ELEMENTS], dw[PARAMETERS][ELEMENTS];
    double loss;
    struct reference_batch_norm first, second;
};

/* The samples of update `number`, the groups of its batches, the weights before it. */
static void set_up(struct update *u, const struct settings *s, const struct training *training,
                   int number)
{
    float values[ELEMENTS];
    memset(u, 0, sizeof *u);
    u->n = s->batch * s->iter_size;
    for (int i = 0; i < u->n; i++) {
        uint32_t record = (uint32_t)((number * u->n + i) % SAMPLES);
        for (uint32_t k = 0; k < PIXELS; k++)
            u->x[i * PIXELS + (int)k] = s->offset + pixel(record, record * 7 % 10, k, SIDE);
    }
    for (int b = 0; b < s->iter_size; b++) {
        int groups = s->group > 0 ? (s->batch + s->group - 1) / s->group : 1;
        for (int g = 1; g <= groups; g++)
            u->group_end[u->groups++] = b * s->batch + g * s->batch / groups;
    }
    for (int p = 0; p < PARAMETERS; p++) {
        read_parameter(training, (enum parameter)p, values);
        for (int i = 0; i < parameters[p].size; i++)
            u->w[p][i] = (double)values[i];
    }
    u->first = (struct reference_batch_norm){.n = u->n,
                                             .c = 1,
                                             .points = PIXELS,
                                             .group_end = u->group_end,
                                             .groups = u->groups,
                                             .eps = (double)1e-5F,
                                             .scale = u->w[SCALE_0],
                                             .bias = u->w[BIAS_0],
                                             .relu = 1};
    u->second = u->first;
    u->second.relu = 0;
    u->second.c = HIDDEN;
    u->second.points = 1;
    u->second.scale = u->w[SCALE_1];
    u->second.bias = u->w[BIAS_1];
}

/* y = x w^T + b */
static void inner_product(int n, int from, int to, const double *x, const double *w,
                          const double *b, double *y)
{
    for (int i = 0; i < n; i++)
        for (int o = 0; o < to; o++) {
            y[i * to + o] = b[o];
            for (int k = 0; k < from; k++)
                y[i * to + o] += x[i * from + k] * w[o * from + k];
        }
}

static void inner_product_backward(int n, int from, int to, const double *x, const double *w,
                                   const double *dy, double *dx, double *dw, double *db)
{
    for (int i = 0; i < n; i++)
        for (int o = 0; o < to; o++) {
            db[o] += dy[i * to + o];
            for (int k = 0; k < from; k++) {
                dw[o * from + k] += dy[i * to + o] * x[i * from + k];
                dx[i * from + k] += dy[i * to + o] * w[o * from + k];
            }
        }
}

static void compute(struct update *u, int number)
{
    double z2[MOST], dz2[MOST];
    double unused[MOST * PIXELS];
    reference_batch_norm_forward(&u->first, u->x, u->y0);
    inner_product(u->n, PIXELS, HIDDEN, u->y0, u->w[WEIGHT_1], u->w[OFFSET_1], u->z1);
    reference_batch_norm_forward(&u->second, u->z1, u->y1);
    inner_product(u->n, HIDDEN, 1, u->y1, u->w[WEIGHT_2], u->w[OFFSET_2], z2);
    for (int i = 0; i < u->n; i++) {
        int record = (number * u->n + i) % SAMPLES;
        double distance = z2[i] - record * 7 % 10;
        u->loss += distance * distance / (2 * u->n);
        dz2[i] = distance / u->n;
    }
    inner_product_backward(u->n, HIDDEN, 1, u->y1, u->w[WEIGHT_2], dz2, u->dy1, u->dw[WEIGHT_2],
                           u->dw[OFFSET_2]);
    reference_batch_norm_backward(&u->second, u->z1, u->dy1, u->dz1, u->dw[SCALE_1], u->dw[BIAS_1]);
    inner_product_backward(u->n, PIXELS, HIDDEN, u->y0, u->w[WEIGHT_1], u->dz1, u->dy0,
                           u->dw[WEIGHT_1], u->dw[OFFSET_1]);
    reference_batch_norm_backward(&u->first, u->x, u->dy0, unused, u->dw[SCALE_0], u->dw[BIAS_0]);
}

/* What the averages of a norm become. */
static void advance(struct update *u, const struct reference_batch_norm *norm, const double *x,
                    enum parameter mean, enum parameter variance, enum parameter factor)
{
    for (int g = 0; g < u->groups; g++) {
        int begin = g > 0 ? u->group_end[g - 1] : 0;
        double count = (double)(u->group_end[g] - begin) * norm->points;
        for (int c = 0; c < norm->c; c++) {
            double m, v;
            reference_batch_norm_moments(norm, x, g, c, &m, &v);
            if (count > 1)
                v *= count / (count - 1);
            u->w[mean][c] = 0.5 * u->w[mean][c] + m;
            u->w[variance][c] = 0.5 * u->w[variance][c] + v;
        }
        u->w[factor][0] = (double)(float)(0.5 * u->w[factor][0] + 1); /* to the bit */
    }
}

#endif
