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
    uint64_t capture = 0; /* of a stream that was captured: which one */
};

/* A piece of work. */
struct work {
    std::string name;
    std::function<cudaError_t()> run;
    std::shared_ptr<mark> after; /* may not begin before it; NULL: at once */
    uint64_t number;             /* in the order of the calls */
    bool everywhere;             /* it is of several cards: exchanges are */
    std::function<void()> given; /* when it is given to a stream; of a graph: each time */
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

/* What a call that fails returns: it is the thread's last error, too, which the next launch is
 * blamed for, unless it is read. */
cudaError_t failing_with(cudaError_t error);
/* The same of a call on a card; on one that is broken every call fails, and goes on failing. */
cudaError_t ending_with(int card, cudaError_t error);

[[noreturn]] void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t draw();
int current_card();
/* The card of a stream, which there must be. */
int card_of(const char *who, cudaStream_t stream);
/* Gives work to a stream, or to the graph that it captures. */
cudaError_t give(cudaStream_t stream, const char *name, std::function<cudaError_t()> run,
                 std::shared_ptr<mark> after = nullptr, bool everywhere = false,
                 std::function<void()> given = nullptr);
/* Whether what is given to a stream becomes part of a graph. */
bool is_captured(cudaStream_t stream);
/* Whether what this thread records permits calls that allocate or wait for a whole card. */
bool may_allocate();
/* Stops where it does not. */
void check_may_allocate(const char *who);
/* Carries out work until `enough` says so. */
cudaError_t go_until(const char *who, const std::function<bool()> &enough);
/* Carries out some work, or none: it goes on while the host does something else. */
void go_on_a_little();

/* A call that waits for all work of the thread's card: stops where a stream of it is captured. */
void wait_for_card(const char *who);
/* Whether a card has nothing left to do. */
bool is_idle(int card);

/* Graphs: stops where some are left. */
void end_graphs();

/* NCCL: what waits for a call that a rank has not made yet, in words; "": nothing does. */
std::string missing_ranks();
/* Stops where communicators are left. */
void end_nccl();

/* cuBLASLt: stops where handles are left. */
void end_cublaslt();
/* cuDNN: nothing was carried out; stops where handles or descriptors are left. */
void begin_cudnn();
void end_cudnn();

/* Memory of a card, or of all cards (-1), is in reach while one of these lives: for `who`. */
struct reach {
    int card;
    reach(int card, const char *who);
    ~reach();
};
/* Stops unless all these bytes are of one live allocation of a card (-1: of any), and not pinned
 * host memory. */
void check_on_card(const char *who, const void *at, size_t bytes, int card = -1);
/* Stops if any of these bytes is card memory. */
void check_on_host(const char *who, const void *at, size_t bytes);
/* Stops where one of a kernel's arguments is an address of the host. */
void check_arguments(const char *kernel, const void *arguments, size_t bytes);
/* Stops where a border between allocations of a card (-1: of all) was written to. */
void check_borders(const char *who, int card);
/* No memory is in use; cards have so many bytes from now on. */
void begin_memory(int cards, size_t bytes);
bool is_broken(int card);
void break_card(int card);
/* Of each card. */
size_t memory_of_card();

} // namespace fake

#endif
