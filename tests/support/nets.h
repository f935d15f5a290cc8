/* Nets of tests: files of tests/nets, with placeholders for what a test varies.
 *
 * A placeholder is a name in small letters between two signs: "batch_size: @batch@". A test gives
 * each of them a text: a number, a path, further fields of a layer. "@directory@" needs none: it is
 * the test's own directory (ls_test_directory). Lines of comments stay as they are.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_NETS_H
#define LS_TESTS_NETS_H

#include <stddef.h>

/* The text that takes the place of "@name@". NULL: nothing does, and the net need not have that
 * placeholder. */
struct ls_test_value {
    const char *name, *text;
};

/* Values for ls_test_net: LS_TEST_VALUES({"batch", "32"}, {"group", "4"}). */
#define LS_TEST_VALUES(...) ((const struct ls_test_value[]){__VA_ARGS__, {NULL, NULL}})

/* The text of tests/nets/<name>.prototxt with its placeholders replaced; `values` ends with a name
 * that is NULL, or is NULL itself. A placeholder without a value and a text without a placeholder
 * fail the running test, with the name of the file. The text belongs to the library; the last
 * sixteen are valid. */
const char *ls_test_net(const char *name, const struct ls_test_value *values);

/* A formatted text, such as a value; the last sixteen are valid. */
const char *ls_test_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What ls_test_net does to the text of a file: a new text that the caller frees, or NULL and what
 * is wrong with the placeholders, as a sentence of at most `size` bytes. */
char *ls_test_fill(const char *text, const struct ls_test_value *values, char *problem,
                   size_t size);

#endif
