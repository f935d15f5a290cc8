/* Samples drawn in the terminal.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/gallery.h"

#include <stdlib.h>

#include "monitor/draw.h"
#include "monitor/terminal.h"

void ls_cli_gallery_draw(struct ls_cli_gallery *gallery, FILE *out)
{
    struct ls_drawing pictures[LS_CLI_GALLERY_MAX];
    for (size_t i = 0; i < gallery->count; i++) {
        pictures[i] =
            (struct ls_drawing){.channels = (int)gallery->shapes[i][0],
                                .height = (int)gallery->shapes[i][1],
                                .width = (int)gallery->shapes[i][2],
                                .pixels = gallery->pixels[i],
                                .captions = {gallery->captions[i][0], gallery->captions[i][1]},
                                .mark = gallery->marks[i]};
    }
    ls_draw_pictures(out, pictures, gallery->count, ls_terminal_width(out),
                     ls_terminal_colours(out));
    for (size_t i = 0; i < gallery->count; i++)
        free(gallery->pixels[i]);
    gallery->count = 0;
}

void ls_cli_gallery_put(struct ls_cli_gallery *gallery, FILE *out, const int64_t shape[3],
                        float *pixels, const char *first, const char *second)
{
    if (gallery->count == LS_CLI_GALLERY_MAX)
        ls_cli_gallery_draw(gallery, out);
    size_t i = gallery->count++;
    gallery->pixels[i] = pixels;
    gallery->marks[i] = 0;
    for (int axis = 0; axis < 3; axis++)
        gallery->shapes[i][axis] = shape[axis];
    snprintf(gallery->captions[i][0], sizeof gallery->captions[i][0], "%s", first);
    snprintf(gallery->captions[i][1], sizeof gallery->captions[i][1], "%s", second);
}

void ls_cli_gallery_add(struct ls_cli_gallery *gallery, FILE *out, const int64_t shape[3],
                        float *pixels, const struct ls_cli_predictions *ranked, const float *values,
                        int label)
{
    ls_cli_gallery_put(gallery, out, shape, pixels, "", "");
    size_t i = gallery->count - 1, best = ranked->order[0];
    char number[24];
    /* The name comes last: it is what may be cut. */
    double value = (double)values[best];
    const char *name = ls_cli_class_name(ranked->model, best, number);
    if (value >= 0 && value <= 1)
        snprintf(gallery->captions[i][0], sizeof gallery->captions[i][0], "%.0f%% %s", 100 * value,
                 name);
    else
        snprintf(gallery->captions[i][0], sizeof gallery->captions[i][0], "%.3g %s", value, name);
    gallery->marks[i] = label < 0 ? 0 : (size_t)label == best ? 1 : -1;
    if (gallery->marks[i] > 0)
        snprintf(gallery->captions[i][1], sizeof gallery->captions[i][1], "right");
    else if (gallery->marks[i] < 0)
        snprintf(gallery->captions[i][1], sizeof gallery->captions[i][1], "no: %s",
                 ls_cli_class_name(ranked->model, (size_t)label, number));
}
