/* Threads: how many are useful, a barrier, a spin lock, the state of the floating-point unit.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_THREAD_H
#define LS_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Cores that this process may use: its affinity mask, and the CPU quota of its control groups
 * (v1 and v2) rounded up; at least 1. */
int ls_cpu_count(void);

/* Those of its affinity mask, as bits: core i is bit i % 64 of mask[i / 64]. */
enum { LS_CPU_WORDS = 16 };
void ls_cpu_mask(uint64_t mask[LS_CPU_WORDS]);

/* Whether that many threads fill the cores of the affinity mask, with no quota below it. Only then
 * should they be pinned: fewer threads, or those of several processes with shares of one machine,
 * would all meet on its first cores while others idle. */
bool ls_fill_cores(int threads);

/* Pins the calling thread to the index-th core of the process's affinity mask (modulo their
 * number). Best effort. */
void ls_pin_thread(int index);
/* Lets the calling thread run on all of them again: a new thread has the mask of its maker, who may
 * be pinned. */
void ls_unpin_thread(void);
/* For work that is not urgent: a batch thread does not push workers off their cores when it wakes
 * up, but gets its fair share. A process that was given another policy keeps it. */
void ls_enter_background(void);

/* Between these the calling thread runs on the first core of its affinity mask, so that what is
 * asked of "the processor" is the same each time where cores differ. Best effort. */
struct ls_core_choice {
    uint64_t mask[LS_CPU_WORDS]; /* what the thread's mask was */
    bool chosen;
};
void ls_choose_first_core(struct ls_core_choice *choice);
void ls_choose_core_again(const struct ls_core_choice *choice);

/* Round to nearest, denormals flushed to zero on input and output: what the numerical contract
 * fixes for every thread that computes. Call first thing in a thread. */
void ls_set_float_mode(void);
/* The calling thread's mode, to be given back to a thread that is not ours. */
uint64_t ls_float_mode(void);
void ls_restore_float_mode(uint64_t mode);

/* A barrier for a fixed number of threads that spins briefly, then sleeps. */
struct ls_barrier {
    _Atomic uint32_t arrived;
    _Atomic uint32_t generation;
    _Atomic uint32_t sleepers;
    uint32_t threads;
    int spins; /* rounds before sleeping; small where there are more threads than cores */
};
void ls_barrier_init(struct ls_barrier *barrier, int threads);
void ls_barrier_wait(struct ls_barrier *barrier);

/* A lock for a few hundred nanoseconds of work; yields under contention. */
struct ls_spin_lock {
    atomic_flag flag;
};
void ls_spin_acquire(struct ls_spin_lock *lock);
void ls_spin_release(struct ls_spin_lock *lock);

/* *largest becomes `value` unless it is as large already; threads may do so in any order. */
void ls_raise_to(_Atomic uint32_t *largest, uint32_t value);
/* *least becomes `value` unless it is as small already. */
void ls_lower_to(_Atomic int *least, int value);

/* The card that the calling thread works with, by number; -1: it was told none. */
int ls_thread_card(void);
void ls_thread_set_card(int card);
/* pthread_create, for threads that work for their maker: a new one has the card of its maker. */
int ls_thread_create(pthread_t *thread, void *(*run)(void *), void *argument);

/* Seconds of a clock that only goes forward; for display and deadlines, never for results. */
double ls_clock(void);
/* The same clock in nanoseconds. */
uint64_t ls_nanoseconds(void);

#endif
