/* What YOLO's nets have found. See layers/yolo_output.c and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/heap.h"
#include "device/defined.h"
#include "device/yolo_finds.h"

/* Scratch memory of one sample: boxes by cell, a heap of what may be kept, cells that are. */
struct yolo_finds {
    struct ls_yolo_box *box;
    struct ls_yolo_find *heap;
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
    return cells * sizeof(struct ls_yolo_box) + finds * sizeof(struct ls_yolo_find) +
           (size_t)attr->keep * sizeof(int32_t);
}

static bool find_is_before(const void *first, const void *second, const void *user)
{
    (void)user;
    return ls_yolo_find_is_before(first, second);
}

/* Classes by themselves: each that scores enough is one. */
static void list_classes(const struct ls_yolo_output_attr *attr,
                         const struct ls_yolo_planes *planes, const struct ls_yolo_cell *cell,
                         struct yolo_finds *finds)
{
    const double object = ls_yolo_sigmoid(ls_yolo_number(planes, cell, LS_YOLO_OBJECT));
    for (int64_t c = 0; c < attr->classes; c++) {
        const float score = ls_yolo_class_score(planes, cell, object, c);
        if (score > attr->threshold)
            finds->heap[finds->count++] =
                (struct ls_yolo_find){score, (int32_t)finds->cells, (int32_t)c};
    }
}

/* A softmax: the class with the highest score, the first one of equals. */
static void list_best(const struct ls_yolo_output_attr *attr, const struct ls_yolo_planes *planes,
                      const struct ls_yolo_cell *cell, struct yolo_finds *finds)
{
    const double object = ls_yolo_sigmoid(ls_yolo_number(planes, cell, LS_YOLO_OBJECT));
    int64_t best = 0;
    const float score = ls_yolo_best_score(planes, cell, object, &best);
    if (score >= attr->threshold)
        finds->heap[finds->count++] =
            (struct ls_yolo_find){score, (int32_t)finds->cells, (int32_t)best};
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
    for (int a = 0; a < attr->anchors; a++) {
        const struct ls_yolo_box size = ls_yolo_output_size(attr, &planes, input, a);
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
        const struct ls_yolo_find find = finds->heap[0];
        const struct ls_yolo_box *box = &finds->box[find.cell];
        ls_heap_drop(&heap, finds->count--);
        bool apart = true;
        for (int64_t k = 0; apart && k < kept; k++)
            apart =
                !(ls_yolo_overlap(&finds->box[finds->kept[k]], box) >= (double)attr->nms_threshold);
        if (!apart)
            continue;
        finds->kept[kept++] = find.cell;
        ls_yolo_write_find(ordinal, &find, box, row);
        row += LS_FOUND_ROW;
    }
    for (int64_t i = kept * LS_FOUND_ROW; i < attr->keep * LS_FOUND_ROW; i++)
        *row++ = -1;
}

static void yolo_output(const struct ls_defined_call *call)
{
    const struct ls_yolo_output_attr *attr = &call->op->attr.yolo_output;
    struct yolo_finds finds = {.box = call->scratch};
    const int64_t samples = call->op->input[0]->shape.dim[0], cells = count_cells(call->op);
    finds.heap = (struct ls_yolo_find *)(void *)(finds.box + cells);
    finds.kept = (int32_t *)(void *)(finds.heap + (attr->softmax ? cells : cells * attr->classes));
    for (int64_t n = 0; n < samples; n++) {
        finds.cells = finds.count = 0;
        for (int i = 0; i < call->op->inputs; i++)
            list_input(call, i, n, &finds);
        keep_finds(attr, &finds, (double)(call->context->first_ordinal + n),
                   (float *)call->out[0] + n * attr->keep * LS_FOUND_ROW);
    }
}

const struct ls_defined ls_defined_yolo_output[LS_OP_KINDS] = {
    [LS_OP_YOLO_OUTPUT] = {.run = yolo_output, .scratch = yolo_output_scratch},
};
