/* Helpers of all tests: a directory to write to, the data sets, files, one way to skip.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_SUPPORT_H
#define LS_TESTS_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* An empty directory of this test program's own; made at the first call, removed with all that is
 * in it when the program exits. The result belongs to the library. */
const char *ls_test_directory(void);

/* "<test directory>/<name>", in one of a few buffers that are used in turn (the last eight results
 * are valid). */
const char *ls_test_path(const char *name);

/* The path of a file or folder of the data sets ("mnist/t10k-images-idx3-ubyte"), or NULL where it
 * is not on this machine: $LOCKSTEP_DATA, else ../shared/data beside the source tree. The result
 * is of the same kind as that of ls_test_path. */
const char *ls_test_data(const char *name);

/* As ls_test_data, and skips the running test, saying why, when it is not there. */
const char *ls_test_data_or_skip(const char *name);

/* The path of a file of the source tree ("examples/mnist/lenet.prototxt"). */
const char *ls_test_source(const char *name);

/* Prints why and skips the running test. */
void ls_test_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Writes or reads a whole file; a failure fails the running test. A NUL follows the bytes that are
 * read; free them with free(). */
void ls_test_write(const char *path, const void *bytes, size_t size);
void ls_test_write_text(const char *path, const char *text);
char *ls_test_read(const char *path, size_t *size);

/* Files in a folder, hidden ones too ("." and ".." not). */
size_t ls_test_count_files(const char *folder);

#endif
