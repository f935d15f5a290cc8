/* Finding pictures; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/picture_list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"

enum { DEPTH_MAX = 16 /* folders within a class folder */ };
static const size_t LIST_LIMIT = (size_t)1 << 31; /* bytes of a list file */

void ls_picture_list_free(struct ls_picture_list *list)
{
    for (int i = 0; i < list->class_count; i++)
        ls_free(list->class_name[i]);
    ls_free(list->class_name);
    ls_free(list->file);
    ls_text_free(&list->text);
    *list = (struct ls_picture_list){0};
}

int ls_picture_list_add(struct ls_picture_list *list, const char *path, size_t skip, int32_t label,
                        struct ls_error *error)
{
    if (!LS_GROW(list->file, list->count, list->capacity))
        return ls_fail_memory(error, "the list of pictures");
    size_t start = list->text.length;
    ls_text_add_bytes(&list->text, path, strlen(path) + 1);
    if (list->text.failed)
        return ls_fail_memory(error, "the list of pictures");
    list->file[list->count++] = (struct ls_picture_file){start, start + skip, label};
    return 0;
}

uint64_t ls_picture_list_stamp(const struct ls_picture_list *list)
{
    uint64_t stamp = 0;
    for (size_t i = 0; i < list->count; i++)
        stamp = ls_mix(stamp + ls_file_stamp(ls_picture_path(list, i)));
    return stamp;
}

/* ---- Folders ---- */

struct names {
    char **name;
    size_t count, capacity;
    size_t hidden; /* others, which begin with a dot */
};

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        ls_free(names->name[i]);
    ls_free(names->name);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The entries of a folder in byte order, without hidden ones. */
static int list_folder(const char *folder, struct names *names, struct ls_error *error)
{
    *names = (struct names){0};
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return ls_fail_errno(error, LOCKSTEP_DATA, folder, "cannot open the folder");
    int status = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL)
            break;
        if (entry->d_name[0] == '.') {
            names->hidden += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
            continue;
        }
        char *copy = ls_copy_string(entry->d_name);
        if (copy == NULL || !LS_GROW(names->name, names->count, names->capacity)) {
            ls_free(copy);
            status = ls_fail_memory(error, "the list of pictures");
            break;
        }
        names->name[names->count++] = copy;
    }
    if (status == 0 && errno != 0)
        status = ls_fail_errno(error, LOCKSTEP_DATA, folder, "cannot read the folder");
    closedir(dir);
    if (status == 0 && names->count > 0)
        qsort(names->name, names->count, sizeof *names->name, by_bytes);
    if (status != 0) {
        free_names(names);
        *names = (struct names){0};
    }
    return status;
}

static bool ends_in(const char *name, const char *const *endings)
{
    const char *dot = strrchr(name, '.');
    while (dot != NULL && *endings != NULL && strcasecmp(dot + 1, *endings) != 0)
        endings++;
    return dot != NULL && *endings != NULL;
}

static bool has_picture_name(const char *name)
{
    static const char *const read[] = {"jpg", "jpeg", "png", NULL};
    return ends_in(name, read);
}

/* Pictures, but in a format that is not read. */
static bool has_foreign_name(const char *name)
{
    static const char *const others[] = {"webp", "bmp", "gif",  "tif",  "tiff", "jfif",
                                         "jpe",  "jp2", "avif", "heic", "heif", "ppm",
                                         "pgm",  "pnm", "tga",  "dcm",  "jxl",  NULL};
    return ends_in(name, others);
}

static void pass_over(struct ls_passed_over *passed, const char *path, size_t skip)
{
    if (passed->count++ == 0)
        snprintf(passed->name, sizeof passed->name, "%.190s", path + skip);
}

static char *join(const char *folder, const char *name)
{
    struct ls_text path = {0};
    size_t length = strlen(folder);
    ls_text_add(&path, folder);
    if (length == 0 || folder[length - 1] != '/')
        ls_text_add(&path, "/");
    ls_text_add(&path, name);
    if (path.failed) {
        ls_text_free(&path);
        return NULL;
    }
    return path.data;
}

/* A folder that is not reached through a link, so that links cannot make circles. */
static bool is_plain_folder(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Adds the pictures of a class folder and of the folders within it. The recursion is bounded. */
static int add_class(struct ls_picture_list *list, const char *folder, size_t skip, int32_t label,
                     int depth, struct ls_error *error)
{
    if (depth > DEPTH_MAX)
        return ls_fail(error, LOCKSTEP_DATA, folder, NULL, "lies more than %d folders deep",
                       DEPTH_MAX);
    struct names names;
    LS_TRY(list_folder(folder, &names, error));
    list->left_out += names.hidden;
    int status = 0;
    for (size_t i = 0; i < names.count && status == 0; i++) {
        char *path = join(folder, names.name[i]);
        if (path == NULL)
            status = ls_fail_memory(error, "the list of pictures");
        else if (is_plain_folder(path))
            status = add_class(list, path, skip, label, depth + 1, error);
        else if (has_picture_name(path))
            status = ls_picture_list_add(list, path, skip, label, error);
        else {
            list->left_out++;
            if (has_foreign_name(path))
                pass_over(&list->foreign, path, skip);
        }
        ls_free(path);
    }
    free_names(&names);
    return status;
}

/* Takes from the names of a folder's entries those that are no class folders. */
static int keep_classes(const char *folder, struct names *names, struct ls_picture_list *list,
                        struct ls_error *error)
{
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        char *name = names->name[i], *path = join(folder, name);
        if (path == NULL)
            return ls_fail_memory(error, "the list of classes");
        const bool is_class = ls_is_directory(path);
        if (is_class && strchr(name, '\n') != NULL) { /* names are written one a line */
            ls_free(path);
            return ls_fail(error, LOCKSTEP_DATA, folder, "rename the folder",
                           "a class folder has a line break in its name");
        }
        if (!is_class && list != NULL && has_foreign_name(name))
            pass_over(&list->foreign, name, 0);
        if (!is_class && list != NULL && has_picture_name(name))
            pass_over(&list->beside, name, 0);
        ls_free(path);
        names->name[i] = names->name[kept];
        names->name[kept] = name;
        kept += is_class;
    }
    for (size_t i = kept; i < names->count; i++)
        ls_free(names->name[i]);
    names->count = kept;
    if (kept > 0)
        qsort(names->name, kept, sizeof *names->name, ls_class_names_order);
    return 0;
}

/* A class that the training does not have: its pictures would count as those of another one. */
static int unknown_classes(const char *folder, const struct names *names,
                           const struct ls_class_names *known, const struct ls_picture_list *list,
                           struct ls_error *error)
{
    struct ls_text unknown = {0};
    size_t pictures = 0, count = 0;
    for (size_t i = 0; i < names->count; i++)
        if (ls_class_names_find(known, names->name[i]) < 0 && ++count <= 10)
            ls_text_format(&unknown, "%s'%.100s'", count > 1 ? ", " : "", names->name[i]);
    if (count > 10)
        ls_text_format(&unknown, " and %zu more", count - 10);
    for (size_t i = 0; i < list->count; i++)
        pictures += list->file[i].label < 0;
    int status = count == 0
                     ? 0
                     : ls_fail(error, LOCKSTEP_DATA, folder,
                               "take these folders away, or train with them, too; classes "
                               "are known by the names of their folders",
                               "%zu class%s (%zu picture%s) %s not among the %d of %.200s: "
                               "%s",
                               count, count == 1 ? "" : "es", pictures, pictures == 1 ? "" : "s",
                               count == 1 ? "is" : "are", known->count, known->of,
                               unknown.data != NULL ? unknown.data : "");
    ls_text_free(&unknown);
    return status;
}

static int add_classes(const char *folder, const struct names *names,
                       const struct ls_class_names *known, struct ls_picture_list *list,
                       struct ls_error *error)
{
    int status = 0;
    for (size_t i = 0; i < names->count && status == 0; i++) {
        const size_t before = list->count;
        char *path = join(folder, names->name[i]);
        if (path == NULL)
            return ls_fail_memory(error, "the list of pictures");
        const int32_t label =
            known != NULL ? ls_class_names_find(known, names->name[i]) : (int32_t)i;
        status = add_class(list, path, strlen(path) - strlen(names->name[i]), label, 0, error);
        if (status == 0 && list->count == before && known == NULL)
            status = ls_fail(error, LOCKSTEP_DATA, path,
                             "each sub-folder is a class; remove those that are none",
                             "this class has no .jpg, .jpeg or .png pictures");
        ls_free(path);
    }
    return status;
}

/* The names of all numbers: the known ones, or those of the folders. */
static int name_classes(const char *const *names, size_t count, struct ls_picture_list *list,
                        struct ls_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!LS_GROW(list->class_name, list->class_count, list->class_capacity) ||
            (list->class_name[list->class_count] = ls_copy_string(names[i])) == NULL)
            return ls_fail_memory(error, "the list of classes");
        list->class_count++;
    }
    return 0;
}

int ls_picture_list_folder(const char *folder, const struct ls_class_names *known,
                           struct ls_picture_list *list, struct ls_error *error)
{
    *list = (struct ls_picture_list){0};
    struct names names;
    LS_TRY(list_folder(folder, &names, error));
    int status = keep_classes(folder, &names, list, error);
    if (status == 0)
        status = add_classes(folder, &names, known, list, error);
    if (status == 0 && known != NULL)
        status = unknown_classes(folder, &names, known, list, error);
    if (status == 0)
        status = known != NULL
                     ? name_classes(known->name, (size_t)known->count, list, error)
                     : name_classes((const char *const *)names.name, names.count, list, error);
    free_names(&names);
    if (status == 0 && list->count == 0)
        status = ls_fail(error, LOCKSTEP_DATA, folder,
                         "put the pictures of each class into a folder of its own within it",
                         "has no class folders with pictures");
    if (status != 0)
        ls_picture_list_free(list);
    return status;
}

int ls_picture_list_classes(const char *folder, struct ls_class_list *list, struct ls_error *error)
{
    struct names names;
    LS_TRY(list_folder(folder, &names, error));
    int status = keep_classes(folder, &names, NULL, error);
    *list = (struct ls_class_list){.count = 0};
    if (status != 0)
        free_names(&names);
    else
        *list = (struct ls_class_list){names.name, (int)names.count};
    return status;
}

static void add_passed_over(const struct ls_passed_over *passed, const char *what,
                            const char *folder, struct ls_text *text)
{
    if (passed->count == 0)
        return;
    if (text->length == 0)
        ls_text_format(text, "%.200s: passed over: ", folder);
    else
        ls_text_add(text, "; ");
    ls_text_format(text, "%zu picture%s %s (%s%s)", passed->count, passed->count == 1 ? "" : "s",
                   what, passed->name, passed->count > 1 ? ", ..." : "");
}

int ls_picture_list_warning(const struct ls_picture_list *list, const char *folder, char **warning,
                            struct ls_error *error)
{
    struct ls_text text = {0};
    add_passed_over(&list->foreign, "that are neither JPEG nor PNG", folder, &text);
    add_passed_over(&list->beside, "beside the folders of the classes", folder, &text);
    *warning = text.failed ? NULL : text.data;
    if (!text.failed)
        return 0;
    ls_text_free(&text);
    return ls_fail_memory(error, "the list of pictures");
}

int ls_picture_list_flat(const char *folder, struct ls_picture_list *list, struct ls_error *error)
{
    *list = (struct ls_picture_list){0};
    size_t skip = strlen(folder) + (folder[strlen(folder) - 1] != '/');
    int status = add_class(list, folder, skip, 0, 0, error);
    if (status == 0 && list->count == 0)
        status = ls_fail(error, LOCKSTEP_DATA, folder, NULL, "has no .jpg, .jpeg or .png pictures");
    if (status != 0)
        ls_picture_list_free(list);
    return status;
}

/* ---- List files ---- */

/* A list file that is being read; `maps` is NULL where lines have labels. */
struct reading {
    const char *file, *root;
    struct ls_picture_list *list, *maps;
    size_t line; /* from 1 */
    struct ls_error *error;
};

static int bad_line(const struct reading *r, const char *what, const char *text)
{
    char place[320];
    snprintf(place, sizeof place, "%.280s:%zu", r->file, r->line);
    return ls_fail(r->error, LOCKSTEP_DATA, place,
                   r->maps != NULL ? "a line is: path of the picture, a space, path of its map"
                                   : "a line is: path of the picture, a space, its label",
                   "%s: \"%.200s\"", what, text);
}

/* The path to open for a path of the list. */
static char *list_path(const char *list_file, const char *root, const char *path)
{
    if (root == NULL || root[0] == '\0')
        return ls_resolve_path(path, list_file);
    struct ls_text whole = {0};
    ls_text_add(&whole, root);
    /* Caffe joins the two as they are; a forgotten slash between them is put in. */
    if (root[strlen(root) - 1] != '/' && path[0] != '/' && ls_is_directory(root))
        ls_text_add(&whole, "/");
    ls_text_add(&whole, path);
    if (whole.failed)
        ls_text_free(&whole);
    return whole.failed ? NULL : whole.data;
}

static int add_listed(const struct reading *r, struct ls_picture_list *list, const char *name,
                      int32_t label)
{
    char *path = list_path(r->file, r->root, name);
    if (path == NULL)
        return ls_fail_memory(r->error, "the list of pictures");
    int status = ls_file_exists(path)
                     ? ls_picture_list_add(list, path, strlen(path) - strlen(name), label, r->error)
                     : bad_line(r, "there is no such file", path);
    ls_free(path);
    return status;
}

/* Cuts a line in two at `space`; the part before it ends before further spaces. */
static void cut_line(const char *line, char *space)
{
    while (space > line && (space[-1] == ' ' || space[-1] == '\t'))
        space--;
    *space = '\0';
}

static int add_labelled(const struct reading *r, char *line)
{
    char *space = strrchr(line, ' '), *tab = strrchr(line, '\t');
    if (space == NULL || (tab != NULL && tab > space)) /* whichever is last */
        space = tab;
    if (space == NULL || space == line)
        return bad_line(r, "no picture and label", line);
    char *end;
    errno = 0;
    long label = strtol(space + 1, &end, 10);
    if (end == space + 1 || *end != '\0') {
        (void)strtod(space + 1, &end);
        return bad_line(r,
                        end > space + 1 && *end == '\0' ? "the label is not a whole number"
                                                        : "the label is not a number",
                        line);
    }
    if (errno != 0 || label < INT32_MIN || label > INT32_MAX)
        return bad_line(r, "the label is not between -2147483648 and 2147483647", line);
    cut_line(line, space);
    return add_listed(r, r->list, line, (int32_t)label);
}

static int add_pair(const struct reading *r, char *line)
{
    char *space = strrchr(line, '\t');
    if (space == NULL)
        space = strrchr(line, ' ');
    if (space == NULL || space == line)
        return bad_line(r, "no picture and map", line);
    cut_line(line, space);
    LS_TRY(add_listed(r, r->list, line, 0));
    return add_listed(r, r->maps, space + 1, 0);
}

static int read_lines(struct reading *r)
{
    char *text;
    size_t size;
    LS_TRY(ls_file_read_text(r->file, LIST_LIMIT, LOCKSTEP_DATA, &text, &size, r->error));
    int status = 0;
    if (memchr(text, '\0', size) != NULL)
        status = ls_fail(r->error, LOCKSTEP_DATA, r->file,
                         r->maps != NULL
                             ? "the source is a folder or a list of \"picture map\" lines"
                             : "the source of IMAGES is a folder or a list of \"path label\" lines",
                         "is not a text file");
    char *rest = text;
    r->line = 1;
    for (char *line; status == 0 && (line = strsep(&rest, "\n")) != NULL; r->line++) {
        size_t length = strlen(line);
        while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL)
            line[--length] = '\0';
        if (length > 0)
            status = r->maps != NULL ? add_pair(r, line) : add_labelled(r, line);
    }
    ls_free(text);
    if (status == 0 && r->list->count == 0)
        status = ls_fail(r->error, LOCKSTEP_DATA, r->file, NULL, "lists no pictures");
    return status;
}

int ls_picture_list_file(const char *path, const char *root, struct ls_picture_list *list,
                         struct ls_error *error)
{
    *list = (struct ls_picture_list){0};
    struct reading reading = {.file = path, .root = root, .list = list, .error = error};
    int status = read_lines(&reading);
    if (status != 0)
        ls_picture_list_free(list);
    return status;
}

int ls_picture_list_pairs(const char *path, const char *root, struct ls_picture_list *pictures,
                          struct ls_picture_list *maps, struct ls_error *error)
{
    *pictures = *maps = (struct ls_picture_list){0};
    struct reading reading = {
        .file = path, .root = root, .list = pictures, .maps = maps, .error = error};
    int status = read_lines(&reading);
    if (status != 0) {
        ls_picture_list_free(pictures);
        ls_picture_list_free(maps);
    }
    return status;
}
