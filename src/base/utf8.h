/* Characters of UTF-8 (RFC 3629).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_UTF8_H
#define LS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { LS_CODE_POINTS = 0x110000, LS_UTF8_LONGEST = 4 /* bytes of a character */ };

/* The character that some bytes begin with, of which there are `left`, at least one: its code
 * point and how many bytes it has. -1: they begin with none (a byte that begins no character, one
 * that is cut off, a form that is longer than needed, a surrogate, what lies beyond U+10FFFF). Each
 * byte is read once, so that bytes which change meanwhile give some character or none. */
int32_t ls_utf8_read(const unsigned char *bytes, size_t left, size_t *size);

/* How many bytes a code point has, and the bytes. */
int ls_utf8_size(uint32_t code);
int ls_utf8_write(uint32_t code, char out[4]);
void ls_utf8_add(struct ls_text *out, uint32_t code);

/* The length of the character at `bytes`, of which `room` exist, at least 1; 0 if it is none, or
 * NUL. */
size_t ls_utf8_length(const char *bytes, size_t room);
/* Whether `length` bytes are characters, without NUL. */
bool ls_utf8_valid(const char *bytes, size_t length);
/* Where a text stops being UTF-8 (NUL is a character like others); `length` if it is all. */
size_t ls_utf8_valid_length(const char *text, size_t length);

/* The character at *at of a text that is UTF-8; *at moves behind it. */
uint32_t ls_utf8_take(const char *text, size_t *at);
/* Bytes of the character that begins with this one. */
size_t ls_utf8_step(char first);

#endif
