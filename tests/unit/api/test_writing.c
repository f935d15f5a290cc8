/* Files that programs write (lockstep/writing.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/support.h"

static void write_whole(const char *path, const char *text, int commits)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_whole_file *file;
    assert_int_equal(lockstep_whole_file_new(path, &file, error), 0);
    const ssize_t length = (ssize_t)strlen(text);
    assert_int_equal(write(lockstep_whole_file_descriptor(file), text, strlen(text)), length);
    for (int i = 0; i < commits; i++) {
        assert_int_equal(lockstep_whole_file_commit(file, error), i == 0 ? 0 : LOCKSTEP_USAGE);
        assert_int_equal(lockstep_whole_file_descriptor(file), -1);
    }
    lockstep_whole_file_free(file);
    lockstep_error_free(error);
}

static void a_whole_file_is_there_once_it_is_committed(void **state)
{
    (void)state;
    const char *path = ls_test_path("whole");
    write_whole(path, "lost", 0);
    assert_int_equal(access(path, F_OK), -1);
    write_whole(path, "first", 1);
    write_whole(path, "lost", 0);
    write_whole(path, "second", 2); /* a second commit is an error, and changes nothing */
    size_t size;
    char *text = ls_test_read(path, &size);
    assert_int_equal(size, 6);
    assert_memory_equal(text, "second", 6);
    free(text);
}

static void a_link_is_followed_where_the_user_wrote_it(void **state)
{
    (void)state;
    const char *file = ls_test_path("file"), *link = ls_test_path("link");
    ls_test_write_text(file, "kept");
    assert_int_equal(symlink(file, link), 0);
    int descriptor;
    assert_int_equal(lockstep_file_open(link, LOCKSTEP_FILE_ANEW, 0, &descriptor, NULL),
                     LOCKSTEP_RESOURCE);
    size_t size;
    free(ls_test_read(file, &size));
    assert_int_equal(size, 4);
    assert_int_equal(lockstep_file_open(link, LOCKSTEP_FILE_ANEW, 1, &descriptor, NULL), 0);
    close(descriptor);
    free(ls_test_read(file, &size));
    assert_int_equal(size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_is_there_once_it_is_committed),
        cmocka_unit_test(a_link_is_followed_where_the_user_wrote_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
