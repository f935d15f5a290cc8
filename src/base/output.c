/* Opening what is written. See base/output.h.
 *
 * In a folder that others may write to, the name of a file that is about to be written can be a
 * link to any file of the user. So a name is looked at without following it (O_PATH), and what was
 * looked at is what is opened, whatever has happened to the name since.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/descriptor.h"

enum { STEPS = 40 }; /* links to links, as many as the kernel follows */

static const char link_hint[] = "remove it, or write somewhere else";

/* An opening: a link is replaced by what it names, until there is no link. */
struct opening {
    const char *asked;   /* as the caller wrote it */
    char path[PATH_MAX]; /* now */
    enum ls_output_how how;
    bool named;
    struct ls_error *error;
};

static int refuse(const struct opening *o, const char *what)
{
    return ls_fail(o->error, LOCKSTEP_RESOURCE, o->asked, link_hint, "cannot write: %s", what);
}

/* With errno. */
static int fail(const struct opening *o)
{
    const int reason = errno;
    char text[128];
    return ls_fail(o->error, LOCKSTEP_RESOURCE, o->asked,
                   reason == ENOENT ? "make the folder first" : NULL, "cannot write: %s",
                   strerror_r(reason, text, sizeof text));
}

static bool is_trusted(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

/* Whether the path's folder is one where all users may make files and only remove their own, and a
 * file of `owner` in it may be a trap. (The kernel's protected_regular is this rule.) */
static bool is_laid_in_shared(const char *path, uid_t owner)
{
    char folder[PATH_MAX];
    struct stat info;
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
             slash != NULL ? path : ".");
    return !is_trusted(owner) && stat(folder, &info) == 0 && (info.st_mode & S_ISVTX) != 0 &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && info.st_uid != owner;
}

/* Puts what the link `fd` names in the place of o->path. */
static int follow(struct opening *o, int fd)
{
    char target[PATH_MAX];
    const ssize_t length = readlinkat(fd, "", target, sizeof target - 1);
    if (length < 0)
        return fail(o);
    target[length] = '\0';
    const char *slash = strrchr(o->path, '/');
    const size_t folder = target[0] == '/' || slash == NULL ? 0 : (size_t)(slash - o->path) + 1;
    errno = ENAMETOOLONG;
    if (folder + (size_t)length >= sizeof o->path)
        return fail(o);
    memcpy(o->path + folder, target, (size_t)length + 1);
    return 0;
}

/* Opens what `seen` is, an O_PATH descriptor of o->path. */
static int open_seen(const struct opening *o, int seen, int flags)
{
    char itself[64];
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", seen);
    const int fd = open(itself, flags);
    return fd >= 0 || errno != ENOENT ? fd : open(o->path, flags | O_NOFOLLOW); /* no /proc */
}

/* Opens what is there and no link; `info` is about it. */
static int open_there(const struct opening *o, int seen, const struct stat *info, int *fd)
{
    int flags = O_CLOEXEC | O_NOCTTY;
    errno = EEXIST;
    if (o->how == LS_OUTPUT_NEW)
        return fail(o);
    if (S_ISDIR(info->st_mode))
        return refuse(o, "is a folder");
    if (is_laid_in_shared(o->path, info->st_uid)) /* a pipe, too, which would wait for a reader */
        return refuse(o, "is a file of another user");
    if (S_ISREG(info->st_mode)) {
        if (info->st_nlink > 1)
            return refuse(o, "the file has other names, too (hard links)");
        flags |= O_RDWR | (o->how == LS_OUTPUT_APPEND ? O_APPEND : 0) |
                 (o->how == LS_OUTPUT_ANEW ? O_TRUNC : 0);
    } else {
        if (!o->named)
            return refuse(o, "is no file");
        flags |= O_WRONLY;
    }
    *fd = ls_above_streams(open_seen(o, seen, flags));
    return *fd >= 0 ? 0 : fail(o);
}

/* Opens a link that is no ordinary one: /dev/stdout is one to /proc/self/fd/1, which the kernel
 * resolves, and which no user can make. */
static int open_magic(const struct opening *o, int *fd)
{
    struct stat info;
    const bool file = stat(o->path, &info) == 0 && S_ISREG(info.st_mode);
    const int end = o->how == LS_OUTPUT_APPEND ? O_APPEND : O_TRUNC;
    *fd = ls_above_streams(open(o->path, O_CLOEXEC | O_NOCTTY | (file ? O_RDWR | end : O_WRONLY)));
    return *fd >= 0 ? 0 : fail(o);
}

/* One look at o->path. *fd stays -1 where it must be looked at again. */
static int step(struct opening *o, int seen, int *fd)
{
    struct stat info;
    struct statfs system;
    if (fstat(seen, &info) != 0)
        return fail(o);
    if (!S_ISLNK(info.st_mode))
        return open_there(o, seen, &info, fd);
    errno = EEXIST;
    if (o->how == LS_OUTPUT_NEW)
        return fail(o);
    if (!o->named)
        return refuse(o, "is a symbolic link");
    if (fstatfs(seen, &system) == 0 && (unsigned long)system.f_type == PROC_SUPER_MAGIC)
        return open_magic(o, fd);
    if (!is_trusted(info.st_uid))
        return refuse(o, "is a symbolic link of another user");
    return follow(o, seen);
}

int ls_output_open(const char *path, enum ls_output_how how, int named, int *fd,
                   struct ls_error *error)
{
    struct opening o = {.asked = path, .how = how, .named = named != 0, .error = error};
    *fd = -1;
    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof o.path)
        return fail(&o);
    memcpy(o.path, path, strlen(path) + 1);
    for (int steps = 0; steps < STEPS; steps++) {
        const int seen = open(o.path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (seen >= 0) {
            const int status = step(&o, seen, fd);
            close(seen);
            if (status != 0 || *fd >= 0)
                return status;
            continue;
        }
        if (errno != ENOENT)
            return fail(&o);
        const int end = how == LS_OUTPUT_APPEND ? O_APPEND : 0;
        *fd = ls_above_streams(open(o.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | end, 0666));
        if (*fd >= 0)
            return 0;
        if (errno != EEXIST)
            return fail(&o);
    }
    errno = ELOOP;
    return fail(&o);
}

int ls_output_folder(const char *path, struct ls_error *error)
{
    struct stat info;
    char text[128], name[PATH_MAX]; /* with a slash behind it lstat would follow a link */
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    snprintf(name, sizeof name, "%.*s", (int)length, path);
    if (mkdir(path, 0777) == 0)
        return 0;
    const int reason = errno;
    if (reason == EEXIST && lstat(name, &info) == 0 && S_ISLNK(info.st_mode) &&
        !is_trusted(info.st_uid))
        return ls_fail(error, LOCKSTEP_RESOURCE, path, link_hint,
                       "cannot write: is a symbolic link of another user");
    if (reason == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return 0;
    return ls_fail(error, LOCKSTEP_RESOURCE, path, NULL, "cannot make the folder: %s",
                   strerror_r(reason, text, sizeof text));
}
