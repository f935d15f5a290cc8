/* Files of token ids that are written. See text/token_output.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/token_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"

enum { BUFFER = 1 << 20, LLMC_HEADER = 1024 };

int ls_token_format_find(const char *name, enum ls_token_format *format, struct ls_error *error)
{
    static const char *const names[] = {
        [LS_TOKENS_BIN] = "bin", [LS_TOKENS_NPY] = "npy", [LS_TOKENS_LLMC] = "llmc"};
    *format = LS_TOKENS_BIN;
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *format = (enum ls_token_format)i;
            return 0;
        }
    }
    if (name == NULL)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, NULL, "there are bin, npy and llmc",
                   "there is no format '%s' of token ids", name);
}

int ls_token_type_size(uint32_t ids)
{
    return ids <= 65536 ? 2 : 4;
}

/* ---- The spool ------------------------------------------------------------------------------- */

static int disk_problem(const struct ls_token_spool *spool, struct ls_error *error)
{
    return ls_fail_errno(error, LOCKSTEP_RESOURCE, spool->path,
                         "cannot keep token ids beside this file");
}

/* A file without a name in the folder of `path`; -1 and errno. */
static int open_nameless(const char *path)
{
    struct ls_text name = {0};
    const char *slash = strrchr(path, '/');
    ls_text_add_bytes(&name, slash != NULL ? path : "./",
                      slash != NULL ? (size_t)(slash - path) + 1 : 2);
    int fd = -1;
    errno = ENOMEM;
    if (!name.failed)
        fd = open(name.data, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        ls_text_add(&name, ".tokens.XXXXXX");
        fd = name.failed ? -1 : mkostemp(name.data, O_CLOEXEC);
        if (fd >= 0)
            unlink(name.data);
    }
    ls_text_free(&name);
    return fd;
}

int ls_token_spool_open(const char *path, int type_size, struct ls_token_spool *spool,
                        struct ls_error *error)
{
    *spool = (struct ls_token_spool){.fd = -1, .type_size = type_size, .path = path};
    spool->buffer = ls_alloc(BUFFER, 1);
    if (spool->buffer == NULL)
        return ls_fail_memory(error, "token ids");
    spool->fd = open_nameless(path);
    return spool->fd >= 0 ? 0 : disk_problem(spool, error);
}

static int flush(struct ls_token_spool *spool, struct ls_error *error)
{
    for (size_t done = 0; done < spool->buffered;) {
        const ssize_t n = write(spool->fd, spool->buffer + done, spool->buffered - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return disk_problem(spool, error);
        done += (size_t)n;
    }
    spool->buffered = 0;
    return 0;
}

int ls_token_spool_add(struct ls_token_spool *spool, const uint32_t *ids, size_t count,
                       struct ls_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (spool->buffered == BUFFER)
            LS_TRY(flush(spool, error));
        for (int byte = 0; byte < spool->type_size; byte++)
            spool->buffer[spool->buffered++] = (unsigned char)(ids[i] >> (8 * byte));
    }
    spool->count += count;
    return 0;
}

void ls_token_spool_close(struct ls_token_spool *spool)
{
    if (spool->fd >= 0)
        close(spool->fd);
    spool->fd = -1;
    ls_free(spool->buffer);
    spool->buffer = NULL;
}

/* ---- Formats --------------------------------------------------------------------------------- */

void ls_npy_header_write(const char *type, uint64_t rows, uint64_t columns,
                         char header[LS_NPY_HEADER])
{
    char shape[64], text[LS_NPY_HEADER];
    if (columns > 0)
        snprintf(shape, sizeof shape, "%" PRIu64 ", %" PRIu64, rows, columns);
    else
        snprintf(shape, sizeof shape, "%" PRIu64 ",", rows);
    const int length = snprintf(
        text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    memset(header, ' ', LS_NPY_HEADER);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = LS_NPY_HEADER - 10;
    header[9] = 0;
    memcpy(header + 10, text, (size_t)length);
    header[LS_NPY_HEADER - 1] = '\n';
}

static void put_32(unsigned char *out, uint32_t number)
{
    for (int byte = 0; byte < 4; byte++)
        out[byte] = (unsigned char)(number >> (8 * byte));
}

/* What llm.c's files begin with: 256 integers, of which three say something. */
static int llmc_header(const char *path, int type_size, uint64_t count,
                       unsigned char header[LLMC_HEADER], struct ls_error *error)
{
    if (count > INT32_MAX)
        return ls_fail(error, LOCKSTEP_DATA, path, "write the format bin or npy",
                       "%" PRIu64 " ids; a file of llm.c holds at most %" PRId32, count, INT32_MAX);
    memset(header, 0, LLMC_HEADER);
    put_32(header, type_size == 2 ? 20240520 : 20240801);
    put_32(header + 4, type_size == 2 ? 1 : 7);
    put_32(header + 8, (uint32_t)count);
    return 0;
}

static int write_header(struct ls_atomic_file *file, const char *path, int type_size,
                        enum ls_token_format format, uint64_t count, struct ls_error *error)
{
    unsigned char header[LLMC_HEADER];
    if (format == LS_TOKENS_BIN)
        return 0;
    if (format == LS_TOKENS_NPY)
        ls_npy_header_write(type_size == 2 ? "<u2" : "<u4", count, 0, (char *)header);
    else
        LS_TRY(llmc_header(path, type_size, count, header, error));
    return ls_atomic_write(file, header, format == LS_TOKENS_NPY ? LS_NPY_HEADER : LLMC_HEADER,
                           error);
}

static int copy_ids(struct ls_token_spool *spool, struct ls_atomic_file *file, uint64_t begin,
                    uint64_t end, struct ls_error *error)
{
    uint64_t at = begin * (uint64_t)spool->type_size;
    const uint64_t last = end * (uint64_t)spool->type_size;
    while (at < last) {
        const size_t wanted = last - at < BUFFER ? (size_t)(last - at) : BUFFER;
        const ssize_t n = pread(spool->fd, spool->buffer, wanted, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return disk_problem(spool, error);
        LS_TRY(ls_atomic_write(file, spool->buffer, (size_t)n, error));
        at += (uint64_t)n;
    }
    return 0;
}

int ls_token_spool_write(struct ls_token_spool *spool, const char *path,
                         enum ls_token_format format, uint64_t begin, uint64_t end,
                         struct ls_error *error)
{
    struct ls_atomic_file *file;
    LS_TRY(flush(spool, error));
    LS_TRY(ls_atomic_open(path, &file, error));
    int status = write_header(file, path, spool->type_size, format, end - begin, error);
    if (status == 0)
        status = copy_ids(spool, file, begin, end, error);
    if (status == 0)
        return ls_atomic_commit(file, error);
    ls_atomic_abandon(file);
    return status;
}
