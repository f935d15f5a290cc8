/* From the definition of a convolution to what its kernels go by. See convolution.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "ir/layer.h"
#include "ops/cpu/bf16/convolution.h"
#include "ops/cpu/primitive.h"

/* Extents of the axes behind the channels, the last ones first where there are less than three. */
static void set_extents(const struct ls_shape *shape, int axes, int64_t extent[3])
{
    for (int i = 0; i < 3; i++)
        extent[i] = i < 3 - axes ? 1 : shape->dim[shape->rank - 3 + i];
}

/* Parameters of a window's axis `i` of three. */
struct axis {
    int64_t kernel, stride, pad, dilation;
};

static struct axis axis_of(const struct ls_window *window, int i)
{
    const int unused = 3 - window->axes;
    if (i < unused)
        return (struct axis){.kernel = 1, .stride = 1, .dilation = 1};
    return (struct axis){.kernel = window->kernel[i - unused],
                         .stride = window->stride[i - unused],
                         .pad = window->pad[i - unused],
                         .dilation = window->dilation[i - unused]};
}

static bool is_forward(const struct ls_op *op)
{
    return op->kind == LS_OP_CONVOLUTION || op->kind == LS_OP_DECONVOLUTION;
}

static void describe(const struct ls_op *op, struct ls_bf16_convolution *convolution)
{
    static const enum ls_bf16_pass passes[] = {[LS_PASS_FORWARD] = LS_BF16_TO_Y,
                                               [LS_PASS_DATA] = LS_BF16_TO_X,
                                               [LS_PASS_WEIGHTS] = LS_BF16_TO_W};
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    const struct ls_shape *y = &ls_primitive_value(op, LS_TARGET)->shape;
    const int channels = x->rank - attr->window.axes - 1; /* which axis they are */
    convolution->pass = passes[ls_primitive_pass(op)];
    convolution->f32 = !op->bf16;
    convolution->samples = ls_shape_count(x, 0, channels);
    convolution->groups = attr->group;
    convolution->x_channels = x->dim[channels] / attr->group;
    convolution->y_channels = y->dim[channels] / attr->group;
    set_extents(x, attr->window.axes, convolution->x);
    set_extents(y, attr->window.axes, convolution->y);
    convolution->taps = 1;
    for (int i = 0; i < 3; i++) {
        const struct axis axis = axis_of(&attr->window, i);
        convolution->stride[i] = axis.stride;
        convolution->taps *= axis.kernel;
    }
    if (is_forward(op))
        convolution->ends = (struct ls_bf16_ends){.relu = attr->relu, .slope = attr->relu_slope};
}

/* Whether weight k of an axis comes to the class that begins at `first`, and from how far off. */
static bool meets(const struct axis *axis, enum ls_bf16_pass pass, int64_t first, int64_t k,
                  int64_t *offset)
{
    if (pass != LS_BF16_TO_X) {
        *offset = k * axis->dilation - axis->pad;
        return true;
    }
    const int64_t distance = first + axis->pad - k * axis->dilation;
    *offset = distance / axis->stride;
    return distance % axis->stride == 0;
}

/* Adds the taps of a class, in the order of the window, behind `used` others. */
static int64_t add_taps(const struct ls_window *window, struct ls_bf16_convolution *convolution,
                        struct ls_bf16_class *class, int64_t used)
{
    struct axis axis[3];
    int64_t offset[3], number = 0;
    for (int i = 0; i < 3; i++)
        axis[i] = axis_of(window, i);
    class->offset = convolution->offsets + used;
    class->tap = convolution->tap_numbers + used;
    for (int64_t d = 0; d < axis[0].kernel; d++)
        for (int64_t h = 0; h < axis[1].kernel; h++)
            for (int64_t w = 0; w < axis[2].kernel; w++, number++) {
                const int64_t k[3] = {d, h, w};
                bool all = true;
                for (int i = 0; i < 3; i++)
                    all = meets(&axis[i], convolution->pass, class->first[i], k[i], &offset[i]) &&
                          all;
                if (!all)
                    continue;
                for (int i = 0; i < 3; i++)
                    class->offset[class->taps][i] = offset[i];
                class->tap[class->taps++] = number;
            }
    return used + class->taps;
}

/* How many classes there are along each axis. */
static void count_classes(const struct ls_bf16_convolution *convolution, int64_t count[3])
{
    const int64_t *x = convolution->x, *stride = convolution->stride;
    for (int i = 0; i < 3; i++)
        count[i] = convolution->pass != LS_BF16_TO_X ? 1 : stride[i] < x[i] ? stride[i] : x[i];
}

static void fill_classes(const struct ls_window *window, struct ls_bf16_convolution *convolution)
{
    int64_t count[3], used = 0;
    count_classes(convolution, count);
    for (int64_t c = 0; c < convolution->class_count; c++) {
        struct ls_bf16_class *class = &convolution->classes[c];
        *class = (struct ls_bf16_class){
            .first = {c / count[2] / count[1], c / count[2] % count[1], c % count[2]}};
        for (int i = 0; i < 3; i++)
            class->grid[i] =
                convolution->pass != LS_BF16_TO_X
                    ? convolution->y[i]
                    : (convolution->x[i] - class->first[i] - 1) / convolution->stride[i] + 1;
        used = add_taps(window, convolution, class, used);
    }
}

int ls_bf16_refuse(const struct ls_op *op, const char *problem, struct ls_error *error)
{
    return op->layer != NULL ? ls_layer_fail(op->layer, error, NULL, NULL, NULL, "%s", problem)
                             : ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL, "%s", problem);
}

int ls_bf16_convolution_new(const struct ls_op *op, struct ls_bf16_convolution **result,
                            struct ls_error *error)
{
    *result = NULL;
    if (ls_window_is_too_large(&op->attr.convolution.window))
        return ls_bf16_refuse(op, LS_WINDOW_TOO_LARGE, error);
    struct ls_bf16_convolution *convolution = ls_alloc(1, sizeof *convolution);
    int64_t count[3];
    *result = convolution;
    if (convolution == NULL)
        return ls_fail_memory(error, "a convolution");
    describe(op, convolution);
    count_classes(convolution, count);
    convolution->class_count = ls_bf16_plane(count);
    /* Each tap comes to one class. */
    const size_t taps = (size_t)convolution->taps;
    convolution->classes = ls_alloc((size_t)convolution->class_count, sizeof *convolution->classes);
    convolution->offsets = ls_alloc(taps, sizeof *convolution->offsets);
    convolution->tap_numbers = ls_alloc(taps, sizeof *convolution->tap_numbers);
    if (convolution->classes == NULL || convolution->offsets == NULL ||
        convolution->tap_numbers == NULL)
        return ls_fail_memory(error, "tables of a convolution");
    fill_classes(&op->attr.convolution.window, convolution);
    return 0;
}

void ls_bf16_convolution_free(struct ls_bf16_convolution *convolution)
{
    if (convolution == NULL)
        return;
    ls_free(convolution->classes);
    ls_free(convolution->offsets);
    ls_free(convolution->tap_numbers);
    ls_free(convolution);
}

/* Whether each position meets the number at its own place, so that a plane is one row. */
static bool is_whole(const struct ls_bf16_windows *windows)
{
    bool whole = windows->taps == 1;
    for (int i = 0; whole && i < 3; i++)
        whole = windows->offset[0][i] == 0 && windows->step[i] == 1 &&
                windows->grid[i] == windows->extent[i];
    return whole;
}

struct ls_bf16_windows ls_bf16_class_windows(const struct ls_bf16_convolution *convolution,
                                             const struct ls_bf16_class *class, const void *data)
{
    const bool to_x = convolution->pass == LS_BF16_TO_X;
    const int64_t *extent = to_x ? convolution->y : convolution->x;
    struct ls_bf16_windows windows = {.data = data,
                                      .f32 = convolution->f32,
                                      .samples = convolution->samples,
                                      .plane = ls_bf16_plane(extent),
                                      .channels =
                                          to_x ? convolution->y_channels : convolution->x_channels,
                                      .taps = class->taps,
                                      .offset = (const int64_t(*)[3]) class->offset};
    windows.sample = convolution->groups * windows.channels * windows.plane;
    for (int i = 0; i < 3; i++) {
        windows.extent[i] = extent[i];
        windows.grid[i] = class->grid[i];
        windows.step[i] = to_x ? 1 : convolution->stride[i];
    }
    if (is_whole(&windows)) {
        windows.extent[2] = windows.grid[2] = windows.plane;
        windows.extent[0] = windows.extent[1] = windows.grid[0] = windows.grid[1] = 1;
    }
    return windows;
}
