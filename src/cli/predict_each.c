/* Predictions for many inputs. See cli/predict_each.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/predict_each.h"

#include <inttypes.h>
#include <stdarg.h>

#include "cli/report.h"
#include "monitor/progress.h"
#include "monitor/terminal.h"

/* A run, as it goes on. */
struct run {
    const struct ls_cli_predict_each *each;
    struct ls_progress progress;
    bool shows; /* progress */
    int failed; /* status of the first input that cannot be read */
    int64_t all, computed, bad;
    int64_t labelled, right, among; /* the label is the best class, or among those that are told */
    int64_t no_class;               /* labels that are none of the net's */
};

int ls_cli_read_inputs(const struct ls_cli_predict_each *each, struct lockstep_inputs **out)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_inputs *inputs = lockstep_inputs_new();
    int status = inputs == NULL ? ls_cli_no_memory() : 0;
    bool told = status != 0;
    for (size_t i = 0; i < each->inputs->count && status == 0; i++)
        status = lockstep_inputs_add(inputs, each->inputs->items[i], error);
    for (size_t i = 0; i < each->lists->count && status == 0; i++)
        status = lockstep_inputs_add_list(inputs, each->lists->items[i], error);
    if (status != 0) {
        if (!told)
            ls_cli_report(status, error);
        lockstep_inputs_free(inputs);
        inputs = NULL;
    }
    lockstep_error_free(error);
    *out = inputs;
    return status;
}

/* A sentence behind the predictions: beside them, where they are read by people or lie in a file,
 * else on stderr. */
static void say(const struct run *run, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (run->each->output_file != NULL || run->each->predictions->format == LS_CLI_FORMAT_TEXT)
        ls_cli_put_line(NULL, text);
    else
        ls_cli_put_lines(text);
}

static void count_label(struct run *run, int label)
{
    const struct ls_cli_predictions *predictions = run->each->predictions;
    bool among = false;
    for (size_t rank = 0; rank < predictions->top; rank++)
        among = among || predictions->order[rank] == (size_t)label;
    run->labelled++;
    run->right += predictions->order[0] == (size_t)label;
    run->among += among;
}

static int take(void *user, const struct lockstep_predicted *predicted)
{
    struct run *run = user;
    struct ls_cli_predictions *predictions = run->each->predictions;
    if (predicted->output != NULL) {
        const bool is_class = predicted->has_label && predicted->label >= 0 &&
                              (size_t)predicted->label < predictions->size;
        ls_cli_predictions_put(predictions, predicted->name, is_class ? predicted->label : -1,
                               predicted->output);
        run->no_class += predicted->has_label && !is_class;
        if (is_class)
            count_label(run, predicted->label);
    } else {
        run->bad++;
        run->failed = run->failed != 0 ? run->failed : predicted->status;
        ls_progress_clear(&run->progress);
        fflush(predictions->out); /* messages come behind what was told before */
        ls_cli_error(predicted->status, "%s", predicted->problem);
    }
    const struct lockstep_event event = {.kind = LOCKSTEP_EVENT_NOTICE,
                                         .text = "",
                                         .samples = predicted->computed,
                                         .iteration_end = run->all};
    if (run->shows && predicted->computed != run->computed)
        ls_progress_event(&run->progress, &event);
    run->computed = predicted->computed;
    return ferror(predictions->out);
}

static void sum_up(const struct run *run, const struct lockstep_inputs *inputs)
{
    const struct ls_cli_predictions *predictions = run->each->predictions;
    const int64_t left_out = lockstep_inputs_left_out(inputs);
    if (run->labelled > 0) {
        say(run, "%" PRId64 " of %" PRId64 " right (%.2f %%)", run->right, run->labelled,
            100 * (double)run->right / (double)run->labelled);
        if (predictions->top > 1)
            say(run, "%" PRId64 " of %" PRId64 " among the best %zu (%.2f %%)", run->among,
                run->labelled, predictions->top, 100 * (double)run->among / (double)run->labelled);
    }
    if (run->no_class > 0)
        say(run, "%" PRId64 " label%s no class of the net, which has %zu", run->no_class,
            run->no_class == 1 ? " is" : "s are", predictions->size);
    if (left_out > 0 && !ls_quiet())
        say(run, "The folders have %" PRId64 " other file%s, which %s left out.", left_out,
            left_out == 1 ? "" : "s", left_out == 1 ? "was" : "were");
    if (run->bad > 0 && run->bad == run->all && run->all > 1)
        ls_cli_error(0, "none of the %" PRId64 " inputs can be read", run->all);
    else if (run->bad > 0 && run->all > 1)
        ls_cli_error(
            0, "%" PRId64 " of %" PRId64 " inputs cannot be read%s", run->bad, run->all,
            run->each->skip_damaged
                ? ""
                : "; the others are predicted. hint: with --skip-damaged that is no error");
}

int ls_cli_predict_each(const struct ls_cli_predict_each *each, struct lockstep_model *model,
                        const struct lockstep_inputs *inputs, bool *whole)
{
    struct run run = {.each = each, .all = lockstep_inputs_count(inputs)};
    struct lockstep_error *error = lockstep_error_new();
    /* Progress is not mixed with predictions: it is beside a file of them, or where they are not.
     */
    const bool aside = each->output_file == NULL;
    ls_progress_init(&run.progress, aside ? stderr : stdout, NULL);
    run.progress.unit = "inputs";
    run.shows = !aside || (run.progress.terminal && !ls_terminal(stdout));
    int status = lockstep_model_predict_each(model, inputs, take, &run, error);
    ls_progress_clear(&run.progress);
    fflush(each->predictions->out);
    if (status != 0 && !ferror(each->predictions->out))
        ls_cli_report(status, error);
    if (status == LOCKSTEP_STOPPED && each->output_file != NULL)
        ls_cli_error(0, "%s was not written", each->output_file);
    lockstep_error_free(error);
    if (status != 0)
        return status;
    sum_up(&run, inputs);
    *whole = run.bad < run.all;
    return each->skip_damaged && *whole ? 0 : run.failed;
}
