/* The calling thread. See api/caller.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/caller.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/thread.h"
#include "ops/devices.h"

/* The innermost call that this thread is in; NULL: it is in none (our own tests call the inside).
 */
static _Thread_local struct ls_caller *current;

static void take_over(struct ls_caller *caller)
{
    if (caller == NULL)
        return;
    fegetenv(&caller->floats);
    for (int i = 0; i < LS_DEVICES_MAX; i++) {
        const struct ls_device *device = ls_device_here(i);
        const bool takes = device != NULL && device->take_thread != NULL;
        caller->threads[i] = takes ? device->take_thread() : -1; /* -1: it is loaded later */
    }
    fesetenv(FE_DFL_ENV); /* all of it: the C library rounds numbers of text by it, too */
    for (int i = 0; i < LS_DEVICES_MAX; i++) {
        const struct ls_device *device = ls_device_here(i);
        if (device != NULL && device->enter_thread != NULL)
            device->enter_thread();
    }
}

static void give_back(const struct ls_caller *caller)
{
    if (caller == NULL)
        return;
    for (int i = 0; i < LS_DEVICES_MAX; i++) {
        const struct ls_device *device = ls_device_here(i);
        if (device != NULL && device->give_thread_back != NULL)
            device->give_thread_back(caller->threads[i]);
    }
    fesetenv(&caller->floats);
}

void ls_caller_enter(struct ls_caller *caller)
{
    caller->outer = current;
    caller->card = ls_thread_card();
    current = caller;
    take_over(caller);
}

void ls_caller_leave(struct ls_caller *caller)
{
    give_back(caller);
    ls_thread_set_card(caller->card);
    current = caller->outer;
}

void ls_caller_pause(void)
{
    give_back(current);
}

void ls_caller_go_on(void)
{
    take_over(current);
}

static void event(void *user, const struct lockstep_event *event)
{
    const struct lockstep_callbacks *inner = user;
    ls_caller_pause();
    inner->event(inner->user, event);
    ls_caller_go_on();
}

static enum lockstep_request poll(void *user)
{
    const struct lockstep_callbacks *inner = user;
    ls_caller_pause();
    enum lockstep_request request = inner->poll(inner->user);
    ls_caller_go_on();
    return request;
}

struct lockstep_callbacks ls_caller_callbacks(struct lockstep_callbacks *inner)
{
    return (struct lockstep_callbacks){.user = inner,
                                       .event = inner->event != NULL ? event : NULL,
                                       .poll = inner->poll != NULL ? poll : NULL};
}
