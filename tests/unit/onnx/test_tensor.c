/* Tensors of ONNX models: numbers in every list and as bytes, in files beside the model, and what
 * is refused. SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/tensor.h"
#include "support/support.h"

/* A tensor of `n` numbers in one row. */
static Onnx__TensorProto row(int32_t type, int64_t *n)
{
    Onnx__TensorProto tensor = ONNX__TENSOR_PROTO__INIT;
    tensor.name = (char *)(uintptr_t) "w";
    tensor.has_data_type = 1;
    tensor.data_type = type;
    tensor.dims = n;
    tensor.n_dims = 1;
    return tensor;
}

static struct ls_onnx_array read_whole(const Onnx__TensorProto *tensor, const char *path)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_onnx_array array;
    if (ls_onnx_tensor_read(tensor, path, &array, error) != 0)
        fail_msg("%s", error->problems[0].message);
    free(error);
    return array;
}

static void must_fail(const Onnx__TensorProto *tensor, const char *path, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_onnx_array array;
    assert_int_equal(ls_onnx_tensor_read(tensor, path, &array, error), LOCKSTEP_WEIGHTS);
    ls_onnx_array_free(&array);
    if (strstr(error->problems[0].message, words) == NULL)
        fail_msg("'%s' does not say '%s'", error->problems[0].message, words);
    free(error);
}

static void expect(const Onnx__TensorProto *tensor, const float *floats, const int64_t *integers)
{
    float out[8];
    struct ls_onnx_array array = read_whole(tensor, "m.onnx");
    ls_onnx_array_floats(&array, out);
    for (size_t i = 0; i < array.count; i++) {
        assert_true(out[i] == floats[i]);
        assert_int_equal(ls_onnx_array_integer(&array, i), integers[i]);
    }
    ls_onnx_array_free(&array);
}

static void lists_of_all_types_are_read(void **state)
{
    (void)state;
    int64_t three = 3;
    Onnx__TensorProto tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &three);
    tensor.n_float_data = 3;
    tensor.float_data = (float[]){1.5F, -2.75F, 3e38F};
    expect(&tensor, (float[]){1.5F, -2.75F, 3e38F}, (int64_t[]){1, -2, INT64_MIN});
    tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE, &three);
    tensor.n_double_data = 3;
    tensor.double_data = (double[]){0.1, -7.9, 1e15};
    expect(&tensor, (float[]){0.1F, -7.9F, 1e15F}, (int64_t[]){0, -7, 1000000000000000});
    tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &three);
    tensor.n_int64_data = 3;
    tensor.int64_data = (int64_t[]){-1, INT64_MAX, 5};
    expect(&tensor, (float[]){-1, 9223372036854775808.0F, 5}, (int64_t[]){-1, INT64_MAX, 5});
    tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__UINT64, &three);
    tensor.n_uint64_data = 3;
    tensor.uint64_data = (uint64_t[]){1, UINT64_MAX, 5};
    expect(&tensor, (float[]){1, 18446744073709551616.0F, 5}, (int64_t[]){1, INT64_MIN, 5});
    tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__UINT32, &three);
    tensor.n_uint64_data = 3;
    tensor.uint64_data = (uint64_t[]){1, UINT32_MAX, 5};
    expect(&tensor, (float[]){1, 4294967296.0F, 5}, (int64_t[]){1, UINT32_MAX, 5});
    const int32_t narrow[] = {
        ONNX__TENSOR_PROTO__DATA_TYPE__INT32, ONNX__TENSOR_PROTO__DATA_TYPE__INT16,
        ONNX__TENSOR_PROTO__DATA_TYPE__INT8, ONNX__TENSOR_PROTO__DATA_TYPE__UINT16,
        ONNX__TENSOR_PROTO__DATA_TYPE__UINT8};
    for (size_t i = 0; i < 5; i++) {
        const int first = i < 3 ? -100 : 100;
        tensor = row(narrow[i], &three);
        tensor.n_int32_data = 3;
        tensor.int32_data = (int32_t[]){first, 0, 127};
        expect(&tensor, (float[]){(float)first, 0, 127}, (int64_t[]){first, 0, 127});
    }
    tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, &three);
    tensor.n_int32_data = 3;
    tensor.int32_data = (int32_t[]){1, 0, 1};
    expect(&tensor, (float[]){1, 0, 1}, (int64_t[]){1, 0, 1});
    tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, &three);
    tensor.n_int32_data = 3;
    tensor.int32_data = (int32_t[]){0x3e00, 0xc000, 0x7bff}; /* their bits */
    expect(&tensor, (float[]){1.5F, -2, 65504}, (int64_t[]){1, -2, 65504});
    tensor.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
    tensor.int32_data = (int32_t[]){0x3fc0, 0xc000, 0x4300};
    expect(&tensor, (float[]){1.5F, -2, 128}, (int64_t[]){1, -2, 128});
}

static void raw_bytes_and_single_numbers_are_read(void **state)
{
    (void)state;
    int64_t two = 2;
    Onnx__TensorProto tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__INT16, &two);
    uint8_t bytes[] = {0xff, 0xff, 2, 1};
    tensor.has_raw_data = 1;
    tensor.raw_data = (ProtobufCBinaryData){4, bytes};
    expect(&tensor, (float[]){-1, 258}, (int64_t[]){-1, 258});
    tensor.n_dims = 0; /* one number */
    must_fail(&tensor, "m.onnx", "takes 2 bytes, but has 4");
    tensor.raw_data.len = 2;
    expect(&tensor, (float[]){-1}, (int64_t[]){-1});
    two = 0;
    tensor.n_dims = 1;
    tensor.raw_data.len = 0;
    struct ls_onnx_array array = read_whole(&tensor, "m.onnx");
    assert_int_equal(array.count, 0);
    ls_onnx_array_floats(&array, NULL);
    ls_onnx_array_free(&array);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    int64_t n = 2;
    Onnx__TensorProto tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__INT8, &n);
    tensor.n_int32_data = 2;
    tensor.int32_data = (int32_t[]){1, 128};
    must_fail(&tensor, "m.onnx", "number 1 of tensor 'w' is none of type I8: 128");
    tensor.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
    must_fail(&tensor, "m.onnx", "is none of type BOOL");
    tensor.has_raw_data = 1;
    tensor.raw_data = (ProtobufCBinaryData){2, (uint8_t[]){1, 2}};
    must_fail(&tensor, "m.onnx", "is none of type BOOL: 2");
    tensor.has_raw_data = 0;
    tensor.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__UINT16;
    tensor.n_int32_data = 1;
    must_fail(&tensor, "m.onnx", "of 2 numbers has 1");
    tensor.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
    must_fail(&tensor, "m.onnx", "a type that is not read");
    tensor.data_type = 999;
    must_fail(&tensor, "m.onnx", "number 999");
    tensor.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    n = -1;
    must_fail(&tensor, "m.onnx", "negative extent");
    int64_t huge[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    tensor.dims = huge;
    tensor.n_dims = 2;
    must_fail(&tensor, "m.onnx", "too large");
    int64_t many[LS_RANK_MAX + 1] = {0};
    tensor.dims = many;
    tensor.n_dims = LS_RANK_MAX + 1;
    must_fail(&tensor, "m.onnx", "axes");
}

/* One entry of external data a key, in the order location, offset, length. */
static Onnx__StringStringEntryProto entries[3];
static Onnx__StringStringEntryProto *list[3];

static void set_external(Onnx__TensorProto *tensor, const char *location, const char *offset,
                         const char *length)
{
    const char *keys[] = {"location", "offset", "length"}, *values[] = {location, offset, length};
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    tensor->has_data_location = 1;
    tensor->external_data = list;
    tensor->n_external_data = 0;
    for (size_t i = 0; i < 3; i++) {
        if (values[i] == NULL)
            continue;
        Onnx__StringStringEntryProto entry = ONNX__STRING_STRING_ENTRY_PROTO__INIT;
        entry.key = (char *)(uintptr_t)keys[i];
        entry.value = (char *)(uintptr_t)values[i];
        entries[i] = entry;
        list[tensor->n_external_data++] = &entries[i];
    }
}

static void external_data_stay_in_their_folder(void **state)
{
    (void)state;
    int64_t two = 2;
    char model[512], file[600], link_path[600];
    snprintf(model, sizeof model, "%s", ls_test_path("m.onnx"));
    snprintf(file, sizeof file, "%s.data", model);
    const float numbers[] = {9, 1, 2};
    ls_test_write(file, numbers, sizeof numbers);
    Onnx__TensorProto tensor = row(ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &two);
    const char *name = strrchr(file, '/') + 1;
    set_external(&tensor, name, "4", "8");
    struct ls_onnx_array array = read_whole(&tensor, model);
    assert_memory_equal(array.numbers, numbers + 1, 8);
    ls_onnx_array_free(&array);
    set_external(&tensor, name, "4", NULL);
    array = read_whole(&tensor, model);
    ls_onnx_array_free(&array);
    set_external(&tensor, name, "8", NULL);
    must_fail(&tensor, model, "8 bytes at 8");
    set_external(&tensor, name, "18446744073709551615", NULL);
    must_fail(&tensor, model, "are wanted");
    set_external(&tensor, name, "-4", NULL);
    must_fail(&tensor, model, "external data are");
    set_external(&tensor, name, "4", "12");
    must_fail(&tensor, model, "takes 8 bytes");
    set_external(&tensor, NULL, NULL, NULL);
    must_fail(&tensor, model, "no location");
    const char *outside[] = {"../m.onnx.data", "/etc/passwd", "a/../../b", "", ".", "a//b", "a/"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        set_external(&tensor, outside[i], NULL, NULL);
        must_fail(&tensor, model, "outside of the model's folder");
    }
    snprintf(link_path, sizeof link_path, "%s.link", model);
    (void)unlink(link_path);
    assert_int_equal(symlink(file, link_path), 0);
    set_external(&tensor, strrchr(link_path, '/') + 1, NULL, NULL);
    must_fail(&tensor, model, "a link");
    assert_int_equal(unlink(link_path), 0);
    assert_int_equal(unlink(file), 0);
}

static void written_tensors_are_read(void **state)
{
    (void)state;
    struct ls_arena *arena = ls_arena_new(1 << 20);
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    const struct ls_shape shape = {.rank = 2, .dim = {2, 3}};
    const int64_t integers[] = {-1, 7};
    Onnx__TensorProto *tensor = ls_onnx_new_floats(arena, "w", &shape, numbers);
    struct ls_onnx_array array = read_whole(tensor, "m.onnx");
    assert_true(ls_shape_equal(&array.shape, &shape));
    assert_int_equal(array.type, LS_F32);
    assert_memory_equal(array.numbers, numbers, sizeof numbers);
    ls_onnx_array_free(&array);
    array = read_whole(ls_onnx_new_integers(arena, "i", integers, 2), "m.onnx");
    assert_int_equal(array.type, LS_I64);
    assert_int_equal(ls_onnx_array_integer(&array, 0), -1);
    ls_onnx_array_free(&array);
    ls_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_all_types_are_read),
        cmocka_unit_test(raw_bytes_and_single_numbers_are_read),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(external_data_stay_in_their_folder),
        cmocka_unit_test(written_tensors_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
