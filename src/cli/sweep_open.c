/* A sweep before it begins: its runs, its folder, and what an earlier one has left there.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output_file.h"
#include "cli/report.h"
#include "cli/sweep.h"

enum { NAME_MAX_COLUMNS = 100, LOCK_SECONDS = 20 };

/* ---- Names ----------------------------------------------------------------------------------- */

/* "base_lr=0.1 batch=64", with `between` between them. To be freed; NULL: no memory. */
static char *join(const struct ls_sweep *sweep, size_t run, char between)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    const size_t fields = lockstep_sweep_field_count(sweep->plan);
    for (size_t f = 0; f < fields; f++) {
        if (f > 0)
            putc(between, out);
        fprintf(out, "%s=%s", lockstep_sweep_field(sweep->plan, f),
                lockstep_sweep_value(sweep->plan, run, f));
    }
    if (fields == 0)
        fputs("run", out);
    return fclose(out) == 0 ? text : NULL;
}

/* FNV-1a. */
static unsigned long long hash_of(const char *text)
{
    unsigned long long hash = 0xcbf29ce484222325;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

/* A folder is named by what its run sets, so that a sweep with more values finds the runs of an
 * earlier one; where that would be no good name, by a hash of it. */
static bool name_run(struct ls_sweep *sweep, size_t index)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=.,";
    struct ls_sweep_run *run = &sweep->runs[index];
    char path[LS_SWEEP_PATH];
    run->set = lockstep_sweep_run_set(sweep->plan, index, &run->set_count);
    run->label = join(sweep, index, ' ');
    run->folder = join(sweep, index, ',');
    run->in = true;
    if (run->label == NULL || run->folder == NULL)
        return false;
    if (strlen(run->folder) > NAME_MAX_COLUMNS || run->folder[strspn(run->folder, plain)] != '\0') {
        snprintf(path, sizeof path, "run-%016llx", hash_of(run->folder));
        free(run->folder);
        if ((run->folder = strdup(path)) == NULL)
            return false;
    }
    snprintf(path, sizeof path, "%s/%s", sweep->values->output, run->folder);
    run->path = strdup(path);
    return run->path != NULL;
}

/* ---- Definitions ----------------------------------------------------------------------------- */

static void set_options(const struct ls_sweep *sweep, const struct ls_sweep_run *run,
                        struct lockstep_train_options *options, char prefix[LS_SWEEP_PATH])
{
    lockstep_train_options_init(options);
    snprintf(prefix, LS_SWEEP_PATH, "%s/snapshot", run->path);
    options->workers = 1;
    options->snapshot_prefix = prefix;
    options->isa = sweep->values->isa;
    options->device = sweep->values->device;
}

/* Where the training ends: a solver that counts epochs must look at its data. */
static int find_end(const struct ls_sweep *sweep, struct ls_sweep_run *run,
                    struct lockstep_solver *solver, struct lockstep_error *error)
{
    static const char field[] = "\nmax_iter: ";
    const char *text = lockstep_solver_text(solver, error);
    if (text == NULL)
        return LOCKSTEP_RESOURCE;
    const char *found =
        strncmp(text, field + 1, sizeof field - 2) == 0 ? text - 1 : strstr(text, field);
    if (found != NULL) {
        run->end = atoll(found + sizeof field - 1);
        return 0;
    }
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer;
    char prefix[LS_SWEEP_PATH];
    set_options(sweep, run, &options, prefix);
    int status = lockstep_trainer_create(solver, &options, &trainer, error);
    if (status == 0) {
        run->end = lockstep_trainer_iteration_end(trainer);
        lockstep_trainer_free(trainer);
    }
    return status;
}

/* What cannot be trained fails now, and the sweep goes on without it. */
static int load(const struct ls_sweep *sweep, struct ls_sweep_run *run,
                struct lockstep_error *error)
{
    struct lockstep_solver *solver = NULL;
    int status =
        lockstep_solver_load(sweep->values->solver, run->set, run->set_count, &solver, error);
    if (status == 0)
        status = lockstep_solver_hash(solver, run->hash, error);
    if (status == 0)
        status = find_end(sweep, run, solver, error);
    lockstep_solver_free(solver);
    if (status != 0)
        ls_sweep_fail(run, status, lockstep_error_text(error));
    return status;
}

/* Where nothing can be trained the first problem is that of the sweep. */
static int load_all(struct ls_sweep *sweep)
{
    struct lockstep_error *error = lockstep_error_new();
    size_t failed = 0;
    int first = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        int status = load(sweep, &sweep->runs[i], error);
        failed += status != 0;
        first = first != 0 ? first : status;
    }
    lockstep_error_free(error);
    if (failed < sweep->count)
        return 0;
    ls_cli_put_lines(sweep->runs[0].message != NULL ? sweep->runs[0].message : "out of memory");
    return first;
}

int ls_sweep_open(struct ls_sweep *sweep, const struct ls_sweep_values *values)
{
    struct lockstep_sweep_options options;
    struct lockstep_error *error = lockstep_error_new();
    *sweep = (struct ls_sweep){.values = values, .lock = -1, .rung = values->halving};
    lockstep_sweep_options_init(&options);
    options.set = values->set.items;
    options.set_count = values->set.count;
    options.random = values->random;
    options.seed = (uint64_t)values->seed;
    int status = lockstep_sweep_new(&options, &sweep->plan, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    if (status != 0)
        return status;
    const size_t count = lockstep_sweep_run_count(sweep->plan);
    sweep->runs = calloc(count, sizeof *sweep->runs);
    if (sweep->runs == NULL)
        return ls_cli_no_memory();
    for (; sweep->count < count; sweep->count++)
        if (!name_run(sweep, sweep->count)) {
            sweep->count++;
            return ls_cli_no_memory();
        }
    if (count == 1)
        sweep->rung = 0;
    return load_all(sweep);
}

void ls_sweep_close(struct ls_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++) {
        struct ls_sweep_run *run = &sweep->runs[i];
        ls_sweep_log_close(run);
        ls_sweep_free_ends(run);
        free(run->label);
        free(run->folder);
        free(run->path);
        free(run->message);
    }
    free(sweep->runs);
    free(sweep->metric);
    lockstep_sweep_free(sweep->plan);
    if (sweep->lock >= 0)
        close(sweep->lock);
}

/* ---- The folder ------------------------------------------------------------------------------ */

/* A file of that name that is of another program stays. */
static int check_own(const char *folder, const char *name, const char *mark)
{
    char path[LS_SWEEP_PATH], head[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = ls_sweep_open_file(path);
    if (file == NULL && errno == ENOENT)
        return 0;
    if (file == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot be read: %s", path, strerror(errno));
    const size_t length = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    head[length] = '\0';
    if (length == 0 || strstr(head, mark) != NULL)
        return 0;
    return ls_cli_usage_error("sweep: %s was not written by lockstep. hint: name another folder "
                              "with --output",
                              path);
}

/* The lock is that of all processes of a sweep: where it was killed, its trainings still write
 * their snapshots. */
static int lock(struct ls_sweep *sweep)
{
    const char *folder = sweep->values->output;
    // NOLINTNEXTLINE(android-cloexec-open): the trainings have it, too
    sweep->lock = open(folder, O_RDONLY | O_DIRECTORY);
    if (sweep->lock < 0)
        return ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot be opened: %s", folder, strerror(errno));
    for (int i = 0; flock(sweep->lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK)
            return 0; /* there are no locks here */
        if (i == LOCK_SECONDS)
            return ls_cli_usage_error("sweep: another sweep, or a training of one, is at work in "
                                      "%s. hint: wait for it, or --output DIR takes another folder",
                                      folder);
        if (i == 0)
            ls_cli_put_lines("trainings of an earlier sweep are ending; waiting for them");
        sleep(1);
    }
    return 0;
}

/* A run goes on only with the data that it began with. */
static int check_data(const struct ls_sweep *sweep, const struct ls_sweep_run *run,
                      struct lockstep_error *error)
{
    struct lockstep_solver *solver = NULL;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_train_options options;
    char prefix[LS_SWEEP_PATH];
    set_options(sweep, run, &options, prefix);
    options.resume = "auto";
    int status =
        lockstep_solver_load(sweep->values->solver, run->set, run->set_count, &solver, error);
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &trainer, error);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    if (status == 0)
        return 0;
    ls_cli_report(status, error);
    return ls_cli_error(status,
                        "sweep: the runs in %s cannot go on. hint: --output DIR takes "
                        "another folder",
                        sweep->values->output);
}

/* What an earlier sweep has left of a run. */
static int take_over(const struct ls_sweep *sweep, struct ls_sweep_run *run,
                     struct lockstep_error *error)
{
    double loss;
    int status = ls_sweep_claim(sweep, run);
    if (status == 0)
        status = ls_sweep_log_read(run);
    if (status == 0 && ls_sweep_log_iteration(run, &loss) > 0)
        status = check_data(sweep, run, error);
    ls_sweep_log_close(run);
    run->again = true; /* what was trained again, too */
    for (run->target = ls_sweep_next_rung(sweep, run, 0); run->target > 0 && status == 0;
         run->target = ls_sweep_next_rung(sweep, run, run->target)) {
        status = ls_sweep_log_read(run);
        ls_sweep_log_close(run);
    }
    run->again = false;
    return status;
}

int ls_sweep_enter(struct ls_sweep *sweep)
{
    const char *folder = sweep->values->output;
    int status = ls_cli_output_folder(folder);
    if (status == 0)
        status = check_own(folder, "sweep.json", "\"lockstep_sweep\"");
    if (status == 0)
        status = check_own(folder, "report.html", "content=\"lockstep\"");
    if (status == 0)
        status = lock(sweep);
    struct lockstep_error *error = lockstep_error_new();
    for (size_t i = 0; i < sweep->count && status == 0; i++) {
        struct ls_sweep_run *run = &sweep->runs[i];
        if (run->state != LS_SWEEP_FAILED)
            status = take_over(sweep, run, error);
    }
    lockstep_error_free(error);
    return status;
}
