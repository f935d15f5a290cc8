/* The fake library: logs and pages. A log is its path, and whose name begins with "bad" is none.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"

#include <math.h>
#include <string.h>

struct lockstep_log {
    int lines;
};

int lockstep_log_new(struct lockstep_log **log, struct lockstep_error *error)
{
    (void)error;
    *log = fake_make(sizeof **log);
    return 0;
}

void lockstep_log_free(struct lockstep_log *log)
{
    if (log != NULL)
        fake_unmake(log);
}

int lockstep_log_read(struct lockstep_log *log, const char *path, struct lockstep_error *error)
{
    (void)log;
    fake_note("log(%s) ", path);
    return fake_answer(strncmp(path, "bad", 3) == 0 ? LOCKSTEP_DATA : 0, error);
}

int lockstep_log_line(struct lockstep_log *log, const char *line, size_t length,
                      struct lockstep_error *error)
{
    (void)line;
    (void)length;
    (void)error;
    log->lines++;
    return 0;
}

const struct lockstep_fact *lockstep_log_facts(const struct lockstep_log *log, size_t *count)
{
    static const struct lockstep_fact facts[] = {{"seed", "3"}};
    (void)log;
    *count = 1;
    return facts;
}

const struct lockstep_log_message *lockstep_log_messages(const struct lockstep_log *log,
                                                         size_t *count)
{
    static const struct lockstep_log_message messages[] = {{"warning", 0, "slow"}};
    (void)log;
    *count = 1;
    return messages;
}

void lockstep_page_options_init(struct lockstep_page_options *options)
{
    *options = (struct lockstep_page_options){.struct_size = sizeof *options};
}

int lockstep_page_write(const char *path, const struct lockstep_log *const *logs, size_t count,
                        const struct lockstep_page_options *options, struct lockstep_error *error)
{
    (void)logs;
    fake_note("page(%s|%zu|%s|%s|%s) ", path, count, fake_text(options->title), options->names[0],
              options->net != NULL ? "net" : "-");
    if (options->confusion != NULL)
        fake_note("classes(%zu|%zu|%s|%d) ", options->confusion->classes, options->picture_count,
                  options->picture_count > 0 ? options->pictures[0].caption : "-",
                  options->picture_count > 0 ? options->pictures[0].mark : 0);
    if (options->found != NULL && options->picture_count > 0)
        fake_note("found(%zu|%s|%zu) ", options->found->classes, options->pictures[0].caption,
                  options->pictures[0].box_count);
    return fake_answer(fake.convert_status, error);
}

const char *lockstep_solver_text(struct lockstep_solver *solver, struct lockstep_error *error)
{
    (void)solver;
    (void)error;
    return "net: \"n\"";
}

const struct lockstep_series *lockstep_log_series(const struct lockstep_log *log, size_t *count)
{
    static const struct lockstep_point points[] = {{.first = 1, .last = 1, .count = 1, .mean = 2},
                                                   {.first = 2, .last = 2, .count = 1, .mean = 1}};
    static const struct lockstep_series series[] = {{"loss", points, 2, -1},
                                                    {"test/accuracy", points, 1, 1}};
    (void)log;
    *count = 2;
    return series;
}

int lockstep_log_last(const struct lockstep_log *log, const char *name, int64_t *iteration,
                      double *value)
{
    (void)log;
    *iteration = 2;
    *value = 1;
    return strcmp(name, "loss") == 0;
}

void lockstep_log_describe(const struct lockstep_log *log, struct lockstep_log_state *state)
{
    (void)log;
    *state = (struct lockstep_log_state){
        .ended = 1,
        .last_snapshot = fake.last_snapshot != NULL ? fake.last_snapshot : "",
        .best_snapshot = fake.best_snapshot != NULL ? fake.best_snapshot : ""};
}

int lockstep_model_finds_boxes(const struct lockstep_model *model)
{
    (void)model;
    return fake.boxes;
}

int lockstep_model_find_boxes(struct lockstep_model *model, int64_t samples, size_t worst,
                              double score, const struct lockstep_found_boxes **found,
                              struct lockstep_error *error)
{
    static const struct lockstep_box boxes[] = {
        {LOCKSTEP_BOX_RIGHT, 1, "cat", 0.9, 0, 0, 1, 1},
        {LOCKSTEP_BOX_MISSED, 1, "cat", (double)NAN, 0, 0, 1, 1}};
    static const struct lockstep_boxed_sample kept[] = {{3, 0.5, boxes, 2}};
    static const struct lockstep_found_boxes made = {
        .samples = 9, .classes = 2, .judged = 1, .worst = kept, .worst_count = 1};
    (void)model;
    fake_note("boxes(%lld|%zu|%g) ", (long long)samples, worst, score);
    *found = fake.confusion_status == 0 ? &made : NULL;
    return fake_answer(fake.confusion_status, error);
}

int lockstep_model_sample_picture(struct lockstep_model *model, int64_t index, int64_t shape[3],
                                  float *pixels, struct lockstep_error *error)
{
    (void)model;
    (void)index;
    shape[0] = 1;
    shape[1] = shape[2] = 2;
    for (int i = 0; i < 4 && pixels != NULL; i++)
        pixels[i] = (float)i;
    return fake_answer(0, error);
}
