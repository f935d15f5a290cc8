/* Events as event files. See observe/tensorboard.h.
 *
 * Every run begins a file of its own. TensorBoard reads the files of a folder in the order of their
 * names, which begin with a time: the number there is larger than that of any file before.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "observe/tensorboard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "observe/filters.h"
#include "observe/records.h"

#define FILE_BEGIN "events.out.tfevents."
enum {
    POINTS = 10000, /* of a curve, at most: TensorBoard shows a choice of them anyway */
    FIGURES = 64,   /* of one output */
    TAG = 320
};

struct lockstep_tensorboard {
    char *folder, *path; /* path: of the file that is open */
    double (*clock)(void);
    int file;            /* -1: none yet */
    struct ls_text held; /* records that are not written yet */
    double written;      /* when the last ones were */
    int64_t interval;    /* updates between points of a curve */
    bool failed;
};

/* ---- Files ----------------------------------------------------------------------------------- */

static double system_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int fail_file(struct lockstep_tensorboard *board, const char *path, const char *what,
                     struct ls_error *error)
{
    board->failed = true;
    return ls_fail(error, LOCKSTEP_RESOURCE, path, NULL, "%s: %s", what, strerror(errno));
}

/* Makes a folder, and those that it lies in. */
static int make_folders(const char *folder, struct ls_error *error)
{
    char *path = ls_copy_string(folder);
    if (path == NULL)
        return ls_fail_memory(error, "the name of a folder");
    for (char *end = path; *end != '\0';) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char after = *end;
        *end = '\0';
        (void)mkdir(path, 0777); /* what is missing then, the last one says */
        *end = after;
    }
    ls_free(path);
    return ls_output_folder(folder, error);
}

/* A number for the next file: the time, or one more than that of the latest file. */
static long long next_number(const struct lockstep_tensorboard *board)
{
    long long number = (long long)board->clock();
    DIR *folder = opendir(board->folder);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, FILE_BEGIN, strlen(FILE_BEGIN)) != 0)
            continue;
        long long other = strtoll(entry->d_name + strlen(FILE_BEGIN), NULL, 10);
        if (other >= number && other < INT32_MAX * 2LL) /* larger ones are no times */
            number = other + 1;
    }
    if (folder != NULL)
        closedir(folder);
    return number;
}

static int open_file(struct lockstep_tensorboard *board, struct ls_error *error)
{
    struct ls_text path = {0};
    if (board->file >= 0)
        close(board->file);
    board->file = -1;
    ls_free(board->path);
    ls_text_format(&path, "%s/" FILE_BEGIN "%010lld.lockstep", board->folder, next_number(board));
    board->path = path.data;
    if (path.failed || path.data == NULL) {
        board->failed = true;
        return ls_fail_memory(error, "the name of an event file");
    }
    const int status = ls_output_open(board->path, LS_OUTPUT_NEW, false, &board->file, error);
    board->failed = board->failed || status != 0;
    return status;
}

int ls_tensorboard_flush(struct lockstep_tensorboard *board, struct ls_error *error)
{
    size_t done = 0;
    if (board->failed || board->held.failed) {
        board->failed = true;
        return ls_fail(error, LOCKSTEP_RESOURCE, board->folder, NULL,
                       "event files could not be written completely");
    }
    while (board->file >= 0 && done < board->held.length) {
        ssize_t count = write(board->file, board->held.data + done, board->held.length - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fail_file(board, board->path, "cannot be written", error);
        done += (size_t)count;
    }
    board->held.length = 0;
    board->written = board->clock();
    return 0;
}

int ls_tensorboard_new(const char *folder, double (*clock)(void), struct lockstep_tensorboard **out,
                       struct ls_error *error)
{
    *out = NULL;
    LS_TRY(make_folders(folder, error));
    if (access(folder, W_OK | X_OK) != 0)
        return ls_fail(error, LOCKSTEP_RESOURCE, folder, NULL, "nothing can be written there: %s",
                       strerror(errno));
    struct lockstep_tensorboard *board = ls_alloc(1, sizeof *board);
    if (board == NULL)
        return ls_fail_memory(error, "event files");
    *board = (struct lockstep_tensorboard){.file = -1, .interval = 1};
    board->clock = clock != NULL ? clock : system_clock;
    board->folder = ls_copy_string(folder);
    if (board->folder == NULL) {
        ls_free(board);
        return ls_fail_memory(error, "event files");
    }
    *out = board;
    return 0;
}

void ls_tensorboard_free(struct lockstep_tensorboard *board)
{
    if (board == NULL)
        return;
    (void)ls_tensorboard_flush(board, NULL);
    if (board->file >= 0)
        close(board->file);
    ls_text_free(&board->held);
    ls_free(board->folder);
    ls_free(board->path);
    ls_free(board);
}

/* ---- Records --------------------------------------------------------------------------------- */

static void hold(struct lockstep_tensorboard *board, struct ls_text *record)
{
    ls_records_add(&board->held, record);
    ls_text_free(record);
}

static void hold_summary(struct lockstep_tensorboard *board, int64_t step, struct ls_text *summary)
{
    struct ls_text record = {0};
    ls_record_summary(&record, board->clock(), step, summary);
    hold(board, &record);
    ls_text_free(summary);
}

/* As a block of code in Markdown, each line of which begins with four spaces. */
static void add_code(struct ls_text *summary, const char *tag, const char *code)
{
    struct ls_text markdown = {0};
    while (*code != '\0') {
        size_t length = strcspn(code, "\n");
        ls_text_format(&markdown, "    %.*s\n", (int)(length < 10000 ? length : 10000), code);
        code += length + (code[length] == '\n');
    }
    ls_summary_text(summary, tag, markdown.data != NULL ? markdown.data : "");
    summary->failed = summary->failed || markdown.failed;
    ls_text_free(&markdown);
}

static int begin_run(struct lockstep_tensorboard *board, const struct lockstep_run *run,
                     struct ls_error *error)
{
    struct ls_text record = {0}, summary = {0}, facts = {0};
    LS_TRY(open_file(board, error));
    ls_record_version(&record, board->clock());
    hold(board, &record);
    /* The update that a resume goes on from is not made again. */
    ls_record_start(&record, board->clock(),
                    run->first_iteration > 0 ? run->first_iteration + 1 : 0);
    hold(board, &record);
    board->interval = run->max_iter / POINTS > 0 ? (run->max_iter + POINTS - 1) / POINTS : 1;
    ls_text_format(&facts,
                   "solver: %s\nlr_policy: %s\nbase_lr: %.6g\nseed: %" PRIu64 "\nbatch: %" PRId64
                   "\niter_size: %" PRId64 "\nmax_iter: %" PRId64 "\nparameters: %" PRId64
                   "\nranks: %d\nworkers: %d\nversion: %s\n"
                   "environment: %s\n",
                   run->solver, run->lr_policy, run->base_lr, run->seed, run->batch, run->iter_size,
                   run->max_iter, run->learned, run->ranks, run->workers, run->version,
                   run->environment);
    add_code(&summary, "run", facts.data != NULL ? facts.data : "");
    if (run->definition != NULL)
        add_code(&summary, "definition", run->definition);
    ls_text_free(&facts);
    hold_summary(board, run->first_iteration, &summary);
    return 0;
}

static void add_finite(struct ls_text *summary, const char *tag, double value)
{
    if (isfinite(value))
        ls_summary_scalar(summary, tag, value);
}

static void add_outputs(struct ls_text *summary, const char *before,
                        const struct lockstep_event *event)
{
    char tag[TAG];
    for (size_t i = 0; i < event->output_count; i++) {
        const struct lockstep_output *output = &event->outputs[i];
        for (size_t v = 0; v < output->count && v < FIGURES; v++) {
            if (output->count == 1)
                snprintf(tag, sizeof tag, "%s/%.250s", before, output->name);
            else
                snprintf(tag, sizeof tag, "%s/%.250s/%zu", before, output->name, v);
            add_finite(summary, tag, output->values[v]);
        }
    }
}

static void add_progress(const struct lockstep_tensorboard *board,
                         const struct lockstep_event *event, struct ls_text *summary)
{
    if ((event->iteration - 1) % board->interval != 0)
        return;
    add_finite(summary, "loss", event->data_loss);
    add_finite(summary, "learning_rate", event->learning_rate);
    if (event->samples_per_second > 0)
        add_finite(summary, "samples_per_second", event->samples_per_second);
}

static void add_test(const struct lockstep_event *event, struct ls_text *summary)
{
    char name[40] = "test";
    if (event->test_net < 0)
        snprintf(name, sizeof name, "train_data");
    else if (event->test_net > 0)
        snprintf(name, sizeof name, "test_%d", event->test_net);
    add_outputs(summary, name, event);
    if (event->data_loss != 0) {
        char tag[TAG];
        snprintf(tag, sizeof tag, "%s/loss_in_all", name);
        add_finite(summary, tag, event->data_loss);
    }
}

static int add_filters(const struct lockstep_filters *filters, struct ls_text *summary,
                       struct ls_error *error)
{
    char tag[TAG];
    uint8_t *bytes;
    size_t size;
    int64_t shape[3];
    LS_TRY(ls_filters_draw(filters, shape, &bytes, &size, error));
    snprintf(tag, sizeof tag, "filters/%.250s", filters->name);
    ls_summary_png(summary, tag, shape[1], shape[2], (int)shape[0], bytes, size);
    ls_free(bytes);
    return 0;
}

static int add_statistics(const struct lockstep_statistics *statistics, struct ls_text *summary,
                          struct ls_error *error)
{
    char tag[TAG];
    add_finite(summary, "norms/weights", statistics->weight_norm);
    add_finite(summary, "norms/gradient", statistics->gradient_norm);
    add_finite(summary, "norms/update", statistics->update_norm);
    for (size_t i = 0; i < statistics->parameter_count; i++) {
        const struct lockstep_parameter_statistics *parameter = &statistics->parameters[i];
        const double weights = parameter->weight_norm, gradient = parameter->gradient_norm;
        snprintf(tag, sizeof tag, "weight_norm/%.250s", parameter->name);
        add_finite(summary, tag, weights);
        snprintf(tag, sizeof tag, "gradient_norm/%.250s", parameter->name);
        add_finite(summary, tag, gradient);
        snprintf(tag, sizeof tag, "update_norm/%.250s", parameter->name);
        add_finite(summary, tag, parameter->update_norm);
        snprintf(tag, sizeof tag, "weights/%.250s", parameter->name);
        ls_summary_histogram(summary, tag, &parameter->weights, weights * weights);
        snprintf(tag, sizeof tag, "gradients/%.250s", parameter->name);
        ls_summary_histogram(summary, tag, &parameter->gradient, gradient * gradient);
    }
    return statistics->filters != NULL ? add_filters(statistics->filters, summary, error) : 0;
}

static int add_event(struct lockstep_tensorboard *board, const struct lockstep_event *event,
                     struct ls_text *summary, struct ls_error *error)
{
    if (event->kind == LOCKSTEP_EVENT_PROGRESS)
        add_progress(board, event, summary);
    if (event->kind == LOCKSTEP_EVENT_TEST)
        add_test(event, summary);
    if (event->kind == LOCKSTEP_EVENT_DISPLAY) {
        add_outputs(summary, "train", event);
        add_finite(summary, "penalty", event->penalty);
    }
    return event->statistics != NULL ? add_statistics(event->statistics, summary, error) : 0;
}

int ls_tensorboard_event(struct lockstep_tensorboard *board, const struct lockstep_event *event,
                         struct ls_error *error)
{
    struct ls_text summary = {0};
    if (board->failed)
        return ls_tensorboard_flush(board, error);
    if (event->kind == LOCKSTEP_EVENT_RUN && event->run != NULL) {
        LS_TRY(begin_run(board, event->run, error));
        return ls_tensorboard_flush(board, error);
    }
    if (board->file < 0) /* no training has begun */
        return 0;
    int status = add_event(board, event, &summary, error);
    if (summary.length > 0 || summary.failed)
        hold_summary(board, event->iteration, &summary);
    if (status != 0) {
        board->failed = true;
        return status;
    }
    if (event->kind == LOCKSTEP_EVENT_PROGRESS && board->clock() - board->written < 1)
        return 0;
    return ls_tensorboard_flush(board, error);
}
