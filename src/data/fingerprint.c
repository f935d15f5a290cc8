/* What data are known by from the start. SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/hash.h"
#include "data/dataset_inner.h"
#include "data/digest.h"

static int take_ends(struct ls_dataset *dataset, bool *floats, struct ls_error *error)
{
    const struct ls_source *source = dataset->source;
    struct ls_source_reader *reader;
    LS_TRY(ls_source_reader_open(source, &reader, error));
    int status = 0;
    for (int i = 0; i < 2 && status == 0; i++) {
        struct ls_record record = {0};
        int64_t index = i == 0 ? 0 : source->count - 1;
        status = ls_source_read(reader, index, true, &record, ls_source_aside(source, error));
        status = ls_source_forgive(source, status, error);
        dataset->ends[i] = ls_digest_hash(index, record.data_hash, record.label_hash);
        *floats = i == 0 ? record.bytes == NULL : *floats;
    }
    ls_source_reader_close(reader);
    return status;
}

/* The same where bad records are skipped: *floats is of a good one. */
static int take_good_ends(struct ls_dataset *dataset, bool *floats, struct ls_error *error)
{
    struct ls_reader *reader;
    struct ls_record record;
    LS_TRY(ls_reader_open(dataset, &reader, error));
    int status = ls_reader_read(reader, 0, &record, error);
    *floats = status == 0 && record.bytes == NULL;
    for (int i = 0; i < 2 && status == 0; i++) {
        int64_t index = i == 0 ? 0 : dataset->source->count - 1;
        status = ls_reader_hash_record(reader, index, &dataset->ends[i], error);
    }
    ls_reader_close(reader);
    return status;
}

int ls_dataset_take_ends(struct ls_dataset *dataset, bool *floats, struct ls_error *error)
{
    return dataset->bad != NULL ? take_good_ends(dataset, floats, error)
                                : take_ends(dataset, floats, error);
}

static void add_hash(struct ls_text *text, const char *prefix, const char *what, uint64_t hash)
{
    ls_text_format(text, "%s%s %016" PRIx64 "\n", prefix, what, hash);
}

void ls_dataset_describe(const struct ls_dataset *dataset, const char *prefix, struct ls_text *text)
{
    const struct ls_source *source = dataset->source;
    const struct ls_transform *transform = &dataset->transform;
    ls_text_format(text, "%skind %s\n%srecords %" PRId64 "\n%schosen %" PRId64 "\n", prefix,
                   source->type->name, prefix, source->count, prefix, dataset->size);
    ls_text_format(text, "%sshape %" PRId64 " x %" PRId64 " x %" PRId64 "\n", prefix,
                   source->shape[0], source->shape[1], source->shape[2]);
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

uint64_t ls_dataset_fingerprint(const struct ls_dataset *dataset)
{
    struct ls_text text = {0};
    ls_dataset_describe(dataset, "", &text);
    uint64_t hash = ls_hash(text.data, text.length, 0);
    ls_text_free(&text);
    return hash;
}
