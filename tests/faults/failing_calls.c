/* Calls that fail on request, for LD_PRELOAD in the scripts of tests/faults and tools/torture.sh.
 *
 *   FAIL_CALL=linkat | unlink | fsync | which call: one of these; "write" is write() and the C
 *             rename | open | write |   library's fwrite, fflush and fclose of files, "malloc" all
 *             malloc | MPI | disk       that gives memory, "MPI" all calls of MPI that the program
 *                                       makes, "disk" all of the first six. Also
 *                                       dnnl_primitive_execute, which returns FAIL_ERRNO (1: out of
 *                                       memory, 5: runtime error)
 *   FAIL_ERRNO=1                        with which number; default: EIO; 0: it does not fail
 *   FAIL_AFTER=3                        the first so many are let through; default: 0
 *   FAIL_WHEN=FILE                      calls are let through, and not counted, until there is such
 *                                       a file
 *   FAIL_COUNT=2                        so many fail then; default: all
 *   FAIL_SLEEP=0.2                      these take so many seconds, too
 *   FAIL_SIGNAL=9                       these end the process by this signal
 *   FAIL_REPORT=FILE                    gets the number of such calls when the process ends
 *   FAIL_CALLER=FILE                    gets the name of the library, or program, whose malloc
 * failed
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic long calls;

static long number(const char *name, long otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? strtol(value, NULL, 10) : otherwise;
}

static bool is_wanted(const char *call)
{
    static const char *const disk[] = {"linkat", "unlink", "fsync", "rename", "open", "write"};
    const char *wanted = getenv("FAIL_CALL");
    if (wanted == NULL)
        return false;
    bool found = strcmp(wanted, call) == 0;
    for (size_t i = 0; !found && i < sizeof disk / sizeof *disk; i++)
        found = strcmp(wanted, "disk") == 0 && strcmp(call, disk[i]) == 0;
    return found;
}

static bool fails(const char *call)
{
    const char *when = getenv("FAIL_WHEN");
    if (!is_wanted(call) || (when != NULL && access(when, F_OK) != 0))
        return false;
    long call_number = atomic_fetch_add(&calls, 1), after = number("FAIL_AFTER", 0);
    if (call_number < after || call_number - after >= number("FAIL_COUNT", LONG_MAX))
        return false;
    const char *delay = getenv("FAIL_SLEEP");
    double seconds = delay != NULL ? strtod(delay, NULL) : 0;
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    if (seconds > 0)
        nanosleep(&time, NULL);
    int signal = (int)number("FAIL_SIGNAL", 0);
    if (signal != 0)
        raise(signal);
    errno = (int)number("FAIL_ERRNO", EIO);
    return errno != 0;
}

static void write_file(const char *path, const char *text)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0) {
        syscall(SYS_write, fd, text, strlen(text));
        close(fd);
    }
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("FAIL_REPORT");
    long count = atomic_load(&calls);
    char text[32];
    snprintf(text, sizeof text, "%ld\n", count);
    if (path != NULL && count > 0)
        write_file(path, text);
}

/* ---- The system's ---------------------------------------------------------------------------- */

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    if (fails("linkat"))
        return -1;
    return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int unlink(const char *path)
{
    if (fails("unlink"))
        return -1;
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int fsync(int fd)
{
    return fails("fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    return fails("rename") ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return fails("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    if (fd > STDERR_FILENO && fails("write"))
        return -1;
    return syscall(SYS_write, fd, bytes, size);
}

/* ---- The C library's ------------------------------------------------------------------------- */

/* The next function of that name. */
#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    if (next == NULL)                                                                              \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

static bool is_file(FILE *stream)
{
    return stream != NULL && fileno(stream) > STDERR_FILENO;
}

FILE *fopen(const char *path, const char *mode)
{
    NEXT(fopen);
    return fails("open") ? NULL : next(path, mode);
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *stream)
{
    NEXT(fwrite);
    return is_file(stream) && fails("write") ? 0 : next(bytes, size, count, stream);
}

int fflush(FILE *stream)
{
    NEXT(fflush);
    return is_file(stream) && fails("write") ? EOF : next(stream);
}

int fclose(FILE *stream)
{
    NEXT(fclose);
    bool failed = is_file(stream) && fails("write");
    int reason = errno, result = next(stream);
    if (!failed)
        return result;
    errno = reason;
    return EOF;
}

/* Memory: the C library's other names for these functions need no search, which takes memory. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool no_memory(const void *caller)
{
    const char *path = getenv("FAIL_CALLER");
    int before = errno;
    Dl_info from;
    if (!fails("malloc")) {
        errno = before;
        return false;
    }
    if (path != NULL && dladdr(caller, &from) != 0)
        write_file(path, from.dli_fname);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (no_memory(__builtin_return_address(0)))
        return ENOMEM;
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}

/* ---- oneDNN's: what runs a kernel ------------------------------------------------------------ */

int dnnl_primitive_execute(const void *primitive, void *stream, int count, const void *arguments);
int dnnl_primitive_execute(const void *primitive, void *stream, int count, const void *arguments)
{
    NEXT(dnnl_primitive_execute);
    if (fails("dnnl_primitive_execute"))
        return errno;
    return next(primitive, stream, count, arguments);
}

/* ---- MPI's ----------------------------------------------------------------------------------- */

/* Arguments are numbers and pointers in all MPI libraries; a register or a word of the stack each,
 * so that they can be handed on without the library's header. Both libraries have class 16. */
enum { MPI_FAILURE = 16 };

typedef int mpi_function(long a, long b, long c, long d, long e, long f, long g, long h, long i,
                         long j);

#define MPI_CALL(name)                                                                             \
    mpi_function name;                                                                             \
    int name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)       \
    {                                                                                              \
        static mpi_function *next;                                                                 \
        if (next == NULL)                                                                          \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                             \
        if (next == NULL) /* of a library that was opened later */                                 \
            *(void **)&next = dlsym(RTLD_DEFAULT, "P" #name);                                      \
        return fails("MPI") ? MPI_FAILURE : next(a, b, c, d, e, f, g, h, i, j);                    \
    }

MPI_CALL(MPI_Comm_dup)
MPI_CALL(MPI_Comm_split_type)
MPI_CALL(MPI_Comm_rank)
MPI_CALL(MPI_Comm_size)
MPI_CALL(MPI_Comm_free)
MPI_CALL(MPI_Init_thread)
MPI_CALL(MPI_Get_count)
MPI_CALL(MPI_Isend)
MPI_CALL(MPI_Irecv)
MPI_CALL(MPI_Ialltoall)
MPI_CALL(MPI_Ialltoallv)
MPI_CALL(MPI_Iallgatherv)
MPI_CALL(MPI_Test)
MPI_CALL(MPI_Wait)
