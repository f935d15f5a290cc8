/* Damage to snapshots: bits that flip, files that are cut or longer, blocks of zeros. Each damaged
 * copy is read as a resume reads it. It must be refused with a reason, or hold, to the last byte of
 * every tensor and note that a resume takes, what the sound file holds.
 *
 *     flips COUNT SEED SNAPSHOT... [CAFFEMODEL...]
 *
 * In a snapshot all bits of the header are flipped one by one first (one in 97 if COUNT is below
 * their number), then COUNT bits that are drawn from SEED; then, a tenth of COUNT each: several
 * bits, cuts, blocks of zeros, bytes behind the end. A caffemodel has no checksum: what is counted
 * is how many damaged copies are refused, and the others are read to the end, which a sanitizer
 * watches. The exit code is 0 if nothing was wrong.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "snapshot/archive.h"
#include "snapshot/weights.h"
#include "support/read_weights.h"

enum { BITS_MAX = 32, BLOCK = 512, DRAWS = 2 + 2 * BITS_MAX };

/* A file and damaged copies of it, which lie in memory under a name. */
struct file {
    const char *name;
    unsigned char *bytes;
    size_t size;
    char path[64]; /* of the copy */
    int fd;
    struct ls_archive sound; /* of a snapshot */
    long tried, refused, same, wrong;
};

static void stop(const char *what, const char *name)
{
    fprintf(stderr, "flips: %s: %s\n", name, what);
    exit(2);
}

static void put(const struct file *file, const void *bytes, size_t size, size_t at)
{
    if (pwrite(file->fd, bytes, size, (off_t)at) != (ssize_t)size)
        stop("cannot write a copy", file->name);
}

static void open_file(struct file *file, const char *name)
{
    FILE *stream = fopen(name, "rb");
    *file = (struct file){.name = name, .fd = memfd_create("flips", MFD_CLOEXEC)};
    if (stream == NULL || file->fd < 0 || fseek(stream, 0, SEEK_END) != 0)
        stop("cannot open it", name);
    long size = ftell(stream);
    file->size = size > 0 ? (size_t)size : 0;
    rewind(stream);
    file->bytes = malloc(file->size + 1);
    if (file->size == 0 || file->bytes == NULL ||
        fread(file->bytes, 1, file->size, stream) != file->size)
        stop("cannot read it", name);
    fclose(stream);
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
    put(file, file->bytes, file->size, 0);
}

static void close_file(struct file *file)
{
    printf("%s: %ld damaged copies, %ld refused, %ld that hold the same, %ld wrong\n", file->name,
           file->tried, file->refused, file->same, file->wrong);
    ls_archive_free(&file->sound);
    free(file->bytes);
    close(file->fd);
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static bool same_tensor(const struct ls_tensor *a, const struct ls_tensor *b)
{
    return b != NULL && a->type == b->type && ls_shape_equal(&a->shape, &b->shape) &&
           a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* Whether all that the sound file holds is in the other one, unchanged, and no further tensor. A
 * note more is one of the writer's own two under a name that means nothing. */
static bool holds_the_same(const struct ls_archive *sound, const struct ls_archive *other)
{
    bool same =
        sound->tensor_count == other->tensor_count && other->note_count <= sound->note_count + 1;
    for (size_t i = 0; i < sound->tensor_count && same; i++)
        same = same_tensor(&sound->tensors[i], ls_archive_find(other, sound->tensors[i].name));
    for (size_t i = 0; i < sound->note_count && same; i++) {
        const char *value = ls_archive_note(other, sound->notes[i].key);
        same = value != NULL && strcmp(value, sound->notes[i].value) == 0;
    }
    return same;
}

static void try_snapshot(struct file *file, const char *damage)
{
    struct ls_archive archive;
    struct ls_error error = {0};
    file->tried++;
    if (ls_archive_read(file->path, LS_ARCHIVE_CHECK, &archive, &error) != 0) {
        if (error.count > 0 && archive.tensor_count == 0) {
            file->refused++;
            return;
        }
        file->wrong++;
        printf("WRONG: %s, %s: refused without a reason, or half read\n", file->name, damage);
    } else if (holds_the_same(&file->sound, &archive)) {
        file->same++;
    } else {
        file->wrong++;
        printf("WRONG: %s, %s: accepted with other contents\n", file->name, damage);
    }
    ls_archive_free(&archive);
}

/* ---- Caffemodels ----------------------------------------------------------------------------- */

static void try_caffemodel(struct file *file, const char *damage)
{
    struct ls_weights weights;
    struct ls_error error = {0};
    file->tried++;
    if (ls_weights_read(file->path, LS_WEIGHTS_BEST, &weights, &error) != 0) {
        file->refused += error.count > 0;
        file->wrong += error.count == 0;
        if (error.count == 0)
            printf("WRONG: %s, %s: refused without a reason\n", file->name, damage);
        return;
    }
    ls_test_read_weights(&weights, weights.layer_count, &error);
    ls_weights_free(&weights);
}

/* ---- Damage ---------------------------------------------------------------------------------- */

typedef void try_function(struct file *file, const char *damage);

static void flip(struct file *file, size_t bit)
{
    unsigned char byte = file->bytes[bit / 8] ^ (unsigned char)(1U << bit % 8);
    put(file, &byte, 1, bit / 8);
}

static void mend(struct file *file, size_t at, size_t size)
{
    put(file, file->bytes + at, size, at);
}

static void flip_one(struct file *file, size_t bit, try_function *try)
{
    char damage[64];
    snprintf(damage, sizeof damage, "bit %zu", bit);
    flip(file, bit);
    try(file, damage);
    mend(file, bit / 8, 1);
}

/* Number `n` of each of the other kinds. */
static void damage_more(struct file *file, uint64_t key, uint64_t n, try_function *try)
{
    char damage[64];
    uint32_t size = (uint32_t)file->size, count = 2 + ls_random_below(key, n, 0, BITS_MAX - 1);
    uint32_t first = ls_random_below(key, n, 1, size), at[BITS_MAX];
    bool burst = n % 2 == 0; /* side by side, or anywhere */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = burst ? first + i / 8 : ls_random_below(key, n, 2 + i, size);
        at[i] = place < size ? place : size - 1;
        flip(file, 8 * (size_t)at[i] + ls_random_below(key, n, 2 + BITS_MAX + i, 8));
    }
    snprintf(damage, sizeof damage, "%u bits from byte %u, number %llu", count, first,
             (unsigned long long)n);
    try(file, damage);
    for (uint32_t i = 0; i < count; i++)
        mend(file, at[i], 1);

    snprintf(damage, sizeof damage, "cut off at byte %u", first);
    if (ftruncate(file->fd, first) != 0)
        stop("cannot cut a copy", file->name);
    try(file, damage);
    mend(file, first, file->size - first);

    static const unsigned char zeros[BLOCK];
    size_t block = first / BLOCK * BLOCK, length = file->size - block;
    length = length < BLOCK ? length : BLOCK;
    snprintf(damage, sizeof damage, "zeros at %zu", block);
    put(file, zeros, length, block);
    try(file, damage);
    mend(file, block, length);

    snprintf(damage, sizeof damage, "%u bytes more", count);
    put(file, file->bytes, count < size ? count : size, size);
    try(file, damage);
    if (ftruncate(file->fd, (off_t)file->size) != 0)
        stop("cannot cut a copy", file->name);
}

static void damage_file(struct file *file, long count, uint64_t key, try_function *try)
{
    size_t header = 8 * file->sound.data_offset, step = (size_t)count < header ? 97 : 1;
    for (size_t bit = 0; bit < header; bit += step)
        flip_one(file, bit, try);
    for (long n = 0; n < count; n++)
        flip_one(file, ls_random_below(key, (uint64_t)n, DRAWS, (uint32_t)(8 * file->size)), try);
    for (long n = 0; n < count / 10; n++)
        damage_more(file, key, (uint64_t)n, try);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: flips COUNT SEED SNAPSHOT... [CAFFEMODEL...]\n");
        return 2;
    }
    long tried = 0, wrong = 0;
    for (int i = 3; i < argc; i++) {
        struct file file;
        struct ls_error error = {0};
        const char *ending = strrchr(argv[i], '.');
        bool snapshot = ending != NULL && strcmp(ending, ".safetensors") == 0;
        uint64_t key = ls_random_key(strtoull(argv[2], NULL, 10), LS_RANDOM_TEST, argv[i]);
        open_file(&file, argv[i]);
        if (snapshot && (ls_archive_read(argv[i], LS_ARCHIVE_CHECK, &file.sound, &error) != 0 ||
                         !file.sound.ours))
            stop("is no sound snapshot", argv[i]);
        damage_file(&file, strtol(argv[1], NULL, 10), key,
                    snapshot ? try_snapshot : try_caffemodel);
        tried += file.tried;
        wrong += file.wrong;
        close_file(&file);
    }
    printf("%ld damaged files, %ld wrong\n", tried, wrong);
    return wrong > 0;
}
