/* The fake as a device that the program loads in place of liblockstep_cuda.so. What cards it has is
 * said by the environment:
 *
 *   LOCKSTEP_FAKE_CARDS=N     how many (1); 0: as without a driver
 *   LOCKSTEP_FAKE_BYTES=B     memory of each (1 GiB)
 *   LOCKSTEP_FAKE_SEED=S      the order of work (0)
 *   LOCKSTEP_FAKE_DRIVER=V    CUDA's version that the driver knows, as 11040; one that is older
 * than the runtime finds no cards LOCKSTEP_FAKE_OLD=CARD    this card is of a kind for which there
 * is no code LOCKSTEP_FAKE_BREAK=C,M   card C stops behind M pieces of work that it was given
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <cstdio>
#include <cstdlib>

#include "cuda/fake/fake.h"

static unsigned long long number(const char *name, unsigned long long otherwise)
{
    const char *text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

static void begin(void)
{
    const char *breaks = std::getenv("LOCKSTEP_FAKE_BREAK");
    int card;
    long pieces;
    fake_set_driver((int)number("LOCKSTEP_FAKE_DRIVER", 0));
    fake_begin((int)number("LOCKSTEP_FAKE_CARDS", 1),
               (std::size_t)number("LOCKSTEP_FAKE_BYTES", 1ull << 30),
               number("LOCKSTEP_FAKE_SEED", 0));
    if (std::getenv("LOCKSTEP_FAKE_OLD") != nullptr)
        fake_set_old((int)number("LOCKSTEP_FAKE_OLD", 0));
    if (breaks != nullptr && std::sscanf(breaks, "%d,%ld", &card, &pieces) == 2)
        fake_break_card_after(card, pieces);
}

/* That of src/ops/cuda/module, which the build calls so here. */
extern "C" const struct ls_device *ls_standin_module(const struct ls_device_program *program,
                                                     char *message, size_t size);
extern "C" __attribute__((visibility("default"))) const struct ls_device *
lockstep_device_module(const struct ls_device_program *program, char *message, size_t size);

const struct ls_device *lockstep_device_module(const struct ls_device_program *program,
                                               char *message, size_t size)
{
    begin();
    return ls_standin_module(program, message, size);
}
