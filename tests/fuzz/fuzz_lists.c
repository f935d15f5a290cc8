/* Fuzzes what says which pictures a data set has. The first byte says what the others are:
 *   l  a list file of pictures and labels     r  the same, with a root folder
 *   p  a list file of pictures and maps       c  names of class folders, one a line
 * The pictures "a.png" and "b c.png" are there. Whatever is accepted is read to its last record.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { CLASSES_MAX = 8, NAME_MAX_BYTES = 255 };

/* 2 x 2 pixels, grey. */
static const uint8_t picture[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
    0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x00, 0x57,
    0xdd, 0x52, 0xf8, 0x00, 0x00, 0x00, 0x0e, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xe0,
    0x3a, 0xc1, 0x20, 0xa7, 0x01, 0x00, 0x03, 0xbc, 0x01, 0x19, 0x7e, 0x92, 0xaf, 0x5f, 0x00,
    0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

static char folder[40], classes[64], list[64];

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void put(const char *where, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", where, name);
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(picture, sizeof picture, 1, file) == 1 && fclose(file) == 0);
}

static void take_away(const char *where, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", where, name);
    must(remove(path) == 0);
}

static void clean_up(void)
{
    take_away(folder, "a.png");
    take_away(folder, "b c.png");
    remove(list);
    rmdir(classes);
    rmdir(folder);
}

static void set_up(void)
{
    snprintf(folder, sizeof folder, "%s/lockstep-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    must(mkdtemp(folder) != NULL);
    atexit(clean_up);
    snprintf(list, sizeof list, "%s/list.txt", folder);
    snprintf(classes, sizeof classes, "%s/classes", folder);
    must(mkdir(classes, 0700) == 0);
    put(folder, "a.png");
    put(folder, "b c.png");
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void read_all(const struct ls_source *source)
{
    struct ls_source_reader *reader;
    struct ls_error error = {0};
    must(source->count > 0 && ls_source_reader_open(source, &reader, &error) == 0);
    for (int64_t i = 0; i < source->count; i++) {
        struct ls_record record;
        struct ls_text name = {0};
        source->type->name_record(source, i, &name);
        must(name.length > 0);
        ls_text_free(&name);
        int status = ls_source_read(reader, i, LS_ALL_TENSORS, &record, &error);
        must((status == 0) == (error.count == 0));
        if (status != 0)
            break;
        const struct ls_record_tensor *image = &record.tensor[0], *label = &record.tensor[1];
        must(image->shape.dim[1] == 2 && image->shape.dim[2] == 2 && image->data != NULL);
        must(label->data != NULL);
        must(source->class_count == 0 || *(const int32_t *)label->data < source->class_count);
    }
    ls_source_reader_close(reader);
}

static int64_t read_source(const struct ls_source_type *type, const char *path, const char *root)
{
    char *paths[] = {(char *)(uintptr_t)path};
    struct ls_definition *definition = ls_definition_new("fuzz", 1 << 20, NULL);
    Lockstep__DataParameter data = LOCKSTEP__DATA_PARAMETER__INIT;
    Lockstep__LayerParameter layer = LOCKSTEP__LAYER_PARAMETER__INIT;
    struct ls_source_options options;
    data.backend = (Lockstep__DataParameter__DB)type->backend;
    data.n_source = 1;
    data.source = paths;
    if (root != NULL)
        data.root_folder = (char *)(uintptr_t)root;
    layer.data_param = &data;
    struct ls_source *source;
    struct ls_error error = {0};
    int64_t count = 0;
    source = NULL;
    int status =
        ls_source_options_read(&layer, definition, LOCKSTEP__PHASE__TRAIN, &options, &error);
    if (status == 0)
        status = ls_source_open(&options, &source, &error);
    ls_source_options_free(&options);
    ls_definition_free(definition);
    must((status == 0) == (source != NULL) && (status == 0) == (error.count == 0));
    if (status == 0) {
        count = source->count;
        read_all(source);
    }
    ls_source_close(source);
    return count;
}

static void read_list(uint8_t kind, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(list, "wb");
    must(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    if (kind == 'p')
        read_source(&ls_source_image_pairs, list, NULL);
    else
        read_source(&ls_source_images, list, kind == 'r' ? folder : NULL);
}

/* Makes a folder for each line that can be the name of one, with a picture in it. */
static void read_classes(const uint8_t *bytes, size_t size)
{
    char made[CLASSES_MAX][NAME_MAX_BYTES + 1], path[400];
    int count = 0, seen = 0;
    for (size_t at = 0; at < size && count < CLASSES_MAX; at++) {
        size_t length = 0;
        while (at + length < size && bytes[at + length] != '\n' && bytes[at + length] != '\0' &&
               bytes[at + length] != '/' && length < NAME_MAX_BYTES)
            length++;
        memcpy(made[count], bytes + at, length);
        made[count][length] = '\0';
        at += length;
        snprintf(path, sizeof path, "%s/%s", classes, made[count]);
        if (length == 0 || mkdir(path, 0700) != 0)
            continue;
        put(path, "a.png");
        seen += made[count++][0] != '.'; /* hidden ones are none */
    }
    must(read_source(&ls_source_images, classes, NULL) == seen);
    while (count-- > 0) {
        snprintf(path, sizeof path, "%s/%s", classes, made[count]);
        take_away(path, "a.png");
        must(rmdir(path) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (folder[0] == '\0')
        set_up();
    if (size == 0)
        return 0;
    if (bytes[0] == 'c')
        read_classes(bytes + 1, size - 1);
    else if (bytes[0] == 'l' || bytes[0] == 'r' || bytes[0] == 'p')
        read_list(bytes[0], bytes + 1, size - 1);
    return 0;
}
