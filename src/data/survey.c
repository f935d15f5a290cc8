/* What a source has: how many records, sizes of pictures, classes.
 *
 * All labels are read, and the sizes that are known without decoding; mean and deviation are those
 * of some records, evenly spread over the source, so that it takes no long time.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/survey.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/selection.h"

enum { LOOKED_AT = 500 /* pictures that are decoded */ };

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median, least and largest of a side over all records. `sides` has room for all of them. */
static void find_sides(const struct ls_selection *selection, int dim, int64_t *sides, int *side,
                       int *least, int *most)
{
    for (int64_t i = 0; i < selection->count; i++) {
        int64_t shape[3];
        ls_source_shape_of(selection->source, ls_selection_index(selection, i), shape);
        sides[i] = shape[dim];
    }
    qsort(sides, (size_t)selection->count, sizeof *sides, compare);
    *least = (int)sides[0];
    *side = (int)sides[selection->count / 2];
    *most = (int)sides[selection->count - 1];
}

static int find_sizes(const struct ls_selection *selection, struct lockstep_source_facts *facts,
                      struct ls_error *error)
{
    int64_t *sides = ls_alloc((size_t)selection->count, sizeof *sides);
    if (sides == NULL)
        return ls_fail_memory(error, "the sizes of pictures");
    find_sides(selection, 1, sides, &facts->height, &facts->height_least, &facts->height_most);
    find_sides(selection, 2, sides, &facts->width, &facts->width_least, &facts->width_most);
    ls_free(sides);
    return 0;
}

static int count_classes(struct ls_selection *selection, struct lockstep_source_facts *facts,
                         struct ls_error *error)
{
    for (int64_t i = 0; i < selection->count; i++) {
        struct ls_record record;
        int64_t index = ls_selection_index(selection, i);
        LS_TRY(ls_source_read(selection->reader, index, LS_TENSOR(1), &record, error));
        const struct ls_record_tensor *label = &record.tensor[1];
        if (label->type != LS_I32 || label->shape.rank != 0 || label->data == NULL)
            return 0; /* maps, or numbers that are no classes */
        int32_t class = *(const int32_t *)label->data;
        if (class < 0 || class >= LOCKSTEP_SOURCE_CLASSES)
            return ls_fail(error, LOCKSTEP_DATA, NULL, NULL,
                           "record %lld has label %d, which is not from 0 to %d", (long long)index,
                           (int)class, LOCKSTEP_SOURCE_CLASSES - 1);
        facts->class_records[class]++;
        if (class >= facts->classes)
            facts->classes = class + 1;
    }
    return 0;
}

struct sums {
    double sum[LOCKSTEP_SOURCE_CHANNELS], square[LOCKSTEP_SOURCE_CHANNELS], count;
};

static void add_picture(struct sums *sums, const struct ls_record_tensor *image)
{
    const uint8_t *bytes = image->data;
    const float *floats = image->data;
    int64_t plane = image->shape.dim[1] * image->shape.dim[2];
    for (int64_t c = 0; c < image->shape.dim[0] && c < LOCKSTEP_SOURCE_CHANNELS; c++) {
        for (int64_t i = c * plane; i < (c + 1) * plane; i++) {
            double value = image->type == LS_U8 ? (double)bytes[i] : (double)floats[i];
            sums->sum[c] += value;
            sums->square[c] += value * value;
        }
    }
    sums->count += (double)plane;
}

/* Pixels of each label of a map. */
static void add_map(struct lockstep_source_facts *facts, const struct ls_record_tensor *map)
{
    const uint16_t *labels = map->data;
    for (int64_t i = 0; i < ls_tensor_numbers(map); i++) {
        const int label =
            labels[i] < LOCKSTEP_SOURCE_CLASSES ? labels[i] : LOCKSTEP_SOURCE_CLASSES - 1;
        facts->class_records[label]++;
        facts->classes = label >= facts->classes ? label + 1 : facts->classes;
    }
}

static int look_at_pictures(struct ls_selection *selection, struct lockstep_source_facts *facts,
                            struct ls_error *error)
{
    struct sums sums = {.count = 0};
    int64_t looks = selection->count < LOOKED_AT ? selection->count : LOOKED_AT;
    for (int64_t i = 0; i < looks; i++) {
        struct ls_record record;
        LS_TRY(ls_selection_read(selection, i * selection->count / looks, &record, error));
        const struct ls_record_tensor *image = &record.tensor[0];
        if (image->type == LS_U8 || image->type == LS_F32)
            add_picture(&sums, image);
        if (selection->source->tensor[1].role == LS_TENSOR_MAP && record.tensor[1].type == LS_U16)
            add_map(facts, &record.tensor[1]);
    }
    for (int c = 0; c < facts->channels && c < LOCKSTEP_SOURCE_CHANNELS && sums.count > 0; c++) {
        facts->mean[c] = sums.sum[c] / sums.count;
        double variance = sums.square[c] / sums.count - facts->mean[c] * facts->mean[c];
        facts->deviation[c] = variance > 0 ? sqrt(variance) : 0;
    }
    return 0;
}

int ls_survey(const struct lockstep_source_options *options, const struct ls_class_names *known,
              struct lockstep_source_facts *facts, struct ls_error *error)
{
    struct lockstep_source_options any = *options;
    struct ls_selection selection;
    *facts = (struct lockstep_source_facts){.records = 0};
    any.any_size = 1;
    int status = ls_selection_open(&any, known, &selection, error);
    if (status == 0 && !ls_source_has_image(selection.source))
        status = ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "%s: its records have no pictures",
                         selection.source->type->name);
    if (status == 0) {
        facts->records = selection.count;
        facts->channels = (int)ls_source_image(selection.source)[0];
        status = find_sizes(&selection, facts, error);
    }
    if (status == 0)
        status = count_classes(&selection, facts, error);
    if (status == 0)
        status = look_at_pictures(&selection, facts, error);
    ls_selection_close(&selection);
    return status;
}
