/* The calling thread. See api/caller.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/caller.h"

#include <stddef.h>

#include "ops/devices.h"

/* The innermost call that this thread is in; NULL: it is in none (our own tests call the inside).
 */
static _Thread_local struct ls_caller *current;

static void take_over(struct ls_caller *caller)
{
    if (caller == NULL)
        return;
    fegetenv(&caller->floats);
    for (int i = 0; i < ls_device_count; i++)
        if (ls_devices[i]->take_thread != NULL)
            caller->threads[i] = ls_devices[i]->take_thread();
    fesetenv(FE_DFL_ENV); /* all of it: the C library rounds numbers of text by it, too */
    for (int i = 0; i < ls_device_count; i++)
        if (ls_devices[i]->enter_thread != NULL)
            ls_devices[i]->enter_thread();
}

static void give_back(const struct ls_caller *caller)
{
    if (caller == NULL)
        return;
    for (int i = 0; i < ls_device_count; i++)
        if (ls_devices[i]->give_thread_back != NULL)
            ls_devices[i]->give_thread_back(caller->threads[i]);
    fesetenv(&caller->floats);
}

void ls_caller_enter(struct ls_caller *caller)
{
    caller->outer = current;
    current = caller;
    take_over(caller);
}

void ls_caller_leave(struct ls_caller *caller)
{
    give_back(caller);
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
