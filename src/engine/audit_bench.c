/* Computing micro-batches a second time. See engine/audit_bench.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/audit_bench.h"

#include <string.h>

#include "base/memory.h"
#include "data/reader.h"
#include "engine/micro_batch.h"

/* What a worker needs for itself. */
struct ls_audit_bench {
    struct ls_reader **readers; /* by data set */
    void **inputs;
    double *record;
    struct ls_mirror rows;
};

static int audit_bench_open(const struct ls_pass *pass, struct ls_audit_bench *bench,
                            struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    bench->readers = ls_alloc((size_t)net->dataset_count + 1, sizeof(struct ls_reader *));
    bench->inputs = ls_alloc((size_t)net->input_count + 1, sizeof(void *));
    bench->record = ls_alloc(pass->record_size + pass->list_size + 1, sizeof *bench->record);
    if (bench->readers == NULL || bench->inputs == NULL || bench->record == NULL)
        return ls_fail_memory(error, "audits");
    LS_TRY(ls_mirror_create(&bench->rows, pass->engine->device->memory,
                            pass->exchange->row_doubles * sizeof(double) + 1, "audits", error));
    for (int d = 0; d < net->dataset_count; d++)
        LS_TRY(ls_reader_open(net->datasets[d], &bench->readers[d], error));
    for (int i = 0; i < net->input_count; i++)
        if ((bench->inputs[i] = ls_alloc_aligned(ls_net_input_bytes(net, i))) == NULL)
            return ls_fail_memory(error, "audits");
    return 0;
}

int ls_audit_bench_create(const struct ls_pass *pass, struct ls_audit_bench **benches,
                          struct ls_error *error)
{
    *benches = ls_alloc((size_t)pass->engine->workers, sizeof **benches);
    if (*benches == NULL)
        return ls_fail_memory(error, "audits");
    for (int w = 0; w < pass->engine->workers; w++)
        LS_TRY(audit_bench_open(pass, &(*benches)[w], error));
    return 0;
}

void ls_audit_bench_free(const struct ls_pass *pass, struct ls_audit_bench *benches)
{
    const struct ls_net *net = pass->net;
    for (int w = 0; w < pass->engine->workers && benches != NULL; w++) {
        struct ls_audit_bench *bench = &benches[w];
        for (int d = 0; d < net->dataset_count && bench->readers != NULL; d++)
            ls_reader_close(bench->readers[d]);
        for (int i = 0; i < net->input_count && bench->inputs != NULL; i++)
            ls_free_aligned(bench->inputs[i]);
        ls_free((void *)bench->readers);
        ls_free((void *)bench->inputs);
        ls_free(bench->record);
        ls_mirror_free(&bench->rows);
    }
    ls_free(benches);
}

/* What a micro-batch has at sync points, as the exchange places it. */
static size_t audit_bench_row_doubles(const struct ls_net *net)
{
    const struct ls_graph *graph = ls_net_graph(net);
    size_t doubles = 0;
    for (size_t s = 0; s < graph->sync_count; s++) {
        const struct ls_sync *sync = &graph->syncs[s];
        if (sync->grouping >= 0)
            doubles += (size_t)(ls_exchange_parts(ls_batching_largest(&net->batching),
                                                  graph->groupings[sync->grouping]) *
                                ls_sync_row(sync));
    }
    return doubles;
}

size_t ls_audit_bench_bytes(const struct ls_net *net, int workers)
{
    const struct ls_graph *graph = ls_net_graph(net);
    size_t each =
        ((size_t)graph->record_size + ls_pass_list_size(net) + audit_bench_row_doubles(net)) *
        sizeof(double);
    for (int i = 0; i < net->input_count; i++)
        each += ls_net_input_bytes(net, i);
    return (size_t)workers * each;
}

void ls_audit_bench_compute(struct ls_pass *pass, struct ls_audit_bench *benches, int worker,
                            size_t unit, const struct ls_audit_lines *lines, uint64_t *line)
{
    struct ls_audit_bench *bench = &benches[worker];
    const struct ls_net_plan *plan = pass->units[unit].plan;
    struct ls_error *error = ls_worker_error();
    ls_audit_lines_clear(lines, line);
    memset(bench->record, 0, pass->record_size * sizeof *bench->record);
    if (ls_micro_batch_fetch(pass, bench->readers, unit, bench->inputs, error) != 0) {
        ls_pass_note_failure(pass, unit, error);
        return;
    }
    struct ls_audit_listener listener;
    struct ls_run run =
        ls_micro_batch_prepare_apart(pass, worker, unit, bench->inputs, bench->record);
    ls_exchange_context(pass->exchange, worker, unit, bench->rows.device, &run.context);
    ls_audit_lines_observe(lines, pass->engine->device, &listener, line, &run);
    int segments = (int)plan->plan->segments;
    for (int s = 0; s < segments; s++)
        if (ls_micro_batch_compute(pass, plan, worker, segments > 1 ? s : LS_RUN_ALL, &run,
                                   error) != 0) {
            ls_pass_note_failure(pass, unit, error);
            return;
        }
    if (ls_mirror_read(&bench->rows, 0, pass->exchange->row_doubles * sizeof(double), error) != 0) {
        ls_pass_note_failure(pass, unit, error);
        return;
    }
    ls_audit_lines_add_rest(lines, pass, unit, bench->rows.host, bench->record, line);
    ls_audit_lines_sign(lines, worker, line);
}
