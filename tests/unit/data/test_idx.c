/* IDX files: MNIST itself, small made-up ones, truncated and damaged ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <zlib.h>

#include "data/source.h"
#include "data_trial.h"

static int open_pair(const char *images, const char *labels, struct ls_source **source,
                     struct ls_error *error)
{
    return trial_source(source, error,
                        "data_param { backend: IDX source: '%s' label_source: '%s' }", images,
                        labels != NULL ? labels : "");
}

static struct ls_source *must_open(const char *images, const char *labels)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    if (open_pair(images, labels, &source, error) != 0)
        fail_msg("%s", trial_text(error));
    free(error);
    return source;
}

/* Opens what must not open, and asks for words of the message. */
static void must_fail(const char *images, const char *labels, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    assert_int_equal(open_pair(images, labels, &source, error), LOCKSTEP_DATA);
    assert_null(source);
    assert_says(error, words);
    free(error);
}

static void gzip_file(const char *path, const void *bytes, size_t size)
{
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
    gzclose(file);
}

static void mnist_is_read(void **state)
{
    (void)state;
    struct ls_source *s = must_open(ls_test_data_or_skip("mnist/t10k-images-idx3-ubyte.gz"),
                                    ls_test_data_or_skip("mnist/t10k-labels-idx1-ubyte.gz"));
    assert_int_equal(s->count, 10000);
    assert_int_equal(s->tensor[0].shape.dim[0], 1);
    assert_int_equal(s->tensor[0].shape.dim[1], 28);
    assert_int_equal(s->tensor[0].shape.dim[2], 28);
    assert_int_equal(s->tensor[1].largest, 9);
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(s, &reader, NULL), 0);
    /* The first ten labels of the test set, as published, and how many of each class. */
    const int first[10] = {7, 2, 1, 0, 4, 1, 4, 9, 5, 9};
    const int classes[10] = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
    int seen[10] = {0};
    uint64_t sum = 0;
    for (int64_t i = 0; i < s->count; i++) {
        struct ls_record record;
        assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &record, NULL), 0);
        if (i < 10)
            assert_int_equal(trial_label(&record), first[i]);
        seen[trial_label(&record)]++;
        for (int p = 0; p < 784; p++)
            sum += trial_bytes(&record)[p];
    }
    assert_memory_equal(seen, classes, sizeof seen);
    /* The mean of the test images is known as 0.1325 of 255. */
    double mean = (double)sum / (10000.0 * 784 * 255);
    assert_true(mean > 0.13245 && mean < 0.13255);
    ls_source_reader_close(reader);
    ls_source_close(s);
}

static void plain_and_gzip_files_agree(void **state)
{
    (void)state;
    const char *plain = ls_test_path("images"), *labels = ls_test_path("labels");
    const char *packed = ls_test_path("images.gz"), *packed_labels = ls_test_path("labels.gz");
    write_pair(plain, labels, 50, 5, 4);
    size_t size, label_size;
    char *bytes = ls_test_read(plain, &size);
    char *label_bytes = ls_test_read(labels, &label_size);
    gzip_file(packed, bytes, size);
    gzip_file(packed_labels, label_bytes, label_size);
    struct ls_source *a = must_open(plain, labels), *b = must_open(packed, packed_labels);
    struct ls_source_reader *ra, *rb;
    assert_int_equal(ls_source_reader_open(a, &ra, NULL), 0);
    assert_int_equal(ls_source_reader_open(b, &rb, NULL), 0);
    for (int64_t i = 0; i < 50; i++) {
        struct ls_record x, y;
        assert_int_equal(ls_source_read(ra, i, LS_ALL_TENSORS, &x, NULL), 0);
        assert_int_equal(ls_source_read(rb, i, LS_ALL_TENSORS, &y, NULL), 0);
        assert_memory_equal(trial_bytes(&x), bytes + 16 + 20 * i, 20);
        assert_memory_equal(trial_bytes(&y), trial_bytes(&x), 20);
        assert_int_equal(trial_label(&x), i % 10);
        assert_int_equal(trial_label(&y), trial_label(&x));
    }
    struct ls_record none;
    assert_int_equal(ls_source_read(ra, 50, LS_ALL_TENSORS, &none, NULL), LOCKSTEP_INTERNAL);
    ls_source_reader_close(ra);
    ls_source_reader_close(rb);
    ls_source_close(a);
    ls_source_close(b);
    free(bytes);
    free(label_bytes);
}

static void colour_pictures_without_labels_are_read(void **state)
{
    (void)state;
    const char *path = ls_test_path("colour");
    write_idx(path, 4, (uint32_t[]){3, 2, 4, 5}, 1);
    struct ls_source *s = must_open(path, NULL);
    assert_int_equal(s->count, 3);
    assert_int_equal(s->tensor[0].shape.dim[0], 2);
    assert_int_equal(s->tensor[0].shape.dim[1], 4);
    assert_int_equal(s->tensor[0].shape.dim[2], 5);
    assert_int_equal(s->tensors, 1);
    ls_source_close(s);
}

/* Every proper beginning of a file, packed or not, is refused with the file's name. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    const char *images = ls_test_path("whole"), *labels = ls_test_path("whole_labels");
    const char *cut = ls_test_path("cut");
    write_pair(images, labels, 3, 4, 4);
    size_t size;
    char *bytes = ls_test_read(images, &size);
    for (size_t n = 0; n < size; n++) {
        ls_test_write(cut, bytes, n);
        must_fail(cut, labels, "cut");
    }
    const char *packed = ls_test_path("whole.gz");
    gzip_file(packed, bytes, size);
    free(bytes);
    bytes = ls_test_read(packed, &size);
    for (size_t n = 0; n < size; n++) {
        ls_test_write(cut, bytes, n);
        must_fail(cut, labels, "cut");
    }
    /* Any changed byte is noticed, by the header's rules or by the checksum. Gzip does not
     * protect the fields of its own header for time and system, nor the bits behind the end of
     * the packed data in its last byte. */
    for (size_t i = 0; i < size; i++) {
        if ((i >= 4 && i < 10) || i == size - 9)
            continue;
        bytes[i] ^= 0x10;
        ls_test_write(cut, bytes, size);
        struct ls_source *source;
        int status = open_pair(cut, labels, &source, NULL);
        bytes[i] ^= 0x10;
        if (status != LOCKSTEP_DATA && !(i == 3 && status == 0))
            fail_msg("byte %zu of a gzip file can change unnoticed", i);
        ls_source_close(source);
    }
    free(bytes);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    const char *images = ls_test_path("good"), *labels = ls_test_path("good_labels");
    const char *bad = ls_test_path("bad");
    write_pair(images, labels, 4, 3, 3);
    must_fail(labels, images, "are images and labels exchanged?");
    must_fail(ls_test_path("nowhere"), labels, "there is no file or folder");
    must_fail(images, ls_test_path("nowhere"), "there is no file or folder");
    must_fail(ls_test_directory(), labels, "is a directory");
    must_fail(images, images, "has rank 3; a file of labels has 1");
    write_idx(bad, 1, (uint32_t[]){5}, 0);
    must_fail(images, bad, "has 5 labels for 4 images");
    write_idx(bad, 2, (uint32_t[]){4, 9}, 0);
    must_fail(bad, labels, "has rank 2");
    write_idx(bad, 3, (uint32_t[]){0, 3, 3}, 0);
    must_fail(bad, labels, "has no records");
    write_idx(bad, 3, (uint32_t[]){4, 0, 3}, 0);
    must_fail(bad, labels, "makes no sense");
    size_t size;
    char *bytes = ls_test_read(images, &size);
    bytes = realloc(bytes, size + 2);
    bytes[size] = 1;
    ls_test_write(bad, bytes, size + 1);
    must_fail(bad, labels, "has something behind its end");
    bytes[2] = 0x0d; /* float */
    ls_test_write(bad, bytes, size);
    must_fail(bad, labels, "type 0x0d");
    bytes[2] = 8;
    bytes[0] = 'P';
    ls_test_write(bad, bytes, size);
    must_fail(bad, labels, "is not an IDX file");
    bytes[0] = 0;
    put_u32((uint8_t *)bytes + 4, 0xffffffff);
    put_u32((uint8_t *)bytes + 8, 0xffffffff);
    put_u32((uint8_t *)bytes + 12, 0xffffffff);
    ls_test_write(bad, bytes, size);
    must_fail(bad, labels, "has impossible extents");
    put_u32((uint8_t *)bytes + 12, 1); /* a bomb that promises 2^64 / 4 bytes */
    put_u32((uint8_t *)bytes + 8, 0x40000000);
    gzip_file(bad, bytes, size);
    must_fail(bad, labels, "is cut off");
    free(bytes);
}

static void several_sources_are_refused(void **state)
{
    (void)state;
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    assert_int_equal(
        trial_source(&source, error, "data_param { backend: IDX\nsource: 'a' source: 'b' }"),
        LOCKSTEP_DEFINITION);
    assert_says(error, "trial.prototxt:2:1: layer 'd': data of backend IDX has one source, not 2. "
                       "hint: source: the file of images");
    ls_error_clear(error);
    assert_int_equal(trial_source(&source, error, "\n data_param { backend: IDX }"),
                     LOCKSTEP_DEFINITION);
    assert_says(error, "trial.prototxt:2:2: layer 'd': data of backend IDX needs a source");
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist_is_read),
        cmocka_unit_test(plain_and_gzip_files_agree),
        cmocka_unit_test(colour_pictures_without_labels_are_read),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(several_sources_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
