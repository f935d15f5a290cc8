/* Runs a fuzzer's function without a fuzzer: on every kept input and on mutations of it.
 *
 *     fuzz_NAME [FOLDER OR FILE...]
 *
 * The mutations are functions of the input's name and a number, so that this is a test that gives
 * the same answer every time: a fault shows as a crash, best under sanitizers, and the last line
 * printed says which input it was. $LOCKSTEP_MUTATIONS sets their number for each input.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MUTATIONS = 300, EDITS_MAX = 6, GROWTH = 64 };

static long inputs, mutations = MUTATIONS;

/* Hands over a copy of exactly this size, so that a sanitizer sees a read beyond its end. */
static void try_input(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        abort();
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    inputs++;
}

/* One change of the kinds that break readers: a bit, a byte that is a limit, a cut, a piece moved
 * or doubled, a long number. `data` has room for GROWTH more bytes. */
static size_t edit(uint8_t *data, size_t size, uint64_t key, uint64_t ordinal, uint64_t draw)
{
    static const uint8_t limits[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '{', '}', '"', '\n', '-', '9'};
    if (size == 0)
        return 0;
    uint32_t at = ls_random_below(key, ordinal, draw, (uint32_t)size);
    uint32_t other = ls_random_below(key, ordinal, draw + 1, (uint32_t)size);
    uint32_t value = ls_random_u32(key, ordinal, draw + 2);
    size_t length = 1 + value % 8;
    switch (ls_random_below(key, ordinal, draw + 3, 6)) {
    case 0:
        data[at] ^= (uint8_t)(1U << (value % 8));
        return size;
    case 1:
        data[at] = limits[value % sizeof limits];
        return size;
    case 2:
        return at;
    case 3: /* eight bytes that may be a length */
        for (size_t i = 0; i < length && at + i < size; i++)
            data[at + i] = value & 16 ? 0xff : (uint8_t)(value >> (4 * i));
        return size;
    case 4: /* insert a copy of a few bytes */
        if (other + length > size)
            return size;
        memmove(data + at + length, data + at, size - at);
        memmove(data + at, data + other, length);
        return size + length;
    default: /* take a few bytes out */
        if (at + length > size)
            return at;
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    }
}

static void mutate(const uint8_t *data, size_t size, const char *name)
{
    uint64_t key = ls_random_key(1, LS_RANDOM_TEST, name);
    uint8_t *changed = malloc(size + GROWTH);
    if (changed == NULL)
        abort();
    for (long m = 0; m < mutations; m++) {
        size_t now = size;
        if (size > 0)
            memcpy(changed, data, size);
        uint32_t edits = 1 + ls_random_below(key, (uint64_t)m, 0, EDITS_MAX);
        for (uint32_t e = 0; e < edits && now <= size + GROWTH - 8; e++)
            now = edit(changed, now, key, (uint64_t)m, 4 * (e + 1));
        try_input(changed, now);
    }
    free(changed);
}

static int run_file(const char *path, const char *name)
{
    printf("%s\n", path);
    fflush(stdout);
    FILE *stream = fopen(path, "rb");
    struct stat info;
    if (stream == NULL || fstat(fileno(stream), &info) != 0) {
        fprintf(stderr, "cannot open %s\n", path);
        return 1;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size + 1);
    if (data == NULL || fread(data, 1, size, stream) != size)
        abort();
    fclose(stream);
    try_input(data, size);
    mutate(data, size, name);
    free(data);
    return 0;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A file, or all files of a folder in the order of their names. */
static int run_path(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_visible, alphasort);
    if (count < 0)
        return run_file(path, path);
    int failed = 0;
    for (int i = 0; i < count; i++) {
        char full[4096];
        snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name);
        failed |= run_file(full, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("LOCKSTEP_MUTATIONS");
    if (wanted != NULL)
        mutations = atol(wanted);
    try_input((const uint8_t *)"", 0);
    uint8_t noise[512];
    for (uint64_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)ls_random_u32(1, 0, i);
    mutate(noise, sizeof noise, "noise");
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= run_path(argv[i]);
    printf("%ld inputs were read without a fault\n", inputs);
    return failed;
}
