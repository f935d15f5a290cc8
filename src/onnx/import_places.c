/* Import: places along an axis, in any order, and more of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "onnx/importer.h"

enum { PLACES = 1 << 24 }; /* whole numbers beyond are not all floats */

int64_t *ls_import_new_places(struct ls_importer *x, int64_t count)
{
    int64_t *places = NULL;
    if (count < 1 || count > PLACES)
        ls_import_cannot(x, NULL, "%lld places are out of range", (long long)count);
    else if ((places = ls_arena_alloc(x->arena, (size_t)count, sizeof *places)) == NULL)
        ls_import_no_memory(x);
    return places;
}

const char *ls_import_places(struct ls_importer *x, const char *top, int axis,
                             const int64_t *places, int64_t count)
{
    const struct ls_shape shape = {.rank = 1, .dim = {count}};
    const char *bottoms[2] = {top}, *wanted = x->wanted;
    float *numbers = top != NULL ? ls_import_new_reals(x, count) : NULL;
    for (int64_t i = 0; numbers != NULL && i < count; i++) {
        if (places[i] < 0 || places[i] >= PLACES) {
            ls_import_cannot(x, NULL, "place %lld is out of range", (long long)places[i]);
            return NULL;
        }
        numbers[i] = (float)places[i];
    }
    if (numbers == NULL)
        return NULL;
    x->wanted = NULL;
    bottoms[1] = ls_import_layer(x, "Parameter", NULL, 0, "parameter_param { shape { dim: %lld } }",
                                 (long long)count);
    x->wanted = wanted;
    if (ls_import_weight(x, bottoms[1], "parameter", NULL, &shape, numbers) != 0)
        return NULL;
    return ls_import_layer(x, "Gather", bottoms, 2, "gather_param { axis: %d }", axis);
}

/* ---- More places, or fewer ------------------------------------------------------------------- */

enum { WRAP = 3 };

/* What is put on in front of and behind each axis. */
static int read_pads(struct ls_importer *x, int rank, int64_t before[LS_RANK_MAX],
                     int64_t after[LS_RANK_MAX])
{
    const int64_t *pads, *axes;
    int64_t count, axis_count;
    LS_TRY(ls_import_integers(x, x->opset < 2 ? "paddings" : "pads", 1, &pads, &count));
    LS_TRY(ls_import_integers(x, NULL, 3, &axes, &axis_count));
    const int64_t named = axis_count >= 0 ? axis_count : rank;
    if (count != 2 * named || named > rank)
        return ls_import_cannot(x, NULL, "pads must be two numbers for each axis");
    for (int i = 0; i < rank; i++)
        before[i] = after[i] = 0;
    for (int i = 0; i < (int)named; i++) {
        const int axis = ls_import_axis(x, axis_count >= 0 ? axes[i] : i, rank);
        if (axis < 0)
            return x->status;
        before[axis] = pads[i];
        after[axis] = pads[named + i];
        if (before[axis] <= -INT32_MAX || before[axis] >= INT32_MAX || after[axis] <= -INT32_MAX ||
            after[axis] >= INT32_MAX)
            return ls_import_cannot(x, NULL, "pads are out of range");
    }
    return 0;
}

/* The first places again behind the last one, and the last ones in front. */
static int wrap(struct ls_importer *x, struct ls_onnx_value *now, int axis, int64_t before,
                int64_t after)
{
    const int64_t extent = now->shape.dim[axis], count = before + extent + after;
    if (before == 0 && after == 0)
        return 0;
    int64_t *places = ls_import_new_places(x, count);
    if (places == NULL)
        return x->status;
    for (int64_t i = 0; i < count; i++)
        places[i] = ((i - before) % extent + extent) % extent;
    now->top = ls_import_places(x, now->top, axis, places, count);
    now->shape.dim[axis] = count;
    return now->top == NULL ? x->status : 0;
}

/* Puts on places by a Pad layer. */
static int put_on(struct ls_importer *x, struct ls_onnx_value *now, const char *mode,
                  const int64_t *before, const int64_t *after)
{
    char text[512], number[48] = "";
    int length = 0;
    double value;
    LS_TRY(ls_import_number(x, "value", 2, 0, &value));
    if (strcmp(mode, "CONSTANT") == 0 && value != 0) {
        memcpy(number, "value: ", 8);
        ls_format_float(number + 7, (float)value);
    }
    for (int i = 0; i < now->shape.rank; i++) {
        if (before[i] != 0 || after[i] != 0)
            length += snprintf(text + length, sizeof text - (size_t)length,
                               "axis: %d before: %lld after: %lld ", i, (long long)before[i],
                               (long long)after[i]);
        now->shape.dim[i] += before[i] + after[i];
    }
    if (length > 0)
        now->top = LS_LAYER(x, "Pad", now->top, "pad_param { %smode: %s %s }", text, mode, number);
    return now->top == NULL ? x->status : 0;
}

static int read_pad(struct ls_importer *x)
{
    static const char *const modes[][2] = {
        {"constant", "CONSTANT"}, {"reflect", "REFLECT"}, {"edge", "EDGE"}, {"wrap", "WRAP"}};
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    int64_t before[LS_RANK_MAX] = {0}, after[LS_RANK_MAX] = {0};
    const char *mode = NULL;
    if (in == NULL)
        return x->status;
    const int rank = in->shape.rank;
    LS_TRY(read_pads(x, rank, before, after));
    for (int i = 0; i <= WRAP && mode == NULL; i++)
        mode = ls_import_text_is(x, "mode", modes[i][0], i == 0) ? modes[i][1] : NULL;
    if (mode == NULL)
        return ls_import_cannot(x, NULL, "its mode has no equivalent");
    if (before[0] != 0 || after[0] != 0)
        return ls_import_cannot(x, NULL, "it would add samples to a batch");
    struct ls_onnx_value now = *in;
    for (int i = 1; i < rank; i++) { /* what is below 0 is cut off */
        const int64_t begin = before[i] < 0 ? -before[i] : 0, end = after[i] < 0 ? -after[i] : 0;
        if (begin + end >= now.shape.dim[i])
            return ls_import_cannot(x, NULL, "it leaves nothing");
        now.top = ls_import_part(x, &now, i, begin, now.shape.dim[i] - end);
        if (now.top == NULL)
            return x->status;
        now.shape.dim[i] -= begin + end;
        before[i] += begin;
        after[i] += end;
        if (strcmp(mode, "WRAP") == 0)
            LS_TRY(wrap(x, &now, i, before[i], after[i]));
    }
    if (strcmp(mode, "WRAP") != 0)
        LS_TRY(put_on(x, &now, mode, before, after));
    return ls_import_result(x, 0, now.top, &now.shape);
}

const struct ls_onnx_operator ls_onnx_read_places[] = {
    {"Pad", read_pad},
    {NULL, NULL},
};
