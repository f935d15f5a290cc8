/* on_bad_record: SKIP. The next good record of the split replaces each bad one, in every source,
 * for everything that is read of it (samples, labels, hashes), in any order, with a cache and
 * without; errors of whole files are never skipped. The expected samples come from sources that
 * were written with good records alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "bad_sources.h"
#include "data/bad_records.h"
#include "data/reader.h"
#include "data/samples.h"

/* ---- Data sets ------------------------------------------------------------------------------- */

/* Opens a way's records in a folder. */
static struct ls_definition *layer_of(const struct way *way, const char *folder, const char *more,
                                      const char *transform)
{
    char param[4096], path[1024];
    snprintf(path, sizeof path, "%s", ls_test_path(folder));
    size_t length = 0;
    for (const char *p = way->param; *p != '\0' && length < sizeof param - 1100; p++)
        if (p[0] == '%') {
            length += (size_t)snprintf(param + length, sizeof param - length, "%s", path);
            p++;
        } else {
            param[length++] = *p;
        }
    param[length] = '\0';
    return trial_layer("name: 'd' type: 'Data' top: 'data' top: 'label' transform_param { %s } "
                       "data_param { batch_size: 2 %s %s }",
                       transform, param, more);
}

/* What a net with ten classes, or four for maps, says of labels. */
static int set_labels(struct ls_dataset *dataset)
{
    const bool map = ls_dataset_tensor(dataset, 1)->shape.rank == 3;
    const struct ls_number_rule rule = {
        .layer = "loss", .tensor = 1, .taken = {.kind = LS_TAKEN_CLASSES, .count = map ? 4 : 10}};
    return ls_dataset_set_rules(dataset, &rule, 1, NULL);
}

static struct ls_dataset *open_way(const struct way *way, const char *folder, const char *more,
                                   const char *transform)
{
    struct ls_definition *definition = layer_of(way, folder, more, transform);
    struct ls_dataset *dataset = trial_dataset(definition, LOCKSTEP__PHASE__TRAIN, 1);
    assert_int_equal(set_labels(dataset), 0);
    ls_definition_free(definition);
    return dataset;
}

static void fetch(struct ls_reader *reader, int64_t ordinal, struct sample *sample)
{
    static struct ls_error error;
    memset(sample, 0, sizeof *sample);
    ls_error_clear(&error);
    if (trial_fetch(reader, ordinal, sample->data, sample->label, &error) != 0)
        fail_msg("%s", trial_text(&error));
}

static int64_t stand_in(const bool *bad, int64_t i)
{
    while (bad[i])
        i = (i + 1) % RECORDS;
    return i;
}

static const bool none[RECORDS];
static const bool patterns[][RECORDS] = {
    {true}, /* the first; the last; neighbours; both ends; every other one; all but one; none */
    {[RECORDS - 1] = true},
    {[3] = true, [4] = true, [5] = true},
    {[0] = true, [1] = true, [RECORDS - 2] = true, [RECORDS - 1] = true},
    {false, true, false, true, false, true, false, true, false},
    {true, true, true, true, true, true, false, true, true},
    {false},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* In both orders, with data and labels or one of the two. */
static void check_samples(struct ls_dataset *set, const struct sample *good, const bool *bad)
{
    struct ls_reader *reader;
    static struct sample sample;
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int turn = 0; turn < 3; turn++)
        for (int64_t k = 0; k < 2 * RECORDS; k++) {
            int64_t i = turn == 1 ? 2 * RECORDS - 1 - k : k;
            const struct sample *wanted = &good[stand_in(bad, i % RECORDS)];
            int64_t shape[3];
            assert_int_equal(ls_dataset_sample_shape(set, i, shape, NULL), 0);
            if (turn == 2) {
                memset(&sample, 0, sizeof sample);
                assert_int_equal(trial_fetch(reader, i, NULL, sample.label, NULL), 0);
                assert_memory_equal(sample.label, wanted->label, sizeof sample.label);
                assert_int_equal(ls_reader_replaced(reader), bad[i % RECORDS]);
                continue;
            }
            fetch(reader, i, &sample);
            assert_memory_equal(&sample, wanted, sizeof sample);
            assert_int_equal(ls_reader_replaced(reader), bad[i % RECORDS]);
        }
    ls_reader_close(reader);
}

/* The hash covers the number of the bad record and the bytes of its replacement; it does not
 * depend on earlier reads. */
static void check_hashes(const struct way *way, struct ls_dataset *set, const bool *bad)
{
    static struct sample sample;
    for (int what = 1; what < 4; what++) {
        struct ls_dataset *fresh = open_way(way, "bad", "on_bad_record: SKIP", "");
        struct ls_reader *read, *hashed;
        assert_int_equal(ls_reader_open(set, &read, NULL), 0);
        assert_int_equal(ls_reader_open(fresh, &hashed, NULL), 0);
        for (int64_t i = 0; i < RECORDS; i++) {
            int64_t record, other;
            uint64_t hash, own, at_place;
            assert_int_equal(ls_reader_hash(hashed, i, (uint32_t)what, &other, &own, NULL), 0);
            assert_int_equal(trial_fetch(read, i, (what & 1) != 0 ? sample.data : NULL,
                                         (what & 2) != 0 ? sample.label : NULL, NULL),
                             0);
            ls_reader_last(read, &record, &hash);
            assert_int_equal(record, i);
            assert_int_equal(other, i);
            assert_true(own == hash);
            assert_int_equal(
                ls_reader_hash(hashed, stand_in(bad, i), (uint32_t)what, &other, &at_place, NULL),
                0);
            assert_int_equal(own == at_place, !bad[i]);
            if (what != 3)
                continue;
            assert_int_equal(ls_reader_hash_record(hashed, i, &at_place, NULL), 0);
            assert_true(own == at_place);
        }
        ls_reader_close(read);
        ls_reader_close(hashed);
        ls_dataset_close(fresh);
    }
}

/* The first few are named, once. */
static void check_names(struct ls_dataset *set, const bool *bad)
{
    char reason[500];
    int64_t record;
    int named = 0, all = 0;
    bool told[RECORDS] = {false};
    while (ls_dataset_next_bad(set, &record, reason, sizeof reason)) {
        assert_true(bad[record]);
        assert_false(told[record]);
        assert_true(strlen(reason) > 5);
        told[record] = true;
        named++;
    }
    for (int i = 0; i < RECORDS; i++)
        all += bad[i];
    assert_int_equal(named, all < 5 ? all : 5);
}

static void check_stop(const struct way *way, const bool *bad)
{
    static struct ls_error error;
    static struct sample sample;
    struct ls_definition *definition = layer_of(way, "bad", "", "");
    struct ls_dataset *set = NULL;
    ls_error_clear(&error);
    int status = trial_open(definition, LOCKSTEP__PHASE__TRAIN, 1, &set, &error);
    struct ls_reader *reader = NULL;
    if (status == 0)
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int64_t i = 0; i < RECORDS && status == 0; i++) {
        status = trial_fetch(reader, i, sample.data, sample.label, &error);
        assert_true(status == 0 || bad[i]);
    }
    assert_int_equal(status, memcmp(bad, none, RECORDS) == 0 ? 0 : LOCKSTEP_DATA);
    ls_reader_close(reader);
    ls_dataset_close(set);
    ls_definition_free(definition);
}

static void check_pattern(const struct way *way, const bool *bad)
{
    static struct sample good[RECORDS];
    struct ls_reader *reader;
    way->write("good", none);
    way->write("bad", bad);
    struct ls_dataset *set = open_way(way, "good", "", "");
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int i = 0; i < RECORDS; i++)
        fetch(reader, i, &good[i]);
    ls_reader_close(reader);
    ls_dataset_close(set);
    static const char *const more[] = {"on_bad_record: SKIP", "on_bad_record: SKIP cache: true"};
    for (int cached = 0; cached < 2; cached++) {
        set = open_way(way, "bad", more[cached], "");
        check_samples(set, good, bad);
        check_hashes(way, set, bad);
        check_names(set, bad);
        ls_dataset_close(set);
    }
    if (!way->by_label)
        check_stop(way, bad);
}

static void skipped_records_are_replaced_in_every_source(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++)
        for (int p = 0; p < PATTERNS; p++) {
            print_message("%s, pattern %d\n", ways[w].name, p);
            check_pattern(&ways[w], patterns[p]);
        }
}

/* ---- What is not skipped --------------------------------------------------------------------- */

static void a_source_without_good_records_is_refused(void **state)
{
    (void)state;
    static struct ls_error error;
    static struct sample sample;
    bool all[RECORDS];
    memset(all, true, sizeof all);
    for (int w = 0; w < WAYS; w++) {
        struct ls_definition *definition = layer_of(&ways[w], "bad", "on_bad_record: SKIP", "");
        struct ls_dataset *set = NULL;
        struct ls_reader *reader = NULL;
        ways[w].write("bad", all);
        ls_error_clear(&error);
        int status = trial_open(definition, LOCKSTEP__PHASE__TRAIN, 1, &set, &error);
        if (status == 0 && (status = set_labels(set)) == 0) {
            if (!ways[w].by_label)
                fail_msg("%s was opened", ways[w].name);
            assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
            status = trial_fetch(reader, 4, sample.data, sample.label, &error);
        }
        assert_int_equal(status, LOCKSTEP_DATA);
        if (w != 10 && w != 11 && w != 12) /* a database's first record is told of */
            assert_says(&error, "none of its 9 records is good");
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(definition);
    }
}

/* Files that are missing or became shorter. */
static void missing_and_shortened_files_are_never_skipped(void **state)
{
    (void)state;
    static struct ls_error error;
    static struct sample sample;
    for (int k = 0; k < 3; k++) {
        const struct way *way = &ways[k == 0 ? 1 : k == 1 ? 2 : 10];
        struct ls_reader *reader;
        way->write("bad", patterns[2]);
        struct ls_dataset *set = open_way(way, "bad", "on_bad_record: SKIP", "");
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        if (k == 0)
            assert_int_equal(truncate(file_at("bad", "batch.bin"), 5000), 0);
        else if (k == 1)
            assert_int_equal(unlink(file_at("bad", "6.png")), 0);
        else
            assert_int_equal(truncate(file_at("bad", "db/data.mdb"), 4096), 0);
        ls_error_clear(&error);
        int status = trial_fetch(reader, 3, sample.data, sample.label, &error);
        assert_int_equal(status, LOCKSTEP_DATA);
        assert_says(&error, k == 1 ? "No such file" : "has become shorter");
        ls_reader_close(reader);
        ls_dataset_close(set);
        struct ls_definition *definition = layer_of(way, "bad", "on_bad_record: SKIP", "");
        assert_int_not_equal(trial_open(definition, LOCKSTEP__PHASE__TRAIN, 1, &set, &error), 0);
        ls_definition_free(definition);
    }
}

/* A record that was good and no longer is has changed. */
static void a_good_record_damaged_later_has_changed(void **state)
{
    (void)state;
    static struct ls_error error;
    static struct sample sample;
    struct ls_reader *reader;
    ways[2].write("bad", none);
    struct ls_dataset *set = open_way(&ways[2], "bad", "on_bad_record: SKIP", "");
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    fetch(reader, 4, &sample);
    damage(file_at("bad", "4.png"), 1);
    ls_error_clear(&error);
    assert_int_equal(trial_fetch(reader, 4, sample.data, sample.label, &error), LOCKSTEP_DATA);
    assert_says(&error, "record 4");
    ls_reader_close(reader);
    ls_dataset_close(set);
}

/* ---- Splits and crops ------------------------------------------------------------------------ */

/* A record of the train split never replaces one of the test split. */
static void replacements_come_from_the_same_split(void **state)
{
    (void)state;
    static struct sample good[RECORDS], sample;
    static const char *const splits[] = {"train:0.5", "test:0.5"};
    struct ls_reader *reader;
    int replaced = 0;
    ways[2].write("good", none);
    ways[2].write("bad", patterns[4]);
    struct ls_dataset *set = open_way(&ways[2], "good", "", "");
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int i = 0; i < RECORDS; i++)
        fetch(reader, i, &good[i]);
    ls_reader_close(reader);
    ls_dataset_close(set);
    for (int s = 0; s < 2; s++) {
        char more[100];
        int64_t records[RECORDS], count;
        snprintf(more, sizeof more, "split: '%s' on_bad_record: SKIP", splits[s]);
        set = open_way(&ways[2], "bad", more, "");
        count = ls_dataset_size(set);
        assert_in_range(count, 2, RECORDS - 2);
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        for (int64_t i = 0; i < count; i++) {
            uint64_t hash;
            fetch(reader, i, &sample);
            ls_reader_last(reader, &records[i], &hash);
        }
        for (int64_t i = 0; i < count; i++) {
            int64_t k = i;
            while (patterns[4][records[k]])
                k = (k + 1) % count;
            replaced += k != i;
            fetch(reader, i, &sample);
            assert_memory_equal(&sample, &good[records[k]], sizeof sample);
        }
        ls_reader_close(reader);
        ls_dataset_close(set);
    }
    assert_true(replaced > 0);
}

/* A record that is too small for the crop is bad. */
static void a_record_too_small_for_the_crop_is_bad(void **state)
{
    (void)state;
    static struct sample sample;
    static const bool small[RECORDS] = {true, false, false, true, false, false, true, false, false};
    char name[32], text[RECORDS * 40] = "";
    struct ls_reader *reader;
    for (int i = 0; i < RECORDS; i++) {
        snprintf(name, sizeof name, "%d.png", i);
        write_picture(file_at("small", name), SIDE + i % 3, SIDE + i % 3, 3, i);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %d\n", name, i);
    }
    write_bytes("small", "list.txt", text, strlen(text));
    struct ls_dataset *set = open_way(&ways[2], "small", "on_bad_record: SKIP", "crop_size: 9");
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int i = 0; i < RECORDS; i++) {
        fetch(reader, i, &sample);
        assert_int_equal(ls_reader_replaced(reader), small[i]);
        assert_int_equal((int)sample.label[0], (int)stand_in(small, i));
    }
    ls_reader_close(reader);
    ls_dataset_close(set);
    struct ls_definition *definition = layer_of(&ways[2], "small", "", "crop_size: 9");
    assert_int_equal(trial_open(definition, LOCKSTEP__PHASE__TRAIN, 1, &set, NULL), LOCKSTEP_DATA);
    ls_definition_free(definition);
}

static void no_record_is_bad(void *user, int64_t record, const char *name, const char *reason)
{
    (void)user;
    fail_msg("record %d (%s) is said to be bad: %s", (int)record, name, reason);
}

/* Running out of memory ends a check, at any allocation, and makes no record bad. */
static void out_of_memory_blames_no_record(void **state)
{
    (void)state;
    static struct ls_error error;
    const struct ls_check check = {.threads = 1, .bad = no_record_is_bad};
    int failures = 0, status = LOCKSTEP_RESOURCE;
    ways[2].write("whole", none);
    for (int n = 0; status != 0; n++) {
        int64_t bad = -1, skippable = -1;
        struct ls_dataset *set = open_way(&ways[2], "whole", "", "");
        assert_true(n < 1000);
        ls_error_clear(&error);
        ls_fail_allocation_after(n);
        status = ls_dataset_check(set, &check, &bad, &skippable, &error);
        ls_fail_allocation_after(-1);
        ls_dataset_close(set);
        assert_int_equal(bad, 0);
        if (status == 0)
            break;
        failures++;
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        assert_int_equal(error.count, 1);
        assert_says(&error, "out of memory");
    }
    assert_in_range(failures, 4, 100); /* threads, a reader, and what it reads into */
}

/* The threads that look at all records add to the problems that were there. */
static void problems_found_before_are_kept(void **state)
{
    (void)state;
    static struct ls_error error;
    int failures = 0, status = LOCKSTEP_RESOURCE;
    ways[3].write("kept", none);
    struct ls_definition *layer = layer_of(&ways[3], "kept", "on_bad_record: SKIP", "");
    for (int n = 0; status != 0; n++) {
        struct ls_dataset *set;
        assert_true(n < 1000);
        ls_error_clear(&error);
        ls_fail(&error, LOCKSTEP_USAGE, "net.prototxt:1:1", NULL, "another problem");
        ls_fail_allocations_after(n);
        status = trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &set, &error);
        ls_fail_allocations_after(-1);
        ls_dataset_close(set);
        failures += status != 0;
        assert_string_equal(error.problems[0].message, "another problem");
        assert_int_equal(error.count, status == 0 ? 1 : 2);
    }
    assert_true(failures > 20);
    ls_definition_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skipped_records_are_replaced_in_every_source),
        cmocka_unit_test(a_source_without_good_records_is_refused),
        cmocka_unit_test(missing_and_shortened_files_are_never_skipped),
        cmocka_unit_test(a_good_record_damaged_later_has_changed),
        cmocka_unit_test(replacements_come_from_the_same_split),
        cmocka_unit_test(a_record_too_small_for_the_crop_is_bad),
        cmocka_unit_test(out_of_memory_blames_no_record),
        cmocka_unit_test(problems_found_before_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
