/* Orientation marks of pictures: EXIF's tag 0x0112, in the first EXIF block of a JPEG file or the
 * eXIf chunk in front of a PNG file's pixels. Cameras store pictures as the sensor has them, and
 * write how to turn them to see them upright. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_ORIENTATION_H
#define LS_DATA_ORIENTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a mark says that the picture is to be turned or mirrored. What cannot be read is no mark.
 */
bool ls_picture_is_turned(const uint8_t *bytes, size_t size);

#endif
