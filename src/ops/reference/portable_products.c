/* Products in the declared order: convolutions, deconvolutions and inner products, in all their
 * passes, of bf16 numbers and of fp32 ones whose algorithm is PORTABLE.
 *
 * For each position of the result all that meets there is listed once, in the order of the terms;
 * what lies outside of a picture is zeros, and is multiplied like other numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/product_sum.h"
#include "ops/reference/portable.h"
#include "ops/reference/windows.h"

enum { AXES = LS_REF_AXES, X = LS_REF_X, W = LS_REF_W, Y = LS_REF_Y };

/* Places of the operands that are multiplied; -1: outside. To y and to x `b` is of the kernel. */
struct meeting {
    int64_t a, b;
};

static void split(int64_t i, const int64_t extent[AXES], int64_t at[AXES])
{
    for (int a = AXES - 1; a >= 0; i /= extent[a--])
        at[a] = i % extent[a];
}

static int64_t place_of(const int64_t extent[AXES], const int64_t at[AXES])
{
    int64_t place = 0;
    for (int a = 0; a < AXES; a++) {
        if (at[a] < 0 || at[a] >= extent[a])
            return -1;
        place = place * extent[a] + at[a];
    }
    return place;
}

/* Where the window of position `y` has weight `k`, in x. */
static int64_t find_x(const struct ls_ref_windows *windows, int64_t y, int64_t k)
{
    const struct ls_window *of = &windows->of;
    int64_t o[AXES], tap[AXES], at[AXES] = {0};
    split(y, windows->y, o);
    split(k, of->kernel, tap);
    for (int a = 0; a < of->axes; a++)
        at[a] = o[a] * of->stride[a] + tap[a] * of->dilation[a] - of->pad[a];
    return place_of(windows->x, at);
}

/* The other way; false: weight `k` of no window is there, however far windows go on. */
static bool find_y(const struct ls_ref_windows *windows, int64_t x, int64_t k, int64_t *y)
{
    const struct ls_window *of = &windows->of;
    int64_t i[AXES], tap[AXES], at[AXES] = {0};
    split(x, windows->x, i);
    split(k, of->kernel, tap);
    for (int a = 0; a < of->axes; a++) {
        const int64_t distance = i[a] + of->pad[a] - tap[a] * of->dilation[a];
        if (distance % of->stride[a] != 0)
            return false;
        at[a] = distance / of->stride[a];
    }
    *y = place_of(windows->y, at);
    return true;
}

/* What meets at position `at` of y, of x, or of the kernel. */
static int64_t list_meetings(const struct ls_ref_windows *windows, enum ls_ref_role result,
                             int64_t at, struct meeting *meeting)
{
    const int64_t most = result == LS_REF_W ? windows->y_points : windows->k_points;
    int64_t count = 0, y = 0;
    for (int64_t i = 0; i < most; i++) {
        if (result == LS_REF_Y)
            meeting[count++] = (struct meeting){find_x(windows, at, i), i};
        else if (result == LS_REF_W)
            meeting[count++] = (struct meeting){find_x(windows, i, at), i};
        else if (find_y(windows, at, i, &y))
            meeting[count++] = (struct meeting){y, i};
    }
    return count;
}

/* A pass, and what meets at the position that is computed. */
struct pass {
    struct ls_ref_product of;
    int64_t inputs, outputs; /* channels of x and y in a group */
    bool single;             /* groups of single channels: no blocks */
    const float *data[LS_REF_ROLES];
    const struct meeting *meeting;
    int64_t meetings;
};

static float number(const float *plane, int64_t place)
{
    return place < 0 ? 0 : plane[place];
}

static void add(const struct pass *pass, struct ls_product_sum *sum, float a, float b)
{
    if (pass->single)
        ls_product_sum_chain(sum, a, b);
    else
        ls_product_sum_add(sum, a, b);
}

/* Channel o of y in sample n. */
static float sum_to_y(const struct pass *pass, int64_t n, int64_t o)
{
    const struct ls_ref_product *of = &pass->of;
    const int64_t first = n * of->x.dim + o / pass->outputs * pass->inputs;
    struct ls_product_sum sum = {.terms = 0};
    for (int64_t m = 0; m < pass->meetings; m++)
        for (int64_t c = 0; c < pass->inputs; c++)
            add(pass, &sum, number(pass->data[X] + (first + c) * of->x.inner, pass->meeting[m].a),
                pass->data[W][o * of->w_out + c * of->w_in + pass->meeting[m].b]);
    return ls_product_sum_end(&sum);
}

/* Channel c of x in sample n. */
static float sum_to_x(const struct pass *pass, int64_t n, int64_t c)
{
    const struct ls_ref_product *of = &pass->of;
    const int64_t first = c / pass->inputs * pass->outputs, w_at = c % pass->inputs * of->w_in;
    struct ls_product_sum sum = {.terms = 0};
    for (int64_t m = 0; m < pass->meetings; m++)
        for (int64_t o = first; o < first + pass->outputs; o++)
            add(pass, &sum,
                number(pass->data[Y] + (n * of->y.dim + o) * of->y.inner, pass->meeting[m].a),
                pass->data[W][o * of->w_out + w_at + pass->meeting[m].b]);
    return ls_product_sum_end(&sum);
}

/* The weight from channel c of the group's x to channel o of y. */
static float sum_to_w(const struct pass *pass, int64_t o, int64_t c)
{
    const struct ls_ref_product *of = &pass->of;
    const int64_t from = o / pass->outputs * pass->inputs + c;
    struct ls_product_sum sum = {.terms = 0};
    for (int64_t n = 0; n < of->x.outer; n++) {
        const float *x = pass->data[X] + (n * of->x.dim + from) * of->x.inner;
        const float *y = pass->data[Y] + (n * of->y.dim + o) * of->y.inner;
        for (int64_t m = 0; m < pass->meetings; m++)
            ls_product_sum_add(&sum, number(x, pass->meeting[m].a), y[pass->meeting[m].b]);
    }
    return ls_product_sum_end(&sum);
}

/* ---- Bias and ReLU --------------------------------------------------------------------------- */

struct ending {
    const float *bias; /* NULL: none */
    bool relu;
    float slope;
};

static struct ending ending_of(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_inner_product_attr *product = &op->attr.inner_product;
    const struct ls_convolution_attr *convolution = &op->attr.convolution;
    if (op->kind == LS_OP_INNER_PRODUCT)
        return (struct ending){ls_in(call, 2), product->relu, product->relu_slope};
    if (op->kind == LS_OP_CONVOLUTION || op->kind == LS_OP_DECONVOLUTION)
        return (struct ending){ls_in(call, 2), convolution->relu, convolution->relu_slope};
    return (struct ending){.bias = NULL};
}

static float finish(const struct ending *ending, float sum, int64_t channel)
{
    const float z = ending->bias != NULL ? sum + ending->bias[channel] : sum;
    return ending->relu ? (float)ls_relu((double)z, ending->slope) : z;
}

/* dy times 1: samples, then positions. */
static void sum_bias(const struct ls_axes *axes, const float *dy, float *db)
{
    for (int64_t c = 0; c < axes->dim; c++) {
        struct ls_product_sum sum = {.terms = 0};
        for (int64_t n = 0; n < axes->outer; n++)
            for (int64_t p = 0; p < axes->inner; p++)
                ls_product_sum_add(&sum, dy[(n * axes->dim + c) * axes->inner + p], 1);
        db[c] = ls_product_sum_end(&sum);
    }
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static void multiply(const struct ls_call *call)
{
    const enum ls_ref_role *role = ls_ref_roles[call->op->kind];
    const struct ending ending = ending_of(call);
    struct pass pass = {.of = ls_ref_product_of(call->op), .meeting = call->scratch};
    const struct ls_ref_product *of = &pass.of;
    const bool to_w = role[2] == LS_REF_W, to_x = role[2] == LS_REF_X;
    const struct ls_axes *axes = to_x ? &of->x : &of->y;
    const int64_t points = to_w ? of->windows.k_points : axes->inner;
    float *out = call->out[0];
    pass.data[role[0]] = call->in[0];
    pass.data[role[1]] = call->in[1];
    pass.inputs = of->x.dim / of->groups;
    pass.outputs = of->y.dim / of->groups;
    pass.single = pass.inputs == 1 && pass.outputs == 1;
    for (int64_t at = 0; at < points; at++) {
        pass.meetings = list_meetings(&of->windows, role[2], at, call->scratch);
        for (int64_t i = 0; !to_w && i < axes->outer * axes->dim; i++) {
            const int64_t n = i / axes->dim, c = i % axes->dim;
            const float sum = to_x ? sum_to_x(&pass, n, c) : sum_to_y(&pass, n, c);
            out[i * points + at] = finish(&ending, sum, c);
        }
        for (int64_t i = 0; to_w && i < of->y.dim * pass.inputs; i++) {
            const int64_t o = i / pass.inputs, c = i % pass.inputs;
            out[o * of->w_out + c * of->w_in + at] = sum_to_w(&pass, o, c);
        }
    }
    if (to_w && call->op->outputs > 1 && call->out[1] != NULL)
        sum_bias(role[1] == LS_REF_X ? &of->x : &of->y, call->in[1], call->out[1]);
}

static size_t meeting_bytes(const struct ls_op *op)
{
    const struct ls_ref_product of = ls_ref_product_of(op);
    const int64_t y = of.windows.y_points, k = of.windows.k_points;
    return (size_t)(y > k ? y : k) * sizeof(struct meeting);
}

#define PRODUCT                                                                                    \
    {                                                                                              \
        .run = multiply, .scratch = meeting_bytes                                                  \
    }

const struct ls_compute ls_portable_products[LS_OP_KINDS] = {
    [LS_OP_CONVOLUTION] = PRODUCT,           [LS_OP_CONVOLUTION_DATA] = PRODUCT,
    [LS_OP_CONVOLUTION_WEIGHTS] = PRODUCT,   [LS_OP_DECONVOLUTION] = PRODUCT,
    [LS_OP_DECONVOLUTION_DATA] = PRODUCT,    [LS_OP_DECONVOLUTION_WEIGHTS] = PRODUCT,
    [LS_OP_INNER_PRODUCT] = PRODUCT,         [LS_OP_INNER_PRODUCT_DATA] = PRODUCT,
    [LS_OP_INNER_PRODUCT_WEIGHTS] = PRODUCT,
};
