/* Signs of life. See base/progress.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/progress.h"

#include <stddef.h>

static _Thread_local struct {
    void (*heard)(void *user);
    void *user;
} listener;

void ls_progress_hear(void (*heard)(void *user), void *user)
{
    listener.heard = heard;
    listener.user = user;
}

void ls_progress_tell(void)
{
    if (listener.heard != NULL)
        listener.heard(listener.user);
}
