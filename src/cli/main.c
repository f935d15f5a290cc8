/* The program's entry.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/commands.h"
#include "lockstep/lockstep.h"

static bool finished; /* the program has come to its own end */
static pid_t own;     /* this process: one that it has forked may exit */

/* Nothing of ours calls exit or pthread_exit: a plugin, or a library, has ended the program in the
 * middle of its work, which is no success. */
static void end_early(void)
{
    static const char text[] = "lockstep: code of a plugin, or of a library, has ended the program "
                               "before its work was done\n";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(LOCKSTEP_RESOURCE);
}

/* In the place of the C library's, for plugins: what _exit ends, no handler sees. */
__attribute__((visibility("default"))) void _exit(int code)
{
    if (code == 0 && !finished && own != 0 && getpid() == own)
        end_early();
    for (;;)
        syscall(SYS_exit_group, code);
}

static void notice_exit(int code, void *user)
{
    (void)user;
    if (!finished && code == 0 && getpid() == own)
        end_early();
}

/* Called where this thread ends by itself. */
static void notice_thread_end(void *user)
{
    (void)user;
    if (getpid() == own)
        end_early();
}

int main(int argc, char **argv)
{
    pthread_key_t key;
    own = getpid();
    (void)on_exit(notice_exit, NULL);
    if (pthread_key_create(&key, notice_thread_end) == 0)
        pthread_setspecific(key, &finished);
    int status = ls_cli_main(argc, argv);
    finished = true;
    return status;
}
