/* The watch: signs of life between ranks. See transport/watch.h. (The rules come next.)
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/watch.h"

#include <stdio.h>

#include "base/memory.h"

struct ls_watch {
    struct ls_link *link;
};

int ls_watch_create(struct ls_link *link, double timeout, struct ls_watch **watch,
                    struct ls_error *error)
{
    (void)timeout;
    *watch = ls_alloc(1, sizeof **watch);
    if (*watch == NULL)
        return ls_fail_memory(error, "a job");
    (*watch)->link = link;
    return 0;
}

void ls_watch_free(struct ls_watch *watch)
{
    ls_free(watch);
}

void ls_watch_note(struct ls_watch *watch, int64_t iteration, const char *layer)
{
    (void)watch;
    (void)iteration;
    (void)layer;
}

void ls_watch_wait(struct ls_watch *watch, bool waiting)
{
    (void)watch;
    (void)waiting;
}

void ls_watch_turn(struct ls_watch *watch)
{
    (void)watch;
}

bool ls_watch_alarm(const struct ls_watch *watch)
{
    (void)watch;
    return false;
}

int ls_watch_fail(struct ls_watch *watch, struct ls_error *error)
{
    (void)watch;
    return ls_fail(error, LOCKSTEP_LOST, NULL, NULL, "another rank is lost");
}

void ls_watch_give_up(struct ls_watch *watch, int status, const char *text)
{
    fprintf(stderr, "%s\n", text);
    watch->link->calls->abort(watch->link, status);
}
