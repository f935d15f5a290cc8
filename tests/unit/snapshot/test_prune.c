/* Pruning: the smallest magnitudes, however many are equal, and no others.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "snapshot/archive.h"
#include "snapshot/prune.h"
#include "support/support.h"

enum { ROWS = 37, COLUMNS = 53, SIZE = ROWS * COLUMNS, OTHER = 6 };

static float weights[SIZE], other[OTHER] = {3, -1, 0, 2, -1, 1}, bias[ROWS];

/* Numbers of all sizes, signs and zeros; `kinds` different ones, so that some are equal. */
static void write_weights(const char *path, uint64_t seed, uint32_t kinds)
{
    static const struct ls_shape shape = {.rank = 2, .dim = {ROWS, COLUMNS}},
                                 small = {.rank = 2, .dim = {2, 3}},
                                 line = {.rank = 1, .dim = {ROWS}};
    struct ls_archive archive = {0};
    struct ls_error error = {0};
    for (uint64_t i = 0; i < SIZE; i++) {
        uint32_t kind = ls_random_below(seed, 0, i, kinds);
        float scale = ls_random_u32(seed, 1, i) % 2 == 0 ? 1e-3F : -1e-3F;
        weights[i] = scale * (float)kind * (kind % 5 == 0 ? 1e-30F : 1);
    }
    assert_int_equal(ls_archive_add(&archive, "a.weight", LS_F32, &shape, weights, &error), 0);
    assert_int_equal(ls_archive_add(&archive, "a.bias", LS_F32, &line, bias, &error), 0);
    assert_int_equal(ls_archive_add(&archive, "b.weight", LS_F32, &small, other, &error), 0);
    assert_int_equal(ls_archive_add(&archive, "c.bias", LS_F32, &small, other, &error), 0);
    assert_int_equal(ls_archive_add(&archive, "c.W_hc", LS_F32, &small, other, &error), 0);
    assert_int_equal(ls_archive_write(&archive, path, &error), 0);
    ls_archive_free(&archive);
}

static float size_of(float number)
{
    return number < 0 ? -number : number;
}

/* The definition, the slow way: element i is masked if fewer than `count` come before it. */
static void check(const unsigned char *keep, const float *numbers, int size, int count)
{
    for (int i = 0; i < size; i++) {
        int before = 0;
        for (int k = 0; k < size; k++)
            before += size_of(numbers[k]) < size_of(numbers[i]) ||
                      (size_of(numbers[k]) == size_of(numbers[i]) && k < i);
        if (keep[i] != (before >= count))
            fail_msg("element %d of %d is %d", i, size, keep[i]);
    }
}

static void prune(const struct ls_prune_request *request, struct ls_archive *masks,
                  int64_t expected)
{
    const char *path = ls_test_path("mask.safetensors");
    struct ls_error error = {0};
    int64_t all = 0, masked = 0;
    if (ls_prune(ls_test_path("weights.safetensors"), path, request, &all, &masked, &error) != 0)
        fail_msg("%s", error.problems[0].message);
    assert_int_equal(masked, expected);
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, masks, &error), 0);
    assert_null(ls_archive_find(masks, "a.bias"));
    assert_null(ls_archive_find(masks, "c.bias"));
}

static void the_smallest_weights_of_each_parameter_are_masked(void **state)
{
    (void)state;
    static const double sparsities[] = {0, 0.1, 0.5, 0.8, 0.999, 1};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        write_weights(ls_test_path("weights.safetensors"), seed, seed == 1 ? 7 : 1U << 20);
        for (size_t s = 0; s < sizeof sparsities / sizeof *sparsities; s++) {
            struct ls_archive masks = {0};
            int count = (int)(sparsities[s] * SIZE + 0.5);
            int few = (int)(sparsities[s] * OTHER + 0.5);
            prune(&(struct ls_prune_request){.sparsity = sparsities[s]}, &masks, count + 2 * few);
            check(ls_archive_find(&masks, "a.weight")->data, weights, SIZE, count);
            check(ls_archive_find(&masks, "b.weight")->data, other, OTHER, few);
            check(ls_archive_find(&masks, "c.W_hc")->data, other, OTHER, few);
            ls_archive_free(&masks);
        }
    }
}

static void the_smallest_weights_of_all_are_masked(void **state)
{
    (void)state;
    struct ls_archive masks = {0};
    enum { ALL = SIZE + 2 * OTHER };
    static float all[ALL];
    static unsigned char keep[ALL];
    write_weights(ls_test_path("weights.safetensors"), 5, 1U << 12);
    memcpy(all, weights, sizeof weights);
    memcpy(all + SIZE, other, sizeof other);
    memcpy(all + SIZE + OTHER, other, sizeof other);
    int count = (int)(0.7 * ALL + 0.5);
    prune(&(struct ls_prune_request){.sparsity = 0.7, .global = true}, &masks, count);
    memcpy(keep, ls_archive_find(&masks, "a.weight")->data, SIZE);
    memcpy(keep + SIZE, ls_archive_find(&masks, "b.weight")->data, OTHER);
    memcpy(keep + SIZE + OTHER, ls_archive_find(&masks, "c.W_hc")->data, OTHER);
    check(keep, all, ALL, count);
    ls_archive_free(&masks);
}

static void only_layers_that_fit_a_pattern_are_pruned(void **state)
{
    (void)state;
    struct ls_archive masks = {0};
    struct ls_error error = {0};
    int64_t all, masked;
    const char *b[] = {"[bx]"}, *neither[] = {"b", "d*"};
    write_weights(ls_test_path("weights.safetensors"), 5, 100);
    prune(&(struct ls_prune_request){.sparsity = 0.5, .layers = b, .layer_count = 1}, &masks, 3);
    assert_null(ls_archive_find(&masks, "a.weight"));
    check(ls_archive_find(&masks, "b.weight")->data, other, OTHER, 3);
    ls_archive_free(&masks);
    const struct ls_prune_request wrong = {.sparsity = 0.5, .layers = neither, .layer_count = 2};
    assert_int_equal(ls_prune(ls_test_path("weights.safetensors"), ls_test_path("none"), &wrong,
                              &all, &masked, &error),
                     LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message, "no layer has a name like 'd*'"));
    const struct ls_prune_request much = {.sparsity = 1.5};
    assert_int_equal(ls_prune(ls_test_path("weights.safetensors"), ls_test_path("none"), &much,
                              &all, &masked, NULL),
                     LOCKSTEP_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_weights_of_each_parameter_are_masked),
        cmocka_unit_test(the_smallest_weights_of_all_are_masked),
        cmocka_unit_test(only_layers_that_fit_a_pattern_are_pruned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
