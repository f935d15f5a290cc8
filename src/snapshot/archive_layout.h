/* What the writer and the reader of archives must agree on; for their files only.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_ARCHIVE_LAYOUT_H
#define LS_SNAPSHOT_ARCHIVE_LAYOUT_H

#include "snapshot/archive.h"

enum {
    LS_HEADER_ALIGNMENT = 64,    /* of the first element in the file */
    LS_HEADER_LIMIT = 100000000, /* bytes; the limit of the safetensors package, too */
};

#define LS_CHECKSUM_KIND "crc32:" /* eight hexadecimal digits follow */

/* The CRC-32 of `crc`'s bytes followed by these; begin with 0. */
uint32_t ls_archive_crc(uint32_t crc, const void *bytes, size_t size);

/* Fails with `status` if two tensors or two notes have one name. */
int ls_archive_check_names(const struct ls_archive *archive, int status, const char *path,
                           struct ls_error *error);

#endif
