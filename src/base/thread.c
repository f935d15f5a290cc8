/* Threads: useful cores, pinning, the floating-point state, a barrier and a lock.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cgroup.h"
#include "base/memory.h"

enum {
    SPINS = 4000,       /* pauses before sleeping, tens of microseconds or a few hundred */
    SPINS_CROWDED = 20, /* where a waiting thread only keeps a working one off its core */
    LOCK_SPINS = 100,
};

static cpu_set_t process_cores; /* the mask before anything was pinned */
static pthread_once_t cores_once = PTHREAD_ONCE_INIT;

/* The mask is read once: a thread that was pinned would otherwise see one core. Machines with
 * more cores than a cpu_set_t holds (1024) fall back to the first of them. */
static void read_cores(void)
{
    CPU_ZERO(&process_cores);
    if (sched_getaffinity(0, sizeof process_cores, &process_cores) == 0)
        return;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < online && i < CPU_SETSIZE; i++)
        CPU_SET((size_t)i, &process_cores);
}

int ls_cpu_count(void)
{
    pthread_once(&cores_once, read_cores);
    int count = CPU_COUNT(&process_cores);
    double quota = ceil(ls_cgroup_quota("/proc/self/cgroup", "/proc/self/mountinfo"));
    if (quota > 0 && quota < count)
        count = (int)quota;
    return count > 1 ? count : 1;
}

void ls_cpu_mask(uint64_t mask[LS_CPU_WORDS])
{
    pthread_once(&cores_once, read_cores);
    for (size_t word = 0; word < LS_CPU_WORDS; word++) {
        mask[word] = 0;
        for (size_t bit = 0; bit < 64; bit++)
            if (64 * word + bit < CPU_SETSIZE && CPU_ISSET(64 * word + bit, &process_cores))
                mask[word] |= UINT64_C(1) << bit;
    }
}

bool ls_fill_cores(int threads)
{
    int usable = ls_cpu_count();
    return threads == usable && usable == CPU_COUNT(&process_cores);
}

void ls_pin_thread(int index)
{
    pthread_once(&cores_once, read_cores);
    int cores = CPU_COUNT(&process_cores);
    if (cores < 1 || index < 0)
        return;
    int wanted = index % cores;
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &process_cores) || wanted-- > 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        (void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        return;
    }
}

void ls_unpin_thread(void)
{
    pthread_once(&cores_once, read_cores);
    (void)pthread_setaffinity_np(pthread_self(), sizeof process_cores, &process_cores);
}

void ls_enter_background(void)
{
    struct sched_param parameter;
    int policy;
    if (pthread_getschedparam(pthread_self(), &policy, &parameter) == 0 && policy == SCHED_OTHER)
        (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameter);
}

void ls_choose_first_core(struct ls_core_choice *choice)
{
    cpu_set_t before;
    CPU_ZERO(&before);
    choice->chosen = pthread_getaffinity_np(pthread_self(), sizeof before, &before) == 0;
    if (!choice->chosen)
        return;
    _Static_assert(sizeof before == sizeof choice->mask, "a mask is as large as cpu_set_t");
    memcpy(choice->mask, &before, sizeof before);
    ls_pin_thread(0);
}

void ls_choose_core_again(const struct ls_core_choice *choice)
{
    cpu_set_t before;
    if (!choice->chosen)
        return;
    memcpy(&before, choice->mask, sizeof before);
    (void)pthread_setaffinity_np(pthread_self(), sizeof before, &before);
}

#if defined(__x86_64__)
/* MXCSR: all exceptions masked (0x1f80), round to nearest (bits 13-14 zero), flush results (bit
 * 15) and operands (bit 6) that are denormal. */
void ls_set_float_mode(void)
{
    _mm_setcsr(0x1f80U | 0x8000U | 0x0040U);
}

uint64_t ls_float_mode(void)
{
    return _mm_getcsr();
}

void ls_restore_float_mode(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}

#elif defined(__aarch64__)
/* FPCR: round to nearest (bits 22-23 zero), FZ (bit 24), traps and default NaN off. */
void ls_set_float_mode(void)
{
    ls_restore_float_mode(UINT64_C(1) << 24);
}

uint64_t ls_float_mode(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

void ls_restore_float_mode(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

#else
#error "say how this processor flushes denormals"
#endif

static void pause_briefly(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void ls_barrier_init(struct ls_barrier *barrier, int threads)
{
    atomic_init(&barrier->arrived, 0);
    atomic_init(&barrier->generation, 0);
    atomic_init(&barrier->sleepers, 0);
    barrier->threads = (uint32_t)threads;
    barrier->spins = threads <= ls_cpu_count() ? SPINS : SPINS_CROWDED;
}

/* The last to arrive opens the next generation; the others wait for it. `sleepers` spares the
 * system call where all of them are still spinning: a sleeper counts itself before the kernel
 * compares the generation, the opener changes the generation before it reads the count, and both
 * are sequentially consistent, so that one of them sees the other. */
void ls_barrier_wait(struct ls_barrier *barrier)
{
    uint32_t generation = atomic_load(&barrier->generation);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == barrier->threads) {
        atomic_store(&barrier->arrived, 0);
        atomic_fetch_add(&barrier->generation, 1);
        if (atomic_load(&barrier->sleepers) > 0)
            syscall(SYS_futex, &barrier->generation, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        return;
    }
    for (int i = 0; i < barrier->spins; i++) {
        if (atomic_load(&barrier->generation) != generation)
            return;
        pause_briefly();
    }
    atomic_fetch_add(&barrier->sleepers, 1);
    while (atomic_load(&barrier->generation) == generation)
        syscall(SYS_futex, &barrier->generation, FUTEX_WAIT_PRIVATE, generation, NULL, NULL, 0);
    atomic_fetch_sub(&barrier->sleepers, 1);
}

void ls_spin_acquire(struct ls_spin_lock *lock)
{
    for (int i = 0; atomic_flag_test_and_set_explicit(&lock->flag, memory_order_acquire); i++) {
        if (i < LOCK_SPINS)
            pause_briefly();
        else
            sched_yield(); /* the holder may be waiting for this core */
    }
}

void ls_spin_release(struct ls_spin_lock *lock)
{
    atomic_flag_clear_explicit(&lock->flag, memory_order_release);
}

void ls_raise_to(_Atomic uint32_t *largest, uint32_t value)
{
    uint32_t old = atomic_load_explicit(largest, memory_order_relaxed);
    while (value > old && !atomic_compare_exchange_weak_explicit(
                              largest, &old, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

void ls_lower_to(_Atomic int *least, int value)
{
    int old = atomic_load_explicit(least, memory_order_relaxed);
    while (value < old && !atomic_compare_exchange_weak_explicit(
                              least, &old, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

uint64_t ls_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double ls_clock(void)
{
    return 1e-9 * (double)ls_nanoseconds();
}

/* ---- The card that a thread works with ------------------------------------------------------- */

static _Thread_local int card_of_thread = -1;

int ls_thread_card(void)
{
    return card_of_thread;
}

void ls_thread_set_card(int card)
{
    card_of_thread = card;
}

struct start {
    void *(*run)(void *);
    void *argument;
    int card;
};

static void *begin(void *argument)
{
    const struct start start = *(struct start *)argument;
    ls_free(argument);
    card_of_thread = start.card;
    return start.run(start.argument);
}

int ls_thread_create(pthread_t *thread, void *(*run)(void *), void *argument)
{
    if (card_of_thread < 0) /* there is no card to hand on */
        return pthread_create(thread, NULL, run, argument);
    struct start *start = ls_alloc(1, sizeof *start);
    if (start == NULL)
        return ENOMEM;
    *start = (struct start){run, argument, card_of_thread};
    const int result = pthread_create(thread, NULL, begin, start);
    if (result != 0)
        ls_free(start);
    return result;
}
