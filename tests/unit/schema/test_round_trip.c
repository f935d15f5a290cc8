/* Messages read back as they were written: random messages of every type, in text and in binary
 * form.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "all_types.h"
#include "any_message.h"
#include "base/memory.h"
#include "schema/binary.h"
#include "schema/text_format.h"

enum { ROUNDS = 40 };

static void must_succeed(int status, const struct ls_error *error)
{
    char text[4096];
    if (status == 0)
        return;
    ls_error_format(error, text, sizeof text);
    fail_msg("%s", text);
}

/* Exactly the same: the same canonical text, which says also what is set. */
static void must_be_same(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    struct ls_text text_a = {0}, text_b = {0};
    ls_text_write(a, &text_a);
    ls_text_write(b, &text_b);
    assert_string_equal(text_a.data, text_b.data);
    assert_true(ls_message_equal(a, b));
    ls_text_free(&text_a);
    ls_text_free(&text_b);
}

static void through_text(const ProtobufCMessage *message)
{
    struct ls_error error = {0};
    struct ls_text text = {0};
    struct ls_definition *back;
    ls_text_write(message, &text);
    assert_false(text.failed);
    must_succeed(ls_text_read("any", text.data, text.length, message->descriptor, &back, &error),
                 &error);
    must_be_same(message, back->message);
    ls_definition_free(back);
    ls_text_free(&text);
}

static void through_binary(const ProtobufCMessage *message)
{
    struct ls_error error = {0};
    uint8_t *bytes, *again;
    size_t length, length_again;
    struct ls_definition *back;
    must_succeed(ls_binary_write(message, &bytes, &length, &error), &error);
    must_succeed(
        ls_binary_read("any", bytes, length, message->descriptor, LOCKSTEP_WEIGHTS, &back, &error),
        &error);
    must_be_same(message, back->message);
    must_succeed(ls_binary_write(back->message, &again, &length_again, &error), &error);
    assert_int_equal(length, length_again);
    assert_memory_equal(bytes, again, length);
    ls_definition_free(back);
    ls_free(bytes);
    ls_free(again);
}

static void every_type_round_trips(void **state)
{
    (void)state;
    struct all_types all = all_types();
    assert_true(all.count >= 64);
    for (size_t t = 0; t < all.count; t++)
        for (uint64_t round = 0; round < ROUNDS; round++) {
            struct any any = {.arena = ls_arena_new(64 << 20),
                              .seed = ls_random_key(round, LS_RANDOM_TEST, all.type[t]->name)};
            const ProtobufCMessage *message = any_message(&any, all.type[t]);
            through_text(message);
            through_binary(message);
            ls_arena_free(any.arena);
        }
}

/* The binary reader relies on this: protobuf-c descends as deep as the schema. */
static int depth_of(const ProtobufCMessageDescriptor *type, int above)
{
    int deepest = 0;
    assert_true(above < 16);
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE) {
            int depth = depth_of(type->fields[i].descriptor, above + 1);
            deepest = depth > deepest ? depth : deepest;
        }
    return deepest + 1;
}

static void no_type_contains_itself(void **state)
{
    (void)state;
    struct all_types all = all_types();
    for (size_t t = 0; t < all.count; t++)
        assert_true(depth_of(all.type[t], 0) <= 11);
}

static void unknown_fields_are_dropped(void **state)
{
    (void)state;
    /* name: "a", then field 5000 (varint 7) and field 5001 (bytes "xyz") */
    static const uint8_t bytes[] = {0x0a, 1,    'a', 0xc0, 0xb8, 2,   7,
                                    0xca, 0xb8, 2,   3,    'x',  'y', 'z'};
    struct ls_error error = {0};
    struct ls_definition *net;
    must_succeed(ls_binary_read("net", bytes, sizeof bytes, &lockstep__net_parameter__descriptor,
                                LOCKSTEP_WEIGHTS, &net, &error),
                 &error);
    uint8_t *again;
    size_t length;
    must_succeed(ls_binary_write(net->message, &again, &length, &error), &error);
    assert_int_equal(length, 3);
    assert_memory_equal(again, bytes, 3);
    ls_free(again);
    ls_definition_free(net);
}

static void damaged_binary_is_refused(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x0a, 100, 'a'};
    struct ls_error error = {0};
    struct ls_definition *net;
    int status =
        ls_binary_read("w.caffemodel", bytes, sizeof bytes, &lockstep__net_parameter__descriptor,
                       LOCKSTEP_WEIGHTS, &net, &error);
    assert_int_equal(status, LOCKSTEP_WEIGHTS);
    assert_null(net);
    char text[512];
    ls_error_format(&error, text, sizeof text);
    assert_non_null(strstr(text, "w.caffemodel: this is not a NetParameter in binary form"));
}

static void canonical_text_looks_like_this(void **state)
{
    (void)state;
    static const char given[] = "type: 'Adam' base_lr: 1e-3 stepvalue: [5, 7] net: \"a\\tb\\\"\"\n"
                                "weight_average < decay: .5 > momentum: -0 solver_mode: 0";
    static const char wanted[] = "base_lr: 0.001\nmomentum: -0\nsolver_mode: CPU\n"
                                 "net: \"a\\tb\\\"\"\nstepvalue: 5\nstepvalue: 7\ntype: \"Adam\"\n"
                                 "weight_average {\n  decay: 0.5\n}\n";
    struct ls_error error = {0};
    struct ls_definition *solver;
    struct ls_text text = {0};
    must_succeed(ls_text_read("s", given, strlen(given), &lockstep__solver_parameter__descriptor,
                              &solver, &error),
                 &error);
    ls_text_write(solver->message, &text);
    assert_string_equal(text.data, wanted);
    ls_text_free(&text);
    ls_definition_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_round_trips),
        cmocka_unit_test(no_type_contains_itself),
        cmocka_unit_test(unknown_fields_are_dropped),
        cmocka_unit_test(damaged_binary_is_refused),
        cmocka_unit_test(canonical_text_looks_like_this),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
