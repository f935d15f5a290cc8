/* Predictions of pictures and of samples of arrays, behind the public interface.
 *
 * Many inputs are taken a group at a time. The workers make a sample of each input of the group,
 * then they run the net, sample by sample: what is predicted for an input does not depend on the
 * group.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/predict_pictures.h"

#include <stdatomic.h>
#include <string.h>

#include "api/inputs.h"
#include "api/model.h"
#include "api/predict.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/text.h"
#include "data/orientation.h"
#include "data/picture.h"
#include "data/reader.h"
#include "data/resize.h"

enum { GROUP_MAX = 256 };                           /* inputs */
static const size_t GROUP_BYTES = (size_t)64 << 20; /* of samples, where that is enough for all */

/* What a worker reads pictures with. */
struct ls_picture_reader {
    struct ls_reader *reader; /* NULL: the net has no data layer */
    struct ls_buffer pixels, resized;
    struct ls_augment_room room;
};

void ls_model_free_pictures(struct lockstep_model *model)
{
    for (int w = 0; w < model->workers && model->pictures != NULL; w++) {
        struct ls_picture_reader *pictures = &model->pictures[w];
        ls_reader_close(pictures->reader);
        ls_buffer_free(&pictures->pixels);
        ls_buffer_free(&pictures->resized);
        ls_augment_room_free(&pictures->room);
    }
    ls_free(model->pictures);
    model->pictures = NULL;
}

/* How many samples the prediction of an input is the mean of. */
static size_t count_views(const struct lockstep_model *model)
{
    return model->oversample ? LS_VIEWS : 1;
}

/* ---- One picture ----------------------------------------------------------------------------- */

/* What the net itself says about pictures; what the workers need to read them is made. */
static int prepare_pictures(struct lockstep_model *model, struct ls_error *error)
{
    const char *file = model->definition.definition->file;
    int64_t shape[3];
    LS_TRY(ls_model_check_one_size(model, error)); /* before anything is decoded into a sample */
    LS_TRY(ls_model_check_predict(model, error));
    lockstep_model_input_shape(model, shape);
    if (ls_net_sample_count(model->net) > 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, file,
                       "lockstep_model_predict gives a program predictions of batches",
                       "a picture has no prediction of its own: layer '%.200s' mixes the %lld "
                       "samples of a batch",
                       ls_net_mixer_name(model->net), (long long)ls_net_sample_count(model->net));
    if (model->reader != NULL)
        LS_TRY(ls_reader_check_pictures(model->reader, error));
    else if (shape[0] != 1 && shape[0] != 3)
        return ls_fail(error, LOCKSTEP_DEFINITION, file, NULL,
                       "the net's input has neither 1 nor 3 channels, so that it takes no "
                       "pictures");
    if (model->reader == NULL)
        LS_TRY(ls_picture_rule_open(model, error));
    if (model->pictures != NULL)
        return 0;
    if (model->reader == NULL)
        ls_picture_rule_warn(model);
    model->pictures = ls_alloc((size_t)model->workers, sizeof *model->pictures);
    int status = model->pictures == NULL ? ls_fail_memory(error, "pictures") : 0;
    for (int w = 0; w < model->workers && status == 0 && model->reader != NULL; w++)
        status = ls_reader_open(model->net->datasets[0], &model->pictures[w].reader, error);
    if (status != 0)
        ls_model_free_pictures(model);
    return status;
}

/* A picture for a net without a data layer: resized, transformed as in training; one sample for
 * each view behind the other. */
static int transform_bytes(const struct lockstep_model *model, struct ls_picture_reader *room,
                           const uint8_t *bytes, size_t size, float *sample,
                           struct ls_problem *problem)
{
    const struct ls_picture_rule *rule = &model->rule;
    struct ls_transform transform = rule->transform; /* the view is this worker's own */
    struct ls_picture picture;
    struct ls_record record;
    int64_t shape[3];
    lockstep_model_input_shape(model, shape);
    LS_TRY(ls_picture_decode(bytes, size, (int)shape[0], &room->pixels, &picture, problem));
    if (rule->whole)
        LS_TRY(ls_picture_to_record(&picture, &room->resized, &record, problem));
    else
        LS_TRY(ls_picture_resize_to_record(&picture, (int)transform.input[1],
                                           (int)transform.input[2], !rule->interpolates,
                                           &room->resized, &record, problem));
    if (rule->rgb && shape[0] == 3)
        ls_record_swap_channels(&record, room->resized.data);
    for (size_t v = 0; v < count_views(model); v++) {
        transform.view = model->oversample ? (int)v + 1 : 0;
        LS_TRY(ls_transform_apply(&transform, &record.tensor[0], NULL, 0, false, &room->room,
                                  sample + (int64_t)v * model->input_size, problem));
    }
    return 0;
}

/* Its samples, read by a worker, and whether it has an orientation mark. */
static int read_picture(const struct lockstep_model *model, int worker, const char *path,
                        float *sample, bool *turned, struct ls_error *error)
{
    struct ls_picture_reader *room = &model->pictures[worker];
    char *bytes = NULL;
    size_t size = 0;
    struct ls_problem problem;
    if (room->reader != NULL)
        return ls_reader_picture(room->reader, path, sample, turned, error);
    LS_TRY(ls_file_read(path, (size_t)1 << 30, LOCKSTEP_DATA, &bytes, &size, error));
    int status = transform_bytes(model, room, (const uint8_t *)bytes, size, sample, &problem);
    *turned = ls_picture_is_turned((const uint8_t *)bytes, size);
    ls_free(bytes);
    return status == 0 ? 0 : ls_fail(error, status, path, NULL, "%s", problem.message);
}

/* The mean over all views, added up in their order, rounded once. */
static void average_views(const struct lockstep_model *model, const float *seen, float *output)
{
    const size_t views = count_views(model);
    for (size_t k = 0; k < model->output_size; k++) {
        double sum = 0;
        for (size_t v = 0; v < views; v++)
            sum += (double)seen[v * model->output_size + k];
        output[k] = (float)(sum / (double)views);
    }
}

/* ---- A group of inputs ----------------------------------------------------------------------- */

struct group {
    struct lockstep_model *model;
    const struct lockstep_inputs *inputs;
    int64_t first; /* input */
    size_t count;
    float *samples;              /* of an input: its views, one behind the other */
    float *seen, *outputs;       /* what is predicted for these, and the mean of it */
    struct ls_problem *problems; /* of an input; status 0: none */
    bool *turned;                /* whether an input has an orientation mark */
    int64_t turned_count, first_turned;
    struct ls_error *told;
    _Atomic size_t next;
    struct ls_worker_failure failure;
};

static void group_free(struct group *group)
{
    if (group->outputs != group->seen)
        ls_free(group->outputs);
    ls_free(group->seen);
    ls_free_aligned(group->samples);
    ls_free(group->problems);
    ls_free(group->turned);
    ls_free(group->told);
}

/* Room for groups of as many inputs as fit, and at least one for each worker. */
static int group_create(struct group *group, int64_t inputs, struct ls_error *error)
{
    const struct lockstep_model *model = group->model;
    const size_t views = count_views(model), size = (size_t)model->input_size;
    size_t count = GROUP_BYTES / (views * size * sizeof *group->samples);
    count = count < GROUP_MAX ? count : GROUP_MAX;
    count = count > (size_t)model->workers ? count : (size_t)model->workers;
    count = (int64_t)count < inputs ? count : (size_t)inputs;
    group->count = count;
    group->samples = ls_alloc_aligned(count * views * size * sizeof *group->samples);
    group->seen = ls_alloc(count * views * model->output_size, sizeof *group->seen);
    group->outputs =
        views > 1 ? ls_alloc(count * model->output_size, sizeof *group->outputs) : group->seen;
    group->problems = ls_alloc(count, sizeof *group->problems);
    group->turned = ls_alloc(count, sizeof *group->turned);
    group->told = ls_alloc(1, sizeof *group->told);
    const bool ready = group->samples != NULL && group->seen != NULL && group->outputs != NULL &&
                       group->problems != NULL && group->turned != NULL && group->told != NULL;
    return ready ? 0 : ls_fail_memory(error, "predictions");
}

static int make_sample(const struct group *group, size_t i, int worker, struct ls_error *error)
{
    const struct lockstep_model *model = group->model;
    const struct ls_one_input input = ls_inputs_at(group->inputs, group->first + (int64_t)i);
    const size_t views = count_views(model), size = (size_t)model->input_size;
    float *sample = group->samples + i * views * size;
    group->turned[i] = false;
    int status = input.array == NULL
                     ? read_picture(model, worker, input.path, sample, &group->turned[i], error)
                     : ls_input_array_read(input.array, input.index, sample, error);
    for (size_t v = 1; v < views && input.array != NULL; v++) /* an array has one view */
        memcpy(sample + v * size, sample, size * sizeof *sample);
    group->problems[i].status = status;
    if (status != LOCKSTEP_DATA)
        return status;
    group->problems[i] = error->problems[0];
    memset(sample, 0, views * size * sizeof *sample); /* what is computed of it is not looked at */
    return 0;
}

static void make_some(void *argument, int worker)
{
    struct group *group = argument;
    int status = 0;
    for (size_t i; status == 0 && (i = atomic_fetch_add(&group->next, 1)) < group->count;) {
        struct ls_error *error = ls_worker_error();
        status = make_sample(group, i, worker, error);
        ls_worker_failure_note(&group->failure, status, error);
    }
}

static int predict_group(struct group *group, struct ls_error *error)
{
    struct lockstep_model *model = group->model;
    const size_t views = count_views(model), size = model->output_size;
    atomic_store(&group->next, 0);
    group->failure.error = error;
    ls_thread_pool_enter(model->engine->pool);
    ls_thread_pool_run(model->engine->pool, make_some, group);
    ls_thread_pool_leave(model->engine->pool);
    LS_TRY(atomic_load(&group->failure.status));
    LS_TRY(ls_model_predict(model, group->samples, group->count * views, group->seen, error));
    for (size_t i = 0; i < group->count && views > 1; i++)
        average_views(model, group->seen + i * views * size, group->outputs + i * size);
    return 0;
}

/* ---- All inputs ------------------------------------------------------------------------------ */

/* Whom predictions are told. */
struct listener {
    int (*tell)(void *user, const struct lockstep_predicted *predicted);
    void *user;
};

/* Pictures that lie otherwise than they are seen. */
static void count_turned(struct group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->turned[i] && group->turned_count++ == 0)
            group->first_turned = group->first + (int64_t)i;
}

static void warn_of_turned(struct lockstep_model *model, int64_t count, int64_t all,
                           const char *first)
{
    struct ls_text text = {0};
    if (count == 0)
        return;
    ls_text_format(&text,
                   "%lld of %lld input%s an orientation mark (EXIF), which is not followed: "
                   "pictures are taken as they are stored (%.200s%s)",
                   (long long)count, (long long)all,
                   all == 1     ? " has"
                   : count == 1 ? "s has"
                                : "s have",
                   first, count > 1 ? ", ..." : "");
    if (!text.failed)
        ls_model_warn(model, text.data);
    ls_text_free(&text);
}

static int tell_group(const struct group *group, const struct listener *listener,
                      struct ls_error *error)
{
    char problem[2048];
    for (size_t i = 0; i < group->count; i++) {
        const struct ls_one_input input = ls_inputs_at(group->inputs, group->first + (int64_t)i);
        struct lockstep_predicted predicted = {.index = group->first + (int64_t)i,
                                               .computed = group->first + (int64_t)group->count,
                                               .name = input.name,
                                               .has_label = input.has_label,
                                               .label = input.label,
                                               .status = group->problems[i].status};
        if (predicted.status == 0) {
            predicted.output = group->outputs + i * group->model->output_size;
        } else {
            group->told->status = predicted.status;
            group->told->count = 1;
            group->told->problems[0] = group->problems[i];
            ls_error_format(group->told, problem, sizeof problem);
            predicted.problem = problem;
        }
        ls_caller_pause();
        const int answer = listener->tell(listener->user, &predicted);
        ls_caller_go_on();
        if (answer != 0)
            return ls_fail(error, LOCKSTEP_STOPPED, NULL, NULL, "stopped after %lld inputs",
                           (long long)(predicted.index + 1));
    }
    return 0;
}

/* Numbers that fp32 does not have are told once, and not of each sample. */
static int check_first(const struct ls_input_array *array, struct ls_error *error)
{
    const int64_t numbers = ls_shape_size(ls_input_array_shape(array));
    float *sample = ls_alloc((size_t)numbers, sizeof *sample);
    int status = sample == NULL ? ls_fail_memory(error, "a sample")
                                : ls_input_array_read(array, 0, sample, error);
    ls_free(sample);
    return status;
}

/* Whether the net can take the samples of an array, by their shape and the first one's numbers.
 * Extents of 1 do not count: a grey picture may have its one channel, or not. */
static int check_array(const struct lockstep_model *model, const struct ls_input_array *array,
                       struct ls_error *error)
{
    const struct ls_shape *has = ls_input_array_shape(array);
    const struct ls_shape *wants = &ls_prediction_input(model->prediction)->shape;
    char text[2][120];
    int h = 0, w = 0;
    bool same = true;
    while (same) {
        while (h < has->rank && has->dim[h] == 1)
            h++;
        while (w < wants->rank && wants->dim[w] == 1)
            w++;
        if (h == has->rank && w == wants->rank)
            break;
        same = h < has->rank && w < wants->rank && has->dim[h++] == wants->dim[w++];
    }
    if (same)
        return check_first(array, error);
    return ls_fail(error, LOCKSTEP_DATA, ls_input_array_path(array),
                   "its axis 0 counts the samples, which are as the net takes them: transformed",
                   "has samples of shape %s, but the net's input has %s",
                   ls_shape_text(has, text[0], sizeof text[0]),
                   ls_shape_text(wants, text[1], sizeof text[1]));
}

static int check_inputs(struct lockstep_model *model, const struct lockstep_inputs *inputs,
                        struct ls_error *error)
{
    LS_TRY(ls_model_check_predict(model, error));
    if (ls_inputs_have_pictures(inputs))
        LS_TRY(prepare_pictures(model, error));
    const struct ls_input_array *array;
    for (size_t i = 0; (array = ls_inputs_array(inputs, i)) != NULL; i++)
        LS_TRY(check_array(model, array, error));
    return 0;
}

static int predict_all(struct group *group, const struct listener *listener, struct ls_error *error)
{
    const struct lockstep_callbacks *callbacks = &group->model->callbacks;
    const int64_t all = lockstep_inputs_count(group->inputs);
    LS_TRY(group_create(group, all, error));
    for (; group->first < all; group->first += (int64_t)group->count) {
        const int64_t left = all - group->first;
        group->count = (int64_t)group->count < left ? group->count : (size_t)left;
        if (callbacks->poll != NULL &&
            callbacks->poll(callbacks->user) == LOCKSTEP_SNAPSHOT_AND_STOP)
            return ls_fail(error, LOCKSTEP_STOPPED, NULL, NULL, "stopped after %lld inputs",
                           (long long)group->first);
        LS_TRY(predict_group(group, error));
        count_turned(group);
        LS_TRY(tell_group(group, listener, error));
    }
    return 0;
}

int lockstep_model_predict_each(struct lockstep_model *model, const struct lockstep_inputs *inputs,
                                int (*tell)(void *user, const struct lockstep_predicted *predicted),
                                void *user, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    struct group group = {.model = model, .inputs = inputs};
    int status = check_inputs(model, inputs, inner);
    if (status == 0)
        status = predict_all(&group, &(struct listener){tell, user}, inner);
    if (status == 0 && group.turned_count > 0)
        warn_of_turned(model, group.turned_count, lockstep_inputs_count(inputs),
                       ls_inputs_at(inputs, group.first_turned).name);
    group_free(&group);
    return status;
}

int lockstep_model_predict_picture(struct lockstep_model *model, const char *path, float *output,
                                   struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    const size_t views = count_views(model);
    bool turned = false;
    LS_TRY(prepare_pictures(model, inner));
    float *sample = ls_alloc_aligned(views * (size_t)model->input_size * sizeof *sample);
    float *seen = ls_alloc(views * model->output_size + 1, sizeof *seen);
    int status = sample == NULL || seen == NULL
                     ? ls_fail_memory(inner, "a picture")
                     : read_picture(model, 0, path, sample, &turned, inner);
    if (turned && !model->turned) {
        warn_of_turned(model, 1, 1, path);
        model->turned = true;
    }
    if (status == 0)
        status = ls_model_predict(model, sample, views, views > 1 ? seen : output, inner);
    if (status == 0 && views > 1)
        average_views(model, seen, output);
    ls_free(seen);
    ls_free_aligned(sample);
    return status;
}
