/* What the decoders of pictures give on this machine.
 *
 * Versions and makes of the libraries for JPEG and PNG may give other pixels for one file, and with
 * them other bits of everything that is learned from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DECODERS_H
#define LS_DATA_DECODERS_H

#include <stdint.h>

#include "base/error.h"

/* A hash of the pixels of built-in pictures: JPEGs with colours at half and at full width, in
 * several scans, grey, of four inks; PNGs in order and interlaced, of 8 and of 16 bits.
 * LOCKSTEP_RESOURCE when memory runs out. */
int ls_decoders_fingerprint(uint64_t *hash, struct ls_error *error);

#endif
