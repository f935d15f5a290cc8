/* The host's memory as a device's, and mirrors. See device/memory.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/memory.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

static int host_write(struct ls_stream *stream, void *target, const void *source, size_t bytes,
                      struct ls_error *error)
{
    (void)stream, (void)error;
    if (bytes > 0)
        memcpy(target, source, bytes);
    return 0;
}

static int host_read(struct ls_stream *stream, void *target, const void *source, size_t bytes,
                     struct ls_error *error)
{
    return host_write(stream, target, source, bytes, error);
}

static int host_zero(struct ls_stream *stream, void *target, size_t bytes, struct ls_error *error)
{
    (void)stream, (void)error;
    if (bytes > 0)
        memset(target, 0, bytes);
    return 0;
}

static int host_swap(void *a, void *b, size_t bytes, struct ls_error *error)
{
    unsigned char kept[4096], *x = a, *y = b;
    (void)error;
    for (size_t n; bytes > 0; bytes -= n, x += n, y += n) {
        n = bytes < sizeof kept ? bytes : sizeof kept;
        memcpy(kept, x, n);
        memcpy(x, y, n);
        memcpy(y, kept, n);
    }
    return 0;
}

static int host_hash(const void *memory, size_t bytes, uint64_t seed, uint64_t *hash,
                     struct ls_error *error)
{
    (void)error;
    *hash = ls_hash_wide(memory, bytes, seed);
    return 0;
}

const struct ls_device_memory ls_host_memory = {
    .host_memory = true,
    .create = ls_alloc_aligned,
    .free = ls_free_aligned,
    .write = host_write,
    .read = host_read,
    .copy = host_write,
    .zero = host_zero,
    .swap = host_swap,
    .hash = host_hash,
};

/* ---- Mirrors --------------------------------------------------------------------------------- */

int ls_mirror_create(struct ls_mirror *mirror, const struct ls_device_memory *memory, size_t bytes,
                     const char *what, struct ls_error *error)
{
    *mirror = (struct ls_mirror){.memory = memory, .device = memory->create(bytes)};
    mirror->host = memory->host_memory ? mirror->device : ls_alloc_aligned(bytes);
    return mirror->device != NULL && mirror->host != NULL ? 0 : ls_fail_memory(error, what);
}

void ls_mirror_free(struct ls_mirror *mirror)
{
    if (mirror->memory == NULL)
        return;
    if (!mirror->memory->host_memory)
        ls_free_aligned(mirror->host);
    mirror->memory->free(mirror->device);
    *mirror = (struct ls_mirror){0};
}

int ls_mirror_read(const struct ls_mirror *mirror, size_t begin, size_t bytes,
                   struct ls_error *error)
{
    if (mirror->memory == NULL || mirror->memory->host_memory || bytes == 0)
        return 0;
    return mirror->memory->read(NULL, (unsigned char *)mirror->host + begin,
                                (unsigned char *)mirror->device + begin, bytes, error);
}

int ls_mirror_write(const struct ls_mirror *mirror, size_t begin, size_t bytes,
                    struct ls_error *error)
{
    if (mirror->memory == NULL || mirror->memory->host_memory || bytes == 0)
        return 0;
    return mirror->memory->write(NULL, (unsigned char *)mirror->device + begin,
                                 (unsigned char *)mirror->host + begin, bytes, error);
}
