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

enum {
    ROUNDS = 20,
    ROUND = 100000000, /* nanoseconds */
    TRIES = 100        /* to lock a file that is still there afterwards */
};

struct ls_lock {
    int fd;
    char *path;
};

/* Whether `path` still leads to the file that was locked: its holder may have removed it. */
static bool still_there(int fd, const char *path)
{
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

/* A descriptor that has the lock; -1 and errno EWOULDBLOCK: another one has it; -1 and another
 * errno: nothing can be locked here. Where a file never seems to be there still, the file system
 * gives it another number each time that it is asked: then the lock is as good as it can be. */
static int try_lock(const char *path)
{
    for (int tries = 1;; tries++) {
        int fd = ls_above_streams(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            int reason = errno;
            close(fd);
            errno = reason;
            return -1;
        }
        if (still_there(fd, path) || tries == TRIES)
            return fd;
        close(fd);
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

static void sign(int fd)
{
    char host[128] = "", text[192];
    gethostname(host, sizeof host - 1);
    int length = snprintf(text, sizeof text, "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(fd, 0) == 0 && write(fd, text, (size_t)length) < 0)
        errno = 0; /* a full disk: the lock holds without it */
}

int ls_lock_take(const char *path, struct ls_lock **out, struct ls_error *error)
{
    *out = NULL;
    int fd = try_lock(path);
    for (int round = 0; fd < 0 && errno == EWOULDBLOCK && round < ROUNDS; round++) {
        struct timespec time = {.tv_nsec = ROUND};
        nanosleep(&time, NULL);
        fd = try_lock(path);
    }
    if (fd < 0)
        return errno == EWOULDBLOCK ? fail_held(path, error) : 0;
    struct ls_lock *lock = ls_alloc(1, sizeof *lock);
    char *copy = ls_copy_string(path);
    if (lock == NULL || copy == NULL) {
        unlink(path);
        close(fd);
        ls_free(lock);
        ls_free(copy);
        return ls_fail_memory(error, path);
    }
    sign(fd);
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
