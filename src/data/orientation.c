/* Orientation marks. See the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/orientation.h"

#include <string.h>

enum { TAG = 0x0112, TYPE_SHORT = 3, ENTRY = 12 /* bytes */, UPRIGHT = 1, MOST = 8 };

/* A number of 2 or 4 bytes. */
static uint32_t number(const uint8_t *bytes, int size, bool big_endian)
{
    uint32_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | bytes[big_endian ? i : size - 1 - i];
    return value;
}

/* In a TIFF file, whose first directory has the mark. */
static bool tiff_is_turned(const uint8_t *tiff, size_t size)
{
    if (size < 8 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
        return false;
    const bool big = tiff[0] == 'M';
    const size_t at = number(tiff + 4, 4, big);
    if (at > size - 2)
        return false;
    const uint8_t *entry = tiff + at + 2;
    for (uint32_t left = number(tiff + at, 2, big); left > 0; left--, entry += ENTRY) {
        if ((size_t)(tiff + size - entry) < ENTRY)
            return false;
        const uint32_t value = number(entry + 8, 2, big);
        if (number(entry, 2, big) == TAG && number(entry + 2, 2, big) == TYPE_SHORT)
            return value > UPRIGHT && value <= MOST;
    }
    return false;
}

static bool jpeg_is_turned(const uint8_t *bytes, size_t size)
{
    enum { APP1 = 0xE1, START_OF_SCAN = 0xDA, EXIF = 6 };
    for (size_t at = 2; at + 4 <= size && bytes[at] == 0xFF && bytes[at + 1] != START_OF_SCAN;) {
        const size_t length = number(bytes + at + 2, 2, true);
        const uint8_t *segment = bytes + at + 4;
        if (bytes[at + 1] == 0xFF) { /* it fills up */
            at++;
            continue;
        }
        if (length < 2 || length > size - at - 2)
            return false;
        if (bytes[at + 1] == APP1 && length >= 2 + EXIF && memcmp(segment, "Exif\0\0", EXIF) == 0)
            return tiff_is_turned(segment + EXIF, length - 2 - EXIF);
        at += 2 + length;
    }
    return false;
}

static bool png_is_turned(const uint8_t *bytes, size_t size)
{
    enum { SIGNATURE = 8, FRAME = 12 /* length, name, checksum */ };
    for (size_t at = SIGNATURE; at + FRAME <= size;) {
        const size_t length = number(bytes + at, 4, true);
        if (length > size - at - FRAME || memcmp(bytes + at + 4, "IDAT", 4) == 0)
            return false;
        if (memcmp(bytes + at + 4, "eXIf", 4) == 0)
            return tiff_is_turned(bytes + at + 8, length);
        at += FRAME + length;
    }
    return false;
}

bool ls_picture_is_turned(const uint8_t *bytes, size_t size)
{
    if (size >= 2 && bytes[0] == 0xFF && bytes[1] == 0xD8)
        return jpeg_is_turned(bytes, size);
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0 && png_is_turned(bytes, size);
}
