/* What lies in a folder, for `lockstep init`.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_INIT_FOLDER_H
#define LS_CLI_INIT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/init_data.h"

/* Names of the entries, without those that begin with a dot, in byte order. */
struct ls_init_folder {
    char **folder, **file;
    size_t folders, files;
};

/* False where it cannot be read; then it is empty. */
bool ls_init_folder_read(const char *path, struct ls_init_folder *folder);
void ls_init_folder_free(struct ls_init_folder *folder);

/* PATH/NAME into `out`; false where it is too long. */
bool ls_init_join(const char *path, const char *name, char out[LS_INIT_PATH]);
/* Whether a name ends so, in any case: "png". */
bool ls_init_ends(const char *name, const char *ending);
bool ls_init_is_picture(const char *name);
/* The sub-folder that has one of these names, in any case: the first of the list that is there.
 * NULL: there is none. */
const char *ls_init_folder_named(const struct ls_init_folder *folder, const char *const *names);
/* How many files have a counterpart, but for its ending, among those of another folder that end so.
 */
size_t ls_init_pairs(const struct ls_init_folder *pictures, const struct ls_init_folder *others,
                     const char *ending);
size_t ls_init_count_pictures(const struct ls_init_folder *folder);

#endif
