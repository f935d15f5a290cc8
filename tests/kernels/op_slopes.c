/* Slopes of an op. See kernels/op_slopes.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_slopes.h"

static int64_t output_size(const struct op_slopes *slopes, int o)
{
    const struct ls_value *value = slopes->scene->out[slopes->output[o]];
    return value != NULL ? ls_shape_size(&value->shape) : 0;
}

void slopes_begin(struct op_slopes *slopes, struct op_scene *scene, const int *output, int outputs,
                  double tolerance)
{
    assert_in_range(outputs, 1, SLOPES_OUTPUTS);
    *slopes = (struct op_slopes){.scene = scene, .outputs = outputs, .tolerance = tolerance};
    for (int o = 0; o < outputs; o++) {
        slopes->output[o] = output[o];
        const int64_t n = output_size(slopes, o);
        slopes->weight[o] = ls_alloc((size_t)n + 1, sizeof(float));
        assert_non_null(slopes->weight[o]);
        for (int64_t i = 0; i < n; i++)
            slopes->weight[o][i] =
                2 * ls_random_uniform(94 + (uint64_t)o, scene->round, (uint64_t)i) - 1;
    }
}

void slopes_end(struct op_slopes *slopes)
{
    for (int o = 0; o < slopes->outputs; o++)
        ls_free(slopes->weight[o]);
}

static double value_of(const struct op_slopes *slopes)
{
    struct op_result result;
    double sum = 0;
    scene_run(slopes->scene, reference_device(), &ls_layout_plain, &result);
    for (int o = 0; o < slopes->outputs; o++)
        for (int64_t i = 0; i < output_size(slopes, o); i++)
            sum += (double)slopes->weight[o][i] * (double)result.out[slopes->output[o]][i];
    result_free(&result);
    return sum;
}

int64_t slopes_check(const struct op_slopes *slopes, int input, const float *gradient)
{
    const float step = 0x1p-6F;
    const struct op_scene *scene = slopes->scene;
    float *x = scene->plain[scene->in[input]->index];
    const int64_t n = ls_shape_size(&scene->in[input]->shape);
    int64_t compared = 0;
    for (int64_t i = 0; i < n; i += 1 + n / 12, compared++) {
        const float kept = x[i];
        x[i] = kept + step;
        const double up = value_of(slopes);
        x[i] = kept - step;
        const double down = value_of(slopes);
        x[i] = kept;
        const double slope = (up - down) / (2 * (double)step);
        if (!(fabs(slope - (double)gradient[i]) <= slopes->tolerance * (1 + fabs(slope))))
            fail_msg("%s, round %d: the gradient by element %lld of input %d is %.6g, the slope "
                     "%.6g",
                     ls_op_kind_name(scene->op.kind), (int)scene->round, (long long)i, input,
                     (double)gradient[i], slope);
    }
    return compared;
}

const float *scene_given(const struct op_scene *scene, int k)
{
    return scene->in[k] != NULL ? scene->plain[scene->in[k]->index] : NULL;
}

void scene_copy_in(struct op_scene *back, const struct ls_value *like, const float *numbers)
{
    if (like == NULL) {
        scene_no_in(back);
        return;
    }
    float *to = scene_in(back, like->shape, 0, 1);
    memcpy(to, numbers, (size_t)ls_shape_size(&like->shape) * sizeof *to);
}
