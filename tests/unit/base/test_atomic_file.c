/* Atomic writes, above all when they fail. SPDX-License-Identifier: BSD-2-Clause */
#include "base/atomic_file.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/support.h"

static struct ls_error error;

/* What linkat and fsync of a folder fail with; 0: they do what they are for. */
static int link_failure, folder_failure;

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    errno = link_failure;
    return link_failure != 0 ? -1
                             : (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int fsync(int fd)
{
    struct stat info;
    if (folder_failure != 0 && fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = folder_failure;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static int setup(void **state)
{
    (void)state;
    ls_error_clear(&error);
    return 0;
}

static void check_content(const char *path, const char *expected)
{
    size_t size;
    char *bytes = ls_test_read(path, &size);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
    free(bytes);
}

/* A folder of this name below the test's, empty. */
static const char *fresh_folder(const char *name)
{
    const char *folder = ls_test_path(name);
    assert_int_equal(mkdir(folder, 0755), 0);
    return folder;
}

/* Whether the file system has files without a name, of which nothing remains. */
static bool has_nameless_files(const char *folder)
{
    int fd = open(folder, O_WRONLY | O_TMPFILE, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* What a killed writer had written is gone, and the old file is what it was. */
static void a_killed_writer_leaves_the_old_file(void **state)
{
    (void)state;
    const char *folder = fresh_folder("killed"), *path = ls_test_path("killed/model");
    ls_test_write_text(path, "old");
    if (!has_nameless_files(folder))
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct ls_atomic_file *file;
        if (ls_atomic_open(path, &file, &error) == 0)
            ls_atomic_write(file, "new", 3, &error);
        raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(ls_test_count_files(folder), 1);
    check_content(path, "old");
}

static void a_file_is_old_or_new_never_half(void **state)
{
    (void)state;
    const char *folder = fresh_folder("commit"), *path = ls_test_path("commit/model");
    ls_test_write_text(path, "old");
    struct ls_atomic_file *file;
    assert_int_equal(ls_atomic_open(path, &file, &error), 0);
    assert_int_equal(ls_atomic_write(file, "ne", 2, &error), 0);
    assert_int_equal(ls_atomic_write(file, NULL, 0, &error), 0);
    check_content(path, "old");
    assert_int_equal(ls_test_count_files(folder), has_nameless_files(folder) ? 1 : 2);
    assert_int_equal(ls_atomic_write(file, "w!", 2, &error), 0);
    assert_int_equal(ls_atomic_commit(file, &error), 0);
    check_content(path, "new!");
    assert_int_equal(ls_test_count_files(folder), 1);
    assert_int_equal(error.count, 0);
}

/* What was written before can be put right; more is written behind the end again. */
static void what_was_written_can_be_put_right(void **state)
{
    (void)state;
    struct ls_atomic_file *file;
    const char *path = ls_test_path("rewritten");
    assert_int_equal(ls_atomic_open(path, &file, &error), 0);
    assert_int_equal(ls_atomic_write(file, "head 0000 tail", 14, &error), 0);
    assert_int_equal(ls_atomic_rewrite(file, 5, "1234", 4, &error), 0);
    assert_int_equal(ls_atomic_write(file, " end", 4, &error), 0);
    assert_int_equal(ls_atomic_commit(file, &error), 0);
    check_content(path, "head 1234 tail end");
}

static void an_abandoned_write_leaves_the_old_file(void **state)
{
    (void)state;
    const char *folder = fresh_folder("abandon"), *path = ls_test_path("abandon/model");
    ls_test_write_text(path, "old");
    struct ls_atomic_file *file;
    assert_int_equal(ls_atomic_open(path, &file, &error), 0);
    assert_int_equal(ls_atomic_write(file, "new", 3, &error), 0);
    ls_atomic_abandon(file);
    ls_atomic_abandon(NULL);
    check_content(path, "old");
    assert_int_equal(ls_test_count_files(folder), 1);
}

static void where_nothing_can_be_created_the_path_is_told(void **state)
{
    (void)state;
    struct ls_atomic_file *file;
    assert_int_equal(ls_atomic_open(ls_test_path("no/such/folder/x"), &file, &error),
                     LOCKSTEP_RESOURCE);
    assert_null(file);
    assert_non_null(strstr(error.problems[0].message, "No such file"));
    assert_non_null(strstr(error.problems[0].hint, "mkdir -p"));
    assert_int_equal(ls_atomic_open(ls_test_directory(), &file, &error), LOCKSTEP_RESOURCE);
    assert_int_equal(ls_atomic_open("", &file, &error), LOCKSTEP_RESOURCE);
    assert_int_equal(ls_atomic_open("/tmp/", &file, &error), LOCKSTEP_RESOURCE);
    assert_null(file);
}

/* A name near the limit of the file system still has a temporary one. */
/* A rename would put a file where the device was, for all programs of the machine. */
static void devices_and_pipes_stay_what_they_are(void **state)
{
    (void)state;
    char pipe[1024], link[1024];
    snprintf(pipe, sizeof pipe, "%s", ls_test_path("pipe"));
    snprintf(link, sizeof link, "%s", ls_test_path("link"));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(symlink(pipe, link), 0);
    const char *const paths[] = {pipe, link};
    for (int i = 0; i < 2; i++) {
        struct ls_atomic_file *file;
        struct stat before, after;
        ls_error_clear(&error);
        assert_int_equal(lstat(paths[i], &before), 0);
        assert_int_equal(ls_atomic_open(paths[i], &file, &error), LOCKSTEP_RESOURCE);
        assert_null(file);
        assert_non_null(strstr(error.problems[0].message, "names a device or a pipe"));
        assert_int_equal(lstat(paths[i], &after), 0);
        assert_true(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
    }
}

static void names_near_the_limit_are_written(void **state)
{
    (void)state;
    char name[251];
    memset(name, 'n', 250);
    name[250] = '\0';
    const char *path = ls_test_path(name);
    struct ls_atomic_file *file;
    assert_int_equal(ls_atomic_open(path, &file, &error), 0);
    assert_int_equal(ls_atomic_commit(file, &error), 0);
    check_content(path, "");
}

/* A killed process may have had this process's number: its temporary file is neither used nor
 * removed. */
static void leftovers_of_others_are_left(void **state)
{
    (void)state;
    const char *folder = fresh_folder("leftover"), *path = ls_test_path("leftover/model");
    char leftover[64];
    snprintf(leftover, sizeof leftover, "leftover/.model.%ld.0.tmp", (long)getpid());
    ls_test_write_text(ls_test_path(leftover), "theirs");
    struct ls_atomic_file *file;
    assert_int_equal(ls_atomic_open(path, &file, &error), 0);
    assert_int_equal(ls_atomic_write(file, "ours", 4, &error), 0);
    assert_int_equal(ls_atomic_commit(file, &error), 0);
    check_content(path, "ours");
    check_content(ls_test_path(leftover), "theirs");
    assert_int_equal(ls_test_count_files(folder), 2);
}

static void two_writers_at_once_leave_one_whole_file(void **state)
{
    (void)state;
    const char *folder = fresh_folder("two"), *path = ls_test_path("two/model");
    struct ls_atomic_file *a, *b;
    assert_int_equal(ls_atomic_open(path, &a, &error), 0);
    assert_int_equal(ls_atomic_open(path, &b, &error), 0);
    assert_int_equal(ls_atomic_write(a, "first", 5, &error), 0);
    assert_int_equal(ls_atomic_write(b, "second", 6, &error), 0);
    assert_int_equal(ls_atomic_commit(b, &error), 0);
    assert_int_equal(ls_atomic_commit(a, &error), 0);
    check_content(path, "first");
    assert_int_equal(ls_test_count_files(folder), 1);
}

static void a_rename_that_fails_leaves_the_old_file(void **state)
{
    (void)state;
    const char *folder = fresh_folder("rename"), *path = ls_test_path("rename/model");
    struct ls_atomic_file *file;
    assert_int_equal(ls_atomic_open(path, &file, &error), 0);
    assert_int_equal(mkdir(path, 0755), 0); /* a directory cannot be renamed over */
    assert_int_equal(ls_atomic_commit(file, &error), LOCKSTEP_RESOURCE);
    assert_non_null(strstr(error.problems[0].message, "cannot rename"));
    assert_string_equal(error.problems[0].place, path);
    assert_int_equal(ls_test_count_files(folder), 1);
}

static void without_memory_the_old_file_stays(void **state)
{
    (void)state;
    const char *folder = fresh_folder("memory"), *path = ls_test_path("memory/model");
    int failures = 0;
    for (long n = 0; n < 20; n++) {
        struct ls_atomic_file *file;
        ls_error_clear(&error);
        ls_fail_allocation_after(n);
        int status = ls_atomic_open(path, &file, &error);
        if (status == 0)
            status = ls_atomic_commit(file, &error);
        ls_fail_allocation_after(-1);
        if (status == 0)
            break;
        failures++;
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        assert_true(ls_test_count_files(folder) <= 1); /* no temporary file stays */
    }
    assert_true(failures >= 3 && failures < 20);
    assert_int_equal(ls_test_count_files(folder), 1);
    check_content(path, "");
}

/* Writes `size` bytes over `path` and returns the status; the handle is freed either way. */
static int write_zeros(const char *path, size_t size)
{
    struct ls_atomic_file *file;
    LS_TRY(ls_atomic_open(path, &file, &error));
    char block[4096] = {0};
    for (size_t done = 0; done < size; done += sizeof block) {
        int status = ls_atomic_write(file, block, sizeof block, &error);
        if (status != 0) {
            /* What comes after a failure fails too, and says so. */
            assert_int_equal(ls_atomic_write(file, block, 1, &error), LOCKSTEP_RESOURCE);
            assert_int_equal(ls_atomic_commit(file, &error), LOCKSTEP_RESOURCE);
            return status;
        }
    }
    return ls_atomic_commit(file, &error);
}

/* A limit on the size of files (EFBIG) is used in place of a full disk, because it needs no
 * rights. One size fails in a write, the other, smaller than the buffer, only in the commit. */
static void a_file_too_large_leaves_the_old_one(void **state)
{
    (void)state;
    const char *folder = fresh_folder("limit"), *path = ls_test_path("limit/model");
    ls_test_write_text(path, "old");
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const size_t sizes[] = {1 << 20, 4096};
    for (int i = 0; i < 2; i++) {
        ls_error_clear(&error);
        low = old;
        low.rlim_cur = i == 0 ? 100000 : 1000;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
        int status = write_zeros(path, sizes[i]);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        assert_non_null(strstr(error.problems[0].message, "File too large"));
        check_content(path, "old");
        assert_int_equal(ls_test_count_files(folder), 1);
    }
    signal(SIGXFSZ, handler);
}

/* Gives this process its own mounts: as root, or as root of a user namespace of its own. */
static bool own_mounts(void)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return false;
    char map[64];
    snprintf(map, sizeof map, "0 %ld 1", (long)user);
    ls_test_write_text("/proc/self/uid_map", map);
    ls_test_write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %ld 1", (long)group);
    ls_test_write_text("/proc/self/gid_map", map);
    return true;
}

/* The child's part of the next test. Exit codes: 0 good, 77 nothing can be mounted here, others:
 * the step that went wrong. */
static int on_a_full_disk(const char *folder)
{
    if (!own_mounts() || mount("none", folder, "tmpfs", 0, "size=256k") != 0)
        return 77;
    const char *path = ls_test_path("full/model");
    if (write_zeros(path, 64 << 10) != 0)
        return 1;
    if (write_zeros(path, 1 << 20) != LOCKSTEP_RESOURCE)
        return 2;
    if (strstr(error.problems[0].message, "No space left") == NULL ||
        strstr(error.problems[0].hint, "free some space") == NULL)
        return 3;
    struct stat info;
    if (stat(path, &info) != 0 || info.st_size != 64 << 10 || ls_test_count_files(folder) != 1)
        return 4;
    return write_zeros(path, 128 << 10) == 0 ? 0 : 5; /* room for the old and the new */
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    const char *folder = fresh_folder("full");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(on_a_full_disk(folder));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        ls_test_skip("no rights to mount a small file system");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void prefixes_are_checked_before_they_are_used(void **state)
{
    (void)state;
    const char *folder = fresh_folder("prefix");
    assert_int_equal(ls_file_check_prefix(ls_test_path("prefix/lenet"), &error), 0);
    assert_int_equal(ls_file_check_prefix(ls_test_path("prefix/"), &error), 0);
    assert_int_equal(ls_test_count_files(folder), 0);
    assert_int_equal(error.count, 0);
    assert_int_equal(ls_file_check_prefix(ls_test_path("prefix/no/lenet"), &error),
                     LOCKSTEP_RESOURCE);
    assert_non_null(strstr(error.problems[0].hint, "mkdir -p"));
    if (geteuid() != 0) { /* root may write anywhere */
        assert_int_equal(chmod(folder, 0500), 0);
        assert_int_equal(ls_file_check_prefix(ls_test_path("prefix/lenet"), &error),
                         LOCKSTEP_RESOURCE);
    }
}

/* The child's part of the next test: whether files can be named is found once in a process. A
 * full folder, for which linkat also fails, does not count. */
static int without_links(const char *folder, int reason, bool checked)
{
    const char *path = ls_test_path("unlinked/model");
    ls_test_write_text(path, "old");
    if (!has_nameless_files(folder))
        return 77;
    link_failure = ENOSPC;
    if (write_zeros(path, 4096) != LOCKSTEP_RESOURCE || ls_test_count_files(folder) != 1)
        return 1;
    check_content(path, "old");
    link_failure = reason;
    ls_error_clear(&error);
    if (checked && ls_file_check_prefix(path, &error) != 0)
        return 2;
    if (ls_test_count_files(folder) != 1)
        return 3;
    struct ls_atomic_file *file;
    for (int i = 0; i < 2; i++) {
        if (ls_atomic_open(path, &file, &error) != 0 ||
            ls_atomic_write(file, i == 0 ? "one" : "two", 3, &error) != 0 ||
            ls_atomic_commit(file, &error) != 0)
            return 4;
        check_content(path, i == 0 ? "one" : "two");
        if (ls_test_count_files(folder) != 1)
            return 5;
    }
    return error.count == 0 ? 0 : 6;
}

/* Where a sandbox or a file system does not allow linkat, the file is written under a temporary
 * name. */
static void refused_links_leave_a_temporary_name(void **state)
{
    (void)state;
    const char *folder = fresh_folder("unlinked");
    const int reasons[] = {EPERM, ENOENT, EXDEV, ENOSYS};
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(without_links(folder, reasons[i % 4], i >= 4));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
            ls_test_skip("the file system has no files without a name");
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* A name that may not be on the disk yet is no file that is not written. */
static void a_folder_that_cannot_be_synced_is_a_failure(void **state)
{
    (void)state;
    const char *folder = fresh_folder("unsynced"), *path = ls_test_path("unsynced/model");
    folder_failure = EIO;
    int status = write_zeros(path, 4096);
    folder_failure = 0;
    assert_int_equal(status, 0);
    assert_int_equal(ls_test_count_files(folder), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(refused_links_leave_a_temporary_name, setup),
        cmocka_unit_test_setup(a_folder_that_cannot_be_synced_is_a_failure, setup),
        cmocka_unit_test_setup(a_file_is_old_or_new_never_half, setup),
        cmocka_unit_test_setup(a_killed_writer_leaves_the_old_file, setup),
        cmocka_unit_test_setup(what_was_written_can_be_put_right, setup),
        cmocka_unit_test_setup(an_abandoned_write_leaves_the_old_file, setup),
        cmocka_unit_test_setup(where_nothing_can_be_created_the_path_is_told, setup),
        cmocka_unit_test_setup(devices_and_pipes_stay_what_they_are, setup),
        cmocka_unit_test_setup(names_near_the_limit_are_written, setup),
        cmocka_unit_test_setup(leftovers_of_others_are_left, setup),
        cmocka_unit_test_setup(two_writers_at_once_leave_one_whole_file, setup),
        cmocka_unit_test_setup(a_rename_that_fails_leaves_the_old_file, setup),
        cmocka_unit_test_setup(without_memory_the_old_file_stays, setup),
        cmocka_unit_test_setup(a_file_too_large_leaves_the_old_one, setup),
        cmocka_unit_test_setup(a_full_disk_leaves_the_old_file, setup),
        cmocka_unit_test_setup(prefixes_are_checked_before_they_are_used, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
