/* Products of bf16 and of fp32 numbers on every instruction set, bit by bit against the definition;
 * AMX's also where there is none, with tiles in plain C. SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "amx_model.h"
#include "kernels/bf16_model.h"
#include "ops/cpu/bf16/agree.h"
#include "ops/cpu/bf16/product.h"
#include "ops/cpu/bf16/units.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/vector/bf16_product.h"
#include "support/support.h"

enum values { NEAR_ONE, ALL_EXPONENTS, NEAR_LEAST, ZEROS, ANY_BITS, KINDS };

static const char *const kind_names[KINDS] = {"near 1", "all exponents", "near the least normal",
                                              "zeros of both signs", "any bits"};

/* The sum of a[k] b[k] by the definition. */
static float defined(const float *a, const float *b, size_t depth)
{
    struct ls_product_sum sum = {.sum = 0};
    for (size_t k = 0; k < depth; k++)
        ls_product_sum_add(&sum, a[k], b[k]);
    return ls_product_sum_end(&sum);
}

/* ---- Operands -------------------------------------------------------------------------------- */

static uint16_t number(enum values kind, uint64_t salt, uint64_t i)
{
    uint32_t bits = ls_random_u32(31, salt, i);
    uint32_t fraction = bits & 0x807f, more = bits >> 16;
    switch (kind) {
    case NEAR_ONE:
        return (uint16_t)(fraction | (124 + more % 6) << 7);
    case ALL_EXPONENTS:
        return (uint16_t)(fraction | more % 255 << 7);
    case NEAR_LEAST: /* products around 2^-126, and now and then a denormal factor */
        return (uint16_t)(fraction | (more % 16 == 0 ? more / 16 % 3 : 60 + more % 7) << 7);
    case ZEROS:
        return (uint16_t)(more % 3 == 0 ? fraction | (60 + more % 8) << 7 : bits & 0x8000);
    default:
        return (uint16_t)bits;
    }
}

/* With all digits of fp32; zeros stay zeros. */
static float number_of(bool f32, enum values kind, uint64_t salt, uint64_t i)
{
    const float x = bf16_widened(number(kind, salt, i));
    uint32_t digits = ls_random_u32(30, salt, i) & 0xffff, bits;
    memcpy(&bits, &x, sizeof bits);
    bits |= f32 && (bits & 0x7fffffff) != 0 ? digits : 0;
    float all;
    memcpy(&all, &bits, sizeof all);
    return all;
}

/* Element `at` becomes x, which bf16 has if it is bf16. */
static void put(void *to, bool f32, size_t at, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (f32)
        ((uint32_t *)to)[at] = bits;
    else
        ((uint16_t *)to)[at] = (uint16_t)(bits >> 16);
}

struct matrix {
    struct ls_bf16_operand operand;
    float *lines; /* [lines][depth] */
    void *placed; /* as an operand without `read` wants it */
    int64_t depth;
    bool f32;
};

/* Writes what the contract allows behind a row, too. */
static void read_matrix(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                        int64_t begin, int64_t end, void *memory, size_t pitch)
{
    const struct matrix *matrix = operand->user;
    assert_true(first >= 0 && count > 0 && first + count <= operand->lines);
    assert_true(begin >= 0 && begin % 32 == 0 && end > begin && end <= matrix->depth);
    const int64_t most = LS_BF16_READ_TERMS / (matrix->f32 ? 2 : 1);
    assert_true(count <= LS_BF16_READ_LINES && end - begin <= most);
    assert_int_equal((uintptr_t)memory % 64, 0);
    assert_int_equal(pitch % 32, 0);
    size_t rows = (size_t)(operand->by_term ? end - begin : count);
    size_t used = (size_t)(operand->by_term ? count : end - begin);
    assert_true(used <= pitch);
    memset(memory, 0xff, rows * pitch * (matrix->f32 ? 4 : 2));
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < used; i++) {
            size_t line = (size_t)first + (operand->by_term ? i : row);
            size_t term = (size_t)begin + (operand->by_term ? row : i);
            put(memory, matrix->f32, row * pitch + i,
                matrix->lines[line * (size_t)matrix->depth + term]);
        }
}

/* `form` says by two bits how it lies, and whether it is read. */
static struct matrix make(bool f32, int64_t lines, int64_t depth, unsigned form, enum values kind,
                          uint64_t salt)
{
    size_t count = (size_t)(lines * depth), pitch = (size_t)(form & 1 ? lines : depth) + salt % 5;
    size_t rows = (size_t)(form & 1 ? depth : lines);
    struct matrix matrix = {.depth = depth, .f32 = f32};
    matrix.lines = ls_alloc(count + 1, sizeof *matrix.lines);
    matrix.placed = ls_alloc(rows * pitch + 1, f32 ? 4 : 2);
    assert_true(matrix.lines != NULL && matrix.placed != NULL);
    memset(matrix.placed, 0xff, rows * pitch * (f32 ? 4 : 2));
    for (size_t i = 0; i < count; i++)
        matrix.lines[i] = number_of(f32, kind, salt, i);
    for (size_t line = 0; line < (size_t)lines; line++)
        for (size_t k = 0; k < (size_t)depth; k++)
            put(matrix.placed, f32, form & 1 ? k * pitch + line : line * pitch + k,
                matrix.lines[line * (size_t)depth + k]);
    matrix.operand = (struct ls_bf16_operand){.lines = lines, .by_term = form & 1};
    if (form & 2) {
        matrix.operand.read = read_matrix;
    } else {
        matrix.operand.data = matrix.placed;
        matrix.operand.pitch = pitch;
    }
    return matrix;
}

static void release(struct matrix *matrix)
{
    ls_free(matrix->lines);
    ls_free(matrix->placed);
}

/* ---- Products -------------------------------------------------------------------------------- */

struct result {
    float *elements;       /* [a's lines][b's lines] */
    unsigned char *counts; /* how often each was written */
};

static void write_result(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                         int64_t columns, float *tile, size_t pitch)
{
    const struct result *result = product->user;
    assert_true(i >= 0 && rows > 0 && i + rows <= product->a.lines);
    assert_true(j >= 0 && columns > 0 && j + columns <= product->b.lines);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t s = 0; s < columns; s++) {
            size_t at = (size_t)((i + r) * product->b.lines + j + s);
            result->elements[at] = tile[(size_t)r * pitch + (size_t)s];
            result->counts[at]++;
        }
}

#if defined(LS_AMX)
extern const struct ls_vector_bf16_product ls_bf16_amx_model;
#endif

struct way {
    const char *name;
    const struct ls_vector_bf16_product *tiles;
    bool bf16; /* alone */
};

enum { WAYS = LS_ISAS + LS_UNITS };

/* All that this processor can do. */
static int list_ways(struct way ways[WAYS])
{
    int count = 0;
    for (int isa = 0; isa < LS_ISAS; isa++) {
        const char *name = ls_cpu_isa_name((enum ls_isa)isa);
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(name, NULL), 0);
        ways[count++] = (struct way){.name = name, .tiles = ls_bf16_tiles(false)};
    }
#if defined(LS_AMX)
    if (ls_cpu_isa_supported(LS_ISA_AVX512))
        ways[count++] =
            (struct way){.name = "model of AMX", .tiles = &ls_bf16_amx_model, .bf16 = true};
#endif
    for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++) {
        const char *name = ls_cpu_unit_name(unit);
        if (ls_cpu_isa_select(name, NULL) != 0)
            continue;
        assert_ptr_equal(ls_bf16_tiles(false), ls_bf16_unit_tiles(unit));
        ways[count++] = (struct way){.name = name, .tiles = ls_bf16_tiles(false), .bf16 = true};
    }
    return count;
}

static void check_way(const struct ls_bf16_product *product, const float *expected,
                      enum values kind, const struct way *way)
{
    const size_t elements = (size_t)(product->a.lines * product->b.lines);
    const struct result *result = product->user;
    size_t bytes =
        ls_bf16_scratch_with(way->tiles, product->a.lines, product->b.lines, product->depth);
    unsigned char *scratch = ls_alloc_aligned(bytes + 1);
    assert_non_null(scratch);
    memset(scratch, 0xff, bytes);
    scratch[bytes] = 0xa5;
    memset(result->counts, 0, elements);
    ls_bf16_multiply_with(way->tiles, product, scratch);
    assert_int_equal(scratch[bytes], 0xa5);
    for (size_t e = 0; e < elements; e++) {
        assert_int_equal(result->counts[e], 1);
        if (!bf16_same(result->elements[e], expected[e]))
            fail_msg("%s, %s, %s: %d x %d x %d, element %zu is %a, not %a", way->name,
                     product->f32 ? "fp32" : "bf16", kind_names[kind], (int)product->a.lines,
                     (int)product->b.lines, (int)product->depth, e, (double)result->elements[e],
                     (double)expected[e]);
    }
    ls_free_aligned(scratch);
}

static void check(const struct ls_bf16_product *product, const float *expected, enum values kind)
{
    struct way ways[WAYS];
    int count = list_ways(ways);
    for (int i = 0; i < count; i++)
        if (!ways[i].bf16 || !product->f32)
            check_way(product, expected, kind, &ways[i]);
}

/* One product, whose operands lie in the ways that `form` says. */
static void try_type(bool f32, int64_t rows, int64_t columns, int64_t depth, unsigned form,
                     enum values kind)
{
    const uint64_t salt = (uint64_t)(rows * 1000003 + columns * 1009 + depth * 2) + form;
    struct matrix a = make(f32, rows, depth, form & 3, kind, salt);
    struct matrix b = make(f32, columns, depth, form >> 2, kind, ~salt);
    struct result result = {.elements = ls_alloc((size_t)(rows * columns), sizeof(float)),
                            .counts = ls_alloc((size_t)(rows * columns), 1)};
    float *expected = ls_alloc((size_t)(rows * columns), sizeof *expected);
    assert_true(result.elements != NULL && result.counts != NULL && expected != NULL);
    a.operand.user = &a;
    b.operand.user = &b;
    const struct ls_bf16_product product = {.a = a.operand,
                                            .b = b.operand,
                                            .f32 = f32,
                                            .depth = depth,
                                            .write = write_result,
                                            .user = &result};
    uint64_t mode = ls_float_mode();
    ls_set_float_mode();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            expected[i * columns + j] =
                defined(a.lines + i * depth, b.lines + j * depth, (size_t)depth);
    check(&product, expected, kind);
    ls_restore_float_mode(mode);
    release(&a);
    release(&b);
    ls_free(result.elements);
    ls_free(result.counts);
    ls_free(expected);
}

static void try(int64_t rows, int64_t columns, int64_t depth, unsigned form, enum values kind)
{
    try_type(false, rows, columns, depth, form, kind);
    try_type(true, rows, columns, depth, form, kind);
}

static void random_shapes(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 160; round++) {
        int64_t size[3];
        static const uint32_t most[3] = {40, 120, 300};
        for (uint32_t i = 0; i < 3; i++)
            size[i] = 1 + ls_random_below(32, round, i, round % 4 == 0 ? 20 : most[i]);
        try(size[0], size[1], size[2], round % 16, (enum values)(round % KINDS));
    }
}

/* Whole tiles and one more or less; as many terms as fill blocks. */
static void edges(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1,  2,  3,  4,  7,  8,  9,  15, 16,
                                    17, 31, 32, 33, 47, 48, 49, 64, 65};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (unsigned i = 0; i < SIZES; i++)
        for (unsigned j = 0; j < SIZES; j++)
            try(sizes[i], sizes[j], sizes[(i * 7 + j) % SIZES], (i + j) % 16, NEAR_ONE);
    try(5, 3, 0, 0, NEAR_ONE);
    try(3, 5, 0, 15, NEAR_ONE);
}

/* Several parts of the result, several pieces of the terms. */
static void large_ones(void **state)
{
    (void)state;
    try(1100, 3, 40, 6, NEAR_ONE);
    try(3, 1100, 40, 6, NEAR_ONE);
    try(530, 250, 33, 9, ALL_EXPONENTS);
    try(9, 50, 5000, 6, NEAR_ONE);
    try(130, 50, 700, 3, NEAR_LEAST);
}

/* What a rounding twice, a chain in another order, or a denormal number that is kept would change.
 */
static void single_products(void **state)
{
    (void)state;
    static const struct {
        uint16_t a[4], b[4];
        float sum;
    } cases[] = {
        {{0x0080}, {0x3f00}, 0.0F},                                 /* 2^-127 is zero */
        {{0x0040}, {0x7f00}, 0.0F},                                 /* so is such a factor */
        {{0x3f80, 0, 0x0080}, {0x0080, 0, 0xbf00}, 0.0F},           /* 2^-126 - 2^-127, too */
        {{0x0080}, {0xbf00}, 0.0F},                                 /* and has no sign */
        {{0x3f80, 0, 0x3f81}, {0x4b80, 0, 0x3f81}, 0x1.000002p24F}, /* one rounding: above a tie */
        {{0x7f00, 0x7f00, 0xff00, 0xff00}, {0x3f80, 0x3f80, 0x3f80, 0x3f80}, 0.0F},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t mode = ls_float_mode();
        ls_set_float_mode();
        float a[4], b[4];
        for (int k = 0; k < 4; k++) {
            a[k] = bf16_widened(cases[i].a[k]);
            b[k] = bf16_widened(cases[i].b[k]);
        }
        float model = defined(a, b, 4);
        ls_restore_float_mode(mode);
        if (!bf16_same(model, cases[i].sum))
            fail_msg("the model gives %a for case %zu", (double)model, i);
    }
    for (unsigned form = 0; form < 16; form++)
        for (int kind = 0; kind < KINDS; kind++)
            try(1, 1, 1 + form, form, (enum values)kind);
}

#if defined(LS_AMX)

/* Tiles are configured for a product and released behind it: a thread that sleeps with tiles in use
 * costs others time. */
static void tiles_are_released(void **state)
{
    (void)state;
    if (!ls_cpu_isa_supported(LS_ISA_AVX512))
        ls_test_skip("this processor has no AVX-512");
    unsigned long before = amx_model_products;
    try(40, 40, 64, 4, NEAR_ONE);
    assert_false(amx_model_configured);
    assert_int_equal(amx_model_products - before, 2 * 9);
}

#endif

#if defined(LS_AMX)

static size_t wrong_row, wrong_column;

/* One element of a tile is off by one unit in its last place. */
static void multiply_wrongly(const struct ls_bf16_tile *tile)
{
    ls_bf16_amx_model.multiply(tile);
    if (tile->last && wrong_row < tile->rows && wrong_column < tile->columns) {
        uint32_t bits;
        float *c = tile->c + wrong_row * tile->pitch + wrong_column;
        memcpy(&bits, c, sizeof bits);
        bits ^= 1;
        memcpy(c, &bits, sizeof bits);
    }
}

static bool agrees(const struct ls_vector_bf16_product *tiles)
{
    bool found = false;
    assert_int_equal(ls_bf16_agrees(tiles, &found), 0);
    return found;
}

/* Before AMX is used a product is computed with it, and compared. */
static void a_wrong_bit_is_found(void **state)
{
    (void)state;
    if (!ls_cpu_isa_supported(LS_ISA_AVX512))
        ls_test_skip("this processor has no AVX-512");
    assert_true(agrees(&ls_bf16_amx_model));
    struct ls_vector_bf16_product wrong = ls_bf16_amx_model;
    wrong.multiply = multiply_wrongly;
    for (wrong_row = 0; wrong_row < 32; wrong_row += 31)
        for (wrong_column = 0; wrong_column < 32; wrong_column += 31)
            assert_false(agrees(&wrong));
    wrong_row = 33;
    assert_true(agrees(&wrong));
    for (long n = 0; n < 4; n++) { /* numbers, elements, scratch memory of either */
        bool found;
        ls_fail_allocation_after(n);
        assert_int_equal(ls_bf16_agrees(&ls_bf16_amx_model, &found), LOCKSTEP_RESOURCE);
        ls_fail_allocation_after(-1);
    }
}

#endif

/* A unit that cannot be used is no set, and the error says why. */
static void expect_refusals(enum ls_bf16_unit unit)
{
    static const char *const words[] = {[LS_UNIT_ABSENT] = "does not have the instruction set '",
                                        [LS_UNIT_REFUSED] = "the system does not permit its use",
                                        [LS_UNIT_UNTRIED] = "out of memory",
                                        [LS_UNIT_WRONG] = "gives other bits"};
    for (int state = LS_UNIT_ABSENT; state < LS_UNIT_THERE; state++) {
        struct ls_error error = {0};
        ls_cpu_pretend_unit(unit, (enum ls_bf16_unit_state)state);
        assert_int_equal(ls_cpu_isa_select(ls_cpu_unit_name(unit), &error),
                         state == LS_UNIT_UNTRIED ? LOCKSTEP_RESOURCE : LOCKSTEP_USAGE);
        assert_non_null(strstr(error.problems[0].message, words[state]));
        if (state != LS_UNIT_ABSENT)
            assert_non_null(strstr(error.problems[0].hint, "--isa avx512"));
        assert_false(ls_cpu_computes_with(ls_cpu_unit_name(unit)));
    }
}

/* What computes with a set in which `unit` is the fastest. */
static void expect_unit(enum ls_bf16_unit unit)
{
    const char *name = ls_cpu_unit_name(unit);
    const struct ls_vector_bf16_product *tiles = ls_bf16_unit_tiles(unit);
    assert_int_equal(ls_cpu_isa(), LS_ISA_AVX512);
    assert_int_equal(ls_cpu_unit(), unit);
    assert_ptr_equal(ls_bf16_tiles(false), tiles != NULL ? tiles : &ls_vector_bf16_product_avx512);
    assert_ptr_equal(ls_bf16_tiles(true), &ls_vector_bf16_product_avx512);
    assert_string_equal(ls_bf16_tiles_name(), name);
    assert_true(ls_cpu_computes_with(name) && ls_cpu_computes_with("avx512"));
    assert_false(ls_cpu_computes_with("avx2"));
    for (enum ls_bf16_unit other = LS_UNIT_NONE + 1; other < LS_UNITS; other++)
        assert_int_equal(ls_cpu_computes_with(ls_cpu_unit_name(other)), other <= unit);
}

/* A unit that is there is not said to compute wrongly because memory ran out when it was tried;
 * what has been found stays for the process. */
static void memory_runs_out_before_a_trial(void **state)
{
    (void)state;
    for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++) {
        const enum ls_bf16_unit_state truth = ls_cpu_unit_state(unit);
        const bool there = truth == LS_UNIT_THERE;
        ls_cpu_pretend_unit(unit, LS_UNIT_UNKNOWN);
        ls_fail_allocation_after(0);
        assert_int_equal(ls_cpu_unit_state(unit), there ? LS_UNIT_UNTRIED : truth);
        ls_fail_allocation_after(-1);
        assert_int_equal(ls_cpu_unit_state(unit), there ? LS_UNIT_UNTRIED : truth);
        ls_cpu_pretend_unit(unit, LS_UNIT_UNKNOWN);
        assert_int_equal(ls_cpu_unit_state(unit), truth);
    }
}

/* The fastest unit is taken that is there, permitted, right, and not left out. */
static void units_are_chosen(void **state)
{
    (void)state;
    enum ls_bf16_unit_state truth[LS_UNITS];
    for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++) {
        truth[unit] = ls_cpu_unit_state(unit);
        expect_refusals(unit);
    }
#if defined(LS_AMX) && defined(LS_AVX512_BF16)
    if (ls_cpu_isa_supported(LS_ISA_AVX512)) {
        for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++)
            ls_cpu_pretend_unit(unit, LS_UNIT_THERE);
        for (enum ls_bf16_unit unit = LS_UNIT_NONE; unit < LS_UNITS; unit++) {
            assert_int_equal(ls_cpu_isa_select(ls_cpu_unit_name(unit), NULL), 0);
            expect_unit(unit);
        }
        ls_cpu_pretend_unit(LS_UNIT_AMX, LS_UNIT_REFUSED);
        expect_unit(LS_UNIT_AVX512_BF16);
        ls_cpu_pretend_unit(LS_UNIT_AVX512_BF16, LS_UNIT_WRONG);
        expect_unit(LS_UNIT_NONE);
        ls_cpu_pretend_unit(LS_UNIT_AMX, LS_UNIT_THERE);
        expect_unit(LS_UNIT_AMX);
    }
#else
    (void)expect_unit;
#endif
    for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++)
        ls_cpu_pretend_unit(unit, truth[unit]);
    assert_int_equal(ls_cpu_isa_select("generic", NULL), 0);
    assert_int_equal(ls_cpu_unit(), LS_UNIT_NONE);
}

/* Smaller products may need more than one of the largest: there is a bound for all of them. */
static void scratch_is_bounded_for_smaller_products(void **state)
{
    (void)state;
    static const int64_t depths[] = {1, 64, 512, 513, 4096, 25088}, lines[] = {1, 40, 344, 512};
    for (size_t d = 0; d < 2 * (sizeof depths / sizeof *depths); d++)
        for (size_t l = 0; l < sizeof lines / sizeof *lines; l++)
            for (int64_t a = 1; a <= lines[l]; a++)
                for (int64_t b = 1; b <= 64; b++) {
                    const bool f32 = d % 2;
                    const int64_t depth = depths[d / 2];
                    assert_true(ls_bf16_product_scratch(f32, a, b, depth) <=
                                ls_bf16_product_scratch_up_to(f32, lines[l], 64, depth));
                    assert_true(ls_bf16_product_scratch(f32, b, a, depth) <=
                                ls_bf16_product_scratch_up_to(f32, 64, lines[l], depth));
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_products),
        cmocka_unit_test(edges),
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(large_ones),
        cmocka_unit_test(scratch_is_bounded_for_smaller_products),
#if defined(LS_AMX)
        cmocka_unit_test(tiles_are_released),
        cmocka_unit_test(a_wrong_bit_is_found),
#endif
        cmocka_unit_test(memory_runs_out_before_a_trial),
        cmocka_unit_test(units_are_chosen),
    };
    return cmocka_run_group_tests_name("ops_cpu_bf16_product", tests, NULL, NULL);
}
