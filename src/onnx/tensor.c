/* SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/tensor.h"

#include <string.h>

#include "base/memory.h"
#include "ir/convert.h"
#include "onnx/external.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files hold numbers as memory does");

/* By TensorProto.DataType; a type of ours that stands at another number is none of ours. */
static const struct type {
    int32_t number;
    enum ls_dtype type;
} types[] = {
    {ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, LS_F32},
    {ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, LS_U8},
    {ONNX__TENSOR_PROTO__DATA_TYPE__INT8, LS_I8},
    {ONNX__TENSOR_PROTO__DATA_TYPE__UINT16, LS_U16},
    {ONNX__TENSOR_PROTO__DATA_TYPE__INT16, LS_I16},
    {ONNX__TENSOR_PROTO__DATA_TYPE__INT32, LS_I32},
    {ONNX__TENSOR_PROTO__DATA_TYPE__INT64, LS_I64},
    {ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, LS_BOOL},
    {ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, LS_F16},
    {ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE, LS_F64},
    {ONNX__TENSOR_PROTO__DATA_TYPE__UINT32, LS_U32},
    {ONNX__TENSOR_PROTO__DATA_TYPE__UINT64, LS_U64},
    {ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16, LS_BF16},
};

bool ls_onnx_type(int32_t data_type, enum ls_dtype *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == data_type) {
            *type = types[i].type;
            return true;
        }
    return false;
}

static const char *name_of(const Onnx__TensorProto *tensor)
{
    return tensor->name != NULL ? tensor->name : "";
}

static int read_shape(const Onnx__TensorProto *tensor, const char *path,
                      struct ls_onnx_array *array, struct ls_error *error)
{
    if (tensor->n_dims > LS_RANK_MAX)
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                       "tensor '%.200s' has %zu axes; at most %d are read", name_of(tensor),
                       tensor->n_dims, LS_RANK_MAX);
    array->shape.rank = (int)tensor->n_dims;
    for (size_t i = 0; i < tensor->n_dims; i++)
        array->shape.dim[i] = tensor->dims[i];
    if (!ls_shape_valid(&array->shape, true))
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                       "tensor '%.200s' has a negative extent, or is too large", name_of(tensor));
    array->count = (size_t)ls_shape_size(&array->shape);
    return 0;
}

/* The lists that numbers may stand in. A list has elements of its own type; those of smaller types
 * are narrowed. */
struct list {
    const void *items;
    size_t count, size; /* of an item, in bytes */
};

static struct list list_of(const Onnx__TensorProto *tensor, enum ls_dtype type)
{
    switch (type) {
    case LS_F32:
        return (struct list){tensor->float_data, tensor->n_float_data, ls_dtype_size(LS_F32)};
    case LS_F64:
        return (struct list){tensor->double_data, tensor->n_double_data, sizeof(double)};
    case LS_I64:
        return (struct list){tensor->int64_data, tensor->n_int64_data, sizeof(int64_t)};
    case LS_U32:
    case LS_U64:
        return (struct list){tensor->uint64_data, tensor->n_uint64_data, sizeof(uint64_t)};
    default:
        return (struct list){tensor->int32_data, tensor->n_int32_data, sizeof(int32_t)};
    }
}

/* Whether a number of a list is one of `type`, which is smaller; 16-bit floats are their bits. */
static bool fits(int64_t number, enum ls_dtype type)
{
    const int bits = 8 * (int)ls_dtype_size(type);
    if (type == LS_BOOL)
        return number == 0 || number == 1;
    if (type == LS_I8 || type == LS_I16)
        return number >= -(INT64_C(1) << (bits - 1)) && number < INT64_C(1) << (bits - 1);
    return number >= 0 && number < INT64_C(1) << bits;
}

static int narrow(const Onnx__TensorProto *tensor, const char *path, const struct list *list,
                  struct ls_onnx_array *array, struct ls_error *error)
{
    const size_t size = ls_dtype_size(array->type);
    unsigned char *out = ls_alloc(array->count, size);
    array->owned = out;
    array->numbers = out;
    if (out == NULL)
        return ls_fail_memory(error, "a tensor");
    for (size_t i = 0; i < array->count; i++) {
        const int64_t number = list->size == sizeof(int32_t)
                                   ? ((const int32_t *)list->items)[i]
                                   : (int64_t)((const uint64_t *)list->items)[i];
        if (!fits(number, array->type))
            return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                           "number %zu of tensor '%.200s' is none of type %s: %lld", i,
                           name_of(tensor), ls_dtype_name(array->type), (long long)number);
        memcpy(out + i * size, &number, size);
    }
    return 0;
}

static int read_list(const Onnx__TensorProto *tensor, const char *path, struct ls_onnx_array *array,
                     struct ls_error *error)
{
    const struct list list = list_of(tensor, array->type);
    if (list.count != array->count)
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                       "tensor '%.200s' of %zu numbers has %zu", name_of(tensor), array->count,
                       list.count);
    if (list.size != ls_dtype_size(array->type))
        return narrow(tensor, path, &list, array, error);
    array->numbers = list.items;
    return 0;
}

/* A byte of BOOL is 0 or 1. */
static int check_bools(const Onnx__TensorProto *tensor, const char *path,
                       const struct ls_onnx_array *array, struct ls_error *error)
{
    const unsigned char *bytes = array->numbers;
    for (size_t i = 0; i < array->count && array->type == LS_BOOL; i++)
        if (bytes[i] > 1)
            return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                           "number %zu of tensor '%.200s' is none of type %s: %d", i,
                           name_of(tensor), ls_dtype_name(array->type), bytes[i]);
    return 0;
}

int ls_onnx_tensor_read(const Onnx__TensorProto *tensor, const char *path,
                        struct ls_onnx_array *array, struct ls_error *error)
{
    *array = (struct ls_onnx_array){.type = LS_F32};
    if (!ls_onnx_type(tensor->data_type, &array->type))
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                       "the numbers of tensor '%.200s' are of a type that is not read (number %d "
                       "of ONNX)",
                       name_of(tensor), (int)tensor->data_type);
    LS_TRY(read_shape(tensor, path, array, error));
    const size_t bytes = array->count * ls_dtype_size(array->type);
    if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        LS_TRY(ls_onnx_external_read(tensor, path, bytes, &array->owned, error));
        array->numbers = array->owned;
    } else if (tensor->has_raw_data && (tensor->raw_data.len > 0 || bytes == 0)) {
        if (tensor->raw_data.len != bytes)
            return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                           "tensor '%.200s' takes %zu bytes, but has %zu", name_of(tensor), bytes,
                           tensor->raw_data.len);
        array->numbers = tensor->raw_data.data;
    } else {
        LS_TRY(read_list(tensor, path, array, error));
    }
    return check_bools(tensor, path, array, error);
}

void ls_onnx_array_free(struct ls_onnx_array *array)
{
    ls_free(array->owned);
    *array = (struct ls_onnx_array){.type = LS_F32};
}

static int64_t cut_off(double number)
{
    const double limit = 9223372036854775808.0; /* 2^63 */
    return number > -limit && number < limit ? (int64_t)number : INT64_MIN;
}

int64_t ls_onnx_array_integer(const struct ls_onnx_array *array, size_t i)
{
    const size_t size = ls_dtype_size(array->type);
    const unsigned char *at = (const unsigned char *)array->numbers + i * size;
    uint64_t bits = 0;
    double real;
    memcpy(&bits, at, size);
    switch (array->type) {
    case LS_I8:
        return (int8_t)bits;
    case LS_I16:
        return (int16_t)bits;
    case LS_I32:
        return (int32_t)bits;
    case LS_I64:
        return (int64_t)bits;
    case LS_U64:
        return bits <= INT64_MAX ? (int64_t)bits : INT64_MIN;
    case LS_U8:
    case LS_U16:
    case LS_U32:
    case LS_BOOL:
        return (int64_t)bits;
    default:
        ls_dtype_convert(array->type, at, LS_F64, &real, 1);
        return cut_off(real);
    }
}

void ls_onnx_array_floats(const struct ls_onnx_array *array, float *out)
{
    const size_t size = ls_dtype_size(array->type);
    if (array->count == 0)
        return;
    if (ls_dtype_converts(array->type, LS_F32)) {
        ls_dtype_convert(array->type, array->numbers, LS_F32, out, array->count);
        return;
    }
    for (size_t i = 0; i < array->count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const unsigned char *)array->numbers + i * size, size);
        out[i] = array->type == LS_U64 ? (float)bits : (float)ls_onnx_array_integer(array, i);
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static Onnx__TensorProto *new_tensor(struct ls_arena *arena, const char *name, int32_t type,
                                     const int64_t *dims, int rank, const void *numbers,
                                     size_t bytes)
{
    Onnx__TensorProto *tensor =
        (Onnx__TensorProto *)ls_arena_message(arena, &onnx__tensor_proto__descriptor);
    if (tensor == NULL)
        return NULL;
    tensor->name = ls_arena_copy_string(arena, name);
    tensor->dims = ls_arena_alloc(arena, (size_t)rank + 1, sizeof *tensor->dims);
    if (tensor->name == NULL || tensor->dims == NULL)
        return NULL;
    memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    tensor->n_dims = (size_t)rank;
    tensor->has_data_type = 1;
    tensor->data_type = type;
    tensor->has_raw_data = 1;
    /* protobuf-c has no place for bytes that are only read. */
    tensor->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)numbers};
    return tensor;
}

Onnx__TensorProto *ls_onnx_new_floats(struct ls_arena *arena, const char *name,
                                      const struct ls_shape *shape, const float *numbers)
{
    return new_tensor(arena, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, shape->dim, shape->rank,
                      numbers, (size_t)ls_shape_size(shape) * sizeof *numbers);
}

Onnx__TensorProto *ls_onnx_new_integers(struct ls_arena *arena, const char *name,
                                        const int64_t *numbers, size_t count)
{
    const int64_t dims[] = {(int64_t)count};
    return new_tensor(arena, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, dims, 1, numbers,
                      count * sizeof *numbers);
}
