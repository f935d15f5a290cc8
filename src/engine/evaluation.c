/* Evaluation. See engine/evaluation.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/evaluation.h"

#include <math.h>
#include <string.h>

#include "engine/gather.h"
#include "engine/rankings.h"
#include "engine/read.h"
#include "engine/row_files.h"
#include "engine/run.h"
#include "engine/sample_states.h"

/* Lists the micro-batches of batches [begin, end). */
static int evaluation_prepare(struct ls_pass *pass, int64_t begin, int64_t end, int64_t *samples,
                              struct ls_error *error)
{
    ls_pass_clear(pass);
    for (int64_t b = begin; b < end; b++) {
        struct ls_batch batch;
        int index = 0;
        ls_batching_update(&pass->net->batching, b, &batch);
        LS_TRY(ls_pass_add_batch(pass, &batch, b, &index, error));
        *samples += batch.count;
    }
    LS_TRY(ls_pass_make_ready(pass, error));
    return ls_gather_reserve(pass, error);
}

/* Figures that are no numbers are shown as they are, unless labels are to blame. Of the first loss
 * that is not finite it is found out where that comes from. */
static int evaluation_check_figures(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        for (size_t m = 0; m < graph->metric_count; m++) {
            const struct ls_metric *metric = &graph->metrics[m];
            const double figure = ls_pass_record(pass, unit)[metric->offset];
            if (isfinite(figure) || (!isnan(figure) && metric->loss_weight == 0))
                continue;
            LS_TRY(ls_pass_find_bad_label(pass, &pass->units[unit].range, error));
            if (pass->cause.text[0] == '\0' && metric->loss_weight != 0)
                ls_not_finite_find(pass, unit, &pass->cause);
            break;
        }
    return 0;
}

/* All batches, in groups; what they leave goes to `files`. */
static int evaluation_run_batches(struct ls_pass *pass, struct ls_prefetcher *prefetcher,
                                  int64_t batches, int (*stop)(void *user), void *user,
                                  struct ls_row_files *files, int64_t *samples,
                                  struct ls_error *error)
{
    int64_t at_once = ls_pass_batches(pass->net);
    for (int64_t begin = 0; begin < batches; begin += at_once) {
        if (stop != NULL && stop(user))
            return LOCKSTEP_STOPPED;
        int64_t end = begin + at_once < batches ? begin + at_once : batches;
        LS_TRY(evaluation_prepare(pass, begin, end, samples, error));
        ls_pass_begin(pass, prefetcher, false);
        ls_run_pass(pass);
        LS_TRY(ls_pass_finish(pass, error));
        LS_TRY(ls_read_check(pass, error));
        LS_TRY(evaluation_check_figures(pass, error));
        LS_TRY(ls_sample_states_publish(pass, error));
        ls_row_files_add(files, error);
        ls_read_add_tested(pass);
        LS_TRY(ls_rankings_add(pass, error));
        for (size_t i = 0; i < pass->wave_count; i++) {
            const struct ls_wave *batch = &pass->waves[i];
            ls_pass_merge_records(pass, batch->begin, batch->end);
            for (size_t k = 0; k < pass->record_size; k++)
                pass->total[k] += ls_pass_record(pass, batch->begin)[k];
        }
    }
    return 0;
}

int ls_evaluation_run(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t batches,
                      int (*stop)(void *user), void *user, struct ls_totals *totals,
                      struct ls_error *error)
{
    struct ls_row_files files;
    int64_t samples = 0;
    pass->cause.text[0] = '\0';
    ls_read_begin_test(pass);
    LS_TRY(ls_sample_states_clear(pass->states, error));
    ls_rankings_begin(pass->rankings);
    memset(pass->total, 0, pass->record_size * sizeof *pass->total);
    for (size_t i = 0; i < ls_net_graph(pass->net)->normalizer_count; i++)
        pass->normalizers[i] = 1; /* nothing is divided in a test phase before its end */
    ls_row_files_begin(&files, pass, error);
    int status =
        evaluation_run_batches(pass, prefetcher, batches, stop, user, &files, &samples, error);
    if (status == 0)
        status = ls_rankings_conclude(pass, error);
    if (status == 0)
        status = ls_row_files_write(&files, error);
    ls_row_files_free(&files);
    LS_TRY(status);
    *totals = (struct ls_totals){
        .record = pass->total, .normalizers = pass->normalizers, .samples = samples};
    return 0;
}
