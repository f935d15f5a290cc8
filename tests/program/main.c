/* The program of a folder of tests: LS_TEST_FILES is a header with a line LS_TEST_FILE(test_name)
 * for each file, whose main this one calls.
 *
 *     PROGRAM [FILE...]     the tests of these files; without arguments of all of them
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#define LS_TEST_FILE(file) int ls_main_of_##file(void);
#include LS_TEST_FILES
#undef LS_TEST_FILE

static const struct {
    const char *name;
    int (*run)(void);
} files[] = {
#define LS_TEST_FILE(file) {#file, ls_main_of_##file},
#include LS_TEST_FILES
};

enum { FILES = sizeof files / sizeof files[0] };

static int run_file(const char *name)
{
    for (int i = 0; i < FILES; i++) {
        if (strcmp(files[i].name, name) == 0)
            return files[i].run();
    }
    fprintf(stderr, "there is no file '%s' in this program\n", name);
    return 1;
}

int main(int count, char **arguments)
{
    int failed = 0;
    for (int i = 1; i < count; i++)
        failed |= run_file(arguments[i]) != 0;
    for (int i = 0; count == 1 && i < FILES; i++)
        failed |= files[i].run() != 0;
    return failed;
}
