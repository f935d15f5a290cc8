/* The table of layer types.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_layer.h"
#include "schema/forks.h"
#include "schema/frameworks.h"

static void sorted_and_found(void **state)
{
    (void)state;
    size_t count = 0;
    for (; ls_layer_types[count] != NULL; count++) {
        const struct ls_layer_type *type = ls_layer_types[count];
        assert_ptr_equal(ls_layer_type_find(type->type), type);
        if (count > 0)
            assert_true(strcmp(ls_layer_types[count - 1]->type, type->type) < 0);
    }
    assert_true(count >= 40);
    assert_null(ls_layer_type_find("convolution"));
    assert_null(ls_layer_type_find(""));
}

/* What a type says of itself is possible, and its parameter is a message of LayerParameter. */
static void types_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; ls_layer_types[i] != NULL; i++) {
        const struct ls_layer_type *type = ls_layer_types[i];
        assert_non_null(type->setup);
        assert_non_null(type->forward);
        assert_true(type->bottoms_max < 0 || type->bottoms_max >= type->bottoms_min);
        assert_true(type->tops_max < 0 || type->tops_max >= type->tops_min);
        assert_int_equal(type->is_loss, type->auto_tops == 1);
        if (type->is_loss)
            assert_true(type->backward != NULL && type->bottoms_min >= 2);
        if (type->parameter == NULL)
            continue;
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(
            &lockstep__layer_parameter__descriptor, type->parameter);
        assert_non_null(field);
        assert_int_equal(field->type, PROTOBUF_C_TYPE_MESSAGE);
    }
}

/* What is said of types that are not there is said of no type that is. */
static void hints(void **state)
{
    (void)state;
    for (const struct ls_fork_type *fork = ls_fork_types; fork->type != NULL; fork++)
        assert_null(ls_layer_type_find(fork->type));
    for (size_t i = 0; ls_layer_types[i] != NULL; i++)
        if (ls_framework_type(ls_layer_types[i]->type) != NULL)
            fail_msg("%s", ls_layer_types[i]->type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorted_and_found),
        cmocka_unit_test(types_are_sound),
        cmocka_unit_test(hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
