/* Numbers of open files. See base/descriptor.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int ls_above_streams(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int reason = errno;
    close(fd);
    errno = reason;
    return above;
}
