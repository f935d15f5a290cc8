/* Verification: trainings that must not differ run one after the other, and only hashes of each
 * stay: of every update's losses, of each parameter after it, of what tests show, of the last
 * snapshot. Where two differ, both run once more up to the first such update, and keep that one
 * parameter, to find the element.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/verify.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "solver/state.h"
#include "solver/verify_run.h"

struct verification {
    const struct ls_solver_definition *definition;
    const struct ls_verify_options *options;
    struct ls_text folder;
    struct ls_trace first;
    struct ls_text first_name;
    int64_t end;              /* updates of each training; negative: not known yet */
    struct ls_text *warnings; /* all that were told, a line each */
    struct ls_error *error;
};

/* ---- The folder ------------------------------------------------------------------------------ */

static int make_folder(struct verification *verification)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0')
        parent = "/tmp";
    ls_text_format(&verification->folder, "%s/lockstep-verify-XXXXXX", parent);
    if (verification->folder.failed)
        return ls_fail_memory(verification->error, "a verification");
    if (mkdtemp(verification->folder.data) != NULL)
        return 0;
    int problem = errno;
    ls_text_free(&verification->folder);
    return ls_fail(verification->error, LOCKSTEP_RESOURCE, parent,
                   "TMPDIR names another folder for snapshots", "no folder can be made there: %s",
                   strerror(problem));
}

/* Removes what trainings have left in it; it has no folders. */
static void empty_folder(const struct verification *verification)
{
    DIR *folder = opendir(verification->folder.data);
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

/* ---- Trainings ------------------------------------------------------------------------------- */

/* Number 0 is the first case, straight. Then, without stops, the other cases; with stops all cases,
 * the first one among them. */
static struct ls_verify_run run_number(const struct verification *verification, size_t number)
{
    const struct ls_verify_options *options = verification->options;
    bool stopped = number > 0 && options->stops > 0;
    return (struct ls_verify_run){.definition = verification->definition,
                                  .options = options,
                                  .number = number,
                                  .begins = stopped ? number - 1 : number,
                                  .end = verification->end,
                                  .stops = stopped ? options->stops : 0,
                                  .warnings = verification->warnings,
                                  .folder = verification->folder.data};
}

static int run_one(const struct verification *verification, struct ls_verify_run *run)
{
    int status = ls_verify_run(run, verification->error);
    empty_folder(verification);
    return status;
}

/* ---- Differences ----------------------------------------------------------------------------- */

/* Where two traces differ first. */
struct difference {
    int64_t update; /* negative: in none */
    int parameter;  /* negative: in losses; behind the last one: in a state per sample */
};

static struct difference find_update(const struct ls_trace *a, const struct ls_trace *b)
{
    size_t width = ls_trace_width(a);
    for (int64_t u = 0; u < a->updates && u < b->updates; u++)
        for (size_t i = 0; i < width; i++)
            if (a->hash[(size_t)u * width + i] != b->hash[(size_t)u * width + i])
                return (struct difference){u, (int)i - 1};
    return (struct difference){-1, -1};
}

static bool same_place(const struct ls_figure *a, const struct ls_figure *b)
{
    return a->iteration == b->iteration && a->net == b->net && a->entry == b->entry &&
           strcmp(a->name, b->name) == 0;
}

/* The first figure of `b` that `a` has otherwise (*other: that one) or not at all (NULL); NULL if
 * there is none. A training that was stopped in a test has repeated it. */
static const struct ls_figure *find_figure(const struct ls_figure *a, size_t a_count,
                                           const struct ls_figure *b, size_t b_count,
                                           const struct ls_figure **other)
{
    size_t at = 0; /* they come in nearly the same order */
    for (size_t i = 0; i < b_count; i++) {
        size_t looked = 0;
        while (looked < a_count && !same_place(&a[at], &b[i])) {
            at = (at + 1) % a_count;
            looked++;
        }
        *other = looked < a_count ? &a[at] : NULL;
        if (*other == NULL || memcmp(&a[at].value, &b[i].value, sizeof b->value) != 0)
            return &b[i];
    }
    return NULL;
}

static bool same_traces(const struct ls_trace *a, const struct ls_trace *b)
{
    const struct ls_figure *other;
    return a->updates == b->updates && find_update(a, b).update < 0 &&
           find_figure(a->figures, a->figure_count, b->figures, b->figure_count, &other) == NULL &&
           find_figure(b->figures, b->figure_count, a->figures, a->figure_count, &other) == NULL &&
           strcmp(a->tensors, b->tensors) == 0 && strcmp(a->file, b->file) == 0;
}

/* "[3,0,1]" of an element. */
static void write_index(const struct ls_shape *shape, size_t element, struct ls_text *text)
{
    int64_t left = ls_shape_size(shape), at = (int64_t)element;
    ls_text_format(text, "[");
    for (int axis = 0; axis < shape->rank; axis++) {
        left /= shape->dim[axis];
        ls_text_format(text, "%s%lld", axis > 0 ? "," : "", (long long)(at / left));
        at %= left;
    }
    ls_text_format(text, "]");
}

static void write_float(float value, struct ls_text *text)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    ls_text_format(text, "%.9g (0x%08x)", (double)value, bits);
}

static int tell_element(const struct verification *verification, const struct ls_close_up *a,
                        const struct ls_close_up *b, int array, size_t element, const char *name)
{
    static const char *const what[] = {[LS_WEIGHTS] = "",
                                       [LS_AVERAGE] = "the average's ",
                                       [LS_HISTORY_0] = "the optimizer's history 0, ",
                                       [LS_HISTORY_1] = "the optimizer's history 1, ",
                                       [LS_ROWS] = "the optimizer's rows, ",
                                       [LS_COLUMNS] = "the optimizer's columns, "};
    const struct ls_shape shape = ls_store_array_shape(&a->shape, (enum ls_store_array)array);
    struct ls_text text = {0};
    ls_text_format(&text, "%selement %zu ", what[array], element);
    write_index(&shape, element, &text);
    ls_text_format(&text, " is ");
    write_float(a->array[array][element], &text);
    ls_text_format(&text, " with %s, ", verification->first_name.data);
    write_float(b->array[array][element], &text);
    ls_text_format(&text, " with %s", name);
    int status =
        ls_fail(verification->error, LOCKSTEP_DIFFERENT, a->name, NULL, "update %lld: %s",
                (long long)a->update, text.data != NULL ? text.data : "an element differs");
    ls_text_free(&text);
    return status;
}

/* What two second runs have in sight: 0 if that is the same. */
static int compare_close_ups(const struct verification *verification, const struct ls_close_up *a,
                             const struct ls_close_up *b, const char *name)
{
    const struct ls_figure *other = NULL;
    for (int array = 0; array < LS_STATE_ARRAYS; array++) {
        const struct ls_shape shape = ls_store_array_shape(&a->shape, (enum ls_store_array)array);
        const bool both = a->array[array] != NULL && b->array[array] != NULL;
        for (size_t e = 0; both && e < (size_t)ls_shape_size(&shape); e++)
            if (memcmp(a->array[array] + e, b->array[array] + e, sizeof *a->array[array]) != 0)
                return tell_element(verification, a, b, array, e, name);
    }
    for (size_t r = 0; r < a->exponent_count && r < b->exponent_count; r++)
        if (a->exponents[r] != b->exponents[r])
            return ls_fail(verification->error, LOCKSTEP_DIFFERENT, a->name, NULL,
                           "update %lld: the exponent of row %zu of its sum is %d with %s, %d with "
                           "%s (as snapshots have it)",
                           (long long)a->update, r, a->exponents[r], verification->first_name.data,
                           b->exponents[r], name);
    if (a->state != b->state)
        return ls_fail(verification->error, LOCKSTEP_DIFFERENT, a->name, NULL,
                       "update %lld: what this state per sample keeps differs between %s and %s",
                       (long long)a->update, verification->first_name.data, name);
    if (a->parameter >= 0)
        return 0;
    const struct ls_figure *figure =
        find_figure(a->figures, a->figure_count, b->figures, b->figure_count, &other);
    if (figure != NULL && other != NULL)
        return ls_fail(verification->error, LOCKSTEP_DIFFERENT, figure->name, NULL,
                       "update %lld: value %d is %.17g with %s, %.17g with %s",
                       (long long)a->update, figure->entry, other->value,
                       verification->first_name.data, figure->value, name);
    return 0;
}

static const char *name_of_kind(const struct verification *verification, int parameter)
{
    return parameter < 0                                     ? "a loss or metric"
           : parameter < (int)verification->first.parameters ? "a parameter"
                                                             : "a state per sample";
}

/* Runs both once more, to see the element. */
static int look_closer(const struct verification *verification, size_t number,
                       const struct difference *where, const char *name)
{
    struct ls_close_up close_ups[2];
    int status = 0;
    for (int i = 0; i < 2; i++)
        close_ups[i] = (struct ls_close_up){.update = where->update, .parameter = where->parameter};
    for (int i = 0; i < 2 && status == 0; i++) {
        struct ls_verify_run run = run_number(verification, i == 0 ? 0 : number);
        struct ls_trace trace = {0};
        run.trace = &trace;
        run.close_up = &close_ups[i];
        status = run_one(verification, &run);
        ls_trace_free(&trace);
        ls_text_free(&run.name);
    }
    if (status == 0)
        status = compare_close_ups(verification, &close_ups[0], &close_ups[1], name);
    if (status == 0)
        status = ls_fail(verification->error, LOCKSTEP_DIFFERENT, NULL,
                         "what does not come again may be memory or a processor that is faulty",
                         "update %lld: %s differs between %s and %s; in a second run of both it "
                         "did not",
                         (long long)where->update, name_of_kind(verification, where->parameter),
                         verification->first_name.data, name);
    for (int i = 0; i < 2; i++)
        ls_close_up_free(&close_ups[i]);
    return status;
}

static int tell_difference(const struct verification *verification, size_t number,
                           const struct ls_trace *trace, const char *name)
{
    const struct ls_trace *first = &verification->first;
    const struct ls_figure *other = NULL, *figure;
    const char *first_name = verification->first_name.data;
    struct ls_error *error = verification->error;
    struct difference where = find_update(first, trace);
    figure = find_figure(first->figures, first->figure_count, trace->figures, trace->figure_count,
                         &other);
    if (figure != NULL && other != NULL && (where.update < 0 || figure->iteration <= where.update))
        return ls_fail(error, LOCKSTEP_DIFFERENT, figure->name, NULL,
                       "test net %d at iteration %lld: value %d is %.17g with %s, %.17g with %s",
                       figure->net, (long long)figure->iteration, figure->entry, other->value,
                       first_name, figure->value, name);
    if (where.update >= 0)
        return look_closer(verification, number, &where, name);
    if (trace->updates != first->updates)
        return ls_fail(error, LOCKSTEP_DIFFERENT, NULL, NULL, "%lld updates with %s, %lld with %s",
                       (long long)first->updates, first_name, (long long)trace->updates, name);
    if (trace->figure_count > 0 && (figure != NULL || trace->figure_count != first->figure_count))
        return ls_fail(error, LOCKSTEP_DIFFERENT, NULL, NULL, "other tests were run with %s and %s",
                       first_name, name);
    return ls_fail(error, LOCKSTEP_DIFFERENT, NULL, NULL,
                   "the last snapshots differ between %s and %s, in %s", first_name, name,
                   strcmp(trace->tensors, first->tensors) != 0 ? "a tensor" : "their notes");
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void report(const struct verification *verification, const struct ls_verify_run *run,
                   bool same)
{
    const struct ls_verify_options *options = verification->options;
    const struct lockstep_verified training = {.training = run->name.data,
                                               .hash = run->trace->tensors,
                                               .iterations = run->trace->updates,
                                               .seconds = run->trace->seconds,
                                               .same = same,
                                               .library = run->trace->library};
    char text[1200], time[LS_UNITS_ROOM];
    snprintf(text, sizeof text, "%s: %s%.16s... after %lld updates, %s", run->name.data,
             same ? "" : "DIFFERS, ", run->trace->tensors, (long long)run->trace->updates,
             ls_format_seconds(time, run->trace->seconds));
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_NOTICE, .text = text};
    if (options->callbacks.event != NULL)
        options->callbacks.event(options->callbacks.user, &event);
    if (options->trained != NULL)
        options->trained(options->user, &training);
}

/* The warnings from `from` on. */
static void report_warnings(const struct verification *verification, size_t from)
{
    const struct lockstep_callbacks *callbacks = &verification->options->callbacks;
    const struct ls_text *warnings = verification->warnings;
    char text[1024];
    while (callbacks->event != NULL && from < warnings->length) {
        size_t length = strcspn(warnings->data + from, "\n");
        snprintf(text, sizeof text, "%.*s", (int)length, warnings->data + from);
        struct lockstep_event event = {.kind = LOCKSTEP_EVENT_WARNING, .text = text};
        callbacks->event(callbacks->user, &event);
        from += length + 1;
    }
}

static bool wants_stop(const struct ls_verify_options *options)
{
    return options->callbacks.poll != NULL &&
           options->callbacks.poll(options->callbacks.user) == LOCKSTEP_SNAPSHOT_AND_STOP;
}

/* Runs training `number`; the first difference is remembered in *differs, with its name and trace,
 * which it keeps. */
static int verify_one(struct verification *verification, size_t number, size_t *differs,
                      struct ls_trace *kept, struct ls_text *kept_name)
{
    struct ls_trace trace = {0};
    struct ls_verify_run run = run_number(verification, number);
    run.trace = &trace;
    size_t warned = verification->warnings->length;
    int status = run_one(verification, &run);
    report_warnings(verification, warned);
    bool same = status == 0 && (number == 0 || same_traces(&verification->first, &trace));
    if (status == 0)
        report(verification, &run, same);
    if (status == 0 && number == 0) {
        verification->end = trace.updates;
        verification->first = trace;
        verification->first_name = run.name;
        return 0;
    }
    if (status == 0 && !same && *differs == 0) {
        *differs = number;
        *kept = trace;
        *kept_name = run.name;
        return 0;
    }
    ls_trace_free(&trace);
    ls_text_free(&run.name);
    return status;
}

int ls_verify(const struct ls_solver_definition *definition,
              const struct ls_verify_options *options, struct ls_error *error)
{
    struct ls_text warnings = {0};
    struct verification verification = {.definition = definition,
                                        .options = options,
                                        .end = options->iterations,
                                        .warnings = &warnings,
                                        .error = error};
    size_t trainings = options->count + (options->stops > 0), differs = 0;
    struct ls_trace trace = {0};
    struct ls_text name = {0};
    if (trainings < 2)
        return ls_fail(error, LOCKSTEP_USAGE, NULL,
                       "such as --workers 1,2,3, --ranks 1,2 or --resume random",
                       "verify compares at least two trainings");
    LS_TRY(make_folder(&verification));
    int status = 0;
    for (size_t i = 0; i < trainings && status == 0; i++) {
        status = verify_one(&verification, i, &differs, &trace, &name);
        if (status == 0 && wants_stop(options))
            status = LOCKSTEP_STOPPED;
    }
    if (status == 0 && differs > 0)
        status = tell_difference(&verification, differs, &trace, name.data);
    rmdir(verification.folder.data);
    ls_trace_free(&trace);
    ls_text_free(&name);
    ls_trace_free(&verification.first);
    ls_text_free(&verification.first_name);
    ls_text_free(&verification.folder);
    ls_text_free(&warnings);
    return status;
}
