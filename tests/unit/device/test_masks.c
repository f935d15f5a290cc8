/* Clearing what a mask says, bit by bit.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/random.h"
#include "device/plain.h"
#include "ir/mask.h"
#include "support/support.h"

enum { SIZE = 300, WORDS = (SIZE + LS_MASK_WORD - 1) / LS_MASK_WORD };

/* From any element on, any number of them; what is not masked keeps its bits, NaN and -0 too. */
static void masked_numbers_become_zero_and_no_others(void **state)
{
    (void)state;
    static uint32_t mask[WORDS], bits[SIZE], after[SIZE];
    for (uint64_t trial = 0; trial < 400; trial++) {
        uint32_t first = ls_random_below(trial, 1, 0, SIZE);
        uint32_t count = ls_random_below(trial, 2, 0, SIZE - first + 1);
        for (uint64_t i = 0; i < WORDS; i++)
            mask[i] = trial % 3 == 0 ? 0 : ls_random_u32(trial, 3, i) | (trial % 3 == 1 ? ~0U : 0);
        for (uint64_t i = 0; i < SIZE; i++)
            bits[i] = i % 7 == 0 ? 0x80000000 : ls_random_u32(trial, 4, i);
        float numbers[SIZE];
        memcpy(numbers, bits, sizeof bits);
        assert_int_equal(ls_plain_clear_masked(mask, first, numbers + first, count, NULL), 0);
        memcpy(after, numbers, sizeof after);
        for (uint32_t i = 0; i < SIZE; i++) {
            bool cleared = i >= first && i < first + count && ls_mask_get(mask, i);
            if (after[i] != (cleared ? 0 : bits[i]))
                fail_msg("trial %d: element %u is %08x", (int)trial, i, after[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_numbers_become_zero_and_no_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
