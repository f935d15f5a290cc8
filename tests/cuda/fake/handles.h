/* What CUDA's handles point to, and which there are. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CUDA_FAKE_HANDLES_H
#define LS_TESTS_CUDA_FAKE_HANDLES_H

#include <set>

#include "cuda/fake/inner.h"

struct CUstream_st {
    int card;
    uint64_t number; /* in the order of creation */
    std::deque<fake::work> queue;
    fake::graph *captures; /* NULL: it carries work out */
    uint64_t capture;      /* which one that is */
};

struct CUevent_st {
    int card;
    std::shared_ptr<fake::mark> latest; /* NULL: it was never recorded */
};

namespace fake
{

extern thread_local int chosen_card;
extern thread_local cudaError_t last_error;
extern int cards, driver, old_card;
extern std::vector<bool> used; /* the process has a context on the card */
extern std::set<cudaStream_t> streams;
extern std::set<cudaEvent_t> events;

/* The stream, which there must be. */
cudaStream_t check_stream(const char *who, cudaStream_t stream);
/* Carries out one piece of work, if any may go on. */
void go_on_a_step();
/* A stream is destroyed: what was given to it is carried out some time. */
void part_with(cudaStream_t stream);

} // namespace fake

#endif
