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

void scene_no_out(struct op_scene *scene)
{
    scene->out[scene->op.outputs++] = NULL;
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

/* An element of a value, which is fp32, or of 4 bytes, in Caffe's order. */
static void scene_convert_element(const struct ls_value *value, float *plain, void *element,
                                  bool to_plain)
{
    const enum ls_dtype type = value->type == LS_BF16 ? LS_BF16 : LS_F32;
    if (to_plain)
        ls_dtype_convert(type, element, LS_F32, plain, 1);
    else
        ls_dtype_convert(LS_F32, plain, type, element, 1);
}

/* Between Caffe's order and the value's layout. Elements are of 4 bytes, or bf16, which is fp32 in
 * Caffe's order. */
static void scene_convert(const struct ls_device *device, const struct ls_value *value,
                          float *plain, void *laid_out, bool to_plain)
{
    const struct ls_layout *layout = value->layout;
    const size_t size = ls_dtype_size(value->type);
    if (layout->block == 0) {
        assert_int_equal(
            to_plain ? device->parameter_to_plain(layout, &value->shape, laid_out, plain, NULL)
                     : device->parameter_from_plain(layout, &value->shape, plain, laid_out, NULL),
            0);
        return;
    }
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++)
        scene_convert_element(
            value, &plain[i],
            (unsigned char *)laid_out + place_in_layout(layout, &value->shape, i) * size, to_plain);
}

/* Memory of the host that holds a value in its layout. */
static void *scene_memory(const struct ls_value *value)
{
    void *memory = ls_alloc_aligned(ls_value_bytes(value) + 64);
    assert_non_null(memory);
    memset(memory, 0, ls_value_bytes(value) + 64);
    return memory;
}

/* ---- What a device sees ---------------------------------------------------------------------- */

/* A copy of `bytes` in the device's memory. */
static void *scene_give(const struct ls_device *device, const void *numbers, size_t bytes)
{
    void *there = device->memory->create(bytes + 64);
    assert_non_null(there);
    assert_int_equal(device->memory->write(NULL, there, numbers, bytes, NULL), 0);
    return there;
}

/* So many bytes of NaNs there. */
static void *scene_give_nans(const struct ls_device *device, size_t bytes)
{
    void *nans = ls_alloc_aligned(bytes + 64);
    assert_non_null(nans);
    memset(nans, 0xff, bytes + 64);
    void *there = scene_give(device, nans, bytes);
    ls_free_aligned(nans);
    return there;
}

static void scene_take(const struct ls_device *device, void *numbers, void *there, size_t bytes)
{
    assert_int_equal(device->memory->read(NULL, numbers, there, bytes, NULL), 0);
    device->memory->free(there);
}

static void *scene_give_input(const struct op_scene *scene, const struct ls_device *device, int i)
{
    const struct ls_value *value = scene->in[i];
    if (value == NULL)
        return NULL;
    void *laid_out = scene_memory(value);
    scene_convert(device, value, scene->plain[value->index], laid_out, false);
    void *there = scene_give(device, laid_out, ls_value_bytes(value));
    ls_free_aligned(laid_out);
    return there;
}

static float *scene_take_output(const struct op_scene *scene, const struct ls_device *device, int i,
                                void *there)
{
    const struct ls_value *value = scene->out[i];
    if (value == NULL)
        return NULL;
    float *plain = ls_alloc((size_t)ls_shape_size(&value->shape) + 1, sizeof *plain);
    void *laid_out = scene_memory(value);
    assert_non_null(plain);
    scene_take(device, laid_out, there, ls_value_bytes(value));
    scene_convert(device, value, plain, laid_out, true);
    ls_free_aligned(laid_out);
    return plain;
}

/* What the context points to, in the device's memory. */
struct told {
    struct ls_batch_numbers *numbers;
    double *record, *partial[2];
    float *merged[2];
};

static size_t merged_bytes(const struct op_scene *scene, int s)
{
    const int64_t groups = SCENE_PARTS;
    return scene->merged[s] != NULL
               ? (size_t)(groups * ls_sync_merged(&scene->sync[s])) * sizeof(float)
               : 0;
}

static void scene_tell(const struct op_scene *scene, const struct ls_device *device,
                       const struct op_result *result, struct told *told,
                       struct ls_context *context)
{
    union { /* with room for the one normalizer that scenes have */
        struct ls_batch_numbers numbers;
        unsigned char room[sizeof(struct ls_batch_numbers) + sizeof(double)];
    } here = {.numbers = {.first_ordinal = context->first_ordinal,
                          .samples = context->samples,
                          .position = context->position,
                          .micro_batch = context->micro_batch}};
    memcpy(here.room + sizeof here.numbers, scene->normalizers, sizeof(double));
    told->numbers = scene_give(device, &here, sizeof here);
    told->record = scene_give(device, result->record, sizeof result->record);
    for (int s = 0; s < 2; s++) {
        told->partial[s] =
            scene_give(device, result->partial[s], result->partial_count * sizeof(double));
        told->merged[s] = scene->merged[s] == NULL
                              ? NULL
                              : scene_give(device, scene->merged[s], merged_bytes(scene, s));
    }
    if (!device->memory->host_memory)
        context->numbers = told->numbers;
    context->partials = told->record;
    context->lists = told->record + SCENE_RECORD - SCENE_LISTS;
    context->partial = told->partial;
    context->merged = told->merged;
}

static void scene_hear(const struct ls_device *device, struct told *told, struct op_result *result)
{
    device->memory->free(told->numbers);
    scene_take(device, result->record, told->record, sizeof result->record);
    for (int s = 0; s < 2; s++) {
        scene_take(device, result->partial[s], told->partial[s],
                   result->partial_count * sizeof(double));
        device->memory->free(told->merged[s]);
    }
}

static void scene_carry_out(struct op_scene *scene, const struct ls_device *device,
                            struct ls_prepared *prepared, void **in, void **out,
                            struct op_result *result)
{
    struct ls_error error = {0};
    struct ls_stream *stream = NULL;
    struct told told;
    void *local = NULL;
    void *scratch = scene_give_nans(device, prepared->scratch_bytes);
    struct ls_context context = {.samples = 1,
                                 .first_ordinal = 1000 + (int64_t)scene->round,
                                 .position = scene->position,
                                 .normalizers = scene->normalizers,
                                 .parts = &scene->parts,
                                 .error = &error};
    const struct ls_kernel *kernel = prepared->kernel;
    assert_int_equal(device->streams->create(&stream, NULL), 0);
    context.stream = stream;
    scene_tell(scene, device, result, &told, &context);
    if (kernel->bind != NULL)
        assert_int_equal(kernel->bind(prepared, in, out, scratch, &local, &error), 0);
    if (kernel->run(prepared, local, in, out, scratch, &context) != 0)
        fail_msg("%s: %s", kernel->name, error.problems[0].message);
    assert_int_equal(device->streams->wait(stream, NULL), 0);
    if (kernel->unbind != NULL)
        kernel->unbind(prepared, local);
    device->streams->free(stream);
    scene_hear(device, &told, result);
    device->memory->free(scratch);
}

void scene_run(struct op_scene *scene, const struct ls_device *device,
               const struct ls_layout *offered, struct op_result *result)
{
    void *in[SCENE_VALUES] = {0}, *out[SCENE_VALUES] = {0};
    struct ls_prepared prepared = {.op = &scene->op};
    struct ls_error error = {0};
    *result = (struct op_result){0};
    scene->op.input = scene->in;
    scene->op.output = scene->out;
    for (int i = 0; i < scene->values; i++)
        scene->value[i].layout = &ls_layout_plain;
    prepared.kernel = result->kernel = ls_kernel_find(device->kernels(), &scene->op);
    if (prepared.kernel == NULL)
        fail_msg("%s has no kernel for %s", device->name, ls_op_kind_name(scene->op.kind));
    settle_layouts(prepared.kernel, &scene->op, offered);
    for (int i = 0; i < scene->op.inputs; i++)
        in[i] = scene_give_input(scene, device, i);
    for (int i = 0; i < scene->op.outputs; i++)
        out[i] =
            scene->out[i] != NULL ? scene_give_nans(device, ls_value_bytes(scene->out[i])) : NULL;
    if (prepared.kernel->prepare != NULL && prepared.kernel->prepare(&prepared, &error) != 0)
        fail_msg("%s: %s", prepared.kernel->name, error.problems[0].message);
    const int64_t channels = scene->sync[0].channels;
    result->partial_count = SCENE_PARTS * (size_t)(2 * ls_sync_round(channels) + LS_SYNC_ROW_END);
    for (int s = 0; s < 2; s++)
        result->partial[s] = ls_alloc(result->partial_count, sizeof(double));
    scene_carry_out(scene, device, &prepared, in, out, result);
    if (prepared.kernel->release != NULL)
        prepared.kernel->release(&prepared);
    for (int i = 0; i < scene->op.outputs; i++)
        result->out[i] = scene_take_output(scene, device, i, out[i]);
    for (int i = 0; i < scene->op.inputs; i++)
        device->memory->free(in[i]);
}
