/* Processes of this machine, by what /proc says. See base/process.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

enum { STARTED_FIELD = 22 }; /* of /proc/<number>/stat, counted from 1 */

/* Reads a small file into `text`; 0, or the reason. */
static int read_small(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t got = read(fd, text, size - 1);
    int reason = got < 0 ? errno : 0;
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return reason;
}

/* The boot and the namespace of process numbers that this process lives in; 0: not known. */
static uint64_t own_space;
static pthread_once_t own_space_once = PTHREAD_ONCE_INIT;

static void find_space(void)
{
    char boot[64];
    struct stat numbers;
    if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot) != 0 ||
        stat("/proc/self/ns/pid", &numbers) != 0)
        return;
    uint64_t space = ls_hash_string(boot, (uint64_t)numbers.st_ino);
    own_space = space != 0 ? space : 1;
}

/* The state's letter and the start time of a line of /proc/<number>/stat. The name in it stands in
 * parentheses and may hold anything, parentheses too. */
static bool read_line(const char *line, char *state, uint64_t *started)
{
    const char *at = strrchr(line, ')');
    if (at == NULL || at[1] != ' ')
        return false;
    at += 2;
    *state = *at;
    for (int field = 3; field < STARTED_FIELD; field++) {
        at = strchr(at, ' ');
        if (at == NULL)
            return false;
        at++;
    }
    return sscanf(at, "%" SCNu64, started) == 1;
}

struct ls_process ls_process_self(void)
{
    char line[1024], state;
    pthread_once(&own_space_once, find_space);
    struct ls_process self = {.space = own_space, .number = getpid()};
    if (read_small("/proc/self/stat", line, sizeof line) != 0 ||
        !read_line(line, &state, &self.started))
        self.space = 0;
    return self;
}

enum ls_process_state ls_process_state(const struct ls_process *process)
{
    char path[64], line[1024], state;
    uint64_t started;
    pthread_once(&own_space_once, find_space);
    if (process->space == 0 || process->space != own_space)
        return LS_PROCESS_UNKNOWN;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", process->number);
    int reason = read_small(path, line, sizeof line);
    if (reason == ENOENT || reason == ESRCH)
        return LS_PROCESS_GONE;
    if (reason != 0 || !read_line(line, &state, &started))
        return LS_PROCESS_UNKNOWN;
    if (started != process->started || state == 'Z' || state == 'X' || state == 'x')
        return LS_PROCESS_GONE;
    return state == 'T' || state == 't' ? LS_PROCESS_STOPPED : LS_PROCESS_THERE;
}
