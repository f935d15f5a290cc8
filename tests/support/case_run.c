/* Runs a case through the public interface and compares with its reference: losses, gradients of
 * the first update, the change of weights after the last (five, if the case does not say), figures
 * of the test net.
 *
 * Of each parameter all elements count, in the norm and in four projections on arrays of signs;
 * some are compared one by one. The tolerance is 1e-4, if the case does not say, of what is
 * compared, or of the root mean square of all elements where one of them is small. Weights are
 * fp32, so that their change cannot be known better than their rounding.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/case_data.h"
#include "support/case_file.h"
#include "support/support.h"

enum { PROJECTIONS = 4 };

struct run {
    const struct case_item *item;
    struct lockstep_error *error;
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer;
    int workers, updates;
    double tolerance;
    const char *device, *isa;
};

static void check(const struct run *run, int status, const char *what)
{
    if (status != 0)
        fail_msg("%s on %d: %s: %s", run->item->name, run->workers, what,
                 lockstep_error_text(run->error));
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* The next number of a line. */
static double next_number(const struct run *run, const char **text)
{
    char *end;
    double number = strtod(*text, &end);
    if (end == *text)
        fail_msg("%s: a number is missing in the reference: %.40s", run->item->name, *text);
    *text = end;
    return number;
}

static void compare(const struct run *run, const char *what, const char *name, double got,
                    double want, double allowed)
{
    if (!(fabs(got - want) <= allowed))
        fail_msg("%s on %d: %s of %s: %.9g, not %.9g (at most %.3g off)", run->item->name,
                 run->workers, what, name, got, want, allowed);
}

/* `values` against a line "NORM P0 P1 P2 P3 : S0 S1 ..."; each value is known to `rounding`. */
static void compare_line(const struct run *run, const char *what, const char *name,
                         const double *values, size_t size, const char *line, double rounding)
{
    double norm = 0, projection[PROJECTIONS] = {0};
    for (size_t i = 0; i < size; i++) {
        norm += values[i] * values[i];
        uint64_t signs = case_signs(i);
        for (int k = 0; k < PROJECTIONS; k++)
            projection[k] += (signs >> k & 1) != 0 ? -values[i] : values[i];
    }
    double want = next_number(run, &line), root = sqrt((double)size);
    double allowed = run->tolerance * want + root * rounding;
    compare(run, what, name, sqrt(norm), want, allowed);
    for (int k = 0; k < PROJECTIONS; k++)
        compare(run, what, name, projection[k], next_number(run, &line), allowed);
    line += strspn(line, " :");
    size_t count = 0;
    for (const char *p = line; *p != '\0' && *p != '\n'; p++)
        count += (p == line || p[-1] == ' ') && *p != ' ';
    for (size_t k = 0; k < count; k++) {
        size_t place = case_place(k, count, size);
        double element = next_number(run, &line);
        double scale = fmax(fabs(element), want / root);
        char which[96];
        snprintf(which, sizeof which, "%s[%zu]", name, place);
        compare(run, what, which, values[place], element, run->tolerance * scale + rounding);
    }
}

/* ---- Lines of a reference -------------------------------------------------------------------- */

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end != NULL && end[1] != '\0' ? end + 1 : NULL;
}

/* What follows "<word> " at the beginning of a line, or NULL. */
static const char *after(const char *line, const char *word)
{
    size_t length = strlen(word);
    return strncmp(line, word, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

/* A line "param NAME SIZE SCALE [around V]". */
struct parameter {
    char name[64];
    size_t index, size;
    float scale, around;
};

static float start_of(const struct parameter *p, size_t i)
{
    return (float)((double)p->around + (double)case_weight(case_stream(p->name), i, p->scale));
}

static void find_parameter(const struct run *run, const char *line, struct parameter *parameter)
{
    size_t size = 0, count = lockstep_trainer_parameter_count(run->trainer);
    parameter->around = 0;
    if (sscanf(line, "%63s %zu %f around %f", parameter->name, &size, &parameter->scale,
               &parameter->around) < 3)
        fail_msg("%s: a damaged reference", run->item->name);
    for (size_t i = 0; i < count; i++)
        if (strcmp(lockstep_trainer_parameter_name(run->trainer, i), parameter->name) == 0) {
            parameter->index = i;
            parameter->size = lockstep_trainer_parameter_size(run->trainer, i);
            assert_int_equal(parameter->size, size);
            return;
        }
    fail_msg("%s: there is no parameter %s", run->item->name, parameter->name);
}

static void write_weights(const struct run *run)
{
    size_t found = 0;
    for (const char *line = run->item->reference; line != NULL; line = next_line(line)) {
        const char *rest = after(line, "param");
        if (rest == NULL)
            continue;
        struct parameter p;
        find_parameter(run, rest, &p);
        float *weights = calloc(p.size, sizeof *weights);
        for (size_t i = 0; i < p.size; i++)
            weights[i] = start_of(&p, i);
        check(run,
              lockstep_trainer_write_parameter(run->trainer, p.index, weights, p.size, run->error),
              "write");
        free(weights);
        found++;
    }
    assert_int_equal(found, lockstep_trainer_parameter_count(run->trainer));
}

static void compare_gradient(const struct run *run, const struct parameter *p, const char *line)
{
    float *read = calloc(p->size, sizeof *read);
    double *values = calloc(p->size, sizeof *values);
    check(run, lockstep_trainer_read_gradient(run->trainer, p->index, read, p->size, run->error),
          "gradient");
    for (size_t i = 0; i < p->size; i++)
        values[i] = (double)read[i];
    compare_line(run, "gradient", p->name, values, p->size, line, 0);
    free(read);
    free(values);
}

static void compare_change(const struct run *run, const struct parameter *p, const char *line)
{
    float *read = calloc(p->size, sizeof *read);
    double *values = calloc(p->size, sizeof *values);
    double largest = 0;
    check(run, lockstep_trainer_read_parameter(run->trainer, p->index, read, p->size, run->error),
          "read");
    for (size_t i = 0; i < p->size; i++) {
        values[i] = (double)read[i] - (double)start_of(p, i);
        largest = fmax(largest, fabs((double)read[i]));
    }
    /* Some updates, each rounded to a 2^-24 of the largest weight or less. */
    compare_line(run, "change", p->name, values, p->size, line, run->updates * largest * 0x1p-24);
    free(read);
    free(values);
}

static void compare_parameters(const struct run *run, bool gradients)
{
    struct parameter p = {.size = 0};
    for (const char *line = run->item->reference; line != NULL; line = next_line(line)) {
        const char *rest = after(line, "param");
        if (rest != NULL)
            find_parameter(run, rest, &p);
        rest = after(line, gradients ? "gradient" : "change");
        if (rest != NULL && gradients)
            compare_gradient(run, &p, rest);
        else if (rest != NULL)
            compare_change(run, &p, rest);
    }
}

/* Lines "test OUTPUT VALUES...". */
static void compare_tests(const struct run *run)
{
    const struct lockstep_output *outputs = NULL;
    size_t count = 0;
    for (const char *line = run->item->reference; line != NULL; line = next_line(line)) {
        const char *rest = after(line, "test");
        if (rest == NULL)
            continue;
        if (outputs == NULL)
            check(run, lockstep_trainer_evaluate(run->trainer, 0, &outputs, &count, run->error),
                  "evaluate");
        size_t length = strcspn(rest, " "), found = 0;
        while (found < count && (strlen(outputs[found].name) != length ||
                                 strncmp(outputs[found].name, rest, length) != 0))
            found++;
        if (found == count)
            fail_msg("%s: no output %.*s", run->item->name, (int)length, rest);
        rest += length;
        for (size_t i = 0; i < outputs[found].count; i++) {
            double want = next_number(run, &rest);
            compare(run, "test", outputs[found].name, outputs[found].values[i], want,
                    run->tolerance * fabs(want));
        }
        assert_int_equal(*rest, '\n');
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The solver of the case, or one of the source tree with some fields set. */
static void load(struct run *run)
{
    char path[4096], fields[8][256];
    const char *set[8];
    size_t count = 0;
    const char *note = case_note(run->item, "solver", 0);
    if (note != NULL) {
        snprintf(path, sizeof path, "%s", ls_test_source(note));
        while (count < 8 && (note = case_note(run->item, "set", count)) != NULL) {
            snprintf(fields[count], sizeof fields[count], "%s", note);
            set[count] = fields[count];
            count++;
        }
    } else {
        snprintf(path, sizeof path, "solver.prototxt");
        ls_test_write_text(path, run->item->text);
    }
    check(run, lockstep_solver_load(path, set, count, &run->solver, run->error), "load");
}

static void train(const struct run *run)
{
    const char *losses = after(run->item->reference, "loss");
    assert_non_null(losses);
    for (int i = 0; i < run->updates; i++) {
        check(run, lockstep_trainer_step(run->trainer, 1, run->error), "step");
        double want = next_number(run, &losses);
        compare(run, "loss", "the update", lockstep_trainer_loss(run->trainer), want,
                run->tolerance * fabs(want));
        if (i == 0)
            compare_parameters(run, true);
    }
}

static void run_on(struct run *run, int workers)
{
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = run->workers = workers;
    options.device = run->device;
    options.isa = run->isa;
    check(run, lockstep_trainer_create(run->solver, &options, &run->trainer, run->error), "create");
    write_weights(run);
    train(run);
    compare_parameters(run, false);
    compare_tests(run);
    lockstep_trainer_free(run->trainer);
}

/* The number that a note gives. */
static double setting(const struct case_item *item, const char *kind, double missing)
{
    const char *note = case_note(item, kind, 0);
    return note != NULL ? strtod(note, NULL) : missing;
}

void case_run(const struct case_item *item, int workers, const char *device, const char *isa)
{
    struct run run = {.item = item,
                      .error = lockstep_error_new(),
                      .updates = (int)setting(item, "updates", 5),
                      .tolerance = setting(item, "tolerance", 1e-4),
                      .device = device,
                      .isa = isa};
    const char *folder = ls_test_path(item->name);
    if (mkdir(folder, 0700) != 0 || chdir(folder) != 0)
        fail_msg("cannot make %s", folder);
    case_write_files(item->text);
    load(&run);
    const char *note = case_note(item, "workers", 0);
    int used = 0;
    if (note == NULL)
        run_on(&run, workers);
    for (; note != NULL && sscanf(note, "%d%n", &workers, &used) == 1; note += used)
        run_on(&run, workers);
    lockstep_solver_free(run.solver);
    lockstep_error_free(run.error);
    assert_int_equal(chdir("/"), 0);
}
