/* First fit; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/first_fit.h"

#include <string.h>

#include "base/memory.h"

/* The window of each piece. Returns how many there are. */
static uint32_t fit_first(int64_t (*length)(const void *user, size_t index), const void *user,
                          size_t count, int64_t window, uint32_t *window_of)
{
    int64_t left[LS_OPEN_WINDOWS]; /* of the open windows, which are the last `open` ones */
    uint32_t windows = 0, open = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t needed = length(user, i);
        uint32_t at = 0;
        while (at < open && left[at] < needed)
            at++;
        if (at == LS_OPEN_WINDOWS) {
            memmove(left, left + 1, (LS_OPEN_WINDOWS - 1) * sizeof *left);
            at = --open;
        }
        if (at == open) {
            left[open++] = window;
            windows++;
        }
        left[at] -= needed;
        window_of[i] = windows - open + at;
    }
    return windows;
}

/* Lists the pieces of each window: they are counted, so that it is known where each list begins. */
static int list_pieces(struct ls_first_fit *packing, size_t count, const uint32_t *window_of,
                       struct ls_error *error)
{
    const size_t windows = (size_t)packing->windows;
    packing->first = ls_alloc(windows + 2, sizeof *packing->first);
    packing->order = ls_alloc(count, sizeof *packing->order);
    if (packing->first == NULL || packing->order == NULL)
        return ls_fail_memory(error, "the windows of a stream");
    for (size_t i = 0; i < count; i++)
        packing->first[(size_t)window_of[i] + 2]++;
    for (size_t i = 2; i < windows + 2; i++)
        packing->first[i] += packing->first[i - 1];
    for (size_t i = 0; i < count; i++) /* first[v + 1] moves from the begin of v to its end */
        packing->order[packing->first[(size_t)window_of[i] + 1]++] = (uint32_t)i;
    return 0;
}

int ls_first_fit_make(int64_t (*length)(const void *user, size_t index), const void *user,
                      size_t count, int64_t window, struct ls_first_fit *packing,
                      struct ls_error *error)
{
    uint32_t *window_of = ls_alloc(count, sizeof *window_of);
    *packing = (struct ls_first_fit){0};
    if (window_of == NULL)
        return ls_fail_memory(error, "the windows of a stream");
    packing->windows = fit_first(length, user, count, window, window_of);
    int status = list_pieces(packing, count, window_of, error);
    ls_free(window_of);
    return status;
}

void ls_first_fit_free(struct ls_first_fit *packing)
{
    ls_free(packing->first);
    ls_free(packing->order);
    *packing = (struct ls_first_fit){0};
}
