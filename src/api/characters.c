/* Characters or bytes as tokens. See api/characters.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/characters.h"

#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

size_t ls_character_size(const char *text, size_t length)
{
    size_t size;
    if (length == 0 || ls_utf8_read((const unsigned char *)text, length, &size) < 0)
        return 0;
    return size;
}

/* ---- Names ----------------------------------------------------------------------------------- */

static int digit(char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* "\u{2028}": the digits in braces. */
static bool read_code(const char *name, size_t length, struct ls_character *character)
{
    uint32_t code = 0;
    if (length < 3 || length > 8 || name[0] != '{' || name[length - 1] != '}')
        return false;
    for (size_t i = 1; i + 1 < length; i++) {
        if (digit(name[i]) < 0)
            return false;
        code = code * 16 + (uint32_t)digit(name[i]);
    }
    if (code > 0x10ffff)
        return false;
    character->length = (unsigned char)ls_utf8_write(code, character->bytes);
    return true;
}

/* What a name means; false: it is that of no character and no byte. */
static bool read_name(const char *name, size_t length, struct ls_character *character)
{
    static const char letters[] = "ntr\\", plain[] = "\n\t\r\\";
    *character = (struct ls_character){.length = 1};
    if (length < 2 || name[0] != '\\') {
        if (length == 0 || ls_character_size(name, length) != length)
            return false;
        memcpy(character->bytes, name, length);
        character->length = (unsigned char)length;
        return true;
    }
    const char *letter = name[1] != '\0' ? strchr(letters, name[1]) : NULL;
    if (length == 2 && letter != NULL) {
        character->bytes[0] = plain[letter - letters];
        return true;
    }
    if (length == 4 && name[1] == 'x' && digit(name[2]) >= 0 && digit(name[3]) >= 0) {
        character->bytes[0] = (char)(digit(name[2]) * 16 + digit(name[3]));
        return true;
    }
    return name[1] == 'u' && read_code(name + 2, length - 2, character);
}

static bool index_characters(struct ls_characters *characters)
{
    for (size_t i = 0; i < 256; i++)
        characters->bytes[i] = -1;
    for (size_t i = characters->count; i-- > 0;) {
        const struct ls_character *item = &characters->items[i];
        if (item->length == 1)
            characters->bytes[(unsigned char)item->bytes[0]] = (int32_t)i;
        else if (!ls_names_set(&characters->names, item->bytes, i))
            return false;
    }
    return true;
}

int ls_characters_read(const char *names, struct ls_characters *characters, struct ls_error *error)
{
    size_t lines = 1;
    for (const char *c = names; *c != '\0'; c++)
        lines += *c == '\n';
    if (lines > INT32_MAX)
        return 0;
    characters->items = ls_alloc(lines, sizeof *characters->items);
    if (characters->items == NULL)
        return ls_fail_memory(error, "the names of characters");
    for (const char *name = names; characters->count < lines;) {
        const size_t length = strcspn(name, "\n");
        if (!read_name(name, length, &characters->items[characters->count++])) {
            characters->count = 0;
            return 0;
        }
        name += length + (name[length] == '\n');
        if (*name == '\0')
            break;
    }
    return index_characters(characters) ? 0 : ls_fail_memory(error, "the names of characters");
}

void ls_characters_free(struct ls_characters *characters)
{
    ls_names_free(&characters->names);
    ls_free(characters->items);
    *characters = (struct ls_characters){0};
}

int32_t ls_characters_find(const struct ls_characters *characters, const char *text, size_t length,
                           size_t *size)
{
    char name[5] = "";
    size_t token;
    const size_t bytes = ls_character_size(text, length);
    *size = bytes > 0 ? bytes : 1;
    if (bytes > 1) {
        memcpy(name, text, bytes);
        if (ls_names_find(&characters->names, name, &token))
            return (int32_t)token;
    }
    const int32_t byte = length > 0 ? characters->bytes[*(const unsigned char *)text] : -1;
    if (byte >= 0)
        *size = 1;
    return byte;
}
