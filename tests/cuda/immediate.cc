/* Launches that run at once, for tests of single kernels. SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/immediate.h"

#include "cuda/grid_run.h"

int ls_grid_launch(const ls_grid_call &call, struct CUstream_st *stream, std::function<void()> body)
{
    (void)stream;
    ls_grid_run(call.name, call.grid, call.block, body);
    return 0;
}

void grid_seed(uint64_t seed)
{
    ls_grid_seed(seed);
}
