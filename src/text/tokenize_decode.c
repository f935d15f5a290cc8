/* Files of ids become text. See text/tokenize.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "text/tokenize.h"

enum { LLMC_HEADER = 1024 };

static uint32_t get_32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

/* Bytes in front of the ids of a file as lockstep tokenize writes them, and those of an id. */
static int read_header(const struct ls_tokenize *work, const char *name, const unsigned char *bytes,
                       size_t size, size_t *begin, int *type_size)
{
    *begin = 0;
    *type_size = work->counts->type_size;
    if (work->format == LS_TOKENS_NPY) {
        static const char *const descriptions[] = {"'descr': '<u2'", "'descr': '<u4'",
                                                   "'descr': '<i4'"};
        char header[LS_NPY_HEADER + 1] = {0};
        if (size < 10 || memcmp(bytes, "\x93NUMPY\x01\x00", 8) != 0 ||
            size < (*begin = 10 + (size_t)bytes[8] + 256 * (size_t)bytes[9]) || *begin < 12)
            return ls_fail(work->error, LOCKSTEP_DATA, name, NULL,
                           "is no .npy file of version 1.0");
        memcpy(header, bytes + 10, *begin - 10 < LS_NPY_HEADER ? *begin - 10 : LS_NPY_HEADER);
        for (int i = 0; i < 3; i++)
            if (strstr(header, descriptions[i]) != NULL) {
                *type_size = i == 0 ? 2 : 4;
                return 0;
            }
        return ls_fail(work->error, LOCKSTEP_DATA, name, NULL,
                       "its numbers are not of the types <u2, <u4 and <i4");
    }
    if (work->format == LS_TOKENS_LLMC) {
        const uint32_t magic = size >= LLMC_HEADER ? get_32(bytes) : 0;
        if (magic != 20240520 && magic != 20240801)
            return ls_fail(work->error, LOCKSTEP_DATA, name, NULL, "is no file of llm.c's tokens");
        *begin = LLMC_HEADER;
        *type_size = magic == 20240520 ? 2 : 4;
    }
    return 0;
}

static int decode_file(struct ls_tokenize *work, const char *path, struct ls_text *out)
{
    struct ls_text_input input;
    const char *bytes = NULL;
    size_t size = 0, begin = 0;
    uint32_t *ids = NULL;
    int type_size = 2;
    int status = ls_text_input_open(path, &input, work->error);
    if (status == 0)
        status = ls_text_input_all(&input, &bytes, &size, work->error);
    if (status == 0)
        status =
            read_header(work, input.name, (const unsigned char *)bytes, size, &begin, &type_size);
    if (status == 0 && (size - begin) % (size_t)type_size != 0)
        status =
            ls_fail(work->error, LOCKSTEP_DATA, input.name, NULL,
                    "%zu bytes are no whole number of ids of %d bytes", size - begin, type_size);
    const size_t count = (size - begin) / (size_t)type_size;
    if (status == 0 && (ids = ls_alloc(count, sizeof *ids)) == NULL)
        status = ls_fail_memory(work->error, input.name);
    for (size_t i = 0; i < count && status == 0; i++) {
        const unsigned char *id = (const unsigned char *)bytes + begin + i * (size_t)type_size;
        ids[i] = type_size == 2 ? (uint32_t)id[0] | (uint32_t)id[1] << 8 : get_32(id);
    }
    const size_t before = out->length;
    if (status == 0)
        status = ls_decode(work->tokenizer, input.name, ids, count, work->options->special, out,
                           work->error);
    if (status == 0) {
        work->counts->documents++;
        status = ls_tokenize_note(work, out->data + before, out->length - before, ids, count);
    }
    ls_free(ids);
    ls_text_input_close(&input);
    return status;
}

static int put_out(const struct ls_text *text, struct ls_error *error)
{
    for (size_t done = 0; done < text->length;) {
        const ssize_t n = write(STDOUT_FILENO, text->data + done, text->length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ls_fail_errno(error, LOCKSTEP_RESOURCE, "standard output", "cannot write");
        done += (size_t)n;
    }
    return 0;
}

int ls_tokenize_decode(struct ls_tokenize *work)
{
    const struct lockstep_tokenize_options *options = work->options;
    struct ls_text out = {0};
    int status = 0;
    ls_text_add(&out, "");
    for (size_t i = 0; i < options->input_count && status == 0; i++)
        status = decode_file(work, options->inputs[i], &out);
    if (status == 0 && out.failed)
        status = ls_fail_memory(work->error, "a text");
    if (status == 0)
        status = options->output == NULL || strcmp(options->output, "-") == 0
                     ? put_out(&out, work->error)
                     : ls_atomic_replace(options->output, out.data, out.length, work->error);
    ls_text_free(&out);
    return status;
}
