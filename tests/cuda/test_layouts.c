/* Layouts and types on a card: reorders of values and views of parameters have the bits of
 * ir/convert.h where channels-last puts them; exact sums and masks of parameters in channels-last
 * are those of the same parameters in Caffe's order.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "cuda/fake/fake.h"
#include "device/plain.h"
#include "ir/convert.h"
#include "kernels/reference.h"
#include "ops/cuda/accumulator.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"

enum { CARD_BYTES = 1 << 26 };

/* Few and many channels and points: what is copied, what is transposed element by element, and by
 * tiles that are full or not. */
static const struct ls_shape shapes[] = {
    {1, {13}},          {2, {6, 20}},        {3, {4, 3, 50}},        {4, {2, 1, 5, 7}},
    {4, {2, 64, 4, 8}}, {4, {3, 35, 5, 13}}, {5, {1, 40, 3, 3, 3}},  {4, {2, 3, 40, 2}},
    {4, {5, 48, 1, 1}}, {3, {2, 100, 12}},   {5, {2, 12, 1, 2, 40}}, {4, {0, 16, 4, 4}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const struct ls_layout *const layouts[] = {&ls_layout_plain, &ls_layout_channels_last};

static struct ls_stream *stream;

static void begin(uint64_t seed)
{
    fake_begin(1, CARD_BYTES, seed);
    assert_int_equal(ls_card_streams.create(&stream, NULL), 0);
}

static void end(void)
{
    ls_card_streams.free(stream);
    ls_card_end_thread();
    fake_end();
}

static void *on_card(const void *numbers, size_t bytes)
{
    void *there = ls_card_memory.create(bytes);
    assert_non_null(there);
    assert_int_equal(ls_card_memory.write(NULL, there, numbers, bytes, NULL), 0);
    return there;
}

static void *here(size_t bytes)
{
    void *memory = ls_alloc(bytes + 8, 1);
    assert_non_null(memory);
    return memory;
}

static void draw_bytes(unsigned char *bytes, size_t n, uint64_t salt)
{
    for (size_t i = 0; i < n; i++) /* some that make infinities, zeros and denormal numbers */
        bytes[i] = (unsigned char)(ls_random_u32(salt, 1, i / 8) % 5 == 0
                                       ? (ls_random_u32(salt, 2, i) % 2 == 0 ? 0 : 0x7f)
                                       : ls_random_u32(salt, 3, i));
}

/* What lies in `from` and is of one type, in `to` and of the other. */
static void convert(const struct ls_shape *shape, const struct ls_layout *from_layout,
                    enum ls_dtype from, const unsigned char *in, const struct ls_layout *to_layout,
                    enum ls_dtype to, unsigned char *out)
{
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        ls_dtype_convert(from, in + place_in_layout(from_layout, shape, i) * ls_dtype_size(from),
                         to, out + place_in_layout(to_layout, shape, i) * ls_dtype_size(to), 1);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void run_reorder(const struct ls_value *from, const struct ls_value *to, void *in, void *out)
{
    struct ls_value in_value = *from, out_value = *to;
    struct ls_value *inputs[] = {&in_value}, *outputs[] = {&out_value};
    struct ls_op op = {.kind = LS_OP_REORDER, .inputs = 1, .outputs = 1};
    struct ls_prepared prepared = {.op = &op};
    struct ls_context context = {.samples = 1, .stream = stream};
    struct ls_error error = {0};
    op.input = inputs;
    op.output = outputs;
    prepared.kernel = ls_kernel_find(ls_device_cuda.kernels(), &op);
    assert_non_null(prepared.kernel);
    assert_true(prepared.kernel->takes_bf16(&op));
    check_status(prepared.kernel->prepare(&prepared, &error), &error);
    assert_int_equal(prepared.kernel->run(&prepared, NULL, &in, &out, NULL, &context), 0);
    assert_int_equal(ls_card_streams.wait(stream, NULL), 0);
    prepared.kernel->release(&prepared);
}

/* Room on the card for any of the values. */
enum { SIDE_BYTES = 1 << 16 };
static void *sides[2];

static void check_reorder(const struct ls_value *from, const struct ls_value *to)
{
    const size_t in_bytes = ls_value_bytes(from), out_bytes = ls_value_bytes(to);
    assert_true(in_bytes <= SIDE_BYTES && out_bytes <= SIDE_BYTES);
    unsigned char *in = here(in_bytes), *want = here(out_bytes), *got = here(out_bytes);
    draw_bytes(in, in_bytes, 5);
    convert(&from->shape, from->layout, from->type, in, to->layout, to->type, want);
    assert_int_equal(ls_card_memory.write(NULL, sides[0], in, in_bytes, NULL), 0);
    run_reorder(from, to, sides[0], sides[1]);
    assert_int_equal(ls_card_memory.read(NULL, got, sides[1], out_bytes, NULL), 0);
    if (memcmp(got, want, out_bytes) != 0)
        fail_msg("%s %s of %d axes to %s %s: other bits", from->layout->name,
                 ls_dtype_name(from->type), from->shape.rank, to->layout->name,
                 ls_dtype_name(to->type));
    ls_free(in);
    ls_free(want);
    ls_free(got);
}

static void values_are_reordered_and_converted(void **state)
{
    (void)state;
    begin(1);
    for (int side = 0; side < 2; side++)
        sides[side] = ls_card_memory.create(SIDE_BYTES);
    for (int from = 0; from < LS_DTYPES; from++)
        for (int to = 0; to < LS_DTYPES; to++)
            for (int k = 0; k < SHAPES * 4; k++) {
                const struct ls_shape *shape = &shapes[k / 4];
                const struct ls_value in = {
                    .shape = *shape, .type = (enum ls_dtype)from, .layout = layouts[k % 2]};
                const struct ls_value out = {
                    .shape = *shape, .type = (enum ls_dtype)to, .layout = layouts[k / 2 % 2]};
                if (ls_dtype_converts(in.type, out.type))
                    check_reorder(&in, &out);
            }
    for (int side = 0; side < 2; side++)
        ls_card_memory.free(sides[side]);
    end();
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static void draw_floats(float *numbers, int64_t n, uint64_t salt)
{
    for (int64_t i = 0; i < n; i++)
        numbers[i] = 2 * ls_random_uniform(salt, 7, (uint64_t)i) - 1;
}

static void check_parameter(const struct ls_shape *shape)
{
    const size_t bytes = (size_t)ls_shape_size(shape) * sizeof(float);
    float *plain = here(bytes), *want = here(bytes), *got = here(bytes);
    float *laid_out = ls_card_memory.create(bytes);
    draw_floats(plain, ls_shape_size(shape), 3);
    convert(shape, &ls_layout_plain, LS_F32, (unsigned char *)plain, &ls_layout_channels_last,
            LS_F32, (unsigned char *)want);
    assert_int_equal(
        ls_device_cuda.parameter_from_plain(&ls_layout_channels_last, shape, plain, laid_out, NULL),
        0);
    assert_int_equal(ls_card_memory.read(NULL, got, laid_out, bytes, NULL), 0);
    assert_memory_equal(got, want, bytes);
    assert_int_equal(
        ls_device_cuda.parameter_to_plain(&ls_layout_channels_last, shape, laid_out, got, NULL), 0);
    assert_memory_equal(got, plain, bytes);
    ls_card_memory.free(laid_out);
    ls_free(plain);
    ls_free(want);
    ls_free(got);
}

/* A view that is brought up to date twice. */
static void check_view(const struct ls_shape *shape, const struct ls_layout *from,
                       const struct ls_layout *to, enum ls_dtype type)
{
    const size_t n = (size_t)ls_shape_size(shape), bytes = n * ls_dtype_size(type);
    float *source = here(n * sizeof *source);
    unsigned char *want = here(bytes), *got = here(bytes);
    float *there = ls_card_memory.create(n * sizeof *there);
    void *target = ls_card_memory.create(bytes);
    struct ls_converter *converter;
    assert_int_equal(ls_device_cuda.converter_new(from, to, shape, type, &converter, NULL), 0);
    for (uint64_t update = 0; update < 2; update++) {
        draw_floats(source, (int64_t)n, update);
        convert(shape, from, LS_F32, (unsigned char *)source, to, type, want);
        assert_int_equal(ls_card_memory.write(NULL, there, source, n * sizeof *source, NULL), 0);
        assert_int_equal(ls_device_cuda.converter_run(converter, there, target, NULL), 0);
        assert_int_equal(ls_card_memory.read(NULL, got, target, bytes, NULL), 0);
        assert_memory_equal(got, want, bytes);
    }
    ls_device_cuda.converter_free(converter);
    ls_card_memory.free(there);
    ls_card_memory.free(target);
    ls_free(source);
    ls_free(want);
    ls_free(got);
}

static void parameters_lie_in_both_layouts(void **state)
{
    (void)state;
    begin(2);
    for (int s = 0; s < SHAPES; s++) {
        check_parameter(&shapes[s]);
        for (int k = 0; k < 8; k++)
            check_view(&shapes[s], layouts[k % 2], layouts[k / 2 % 2],
                       k / 4 == 0 ? LS_F32 : LS_BF16);
    }
    end();
}

static void other_layouts_are_refused(void **state)
{
    struct ls_converter *converter;
    struct ls_error error = {0};
    (void)state;
    assert_int_equal(ls_device_cuda.converter_new(&ls_layout_plain, &ls_layout_blocked16,
                                                  &shapes[4], LS_F32, &converter, &error),
                     LOCKSTEP_INTERNAL);
    assert_null(converter);
    assert_string_equal(error.problems[0].message,
                        "a card converts no weights from plain F32 to nChw16c F32");
    ls_error_clear(&error);
}

/* ---- Exact sums and masks -------------------------------------------------------------------- */

enum { CHANNELS = 20, OF_CHANNEL = 6 * 9, ELEMENTS = CHANNELS * OF_CHANNEL, MICRO_BATCHES = 3 };
static const struct ls_shape weights = {4, {CHANNELS, 6, 3, 3}};
static const struct ls_shape as_matrix = {2, {CHANNELS, OF_CHANNEL}};

static float gradient[MICRO_BATCHES][ELEMENTS];

/* What is known of the rows, and the sums in Caffe's order. */
struct sums {
    float sum[ELEMENTS];
    uint32_t largest[CHANNELS];
};

static void draw_gradients(void)
{
    for (int m = 0; m < MICRO_BATCHES; m++)
        for (int i = 0; i < ELEMENTS; i++) /* other magnitudes in each channel */
            gradient[m][i] = (2 * ls_random_uniform(9, (uint64_t)m, (uint64_t)i) - 1) *
                             (float)(1 << i / OF_CHANNEL % 10);
}

static void draw_rows(float row[ELEMENTS], int32_t exponent[CHANNELS])
{
    for (int i = 0; i < ELEMENTS; i++)
        row[i] = (float)(i / OF_CHANNEL + 1);
    for (int c = 0; c < CHANNELS; c++)
        exponent[c] = 8 + c;
}

static void sum_plain(struct sums *sums)
{
    const size_t elements = ELEMENTS;
    struct ls_accumulator *accumulator;
    struct ls_accumulated part;
    float row[ELEMENTS];
    int32_t exponent[CHANNELS];
    draw_rows(row, exponent);
    assert_int_equal(ls_plain_accumulator.create(&elements, NULL, 1, 1, &accumulator, NULL), 0);
    assert_int_equal(ls_plain_accumulator.cut(accumulator, 0, CHANNELS, row, NULL), 0);
    ls_plain_accumulator.part(accumulator, 0, &part);
    memcpy(part.exponent, exponent, sizeof exponent);
    assert_int_equal(ls_plain_accumulator.begin(accumulator, false, NULL), 0);
    for (int m = 0; m < MICRO_BATCHES; m++)
        ls_plain_accumulate(accumulator, m, 0, gradient[m]);
    assert_int_equal(ls_plain_accumulator.read(accumulator, 0, 0, ELEMENTS, sums->sum, NULL), 0);
    memcpy(sums->largest, part.largest, sizeof sums->largest);
    ls_plain_accumulator.free(accumulator);
}

/* Adds a gradient, which is in Caffe's order, as the plan has it done: laid out as the kernel asks,
 * unless its axes are others. */
static void accumulate(struct ls_accumulator *accumulator, struct ls_parameter *parameter,
                       const struct ls_shape *shape, int micro_batch)
{
    struct ls_value value = {.shape = *shape, .layout = &ls_layout_plain};
    struct ls_value *inputs[] = {&value};
    struct ls_op op = {.kind = LS_OP_ACCUMULATE, .inputs = 1, .input = inputs};
    struct ls_prepared prepared = {.op = &op};
    struct ls_batch_numbers numbers = {.micro_batch = micro_batch};
    struct ls_context context = {.accumulator = accumulator, .stream = stream};
    struct ls_error error = {0};
    op.attr.parameter = parameter;
    prepared.kernel = ls_kernel_find(ls_device_cuda.kernels(), &op);
    assert_non_null(prepared.kernel);
    settle_layouts(prepared.kernel, &op, &ls_layout_plain);
    const bool lies = ls_shape_equal(shape, &parameter->shape);
    assert_ptr_equal(value.layout, lies ? &ls_layout_channels_last : &ls_layout_plain);
    check_status(prepared.kernel->prepare(&prepared, &error), &error);
    float laid_out[ELEMENTS];
    convert(shape, &ls_layout_plain, LS_F32, (unsigned char *)gradient[micro_batch], value.layout,
            LS_F32, (unsigned char *)laid_out);
    void *in = on_card(laid_out, sizeof laid_out);
    void *scratch = ls_card_memory.create(prepared.scratch_bytes);
    struct ls_batch_numbers *there = on_card(&numbers, sizeof numbers);
    context.numbers = there;
    assert_int_equal(prepared.kernel->run(&prepared, NULL, &in, NULL, scratch, &context), 0);
    assert_int_equal(ls_card_streams.wait(stream, NULL), 0);
    prepared.kernel->release(&prepared);
    ls_card_memory.free(in);
    ls_card_memory.free(scratch);
    ls_card_memory.free(there);
}

static void sum_last(struct sums *sums, struct ls_parameter *parameter,
                     const struct ls_shape *shape)
{
    const size_t elements = ELEMENTS;
    struct ls_accumulator *accumulator;
    struct ls_accumulated part;
    float row[ELEMENTS];
    int32_t exponent[CHANNELS];
    float *there = ls_card_memory.create(sizeof row);
    draw_rows(row, exponent);
    assert_int_equal(ls_card_accumulator.create(&elements, NULL, 1, 1, &accumulator, NULL), 0);
    assert_int_equal(
        ls_device_cuda.parameter_from_plain(parameter->layout, &parameter->shape, row, there, NULL),
        0);
    assert_int_equal(ls_card_accumulator.cut(accumulator, 0, CHANNELS, there, NULL), 0);
    ls_card_accumulator.part(accumulator, 0, &part);
    assert_int_equal(ls_card_memory.write(NULL, part.exponent, exponent, sizeof exponent, NULL), 0);
    assert_int_equal(ls_card_accumulator.begin(accumulator, false, NULL), 0);
    for (int m = 0; m < MICRO_BATCHES; m++)
        accumulate(accumulator, parameter, shape, m);
    assert_int_equal(ls_card_accumulator.read(accumulator, 0, 0, ELEMENTS, there, NULL), 0);
    assert_int_equal(ls_device_cuda.parameter_to_plain(parameter->layout, &parameter->shape, there,
                                                       sums->sum, NULL),
                     0);
    assert_int_equal(
        ls_card_memory.read(NULL, sums->largest, part.largest, sizeof sums->largest, NULL), 0);
    ls_card_accumulator.free(accumulator);
    ls_card_memory.free(there);
}

static void sums_have_the_rows_of_output_channels(void **state)
{
    struct ls_parameter parameter = {
        .name = (char[]){"conv"}, .shape = weights, .layout = &ls_layout_channels_last};
    static struct sums want, got;
    (void)state;
    draw_gradients();
    sum_plain(&want);
    for (int as = 0; as < 2; as++) {
        begin(3);
        sum_last(&got, &parameter, as == 0 ? &weights : &as_matrix);
        assert_memory_equal(got.largest, want.largest, sizeof want.largest);
        assert_memory_equal(got.sum, want.sum, sizeof want.sum);
        end();
    }
}

/* Bits lie as elements do, as the store has them. */
static void masks_clear_the_same_weights(void **state)
{
    float plain[ELEMENTS], masked[ELEMENTS], laid_out[ELEMENTS];
    uint32_t bits[(ELEMENTS + 31) / 32] = {0};
    (void)state;
    begin(4);
    draw_floats(plain, ELEMENTS, 1);
    for (int i = 0; i < ELEMENTS; i++)
        masked[i] = ls_random_u32(2, 2, (uint64_t)i) % 3 == 0 ? 1 : 0;
    float *there = ls_card_memory.create(sizeof plain);
    assert_int_equal(ls_device_cuda.parameter_from_plain(&ls_layout_channels_last, &weights, masked,
                                                         there, NULL),
                     0);
    assert_int_equal(ls_card_memory.read(NULL, laid_out, there, sizeof laid_out, NULL), 0);
    for (int i = 0; i < ELEMENTS; i++)
        bits[i / 32] |= (uint32_t)(laid_out[i] > 0) << i % 32;
    uint32_t *mask = on_card(bits, sizeof bits);
    assert_int_equal(
        ls_device_cuda.parameter_from_plain(&ls_layout_channels_last, &weights, plain, there, NULL),
        0);
    assert_int_equal(ls_device_cuda.clear_masked(mask, 0, there, ELEMENTS, NULL), 0);
    assert_int_equal(ls_device_cuda.parameter_to_plain(&ls_layout_channels_last, &weights, there,
                                                       laid_out, NULL),
                     0);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(laid_out[i] == (masked[i] > 0 ? 0 : plain[i]));
    ls_card_memory.free(mask);
    ls_card_memory.free(there);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_reordered_and_converted),
        cmocka_unit_test(parameters_lie_in_both_layouts),
        cmocka_unit_test(other_layouts_are_refused),
        cmocka_unit_test(sums_have_the_rows_of_output_channels),
        cmocka_unit_test(masks_clear_the_same_weights),
    };
    reference_device()->enter_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
