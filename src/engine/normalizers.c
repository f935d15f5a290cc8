/* The divisors of losses. See engine/normalizers.h.
 *
 * Most follow from the number of samples. Where labels must be counted they are read before the
 * pass, by readers of our own, and the ops that count run alone; labels that depend on learned
 * parameters are counted at a sync point.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/normalizers.h"

#include "base/memory.h"
#include "data/reader.h"
#include "engine/binding.h"
#include "engine/micro_batch.h"
#include "engine/read.h"
#include "transport/comm.h"

static int normalizers_create_for_worker(struct ls_pass *pass, size_t worker,
                                         struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    size_t datasets = (size_t)net->dataset_count;
    for (size_t d = 0; d < datasets; d++)
        LS_TRY(ls_reader_open(net->datasets[d], &pass->readers[worker * datasets + d], error));
    for (int i = 0; i < net->input_count; i++) {
        if (!ls_binding_reads_before(net, i))
            continue;
        void **slot = &pass->before_inputs[worker * (size_t)net->input_count + (size_t)i];
        if ((*slot = ls_alloc_aligned(ls_net_input_bytes(net, i))) == NULL)
            return ls_fail_memory(error, "a pass");
    }
    return 0;
}

int ls_normalizers_create(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    if (!ls_net_first_plan(net)->has_before || !net->options.training)
        return 0;
    size_t workers = (size_t)pass->engine->workers;
    pass->readers = ls_alloc(workers * (size_t)(net->dataset_count + 1), sizeof *pass->readers);
    pass->before_inputs = ls_alloc(workers * (size_t)net->input_count, sizeof(void *));
    if (pass->readers == NULL || pass->before_inputs == NULL)
        return ls_fail_memory(error, "a pass");
    for (size_t w = 0; w < workers; w++)
        LS_TRY(normalizers_create_for_worker(pass, w, error));
    return 0;
}

void ls_normalizers_free(struct ls_pass *pass)
{
    size_t workers = (size_t)pass->engine->workers;
    for (size_t i = 0; pass->readers != NULL && i < workers * (size_t)pass->net->dataset_count; i++)
        ls_reader_close(pass->readers[i]);
    for (size_t i = 0; pass->before_inputs != NULL && i < workers * (size_t)pass->net->input_count;
         i++)
        ls_free_aligned(pass->before_inputs[i]);
    ls_free(pass->readers);
    ls_free(pass->before_inputs);
}

static void normalizers_count_units(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    void **inputs = pass->before_inputs + (size_t)worker * (size_t)pass->net->input_count;
    struct ls_reader *const *readers =
        pass->readers + (size_t)worker * (size_t)pass->net->dataset_count;
    size_t unit;
    while ((unit = ls_scheduler_take(&pass->scheduler)) != SIZE_MAX) {
        const struct ls_unit *what = &pass->units[unit];
        struct ls_error *error = ls_worker_error();
        if (ls_micro_batch_fetch(pass, readers, unit, inputs, error) != 0) {
            ls_read_note_bad(pass, unit, error);
            continue;
        }
        const struct ls_run run = {.inputs = inputs,
                                   .context = {.stream = pass->engine->streams[worker],
                                               .worker = worker,
                                               .micro_batch = (int)unit,
                                               .first_ordinal = what->range.ordinal,
                                               .samples = what->range.count,
                                               .normalizers = pass->normalizers,
                                               .partials = ls_pass_record(pass, unit)}};
        if (ls_binding_run(what->plan, worker, LS_RUN_BEFORE, &run, error) != 0)
            ls_pass_note_failure(pass, unit, error);
    }
}

int ls_normalizers_find(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    if (pass->readers != NULL) {
        ls_pass_begin(pass, NULL, false);
        ls_thread_pool_run(pass->engine->pool, normalizers_count_units, pass);
        LS_TRY(ls_pass_finish(pass, error));
        LS_TRY(ls_read_check(pass, error));
        ls_pass_merge_records(pass, 0, pass->unit_count);
    }
    for (size_t i = 0; i < graph->normalizer_count; i++) {
        const struct ls_normalizer *normalizer = &graph->normalizers[i];
        double count = 0;
        for (size_t u = 0; u < pass->unit_count; u++) { /* images may differ in size */
            const struct ls_normalizer *of = &pass->units[u].plan->plan->graph->normalizers[i];
            count += (double)of->per_sample * (double)of->samples;
        }
        if (normalizer->record_offset >= 0)
            count = pass->records[normalizer->record_offset] * (double)normalizer->each;
        pass->normalizers[i] = normalizer->none ? normalizer->fixed : count > 0 ? count : 1;
    }
    return 0;
}

/* The count of units [begin, begin + n), along the tree that records are merged along. */
static double normalizers_sum_counts(const struct ls_pass *pass, size_t begin, size_t n, int offset)
{
    size_t half = 1;
    if (n == 1)
        return ls_pass_record(pass, begin)[offset];
    while (half * 2 < n)
        half *= 2;
    return normalizers_sum_counts(pass, begin, half, offset) +
           normalizers_sum_counts(pass, begin + half, n - half, offset);
}

int ls_normalizers_share_count(struct ls_pass *pass, int sync, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    double *counts =
        pass->records + graph->normalizers[graph->syncs[sync].normalizer].record_offset;
    return ls_comm_all_gather_items(pass->engine->comm, counts,
                                    pass->record_stride * sizeof *counts, sizeof *counts,
                                    pass->owners, pass->unit_count, error);
}

void ls_normalizers_merge_count(struct ls_pass *pass, int sync)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    int normalizer = graph->syncs[sync].normalizer;
    double count = normalizers_sum_counts(pass, 0, pass->unit_count,
                                          graph->normalizers[normalizer].record_offset) *
                   (double)graph->normalizers[normalizer].each;
    pass->normalizers[normalizer] = count > 0 ? count : 1;
}
