/* Memory of a device.
 *
 * A pointer to such memory is an address that host code may store, hand to the device's functions
 * and kernels, and add to; it reads and writes what is there only through the functions here,
 * unless the device says that its memory is the host's.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_MEMORY_H
#define LS_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pinning.h"

struct ls_stream;

struct ls_device_memory {
    /* The device's memory is the host's: host code may read and write what `create` gave, and
     * kernels take any memory of the host that is aligned to 64 bytes. Nothing is copied then. Code
     * that works for other devices copies where this is false (struct ls_mirror does). */
    bool host_memory;
    /* Zeroed memory aligned to 64 bytes, or NULL. Any thread may call these two. */
    void *(*create)(size_t bytes);
    void (*free)(void *memory); /* NULL: nothing to free */
    /* (optional) Bytes that can be allocated now, of a memory that is not the host's: plans fit
     * into them. */
    int (*left)(size_t *bytes, struct ls_error *error);
    /* From the host's memory, to it, and within the device's (no overlap). In the order of the
     * stream, and what is at `host` must stay as it is until the stream has come so far; without a
     * stream (NULL) the copy is over when the function returns. They fail with LOCKSTEP_INTERNAL or
     * LOCKSTEP_RESOURCE. */
    int (*write)(struct ls_stream *stream, void *target, const void *host, size_t bytes,
                 struct ls_error *error);
    int (*read)(struct ls_stream *stream, void *host, const void *source, size_t bytes,
                struct ls_error *error);
    int (*copy)(struct ls_stream *stream, void *target, const void *source, size_t bytes,
                struct ls_error *error);
    int (*zero)(struct ls_stream *stream, void *target, size_t bytes, struct ls_error *error);
    /* (optional) Memory of the host that `write` and `read` are fast with, and that is copied while
     * the host goes on. */
    const struct ls_pinning *pinning;
    /* Exchanges two arrays. It is over when the function returns. */
    int (*swap)(void *a, void *b, size_t bytes, struct ls_error *error);
    /* ls_hash_wide (base/hash.h) of what is there. */
    int (*hash)(const void *memory, size_t bytes, uint64_t seed, uint64_t *hash,
                struct ls_error *error);
};

/* Of devices that compute in the host's memory. */
extern const struct ls_device_memory ls_host_memory;

/* Memory that both see: kernels at `device`, host code at `host`, which is the same where the
 * device's memory is the host's. */
struct ls_mirror {
    const struct ls_device_memory *memory;
    void *device, *host;
};
/* Both are zeroed. LOCKSTEP_RESOURCE says that there is no memory for `what`. ls_mirror_free must
 * be called also where this fails; it does nothing to a mirror that is all zeros. */
int ls_mirror_create(struct ls_mirror *mirror, const struct ls_device_memory *memory, size_t bytes,
                     const char *what, struct ls_error *error);
void ls_mirror_free(struct ls_mirror *mirror);
/* Brings bytes [begin, begin + bytes) to the host, or from there to the device. No work of the
 * device that concerns them is under way. */
int ls_mirror_read(const struct ls_mirror *mirror, size_t begin, size_t bytes,
                   struct ls_error *error);
int ls_mirror_write(const struct ls_mirror *mirror, size_t begin, size_t bytes,
                    struct ls_error *error);

#endif
