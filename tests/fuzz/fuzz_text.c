/* Fuzzes the readers of definitions: any bytes as a net and as a solver, in text and in binary
 * form. What is accepted must survive a round trip; what is refused must be refused with a reason.
 * Accepted nets are upgraded and filtered, too.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schema/binary.h"
#include "schema/fields.h"
#include "schema/net.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Canonical text is a fixed point of reading and writing. */
static void round_trip(const ProtobufCMessage *message)
{
    struct ls_error error = {0};
    struct ls_text text = {0}, again = {0};
    struct ls_definition *back;
    ls_text_write(message, &text);
    must(!text.failed);
    must(ls_text_read("again", text.data, text.length, message->descriptor, &back, &error) == 0);
    ls_text_write(back->message, &again);
    must(text.length == again.length && memcmp(text.data, again.data, text.length) == 0);
    ls_text_free(&text);
    ls_text_free(&again);
    ls_definition_free(back);
}

static void filter(struct ls_definition *definition, Lockstep__Phase phase)
{
    struct ls_error error = {0};
    struct ls_net_definition net;
    static const char *const stages[] = {"a"};
    struct ls_net_state state = {.phase = phase, .level = 1, .stages = stages, .stage_count = 1};
    int status = ls_net_filter(definition, (Lockstep__NetParameter *)definition->message, &state,
                               &net, &error);
    must((status == 0) == (error.count == 0));
    if (status != 0)
        return;
    char place[LS_PLACE_MAX];
    for (size_t i = 0; i < net.net->n_layer; i++)
        must(ls_place(definition, net.net->layer[i], "name", place, sizeof place) == place);
}

static void use(struct ls_definition *definition)
{
    struct ls_error error = {0};
    round_trip(definition->message);
    int status = 0;
    if (definition->message->descriptor == &lockstep__net_parameter__descriptor)
        status = ls_net_upgrade(definition, (Lockstep__NetParameter *)definition->message, &error);
    else
        status =
            ls_solver_upgrade(definition, (Lockstep__SolverParameter *)definition->message, &error);
    must((status == 0) == (error.count == 0));
    if (status != 0)
        return;
    round_trip(definition->message);
    if (definition->message->descriptor == &lockstep__net_parameter__descriptor) {
        filter(definition, LOCKSTEP__PHASE__TRAIN);
        filter(definition, LOCKSTEP__PHASE__TEST);
    }
}

static void read_as(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size)
{
    struct ls_definition *definition;
    for (int binary = 0; binary < 2; binary++) {
        struct ls_error error = {0};
        int status =
            binary
                ? ls_binary_read("input", bytes, size, type, LOCKSTEP_WEIGHTS, &definition, &error)
                : ls_text_read("input", (const char *)bytes, size, type, &definition, &error);
        must((status == 0) == (definition != NULL));
        must((status == 0) == (error.count == 0));
        if (status == 0)
            use(definition);
        ls_definition_free(definition);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    read_as(&lockstep__net_parameter__descriptor, bytes, size);
    read_as(&lockstep__solver_parameter__descriptor, bytes, size);
    ls_text_affinity((const char *)bytes, size, &lockstep__net_parameter__descriptor);
    return 0;
}
