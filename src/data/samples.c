/* What the samples of a data set are; see the header.
 *
 * Where sizes vary the source knows the size of every record: it has looked at all of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/samples.h"

#include <inttypes.h>
#include <string.h>

#include "data/bad_records.h"
#include "data/dataset_inner.h"
#include "data/numbers.h"

/* Shuffles the places of each kind of records by itself. */
static uint64_t shuffle_kinds(const struct ls_dataset *dataset, uint64_t epoch, uint64_t place)
{
    const uint64_t period = (uint64_t)dataset->source->period;
    const uint64_t first = (uint64_t)dataset->source->period_first;
    const bool other = place % period >= first;
    const uint64_t share = other ? period - first : first, begin = other ? first : 0;
    const uint64_t key = dataset->shuffle_key + other;
    struct ls_order order;
    ls_order_init(&order, key, epoch, (uint64_t)dataset->size / period * share);
    const uint64_t at = ls_order_at(&order, place / period * share + place % period - begin);
    return at / share * period + begin + at % share;
}

int64_t ls_dataset_place_of(const struct ls_dataset *dataset, int64_t ordinal,
                            struct ls_order *order)
{
    uint64_t size = (uint64_t)dataset->size;
    uint64_t epoch = (uint64_t)ordinal / size;
    uint64_t place = ((uint64_t)ordinal % size + (uint64_t)dataset->skip) % size;
    if (dataset->buckets != NULL)
        return ls_buckets_at(dataset->buckets, (int64_t)epoch, (int64_t)place);
    if (dataset->shuffle && dataset->source->period > 0)
        return (int64_t)shuffle_kinds(dataset, epoch, place);
    if (dataset->shuffle) {
        if (order->count == 0 || order->epoch != epoch)
            ls_order_init(order, dataset->shuffle_key, epoch, size);
        place = ls_order_at(order, place);
    }
    return (int64_t)place;
}

int64_t ls_dataset_place(const struct ls_dataset *dataset, int64_t place)
{
    return dataset->records != NULL ? (int64_t)dataset->records[place] : place;
}

int64_t ls_dataset_stand_in(const struct ls_dataset *dataset, int64_t place)
{
    int64_t record = ls_dataset_place(dataset, place);
    for (int64_t i = 1; dataset->bad != NULL && i < dataset->size; i++) {
        if (ls_bad_records_verdict(dataset->bad, record) != LS_BAD)
            break;
        record = ls_dataset_place(dataset, (place + i) % dataset->size);
    }
    return record;
}

int ls_dataset_fail_record(const struct ls_dataset *dataset, int64_t index,
                           const struct ls_problem *problem, struct ls_error *error)
{
    struct ls_text name = {0};
    ls_dataset_name_record(dataset, index, &name);
    int status = ls_fail(error, problem->status, dataset->name, problem->hint, "%s: %s",
                         name.data != NULL ? name.data : "a record", problem->message);
    ls_text_free(&name);
    return status;
}

/* The shape of a record's sample: of sequences, which nothing changes, that of the record. */
static int shape_of(const struct ls_dataset *dataset, int64_t index, int64_t shape[3],
                    struct ls_problem *problem)
{
    int64_t record[3];
    ls_source_shape_of(dataset->source, index, record);
    if (dataset->source->steps == 0)
        return ls_transform_shape(&dataset->transform, record, shape, problem);
    memcpy(shape, record, sizeof record);
    return 0;
}

int ls_dataset_measure(struct ls_dataset *dataset, struct ls_error *error)
{
    int64_t *largest = dataset->largest;
    memcpy(largest, dataset->transform.output, sizeof dataset->largest);
    if (!ls_dataset_varies(dataset))
        return 0;
    for (int64_t i = 0; i < dataset->size; i++) {
        int64_t index = ls_dataset_place(dataset, i);
        int64_t shape[3];
        struct ls_problem problem;
        if (dataset->bad != NULL && ls_bad_records_verdict(dataset->bad, index) == LS_BAD)
            continue;
        int status = shape_of(dataset, index, shape, &problem);
        if (status != 0 && dataset->bad == NULL)
            return ls_dataset_fail_record(dataset, index, &problem, error);
        if (status != 0) {
            ls_bad_records_note(dataset->bad, index, problem.message);
            continue;
        }
        for (int k = 1; k < 3; k++)
            largest[k] = shape[k] > largest[k] ? shape[k] : largest[k];
    }
    return 0;
}

int ls_dataset_tensors(const struct ls_dataset *dataset)
{
    return dataset->tensors;
}

const struct ls_sample_tensor *ls_dataset_tensor(const struct ls_dataset *dataset, int tensor)
{
    return &dataset->tensor[tensor];
}

void ls_dataset_tensor_shape(const struct ls_dataset *dataset, int tensor, const int64_t image[3],
                             struct ls_shape *shape)
{
    const struct ls_tensor_info *info = &dataset->source->tensor[dataset->tensor[tensor].source];
    *shape = info->shape;
    if (info->role == LS_TENSOR_PLAIN || info->role == LS_TENSOR_BOXES)
        return;
    if (info->role == LS_TENSOR_SEQUENCE) {
        shape->dim[0] = image[1] > 0 ? image[1] : shape->dim[0];
        return;
    }
    shape->rank = 3;
    shape->dim[0] = info->role == LS_TENSOR_MAP ? 1 : image[0];
    shape->dim[1] = image[1];
    shape->dim[2] = image[2];
}

bool ls_dataset_is_image(const struct ls_dataset *dataset, int tensor)
{
    int source = dataset->tensor[tensor].source;
    return dataset->source->tensor[source].role == LS_TENSOR_IMAGE;
}

size_t ls_dataset_tensor_bytes(const struct ls_dataset *dataset, int tensor, const int64_t image[3])
{
    struct ls_shape shape;
    ls_dataset_tensor_shape(dataset, tensor, image, &shape);
    return (size_t)ls_shape_size(&shape) * ls_dtype_size(dataset->tensor[tensor].type);
}

const int64_t *ls_dataset_shape(const struct ls_dataset *dataset)
{
    return dataset->transform.output;
}

bool ls_dataset_varies(const struct ls_dataset *dataset)
{
    if (dataset->source->steps > 0)
        return dataset->source->varies;
    return dataset->transform.varies && dataset->transform.crop == 0;
}

const int64_t *ls_dataset_largest_shape(const struct ls_dataset *dataset)
{
    return dataset->largest;
}

int ls_dataset_sample_shape(const struct ls_dataset *dataset, int64_t ordinal, int64_t shape[3],
                            struct ls_error *error)
{
    if (ordinal < 0)
        return ls_fail(error, LOCKSTEP_INTERNAL, dataset->name, NULL,
                       "sample %" PRId64 " was asked for", ordinal);
    if (!ls_dataset_varies(dataset)) {
        memcpy(shape, dataset->transform.output, sizeof dataset->transform.output);
        return 0;
    }
    struct ls_order order = {0};
    int64_t place = ls_dataset_place_of(dataset, ordinal, &order);
    int64_t index = ls_dataset_stand_in(dataset, place);
    struct ls_problem problem;
    int status = shape_of(dataset, index, shape, &problem);
    return status == 0 ? 0 : ls_dataset_fail_record(dataset, index, &problem, error);
}

void ls_dataset_refuse_infinities(struct ls_dataset *dataset, int tensor)
{
    dataset->tensor[tensor].finite = true;
}

int ls_dataset_convert(const struct ls_dataset *dataset, int tensor, const struct ls_record *record,
                       void *out, struct ls_problem *problem)
{
    const struct ls_sample_tensor *sample = &dataset->tensor[tensor];
    const struct ls_tensor_info *info = &dataset->source->tensor[sample->source];
    const struct ls_record_tensor *data = &record->tensor[sample->source];
    char number[LS_NUMBER_TEXT];
    int64_t count = ls_tensor_numbers(data);
    bool integers = sample->type == LS_I32;
    int64_t done = integers ? ls_numbers_to_i32(data->type, data->data, count, out)
                            : ls_numbers_to_f32(data->type, data->data, count, sample->finite, out);
    if (done == count)
        return 0;
    ls_number_text(data->type, data->data, done, number);
    const char *hint =
        data->shape.rank > 0 ? ls_number_hint(data->type, data->data, done, integers) : NULL;
    if (info->shape.rank == 0 && !integers && !ls_dtype_is_float(data->type))
        return ls_problem_set(problem, LOCKSTEP_DATA, hint, "its %s is beyond 2^24", info->name);
    return ls_problem_set(problem, LOCKSTEP_DATA, hint, "its %s has the number %s, which %s",
                          info->name, number,
                          ls_number_fault(data->type, data->data, done, integers));
}
