/* The public interface: older definitions, made new.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "schema/binary.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"

/* Whether a net, or one within a solver, has blocks: what is written has their layers instead. */
static bool has_blocks(const ProtobufCMessage *message)
{
    if (message->descriptor == &lockstep__net_parameter__descriptor)
        return ((const Lockstep__NetParameter *)message)->n_block > 0;
    const Lockstep__SolverParameter *solver = (const Lockstep__SolverParameter *)message;
    bool found = (solver->net_param != NULL && solver->net_param->n_block > 0) ||
                 (solver->train_net_param != NULL && solver->train_net_param->n_block > 0);
    for (size_t i = 0; i < solver->n_test_net_param; i++)
        found |= solver->test_net_param[i]->n_block > 0;
    return found;
}

/* `head` stands in front of a text. */
static int write_message(const ProtobufCMessage *message, int binary, const char *head,
                         const char *path, struct ls_error *error)
{
    if (binary) {
        uint8_t *bytes;
        size_t length;
        LS_TRY(ls_binary_write(message, &bytes, &length, error));
        int status = ls_atomic_replace(path, bytes, length, error);
        ls_free(bytes);
        return status;
    }
    struct ls_text text = {0};
    ls_text_add(&text, head);
    ls_text_write(message, &text);
    int status = text.failed ? ls_fail_memory(error, "a definition")
                             : ls_atomic_replace(path, text.data != NULL ? text.data : "",
                                                 text.length, error);
    ls_text_free(&text);
    return status;
}

static const char *head_of(const ProtobufCMessage *message)
{
    return has_blocks(message) ? "# The layers of blocks are written out, copy by copy.\n" : "";
}

int lockstep_upgrade_net(const char *from, const char *to, int binary, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_definition *definition;
    LS_TRY(ls_definition_read_file(from, &lockstep__net_parameter__descriptor, LOCKSTEP_DEFINITION,
                                   &definition, inner));
    const char *head = head_of(definition->message);
    int status = ls_net_upgrade(definition, (Lockstep__NetParameter *)definition->message, inner);
    if (status == 0)
        status = write_message(definition->message, binary, head, to, inner);
    ls_definition_free(definition);
    return status;
}

int lockstep_upgrade_solver(const char *from, const char *to, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_definition *definition;
    LS_TRY(ls_definition_read_file(from, &lockstep__solver_parameter__descriptor,
                                   LOCKSTEP_DEFINITION, &definition, inner));
    const char *head = head_of(definition->message);
    int status =
        ls_solver_upgrade(definition, (Lockstep__SolverParameter *)definition->message, inner);
    if (status == 0)
        status = write_message(definition->message, 0, head, to, inner);
    ls_definition_free(definition);
    return status;
}
