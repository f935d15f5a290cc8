/* A fake of the parts of CUDA's runtime that the device calls, for tests without a card.
 *
 * It is as late, as early and as unordered as CUDA permits: work is carried out when a thread waits
 * for it, and with some seeds already when more is given, one piece at a time, of a stream that the
 * seed chooses among those that may go on. Card memory is out of reach of the host, of other cards,
 * and of all once it is freed. A call that uses the runtime wrongly ends the test program with the
 * call's name: memory that is freed or of the wrong side, a host array that is gone or changed
 * before it was copied, work in no stream or of another card, what a capture forbids, graphs whose
 * memory is gone, a kernel that is given an address of the host. Such a program has a mistake that
 * a card may not show. Each call can be made to fail once, as cards do; what failed and was not
 * read is told by the next launch.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CUDA_FAKE_H
#define LS_TESTS_CUDA_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Cards from now on, with so many bytes each; all memory must be freed. 0 cards: as without a
 * driver. The order of work is that of `seed`. */
void fake_begin(int cards, size_t bytes, uint64_t seed);
/* Fails the test where something is left: memory, streams, events, graphs, work. */
void fake_end(void);

/* The call `name` ("cudaMalloc", "a launch") after `after` more of them fails, once. "work": a
 * piece of work breaks its card when it is carried out, long after the call. NULL: none does. */
void fake_fail(const char *name, long after);
bool fake_has_failed(void);
/* How often a call was made since fake_begin. */
long fake_calls(const char *name);
/* Pieces of work that were carried out before an earlier one of another stream: what an order of
 * this seed differs in from the order of the calls. */
long fake_overtaken(void);
/* Bytes of card memory in use, of all cards. */
size_t fake_bytes(void);
/* The most that it was since fake_begin. */
size_t fake_most_bytes(void);
/* What cuDNN has no engine for, in graphs that are made from now on; fake_begin: nothing. */
enum {
    FAKE_CUDNN_ENDS = 1,  /* with bias or ReLU */
    FAKE_CUDNN_MIXED = 2, /* bf16 to fp32 */
    FAKE_CUDNN_BF16 = 4,
    FAKE_CUDNN_ALL = 8
};
void fake_cudnn_lacks(unsigned what);
/* The engine of the plan that was given last; -1: none was since fake_begin. */
long fake_cudnn_engine(void);

/* Whether this process has a context on a card, which takes memory there. */
bool fake_uses_card(int card);

/* The card stops: all that is given to it or waited for fails from now on, as after an illegal
 * address. */
void fake_break_card(int card);
/* The same once it was given so many more pieces of work. */
void fake_break_card_after(int card, long pieces);
/* CUDA's version that the driver knows, as 11040; 0: that of the runtime. An older one finds no
 * cards. */
void fake_set_driver(int version);
/* The card is of a kind for which there is no code. */
void fake_set_old(int card);

#ifdef __cplusplus
}
#endif

#endif
