/* The gradients of the reference device against finite differences of what it computes: all ops
 * that others are the gradient of, on random shapes. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"

enum { ROUNDS = 20, ELEMENTS_MAX = 400, ARGUMENTS = 6, GIVES = 3 };

/* What an op of a gradient takes: dy, an output of the forward op, or (from 0 on) an input of it.
 */
enum { END = -9, DY, Y, Y1, GIVEN /* x or y: see enum ls_activation */, ALL_X };

/* The op `backward` of the inputs `takes` gives the gradients by inputs `gives` of the op `kind`.
 */
struct pair {
    enum ls_op_kind kind, backward;
    int takes[ARGUMENTS], gives[GIVES];
};

static const struct pair pairs[] = {
    {LS_OP_CONVOLUTION, LS_OP_CONVOLUTION_DATA, {DY, 1, END}, {0, END}},
    {LS_OP_CONVOLUTION, LS_OP_CONVOLUTION_WEIGHTS, {0, DY, END}, {1, 2, END}},
    {LS_OP_DECONVOLUTION, LS_OP_DECONVOLUTION_DATA, {DY, 1, END}, {0, END}},
    {LS_OP_DECONVOLUTION, LS_OP_DECONVOLUTION_WEIGHTS, {0, DY, END}, {1, 2, END}},
    {LS_OP_INNER_PRODUCT, LS_OP_INNER_PRODUCT_DATA, {DY, 1, END}, {0, END}},
    {LS_OP_INNER_PRODUCT, LS_OP_INNER_PRODUCT_WEIGHTS, {0, DY, END}, {1, 2, END}},
    {LS_OP_POOLING, LS_OP_POOLING_BACKWARD, {DY, Y1, END}, {0, END}},
    {LS_OP_ACTIVATION, LS_OP_ACTIVATION_BACKWARD, {DY, GIVEN, END}, {0, END}},
    {LS_OP_GLU, LS_OP_GLU_BACKWARD, {DY, 0, 1, END}, {0, 1, END}},
    {LS_OP_MATMUL, LS_OP_MATMUL, {DY, 1, END}, {0, END}},
    {LS_OP_MATMUL, LS_OP_MATMUL, {0, DY, END}, {1, END}},
    {LS_OP_PRELU, LS_OP_PRELU_DATA, {DY, 0, 1, END}, {0, END}},
    {LS_OP_PRELU, LS_OP_PRELU_SLOPE, {DY, 0, END}, {1, END}},
    {LS_OP_LRN, LS_OP_LRN_BACKWARD, {0, Y, DY, Y1, END}, {0, END}},
    {LS_OP_DROPOUT, LS_OP_DROPOUT, {DY, END}, {0, END}},
    {LS_OP_SOFTMAX, LS_OP_SOFTMAX_BACKWARD, {Y, DY, END}, {0, END}},
    {LS_OP_SOFTMAX_LOSS, LS_OP_SOFTMAX_LOSS_BACKWARD, {Y, 1, END}, {0, END}},
    {LS_OP_LINEAR_LOSS, LS_OP_LINEAR_LOSS_GRADIENT, {0, 1, 2, 3, 4, END}, {0, 2, 3}},
    {LS_OP_LOG_LOSS, LS_OP_LOG_LOSS_BACKWARD, {0, 1, END}, {0, END}},
    {LS_OP_SIGMOID_LOSS, LS_OP_SIGMOID_LOSS_BACKWARD, {0, 1, END}, {0, END}},
    {LS_OP_EUCLIDEAN_LOSS, LS_OP_EUCLIDEAN_LOSS_BACKWARD, {0, 1, END}, {0, END}},
    {LS_OP_HINGE_LOSS, LS_OP_HINGE_LOSS_BACKWARD, {0, 1, END}, {0, END}},
    {LS_OP_CONTRASTIVE_LOSS, LS_OP_CONTRASTIVE_LOSS_BACKWARD, {0, 1, 2, END}, {0, END}},
    {LS_OP_INFOGAIN_LOSS, LS_OP_INFOGAIN_LOSS_BACKWARD, {Y, 1, 2, END}, {0, END}},
    {LS_OP_SMOOTH_L1_LOSS, LS_OP_SMOOTH_L1_LOSS_BACKWARD, {0, 1, 2, 3, END}, {0, END}},
    {LS_OP_MULTIBOX_LOSS, LS_OP_MULTIBOX_LOSS_BACKWARD, {Y, END}, {0, END}},
    {LS_OP_MULTIBOX_LOSS, LS_OP_MULTIBOX_LOSS_BACKWARD, {Y1, END}, {1, END}},
    {LS_OP_PERMUTE, LS_OP_PERMUTE, {DY, END}, {0, END}},
    {LS_OP_IM2COL, LS_OP_COL2IM, {DY, END}, {0, END}},
    {LS_OP_EMBED, LS_OP_EMBED_WEIGHTS, {DY, 1, END}, {0, 2, END}},
    {LS_OP_GATHER, LS_OP_GATHER_BACKWARD, {DY, 1, END}, {0, END}},
    {LS_OP_PAD, LS_OP_PAD_BACKWARD, {DY, END}, {0, END}},
    {LS_OP_EMBED_BAG, LS_OP_EMBED_BAG_FACTORS, {DY, 0, 1, 2, END}, {3, END}},
    {LS_OP_REDUCE_LOSS, LS_OP_REDUCE_LOSS_BACKWARD, {0, END}, {0, END}},
    {LS_OP_CONCAT, LS_OP_SLICE, {DY, END}, {0, 1, END}},
    {LS_OP_TILE, LS_OP_TILE_BACKWARD, {DY, END}, {0, END}},
    {LS_OP_REDUCE, LS_OP_REDUCE_BACKWARD, {DY, 0, END}, {0, END}},
    {LS_OP_RESIZE, LS_OP_RESIZE_BACKWARD, {DY, END}, {0, END}},
    {LS_OP_UPSAMPLE, LS_OP_UPSAMPLE_BACKWARD, {DY, END}, {0, END}},
    {LS_OP_UNPOOL, LS_OP_UNPOOL_BACKWARD, {DY, 1, END}, {0, END}},
    {LS_OP_CROP, LS_OP_CROP_BACKWARD, {DY, END}, {0, END}},
    {LS_OP_FILTER, LS_OP_FILTER, {DY, 1, END}, {0, END}},
    {LS_OP_PICK, LS_OP_PICK_BACKWARD, {DY, 1, END}, {0, END}},
    {LS_OP_REGION_MAX, LS_OP_REGION_MAX_BACKWARD, {DY, Y1, 1, END}, {0, END}},
    {LS_OP_REGION_AVERAGE, LS_OP_REGION_AVERAGE_BACKWARD, {DY, 1, END}, {0, END}},
    {LS_OP_ELTWISE, LS_OP_ELTWISE_BACKWARD, {DY, ALL_X, END}, {0, END}},
    {LS_OP_SCALE, LS_OP_SCALE, {DY, 1, END}, {0, END}},
    {LS_OP_SCALE, LS_OP_SCALE_SUMS, {DY, 0, END}, {1, 2, END}},
    {LS_OP_NORMALIZE, LS_OP_NORMALIZE_DATA, {DY, 0, Y1, 1, END}, {0, END}},
    {LS_OP_NORMALIZE, LS_OP_NORMALIZE_SUMS, {DY, 0, Y1, END}, {1, 2, END}},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* The number whose gradient is looked for: the sum of dy y, or the figure as the loss has it. */
static double value_of(struct op_scene *scene, const float *dy)
{
    struct op_result result;
    double sum = 0;
    scene_run(scene, reference_device(), &ls_layout_plain, &result);
    if (ls_op_has_effect(scene->op.kind)) {
        int by = scene->op.attr.loss.normalizer;
        if (scene->op.kind == LS_OP_REDUCE_LOSS)
            by = scene->op.attr.reduction.normalizer;
        if (scene->op.kind == LS_OP_MULTIBOX_LOSS)
            by = scene->op.attr.multibox.normalizer;
        sum = result.record[0] * 0.5 / (by < 0 ? 1 : scene->normalizers[by]);
    } else {
        for (int64_t i = 0; i < ls_shape_size(&scene->out[0]->shape); i++)
            sum += (double)dy[i] * (double)result.out[0][i];
    }
    result_free(&result);
    return sum;
}

/* Compares a gradient with central differences; near a kink, where the slopes at both sides are not
 * the same, nothing is compared. Returns how many elements were. */
static int64_t check_slopes(struct op_scene *scene, int input, const float *dy,
                            const float *gradient)
{
    const float step = 0x1p-6F;
    float *x = scene->plain[scene->in[input]->index];
    const double here = value_of(scene, dy);
    int64_t compared = 0, n = ls_shape_size(&scene->in[input]->shape);
    for (int64_t i = 0; i < n; i += 1 + n / 40) {
        const float kept = x[i];
        x[i] = kept + step;
        const double up = (value_of(scene, dy) - here) / (double)step;
        x[i] = kept - step;
        const double down = (here - value_of(scene, dy)) / (double)step;
        x[i] = kept;
        const double slope = (up + down) / 2, scale = 1 + fabs(slope);
        if (fabs(up - down) > 0.01 * scale)
            continue;
        compared++;
        if (!(fabs(slope - (double)gradient[i]) <= 5e-3 * scale))
            fail_msg(
                "%s, round %d: the gradient by element %lld of input %d is %.6g, the slope %.6g",
                ls_op_kind_name(scene->op.kind), (int)scene->round, (long long)i, input,
                (double)gradient[i], slope);
    }
    return compared;
}

static void copy_in(struct op_scene *scene, const struct ls_value *like, const float *numbers)
{
    float *to = scene_in(scene, like->shape, 0, 1);
    *scene->in[scene->op.inputs - 1] = (struct ls_value){.index = scene->values - 1,
                                                         .shape = like->shape,
                                                         .type = like->type,
                                                         .rows = like->rows,
                                                         .sample_axis = like->sample_axis};
    memcpy(to, numbers, (size_t)ls_shape_size(&like->shape) * sizeof *to);
}

/* The scene of the op of a gradient. */
static void make_backward(const struct pair *pair, const struct op_scene *scene,
                          const struct op_result *result, const float *dy, struct op_scene *back)
{
    *back = (struct op_scene){.round = scene->round, .normalizers = {scene->normalizers[0]}};
    back->op.kind = pair->backward;
    back->op.attr = scene->op.attr;
    back->op.backward = true;
    for (const int *take = pair->takes; *take != END; take++) {
        const int given = ls_activation_keeps_x(&scene->op.attr.activation) ? 0 : Y;
        const int what = *take == GIVEN ? given : *take;
        if (what == DY)
            copy_in(back, scene->out[0], dy);
        else if (what == Y)
            copy_in(back, scene->out[0], result->out[0]);
        else if (what == Y1 && scene->op.outputs > 1)
            copy_in(back, scene->out[1], result->out[1]);
        else if (what >= 0 && what < scene->op.inputs && scene->in[what] != NULL)
            copy_in(back, scene->in[what], scene->plain[scene->in[what]->index]);
        else if (what >= 0 && what < scene->op.inputs)
            scene_no_in(back);
        for (int k = 0; what == ALL_X && k < scene->op.inputs; k++)
            copy_in(back, scene->in[k], scene->plain[scene->in[k]->index]);
    }
    if (pair->kind == LS_OP_MATMUL) /* dy b^T, or a^T dy */
        back->op.attr.matmul = (struct ls_matmul_attr){.transpose_a = pair->takes[0] != DY,
                                                       .transpose_b = pair->takes[0] == DY,
                                                       .scale = scene->op.attr.matmul.scale};
    for (int k = 0; k < (pair->kind == LS_OP_CONCAT ? scene->op.inputs : GIVES); k++) {
        const int input = pair->kind == LS_OP_CONCAT ? k : pair->gives[k];
        if (input == END)
            break;
        if (input < scene->op.inputs && scene->in[input] != NULL)
            scene_out(back, scene->in[input]->shape);
        else
            back->out[back->op.outputs++] = NULL;
    }
}

/* Whether an op is one whose gradient is this pair's: a ReLU or a gate that was taken in has one of
 * its own, as has what is smaller than a clamp. */
static bool is_suited(const struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const struct ls_op *op = &scene->op;
    if (kind == LS_OP_CONVOLUTION || kind == LS_OP_DECONVOLUTION)
        return !op->attr.convolution.relu;
    if (kind == LS_OP_INNER_PRODUCT)
        return !op->attr.inner_product.relu && !op->attr.inner_product.large;
    if (kind == LS_OP_ELTWISE)
        return !op->attr.eltwise.relu && !op->attr.eltwise.gated;
    if (kind == LS_OP_POOLING)
        return op->attr.pooling.method == LS_POOL_AVERAGE ||
               (op->attr.pooling.method == LS_POOL_MAX && op->outputs > 1);
    if (kind == LS_OP_PERMUTE)
        for (int i = 0; i < scene->in[0]->shape.rank; i++)
            if (op->attr.order[op->attr.order[i]] != i)
                return false;
    if (kind == LS_OP_LINEAR_LOSS)
        return !op->bf16;
    if (kind == LS_OP_FILTER)
        return op->attr.left_out == 0;
    if (kind == LS_OP_REGION_MAX)
        return op->outputs > 1;
    if (kind == LS_OP_ACTIVATION)
        return op->attr.activation.function != LS_THRESHOLD;
    if (kind == LS_OP_MATMUL)
        return !op->attr.matmul.transpose_a && !op->attr.matmul.transpose_b;
    if (kind == LS_OP_EMBED_BAG)
        return op->inputs > 3;
    if (kind == LS_OP_DROPOUT)
        return op->inputs == 1;
    const bool signs = kind == LS_OP_EUCLIDEAN_LOSS || kind == LS_OP_CONTRASTIVE_LOSS ||
                       kind == LS_OP_SMOOTH_L1_LOSS;
    return !signs || op->attr.loss.scale > 0;
}

static int64_t check_round(const struct pair *pair, uint64_t round)
{
    struct op_scene scene = {.round = round, .normalizers = {2.5}}, back;
    struct op_result result, gradients;
    float dy[ELEMENTS_MAX];
    int64_t compared = 0;
    scene.op.kind = pair->kind;
    scene.usual = true;
    op_makers[pair->kind](&scene);
    if (is_suited(&scene) &&
        (scene.op.outputs == 0 || ls_shape_size(&scene.out[0]->shape) <= ELEMENTS_MAX)) {
        for (uint64_t i = 0; i < ELEMENTS_MAX; i++)
            dy[i] = 2 * ls_random_uniform(93, round, i) - 1;
        scene.op.attr.eltwise.which = pair->kind == LS_OP_ELTWISE ? 0 : scene.op.attr.eltwise.which;
        scene_run(&scene, reference_device(), &ls_layout_plain, &result);
        make_backward(pair, &scene, &result, dy, &back);
        scene_run(&back, reference_device(), &ls_layout_plain, &gradients);
        for (int k = 0; k < GIVES && k < back.op.outputs && pair->gives[k] != END; k++)
            if (back.out[k] != NULL)
                compared += check_slopes(&scene, pair->gives[k], dy, gradients.out[k]);
        result_free(&result);
        result_free(&gradients);
        scene_free(&back);
    }
    scene_free(&scene);
    return compared;
}

static void test_pair(void **state)
{
    int64_t compared = 0;
    for (uint64_t round = 0; round < ROUNDS || (compared < 50 && round < 10 * ROUNDS); round++)
        compared += check_round(*state, round);
    assert_true(compared >= 50);
}

int main(void)
{
    static struct CMUnitTest tests[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        tests[i] = (struct CMUnitTest){.name = ls_op_kind_name(pairs[i].backward),
                                       .test_func = test_pair,
                                       .initial_state = (void *)(uintptr_t)&pairs[i]};
    reference_device()->enter_thread();
    return _cmocka_run_group_tests("gradients", tests, PAIRS, NULL, NULL);
}
