/* Files of token ids, and of other numbers, that are written.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_TOKEN_OUTPUT_H
#define LS_TEXT_TOKEN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum ls_token_format { LS_TOKENS_BIN, LS_TOKENS_NPY, LS_TOKENS_LLMC };

/* 0, or LOCKSTEP_USAGE: there is no such format. NULL is LS_TOKENS_BIN. */
int ls_token_format_find(const char *name, enum ls_token_format *format, struct ls_error *error);
/* Bytes of an id of a tokenizer with so many ids: 2 or 4. */
int ls_token_type_size(uint32_t ids);

/* Ids that are collected, on disk beside where they will lie, until it is known how many there are.
 * Empty where it is all zeros but `fd`, -1. */
struct ls_token_spool {
    int fd;
    int type_size;
    const char *path; /* borrowed: of the output */
    unsigned char *buffer;
    size_t buffered; /* bytes */
    uint64_t count;  /* ids */
};
int ls_token_spool_open(const char *path, int type_size, struct ls_token_spool *spool,
                        struct ls_error *error);
int ls_token_spool_add(struct ls_token_spool *spool, const uint32_t *ids, size_t count,
                       struct ls_error *error);
/* Writes ids `begin` to `end` as a file. */
int ls_token_spool_write(struct ls_token_spool *spool, const char *path,
                         enum ls_token_format format, uint64_t begin, uint64_t end,
                         struct ls_error *error);
void ls_token_spool_close(struct ls_token_spool *spool);

/* The 128 bytes in front of the numbers of a .npy file: `type` is NumPy's ("<u2"), `columns` 0 for
 * an array of one axis. */
enum { LS_NPY_HEADER = 128 };
void ls_npy_header_write(const char *type, uint64_t rows, uint64_t columns,
                         char header[LS_NPY_HEADER]);

#endif
