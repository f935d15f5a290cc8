/* What data are known by from the start; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/fingerprint.h"

#include <inttypes.h>

#include "base/hash.h"
#include "data/dataset_inner.h"
#include "data/digest.h"
#include "data/reader.h"

uint64_t ls_record_hash(int64_t index, const struct ls_record *record, uint32_t wanted)
{
    uint64_t hash[LS_RECORD_TENSORS] = {0};
    for (int k = 0; k < record->count; k++)
        hash[k] = (wanted & LS_TENSOR(k)) != 0 ? record->tensor[k].hash : 0;
    if (record->count == 1 && (wanted & LS_TENSOR(1)) != 0)
        hash[1] = ls_mix(1); /* as of label 0 */
    return ls_digest_hash(index, hash, record->count > 2 ? record->count : 2);
}

static int take_ends(struct ls_dataset *dataset, struct ls_error *error)
{
    const struct ls_source *source = dataset->source;
    struct ls_source_reader *reader;
    LS_TRY(ls_source_reader_open(source, &reader, error));
    int status = 0;
    for (int i = 0; i < 2 && status == 0; i++) {
        struct ls_record record;
        int64_t index = i == 0 ? 0 : source->count - 1;
        struct ls_error *about = ls_source_aside(source, error);
        status = ls_source_read(reader, index, LS_ALL_TENSORS, &record, about);
        status = ls_source_forgive(source, status, error);
        dataset->ends[i] = ls_record_hash(index, &record, LS_ALL_TENSORS);
    }
    ls_source_reader_close(reader);
    return status;
}

/* The same where bad records are skipped; there must be a good one. */
static int take_good_ends(struct ls_dataset *dataset, struct ls_error *error)
{
    struct ls_reader *reader;
    struct ls_record record;
    LS_TRY(ls_reader_open(dataset, &reader, error));
    int status = ls_reader_read(reader, 0, &record, error);
    for (int i = 0; i < 2 && status == 0; i++) {
        int64_t index = i == 0 ? 0 : dataset->source->count - 1;
        status = ls_reader_hash_record(reader, index, &dataset->ends[i], error);
    }
    ls_reader_close(reader);
    return status;
}

int ls_dataset_take_ends(struct ls_dataset *dataset, struct ls_error *error)
{
    return dataset->bad != NULL ? take_good_ends(dataset, error) : take_ends(dataset, error);
}

static void add_hash(struct ls_text *text, const char *prefix, const char *what, uint64_t hash)
{
    ls_text_format(text, "%s%s %016" PRIx64 "\n", prefix, what, hash);
}

/* The shape, and for what is no image the type. */
static void describe_tensor(const struct ls_tensor_info *tensor, const char *prefix,
                            struct ls_text *text)
{
    ls_text_format(text, "%sshape", prefix);
    if (tensor->role == LS_TENSOR_PLAIN || tensor->role == LS_TENSOR_SEQUENCE)
        ls_text_format(text, " %s", ls_dtype_name(tensor->type));
    for (int i = 0; i < tensor->shape.rank; i++)
        ls_text_format(text, "%s%" PRId64, i > 0 ? " x " : " ", tensor->shape.dim[i]);
    ls_text_add(text, "\n");
}

void ls_dataset_describe(const struct ls_dataset *dataset, const char *prefix, struct ls_text *text)
{
    const struct ls_source *source = dataset->source;
    const struct ls_transform *transform = &dataset->transform;
    ls_text_format(text, "%skind %s\n%srecords %" PRId64 "\n%schosen %" PRId64 "\n", prefix,
                   source->type->name, prefix, source->count, prefix, dataset->size);
    int described =
        ls_source_has_image(source) && !ls_source_has_boxes(source) ? 1 : source->tensors;
    for (int k = 0; k < described; k++)
        describe_tensor(&source->tensor[k], prefix, text);
    if (source->sizes != NULL)
        add_hash(text, prefix, "sizes",
                 ls_hash(source->sizes, (size_t)source->count * sizeof *source->sizes, 0));
    if (source->labels_hash != 0)
        add_hash(text, prefix, "labels", source->labels_hash);
    if (source->class_count > 0) {
        uint64_t hash = 0;
        for (int i = 0; i < source->class_count; i++)
            hash = ls_hash_string(source->class_name[i], hash);
        add_hash(text, prefix, "class names", hash);
    }
    if (transform->mean != NULL)
        add_hash(text, prefix, "mean file",
                 ls_hash(transform->mean,
                         (size_t)ls_record_size(transform->input) * sizeof *transform->mean, 0));
    add_hash(text, prefix, "first record", dataset->ends[0]);
    add_hash(text, prefix, "last record", dataset->ends[1]);
}
