/* Fuzzes the readers of data: the first byte says which, the others are the file or the record.
 *   i  IDX images without labels      l  the same, labels in the same file
 *   c  CIFAR                          p  a picture or a map, decoded and resized
 *   d  a Datum record
 * Whatever is accepted is read to its last record, so that a sanitizer sees every byte used.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/datum.h"
#include "data/picture.h"
#include "data/resize.h"
#include "data/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void use_record(const struct ls_record *record)
{
    static volatile unsigned sum;
    const struct ls_record_tensor *image = &record->tensor[0];
    const uint8_t *bytes = image->data;
    must(ls_record_shape_valid(image->shape.dim));
    for (int64_t i = 0; image->type == LS_U8 && i < ls_tensor_numbers(image); i++)
        sum = sum + bytes[i];
}

static void read_all(const struct ls_source *source)
{
    struct ls_source_reader *reader;
    struct ls_error error = {0};
    must(ls_source_reader_open(source, &reader, &error) == 0);
    for (int64_t i = 0; i < source->count && i < 1000; i++) {
        struct ls_record record;
        int status = ls_source_read(reader, i, LS_ALL_TENSORS, &record, &error);
        must((status == 0) == (error.count == 0));
        if (status != 0)
            break;
        use_record(&record);
    }
    ls_source_reader_close(reader);
}

/* A source over a file in memory. */
static void read_source(const struct ls_source_type *type, bool labels, const uint8_t *bytes,
                        size_t size)
{
    int file = memfd_create("records", MFD_CLOEXEC);
    must(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    const char *path = name;
    const struct lockstep_source_options given = {.struct_size = sizeof given,
                                                  .backend = type->name,
                                                  .source = &path,
                                                  .source_count = 1,
                                                  .label_source = labels ? path : NULL};
    struct ls_source_options options;
    struct ls_source *source;
    struct ls_error error = {0};
    must(ls_source_options_take(&given, &options, &error) == 0);
    int status = ls_source_open(&options, &source, &error);
    ls_source_options_free(&options);
    must((status == 0) == (source != NULL) && (status == 0) == (error.count == 0));
    if (status == 0)
        read_all(source);
    ls_source_close(source);
    close(file);
}

static void read_picture(const uint8_t *bytes, size_t size)
{
    struct ls_picture_header header;
    if (ls_picture_look(bytes, size, &header, NULL) != 0 ||
        (int64_t)header.height * header.width > 1 << 20)
        return; /* large pictures are allowed, but not quick */
    for (int channels = 0; channels <= 3; channels += channels == 0 ? 1 : 2) {
        struct ls_buffer pixels = {0}, numbers = {0};
        struct ls_picture picture;
        struct ls_record record;
        if (ls_picture_decode(bytes, size, channels, &pixels, &picture, NULL) == 0) {
            must(picture.height == header.height && picture.width == header.width);
            if (ls_picture_to_record(&picture, &numbers, &record, NULL) == 0)
                use_record(&record);
            for (int antialias = 0; antialias <= 1; antialias++)
                if (ls_picture_resize_to_record(&picture, 7, 5, antialias, &numbers, &record,
                                                NULL) == 0)
                    use_record(&record);
        }
        ls_buffer_free(&pixels);
        ls_buffer_free(&numbers);
    }
}

static void read_map(const uint8_t *bytes, size_t size)
{
    struct ls_picture_header header;
    struct ls_label_map map;
    if (ls_label_map_look(bytes, size, &header, NULL) != 0 ||
        (int64_t)header.height * header.width > 1 << 20)
        return;
    struct ls_buffer labels = {0}, smaller = {0};
    if (ls_label_map_decode(bytes, size, &labels, &map, NULL) == 0) {
        must(map.height == header.height && map.width == header.width);
        uint32_t sum = 0;
        must(ls_label_map_resize(&map, 7, 5, &smaller, NULL) == 0);
        for (int i = 0; i < 35; i++)
            sum += map.labels[i];
        must(sum <= 35 * 65535);
    }
    ls_buffer_free(&labels);
    ls_buffer_free(&smaller);
}

static void read_datum(const uint8_t *bytes, size_t size)
{
    struct ls_datum datum;
    if (ls_datum_read(bytes, size, &datum, NULL) != 0)
        return;
    must(datum.data == NULL || (datum.data >= bytes && datum.data_size <= size));
    float *floats = ls_alloc(datum.float_count, sizeof *floats);
    must(floats != NULL);
    ls_datum_floats(bytes, size, floats);
    ls_free(floats);
    if (datum.encoded)
        read_picture(datum.data, datum.data_size);
    else
        (void)ls_datum_check(&datum, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    switch (bytes[0]) {
    case 'i':
    case 'l':
        read_source(&ls_source_idx, bytes[0] == 'l', bytes + 1, size - 1);
        break;
    case 'c':
        read_source(&ls_source_cifar, false, bytes + 1, size - 1);
        break;
    case 'p':
        read_picture(bytes + 1, size - 1);
        read_map(bytes + 1, size - 1);
        break;
    case 'd':
        read_datum(bytes + 1, size - 1);
        break;
    default:
        break;
    }
    return 0;
}
