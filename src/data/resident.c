/* See data/resident.h. SPDX-License-Identifier: BSD-2-Clause */
#include "data/resident.h"

#include <string.h>

#include "base/assert.h"
#include "data/reader_inner.h"
#include "data/samples.h"

enum tensor_kind { AWAY, IMAGE, PLAIN };

static enum tensor_kind kind_of(const struct ls_dataset *dataset, int tensor)
{
    const struct ls_tensor_info *info = &dataset->source->tensor[dataset->tensor[tensor].source];
    switch (info->role) {
    case LS_TENSOR_IMAGE:
        return ls_transform_has_recipe(&dataset->transform) &&
                       (info->type == LS_U8 || info->type == LS_F32)
                   ? IMAGE
                   : AWAY;
    case LS_TENSOR_PLAIN:
        return PLAIN;
    default:
        return AWAY;
    }
}

const char *ls_dataset_stays_away(const struct ls_dataset *dataset, uint32_t wanted)
{
    const struct ls_source *source = dataset->source;
    if (dataset->size >= UINT32_MAX)
        return "there is no end of its records";
    if (ls_dataset_varies(dataset) || source->varies || source->steps > 0)
        return "its records differ in size";
    if (dataset->bad != NULL)
        return "its bad records are skipped";
    if (source->streams > 0 || source->period > 0)
        return "its records are cut from a stream";
    for (int k = 0; k < dataset->tensors; k++)
        if ((wanted & LS_TENSOR(k)) != 0 && kind_of(dataset, k) == AWAY)
            return "its transformation is done by the host";
    return NULL;
}

void ls_dataset_recipe(const struct ls_dataset *dataset, int tensor,
                       struct ls_sample_recipe *recipe)
{
    const struct ls_tensor_info *info = &dataset->source->tensor[dataset->tensor[tensor].source];
    if (kind_of(dataset, tensor) == IMAGE)
        ls_transform_recipe(&dataset->transform, info->type == LS_F32, recipe);
    else
        *recipe = (struct ls_sample_recipe){
            .record_bytes = ls_dataset_tensor_bytes(dataset, tensor, ls_dataset_shape(dataset))};
}

const float *ls_dataset_mean(const struct ls_dataset *dataset, size_t *numbers)
{
    const struct ls_transform *t = &dataset->transform;
    *numbers = (size_t)t->input[0] * (t->mean != NULL ? (size_t)(t->input[1] * t->input[2]) : 1);
    return t->mean != NULL ? t->mean : t->channel_mean;
}

/* Whether a record is as all others are. */
static int check_record(const struct ls_record_tensor *data, const struct ls_sample_recipe *recipe,
                        struct ls_problem *problem)
{
    const enum ls_dtype type = recipe->floats ? LS_F32 : LS_U8;
    const int64_t *dim = data->shape.dim;
    if (data->type != type || dim[0] != recipe->channels || dim[1] != recipe->height ||
        dim[2] != recipe->width)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL, "it is not like the first record");
    return 0;
}

int ls_reader_load(struct ls_reader *reader, int64_t place, void *const *out, uint64_t *hash,
                   struct ls_error *error)
{
    const struct ls_dataset *dataset = reader->dataset;
    const int64_t index = ls_dataset_place(dataset, place);
    struct ls_record record = {0};
    struct ls_problem problem;
    uint32_t wanted = 0;
    int status = 0;
    for (int k = 0; k < dataset->tensors; k++)
        wanted |= out[k] != NULL ? LS_TENSOR(dataset->tensor[k].source) : 0;
    LS_TRY(ls_reader_place(reader, place, wanted, &record, error));
    *hash = reader->hash;
    for (int k = 0; k < dataset->tensors && status == 0; k++) {
        struct ls_sample_recipe recipe;
        if (out[k] == NULL)
            continue;
        ls_dataset_recipe(dataset, k, &recipe);
        if (!recipe.image) {
            status = ls_dataset_convert(dataset, k, &record, out[k], &problem);
            continue;
        }
        const struct ls_record_tensor *data = &record.tensor[dataset->tensor[k].source];
        status = check_record(data, &recipe, &problem);
        if (status == 0)
            memcpy(out[k], data->data, recipe.record_bytes);
    }
    return status == 0 ? 0 : ls_dataset_fail_record(dataset, index, &problem, error);
}

void ls_reader_draw(struct ls_reader *reader, int64_t ordinal, struct ls_sample_draw *draw,
                    int64_t *record)
{
    struct ls_dataset *dataset = reader->dataset;
    *draw = (struct ls_sample_draw){.contrast = 1};
    draw->record = ls_dataset_place_of(dataset, ordinal, &reader->order);
    *record = ls_dataset_place(dataset, draw->record);
    if (ls_source_has_image(dataset->source))
        ls_transform_draw(&dataset->transform, (uint64_t)ordinal, draw);
    atomic_fetch_add_explicit(&dataset->reads, 1, memory_order_relaxed);
}
