/* The runs of a sweep: every combination, or what is drawn. See sweep/sweep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "sweep/sweep.h"

enum { DRAWS = 1000 /* attempts at a run that is not there yet */ };

void ls_sweep_free(struct lockstep_sweep *sweep)
{
    if (sweep == NULL)
        return;
    for (size_t i = 0; sweep->sets != NULL && i < sweep->run_count * sweep->axis_count; i++)
        ls_free(sweep->sets[i]);
    for (size_t i = 0; sweep->axes != NULL && i < sweep->axis_count; i++)
        ls_axis_free(&sweep->axes[i]);
    ls_free(sweep->sets);
    ls_free(sweep->axes);
    ls_free(sweep->varied);
    ls_free(sweep);
}

static int read_axes(struct lockstep_sweep *sweep, const struct lockstep_sweep_options *options,
                     struct ls_error *error)
{
    sweep->axes = ls_alloc(options->set_count + 1, sizeof *sweep->axes);
    sweep->varied = ls_alloc(options->set_count + 1, sizeof *sweep->varied);
    if (sweep->axes == NULL || sweep->varied == NULL)
        return ls_fail_memory(error, "a sweep");
    for (size_t i = 0; i < options->set_count; i++) {
        struct ls_axis *axis = &sweep->axes[sweep->axis_count++];
        LS_TRY(ls_axis_read(options->set[i], options->random > 0, axis, error));
        for (size_t k = 0; k < i; k++)
            if (strcmp(axis->name, sweep->axes[k].name) == 0)
                return ls_fail(error, LOCKSTEP_USAGE, options->set[i],
                               "write --set base_lr=0.1,0.05 for several values of one field",
                               "'%.100s' is set twice", axis->name);
        if (ls_axis_varies(axis))
            sweep->varied[sweep->varied_count++] = i;
    }
    return 0;
}

/* How many runs there are. */
static int count_runs(const struct lockstep_sweep *sweep, int64_t random, int64_t *count,
                      struct ls_error *error)
{
    const int64_t limit = LOCKSTEP_SWEEP_LIMIT;
    int64_t all = 1;
    bool endless = false;
    for (size_t i = 0; i < sweep->axis_count; i++) {
        endless = endless || sweep->axes[i].kind != LS_AXIS_LIST;
        if (!endless && !ls_multiply(all, (int64_t)sweep->axes[i].count, &all))
            all = INT64_MAX;
    }
    if (random > 0 && !endless && random > all)
        return ls_fail(error, LOCKSTEP_USAGE, "--random",
                       "without --random all of them are trained",
                       "there are only %lld combinations", (long long)all);
    *count = random > 0 ? random : all;
    if (*count > limit && random > 0)
        return ls_fail(error, LOCKSTEP_USAGE, "--random", NULL, "a sweep has at most %lld runs",
                       (long long)limit);
    if (*count > limit)
        return ls_fail(error, LOCKSTEP_USAGE, "--set",
                       "--random N draws some of them; or give fewer values",
                       "these are %lld combinations, and a sweep has at most %lld runs",
                       (long long)all, (long long)limit);
    return 0;
}

/* Puts "field=value" at its place. `value` is freed. */
static int put(struct lockstep_sweep *sweep, size_t run, size_t axis, char *value,
               struct ls_error *error)
{
    struct ls_text text = {0};
    ls_text_format(&text, "%s=%s", sweep->axes[axis].field, value != NULL ? value : "");
    const bool failed = value == NULL || text.failed;
    ls_free(value);
    if (failed) {
        ls_text_free(&text);
        return ls_fail_memory(error, "a sweep");
    }
    char **place = &sweep->sets[run * sweep->axis_count + axis];
    ls_free(*place);
    *place = text.data;
    return 0;
}

/* A combination by its number. */
static int combine(struct lockstep_sweep *sweep, size_t run, struct ls_error *error)
{
    size_t number = run;
    for (size_t i = sweep->axis_count; i-- > 0;) {
        const struct ls_axis *axis = &sweep->axes[i];
        LS_TRY(put(sweep, run, i, ls_copy_string(axis->values[number % axis->count]), error));
        number /= axis->count;
    }
    return 0;
}

/* Whether an earlier run is the same. */
static bool is_there(const struct lockstep_sweep *sweep, size_t run)
{
    char *const *mine = &sweep->sets[run * sweep->axis_count];
    for (size_t r = 0; r < run; r++) {
        size_t same = 0;
        while (same < sweep->axis_count &&
               strcmp(mine[same], sweep->sets[r * sweep->axis_count + same]) == 0)
            same++;
        if (same == sweep->axis_count)
            return true;
    }
    return false;
}

static int draw(struct lockstep_sweep *sweep, size_t run, uint64_t seed, struct ls_error *error)
{
    for (size_t attempt = 0; attempt < DRAWS; attempt++) {
        for (size_t i = 0; i < sweep->axis_count; i++)
            LS_TRY(put(sweep, run, i, ls_axis_draw(&sweep->axes[i], seed, run, attempt), error));
        if (!is_there(sweep, run))
            return 0;
    }
    return ls_fail(error, LOCKSTEP_USAGE, "--random",
                   "ask for fewer runs, or give wider ranges and more values",
                   "after %zu runs no other one is found", run);
}

static int make_runs(struct lockstep_sweep *sweep, const struct lockstep_sweep_options *options,
                     struct ls_error *error)
{
    int64_t count = 0;
    if (options->random < 0)
        return ls_fail(error, LOCKSTEP_USAGE, "--random", NULL, "a number of runs is not negative");
    LS_TRY(read_axes(sweep, options, error));
    LS_TRY(count_runs(sweep, options->random, &count, error));
    sweep->sets = ls_alloc((size_t)count * sweep->axis_count + 1, sizeof *sweep->sets);
    if (sweep->sets == NULL)
        return ls_fail_memory(error, "a sweep");
    for (size_t run = 0; run < (size_t)count; run++) {
        sweep->run_count = run + 1;
        LS_TRY(options->random > 0 ? draw(sweep, run, options->seed, error)
                                   : combine(sweep, run, error));
    }
    return 0;
}

int ls_sweep_new(const struct lockstep_sweep_options *options, struct lockstep_sweep **out,
                 struct ls_error *error)
{
    *out = NULL;
    struct lockstep_sweep *sweep = ls_alloc(1, sizeof *sweep);
    if (sweep == NULL)
        return ls_fail_memory(error, "a sweep");
    int status = make_runs(sweep, options, error);
    if (status == 0)
        *out = sweep;
    else
        ls_sweep_free(sweep);
    return status;
}
