/* Which picture files a data set consists of: from a folder of class folders, or from a list file.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PICTURE_LIST_H
#define LS_DATA_PICTURE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "data/class_names.h"

struct ls_picture_file {
    size_t path; /* where the path to open begins in `text` */
    size_t name; /* where the name to show begins: without the folder that all share */
    int32_t label;
};

/* Pictures that are not read: how many, and the first of them. */
struct ls_passed_over {
    size_t count;
    char name[200];
};

struct ls_picture_list {
    struct ls_picture_file *file;
    size_t count, capacity;
    struct ls_text text; /* all paths, each with a NUL behind it */
    char **class_name;   /* folder: one for each label; list file: NULL */
    int class_count;
    size_t class_capacity;
    size_t left_out; /* entries of the folders that begin with a dot, or are no pictures by name */
    struct ls_passed_over foreign; /* pictures in formats that are not read, by their names */
    struct ls_passed_over beside;  /* pictures beside the folders of classes */
};

/* A folder: each sub-folder is a class. Classes have the numbers that `known` says, which must have
 * all of them (LOCKSTEP_DATA names those that it does not have); without it (NULL) they are
 * labelled 0, 1, ...: names that are whole numbers first, by value, then the others in byte order.
 * Pictures of a class are the .jpg, .jpeg and .png files (any case) in its folder and in folders
 * within it, in byte order of their paths. What begins with a dot is left out. */
int ls_picture_list_folder(const char *folder, const struct ls_class_names *known,
                           struct ls_picture_list *list, struct ls_error *error);
/* The names of the classes of a folder alone, in the order of their numbers. */
int ls_picture_list_classes(const char *folder, struct ls_class_list *list, struct ls_error *error);

/* What was passed over, as a sentence that is the caller's; NULL where there is nothing to say. */
int ls_picture_list_warning(const struct ls_picture_list *list, const char *folder, char **warning,
                            struct ls_error *error);

/* A list file in Caffe's form, "path label" on each line, the last space in between; empty lines
 * are skipped. `root` (or NULL) is put before the paths; relative ones are tried from the working
 * directory, then from the list's folder. Messages name the line. */
int ls_picture_list_file(const char *path, const char *root, struct ls_picture_list *list,
                         struct ls_error *error);

/* All pictures of a folder and of the folders within it, in byte order of their paths; label 0. */
int ls_picture_list_flat(const char *folder, struct ls_picture_list *list, struct ls_error *error);

/* A list file with "picture map" on each line: file i of `maps` belongs to file i of `pictures`.
 * The last tab is in between, or, in a line without one, the last space. */
int ls_picture_list_pairs(const char *path, const char *root, struct ls_picture_list *pictures,
                          struct ls_picture_list *maps, struct ls_error *error);

/* Adds a file; the name to show is its path without the first `skip` bytes. */
int ls_picture_list_add(struct ls_picture_list *list, const char *path, size_t skip, int32_t label,
                        struct ls_error *error);

/* What all files look like from outside (ls_file_stamp), in their order. */
uint64_t ls_picture_list_stamp(const struct ls_picture_list *list);

void ls_picture_list_free(struct ls_picture_list *list);

static inline const char *ls_picture_path(const struct ls_picture_list *list, size_t index)
{
    return list->text.data + list->file[index].path;
}

static inline const char *ls_picture_name(const struct ls_picture_list *list, size_t index)
{
    return list->text.data + list->file[index].name;
}

#endif
