/* Parameters between Caffe's order and the layouts that kernels like.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/parameter_layout.h"

#include <string.h>

#include "base/memory.h"
#include "ops/cpu/primitive.h"

static int convert_directly(const struct ls_layout *from, const struct ls_layout *to,
                            const struct ls_shape *shape, const float *source, float *target,
                            struct ls_error *error)
{
    struct ls_tensor source_tensor, target_tensor;
    LS_TRY(ls_reorder_tensors(shape, LS_F32, from, to, &source_tensor, &target_tensor, error));
    return ls_onednn_reorder(&source_tensor, &target_tensor, source, target, error);
}

/* The layouts see the parameter differently (as transposed, say, where layers share it): the way
 * leads over Caffe's order. */
static int convert_over_plain(const struct ls_layout *from, const struct ls_layout *to,
                              const struct ls_shape *shape, const float *source, float *target,
                              struct ls_error *error)
{
    float *plain = ls_alloc_aligned((size_t)ls_shape_size(shape) * sizeof *plain);
    if (plain == NULL)
        return ls_fail_memory(error, "a parameter");
    int status = convert_directly(from, &ls_layout_plain, shape, source, plain, error);
    if (status == 0)
        status = convert_directly(&ls_layout_plain, to, shape, plain, target, error);
    ls_free_aligned(plain);
    return status;
}

int ls_cpu_parameter_convert(const struct ls_layout *from, const struct ls_layout *to,
                             const struct ls_shape *shape, const float *source, float *target,
                             struct ls_error *error)
{
    struct ls_tensor source_tensor, target_tensor;
    if (from == to) {
        memcpy(target, source, ls_layout_elements(from, shape) * sizeof *target);
        return 0;
    }
    if (from->block == 0 && to->block == 0 &&
        ls_reorder_tensors(shape, LS_F32, from, to, &source_tensor, &target_tensor, NULL) != 0)
        return convert_over_plain(from, to, shape, source, target, error);
    return convert_directly(from, to, shape, source, target, error);
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
