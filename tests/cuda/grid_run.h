/* How grids run on the CPU, for what gives and takes launches; kernels include grid.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CUDA_GRID_RUN_H
#define LS_TESTS_CUDA_GRID_RUN_H

#include <cstddef>
#include <cstdint>
#include <functional>

struct ls_grid_size {
    unsigned x, y, z;
};

/* Orders of threads and blocks from now on. */
void ls_grid_seed(uint64_t seed);
/* Runs a kernel; `name` for messages. */
void ls_grid_run(const char *name, ls_grid_size grid, ls_grid_size block,
                 const std::function<void()> &body);

struct ls_grid_call {
    const char *name;
    ls_grid_size grid, block;
    const void *arguments; /* of the kernel; gaps between them are zero */
    std::size_t bytes;
};

/* Takes a launch, and returns a cudaError_t: tests/cuda/immediate.cc runs it at once, the fake of
 * the runtime when its stream comes to it. */
int ls_grid_launch(const ls_grid_call &call, struct CUstream_st *stream,
                   std::function<void()> body);

#endif
