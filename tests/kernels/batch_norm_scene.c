/* See kernels/batch_norm_scene.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/batch_norm_scene.h"

#include "device/plain.h"

const struct norm_case norm_cases[NORM_CASES] = {
    {"one part", 4, 20, 5, 6, {4}, {4}, 0, 1, 0, 0, 1, 1, 0},
    {"one value a channel", 1, 20, 1, 1, {1}, {1}, 3, 1, 0, 0, 1, 1, 0},
    {"groups of one value", 3, 7, 0, 0, {2, 3}, {1, 2, 3}, 3, 1, 0, 0, 1, 1, 0},
    {"group over micro-batches", 7, 16, 3, 5, {2, 5, 7}, {7}, 1, 1, 0, 0, 1, 1, 0},
    {"unequal parts", 9, 33, 4, 4, {4, 9}, {2, 7, 9}, -2, 3, 1, 0, 1, 1, 0},
    {"leaky", 5, 24, 3, 3, {3, 5}, {4, 5}, 0, 1, 1, 0.1, 1, 1, 0},
    {"neither scale nor bias", 6, 5, 4, 3, {3, 6}, {6}, 0.5, 1, 0, 0, 0, 0, 0},
    {"scale alone, ReLU", 6, 5, 4, 3, {3, 6}, {6}, 0.5, 1, 1, 0, 1, 0, 0},
    {"y from x", 9, 33, 4, 4, {4, 9}, {2, 7, 9}, -2, 3, 2, 0, 1, 1, 0},
    {"y from x, leaky, no bias", 5, 24, 3, 3, {3, 5}, {4, 5}, 0, 1, 2, 0.1, 1, 0, 0},
    {"y from x, rank 2", 40, 37, 0, 0, {13, 27, 40}, {20, 40}, 1, 2, 2, 0, 1, 1, 0},
    {"large means", 8, 20, 6, 6, {3, 5, 8}, {8}, 1000, 1.7, 0, 0, 1, 1, 0},
    {"larger means", 8, 20, 6, 6, {3, 5, 8}, {8}, -2e5, 2, 1, 0, 1, 1, 0},
    {"rank 2", 40, 37, 0, 0, {13, 27, 40}, {20, 40}, 1, 2, 1, 0, 1, 1, 0},
    {"rank 2, one channel", 40, 1, 0, 0, {13, 27, 40}, {20, 40}, 1, 2, 0, 0, 1, 1, 0},
    {"rank 2, large means", 40, 29, 0, 0, {13, 40}, {40}, 1000, 1, 0, 0, 1, 1, 0},
    {"one position", 9, 35, 1, 1, {5, 9}, {9}, 0, 1, 1, 0, 1, 1, 0},
    {"one channel", 4, 1, 7, 9, {3, 4}, {4}, 0, 1, 0, 0, 1, 1, 0},
    {"one block", 4, 16, 9, 7, {1, 4}, {2, 4}, 0, 1, 1, 0, 1, 1, 0},
    {"many positions", 2, 3, 40, 31, {1, 2}, {2}, 5, 1, 1, 0, 1, 1, 0},
    {"pieces of one run", 3, 5, 40, 31, {3}, {3}, 1000, 1, 0, 0, 1, 1, 0},
    {"pieces of several runs", 23, 20, 11, 18, {22, 23}, {23}, 50, 3, 1, 0, 1, 1, 0},
    {"runs of several pieces", 2, 17, 60, 70, {2}, {2}, -3, 1, 0, 0, 1, 1, 0},
    {"rows", 12, 18, 2, 3, {2, 4}, {1, 4}, 0, 1, 0, 0, 1, 1, 3},
};
static int rows_of(const struct norm_scene *scene)
{
    return scene->how->rows > 0 ? scene->how->rows : 1;
}

static int cuts(const int *end, int total)
{
    int count = 1;
    while (end[count - 1] < total)
        count++;
    return count;
}

void *norm_zeros(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    assert_non_null(memory);
    return memory;
}

double *norm_numbers(int count, uint64_t salt, double mean, double spread)
{
    double *x = norm_zeros((size_t)count, sizeof *x);
    for (int i = 0; i < count; i++) /* as floats, which the kernel gets */
        x[i] = (double)(float)(mean + spread * (double)own_random(salt, (uint64_t)i));
    return x;
}

/* What micro-batches share with groups, sample numbers within the micro-batch. */
static void cut_parts(struct norm_scene *scene)
{
    const struct norm_case *how = scene->how;
    int total = how->n / rows_of(scene);
    scene->groups = cuts(how->group, total);
    scene->micro_batches = cuts(how->micro_batch, total);
    for (int m = 0; m < scene->micro_batches; m++) {
        int first = m > 0 ? how->micro_batch[m - 1] : 0, last = how->micro_batch[m];
        for (int g = 0; g < scene->groups; g++) {
            int begin = g > 0 ? how->group[g - 1] : 0, end = how->group[g];
            begin = begin > first ? begin : first;
            end = end < last ? end : last;
            if (begin < end)
                scene->part[m][scene->parts[m]++] = (struct ls_part){
                    .first = begin - first, .count = end - begin, .group = g, .merged = g};
        }
    }
}

static void make_syncs(struct norm_scene *scene)
{
    for (int s = 0; s < 2; s++) {
        scene->sync[s] = (struct ls_sync){.kind = s == 0 ? LS_SYNC_MOMENTS : LS_SYNC_SUMS,
                                          .channels = scene->how->c,
                                          .eps = (float)scene->norm.eps};
        scene->merged[s] =
            norm_zeros((size_t)(ls_sync_merged(&scene->sync[s]) * scene->groups), sizeof(float));
        for (int m = 0; m < scene->micro_batches; m++)
            scene->rows[s][m] = norm_zeros((size_t)(ls_sync_row(&scene->sync[s]) * scene->parts[m]),
                                           sizeof(double));
    }
    scene->graph.syncs = scene->sync;
    scene->graph.sync_count = 2;
    scene->layer.graph = &scene->graph;
}

struct norm_scene *norm_scene_new(const struct norm_case *how)
{
    struct norm_scene *scene = norm_zeros(1, sizeof *scene);
    scene->how = how;
    scene->points = how->h > 0 ? how->h * how->w : 1;
    scene->count = how->n * how->c * scene->points;
    cut_parts(scene);
    for (int g = 0; g < scene->groups; g++)
        scene->group_rows[g] = how->group[g] * rows_of(scene);
    scene->x = norm_numbers(scene->count, 1, how->mean, how->spread);
    scene->dy = norm_numbers(scene->count, 2, 0.1, 1);
    scene->scale = norm_numbers(how->c, 3, 1, 0.5);
    scene->bias = norm_numbers(how->c, 4, 0, 1);
    scene->y = norm_zeros((size_t)scene->count, sizeof(double));
    scene->dx = norm_zeros((size_t)scene->count, sizeof(double));
    scene->dscale = norm_zeros((size_t)how->c, sizeof(double));
    scene->dbias = norm_zeros((size_t)how->c, sizeof(double));
    scene->norm = (struct reference_batch_norm){.n = how->n,
                                                .c = how->c,
                                                .points = scene->points,
                                                .group_end = scene->group_rows,
                                                .groups = scene->groups,
                                                .eps = (double)1e-5f,
                                                .relu = how->relu,
                                                .slope = (double)(float)how->slope,
                                                .scale = how->scale ? scene->scale : NULL,
                                                .bias = how->bias ? scene->bias : NULL};
    make_syncs(scene);
    return scene;
}

void norm_scene_expect(struct norm_scene *scene)
{
    reference_batch_norm_forward(&scene->norm, scene->x, scene->y);
    reference_batch_norm_backward(&scene->norm, scene->x, scene->dy, scene->dx, scene->dscale,
                                  scene->dbias);
}

void norm_scene_free(struct norm_scene *scene)
{
    double *owned[] = {scene->x,      scene->dy,    scene->y,     scene->dx,
                       scene->dscale, scene->dbias, scene->scale, scene->bias};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    for (int s = 0; s < 2; s++) {
        free(scene->merged[s]);
        for (int m = 0; m < scene->micro_batches; m++)
            free(scene->rows[s][m]);
    }
    free(scene);
}

/* Looks at the rows of partial results around each run: all of them are written, with the same
 * bytes each time. */
static struct {
    const struct ls_kernel *kernel;
    double *rows, *first;
    size_t size;
} watched;

static void check_rows(void)
{
    if (watched.rows == NULL)
        return;
    if (watched.first == NULL) {
        watched.first = norm_zeros(watched.size, 1);
        memcpy(watched.first, watched.rows, watched.size);
    }
    assert_memory_equal(watched.first, watched.rows, watched.size);
}

static int watched_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    if (watched.rows != NULL)
        memset(watched.rows, 0xff, watched.size);
    int status = watched.kernel->run(prepared, local, in, out, scratch, context);
    check_rows();
    return status;
}

/* The last channels come first (own_kernel.h). */
static int watched_channels(const struct ls_prepared *prepared, void *const *in, void *const *out,
                            void *scratch, const struct ls_context *context, int64_t begin,
                            int64_t end)
{
    if (watched.rows != NULL && end == prepared->channels)
        memset(watched.rows, 0xff, watched.size);
    int status = watched.kernel->run_channels(prepared, in, out, scratch, context, begin, end);
    if (begin == 0)
        check_rows();
    return status;
}

void norm_trial_start(struct norm_trial *trial, const struct ls_kernel *kernel,
                      struct norm_scene *scene, int m)
{
    const struct norm_case *how = scene->how;
    int first = (m > 0 ? how->micro_batch[m - 1] : 0) * rows_of(scene);
    int rows = how->micro_batch[m] * rows_of(scene) - first;
    trial->shape = (struct ls_shape){how->h > 0 ? 4 : 2, {rows, how->c, how->h, how->w}};
    trial->channels = (struct ls_shape){1, {how->c}};
    trial->first = first * how->c * scene->points;
    trial->kernel = *kernel;
    trial->kernel.run = watched_run;
    trial->kernel.run_channels = watched_channels;
    trial->own = own_new(&trial->kernel);
    trial->own->op.layer = &scene->layer;
    trial->own->op.backward = kernel->kind != LS_OP_MOMENTS && kernel->kind != LS_OP_BATCH_NORM;
    trial->own->op.attr.batch_norm = (struct ls_batch_norm_attr){.moments = 0,
                                                                 .sums = 1,
                                                                 .eps = (float)scene->norm.eps,
                                                                 .relu = how->relu != 0,
                                                                 .relu_slope = (float)how->slope};
    trial->parts = (struct ls_parts){scene->part[m], scene->parts[m]};
    trial->own->context.parts = &trial->parts;
    for (int s = 0; s < 2; s++)
        trial->partial[s] = scene->rows[s][m];
    trial->own->context.partial = trial->partial;
    trial->own->context.merged = scene->merged;
    watched.kernel = kernel;
    watched.rows = NULL;
}

static void add_in(struct norm_trial *trial, const struct norm_scene *scene, const double *from)
{
    struct ls_value *value = own_in(trial->own, &trial->shape, 1, 1);
    value->rows = rows_of(scene);
    for (int64_t i = 0; i < ls_shape_size(&trial->shape); i++)
        trial->own->plain[value->index][i] = (float)from[trial->first + i];
}

static void add_parameter(struct norm_trial *trial, const double *from)
{
    if (from == NULL) {
        trial->own->in[trial->own->op.inputs++] = NULL;
        return;
    }
    struct ls_value *value = own_in(trial->own, &trial->channels, 1, 1);
    for (int64_t i = 0; i < trial->channels.dim[0]; i++)
        trial->own->plain[value->index][i] = (float)from[i];
}

/* Averages that are not there; or those of the scene, multiplied by `factor`. */
static void add_averages(struct norm_trial *trial, const struct norm_scene *scene, double factor)
{
    const struct reference_batch_norm *norm = &scene->norm;
    const struct ls_shape one = {1, {1}};
    if (norm->saved_mean == NULL) {
        trial->own->op.inputs += 3;
        return;
    }
    double *scaled = norm_zeros((size_t)norm->c, sizeof *scaled);
    for (int i = 0; i < norm->c; i++)
        scaled[i] = norm->saved_mean[i] * factor;
    add_parameter(trial, scaled);
    for (int i = 0; i < norm->c; i++)
        scaled[i] = norm->saved_variance[i] * factor;
    add_parameter(trial, scaled);
    free(scaled);
    if (factor == 1) {
        trial->own->op.inputs++;
    } else {
        struct ls_value *value = own_in(trial->own, &one, 1, 1);
        trial->own->plain[value->index][0] = (float)factor;
    }
    trial->own->op.attr.batch_norm.moments = trial->own->op.attr.batch_norm.sums = -1;
}

void norm_trial_run(struct norm_trial *trial, struct norm_scene *scene, int m, int s,
                    const struct ls_layout *layout)
{
    if (s >= 0) {
        watched.rows = scene->rows[s][m];
        watched.size = (size_t)(ls_sync_row(&scene->sync[s]) * scene->parts[m]) * sizeof(double);
    }
    own_run(trial->own, layout);
    free(watched.first);
    watched.first = NULL;
}

void norm_scene_merge(struct norm_scene *scene, int s)
{
    const struct ls_sync *sync = &scene->sync[s];
    for (int g = 0; g < scene->groups; g++) {
        const double *rows[CUTS];
        int count = 0;
        for (int m = 0; m < scene->micro_batches; m++)
            for (int p = 0; p < scene->parts[m]; p++)
                if (scene->part[m][p].group == g)
                    rows[count++] = scene->rows[s][m] + p * ls_sync_row(sync);
        assert_int_equal(ls_plain_merge(NULL, sync, rows, count, 0, ls_sync_padded(sync),
                                        scene->merged[s] + g * ls_sync_merged(sync), NULL),
                         0);
    }
}

void norm_near(const char *what, double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("%s is %.9g, not %.9g", what, value, expected);
}

void norm_check_moments(struct norm_scene *scene, const struct ls_layout *layout)
{
    for (int m = 0; m < scene->micro_batches; m++) {
        struct norm_trial trial;
        norm_trial_start(&trial, &ls_kernel_moments, scene, m);
        add_in(&trial, scene, scene->x);
        norm_trial_run(&trial, scene, m, 0, layout);
        own_free(trial.own);
    }
    norm_scene_merge(scene, 0);
    int64_t padded = ls_sync_padded(&scene->sync[0]);
    for (int g = 0; g < scene->groups; g++) {
        const float *at = scene->merged[0] + g * 4 * padded;
        for (int c = 0; c < padded; c++) {
            double mean = 0, variance = 0, inverse = 0;
            if (c < scene->how->c) {
                reference_batch_norm_moments(&scene->norm, scene->x, g, c, &mean, &variance);
                inverse = 1 / sqrt(variance + scene->norm.eps);
            }
            norm_near("a mean", (double)at[c] + (double)at[padded + c], mean, 1e-13);
            norm_near("a standard deviation's inverse", at[2 * padded + c], inverse, 2e-7);
            norm_near("a variance", at[3 * padded + c], variance, 2e-7);
        }
    }
}

static void near_part(const struct norm_trial *trial, const double *expected)
{
    own_near(trial->own, trial->own->out[0], expected + trial->first, 1e-5);
}

void norm_check_forward(struct norm_scene *scene, const struct ls_layout *layout, double factor)
{
    for (int m = 0; m < scene->micro_batches; m++) {
        struct norm_trial trial;
        norm_trial_start(&trial, &ls_kernel_batch_norm, scene, m);
        add_in(&trial, scene, scene->x);
        add_averages(&trial, scene, factor);
        add_parameter(&trial, scene->norm.scale);
        add_parameter(&trial, scene->norm.bias);
        own_out(trial.own, &trial.shape)->rows = rows_of(scene);
        norm_trial_run(&trial, scene, m, -1, layout);
        near_part(&trial, scene->y);
        own_free(trial.own);
    }
}

void norm_trial_backward_inputs(struct norm_trial *trial, const struct norm_scene *scene,
                                double factor)
{
    add_in(trial, scene, scene->dy);
    add_in(trial, scene, scene->x);
    if (scene->how->relu == 1 || (scene->how->relu == 2 && scene->norm.saved_mean != NULL))
        add_in(trial, scene, scene->y);
    else
        trial->own->op.inputs++;
    add_averages(trial, scene, factor);
    add_parameter(trial, scene->norm.scale);
    add_parameter(trial, scene->norm.bias);
}

void norm_check_sums(struct norm_scene *scene, const struct ls_layout *layout, double factor)
{
    const int channels = scene->how->c;
    double *dscale = norm_zeros((size_t)channels, sizeof *dscale);
    double *dbias = norm_zeros((size_t)channels, sizeof *dbias);
    for (int m = 0; m < scene->micro_batches; m++) {
        struct norm_trial trial;
        norm_trial_start(&trial, &ls_kernel_batch_norm_sums, scene, m);
        norm_trial_backward_inputs(&trial, scene, factor);
        struct ls_value *a = own_out(trial.own, &trial.channels);
        struct ls_value *b = own_out(trial.own, &trial.channels);
        norm_trial_run(&trial, scene, m, scene->norm.saved_mean == NULL ? 1 : -1, layout);
        for (int c = 0; c < channels; c++) {
            dscale[c] += (double)own_plain(trial.own, a)[c];
            dbias[c] += (double)own_plain(trial.own, b)[c];
        }
        own_free(trial.own);
    }
    for (int c = 0; c < channels; c++) {
        norm_near("a scale's gradient", dscale[c], scene->dscale[c], 1e-5);
        norm_near("a bias's gradient", dbias[c], scene->dbias[c], 1e-5);
    }
    free(dscale);
    free(dbias);
}

void norm_check_backward(struct norm_scene *scene, const struct ls_layout *layout, double factor)
{
    for (int m = 0; m < scene->micro_batches; m++) {
        struct norm_trial trial;
        norm_trial_start(&trial, &ls_kernel_batch_norm_backward, scene, m);
        norm_trial_backward_inputs(&trial, scene, factor);
        own_out(trial.own, &trial.shape)->rows = rows_of(scene);
        norm_trial_run(&trial, scene, m, -1, layout);
        near_part(&trial, scene->dx);
        own_free(trial.own);
    }
}
