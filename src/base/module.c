/* See base/module.h. SPDX-License-Identifier: BSD-2-Clause */
#include "base/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

enum { FOLDERS = 5 };

/* An address of the program or library that this is in. */
static const char here[] = "";

/* A path without its last part; false where it has none. */
static bool folder_of(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

/* Where modules may lie, the index-th folder; false: there is no such. */
static bool folder(int index, char path[PATH_MAX])
{
    char program[PATH_MAX] = "";
    Dl_info self;
    (void)!readlink("/proc/self/exe", program, sizeof program - 1);
    switch (index) {
    case 0:
        snprintf(path, PATH_MAX, "%s", program);
        return folder_of(path);
    case 1: /* the shared library, in a program that is not ours */
    case 2:
        if (dladdr(here, &self) == 0 || self.dli_fname == NULL)
            return false;
        snprintf(program, PATH_MAX, "%s", self.dli_fname);
        return folder_of(program) &&
               snprintf(path, PATH_MAX, "%s%s", program, index == 1 ? "" : "/lockstep") < PATH_MAX;
    case 3: /* an installed tree, which may have been moved */
        return folder_of(program) &&
               snprintf(path, PATH_MAX, "%s/%s", program, LS_MODULES_FROM_PROGRAMS) < PATH_MAX;
    case 4:
        snprintf(path, PATH_MAX, "%s", LS_MODULE_FOLDER);
        return true;
    default:
        return false;
    }
}

bool ls_module_find(const char *name, char path[PATH_MAX])
{
    char directory[PATH_MAX];
    for (int i = 0; i < FOLDERS; i++)
        if (folder(i, directory) &&
            snprintf(path, PATH_MAX, "%s/liblockstep_%s.so", directory, name) < PATH_MAX &&
            ls_file_exists(path))
            return true;
    return false;
}

void ls_module_tell_folders(struct ls_text *text)
{
    char directory[PATH_MAX];
    ls_text_format(text, "neither in %s nor in %s",
                   folder(0, directory) ? directory : "the program's folder", LS_MODULE_FOLDER);
}
