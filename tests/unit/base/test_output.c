/* What is opened for writing, and what is not (base/output.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"

enum { ANOTHER = 54321 }; /* a user that owns nothing here */

static struct ls_error error;

/* The path of the file that no link may lead to, as it is before each case. */
static char *make_victim(void)
{
    char *path = strdup(ls_test_path("victim"));
    ls_test_write(path, "precious", 8);
    return path;
}

static void assert_is_whole(const char *path)
{
    size_t size;
    char *text = ls_test_read(path, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(text, "precious", 8);
    free(text);
}

static void assert_refused(const char *path, enum ls_output_how how, int named, const char *why)
{
    int fd = 7;
    ls_error_clear(&error);
    assert_int_equal(ls_output_open(path, how, named, &fd, &error), LOCKSTEP_RESOURCE);
    assert_int_equal(fd, -1);
    assert_string_equal(error.problems[0].place, path);
    if (strstr(error.problems[0].message, why) == NULL)
        fail_msg("'%s' does not say '%s'", error.problems[0].message, why);
}

static void assert_writes(const char *path, enum ls_output_how how, int named, const char *text)
{
    int fd;
    assert_int_equal(ls_output_open(path, how, named, &fd, NULL), 0);
    assert_true(fd > STDERR_FILENO);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void assert_holds(const char *path, const char *text)
{
    size_t size;
    char *found = ls_test_read(path, &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(found, text, size);
    free(found);
}

static void a_file_is_made_kept_emptied_or_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("plain");
    assert_writes(path, LS_OUTPUT_NEW, 0, "one");
    assert_writes(path, LS_OUTPUT_APPEND, 0, "two");
    assert_holds(path, "onetwo");
    assert_writes(path, LS_OUTPUT_KEEP, 0, "O");
    assert_holds(path, "Onetwo");
    assert_refused(path, LS_OUTPUT_NEW, 1, "exists");
    assert_writes(path, LS_OUTPUT_ANEW, 1, "new");
    assert_holds(path, "new");
    assert_refused(ls_test_path("none/file"), LS_OUTPUT_ANEW, 1, "No such file");
}

static void a_name_that_lockstep_chose_follows_no_link(void **state)
{
    (void)state;
    char *victim = make_victim(), *link = strdup(ls_test_path("link"));
    for (int dangles = 0; dangles < 2; dangles++) {
        unlink(link);
        assert_int_equal(symlink(dangles ? "not_there" : "victim", link), 0);
        for (int how = LS_OUTPUT_APPEND; how <= LS_OUTPUT_KEEP; how++)
            assert_refused(link, (enum ls_output_how)how, 0,
                           how == LS_OUTPUT_NEW ? "exists" : "is a symbolic link");
    }
    assert_int_not_equal(access(ls_test_path("not_there"), F_OK), 0);
    assert_is_whole(victim);
    free(victim);
    free(link);
}

static void hard_links_folders_and_pipes_are_refused(void **state)
{
    (void)state;
    char *victim = make_victim();
    const char *path = ls_test_path("second");
    assert_int_equal(link(victim, path), 0);
    assert_refused(path, LS_OUTPUT_ANEW, 0, "hard links");
    assert_refused(path, LS_OUTPUT_APPEND, 1, "hard links");
    assert_is_whole(victim);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_refused(path, LS_OUTPUT_ANEW, 1, "is a folder");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_refused(path, LS_OUTPUT_APPEND, 0, "is no file");
    unlink(path);
    free(victim);
}

static void a_link_of_the_user_is_followed_where_he_named_it(void **state)
{
    (void)state;
    char *victim = make_victim(), *link = strdup(ls_test_path("own"));
    char *second = strdup(ls_test_path("second"));
    unlink(link);
    assert_int_equal(symlink("second", link), 0);
    assert_int_equal(symlink("victim", second), 0);
    assert_writes(link, LS_OUTPUT_ANEW, 1, "log");
    assert_holds(victim, "log");
    if (geteuid() == 0) { /* only root can give links away */
        ls_test_write(victim, "precious", 8);
        assert_int_equal(lchown(second, ANOTHER, ANOTHER), 0);
        assert_refused(link, LS_OUTPUT_ANEW, 1, "of another user");
        assert_is_whole(victim);
    }
    unlink(second);
    assert_int_equal(symlink("own", second), 0); /* in a circle */
    assert_refused(link, LS_OUTPUT_APPEND, 1, "symbolic links");
    unlink(second);
    unlink(link);
    free(victim);
    free(link);
    free(second);
}

static void devices_are_written_to_where_the_user_named_them(void **state)
{
    (void)state;
    assert_writes("/dev/null", LS_OUTPUT_ANEW, 1, "x");
    assert_writes("/dev/stdout", LS_OUTPUT_APPEND, 1, "");
    assert_refused("/dev/null", LS_OUTPUT_ANEW, 0, "is no file");
}

static void files_of_others_are_refused_in_a_folder_like_tmp(void **state)
{
    (void)state;
    char *folder = strdup(ls_test_path("like_tmp")), *path = strdup(ls_test_path("like_tmp/log"));
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(folder, 0777), 0);
    ls_test_write(path, "theirs", 6);
    assert_int_equal(chown(path, ANOTHER, ANOTHER), 0);
    assert_writes(path, LS_OUTPUT_APPEND, 1, "");
    assert_int_equal(chmod(folder, 01777), 0);
    assert_refused(path, LS_OUTPUT_APPEND, 1, "is a file of another user");
    assert_holds(path, "theirs");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0); /* to write to it would wait for a reader */
    assert_int_equal(chown(path, ANOTHER, ANOTHER), 0);
    assert_refused(path, LS_OUTPUT_APPEND, 1, "is a file of another user");
    free(folder);
    free(path);
}

static void a_folder_is_made_once(void **state)
{
    (void)state;
    char *folder = strdup(ls_test_path("made/")), *link = strdup(ls_test_path("to_made/"));
    assert_int_equal(ls_output_folder(folder, NULL), 0);
    assert_int_equal(ls_output_folder(folder, NULL), 0);
    char *name = strndup(link, strlen(link) - 1);
    assert_int_equal(symlink("made", name), 0);
    assert_int_equal(ls_output_folder(link, NULL), 0);
    ls_error_clear(&error);
    if (geteuid() == 0) {
        assert_int_equal(lchown(name, ANOTHER, ANOTHER), 0);
        assert_int_equal(ls_output_folder(link, &error), LOCKSTEP_RESOURCE);
        assert_non_null(strstr(error.problems[0].message, "symbolic link of another user"));
    }
    char *victim = make_victim();
    ls_error_clear(&error);
    assert_int_equal(ls_output_folder(victim, &error), LOCKSTEP_RESOURCE);
    assert_non_null(strstr(error.problems[0].message, "cannot make the folder"));
    free(victim);
    free(name);
    free(link);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_made_kept_emptied_or_refused),
        cmocka_unit_test(a_name_that_lockstep_chose_follows_no_link),
        cmocka_unit_test(hard_links_folders_and_pipes_are_refused),
        cmocka_unit_test(a_link_of_the_user_is_followed_where_he_named_it),
        cmocka_unit_test(devices_are_written_to_where_the_user_named_them),
        cmocka_unit_test(files_of_others_are_refused_in_a_folder_like_tmp),
        cmocka_unit_test(a_folder_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
