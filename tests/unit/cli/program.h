/* Runs the program in a test: its arguments, its two streams, its exit code.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_PROGRAM_H
#define LS_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "fake_library.h"
#include "support/support.h"

static char *out, *messages;

/* Runs the program with up to 20 arguments (NULL ends them), its two streams going to files; what
 * they got is in `out` and `messages`. */
static inline int run(const char *const *arguments)
{
    char *argv[24] = {(char *)(uintptr_t) "lockstep"};
    int count = 1;
    for (; arguments[count - 1] != NULL; count++)
        argv[count] = (char *)(uintptr_t)arguments[count - 1];
    const char *files[2] = {ls_test_path("stdout"), ls_test_path("stderr")};
    int saved[2];
    FILE *streams[2] = {stdout, stderr};
    for (int i = 0; i < 2; i++) {
        fflush(streams[i]);
        saved[i] = dup(i + 1);
        FILE *file = fopen(files[i], "w");
        assert_non_null(file);
        dup2(fileno(file), i + 1);
        fclose(file);
    }
    int status = ls_cli_main(count, argv);
    for (int i = 0; i < 2; i++) {
        fflush(streams[i]);
        dup2(saved[i], i + 1);
        close(saved[i]);
    }
    free(out);
    free(messages);
    size_t size;
    out = ls_test_read(files[0], &size);
    messages = ls_test_read(files[1], &size);
    assert_int_equal(fake.live_objects, 0);
    return status;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static inline int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static inline void expect_usage(int status, const char *message)
{
    assert_int_equal(status, LOCKSTEP_USAGE);
    assert_string_equal(messages, message);
    assert_string_equal(out, "");
    assert_string_equal(fake.calls, "");
}

static inline int free_texts(void **state)
{
    (void)state;
    free(out);
    free(messages);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

#endif
