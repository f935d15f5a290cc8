/* Cards that can compute. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_CARDS_H
#define LOCKSTEP_CARDS_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NVIDIA's cards. `device` of options names those that compute: "cuda" is card 0, "cuda:2" card 2,
 * "cuda:0,1" a rank of this process for each of two, "cuda:0,0" two ranks on one card, "cuda:all"
 * all of them. In a job each process gets one of the list, by its number on its machine. What does
 * not train computes on one card. The device is a module that is loaded when one of these, or the
 * functions below, ask for it: docs/gpu.md. */
struct lockstep_card {
    const char *name, *uuid;
    uint64_t memory;  /* bytes in all */
    int major, minor; /* the compute capability */
    int multiprocessors;
    int runs; /* there is code of Lockstep's for it */
};
struct lockstep_cards;

/* LOCKSTEP_RESOURCE where there is no module, no driver that is new enough, or no card. */
LOCKSTEP_API int lockstep_cards_find(struct lockstep_cards **cards, struct lockstep_error *error);
LOCKSTEP_API void lockstep_cards_free(struct lockstep_cards *cards);
/* Fails where a list, as "0,1" or "all", is none, or names a card that is not there. */
LOCKSTEP_API int lockstep_cards_check(const struct lockstep_cards *cards, const char *list,
                                      struct lockstep_error *error);
LOCKSTEP_API size_t lockstep_cards_count(const struct lockstep_cards *cards);
/* NULL where there is no card `index`. */
LOCKSTEP_API const struct lockstep_card *lockstep_cards_get(const struct lockstep_cards *cards,
                                                            size_t index);
/* Lines "key=value": versions of the driver, the runtime, cuDNN, cuBLASLt and NCCL. */
LOCKSTEP_API const char *lockstep_cards_libraries(const struct lockstep_cards *cards);
/* A sentence: on what the device was tested. */
LOCKSTEP_API const char *lockstep_cards_tested(const struct lockstep_cards *cards);

#ifdef __cplusplus
}
#endif
#endif
