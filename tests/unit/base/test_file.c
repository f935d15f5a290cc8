/* Reading, mapping and finding files. SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/memory_limit.h"
#include "support/support.h"

static struct ls_error error;

static int setup(void **state)
{
    (void)state;
    ls_error_clear(&error);
    return 0;
}

static void expect_read(const char *path, size_t limit, int status, const char *message)
{
    char *data = (char *)"";
    size_t size = 1;
    ls_error_clear(&error);
    assert_int_equal(ls_file_read(path, limit, LOCKSTEP_DATA, &data, &size, &error), status);
    assert_null(data);
    assert_int_equal(size, 0);
    assert_int_equal(error.count, 1);
    assert_non_null(strstr(error.problems[0].message, message));
    if (status == LOCKSTEP_DATA)
        assert_string_equal(error.problems[0].place, path);
}

static void files_are_read_whole(void **state)
{
    (void)state;
    const char *path = ls_test_path("bytes");
    ls_test_write(path, "a\0b", 3);
    char *data;
    size_t size;
    assert_int_equal(ls_file_read(path, 3, LOCKSTEP_DATA, &data, &size, &error), 0);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b", 4); /* with the NUL behind it */
    ls_free(data);
    expect_read(path, 2, LOCKSTEP_DATA, "has 3 bytes; at most 2");
    ls_test_write(path, "", 0);
    assert_int_equal(ls_file_read(path, 0, LOCKSTEP_DATA, &data, &size, &error), 0);
    assert_int_equal(size, 0);
    assert_string_equal(data, "");
    ls_free(data);
}

static void what_cannot_be_read_is_told_with_its_path(void **state)
{
    (void)state;
    expect_read(ls_test_path("missing"), 10, LOCKSTEP_DATA, "No such file");
    expect_read(ls_test_directory(), 10, LOCKSTEP_DATA, "is a directory");
    const char *pipe = ls_test_path("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    expect_read(pipe, 10, LOCKSTEP_DATA,
                "is a pipe, not a file"); /* and does not wait for a writer */
    const char *path = ls_test_path("memory");
    ls_test_write_text(path, "text");
    ls_fail_allocation_after(0);
    expect_read(path, 10, LOCKSTEP_RESOURCE, "out of memory");
    ls_fail_allocation_after(-1);
}

static void mapped_files_have_the_bytes_on_disk(void **state)
{
    (void)state;
    const char *path = ls_test_path("mapped");
    ls_test_write_text(path, "view");
    struct ls_mapping mapping;
    assert_int_equal(ls_file_map(path, LOCKSTEP_DATA, &mapping, &error), 0);
    assert_int_equal(mapping.size, 4);
    assert_memory_equal(mapping.data, "view", 4);
    ls_file_unmap(&mapping);
    assert_null(mapping.data);
    ls_file_unmap(&mapping);
    ls_test_write(path, "", 0);
    assert_int_equal(ls_file_map(path, LOCKSTEP_DATA, &mapping, &error), 0);
    assert_null(mapping.data);
    assert_int_equal(mapping.size, 0);
    ls_file_unmap(&mapping);
    assert_int_equal(ls_file_map(ls_test_path("no"), LOCKSTEP_WEIGHTS, &mapping, &error),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(error.status, LOCKSTEP_WEIGHTS);
}

/* A view that does not fit into memory is no fault of the file. */
static void views_without_memory_say_so(void **state)
{
    (void)state;
    need_memory_limit();
    const char *path = ls_test_path("sparse");
    struct ls_mapping mapping;
    ls_test_write(path, "", 0);
    assert_int_equal(truncate(path, (off_t)1 << 32), 0);
    struct rlimit before = limit_memory(1 << 20);
    int status = ls_file_map(path, LOCKSTEP_DATA, &mapping, &error);
    unlimit_memory(before);
    assert_int_equal(status, LOCKSTEP_RESOURCE);
    assert_null(mapping.data);
    assert_string_equal(error.problems[0].place, path);
    assert_string_equal(error.problems[0].message, "cannot map: Cannot allocate memory");
}

static void existence_is_told(void **state)
{
    (void)state;
    const char *path = ls_test_path("there");
    ls_test_write_text(path, "");
    assert_true(ls_file_exists(path));
    assert_false(ls_is_directory(path));
    assert_true(ls_is_directory(ls_test_directory()));
    assert_false(ls_file_exists(ls_test_path("not-there")));
    assert_false(ls_is_directory(ls_test_path("not-there")));
}

static void check_resolved(const char *path, const char *definition, const char *expected)
{
    char *found = ls_resolve_path(path, definition);
    assert_non_null(found);
    assert_string_equal(found, expected);
    ls_free(found);
}

static void paths_follow_the_folder_of_the_definition(void **state)
{
    (void)state;
    assert_int_equal(mkdir(ls_test_path("nets"), 0755), 0);
    ls_test_write_text(ls_test_path("nets/net.prototxt"), "");
    ls_test_write_text(ls_test_path("here.prototxt"), "");
    char *old = getcwd(NULL, 0);
    assert_non_null(old);
    assert_int_equal(chdir(ls_test_directory()), 0);
    check_resolved("here.prototxt", "nets/solver.prototxt", "here.prototxt");
    check_resolved("net.prototxt", "nets/solver.prototxt", "nets/net.prototxt");
    check_resolved("net.prototxt", ls_test_path("nets/s"), ls_test_path("nets/net.prototxt"));
    check_resolved("none.prototxt", "nets/solver.prototxt", "none.prototxt");
    check_resolved("net.prototxt", "solver.prototxt", "net.prototxt");
    check_resolved("net.prototxt", NULL, "net.prototxt");
    check_resolved("/net.prototxt", "nets/solver.prototxt", "/net.prototxt");
    for (long n = 0; n < 2; n++) { /* the text, then the copy */
        ls_fail_allocation_after(n);
        assert_null(ls_resolve_path("none.prototxt", "nets/solver.prototxt"));
        ls_fail_allocation_after(-1);
    }
    assert_int_equal(chdir(old), 0);
    free(old);
}

/* Texts as editors of Windows write them. */
static void marks_of_texts_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } utf16[] = {{"\xff\xfe"
                  "a\0",
                  4},
                 {"\xfe\xff"
                  "\0a",
                  4},
                 {"n\0e\0", 4},
                 {"\0n\0e", 4}};
    const char *path = ls_test_path("text");
    char *text;
    size_t size;
    ls_test_write(path,
                  "\xef\xbb\xbf"
                  "a\n",
                  5);
    assert_int_equal(ls_file_read_text(path, 100, LOCKSTEP_DATA, &text, &size, NULL), 0);
    assert_int_equal(size, 2);
    assert_string_equal(text, "a\n");
    ls_free(text);
    for (size_t i = 0; i < sizeof utf16 / sizeof utf16[0]; i++) {
        ls_error_clear(&error);
        ls_test_write(path, utf16[i].bytes, utf16[i].size);
        assert_int_equal(ls_file_read_text(path, 100, LOCKSTEP_DATA, &text, &size, &error),
                         LOCKSTEP_DATA);
        assert_non_null(strstr(error.problems[0].message, "UTF-16"));
    }
}

static int maps_refused; /* how many calls fail before one is carried out */

/* In the place of the C library's own: some file systems cannot map. */
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && maps_refused > 0) {
        maps_refused--;
        errno = ENODEV;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static void what_cannot_be_mapped_is_read(void **state)
{
    (void)state;
    static char bytes[200000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    const char *path = ls_test_path("unmappable");
    ls_test_write(path, bytes, sizeof bytes);
    struct ls_mapping mapping;
    maps_refused = 1;
    assert_int_equal(ls_file_map(path, LOCKSTEP_DATA, &mapping, NULL), 0);
    assert_int_equal(mapping.size, sizeof bytes);
    assert_memory_equal(mapping.data, bytes, sizeof bytes);
    ls_file_forget(&mapping, mapping.data, mapping.size);
    assert_memory_equal(mapping.data, bytes, sizeof bytes);
    ls_file_unmap(&mapping);
    maps_refused = 2;
    assert_int_equal(ls_file_map(path, LOCKSTEP_DATA, &mapping, NULL), LOCKSTEP_DATA);
    maps_refused = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(files_are_read_whole, setup),
        cmocka_unit_test_setup(what_cannot_be_read_is_told_with_its_path, setup),
        cmocka_unit_test_setup(mapped_files_have_the_bytes_on_disk, setup),
        cmocka_unit_test_setup(views_without_memory_say_so, setup),
        cmocka_unit_test_setup(existence_is_told, setup),
        cmocka_unit_test_setup(paths_follow_the_folder_of_the_definition, setup),
        cmocka_unit_test(marks_of_texts_are_understood),
        cmocka_unit_test(what_cannot_be_mapped_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
