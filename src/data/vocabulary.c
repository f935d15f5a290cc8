/* Vocabularies of characters; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/vocabulary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/utf8.h"

int ls_fail_utf8(const char *path, uint64_t offset, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_DATA, path,
                   "convert it (iconv -t UTF-8), or read it as text_param { unit: BYTE }",
                   "is no UTF-8 at byte %" PRIu64, offset);
}

/* Marks the characters of a file. */
static int mark_file(const char *path, uint8_t *there, struct ls_error *error)
{
    struct ls_mapping mapping;
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &mapping, error));
    int status = 0;
    for (size_t at = 0, size; at < mapping.size && status == 0; at += size) {
        const int32_t code = ls_utf8_read(mapping.data + at, mapping.size - at, &size);
        if (code >= 0)
            there[code] = 1;
        else
            status = ls_fail_utf8(path, at, error);
    }
    int lost = ls_file_lost(&mapping, path, LOCKSTEP_DATA, error);
    ls_file_unmap(&mapping);
    return lost != 0 ? lost : status;
}

/* The marked characters, in their order. */
static int list_codes(const uint8_t *there, struct ls_vocabulary *vocabulary,
                      struct ls_error *error)
{
    size_t count = 0;
    for (uint32_t code = 0; code < LS_CODE_POINTS; code++)
        count += there[code];
    vocabulary->code = ls_alloc(count + 1, sizeof *vocabulary->code);
    if (vocabulary->code == NULL)
        return ls_fail_memory(error, "a vocabulary");
    for (uint32_t code = 0; code < 128; code++)
        vocabulary->ascii[code] = -1;
    for (uint32_t code = 0; code < LS_CODE_POINTS; code++) {
        if (!there[code])
            continue;
        if (code < 128)
            vocabulary->ascii[code] = vocabulary->count;
        vocabulary->code[vocabulary->count++] = code;
    }
    return 0;
}

int ls_vocabulary_read(const struct ls_option_files *files, struct ls_vocabulary *vocabulary,
                       struct ls_error *error)
{
    uint8_t *there = ls_alloc(LS_CODE_POINTS, 1);
    *vocabulary = (struct ls_vocabulary){0};
    int status = there == NULL ? ls_fail_memory(error, "a vocabulary") : 0;
    for (size_t i = 0; i < files->count && status == 0; i++)
        status = mark_file(files->item[i], there, error);
    if (status == 0)
        status = list_codes(there, vocabulary, error);
    ls_free(there);
    return status;
}

void ls_vocabulary_free(struct ls_vocabulary *vocabulary)
{
    ls_free(vocabulary->code);
    *vocabulary = (struct ls_vocabulary){0};
}

int32_t ls_vocabulary_find(const struct ls_vocabulary *vocabulary, uint32_t code)
{
    if (code < 128)
        return vocabulary->ascii[code];
    int32_t begin = 0, end = vocabulary->count;
    while (begin < end) {
        const int32_t middle = begin + (end - begin) / 2;
        if (vocabulary->code[middle] < code)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < vocabulary->count && vocabulary->code[begin] == code ? begin : -1;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Whether a character would break a line, or cannot be seen: controls, and the ends of lines and
 * paragraphs of Unicode. */
static bool is_hidden(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff;
}

static void name_code(uint32_t code, bool byte, char *name, size_t size)
{
    static const char plain[] = "\n\t\r\\", letters[] = "ntr\\";
    const char *found = code < 0x80 && code > 0 ? strchr(plain, (int)code) : NULL;
    if (found != NULL) {
        snprintf(name, size, "\\%c", letters[found - plain]);
    } else if (byte ? code < 0x20 || code > 0x7e : is_hidden(code)) {
        snprintf(name, size, byte ? "\\x%02" PRIX32 : "\\u{%" PRIX32 "}", code);
    } else {
        name[ls_utf8_write(code, name)] = '\0';
    }
}

int ls_vocabulary_name(const struct ls_vocabulary *vocabulary, struct ls_source *source,
                       struct ls_error *error)
{
    const int count = vocabulary != NULL ? vocabulary->count : 256;
    source->class_name = ls_alloc((size_t)count, sizeof *source->class_name);
    if (source->class_name == NULL)
        return ls_fail_memory(error, "the names of characters");
    for (int i = 0; i < count; i++) {
        char name[16];
        name_code(vocabulary != NULL ? vocabulary->code[i] : (uint32_t)i, vocabulary == NULL, name,
                  sizeof name);
        source->class_name[i] = ls_copy_string(name);
        if (source->class_name[i] == NULL)
            return ls_fail_memory(error, "the names of characters");
        source->class_count++;
    }
    source->vocabulary = true;
    return 0;
}
