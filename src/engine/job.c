/* A job over the micro-batches of a pass: how it begins, fails and ends, and how their records are
 * merged. See engine/pass.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "engine/pass.h"
#include "transport/comm.h"

void ls_pass_partition(struct ls_pass *pass)
{
    const struct ls_comm *comm = pass->engine->comm;
    for (size_t i = 0; i < pass->wave_count; i++) {
        int slots = 0;
        for (size_t unit = pass->waves[i].begin; unit < pass->waves[i].end; unit++) {
            bool own = pass->units[unit].rank == comm->rank;
            pass->units[unit].slot = own ? slots++ : -1;
        }
    }
}

struct ls_error *ls_pass_error(void)
{
    static _Thread_local struct ls_error error;
    ls_error_clear(&error);
    return &error;
}

void ls_pass_note_failure(struct ls_pass *pass, size_t unit, const struct ls_error *error)
{
    pthread_mutex_lock(&pass->lock);
    if (unit < pass->failed_unit) { /* the first in order is reported, on any number of workers */
        pass->failed_unit = unit;
        pass->failure = *error;
    }
    pthread_mutex_unlock(&pass->lock);
}

void ls_pass_note_broken(struct ls_pass *pass, size_t unit, const struct ls_error *error)
{
    pthread_mutex_lock(&pass->lock);
    if (unit < pass->broken_unit) {
        pass->broken_unit = unit;
        pass->broken = *error;
    }
    pthread_mutex_unlock(&pass->lock);
}

void ls_pass_merge_records(struct ls_pass *pass, size_t begin, size_t end)
{
    size_t n = end - begin;
    for (size_t step = 1; step < n; step *= 2)
        for (size_t i = 0; i + step < n; i += 2 * step) {
            double *into = ls_pass_record(pass, begin + i);
            const double *from = ls_pass_record(pass, begin + i + step);
            for (size_t k = 0; k < pass->record_size; k++)
                into[k] += from[k];
        }
}

void ls_pass_start(struct ls_pass *pass, struct ls_prefetcher *prefetcher, bool training)
{
    pass->prefetcher = prefetcher;
    pass->training = training;
    pass->failed_unit = pass->bad_unit = pass->broken_unit = SIZE_MAX;
    pass->own_count = 0;
    for (size_t unit = 0; unit < pass->unit_count; unit++) {
        pass->owners[unit] = pass->units[unit].rank;
        pass->units[unit].broken = false;
        if (pass->units[unit].slot >= 0)
            pass->own[pass->own_count++] = unit;
    }
    atomic_store(&pass->next, 0);
    memset(pass->records, 0, pass->unit_count * pass->record_stride * sizeof *pass->records);
}

int ls_pass_finish(struct ls_pass *pass, struct ls_error *error)
{
    if (pass->failed_unit == SIZE_MAX && pass->broken_unit != SIZE_MAX)
        ls_pass_note_failure(pass, pass->broken_unit, &pass->broken);
    if (pass->failed_unit != SIZE_MAX) {
        if (error != NULL)
            *error = pass->failure;
        return pass->failure.status;
    }
    size_t bytes = pass->record_stride * sizeof *pass->records;
    return ls_comm_all_gather_items(pass->engine->comm, pass->records, bytes, bytes, pass->owners,
                                    pass->unit_count, error);
}
