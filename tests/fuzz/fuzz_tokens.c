/* Fuzzes the files of TOKENS and TEXT: the bytes are one, which is opened as ids and as a text,
 * with documents of each kind; whatever is accepted is read, and a record that is read has its
 * tensors. SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* Every number is read, which a sanitizer watches. A record may be bad. */
static void read_all(const struct ls_source *source)
{
    struct ls_source_reader *reader;
    uint32_t sum = 0;
    must(ls_source_reader_open(source, &reader, NULL) == 0);
    for (int64_t i = 0; i < source->count && i < 50; i++) {
        struct ls_record record;
        int status = ls_source_read(reader, i, LS_ALL_TENSORS, &record, NULL);
        must(status == 0 || (status == LOCKSTEP_DATA && reader->bad));
        for (int k = 0; k < record.count && status == 0; k++) {
            const int32_t *numbers = record.tensor[k].data;
            for (int64_t n = 0; n < ls_tensor_numbers(&record.tensor[k]); n++)
                sum += (uint32_t)numbers[n];
        }
    }
    static volatile uint32_t kept;
    kept = sum;
    (void)kept;
    ls_source_reader_close(reader);
}

static void read_source(Lockstep__DataParameter *data)
{
    struct ls_definition *definition = ls_definition_new("fuzz", 1 << 20, NULL);
    Lockstep__LayerParameter layer = LOCKSTEP__LAYER_PARAMETER__INIT;
    struct ls_source_options options;
    struct ls_source *source;
    struct ls_error error = {0};
    layer.data_param = data;
    data->has_batch_size = 1;
    data->batch_size = 2;
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

static void read_tokens(char *path, int type, Lockstep__TokensParameter__Documents documents,
                        Lockstep__TokensParameter__Lengths lengths)
{
    Lockstep__DataParameter data = LOCKSTEP__DATA_PARAMETER__INIT;
    Lockstep__TokensParameter tokens = LOCKSTEP__TOKENS_PARAMETER__INIT;
    data.has_backend = tokens.has_window = tokens.has_type = tokens.has_documents = 1;
    data.backend = LOCKSTEP__DATA_PARAMETER__DB__TOKENS;
    data.source = (char *[]){path};
    data.n_source = 1;
    data.tokens_param = &tokens;
    tokens.window = 5;
    tokens.type = (Lockstep__TokensParameter__Type)type;
    tokens.documents = documents;
    tokens.has_lengths = 1;
    tokens.lengths = lengths;
    tokens.has_bucket = 1;
    tokens.bucket = lengths == LOCKSTEP__TOKENS_PARAMETER__LENGTHS__BUCKET ? 2 : 0;
    tokens.has_separator = 1;
    tokens.separator = 1;
    read_source(&data);
}

static void read_text(char *path, Lockstep__TextParameter__Unit unit)
{
    Lockstep__DataParameter data = LOCKSTEP__DATA_PARAMETER__INIT;
    Lockstep__TextParameter text = LOCKSTEP__TEXT_PARAMETER__INIT;
    data.has_backend = text.has_window = text.has_stride = text.has_unit = 1;
    data.backend = LOCKSTEP__DATA_PARAMETER__DB__TEXT;
    data.source = (char *[]){path};
    data.n_source = 1;
    data.text_param = &text;
    text.window = 3;
    text.stride = 2;
    text.unit = unit;
    read_source(&data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const Lockstep__TokensParameter__Documents cross = LOCKSTEP__TOKENS_PARAMETER__DOCUMENTS__CROSS,
                                               whole = LOCKSTEP__TOKENS_PARAMETER__DOCUMENTS__WHOLE;
    char path[64];
    int file = memfd_create("stream", MFD_CLOEXEC);
    must(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    for (int type = 0; type < 3; type++) {
        read_tokens(path, type, cross, LOCKSTEP__TOKENS_PARAMETER__LENGTHS__PAD);
        read_tokens(path, type, whole, LOCKSTEP__TOKENS_PARAMETER__LENGTHS__BUCKET);
        read_tokens(path, type, whole, LOCKSTEP__TOKENS_PARAMETER__LENGTHS__PACK);
    }
    read_text(path, LOCKSTEP__TEXT_PARAMETER__UNIT__CHARACTER);
    read_text(path, LOCKSTEP__TEXT_PARAMETER__UNIT__BYTE);
    close(file);
    return 0;
}
