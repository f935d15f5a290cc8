/* Memory that the host cannot read. See remote_device.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainings/remote_device.h"
#include "trainings/remote_parts.h"

/* Far beyond what a process can have: code that follows such an address crashes. */
#define FAR (UINT64_C(1) << 62)

static _Atomic size_t bytes_out;
static _Thread_local int inside;

void remote_enter(void)
{
    inside++;
}

void remote_leave(void)
{
    inside--;
}

size_t remote_bytes(void)
{
    return atomic_load(&bytes_out);
}

void *remote_far(const void *near)
{
    return near != NULL ? (void *)((uintptr_t)near + FAR) : NULL;
}

void *remote_near(const void *address)
{
    uintptr_t place = (uintptr_t)address;
    if (address == NULL)
        return NULL;
    if (place >= FAR)
        return (void *)(place - FAR);
    if (inside == 0) {
        fprintf(stderr, "an address of the host's memory was given to the device\n");
        abort();
    }
    return (void *)place;
}

static void *memory_create(size_t bytes)
{
    size_t *block = remote_call_fails(REMOTE_CREATE) ? NULL : ls_alloc_aligned(bytes + 64);
    if (block == NULL)
        return NULL;
    *block = bytes;
    atomic_fetch_add(&bytes_out, bytes);
    return remote_far((char *)block + 64);
}

static void memory_free(void *memory)
{
    if (memory == NULL)
        return;
    size_t *block = (size_t *)(void *)((char *)remote_near(memory) - 64);
    atomic_fetch_sub(&bytes_out, *block);
    ls_free_aligned(block);
}

static int memory_write(struct ls_stream *stream, void *target, const void *host, size_t bytes,
                        struct ls_error *error)
{
    (void)stream;
    REMOTE_MAY_FAIL(REMOTE_WRITE, error);
    if (bytes > 0)
        memcpy(remote_near(target), host, bytes);
    return 0;
}

static int memory_read(struct ls_stream *stream, void *host, const void *source, size_t bytes,
                       struct ls_error *error)
{
    (void)stream;
    REMOTE_MAY_FAIL(REMOTE_READ, error);
    if (bytes > 0)
        memcpy(host, remote_near(source), bytes);
    return 0;
}

static int memory_copy(struct ls_stream *stream, void *target, const void *source, size_t bytes,
                       struct ls_error *error)
{
    (void)stream;
    REMOTE_MAY_FAIL(REMOTE_COPY, error);
    if (bytes > 0)
        memcpy(remote_near(target), remote_near(source), bytes);
    return 0;
}

static int memory_zero(struct ls_stream *stream, void *target, size_t bytes, struct ls_error *error)
{
    (void)stream;
    REMOTE_MAY_FAIL(REMOTE_ZERO, error);
    if (bytes > 0)
        memset(remote_near(target), 0, bytes);
    return 0;
}

static int memory_swap(void *a, void *b, size_t bytes, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_SWAP, error);
    return ls_host_memory.swap(remote_near(a), remote_near(b), bytes, error);
}

static int memory_hash(const void *memory, size_t bytes, uint64_t seed, uint64_t *hash,
                       struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_HASH, error);
    return ls_host_memory.hash(remote_near(memory), bytes, seed, hash, error);
}

const struct ls_device_memory remote_memory = {
    .create = memory_create,
    .free = memory_free,
    .write = memory_write,
    .read = memory_read,
    .copy = memory_copy,
    .zero = memory_zero,
    .swap = memory_swap,
    .hash = memory_hash,
};
