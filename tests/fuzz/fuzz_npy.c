/* Fuzzes the reader of .npy files: the bytes are one, whose header is read by itself and which is
 * opened as a source, together with a file of two records; whatever is accepted is read to its last
 * record, and its numbers become fp32 and int32, or are refused.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/npy_header.h"
#include "data/numbers.h"
#include "data/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Two records of one number. */
static const char pair[] =
    "\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }"
    "                                                            \n\x01\x02";

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* The header alone, over bytes whose end a sanitizer watches. */
static void read_header(const uint8_t *bytes, size_t size)
{
    struct ls_npy_header header;
    struct ls_error error = {0};
    int status = ls_npy_header_read("fuzz", bytes, size, &header, &error);
    must((status == 0) == (error.count == 0));
    if (status != 0)
        return;
    must(header.size <= size && header.count >= 0 && header.sample.rank < LS_RANK_MAX);
    for (int i = 0; i < header.sample.rank; i++)
        must(header.sample.dim[i] >= 0);
}

static void read_tensor(const struct ls_record_tensor *tensor)
{
    char text[LS_NUMBER_TEXT];
    int64_t count = ls_tensor_numbers(tensor);
    float *out = ls_alloc((size_t)count, sizeof *out);
    must(out != NULL);
    int64_t done = ls_numbers_to_f32(tensor->type, tensor->data, count, true, out);
    must(done >= 0 && done <= count);
    must(ls_numbers_to_f32(tensor->type, tensor->data, count, true, NULL) == done);
    if (done < count)
        must(strlen(ls_number_text(tensor->type, tensor->data, done, text)) > 0);
    done = ls_numbers_to_i32(tensor->type, tensor->data, count, (int32_t *)(void *)out);
    must(done >= 0 && done <= count);
    ls_free(out);
}

static void read_all(const struct ls_source *source)
{
    struct ls_source_reader *reader;
    must(ls_source_reader_open(source, &reader, NULL) == 0);
    for (int64_t i = 0; i < source->count && i < 100; i++) {
        struct ls_record record;
        must(ls_source_read(reader, i, LS_ALL_TENSORS, &record, NULL) == 0);
        must(record.count == source->tensors);
        for (int k = 0; k < record.count; k++)
            read_tensor(&record.tensor[k]);
    }
    ls_source_reader_close(reader);
}

static int make_file(const void *bytes, size_t size, char name[64])
{
    int file = memfd_create("array.npy", MFD_CLOEXEC);
    must(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(name, 64, "/proc/self/fd/%d", file);
    return file;
}

static void read_source(char **paths, size_t count)
{
    struct ls_definition *definition = ls_definition_new("fuzz", 1 << 20, NULL);
    Lockstep__DataParameter data = LOCKSTEP__DATA_PARAMETER__INIT;
    Lockstep__LayerParameter layer = LOCKSTEP__LAYER_PARAMETER__INIT;
    struct ls_source_options options;
    struct ls_source *source;
    struct ls_error error = {0};
    data.backend = LOCKSTEP__DATA_PARAMETER__DB__NPY;
    data.source = paths;
    data.n_source = count;
    layer.data_param = &data;
    must(definition != NULL);
    must(ls_source_options_read(&layer, definition, LOCKSTEP__PHASE__TRAIN, &options, &error) == 0);
    int status = ls_source_open(&options, &source, &error);
    must((status == 0) == (source != NULL) && (status == 0) == (error.count == 0));
    if (status == 0)
        read_all(source);
    ls_source_close(source);
    ls_source_options_free(&options);
    ls_definition_free(definition);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char first[64], second[64];
    read_header(bytes, size);
    int file = make_file(bytes, size, first), other = make_file(pair, sizeof pair - 1, second);
    read_source((char *[]){first}, 1);
    read_source((char *[]){first, second}, 2);
    close(file);
    close(other);
    return 0;
}
