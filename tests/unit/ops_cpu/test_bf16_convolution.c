/* Convolutions and deconvolutions of bf16 and of fp32 numbers in all their passes, on every
 * instruction set, bit by bit against the definition. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/bf16_trial.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/thread.h"
#include "kernels/convolution_size.h"

/* A convolution and what its passes are given. */
struct scene {
    struct convolution_size size;
    int axes;
    bool f32;              /* of fp32 numbers, else of bf16 */
    bool bias, relu, wide; /* wide: the result over positions is fp32 */
    float slope;
    float *x, *w, *y;
    float *b;
    float *expected[2];
    int64_t x_count, w_count, y_count;
};

enum pass { TO_Y, TO_X, TO_W };

static int64_t volume(const int extent[3])
{
    return (int64_t)extent[0] * extent[1] * extent[2];
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static struct scene *make_scene(const struct convolution_size *size, int axes, bool f32,
                                uint64_t salt)
{
    struct scene *scene = ls_alloc(1, sizeof *scene);
    assert_non_null(scene);
    scene->size = *size;
    scene->axes = axes;
    scene->bias = salt % 3 != 0;
    scene->relu = scene->bias && salt % 4 < 2;
    scene->slope = salt % 4 == 1 ? 0.1F : 0;
    scene->f32 = f32;
    scene->wide = f32 || salt % 5 == 0;
    scene->x_count = size->n * size->c * volume(size->in);
    scene->y_count = size->n * size->o * volume(size->out);
    scene->w_count = size->o * (size->c / size->group) * volume(size->kernel);
    scene->x = bf16_trial_numbers(f32, scene->x_count, salt);
    scene->y = bf16_trial_numbers(f32, scene->y_count, ~salt);
    scene->w = bf16_trial_numbers(f32, scene->w_count, salt ^ 0x5555);
    if (salt % 8 == 5) /* padding times it is no number */
        scene->w[scene->w_count / 2] = INFINITY;
    scene->b = bf16_trial_biases(larger(size->o, size->c), salt ^ 0x77);
    const size_t most = (size_t)larger(scene->w_count, larger(scene->x_count, scene->y_count)) + 1;
    for (int i = 0; i < 2; i++) {
        scene->expected[i] = ls_alloc(most, sizeof(float));
        assert_non_null(scene->expected[i]);
    }
    return scene;
}

static void free_scene(struct scene *scene)
{
    ls_free(scene->x);
    ls_free(scene->w);
    ls_free(scene->y);
    ls_free(scene->b);
    for (int i = 0; i < 2; i++)
        ls_free(scene->expected[i]);
    ls_free(scene);
}

/* ---- The definition -------------------------------------------------------------------------- */

/* Element of a tensor [n][channels][extent], or +0 outside of it. */
static float element(const float *data, int channels, const int extent[3], int n, int c,
                     const int at[3])
{
    for (int i = 0; i < 3; i++)
        if (at[i] < 0 || at[i] >= extent[i])
            return 0;
    return data[((n * (int64_t)channels + c) * extent[0] + at[0]) * extent[1] * extent[2] +
                at[1] * extent[2] + at[2]];
}

static void split(int64_t index, const int extent[3], int at[3])
{
    at[2] = (int)(index % extent[2]);
    at[1] = (int)(index / extent[2] % extent[1]);
    at[0] = (int)(index / extent[2] / extent[1]);
}

static bool is_single(const struct convolution_size *size)
{
    return size->c == size->group && size->o == size->group;
}

static void add_term(const struct convolution_size *size, struct ls_product_sum *sum, float a,
                     float b)
{
    if (is_single(size))
        ls_product_sum_chain(sum, a, b);
    else
        ls_product_sum_add(sum, a, b);
}

/* y[n, o, at] without bias. */
static float sum_to_y(const struct scene *scene, int n, int o, const int at[3])
{
    const struct convolution_size *size = &scene->size;
    const int channels = size->c / size->group, g = o / (size->o / size->group);
    const int64_t taps = volume(size->kernel);
    struct ls_product_sum sum = {.sum = 0};
    for (int64_t tap = 0; tap < taps; tap++) {
        int k[3], from[3];
        split(tap, size->kernel, k);
        for (int i = 0; i < 3; i++)
            from[i] = at[i] * size->stride[i] + k[i] * size->dilation[i] - size->pad[i];
        for (int c = 0; c < channels; c++)
            add_term(size, &sum, scene->w[((int64_t)o * channels + c) * taps + tap],
                     element(scene->x, size->c, size->in, n, g * channels + c, from));
    }
    return ls_product_sum_end(&sum);
}

/* dx[n, c, at]: what comes from dy over the taps that reach this class of positions. */
static float sum_to_x(const struct scene *scene, int n, int c, const int at[3])
{
    const struct convolution_size *size = &scene->size;
    const int channels = size->c / size->group, outputs = size->o / size->group;
    const int g = c / channels;
    const int64_t taps = volume(size->kernel);
    struct ls_product_sum sum = {.sum = 0};
    for (int64_t tap = 0; tap < taps; tap++) {
        int k[3], from[3];
        bool reaches = true;
        split(tap, size->kernel, k);
        for (int i = 0; i < 3; i++) {
            const int distance = at[i] + size->pad[i] - k[i] * size->dilation[i];
            reaches = reaches && distance % size->stride[i] == 0;
            from[i] = distance / size->stride[i];
        }
        for (int o = 0; reaches && o < outputs; o++)
            add_term(size, &sum,
                     scene->w[((int64_t)(g * outputs + o) * channels + c % channels) * taps + tap],
                     element(scene->y, size->o, size->out, n, g * outputs + o, from));
    }
    return ls_product_sum_end(&sum);
}

static float sum_to_w(const struct scene *scene, int o, int c, int64_t tap)
{
    const struct convolution_size *size = &scene->size;
    const int channels = size->c / size->group, g = o / (size->o / size->group);
    struct ls_product_sum sum = {.sum = 0};
    int k[3], at[3], from[3];
    split(tap, size->kernel, k);
    for (int n = 0; n < size->n; n++)
        for (int64_t p = 0; p < volume(size->out); p++) {
            split(p, size->out, at);
            for (int i = 0; i < 3; i++)
                from[i] = at[i] * size->stride[i] + k[i] * size->dilation[i] - size->pad[i];
            ls_product_sum_add(&sum, element(scene->y, size->o, size->out, n, o, at),
                               element(scene->x, size->c, size->in, n, g * channels + c, from));
        }
    return ls_product_sum_end(&sum);
}

/* The sum of a channel of a tensor over samples and positions. */
static float sum_channel(const float *data, int samples, int channels, int64_t plane, int c)
{
    struct ls_product_sum sum = {.sum = 0};
    for (int n = 0; n < samples; n++)
        for (int64_t p = 0; p < plane; p++)
            ls_product_sum_add(&sum, data[((int64_t)n * channels + c) * plane + p], 1);
    return ls_product_sum_end(&sum);
}

/* Bias, ReLU, rounding. */
static float finish(const struct scene *scene, float sum, bool forward, int channel)
{
    volatile float z = sum;
    if (forward && scene->bias)
        z = z + scene->b[channel];
    if (forward && scene->relu && z <= 0) {
        volatile float bent = scene->slope * z;
        z = scene->slope == 0 ? 0 : bent;
    }
    return scene->wide ? z : bf16_widened(bf16_rounded(z));
}

static void define(struct scene *scene, enum pass pass, bool transposed)
{
    const struct convolution_size *size = &scene->size;
    const bool forward = transposed ? pass == TO_X : pass == TO_Y;
    const int channels = pass == TO_Y ? size->o : size->c;
    const int *extent = pass == TO_Y ? size->out : size->in;
    float *to = scene->expected[0];
    for (int n = 0; pass != TO_W && n < size->n; n++)
        for (int c = 0; c < channels; c++)
            for (int64_t p = 0; p < volume(extent); p++) {
                int at[3];
                split(p, extent, at);
                float sum = pass == TO_Y ? sum_to_y(scene, n, c, at) : sum_to_x(scene, n, c, at);
                *to++ = finish(scene, sum, forward, c);
            }
    for (int o = 0; pass == TO_W && o < size->o; o++)
        for (int c = 0; c < size->c / size->group; c++)
            for (int64_t tap = 0; tap < volume(size->kernel); tap++)
                *to++ = sum_to_w(scene, o, c, tap);
    for (int c = 0; pass == TO_W && c < (transposed ? size->c : size->o); c++)
        scene->expected[1][c] = transposed
                                    ? sum_channel(scene->x, size->n, size->c, volume(size->in), c)
                                    : sum_channel(scene->y, size->n, size->o, volume(size->out), c);
}

/* ---- The kernel ------------------------------------------------------------------------------ */

static struct ls_shape shape_of(int n, int channels, const int extent[3], int axes)
{
    struct ls_shape shape = {.rank = axes + 2, .dim = {n, channels}};
    for (int i = 0; i < axes; i++)
        shape.dim[2 + i] = extent[3 - axes + i];
    return shape;
}

static void set_attributes(const struct scene *scene, struct ls_convolution_attr *attr)
{
    *attr = (struct ls_convolution_attr){.group = scene->size.group,
                                         .algorithm = scene->f32 ? LS_CONVOLUTION_PORTABLE
                                                                 : LS_CONVOLUTION_AUTO,
                                         .bias = scene->bias,
                                         .relu = scene->relu,
                                         .relu_slope = scene->slope};
    attr->window.axes = scene->axes;
    for (int i = 0; i < scene->axes; i++) {
        const int a = 3 - scene->axes + i;
        attr->window.kernel[i] = scene->size.kernel[a];
        attr->window.stride[i] = scene->size.stride[a];
        attr->window.pad[i] = scene->size.pad[a];
        attr->window.dilation[i] = scene->size.dilation[a];
    }
}

static enum ls_op_kind kind_of(enum pass pass, bool transposed)
{
    static const enum ls_op_kind kinds[2][3] = {
        {LS_OP_CONVOLUTION, LS_OP_CONVOLUTION_DATA, LS_OP_CONVOLUTION_WEIGHTS},
        {LS_OP_DECONVOLUTION_DATA, LS_OP_DECONVOLUTION, LS_OP_DECONVOLUTION_WEIGHTS}};
    return kinds[transposed][pass];
}

static void set_values(struct bf16_trial *trial, const struct scene *scene, enum pass pass,
                       bool transposed)
{
    const struct convolution_size *size = &scene->size;
    struct ls_value *value = trial->value;
    const bool forward = kind_of(pass, transposed) == LS_OP_CONVOLUTION ||
                         kind_of(pass, transposed) == LS_OP_DECONVOLUTION;
    value[TRIAL_X].shape = shape_of(size->n, size->c, size->in, scene->axes);
    value[TRIAL_Y].shape = shape_of(size->n, size->o, size->out, scene->axes);
    value[TRIAL_W].shape = shape_of(size->o, size->c / size->group, size->kernel, scene->axes);
    value[TRIAL_B].shape = (struct ls_shape){.rank = 1, .dim = {transposed ? size->c : size->o}};
    const enum ls_dtype type = scene->f32 ? LS_F32 : LS_BF16;
    value[TRIAL_X].type = value[TRIAL_Y].type = type;
    value[TRIAL_W].type = pass == TO_W ? LS_F32 : type;
    value[TRIAL_B].type = LS_F32;
    struct ls_value *result = pass == TO_Y ? &value[TRIAL_Y] : &value[TRIAL_X];
    if (pass != TO_W)
        result->type = scene->wide ? LS_F32 : LS_BF16;
    if (pass == TO_W) {
        bf16_trial_in(trial, transposed ? TRIAL_Y : TRIAL_X);
        bf16_trial_in(trial, transposed ? TRIAL_X : TRIAL_Y);
        bf16_trial_out(trial, TRIAL_W);
        if (scene->bias)
            bf16_trial_out(trial, TRIAL_B);
    } else {
        bf16_trial_in(trial, pass == TO_Y ? TRIAL_X : TRIAL_Y);
        bf16_trial_in(trial, TRIAL_W);
        if (forward && scene->bias)
            bf16_trial_in(trial, TRIAL_B);
        bf16_trial_out(trial, pass == TO_Y ? TRIAL_Y : TRIAL_X);
    }
}

/* Weights as the kernel asks for them: plain, or with the channels of x last. */
static void lay_out_weights(const struct bf16_trial *trial, const struct ls_layout *layout,
                            const float *from, float *to)
{
    static const char *const names[] = {"owi", "ohwi", "odhwi"};
    const struct scene *scene = trial->user;
    const int64_t taps = volume(scene->size.kernel);
    const int64_t channels = scene->size.c / scene->size.group;
    if (layout == &ls_layout_plain) {
        memcpy(to, from, (size_t)scene->w_count * sizeof *to);
        return;
    }
    assert_string_equal(layout->name, names[scene->axes - 1]);
    assert_int_equal(layout->elements, scene->w_count);
    for (int o = 0; o < scene->size.o; o++)
        for (int64_t tap = 0; tap < taps; tap++)
            for (int64_t c = 0; c < channels; c++)
                *to++ = from[(o * channels + c) * taps + tap];
}

static void try_pass(struct scene *scene, enum pass pass, bool transposed, const char *what)
{
    const struct convolution_size *size = &scene->size;
    struct bf16_trial trial = {.op = {.kind = kind_of(pass, transposed)},
                               .f32 = scene->f32,
                               .given = {[TRIAL_X] = pass != TO_X ? scene->x : NULL,
                                         [TRIAL_Y] = pass != TO_Y ? scene->y : NULL,
                                         [TRIAL_W] = pass != TO_W ? scene->w : NULL,
                                         [TRIAL_B] = pass != TO_W ? scene->b : NULL},
                               .expected = {scene->expected[0], scene->expected[1]},
                               .lay_out = lay_out_weights,
                               .user = scene,
                               .what = what};
    define(scene, pass, transposed);
    set_attributes(scene, &trial.op.attr.convolution);
    set_values(&trial, scene, pass, transposed);
    trial.terms = pass == TO_W ? size->n * larger(volume(size->in), volume(size->out))
                               : larger(size->c, size->o) / size->group * volume(size->kernel);
    bf16_trial_all(&trial);
}

static void try_type(const struct convolution_size *size, int axes, bool f32, uint64_t salt)
{
    char what[256];
    snprintf(what, sizeof what,
             "%s, %d axes, %d samples, %d -> %d in %d groups, %dx%dx%d, kernel %dx%dx%d, stride "
             "%d,%d,%d, pad %d,%d,%d, dilation %d,%d,%d, salt %d",
             f32 ? "fp32" : "bf16", axes, size->n, size->c, size->o, size->group, size->in[0],
             size->in[1], size->in[2], size->kernel[0], size->kernel[1], size->kernel[2],
             size->stride[0], size->stride[1], size->stride[2], size->pad[0], size->pad[1],
             size->pad[2], size->dilation[0], size->dilation[1], size->dilation[2], (int)salt);
    const uint64_t mode = ls_float_mode();
    ls_set_float_mode();
    struct scene *scene = make_scene(size, axes, f32, salt);
    for (int pass = TO_Y; pass <= TO_W; pass++)
        for (int transposed = 0; transposed < 2; transposed++)
            try_pass(scene, (enum pass)pass, transposed, what);
    free_scene(scene);
    ls_restore_float_mode(mode);
}

static void try_all(const struct convolution_size *size, int axes, uint64_t salt)
{
    try_type(size, axes, false, salt);
    try_type(size, axes, true, salt);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static int draw(uint64_t round, int *number, const int *from, size_t count)
{
    return from[ls_random_below(79, round, (uint64_t)(*number)++, (uint32_t)count)];
}
#define DRAW(...)                                                                                  \
    draw(round, &number, (const int[]){__VA_ARGS__},                                               \
         sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* False where there is no output. */
static bool random_size(uint64_t round, struct convolution_size *size, int *axes)
{
    int number = 0;
    *axes = DRAW(1, 2, 2, 2, 3);
    size->group = DRAW(1, 1, 1, 2, 3, 17);
    size->n = DRAW(1, 2, 3);
    size->c = size->group * (size->group > 9 ? DRAW(1, 2) : DRAW(1, 1, 3, 5, 8, 17));
    size->o = size->group * (size->group > 9 ? DRAW(1, 1, 2) : DRAW(1, 1, 2, 6, 9, 18));
    for (int a = 0; a < 3; a++) {
        const bool used = a >= 3 - *axes;
        size->in[a] = !used ? 1 : *axes == 3 ? DRAW(1, 2, 3, 5) : DRAW(1, 3, 6, 7, 11);
        size->kernel[a] = used ? DRAW(1, 1, 2, 3, 3, 5) : 1;
        size->stride[a] = used ? DRAW(1, 1, 1, 2, 3) : 1;
        size->pad[a] = used ? DRAW(0, 0, 1, 2, 4) : 0;
        size->dilation[a] = used ? DRAW(1, 1, 1, 2, 3) : 1;
    }
    return set_extents(size);
}

static void random_shapes_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    int done = 0;
    for (uint64_t round = 0; done < 120; round++) {
        struct convolution_size size;
        int axes;
        if (!random_size(round, &size, &axes))
            continue;
        try_all(&size, axes, round);
        done++;
    }
}

/* Windows of one weight in samples of more positions than are read at a time, more weights of a
 * window than lines are read at a time; rows longer than what is copied at a time, strides beyond
 * the kernel, padding beyond the picture, many samples of few positions; blocks of positions that
 * end with the samples, planes that are larger than what is copied at a time or have many rows;
 * channels in fours and not. */
static void named_shapes_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    static const struct convolution_size sizes[] = {
        {2, 3, 4, 1, {1, 3, 70}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
        {2, 3, 4, 1, {1, 4, 90}, {1, 3, 5}, {1, 2, 2}, {0, 1, 2}, {1, 1, 1}, {0}},
        {1, 2, 3, 1, {1, 2, 140}, {1, 1, 2}, {1, 1, 3}, {0, 0, 1}, {1, 1, 1}, {0}},
        {9, 20, 7, 1, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
        {3, 6, 40, 1, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {0}},
        {2, 6, 10, 2, {1, 8, 8}, {1, 2, 2}, {1, 4, 5}, {0, 0, 1}, {1, 1, 1}, {0}},
        {2, 4, 4, 1, {1, 2, 3}, {1, 2, 3}, {1, 1, 1}, {0, 5, 7}, {1, 3, 2}, {0}},
        {1, 4, 4, 4, {1, 2, 3}, {1, 2, 3}, {1, 2, 1}, {0, 5, 7}, {1, 3, 2}, {0}},
        {3, 33, 33, 33, {1, 9, 13}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
        {2, 16, 16, 16, {1, 9, 12}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, {0}},
        {1, 18, 18, 18, {1, 3, 77}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
        {2, 5, 5, 5, {3, 4, 5}, {2, 3, 2}, {2, 1, 2}, {1, 0, 1}, {1, 1, 2}, {0}},
        {1, 8, 130, 1, {1, 6, 10}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
        {1, 512, 40, 1, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {0}},
        {3, 5, 21, 1, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
        {2, 6, 40, 2, {1, 12, 12}, {1, 5, 5}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {0}},
        {2, 3, 17, 1, {1, 1, 64}, {1, 1, 5}, {1, 1, 1}, {0, 0, 4}, {1, 1, 2}, {0}},
        {2, 4, 5, 1, {4, 6, 8}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}},
        {2, 40, 24, 1, {1, 14, 15}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {0}},
        {2, 40, 33, 1, {1, 6, 7}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, {0}},
        {2, 7, 33, 1, {1, 16, 16}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {0}},
        {1, 16, 3, 1, {1, 64, 48}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
        {1, 12, 3, 1, {5, 24, 20}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}},
        {2, 24, 2, 1, {3, 40, 16}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}},
        {1, 3, 3, 1, {9, 24, 20}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}},
        {1, 2, 3, 1, {18, 20, 8}, {3, 1, 3}, {1, 1, 1}, {1, 0, 1}, {1, 1, 1}, {0}},
        {1, 8, 8, 1, {4, 28, 32}, {2, 3, 5}, {1, 1, 1}, {1, 1, 2}, {1, 1, 1}, {0}},
        {1, 8, 4, 1, {5, 28, 32}, {2, 3, 5}, {1, 1, 1}, {0, 1, 2}, {2, 1, 1}, {0}},
        {2, 20, 50, 1, {1, 12, 12}, {1, 5, 5}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {0}},
        {1, 16, 16, 1, {1, 16, 40}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
        {2, 22, 14, 2, {1, 8, 10}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t salt = 0; salt < 3; salt++) {
            struct convolution_size size = sizes[i];
            assert_true(set_extents(&size));
            try_all(&size, size.in[0] > 1 ? 3 : 2, 1000 + 3 * i + salt);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_shapes_have_the_bits_of_the_definition),
        cmocka_unit_test(random_shapes_have_the_bits_of_the_definition),
    };
    return cmocka_run_group_tests_name("ops_cpu_bf16_convolution", tests, NULL, NULL);
}
