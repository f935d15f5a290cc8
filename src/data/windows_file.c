/* The file of windows, read. See data/windows.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/windows.h"

static const size_t FILE_LIMIT = (size_t)1 << 31;

struct reading {
    const char *file, *root;
    char *at;    /* what is still to be read */
    size_t line; /* of the word that was read last */
    bool ended;  /* it was the last of its line */
    const struct ls_windows_options *own;
    struct ls_labelled_windows *windows;
    struct ls_error *error;
};

static int bad_line(const struct reading *r, const char *what)
{
    char place[320];
    snprintf(place, sizeof place, "%.280s:%zu", r->file, r->line);
    return ls_fail(
        r->error, LOCKSTEP_DATA, place,
        "for each picture: # number, path, channels, height, width, count of windows; then "
        "lines of class, overlap, x1, y1, x2, y2",
        "%s", what);
}

/* The next word; NULL at the end. */
static char *next_word(struct reading *r)
{
    r->line += r->ended;
    r->ended = false;
    while (*r->at != '\0' && strchr(" \t\r\n", *r->at) != NULL)
        r->line += *r->at++ == '\n';
    if (*r->at == '\0')
        return NULL;
    char *word = r->at;
    r->at += strcspn(r->at, " \t\r\n");
    if (*r->at != '\0') {
        r->ended = *r->at == '\n';
        *r->at++ = '\0';
    }
    return word;
}

static int next_number(struct reading *r, double least, double most, double *number)
{
    char *word = next_word(r), *end;
    if (word == NULL)
        return bad_line(r, "the file is cut off");
    *number = strtod(word, &end);
    return end == word || *end != '\0' || !(*number >= least && *number <= most)
               ? bad_line(r, "a number is missing, or is not possible")
               : 0;
}

static int next_integer(struct reading *r, int64_t least, int64_t most, int64_t *number)
{
    double wide = 0;
    LS_TRY(next_number(r, (double)least, (double)most, &wide));
    *number = (int64_t)wide;
    return (double)*number == wide ? 0 : bad_line(r, "a number is not whole");
}

static int read_window(struct reading *r)
{
    struct ls_labelled_windows *w = r->windows;
    int64_t label, corner[4];
    double overlap = 0;
    LS_TRY(next_integer(r, 0, 1 << 24, &label));
    LS_TRY(next_number(r, -HUGE_VAL, HUGE_VAL, &overlap));
    for (int i = 0; i < 4; i++)
        LS_TRY(next_integer(r, -LS_WINDOWS_COORDINATE_MAX, LS_WINDOWS_COORDINATE_MAX, &corner[i]));
    const bool foreground = overlap >= r->own->foreground;
    if (!foreground && overlap >= r->own->background)
        return 0;
    if (foreground && label == 0)
        return bad_line(r, "a window that overlaps an object has class 0");
    struct ls_windows_kind *kind = &w->kind[foreground];
    if (!LS_GROW(kind->window, kind->count, kind->capacity))
        return ls_fail_memory(r->error, "windows");
    kind->window[kind->count++] =
        (struct ls_labelled_window){(uint32_t)(w->pictures - 1), foreground ? (int32_t)label : 0,
                                    (int32_t)corner[0],          (int32_t)corner[1],
                                    (int32_t)corner[2],          (int32_t)corner[3]};
    return 0;
}

/* The path of a picture, put together as Caffe does. */
static int add_picture(struct reading *r, const char *name)
{
    struct ls_labelled_windows *w = r->windows;
    struct ls_text whole = {0};
    if (r->root != NULL)
        ls_text_add(&whole, r->root);
    if (r->root != NULL && r->root[strlen(r->root) - 1] != '/' && name[0] != '/' &&
        ls_is_directory(r->root))
        ls_text_add(&whole, "/");
    ls_text_add(&whole, name);
    char *path = whole.failed ? NULL : ls_resolve_path(whole.data, r->file);
    ls_text_free(&whole);
    if (path == NULL || !LS_GROW(w->path, w->pictures, w->capacity)) {
        ls_free(path);
        return ls_fail_memory(r->error, "the list of pictures");
    }
    w->path[w->pictures++] = path;
    w->stamp = ls_mix(w->stamp) + ls_file_stamp(path);
    return ls_file_exists(path) ? 0 : bad_line(r, "there is no such picture");
}

static int read_picture(struct reading *r)
{
    int64_t number, count;
    LS_TRY(next_integer(r, 0, INT64_C(1) << 40, &number));
    const char *name = next_word(r);
    if (name == NULL)
        return bad_line(r, "the file is cut off");
    LS_TRY(add_picture(r, name));
    for (int i = 0; i < 3; i++) /* channels, height, width, which the picture itself says */
        LS_TRY(next_integer(r, 1, LS_WINDOWS_COORDINATE_MAX, &number));
    LS_TRY(next_integer(r, 0, INT32_MAX, &count));
    for (int64_t i = 0; i < count; i++)
        LS_TRY(read_window(r));
    return 0;
}

static int read_pictures(struct reading *r)
{
    char *text;
    size_t size;
    LS_TRY(ls_file_read_text(r->file, FILE_LIMIT, LOCKSTEP_DATA, &text, &size, r->error));
    int status = 0;
    if (memchr(text, '\0', size) != NULL)
        status = ls_fail(r->error, LOCKSTEP_DATA, r->file, NULL, "is not a text file");
    r->at = text;
    r->line = 1;
    for (const char *word; status == 0 && (word = next_word(r)) != NULL;)
        status = strcmp(word, "#") == 0 ? read_picture(r) : bad_line(r, "'#' is missing");
    ls_free(text);
    return status;
}

int ls_windows_read(const struct ls_windows_options *own, struct ls_labelled_windows *windows,
                    struct ls_error *error)
{
    struct reading r = {.file = own->files.item[0],
                        .root = own->root_folder,
                        .own = own,
                        .windows = windows,
                        .error = error};
    return read_pictures(&r);
}
