/* Locks in files (base/lock_file.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/lock_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

static bool numbers_change;

/* In the place of the C library's own: a file system may give a file a number that does not last.
 */
int stat(const char *restrict path, struct stat *restrict info)
{
    int result = fstatat(AT_FDCWD, path, info, 0);
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

/* Where there can be no file nothing is locked, and nothing fails. */
static void where_there_can_be_no_file_nothing_is_locked(void **state)
{
    (void)state;
    struct ls_lock *lock;
    assert_int_equal(ls_lock_take(ls_test_path("nowhere/.a.lock"), &lock, NULL), 0);
    assert_null(lock);
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
        cmocka_unit_test(where_there_can_be_no_file_nothing_is_locked),
        cmocka_unit_test(a_file_whose_number_changes_is_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
