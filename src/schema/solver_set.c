/* Overrides from the command line: "--set base_lr=0.02".
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "schema/fields.h"
#include "schema/frameworks.h"
#include "schema/places.h"
#include "schema/solver_parts.h"
#include "schema/suggest.h"
#include "schema/text_format.h"

/* Of each pair one field is given; setting one unsets the other. */
static const char *const pairs[][2] = {
    {"max_iter", "max_epoch"},
    {"stepsize", "step_epoch"},
    {"stepvalue", "stepvalue_epoch"},
    {"test_interval", "test_interval_epoch"},
    {"snapshot", "snapshot_epoch"},
    {"warmup_iter", "warmup_epoch"},
    {"net", "net_param"},
    {"train_net", "train_net_param"},
    {"type", "solver_type"},
};

/* As if the file had not said anything about a field: the option's place is the only one. */
static void unset(struct ls_definition *definition, ProtobufCMessage *message,
                  const ProtobufCFieldDescriptor *field)
{
    size_t count = ls_field_count(message, field);
    ls_field_clear(message, field);
    ls_places_forget(definition->places, message, field->id, count > 0 ? count : 1);
}

/* "--set max_epoch=3" means that max_iter of the file no longer counts. */
static void unset_other(struct ls_definition *definition, ProtobufCMessage *solver,
                        const char *name)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (size_t k = 0; k < 2; k++)
            if (strcmp(name, pairs[i][k]) == 0)
                unset(definition, solver, ls_field_named(solver->descriptor, pairs[i][1 - k]));
}

/* Reports a part of an option that is not a field of `type`. */
static int unknown(struct ls_solver_reading *reading, const char *source,
                   const ProtobufCMessageDescriptor *type, const char *name)
{
    const char *names[128];
    char meant[LS_MEANT_MAX];
    size_t count = 0;
    for (unsigned i = 0; i < type->n_fields && count < 128; i++)
        names[count++] = type->fields[i].name;
    struct ls_text hint = {0};
    if (ls_framework_field(type, name, &hint))
        meant[0] = '\0';
    else if (ls_did_you_mean(name, names, count, meant)[0] == '\0')
        ls_text_add(&hint,
                    "--set overrides fields of the solver, and batch=N the batch_size of the "
                    "data trained on; other fields of layers are changed in the net's file");
    int status = ls_fail(reading->error, LOCKSTEP_DEFINITION, source, hint.data,
                         "unknown field '%s' in %s%s", name, type->short_name, meant);
    ls_text_free(&hint);
    return status;
}

/* The message that a singular field holds, made if there is none. */
static ProtobufCMessage *child_of(struct ls_definition *definition, ProtobufCMessage *message,
                                  const ProtobufCFieldDescriptor *field)
{
    if (ls_field_count(message, field) > 0)
        return *(ProtobufCMessage *const *)ls_field_at(message, field, 0);
    ProtobufCMessage *child = ls_arena_message(definition->arena, field->descriptor);
    if (child == NULL || !ls_field_put(definition->arena, message, field, &child))
        return NULL;
    return child;
}

/* Whether a value is to be put between quotes: of a string, if it has none. */
static bool wants_quotes(const ProtobufCFieldDescriptor *field, const char *value)
{
    bool list = ls_field_is_repeated(field) && *value == '[';
    return field->type == PROTOBUF_C_TYPE_STRING && *value != '"' && *value != '\'' && !list;
}

/* Reads the value as the text reader would behind "field:". What was there before goes. */
static int assign(struct ls_solver_reading *reading, ProtobufCMessage *message,
                  const ProtobufCFieldDescriptor *field, const char *value, const char *source)
{
    struct ls_definition *definition = reading->out->definition;
    struct ls_text text = {0};
    unset(definition, message, field);
    ls_text_format(&text, "%s: ", field->name);
    if (wants_quotes(field, value))
        ls_text_write_string(value, strlen(value), &text);
    else
        ls_text_add(&text, value);
    int status = text.failed ? ls_fail_memory(reading->error, "an option")
                             : ls_text_merge(definition, message, source, true, text.data,
                                             text.length, reading->error);
    ls_text_free(&text);
    return status;
}

int ls_solver_set(struct ls_solver_reading *reading, const char *set)
{
    char source[LS_PLACE_MAX], name[96];
    snprintf(source, sizeof source, "--set %s", set);
    struct ls_definition *definition = reading->out->definition;
    ProtobufCMessage *message = &reading->solver->base;
    const char *equals = strchr(set, '='), *at = set;
    if (equals == NULL || equals == set)
        return ls_fail(reading->error, LOCKSTEP_DEFINITION, source, "write --set base_lr=0.02",
                       "an override is a field, '=' and a value");
    if (strncmp(set, "batch=", 6) == 0)
        return ls_solver_take_batch(reading, source, equals + 1);
    const bool only_unset = equals[-1] == '?';
    for (;;) { /* one name of the path "field.field=" a round */
        size_t length = strcspn(at, ".="), named = length;
        if (only_unset && at + length == equals)
            named--;
        snprintf(name, sizeof name, "%.*s", named < sizeof name ? (int)named : 90, at);
        const ProtobufCFieldDescriptor *field = ls_field_named(message->descriptor, name);
        if (field == NULL)
            return unknown(reading, source, message->descriptor, name);
        if (message == &reading->solver->base && !only_unset)
            unset_other(definition, message, name);
        at += length + 1;
        if (at > equals && only_unset && ls_field_count(message, field) > 0)
            return 0;
        if (at > equals)
            return assign(reading, message, field, at, source);
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || ls_field_is_repeated(field))
            return ls_fail(reading->error, LOCKSTEP_DEFINITION, source, NULL,
                           "field '%s' has no fields of its own", name);
        message = child_of(definition, message, field);
        if (message == NULL)
            return ls_fail_memory(reading->error, "an option");
    }
}
