/* Fuzzes maps of names and indices of several files of weights. The first byte says what the others
 * are: 'i' an index, beside which "a.safetensors" lies; all else a map, which renames a few tensors
 * in both directions.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/weight_rename.h"
#include "snapshot/weight_shards.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/fuzz_maps_XXXXXX", map_path[64], index_path[64], part_path[64];

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void clean_up(void)
{
    remove(map_path);
    remove(index_path);
    remove(part_path);
    rmdir(folder);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static const float numbers[24];
static const struct {
    const char *name;
    struct ls_shape shape;
} samples[] = {
    {"m.0.q", {2, {2, 3}}},   {"m.0.k", {2, {2, 3}}},         {"m.b", {1, {4}}},
    {"m.p", {3, {1, 2, 2}}},  {"n.1.running_mean", {1, {6}}}, {"h.0.weight", {2, {4, 3}}},
    {"h.1.factor", {1, {1}}}, {"h.1.mean", {1, {6}}},
};

static void add_samples(struct ls_archive *archive)
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        must(ls_archive_add(archive, samples[i].name, LS_F32, &samples[i].shape, numbers, NULL) ==
             0);
}

static void begin(void)
{
    struct ls_archive part = {0};
    must(mkdtemp(folder) != NULL && atexit(clean_up) == 0);
    snprintf(map_path, sizeof map_path, "%s/x.map", folder);
    snprintf(index_path, sizeof index_path, "%s/x.index.json", folder);
    snprintf(part_path, sizeof part_path, "%s/a.safetensors", folder);
    add_samples(&part);
    must(ls_archive_write(&part, part_path, NULL) == 0);
    ls_archive_free(&part);
}

static void read_index(const uint8_t *bytes, size_t size)
{
    struct ls_weight_shards shards;
    struct ls_error error = {0};
    write_file(index_path, bytes, size);
    int status = ls_weight_shards_read(index_path, &shards, &error);
    must((status == 0) == (error.count == 0) && (status == 0) == (shards.count > 0));
    ls_weight_shards_free(&shards);
}

static void read_map(const uint8_t *bytes, size_t size)
{
    struct ls_weight_map map;
    struct ls_error error = {0};
    struct ls_archive archive = {0};
    write_file(map_path, bytes, size);
    int status = ls_weight_map_read(map_path, &map, &error);
    must((status == 0) == (error.count == 0) && (status == 0) == (map.rules != NULL));
    if (status != 0)
        return;
    add_samples(&archive);
    for (int back = 0; back < 2; back++) {
        struct ls_renamed renamed = {0};
        status = ls_weights_rename(&map, back, archive.tensors, archive.tensor_count, "file",
                                   &renamed, &error);
        must((status == 0) == (error.count == 0));
        ls_error_clear(&error);
        ls_renamed_free(&renamed);
    }
    ls_archive_free(&archive);
    ls_weight_map_free(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (part_path[0] == '\0')
        begin();
    if (size > 0 && bytes[0] == 'i')
        read_index(bytes + 1, size - 1);
    else
        read_map(bytes, size);
    return 0;
}
