/* Processes of their own: see process.h. SPDX-License-Identifier: BSD-2-Clause */
#include "support/process.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

double ls_test_anonymous_memory(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kibibytes = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "Anonymous: %lf kB", &kibibytes);
    if (file != NULL)
        fclose(file);
    return kibibytes * 1024;
}

void ls_test_skip_uncounted(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    ls_test_skip("a sanitizer takes memory of its own");
#endif
    if (!(ls_test_anonymous_memory() > 0))
        ls_test_skip("the kernel does not count anonymous memory");
}

void ls_test_in_child(int (*work)(void *result), void *result, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int failed = work(result);
        failed |= write(ends[1], result, size) != (ssize_t)size;
        _exit(failed);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], result, size), size);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
