/* Allocation. SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"

#include <stdint.h>
#include <string.h>

#include "support/support.h"

static int teardown(void **state)
{
    (void)state;
    ls_fail_allocation_after(-1);
    return 0;
}

static void memory_is_zeroed_and_checked(void **state)
{
    (void)state;
    unsigned char *bytes = ls_alloc(100, 10);
    assert_non_null(bytes);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(bytes[i], 0);
    ls_free(bytes);
    assert_null(ls_alloc(SIZE_MAX / 2, 3));
    assert_null(ls_resize(NULL, SIZE_MAX / 2, 3));
    void *nothing = ls_alloc(0, 8);
    assert_non_null(nothing);
    ls_free(nothing);
    ls_free(NULL);
}

static void aligned_memory_is_aligned_and_zeroed(void **state)
{
    (void)state;
    for (size_t size = 0; size < 300; size += 37) {
        unsigned char *bytes = ls_alloc_aligned(size);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % 64, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(bytes[i], 0);
        ls_free_aligned(bytes);
    }
    assert_null(ls_alloc_aligned(SIZE_MAX - 10));
}

/* Small pages, huge pages and what lies between: every byte is there, and zero at first. */
static void large_aligned_memory_is_whole_and_zeroed(void **state)
{
    (void)state;
    const size_t huge = (size_t)1 << 21,
                 sizes[] = {huge / 8,      2 * huge - 64, 2 * huge - 63, 2 * huge,
                            3 * huge - 64, 3 * huge,      5 * huge + 1,  4 * huge - 100};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    unsigned char *blocks[COUNT];
    for (int round = 0; round < 2; round++) {
        for (int b = 0; b < COUNT; b++) {
            blocks[b] = ls_alloc_aligned(sizes[b]);
            assert_non_null(blocks[b]);
            assert_int_equal((uintptr_t)blocks[b] % 64, 0);
            assert_int_equal(blocks[b][0], 0);
            assert_memory_equal(blocks[b], blocks[b] + 1, sizes[b] - 1);
            memset(blocks[b], b + 1, sizes[b]);
        }
        for (int b = 0; b < COUNT; b++) {
            assert_int_equal(blocks[b][0], b + 1); /* no other thread wrote there */
            assert_memory_equal(blocks[b], blocks[b] + 1, sizes[b] - 1);
            ls_free_aligned(blocks[b]);
        }
    }
}

/* Blocks on the heap, mapped ones and such with huge pages. What is written in between stays. */
static void populating_changes_nothing(void **state)
{
    static const size_t sizes[] = {0, 100, (size_t)1 << 18, 3 << 20, (9 << 20) + 12345};
    (void)state;
    ls_populate_aligned(NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *bytes = ls_alloc_aligned(sizes[i]);
        assert_non_null(bytes);
        for (size_t at = 0; at < sizes[i]; at += 100003)
            bytes[at] = (unsigned char)(at % 251 + 1);
        ls_populate_aligned(bytes);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(bytes[at], at % 100003 == 0 ? at % 251 + 1 : 0);
        ls_free_aligned(bytes);
    }
}

static void copies_are_equal_and_apart(void **state)
{
    (void)state;
    assert_null(ls_copy_string(NULL));
    char *text = ls_copy_string("conv1");
    assert_string_equal(text, "conv1");
    ls_free(text);
    char *bytes = ls_copy_bytes("a\0b", 3);
    assert_memory_equal(bytes, "a\0b", 4);
    ls_free(bytes);
    char *empty = ls_copy_bytes(NULL, 0);
    assert_string_equal(empty, "");
    ls_free(empty);
}

static void products_that_overflow_are_refused(void **state)
{
    (void)state;
    int64_t product = 7;
    assert_true(ls_multiply(INT64_C(3037000499), INT64_C(3037000499), &product));
    assert_int_equal(product, INT64_C(9223372030926249001));
    assert_false(ls_multiply(INT64_C(1) << 32, INT64_C(1) << 31, &product));
    assert_false(ls_multiply(-1, 5, &product));
    assert_false(ls_multiply(5, -1, &product));
    assert_true(ls_multiply(0, INT64_MAX, &product));
    assert_int_equal(product, 0);
}

static void allocations_are_counted_and_fail_on_demand(void **state)
{
    (void)state;
    uint64_t before = ls_allocations();
    void *a = ls_alloc(1, 1), *b = ls_copy_string("x"), *c = ls_alloc_aligned(1);
    a = ls_resize(a, 2, 1);
    assert_int_equal(ls_allocations() - before, 4);
    ls_free(a);
    ls_free(b);
    ls_free_aligned(c);

    ls_fail_allocation_after(2);
    void *first = ls_alloc(1, 1), *second = ls_alloc(1, 1), *third = ls_alloc(1, 1);
    void *fourth = ls_alloc(1, 1); /* it fails once */
    assert_non_null(first);
    assert_non_null(second);
    assert_null(third);
    assert_non_null(fourth);
    ls_free(first);
    ls_free(second);
    ls_free(fourth);
}

static void growing_keeps_what_is_there(void **state)
{
    (void)state;
    int *items = NULL;
    size_t count = 0, capacity = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(LS_GROW(items, count, capacity));
        assert_true(capacity > count);
        items[count++] = i;
    }
    ls_fail_allocation_after(0);
    count = capacity;
    int *before = items;
    assert_false(LS_GROW(items, count, capacity));
    assert_ptr_equal(items, before);
    assert_int_equal(count, capacity);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    ls_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(memory_is_zeroed_and_checked, teardown),
        cmocka_unit_test_teardown(aligned_memory_is_aligned_and_zeroed, teardown),
        cmocka_unit_test_teardown(large_aligned_memory_is_whole_and_zeroed, teardown),
        cmocka_unit_test_teardown(populating_changes_nothing, teardown),
        cmocka_unit_test_teardown(copies_are_equal_and_apart, teardown),
        cmocka_unit_test_teardown(products_that_overflow_are_refused, teardown),
        cmocka_unit_test_teardown(allocations_are_counted_and_fail_on_demand, teardown),
        cmocka_unit_test_teardown(growing_keeps_what_is_there, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
