/* Which classes a net takes for which. See cli/confusion_table.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/confusion_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "monitor/terminal.h"

enum { SHOWN = 24, NAME = 20 };

/* A class's name, else its number, in at most NAME - 1 bytes. */
static const char *name_of(const struct lockstep_confusion *confusion, size_t class,
                           char buffer[NAME])
{
    const char *name = confusion->figures[class].name;
    if (name == NULL) {
        snprintf(buffer, NAME, "%zu", class);
        return buffer;
    }
    size_t length = strlen(name);
    if (length >= NAME) /* between characters */
        for (length = NAME - 1; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;)
            length--;
    memcpy(buffer, name, length);
    buffer[length] = '\0';
    return buffer;
}

static void put_name(FILE *out, const struct lockstep_confusion *confusion, size_t class)
{
    char name[NAME];
    ls_put_clean(out, name_of(confusion, class, name));
    for (size_t i = strlen(name); i < NAME; i++)
        putc(' ', out);
}

static void put_part(FILE *out, double value)
{
    if (isnan(value))
        fprintf(out, " %9s", "-");
    else
        fprintf(out, " %9.4f", value);
}

void ls_cli_put_class_figures(FILE *out, const struct lockstep_confusion *confusion)
{
    const bool maps = confusion->positions > 1;
    fprintf(out, "%-*s %9s %9s %9s", NAME, "class", "precision", "recall", "F1");
    fprintf(out, maps ? " %9s %10s\n" : "%s %10s\n", maps ? "IoU" : "", "count");
    for (size_t c = 0; c < confusion->classes; c++) {
        const struct lockstep_class_figures *figures = &confusion->figures[c];
        put_name(out, confusion, c);
        put_part(out, figures->precision);
        put_part(out, figures->recall);
        put_part(out, figures->f1);
        if (maps)
            put_part(out, figures->iou);
        fprintf(out, " %10" PRId64 "\n", figures->count);
    }
    fprintf(out, "Accuracy %.6g of %" PRId64 " %s", confusion->accuracy, confusion->counted,
            maps ? "positions" : "samples");
    if (maps)
        fprintf(out, ", mean IoU %.6g", confusion->mean_iou);
    if (confusion->left_out > 0)
        fprintf(out, "; %" PRId64 " labels name no class", confusion->left_out);
    putc('\n', out);
}

/* The largest cell beside the diagonal that comes behind `last` in the order of counts, then of
 * places; false: there is none that is not 0. */
static bool next_cell(const struct lockstep_confusion *confusion, size_t *last, bool first)
{
    const size_t classes = confusion->classes, cells = classes * classes;
    const int64_t *matrix = confusion->matrix;
    size_t best = cells;
    for (size_t i = 0; i < cells; i++) {
        const bool behind =
            first || matrix[i] < matrix[*last] || (matrix[i] == matrix[*last] && i > *last);
        if (i / classes != i % classes && matrix[i] > 0 && behind &&
            (best == cells || matrix[i] > matrix[best]))
            best = i;
    }
    if (best == cells)
        return false;
    *last = best;
    return true;
}

static void put_cells(FILE *out, const struct lockstep_confusion *confusion)
{
    size_t cell = 0;
    fprintf(out, "%-*s taken for\n", NAME, "label");
    for (int i = 0; i < SHOWN && next_cell(confusion, &cell, i == 0); i++) {
        put_name(out, confusion, cell / confusion->classes);
        putc(' ', out);
        put_name(out, confusion, cell % confusion->classes);
        fprintf(out, " %10" PRId64 "\n", confusion->matrix[cell]);
    }
}

/* Digits of the largest number, so that columns are no wider than they need be. */
static int cell_width(const struct lockstep_confusion *confusion)
{
    int64_t largest = 0;
    int width = 3;
    for (size_t i = 0; i < confusion->classes * confusion->classes; i++)
        if (confusion->matrix[i] > largest)
            largest = confusion->matrix[i];
    for (; largest >= 1000; largest /= 10)
        width++;
    return width;
}

void ls_cli_put_confusion(FILE *out, const struct lockstep_confusion *confusion)
{
    const size_t classes = confusion->classes;
    if (classes > SHOWN) {
        put_cells(out, confusion);
        return;
    }
    const int width = cell_width(confusion);
    fprintf(out, "Rows: labels; columns: what they were taken for, by number\n%-*s", NAME + 3, "");
    for (size_t c = 0; c < classes; c++)
        fprintf(out, " %*zu", width, c);
    putc('\n', out);
    for (size_t i = 0; i < classes; i++) {
        fprintf(out, "%2zu ", i);
        put_name(out, confusion, i);
        for (size_t j = 0; j < classes; j++)
            fprintf(out, " %*" PRId64, width, confusion->matrix[i * classes + j]);
        putc('\n', out);
    }
}

void ls_cli_put_confusion_json(struct ls_json_writer *json,
                               const struct lockstep_confusion *confusion)
{
    const size_t classes = confusion->classes;
    ls_json_number(json, "accuracy", confusion->accuracy);
    ls_json_number(json, "mean_iou", confusion->mean_iou);
    ls_json_integer(json, "counted", confusion->counted);
    ls_json_integer(json, "left_out", confusion->left_out);
    ls_json_open(json, "classes", '[');
    for (size_t c = 0; c < classes; c++) {
        const struct lockstep_class_figures *figures = &confusion->figures[c];
        ls_json_open(json, NULL, '{');
        ls_json_string(json, "name", figures->name);
        ls_json_integer(json, "count", figures->count);
        ls_json_integer(json, "predicted", figures->predicted);
        ls_json_integer(json, "right", figures->right);
        ls_json_number(json, "precision", figures->precision);
        ls_json_number(json, "recall", figures->recall);
        ls_json_number(json, "f1", figures->f1);
        ls_json_number(json, "iou", figures->iou);
        ls_json_close(json, '}');
    }
    ls_json_close(json, ']');
    ls_json_open(json, "confusion", '[');
    for (size_t i = 0; i < classes; i++) {
        ls_json_open(json, NULL, '[');
        for (size_t j = 0; j < classes; j++)
            ls_json_integer(json, NULL, confusion->matrix[i * classes + j]);
        ls_json_close(json, ']');
    }
    ls_json_close(json, ']');
}
