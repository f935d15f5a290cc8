/* Products by cuBLASLt, on a fake of it: numbers beside the reference device's in each precision,
 * the choice of algorithms, bits in any order of work and at any address, and calls that fail.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "cuda/fake/fake.h"
#include "base/text.h"
#include "kernels/op_makers.h"
#include "ops/cuda/card.h"
#include "ops/cuda/cublaslt.h"
#include "ops/cuda/device.h"

enum { ROUNDS = 60, CARD_BYTES = 1 << 28 };

/* ---- Memory that is aligned to no more than is promised -------------------------------------- */

static void *create_shifted(size_t bytes)
{
    char *memory = ls_card_memory.create(bytes + LS_CUBLASLT_ALIGNMENT);
    return memory != NULL ? memory + LS_CUBLASLT_ALIGNMENT : NULL;
}

static void free_shifted(void *memory)
{
    ls_card_memory.free(memory != NULL ? (char *)memory - LS_CUBLASLT_ALIGNMENT : NULL);
}

static struct ls_device_memory shifted_memory;
static struct ls_device shifted;

static void shift_device(void)
{
    shifted_memory = ls_card_memory;
    shifted_memory.create = create_shifted;
    shifted_memory.free = free_shifted;
    shifted = ls_device_cuda;
    shifted.memory = &shifted_memory;
}

/* ---- Precisions ------------------------------------------------------------------------------ */

enum precision { FP32, TF32, BF16, BF16_TO_FP32, PRECISIONS };
static const char *const precisions[] = {"FP32", "TF32", "BF16", "BF16 to fp32"};
static const enum ls_op_kind kinds[] = {LS_OP_INNER_PRODUCT, LS_OP_INNER_PRODUCT_DATA,
                                        LS_OP_INNER_PRODUCT_WEIGHTS, LS_OP_MATMUL};
enum { KINDS = sizeof kinds / sizeof *kinds };

static float to_bf16(float x)
{
    uint16_t bits;
    ls_dtype_convert(LS_F32, &x, LS_BF16, &bits, 1);
    ls_dtype_convert(LS_BF16, &bits, LS_F32, &x, 1);
    return x;
}

/* The nearest with 10 bits of fraction. */
static float to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000U) & ~0x1fffU;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void make(struct op_scene *scene, enum ls_op_kind kind, int round)
{
    *scene = (struct op_scene){.round = (uint64_t)round};
    scene->op.kind = kind;
    op_makers[kind](scene);
    scene->op.input = scene->in;
    scene->op.output = scene->out;
    if (kind == LS_OP_INNER_PRODUCT && scene->op.attr.inner_product.relu && round % 2 == 0)
        scene->op.attr.inner_product.relu_slope = 0.25F;
    for (int i = 0; i < scene->values; i++)
        scene->value[i].layout = &ls_layout_plain;
}

/* Rounds what a product reads, as the precision has it. */
static void round_inputs(struct op_scene *scene, enum precision precision)
{
    for (int i = 0; i < 2 && precision != FP32; i++)
        for (int64_t j = 0; j < ls_shape_size(&scene->in[i]->shape); j++) {
            float *number = &scene->plain[scene->in[i]->index][j];
            *number = precision == TF32 ? to_tf32(*number) : to_bf16(*number);
        }
}

static void set_precision(struct op_scene *scene, enum precision precision)
{
    const bool bf16 = precision == BF16 || precision == BF16_TO_FP32;
    scene->op.tf32 = precision == TF32;
    scene->op.bf16 = bf16;
    for (int i = 0; i < 2; i++)
        scene->in[i]->type = bf16 ? LS_BF16 : LS_F32;
    /* Gradients of weights are fp32. */
    scene->out[0]->type =
        precision == BF16 && scene->op.kind != LS_OP_INNER_PRODUCT_WEIGHTS ? LS_BF16 : LS_F32;
}

static bool is_by_cublaslt(const struct op_scene *scene)
{
    const struct ls_kernel *kernel = ls_kernel_find(ls_device_cuda.kernels(), &scene->op);
    return kernel != NULL && kernel->library;
}

/* Where a result may be: rounded once more in bf16. */
static bool is_near(const struct ls_value *value, float got, float want, double largest)
{
    const double step = value->type == LS_BF16 ? 0x1p-8 * fabs((double)want) : 0;
    return fabs((double)got - (double)want) <= step + 2e-6 * (1 + largest);
}

static void compare(const struct op_scene *scene, enum precision precision,
                    const struct op_result *got, const struct op_result *want)
{
    for (int k = 0; k < scene->op.outputs; k++) {
        const int64_t n = scene->out[k] != NULL ? ls_shape_size(&scene->out[k]->shape) : 0;
        double largest = 0;
        for (int64_t i = 0; i < n; i++)
            largest = fmax(largest, fabs((double)want->out[k][i]));
        for (int64_t i = 0; i < n; i++)
            if (!is_near(scene->out[k], got->out[k][i], want->out[k][i], largest))
                fail_msg("%s in %s, round %d, output %d: element %lld is %.9g, not %.9g",
                         ls_op_kind_name(scene->op.kind), precisions[precision], (int)scene->round,
                         k, (long long)i, (double)got->out[k][i], (double)want->out[k][i]);
    }
}

/* Returns whether the op is cuBLASLt's. */
static bool check_round(enum ls_op_kind kind, enum precision precision, int round)
{
    struct op_scene scene;
    struct op_result got, want;
    make(&scene, kind, round);
    set_precision(&scene, precision);
    const bool there = is_by_cublaslt(&scene);
    if (there) {
        round_inputs(&scene, precision); /* the fake does no more to them */
        set_precision(&scene, FP32);
        scene_run(&scene, reference_device(), &ls_layout_plain, &want);
        set_precision(&scene, precision);
        fake_begin(1, CARD_BYTES, (uint64_t)round);
        scene_run(&scene, &shifted, &ls_layout_plain, &got);
        compare(&scene, precision, &got, &want);
        assert_true(fake_calls("cublasLtMatmul") == 1);
        ls_card_end_thread();
        fake_end();
        result_free(&got);
        result_free(&want);
    }
    scene_free(&scene);
    return there;
}

static void products_are_right_in_each_precision(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++)
        for (int p = 0; p < PRECISIONS; p++) {
            int there = 0;
            for (int round = 0; round < ROUNDS; round++)
                there += check_round(kinds[k], (enum precision)p, round);
            /* In fp32 a matrix product has a declared order, and is not the library's. */
            const bool declared = kinds[k] == LS_OP_MATMUL && p == FP32;
            assert_true(declared ? there == 0 : there > ROUNDS / 3);
        }
}

/* TF32 rounds what FP32 does not. */
static void tf32_is_no_fp32(void **state)
{
    (void)state;
    struct op_scene scene;
    struct op_result fp32, tf32;
    make(&scene, LS_OP_INNER_PRODUCT_DATA, 3);
    fake_begin(1, CARD_BYTES, 1);
    scene_run(&scene, &ls_device_cuda, &ls_layout_plain, &fp32);
    set_precision(&scene, TF32);
    scene_run(&scene, &ls_device_cuda, &ls_layout_plain, &tf32);
    const size_t bytes = (size_t)ls_shape_size(&scene.out[0]->shape) * sizeof(float);
    assert_memory_not_equal(fp32.out[0], tf32.out[0], bytes);
    ls_card_end_thread();
    fake_end();
    result_free(&fp32);
    result_free(&tf32);
    scene_free(&scene);
}

/* ---- One product, step by step --------------------------------------------------------------- */

enum { M = 6, MOST = 64 * 64 };

struct one {
    struct ls_value x, w, b, y;
    struct ls_value *in[3], *out[1];
    struct ls_op op;
    struct ls_graph graph;
    struct ls_layer layer;
};

/* y = x w^T + b, [6, n] of [6, k], of a layer 'ip'. */
static void make_one(struct one *one, int64_t n, int64_t k)
{
    *one = (struct one){.x = {.shape = {2, {M, k}}},
                        .w = {.shape = {2, {n, k}}},
                        .b = {.shape = {1, {n}}},
                        .y = {.shape = {2, {M, n}}},
                        .layer = {.name = "ip"}};
    one->in[0] = &one->x;
    one->in[1] = &one->w;
    one->in[2] = &one->b;
    one->out[0] = &one->y;
    for (int i = 0; i < 3; i++)
        one->in[i]->layout = &ls_layout_plain;
    one->y.layout = &ls_layout_plain;
    one->layer.graph = &one->graph;
    one->op = (struct ls_op){.kind = LS_OP_INNER_PRODUCT,
                             .layer = &one->layer,
                             .inputs = 3,
                             .outputs = 1,
                             .input = one->in,
                             .output = one->out};
    one->op.attr.inner_product =
        (struct ls_inner_product_attr){.m = M, .n = n, .k = k, .bias = true};
}

static int prepare_one(struct one *one, struct ls_prepared *prepared, struct ls_error *error)
{
    *prepared = (struct ls_prepared){.op = &one->op,
                                     .kernel = ls_kernel_find(ls_device_cuda.kernels(), &one->op)};
    return prepared->kernel->prepare(prepared, error);
}

/* By name, where the library has what for whom. */
static void algorithms_are_chosen_by_a_static_rule(void **state)
{
    (void)state;
    static const struct {
        int64_t n, k;
        bool tf32, bf16, portable;
        const char *name;
    } cases[] = {
        {64, 32, false, false, false, "cublaslt:21:16:4"}, /* splits and too much room stay out */
        {64, 32, true, false, false, "cublaslt:tf32:21:16:4"},
        {64, 32, false, true, false, "cublaslt:bf16:21:16:4"},
        {63, 32, false, false, false, "cublaslt:20:1:0"}, /* odd sizes */
        {64, 32, false, false, true, "lockstep:cuda"},
        {64, 32, false, true, true, "lockstep:cuda"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one one;
        struct ls_prepared prepared;
        struct ls_error error = {0};
        make_one(&one, cases[i].n, cases[i].k);
        one.op.tf32 = cases[i].tf32;
        one.op.bf16 = cases[i].bf16;
        one.op.attr.inner_product.portable = cases[i].portable;
        fake_begin(1, CARD_BYTES, i);
        check_status(prepare_one(&one, &prepared, &error), &error);
        assert_string_equal(prepared.implementation, cases[i].name);
        assert_true(prepared.scratch_bytes < LS_CUBLASLT_WORKSPACE);
        prepared.kernel->release(&prepared);
        ls_card_end_thread();
        fake_end();
    }
}

static void *release(void *prepared)
{
    const struct ls_prepared *of = prepared;
    of->kernel->release(prepared);
    return NULL;
}

/* The end of a handle waits for all work of the card, which nothing may while a thread records. */
static void a_handle_ends_when_nothing_is_recorded(void **state)
{
    (void)state;
    struct one one;
    struct ls_prepared prepared;
    struct ls_stream *stream = NULL;
    pthread_t thread;
    make_one(&one, 64, 64);
    fake_begin(1, CARD_BYTES, 1);
    assert_int_equal(prepare_one(&one, &prepared, NULL), 0);
    assert_string_not_equal(prepared.implementation, "lockstep:cuda");
    assert_int_equal(ls_card_streams.create(&stream, NULL), 0);
    assert_int_equal(ls_card_recordings.begin(stream, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, release, &prepared), 0);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(fake_calls("cublasLtDestroy"), 0);
    assert_int_equal(ls_card_recordings.end(stream, NULL, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(fake_calls("cublasLtDestroy"), 1);
    ls_card_streams.free(stream);
    ls_card_end_thread();
    fake_end();
}

/* Weights in BF16 are views that are asked for. */
static void weights_in_bf16_come_as_views(void **state)
{
    (void)state;
    struct one one;
    struct ls_op_layouts layouts = {.in_type = {LS_F32, LS_F32, LS_F32}};
    make_one(&one, 8, 8);
    one.op.bf16 = true;
    const struct ls_kernel *kernel = ls_kernel_find(ls_device_cuda.kernels(), &one.op);
    assert_true(kernel->takes_bf16(&one.op));
    assert_int_equal(kernel->layouts(&one.op, &layouts, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(layouts.in[i], &ls_layout_plain);
        assert_int_equal(layouts.in_type[i], i < 2 ? LS_BF16 : LS_F32); /* a bias is not rounded */
    }
}

/* What the library would compute otherwise than a definition says is not given to it. */
static void what_has_a_declared_order_is_not_the_librarys(void **state)
{
    (void)state;
    int taken = 0, sums = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_scene scene;
        make(&scene, LS_OP_MATMUL, round);
        scene.layer.graph = &scene.graph;
        scene.op.layer = &scene.layer;
        scene.op.attr.matmul.scale = 1;
        set_precision(&scene, BF16);
        if (is_by_cublaslt(&scene)) {
            scene.layer.portable = true; /* as the solver says of all layers */
            assert_false(is_by_cublaslt(&scene));
            scene.layer.portable = false;
            scene.op.attr.matmul.scale = 0; /* it would not read the matrices, nor a NaN there */
            assert_false(is_by_cublaslt(&scene));
            taken++;
        } else {
            sums++; /* over axes in front of the matrices, or repeated along some of them */
        }
        scene_free(&scene);
    }
    assert_true(taken > ROUNDS / 3);
    assert_true(sums > 0);
}

/* ---- Bits ------------------------------------------------------------------------------------ */

static float x[MOST], w[MOST], b[MOST], y[MOST], first_y[MOST];

static void draw_all(void)
{
    for (int i = 0; i < MOST; i++) {
        x[i] = ls_random_uniform(5, 1, (uint64_t)i) - 0.5F;
        w[i] = ls_random_uniform(5, 2, (uint64_t)i) - 0.5F;
        b[i] = ls_random_uniform(5, 3, (uint64_t)i) - 0.5F;
    }
}

static size_t bytes_of(const struct ls_value *value)
{
    return (size_t)ls_shape_size(&value->shape) * sizeof(float);
}

/* The op's arrays, on the card. */
struct arrays {
    void *in[3], *out[1], *scratch;
};

static int give_arrays(const struct one *one, size_t scratch, struct arrays *arrays,
                       struct ls_error *error)
{
    const float *const numbers[] = {x, w, b};
    int status = 0;
    *arrays = (struct arrays){.out = {create_shifted(bytes_of(&one->y))},
                              .scratch = create_shifted(scratch)};
    for (int i = 0; i < 3; i++) {
        arrays->in[i] = create_shifted(bytes_of(one->in[i]));
        if (arrays->in[i] == NULL)
            return ls_fail_memory(error, "card 0");
        if (status == 0)
            status =
                ls_card_memory.write(NULL, arrays->in[i], numbers[i], bytes_of(one->in[i]), error);
    }
    return arrays->out[0] != NULL && arrays->scratch != NULL ? status
                                                             : ls_fail_memory(error, "card 0");
}

static void take_arrays(struct arrays *arrays)
{
    for (int i = 0; i < 3; i++)
        free_shifted(arrays->in[i]);
    free_shifted(arrays->out[0]);
    free_shifted(arrays->scratch);
}

/* Records the product and replays it, or gives it, to a stream; y is read at the end. */
static int run_prepared(const struct one *one, const struct ls_prepared *prepared,
                        struct arrays *arrays, bool recorded, struct ls_error *error)
{
    struct ls_stream *stream = NULL;
    struct ls_recording *recording = NULL;
    struct ls_context context = {.samples = 1, .error = error};
    LS_TRY(ls_card_streams.create(&stream, error));
    context.stream = stream;
    int status = recorded ? ls_card_recordings.begin(stream, error) : 0;
    if (status == 0)
        status = prepared->kernel->run(prepared, NULL, arrays->in, arrays->out, arrays->scratch,
                                       &context);
    if (recorded) {
        const int ended = ls_card_recordings.end(stream, status == 0 ? &recording : NULL, error);
        status = status != 0 ? status : ended;
        for (int i = 0; i < 2 && status == 0; i++)
            status = ls_card_recordings.play(recording, stream, error);
    }
    if (status == 0)
        status = ls_card_streams.wait(stream, error);
    ls_card_recordings.free(recording);
    ls_card_streams.free(stream);
    if (status == 0)
        status = ls_card_memory.read(NULL, y, arrays->out[0], bytes_of(&one->y), error);
    return status;
}

static int run_one(struct one *one, bool recorded, struct ls_error *error)
{
    struct ls_prepared prepared;
    struct arrays arrays;
    int status = prepare_one(one, &prepared, error);
    if (status != 0)
        return status;
    status = give_arrays(one, prepared.scratch_bytes + 1, &arrays, error);
    if (status == 0)
        status = run_prepared(one, &prepared, &arrays, recorded, error);
    take_arrays(&arrays);
    prepared.kernel->release(&prepared);
    return status;
}

static void bits_depend_on_the_product_alone(void **state)
{
    (void)state;
    struct one one;
    draw_all();
    make_one(&one, 64, 60);
    for (int seed = 0; seed < 20; seed++) {
        struct ls_error error = {0};
        fake_begin(1, CARD_BYTES, (uint64_t)seed);
        check_status(run_one(&one, seed % 2 == 1, &error), &error);
        if (seed == 0)
            memcpy(first_y, y, sizeof y);
        if (memcmp(first_y, y, bytes_of(&one.y)) != 0)
            fail_msg("order %d of the work: the product has other bits", seed);
        ls_card_end_thread();
        fake_end();
    }
}

/* ---- Failures -------------------------------------------------------------------------------- */

static const char *const calls[] = {"cublasLtCreate",
                                    "cublasLtMatrixLayoutInit",
                                    "cublasLtMatmulDescInit",
                                    "cublasLtMatmulDescSetAttribute",
                                    "cublasLtMatmulPreferenceInit",
                                    "cublasLtMatmulPreferenceSetAttribute",
                                    "cublasLtMatmulAlgoGetHeuristic",
                                    "cublasLtMatmulAlgoConfigGetAttribute",
                                    "cublasLtMatmul",
                                    "cudaMalloc",
                                    "a launch"};

/* Of each call, each one: the message names card and layer, and nothing is left. */
static void every_failing_call_is_told(void **state)
{
    (void)state;
    struct one one;
    draw_all();
    make_one(&one, 64, 60);
    one.op.attr.inner_product.relu = true;
    one.op.attr.inner_product.relu_slope = 0.5F; /* a kernel of ours behind the product */
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (long after = 0;; after++) {
            struct ls_error error = {0};
            char text[600];
            fake_begin(1, CARD_BYTES, (uint64_t)after);
            fake_fail(calls[c], after);
            const int status = run_one(&one, false, &error);
            const bool failed = fake_has_failed();
            ls_error_format(&error, text, sizeof text);
            if (failed != (status != 0))
                fail_msg("%s, after %ld: %s", calls[c], after,
                         failed ? "it failed, and nothing tells it" : text);
            if (failed && (strstr(text, "card 0") == NULL ||
                           (strcmp(calls[c], "cudaMalloc") != 0 && strstr(text, "'ip'") == NULL)))
                fail_msg("%s, after %ld: '%s' names no card, or no layer", calls[c], after, text);
            ls_card_end_thread();
            fake_end();
            if (!failed) {
                assert_true(after > 0);
                break;
            }
        }
}

/* Products share their card's handle: it is there as long as one of them is. */
static void a_card_has_one_handle(void **state)
{
    (void)state;
    struct one one;
    struct ls_prepared first, second;
    struct ls_error error = {0};
    make_one(&one, 8, 8);
    fake_begin(2, CARD_BYTES, 1);
    check_status(prepare_one(&one, &first, &error), &error);
    check_status(prepare_one(&one, &second, &error), &error);
    assert_int_equal(fake_calls("cublasLtCreate"), 1);
    first.kernel->release(&first);
    assert_int_equal(fake_calls("cublasLtDestroy"), 0);
    second.kernel->release(&second);
    second.kernel->release(&second); /* as after a failure */
    assert_int_equal(fake_calls("cublasLtDestroy"), 1);
    ls_card_end_thread();
    fake_end();
}

/* A snapshot names the library's version, and variables that it follows. */
static void the_environment_names_the_library(void **state)
{
    (void)state;
    struct ls_text text = {0};
    char version[60];
    snprintf(version, sizeof version, "\ncublaslt=%d\n", (int)CUBLAS_VERSION);
    setenv("NVIDIA_TF32_OVERRIDE", "0\nforged=1", 1);
    ls_device_cuda.environment->describe(&text);
    unsetenv("NVIDIA_TF32_OVERRIDE");
    assert_non_null(strstr(text.data, version));
    assert_non_null(strstr(text.data, "\nNVIDIA_TF32_OVERRIDE=0\n"));
    assert_null(strstr(text.data, "forged"));
    ls_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right_in_each_precision),
        cmocka_unit_test(tf32_is_no_fp32),
        cmocka_unit_test(algorithms_are_chosen_by_a_static_rule),
        cmocka_unit_test(a_handle_ends_when_nothing_is_recorded),
        cmocka_unit_test(weights_in_bf16_come_as_views),
        cmocka_unit_test(what_has_a_declared_order_is_not_the_librarys),
        cmocka_unit_test(bits_depend_on_the_product_alone),
        cmocka_unit_test(every_failing_call_is_told),
        cmocka_unit_test(a_card_has_one_handle),
        cmocka_unit_test(the_environment_names_the_library),
    };
    reference_device()->enter_thread();
    shift_device();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
