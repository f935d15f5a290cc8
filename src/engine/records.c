/* See engine/records.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/records.h"

#include <string.h>

/* Doubles of a unit there: its record and its lists. */
static size_t records_doubles(const struct ls_pass *pass)
{
    return pass->record_size + pass->list_size;
}

size_t ls_records_bytes(const struct ls_net *net)
{
    const size_t units =
        (size_t)(ls_pass_batches(net) * ls_batching_most(&net->batching, net->batching.batch));
    if (net->options.device->memory->host_memory)
        return 0;
    return units * ((size_t)ls_net_graph(net)->record_size + ls_pass_list_size(net)) *
           sizeof(double);
}

int ls_records_create(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_device_memory *memory = pass->engine->device->memory;
    const size_t bytes = (pass->unit_capacity * records_doubles(pass) + 1) * sizeof(double);
    if (memory->host_memory)
        return 0;
    pass->records_there = memory->create(bytes);
    return pass->records_there != NULL &&
                   ls_pinned_create(&pass->records_read, memory->pinning, bytes)
               ? 0
               : ls_fail_memory(error, "a pass");
}

void ls_records_free(struct ls_pass *pass)
{
    pass->engine->device->memory->free(pass->records_there);
    ls_pinned_free(&pass->records_read);
}

double *ls_records_place(const struct ls_pass *pass, size_t unit)
{
    return pass->records_there + unit * records_doubles(pass);
}

static int records_read(struct ls_pass *pass, size_t first, size_t end, struct ls_error *error)
{
    const size_t doubles = records_doubles(pass), bytes = doubles * sizeof(double);
    double *here = (double *)(void *)pass->records_read.memory;
    LS_TRY(pass->engine->device->memory->read(
        NULL, here + first * doubles, ls_records_place(pass, first), (end - first) * bytes, error));
    for (size_t unit = first; unit < end; unit++)
        if (pass->units[unit].kept && bytes > 0)
            memcpy(ls_pass_record(pass, unit), here + unit * doubles, bytes);
    return 0;
}

int ls_records_fetch(struct ls_pass *pass, struct ls_error *error)
{
    size_t first = 0, end = pass->unit_count;
    while (first < end && !pass->units[first].kept)
        first++;
    while (first < end && !pass->units[end - 1].kept)
        end--;
    return first < end ? records_read(pass, first, end, error) : 0;
}

int ls_records_fetch_unit(struct ls_pass *pass, size_t unit, struct ls_error *error)
{
    return pass->units[unit].kept ? records_read(pass, unit, unit + 1, error) : 0;
}
