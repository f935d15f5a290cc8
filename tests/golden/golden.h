/* Golden bits: what small networks of tests/golden/nets become, held against
 * tests/golden/table.txt. docs/numerics.md, section 13, says what the table is for and when it is
 * written anew.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_GOLDEN_H
#define LS_TESTS_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GOLDEN_UPDATES_MAX = 24,
    GOLDEN_PARAMETERS_MAX = 48,
    GOLDEN_NETS_MAX = 64,
    GOLDEN_ENTRIES_MAX = 1024,
    GOLDEN_NAME_MAX = 64
};

/* What decides the bits of a network besides its definition. Where oneDNN computes a part of it:
 * the instruction set, oneDNN's version and the caches that its block sizes follow from. Where all
 * kernels are Lockstep's own, "any", "-" and "-". */
struct golden_key {
    int numerics; /* LOCKSTEP_NUMERICS */
    char net[GOLDEN_NAME_MAX], isa[16], onednn[32], cache[32];
};

/* What a network becomes. Short hashes are 32 bits each, of arrays in Caffe's order. */
struct golden_bits {
    int updates, parameters; /* update 0 is the beginning, without a loss */
    char name[GOLDEN_PARAMETERS_MAX][GOLDEN_NAME_MAX];           /* of parameters, in order */
    uint32_t loss[GOLDEN_UPDATES_MAX];                           /* of the update */
    double figure[GOLDEN_UPDATES_MAX];                           /* the loss; not in the table */
    double norm[GOLDEN_UPDATES_MAX];                             /* of all parameters; the same */
    uint32_t weights[GOLDEN_UPDATES_MAX][GOLDEN_PARAMETERS_MAX]; /* after the update */
    uint32_t tests;  /* all outputs of all test nets after the last update; 0: there are none */
    char sha256[65]; /* of all tensors of the snapshot after the last update */
};

struct golden_entry {
    struct golden_key key;
    struct golden_bits bits;
};

struct golden_table {
    struct golden_entry *entries; /* GOLDEN_ENTRIES_MAX of them */
    size_t count;
};

/* The names of all files of tests/golden/nets, without ".prototxt", sorted. */
size_t golden_nets(char (*names)[GOLDEN_NAME_MAX]);

/* Makes the data that a network's file asks for in the working directory. */
void golden_write_data(const char *text);

/* Whether all products of a network are in bf16, or PORTABLE: all devices give the same bits. */
bool golden_is_portable(const char *net);

/* Trains `net` on `workers` workers of a device, with an instruction set where it has one, as many
 * updates as its file says (a few on other devices than the CPU, unless these give its bits), in
 * the test's directory. Failures fail the running test. */
void golden_train(const char *net, const char *device, const char *isa, int workers,
                  struct golden_entry *entry);

/* The table of the source tree; one that is damaged ends the program. */
void golden_table_read(struct golden_table *table);
void golden_table_write(const struct golden_table *table);
void golden_table_free(struct golden_table *table);
struct golden_entry *golden_table_find(const struct golden_table *table,
                                       const struct golden_key *key);
/* A place for a new entry. */
struct golden_entry *golden_table_add(struct golden_table *table);

/* Says which update and which parameter differ first; false: nothing does. */
bool golden_difference(const struct golden_bits *got, const struct golden_bits *want, char *text,
                       size_t size);

/* Fails the running test for each layer type, op kind, kernel, solver type, rate policy and data
 * source that no network uses. */
void golden_check_coverage(const char *isa);

/* Kept by golden_train for that check: what was used so far. */
struct ls_trainer;
void golden_note_use(const struct ls_trainer *trainer);

#endif
