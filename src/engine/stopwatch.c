/* A stopwatch's memory. See engine/stopwatch.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/stopwatch.h"

#include "base/memory.h"

enum { PER_PARAMETER = 3 };

int ls_stopwatch_create(int workers, size_t parameters, struct ls_stopwatch **out,
                        struct ls_error *error)
{
    *out = NULL;
    struct ls_stopwatch *watch = ls_alloc(1, sizeof *watch);
    if (watch == NULL)
        return ls_fail_memory(error, "a stopwatch");
    watch->worker = ls_alloc((size_t)workers, sizeof *watch->worker);
    for (int w = 0; w < workers && watch->worker != NULL; w++) {
        uint64_t *numbers = ls_alloc(PER_PARAMETER * (parameters + 8), sizeof *numbers);
        if (numbers == NULL)
            break;
        watch->worker[w].update = numbers;
        watch->worker[w].product = numbers + parameters;
        watch->worker[w].views = numbers + 2 * parameters;
        watch->workers++;
    }
    if (watch->workers < workers) {
        ls_stopwatch_free(watch);
        return ls_fail_memory(error, "a stopwatch");
    }
    *out = watch;
    return 0;
}

void ls_stopwatch_free(struct ls_stopwatch *watch)
{
    if (watch == NULL)
        return;
    for (int w = 0; w < watch->workers; w++)
        ls_free(watch->worker[w].update);
    ls_free(watch->worker);
    ls_free(watch);
}
