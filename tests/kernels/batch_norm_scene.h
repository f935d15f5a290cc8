/* For tests of batch normalisation: a batch as the engine would have it, cut into micro-batches and
 * groups, and each of the four ops on it compared with the reference, on every instruction set.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_BATCH_NORM_SCENE_H
#define LS_TESTS_KERNELS_BATCH_NORM_SCENE_H

#include "ir/graph.h"
#include "ir/layer.h"
#include "kernels/own_kernel.h"
#include "support/reference_batch_norm.h"

enum { CUTS = 8, PARTS = 16 };

struct norm_case {
    const char *name;
    int n, c, h, w;        /* h 0: rank 2 */
    int micro_batch[CUTS]; /* where each ends; the last at n */
    int group[CUTS];
    double mean, spread; /* x lies in mean + [-spread, spread) */
    int relu;            /* 2: backward ops do not see y, unless averages are saved */
    double slope;
    int scale, bias;
    int rows; /* of a sample; 0: 1. Cuts are in samples, n in rows */
};

enum { NORM_CASES = 24 };
extern const struct norm_case norm_cases[NORM_CASES];

/* A case as the engine would have it: numbers, the reference, cuts, what is exchanged. */
struct norm_scene {
    const struct norm_case *how;
    struct reference_batch_norm norm;
    int group_rows[CUTS], groups, micro_batches;
    int count, points;
    double *x, *dy, *y, *dx, *dscale, *dbias, *scale, *bias;
    struct ls_graph graph;
    struct ls_layer layer;
    struct ls_sync sync[2]; /* moments, sums */
    struct ls_part part[CUTS][PARTS];
    int parts[CUTS];
    double *rows[2][CUTS]; /* by sync and micro-batch */
    float *merged[2];      /* by sync: group by group */
};

void *norm_zeros(size_t count, size_t size);
double *norm_numbers(int count, uint64_t salt, double mean, double spread);
struct norm_scene *norm_scene_new(const struct norm_case *how);
void norm_scene_expect(struct norm_scene *scene);
void norm_scene_free(struct norm_scene *scene);

/* ---- One op on one micro-batch --------------------------------------------------------------- */

/* An op of micro-batch m in the making. */
struct norm_trial {
    struct own *own;
    struct ls_kernel kernel;
    struct ls_parts parts;
    double *partial[2];
    struct ls_shape shape, channels;
    int first; /* element of the batch */
};

void norm_trial_start(struct norm_trial *trial, const struct ls_kernel *kernel,
                      struct norm_scene *scene, int m);

/* Watches the rows of sync s in this run. */
void norm_trial_run(struct norm_trial *trial, struct norm_scene *scene, int m, int s,
                    const struct ls_layout *layout);

/* The rows of all parts of each group, in the order of the micro-batches. */
void norm_scene_merge(struct norm_scene *scene, int s);
void norm_near(const char *what, double value, double expected, double tolerance);

/* ---- A whole step ---------------------------------------------------------------------------- */

void norm_check_moments(struct norm_scene *scene, const struct ls_layout *layout);
void norm_check_forward(struct norm_scene *scene, const struct ls_layout *layout, double factor);
void norm_trial_backward_inputs(struct norm_trial *trial, const struct norm_scene *scene,
                                double factor);

/* Gradients of scale and bias, of which a micro-batch has its share. */
void norm_check_sums(struct norm_scene *scene, const struct ls_layout *layout, double factor);
void norm_check_backward(struct norm_scene *scene, const struct ls_layout *layout, double factor);

#endif
