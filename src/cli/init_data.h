/* What data a path leads to, for `lockstep init`.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_INIT_DATA_H
#define LS_CLI_INIT_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/lockstep.h"

enum { LS_INIT_PATH = 4096, LS_INIT_FILES = 8 };

/* A set of records, as the fields of a data_param. */
struct ls_init_set {
    char source[LS_INIT_FILES][LS_INIT_PATH]; /* whole paths */
    size_t sources;
    char label_source[LS_INIT_PATH]; /* "": none */
};

struct ls_init_data {
    const char *backend; /* "IMAGES", "IDX", "CIFAR", "LMDB", "TEXT" */
    struct ls_init_set train, test;
    bool split; /* there is no test set: a tenth of the records is held out */
    struct lockstep_source_facts facts; /* of the training set, pictures */
    long long characters, different;    /* of a text */
    bool bytes;                         /* it is read as bytes */
};

/* Finds out what a file or folder is. 0, or a status after a message. */
int ls_init_look(const char *path, struct ls_init_data *data);

#endif
