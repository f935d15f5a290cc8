/* Parameters between Caffe's order and the layouts that kernels like.
 *
 * A conversion is one reorder, or two over Caffe's order where the layouts see the parameter
 * differently (as transposed, say, where layers share it). Views of another type are converted at
 * the end: a layout is one of elements of any type. What convolutions of bf16 numbers read is made
 * in one go, without a copy of the weights in fp32.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/parameter_layout.h"

#include "base/memory.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/primitive.h"

/* One reorder with its scratch memory. */
struct way {
    struct ls_primitive *primitive;
    struct ls_execution *execution;
    void *scratch;
};

struct ls_converter {
    enum ls_dtype type; /* of the target */
    size_t elements;    /* of the target, with padding */
    int ways;           /* 0: the layouts are the same, or `channels_last` */
    bool channels_last; /* the target is that, in bf16, and the source plain */
    int64_t n, channels, points;
    struct way way[2];
    float *between; /* in Caffe's order, where there are two ways */
    float *last;    /* where the last way leads, if the target is not fp32 */
};

static int open_way(struct way *way, const struct ls_layout *from, const struct ls_layout *to,
                    const struct ls_shape *shape, struct ls_error *error)
{
    struct ls_primitive_spec spec = {.kind = LS_PRIMITIVE_REORDER};
    LS_TRY(ls_reorder_tensors(shape, LS_F32, from, to, &spec.tensor[LS_SOURCE],
                              &spec.tensor[LS_TARGET], error));
    LS_TRY(ls_primitive_new(&spec, &way->primitive, error));
    way->scratch = ls_alloc_aligned(ls_primitive_scratch(way->primitive));
    if (way->scratch == NULL)
        return ls_fail_memory(error, "a reorder");
    return ls_execution_new(way->primitive, way->scratch, &way->execution, error);
}

static bool rounds_channels_last(enum ls_dtype type, const struct ls_layout *from,
                                 const struct ls_layout *to, const struct ls_shape *shape)
{
    const struct ls_layout *last;
    return type == LS_BF16 && from == &ls_layout_plain && shape->rank >= 3 && shape->rank <= 5 &&
           ls_onednn_channels_last(shape, &last, NULL) == 0 && to == last;
}

static int open_converter(struct ls_converter *converter, const struct ls_layout *from,
                          const struct ls_layout *to, const struct ls_shape *shape,
                          struct ls_error *error)
{
    struct ls_onednn_tensor source, target;
    if (!ls_dtype_converts(LS_F32, converter->type))
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "weights cannot be converted from %s to %s", ls_dtype_name(LS_F32),
                       ls_dtype_name(converter->type));
    converter->elements = ls_layout_elements(to, shape);
    if (from == to)
        return 0;
    if (rounds_channels_last(converter->type, from, to, shape)) {
        converter->channels_last = true;
        converter->n = shape->dim[0];
        converter->channels = shape->dim[1];
        converter->points = ls_shape_count(shape, 2, shape->rank);
        return 0;
    }
    if (converter->type != LS_F32) {
        converter->last = ls_alloc_aligned(converter->elements * sizeof *converter->last);
        if (converter->last == NULL)
            return ls_fail_memory(error, "a parameter");
    }
    if (from->block != 0 || to->block != 0 ||
        ls_reorder_tensors(shape, LS_F32, from, to, &source, &target, NULL) == 0) {
        converter->ways = 1;
        return open_way(&converter->way[0], from, to, shape, error);
    }
    converter->ways = 2;
    converter->between =
        ls_alloc_aligned((size_t)ls_shape_size(shape) * sizeof *converter->between);
    if (converter->between == NULL)
        return ls_fail_memory(error, "a parameter");
    LS_TRY(open_way(&converter->way[0], from, &ls_layout_plain, shape, error));
    return open_way(&converter->way[1], &ls_layout_plain, to, shape, error);
}

int ls_cpu_converter_new(const struct ls_layout *from, const struct ls_layout *to,
                         const struct ls_shape *shape, enum ls_dtype type,
                         struct ls_converter **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_converter *converter = ls_alloc(1, sizeof *converter);
    if (converter == NULL)
        return ls_fail_memory(error, "a reorder");
    converter->type = type;
    int status = open_converter(converter, from, to, shape, error);
    if (status != 0)
        ls_cpu_converter_free(converter);
    else
        *out = converter;
    return status;
}

static int run_ways(const struct ls_converter *converter, const float *source, void *target,
                    struct ls_error *error)
{
    if (converter->channels_last) {
        ls_cpu_round_channels_last(source, converter->n, converter->channels, converter->points,
                                   target);
        return 0;
    }
    void *end = converter->last != NULL ? converter->last : target;
    for (int i = 0; i < converter->ways; i++) {
        bool last = i == converter->ways - 1;
        void *data[LS_SLOTS] = {0};
        data[LS_SOURCE] = i == 0 ? (void *)(uintptr_t)source : converter->between;
        data[LS_TARGET] = last ? end : converter->between;
        const int status = ls_execution_run(converter->way[i].execution, data);
        if (status != 0)
            return ls_fail(error, status, NULL, NULL,
                           "oneDNN could not carry out the reorder of a parameter%s",
                           status == LOCKSTEP_RESOURCE ? ": out of memory" : "");
    }
    if (converter->ways == 0 || converter->last != NULL)
        ls_cpu_convert(LS_F32, converter->ways == 0 ? source : converter->last, converter->type,
                       target, converter->elements);
    return 0;
}

int ls_cpu_converter_run(struct ls_converter *converter, const float *source, void *target,
                         struct ls_error *error)
{
    int threads = ls_onednn_one_thread();
    int status = run_ways(converter, source, target, error);
    ls_onednn_restore_threads(threads);
    return status;
}

void ls_cpu_converter_free(struct ls_converter *converter)
{
    if (converter == NULL)
        return;
    for (int i = 0; i < converter->ways; i++) {
        ls_execution_free(converter->way[i].execution);
        ls_free_aligned(converter->way[i].scratch);
        ls_primitive_free(converter->way[i].primitive);
    }
    ls_free_aligned(converter->between);
    ls_free_aligned(converter->last);
    ls_free(converter);
}

int ls_cpu_parameter_convert(const struct ls_layout *from, const struct ls_layout *to,
                             const struct ls_shape *shape, const float *source, float *target,
                             struct ls_error *error)
{
    struct ls_converter *converter;
    LS_TRY(ls_cpu_converter_new(from, to, shape, LS_F32, &converter, error));
    int status = ls_cpu_converter_run(converter, source, target, error);
    ls_cpu_converter_free(converter);
    return status;
}

int ls_cpu_parameter_from_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                                const float *plain, float *laid_out, struct ls_error *error)
{
    return ls_cpu_parameter_convert(&ls_layout_plain, layout, shape, plain, laid_out, error);
}

int ls_cpu_parameter_to_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                              const float *laid_out, float *plain, struct ls_error *error)
{
    return ls_cpu_parameter_convert(layout, &ls_layout_plain, shape, laid_out, plain, error);
}
