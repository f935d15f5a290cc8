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

/* What the user says where data can be taken in two ways; NULL: nothing. */
struct ls_init_hints {
    const char *backend; /* "IMAGES" ... */
    const char *maps;    /* of label maps: "classes" or "masks" */
};

struct ls_init_data {
    const char *backend; /* "IMAGES", "IMAGE_PAIRS", "IDX", "CIFAR", "LMDB", "TEXT", "TOKENS" */
    struct ls_init_set train, test;
    bool split; /* there is no test set: a tenth of the records is held out */
    struct lockstep_source_facts facts; /* of the training set, pictures */
    bool masks;                         /* of label maps: all labels but 0 are one class */
    long long characters, different; /* of a text; of tokens how many, and how large ids can be */
    bool bytes;                      /* it is read as bytes */
    const char *type;                /* of tokens without a header: "U16" or "U32"; "": a header */
    /* LS_INIT_UNCLEAR: what is to be answered, and the option (of ls_init_hints) with its values.
     */
    char question[1024];
    const char *option, *values[2];
};

/* What ls_init_look returns where the data can be taken in two ways. */
enum { LS_INIT_UNCLEAR = -1 };

/* Finds out what a file or folder is. 0, LS_INIT_UNCLEAR, or a status after a message. */
int ls_init_look(const char *path, const struct ls_init_hints *hints, struct ls_init_data *data);
/* Notes a question. */
int ls_init_unclear(struct ls_init_data *data, const char *option, const char *first,
                    const char *second, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
