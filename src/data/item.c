/* Items; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/item.h"

#include "base/align.h"
#include "base/memory.h"
#include "data/reader.h"
#include "data/record.h"
#include "data/resident.h"
#include "data/samples.h"

int ls_item_layout_init(const struct ls_prefetcher_options *options, struct ls_item_layout *layout,
                        struct ls_error *error)
{
    size_t inputs = (size_t)options->input_count;
    size_t datasets = (size_t)options->dataset_count;
    *layout = (struct ls_item_layout){.dataset_count = options->dataset_count,
                                      .input_count = options->input_count,
                                      .batching = options->batching};
    layout->datasets = ls_alloc(datasets, sizeof *layout->datasets);
    layout->inputs = ls_alloc(inputs, sizeof *layout->inputs);
    layout->runs = ls_alloc(inputs, sizeof *layout->runs);
    layout->rounded = ls_alloc(inputs, sizeof *layout->rounded);
    layout->hashes = ls_alloc(datasets, sizeof *layout->hashes);
    if (layout->datasets == NULL || layout->inputs == NULL || layout->runs == NULL ||
        layout->rounded == NULL || layout->hashes == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    for (size_t i = 0; i < inputs; i++) {
        int dataset = options->inputs[i][0], tensor = options->inputs[i][1];
        if (tensor < 0 || tensor >= ls_dataset_tensors(options->datasets[dataset]))
            return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                           "tensor %d of a sample was asked for", tensor);
        layout->inputs[i][0] = dataset;
        layout->inputs[i][1] = tensor;
        layout->runs[i] = options->runs != NULL ? options->runs[i] : 1;
        layout->rounded[i] = options->rounded != NULL && options->rounded[i];
    }
    for (size_t i = 0; i < datasets; i++) {
        layout->datasets[i] = options->datasets[i];
        layout->hashes[i] = options->hashes != NULL ? options->hashes[i] : NULL;
        if (ls_dataset_varies(layout->datasets[i]) && layout->batching.size_of == NULL)
            return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                           "samples vary in size, and the source reports no sizes");
    }
    return 0;
}

void ls_item_layout_free(struct ls_item_layout *layout)
{
    ls_free((void *)layout->datasets);
    ls_free(layout->inputs);
    ls_free(layout->runs);
    ls_free(layout->rounded);
    ls_free((void *)layout->hashes);
    *layout = (struct ls_item_layout){0};
}

static bool item_has_draws(const struct ls_item_layout *layout, int dataset)
{
    return layout->hashes[dataset] != NULL;
}

/* Bytes of a sample in an input; `shape` is that of an item. */
static size_t sample_bytes(const struct ls_item_layout *layout, int input, const int64_t shape[3])
{
    const struct ls_dataset *dataset = layout->datasets[layout->inputs[input][0]];
    if (item_has_draws(layout, layout->inputs[input][0]))
        return sizeof(struct ls_sample_draw);
    if (!ls_dataset_varies(dataset))
        shape = ls_dataset_shape(dataset);
    const size_t bytes = ls_dataset_tensor_bytes(dataset, layout->inputs[input][1], shape);
    return layout->rounded[input] ? bytes / 2 : bytes;
}

size_t ls_item_rounded_bytes(const struct ls_item_layout *layout)
{
    size_t bytes = 0;
    for (int i = 0; i < layout->input_count; i++) {
        const struct ls_dataset *dataset = layout->datasets[layout->inputs[i][0]];
        if (layout->rounded[i] && !item_has_draws(layout, layout->inputs[i][0]))
            bytes += 2 * sample_bytes(layout, i, ls_dataset_largest_shape(dataset));
    }
    return bytes;
}

int ls_item_input_bytes(const struct ls_item_layout *layout, int input, int64_t samples,
                        const int64_t shape[3], size_t *bytes, struct ls_error *error)
{
    const struct ls_batch item = {.count = samples};
    struct ls_batch its;
    int64_t all, sample = (int64_t)sample_bytes(layout, input, shape);
    ls_batching_of(&layout->batching, layout->inputs[input][0], &item, &its);
    if (!ls_multiply(its.count, sample, &all) || all > INT64_C(1) << 42)
        return ls_fail_memory(error, "a micro-batch");
    *bytes = (size_t)all;
    return 0;
}

int ls_item_largest(const struct ls_item_layout *layout, size_t *bytes, struct ls_error *error)
{
    int64_t samples = ls_batching_largest(&layout->batching);
    if (samples > layout->batching.batch)
        samples = layout->batching.batch;
    *bytes = 0;
    for (int i = 0; i < layout->input_count; i++) {
        size_t input = 0;
        const int64_t *largest = ls_dataset_largest_shape(layout->datasets[layout->inputs[i][0]]);
        LS_TRY(ls_item_input_bytes(layout, i, samples, largest, &input, error));
        *bytes += ls_align(input);
    }
    return 0;
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/* Where the tensors of a data set's samples go, by tensor. Returns which are wanted. */
static uint32_t find_places(const struct ls_item_layout *layout,
                            const struct ls_prefetch_item *item, int dataset,
                            struct ls_sample_place *place)
{
    uint32_t wanted = 0;
    for (int i = 0; i < layout->input_count; i++) {
        if (layout->inputs[i][0] != dataset)
            continue;
        int tensor = layout->inputs[i][1];
        place[tensor] = (struct ls_sample_place){.tensor = item->input[i],
                                                 .bytes = sample_bytes(layout, i, item->shape),
                                                 .runs = layout->runs[i],
                                                 .rounded = layout->rounded[i]};
        wanted |= LS_TENSOR(tensor);
    }
    return wanted;
}

static int decode_dataset(const struct ls_item_layout *layout, struct ls_reader *reader,
                          int dataset, const struct ls_prefetch_item *item, struct ls_error *error)
{
    struct ls_sample_place place[LS_RECORD_TENSORS] = {{0}};
    const struct ls_dataset *set = layout->datasets[dataset];
    uint32_t wanted = find_places(layout, item, dataset, place);
    if (wanted == 0)
        return 0;
    struct ls_digests *digests = &item->digests[dataset];
    int64_t size = ls_dataset_size(set), record;
    const struct ls_batch samples = {item->ordinal, item->samples};
    struct ls_batch its;
    int64_t left_out = ls_batching_of(&layout->batching, dataset, &samples, &its);
    int64_t begin = its.ordinal, end = begin + its.count, all = end + left_out;
    uint64_t hash;
    *digests = (struct ls_digests){0};
    for (int64_t i = begin; i < end; i++) {
        LS_TRY(ls_reader_fetch_to(reader, i, place, i - begin, its.count, error));
        ls_reader_last(reader, &record, &hash);
        ls_digests_add(digests, begin, all, size, i, record, hash);
        digests->skipped += ls_reader_replaced(reader);
    }
    for (int64_t i = end; i < all; i++) {
        LS_TRY(ls_reader_hash(reader, i, wanted, &record, &hash, error));
        ls_digests_add(digests, begin, all, size, i, record, hash);
    }
    return 0;
}

/* As decode_dataset, for records that lie in a device's memory. */
static void write_draws(const struct ls_item_layout *layout, struct ls_reader *reader, int dataset,
                        const struct ls_prefetch_item *item)
{
    struct ls_digests *digests = &item->digests[dataset];
    const int64_t size = ls_dataset_size(layout->datasets[dataset]);
    const struct ls_batch samples = {item->ordinal, item->samples};
    struct ls_batch its;
    int64_t left_out = ls_batching_of(&layout->batching, dataset, &samples, &its);
    const int64_t begin = its.ordinal, end = begin + its.count, all = end + left_out;
    bool wanted = false;
    for (int i = 0; i < layout->input_count; i++)
        wanted = wanted || layout->inputs[i][0] == dataset;
    if (!wanted)
        return;
    *digests = (struct ls_digests){0};
    for (int64_t o = begin; o < all; o++) {
        struct ls_sample_draw draw;
        int64_t record;
        ls_reader_draw(reader, o, &draw, &record);
        ls_digests_add(digests, begin, all, size, o, record, layout->hashes[dataset][draw.record]);
        for (int i = 0; o < end && i < layout->input_count; i++)
            if (layout->inputs[i][0] == dataset)
                ((struct ls_sample_draw *)item->input[i])[o - begin] = draw;
    }
}

int ls_item_decode(const struct ls_item_layout *layout, struct ls_reader *const *readers,
                   const struct ls_prefetch_item *item, struct ls_error *error)
{
    for (int d = 0; d < layout->dataset_count; d++)
        if (item_has_draws(layout, d))
            write_draws(layout, readers[d], d, item);
        else
            LS_TRY(decode_dataset(layout, readers[d], d, item, error));
    return 0;
}
