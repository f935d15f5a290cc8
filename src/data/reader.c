/* Readers: samples by ordinal.
 *
 *   ordinal -> epoch, position -> (shuffle) place in the epoch's order -> (split) record
 *           -> cache or source -> transformation
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/align.h"
#include "base/assert.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/bad_records.h"
#include "data/dataset_inner.h"
#include "data/fingerprint.h"
#include "data/numbers.h"
#include "data/oddities.h"
#include "data/order.h"
#include "data/reader_inner.h"
#include "data/samples.h"
#include "ir/convert.h"

int ls_reader_open(struct ls_dataset *dataset, struct ls_reader **reader, struct ls_error *error)
{
    *reader = NULL;
    struct ls_reader *made = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return ls_fail_memory(error, "a reader of data");
    made->dataset = dataset;
    int status = ls_source_reader_open(dataset->source, &made->source, error);
    if (status == 0 && dataset->bad != NULL) {
        made->aside = ls_alloc(1, sizeof *made->aside);
        status = made->aside != NULL ? 0 : ls_fail_memory(error, "a reader of data");
    }
    if (status != 0) {
        ls_reader_close(made);
        return status;
    }
    *reader = made;
    return 0;
}

void ls_reader_close(struct ls_reader *reader)
{
    if (reader == NULL)
        return;
    ls_source_reader_close(reader->source);
    ls_augment_room_free(&reader->room);
    ls_buffer_free(&reader->sample);
    ls_free(reader->aside);
    ls_free(reader);
}

static int64_t place_of(struct ls_reader *reader, int64_t ordinal)
{
    return ls_dataset_place_of(reader->dataset, ordinal, &reader->order);
}

/* The record that is read for an ordinal. */
static int64_t record_index(struct ls_reader *reader, int64_t ordinal)
{
    return ls_dataset_stand_in(reader->dataset, place_of(reader, ordinal));
}

/* The tensors of a record that some of a sample's are made from. */
static uint32_t in_record(const struct ls_dataset *dataset, uint32_t wanted)
{
    uint32_t of_record = 0;
    for (int k = 0; k < dataset->tensors; k++)
        if ((wanted & LS_TENSOR(k)) != 0)
            of_record |= LS_TENSOR(dataset->tensor[k].source);
    return of_record;
}

/* All tensors of a record but an image, which alone takes long to decode. */
static uint32_t all_but_image(const struct ls_dataset *dataset)
{
    return ls_source_has_image(dataset->source) ? LS_ALL_TENSORS & ~LS_TENSOR(0) : LS_ALL_TENSORS;
}

/* Notes what was read of a record. */
static uint64_t note_hash(struct ls_reader *reader, int64_t index, const struct ls_record *record,
                          uint32_t wanted)
{
    reader->last = index;
    reader->hash = ls_record_hash(index, record, wanted);
    return reader->hash;
}

/* The wanted tensors of record `index`, from the cache or the source; valid until the reader's next
 * call. What is kept is kept whole. */
static int read_index(struct ls_reader *reader, int64_t index, uint32_t wanted,
                      struct ls_record *record, struct ls_error *error)
{
    struct ls_dataset *dataset = reader->dataset;
    if (dataset->cache != NULL && ls_cache_find(dataset->cache, dataset->source, index, record))
        return 0;
    bool decodes = (wanted & ~all_but_image(dataset)) != 0 || !ls_source_has_image(dataset->source);
    bool keeps = dataset->cache != NULL && decodes && !reader->source->hash_only;
    LS_TRY(ls_source_read(reader->source, index, keeps ? LS_ALL_TENSORS : wanted, record, error));
    if (keeps)
        ls_cache_keep(dataset->cache, dataset->source, index, record);
    return 0;
}

/* Adds what is wrong with a record's file to the caller's problems. */
static int tell_aside(const struct ls_reader *reader, int status, struct ls_error *error)
{
    ls_error_add(error, reader->aside);
    return status;
}

/* LOCKSTEP_DATA where a record is bad although it could be read. */
static int judge(const struct ls_reader *reader, const struct ls_record *record,
                 struct ls_problem *problem)
{
    const struct ls_dataset *dataset = reader->dataset;
    int64_t shape[3];
    if (ls_source_has_image(dataset->source))
        LS_TRY(
            ls_transform_shape(&dataset->transform, record->tensor[0].shape.dim, shape, problem));
    return ls_bad_records_numbers(dataset, record, problem);
}

/* Reads a record of which it is not known whether it is bad, and finds that out; for that it is
 * read as a whole, but where its labels alone are not known. */
static int try_index(struct ls_reader *reader, int64_t index, enum ls_verdict verdict,
                     uint32_t wanted, struct ls_record *record, bool *good, struct ls_error *error)
{
    struct ls_bad_records *bad = reader->dataset->bad;
    bool hash_only = reader->source->hash_only;
    bool trusts = reader->trusts && hash_only;
    struct ls_problem problem;
    ls_error_clear(reader->aside);
    reader->source->hash_only = trusts;
    reader->source->bad = false;
    bool whole = verdict == LS_UNKNOWN && !trusts;
    wanted |= whole ? LS_ALL_TENSORS : all_but_image(reader->dataset);
    int status = read_index(reader, index, wanted, record, reader->aside);
    reader->source->hash_only = hash_only;
    if (status != 0 && !reader->source->bad)
        return tell_aside(reader, status, error);
    const char *reason = status != 0 ? reader->aside->problems[0].message : problem.message;
    if (status == 0 && !trusts)
        status = judge(reader, record, &problem);
    *good = status == 0;
    if (!*good)
        ls_bad_records_note(bad, index, reason);
    else if (!trusts)
        ls_bad_records_set(bad, index, LS_GOOD);
    return 0;
}

/* The record at a place of the split, or where bad ones are skipped the next good one. */
static int read_place(struct ls_reader *reader, int64_t place, uint32_t wanted,
                      struct ls_record *record, struct ls_error *error)
{
    const struct ls_dataset *dataset = reader->dataset;
    reader->replaced = false;
    if (dataset->bad == NULL)
        return read_index(reader, ls_dataset_place(dataset, place), wanted, record, error);
    for (int64_t i = 0; i < dataset->size; i++) {
        int64_t index = ls_dataset_place(dataset, (place + i) % dataset->size);
        enum ls_verdict verdict = ls_bad_records_verdict(dataset->bad, index);
        bool good = verdict == LS_GOOD;
        reader->replaced = i > 0;
        if (good)
            return read_index(reader, index, wanted, record, error);
        if (verdict != LS_BAD)
            LS_TRY(try_index(reader, index, verdict, wanted, record, &good, error));
        if (good)
            return 0;
    }
    return ls_bad_records_none(dataset, error);
}

int ls_reader_place(struct ls_reader *reader, int64_t place, uint32_t wanted,
                    struct ls_record *record, struct ls_error *error)
{
    LS_TRY(read_place(reader, place, wanted, record, error));
    note_hash(reader, ls_dataset_place(reader->dataset, place), record, wanted);
    return 0;
}

int ls_reader_record(struct ls_reader *reader, int64_t ordinal, uint32_t wanted,
                     struct ls_record *record, struct ls_error *error)
{
    if (ordinal < 0)
        return ls_fail(error, LOCKSTEP_INTERNAL, reader->dataset->name, NULL,
                       "sample %" PRId64 " was asked for", ordinal);
    return ls_reader_place(reader, place_of(reader, ordinal), wanted, record, error);
}

int ls_reader_read(struct ls_reader *reader, int64_t ordinal, struct ls_record *record,
                   struct ls_error *error)
{
    return ls_reader_record(reader, ordinal, LS_ALL_TENSORS, record, error);
}

static int hash_place(struct ls_reader *reader, int64_t place, uint32_t wanted, uint64_t *hash,
                      struct ls_error *error)
{
    struct ls_record record;
    int64_t index = ls_dataset_place(reader->dataset, place);
    reader->source->hash_only = true;
    int status = read_place(reader, place, wanted, &record, error);
    reader->source->hash_only = false;
    if (status == 0)
        *hash = note_hash(reader, index, &record, wanted);
    return status;
}

/* The place of a record; -1: it does not belong to the split. */
static int64_t find_place(const struct ls_dataset *dataset, int64_t record)
{
    if (dataset->records == NULL)
        return record;
    int64_t begin = 0, end = dataset->size;
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if ((int64_t)dataset->records[middle] < record)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < dataset->size && (int64_t)dataset->records[begin] == record ? begin : -1;
}

/* The hash of a record's own bytes. One that a split leaves out may be bad. */
static int hash_own(struct ls_reader *reader, int64_t index, uint64_t *hash, struct ls_error *error)
{
    struct ls_record record = {.count = 0};
    struct ls_error *about = reader->aside != NULL ? reader->aside : error;
    ls_error_clear(reader->aside);
    reader->source->hash_only = true;
    int status = read_index(reader, index, LS_ALL_TENSORS, &record, about);
    reader->source->hash_only = false;
    if (status != 0 && reader->aside != NULL && !reader->source->bad)
        return tell_aside(reader, status, error);
    if (status != 0 && reader->aside == NULL)
        return status;
    *hash = note_hash(reader, index, &record, LS_ALL_TENSORS);
    return 0;
}

int ls_reader_hash(struct ls_reader *reader, int64_t ordinal, uint32_t wanted, int64_t *record,
                   uint64_t *hash, struct ls_error *error)
{
    int64_t place = place_of(reader, ordinal);
    *record = ls_dataset_place(reader->dataset, place);
    return hash_place(reader, place, in_record(reader->dataset, wanted), hash, error);
}

int ls_reader_hash_record(struct ls_reader *reader, int64_t record, uint64_t *hash,
                          struct ls_error *error)
{
    int64_t place = find_place(reader->dataset, record);
    return reader->dataset->bad == NULL || place < 0
               ? hash_own(reader, record, hash, error)
               : hash_place(reader, place, LS_ALL_TENSORS, hash, error);
}

void ls_reader_trust(struct ls_reader *reader, bool trust)
{
    reader->trusts = trust;
}

bool ls_reader_replaced(const struct ls_reader *reader)
{
    return reader->replaced;
}

void ls_reader_last(const struct ls_reader *reader, int64_t *record, uint64_t *hash)
{
    *record = reader->last;
    *hash = reader->hash;
}

void ls_reader_name(struct ls_reader *reader, int64_t ordinal, struct ls_text *text)
{
    ls_dataset_name_record(reader->dataset, record_index(reader, ordinal), text);
}

int ls_reader_fail(struct ls_reader *reader, int64_t ordinal, const struct ls_problem *problem,
                   struct ls_error *error)
{
    return ls_dataset_fail_record(reader->dataset, record_index(reader, ordinal), problem, error);
}

/* That a record still has the size that it had when its source was opened: memory was made for
 * that. */
static int check_size(struct ls_reader *reader, int64_t ordinal, const struct ls_record *record,
                      struct ls_error *error)
{
    const struct ls_dataset *dataset = reader->dataset;
    int64_t shape[3];
    if (!ls_dataset_varies(dataset) || dataset->source->steps > 0)
        return 0; /* where sequences end is known from the start, and not from the record */
    ls_source_shape_of(dataset->source, record_index(reader, ordinal), shape);
    const int64_t *found = record->tensor[0].shape.dim;
    if (found[1] == shape[1] && found[2] == shape[2])
        return 0;
    struct ls_problem problem;
    ls_problem_set(&problem, LOCKSTEP_DATA, "files must not change while they are in use",
                   "it has another height or width than when the data were opened");
    return ls_reader_fail(reader, ordinal, &problem, error);
}

/* The number of a sample in its batch, which begins each of its boxes. */
static float item_of(const struct ls_dataset *dataset, int64_t ordinal)
{
    if (dataset->last_batch != LS_LAST_WRAP)
        ordinal %= dataset->size;
    return dataset->batch > 0 ? (float)(ordinal % dataset->batch) : 0;
}

/* Writes one tensor of a sample. */
static int write_tensor(struct ls_reader *reader, int64_t ordinal, const struct ls_record *record,
                        int tensor, void *out, struct ls_error *error)
{
    const struct ls_dataset *dataset = reader->dataset;
    int source = dataset->tensor[tensor].source;
    const struct ls_record_tensor *data = &record->tensor[source];
    const struct ls_record_tensor *boxes =
        ls_source_has_boxes(dataset->source) ? &record->tensor[1] : NULL;
    struct ls_problem problem;
    int status = 0;
    LS_ASSERT(data->data != NULL); /* what a source reads if it is wanted */
    switch (dataset->source->tensor[source].role) {
    case LS_TENSOR_IMAGE:
        status = ls_transform_apply(&dataset->transform, data, boxes, (uint64_t)ordinal, true,
                                    &reader->room, out, &problem);
        break;
    case LS_TENSOR_MAP:
        status =
            ls_transform_map(&dataset->transform, data, (uint64_t)ordinal, true, out, &problem);
        break;
    case LS_TENSOR_BOXES:
        status =
            ls_transform_boxes(&dataset->transform, &record->tensor[0], data, (uint64_t)ordinal,
                               true, item_of(dataset, ordinal), out, &problem);
        break;
    case LS_TENSOR_PLAIN:
    case LS_TENSOR_SEQUENCE:
        status = ls_dataset_convert(dataset, tensor, record, out, &problem);
        break;
    }
    return status == 0 ? 0 : ls_reader_fail(reader, ordinal, &problem, error);
}

int ls_reader_fetch(struct ls_reader *reader, int64_t ordinal, void *const *out,
                    struct ls_error *error)
{
    struct ls_dataset *dataset = reader->dataset;
    struct ls_record record = {0};
    uint32_t wanted = 0;
    for (int k = 0; k < dataset->tensors; k++)
        wanted |= out[k] != NULL ? LS_TENSOR(dataset->tensor[k].source) : 0;
    atomic_fetch_add_explicit(&dataset->reads, 1, memory_order_relaxed);
    LS_TRY(ls_reader_record(reader, ordinal, wanted, &record, error));
    LS_TRY(check_size(reader, ordinal, &record, error));
    for (int k = 0; k < dataset->tensors; k++)
        if (out[k] != NULL)
            LS_TRY(write_tensor(reader, ordinal, &record, k, out[k], error));
    ls_oddities_look(dataset, ordinal,
                     reader->replaced ? record_index(reader, ordinal) : reader->last, &record, out);
    return 0;
}

/* Whether a tensor is put in place part by part, or rounded. */
static bool is_put(const struct ls_sample_place *place)
{
    return place->tensor != NULL && (place->runs > 1 || place->rounded);
}

/* Bytes of a tensor before it is put in place. */
static size_t bytes_before(const struct ls_sample_place *place)
{
    return place->rounded ? 2 * place->bytes : place->bytes;
}

/* Memory for the tensors of a sample that are put in place. */
static char *reserve_sample(struct ls_reader *reader, const struct ls_sample_place *place,
                            struct ls_error *error)
{
    size_t bytes = 0;
    for (int k = 0; k < reader->dataset->tensors; k++)
        bytes += is_put(&place[k]) ? ls_align(bytes_before(&place[k])) : 0;
    char *sample = ls_buffer_reserve(&reader->sample, bytes + 1, 1);
    if (sample == NULL)
        ls_fail_memory(error, "a sample");
    return sample;
}

/* A tensor as sample `s` of `samples`. */
static void put(const struct ls_sample_place *place, int64_t s, int64_t samples, const char *tensor)
{
    const size_t runs = place->runs > 1 ? place->runs : 1, part = place->bytes / runs;
    for (size_t r = 0; r < runs; r++) {
        char *to = (char *)place->tensor + (r * (size_t)samples + (size_t)s) * part;
        if (place->rounded)
            ls_dtype_convert(LS_F32, tensor + 2 * r * part, LS_BF16, to, part / 2);
        else
            memcpy(to, tensor + r * part, part);
    }
}

int ls_reader_fetch_to(struct ls_reader *reader, int64_t ordinal,
                       const struct ls_sample_place *place, int64_t s, int64_t samples,
                       struct ls_error *error)
{
    const int tensors = reader->dataset->tensors;
    void *out[LS_RECORD_TENSORS] = {NULL};
    char *sample = reserve_sample(reader, place, error);
    if (sample == NULL)
        return LOCKSTEP_RESOURCE;
    for (int k = 0; k < tensors; k++) {
        if (is_put(&place[k])) {
            out[k] = sample;
            sample += ls_align(bytes_before(&place[k]));
        } else if (place[k].tensor != NULL) {
            out[k] = (char *)place[k].tensor + (size_t)s * place[k].bytes;
        }
    }
    LS_TRY(ls_reader_fetch(reader, ordinal, out, error));
    for (int k = 0; k < tensors; k++)
        if (is_put(&place[k]))
            put(&place[k], s, samples, out[k]);
    return 0;
}
