/* See grid.h. SPDX-License-Identifier: BSD-2-Clause */
#undef _FORTIFY_SOURCE /* which takes jumps from one stack to another for mistakes */
#include "cuda/grid.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace
{

enum state { RUNNING, AT_BARRIER, IN_EXCHANGE, DONE };

constexpr size_t STACK = 128 << 10;

/* A coroutine, which runs the body of one block after the other; it is begun once. Switches save no
 * signals: that would be most of the time. */
struct thread {
    jmp_buf there;
    bool begun = false;
    state is = DONE;
    uint3 index;
    int line = 0;            /* AT_BARRIER, IN_EXCHANGE: of the source */
    unsigned mask;           /* IN_EXCHANGE: who takes part */
    uint64_t value;          /* what it put */
    uint64_t seen[warpSize]; /* what all of them put */
};

struct block {
    std::deque<thread> threads; /* of this block, and others of larger ones */
    size_t count = 0;           /* of this block */
    const std::function<void()> *body = nullptr;
    const char *name = "";
    jmp_buf scheduler;
    size_t current = 0;
};

block here;
uint64_t state_of_order = 1;

[[noreturn]] void stop(const char *what)
{
    std::fprintf(stderr, "kernel %s, block %u, thread %zu: %s\n", here.name, blockIdx.x,
                 here.current, what);
    std::abort();
}

/* SplitMix64 (Steele, Lea, Flood; 2014). */
uint64_t draw()
{
    uint64_t z = (state_of_order += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void leave(state is, int line)
{
    thread &mine = here.threads[here.current];
    mine.is = is;
    mine.line = line;
    if (_setjmp(mine.there) == 0)
        _longjmp(here.scheduler, 1);
}

void begin_thread()
{
    for (;;) {
        (*here.body)();
        leave(DONE, 0);
    }
}

[[noreturn]] void begin(thread *mine)
{
    ucontext_t context;
    void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        stop("no memory for its threads");
    mine->begun = true;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, begin_thread, 0);
    setcontext(&context);
    stop("its threads cannot be begun");
}

void resume(size_t which)
{
    thread &next = here.threads[which];
    here.current = which;
    threadIdx = next.index;
    if (_setjmp(here.scheduler) != 0)
        return;
    if (next.begun)
        _longjmp(next.there, 1);
    begin(&next);
}

/* Lets the lanes of a warp go on that have all put their values. */
void finish_exchange(size_t which)
{
    const size_t warp = which / warpSize * warpSize;
    const unsigned mask = here.threads[which].mask;
    uint64_t values[warpSize] = {};
    for (int lane = 0; lane < warpSize; lane++) {
        if ((mask >> lane & 1) == 0)
            continue;
        if (warp + (size_t)lane >= here.count)
            continue; /* lanes that the block does not have count as there */
        const thread &other = here.threads[warp + (size_t)lane];
        if (other.is == DONE)
            stop("a lane of its mask has ended");
        if (other.is != IN_EXCHANGE || other.mask != mask)
            return;
        if (other.line != here.threads[which].line)
            stop("lanes of its mask exchange something else, in another line");
        values[lane] = other.value;
    }
    for (int lane = 0; lane < warpSize; lane++)
        if ((mask >> lane & 1) != 0 && warp + (size_t)lane < here.count) {
            thread &other = here.threads[warp + (size_t)lane];
            std::memcpy(other.seen, values, sizeof values);
            other.is = RUNNING;
        }
}

/* Threads that can run; where there are none, those at the barrier are let go on. */
void list_runnable(std::vector<size_t> *list)
{
    size_t waiting = 0, ended = 0;
    list->clear();
    for (size_t i = 0; i < here.count; i++) {
        waiting += here.threads[i].is == AT_BARRIER;
        ended += here.threads[i].is == DONE;
        if (here.threads[i].is == RUNNING)
            list->push_back(i);
    }
    if (!list->empty() || ended == here.count)
        return;
    if (waiting != here.count)
        stop("some threads wait at a barrier or exchange that others do not come to");
    for (size_t i = 0; i < here.count; i++) {
        if (here.threads[i].line != here.threads[0].line)
            stop("threads wait at barriers of different lines");
        here.threads[i].is = RUNNING;
        list->push_back(i);
    }
}

void make_threads(dim3 block)
{
    here.count = (size_t)block.x * block.y * block.z;
    if (here.threads.size() < here.count)
        here.threads.resize(here.count);
    for (size_t i = 0; i < here.count; i++) {
        here.threads[i].is = RUNNING;
        here.threads[i].index = {(unsigned)(i % block.x), (unsigned)(i / block.x % block.y),
                                 (unsigned)(i / block.x / block.y)};
    }
}

void run_block(dim3 block)
{
    std::vector<size_t> runnable;
    make_threads(block);
    for (list_runnable(&runnable); !runnable.empty(); list_runnable(&runnable))
        while (!runnable.empty()) {
            const size_t at = draw() % runnable.size(), which = runnable[at];
            runnable[at] = runnable.back();
            runnable.pop_back();
            resume(which);
            if (here.threads[which].is == IN_EXCHANGE)
                finish_exchange(which);
        }
}

} // namespace

void ls_grid_seed(uint64_t seed)
{
    state_of_order = seed;
}

void ls_grid_run(const char *name, ls_grid_size blocks_of, ls_grid_size threads_of,
                 const std::function<void()> &body)
{
    const dim3 grid(blocks_of.x, blocks_of.y, blocks_of.z);
    const dim3 block(threads_of.x, threads_of.y, threads_of.z);
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    here.body = &body;
    here.name = name;
    gridDim = grid;
    blockDim = block;
    if (blocks == 0 || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535)
        stop("a launch of no blocks, or of more than a card takes along an axis");
    if (block.x * block.y * block.z == 0 || block.x * block.y * block.z > 1024 || block.z > 64)
        stop("a launch of blocks of no threads, or of more than a card takes");
    std::vector<uint64_t> order(blocks);
    for (uint64_t i = 0; i < blocks; i++)
        order[i] = i;
    for (uint64_t i = blocks; i > 1; i--)
        std::swap(order[i - 1], order[draw() % i]);
    for (uint64_t b : order) {
        blockIdx = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                    (unsigned)(b / grid.x / grid.y)};
        run_block(block);
    }
}

void ls_grid_barrier(int line)
{
    leave(AT_BARRIER, line);
}

void ls_grid_gather(unsigned mask, uint64_t value, uint64_t values[warpSize], int line)
{
    thread &mine = here.threads[here.current];
    if ((mask >> ls_grid_lane() & 1) == 0)
        stop("an exchange in which it does not take part itself");
    mine.mask = mask;
    mine.value = value;
    leave(IN_EXCHANGE, line);
    std::memcpy(values, mine.seen, sizeof mine.seen);
}

uint64_t ls_grid_exchange(unsigned mask, uint64_t value, int lane, int line)
{
    uint64_t values[warpSize];
    if ((mask >> lane & 1) == 0)
        stop("an exchange with a lane that does not take part");
    ls_grid_gather(mask, value, values, line);
    return values[lane];
}
