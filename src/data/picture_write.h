/* Pictures as JPEG and PNG files, for records that hold files.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PICTURE_WRITE_H
#define LS_DATA_PICTURE_WRITE_H

#include <stdint.h>

#include "base/error.h"

/* The file of a picture whose planes (height x width each; three are blue, green, red) lie one
 * behind the other. `type` is "jpg", "jpeg" or "png"; JPEG has quality 95. *bytes (free with
 * ls_free). */
int ls_picture_encode(const uint8_t *planes, const int64_t shape[3], const char *type,
                      uint8_t **bytes, size_t *size, struct ls_error *error);

#endif
