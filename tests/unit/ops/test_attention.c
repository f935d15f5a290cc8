/* Attention on the reference device: its values against the formulas of struct ls_attention_attr,
 * with a softmax over all keys at once, and its gradients against finite differences; on the CPU:
 * what is no number comes through, and all instruction sets give the same bits.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"
#include "kernels/op_slopes.h"

#include "device/attention.h"
#include "ops/cpu/isa.h"

enum { ROUNDS = 300, DEPTH_MAX = 12 };
enum { Y, LOG_SUM };

static const float *row_of(const struct op_scene *scene, int which, int64_t n, int64_t head,
                           int64_t i)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const struct ls_attention_rows rows = ls_attention_rows_of(attr, which, n, head);
    return scene_given(scene, attr->fused ? 0 : which) + rows.at + i * rows.pitch;
}

/* Number d of a row that is turned by its position. */
static double turned(const struct op_scene *scene, int which, int64_t n, int64_t head, int64_t i,
                     int64_t d)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const struct ls_rotary_attr *rotary = &attr->rotary;
    const float *row = row_of(scene, which, n, head, i);
    const float *positions = scene_given(scene, LS_ATTENTION_POSITIONS);
    if (d >= rotary->dims)
        return (double)row[d];
    const int64_t pairs = rotary->dims / 2, place = rotary->neighbours ? d / 2 : d % pairs;
    const bool second = rotary->neighbours ? d % 2 == 1 : d >= pairs;
    const double a = (double)row[rotary->neighbours ? 2 * place : place];
    const double b = (double)row[rotary->neighbours ? 2 * place + 1 : place + pairs];
    const int64_t beside = which == LS_ATTENTION_Q ? i + attr->keys - attr->queries : i;
    const double position =
        positions != NULL ? (double)positions[n * attr->keys + i] : (double)beside;
    const double angle =
        position * pow((double)rotary->base, -2 * (double)place / (double)rotary->dims);
    return second ? b * cos(angle) + a * sin(angle) : a * cos(angle) - b * sin(angle);
}

/* Whether query i sees key j; *added: what is added to the score. */
static bool sees(const struct op_scene *scene, int64_t n, int64_t head, int64_t i, int64_t j,
                 double *added)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const int64_t keys = attr->keys, place = i + keys - attr->queries;
    const float *lengths = scene_given(scene, LS_ATTENTION_LENGTHS);
    const float *shown = scene_given(scene, LS_ATTENTION_KEY_MASK);
    const float *mask = scene_given(scene, LS_ATTENTION_MASK);
    const float *segments = scene_given(scene, LS_ATTENTION_SEGMENTS);
    *added = 0;
    if ((attr->causal && j > place) || (attr->window > 0 && llabs(place - j) >= attr->window))
        return false;
    if ((lengths != NULL && (float)j >= lengths[n]) || (shown != NULL && shown[n * keys + j] == 0))
        return false;
    if (segments != NULL && segments[n * keys + i] != segments[n * keys + j])
        return false;
    if (mask == NULL)
        return true;
    const struct ls_shape *shape = &scene->in[LS_ATTENTION_MASK]->shape;
    const int64_t heads = shape->rank == 4 ? shape->dim[1] : 1;
    const int64_t block = (shape->dim[0] > 1 ? n : 0) * heads + (heads > 1 ? head : 0);
    const float number = mask[(block * attr->queries + i) * keys + j];
    *added = attr->added ? (double)number : 0;
    return attr->added || number != 0;
}

static double score(const struct op_scene *scene, int64_t n, int64_t head, int64_t i, int64_t j)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const int64_t group = attr->heads / attr->kv_heads;
    double added, sum = 0;
    if (!sees(scene, n, head, i, j, &added))
        return -INFINITY;
    for (int64_t d = 0; d < attr->depth; d++)
        sum += turned(scene, LS_ATTENTION_Q, n, head, i, d) *
               turned(scene, LS_ATTENTION_K, n, head / group, j, d);
    return (double)attr->scale * sum + added;
}

/* One query against the op's outputs. */
static void check_query(const struct op_scene *scene, const struct op_result *result, int64_t n,
                        int64_t head, int64_t i)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const double keep = 1 - (double)attr->dropout.ratio;
    const int64_t group = attr->heads / attr->kv_heads;
    double sum = 0, y[70] = {0};
    for (int64_t j = 0; j < attr->keys; j++) {
        const double weight = exp(score(scene, n, head, i, j));
        const uint64_t element = (uint64_t)((head * attr->queries + i) * attr->keys + j);
        const double random =
            (double)ls_random_u32(attr->dropout.key, 1000 + scene->round + (uint64_t)n, element);
        sum += weight;
        for (int64_t d = 0; d < attr->value_depth && random >= (1 - keep) * 0x1p32; d++)
            y[d] += weight / keep * (double)row_of(scene, LS_ATTENTION_V, n, head / group, j)[d];
    }
    const int64_t row = (n * attr->queries + i) * attr->heads + head;
    for (int64_t d = 0; d < attr->value_depth; d++) {
        const double want = sum > 0 ? y[d] / sum : 0;
        const double got = (double)result->out[Y][row * attr->value_depth + d];
        if (!(fabs(got - want) <= 1e-4))
            fail_msg("round %d, head %d, query %d, number %d: %.7g, not %.7g", (int)scene->round,
                     (int)head, (int)i, (int)d, got, want);
    }
    const int64_t at = (n * attr->heads + head) * attr->queries + i;
    assert_true(fabs((double)result->out[LOG_SUM][at] - (sum > 0 ? log(sum) : 0)) <= 1e-4);
}

/* An op in fp32 whose rows of the batch are samples. */
static bool make_scene(struct op_scene *scene, uint64_t round)
{
    *scene = (struct op_scene){.round = round};
    scene->op.kind = LS_OP_ATTENTION;
    scene->usual = true;
    op_makers[LS_OP_ATTENTION](scene);
    return !scene->op.attr.attention.bf16;
}

static void values_are_those_of_the_formulas(void **state)
{
    (void)state;
    int64_t compared = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct op_scene scene;
        struct op_result result;
        const bool wanted = make_scene(&scene, round);
        const struct ls_attention_attr *attr = &scene.op.attr.attention;
        for (int device = 0; wanted && device < 2; device++) {
            scene_run(&scene, device == 0 ? reference_device() : ls_device_default(),
                      &ls_layout_plain, &result);
            for (int64_t n = 0; n < scene.in[0]->shape.dim[0]; n++)
                for (int64_t head = 0; head < attr->heads; head++)
                    for (int64_t i = 0; i < attr->queries; i += 1 + attr->queries / 5, compared++)
                        check_query(&scene, &result, n, head, i);
            result_free(&result);
        }
        scene_free(&scene);
    }
    assert_true(compared > 5000);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

static void make_backward(const struct op_scene *scene, const struct op_result *result,
                          const float *weights, struct op_scene *back)
{
    const int operands = scene->op.attr.attention.fused ? 1 : 3;
    *back = (struct op_scene){.round = scene->round};
    back->op.kind = LS_OP_ATTENTION_BACKWARD;
    back->op.attr = scene->op.attr;
    back->op.backward = true;
    scene_copy_in(back, scene->out[Y], weights);
    scene_copy_in(back, scene->out[Y], result->out[Y]);
    scene_copy_in(back, scene->out[LOG_SUM], result->out[LOG_SUM]);
    for (int k = 0; k < LS_ATTENTION_INPUTS; k++)
        scene_copy_in(back, scene->in[k], scene_given(scene, k));
    for (int k = 0; k < operands; k++)
        scene_out(back, scene->in[k]->shape);
}

static int64_t check_round(uint64_t round)
{
    struct op_scene scene, back;
    struct op_result result, gradients[2];
    int64_t compared = 0;
    if (make_scene(&scene, round) && scene.op.attr.attention.depth <= DEPTH_MAX) {
        struct op_slopes slopes;
        slopes_begin(&slopes, &scene, (const int[]){Y}, 1, 2e-3);
        scene_run(&scene, reference_device(), &ls_layout_plain, &result);
        make_backward(&scene, &result, slopes.weight[0], &back);
        scene_run(&back, reference_device(), &ls_layout_plain, &gradients[0]);
        scene_run(&back, ls_device_default(), &ls_layout_plain, &gradients[1]);
        for (int k = 0; k < back.op.outputs; k++) {
            compared += slopes_check(&slopes, k, gradients[0].out[k]);
            compared += slopes_check(&slopes, k, gradients[1].out[k]);
        }
        result_free(&result);
        result_free(&gradients[0]);
        result_free(&gradients[1]);
        scene_free(&back);
        slopes_end(&slopes);
    }
    scene_free(&scene);
    return compared;
}

static void gradients_are_slopes(void **state)
{
    (void)state;
    int64_t compared = 0;
    for (uint64_t round = 0; round < ROUNDS; round++)
        compared += check_round(round);
    assert_true(compared >= 3000);
}

/* ---- Caches ---------------------------------------------------------------------------------- */

/* Whether a scene is one of a text: tokens that see themselves and those in front. */
static bool is_text(const struct op_scene *scene)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    bool plain = attr->causal && attr->queries == attr->keys && attr->dropout.ratio == 0;
    for (int k = LS_ATTENTION_LENGTHS; k < LS_ATTENTION_INPUTS; k++)
        plain = plain && scene->in[k] == NULL;
    return plain;
}

/* Places [first, first + count) of each row of a value. */
static void put_places(struct op_scene *step, const struct op_scene *scene, int input,
                       int64_t first, int64_t count)
{
    const struct ls_value *from = scene->in[input];
    if (from == NULL) {
        scene_no_in(step);
        return;
    }
    const int64_t places = from->shape.dim[1], width = from->shape.dim[2];
    float *to = scene_in(step, shape_of(3, from->shape.dim[0], count, width, 0), 0, 1);
    for (int64_t n = 0; n < from->shape.dim[0]; n++)
        memcpy(to + n * count * width, scene->plain[from->index] + (n * places + first) * width,
               (size_t)(count * width) * sizeof *to);
}

/* A cache that has what is in front of place `first`, and NaNs behind. */
static void put_cache(struct op_scene *step, const struct op_scene *scene, int which, int64_t first)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const int64_t depth = which == LS_ATTENTION_K ? attr->depth : attr->value_depth;
    const int64_t width = attr->kv_heads * depth, cache = step->op.attr.attention.cache;
    const int64_t samples = scene->in[0]->shape.dim[0];
    float *to = scene_in(step, shape_of(3, samples, cache, width, 0), 0, 1);
    for (int64_t n = 0; n < samples; n++)
        for (int64_t i = 0; i < cache; i++)
            for (int64_t c = 0; c < width; c++)
                to[(n * cache + i) * width + c] =
                    i < first ? row_of(scene, which, n, 0, i)[c] : NAN;
}

static void check_places(const struct op_scene *scene, const struct op_result *whole,
                         const struct ls_device *device, int64_t first, int64_t count)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const int64_t samples = scene->in[0]->shape.dim[0], width = attr->heads * attr->value_depth;
    struct op_scene step = {.round = scene->round, .position = first};
    struct op_result result;
    step.op.kind = LS_OP_ATTENTION;
    step.op.attr = scene->op.attr;
    step.op.attr.attention.cache = step.op.attr.attention.keys = attr->keys + 3;
    step.op.attr.attention.queries = count;
    for (int k = LS_ATTENTION_Q; k <= LS_ATTENTION_V; k++)
        put_places(&step, scene, k, first, count);
    for (int k = LS_ATTENTION_LENGTHS; k < LS_ATTENTION_INPUTS; k++)
        scene_no_in(&step);
    put_cache(&step, scene, LS_ATTENTION_K, first);
    put_cache(&step, scene, LS_ATTENTION_V, first);
    scene_out(&step, shape_of(3, samples, count, width, 0));
    scene_run(&step, device, &ls_layout_plain, &result);
    for (int64_t n = 0; n < samples; n++)
        if (memcmp(result.out[Y] + n * count * width,
                   whole->out[Y] + (n * attr->queries + first) * width,
                   (size_t)(count * width) * sizeof *whole->out[Y]) != 0)
            fail_msg("round %d, %s: places from %d on differ", (int)scene->round, device->name,
                     (int)first);
    result_free(&result);
    scene_free(&step);
}

static void a_cache_changes_no_bit(void **state)
{
    (void)state;
    const struct ls_device *devices[] = {reference_device(), ls_device_default()};
    int compared = 0;
    for (uint64_t round = 0; compared < 300; round++) {
        struct op_scene scene = {.round = round};
        struct op_result whole;
        scene.op.kind = LS_OP_ATTENTION;
        scene.usual = true;
        op_makers[LS_OP_ATTENTION](&scene);
        const int64_t places = scene.op.attr.attention.queries;
        for (int d = 0; d < 2 && is_text(&scene); d++) {
            scene_run(&scene, devices[d], &ls_layout_plain, &whole);
            for (int64_t i = 0, count; i < places; i += count, compared++) {
                count = 1 + (i * 7 + (int64_t)round) % (places < 20 ? 5 : 90);
                count = count < places - i ? count : places - i;
                check_places(&scene, &whole, devices[d], i, count);
            }
            result_free(&whole);
        }
        scene_free(&scene);
    }
}

/* ---- The CPU --------------------------------------------------------------------------------- */

/* A row of q that holds a NaN: its query gives NaN, another one does not. */
static void a_nan_comes_through(void **state)
{
    (void)state;
    struct op_scene scene = {.round = 1};
    struct op_result result;
    scene.op.kind = LS_OP_ATTENTION;
    scene.op.attr.attention = (struct ls_attention_attr){.heads = 1,
                                                         .kv_heads = 1,
                                                         .queries = 3,
                                                         .keys = 3,
                                                         .depth = 4,
                                                         .value_depth = 4,
                                                         .causal = true,
                                                         .scale = 1};
    for (int k = 0; k < 3; k++)
        scene_in(&scene, shape_of(3, 1, 3, 4, 0), -1, 1)[1] = k == 0 ? NAN : 0.5F;
    for (int k = 3; k < LS_ATTENTION_INPUTS; k++)
        scene_no_in(&scene);
    scene_out(&scene, shape_of(3, 1, 3, 4, 0));
    scene_out(&scene, shape_of(3, 1, 1, 3, 0));
    scene_run(&scene, ls_device_default(), &ls_layout_plain, &result);
    for (int i = 0; i < 12; i++)
        assert_true(!isfinite(result.out[Y][i]) == (i < 4));
    result_free(&result);
    scene_free(&scene);
}

/* Outputs of one instruction set, one behind the other. */
static float *outputs_with(const char *isa, enum ls_op_kind kind, uint64_t round, size_t *count)
{
    struct op_scene scene = {.round = round};
    struct op_result result;
    float *all = ls_alloc(1 << 20, sizeof *all);
    *count = 0;
    scene.op.kind = kind;
    scene.usual = true;
    op_makers[kind](&scene);
    assert_int_equal(ls_cpu_isa_select(isa, NULL), 0);
    scene_run(&scene, ls_device_default(), &ls_layout_plain, &result);
    for (int k = 0; k < scene.op.outputs; k++)
        if (scene.out[k] != NULL) {
            const size_t n = (size_t)ls_shape_size(&scene.out[k]->shape);
            assert_true(*count + n <= 1 << 20);
            memcpy(all + *count, result.out[k], n * sizeof *all);
            *count += n;
        }
    result_free(&result);
    scene_free(&scene);
    return all;
}

static void instruction_sets_give_equal_bits(void **state)
{
    (void)state;
    static const enum ls_op_kind kinds[] = {LS_OP_ATTENTION, LS_OP_ATTENTION_BACKWARD};
    const char *widest = ls_cpu_isa_name(ls_cpu_isa_widest());
    for (int isa = 0; isa < LS_ISAS; isa++)
        for (uint64_t round = 0; round < 160; round++) {
            size_t count, other;
            const char *name = ls_cpu_isa_name((enum ls_isa)isa);
            if (!ls_cpu_isa_supported((enum ls_isa)isa))
                continue;
            float *want = outputs_with(widest, kinds[round % 2], round, &count);
            float *got = outputs_with(name, kinds[round % 2], round, &other);
            assert_int_equal(count, other);
            for (size_t i = 0; i < count; i++)
                if (memcmp(&want[i], &got[i], sizeof *got) != 0 && !isnan(want[i]))
                    fail_msg("round %d, element %zu: %a with %s, %a with %s", (int)round, i,
                             (double)got[i], name, (double)want[i], widest);
            ls_free(want);
            ls_free(got);
        }
}

/* The exponential of the definition is one. */
static void powers_are_near(void **state)
{
    (void)state;
    for (int i = -8700; i <= 100; i++) {
        const float x = (float)i * 0.01F + 0.003F;
        const double want = exp((double)x);
        if (x >= LS_ATTENTION_LEAST)
            assert_true(fabs((double)ls_attention_exp(x) - want) <= 1.2e-7 * want);
    }
    assert_true(ls_attention_exp(0) == 1 && ls_attention_exp(-INFINITY) == 0);
    assert_true(isnan(ls_attention_exp(NAN)) && ls_attention_exp(-90) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_formulas),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(a_cache_changes_no_bit),
        cmocka_unit_test(a_nan_comes_through),
        cmocka_unit_test(powers_are_near),
        cmocka_unit_test(instruction_sets_give_equal_bits),
    };
    reference_device()->enter_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
