/* The account of a start from weights: what became of every tensor of the files, and which
 * parameters of the net they say nothing of.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_WEIGHTS_ACCOUNT_H
#define LS_SOLVER_WEIGHTS_ACCOUNT_H

#include "engine/store.h"
#include "lockstep/report.h"
#include "snapshot/weights.h"
#include "solver/weights.h"

/* A tensor that nothing takes. */
struct ls_left_tensor {
    char *name, *layer; /* "ip.weight", "ip"; layer NULL: the name is not that of a layer's blob */
    struct ls_weight_blob blob; /* its shape alone */
};

struct ls_weights_account {
    const struct ls_weights_request *request;
    const struct ls_store *store;
    const struct ls_weight_target *targets;
    size_t count;
    bool *given;                 /* by parameter: a file has it */
    struct ls_left_tensor *left; /* of all files */
    size_t left_count, left_capacity;
};

int ls_weights_account_open(struct ls_weights_account *account, struct ls_error *error);
void ls_weights_account_close(struct ls_weights_account *account);

/* Enters what became of a file, and says it: one line, and as details one for each tensor. */
int ls_weights_account_file(struct ls_weights_account *account, const char *file,
                            const struct ls_weights *weights,
                            const struct ls_weights_report *report, struct ls_error *error);

/* When all files are entered: says which parameters they do not have. That is an error where
 * nothing is learned, and where such a parameter would stay random although a tensor of its shape
 * was left over, unless the request permits it. */
int ls_weights_account_end(const struct ls_weights_account *account, struct ls_error *error);

/* Why names do not meet: the file's or the net's begin with a prefix that the others lack. Fills in
 * a hint, or returns false. */
bool ls_weights_account_prefix(const struct ls_weights_account *account, char *hint, size_t size);

#endif
