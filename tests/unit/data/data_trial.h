/* Shared by the tests of src/data: layers from text, data sets, small files, messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_DATA_TRIAL_H
#define LS_TESTS_DATA_TRIAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/fingerprint.h"
#include "data/reader.h"
#include "data/source.h"
#include "schema/text_format.h"
#include "support/support.h"

/* The text of an error, for asking what it says. */
static inline const char *trial_text(const struct ls_error *error)
{
    static char text[8192];
    ls_error_format(error, text, sizeof text);
    return text;
}

#define assert_says(error, part)                                                                   \
    do {                                                                                           \
        const char *says_text = trial_text(error);                                                 \
        if (strstr(says_text, part) == NULL)                                                       \
            fail_msg("'%s' is not in: %s", part, says_text);                                       \
    } while (0)

/* A layer from a format and its arguments; free with ls_definition_free. */
__attribute__((format(printf, 1, 2))) static inline struct ls_definition *
trial_layer(const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_definition *definition = NULL;
    if (ls_text_read("trial.prototxt", text, strlen(text), &lockstep__layer_parameter__descriptor,
                     &definition, error) != 0)
        fail_msg("%s\n%s", trial_text(error), text);
    free(error);
    return definition;
}

/* A hash of what is known of a data set from the start. */
static inline uint64_t trial_fingerprint(const struct ls_dataset *dataset)
{
    struct ls_text text = {0};
    ls_dataset_describe(dataset, "", &text);
    assert_false(text.failed);
    uint64_t hash = ls_hash(text.data, text.length, 0);
    ls_text_free(&text);
    return hash;
}

static inline int trial_open(const struct ls_definition *definition, Lockstep__Phase phase,
                             uint64_t seed, struct ls_dataset **dataset, struct ls_error *error)
{
    const struct ls_dataset_wishes wishes = {.augment = true};
    return ls_dataset_open((const Lockstep__LayerParameter *)definition->message, definition, phase,
                           seed, &wishes, dataset, error);
}

/* Opens a data set that must open. */
static inline struct ls_dataset *trial_dataset(const struct ls_definition *definition,
                                               Lockstep__Phase phase, uint64_t seed)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_dataset *dataset = NULL;
    if (trial_open(definition, phase, seed, &dataset, error) != 0)
        fail_msg("%s", trial_text(error));
    free(error);
    return dataset;
}

/* Opens the data set of a Data layer with these fields; *definition: the layer. */
static inline struct ls_dataset *trial_fields(const char *fields, struct ls_definition **definition)
{
    *definition = trial_layer("name: 'd' type: 'Data' %s", fields);
    return trial_dataset(*definition, LOCKSTEP__PHASE__TRAIN, 1);
}

/* Opens the source of a layer that consists of these fields, "data_param { ... }". */
__attribute__((format(printf, 3, 4))) static inline int
trial_source(struct ls_source **source, struct ls_error *error, const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct ls_definition *definition = trial_layer("name: 'd' %s", text);
    struct ls_source_options options;
    *source = NULL;
    int status = ls_source_options_read((const Lockstep__LayerParameter *)definition->message,
                                        definition, LOCKSTEP__PHASE__TRAIN, &options, error);
    if (status == 0)
        status = ls_source_open(&options, source, error);
    ls_source_options_free(&options);
    ls_definition_free(definition);
    return status;
}

/* Opens a source of a backend, which these fields of data_param must make possible. */
static inline struct ls_source *trial_source_opens(const char *backend, const char *fields)
{
    struct ls_source *source;
    struct ls_error *error = calloc(1, sizeof *error);
    if (trial_source(&source, error, "data_param { backend: %s %s }", backend, fields) != 0)
        fail_msg("%s\n%s", trial_text(error), fields);
    free(error);
    return source;
}

/* The same, which must fail with this status and these words. */
static inline void trial_source_fails(const char *backend, const char *fields, int status,
                                      const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    assert_int_equal(trial_source(&source, error, "data_param { backend: %s %s }", backend, fields),
                     status);
    assert_null(source);
    assert_says(error, words);
    free(error);
}

/* Fetches a sample's first two tensors, of pictures the image and the label. */
static inline int trial_fetch(struct ls_reader *reader, int64_t ordinal, float *sample,
                              float *label, struct ls_error *error)
{
    void *out[LS_RECORD_TENSORS] = {sample, label};
    return ls_reader_fetch(reader, ordinal, out, error);
}

/* Opens a data set and reads its first samples into `out`, while the first allocation fails, then
 * the second, and so on: each time LOCKSTEP_RESOURCE, and nothing is lost, until none fails.
 * Returns how many there were. */
static inline int trial_fail_allocations(const struct ls_definition *definition, int64_t samples,
                                         void *const *out)
{
    for (int n = 0;; n++) {
        struct ls_dataset *dataset = NULL;
        struct ls_reader *reader = NULL;
        ls_fail_allocation_after(n);
        int status = trial_open(definition, LOCKSTEP__PHASE__TRAIN, 1, &dataset, NULL);
        if (status == 0 && samples > 0)
            status = ls_reader_open(dataset, &reader, NULL);
        for (int64_t i = 0; i < samples && status == 0; i++)
            status = ls_reader_fetch(reader, i, out, NULL);
        ls_fail_allocation_after(-1);
        ls_reader_close(reader);
        ls_dataset_close(dataset);
        if (status == 0)
            return n;
        assert_int_equal(status, LOCKSTEP_RESOURCE);
    }
}

/* A record of an image and a label. */
static inline struct ls_record trial_record(enum ls_dtype type, int64_t channels, int64_t height,
                                            int64_t width, const void *data, const int32_t *label)
{
    struct ls_record record = {.count = 2};
    const int64_t shape[3] = {channels, height, width};
    ls_record_set_image(&record, type, shape, data);
    record.tensor[1].type = LS_I32;
    record.tensor[1].data = label;
    return record;
}

/* The image of a record, as bytes or as floats; and its label. */
static inline const uint8_t *trial_bytes(const struct ls_record *record)
{
    return record->tensor[0].type == LS_U8 ? record->tensor[0].data : NULL;
}

static inline const float *trial_floats(const struct ls_record *record)
{
    return record->tensor[0].type == LS_F32 ? record->tensor[0].data : NULL;
}

static inline int trial_label(const struct ls_record *record)
{
    return *(const int32_t *)record->tensor[1].data;
}

static inline void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Writes an IDX file: `rank` extents and as many bytes, byte i being i * 7 + salt. */
static inline void write_idx(const char *path, int rank, const uint32_t *dim, uint8_t salt)
{
    size_t size = 1;
    for (int i = 0; i < rank; i++)
        size *= dim[i];
    size_t head = 4 + 4 * (size_t)rank;
    uint8_t *bytes = calloc(head + size + 1, 1);
    bytes[2] = 8;
    bytes[3] = (uint8_t)rank;
    for (int i = 0; i < rank; i++)
        put_u32(bytes + 4 + 4 * i, dim[i]);
    for (size_t i = 0; i < size; i++)
        bytes[head + i] = (uint8_t)(i * 7 + salt);
    ls_test_write(path, bytes, head + size);
    free(bytes);
}

/* Images N x H x W of bytes as above and labels i % 10; paths are returned by ls_test_path. */
static inline void write_pair(const char *images, const char *labels, uint32_t n, uint32_t h,
                              uint32_t w)
{
    write_idx(images, 3, (uint32_t[]){n, h, w}, 3);
    uint8_t *bytes = calloc(8 + n, 1);
    bytes[2] = 8;
    bytes[3] = 1;
    put_u32(bytes + 4, n);
    for (uint32_t i = 0; i < n; i++)
        bytes[8 + i] = (uint8_t)(i % 10);
    ls_test_write(labels, bytes, 8 + n);
    free(bytes);
}

#endif
