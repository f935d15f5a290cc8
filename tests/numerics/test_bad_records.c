/* Trainings that skip bad records (on_bad_record: SKIP). Losses, tests and weights are those of
 * a training on data in which the next good record replaces each bad one: on any number of
 * workers and ranks, with and without a cache, in little memory, and after a resume. Ranks and
 * resumes with other bad records are found.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/loop.h"
#include "trainings/ranks.h"
#include "numerics/sizes.h"

enum { RECORDS = 31, SIDE = 12, UPDATES = 6 };

/* ---- Data ------------------------------------------------------------------------------------ */

/* The pictures of a folder, of one size or of several. For each pattern there are two lists: one
 * in which bad records are damaged files or have labels of no class, and one in which other
 * records replace them. */
static const bool patterns[][RECORDS] = {
    {true},
    {[RECORDS - 1] = true},
    {[4] = true, [5] = true, [6] = true, [20] = true},
    {[0] = true, [1] = true, [RECORDS - 2] = true, [RECORDS - 1] = true},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static const char *good_file(int i)
{
    char name[16];
    snprintf(name, sizeof name, "%d.png", i);
    return file_at("p", name);
}

static void write_pictures(void)
{
    uint8_t pixels[SIDE * SIDE];
    for (int i = 0; i < RECORDS; i++) {
        size_t size;
        for (uint32_t at = 0; at < sizeof pixels; at++)
            pixels[at] = pixel((uint32_t)i, (uint32_t)i * 7 % 10, at, SIDE);
        uint8_t *file = png_file(pixels, SIDE, SIDE, SIDE, PNG_COLOR_TYPE_GRAY, 8, false, &size);
        ls_test_write(good_file(i), file, size);
        ls_test_write(file_at("p", "half.png"), file, size / 2);
        free(file);
    }
    ls_test_write_text(file_at("p", "none.png"), "no picture");
}

/* Writes p/NAME.bad and p/NAME.good, and returns the paths of the two. */
static void write_lists(const char *name, const bool *bad, char paths[2][1024])
{
    char text[2][RECORDS * 24] = {"", ""};
    for (int i = 0; i < RECORDS; i++) {
        int k = i;
        while (bad[k])
            k = (k + 1) % RECORDS;
        size_t at = strlen(text[0]);
        if (bad[i] && i % 3 == 0) /* one that can be read */
            snprintf(text[0] + at, sizeof text[0] - at, "%d.png 77\n", i);
        else if (bad[i])
            snprintf(text[0] + at, sizeof text[0] - at, "%s.png %d\n", i % 2 == 0 ? "none" : "half",
                     i * 7 % 10);
        else
            snprintf(text[0] + at, sizeof text[0] - at, "%d.png %d\n", i, i * 7 % 10);
        at = strlen(text[1]);
        snprintf(text[1] + at, sizeof text[1] - at, "%d.png %d\n", k, k * 7 % 10);
    }
    for (int g = 0; g < 2; g++) {
        char file[64];
        snprintf(file, sizeof file, "%s.%s", name, g == 0 ? "bad" : "good");
        snprintf(paths[g], sizeof paths[g], "%s", file_at("p", file));
        ls_test_write_text(paths[g], text[g]);
    }
}

static struct lockstep_solver *solver_of(const char *list, const char *data, const char *solver)
{
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 6 random_seed: 5\n"
        "micro_batch: 3 test_interval: 3 %s net_param { %s }\n",
        solver,
        ls_test_net("bad_records",
                    LS_TEST_VALUES(
                        {"list", list},
                        {"order", strstr(data, "shuffle") == NULL ? "shuffle: true" : ""},
                        {"data", data},
                        {"on_test", strstr(data, "SKIP") != NULL ? "on_bad_record: SKIP" : ""})));
}

/* ---- Equal to good data ---------------------------------------------------------------------- */

static void check_forms(const struct lockstep_solver *solver, struct bytes expected,
                        const char *what)
{
    for (int form = 0; form < 6; form++) {
        struct job job = {.solver = solver,
                          .ranks = form < 3 ? 1 : 2,
                          .workers = {1 + form % 3, 1 + (form + 1) % 3},
                          .dynamic = form == 4,
                          .delays = (uint32_t)form * 7,
                          .updates = UPDATES};
        char name[200];
        snprintf(name, sizeof name, "%s, form %d", what, form);
        check_job(&job, expected, name);
    }
}

static void skipping_gives_the_bits_of_data_without_bad_records(void **state)
{
    (void)state;
    static const char *const more[] = {"", "cache: true", "last_batch: DROP",
                                       "last_batch: PARTIAL cache: true"};
    for (int p = 0; p < PATTERNS; p++) {
        char paths[2][1024], skip[100];
        write_lists("equal", patterns[p], paths);
        struct lockstep_solver *good = solver_of(paths[1], more[p], "");
        struct bytes expected = run_alone(good, UPDATES);
        snprintf(skip, sizeof skip, "%s on_bad_record: SKIP", more[p]);
        struct lockstep_solver *solver = solver_of(paths[0], skip, "");
        check_forms(solver, expected, more[p]);
        lockstep_solver_free(solver);
        lockstep_solver_free(good);
        free(expected.data);
    }
}

/* Where samples differ in size, those that stand in bring their own. */
static void records_that_stand_in_bring_their_own_size(void **state)
{
    (void)state;
    for (int i = 0; i < PICTURES; i++) {
        bool bad = i == 0 || (i >= 7 && i < 9) || i == PICTURES - 1;
        int k = bad ? (i == 0 || i == PICTURES - 1 ? 1 : 9) : i;
        char name[32];
        write_pair("mended", i, size_of(k));
        for (int map = 0; map < 2; map++) { /* of the one that stands in */
            size_t size;
            snprintf(name, sizeof name, "%03d.png", i);
            write_pair("one", k, size_of(k));
            char from[32];
            snprintf(from, sizeof from, "%03d.png", k);
            char *file = ls_test_read(file_at(map ? "one_maps" : "one", from), &size);
            ls_test_write(file_at(map ? "mended_maps" : "mended", name), file, size);
            free(file);
        }
        write_pair("broken", i, size_of(i));
        if (bad && i != 8)
            ls_test_write_text(file_at(i == 7 ? "broken_maps" : "broken", name), "no picture");
        if (i == 8) { /* a map of another size */
            struct size other = {size_of(8).height + 1, size_of(8).width};
            write_pair("other", 0, other);
            size_t size;
            char *file = ls_test_read(file_at("other_maps", "000.png"), &size);
            ls_test_write(file_at("broken_maps", name), file, size);
            free(file);
        }
    }
    const struct size_net net = {.file = "sizes_deconvolved"};
    struct lockstep_solver *good = make_solver(SGD "micro_batch: 3 max_iter: 9", "mended",
                                               "batch_size: 12 shuffle: true", "", net);
    struct lockstep_solver *solver =
        make_solver(SGD "micro_batch: 3 max_iter: 9", "broken",
                    "batch_size: 12 shuffle: true on_bad_record: SKIP", "", net);
    struct bytes expected = run_alone(good, UPDATES);
    check_forms(solver, expected, "sizes");
    free(expected.data);
    lockstep_solver_free(solver);
    lockstep_solver_free(good);
}

/* ---- Stopped, resumed, with little memory ---------------------------------------------------- */

static int64_t skipped(const struct training *training)
{
    return training->trainer->inner->data.skipped;
}

static void resume_after_skipped_records_gives_same_bits(void **state)
{
    (void)state;
    char paths[2][1024];
    write_lists("cut", patterns[2], paths);
    static const char *const more[] = {"on_bad_record: SKIP", "on_bad_record: SKIP cache: true"};
    for (int cached = 0; cached < 2; cached++) {
        struct lockstep_solver *solver = solver_of(paths[0], more[cached], "");
        struct training *whole = start(solver, 1, NULL, NULL);
        step(whole, UPDATES);
        struct bytes first = snapshot(whole);
        int64_t all = skipped(whole);
        finish(whole);
        assert_true(all > 0);
        for (int at = 1; at < UPDATES; at++) {
            struct training *training = start(solver, 1 + at % 3, NULL, NULL);
            step(training, at);
            struct bytes half = snapshot(training);
            int64_t before = skipped(training);
            finish(training);
            const char *path = ls_test_path("half.safetensors");
            ls_test_write(path, half.data, half.size);
            free(half.data);
            training = start(solver, 1 + (at + 1) % 3, NULL, path);
            step(training, UPDATES - at);
            assert_int_equal(before + skipped(training), all);
            check_same(first, snapshot(training), "stopped after %d", at);
            finish(training);
        }
        struct training *small = start(solver, 2, NULL, NULL);
        limit_memory(small, 1);
        step(small, UPDATES);
        check_same(first, snapshot(small), "little memory");
        finish(small);
        free(first.data);
        lockstep_solver_free(solver);
    }
}

/* A training that stopped at a bad record, or would have, goes on with SKIP. */
static void training_stopped_at_a_bad_record_resumes_with_skip(void **state)
{
    (void)state;
    static const bool none[RECORDS];
    char paths[2][1024];
    write_lists("stop", none, paths);
    struct lockstep_solver *stop = solver_of(paths[0], "", "");
    struct lockstep_solver *skip = solver_of(paths[0], "on_bad_record: SKIP", "");
    struct training *training = start(stop, 1, NULL, NULL);
    step(training, 2);
    struct bytes half = snapshot(training);
    finish(training);
    const char *path = ls_test_path("half.safetensors");
    ls_test_write(path, half.data, half.size);
    free(half.data);
    training = start(skip, 2, NULL, path);
    step(training, 4);
    struct bytes resumed = snapshot(training);
    finish(training);
    training = start(skip, 1, NULL, NULL);
    step(training, UPDATES);
    check_same(resumed, snapshot(training), "skipping from the start");
    assert_int_equal(skipped(training), 0);
    finish(training);
    free(resumed.data);
    lockstep_solver_free(stop);
    lockstep_solver_free(skip);
}

/* ---- Counts and reports ---------------------------------------------------------------------- */

static int run_to_end(struct rank *rank, struct ls_trainer *trainer)
{
    rank->status = ls_trainer_run(trainer, -1, rank->error);
    put(rank, &trainer->data.skipped, sizeof trainer->data.skipped);
    return rank->status;
}

/* 72 samples of 31 records: each record comes twice or three times, so that four bad ones count
 * 8 to 12 times. All ranks count all of them. */
static void all_ranks_count_the_same_bad_records(void **state)
{
    (void)state;
    char paths[2][1024];
    write_lists("count", patterns[2], paths);
    struct lockstep_solver *solver = solver_of(paths[0], "on_bad_record: SKIP", "");
    int64_t wanted = 0;
    for (int ranks = 1; ranks < 4; ranks++) {
        char *prefix = strdup(ls_test_path("count"));
        struct job job = {.solver = solver,
                          .ranks = ranks,
                          .workers = {1, 2, 1},
                          .act = run_to_end,
                          .prefix = {prefix, prefix, prefix}};
        struct rank done[RANKS_MAX];
        run_job(&job, done);
        for (int r = 0; r < ranks; r++) {
            int64_t count;
            if (done[r].status != 0)
                fail_msg("%s", done[r].error->problems[0].message);
            memcpy(&count, done[r].bytes.data, sizeof count);
            wanted = wanted == 0 ? count : wanted;
            assert_in_range(count, 8, 12);
            assert_int_equal(count, wanted);
        }
        free_ranks(&job, done);
        free(prefix);
    }
    lockstep_solver_free(solver);
}

/* ---- Other bad records ----------------------------------------------------------------------- */

/* A rank on which another record is damaged: its bytes, or its label alone. */
static void a_record_that_is_bad_on_one_rank_only_is_found(void **state)
{
    (void)state;
    static const int records[] = {0, 9, 21, RECORDS - 1}; /* with a label of no class, or damaged */
    for (int k = 0; k < 8; k++) {
        bool bad[2][RECORDS];
        char paths[2][2][1024];
        memcpy(bad[0], patterns[2], sizeof bad[0]);
        memcpy(bad[1], patterns[2], sizeof bad[1]);
        bad[k % 2][records[k / 2]] = true;
        for (int r = 0; r < 2; r++)
            write_lists(r == 0 ? "rank0" : "rank1", bad[r], paths[r]);
        struct lockstep_solver *solver[2];
        for (int r = 0; r < 2; r++)
            solver[r] = solver_of(paths[r][0], "on_bad_record: SKIP", "");
        char *prefix = strdup(ls_test_path("other"));
        struct job job = {.solver = solver[0],
                          .ranks = 2,
                          .workers = {1, 2},
                          .act = run_to_end,
                          .prefix = {prefix, prefix},
                          .other = {NULL, solver[1]}};
        struct rank ranks[RANKS_MAX];
        run_job(&job, ranks);
        if (ranks[0].status != LOCKSTEP_DIFFERENT && ranks[1].status != LOCKSTEP_DIFFERENT)
            fail_msg("record %d of rank %d: status %d and %d", records[k / 2], k % 2,
                     ranks[0].status, ranks[1].status);
        free_ranks(&job, ranks);
        free(prefix);
        lockstep_solver_free(solver[0]);
        lockstep_solver_free(solver[1]);
    }
}

/* Of many records, ranks compare some at their start, and each other one when a rank has trained
 * on it. Records that are bad on both ranks are no difference. */
static const char *write_long_list(const char *name, int bad)
{
    enum { LINES = 900 };
    static char text[LINES * 24];
    size_t at = 0;
    for (int i = 0; i < LINES; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s %d\n",
                               i == bad || i == 25 || i == 26 || i == 60 ? "none.png" : "1.png",
                               i * 7 % 10);
    const char *path = file_at("p", name);
    ls_test_write(path, text, at);
    return path;
}

static void a_rank_with_other_data_is_found_in_training(void **state)
{
    (void)state;
    static const char fields[] = "shuffle: false on_bad_record: SKIP";
    static const int records[] = {7, 11, 13, 17, 41, 43, 47, 50};
    struct lockstep_solver *solver = solver_of(write_long_list("long0", -1), fields, "");
    struct bytes expected = run_alone(solver, UPDATES);
    struct job same = {.solver = solver, .ranks = 2, .workers = {1, 2}, .updates = UPDATES};
    int in_training = 0;
    check_job(&same, expected, "many records");
    free(expected.data);
    for (int k = 0; k < 8; k++) {
        struct lockstep_solver *other = solver_of(write_long_list("long1", records[k]), fields, "");
        char *prefix = strdup(ls_test_path("long")), name[32];
        struct job job = {.solver = k % 2 == 0 ? solver : other,
                          .ranks = 2,
                          .workers = {1, 2},
                          .act = run_to_end,
                          .prefix = {prefix, prefix},
                          .other = {NULL, k % 2 == 0 ? other : solver}};
        struct rank ranks[RANKS_MAX];
        run_job(&job, ranks);
        snprintf(name, sizeof name, "record %d (", records[k]);
        bool found = false;
        for (int r = 0; r < 2; r++) {
            const char *message = ranks[r].error->problems[0].message;
            found = found || ranks[r].status == LOCKSTEP_DIFFERENT;
            if (strstr(message, "has trained on it") == NULL)
                continue;
            assert_non_null(strstr(message, name));
            in_training++;
        }
        assert_true(found);
        free_ranks(&job, ranks);
        free(prefix);
        lockstep_solver_free(other);
    }
    assert_true(in_training > 0);
    lockstep_solver_free(solver);
}

static int setup(void **state)
{
    (void)state;
    write_pictures();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skipping_gives_the_bits_of_data_without_bad_records),
        cmocka_unit_test(records_that_stand_in_bring_their_own_size),
        cmocka_unit_test(resume_after_skipped_records_gives_same_bits),
        cmocka_unit_test(all_ranks_count_the_same_bad_records),
        cmocka_unit_test(training_stopped_at_a_bad_record_resumes_with_skip),
        cmocka_unit_test(a_record_that_is_bad_on_one_rank_only_is_found),
        cmocka_unit_test(a_rank_with_other_data_is_found_in_training),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
