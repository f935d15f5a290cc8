/* TOKENS: files of all kinds, windows against a simple model of them, and what damage leads to.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <unistd.h>

#include "base/random.h"
#include "data/reader.h"
#include "data/samples.h"
#include "data_trial.h"
#include "support/npy_files.h"
#include "text/token_sheet.h"

enum { TENSORS = 7, TOKENS = 0, TARGET, POSITION, SEGMENT, CONT, MASK, BYTES };

/* ---- Files ----------------------------------------------------------------------------------- */

static void write_raw(const char *path, const uint32_t *ids, size_t count, size_t size,
                      const char *head, size_t head_size)
{
    unsigned char *bytes = calloc(head_size + count * size + 1, 1);
    if (head_size > 0)
        memcpy(bytes, head, head_size);
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            bytes[head_size + i * size + b] = (unsigned char)(ids[i] >> (8 * b));
    ls_test_write(path, bytes, head_size + count * size);
    free(bytes);
}

/* A file of llm.c, whose header says that `said` ids follow. */
static void write_llmc(const char *path, uint32_t magic, uint32_t version, uint32_t said,
                       const uint32_t *ids, size_t count)
{
    char head[1024] = {0};
    const uint32_t numbers[3] = {magic, version, said};
    for (int i = 0; i < 12; i++)
        head[i] = (char)(numbers[i / 4] >> (8 * (i % 4)));
    write_raw(path, ids, count, version == 1 ? 2 : 4, head, sizeof head);
}

static void write_ids(const char *path, const char *descr, const uint32_t *ids, size_t count)
{
    char shape[32];
    const size_t size = (size_t)(descr[2] - '0');
    unsigned char *bytes = calloc(count + 1, size);
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            bytes[i * size + b] = (unsigned char)(ids[i] >> (8 * b));
    snprintf(shape, sizeof shape, "(%zu,)", count);
    write_npy(path, descr, shape, bytes, count * size);
    free(bytes);
}

/* Each kind of file by itself, and all of them as one stream, with windows across their ends. */
static void files_of_all_kinds_are_one_stream(void **state)
{
    (void)state;
    uint32_t ids[60];
    for (uint32_t i = 0; i < 60; i++)
        ids[i] = i * 1000;
    static const char *const names[] = {"a.npy", "b.npy", "c.npy", "d.bin", "e.bin", "f.raw"};
    write_ids(ls_test_path("a.npy"), "<u2", ids, 10);
    write_ids(ls_test_path("b.npy"), "<u4", ids + 10, 10);
    write_ids(ls_test_path("c.npy"), "<i4", ids + 20, 10);
    write_llmc(ls_test_path("d.bin"), 20240520, 1, 10, ids + 30, 10);
    write_llmc(ls_test_path("e.bin"), 20240801, 7, 10, ids + 40, 10);
    write_raw(ls_test_path("f.raw"), ids + 50, 10, 2, NULL, 0);
    struct ls_text fields = {0};
    for (int i = 0; i < 6; i++)
        ls_text_format(&fields, "source: '%s' ", ls_test_path(names[i]));
    ls_text_add(&fields, "tokens_param { window: 7 vocab_size: 65536 }");
    struct ls_source *source = trial_source_opens("TOKENS", fields.data);
    struct ls_source_reader *reader;
    struct ls_record record;
    assert_int_equal(source->count, 59 / 7);
    assert_int_equal(source->tensors, 6);
    assert_int_equal(source->tensor[0].largest, 65535);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &record, NULL), 0);
        for (int k = 0; k < 7; k++) {
            assert_int_equal(((const int32_t *)record.tensor[TOKENS].data)[k], (7 * i + k) * 1000);
            assert_int_equal(((const int32_t *)record.tensor[TARGET].data)[k],
                             (7 * i + k + 1) * 1000);
        }
    }
    ls_source_reader_close(reader);
    ls_source_close(source);
    ls_text_free(&fields);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    const uint32_t ids[8] = {1, 2, 3, 4, 5, 6, 70000, 0x80000001};
    char fields[2000];
    const char *path = ls_test_path("x.bin");
    static const char after[] = "tokens_param { window: 2 %s }";
    const struct {
        const char *kind, *more, *words;
        int status;
    } cases[] = {
        {"llmc short", "", "is cut off: its header says 9 ids of 2 bytes, and 16 bytes",
         LOCKSTEP_DATA},
        {"llmc long", "", "has something behind its end: its header says 7 ids", LOCKSTEP_DATA},
        {"odd", "", "has 15 bytes, which are no whole number of ids of 2 bytes", LOCKSTEP_DATA},
        {"u4", "type: U32 separator: 1 documents: WHOLE vocab_size: 1000",
         "id number 6 (at byte 24) is 70000, and the vocabulary has 0 to 999", LOCKSTEP_DATA},
        {"u4", "type: U32 separator: 1 documents: WHOLE",
         "id number 7 (at byte 28) is 2147483649, which is no id", LOCKSTEP_DATA},
        {"i4 npy", "separator: 1 documents: WHOLE", "is -2147483647, which is no id",
         LOCKSTEP_DATA},
        {"f4 npy", "", "has numbers of type F32; ids are of 16 or 32 bits", LOCKSTEP_DATA},
        {"two axes", "", "has 2 axes; a stream of ids has one", LOCKSTEP_DATA},
        {"cut npy", "", "is cut off", LOCKSTEP_DATA},
        {"empty", "", "fewer than the 3 that a window takes", LOCKSTEP_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *kind = cases[i].kind;
        char tail[200];
        if (strncmp(kind, "llmc", 4) == 0)
            write_llmc(path, 20240520, 1, kind[5] == 's' ? 9 : 7, ids, 8);
        else if (strcmp(kind, "odd") == 0)
            ls_test_write(path, ids, 15);
        else if (strcmp(kind, "u4") == 0)
            write_raw(path, ids, 8, 4, NULL, 0);
        else if (strcmp(kind, "i4 npy") == 0)
            write_npy(path, "<i4", "(2,)", ids + 6, 8);
        else if (strcmp(kind, "f4 npy") == 0)
            write_npy(path, "<f4", "(8,)", ids, 32);
        else if (strcmp(kind, "two axes") == 0)
            write_npy(path, "<u4", "(2, 4)", ids, 32);
        else if (strcmp(kind, "cut npy") == 0)
            write_npy(path, "<u4", "(9,)", ids, 32);
        else
            ls_test_write(path, ids, 0);
        snprintf(tail, sizeof tail, after, cases[i].more);
        snprintf(fields, sizeof fields, "source: '%s' %s", path, tail);
        trial_source_fails("TOKENS", fields, cases[i].status, cases[i].words);
    }
}

/* Ids alone that are taken for those of another size, and headers that are not known. */
static void ids_of_another_size_are_refused(void **state)
{
    (void)state;
    uint32_t ids[100];
    const char *path = ls_test_path("size.bin");
    char fields[2000];
    struct ls_error *error = calloc(1, sizeof *error);
    for (uint32_t i = 0; i < 100; i++)
        ids[i] = 300 + 7 * i;
    for (int wide = 0; wide < 2; wide++) {
        write_raw(path, ids, 100, wide ? 4 : 2, NULL, 0);
        for (int right = 0; right < 2; right++) {
            struct ls_source *source = NULL;
            snprintf(fields, sizeof fields, "source: '%s' tokens_param { window: 4 type: %s }",
                     path, (right == 1) == (wide == 1) ? "U32" : "U16");
            int status = trial_source(&source, error, "data_param { backend: TOKENS %s }", fields);
            assert_int_equal(status, right ? 0 : LOCKSTEP_DATA);
            if (right)
                ls_source_close(source);
            else
                assert_says(error, wide ? "every second one of its first 200 ids of 16 bits is 0"
                                        : "50 of its first 50 ids of 32 bits are numbers that no "
                                          "tokenizer has, such as number 0 (at byte 0)");
            ls_error_clear(error);
        }
    }
    write_llmc(path, 20240520, 3, 100, ids, 100);
    struct ls_source *source;
    assert_int_equal(
        trial_source(&source, error,
                     "data_param { backend: TOKENS source: '%s' tokens_param { window: "
                     "4 } }",
                     path),
        LOCKSTEP_DATA);
    assert_says(error, "has a header of llm.c of version 3 (at byte 4), and only 1 is known");
    free(error);
}

/* A separator that no token is makes one document of all: that is said. */
static void a_separator_that_does_not_occur_is_said(void **state)
{
    (void)state;
    const uint32_t ids[10] = {5, 6, 7, 5, 6, 7, 5, 6, 7, 5};
    char fields[2000];
    write_ids(ls_test_path("sep.npy"), "<u2", ids, 10);
    for (int there = 0; there < 2; there++) {
        snprintf(fields, sizeof fields, "source: '%s' tokens_param { window: 4 separator: %d }",
                 ls_test_path("sep.npy"), there ? 7 : 8);
        struct ls_source *source = trial_source_opens("TOKENS", fields);
        if (there)
            assert_null(source->warning);
        else
            assert_non_null(strstr(source->warning, "(tokens_param.separator, id 8) does not occur "
                                                    "in its 10 tokens"));
        ls_source_close(source);
    }
}

/* A text beside the ids says what they are. */
static void a_text_beside_ids_says_what_they_are(void **state)
{
    (void)state;
    uint32_t ids[100];
    char fields[2000];
    const char *path = ls_test_path("about.bin");
    struct ls_token_sheet sheet = {
        .there = true, .tokenizer = 77, .vocabulary = 512, .type_size = 4, .count = 100};
    struct ls_error *error = calloc(1, sizeof *error);
    for (uint32_t i = 0; i < 100; i++)
        ids[i] = i;
    write_raw(path, ids, 100, 4, NULL, 0);
    assert_int_equal(ls_token_sheet_write(path, "tokenizer.json", &sheet, NULL), 0);
    snprintf(fields, sizeof fields, "source: '%s' tokens_param { window: 4 }", path);
    struct ls_source *source = trial_source_opens("TOKENS", fields); /* U16 is the default */
    assert_int_equal(source->count, 24);
    assert_int_equal(source->tensor[0].largest, 511);
    assert_true(source->tokenizer == 77);
    ls_source_close(source);
    /* Of another tokenizer than the weights'. */
    const struct ls_class_names known = {.of = "x.safetensors", .tokenizer = 78};
    const struct ls_dataset_wishes wishes = {.known = &known};
    struct ls_definition *layer =
        trial_layer("name: 'd' type: 'Data' top: 'x' data_param { backend: TOKENS %s }", fields);
    struct ls_dataset *set;
    assert_int_equal(ls_dataset_open((const Lockstep__LayerParameter *)layer->message, layer,
                                     LOCKSTEP__PHASE__TEST, 1, &wishes, &set, error),
                     LOCKSTEP_DATA);
    assert_says(error, "its ids are those of another tokenizer");
    ls_error_clear(error);
    ls_definition_free(layer);
    /* That of another file. */
    sheet.count = 99;
    assert_int_equal(ls_token_sheet_write(path, "tokenizer.json", &sheet, NULL), 0);
    assert_int_equal(trial_source(&source, error, "data_param { backend: TOKENS %s }", fields),
                     LOCKSTEP_DATA);
    assert_says(error, "has 100 ids, and 99 by the text beside it");
    free(error);
}

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    uint32_t ids[20] = {0};
    const char *path = ls_test_path("x.raw");
    write_raw(path, ids, 20, 2, NULL, 0);
    static const struct {
        const char *fields, *words;
    } cases[] = {
        {"tokens_param { }", "a window needs a number of tokens"},
        {"tokens_param { window: 20000000 }", "window is 20000000; it must lie in 0 .. 16777216"},
        {"tokens_param { window: 4 streams: 2 }", "streams is for order: STREAMS"},
        {"tokens_param { window: 4 lengths: PACK }", "BUCKET and PACK are for documents: WHOLE"},
        {"tokens_param { window: 4 bucket: 2 }", "bucket is for lengths: BUCKET"},
        {"tokens_param { window: 4 documents: WHOLE lengths: BUCKET }", "BUCKET needs a bucket"},
        {"tokens_param { window: 4 stride: 2 documents: WHOLE lengths: PACK }", "each token once"},
        {"batch_size: 2 tokens_param { window: 4 stride: 2 order: STREAMS }", "follow each other"},
        {"batch_size: 2 tokens_param { window: 4 documents: WHOLE order: STREAMS }",
         "goes on from document to document"},
        {"tokens_param { window: 4 order: STREAMS }", "order: STREAMS needs batch_size"},
        {"batch_size: 2 tokens_param { window: 4 order: STREAMS streams: 3 }",
         "streams is 3, which is no multiple of batch_size, 2"},
        {"tokens_param { window: 4 vocab_size: 5 separator: 5 documents: WHOLE }",
         "separator is 5, and ids lie below 5"},
        {"tokens_param { window: 4 vocab_size: 5 pad: 5 documents: WHOLE }",
         "pad is 5, and the vocabulary has ids 0 to 4"},
        {"new_height: 4 tokens_param { window: 4 }", "new_height is for IMAGES"},
        {"text_param { window: 4 } tokens_param { window: 4 }", "text_param is for TEXT"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char fields[2000];
        snprintf(fields, sizeof fields, "source: '%s' %s", path, cases[i].fields);
        trial_source_fails("TOKENS", fields, LOCKSTEP_DEFINITION, cases[i].words);
    }
    char fields[2000];
    snprintf(fields, sizeof fields, "source: '%s' tokens_param { window: 20 }", path);
    trial_source_fails("TOKENS", fields, LOCKSTEP_DATA,
                       "has 20 tokens, fewer than the 21 that a window takes");
    snprintf(fields, sizeof fields,
             "source: '%s' batch_size: 4 tokens_param { window: 5 order: STREAMS }", path);
    trial_source_fails("TOKENS", fields, LOCKSTEP_DATA,
                       "fewer than the 21 that a window of each stream takes");
}

static void lengths_in_bytes_come_from_a_file(void **state)
{
    (void)state;
    const uint32_t ids[6] = {0, 2, 1, 2, 0, 1};
    const uint16_t bytes[3] = {0, 3, 5};
    char fields[2000];
    const char *path = ls_test_path("x.raw"), *table = ls_test_path("bytes.npy");
    write_raw(path, ids, 6, 2, NULL, 0);
    write_npy(table, "<u2", "(3,)", bytes, sizeof bytes);
    snprintf(fields, sizeof fields, "source: '%s' tokens_param { window: 5 bytes_file: '%s' }",
             path, table);
    struct ls_source *source = trial_source_opens("TOKENS", fields);
    struct ls_source_reader *reader;
    struct ls_record record;
    assert_int_equal(source->tensors, 7);
    assert_string_equal(source->tensor[BYTES].name, "bytes");
    assert_int_equal(source->tensor[0].largest, 2);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &record, NULL), 0);
    assert_memory_equal(record.tensor[BYTES].data, ((const int32_t[]){5, 3, 5, 0, 3}), 20);
    ls_source_reader_close(reader);
    ls_source_close(source);
    snprintf(fields, sizeof fields,
             "source: '%s' tokens_param { window: 5 vocab_size: 4 bytes_file: '%s' }", path, table);
    trial_source_fails("TOKENS", fields, LOCKSTEP_DEFINITION,
                       "bytes_file knows 3 ids, and vocab_size is 4");
    write_npy(table, "<i2", "(3,)", (const int16_t[]){0, -1, 5}, 6);
    snprintf(fields, sizeof fields, "source: '%s' tokens_param { window: 5 bytes_file: '%s' }",
             path, table);
    trial_source_fails("TOKENS", fields, LOCKSTEP_DATA,
                       "says of id 1 what cannot be a number of bytes");
    write_npy(table, "<f4", "(3,)", (const float[]){0, 1, 5}, 12);
    trial_source_fails("TOKENS", fields, LOCKSTEP_DATA, "is no list of whole numbers");
}

static void a_file_that_shrinks_ends_the_reading(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    uint32_t *ids = calloc(COUNT, sizeof *ids);
    char fields[2000];
    const char *path = ls_test_path("x.raw");
    write_raw(path, ids, COUNT, 2, NULL, 0);
    snprintf(fields, sizeof fields, "source: '%s' tokens_param { window: 100 }", path);
    struct ls_source *source = trial_source_opens("TOKENS", fields);
    struct ls_source_reader *reader;
    struct ls_record record;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(ls_source_read(reader, 900, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
    assert_says(error, "x.raw");
    assert_false(reader->bad);
    free(error);
    ls_source_reader_close(reader);
    ls_source_close(source);
    free(ids);
}

/* ---- Windows, against a model ---------------------------------------------------------------- */

/* A stream and how it is cut. */
struct trial {
    int64_t length, begin, end; /* of the stream; the split */
    uint32_t ids[400];
    int64_t window, stride, streams, batch, bucket, separator;
    bool whole, pack;
};

/* Places of the stream, in the order of the window. */
struct expected {
    int64_t place[64];
    bool starts[64]; /* a piece starts here */
    int64_t count, steps;
    bool goes_on;
};

static struct expected records[2000];
static int64_t record_count;

static void expect_run(int64_t begin, int64_t end, int64_t steps)
{
    struct expected *e = &records[record_count++];
    *e = (struct expected){.steps = steps};
    for (int64_t p = begin; p < end; p++) {
        e->starts[e->count] = p == begin;
        e->place[e->count++] = p;
    }
}

static int64_t round_up(const struct trial *t, int64_t count)
{
    if (t->bucket == 0)
        return t->window;
    while (count % t->bucket != 0)
        count++;
    return count < t->window ? count : t->window;
}

/* Puts a piece into the first window with room, of the last 64 that were opened. */
static void expect_packed(const struct trial *t, int64_t begin, int64_t end)
{
    int64_t at = record_count > 64 ? record_count - 64 : 0;
    /* A window beyond the 64 youngest is closed; the one that a new window closes is the oldest. */
    while (at < record_count && t->window - records[at].count < end - begin)
        at++;
    if (at == record_count) {
        expect_run(begin, end, t->window);
        return;
    }
    struct expected *e = &records[at];
    for (int64_t p = begin; p < end; p++) {
        e->starts[e->count] = p == begin;
        e->place[e->count++] = p;
    }
}

static void expect_document(const struct trial *t, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end; at += t->stride) {
        const int64_t stop = at + t->window < end ? at + t->window : end;
        if (t->pack)
            expect_packed(t, at, stop);
        else
            expect_run(at, stop, round_up(t, stop - at));
        if (stop == end)
            return;
    }
}

static void expect_all(const struct trial *t)
{
    const int64_t last = t->end - 1; /* places are below */
    record_count = 0;
    if (t->streams > 0) {
        const int64_t part = (last - t->begin) / t->streams;
        for (int64_t u = 0; (u + 1) * t->window <= part; u++)
            for (int64_t r = 0; r < t->streams; r++) {
                const int64_t at = t->begin + r * part + u * t->window;
                expect_run(at, at + t->window, t->window);
                records[record_count - 1].goes_on = u > 0;
            }
    } else if (!t->whole) {
        for (int64_t at = t->begin; at + t->window <= last; at += t->stride)
            expect_run(at, at + t->window, t->window);
    } else {
        int64_t begin = t->begin;
        for (int64_t p = t->begin + 1; p <= last; p++)
            if (p == last || t->ids[p] == t->separator) {
                expect_document(t, begin, p);
                begin = p;
            }
    }
}

static void compare(const struct trial *t, const struct expected *e, const struct ls_record *record)
{
    const int32_t *of[TENSORS];
    int32_t segment = -1, position = 0;
    for (int k = 0; k < record->count; k++) {
        of[k] = record->tensor[k].data;
        assert_int_equal(record->tensor[k].shape.rank, 1);
        assert_int_equal(record->tensor[k].shape.dim[0], e->steps);
    }
    for (int64_t s = 0; s < e->steps; s++) {
        const bool real = s < e->count;
        const bool starts = real ? e->starts[s] : s == e->count;
        const bool document = real && t->ids[e->place[s]] == t->separator;
        if (starts || document) {
            segment++;
            position = 0;
        }
        assert_int_equal(of[TOKENS][s], real ? (int32_t)t->ids[e->place[s]] : 3);
        assert_int_equal(of[TARGET][s], real ? (int32_t)t->ids[e->place[s] + 1] : -7);
        assert_int_equal(of[POSITION][s], position++);
        assert_int_equal(of[SEGMENT][s], segment);
        assert_int_equal(of[MASK][s], real);
        assert_int_equal(of[CONT][s], (!starts || (e->goes_on && s == 0)) && !document);
    }
}

static void draw_trial(uint64_t number, struct trial *t)
{
    const uint64_t key = ls_random_key(number, LS_RANDOM_TEST, "tokens");
    uint64_t draw = 0;
#define DRAW(most) ((int64_t)ls_random_below(key, 0, draw++, (uint32_t)(most)))
    *t = (struct trial){.length = 30 + DRAW(350), .separator = -1};
    t->window = 1 + DRAW(20);
    for (int64_t i = 0; i < t->length; i++)
        t->ids[i] = (uint32_t)DRAW(9);
    t->end = t->length;
    t->stride = DRAW(2) == 0 ? t->window : 1 + DRAW(25);
    if (DRAW(3) > 0)
        t->separator = 1;
    const int64_t kind = DRAW(5);
    t->whole = kind >= 2;
    t->pack = kind == 3;
    t->bucket = kind == 4 ? 1 + DRAW(8) : 0;
    t->batch = 1 + DRAW(3);
    t->streams = kind == 1 ? t->batch * (1 + DRAW(2)) : 0;
    if (t->pack || t->streams > 0)
        t->stride = t->window;
    const int64_t cut = (int64_t)((double)t->length * 0.75), part = DRAW(3);
    if (part == 1)
        t->end = cut;
    if (part == 2)
        t->begin = cut;
#undef DRAW
}

static struct ls_dataset *open_trial(const struct trial *t, const char *path,
                                     struct ls_definition **definition, struct ls_error *error)
{
    struct ls_dataset *dataset = NULL;
    *definition = trial_layer(
        "name: 'd' type: 'Data' top: 'x' data_param { backend: TOKENS source: '%s' batch_size: "
        "%d %s tokens_param { window: %d %s %d %s %s separator: %u documents: %s lengths: %s "
        "bucket: %d pad: 3 ignore_label: -7 vocab_size: 9 } }",
        path, (int)t->batch,
        t->begin > 0         ? "split: 'test:0.75'"
        : t->end < t->length ? "split: 'train:0.75'"
                             : "",
        (int)t->window, t->streams > 0 ? "order: STREAMS streams: " : "stride: ",
        (int)(t->streams > 0 ? t->streams : t->stride), "", "",
        t->separator < 0 ? UINT32_MAX : (unsigned)t->separator, t->whole ? "WHOLE" : "CROSS",
        t->pack         ? "PACK"
        : t->bucket > 0 ? "BUCKET"
                        : "PAD",
        (int)t->bucket);
    if (trial_open(*definition, LOCKSTEP__PHASE__TEST, 1, &dataset, error) != 0)
        return NULL;
    return dataset;
}

/* Records of random streams with random options; where no window fits, that is said. */
static void windows_are_those_of_the_model(void **state)
{
    (void)state;
    struct ls_error *error = calloc(1, sizeof *error);
    int opened = 0;
    for (uint64_t number = 0; number < 400; number++) {
        struct trial t;
        draw_trial(number, &t);
        const char *path = ls_test_path("stream.raw");
        write_raw(path, t.ids, (size_t)t.length, 2, NULL, 0);
        expect_all(&t);
        ls_error_clear(error);
        struct ls_definition *definition;
        struct ls_dataset *dataset = open_trial(&t, path, &definition, error);
        if (record_count == 0) {
            assert_null(dataset);
            assert_says(error, "fewer than");
            ls_definition_free(definition);
            continue;
        }
        if (dataset == NULL)
            fail_msg("trial %d: %s", (int)number, trial_text(error));
        opened++;
        assert_int_equal(ls_dataset_size(dataset), record_count);
        struct ls_reader *reader;
        struct ls_record record;
        assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
        bool *seen = calloc((size_t)record_count, 1);
        for (int64_t i = 0; i < record_count; i++) {
            int64_t index;
            uint64_t hash;
            assert_int_equal(ls_reader_read(reader, i, &record, NULL), 0);
            ls_reader_last(reader, &index, &hash);
            assert_false(seen[index]);
            seen[index] = true;
            compare(&t, &records[index], &record);
        }
        free(seen);
        ls_reader_close(reader);
        ls_dataset_close(dataset);
        ls_definition_free(definition);
    }
    assert_true(opened > 300);
    free(error);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    uint32_t ids[50];
    for (uint32_t i = 0; i < 50; i++)
        ids[i] = i % 9;
    const char *path = ls_test_path("stream.raw"), *table = ls_test_path("bytes.npy");
    write_raw(path, ids, 50, 2, NULL, 0);
    write_npy(table, "|u1", "(9,)", "\1\1\1\1\1\1\1\1\1", 9);
    static const char *const ways[] = {"PAD", "BUCKET bucket: 3", "PACK"};
    for (int i = 0; i < 3; i++) {
        struct ls_definition *layer = trial_layer(
            "name: 'd' type: 'Data' top: 'x' data_param { backend: TOKENS source: '%s' batch_size: "
            "2 shuffle: true tokens_param { window: 6 separator: 3 documents: WHOLE lengths: %s "
            "bytes_file: '%s' } }",
            path, ways[i], table);
        float out[6];
        void *outs[LS_RECORD_TENSORS] = {out};
        assert_true(trial_fail_allocations(layer, 4, outs) > 5);
        ls_definition_free(layer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: cmocka's handler of SIGBUS must not come behind that of the first view. */
        cmocka_unit_test(a_file_that_shrinks_ends_the_reading),
        cmocka_unit_test(files_of_all_kinds_are_one_stream),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(ids_of_another_size_are_refused),
        cmocka_unit_test(a_separator_that_does_not_occur_is_said),
        cmocka_unit_test(a_text_beside_ids_says_what_they_are),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(lengths_in_bytes_come_from_a_file),
        cmocka_unit_test(windows_are_those_of_the_model),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
