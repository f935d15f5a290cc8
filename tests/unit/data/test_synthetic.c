/* Synthetic digits: the same on every machine, different from each other, and recognizable.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/hash.h"
#include "data/source.h"
#include "data_trial.h"

/* What a layer says of its digits. */
struct digits {
    int64_t synthetic_count, synthetic_shape[3];
    uint64_t synthetic_seed, synthetic_first;
    double synthetic_noise;
};

static struct digits options_of(int64_t count)
{
    return (struct digits){.synthetic_count = count,
                           .synthetic_seed = 1,
                           .synthetic_shape = {1, 28, 28},
                           .synthetic_noise = 16};
}

static int open_digits(const struct digits *digits, struct ls_source **source,
                       struct ls_error *error)
{
    return trial_source(source, error,
                        "data_param { backend: SYNTHETIC synthetic_param { count: %" PRId64
                        " channels: %" PRId64 " height: %" PRId64 " width: %" PRId64
                        " seed: %" PRIu64 " first: %" PRIu64 " noise: %g } }",
                        digits->synthetic_count, digits->synthetic_shape[0],
                        digits->synthetic_shape[1], digits->synthetic_shape[2],
                        digits->synthetic_seed, digits->synthetic_first, digits->synthetic_noise);
}

static struct ls_source *open_with(const struct digits *options, struct ls_source_reader **reader)
{
    struct ls_source *source;
    assert_int_equal(open_digits(options, &source, NULL), 0);
    assert_int_equal(ls_source_reader_open(source, reader, NULL), 0);
    return source;
}

static uint64_t hash_of(struct ls_source_reader *reader, int64_t index, int *label)
{
    struct ls_record r;
    assert_int_equal(ls_source_read(reader, index, LS_ALL_TENSORS, &r, NULL), 0);
    *label = trial_label(&r);
    return ls_hash(trial_bytes(&r), ls_tensor_bytes(&r.tensor[0]), 0);
}

/* The bits must be the same on every machine and with every compiler. */
static void digits_stay_those_of_earlier_versions(void **state)
{
    (void)state;
    struct digits options = options_of(1000);
    struct ls_source_reader *reader;
    struct ls_source *source = open_with(&options, &reader);
    uint64_t hash = 0;
    for (int64_t i = 0; i < 1000; i++) {
        int label;
        hash ^= ls_mix(hash_of(reader, i, &label) + (uint64_t)(i * 10 + label));
    }
    assert_true(hash == UINT64_C(0x3ebdd17d0a78b7d4));
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void a_digit_depends_on_seed_and_index_only(void **state)
{
    (void)state;
    struct digits options = options_of(100), shifted = options_of(50), other = options_of(100);
    shifted.synthetic_first = 40;
    other.synthetic_seed = 2;
    struct ls_source_reader *a, *b, *c;
    struct ls_source *sa = open_with(&options, &a), *sb = open_with(&shifted, &b),
                     *sc = open_with(&other, &c);
    int same = 0;
    for (int64_t i = 49; i >= 0; i--) {
        int la, lb, lc;
        assert_true(hash_of(a, i + 40, &la) == hash_of(b, i, &lb));
        assert_int_equal(la, lb);
        same += hash_of(c, i + 40, &lc) == hash_of(b, i, &lb);
    }
    assert_int_equal(same, 0);
    ls_source_reader_close(a);
    ls_source_reader_close(b);
    ls_source_reader_close(c);
    ls_source_close(sa);
    ls_source_close(sb);
    ls_source_close(sc);
}

enum { TRAIN = 2000, TEST = 150, PIXELS = 784 };

/* For most digits the nearest training digit has the right class: they are digits, not noise,
 * and not all the same. */
static void nearest_neighbours_recognize_digits(void **state)
{
    (void)state;
    struct digits options = options_of(TRAIN + TEST);
    struct ls_source_reader *reader;
    struct ls_source *source = open_with(&options, &reader);
    uint8_t *pixels = malloc((size_t)(TRAIN + TEST) * PIXELS);
    int *label = malloc((TRAIN + TEST) * sizeof *label);
    int seen[10] = {0};
    for (int i = 0; i < TRAIN + TEST; i++) {
        struct ls_record r;
        assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &r, NULL), 0);
        memcpy(pixels + (size_t)i * PIXELS, trial_bytes(&r), PIXELS);
        label[i] = trial_label(&r);
        seen[trial_label(&r)]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(seen[i], (TRAIN + TEST) / 10 - 75, (TRAIN + TEST) / 10 + 75);
    int right = 0;
    for (int i = TRAIN; i < TRAIN + TEST; i++) {
        int64_t best = INT64_MAX;
        int answer = -1;
        for (int j = 0; j < TRAIN; j++) {
            int64_t distance = 0;
            for (int p = 0; p < PIXELS; p++) {
                int d = pixels[(size_t)i * PIXELS + p] - pixels[(size_t)j * PIXELS + p];
                distance += d * d;
            }
            if (distance < best) {
                best = distance;
                answer = label[j];
            }
        }
        right += answer == label[i];
    }
    assert_in_range(right, TEST * 80 / 100, TEST);
    free(pixels);
    free(label);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void other_shapes_are_drawn(void **state)
{
    (void)state;
    struct digits options = options_of(20);
    options.synthetic_shape[0] = 3;
    options.synthetic_shape[1] = 48;
    options.synthetic_shape[2] = 40;
    struct ls_source_reader *reader;
    struct ls_source *source = open_with(&options, &reader);
    struct ls_record r;
    assert_int_equal(ls_source_read(reader, 3, LS_ALL_TENSORS, &r, NULL), 0);
    assert_int_equal(r.tensor[0].shape.dim[0], 3);
    assert_true(memcmp(trial_bytes(&r), trial_bytes(&r) + 48 * 40, 48 * 40) != 0);
    assert_int_equal(source->class_count, 10);
    assert_string_equal(source->class_name[7], "7");
    ls_source_reader_close(reader);
    ls_source_close(source);
    int64_t bad[4][3] = {{0, 28, 28}, {1, 7, 28}, {1, 28, 100000}, {65, 28, 28}};
    for (int i = 0; i < 4; i++) {
        memcpy(options.synthetic_shape, bad[i], sizeof bad[i]);
        assert_int_equal(open_digits(&options, &source, NULL), LOCKSTEP_DEFINITION);
    }
    options = options_of(0);
    assert_int_equal(open_digits(&options, &source, NULL), LOCKSTEP_DEFINITION);
    options = options_of(5);
    options.synthetic_noise = -1;
    assert_int_equal(open_digits(&options, &source, NULL), LOCKSTEP_DEFINITION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_stay_those_of_earlier_versions),
        cmocka_unit_test(a_digit_depends_on_seed_and_index_only),
        cmocka_unit_test(nearest_neighbours_recognize_digits),
        cmocka_unit_test(other_shapes_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
