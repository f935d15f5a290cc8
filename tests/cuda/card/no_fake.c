/* Tests that are written for the fake of CUDA's runtime, on a card: there is nothing to begin or to
 * end. SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/fake/fake.h"

void fake_begin(int cards, size_t bytes, uint64_t seed)
{
    (void)cards;
    (void)bytes;
    (void)seed;
}

void fake_end(void)
{
}
