/* Guarded views of files; see the header.
 *
 * Guards are in a list that is only ever made longer: a guard that is left is used again. So the
 * handler can walk through it at any moment. Within a handler mmap is no function that POSIX
 * allows; on Linux it is a plain system call.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

struct ls_guard {
    struct ls_guard *next;
    _Atomic uintptr_t begin; /* 0: free */
    _Atomic uintptr_t end;
    _Atomic bool lost;
};

static struct ls_guard *_Atomic guards;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who enter and leave */
static struct sigaction before;
static bool installed;
static uintptr_t page_size;

static struct ls_guard *guard_of(uintptr_t address)
{
    struct ls_guard *guard = atomic_load(&guards);
    while (guard != NULL) {
        uintptr_t begin = atomic_load(&guard->begin);
        if (begin != 0 && address >= begin && address < atomic_load(&guard->end))
            break;
        guard = guard->next;
    }
    return guard;
}

static void hand_on(int number, siginfo_t *info, void *context)
{
    bool sent = info->si_code <= 0;
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else if (before.sa_handler == SIG_IGN && sent) {
        return;
    } else { /* what comes at once again, or was sent, ends the process as it would have */
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(number, &plain, NULL);
        if (sent)
            raise(number);
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    struct ls_guard *guard = info->si_code > 0 ? guard_of(address) : NULL;
    if (guard == NULL) {
        hand_on(number, info, context);
        return;
    }
    uintptr_t page = address & ~(page_size - 1);
    void *zeros = mmap((void *)page, atomic_load(&guard->end) - page, PROT_READ,
                       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (zeros == MAP_FAILED)
        hand_on(number, info, context);
    else
        atomic_store(&guard->lost, true);
}

static void install(void)
{
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    installed = sigaction(SIGBUS, &action, &before) == 0;
}

struct ls_guard *ls_guard_enter(void *view, size_t size)
{
    pthread_mutex_lock(&lock);
    if (!installed)
        install();
    struct ls_guard *guard = atomic_load(&guards);
    while (guard != NULL && atomic_load(&guard->begin) != 0)
        guard = guard->next;
    if (guard == NULL && (guard = ls_alloc(1, sizeof *guard)) != NULL) {
        guard->next = atomic_load(&guards);
        atomic_store(&guards, guard);
    }
    if (guard != NULL) {
        atomic_store(&guard->lost, false);
        atomic_store(&guard->end, (uintptr_t)view + size);
        atomic_store(&guard->begin, (uintptr_t)view);
    }
    pthread_mutex_unlock(&lock);
    return guard;
}

void ls_guard_leave(struct ls_guard *guard)
{
    if (guard == NULL)
        return;
    pthread_mutex_lock(&lock);
    atomic_store(&guard->begin, 0);
    pthread_mutex_unlock(&lock);
}

bool ls_guard_lost(const struct ls_guard *guard)
{
    return guard != NULL && atomic_load(&guard->lost);
}
