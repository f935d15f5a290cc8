/* Texts in whole characters. See cli/written.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/written.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Bytes of a character that begins so; 0: none does. */
static size_t size_of(unsigned char first)
{
    if (first < 0x80)
        return 1;
    return first >= 0xc2 && first < 0xe0   ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 0;
}

/* Whether a byte can go on behind a first one. Surrogates, numbers above U+10FFFF and those that
 * are written too long are found by the second byte. */
static bool goes_on(const char *open, size_t length, unsigned char byte)
{
    const unsigned char first = (unsigned char)open[0];
    if (byte >> 6 != 2)
        return false;
    if (length > 1)
        return true;
    return !((first == 0xe0 && byte < 0xa0) || (first == 0xed && byte >= 0xa0) ||
             (first == 0xf0 && byte < 0x90) || (first == 0xf4 && byte >= 0x90));
}

static void write_out(struct ls_cli_written *written, const char *bytes, size_t length)
{
    if (written->out != NULL) {
        fwrite(bytes, 1, length, written->out);
        return;
    }
    if (written->room - written->length < length) {
        const size_t room = 2 * written->room + length + 256;
        char *more = realloc(written->kept, room);
        written->failed = written->failed || more == NULL;
        if (more == NULL)
            return;
        written->kept = more;
        written->room = room;
    }
    memcpy(written->kept + written->length, bytes, length);
    written->length += length;
}

/* A terminal obeys control characters, those of two bytes (U+0080 to U+009F), too. */
static bool is_control(const char *character, size_t length)
{
    const unsigned char first = (unsigned char)character[0];
    if (length == 1)
        return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
    return length == 2 && first == 0xc2 && (unsigned char)character[1] < 0xa0;
}

static void put_character(struct ls_cli_written *written, const char *character, size_t length)
{
    if (isatty(STDOUT_FILENO) && is_control(character, length))
        write_out(written, replacement, strlen(replacement));
    else
        write_out(written, character, length);
}

static void put_byte(struct ls_cli_written *written, char byte)
{
    if (written->open_length > 0 &&
        !goes_on(written->open, written->open_length, (unsigned char)byte)) {
        write_out(written, replacement, strlen(replacement));
        written->open_length = 0;
    }
    if (written->open_length == 0 && size_of((unsigned char)byte) == 0) {
        write_out(written, replacement, strlen(replacement));
        return;
    }
    written->open[written->open_length++] = byte;
    if (written->open_length < size_of((unsigned char)written->open[0]))
        return;
    put_character(written, written->open, written->open_length);
    written->open_length = 0;
}

void ls_cli_written_put(struct ls_cli_written *written, const char *bytes, size_t length)
{
    written->begun = written->begun || length > 0;
    for (size_t i = 0; i < length; i++)
        put_byte(written, bytes[i]);
    if (written->out != NULL)
        fflush(written->out);
}

bool ls_cli_written_end(struct ls_cli_written *written, FILE *out)
{
    if (written->open_length > 0)
        write_out(written, replacement, strlen(replacement));
    written->open_length = 0;
    if (written->out == NULL && written->length > 0)
        fwrite(written->kept, 1, written->length, out);
    fputc('\n', out);
    fflush(out);
    return !written->failed;
}
