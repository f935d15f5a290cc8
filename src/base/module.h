/* Modules: shared objects of Lockstep's that are loaded when they are needed, such as those for MPI
 * and for cards. They are looked for beside the program, beside the library that this is in, and in
 * the folder that libraries are installed to.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_MODULE_H
#define LS_BASE_MODULE_H

#include <limits.h>
#include <stdbool.h>

struct ls_text;

/* The path of liblockstep_<name>.so, if there is one. */
bool ls_module_find(const char *name, char path[PATH_MAX]);
/* Appends where it was looked for: "neither in A nor in B". */
void ls_module_tell_folders(struct ls_text *text);

#endif
