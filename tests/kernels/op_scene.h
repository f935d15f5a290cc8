/* One op of any kind with values of random shapes, which any device can carry out. Values are
 * filled and read in Caffe's order; a device sees them in the layouts that its kernel asks for.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_OP_SCENE_H
#define LS_TESTS_KERNELS_OP_SCENE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "ir/convert.h"
#include "ir/graph.h"
#include "ir/layer.h"
#include "kernels/reference.h"
#include "ops/devices.h"

enum { SCENE_VALUES = 16, SCENE_RECORD = 4096, SCENE_LISTS = 3600, SCENE_PARTS = 2 };

struct op_scene {
    uint64_t round; /* what is random follows from it */
    uint64_t drawn;
    bool usual; /* what formulas and slopes are for: labels name classes, attention has no cache */
    struct ls_op op;
    struct ls_value value[SCENE_VALUES];
    struct ls_value *in[SCENE_VALUES], *out[SCENE_VALUES];
    float *plain[SCENE_VALUES]; /* by value; NULL for outputs */
    int values;
    float list[64]; /* coefficients, or weights of classes */
    double normalizers[1];
    int64_t position; /* of the first token in its text */
    Lockstep__FillerParameter filler;
    /* Batch statistics: two parts of two groups. */
    struct ls_layer layer;
    struct ls_graph graph;
    struct ls_sync sync[2];
    struct ls_part part[SCENE_PARTS];
    struct ls_parts parts;
    float *merged[2];
};

/* What a device made of it. */
struct op_result {
    float *out[SCENE_VALUES];    /* in Caffe's order; NULL: there is none */
    double record[SCENE_RECORD]; /* the last SCENE_LISTS are lists */
    double *partial[2];          /* rows of partial results by sync */
    size_t partial_count;
    const struct ls_kernel *kernel;
};

/* A number from `from` to `to`. */
int64_t scene_draw(struct op_scene *scene, int64_t from, int64_t to);
struct ls_shape shape_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d);

/* Of `least` to `most` axes, with channels that fill blocks or do not; in some rounds the last axis
 * is long. */
struct ls_shape scene_shape(struct op_scene *scene, int least, int most);

/* An input of numbers in [low, high). */
float *scene_in(struct op_scene *scene, struct ls_shape shape, float low, float high);
void scene_no_in(struct op_scene *scene);

/* Whole numbers from `low` to `high`. */
float *scene_labels(struct op_scene *scene, struct ls_shape shape, int low, int high);
struct ls_value *scene_out(struct op_scene *scene, struct ls_shape shape);
void scene_no_out(struct op_scene *scene);
void scene_free(struct op_scene *scene);
void result_free(struct op_result *result);

/* ---- Running --------------------------------------------------------------------------------- */

/* Carries the op out on a device. Outputs and scratch hold NaNs before. */
void scene_run(struct op_scene *scene, const struct ls_device *device,
               const struct ls_layout *offered, struct op_result *result);

#endif
