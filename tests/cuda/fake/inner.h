/* What the files of the fake share. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CUDA_FAKE_INNER_H
#define LS_TESTS_CUDA_FAKE_INNER_H

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace fake
{

/* A place in a stream. */
struct mark {
    bool over = false;
};

/* A piece of work. */
struct work {
    std::string name;
    std::function<cudaError_t()> run;
    std::shared_ptr<mark> after; /* may not begin before it; NULL: at once */
    uint64_t number;             /* in the order of the calls */
};

struct graph {
    std::vector<work> steps; /* in the order of the capture, which is one that it permits */
};

extern std::recursive_mutex lock;

/* Begins each call: its name for messages, and whether it is the one that fails. */
struct call {
    std::lock_guard<std::recursive_mutex> hold;
    bool fails;
    explicit call(const char *name);
};

[[noreturn]] void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t draw();
int current_card();
/* Gives work to a stream, or to the graph that it captures. */
cudaError_t give(cudaStream_t stream, const char *name, std::function<cudaError_t()> run,
                 std::shared_ptr<mark> after = nullptr);
/* Whether what is given to a stream becomes part of a graph. */
bool is_captured(cudaStream_t stream);
/* Carries out work until `enough` says so. */
cudaError_t go_until(const char *who, const std::function<bool()> &enough);

/* The card of a stream, which there must be. */
int card_of(const char *who, cudaStream_t stream);
/* Whether what this thread records permits calls that allocate. */
bool may_allocate();

/* A call that waits for all work of the thread's card: stops where a stream of it is captured. */
void wait_for_card(const char *who);
/* Whether a card has nothing left to do. */
bool is_idle(int card);

/* NCCL: what waits for a call that a rank has not made yet, in words; "": nothing does. */
std::string missing_ranks();
/* Stops where communicators are left. */
void end_nccl();

/* cuBLASLt: stops where handles are left. */
void end_cublaslt();
/* cuDNN: nothing was carried out; stops where handles or descriptors are left. */
void begin_cudnn();
void end_cudnn();

/* Card memory is in reach while one of these lives. */
struct reach {
    reach();
    ~reach();
};
/* Stops unless all these bytes are of one live allocation of a card, and not pinned host memory. */
void check_on_card(const char *who, const void *at, size_t bytes);
/* Stops if any of these bytes is card memory. */
void check_on_host(const char *who, const void *at, size_t bytes);
/* Stops where a border between allocations was written to. */
void check_borders(const char *who);
/* No memory is in use; cards have so many bytes from now on. */
void begin_memory(int cards, size_t bytes);
bool is_broken(int card);
/* Of each card. */
size_t memory_of_card();

} // namespace fake

#endif
