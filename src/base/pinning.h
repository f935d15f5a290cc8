/* Memory of the host that a device copies from and to by itself.
 *
 * Such memory is locked: the system cannot use it for anything else, so it is asked for where
 * copies of each micro-batch begin or end, and there is a bound to it. A device that refuses it,
 * or has none, leaves its callers with memory of ls_alloc_aligned; numbers are the same.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_PINNING_H
#define LS_BASE_PINNING_H

#include <stdbool.h>
#include <stddef.h>

struct ls_pinning {
    /* Memory aligned to 64 bytes whose contents are undefined, or NULL. Any thread may call. */
    void *(*create)(size_t bytes);
    void (*free)(void *memory);
};

enum { LS_PINNED_MOST = 1 << 30 /* bytes that are asked for in one go */ };

/* A block of the host's memory; all zeros: none. */
struct ls_pinned {
    unsigned char *memory;
    const struct ls_pinning *by; /* NULL: it is not pinned */
};
/* Zeroed. `pinning` may be NULL. false: there is no memory of either kind. */
bool ls_pinned_create(struct ls_pinned *block, const struct ls_pinning *pinning, size_t bytes);
void ls_pinned_free(struct ls_pinned *block);

#endif
