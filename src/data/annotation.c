/* AnnotatedDatum in the wire format of protocol buffers (base/wire.h):
 *
 *   AnnotatedDatum   datum = 1, type = 2 (0: boxes), annotation_group = 3, repeated
 *   AnnotationGroup  group_label = 1, annotation = 2, repeated
 *   Annotation       instance_id = 1, bbox = 2
 *   NormalizedBBox   xmin = 1, ymin = 2, xmax = 3, ymax = 4 (floats), difficult = 6
 *
 * The class of a box is its group's. Unknown fields are skipped; of several values the last counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/annotation.h"

#include <math.h>
#include <string.h>

#include "base/wire.h"

static const int32_t NUMBER_MOST = 1 << 24; /* fp32 has all whole numbers up to it */

struct box {
    int32_t class, instance;
    float corner[4]; /* xmin, ymin, xmax, ymax */
    bool difficult;
};

/* What is done with each box. */
struct visit {
    struct ls_problem *problem;
    int64_t count;
    float *out; /* NULL: boxes are checked and counted */
};

static int bad(const struct visit *v, const char *what)
{
    return ls_problem_set(v->problem, LOCKSTEP_DATA, NULL, "box %lld: %s", (long long)v->count + 1,
                          what);
}

static float read_float(const unsigned char *b)
{
    const uint32_t bits =
        (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* int32 fields are sign extended. */
static int32_t read_number(const struct ls_wire_field *field)
{
    return (int32_t)(uint32_t)field->value;
}

static int read_corners(const struct visit *v, const struct ls_wire_field *message, struct box *box)
{
    struct ls_wire wire = ls_wire_open(message->bytes, message->size);
    struct ls_wire_field field;
    while (ls_wire_next(&wire, &field)) {
        if (field.number >= 1 && field.number <= 4) {
            if (field.type != LS_WIRE_32)
                return bad(v, "a corner is not a float");
            box->corner[field.number - 1] = read_float(field.bytes);
        } else if (field.number == 6) {
            if (field.type != LS_WIRE_VARINT)
                return bad(v, "'difficult' is not a flag");
            box->difficult = field.value != 0;
        }
    }
    return wire.damaged ? bad(v, "it is cut off") : 0;
}

static int check_box(const struct visit *v, const struct box *box)
{
    const float *corner = box->corner;
    for (int i = 0; i < 4; i++)
        if (!isfinite(corner[i]))
            return bad(v, "a corner is not a finite number");
    if (corner[0] > corner[2] || corner[1] > corner[3])
        return bad(v, "it ends before it begins (xmax < xmin or ymax < ymin)");
    if (box->class < 0 || box->class > NUMBER_MOST)
        return bad(v, "its class is below 0 or beyond 2^24");
    if (box->instance < -NUMBER_MOST || box->instance > NUMBER_MOST)
        return bad(v, "its instance is beyond 2^24");
    return v->count < LS_BOXES_MOST ? 0 : bad(v, "a record can have 10000 boxes at most");
}

static void write_box(const struct box *box, float *row)
{
    row[0] = 0;
    row[1] = (float)box->class;
    row[2] = (float)box->instance;
    memcpy(row + 3, box->corner, sizeof box->corner);
    row[7] = box->difficult ? 1 : 0;
}

static int read_box(struct visit *v, const struct ls_wire_field *message, int32_t class)
{
    struct box box = {.class = class};
    struct ls_wire wire = ls_wire_open(message->bytes, message->size);
    struct ls_wire_field field;
    while (ls_wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == LS_WIRE_VARINT)
            box.instance = read_number(&field);
        else if (field.number == 2 && field.type == LS_WIRE_BYTES)
            LS_TRY(read_corners(v, &field, &box));
        else if (field.number <= 2)
            return bad(v, "a field of it has another type");
    }
    if (wire.damaged)
        return bad(v, "it is cut off");
    LS_TRY(check_box(v, &box));
    if (v->out != NULL)
        write_box(&box, v->out + LS_BOX_NUMBERS * v->count);
    v->count++;
    return 0;
}

/* The label of a group may stand behind its boxes. */
static int read_group(struct visit *v, const struct ls_wire_field *message)
{
    struct ls_wire wire = ls_wire_open(message->bytes, message->size);
    struct ls_wire_field field;
    int32_t class = 0;
    while (ls_wire_next(&wire, &field))
        if (field.number == 1 && field.type == LS_WIRE_VARINT &&
            (int64_t)field.value == read_number(&field))
            class = read_number(&field);
        else if (field.number == 1 && field.type == LS_WIRE_VARINT)
            return bad(v, "the label of its group has more than 32 bits");
        else if (field.number == 1 || (field.number == 2 && field.type != LS_WIRE_BYTES))
            return bad(v, "a field of its group has another type");
    if (wire.damaged)
        return bad(v, "its group is cut off");
    wire = ls_wire_open(message->bytes, message->size);
    while (ls_wire_next(&wire, &field))
        if (field.number == 2)
            LS_TRY(read_box(v, &field, class));
    return 0;
}

static int read_all(struct visit *v, const uint8_t *bytes, size_t size,
                    struct ls_annotation *annotation)
{
    static const char none[] = "it is not an AnnotatedDatum";
    struct ls_wire wire = ls_wire_open(bytes, size);
    struct ls_wire_field field;
    while (ls_wire_next(&wire, &field)) {
        const enum ls_wire_type type = field.number == 2 ? LS_WIRE_VARINT : LS_WIRE_BYTES;
        if (field.number <= 3 && field.type != type)
            return ls_problem_set(v->problem, LOCKSTEP_DATA,
                                  "records without boxes are read by a Data layer", none);
        if (field.number == 1) {
            annotation->datum = field.bytes;
            annotation->datum_size = field.size;
        } else if (field.number == 2) {
            if (field.value != 0)
                return ls_problem_set(v->problem, LOCKSTEP_DATA, NULL,
                                      "its annotations are not boxes (type %lld)",
                                      (long long)field.value);
            annotation->says_type = true;
        } else if (field.number == 3) {
            LS_TRY(read_group(v, &field));
        }
    }
    if (wire.damaged || annotation->datum == NULL)
        return ls_problem_set(v->problem, LOCKSTEP_DATA, NULL, none);
    return 0;
}

int ls_annotation_read(const uint8_t *bytes, size_t size, struct ls_annotation *annotation,
                       struct ls_problem *problem)
{
    struct visit v = {.problem = problem};
    *annotation = (struct ls_annotation){0};
    LS_TRY(read_all(&v, bytes, size, annotation));
    annotation->boxes = v.count;
    return 0;
}

void ls_annotation_clear(int64_t rows, float *out)
{
    for (int64_t i = 0; i < rows * LS_BOX_NUMBERS; i++)
        out[i] = -1;
}

void ls_annotation_rows(const uint8_t *bytes, size_t size, int64_t rows, float *out)
{
    struct visit v = {.out = out};
    struct ls_annotation again = {0};
    (void)read_all(&v, bytes, size, &again); /* it was accepted before */
    ls_annotation_clear(rows - v.count, out + LS_BOX_NUMBERS * v.count);
}

int64_t ls_annotation_count(const float *row, int64_t rows)
{
    int64_t count = 0;
    while (count < rows && row[LS_BOX_NUMBERS * count + 1] >= 0)
        count++;
    return count;
}

bool ls_annotation_looks(const uint8_t *bytes, size_t size)
{
    struct ls_annotation annotation;
    return ls_annotation_read(bytes, size, &annotation, NULL) == 0;
}
