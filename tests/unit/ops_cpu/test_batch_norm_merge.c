/* Merging partial results: the fixed tree, Chan's formula, channels apart, padding.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/plain.h"
#include "kernels/own_kernel.h"

enum { ROWS_MAX = 70, CHANNELS_MAX = 40, PADDED_MAX = 48, ROW = 2 * PADDED_MAX + LS_SYNC_ROW_END };

/* Rows as they come from values: row r has counts[r] values a channel. */
struct batch {
    struct ls_sync sync;
    int rows;
    double row[ROWS_MAX][ROW];
    const double *at[ROWS_MAX];
    float merged[4 * PADDED_MAX];
};

static double value_at(int row, int channel, int i, double mean)
{
    uint64_t number = (uint64_t)((row * CHANNELS_MAX + channel) * 100 + i);
    return mean + (double)own_random(8, number);
}

static int values_of(int row)
{
    return 1 + row * 7 % 23;
}

static void make(struct batch *batch, enum ls_sync_kind kind, int rows, int channels, double mean)
{
    memset(batch, 0, sizeof *batch);
    batch->sync = (struct ls_sync){.kind = kind, .channels = channels, .eps = 1e-3f};
    batch->rows = rows;
    int64_t padded = ls_sync_padded(&batch->sync);
    for (int r = 0; r < rows; r++) {
        double *row = batch->row[r], n = values_of(r);
        batch->at[r] = row;
        row[2 * padded] = n;
        for (int c = 0; c < channels; c++) {
            double sum = 0, squares = 0;
            for (int i = 0; i < values_of(r); i++)
                sum += value_at(r, c, i, mean);
            for (int i = 0; i < values_of(r); i++)
                squares += pow(value_at(r, c, i, mean) - sum / n, 2);
            row[c] = kind == LS_SYNC_MOMENTS ? sum / n : sum;
            row[padded + c] = squares;
        }
    }
    memset(batch->merged, 0xff, sizeof batch->merged);
}

static void merge_all(struct batch *batch)
{
    assert_int_equal(ls_plain_merge(NULL, &batch->sync, batch->at, batch->rows, 0,
                                    ls_sync_padded(&batch->sync), batch->merged, NULL),
                     0);
}

/* Row b into row a. */
static void join(const struct ls_sync *sync, double *a, const double *b)
{
    int64_t padded = ls_sync_padded(sync);
    double na = a[2 * padded], nb = b[2 * padded], share = nb / (na + nb), weight = na * share;
    for (int64_t c = 0; c < padded; c++) {
        double d = b[c] - a[c];
        if (sync->kind == LS_SYNC_MOMENTS) {
            a[c] = a[c] + d * share;
            a[padded + c] = a[padded + c] + b[padded + c] + d * d * weight;
        } else {
            a[c] += b[c];
            a[padded + c] += b[padded + c];
        }
    }
    a[2 * padded] = na + nb;
}

/* As the engine merges records: rows at distance 1, then 2, then 4. */
static void step_by_step(struct batch *batch)
{
    for (int step = 1; step < batch->rows; step *= 2)
        for (int i = 0; i + step < batch->rows; i += 2 * step)
            join(&batch->sync, batch->row[i], batch->row[i + step]);
}

static void check_tree(enum ls_sync_kind kind)
{
    static struct batch batch;
    for (int rows = 1; rows <= ROWS_MAX; rows++) {
        make(&batch, kind, rows, 20, 3);
        merge_all(&batch);
        step_by_step(&batch);
        const double *row = batch.row[0], n = row[64];
        for (int c = 0; c < 20; c++) {
            const float *at = batch.merged + c;
            if (kind == LS_SYNC_SUMS) {
                assert_true(at[0] == (float)(row[c] / n) && at[32] == (float)(row[32 + c] / n));
                continue;
            }
            float mean = (float)row[c];
            assert_true(at[0] == mean && at[32] == (float)(row[c] - (double)mean));
            assert_true(at[64] == (float)(1 / sqrt(row[32 + c] / n + (double)1e-3f)));
            assert_true(at[96] == (float)(row[32 + c] / n));
        }
    }
}

static void test_tree(void **state)
{
    (void)state;
    check_tree(LS_SYNC_MOMENTS);
    check_tree(LS_SYNC_SUMS);
}

/* The moments of all values together, also where the mean is large. */
static void test_values(void **state)
{
    (void)state;
    static struct batch batch;
    static const double means[] = {0, 1000, -1e6};
    for (int m = 0; m < 3; m++) {
        make(&batch, LS_SYNC_MOMENTS, 61, 5, means[m]);
        merge_all(&batch);
        for (int c = 0; c < 5; c++) {
            long double sum = 0, squares = 0, n = 0;
            for (int r = 0; r < batch.rows; r++)
                for (int i = 0; i < values_of(r); i++, n++)
                    sum += value_at(r, c, i, means[m]);
            for (int r = 0; r < batch.rows; r++)
                for (int i = 0; i < values_of(r); i++) {
                    long double d = value_at(r, c, i, means[m]) - sum / n;
                    squares += d * d;
                }
            double mean = (double)batch.merged[c] + (double)batch.merged[16 + c];
            assert_true(fabs(mean - (double)(sum / n)) <= 1e-14 * (1 + fabs(means[m])));
            assert_true(fabs((double)(batch.merged[48 + c] / (float)(squares / n)) - 1) <= 3e-7);
        }
    }
}

/* However the channels are split among threads. */
static void test_split(void **state)
{
    (void)state;
    static struct batch batch, split;
    for (int kind = LS_SYNC_MOMENTS; kind <= LS_SYNC_SUMS; kind++) {
        make(&batch, (enum ls_sync_kind)kind, 13, CHANNELS_MAX, 2);
        merge_all(&batch);
        make(&split, (enum ls_sync_kind)kind, 13, CHANNELS_MAX, 2);
        for (int64_t begin = PADDED_MAX - LS_SYNC_BLOCK; begin >= 0; begin -= LS_SYNC_BLOCK)
            assert_int_equal(ls_plain_merge(NULL, &split.sync, split.at, split.rows, begin,
                                            begin + LS_SYNC_BLOCK, split.merged, NULL),
                             0);
        assert_memory_equal(batch.merged, split.merged,
                            (size_t)ls_sync_merged(&batch.sync) * sizeof(float));
    }
}

static void test_padding(void **state)
{
    (void)state;
    static struct batch batch;
    static const float zeros[LS_SYNC_BLOCK];
    for (int channels = 1; channels < CHANNELS_MAX; channels++)
        for (int kind = LS_SYNC_MOMENTS; kind <= LS_SYNC_SUMS; kind++) {
            make(&batch, (enum ls_sync_kind)kind, 5, channels, 2);
            merge_all(&batch);
            int64_t padded = ls_sync_padded(&batch.sync);
            size_t bytes = (size_t)(padded - channels) * sizeof(float);
            for (int64_t a = 0; a < ls_sync_merged(&batch.sync); a += padded)
                assert_memory_equal(batch.merged + a + channels, zeros, bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
