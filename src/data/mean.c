/* The mean of all records of a source, pixel by pixel.
 *
 * Sums of pixels are integers (2^32 records of 255 stay below 2^40), so the mean is rounded once.
 * Sums of floats are kept in double, in the order of the records.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/mean.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/mean_file.h"
#include "data/selection.h"

enum { CHANNELS_MAX = 16 };

/* Sums of one source; a record is added to one of the two. */
struct sums {
    int64_t size;
    uint64_t *whole;
    double *real;
};

static void add_record(struct sums *sums, const struct ls_record *record)
{
    const struct ls_record_tensor *image = &record->tensor[0];
    const uint8_t *bytes = image->data;
    const float *floats = image->data;
    if (image->type == LS_U8)
        for (int64_t i = 0; i < sums->size; i++)
            sums->whole[i] += bytes[i];
    else
        for (int64_t i = 0; i < sums->size; i++)
            sums->real[i] += (double)floats[i];
}

static int sum_records(struct ls_selection *selection, struct sums *sums, struct ls_error *error)
{
    for (int64_t i = 0; i < selection->count; i++) {
        struct ls_record record;
        LS_TRY(ls_selection_read(selection, i, &record, error));
        add_record(sums, &record);
        LS_TRY(ls_selection_progress(selection, i + 1, error));
    }
    return 0;
}

/* The means of a channel's pixels, and the mean of those. */
static double channel_mean(const struct sums *sums, int64_t count, int64_t first, int64_t size,
                           float *mean)
{
    double total = 0;
    for (int64_t i = first; i < first + size; i++) {
        double value = ((double)sums->whole[i] + sums->real[i]) / (double)count;
        mean[i] = (float)value;
        total += value;
    }
    return total / (double)size;
}

static int compute(struct ls_selection *selection, struct sums *sums, float *mean, double *means,
                   struct ls_error *error)
{
    LS_TRY(sum_records(selection, sums, error));
    const int64_t *shape = ls_source_image(selection->source);
    int64_t plane = shape[1] * shape[2];
    for (int64_t c = 0; c < shape[0]; c++) {
        double value = channel_mean(sums, selection->count, c * plane, plane, mean);
        if (!isfinite(value))
            return ls_fail(error, LOCKSTEP_DATA, NULL, NULL, "the mean of channel %d is not finite",
                           (int)c);
        if (means != NULL && c < CHANNELS_MAX)
            means[c] = value;
    }
    return 0;
}

int ls_mean(const struct lockstep_source_options *source, const char *path, double *channel_means,
            int *channels, struct ls_error *error)
{
    struct ls_selection selection;
    LS_TRY(ls_selection_check(source, error));
    int status = ls_selection_open(source, NULL, &selection, error);
    if (status != 0) {
        ls_selection_close(&selection);
        return status;
    }
    const int64_t *shape = ls_source_image(selection.source);
    struct sums sums = {.size = ls_record_size(shape)};
    sums.whole = ls_alloc((size_t)sums.size, sizeof *sums.whole);
    sums.real = ls_alloc((size_t)sums.size, sizeof *sums.real);
    float *mean = ls_alloc((size_t)sums.size, sizeof *mean);
    if (sums.whole == NULL || sums.real == NULL || mean == NULL)
        status = ls_fail_memory(error, "the sums of a mean");
    if (status == 0)
        status = compute(&selection, &sums, mean, channel_means, error);
    if (status == 0 && path != NULL)
        status = ls_mean_write(path, shape, mean, error);
    if (status == 0 && channels != NULL)
        *channels = (int)shape[0];
    ls_free(sums.whole);
    ls_free(sums.real);
    ls_free(mean);
    ls_selection_close(&selection);
    return status;
}
