/* First fit: which window each of some pieces goes into, where several share one.
 *
 * Pieces are taken in their order, and each goes into the first of the open windows that has room.
 * Where none has, another window is opened; LS_OPEN_WINDOWS are open at most, and the oldest is
 * closed before. Windows are numbered as they are opened. So what a window holds follows from the
 * lengths alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_FIRST_FIT_H
#define LS_DATA_FIRST_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LS_OPEN_WINDOWS = 64 };

/* Window i has the pieces order[first[i]] to order[first[i + 1] - 1], in their order. */
struct ls_first_fit {
    uint32_t *first, *order; /* owned; NULL: nothing is packed */
    int64_t windows;
};

/* Packs `count` pieces, at most UINT32_MAX, of which none is longer than a window. */
int ls_first_fit_make(int64_t (*length)(const void *user, size_t index), const void *user,
                      size_t count, int64_t window, struct ls_first_fit *packing,
                      struct ls_error *error);
void ls_first_fit_free(struct ls_first_fit *packing);

#endif
