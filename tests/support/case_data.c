/* Numbers and files of cases: see case_data.h. SPDX-License-Identifier: BSD-2-Clause */
#include "support/case_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

uint64_t case_stream(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *p = name; *p != '\0'; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return ((hash >> 32) ^ (hash & 0xffffffff)) << 32;
}

uint64_t case_word(uint64_t index)
{
    uint64_t z = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

float case_weight(uint64_t stream, uint64_t element, float scale)
{
    return ((float)(case_word(stream + element) >> 40) / 8388608 - 1) * scale;
}

uint64_t case_signs(uint64_t element)
{
    return case_word(case_stream("signs") + element);
}

size_t case_place(size_t k, size_t count, size_t size)
{
    return (2 * k + 1) * size / (2 * count);
}

/* The number behind a word of a note, if it is there. */
static unsigned option(const char *note, const char *word, unsigned missing)
{
    unsigned value = missing;
    const char *place = strstr(note, word);
    if (place != NULL && sscanf(place + strlen(word), "%u", &value) != 1)
        fail_msg("a number is missing: %s", note);
    return value;
}

/* `count` bytes that begin again after the first `repeat` records of `record` bytes. */
static void fill_bytes(const char *name, const char *note, uint8_t *bytes, size_t count,
                       size_t record)
{
    uint64_t stream = case_stream(name);
    size_t different = option(note, " repeat ", (unsigned)(count / record)) * record;
    unsigned below = option(note, " below ", 256);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)((case_word(stream + i % different) >> 56) % below);
}

/* "FILE DIMENSIONS... [below N] [repeat N]" */
static void write_idx(const char *note)
{
    char name[64];
    uint8_t header[4 + 4 * 4] = {0, 0, 8, 0};
    size_t count = 1;
    unsigned size = 0, records = 1;
    int used = 0;
    if (sscanf(note, "%63s%n", name, &used) != 1)
        fail_msg("a note without a file: %s", note);
    note += used;
    while (header[3] < 4 && sscanf(note, "%u%n", &size, &used) == 1) {
        for (int i = 0; i < 4; i++)
            header[4 + 4 * header[3] + i] = (uint8_t)(size >> (24 - 8 * i));
        records = header[3]++ == 0 ? size : records;
        count *= size;
        note += used;
    }
    size_t head = 4 + 4 * (size_t)header[3];
    uint8_t *bytes = malloc(head + count);
    assert_non_null(bytes);
    memcpy(bytes, header, head);
    fill_bytes(name, note, bytes + head, count, count / records);
    ls_test_write(name, bytes, head + count);
    free(bytes);
}

/* "FILE RECORDS [repeat N]": a label of ten classes and 3 x 32 x 32 pixels each */
static void write_cifar(const char *note)
{
    enum { RECORD = 3073 };
    char name[64];
    unsigned records = 0;
    if (sscanf(note, "%63s %u", name, &records) != 2)
        fail_msg("a note without a file: %s", note);
    uint8_t *bytes = malloc((size_t)records * RECORD);
    assert_non_null(bytes);
    fill_bytes(name, note, bytes, (size_t)records * RECORD, RECORD);
    for (size_t i = 0; i < records; i++)
        bytes[i * RECORD] %= 10;
    ls_test_write(name, bytes, (size_t)records * RECORD);
    free(bytes);
}

void case_write_files(const char *text)
{
    static const struct {
        const char *kind;
        void (*write)(const char *note);
    } kinds[] = {{"# idx: ", write_idx}, {"# cifar: ", write_cifar}};
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            size_t length = strlen(kinds[i].kind);
            if (strncmp(line, kinds[i].kind, length) != 0)
                continue;
            char note[256];
            snprintf(note, sizeof note, "%.*s", (int)strcspn(line + length, "\n"), line + length);
            kinds[i].write(note);
        }
    }
}
