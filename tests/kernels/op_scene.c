/* See kernels/op_scene.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_scene.h"

int64_t scene_draw(struct op_scene *scene, int64_t from, int64_t to)
{
    return from + ls_random_below(71, scene->round, scene->drawn++, (uint32_t)(to - from + 1));
}

struct ls_shape shape_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct ls_shape){rank, {a, b, c, d}};
}

struct ls_shape scene_shape(struct op_scene *scene, int least, int most)
{
    static const int channels[] = {1, 3, 5, 8, 16, 20};
    struct ls_shape shape = {.rank = (int)scene_draw(scene, least, most)};
    for (int a = 0; a < shape.rank; a++)
        shape.dim[a] = scene_draw(scene, 1, 6);
    if (shape.rank > 1)
        shape.dim[1] = channels[scene_draw(scene, 0, 5)];
    /* Longer than kernels work on at a time; sorting takes the reference device too long then. */
    if (scene->round % 16 == 7 && scene->op.kind != LS_OP_ARGMAX) {
        for (int a = 0; a < shape.rank; a++)
            shape.dim[a] = a != 1 && shape.dim[a] > 2 ? 2 : shape.dim[a];
        shape.dim[shape.rank - 1] = scene_draw(scene, 1000, 1400);
    }
    return shape;
}

static struct ls_value *scene_value(struct op_scene *scene, struct ls_shape shape)
{
    assert_true(scene->values < SCENE_VALUES);
    struct ls_value *value = &scene->value[scene->values];
    *value = (struct ls_value){.index = scene->values++, .shape = shape, .rows = 1};
    return value;
}

float *scene_in(struct op_scene *scene, struct ls_shape shape, float low, float high)
{
    struct ls_value *value = scene_value(scene, shape);
    float *numbers = ls_alloc((size_t)ls_shape_size(&shape) + 1, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++)
        numbers[i] = low + (high - low) * ls_random_uniform(72 + scene->round,
                                                            (uint64_t)value->index, (uint64_t)i);
    scene->plain[value->index] = numbers;
    scene->in[scene->op.inputs++] = value;
    return numbers;
}

void scene_no_in(struct op_scene *scene)
{
    scene->in[scene->op.inputs++] = NULL;
}

float *scene_labels(struct op_scene *scene, struct ls_shape shape, int low, int high)
{
    float *labels = scene_in(scene, shape, (float)low, (float)high + 1);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++)
        labels[i] = floorf(labels[i]);
    return labels;
}

struct ls_value *scene_out(struct op_scene *scene, struct ls_shape shape)
{
    struct ls_value *value = scene_value(scene, shape);
    scene->out[scene->op.outputs++] = value;
    return value;
}

void scene_free(struct op_scene *scene)
{
    for (int i = 0; i < scene->values; i++)
        ls_free(scene->plain[i]);
    ls_free(scene->merged[0]);
    ls_free(scene->merged[1]);
    *scene = (struct op_scene){.round = scene->round};
}

void result_free(struct op_result *result)
{
    for (int i = 0; i < SCENE_VALUES; i++)
        ls_free(result->out[i]);
    ls_free(result->partial[0]);
    ls_free(result->partial[1]);
}

/* Between Caffe's order and the value's layout. Elements are of 4 bytes, or bf16, which is fp32 in
 * Caffe's order and lies so. */
static void scene_convert(const struct ls_device *device, const struct ls_value *value,
                          float *plain, float *laid_out, bool to_plain)
{
    const struct ls_layout *layout = value->layout;
    if (value->type == LS_BF16) {
        assert_ptr_equal(layout, &ls_layout_plain);
        ls_dtype_convert(to_plain ? LS_BF16 : LS_F32, to_plain ? laid_out : plain,
                         to_plain ? LS_F32 : LS_BF16, to_plain ? plain : laid_out,
                         (size_t)ls_shape_size(&value->shape));
        return;
    }
    if (layout->block == 0) {
        assert_int_equal(
            to_plain ? device->parameter_to_plain(layout, &value->shape, laid_out, plain, NULL)
                     : device->parameter_from_plain(layout, &value->shape, plain, laid_out, NULL),
            0);
        return;
    }
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++) {
        float *there = &laid_out[place_in_layout(layout, &value->shape, i)];
        memcpy(to_plain ? &plain[i] : there, to_plain ? there : &plain[i], sizeof *plain);
    }
}

static void *scene_memory(const struct ls_value *value)
{
    void *memory = ls_alloc_aligned(ls_value_bytes(value) + 64);
    assert_non_null(memory);
    memset(memory, 0, ls_value_bytes(value) + 64);
    return memory;
}

void scene_run(struct op_scene *scene, const struct ls_device *device,
               const struct ls_layout *offered, struct op_result *result)
{
    void *in[SCENE_VALUES] = {0}, *out[SCENE_VALUES] = {0}, *local = NULL;
    struct ls_prepared prepared = {.op = &scene->op};
    struct ls_error error = {0};
    *result = (struct op_result){0};
    scene->op.input = scene->in;
    scene->op.output = scene->out;
    assert_true(device->memory->host_memory);
    for (int i = 0; i < scene->values; i++)
        scene->value[i].layout = &ls_layout_plain;
    prepared.kernel = result->kernel = ls_kernel_find(device->kernels(), &scene->op);
    if (prepared.kernel == NULL)
        fail_msg("%s has no kernel for %s", device->name, ls_op_kind_name(scene->op.kind));
    settle_layouts(prepared.kernel, &scene->op, offered);
    for (int i = 0; i < scene->op.inputs; i++)
        if (scene->in[i] != NULL) {
            in[i] = scene_memory(scene->in[i]);
            scene_convert(device, scene->in[i], scene->plain[scene->in[i]->index], in[i], false);
        }
    for (int i = 0; i < scene->op.outputs; i++)
        if (scene->out[i] != NULL) {
            out[i] = scene_memory(scene->out[i]);
            memset(out[i], 0xff, ls_value_bytes(scene->out[i]));
        }
    if (prepared.kernel->prepare != NULL && prepared.kernel->prepare(&prepared, &error) != 0)
        fail_msg("%s: %s", prepared.kernel->name, error.problems[0].message);
    void *scratch = ls_alloc_aligned(prepared.scratch_bytes + 64);
    memset(scratch, 0xff, prepared.scratch_bytes + 64);
    const int64_t channels = scene->sync[0].channels;
    result->partial_count = SCENE_PARTS * (size_t)(2 * ls_sync_round(channels) + LS_SYNC_ROW_END);
    for (int s = 0; s < 2; s++)
        result->partial[s] = ls_alloc(result->partial_count, sizeof(double));
    struct ls_context context = {.samples = 1,
                                 .first_ordinal = 1000 + (int64_t)scene->round,
                                 .position = scene->position,
                                 .normalizers = scene->normalizers,
                                 .partials = result->record,
                                 .lists = result->record + SCENE_RECORD - SCENE_LISTS,
                                 .parts = &scene->parts,
                                 .partial = result->partial,
                                 .merged = scene->merged,
                                 .error = &error};
    if (prepared.kernel->bind != NULL)
        assert_int_equal(prepared.kernel->bind(&prepared, in, out, scratch, &local, &error), 0);
    assert_int_equal(prepared.kernel->run(&prepared, local, in, out, scratch, &context), 0);
    if (prepared.kernel->unbind != NULL)
        prepared.kernel->unbind(&prepared, local);
    if (prepared.kernel->release != NULL)
        prepared.kernel->release(&prepared);
    for (int i = 0; i < scene->op.outputs; i++)
        if (scene->out[i] != NULL) {
            result->out[i] =
                ls_alloc((size_t)ls_shape_size(&scene->out[i]->shape) + 1, sizeof(float));
            scene_convert(device, scene->out[i], result->out[i], out[i], true);
        }
    for (int i = 0; i < SCENE_VALUES; i++) {
        ls_free_aligned(in[i]);
        ls_free_aligned(out[i]);
    }
    ls_free_aligned(scratch);
}
