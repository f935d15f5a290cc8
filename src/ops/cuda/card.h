/* Cards: what the device asks of CUDA's runtime, with its errors in the user's terms.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_CARD_H
#define LS_OPS_CUDA_CARD_H

#include <cuda_runtime_api.h>

#include "device/memory.h"
#include "device/stream.h"

/* 0, or fails with what the card could not do ("allocate 12 bytes") and why. Memory that ran out is
 * LOCKSTEP_RESOURCE, everything else LOCKSTEP_INTERNAL. */
int ls_card_check(int code, const char *what, struct ls_error *error);

enum { LS_CARDS_MAX = 64 };

/* The number of the calling thread's card; negative: the first. It is ls_thread_card; a module with
 * a copy of its own of src/base/ is told another. */
extern int (*ls_card_of_thread)(void);
/* What this thread asks of CUDA is asked of its card from now on. */
int ls_card_enter(struct ls_error *error);

/* Around what a library's caller asks for on a thread of its own, which may use CUDA itself: that
 * thread's card, negative where there is none, and that card again. A card that the process does
 * not use is not given back: the thread stays with the one that it has used here. */
int ls_card_take_thread(void);
void ls_card_give_thread_back(int card);

/* The stream of the calling thread, for work that is over when a function returns; NULL after a
 * message. It ends with the thread. */
cudaStream_t ls_card_own_stream(struct ls_error *error);
/* What a library has on the calling thread's card for it: a place for its handle, NULL until there
 * is one; NULL after a message. */
void **ls_card_own_library(struct ls_error *error);
#if LS_CUDA_HAS_CUDNN
/* Ends such a handle; the stream is the thread's own. */
extern void (*const ls_card_end_library)(void *handle, cudaStream_t stream);
#endif
/* Around calls of libraries that wait for all work of a card, as the ends of their handles do: CUDA
 * permits that in no thread while a stream of the card is captured. Meanwhile no thread records,
 * and the calling thread's card is `card`. The first returns what the second wants. */
int ls_card_hold_recordings(int card);
void ls_card_permit_recordings(int card_before);
/* Ends the stream of the calling thread, as the end of the thread does. */
void ls_card_end_thread(void);
/* Waits for it, if `code`, of the last launch, is no failure; the status of both. */
int ls_card_finish(int code, const char *what, struct ls_error *error);

/* The stream behind one of the engine's; NULL gives the calling thread's own. */
cudaStream_t ls_card_stream(struct ls_stream *stream, struct ls_error *error);

extern const struct ls_device_memory ls_card_memory;
extern const struct ls_device_streams ls_card_streams;
extern const struct ls_device_recordings ls_card_recordings;

#endif
