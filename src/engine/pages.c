/* Memory made ready ahead. See engine/pages.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/pages.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/thread.h"

struct ls_pages {
    const struct ls_store *store;
    _Atomic bool ended;
    pthread_t thread;
};

static void *pages_walk(void *argument)
{
    struct ls_pages *pages = argument;
    const struct ls_store *store = pages->store;
    for (size_t i = 0; i < store->set->count && !atomic_load(&pages->ended); i++) {
        const struct ls_parameter_state *slot = &store->slots[i];
        for (int h = 0; h < LS_HISTORY_MAX; h++)
            ls_populate_aligned(slot->history[h]);
        ls_populate_aligned(slot->average);
    }
    return NULL;
}

struct ls_pages *ls_pages_start(const struct ls_store *store)
{
    bool some = false;
    for (size_t i = 0; i < store->set->count; i++)
        for (int h = 0; h < LS_HISTORY_MAX; h++)
            some = some || store->slots[i].history[h] != NULL;
    if (!some || !store->device->memory->host_memory)
        return NULL;
    struct ls_pages *pages = ls_alloc(1, sizeof *pages);
    if (pages == NULL)
        return NULL;
    sigset_t all, before;
    pages->store = store;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that trains */
    const bool started = ls_thread_create(&pages->thread, pages_walk, pages) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        return pages;
    ls_free(pages);
    return NULL;
}

void ls_pages_end(struct ls_pages *pages)
{
    if (pages == NULL)
        return;
    atomic_store(&pages->ended, true);
    pthread_join(pages->thread, NULL);
    ls_free(pages);
}
