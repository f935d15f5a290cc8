/* Locks in files (base/lock_file.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/lock_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

static bool numbers_change;

/* In the place of the C library's own: a file system may give a file a number that does not last.
 */
int lstat(const char *restrict path, struct stat *restrict info)
{
    int result = fstatat(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
    info->st_ino += numbers_change;
    return result;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void a_held_lock_is_refused_to_others(void **state)
{
    (void)state;
    const char *path = ls_test_path(".held.lock");
    struct ls_lock *lock, *second;
    struct ls_error error = {0};
    char name[64];
    assert_int_equal(ls_lock_take(path, &lock, &error), 0);
    assert_non_null(lock);
    assert_true(is_there(path));
    assert_int_equal(ls_lock_take(path, &second, &error), LOCKSTEP_USAGE);
    assert_null(second);
    snprintf(name, sizeof name, "process %ld on ", (long)getpid());
    assert_non_null(strstr(error.problems[0].message, name));
    assert_string_equal(error.problems[0].place, path);
    ls_lock_release(lock);
    assert_false(is_there(path));
    assert_int_equal(ls_lock_take(path, &lock, NULL), 0);
    assert_non_null(lock);
    ls_lock_release(lock);
    ls_lock_release(NULL);
}

/* A process that is killed leaves a file, and no lock. */
static void the_lock_of_a_killed_process_is_free(void **state)
{
    (void)state;
    const char *path = ls_test_path(".left.lock");
    struct ls_lock *lock;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(ls_lock_take(path, &lock, NULL) == 0 && lock != NULL ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_there(path));
    assert_int_equal(ls_lock_take(path, &lock, NULL), 0);
    assert_non_null(lock);
    ls_lock_release(lock);
    assert_false(is_there(path));
}

static void assert_refused(const char *path, const char *why)
{
    struct ls_lock *lock;
    struct ls_error error = {0};
    assert_int_equal(ls_lock_take(path, &lock, &error), LOCKSTEP_RESOURCE);
    assert_null(lock);
    assert_non_null(strstr(error.problems[0].message, why));
}

/* Two trainings under one prefix must be kept apart, and what is in the lock's place stays. */
static void what_is_no_lock_is_an_error_and_stays(void **state)
{
    (void)state;
    const char *path = ls_test_path(".placed.lock");
    char victim[512];
    snprintf(victim, sizeof victim, "%s.victim", path);
    assert_refused(ls_test_path("nowhere/.a.lock"), "No such file");
    path = ls_test_path(".placed.lock");
    assert_int_equal(mkdir(path, 0777), 0);
    assert_refused(path, "is a folder");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_refused(path, "is no file");
    unlink(path);
    ls_test_write(victim, "process of ours", 15);
    assert_int_equal(link(victim, path), 0);
    assert_refused(path, "hard links");
    unlink(path);
    assert_int_equal(symlink(victim, path), 0);
    assert_refused(path, "symbolic link");
    unlink(path);
    ls_test_write(path, "a thesis\n", 9);
    assert_refused(path, "has the name of a lock, and something else in it");
    size_t size;
    char *text = ls_test_read(path, &size);
    assert_int_equal(size, 9);
    free(text);
    text = ls_test_read(victim, &size);
    assert_int_equal(size, 15);
    free(text);
}

static void a_file_whose_number_changes_is_locked(void **state)
{
    (void)state;
    const char *path = ls_test_path(".changing.lock");
    struct ls_lock *lock;
    numbers_change = true;
    assert_int_equal(ls_lock_take(path, &lock, NULL), 0);
    numbers_change = false;
    assert_non_null(lock);
    ls_lock_release(lock);
    assert_false(is_there(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_lock_is_refused_to_others),
        cmocka_unit_test(the_lock_of_a_killed_process_is_free),
        cmocka_unit_test(what_is_no_lock_is_an_error_and_stays),
        cmocka_unit_test(a_file_whose_number_changes_is_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
