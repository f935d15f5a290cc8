/* A profiler's memory. See engine/profiler.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/profiler.h"

#include "base/memory.h"

enum { PER_PARAMETER = 3 };

int ls_profiler_create(int workers, size_t parameters, struct ls_profiler **out,
                       struct ls_error *error)
{
    *out = NULL;
    struct ls_profiler *profiler = ls_alloc(1, sizeof *profiler);
    if (profiler == NULL)
        return ls_fail_memory(error, "a profiler");
    profiler->worker = ls_alloc((size_t)workers, sizeof *profiler->worker);
    for (int w = 0; w < workers && profiler->worker != NULL; w++) {
        uint64_t *numbers = ls_alloc(PER_PARAMETER * (parameters + 8), sizeof *numbers);
        if (numbers == NULL)
            break;
        profiler->worker[w].update = numbers;
        profiler->worker[w].product = numbers + parameters;
        profiler->worker[w].views = numbers + 2 * parameters;
        profiler->workers++;
    }
    if (profiler->workers < workers) {
        ls_profiler_free(profiler);
        return ls_fail_memory(error, "a profiler");
    }
    *out = profiler;
    return 0;
}

void ls_profiler_free(struct ls_profiler *profiler)
{
    if (profiler == NULL)
        return;
    for (int w = 0; w < profiler->workers && profiler->worker != NULL; w++)
        ls_free(profiler->worker[w].update);
    ls_free(profiler->worker);
    ls_free(profiler);
}
