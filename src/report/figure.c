/* What a series of figures is. See report/figure.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/figure.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Figures that every training has, in the order of their charts. */
static const struct {
    const char *key, *title;
} known[] = {{"learning_rate", "Learning rate"},
             {"gradient_norm", "Gradient norm"},
             {"weight_norm", "Weight norm"},
             {"update_norm", "Update norm"},
             {"samples_per_second", "Samples per second"},
             {"penalty", "Weight decay penalty"}};

enum { KNOWN = sizeof known / sizeof *known };

const char *ls_figure_key(const struct ls_series *series)
{
    const char *slash = strchr(series->name, '/');
    if (series->total)
        return "";
    return slash != NULL ? slash + 1 : series->name;
}

const char *ls_figure_title(const char *key)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i].key, key) == 0)
            return known[i].title;
    return *key != '\0' ? key : "Loss";
}

bool ls_figure_trains(const struct ls_series *series)
{
    return strchr(series->name, '/') == NULL || strncmp(series->name, "train/", 6) == 0;
}

const char *ls_figure_part(const struct ls_series *series, char buffer[LS_FIGURE_NAME])
{
    const size_t length = strcspn(series->name, "/");
    if (ls_figure_trains(series))
        return "training";
    if (strncmp(series->name, "train data/", 11) == 0)
        return "training data";
    if (strncmp(series->name, "test ", 5) == 0)
        snprintf(buffer, LS_FIGURE_NAME, "test net %.*s", (int)(length - 5), series->name + 5);
    else
        snprintf(buffer, LS_FIGURE_NAME, "%.*s", (int)(length < 100 ? length : 100), series->name);
    return buffer;
}

/* Whether a name has one of these words, whatever its letters' case. */
static bool mentions(const char *name, const char *const *words, size_t count)
{
    char small[LS_FIGURE_NAME];
    size_t length = 0;
    for (; name[length] != '\0' && length + 1 < sizeof small; length++)
        small[length] = (char)tolower((unsigned char)name[length]);
    small[length] = '\0';
    for (size_t i = 0; i < count; i++)
        if (strstr(small, words[i]) != NULL)
            return true;
    return false;
}

#define MENTIONS(name, ...)                                                                        \
    mentions(name, (const char *const[]){__VA_ARGS__},                                             \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static bool is_loss(const struct ls_series *series)
{
    return series->total || series->loss_weight != 0 ||
           MENTIONS(ls_figure_key(series), "loss", "error", "perplexity", "bits");
}

int ls_figure_direction(const struct ls_series *series)
{
    const char *key = ls_figure_key(series);
    if (series->better != 0)
        return series->better;
    /* Figures of a training, and logs of earlier versions: by their names. */
    if (is_loss(series))
        return series->loss_weight < 0 ? 1 : -1;
    return strchr(series->name, '/') != NULL &&
                   (MENTIONS(key, "accuracy", "iou", "map", "precision", "recall", "dice", "top",
                             "auc") ||
                    strcmp(key, "AP") == 0 || strncmp(key, "AP[", 3) == 0)
               ? 1
               : 0;
}

int ls_figure_rank(const struct ls_series *series)
{
    enum { LOSS, MEAN, OUTPUT, OF_TRAINING, OF_A_CLASS, OTHER };
    const char *key = ls_figure_key(series);
    if (series->total)
        return LOSS;
    for (int i = 0; i < KNOWN; i++)
        if (strcmp(known[i].key, series->name) == 0)
            return OTHER + i;
    if (strchr(key, '[') != NULL)
        return OF_A_CLASS;
    if (ls_figure_trains(series))
        return OF_TRAINING;
    return !is_loss(series) && MENTIONS(key, "map", "mean", "miou") ? MEAN : OUTPUT;
}

bool ls_figure_best(const struct ls_series *series, double *value, int64_t *iteration)
{
    const int direction = ls_figure_direction(series);
    for (size_t i = 0; i < series->count; i++) {
        const struct lockstep_point *point = &series->points[i];
        const double best = direction > 0 ? point->most : point->least;
        if (i == 0 || (direction > 0 ? best > *value : best < *value)) {
            *value = best;
            *iteration = point->last;
        }
    }
    return direction != 0 && series->count > 0;
}
