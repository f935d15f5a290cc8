/* Between the files of show. See inspect/show.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_INSPECT_SHOW_INNER_H
#define LS_INSPECT_SHOW_INNER_H

#include <stdbool.h>

#include "inspect/kind.h"
#include "inspect/show.h"
#include "ir/dtype.h"
#include "ir/shape.h"

/* What is shown to whom. */
struct ls_showing {
    const char *path;
    enum ls_file_kind kind;
    const struct lockstep_show_options *options;
    int64_t records; /* that are shown at most */
    bool *announced; /* the kind was said: with the first thing that is in the file, so that a file
                        which turns out to be something else gets no kind */
};

/* Tells the kind, if that was not done. */
void ls_show_announce(const struct ls_showing *showing);

void ls_show_fact(const struct ls_showing *showing, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A fact whose value is a text, of any length. */
void ls_show_text(const struct ls_showing *showing, const char *name, const char *value);
/* A tensor with its figures; `data` NULL: without. */
void ls_show_tensor(const struct ls_showing *showing, const char *name, enum ls_dtype type,
                    const struct ls_shape *shape, const void *data);
void ls_show_record(const struct ls_showing *showing, int64_t index, const char *name,
                    const char *text);

/* One for each group of kinds. */
int ls_show_archive(const struct ls_showing *showing, struct ls_error *error);
int ls_show_shards(const struct ls_showing *showing, struct ls_error *error);
int ls_show_weights(const struct ls_showing *showing, struct ls_error *error);
int ls_show_solverstate(const struct ls_showing *showing, struct ls_error *error);
int ls_show_blob(const struct ls_showing *showing, struct ls_error *error);
int ls_show_source(const struct ls_showing *showing, const char *backend, struct ls_error *error);
int ls_show_picture(const struct ls_showing *showing, struct ls_error *error);
int ls_show_folder(const struct ls_showing *showing, struct ls_error *error);
int ls_show_idx(const struct ls_showing *showing, struct ls_error *error);
int ls_show_hdf5(const struct ls_showing *showing, struct ls_error *error);
int ls_show_npy(const struct ls_showing *showing, struct ls_error *error);
int ls_show_llmc(const struct ls_showing *showing, struct ls_error *error);
int ls_show_ids(const struct ls_showing *showing, struct ls_error *error);
int ls_show_tokenizer(const struct ls_showing *showing, struct ls_error *error);
int ls_show_json(const struct ls_showing *showing, struct ls_error *error);
int ls_show_lines(const struct ls_showing *showing, struct ls_error *error);
int ls_show_net(const struct ls_showing *showing, struct ls_error *error);
int ls_show_solver(const struct ls_showing *showing, struct ls_error *error);
int ls_show_onnx(const struct ls_showing *showing, struct ls_error *error);

#endif
