/* Which runs of a sweep go on, and how far: successive halving.
 *
 * All runs are trained to the first rung. When each is there the best part goes on to the next one,
 * and so on; a last one goes to its end. Equal figures are in the order of the runs. What is
 * compared are figures at the same number of updates, of runs that all are there: so nothing
 * depends on which of them was there first.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "cli/suggest.h"
#include "cli/sweep.h"

static size_t count_in(const struct ls_sweep *sweep)
{
    size_t count = 0;
    for (size_t i = 0; i < sweep->count; i++)
        count += sweep->runs[i].in;
    return count;
}

int64_t ls_sweep_next_rung(const struct ls_sweep *sweep, const struct ls_sweep_run *run,
                           int64_t rung)
{
    const int64_t factor = sweep->values->factor;
    if (rung > run->end / factor)
        return 0;
    const int64_t next = rung > 0 ? rung * factor : sweep->values->halving;
    return next < run->end ? next : 0;
}

int64_t ls_sweep_target(const struct ls_sweep *sweep, const struct ls_sweep_run *run)
{
    return sweep->rung > 0 && sweep->rung < run->end ? sweep->rung : run->end;
}

bool ls_sweep_is_there(const struct ls_sweep *sweep, const struct ls_sweep_run *run)
{
    if (run->state == LS_SWEEP_RUNNING) /* its log may say so before its snapshot is there */
        return false;
    return run->state == LS_SWEEP_FAILED ||
           ls_sweep_end_at(run, ls_sweep_target(sweep, run)) != NULL;
}

size_t ls_sweep_count_waiting(const struct ls_sweep *sweep)
{
    size_t count = 0;
    for (size_t i = 0; i < sweep->count; i++)
        count += sweep->runs[i].in && sweep->runs[i].state == LS_SWEEP_WAITING &&
                 !ls_sweep_is_there(sweep, &sweep->runs[i]);
    return count;
}

/* ---- The figure that decides ----------------------------------------------------------------- */

/* What is judged by where nothing is said: the first figure of a test of which a larger one is
 * better (an accuracy), its first figure of which a smaller one is, or the loss of the training. */
static const char *choose(const struct ls_sweep_end *end)
{
    for (int better = 1; better >= -1; better -= 2)
        for (size_t i = 0; i < end->count; i++)
            if (strncmp(end->figures[i].name, "test", 4) == 0 && end->figures[i].better == better)
                return end->figures[i].name;
    return "loss";
}

/* "accuracy" means "test/accuracy", where there is no figure of that very name. */
static const char *find(const struct ls_sweep_end *end, const char *metric)
{
    double value;
    char test[200];
    if (ls_sweep_figure_of(end, metric, &value))
        return metric;
    snprintf(test, sizeof test, "test/%s", metric);
    for (size_t i = 0; i < end->count; i++)
        if (strcmp(end->figures[i].name, test) == 0)
            return end->figures[i].name;
    return NULL;
}

static int unknown_metric(const struct ls_sweep_end *end, const char *metric)
{
    const char *names[65];
    char all[1024] = "";
    size_t count = 0;
    for (; count < end->count && count < 64; count++) {
        const size_t used = strlen(all);
        names[count] = end->figures[count].name;
        snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? ", " : "", names[count]);
    }
    names[count] = NULL;
    const char *near = ls_cli_suggest(metric, names);
    return ls_cli_usage_error("sweep: --metric %s: the trainings have no such output. hint: %s%s",
                              metric, near != NULL ? "did you mean " : "there are ",
                              near != NULL ? near : all);
}

int ls_sweep_find_metric(struct ls_sweep *sweep)
{
    const struct ls_sweep_end *end = NULL;
    for (size_t i = 0; i < sweep->count && end == NULL; i++)
        for (size_t k = 0; k < sweep->runs[i].end_count && end == NULL; k++)
            if (sweep->runs[i].ends[k].count > 0)
                end = &sweep->runs[i].ends[k];
    if (end == NULL)
        return 0;
    const char *wanted = sweep->values->metric;
    const char *found = wanted != NULL ? find(end, wanted) : choose(end);
    if (found == NULL)
        return unknown_metric(end, wanted);
    if (sweep->metric != NULL && strcmp(sweep->metric, found) == 0)
        return 0;
    free(sweep->metric);
    sweep->metric = strdup(found);
    if (sweep->metric == NULL)
        return ls_cli_no_memory();
    const char *best = sweep->values->best;
    const struct ls_sweep_figure *figure = ls_sweep_find_figure(end, found);
    const int better = best == NULL               ? (figure != NULL ? figure->better : -1)
                       : strcmp(best, "max") == 0 ? 1
                                                  : -1;
    sweep->larger = better > 0;
    return better != 0 ? 0
                       : ls_cli_usage_error("sweep: --metric %s: whether a larger or a smaller "
                                            "value is better is not known. hint: --best max or "
                                            "--best min",
                                            found);
}

/* ---- The order ------------------------------------------------------------------------------- */

bool ls_sweep_result(const struct ls_sweep *sweep, const struct ls_sweep_run *run, double *value)
{
    const struct ls_sweep_end *last = NULL;
    for (size_t i = 0; i < run->end_count; i++)
        if (run->ends[i].iteration <= run->reached &&
            (last == NULL || run->ends[i].iteration > last->iteration))
            last = &run->ends[i];
    return ls_sweep_figure_of(last, sweep->metric, value);
}

/* Whether a run goes before another one that stands behind it so far: strictly better. */
static bool goes_before(const struct ls_sweep *sweep, const struct ls_sweep_run *a,
                        const struct ls_sweep_run *b)
{
    double first, second;
    if ((a->state == LS_SWEEP_FAILED) != (b->state == LS_SWEEP_FAILED))
        return b->state == LS_SWEEP_FAILED;
    if (a->rungs != b->rungs)
        return a->rungs > b->rungs;
    const bool has = ls_sweep_result(sweep, a, &first), other = ls_sweep_result(sweep, b, &second);
    if (!has || !other)
        return has && !other;
    return sweep->larger ? first > second : first < second;
}

void ls_sweep_order(const struct ls_sweep *sweep, const struct ls_sweep_run **order)
{
    for (size_t i = 0; i < sweep->count; i++) {
        size_t at = i;
        for (; at > 0 && goes_before(sweep, &sweep->runs[i], order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = &sweep->runs[i];
    }
}

/* ---- Rungs ----------------------------------------------------------------------------------- */

/* Those that are there have reached the rung; what a log has beyond it does not count yet. */
static void reach(struct ls_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++) {
        struct ls_sweep_run *run = &sweep->runs[i];
        const int64_t target = ls_sweep_target(sweep, run);
        double value;
        if (!run->in)
            continue;
        const struct ls_sweep_end *end = ls_sweep_end_at(run, target);
        if (end == NULL)
            continue; /* it has failed on the way */
        run->reached = target;
        if (!ls_sweep_figure_of(end, sweep->metric, &value)) {
            char text[256];
            snprintf(text, sizeof text, "%s after %lld updates is no finite number",
                     sweep->metric != NULL ? sweep->metric : "the loss", (long long)target);
            ls_sweep_fail(run, LOCKSTEP_DIVERGED, text);
        } else if (target == run->end) {
            run->state = LS_SWEEP_DONE;
        }
    }
}

/* The best `keep` of those that are in stay so. */
static int keep_best(struct ls_sweep *sweep, size_t keep)
{
    const struct ls_sweep_run **order = calloc(sweep->count, sizeof *order);
    if (order == NULL)
        return ls_cli_no_memory();
    ls_sweep_order(sweep, order);
    size_t kept = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        struct ls_sweep_run *run = &sweep->runs[order[i] - sweep->runs];
        if (!run->in)
            continue;
        run->in = run->state != LS_SWEEP_FAILED && kept < keep;
        kept += run->in;
        if (!run->in && run->state != LS_SWEEP_FAILED && run->state != LS_SWEEP_DONE)
            run->state = LS_SWEEP_STOPPED;
    }
    for (size_t i = 0; i < sweep->count; i++)
        sweep->runs[i].rungs += sweep->runs[i].in;
    free(order);
    return 0;
}

int ls_sweep_decide(struct ls_sweep *sweep, bool *decided, bool *finished)
{
    bool all = true;
    *decided = *finished = false;
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->runs[i].in && !ls_sweep_is_there(sweep, &sweep->runs[i]))
            return 0;
    int status = ls_sweep_find_metric(sweep);
    if (status != 0)
        return status;
    reach(sweep);
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->runs[i].in && sweep->runs[i].state != LS_SWEEP_FAILED)
            all = all && sweep->runs[i].state == LS_SWEEP_DONE;
    *finished = all;
    if (all)
        return 0;
    const size_t in = count_in(sweep), keep = in / (size_t)sweep->values->factor;
    status = keep_best(sweep, keep > 0 ? keep : 1);
    *decided = true;
    sweep->rung = count_in(sweep) <= 1 ? 0 : sweep->rung * sweep->values->factor;
    return status;
}
