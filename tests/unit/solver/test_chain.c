/* The chain of weight hashes as the note of a snapshot.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/chain.h"
#include "solver/trainer.h"
#include "support/support.h"

static void a_chain_is_read_back_from_its_note(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, UINT64_MAX, UINT64_C(0x0123456789abcdef)};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct ls_chain chain = {.value = values[i], .begin = 40}, again;
        char text[LS_CHAIN_TEXT];
        ls_chain_write(&chain, text);
        assert_int_equal(ls_chain_read(text, 1000, &again), 0);
        assert_true(again.value == values[i]);
        assert_int_equal(again.begin, 40);
        assert_int_equal(again.linked, -1);
        assert_int_equal(ls_chain_read(text, 39, &again), LOCKSTEP_WEIGHTS); /* before it began */
    }
}

static void without_a_note_a_chain_begins_here(void **state)
{
    (void)state;
    struct ls_chain chain;
    assert_int_equal(ls_chain_read(NULL, 77, &chain), 0);
    assert_true(chain.value == 0);
    assert_int_equal(chain.begin, 77);
}

static void damaged_notes_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "0123456789abcdef",
                                        "0123456789abcdef ",
                                        "0123456789abcdef -1",
                                        "0123456789abcdef 1 2",
                                        "0123456789ABCDEF 1",
                                        "123456789abcdef 1",
                                        "0123456789abcdef 01",
                                        "0123456789abcdef 99999999999999999999",
                                        "x"};
    struct ls_chain chain;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(ls_chain_read(texts[i], 1000, &chain), LOCKSTEP_WEIGHTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_chain_is_read_back_from_its_note),
                                       cmocka_unit_test(without_a_note_a_chain_begins_here),
                                       cmocka_unit_test(damaged_notes_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
