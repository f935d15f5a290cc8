/* Lines of two texts become arrays, as BERT reads them: ids, which of the texts each is of, and
 * whether there is a token at all. See text/tokenize.h. SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "text/tokenize.h"

enum { IDS, SEGMENTS, MASK, ARRAYS };
static const char *const names[ARRAYS] = {"_ids.npy", "_segments.npy", "_mask.npy"};
static const char *const types[ARRAYS] = {"<i4", "|u1", "|u1"};

struct arrays {
    struct ls_atomic_file *files[ARRAYS];
    unsigned char *row; /* 4 bytes for each token */
    uint64_t rows;
};

static int open_arrays(struct ls_tokenize *work, struct arrays *arrays)
{
    const char *output = work->options->output;
    char header[LS_NPY_HEADER] = {0};
    int status = 0;
    arrays->row = ls_alloc((size_t)work->options->max_length, 4);
    if (arrays->row == NULL)
        return ls_fail_memory(work->error, "a pair");
    for (int i = 0; i < ARRAYS && status == 0; i++) {
        struct ls_text path = {0};
        const size_t length = strlen(output);
        const bool suffix = length > 4 && strcmp(output + length - 4, ".npy") == 0;
        ls_text_add_bytes(&path, output, suffix ? length - 4 : length);
        ls_text_add(&path, names[i]);
        status = path.failed ? ls_fail_memory(work->error, output)
                             : ls_atomic_open(path.data, &arrays->files[i], work->error);
        if (status == 0)
            status = ls_atomic_write(arrays->files[i], header, sizeof header, work->error);
        ls_text_free(&path);
    }
    return status;
}

static int write_row(struct ls_tokenize *work, struct arrays *arrays,
                     const struct ls_encoding *encoding)
{
    const size_t size = (size_t)work->options->max_length;
    const struct ls_tokenizer *tokenizer = work->tokenizer;
    for (size_t t = 0; t < size; t++) {
        const uint32_t id = t < encoding->count ? encoding->ids[t] : tokenizer->pad;
        for (int byte = 0; byte < 4; byte++)
            arrays->row[4 * t + (size_t)byte] = (unsigned char)(id >> (8 * byte));
    }
    LS_TRY(ls_atomic_write(arrays->files[IDS], arrays->row, 4 * size, work->error));
    for (size_t t = 0; t < size; t++)
        arrays->row[t] =
            (unsigned char)(t < encoding->count ? encoding->segments[t] : tokenizer->pad_segment);
    LS_TRY(ls_atomic_write(arrays->files[SEGMENTS], arrays->row, size, work->error));
    for (size_t t = 0; t < size; t++)
        arrays->row[t] = t < encoding->count;
    arrays->rows++;
    return ls_atomic_write(arrays->files[MASK], arrays->row, size, work->error);
}

static int add_pair(struct ls_tokenize *work, struct arrays *arrays, const char *name,
                    const char *line, size_t length)
{
    const char *tab = memchr(line, '\t', length);
    if (tab == NULL || memchr(tab + 1, '\t', length - (size_t)(tab + 1 - line)) != NULL)
        return ls_fail(work->error, LOCKSTEP_DATA, name, NULL,
                       "a pair is a line of two texts with one tab between them");
    struct ls_encode_text text = {.name = name,
                                  .first = line,
                                  .first_length = (size_t)(tab - line),
                                  .second = tab + 1,
                                  .second_length = length - (size_t)(tab + 1 - line),
                                  .special = true};
    struct ls_encoding encoding;
    LS_TRY(ls_encode(work->encoder, &text, &encoding, work->error));
    if (encoding.count > (size_t)work->options->max_length) {
        text.most = (size_t)work->options->max_length;
        work->counts->cut++;
        LS_TRY(ls_encode(work->encoder, &text, &encoding, work->error));
    }
    work->counts->documents++;
    LS_TRY(write_row(work, arrays, &encoding));
    return ls_tokenize_note(work, line, length, encoding.ids, encoding.count);
}

static int add_lines(struct ls_tokenize *work, struct arrays *arrays, const char *path)
{
    struct ls_text_input input;
    const char *line;
    size_t length;
    int status = ls_text_input_open(path, &input, work->error);
    while (status == 0) {
        char name[400];
        status = ls_text_input_line(&input, &line, &length, work->error);
        if (status != 0 || line == NULL)
            break;
        snprintf(name, sizeof name, "%.300s:%" PRIu64, input.name, input.line);
        if (length > 0)
            status = add_pair(work, arrays, name, line, length);
    }
    ls_text_input_close(&input);
    return status;
}

static int finish(struct ls_tokenize *work, struct arrays *arrays, int status)
{
    for (int i = 0; i < ARRAYS && status == 0; i++) {
        char header[LS_NPY_HEADER];
        ls_npy_header_write(types[i], arrays->rows, (uint64_t)work->options->max_length, header);
        status = ls_atomic_rewrite(arrays->files[i], 0, header, sizeof header, work->error);
    }
    for (int i = 0; i < ARRAYS; i++) {
        if (arrays->files[i] == NULL)
            continue;
        if (status == 0)
            status = ls_atomic_commit(arrays->files[i], work->error);
        else
            ls_atomic_abandon(arrays->files[i]);
    }
    ls_free(arrays->row);
    return status;
}

int ls_tokenize_pairs(struct ls_tokenize *work)
{
    struct arrays arrays = {0};
    int status = 0;
    for (size_t i = 0; i < work->tokenizer->pair.count && status == 0; i++)
        if (work->tokenizer->pair.pieces[i].segment > UINT8_MAX)
            status = ls_fail(work->error, LOCKSTEP_DATA, work->tokenizer->path, NULL,
                             "its template has a segment above 255, the most that is written");
    if (status == 0 && work->tokenizer->pad_segment > UINT8_MAX)
        status = ls_fail(work->error, LOCKSTEP_DATA, work->tokenizer->path, NULL,
                         "fills texts up with a segment above 255, the most that is written");
    if (status == 0)
        status = open_arrays(work, &arrays);
    for (size_t i = 0; i < work->options->input_count && status == 0; i++)
        status = add_lines(work, &arrays, work->options->inputs[i]);
    return finish(work, &arrays, status);
}
