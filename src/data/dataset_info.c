/* What is known about a data set; see data/dataset.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "data/dataset_inner.h"

const struct ls_cache *ls_dataset_cache(const struct ls_dataset *dataset)
{
    return dataset->cache;
}

int64_t ls_dataset_size(const struct ls_dataset *dataset)
{
    return dataset->size;
}

enum ls_last_batch ls_dataset_last_batch(const struct ls_dataset *dataset)
{
    return dataset->last_batch;
}

int ls_dataset_classes(const struct ls_dataset *dataset)
{
    return dataset->source->class_count;
}

bool ls_dataset_has_vocabulary(const struct ls_dataset *dataset)
{
    return dataset->source->vocabulary;
}

struct ls_class_names ls_dataset_class_names(const struct ls_dataset *dataset)
{
    const struct ls_source *source = dataset->source;
    return (struct ls_class_names){(const char *const *)source->class_name, source->class_count,
                                   dataset->name, source->tokenizer};
}

int ls_dataset_check_names(const struct ls_dataset *dataset, const struct ls_class_names *known,
                           struct ls_error *error)
{
    const struct ls_class_names own = ls_dataset_class_names(dataset);
    if (known == NULL || (own.count == 0 && own.tokenizer == 0))
        return 0;
    return ls_class_names_check(&own, dataset->source->vocabulary, known, error);
}

const char *ls_dataset_warning(const struct ls_dataset *dataset)
{
    return dataset->source->warning;
}

int64_t ls_dataset_streams(const struct ls_dataset *dataset)
{
    return dataset->source->streams;
}

const char *ls_dataset_class_name(const struct ls_dataset *dataset, int index)
{
    if (index < 0 || index >= dataset->source->class_count)
        return NULL;
    return dataset->source->class_name[index];
}

int64_t ls_dataset_largest(const struct ls_dataset *dataset, int tensor)
{
    return tensor < dataset->tensors
               ? dataset->source->tensor[dataset->tensor[tensor].source].largest
               : -1;
}

const struct ls_transform *ls_dataset_transform(const struct ls_dataset *dataset,
                                                bool *interpolates, bool *rgb)
{
    const struct ls_source *source = dataset->source;
    *interpolates = source->interpolates;
    *rgb = !source->bgr;
    return ls_source_has_image(source) && source->type->stand_in == NULL ? &dataset->transform
                                                                         : NULL;
}

const float *ls_dataset_mean_picture(const struct ls_dataset *dataset, int64_t shape[3])
{
    const struct ls_source *source = dataset->source;
    memcpy(shape, dataset->transform.input, 3 * sizeof *shape);
    if (dataset->transform.mean != NULL || source->mean == NULL)
        return dataset->transform.mean;
    memcpy(shape + 1, source->mean_side, sizeof source->mean_side);
    return source->mean;
}

int ls_dataset_prefetch(const struct ls_dataset *dataset)
{
    return dataset->prefetch;
}

bool ls_dataset_encoded(const struct ls_dataset *dataset)
{
    return dataset->source->encoded;
}

size_t ls_dataset_decode_bytes(const struct ls_dataset *dataset)
{
    return dataset->source->decode_bytes;
}

const char *ls_dataset_name(const struct ls_dataset *dataset)
{
    return dataset->name;
}

int64_t ls_dataset_records(const struct ls_dataset *dataset)
{
    return dataset->source->count;
}

void ls_dataset_name_record(const struct ls_dataset *dataset, int64_t record, struct ls_text *text)
{
    const struct ls_source_type *type = dataset->source->type;
    ls_text_format(text, "record %" PRId64, record);
    size_t plain = text->length;
    if (type->name_record == NULL)
        return;
    ls_text_add(text, " (");
    type->name_record(dataset->source, record, text);
    if (text->length == plain + 2 && !text->failed)
        text->data[text->length = plain] = '\0'; /* it has no name */
    else
        ls_text_add(text, ")");
}

uint64_t ls_dataset_reads(const struct ls_dataset *dataset)
{
    return atomic_load_explicit(&dataset->reads, memory_order_relaxed);
}
