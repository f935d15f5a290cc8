/* The public interface: features, what a blob of a net has for the samples of its data.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "api/api.h"
#include "api/model.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/datum.h"
#include "data/lmdb_write.h"
#include "data/reader.h"

/* A batch at a time: its samples, and what the net makes of them. */
struct extraction {
    struct lockstep_model *model;
    struct lockstep_error *error; /* the caller's */
    struct ls_buffer datum;
    float *input, *output;
    int64_t batch, count, loaded; /* samples; loaded: which batch; -1: none */
    struct ls_shape shape;        /* of a feature: channels, height, width */
};

static int load_batch(struct extraction *extraction, int64_t number, struct ls_error *error)
{
    struct lockstep_model *model = extraction->model;
    extraction->loaded = -1;
    for (int64_t s = 0; s < extraction->batch; s++) { /* behind the last sample comes the first */
        void *out[LS_RECORD_TENSORS] = {extraction->input + s * model->input_size};
        const int64_t index = (number * extraction->batch + s) % model->net->batching.samples;
        LS_TRY(ls_reader_fetch(model->reader, index, out, error));
    }
    LS_TRY(lockstep_model_predict(model, extraction->input, (size_t)extraction->batch,
                                  extraction->output, extraction->error));
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
        .data =
            extraction->output + i % extraction->batch * (int64_t)extraction->model->output_size};
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
    if (model->output_size == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, file, NULL,
                       "the net has no output that belongs to a sample");
    return 0;
}

int lockstep_model_extract(struct lockstep_model *model, int64_t batches, const char *path,
                           int64_t *records, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check(model, batches, inner));
    struct extraction extraction = {.model = model,
                                    .error = error,
                                    .batch = model->net->batching.batch,
                                    .count = batches * model->net->batching.batch,
                                    .loaded = -1,
                                    .shape =
                                        feature_shape(ls_prediction_output(model->prediction))};
    const size_t batch = (size_t)extraction.batch;
    extraction.input =
        ls_alloc_aligned(batch * (size_t)model->input_size * sizeof *extraction.input);
    extraction.output = ls_alloc(batch * model->output_size, sizeof *extraction.output);
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
