/* Windows of pictures: what the files of the source WINDOWS share. See data/windows.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_WINDOWS_H
#define LS_DATA_WINDOWS_H

#include "data/picture.h"
#include "data/source.h"

/* Coordinates, widened by context_pad up to LS_WINDOWS_SIDE_MAX / 2 times, fit into an int. */
enum { LS_WINDOWS_CHANNELS = 3, LS_WINDOWS_SIDE_MAX = 4096, LS_WINDOWS_COORDINATE_MAX = 1 << 17 };

/* What the layer says, by the table of options (data/windows.c). */
struct ls_windows_options {
    struct ls_option_files files;
    const char *root_folder, *mean_file;
    int64_t side, pad;
    double foreground, background, fraction;
};

/* A line of the file. */
struct ls_labelled_window {
    uint32_t picture; /* its number among the paths */
    int32_t label;
    int32_t x1, y1, x2, y2; /* of its first and last pixels */
};

/* Windows of one kind: background, then foreground. */
struct ls_windows_kind {
    struct ls_labelled_window *window;
    size_t count, capacity;
    int64_t share; /* of each batch */
};

/* All that was read: the state of the source. */
struct ls_labelled_windows {
    struct ls_windows_kind kind[2];
    char **path; /* of the pictures */
    size_t pictures, capacity;
    int64_t batch;
    int side, pad;
    bool square;
    float *mean; /* LS_WINDOWS_CHANNELS x mean_side[0] x mean_side[1]; NULL: none */
    int64_t mean_side[2];
    float level[LS_WINDOWS_CHANNELS]; /* mean values */
    uint64_t stamp;
};

/* Reads the file, and looks for the pictures. */
int ls_windows_read(const struct ls_windows_options *own, struct ls_labelled_windows *windows,
                    struct ls_error *error);
/* Makes the record of a window of this picture. */
int ls_windows_cut_out(struct ls_source_reader *reader, const struct ls_labelled_window *window,
                       const struct ls_picture *picture, struct ls_record *record,
                       struct ls_problem *problem);

#endif
