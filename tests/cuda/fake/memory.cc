/* Card memory: a range of addresses for each card, which the host cannot touch, handed out from
 * below to above and never twice, with borders in between that show who wrote beyond an end. A card
 * reaches its own memory, and none that was freed.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/fake/fake.h"
#include "cuda/fake/inner.h"

namespace fake
{

namespace
{

constexpr size_t CARDS = 8, RANGE = size_t(16) << 30, PAGE = 4096, BORDER = 256, ALIGNMENT = 256;
constexpr unsigned char BORDER_BYTE = 0xb0, FRESH_BYTE = 0xff; /* fresh floats are NaN */

struct block {
    size_t bytes;
    int card;
};

/* Pages of live blocks that follow each other. */
struct pages {
    char *begin, *end;
};

struct of_card {
    char *base;
    size_t used; /* of the range */
    size_t in_use;
    std::vector<pages> live;
};

char *base;
of_card memory[CARDS];
std::map<uintptr_t, block> live; /* by address */
std::map<uintptr_t, size_t> pinned;
unsigned char border[BORDER];
int cards;
size_t most;    /* of a card */
size_t highest; /* that was in use, of all cards */
int reaching, reaching_card;
const char *reaching_for = "";
struct sigaction before, before_trap;

bool is_in_range(const void *at)
{
    return base != nullptr && (uintptr_t)at - (uintptr_t)base < CARDS * RANGE;
}

/* Says who touched what is out of reach, or not aligned (kernels are built so that they trap then).
 * It runs in a handler of signals, just before the end. */
void tell_touch(int signal, siginfo_t *info, void *context)
{
    char text[300];
    (void)context;
    if (signal == SIGILL && reaching > 0) {
        const int length = std::snprintf(
            text, sizeof text, "the fake of CUDA: %s reads or writes what is not aligned\n",
            reaching_for);
        (void)!write(STDERR_FILENO, text, (size_t)length);
        std::abort();
    }
    if (signal == SIGILL || !is_in_range(info->si_addr)) {
        sigaction(signal, signal == SIGILL ? &before_trap : &before, nullptr);
        return; /* to what is met again */
    }
    const int card = (int)(((uintptr_t)info->si_addr - (uintptr_t)base) / RANGE);
    const int length =
        reaching > 0
            ? std::snprintf(text, sizeof text,
                            "the fake of CUDA: %s of card %d touches %p: memory of card %d, freed, "
                            "or never handed out\n",
                            reaching_for, reaching_card, info->si_addr, card)
            : std::snprintf(text, sizeof text,
                            "the fake of CUDA: the host touches %p, which is memory of card %d\n",
                            info->si_addr, card);
    (void)!write(STDERR_FILENO, text, (size_t)length);
    std::abort();
}

void open_range()
{
    struct sigaction action = {};
    action.sa_sigaction = tell_touch;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    struct sigaction now;
    sigaction(SIGSEGV, nullptr, &now); /* frameworks of tests put theirs back */
    if (now.sa_sigaction != tell_touch) {
        before = now;
        sigaction(SIGSEGV, &action, nullptr);
        sigaction(SIGILL, &action, &before_trap);
    }
    if (base != nullptr)
        return;
    void *range =
        mmap(nullptr, CARDS * RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        stop("no room for the addresses of card memory");
    base = (char *)range;
    for (size_t card = 0; card < CARDS; card++)
        memory[card].base = base + card * RANGE;
    std::memset(border, BORDER_BYTE, sizeof border);
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

/* The pinned memory that an address is in. */
std::map<uintptr_t, size_t>::iterator find_pinned(const void *at)
{
    auto next = pinned.upper_bound((uintptr_t)at);
    if (next == pinned.begin())
        return pinned.end();
    --next;
    return (uintptr_t)at < next->first + next->second ? next : pinned.end();
}

pages pages_of(uintptr_t at, const block &of)
{
    const uintptr_t begin = (at - BORDER) / PAGE * PAGE;
    const uintptr_t end = (at + of.bytes + BORDER + PAGE - 1) / PAGE * PAGE;
    return {(char *)begin, (char *)end};
}

void protect(int card, int protection)
{
    for (int c = 0; c < cards; c++)
        for (const pages &one : memory[c].live)
            if ((card < 0 || card == c) &&
                mprotect(one.begin, (size_t)(one.end - one.begin), protection) != 0)
                stop("the protection of card memory cannot be changed");
}

void add_pages(of_card &of, const pages &one)
{
    if (!of.live.empty() && of.live.back().end == one.begin)
        of.live.back().end = one.end;
    else
        of.live.push_back(one);
}

/* What is freed is never in reach again. */
void take_pages(of_card &of, const pages &one)
{
    for (size_t i = 0; i < of.live.size(); i++) {
        pages &around = of.live[i];
        if (one.begin < around.begin || one.end > around.end)
            continue;
        const pages rest = {one.end, around.end};
        around.end = one.begin;
        if (around.begin == around.end)
            of.live.erase(of.live.begin() + (long)i--);
        if (rest.begin < rest.end)
            of.live.insert(of.live.begin() + (long)i + 1, rest);
        break;
    }
    mprotect(one.begin, (size_t)(one.end - one.begin), PROT_NONE);
    madvise(one.begin, (size_t)(one.end - one.begin), MADV_DONTNEED);
}

} // namespace

reach::reach(int of, const char *who) : card(of)
{
    if (reaching++ > 0)
        stop("%s reaches for card memory while %s does", who, reaching_for);
    reaching_card = of;
    reaching_for = who;
    protect(card, PROT_READ | PROT_WRITE);
}

reach::~reach()
{
    reaching--;
    protect(card, PROT_NONE);
}

void check_on_card(const char *who, const void *at, size_t bytes, int card)
{
    auto found = find(at);
    if (!is_in_range(at))
        stop("%s: %p is no address of a card", who, at);
    if (found == live.end())
        stop("%s: %p was freed, or never handed out", who, at);
    if ((uintptr_t)at + bytes > found->first + found->second.bytes)
        stop("%s: %zu bytes from %p on end behind their allocation of %zu", who, bytes, at,
             found->second.bytes);
    if (card >= 0 && found->second.card != card)
        stop("%s: %p is memory of card %d, and the stream is of card %d", who, at,
             found->second.card, card);
}

void check_on_host(const char *who, const void *at, size_t bytes)
{
    if (is_in_range(at) || is_in_range((const char *)at + bytes))
        stop("%s: %p is an address of a card where one of the host is wanted", who, at);
}

/* Words that are an address of the host where something is. A number of a byte has anything behind
 * it, up to the next word. */
void check_arguments(const char *kernel, const void *arguments, size_t bytes)
{
    const uintptr_t least = uintptr_t(1) << 32, none = uintptr_t(1) << 47;
    for (size_t i = 0; i + sizeof(uintptr_t) <= bytes; i += sizeof(uintptr_t)) {
        uintptr_t word;
        unsigned char there;
        std::memcpy(&word, (const char *)arguments + i, sizeof word);
        if (word < least || word >= none || (word & 0xff) <= 1 || is_in_range((const void *)word))
            continue;
        if (mincore((void *)(word / PAGE * PAGE), PAGE, &there) == 0)
            stop("%s: an argument, %p, is an address of the host", kernel, (void *)word);
    }
}

void check_borders(const char *who, int card)
{
    for (const auto &entry : live)
        if (card < 0 || entry.second.card == card) {
            const char *at = (const char *)entry.first;
            if (std::memcmp(at - BORDER, border, BORDER) != 0 ||
                std::memcmp(at + entry.second.bytes, border, BORDER) != 0)
                stop("%s wrote outside of an allocation of %zu bytes", who, entry.second.bytes);
        }
}

void begin_memory(int count, size_t bytes)
{
    if (!live.empty() || !pinned.empty())
        stop("fake_begin: %zu allocations of card memory and %zu of pinned memory are left",
             live.size(), pinned.size());
    if ((size_t)count > CARDS)
        stop("fake_begin: more than %zu cards", CARDS);
    open_range();
    for (of_card &one : memory) {
        if (one.used > 0)
            madvise(one.base, one.used, MADV_DONTNEED);
        one.used = one.in_use = 0;
        highest = 0;
        one.live.clear();
    }
    cards = count;
    most = bytes;
}

size_t memory_of_card()
{
    return most;
}

static cudaError_t allocate(void **out, size_t bytes)
{
    const int card = current_card();
    of_card &of = memory[card];
    const size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *out = nullptr;
    if (of.in_use + room > most || of.used + room + 2 * (PAGE + BORDER) > RANGE)
        return cudaErrorMemoryAllocation;
    char *at = of.base + of.used + BORDER;
    const block one = {bytes, card};
    const pages its = pages_of((uintptr_t)at, one);
    add_pages(of, its);
    of.used = (size_t)(its.end - of.base);
    of.in_use += room;
    highest = std::max(highest, fake_bytes());
    live[(uintptr_t)at] = one;
    reach here(card, "cudaMalloc");
    std::memcpy(at - BORDER, border, BORDER);
    std::memset(at, FRESH_BYTE, bytes);
    std::memcpy(at + bytes, border, BORDER);
    *out = at;
    return cudaSuccess;
}

} // namespace fake

using namespace fake;

size_t fake_most_bytes(void)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    return highest;
}

size_t fake_bytes(void)
{
    size_t sum = 0;
    for (const of_card &one : memory)
        sum += one.in_use;
    return sum;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    call here("cudaMalloc");
    *out = nullptr;
    if (bytes == 0)
        stop("cudaMalloc of no bytes");
    check_may_allocate("cudaMalloc");
    const int card = current_card();
    const bool fails = here.fails || is_broken(card);
    return ending_with(card, fails ? cudaErrorMemoryAllocation : allocate(out, bytes));
}

/* CUDA's often waits for the card, and is not documented to: so does this one now and then. */
cudaError_t cudaFree(void *memory_of)
{
    call here("cudaFree");
    if (memory_of == nullptr)
        return cudaSuccess;
    if (live.find((uintptr_t)memory_of) == live.end())
        stop("cudaFree: %p is no allocation", memory_of);
    check_may_allocate("cudaFree");
    const int card = live[(uintptr_t)memory_of].card;
    cudaError_t status = cudaSuccess;
    if (draw() % 2 == 0)
        status = go_until("cudaFree", [=]() { return is_idle(card); });
    else
        go_on_a_little();
    auto found = live.find((uintptr_t)memory_of);
    {
        reach now(card, "cudaFree");
        check_borders("some work before cudaFree", card);
    }
    memory[card].in_use -= (found->second.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    take_pages(memory[card], pages_of(found->first, found->second));
    live.erase(found);
    return ending_with(card, status);
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    call here("cudaMallocHost");
    *out = nullptr;
    check_may_allocate("cudaMallocHost");
    if (here.fails || is_broken(current_card()))
        return ending_with(current_card(), cudaErrorMemoryAllocation);
    *out = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (*out == nullptr)
        return failing_with(cudaErrorMemoryAllocation);
    std::memset(*out, FRESH_BYTE, bytes);
    pinned[(uintptr_t)*out] = bytes;
    return cudaSuccess;
}

/* Copies that are under way find that it is gone. */
cudaError_t cudaFreeHost(void *host)
{
    call here("cudaFreeHost");
    if (host == nullptr)
        return cudaSuccess;
    check_may_allocate("cudaFreeHost");
    const cudaError_t status = draw() % 2 == 0 ? go_until("cudaFreeHost", nullptr) : cudaSuccess;
    if (pinned.erase((uintptr_t)host) == 0)
        stop("cudaFreeHost: %p is no pinned memory", host);
    free(host);
    return ending_with(current_card(), status);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    call here("cudaMemGetInfo");
    if (here.fails || is_broken(current_card()))
        return ending_with(current_card(), cudaErrorUnknown);
    *total = most;
    *left = most - memory[current_card()].in_use;
    return cudaSuccess;
}

/* ---- Copies ---- */

/* FNV-1a. */
static uint64_t hash_bytes(const void *at, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)at)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* One side of a copy that is the host's memory. */
struct host_side {
    void *at;
    size_t bytes;
    bool pinned, read;
    std::shared_ptr<uint64_t> hash; /* of what is read, as it is when the copy is given */
};

static host_side host_side_of(const void *at, size_t bytes, bool read)
{
    check_on_host("cudaMemcpyAsync", at, bytes);
    auto block = find_pinned(at);
    if (block != pinned.end() && (uintptr_t)at + bytes > block->first + block->second)
        stop("cudaMemcpyAsync: %zu bytes end behind their pinned memory of %zu", bytes,
             block->second);
    return {(void *)(uintptr_t)at, bytes, block != pinned.end(), read,
            std::make_shared<uint64_t>()};
}

static void check_there(const host_side &side)
{
    if (side.pinned && find_pinned(side.at) == pinned.end())
        stop("a copy of %zu bytes: its pinned memory was freed before it was made", side.bytes);
}

/* Bytes of the host must be those of the call when they are copied, and what is copied to the host
 * is not there before. */
static void begin_host_side(const host_side &side)
{
    check_there(side);
    if (side.read)
        *side.hash = hash_bytes(side.at, side.bytes);
    else
        std::memset(side.at, FRESH_BYTE, side.bytes);
}

static void check_host_side(const host_side &side)
{
    check_there(side);
    if (side.read && hash_bytes(side.at, side.bytes) != *side.hash)
        stop("a copy of %zu bytes of the host, which changed before it was made", side.bytes);
}

static cudaError_t copy_within(void *target, const void *source, size_t bytes, cudaStream_t stream)
{
    const int card = card_of("cudaMemcpyAsync", stream);
    check_on_card("cudaMemcpyAsync", target, bytes, card);
    check_on_card("cudaMemcpyAsync", source, bytes, card);
    if ((uintptr_t)target < (uintptr_t)source + bytes &&
        (uintptr_t)source < (uintptr_t)target + bytes)
        stop("cudaMemcpyAsync: %zu bytes from %p to %p overlap", bytes, source, target);
    return give(stream, "a copy", [=]() {
        check_on_card("a copy", target, bytes, card);
        check_on_card("a copy", source, bytes, card);
        std::memcpy(target, source, bytes);
        return cudaSuccess;
    });
}

/* What a graph copies from or to the host is read or written each time that it is launched, and is
 * pinned: the driver cannot stage pageable memory then. */
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    call here("cudaMemcpyAsync");
    const int card = card_of("cudaMemcpyAsync", stream);
    if (here.fails)
        return ending_with(card, cudaErrorUnknown);
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost &&
        kind != cudaMemcpyDeviceToDevice)
        stop("cudaMemcpyAsync: a kind that nothing here asks for");
    if (kind == cudaMemcpyDeviceToDevice)
        return copy_within(target, source, bytes, stream);
    const bool from_host = kind == cudaMemcpyHostToDevice;
    const void *there = from_host ? target : source;
    check_on_card("cudaMemcpyAsync", there, bytes, card);
    const host_side side = host_side_of(from_host ? source : target, bytes, from_host);
    if (is_captured(stream) && !side.pinned)
        stop("cudaMemcpyAsync: pageable memory of the host in a graph");
    return give(
        stream, "a copy",
        [=]() {
            check_host_side(side);
            check_on_card("a copy", there, bytes, card);
            std::memcpy(target, source, bytes);
            return cudaSuccess;
        },
        nullptr, false, [=]() { begin_host_side(side); });
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t bytes, cudaStream_t stream)
{
    call here("cudaMemsetAsync");
    const int card = card_of("cudaMemsetAsync", stream);
    if (here.fails)
        return ending_with(card, cudaErrorUnknown);
    check_on_card("cudaMemsetAsync", target, bytes, card);
    return give(stream, "a memset", [=]() {
        check_on_card("a memset", target, bytes, card);
        std::memset(target, value, bytes);
        return cudaSuccess;
    });
}
