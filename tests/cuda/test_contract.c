/* Kernels of what is defined to the bit, run on the CPU in random orders of their threads and
 * blocks, beside device/plain.h: update rules, masks, exact sums, norms, merged statistics.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cuda/immediate.h"
#include "device/exact.h"
#include "device/plain.h"
#include "ops/cuda/kernels/kernels.h"
#include "support/support.h"

enum { MOST = 20000, ORDERS = 5 };

static const int sizes[] = {1, 31, 257, 4097, 9000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static uint64_t drawn;

/* Of very different magnitudes. */
static float draw(void)
{
    const uint32_t bits = ls_random_u32(7, 3, drawn++);
    return ldexpf((float)((int32_t)bits >> 8) / 8388608.0F, (int)(bits % 24) - 16);
}

static void draw_all(float *numbers, int n)
{
    for (int i = 0; i < n; i++)
        numbers[i] = draw();
}

/* ---- Update rules ---------------------------------------------------------------------------- */

struct arrays {
    float gradient[MOST], weight[MOST], history[2][MOST], average[MOST], direction[MOST];
};
static struct arrays mine, theirs;

static struct ls_update_slice slice_of(struct arrays *arrays, enum ls_update_kind kind, bool first,
                                       int n)
{
    struct ls_update_slice slice = {.n = (size_t)n,
                                    .gradient = arrays->gradient,
                                    .weight = arrays->weight,
                                    .history = {arrays->history[0]},
                                    .average = arrays->average};
    if (ls_update_histories(kind) > 1 || kind == LS_UPDATE_ADAFACTOR)
        slice.history[1] = arrays->history[1];
    if (first)
        slice.direction = arrays->direction;
    return slice;
}

static void compare_update(const struct ls_update_rule *rule, bool first, int n)
{
    draw_all(mine.gradient, n);
    draw_all(mine.weight, n);
    draw_all(mine.average, n);
    for (int i = 0; i < n; i++) {
        mine.history[0][i] = fabsf(draw());
        mine.history[1][i] = fabsf(draw());
        mine.direction[i] = 0;
    }
    memcpy(&theirs, &mine, sizeof mine);
    struct ls_update_slice a = slice_of(&mine, rule->kind, first, n);
    struct ls_update_slice b = slice_of(&theirs, rule->kind, first, n);
    struct ls_update_seen expected;
    uint32_t seen[2] = {0, 0};
    assert_int_equal(ls_plain_update(rule, &a, &expected, NULL), 0);
    assert_int_equal(ls_cuda_update(NULL, rule, &b, seen), 0);
    if (memcmp(&mine, &theirs, sizeof mine) != 0)
        fail_msg("rule %d, pass %d, %d elements: other bits", rule->kind, first, n);
    assert_int_equal(seen[0], expected.gradient);
    assert_int_equal(seen[1], expected.weight);
}

static void updates_have_plain_bits(void **state)
{
    (void)state;
    for (int kind = 0; kind < LS_UPDATE_KINDS; kind++)
        for (int s = 0; s < SIZES - 2; s++)
            for (int pass = 0; pass < 2; pass++) {
                const bool two = kind >= LS_UPDATE_LAMB;
                const struct ls_update_rule rule = {.kind = (enum ls_update_kind)kind,
                                                    .rate = 0.03F,
                                                    .momentum = pass == 1 && s % 2 ? 0 : 0.9F,
                                                    .momentum2 = 0.99F,
                                                    .nesterov = s % 2 == 0,
                                                    .fresh = 0.4F,
                                                    .square_min = 1e-30F,
                                                    .delta = 1e-8F,
                                                    .rms_decay = 0.98F,
                                                    .correction = 0.7F,
                                                    .trust = 1.3F,
                                                    .decay = s % 3 == 0 ? 0 : 0.01F,
                                                    .l1 = s % 3 == 2,
                                                    .gradient_scale = s % 2 ? 1 : 0.37F,
                                                    .average_decay = 0.99F};
                grid_seed((uint64_t)(kind * 100 + s));
                compare_update(&rule, two && pass == 0, sizes[s]);
            }
}

static void masked_weights_are_cleared(void **state)
{
    (void)state;
    static uint32_t mask[MOST / 32 + 2];
    for (int s = 0; s < SIZES; s++) {
        const int n = sizes[s];
        const size_t first = (size_t)s * 7;
        for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
            mask[i] = ls_random_u32(1, 2, drawn++);
        draw_all(mine.weight, n);
        memcpy(theirs.weight, mine.weight, sizeof mine.weight);
        assert_int_equal(ls_plain_clear_masked(mask, first, mine.weight, (size_t)n, NULL), 0);
        assert_int_equal(ls_cuda_clear_masked(NULL, mask, first, theirs.weight, (size_t)n), 0);
        assert_memory_equal(mine.weight, theirs.weight, sizeof mine.weight);
    }
}

/* ---- Figures --------------------------------------------------------------------------------- */

static void figures_have_plain_bits(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        const size_t n = (size_t)sizes[s];
        double chunk[MOST / LS_EXACT_CHUNK + 1], expected;
        uint32_t bits = 0, largest;
        draw_all(mine.weight, (int)n);
        grid_seed((uint64_t)s);
        assert_int_equal(ls_plain_sums.largest(mine.weight, n, &largest, NULL), 0);
        assert_int_equal(ls_cuda_largest(NULL, mine.weight, n, &bits), 0);
        assert_int_equal(bits, largest);
        for (int squared = 0; squared < 2; squared++) {
            (squared ? ls_plain_sums.squares : ls_plain_sums.magnitudes)(mine.weight, n, &expected,
                                                                         NULL);
            assert_int_equal(ls_cuda_norms(NULL, mine.weight, n, squared, chunk), 0);
            const double sum = ls_sum_doubles(chunk, (n + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK);
            assert_memory_equal(&sum, &expected, sizeof sum);
        }
    }
}

/* ---- Exact sums ------------------------------------------------------------------------------ */

/* How the elements of a parameter belong to rows. */
enum cut { ONE_ROW, EACH_A_ROW, LISTED };

struct both {
    struct ls_accumulator *plain;
    struct ls_accumulated part;
    struct ls_cuda_sum sum;
    int64_t total[MOST];
    int32_t row[MOST], exponent[MOST], first, measure;
    uint32_t largest[MOST];
    float list[MOST];
};

static void open_both(struct both *both, int n, enum cut cut)
{
    const size_t elements = (size_t)n;
    const size_t rows = cut == ONE_ROW ? 1 : cut == LISTED ? elements / 3 + 1 : elements;
    memset(both, 0, sizeof *both);
    assert_int_equal(ls_plain_accumulator.create(&elements, NULL, 1, 1, &both->plain, NULL), 0);
    for (int i = 0; i < n; i++) {
        both->row[i] = (int32_t)((size_t)i % rows);
        both->list[i] = (float)(both->row[i] + 1);
    }
    if (cut != ONE_ROW)
        assert_int_equal(
            ls_plain_accumulator.cut(both->plain, 0, rows, cut == LISTED ? both->list : NULL, NULL),
            0);
    ls_plain_accumulator.part(both->plain, 0, &both->part);
    both->first = INT32_MAX;
    for (size_t r = 0; r < rows; r++)
        both->part.exponent[r] = both->exponent[r] = 30 + (int32_t)(r % 9);
    both->sum = (struct ls_cuda_sum){both->total,    cut == LISTED ? both->row : NULL,
                                     elements,       rows,
                                     both->exponent, both->exponent,
                                     both->largest,  &both->first,
                                     &both->measure};
}

static void compare_both(struct both *both)
{
    const size_t n = both->sum.elements, begin = n / 3;
    static float a[MOST], b[MOST];
    assert_memory_equal(ls_plain_accumulator.all(both->plain), both->total,
                        n * sizeof *both->total);
    assert_memory_equal(both->part.largest, both->largest, both->sum.rows * sizeof(uint32_t));
    assert_int_equal(*both->part.first_not_finite, both->first);
    assert_int_equal(ls_plain_accumulator.read(both->plain, 0, begin, n - begin, a, NULL), 0);
    assert_int_equal(ls_cuda_read_sums(NULL, &both->sum, begin, n - begin, b), 0);
    assert_memory_equal(a, b, (n - begin) * sizeof *a);
}

static struct both both;

static void sums_have_plain_bits(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++)
        for (int cut = ONE_ROW; cut <= LISTED; cut++) {
            open_both(&both, sizes[s], (enum cut)cut);
            grid_seed((uint64_t)(s * 3 + cut));
            assert_int_equal(ls_plain_accumulator.begin(both.plain, false, NULL), 0);
            for (int64_t m = 0; m < 3; m++) {
                draw_all(mine.gradient, sizes[s]);
                if (m == 1 && s % 2 == 1)
                    mine.gradient[sizes[s] / 2] = s == 1 ? NAN : -INFINITY;
                ls_plain_accumulate(both.plain, (int)m, 0, mine.gradient);
                assert_int_equal(ls_cuda_accumulate(NULL, &both.sum, &m, mine.gradient), 0);
            }
            compare_both(&both);
            ls_plain_accumulator.free(both.plain);
        }
}

static void measuring_changes_no_sum(void **state)
{
    (void)state;
    open_both(&both, 300, EACH_A_ROW);
    assert_int_equal(ls_plain_accumulator.begin(both.plain, true, NULL), 0);
    draw_all(mine.gradient, 300);
    ls_plain_accumulate(both.plain, 0, 0, mine.gradient);
    both.measure = 1;
    assert_int_equal(ls_cuda_accumulate(NULL, &both.sum, &(int64_t){0}, mine.gradient), 0);
    assert_memory_equal(both.part.largest, both.largest, 300 * sizeof(uint32_t));
    for (int i = 0; i < 300; i++)
        assert_int_equal(both.total[i], 0);
    ls_plain_accumulator.free(both.plain);
}

static void named_rows_are_added(void **state)
{
    (void)state;
    enum { ROWS = 50, COLUMNS = 37, NAMED = 9 };
    const int32_t number[NAMED + 2] = {4, 49, 0, 17, 3, 22, 48, 1, 30, -1, 5};
    const struct ls_accumulated_rows rows = {mine.gradient, number, NAMED + 2, COLUMNS};
    open_both(&both, ROWS * COLUMNS, ONE_ROW);
    assert_int_equal(ls_plain_accumulator.begin(both.plain, false, NULL), 0);
    for (int64_t m = 0; m < 2; m++) {
        draw_all(mine.gradient, (NAMED + 2) * COLUMNS);
        ls_plain_accumulate_rows(both.plain, (int)m, 0, &rows);
        assert_int_equal(
            ls_cuda_accumulate_rows(NULL, &both.sum, &m, mine.gradient, number, NAMED + 2, COLUMNS),
            0);
    }
    compare_both(&both);
    ls_plain_accumulator.free(both.plain);
}

/* ---- Merged statistics ----------------------------------------------------------------------- */

static void statistics_have_plain_bits(void **state)
{
    (void)state;
    enum { CHANNELS = 37, PADDED = 48, ROW = 2 * PADDED + LS_SYNC_ROW_END, COUNT = 13 };
    static double numbers[COUNT][ROW];
    const double *rows[COUNT];
    for (int moments = 0; moments < 2; moments++)
        for (int count = 1; count <= COUNT; count++) {
            const struct ls_sync sync = {.kind = moments ? LS_SYNC_MOMENTS : LS_SYNC_SUMS,
                                         .channels = CHANNELS,
                                         .eps = 1e-5F};
            float a[4 * PADDED] = {0}, b[4 * PADDED] = {0};
            for (int r = 0; r < count; r++) {
                memset(numbers[r], 0, sizeof numbers[r]);
                for (int c = 0; c < CHANNELS; c++) {
                    numbers[r][c] = (double)draw();
                    numbers[r][PADDED + c] = fabs((double)draw());
                }
                numbers[r][2 * PADDED] = r % 3 + 1;
                rows[r] = numbers[r];
            }
            grid_seed((uint64_t)count);
            struct ls_cuda_merging of = {.moments = moments,
                                         .channels = CHANNELS,
                                         .eps = sync.eps,
                                         .count = count,
                                         .many = count % 2 == 0 ? rows : NULL};
            memcpy(of.few, rows, (size_t)count * sizeof *rows);
            for (int64_t c = 0; c < PADDED; c += LS_SYNC_BLOCK) {
                ls_plain_merge(NULL, &sync, rows, count, c, c + LS_SYNC_BLOCK, a, NULL);
                of.begin = c;
                of.end = c + LS_SYNC_BLOCK;
                assert_int_equal(ls_cuda_merge(NULL, &of, b), 0);
            }
            assert_memory_equal(a, b, sizeof a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_have_plain_bits),    cmocka_unit_test(masked_weights_are_cleared),
        cmocka_unit_test(figures_have_plain_bits),    cmocka_unit_test(sums_have_plain_bits),
        cmocka_unit_test(measuring_changes_no_sum),   cmocka_unit_test(named_rows_are_added),
        cmocka_unit_test(statistics_have_plain_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
