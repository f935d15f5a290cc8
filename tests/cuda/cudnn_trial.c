/* See cuda/cudnn_trial.h. SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/cudnn_trial.h"

#include "kernels/op_makers.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"

const enum ls_op_kind cudnn_kinds[CUDNN_KINDS] = {
    LS_OP_CONVOLUTION,   LS_OP_CONVOLUTION_DATA,   LS_OP_CONVOLUTION_WEIGHTS,
    LS_OP_DECONVOLUTION, LS_OP_DECONVOLUTION_DATA, LS_OP_DECONVOLUTION_WEIGHTS};

static bool makes_weights(enum ls_op_kind kind)
{
    return kind == LS_OP_CONVOLUTION_WEIGHTS || kind == LS_OP_DECONVOLUTION_WEIGHTS;
}

/* ---- Numbers in a layout --------------------------------------------------------------------- */

static int64_t find_place(const struct ls_value *value, int64_t i)
{
    const struct ls_shape *shape = &value->shape;
    if (value->layout != &ls_layout_channels_last)
        return i;
    const int64_t points = ls_shape_count(shape, 2, shape->rank), channels = shape->dim[1];
    return (i / points / channels * points + i % points) * channels + i / points % channels;
}

static void *give_value(const struct ls_value *value, const float *plain)
{
    const size_t bytes = ls_value_bytes(value), element = ls_dtype_size(value->type);
    unsigned char *here = ls_alloc(bytes, 1);
    assert_non_null(here);
    memset(here, 0xff, bytes);
    for (int64_t i = 0; plain != NULL && i < ls_shape_size(&value->shape); i++)
        ls_dtype_convert(LS_F32, &plain[i], value->type,
                         here + (size_t)find_place(value, i) * element, 1);
    void *there = ls_card_memory.create(bytes);
    assert_non_null(there);
    assert_int_equal(ls_card_memory.write(NULL, there, here, bytes, NULL), 0);
    ls_free(here);
    return there;
}

static float *take_value(const struct ls_value *value, const void *there)
{
    const size_t bytes = ls_value_bytes(value), element = ls_dtype_size(value->type);
    unsigned char *here = ls_alloc(bytes, 1);
    float *plain = ls_alloc((size_t)ls_shape_size(&value->shape), sizeof *plain);
    assert_non_null(here);
    assert_non_null(plain);
    assert_int_equal(ls_card_memory.read(NULL, here, there, bytes, NULL), 0);
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++)
        ls_dtype_convert(value->type, here + (size_t)find_place(value, i) * element, LS_F32,
                         &plain[i], 1);
    ls_free(here);
    return plain;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static void round_to_bf16(const struct ls_value *value, float *numbers)
{
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++) {
        uint16_t rounded;
        ls_dtype_convert(LS_F32, &numbers[i], LS_BF16, &rounded, 1);
        ls_dtype_convert(LS_BF16, &rounded, LS_F32, &numbers[i], 1);
    }
}

/* What the reference device makes of the numbers that the card is given. */
static void expect(struct cudnn_trial *trial)
{
    struct op_result result;
    scene_run(&trial->scene, reference_device(), &ls_layout_plain, &result);
    for (int i = 0; i < trial->scene.op.outputs; i++) {
        trial->expected[i] = result.out[i];
        result.out[i] = NULL;
    }
    result_free(&result);
}

void cudnn_trial_settle(struct cudnn_trial *trial, bool bf16, const struct ls_layout *layout)
{
    struct op_scene *scene = &trial->scene;
    for (int i = 0; i < 2 && bf16; i++)
        round_to_bf16(scene->in[i], scene->plain[scene->in[i]->index]);
    expect(trial);
    scene->op.bf16 = bf16;
    for (int i = 0; i < 2 && bf16; i++)
        scene->in[i]->type = LS_BF16;
    if (bf16 && !makes_weights(scene->op.kind) && scene->round % 2 == 0)
        scene->out[0]->type = LS_BF16;
    const struct ls_kernel *kernel = ls_kernel_find(ls_device_cuda.kernels(), &scene->op);
    assert_non_null(kernel);
    assert_true(kernel->library);
    assert_int_equal(kernel->takes_bf16(&scene->op), bf16);
    settle_layouts(kernel, &scene->op, &ls_layout_plain);
    for (int i = 0; i < 2 && layout != NULL; i++)
        scene->in[i]->layout = layout;
    if (layout != NULL)
        scene->out[0]->layout = layout;
    trial->prepared = (struct ls_prepared){.kernel = kernel, .op = &scene->op};
}

void cudnn_trial_make(struct cudnn_trial *trial, enum ls_op_kind kind, int round, bool bf16,
                      const struct ls_layout *layout)
{
    *trial = (struct cudnn_trial){.scene = {.round = (uint64_t)round}};
    trial->scene.op.kind = kind;
    op_makers[kind](&trial->scene);
    cudnn_trial_settle(trial, bf16, layout);
}

int cudnn_trial_prepare(struct cudnn_trial *trial, struct ls_error *error)
{
    const struct op_scene *scene = &trial->scene;
    LS_TRY(trial->prepared.kernel->prepare(&trial->prepared, error));
    for (int i = 0; i < scene->op.inputs; i++)
        if (scene->in[i] != NULL)
            trial->in[i] = give_value(scene->in[i], scene->plain[scene->in[i]->index]);
    for (int i = 0; i < scene->op.outputs; i++)
        if (scene->out[i] != NULL)
            trial->out[i] = give_value(scene->out[i], NULL);
    trial->scratch = trial->prepared.scratch_bytes > 0
                         ? ls_card_memory.create(trial->prepared.scratch_bytes)
                         : NULL;
    assert_int_equal(ls_card_streams.create(&trial->stream, NULL), 0);
    return 0;
}

int cudnn_trial_give(const struct cudnn_trial *trial, struct ls_stream *stream,
                     struct ls_error *error)
{
    const struct ls_context context = {.samples = 1, .stream = stream, .error = error};
    return trial->prepared.kernel->run(&trial->prepared, NULL, trial->in, trial->out,
                                       trial->scratch, &context);
}

int cudnn_trial_run(const struct cudnn_trial *trial, struct ls_error *error)
{
    const int status = cudnn_trial_give(trial, trial->stream, error);
    const int waited = ls_card_streams.wait(trial->stream, error);
    return status != 0 ? status : waited;
}

void cudnn_trial_clear(const struct cudnn_trial *trial)
{
    for (int i = 0; i < trial->scene.op.outputs; i++)
        if (trial->out[i] != NULL)
            assert_int_equal(
                ls_card_memory.zero(NULL, trial->out[i], ls_value_bytes(trial->scene.out[i]), NULL),
                0);
}

void cudnn_trial_compare(const struct cudnn_trial *trial)
{
    const struct op_scene *scene = &trial->scene;
    for (int k = 0; k < scene->op.outputs; k++) {
        const struct ls_value *value = scene->out[k];
        if (value == NULL)
            continue;
        float *found = take_value(value, trial->out[k]);
        const float *want = trial->expected[k];
        double largest = 0;
        for (int64_t i = 0; i < ls_shape_size(&value->shape); i++)
            largest = fmax(largest, fabs((double)want[i]));
        for (int64_t i = 0; i < ls_shape_size(&value->shape); i++) {
            const double rounded = value->type == LS_BF16 ? ldexp(fabs((double)want[i]), -8) : 0;
            if (!(fabs((double)found[i] - (double)want[i]) <= 2e-5 * (1 + largest) + rounded))
                fail_msg("%s by %s, round %d, output %d: numbers are wrong: element %lld is %.9g, "
                         "not %.9g",
                         ls_op_kind_name(scene->op.kind), trial->prepared.implementation,
                         (int)scene->round, k, (long long)i, (double)found[i], (double)want[i]);
        }
        ls_free(found);
    }
}

void cudnn_trial_release(struct cudnn_trial *trial)
{
    if (trial->prepared.state != NULL)
        trial->prepared.kernel->release(&trial->prepared);
    for (int i = 0; i < 3; i++) {
        ls_card_memory.free(trial->in[i]);
        trial->in[i] = NULL;
    }
    for (int i = 0; i < 2; i++) {
        ls_card_memory.free(trial->out[i]);
        trial->out[i] = NULL;
    }
    ls_card_memory.free(trial->scratch);
    ls_card_streams.free(trial->stream);
    trial->scratch = NULL;
    trial->stream = NULL;
    trial->prepared =
        (struct ls_prepared){.kernel = trial->prepared.kernel, .op = trial->prepared.op};
}

void cudnn_trial_free(struct cudnn_trial *trial)
{
    cudnn_trial_release(trial);
    for (int i = 0; i < 2; i++)
        ls_free(trial->expected[i]);
    scene_free(&trial->scene);
}
