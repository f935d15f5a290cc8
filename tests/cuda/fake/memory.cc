/* Card memory: one range of addresses that the host cannot touch, handed out from below to above
 * and never twice, with borders in between that show who wrote beyond an end.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

#include "cuda/fake/fake.h"
#include "cuda/fake/inner.h"

namespace fake
{

namespace
{

constexpr size_t RANGE = size_t(64) << 30, PAGE = 4096, BORDER = 512, ALIGNMENT = 256;
constexpr unsigned char BORDER_BYTE = 0xb0, FRESH_BYTE = 0xff; /* fresh floats are NaN */

struct block {
    size_t bytes;
    int card;
};

char *base;
size_t used;                     /* of the range */
std::map<uintptr_t, block> live; /* by address */
std::map<void *, size_t> pinned;
std::vector<size_t> in_use; /* by card */
size_t most;                /* of a card */
size_t highest;             /* that was in use, of all cards */
int reaching;

void open_range()
{
    if (base != nullptr)
        return;
    void *range =
        mmap(nullptr, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        stop("no room for the addresses of card memory");
    base = (char *)range;
}

bool is_in_range(const void *at)
{
    return base != nullptr && (uintptr_t)at - (uintptr_t)base < RANGE;
}

/* The live block that an address is in. */
std::map<uintptr_t, block>::iterator find(const void *at)
{
    auto next = live.upper_bound((uintptr_t)at);
    if (next == live.begin())
        return live.end();
    --next;
    return (uintptr_t)at < next->first + next->second.bytes ? next : live.end();
}

} // namespace

reach::reach()
{
    if (reaching++ == 0 && used > 0 &&
        mprotect(base, (used + PAGE - 1) / PAGE * PAGE, PROT_READ | PROT_WRITE) != 0)
        stop("card memory cannot be reached");
}

reach::~reach()
{
    if (--reaching == 0 && used > 0)
        mprotect(base, (used + PAGE - 1) / PAGE * PAGE, PROT_NONE);
}

void check_on_card(const char *who, const void *at, size_t bytes)
{
    auto found = find(at);
    if (!is_in_range(at))
        stop("%s: %p is no address of a card", who, at);
    if (found == live.end())
        stop("%s: %p was freed, or never handed out", who, at);
    if ((uintptr_t)at + bytes > found->first + found->second.bytes)
        stop("%s: %zu bytes from %p on end behind their allocation of %zu", who, bytes, at,
             found->second.bytes);
}

void check_on_host(const char *who, const void *at, size_t bytes)
{
    if (is_in_range(at) || is_in_range((const char *)at + bytes))
        stop("%s: %p is an address of a card where one of the host is wanted", who, at);
}

void check_borders(const char *who)
{
    for (const auto &entry : live) {
        const unsigned char *end = (const unsigned char *)entry.first + entry.second.bytes;
        const unsigned char *before = (const unsigned char *)entry.first;
        for (size_t i = 0; i < BORDER / 2; i++)
            if (end[i] != BORDER_BYTE || before[-1 - (long)i] != BORDER_BYTE)
                stop("%s wrote outside of an allocation of %zu bytes", who, entry.second.bytes);
    }
}

void begin_memory(int cards, size_t bytes)
{
    if (!live.empty() || !pinned.empty())
        stop("fake_begin: %zu allocations of card memory and %zu of pinned memory are left",
             live.size(), pinned.size());
    open_range();
    if (used > 0)
        madvise(base, used, MADV_DONTNEED);
    used = 0;
    in_use.assign((size_t)cards, 0);
    most = bytes;
    highest = 0;
}

size_t memory_of_card()
{
    return most;
}

static cudaError_t allocate(void **out, size_t bytes)
{
    const size_t card = (size_t)current_card(), room = (bytes + 255) / 256 * 256;
    *out = nullptr;
    if (in_use[card] + room > most || used + room + 4 * BORDER > RANGE)
        return cudaErrorMemoryAllocation;
    size_t at = (used + BORDER + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    used = at + bytes + BORDER;
    reach here;
    std::memset(base + at - BORDER, BORDER_BYTE, BORDER);
    std::memset(base + at, FRESH_BYTE, bytes);
    std::memset(base + at + bytes, BORDER_BYTE, BORDER);
    *out = base + at;
    live[(uintptr_t)*out] = {bytes, (int)card};
    in_use[card] += room;
    highest = std::max(highest, fake_bytes());
    return cudaSuccess;
}

} // namespace fake

using namespace fake;

size_t fake_bytes(void)
{
    size_t sum = 0;
    for (size_t bytes : in_use)
        sum += bytes;
    return sum;
}

size_t fake_most_bytes(void)
{
    return highest;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    call here("cudaMalloc");
    if (here.fails)
        return cudaErrorMemoryAllocation;
    if (bytes == 0)
        stop("cudaMalloc of no bytes");
    if (!may_allocate())
        stop("cudaMalloc while this thread captures a stream");
    return allocate(out, bytes);
}

/* Waits for the card, as CUDA's does. */
cudaError_t cudaFree(void *memory)
{
    call here("cudaFree");
    if (memory == nullptr)
        return cudaSuccess;
    if (live.find((uintptr_t)memory) == live.end())
        stop("cudaFree: %p is no allocation", memory);
    const int card = live[(uintptr_t)memory].card;
    cudaError_t status = go_until("cudaFree", [=]() { return is_idle(card); });
    auto found = live.find((uintptr_t)memory);
    {
        reach now;
        check_borders("some work before cudaFree");
        std::memset(memory, FRESH_BYTE, found->second.bytes);
    }
    in_use[(size_t)found->second.card] -= (found->second.bytes + 255) / 256 * 256;
    live.erase(found);
    return status;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    call here("cudaMallocHost");
    *out = nullptr;
    if (here.fails)
        return cudaErrorMemoryAllocation;
    *out = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (*out == nullptr)
        return cudaErrorMemoryAllocation;
    std::memset(*out, FRESH_BYTE, bytes);
    pinned[*out] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    call here("cudaFreeHost");
    if (memory == nullptr)
        return cudaSuccess;
    cudaError_t status = go_until("cudaFreeHost", nullptr);
    if (pinned.erase(memory) == 0)
        stop("cudaFreeHost: %p is no pinned memory", memory);
    free(memory);
    return status;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    call here("cudaMemGetInfo");
    if (here.fails)
        return cudaErrorUnknown;
    *total = most;
    *left = most - in_use[(size_t)current_card()];
    return cudaSuccess;
}

/* FNV-1a. */
static uint64_t hash_bytes(const void *at, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)at)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Bytes of the host must be those of the call when they are copied, and what is copied to the host
 * is not there before. A graph copies what there is when it is launched. */
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    call here("cudaMemcpyAsync");
    if (here.fails)
        return cudaErrorUnknown;
    if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice)
        check_on_card("cudaMemcpyAsync", target, bytes);
    else
        check_on_host("cudaMemcpyAsync", target, bytes);
    if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)
        check_on_card("cudaMemcpyAsync", source, bytes);
    else
        check_on_host("cudaMemcpyAsync", source, bytes);
    const bool captured = is_captured(stream), from_host = kind == cudaMemcpyHostToDevice;
    const uint64_t hash = from_host && !captured ? hash_bytes(source, bytes) : 0;
    if (kind == cudaMemcpyDeviceToHost && !captured)
        std::memset(target, FRESH_BYTE, bytes);
    return give(stream, "a copy", [=]() {
        if (from_host && !captured && hash_bytes(source, bytes) != hash)
            stop("a copy of %zu bytes of the host, which changed before it was made", bytes);
        if (kind != cudaMemcpyDeviceToHost)
            check_on_card("a copy", target, bytes);
        if (kind != cudaMemcpyHostToDevice)
            check_on_card("a copy", source, bytes);
        std::memcpy(target, source, bytes);
        return cudaSuccess;
    });
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t bytes, cudaStream_t stream)
{
    call here("cudaMemsetAsync");
    if (here.fails)
        return cudaErrorUnknown;
    check_on_card("cudaMemsetAsync", target, bytes);
    return give(stream, "a memset", [=]() {
        check_on_card("a memset", target, bytes);
        std::memset(target, value, bytes);
        return cudaSuccess;
    });
}
