/* Testing in a child. See api/plugin_child.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/plugin_child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child says, in memory that both see. */
struct report {
    bool done; /* the test has come to its end */
    int status;
    char line[400]; /* "": there was none */
    struct ls_error error;
};

static void keep_line(void *user, const char *line)
{
    struct report *report = user;
    snprintf(report->line, sizeof report->line, "%s", line);
}

static void test_here(const struct ls_plugin_check *check,
                      int (*test)(const struct ls_plugin_check *check), struct report *report)
{
    struct lockstep_plugin_check_options options = *check->options;
    struct ls_plugin_check mine = *check;
    options.tell = keep_line;
    options.user = report;
    mine.options = &options;
    mine.error = &report->error;
    report->status = test(&mine);
    report->done = true;
    _exit(0);
}

/* The type has ended its process, by exit, a crash or the end of its thread. */
static int fail_ended(const struct ls_plugin_check *check, int how)
{
    const char *type = check->of->type;
    if (WIFSIGNALED(how))
        return ls_fail(check->error, LOCKSTEP_DIFFERENT, type, NULL, "crashes: %s",
                       strsignal(WTERMSIG(how)));
    return ls_fail(check->error, LOCKSTEP_DIFFERENT, type,
                   "a layer returns a status, and says in `message` why",
                   "ends the process, or its thread, with code %d", WEXITSTATUS(how));
}

static int wait_for(const struct ls_plugin_check *check, pid_t child, const struct report *report)
{
    int how = 0;
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR)
            return ls_fail_errno(check->error, LOCKSTEP_RESOURCE, NULL, "cannot wait for a test");
    if (!report->done)
        return fail_ended(check, how);
    if (report->line[0] != '\0' && check->options->tell != NULL)
        check->options->tell(check->options->user, report->line);
    if (check->error != NULL)
        ls_error_add(check->error, &report->error);
    return report->status;
}

int ls_plugin_test_in_child(const struct ls_plugin_check *check,
                            int (*test)(const struct ls_plugin_check *check))
{
    struct report *report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return ls_fail_memory(check->error, "a test of a plugin");
    fflush(NULL); /* or a child that calls exit would write it, too */
    pid_t child = fork();
    if (child == 0)
        test_here(check, test, report);
    int status = child < 0 ? ls_fail_errno(check->error, LOCKSTEP_RESOURCE, NULL,
                                           "cannot start a process for a test")
                           : wait_for(check, child, report);
    munmap(report, sizeof *report);
    return status;
}
