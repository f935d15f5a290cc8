/* Datum records, compared with protobuf-c, cut off, and changed.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/datum.h"

#include "base/random.h"
#include "data_trial.h"
#include "lockstep.pb-c.h"

/* A record as the library that Caffe uses would pack it. */
static uint8_t *pack(Lockstep__Datum *datum, size_t *size)
{
    *size = lockstep__datum__get_packed_size(datum);
    uint8_t *bytes = malloc(*size + 1);
    lockstep__datum__pack(datum, bytes);
    return bytes;
}

static void records_packed_by_protobuf_are_read(void **state)
{
    (void)state;
    uint8_t pixels[24];
    for (int i = 0; i < 24; i++)
        pixels[i] = (uint8_t)(i * 11);
    const int32_t labels[] = {0, 1, 127, 128, 70000, INT32_MAX, -1, INT32_MIN};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        Lockstep__Datum datum = LOCKSTEP__DATUM__INIT;
        datum.has_channels = datum.has_height = datum.has_width = datum.has_label = 1;
        datum.channels = 2;
        datum.height = 3;
        datum.width = 4;
        datum.label = labels[i];
        datum.has_data = 1;
        datum.data = (ProtobufCBinaryData){24, pixels};
        datum.has_encoded = 1;
        size_t size;
        uint8_t *bytes = pack(&datum, &size);
        struct ls_datum d;
        assert_int_equal(ls_datum_read(bytes, size, &d, NULL), 0);
        assert_int_equal(ls_datum_check(&d, NULL), 0);
        assert_int_equal(d.shape[0] * 100 + d.shape[1] * 10 + d.shape[2], 234);
        assert_int_equal(d.label, labels[i]);
        assert_false(d.encoded);
        assert_int_equal(d.data_size, 24);
        assert_memory_equal(d.data, pixels, 24);
        free(bytes);
    }
}

static void float_records_are_read(void **state)
{
    (void)state;
    float numbers[6] = {1.5F, -2, 0, 1e30F, -1e-30F, 7};
    Lockstep__Datum datum = LOCKSTEP__DATUM__INIT;
    datum.has_channels = datum.has_height = datum.has_width = 1;
    datum.channels = 1;
    datum.height = 2;
    datum.width = 3;
    datum.n_float_data = 6;
    datum.float_data = numbers;
    size_t size;
    uint8_t *bytes = pack(&datum, &size);
    struct ls_datum d;
    float out[6];
    assert_int_equal(ls_datum_read(bytes, size, &d, NULL), 0);
    assert_int_equal(ls_datum_check(&d, NULL), 0);
    assert_int_equal(d.float_count, 6);
    ls_datum_floats(bytes, size, out);
    assert_memory_equal(out, numbers, sizeof numbers);
    /* The packed form of the same, which newer writers may use: one field of bytes. */
    uint8_t packed[64] = {0x08, 1, 0x10, 2, 0x18, 3, 0x32, 24};
    memcpy(packed + 8, numbers, 24);
    memset(out, 0, sizeof out);
    assert_int_equal(ls_datum_read(packed, 32, &d, NULL), 0);
    assert_int_equal(ls_datum_check(&d, NULL), 0);
    ls_datum_floats(packed, 32, out);
    assert_memory_equal(out, numbers, sizeof numbers);
    free(bytes);
}

static void written_records_are_read_by_protobuf(void **state)
{
    (void)state;
    uint8_t pixels[300];
    float numbers[300];
    for (int i = 0; i < 300; i++) {
        pixels[i] = (uint8_t)i;
        numbers[i] = (float)i / 7;
    }
    struct ls_buffer buffer = {0};
    for (int kind = 0; kind < 2; kind++) {
        const int32_t label = kind == 0 ? 9 : -5;
        struct ls_record record = trial_record(kind == 0 ? LS_U8 : LS_F32, 3, 10, 10,
                                               kind == 0 ? (const void *)pixels : numbers, &label);
        size_t size;
        const uint8_t *bytes = ls_datum_write(&record, true, &buffer, &size);
        Lockstep__Datum *datum = lockstep__datum__unpack(NULL, size, bytes);
        assert_non_null(datum);
        assert_int_equal(datum->channels, 3);
        assert_int_equal(datum->height, 10);
        assert_int_equal(datum->width, 10);
        assert_int_equal(datum->label, label);
        if (kind == 0)
            assert_memory_equal(datum->data.data, pixels, 300);
        else
            assert_memory_equal(datum->float_data, numbers, sizeof numbers);
        lockstep__datum__free_unpacked(datum, NULL);
        bytes = ls_datum_write(&record, false, &buffer, &size);
        struct ls_datum d;
        assert_int_equal(ls_datum_read(bytes, size, &d, NULL), 0);
        assert_int_equal(d.label, 0);
    }
    ls_buffer_free(&buffer);
}

static void unknown_fields_are_skipped_and_repeated_ones_replaced(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x08, 9,    0x78, 0x96, 0x01, /* channels 9; field 15 */
                             0x81, 0x01, 1,    2,    3,    4, 5,    6, 7, 8, /* field 16, fixed64 */
                             0x8d, 0x01, 1,    2,    3,    4,                /* field 17, fixed32 */
                             0x92, 0x01, 2,    'h',  'i',                    /* field 18, bytes */
                             0x08, 1,    0x10, 1,    0x18, 2, 0x22, 2, 5, 6};
    struct ls_datum d;
    assert_int_equal(ls_datum_read(bytes, sizeof bytes, &d, NULL), 0);
    assert_int_equal(ls_datum_check(&d, NULL), 0);
    assert_int_equal(d.shape[0], 1); /* the last one counts */
    assert_int_equal(d.data[1], 6);
}

static void malformed_records_are_refused(void **state)
{
    (void)state;
    struct {
        uint8_t bytes[16];
        size_t size;
    } bad[] = {
        {{0x08}, 1},                                                       /* a tag and no value */
        {{0x08, 0x80, 0x80}, 3},                                           /* an endless number */
        {{0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, 12}, /* beyond 64 bits */
        {{0x22, 5, 1, 2}, 4},                      /* bytes that are cut off */
        {{0x22, 0xff, 0xff, 0xff, 0xff, 0x0f}, 6}, /* a huge length */
        {{0x20, 1}, 2},                            /* data as a number */
        {{0x0a, 1, 1}, 3},                         /* channels as bytes */
        {{0x32, 3, 0, 0, 0}, 5},                   /* three quarters of a float */
        {{0x35, 0, 0}, 3},                         /* a float that is cut off */
        {{0x0b}, 1},                               /* groups */
        {{0x00, 0x00}, 2},                         /* field 0 */
        {{0x28, 0x81, 0x80, 0x80, 0x80, 0x10}, 6}, /* label 2^32 + 1 */
        {{0x28, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, 11}, /* label 2^63 */
        {{0x08, 0x83, 0x80, 0x80, 0x80, 0x10}, 6},                             /* channels */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_datum d;
        if (ls_datum_read(bad[i].bytes, bad[i].size, &d, NULL) != LOCKSTEP_DATA)
            fail_msg("record %zu was accepted", i);
    }
    const uint8_t negative[] = {0x28, 0xff, 0xff, 0xff, 0xff, 0x0f}; /* -1 in 32 bits */
    struct ls_datum d;
    assert_int_equal(ls_datum_read(negative, sizeof negative, &d, NULL), 0);
    assert_int_equal(d.label, -1);
    d = (struct ls_datum){.shape = {1, 2, 2}, .data_size = 3};
    assert_int_equal(ls_datum_check(&d, NULL), LOCKSTEP_DATA);
    d.data_size = 4;
    assert_int_equal(ls_datum_check(&d, NULL), 0);
    d.shape[0] = -1;
    assert_int_equal(ls_datum_check(&d, NULL), LOCKSTEP_DATA);
    d = (struct ls_datum){.shape = {65536, 65536, 65536}, .data_size = 0};
    assert_int_equal(ls_datum_check(&d, NULL), LOCKSTEP_DATA);
    d = (struct ls_datum){.encoded = true};
    assert_int_equal(ls_datum_check(&d, NULL), LOCKSTEP_DATA);
}

/* Random bytes in place of some: a record or a refusal (sanitizers watch). */
static void random_damage_is_answered(void **state)
{
    (void)state;
    uint8_t pixels[40] = {1, 2, 3};
    const int32_t label = 300;
    struct ls_record record = trial_record(LS_U8, 1, 5, 8, pixels, &label);
    struct ls_buffer buffer = {0};
    size_t size;
    const uint8_t *bytes = ls_datum_write(&record, true, &buffer, &size);
    uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "datum");
    int accepted = 0;
    for (uint64_t trial = 0; trial < 20000; trial++) {
        size_t length = ls_random_below(key, trial, 0, (uint32_t)size + 1);
        uint8_t *copy = malloc(length + (length == 0));
        memcpy(copy, bytes, length);
        for (uint64_t k = 1; k <= 3 && length > 0; k++)
            copy[ls_random_below(key, trial, 2 * k, (uint32_t)length)] =
                (uint8_t)ls_random_u32(key, trial, 2 * k + 1);
        struct ls_datum d;
        if (ls_datum_read(copy, length, &d, NULL) == 0 && ls_datum_check(&d, NULL) == 0) {
            accepted++;
            if (d.data_size > 0)
                assert_true(d.data >= copy && d.data + d.data_size <= copy + length);
        }
        free(copy);
    }
    assert_true(accepted > 10);
    ls_buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_packed_by_protobuf_are_read),
        cmocka_unit_test(float_records_are_read),
        cmocka_unit_test(written_records_are_read_by_protobuf),
        cmocka_unit_test(unknown_fields_are_skipped_and_repeated_ones_replaced),
        cmocka_unit_test(malformed_records_are_refused),
        cmocka_unit_test(random_damage_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
