/* Characters of UTF-8.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_UTF8_H
#define LS_DATA_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { LS_CODE_POINTS = 0x110000 };

/* The character that some bytes begin with, of which there are `left`, at least one: its code
 * point and how many bytes it has. -1: they begin with none (a byte that begins no character, one
 * that is cut off, a form that is longer than needed, a surrogate, what lies beyond U+10FFFF). Each
 * byte is read once, so that bytes which change meanwhile give some character or none. */
int32_t ls_utf8_read(const unsigned char *bytes, size_t left, size_t *size);
/* How many bytes a code point has, and the bytes. */
int ls_utf8_size(uint32_t code);
int ls_utf8_write(uint32_t code, char out[4]);

#endif
