/* Sums between ranks: packing in 48 bits, adding and unpacking gives what integers give.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/support.h"
#include "transport/wire.h"

enum { N = 1022 };

/* Numbers of all magnitudes that fit 48 bits, the extremes among them. */
static void fill(int64_t *sums)
{
    const int64_t most = (INT64_C(1) << 47) - 1;
    const int64_t special[] = {0,      1, -1, most, -most - 1, UINT32_MAX, -(int64_t)UINT32_MAX,
                               1 << 16};
    for (int i = 0; i < N; i++) {
        int64_t number = (int64_t)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15)) >> (17 + i % 47);
        sums[i] = i < 8 ? special[i] : number;
    }
}

static void check_width(bool wide)
{
    static int64_t sums[N], here[N];
    static unsigned char packed[8 * N];
    fill(sums);
    assert_true(ls_wire_pack(packed, sums, N, wide));
    assert_int_equal(ls_wire_bytes(N, wide), (wide ? 8 : 6) * N);
    for (int i = 0; i < N; i++)
        here[i] = 3 - 5 * i;
    ls_wire_add(here, packed, N, wide);
    for (int i = 0; i < N; i++)
        assert_int_equal(here[i], sums[i] + 3 - 5 * i);
}

static void packed_sums_add_as_integers_do(void **state)
{
    (void)state;
    check_width(false);
    check_width(true);
}

static void sums_too_large_for_48_bits_need_64(void **state)
{
    (void)state;
    static unsigned char packed[8 * 4];
    const int64_t limit = INT64_C(1) << 47;
    const int64_t too_large[] = {limit, -limit - 1, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        int64_t sums[4] = {0, 0, 0, 0};
        sums[i] = too_large[i];
        assert_false(ls_wire_pack(packed, sums, 4, false));
        assert_true(ls_wire_pack(packed, sums, 4, true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packed_sums_add_as_integers_do),
                                       cmocka_unit_test(sums_too_large_for_48_bits_need_64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
