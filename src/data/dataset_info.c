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

int ls_dataset_check_vocabulary(const struct ls_dataset *dataset, const char *const *names,
                                size_t count, const char *of, struct ls_error *error)
{
    const struct ls_source *source = dataset->source;
    const size_t own = (size_t)source->class_count;
    size_t i = 0;
    while (i < count && i < own && strcmp(names[i], source->class_name[i]) == 0)
        i++;
    if (i == count && i == own)
        return 0;
    return ls_fail(
        error, LOCKSTEP_DATA, dataset->name,
        "text_param { vocabulary } names the text that the net was trained on",
        "its vocabulary has %zu characters, and that of %.200s %zu; number %zu is %s%s%s "
        "and %s%s%s",
        own, of, count, i, i < own ? "'" : "", i < own ? source->class_name[i] : "none",
        i < own ? "'" : "", i < count ? "'" : "", i < count ? names[i] : "none",
        i < count ? "'" : "");
}

int ls_dataset_same_vocabulary(const struct ls_dataset *dataset, const struct ls_dataset *other,
                               struct ls_error *error)
{
    const struct ls_source *source = other->source;
    if (!dataset->source->vocabulary || !source->vocabulary)
        return 0;
    return ls_dataset_check_vocabulary(dataset, (const char *const *)source->class_name,
                                       (size_t)source->class_count, other->name, error);
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
