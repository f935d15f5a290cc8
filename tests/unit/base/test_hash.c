/* The hash: fixed values (files depend on them), and that it mixes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static void hash_values_never_change(void **state)
{
    (void)state;
    /* SplitMix64 with state 0 yields this finalizer of the golden ratio first. */
    assert_int_equal(ls_mix(UINT64_C(0x9e3779b97f4a7c15)), UINT64_C(0xe220a8397b1dcdaf));
    assert_int_equal(ls_mix(0), 0);
    assert_int_equal(ls_hash("", 0, 0), UINT64_C(0xa706dd2f4d197e6f));
    assert_int_equal(ls_hash_string("conv1.weight", 1), UINT64_C(0x49d8731c322ec706));
}

static void length_and_seed_count(void **state)
{
    (void)state;
    unsigned char zeros[64] = {0};
    uint64_t seen[65 * 2];
    size_t count = 0;
    for (uint64_t seed = 0; seed < 2; seed++) {
        for (size_t length = 0; length <= sizeof zeros; length++)
            seen[count++] = ls_hash(zeros, length, seed);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(seen[i], seen[j]);
    }
    assert_int_equal(ls_hash_string("abc", 5), ls_hash("abc", 3, 5));
}

/* Flipping any input bit flips about half of the output bits. */
static void every_bit_moves_every_bit(void **state)
{
    (void)state;
    unsigned char bytes[13] = "a test vector";
    uint64_t whole = ls_hash(bytes, sizeof bytes, 7);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1U << (bit % 8));
        int flipped = __builtin_popcountll(whole ^ ls_hash(bytes, sizeof bytes, 7));
        assert_in_range(flipped, 12, 52);
        bytes[bit / 8] ^= (unsigned char)(1U << (bit % 8));
    }
}

static void alignment_does_not_matter(void **state)
{
    (void)state;
    char buffer[64];
    uint64_t expected = ls_hash_string("twenty-one characters", 3);
    for (size_t shift = 0; shift < 16; shift++) {
        memcpy(buffer + shift, "twenty-one characters", 21);
        assert_int_equal(ls_hash(buffer + shift, 21, 3), expected);
    }
}

/* Every bit of every lane counts, also pairs of signs (which a product alone would not
 * distinguish), and so do length, seed and order; the alignment of the bytes does not. */
static void every_bit_of_the_wide_hash_counts(void **state)
{
    (void)state;
    enum { WORDS = 83, BYTES = 8 * WORDS + 5 };
    unsigned char bytes[BYTES + 8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37);
    uint64_t whole = ls_hash_wide(bytes, BYTES, 7);
    for (size_t bit = 0; bit < (size_t)8 * BYTES; bit += 3) {
        bytes[bit / 8] ^= (unsigned char)(1U << (bit % 8));
        int flipped = __builtin_popcountll(whole ^ ls_hash_wide(bytes, BYTES, 7));
        assert_in_range(flipped, 8, 56);
        bytes[bit / 8] ^= (unsigned char)(1U << (bit % 8));
    }
    for (size_t i = 7; i < 8 * WORDS; i += 8)
        for (size_t j = 7; j < i; j += 8) {
            bytes[i] ^= 0x80;
            bytes[j] ^= 0x80;
            assert_int_not_equal(ls_hash_wide(bytes, BYTES, 7), whole);
            bytes[i] ^= 0x80;
            bytes[j] ^= 0x80;
        }
    for (size_t length = 0; length < BYTES; length++)
        assert_int_not_equal(ls_hash_wide(bytes, length, 7), whole);
    assert_int_not_equal(ls_hash_wide(bytes, BYTES, 8), whole);
    assert_int_not_equal(ls_hash_wide(bytes + 1, BYTES, 7), whole);
    memmove(bytes + 3, bytes, BYTES);
    assert_int_equal(ls_hash_wide(bytes + 3, BYTES, 7), whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_values_never_change),
        cmocka_unit_test(length_and_seed_count),
        cmocka_unit_test(every_bit_moves_every_bit),
        cmocka_unit_test(alignment_does_not_matter),
        cmocka_unit_test(every_bit_of_the_wide_hash_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
