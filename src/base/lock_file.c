/* Locks in files. See base/lock_file.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/memory.h"
#include "base/output.h"

enum {
    ROUNDS = 20,
    ROUND = 100000000, /* nanoseconds */
    TRIES = 100        /* to lock a file that is still there afterwards */
};

static const char begin[] = "process "; /* of its text */

struct ls_lock {
    int fd;
    char *path;
};

/* Whether `path` still leads to the file that was locked: its holder may have removed it. */
static bool still_there(int fd, const char *path)
{
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

/* Opens the file of the lock. What another user has left can be locked, too, where it can be read:
 * then it keeps that user's text. */
static int open_lock(const char *path, int *fd, struct ls_error *error)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1 &&
        access(path, W_OK) != 0) {
        *fd = ls_above_streams(open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (*fd >= 0)
            return 0;
    }
    return ls_output_open(path, LS_OUTPUT_KEEP, false, fd, error);
}

/* Tries to lock the file: *fd has the lock then. -1: `*reason` says why, and EWOULDBLOCK is that
 * another one has it; others: nothing can be locked here. Fails where there can be no such file.
 * Where a file never seems to be there still, the file system gives it another number each time
 * that it is asked: then the lock is as good as it can be. */
static int try_lock(const char *path, int *fd, int *reason, struct ls_error *error)
{
    for (int tries = 1;; tries++) {
        LS_TRY(open_lock(path, fd, error));
        if (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
            *reason = errno;
            close(*fd);
            *fd = -1;
            return 0;
        }
        if (still_there(*fd, path) || tries == TRIES)
            return 0;
        close(*fd);
    }
}

static int fail_held(const char *path, struct ls_error *error)
{
    char holder[160] = "";
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        size_t length = fread(holder, 1, sizeof holder - 1, file);
        holder[length] = '\0';
        holder[strcspn(holder, "\n")] = '\0';
        fclose(file);
    }
    return ls_fail(error, LOCKSTEP_USAGE, path, "wait for it, stop it, or choose another prefix",
                   "another training writes these snapshots: %s",
                   holder[0] != '\0' ? holder : "it has not said which");
}

/* Writes who holds the lock over what an earlier holder has written, and over nothing else. */
static int sign(int fd, const char *path, struct ls_error *error)
{
    char host[128] = "", text[192], there[sizeof text];
    const ssize_t old = pread(fd, there, sizeof there, 0);
    const size_t least = strlen(begin);
    if (old != 0 &&
        (old < (ssize_t)least || old == sizeof there || memcmp(there, begin, least) != 0))
        return ls_fail(error, LOCKSTEP_RESOURCE, path, "move it away, or choose another prefix",
                       "has the name of a lock, and something else in it");
    gethostname(host, sizeof host - 1);
    int length = snprintf(text, sizeof text, "%s%ld on %s\n", begin, (long)getpid(), host);
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)length, 0) < 0)
        errno = 0; /* a full disk: the lock holds without it */
    return 0;
}

int ls_lock_take(const char *path, struct ls_lock **out, struct ls_error *error)
{
    int fd = -1, reason = 0;
    *out = NULL;
    LS_TRY(try_lock(path, &fd, &reason, error));
    for (int round = 0; fd < 0 && reason == EWOULDBLOCK && round < ROUNDS; round++) {
        struct timespec time = {.tv_nsec = ROUND};
        nanosleep(&time, NULL);
        LS_TRY(try_lock(path, &fd, &reason, error));
    }
    if (fd < 0)
        return reason == EWOULDBLOCK ? fail_held(path, error) : 0;
    int status = sign(fd, path, error);
    if (status != 0) { /* it is no lock, and stays */
        close(fd);
        return status;
    }
    struct ls_lock *lock = ls_alloc(1, sizeof *lock);
    char *copy = ls_copy_string(path);
    if (lock == NULL || copy == NULL) {
        unlink(path);
        close(fd);
        ls_free(lock);
        ls_free(copy);
        return ls_fail_memory(error, path);
    }
    *lock = (struct ls_lock){fd, copy};
    *out = lock;
    return 0;
}

void ls_lock_release(struct ls_lock *lock)
{
    if (lock == NULL)
        return;
    unlink(lock->path); /* while it is locked, so that no other file is meant */
    close(lock->fd);
    ls_free(lock->path);
    ls_free(lock);
}
