/* The catalog of snapshots: the newest complete one, which ones may be removed, the best one,
 * and remains of interruptions.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "snapshot/catalog.h"
#include "support/support.h"

enum { ELEMENTS = 50000 };
static float values[ELEMENTS];

/* Writes a snapshot that holds `elements` numbers and says that it is of `iteration`. */
static int write_at(const char *path, int64_t iteration, int64_t elements, struct ls_error *error)
{
    struct ls_archive archive = {0};
    assert_int_equal(ls_archive_add_note_integer(&archive, LS_NOTE_ITERATION, iteration, NULL), 0);
    assert_int_equal(ls_archive_add_list(&archive, "ip.weight", LS_F32, elements, values, NULL), 0);
    int status = ls_archive_write(&archive, path, error);
    ls_archive_free(&archive);
    return status;
}

static void snapshot(const char *prefix, int64_t iteration)
{
    char *path = ls_catalog_path(prefix, iteration);
    assert_int_equal(write_at(path, iteration, 10, NULL), 0);
    ls_free(path);
}

/* A new folder in the test directory, and a prefix in it. */
static const char *new_prefix(const char *folder)
{
    static char prefix[4096];
    assert_int_equal(mkdir(ls_test_path(folder), 0777), 0);
    snprintf(prefix, sizeof prefix, "%s/lenet", ls_test_path(folder));
    return prefix;
}

static bool there(const char *prefix, const char *rest)
{
    char path[4200];
    snprintf(path, sizeof path, "%s%s", prefix, rest);
    return ls_file_exists(path);
}

static void put(const char *prefix, const char *rest, const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "%s%s", prefix, rest);
    ls_test_write_text(path, text);
}

static void snapshots_are_listed_in_order(void **state)
{
    (void)state;
    const char *prefix = new_prefix("list");
    snapshot(prefix, 900);
    snapshot(prefix, 1000);
    snapshot(prefix, 0);
    put(prefix, "_iter_0100.safetensors", "not our way to write a number");
    put(prefix, "_iter_-1.safetensors", "");
    put(prefix, "_iter_.safetensors", "");
    put(prefix, "_iter_5.safetensors.tmp", "");
    put(prefix, "_iter_5.caffemodel", "");
    put(prefix, "_iter_99999999999999999999.safetensors", "");
    put(prefix, "x_iter_5.safetensors", "");
    put(prefix, "_best.safetensors", "");
    struct ls_catalog catalog;
    assert_int_equal(ls_catalog_list(prefix, &catalog, NULL), 0);
    assert_int_equal(catalog.count, 3);
    assert_int_equal(catalog.entries[0].iteration, 0);
    assert_int_equal(catalog.entries[1].iteration, 900);
    assert_int_equal(catalog.entries[2].iteration, 1000);
    assert_true(ls_file_exists(catalog.entries[2].path));
    ls_catalog_free(&catalog);
    assert_int_equal(ls_catalog_list("/nonexistent/folder/p", &catalog, NULL), 0);
    assert_int_equal(catalog.count, 0);
}

static void the_newest_whole_snapshot_is_found(void **state)
{
    (void)state;
    const char *prefix = new_prefix("newest");
    struct ls_archive archive;
    char *path;
    struct ls_error skipped = {0};
    assert_int_equal(ls_catalog_newest(prefix, NULL, &archive, &path, &skipped, NULL, NULL), 0);
    assert_null(path);
    assert_int_equal(skipped.count, 0);

    snapshot(prefix, 90);
    snapshot(prefix, 100);
    put(prefix, "_iter_200.safetensors", "damaged");
    put(prefix, "_iter_300.safetensors", "");
    char *wrong = ls_catalog_path(prefix, 400); /* whole, but of another iteration */
    assert_int_equal(write_at(wrong, 399, 10, NULL), 0);
    ls_free(wrong);
    assert_int_equal(ls_catalog_newest(prefix, NULL, &archive, &path, &skipped, NULL, NULL), 0);
    char *expected = ls_catalog_path(prefix, 100);
    assert_string_equal(path, expected);
    assert_string_equal(ls_archive_note(&archive, LS_NOTE_ITERATION), "100");
    assert_int_equal(skipped.count, 3);
    assert_non_null(strstr(skipped.problems[0].place, "_iter_400"));
    assert_non_null(strstr(skipped.problems[0].message, "399"));
    assert_non_null(strstr(skipped.problems[1].place, "_iter_300"));
    assert_non_null(strstr(skipped.problems[1].message, "empty"));
    assert_non_null(strstr(skipped.problems[2].place, "_iter_200"));
    ls_archive_free(&archive);
    ls_free(path);
    ls_free(expected);
}

static void old_snapshots_are_pruned(void **state)
{
    (void)state;
    const char *prefix = new_prefix("prune");
    for (int64_t iteration = 100; iteration <= 600; iteration += 100)
        snapshot(prefix, iteration);
    snapshot(prefix, 9000); /* of an earlier, longer run */
    put(prefix, "_iter_50.safetensors", "another program's");
    put(prefix, "_iter_200.caffemodel", "weights");
    put(prefix, "_iter_200.caffemodel.h5", "weights");
    put(prefix, "_iter_200.solverstate", "history");
    put(prefix, "_iter_200.solverstate.h5", "history");
    put(prefix, "_iter_50.caffemodel", "weights");
    put(prefix, "_iter_150.caffemodel", "weights");
    assert_int_equal(ls_catalog_mark_best(prefix, 100, NULL), 0);
    assert_int_equal(ls_catalog_prune(prefix, 600, 0, NULL), 0);
    assert_true(there(prefix, "_iter_100.safetensors"));
    assert_int_equal(ls_catalog_prune(prefix, 600, 2, NULL), 0);
    for (int i = 1; i <= 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "_iter_%d00.safetensors", i);
        assert_false(there(prefix, name));
    }
    assert_true(there(prefix, "_iter_500.safetensors"));
    assert_true(there(prefix, "_iter_600.safetensors"));
    assert_true(there(prefix, "_iter_9000.safetensors"));
    assert_true(there(prefix, "_iter_50.safetensors"));
    assert_false(there(prefix, "_iter_200.caffemodel"));
    assert_false(there(prefix, "_iter_200.caffemodel.h5"));
    assert_false(there(prefix, "_iter_200.solverstate"));
    assert_false(there(prefix, "_iter_200.solverstate.h5"));
    assert_true(there(prefix, "_iter_50.caffemodel"));
    assert_true(there(prefix, "_iter_150.caffemodel"));

    char *best = ls_catalog_best_path(prefix);
    struct ls_archive archive;
    assert_int_equal(ls_archive_read(best, LS_ARCHIVE_CHECK, &archive, NULL), 0);
    assert_string_equal(ls_archive_note(&archive, LS_NOTE_ITERATION), "100");
    ls_archive_free(&archive);
    ls_free(best);
}

static void the_best_snapshot_is_kept(void **state)
{
    (void)state;
    const char *prefix = new_prefix("best");
    struct ls_error error = {0};
    assert_int_equal(ls_catalog_mark_best(prefix, 7, &error), LOCKSTEP_INTERNAL);
    snapshot(prefix, 7);
    snapshot(prefix, 8);
    assert_int_equal(ls_catalog_mark_best(prefix, 7, NULL), 0);
    assert_int_equal(ls_catalog_mark_best(prefix, 7, NULL), 0); /* again: nothing changes */
    assert_int_equal(ls_catalog_mark_best(prefix, 8, NULL), 0);
    assert_int_equal(ls_test_count_files(ls_test_path("best")), 3);
    char *best = ls_catalog_best_path(prefix), *eight = ls_catalog_path(prefix, 8);
    size_t size[2];
    char *a = ls_test_read(best, &size[0]), *b = ls_test_read(eight, &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, size[0]);
    free(a);
    free(b);
    /* A later snapshot of the same iteration is a new file: the best one stays as it was. */
    assert_int_equal(write_at(eight, 8, 11, NULL), 0);
    a = ls_test_read(best, &size[1]);
    assert_int_equal(size[0], size[1]);
    free(a);
    ls_free(best);
    ls_free(eight);
}

/* Runs `work` in a child whose files may have at most `limit` bytes, and returns how it ended. */
static int run_limited(int (*work)(const char *prefix), const char *prefix, rlim_t limit,
                       bool deadly)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit bytes = {limit, limit}, none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGXFSZ, deadly ? SIG_DFL : SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &bytes);
        _exit(work(prefix));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static int write_large(const char *prefix)
{
    char *path = ls_catalog_path(prefix, 20);
    int status = write_at(path, 20, ELEMENTS, NULL);
    ls_free(path);
    return status;
}

/* The snapshot before this one must be found, whatever the interrupted one left. */
static void expect_ten(const char *prefix)
{
    struct ls_archive archive;
    char *path;
    struct ls_error skipped = {0};
    assert_int_equal(ls_catalog_newest(prefix, NULL, &archive, &path, &skipped, NULL, NULL), 0);
    assert_non_null(strstr(path, "_iter_10.safetensors"));
    assert_int_equal(skipped.count, 0);
    ls_archive_free(&archive);
    ls_free(path);
}

static void a_killed_writer_leaves_the_older_snapshots(void **state)
{
    (void)state;
    const char *prefix = new_prefix("killed");
    snapshot(prefix, 10);
    int status = run_limited(write_large, prefix, 100000, true);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGXFSZ);
    expect_ten(prefix);
    assert_int_equal(write_large(prefix), 0); /* what was left does no harm */
    assert_true(there(prefix, "_iter_20.safetensors"));
}

static void a_write_that_fails_leaves_the_older_snapshots(void **state)
{
    (void)state;
    const char *prefix = new_prefix("limited");
    snapshot(prefix, 10);
    int status = run_limited(write_large, prefix, 100000, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), LOCKSTEP_RESOURCE);
    assert_int_equal(ls_test_count_files(ls_test_path("limited")), 1);
    expect_ten(prefix);
}

static void a_full_disk_leaves_the_older_snapshots(void **state)
{
    (void)state;
    const char *folder = ls_test_path("full");
    assert_int_equal(mkdir(folder, 0777), 0);
    if (mount("tmpfs", folder, "tmpfs", 0, "size=64k") != 0)
        ls_test_skip("a small file system cannot be mounted here: %s", strerror(errno));
    char prefix[4096];
    snprintf(prefix, sizeof prefix, "%s/lenet", folder);
    snapshot(prefix, 10);
    char *path = ls_catalog_path(prefix, 20);
    struct ls_error error = {0};
    int status = write_at(path, 20, ELEMENTS, &error);
    size_t files = ls_test_count_files(folder);
    expect_ten(prefix);
    ls_free(path);
    umount(folder);
    assert_int_equal(status, LOCKSTEP_RESOURCE);
    assert_non_null(strstr(error.problems[0].message, "space"));
    assert_true(error.problems[0].hint[0] != '\0');
    assert_int_equal(files, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_are_listed_in_order),
        cmocka_unit_test(the_newest_whole_snapshot_is_found),
        cmocka_unit_test(old_snapshots_are_pruned),
        cmocka_unit_test(the_best_snapshot_is_kept),
        cmocka_unit_test(a_killed_writer_leaves_the_older_snapshots),
        cmocka_unit_test(a_write_that_fails_leaves_the_older_snapshots),
        cmocka_unit_test(a_full_disk_leaves_the_older_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
