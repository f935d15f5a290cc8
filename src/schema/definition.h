/* A definition: a message that was read from a file, and where in the file each part of it stands.
 *
 * Messages are protobuf-c's structs of proto/lockstep.proto ("lockstep.pb-c.h"). They, their
 * strings and lists belong to the definition and die with it. After reading, a definition is not
 * changed, and any number of threads may look at it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_DEFINITION_H
#define LS_SCHEMA_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "lockstep.pb-c.h" /* IWYU pragma: export */
#include "schema/arena.h"

struct ls_places;

struct ls_definition {
    ProtobufCMessage *message; /* the root, of the type that the reader was asked for */
    char *file;                /* as it was named; ls_resolve_path takes it as `definition` */
    struct ls_arena *arena;    /* owns everything */
    struct ls_places *places;  /* see ls_place */
    const char *warning;       /* what was read over, with its place; NULL: nothing */
};

/* A definition with an empty message of `type` (NULL: none) whose memory is limited to `limit`
 * bytes; NULL when there is no memory. */
struct ls_definition *ls_definition_new(const char *file, size_t limit,
                                        const ProtobufCMessageDescriptor *type);
void ls_definition_free(struct ls_definition *definition);

/* Reads a file in text format, or in binary format if it is not text. Nothing is upgraded yet (see
 * schema/upgrade.h). `status` is what a failure is reported as (LOCKSTEP_DEFINITION for nets and
 * solvers, LOCKSTEP_WEIGHTS for caffemodels, LOCKSTEP_DATA for mean files); problems of a text
 * have their places. On failure *out is NULL. */
int ls_definition_read_file(const char *path, const ProtobufCMessageDescriptor *type, int status,
                            struct ls_definition **out, struct ls_error *error);

/* As ls_definition_read_file, but a text with problems that are not of syntax leaves what could be
 * read in *out, so that a caller can look for more problems. */
int ls_definition_read_partly(const char *path, const ProtobufCMessageDescriptor *type, int status,
                              struct ls_definition **out, struct ls_error *error);

/* Whether a file is a net or a solver, by its outermost fields. *type is the descriptor of one of
 * them, and becomes that of the other if this is text and more speaks for it. */
int ls_definition_guess(const char *path, const ProtobufCMessageDescriptor **type,
                        struct ls_error *error);

/* Whether something of a message, a layer of a net, could not be read: what it says is not all that
 * stands there, and to check it would tell of consequences. */
bool ls_definition_is_damaged(const struct ls_definition *definition, const void *message);

/* "copy 3 of block 'h'", of a layer that a block repeats; NULL for other layers. */
const char *ls_definition_copy_of(const struct ls_definition *definition, const void *message);

enum { LS_PLACE_MAX = 320 }; /* a buffer for a place, as in struct ls_problem */

/* Whether a field that is given once here was given several times, as a fork does it
 * (ls_fork_repeats); the first one is what the message has. */
bool ls_definition_repeats(const struct ls_definition *definition, const void *message,
                           const char *field);

/* Where something stands, for messages to people: "net.prototxt:12:5" (line and column from 1).
 * `field` names a field of `message`; its first value counts. Without `field` (NULL), or if the
 * field was not given, the place is that of the message itself; without that, the file's name. A
 * value that came from the command line has the option as its place ("--set base_lr=1"). Writes
 * to `buffer` and returns it. */
const char *ls_place(const struct ls_definition *definition, const void *message, const char *field,
                     char *buffer, size_t size);
/* As ls_place, for the index-th value of a repeated field. */
const char *ls_place_index(const struct ls_definition *definition, const void *message,
                           const char *field, size_t index, char *buffer, size_t size);

#endif
