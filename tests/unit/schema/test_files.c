/* Definitions in files: text and binary are told apart, unreadable files are refused, real
 * weights are read; and the memory that holds them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schema/binary.h"
#include "schema/places.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"
#include "support/support.h"

#define NET (&lockstep__net_parameter__descriptor)

static void text_and_binary(void **state)
{
    (void)state;
    char text[512], binary[512];
    strcpy(text, ls_test_path("net.prototxt"));
    strcpy(binary, ls_test_path("net.caffemodel"));
    ls_test_write_text(text, "name: 'n\xc3\xa9' layer { name: 'a' }\r\n\t");
    ls_test_write(binary, "\n\003n\303\251\242\006\003\n\001a", 11);
    const char *const paths[] = {text, binary};
    for (size_t i = 0; i < 2; i++) {
        struct ls_error error = {0};
        struct ls_definition *definition;
        char place[LS_PLACE_MAX];
        assert_int_equal(
            ls_definition_read_file(paths[i], NET, LOCKSTEP_DEFINITION, &definition, &error), 0);
        const Lockstep__NetParameter *net = (const Lockstep__NetParameter *)definition->message;
        assert_string_equal(net->name, "n\xc3\xa9");
        assert_string_equal(net->layer[0]->name, "a");
        ls_place(definition, net->layer[0], "name", place, sizeof place);
        if (i == 0)
            assert_string_equal(place + strlen(text), ":1:20");
        else
            assert_string_equal(place, binary); /* bytes have no lines */
        ls_definition_free(definition);
    }
}

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    struct ls_error error = {0};
    struct ls_definition *definition;
    assert_int_equal(ls_definition_read_file(ls_test_path("missing"), NET, LOCKSTEP_WEIGHTS,
                                             &definition, &error),
                     LOCKSTEP_WEIGHTS);
    assert_null(definition);
    assert_int_equal(
        ls_definition_read_file(ls_test_directory(), NET, LOCKSTEP_DATA, &definition, &error),
        LOCKSTEP_DATA);
    const char *path = ls_test_path("damaged");
    ls_test_write(path, "\n\177abc", 5);
    assert_int_equal(ls_definition_read_file(path, NET, LOCKSTEP_WEIGHTS, &definition, &error),
                     LOCKSTEP_WEIGHTS);
    assert_null(definition);
    assert_int_equal(error.count, 3);
}

/* A file may not ask for far more memory than it has bytes: two bytes an empty layer. */
static void memory_is_limited(void **state)
{
    (void)state;
    enum { LAYERS = 1 << 20 };
    uint8_t *bytes = malloc(3 * LAYERS);
    for (size_t i = 0; i < LAYERS; i++)
        memcpy(bytes + 3 * i, "\242\006\000", 3);
    struct ls_error error = {0};
    struct ls_definition *definition;
    assert_int_equal(
        ls_binary_read("f", bytes, 3 * LAYERS, NET, LOCKSTEP_WEIGHTS, &definition, &error),
        LOCKSTEP_WEIGHTS);
    assert_non_null(strstr(error.problems[0].message, "far more memory"));
    free(bytes);
}

/* A zero byte within a text would cut it: "a" and "a", where the file has two names. */
static void texts_have_no_zero_bytes(void **state)
{
    (void)state;
    static const char net[] = "\242\006\005\n\003a\000b";
    struct ls_error error = {0};
    struct ls_definition *definition;
    assert_int_equal(
        ls_binary_read("f", net, sizeof net - 1, NET, LOCKSTEP_WEIGHTS, &definition, &error),
        LOCKSTEP_WEIGHTS);
    assert_null(definition);
    assert_string_equal(error.problems[0].message, "the value of a field 'name' has a zero byte");
}

static void memory_runs_out(void **state)
{
    (void)state;
    static const char net[] = "\n\003net\242\006\003\n\001a\242\006\003\n\001b";
    for (long n = 0;; n++) {
        struct ls_error error = {0};
        struct ls_definition *definition;
        ls_fail_allocation_after(n);
        int status =
            ls_binary_read("f", net, sizeof net - 1, NET, LOCKSTEP_WEIGHTS, &definition, &error);
        ls_fail_allocation_after(-1);
        if (status == 0) {
            ls_definition_free(definition);
            assert_true(n > 3);
            return;
        }
        assert_null(definition);
        assert_int_equal(status, LOCKSTEP_RESOURCE);
    }
}

/* Weights of 2014 (V1 layers) and 2015, a solver's state: read, upgraded, with the right shapes. */
static void real_weights(void **state)
{
    (void)state;
    char old[512], newer[512];
    strcpy(old, ls_test_data_or_skip("caffemodels/bvlc_examples_2014/lenet_iter_10000.caffemodel"));
    strcpy(newer, ls_test_data_or_skip("caffemodels/lenet_2015/lenet_iter_10000.caffemodel"));
    const char *const paths[] = {old, newer};
    for (size_t i = 0; i < 2; i++) {
        struct ls_error error = {0};
        struct ls_definition *definition;
        assert_int_equal(
            ls_definition_read_file(paths[i], NET, LOCKSTEP_WEIGHTS, &definition, &error), 0);
        Lockstep__NetParameter *net = (Lockstep__NetParameter *)definition->message;
        assert_int_equal(ls_net_upgrade(definition, net, &error), 0);
        assert_int_equal(net->n_layers, 0);
        size_t values = 0;
        for (size_t k = 0; k < net->n_layer; k++)
            for (size_t b = 0; b < net->layer[k]->n_blobs; b++)
                values += net->layer[k]->blobs[b]->n_data;
        assert_int_equal(values, 431080); /* LeNet's weights and biases */
        ls_definition_free(definition);
    }
    struct ls_error error = {0};
    struct ls_definition *definition;
    assert_int_equal(
        ls_definition_read_file(
            ls_test_data_or_skip("caffemodels/bvlc_examples_2014/lenet_iter_10000.solverstate"),
            &lockstep__solver_state__descriptor, LOCKSTEP_WEIGHTS, &definition, &error),
        0);
    assert_int_equal(((Lockstep__SolverState *)definition->message)->iter, 10000);
    assert_int_equal(((Lockstep__SolverState *)definition->message)->n_history, 8);
    ls_definition_free(definition);
}

static void arenas(void **state)
{
    (void)state;
    struct ls_arena *arena = ls_arena_new(1 << 20);
    char *small = ls_arena_copy_string(arena, "abc");
    assert_string_equal(small, "abc");
    assert_int_equal((uintptr_t)small % 16, 0);
    assert_true(ls_arena_capacity(small) >= 4);
    for (size_t i = 0; i < 100; i++) { /* returned pieces can be had again */
        char *big = ls_arena_alloc(arena, 1, 900000);
        assert_non_null(big);
        assert_int_equal(big[0] | big[899999], 0);
        memset(big, 1, 900000);
        ls_arena_release(arena, big);
    }
    char *first = ls_arena_alloc(arena, 100000, 1), *second = ls_arena_alloc(arena, 100000, 1);
    char *third = ls_arena_alloc(arena, 100000, 1);
    ls_arena_release(arena, second);
    ls_arena_release(arena, first);
    ls_arena_release(arena, third);
    ls_arena_release(arena, small); /* nothing happens */
    ls_arena_release(arena, NULL);
    assert_string_equal(small, "abc");
    assert_false(ls_arena_limit_hit(arena));
    assert_null(ls_arena_alloc(arena, SIZE_MAX / 2, 3));
    assert_null(ls_arena_alloc(arena, 1, 2 << 20));
    assert_true(ls_arena_limit_hit(arena));
    ls_arena_free(arena);
    ls_arena_free(NULL);
}

static void places(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static int objects[MANY + 3];
    struct ls_places *places = ls_places_new();
    assert_null(ls_places_find(places, &objects[0], 1, 0));
    for (uint32_t i = 0; i < MANY; i++) {
        struct ls_place_entry entry = {&objects[i], i % 5, i % 3, i, 7, NULL};
        assert_true(ls_places_add(places, &entry));
    }
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(ls_places_find(places, &objects[i], i % 5, i % 3)->line, i);
        assert_null(ls_places_find(places, &objects[i], i % 5 + 1, i % 3));
    }
    /* through copies of copies, unless there is a place of its own */
    int *copy = &objects[MANY], *again = &objects[MANY + 1], *other = &objects[MANY + 2];
    assert_true(ls_places_alias(places, copy, &objects[1]));
    assert_true(ls_places_alias(places, again, copy));
    assert_int_equal(ls_places_find(places, again, 1, 1)->line, 1);
    assert_true(ls_places_copy(places, again, 1, 1, other, 9, 0));
    assert_int_equal(ls_places_find(places, other, 9, 0)->line, 1);
    ls_places_forget(places, other, 9, 1);
    assert_null(ls_places_find(places, other, 9, 0));
    assert_true(ls_places_copy(places, again, 1, 1, other, 9, 0));
    assert_non_null(ls_places_find(places, other, 9, 0));
    assert_true(ls_places_alias(places, other, other)); /* no endless search */
    assert_null(ls_places_find(places, other, 77, 0));
    ls_places_free(places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_binary),
        cmocka_unit_test(texts_have_no_zero_bytes),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(real_weights),
        cmocka_unit_test(arenas),
        cmocka_unit_test(places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
