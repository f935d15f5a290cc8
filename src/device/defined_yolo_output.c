/* What YOLO's nets have found. See layers/yolo_output.c and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <sleef.h>

#include "base/heap.h"
#include "device/defined.h"
#include "device/yolo_boxes.h"

struct yolo_find {
    float score;
    int32_t cell, class; /* cells of all inputs, one behind the other */
};

/* Scratch memory of one sample: boxes by cell, a heap of what may be kept, cells that are. */
struct yolo_finds {
    struct ls_yolo_box *box;
    struct yolo_find *heap;
    int32_t *kept;
    int64_t cells, count;
};

/* Cells of a sample, in all inputs. */
static int64_t count_cells(const struct ls_op *op)
{
    int64_t cells = 0;
    for (int i = 0; i < op->inputs; i++)
        cells +=
            op->attr.yolo_output.anchors * op->input[i]->shape.dim[2] * op->input[i]->shape.dim[3];
    return cells;
}

static size_t yolo_output_scratch(const struct ls_op *op)
{
    const struct ls_yolo_output_attr *attr = &op->attr.yolo_output;
    const size_t cells = (size_t)count_cells(op);
    const size_t finds = attr->softmax ? cells : cells * (size_t)attr->classes;
    return cells * sizeof(struct ls_yolo_box) + finds * sizeof(struct yolo_find) +
           (size_t)attr->keep * sizeof(int32_t);
}

/* The higher score first; of equal ones that of the first cell, then of the first class. */
static bool find_is_before(const void *first, const void *second, const void *user)
{
    const struct yolo_find *a = first, *b = second;
    (void)user;
    if (a->score != b->score)
        return a->score > b->score;
    return a->cell != b->cell ? a->cell < b->cell : a->class < b->class;
}

/* Classes by themselves: each that scores enough is one. */
static void list_classes(const struct ls_yolo_output_attr *attr,
                         const struct ls_yolo_planes *planes, const struct ls_yolo_cell *cell,
                         struct yolo_finds *finds)
{
    const double object = ls_yolo_sigmoid(ls_yolo_number(planes, cell, LS_YOLO_OBJECT));
    for (int64_t c = 0; c < attr->classes; c++) {
        const double class = ls_yolo_sigmoid(ls_yolo_number(planes, cell, LS_YOLO_CLASSES + c));
        const float score = (float)(class * object);
        if (score > attr->threshold)
            finds->heap[finds->count++] =
                (struct yolo_find){score, (int32_t)finds->cells, (int32_t)c};
    }
}

/* A softmax: the class with the highest score, the first one of equals. */
static void list_best(const struct ls_yolo_output_attr *attr, const struct ls_yolo_planes *planes,
                      const struct ls_yolo_cell *cell, struct yolo_finds *finds)
{
    const double object = ls_yolo_sigmoid(ls_yolo_number(planes, cell, LS_YOLO_OBJECT));
    double largest = ls_yolo_number(planes, cell, LS_YOLO_CLASSES), sum = 0;
    int64_t best = 0;
    for (int64_t c = 1; c < attr->classes; c++) {
        const double number = ls_yolo_number(planes, cell, LS_YOLO_CLASSES + c);
        if (number > largest) {
            largest = number;
            best = c;
        }
    }
    for (int64_t c = 0; c < attr->classes; c++)
        sum +=
            Sleef_cinz_expd1_u10purec(ls_yolo_number(planes, cell, LS_YOLO_CLASSES + c) - largest);
    const float score = (float)(object / sum);
    if (score >= attr->threshold)
        finds->heap[finds->count++] =
            (struct yolo_find){score, (int32_t)finds->cells, (int32_t)best};
}

/* What input `input` of sample n may have found. */
static void list_input(const struct ls_defined_call *call, int input, int64_t n,
                       struct yolo_finds *finds)
{
    const struct ls_yolo_output_attr *attr = &call->op->attr.yolo_output;
    const struct ls_shape *x = &call->op->input[input]->shape;
    const struct ls_yolo_planes planes = {.x = (const float *)call->in[input] +
                                               n * x->dim[1] * x->dim[2] * x->dim[3],
                                          .rows = x->dim[2],
                                          .columns = x->dim[3],
                                          .classes = attr->classes};
    const double step = attr->steps != NULL ? attr->steps[input] : 1;
    for (int a = 0; a < attr->anchors; a++) {
        const size_t anchor =
            attr->mask != NULL ? attr->mask[input * attr->anchors + a] : (size_t)a;
        const struct ls_yolo_box size = {
            .w = (double)attr->biases[2 * anchor] / ((double)planes.columns * step),
            .h = (double)attr->biases[2 * anchor + 1] / ((double)planes.rows * step)};
        for (int64_t i = 0; i < planes.rows * planes.columns; i++, finds->cells++) {
            const struct ls_yolo_cell cell =
                ls_yolo_cell_at(&planes, i / planes.columns, i % planes.columns, a);
            finds->box[finds->cells] = ls_yolo_box_of(&planes, &cell, &size);
            (attr->softmax ? list_best : list_classes)(attr, &planes, &cell, finds);
        }
    }
}

/* Takes what was listed, the highest score first, and writes what does not overlap what it has
 * written, of any class. */
static void keep_finds(const struct ls_yolo_output_attr *attr, struct yolo_finds *finds,
                       double ordinal, float *row)
{
    const struct ls_heap heap = {finds->heap, sizeof *finds->heap, find_is_before, NULL};
    int64_t kept = 0;
    ls_heap_make(&heap, finds->count);
    while (finds->count > 0 && kept < attr->keep) {
        const struct yolo_find find = finds->heap[0];
        const struct ls_yolo_box *box = &finds->box[find.cell];
        ls_heap_drop(&heap, finds->count--);
        bool apart = true;
        for (int64_t k = 0; apart && k < kept; k++)
            apart =
                !(ls_yolo_overlap(&finds->box[finds->kept[k]], box) >= (double)attr->nms_threshold);
        if (!apart)
            continue;
        finds->kept[kept++] = find.cell;
        const double numbers[7] = {ordinal,
                                   find.class + 1.0,
                                   (double)find.score,
                                   box->x - box->w / 2,
                                   box->y - box->h / 2,
                                   box->x + box->w / 2,
                                   box->y + box->h / 2};
        for (int i = 0; i < 7; i++)
            *row++ = (float)numbers[i];
    }
    for (int64_t i = kept * 7; i < attr->keep * 7; i++)
        *row++ = -1;
}

static void yolo_output(const struct ls_defined_call *call)
{
    const struct ls_yolo_output_attr *attr = &call->op->attr.yolo_output;
    struct yolo_finds finds = {.box = call->scratch};
    const int64_t samples = call->op->input[0]->shape.dim[0], cells = count_cells(call->op);
    finds.heap = (struct yolo_find *)(void *)(finds.box + cells);
    finds.kept = (int32_t *)(void *)(finds.heap + (attr->softmax ? cells : cells * attr->classes));
    for (int64_t n = 0; n < samples; n++) {
        finds.cells = finds.count = 0;
        for (int i = 0; i < call->op->inputs; i++)
            list_input(call, i, n, &finds);
        keep_finds(attr, &finds, (double)(call->context->first_ordinal + n),
                   (float *)call->out[0] + n * attr->keep * 7);
    }
}

const struct ls_defined ls_defined_yolo_output[LS_OP_KINDS] = {
    [LS_OP_YOLO_OUTPUT] = {.run = yolo_output, .scratch = yolo_output_scratch},
};
