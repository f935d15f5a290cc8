/* Archives: round trip, the bytes of the file, hostile and damaged files.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/progress.h"
#include "snapshot/archive.h"
#include "support/support.h"

#include "memory_file.h"

static const float weights[6] = {1, -2.5f, 3, 1e-30f, 5, 6};
static const int64_t exponents[3] = {-7, INT64_MAX, INT64_MIN};
static const double scores[1] = {0.1};
static const uint16_t halves[3] = {0x3c00, 0x0001, 0xfbff};
static const unsigned char bytes[5] = {1, 2, 3, 0, 255};

/* An archive with a tensor of every size, an empty one, a scalar, and difficult strings. */
static void fill(struct ls_archive *archive)
{
    struct ls_shape matrix = {.rank = 2, .dim = {2, 3}}, scalar = {.rank = 0};
    assert_int_equal(ls_archive_add_note(archive, "iteration", "100", NULL), 0);
    assert_int_equal(ls_archive_add_note(archive, "quotes \"\\", "a\nb\t\x01 \xc3\xa9", NULL), 0);
    assert_int_equal(ls_archive_add(archive, "u8", LS_U8, &(struct ls_shape){1, {5}}, bytes, NULL),
                     0);
    assert_int_equal(ls_archive_add(archive, "ip1.weight", LS_F32, &matrix, weights, NULL), 0);
    assert_int_equal(ls_archive_add_list(archive, "halves", LS_F16, 3, halves, NULL), 0);
    assert_int_equal(ls_archive_add_list(archive, "none", LS_I32, 0, NULL, NULL), 0);
    assert_int_equal(ls_archive_add_list(archive, "exponents", LS_I64, 3, exponents, NULL), 0);
    assert_int_equal(ls_archive_add(archive, "\xe2\x82\xac", LS_F64, &scalar, scores, NULL), 0);
}

static void write_sample(const char *path)
{
    struct ls_archive archive = {0};
    struct ls_error error = {0};
    fill(&archive);
    assert_int_equal(ls_archive_write(&archive, path, &error), 0);
    ls_archive_free(&archive);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    const char *path = ls_test_path("round.safetensors");
    struct ls_archive read;
    struct ls_error error = {0};
    write_sample(path);
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &read, &error), 0);
    assert_true(read.ours);
    assert_int_equal(read.tensor_count, 6);
    assert_string_equal(read.tensors[0].name, "u8"); /* the order of adding */
    assert_string_equal(ls_archive_note(&read, "iteration"), "100");
    assert_string_equal(ls_archive_note(&read, "quotes \"\\"), "a\nb\t\x01 \xc3\xa9");
    assert_null(ls_archive_note(&read, LS_NOTE_CHECKSUM));
    int64_t iteration;
    assert_int_equal(ls_archive_take_integer(&read, "iteration", &iteration, &error), 0);
    assert_int_equal(iteration, 100);

    float floats[6];
    int64_t integers[3];
    uint16_t narrow[3];
    double score;
    assert_int_equal(ls_archive_take(&read, "halves", LS_F16, 3, narrow, &error), 0);
    assert_memory_equal(narrow, halves, sizeof halves);
    assert_int_equal(ls_archive_take(&read, "ip1.weight", LS_F32, 6, floats, &error), 0);
    assert_memory_equal(floats, weights, sizeof weights);
    assert_int_equal(ls_archive_take(&read, "exponents", LS_I64, 3, integers, &error), 0);
    assert_memory_equal(integers, exponents, sizeof exponents);
    assert_int_equal(ls_archive_take(&read, "\xe2\x82\xac", LS_F64, 1, &score, &error), 0);
    assert_true(score == scores[0]);
    for (size_t i = 0; i < read.tensor_count; i++) {
        size_t align = ls_dtype_size(read.tensors[i].type);
        assert_int_equal((uintptr_t)read.tensors[i].data % align, 0);
    }
    ls_archive_free(&read);
}

static void taking_a_tensor_says_what_is_wrong(void **state)
{
    (void)state;
    const char *path = ls_test_path("take.safetensors");
    struct ls_archive read;
    write_sample(path);
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &read, NULL), 0);
    float floats[6];
    int64_t number;
    struct ls_error error = {0};
    assert_int_equal(ls_archive_take(&read, "ip2.weight", LS_F32, 6, floats, &error),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_archive_take(&read, "ip1.weight", LS_F64, 6, floats, &error),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_archive_take(&read, "ip1.weight", LS_F32, 7, floats, &error),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_archive_take_integer(&read, "quotes \"\\", &number, &error),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(error.count, 4);
    assert_non_null(strstr(error.problems[0].message, "no tensor 'ip2.weight'"));
    assert_non_null(strstr(error.problems[1].message, "F32"));
    assert_non_null(strstr(error.problems[2].message, "7"));
    assert_string_equal(error.problems[3].place, path);
    ls_archive_free(&read);
}

static void same_content_gives_same_bytes(void **state)
{
    (void)state;
    size_t size[2];
    write_sample(ls_test_path("a.safetensors"));
    write_sample(ls_test_path("b.safetensors"));
    char *a = ls_test_read(ls_test_path("a.safetensors"), &size[0]);
    char *b = ls_test_read(ls_test_path("b.safetensors"), &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, size[0]);
    uint64_t header;
    memcpy(&header, a, 8);
    assert_int_equal((8 + header) % 64, 0);
    /* 8-byte elements first: exponents and the score, then weights, halves, bytes. */
    assert_int_equal(size[0], 8 + header + 24 + 8 + 24 + 6 + 5);
    assert_memory_equal(a + 8 + header, exponents, 24);
    assert_memory_equal(a + 8 + header + 32, weights, 24);
    assert_memory_equal(a + 8 + header + 56, halves, 6);
    free(a);
    free(b);
}

static void an_empty_archive_is_read_back(void **state)
{
    (void)state;
    const char *path = ls_test_path("nothing.safetensors");
    struct ls_archive archive = {0}, read;
    assert_int_equal(ls_archive_write(&archive, path, NULL), 0);
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &read, NULL), 0);
    assert_int_equal(read.tensor_count, 0);
    assert_true(read.ours);
    ls_archive_free(&read);
}

static void names_of_tensors_are_checked(void **state)
{
    (void)state;
    struct ls_archive archive = {0};
    float one = 1;
    struct ls_shape huge = {.rank = 2, .dim = {INT64_MAX, 4}};
    assert_int_equal(ls_archive_add_list(&archive, "__metadata__", LS_F32, 1, &one, NULL),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_archive_add_list(&archive, "", LS_F32, 1, &one, NULL), LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_archive_add_list(&archive, "\xff", LS_F32, 1, &one, NULL),
                     LOCKSTEP_WEIGHTS);
    assert_int_equal(ls_archive_add(&archive, "huge", LS_F32, &huge, &one, NULL),
                     LOCKSTEP_INTERNAL);
    assert_int_equal(ls_archive_add_note(&archive, LS_NOTE_FORMAT, "2", NULL), LOCKSTEP_INTERNAL);
    assert_int_equal(ls_archive_add_note(&archive, "k", "\xc3(", NULL), LOCKSTEP_INTERNAL);
    assert_int_equal(archive.tensor_count + archive.note_count, 0);
    assert_int_equal(ls_archive_add_list(&archive, "one", LS_F32, 1, &one, NULL), 0);
    assert_int_equal(ls_archive_add_list(&archive, "one", LS_F32, 1, &one, NULL), 0);
    const char *path = ls_test_path("twice.safetensors");
    assert_int_equal(ls_archive_write(&archive, path, NULL), LOCKSTEP_INTERNAL);
    assert_false(ls_file_exists(path));
    ls_archive_free(&archive);
}

/* A damaged copy must be refused or, where the damage turns it into the file of another
 * training, not be accepted as one of ours. */
static void expect_damaged(const char *path, size_t at)
{
    struct ls_archive read;
    struct ls_error error = {0};
    int status = ls_archive_read(path, LS_ARCHIVE_CHECK, &read, &error);
    if (status == 0 && read.ours)
        fail_msg("damage at byte %zu was not noticed", at);
    if (status != 0) {
        assert_int_equal(status, LOCKSTEP_WEIGHTS);
        assert_string_equal(error.problems[0].place, path);
        assert_true(error.problems[0].message[0] != '\0');
        assert_int_equal(read.tensor_count, 0);
    }
    ls_archive_free(&read);
}

static void every_damaged_byte_is_found(void **state)
{
    (void)state;
    const char *good = ls_test_path("good.safetensors");
    static const unsigned char flips[] = {0x01, 0x20, 0x80, 0xff};
    write_sample(good);
    size_t size;
    char *file = ls_test_read(good, &size);
    for (size_t at = 0; at < size; at++) {
        for (size_t f = 0; f < sizeof flips; f++) {
            file[at] = (char)((unsigned char)file[at] ^ flips[f]);
            expect_damaged(memory_file(file, size), at);
            file[at] = (char)((unsigned char)file[at] ^ flips[f]);
        }
    }
    free(file);
}

static void every_cut_file_is_refused(void **state)
{
    (void)state;
    const char *good = ls_test_path("good.safetensors");
    write_sample(good);
    size_t size;
    char *file = ls_test_read(good, &size);
    for (size_t length = 0; length < size; length++) {
        const char *bad = memory_file(file, length);
        expect_damaged(bad, length);
        struct ls_archive read;
        assert_int_equal(ls_archive_read(bad, LS_ARCHIVE_HEADER, &read, NULL), LOCKSTEP_WEIGHTS);
    }
    char *longer = calloc(1, size + 1);
    memcpy(longer, file, size);
    expect_damaged(memory_file(longer, size + 1), size);
    free(longer);
    free(file);
}

/* A file with this header and `data_size` zeros. */
static const char *write_raw(const char *header, size_t data_size)
{
    uint64_t length = strlen(header);
    char *file = calloc(1, 8 + length + data_size + 1);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    const char *path = memory_file(file, 8 + length + data_size);
    free(file);
    return path;
}

#define T1 "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

/* Headers that look nearly right, and a word of what must be said about them. */
static const struct {
    const char *header;
    size_t data;
    const char *say;
} hostile[] = {
    {"{" T1, 8, "comma or a brace"},
    {"{" T1 "}}", 8, "unexpected"},
    {"[" T1 "]", 8, "is no safetensors file"},
    {"{" T1 "," T1 "}", 8, "overlap"},
    {"{" T1 "," T1 ",}", 8, "string was expected"},
    {"{" T1 "}", 7, "lies at bytes"},
    {"{" T1 "}", 9, "belong to nothing"},
    {"{}", 4, "belong to nothing"},
    {"{" T1 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}", 16, "hole"},
    {"{" T1 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "overlap"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
     "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}}",
     8, "twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "needs 12"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "needs 16"},
    {"{\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "F33"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "lies at"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, "1 offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8, "more than 2"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "lacks"},
    {"{\"a\":{}}", 0, "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "twice"},
    {"{\"a\":{\"kind\":\"F32\"}}", 8, "unknown field"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0,
     "impossible"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[0,0]}}", 0,
     "too large"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,0]}}", 0, "whole number"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e1],\"data_offsets\":[0,40]}}", 40, "comma"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[02],\"data_offsets\":[0,8]}}", 8, "whole number"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
     "dimensions"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[[[[[[[[", 4, "whole number"},
    {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[", 4, "not an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "string was expected"},
    {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
    {"{\"__metadata__\":{\"lockstep.format\":\"2\"}}", 0, "format '2'"},
    {"{\"__metadata__\":{\"lockstep.checksum\":\"crc32:0000000\"}}", 0, "checksum"},
    {"{\"__metadata__\":{\"lockstep.checksul\":\"crc32:00000000\"}}", 0, "name of note"},
    {"{\"__metadata__\":{\"lockstup.format\":\"1\"}}", 0, "name of note"},
    {"{\"__metadata__\":{\"lockstep.checksum\":\"crc32:00000000\"}}", 0, "checksum is wrong"},
    {"{\"__metadata__\":{\"lockstep.checksum\":\"crc32:0000000\\u0030\"}}", 0, "checksum"},
    {"{\"a\\u0000b\":{}}", 0, "NUL"},
    {"{\"\\ud800\":{}}", 0, "surrogate"},
    {"{\"\\udc00\":{}}", 0, "surrogate"},
    {"{\"\\x\":{}}", 0, "escape"},
    {"{\"\\u12g4\":{}}", 0, "hexadecimal"},
    {"{\"\xff\":{}}", 0, "UTF-8"},
    {"{\"\xc0\x80\":{}}", 0, "UTF-8"},
    {"{\"\xed\xa0\x80\":{}}", 0, "UTF-8"},
    {"{\"a\nb\":{}}", 0, "control"},
    {"{\"a", 0, "without an end"},
};

static void hostile_headers_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        const char *path = write_raw(hostile[i].header, hostile[i].data);
        struct ls_archive read;
        struct ls_error error = {0};
        if (ls_archive_read(path, LS_ARCHIVE_CHECK, &read, &error) != LOCKSTEP_WEIGHTS)
            fail_msg("accepted: %s", hostile[i].header);
        if (strstr(error.problems[0].message, hostile[i].say) == NULL)
            fail_msg("'%s' is said about %s", error.problems[0].message, hostile[i].header);
        assert_string_equal(error.problems[0].place, path);
    }
}

static void hostile_lengths_of_headers_are_refused(void **state)
{
    (void)state;
    const char *path = ls_test_path("length.safetensors");
    static const uint64_t lengths[] = {0, 1, 3, 100, 100000001, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char file[10] = "........{}";
        struct ls_archive read;
        memcpy(file, &lengths[i], 8);
        ls_test_write(path, file, sizeof file);
        assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &read, NULL), LOCKSTEP_WEIGHTS);
    }
}

/* What others write: no checksum, another order, escapes, white space, half precision. */
static void files_of_other_programs_are_read(void **state)
{
    (void)state;
    const char *path = ls_test_path("foreign.safetensors");
    char header[] = "{ \"b\" : {\"shape\":[2,2],\"data_offsets\":[2, 10],\"dtype\":\"F16\"},"
                    "\"\\u20ac\\ud83d\\ude00\\/\":{\"dtype\":\"BF16\",\"shape\":[],"
                    "\"data_offsets\":[0,2]} }   ";
    static const uint16_t narrow[5] = {0x3fc0 /* bf16 1.5 */, 0x3c00, 0xc000, 0x0001, 0x7c00};
    uint64_t length = strlen(header);
    char file[512];
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, narrow, 10);
    ls_test_write(path, file, 8 + length + 10);
    struct ls_archive read;
    struct ls_error error = {0};
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &read, &error), 0);
    assert_false(read.ours);
    float values[4];
    const struct ls_tensor *tensor = ls_archive_find(&read, "b");
    assert_true(ls_dtype_is_float(tensor->type));
    ls_tensor_floats(tensor, values);
    static const float expected[4] = {1, -2, 0x1p-24f, __builtin_inff()};
    assert_memory_equal(values, expected, sizeof expected);
    ls_tensor_floats(ls_archive_find(&read, "\xe2\x82\xac\xf0\x9f\x98\x80/"), values);
    assert_true(values[0] == 1.5f);
    ls_archive_free(&read);
}

/* The value of half-precision bits by the definition, for all of them. */
static void every_half_precision_number_is_read(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        uint16_t half = (uint16_t)bits;
        struct ls_tensor tensor = {.type = LS_F16, .data = &half, .size = 2};
        float value;
        ls_tensor_floats(&tensor, &value);
        int exponent = bits >> 10 & 31, fraction = bits & 1023;
        double sign = bits >> 15 ? -1 : 1;
        if (exponent == 31) {
            assert_true(fraction == 0 ? value == sign * __builtin_inf() : value != value);
            continue;
        }
        double expected = exponent == 0 ? sign * fraction * 0x1p-24
                                        : sign * __builtin_ldexp(1024 + fraction, exponent - 25);
        assert_true((double)value == expected);
        assert_int_equal(__builtin_signbit(value) != 0, sign < 0);
    }
}

static void without_memory_reading_is_an_error(void **state)
{
    (void)state;
    const char *path = ls_test_path("memory.safetensors");
    write_sample(path);
    int failures = 0;
    for (long n = 0;; n++) {
        struct ls_archive read;
        struct ls_error error = {0};
        ls_fail_allocation_after(n);
        int status = ls_archive_read(path, LS_ARCHIVE_CHECK, &read, &error);
        ls_fail_allocation_after(-1);
        ls_archive_free(&read);
        if (status == 0)
            break;
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        failures++;
    }
    assert_true(failures > 10);
    for (long n = 0;; n++) {
        struct ls_archive archive = {0};
        fill(&archive);
        ls_fail_allocation_after(n);
        int status = ls_archive_write(&archive, path, NULL);
        ls_fail_allocation_after(-1);
        ls_archive_free(&archive);
        if (status == 0)
            break;
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        assert_true(ls_file_exists(path));
    }
}

/* Reading a large file reports progress on the way. */
static void count(void *user)
{
    ++*(int *)user;
}

static void long_reads_give_signs_of_life(void **state)
{
    (void)state;
    enum { MEBIBYTES = 5 };
    const char *path = ls_test_path("large.safetensors");
    struct ls_archive archive = {0}, read;
    int heard = 0;
    float *zeros = calloc((size_t)MEBIBYTES << 18, sizeof *zeros);
    assert_non_null(zeros);
    assert_int_equal(
        ls_archive_add_list(&archive, "zeros", LS_F32, (int64_t)MEBIBYTES << 18, zeros, NULL), 0);
    assert_int_equal(ls_archive_write(&archive, path, NULL), 0);
    for (int listening = 1; listening >= 0; listening--) {
        ls_progress_hear(listening ? count : NULL, &heard);
        assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &read, NULL), 0);
        ls_archive_free(&read);
        assert_in_range(heard, MEBIBYTES, MEBIBYTES + 2);
    }
    ls_archive_free(&archive);
    free(zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(taking_a_tensor_says_what_is_wrong),
        cmocka_unit_test(same_content_gives_same_bytes),
        cmocka_unit_test(an_empty_archive_is_read_back),
        cmocka_unit_test(names_of_tensors_are_checked),
        cmocka_unit_test(every_damaged_byte_is_found),
        cmocka_unit_test(every_cut_file_is_refused),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(hostile_lengths_of_headers_are_refused),
        cmocka_unit_test(files_of_other_programs_are_read),
        cmocka_unit_test(every_half_precision_number_is_read),
        cmocka_unit_test(without_memory_reading_is_an_error),
        cmocka_unit_test(long_reads_give_signs_of_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
