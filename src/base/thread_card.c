/* The card that a thread works with, handed on from each thread to those that it makes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "base/memory.h"
#include "base/thread.h"

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
    struct start *start = ls_alloc(1, sizeof *start);
    if (start == NULL)
        return ENOMEM;
    *start = (struct start){run, argument, card_of_thread};
    const int result = pthread_create(thread, NULL, begin, start);
    if (result != 0)
        ls_free(start);
    return result;
}
