/* Fuzzes the reader of LMDB databases: the bytes are a data.mdb, opened as a source; whatever is
 * accepted is read to its last record, names too. Seeds: a database of small pages' worth of
 * records in a tree of two levels, and one with a value on overflow pages.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/lmdb_index.h"
#include "data/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* The index alone, over a copy whose end a sanitizer watches. */
static void index_bytes(const uint8_t *bytes, size_t size)
{
    struct ls_lmdb_entry *entries;
    size_t count;
    struct ls_error error = {0};
    if (ls_lmdb_index("fuzz", bytes, size, &entries, &count, &error) != 0)
        must(error.count > 0 && entries == NULL && count == 0);
    for (size_t i = 0; i < count; i++) {
        must(entries[i].value <= size && entries[i].value_size <= size - entries[i].value);
        must(entries[i].key <= size && entries[i].key_size <= size - entries[i].key);
    }
    ls_free(entries);
}

static void read_records(const struct ls_source *source)
{
    static volatile unsigned sum;
    struct ls_source_reader *reader;
    must(ls_source_reader_open(source, &reader, NULL) == 0);
    for (int64_t i = 0; i < source->count; i++) {
        struct ls_record record;
        struct ls_text name = {0};
        source->type->name_record(source, i, &name);
        ls_text_free(&name);
        if (ls_source_read(reader, i, LS_ALL_TENSORS, &record, NULL) != 0)
            continue;
        const struct ls_record_tensor *image = &record.tensor[0];
        must(ls_record_shape_valid(image->shape.dim));
        const uint8_t *bytes = image->data;
        for (size_t k = 0; k < ls_tensor_bytes(image); k++)
            sum = sum + bytes[k];
    }
    ls_source_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    index_bytes(bytes, size);
    int fd = memfd_create("data.mdb", 0);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    char file[64];
    snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    const char *path = file;
    const struct lockstep_source_options given = {
        .struct_size = sizeof given, .backend = "LMDB", .source = &path, .source_count = 1};
    struct ls_source_options options;
    struct ls_source *source;
    must(ls_source_options_take(&given, &options, NULL) == 0);
    int status = ls_source_open(&options, &source, NULL);
    ls_source_options_free(&options);
    if (status == 0) {
        read_records(source);
        ls_source_close(source);
    }
    close(fd);
    return 0;
}
