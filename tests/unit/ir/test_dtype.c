/* Element types: sizes, names, and what tensors of them take.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "ir/value.h"

/* The names are those of safetensors, whose specification gives the bits of each. */
static void sizes_are_those_that_names_say(void **state)
{
    (void)state;
    static const struct {
        enum ls_dtype type;
        const char *name;
        size_t bits;
        bool is_float;
    } known[] = {
        {LS_F32, "F32", 32, true},         {LS_F64, "F64", 64, true},
        {LS_F16, "F16", 16, true},         {LS_BF16, "BF16", 16, true},
        {LS_I8, "I8", 8, false},           {LS_I32, "I32", 32, false},
        {LS_U8, "U8", 8, false},           {LS_I16, "I16", 16, false},
        {LS_I64, "I64", 64, false},        {LS_U16, "U16", 16, false},
        {LS_U32, "U32", 32, false},        {LS_U64, "U64", 64, false},
        {LS_BOOL, "BOOL", 8, false},       {LS_F8_E4M3, "F8_E4M3", 8, false},
        {LS_F8_E5M2, "F8_E5M2", 8, false},
    };
    assert_int_equal(sizeof known / sizeof *known, LS_DTYPES);
    for (size_t i = 0; i < LS_DTYPES; i++) {
        enum ls_dtype found = LS_DTYPES;
        assert_string_equal(ls_dtype_name(known[i].type), known[i].name);
        assert_int_equal(ls_dtype_size(known[i].type) * 8, known[i].bits);
        assert_int_equal(ls_dtype_is_float(known[i].type), known[i].is_float);
        assert_true(ls_dtype_find(known[i].name, &found));
        assert_int_equal(found, known[i].type);
    }
    enum ls_dtype none;
    assert_false(ls_dtype_find("F33", &none) || ls_dtype_find("", &none) ||
                 ls_dtype_find("f32", &none));
}

static void bytes_follow_type_and_layout(void **state)
{
    (void)state;
    struct ls_value value = {.shape = {.rank = 4, .dim = {2, 20, 3, 5}}};
    assert_int_equal(ls_value_bytes(&value), 4 * 600);
    value.type = LS_BF16;
    assert_int_equal(ls_value_bytes(&value), 2 * 600);
    value.layout = &ls_layout_blocked16;
    assert_int_equal(ls_value_bytes(&value), 2 * 2 * 32 * 15);
    value.type = LS_F64;
    assert_int_equal(ls_value_bytes(&value), 8 * 2 * 32 * 15);
    value.type = LS_U8;
    value.layout = &ls_layout_plain;
    assert_int_equal(ls_value_bytes(&value), 600);
    struct ls_parameter parameter = {.shape = {.rank = 2, .dim = {3, 10}}};
    assert_int_equal(ls_parameter_bytes(&parameter), 4 * 30);
    parameter.layout = &ls_layout_blocked8;
    assert_int_equal(ls_parameter_bytes(&parameter), 4 * 3 * 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_that_names_say),
        cmocka_unit_test(bytes_follow_type_and_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
