/* What lies in a folder. See cli/init_folder.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/init_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

bool ls_init_join(const char *path, const char *name, char out[LS_INIT_PATH])
{
    const int length = snprintf(out, LS_INIT_PATH, "%s/%s", path, name);
    if (length >= LS_INIT_PATH)
        out[0] = '\0';
    return length < LS_INIT_PATH;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a copy; false without memory. */
static bool add(char ***names, size_t *count, const char *name)
{
    char **more = realloc(*names, (*count + 1) * sizeof *more), *copy = strdup(name);
    *names = more != NULL ? more : *names;
    if (more == NULL || copy == NULL) {
        free(copy);
        return false;
    }
    more[(*count)++] = copy;
    return true;
}

bool ls_init_folder_read(const char *path, struct ls_init_folder *folder)
{
    *folder = (struct ls_init_folder){.folders = 0};
    DIR *directory = opendir(path);
    bool read = directory != NULL;
    for (struct dirent *entry; read && (entry = readdir(directory)) != NULL;) {
        char inside[LS_INIT_PATH];
        struct stat info;
        if (entry->d_name[0] == '.' || !ls_init_join(path, entry->d_name, inside) ||
            stat(inside, &info) != 0)
            continue;
        read = S_ISDIR(info.st_mode) ? add(&folder->folder, &folder->folders, entry->d_name)
                                     : add(&folder->file, &folder->files, entry->d_name);
    }
    if (directory != NULL)
        closedir(directory);
    if (!read)
        ls_init_folder_free(folder);
    if (folder->folders > 0)
        qsort(folder->folder, folder->folders, sizeof *folder->folder, by_bytes);
    if (folder->files > 0)
        qsort(folder->file, folder->files, sizeof *folder->file, by_bytes);
    return read;
}

void ls_init_folder_free(struct ls_init_folder *folder)
{
    for (size_t i = 0; i < folder->folders; i++)
        free(folder->folder[i]);
    for (size_t i = 0; i < folder->files; i++)
        free(folder->file[i]);
    free(folder->folder);
    free(folder->file);
    *folder = (struct ls_init_folder){.folders = 0};
}

bool ls_init_ends(const char *name, const char *ending)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && strcasecmp(dot + 1, ending) == 0;
}

bool ls_init_is_picture(const char *name)
{
    return ls_init_ends(name, "png") || ls_init_ends(name, "jpg") || ls_init_ends(name, "jpeg");
}

const char *ls_init_folder_named(const struct ls_init_folder *folder, const char *const *names)
{
    for (; *names != NULL; names++)
        for (size_t i = 0; i < folder->folders; i++)
            if (strcasecmp(folder->folder[i], *names) == 0)
                return folder->folder[i];
    return NULL;
}

/* Compares names without their endings. */
static int by_stem(const char *a, const char *b)
{
    const char *first = strrchr(a, '.'), *second = strrchr(b, '.');
    const size_t one = first != NULL ? (size_t)(first - a) : strlen(a);
    const size_t two = second != NULL ? (size_t)(second - b) : strlen(b);
    const int order = memcmp(a, b, one < two ? one : two);
    return order != 0 ? order : (one > two) - (one < two);
}

static int search(const void *name, const void *entry)
{
    return by_stem(name, *(char *const *)entry);
}

static int sort(const void *a, const void *b)
{
    return by_stem(*(char *const *)a, *(char *const *)b);
}

size_t ls_init_pairs(const struct ls_init_folder *pictures, const struct ls_init_folder *others,
                     const char *ending)
{
    char **sorted = malloc((others->files + 1) * sizeof *sorted);
    size_t count = 0, pairs = 0;
    for (size_t i = 0; sorted != NULL && i < others->files; i++)
        if (ls_init_ends(others->file[i], ending))
            sorted[count++] = others->file[i];
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, sort);
    for (size_t i = 0; count > 0 && i < pictures->files; i++)
        pairs += ls_init_is_picture(pictures->file[i]) &&
                 bsearch(pictures->file[i], sorted, count, sizeof *sorted, search) != NULL;
    free(sorted);
    return pairs;
}

size_t ls_init_count_pictures(const struct ls_init_folder *folder)
{
    size_t count = 0;
    for (size_t i = 0; i < folder->files; i++)
        count += ls_init_is_picture(folder->file[i]);
    return count;
}
