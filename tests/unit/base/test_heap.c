/* Heaps: elements in order, or taken one by one.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/heap.h"
#include "base/random.h"
#include "support/support.h"

enum { MOST = 40 };

struct element {
    int32_t key, number;
    double weight;
};

/* The larger key first, then the lower number. */
static bool is_before(const void *first, const void *second, const void *user)
{
    const struct element *a = first, *b = second;
    assert_string_equal(user, "user");
    return a->key != b->key ? a->key > b->key : a->number < b->number;
}

static void fill(struct element *elements, int count, uint64_t key)
{
    for (int i = 0; i < count; i++)
        elements[i] = (struct element){.key = (int32_t)ls_random_below(key, 0, (uint64_t)i, 9),
                                       .number = i,
                                       .weight = i / 2.0};
}

static void check_order(const struct element *elements, int count)
{
    bool seen[MOST] = {false};
    for (int i = 0; i < count; i++) {
        assert_false(seen[elements[i].number]);
        seen[elements[i].number] = true;
        assert_true(elements[i].weight == elements[i].number / 2.0);
        if (i > 0)
            assert_true(is_before(&elements[i - 1], &elements[i], "user"));
    }
}

static void sorted_elements_are_in_order(void **state)
{
    (void)state;
    struct element elements[MOST] = {0};
    const struct ls_heap heap = {elements, sizeof elements[0], is_before, "user"};
    for (int count = 0; count <= MOST; count++) {
        fill(elements, count, (uint64_t)count);
        ls_heap_sort(&heap, count);
        check_order(elements, count);
    }
}

static void elements_are_taken_in_order(void **state)
{
    (void)state;
    struct element elements[MOST] = {0}, taken[MOST];
    const struct ls_heap heap = {elements, sizeof elements[0], is_before, "user"};
    for (int count = 1; count <= MOST; count++) {
        fill(elements, count, 100 + (uint64_t)count);
        ls_heap_make(&heap, count);
        for (int i = 0; i < count; i++) {
            taken[i] = elements[0];
            ls_heap_drop(&heap, count - i);
        }
        check_order(taken, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorted_elements_are_in_order),
        cmocka_unit_test(elements_are_taken_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
