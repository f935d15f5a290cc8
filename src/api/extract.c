/* The public interface: features, what a blob of a net has for the samples of its data.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/model.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/datum.h"
#include "data/lmdb_write.h"
#include "data/reader.h"
#include "data/samples.h"

/* A batch at a time: its samples, and what the net makes of them; or, where a top of the data layer
 * is asked for, these numbers as they are. */
struct extraction {
    struct lockstep_model *model;
    struct lockstep_error *error; /* the caller's */
    struct ls_buffer datum;
    const struct ls_sample_tensor *tensor; /* the top of the data layer; NULL: the net's output */
    int number;                            /* which */
    size_t size;                           /* numbers of a feature */
    float *input, *output;
    int64_t batch, count, loaded; /* samples; loaded: which batch; -1: none */
    struct ls_shape shape;        /* of a feature: channels, height, width */
};

/* Makes whole numbers fp32, in their places. */
static void make_floats(float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int32_t number;
        memcpy(&number, &numbers[i], sizeof number);
        numbers[i] = (float)number;
    }
}

static int load_batch(struct extraction *extraction, int64_t number, struct ls_error *error)
{
    struct lockstep_model *model = extraction->model;
    extraction->loaded = -1;
    for (int64_t s = 0; s < extraction->batch; s++) { /* behind the last sample comes the first */
        void *out[LS_RECORD_TENSORS] = {NULL};
        if (extraction->tensor != NULL)
            out[extraction->number] = extraction->output + s * (int64_t)extraction->size;
        else
            out[0] = extraction->input + s * model->input_size;
        const int64_t index = (number * extraction->batch + s) % model->net->batching.samples;
        LS_TRY(ls_reader_fetch(model->reader, index, out, error));
    }
    if (extraction->tensor == NULL)
        LS_TRY(lockstep_model_predict(model, extraction->input, (size_t)extraction->batch,
                                      extraction->output, extraction->error));
    else if (extraction->tensor->type == LS_I32)
        make_floats(extraction->output, (size_t)extraction->batch * extraction->size);
    extraction->loaded = number;
    return 0;
}

static int make_record(void *user, int64_t i, struct ls_text *key, const uint8_t **bytes,
                       size_t *size, struct ls_error *error)
{
    struct extraction *extraction = user;
    if (extraction->loaded != i / extraction->batch)
        LS_TRY(load_batch(extraction, i / extraction->batch, error));
    struct ls_record record = {.count = 1};
    record.tensor[0] = (struct ls_record_tensor){
        .type = LS_F32,
        .shape = extraction->shape,
        .data = extraction->output + i % extraction->batch * (int64_t)extraction->size};
    *bytes = ls_datum_write(&record, false, &extraction->datum, size);
    ls_text_format(key, "%010" PRId64, i);
    return *bytes != NULL ? 0 : ls_fail_memory(error, "a record");
}

static int report_progress(void *user, int64_t done, struct ls_error *error)
{
    const struct extraction *extraction = user;
    const struct lockstep_callbacks *callbacks = &extraction->model->callbacks;
    if (callbacks->poll != NULL && callbacks->poll(callbacks->user) == LOCKSTEP_SNAPSHOT_AND_STOP)
        return ls_fail(error, LOCKSTEP_STOPPED, NULL, NULL, "stopped after %lld samples",
                       (long long)done);
    char text[64];
    snprintf(text, sizeof text, "Extracted features of %" PRId64 " samples.", done);
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_NOTICE,
                                   .text = text,
                                   .samples = done,
                                   .iteration_end = extraction->count};
    if (callbacks->event != NULL)
        callbacks->event(callbacks->user, &event);
    return 0;
}

/* The shape of a feature as records have it: what lies behind the third axis is joined to it. */
static struct ls_shape feature_shape(const struct ls_value *output)
{
    struct ls_shape shape = {3, {1, 1, 1}};
    for (int i = 0, at = 0; i < output->shape.rank; i++)
        if (i != output->sample_axis)
            shape.dim[at < 2 ? at++ : 2] *= output->shape.dim[i];
    return shape;
}

/* The same of a top of the data layer, which has no axis of samples here. */
static struct ls_shape tensor_shape(const struct ls_sample_tensor *tensor)
{
    struct ls_shape shape = {3, {1, 1, 1}};
    for (int i = 0; i < tensor->shape.rank; i++)
        shape.dim[i < 2 ? i : 2] *= tensor->shape.dim[i];
    return shape;
}

/* Finds what is asked for: a top of the data layer, or what the net ends with. */
static int find_feature(struct extraction *extraction, struct ls_error *error)
{
    const struct lockstep_model *model = extraction->model;
    const Lockstep__LayerParameter *data = model->net->data_layers[0];
    const struct ls_value *output = ls_prediction_output(model->prediction);
    for (size_t t = 0; model->blob != NULL && output == NULL && t < data->n_top; t++)
        if (strcmp(data->top[t], model->blob) == 0) {
            extraction->number = (int)t;
            extraction->tensor = ls_dataset_tensor(model->net->datasets[0], (int)t);
            extraction->shape = tensor_shape(extraction->tensor);
        }
    if (extraction->tensor == NULL && output == NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file, NULL,
                       "the net has no output that belongs to a sample");
    if (extraction->tensor == NULL)
        extraction->shape = feature_shape(output);
    extraction->size = (size_t)ls_shape_size(&extraction->shape);
    return 0;
}

static int check(const struct lockstep_model *model, int64_t batches, struct ls_error *error)
{
    const char *file = model->definition.definition->file;
    if (batches < 1 || batches > INT32_MAX)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "%lld batches are not possible",
                       (long long)batches);
    if (model->reader == NULL || model->net->dataset_count != 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, file, "use the definition that has a Data layer",
                       "features are of the samples of one data layer, and the net has %d",
                       model->net->dataset_count);
    if (model->net->varying >= 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, file,
                       "give the data layer a crop_size, or new_height and new_width",
                       "features need samples of one size");
    return 0;
}

int lockstep_model_extract(struct lockstep_model *model, int64_t batches, const char *path,
                           int64_t *records, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check(model, batches, inner));
    struct extraction extraction = {.model = model,
                                    .error = error,
                                    .batch = model->net->batching.batch,
                                    .count = batches * model->net->batching.batch,
                                    .loaded = -1};
    LS_TRY(find_feature(&extraction, inner));
    const size_t batch = (size_t)extraction.batch;
    extraction.input =
        ls_alloc_aligned(batch * (size_t)model->input_size * sizeof *extraction.input);
    extraction.output = ls_alloc(batch * extraction.size, sizeof *extraction.output);
    const struct ls_lmdb_records job = {.count = extraction.count,
                                        .make = make_record,
                                        .progress = report_progress,
                                        .user = &extraction};
    int status = extraction.input == NULL || extraction.output == NULL
                     ? ls_fail_memory(inner, "features")
                     : ls_lmdb_write(path, &job, inner);
    if (status == 0 && records != NULL)
        *records = job.count;
    ls_buffer_free(&extraction.datum);
    ls_free_aligned(extraction.input);
    ls_free(extraction.output);
    return status;
}
