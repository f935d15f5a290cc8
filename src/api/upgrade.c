/* The public interface: older definitions, made new.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "schema/binary.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"

static int write_message(const ProtobufCMessage *message, int binary, const char *path,
                         struct ls_error *error)
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
    ls_text_write(message, &text);
    int status = text.failed ? ls_fail_memory(error, "a definition")
                             : ls_atomic_replace(path, text.data != NULL ? text.data : "",
                                                 text.length, error);
    ls_text_free(&text);
    return status;
}

int lockstep_upgrade_net(const char *from, const char *to, int binary, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_definition *definition;
    LS_TRY(ls_definition_read_file(from, &lockstep__net_parameter__descriptor, LOCKSTEP_DEFINITION,
                                   &definition, inner));
    int status = ls_net_upgrade(definition, (Lockstep__NetParameter *)definition->message, inner);
    if (status == 0)
        status = write_message(definition->message, binary, to, inner);
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
    int status =
        ls_solver_upgrade(definition, (Lockstep__SolverParameter *)definition->message, inner);
    if (status == 0)
        status = write_message(definition->message, 0, to, inner);
    ls_definition_free(definition);
    return status;
}
