/* Import: nodes whose inputs are constants are worked out: arithmetic of shapes, masks, and weights
 * in another shape or order.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "onnx/importer.h"

enum { INPUTS_MAX = 512 };
#define FOLDED_MAX ((size_t)2 << 30) /* bytes of all that is worked out */

/* What a node makes of `in`. */
struct folding {
    struct ls_importer *x;
    struct ls_onnx_value *in[INPUTS_MAX];
    int count;
    struct ls_onnx_value out;
    int64_t *wholes; /* of out; or: */
    float *reals;
};

/* Makes room for the result. */
static int make(struct folding *f, const struct ls_shape *shape, bool integers)
{
    if (!ls_shape_valid(shape, true))
        return ls_import_cannot(f->x, NULL, "its result would be too large");
    const int64_t count = ls_shape_size(shape);
    const size_t size = integers ? sizeof *f->wholes : sizeof *f->reals;
    if ((size_t)count > (FOLDED_MAX - f->x->folded) / size)
        return ls_import_cannot(f->x, NULL, "its constants would take more than 2 GiB");
    f->x->folded += (size_t)count * size;
    void *numbers = ls_arena_alloc(f->x->arena, (size_t)count + 1, size);
    if (numbers == NULL)
        return ls_import_no_memory(f->x);
    f->out.shape = *shape;
    f->out.integers = integers;
    if (integers)
        f->out.wholes = f->wholes = numbers;
    else
        f->out.reals = f->reals = numbers;
    return 0;
}

static void put(struct folding *f, int64_t at, const struct ls_onnx_value *from, int64_t index)
{
    if (f->out.integers)
        f->wholes[at] = from->integers ? from->wholes[index] : (int64_t)from->reals[index];
    else
        f->reals[at] = from->integers ? (float)from->wholes[index] : from->reals[index];
}

/* Where number `i` of `shape` lies in an array with these strides. */
static int64_t place(const struct ls_shape *shape, int64_t i, const int64_t *strides)
{
    int64_t at = 0;
    int rank = shape->rank < LS_RANK_MAX ? shape->rank : LS_RANK_MAX; /* for clang's analyzer */
    for (int axis = rank - 1; axis >= 0; axis--) {
        at += i % shape->dim[axis] * strides[axis];
        i /= shape->dim[axis];
    }
    return at;
}

static void find_strides(const struct ls_shape *shape, int64_t *strides)
{
    int64_t stride = 1;
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        strides[axis] = stride;
        stride *= shape->dim[axis];
    }
}

/* Strides of `in` laid over `out`: 0 where it is repeated. */
static void lay_strides(const struct ls_shape *in, const struct ls_shape *out, int64_t *strides)
{
    int64_t own[LS_RANK_MAX];
    find_strides(in, own);
    for (int i = 0; i < out->rank; i++) {
        const int axis = i - (out->rank - in->rank);
        strides[i] = axis < 0 || in->dim[axis] == 1 ? 0 : own[axis];
    }
}

static int need(struct folding *f, int count)
{
    for (int i = 0; i < count; i++)
        if (i >= f->count || f->in[i] == NULL)
            return ls_import_cannot(f->x, NULL, "input %d is missing", i);
    return 0;
}

/* The same numbers under another shape: no copy, and still a weight if it was one. */
static int keep(struct folding *f, const struct ls_shape *shape)
{
    if (ls_shape_size(shape) != ls_shape_size(&f->in[0]->shape))
        return ls_import_cannot(f->x, NULL, "its shape has not as many numbers as its input");
    f->out = *f->in[0];
    f->out.shape = *shape;
    return 0;
}

/* ---- Constants and shapes -------------------------------------------------------------------- */

static int fold_constant(struct folding *f)
{
    const Onnx__AttributeProto *a;
    struct ls_importer *x = f->x;
    if ((a = ls_import_attribute(x, "value")) != NULL && a->t != NULL) {
        if (a->t->n_dims > LS_RANK_MAX)
            return ls_import_cannot(x, NULL, "it has too many axes");
        f->out.shape.rank = (int)a->t->n_dims;
        for (size_t i = 0; i < a->t->n_dims; i++)
            f->out.shape.dim[i] = a->t->dims[i];
        if (!ls_shape_valid(&f->out.shape, true))
            return ls_import_cannot(x, NULL, "its shape is not valid");
        f->out.tensor = a->t;
        return ls_import_numbers_of(x, &f->out);
    }
    struct ls_shape list = {.rank = 1};
    const struct ls_shape one = {0};
    if ((a = ls_import_attribute(x, "value_ints")) != NULL) {
        list.dim[0] = (int64_t)a->n_ints;
        LS_TRY(make(f, &list, true));
        for (size_t i = 0; i < a->n_ints; i++)
            f->wholes[i] = a->ints[i];
    } else if ((a = ls_import_attribute(x, "value_floats")) != NULL) {
        list.dim[0] = (int64_t)a->n_floats;
        LS_TRY(make(f, &list, false));
        for (size_t i = 0; i < a->n_floats; i++)
            f->reals[i] = a->floats[i];
    } else if ((a = ls_import_attribute(x, "value_int")) != NULL) {
        LS_TRY(make(f, &one, true));
        f->wholes[0] = a->i;
    } else if ((a = ls_import_attribute(x, "value_float")) != NULL) {
        LS_TRY(make(f, &one, false));
        f->reals[0] = a->f;
    } else {
        return ls_import_cannot(x, NULL,
                                "a constant of texts or of few numbers among zeros is not "
                                "read");
    }
    return 0;
}

/* An input that gives a shape. */
static int read_shape(struct folding *f, int index, struct ls_shape *shape)
{
    LS_TRY(need(f, index + 1));
    const int64_t count = ls_shape_size(&f->in[index]->shape);
    if (!f->in[index]->integers || count > LS_RANK_MAX)
        return ls_import_cannot(f->x, NULL, "input %d is no shape", index);
    shape->rank = (int)count;
    for (int i = 0; i < shape->rank; i++)
        shape->dim[i] = f->in[index]->wholes[i];
    return 0;
}

static int fold_constant_of_shape(struct folding *f)
{
    const Onnx__AttributeProto *a = ls_import_attribute(f->x, "value");
    const bool given = a != NULL && a->t != NULL; /* otherwise zeros */
    struct ls_shape shape;
    struct ls_onnx_value value = {.constant = true};
    LS_TRY(read_shape(f, 0, &shape));
    if (given) {
        value.tensor = a->t;
        LS_TRY(ls_import_numbers_of(f->x, &value));
        if (a->t->n_dims > 1 || (a->t->n_dims == 1 && a->t->dims[0] != 1))
            return ls_import_cannot(f->x, NULL, "its value is not one number");
    }
    LS_TRY(make(f, &shape, given && value.integers));
    f->out.learned = !f->out.integers; /* weights of models that are written for tests */
    for (int64_t i = 0; given && i < ls_shape_size(&shape); i++)
        put(f, i, &value, 0);
    return 0;
}

static int fold_shape(struct folding *f)
{
    LS_TRY(need(f, 1));
    const struct ls_shape *in = &f->in[0]->shape;
    int64_t begin = ls_import_integer(f->x, "start", 0),
            end = ls_import_integer(f->x, "end", in->rank);
    begin = begin < 0 ? (begin + in->rank < 0 ? 0 : begin + in->rank) : begin;
    end = end < 0 ? end + in->rank : end > in->rank ? in->rank : end;
    const struct ls_shape shape = {.rank = 1, .dim = {end > begin ? end - begin : 0}};
    LS_TRY(make(f, &shape, true));
    for (int64_t i = 0; i < shape.dim[0]; i++)
        f->wholes[i] = in->dim[begin + i];
    return 0;
}

static int fold_size(struct folding *f)
{
    const struct ls_shape one = {0};
    LS_TRY(need(f, 1));
    LS_TRY(make(f, &one, true));
    f->wholes[0] = ls_shape_size(&f->in[0]->shape);
    return 0;
}

static int fold_cast(struct folding *f)
{
    enum ls_dtype type;
    LS_TRY(need(f, 1));
    if (!ls_onnx_type((int32_t)ls_import_integer(f->x, "to", 0), &type))
        return ls_import_cannot(f->x, NULL, "its type is none that is read");
    const bool real = type == LS_F32 || type == LS_F64 || type == LS_F16 || type == LS_BF16;
    if (real != f->in[0]->integers)
        return keep(f, &f->in[0]->shape);
    LS_TRY(make(f, &f->in[0]->shape, !real));
    for (int64_t i = 0; i < ls_shape_size(&f->out.shape); i++) {
        if (!real && !(fabsf(f->in[0]->reals[i]) < 9e18F))
            return ls_import_cannot(f->x, NULL, "a number is too large for an integer");
        put(f, i, f->in[0], i);
        if (type == LS_BOOL)
            f->wholes[i] = f->in[0]->reals[i] != 0;
    }
    return 0;
}

static int fold_identity(struct folding *f)
{
    LS_TRY(need(f, 1));
    return keep(f, &f->in[0]->shape);
}

static int fold_range(struct folding *f)
{
    LS_TRY(need(f, 3));
    for (int i = 0; i < 3; i++)
        if (!f->in[i]->integers || ls_shape_size(&f->in[i]->shape) != 1)
            return ls_import_cannot(f->x, NULL, "only a range of integers is worked out");
    const int64_t begin = f->in[0]->wholes[0], end = f->in[1]->wholes[0], by = f->in[2]->wholes[0];
    const int64_t most = INT64_C(1) << 40;
    if (by == 0 || begin > most || begin < -most || end > most || end < -most || by > most ||
        by < -most)
        return ls_import_cannot(f->x, NULL, "its numbers are out of range");
    const int64_t count = by > 0 ? (end - begin + by - 1) / by : (begin - end - by - 1) / -by;
    const struct ls_shape shape = {.rank = 1, .dim = {count > 0 ? count : 0}};
    LS_TRY(make(f, &shape, true));
    for (int64_t i = 0; i < shape.dim[0]; i++)
        f->wholes[i] = begin + i * by;
    return 0;
}

/* ---- Numbers in another place ---------------------------------------------------------------- */

static int fold_reshape(struct folding *f)
{
    struct ls_shape shape;
    int64_t size = 1;
    int rest = -1;
    LS_TRY(read_shape(f, 1, &shape));
    const int64_t all = ls_shape_size(&f->in[0]->shape);
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] == 0 && i < f->in[0]->shape.rank)
            shape.dim[i] = f->in[0]->shape.dim[i];
        if (shape.dim[i] == -1 && rest < 0)
            rest = i;
        else if (shape.dim[i] < 1 || shape.dim[i] > all / size)
            return ls_import_cannot(f->x, NULL, "its shape does not fit");
        else
            size *= shape.dim[i];
    }
    if (rest >= 0)
        shape.dim[rest] = all / size;
    return keep(f, &shape);
}

/* Unsqueeze and Squeeze. */
static int fold_axes(struct folding *f, bool more)
{
    const int64_t *axes;
    int64_t count;
    bool marked[2 * LS_RANK_MAX + 1] = {false};
    struct ls_shape shape = {0};
    LS_TRY(need(f, 1));
    const struct ls_shape *in = &f->in[0]->shape;
    LS_TRY(ls_import_integers(f->x, "axes", 1, &axes, &count));
    if (count > LS_RANK_MAX || (more && count < 0) || (more && in->rank + count > LS_RANK_MAX))
        return ls_import_cannot(f->x, NULL, "it has too many axes");
    const int rank = in->rank + (more ? (int)count : 0);
    for (int64_t i = 0; i < count; i++) {
        const int axis = ls_import_axis(f->x, axes[i], rank);
        if (axis < 0 || marked[axis])
            return ls_import_cannot(f->x, NULL, "its axes are not valid");
        marked[axis] = true;
    }
    for (int i = 0, from = 0; i < rank; i++) {
        if (more)
            shape.dim[shape.rank++] = marked[i] ? 1 : in->dim[from++];
        else if (count < 0 ? in->dim[i] != 1 : !marked[i])
            shape.dim[shape.rank++] = in->dim[i];
    }
    return keep(f, &shape);
}

static int fold_unsqueeze(struct folding *f)
{
    return fold_axes(f, true);
}

static int fold_squeeze(struct folding *f)
{
    return fold_axes(f, false);
}

/* Takes each number of `shape` from where the strides say. */
static int move(struct folding *f, const struct ls_shape *shape, const int64_t *strides,
                int64_t offset)
{
    LS_TRY(make(f, shape, f->in[0]->integers));
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        put(f, i, f->in[0], offset + place(shape, i, strides));
    return 0;
}

static int fold_transpose(struct folding *f)
{
    const int64_t *perm;
    int64_t count, own[LS_RANK_MAX], strides[LS_RANK_MAX];
    LS_TRY(need(f, 1));
    struct ls_shape shape = f->in[0]->shape;
    LS_TRY(ls_import_integers(f->x, "perm", -1, &perm, &count));
    if (count >= 0 && count != shape.rank)
        return ls_import_cannot(f->x, NULL, "perm does not fit its input");
    find_strides(&f->in[0]->shape, own);
    bool seen[LS_RANK_MAX] = {false};
    for (int i = 0; i < shape.rank; i++) {
        const int axis = count < 0 ? shape.rank - 1 - i : ls_import_axis(f->x, perm[i], shape.rank);
        if (axis < 0 || seen[axis])
            return ls_import_cannot(f->x, NULL, "perm is no order of its axes");
        seen[axis] = true;
        strides[i] = own[axis];
        shape.dim[i] = f->in[0]->shape.dim[axis];
    }
    LS_TRY(move(f, &shape, strides, 0));
    f->out.learned = f->in[0]->learned;
    f->out.name = f->in[0]->name;
    return 0;
}

static int fold_expand(struct folding *f)
{
    struct ls_shape to, shape;
    int64_t strides[LS_RANK_MAX];
    LS_TRY(read_shape(f, 1, &to));
    if (!ls_import_broadcast(&f->in[0]->shape, &to, &shape))
        return ls_import_cannot(f->x, NULL, "its shape does not fit");
    if (ls_shape_equal(&shape, &f->in[0]->shape))
        return keep(f, &shape);
    lay_strides(&f->in[0]->shape, &shape, strides);
    return move(f, &shape, strides, 0);
}

static int fold_slice(struct folding *f)
{
    const int64_t *starts, *ends, *axes, *steps;
    int64_t count, end_count, axis_count, step_count, strides[LS_RANK_MAX], offset = 0;
    LS_TRY(need(f, 1));
    struct ls_shape shape = f->in[0]->shape;
    LS_TRY(ls_import_integers(f->x, "starts", 1, &starts, &count));
    LS_TRY(ls_import_integers(f->x, "ends", 2, &ends, &end_count));
    LS_TRY(ls_import_integers(f->x, "axes", 3, &axes, &axis_count));
    LS_TRY(ls_import_integers(f->x, "steps", 4, &steps, &step_count));
    find_strides(&shape, strides);
    if (count < 1 || count > shape.rank || end_count != count ||
        (axis_count >= 0 && axis_count != count) || (step_count >= 0 && step_count != count))
        return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
    bool seen[LS_RANK_MAX] = {false};
    for (int64_t i = 0; i < count; i++) {
        const int axis = ls_import_axis(f->x, axis_count >= 0 ? axes[i] : i, shape.rank);
        const int64_t by = step_count >= 0 ? steps[i] : 1;
        if (axis < 0 || seen[axis] || (by != 1 && by != -1))
            return ls_import_cannot(f->x, NULL, "its axes or steps are not read");
        seen[axis] = true;
        const int64_t extent = shape.dim[axis], low = by > 0 ? 0 : -1,
                      high = by > 0 ? extent : extent - 1;
        int64_t begin =
            starts[i] < 0 ? (starts[i] < -extent ? low : starts[i] + extent) : starts[i];
        int64_t end = ends[i] < 0 ? (ends[i] < -extent ? low : ends[i] + extent) : ends[i];
        begin = begin > high ? high : begin;
        end = end > high + (by < 0) ? high + (by < 0) : end;
        shape.dim[axis] = (end - begin) * by > 0 ? (end - begin) * by : 0;
        offset += shape.dim[axis] > 0 ? begin * strides[axis] : 0;
        strides[axis] *= by;
    }
    return move(f, &shape, strides, offset);
}

static int fold_gather(struct folding *f)
{
    LS_TRY(need(f, 2));
    const struct ls_onnx_value *in = f->in[0], *index = f->in[1];
    const int axis = ls_import_axis(f->x, ls_import_integer(f->x, "axis", 0), in->shape.rank);
    if (axis < 0)
        return f->x->status;
    if (!index->integers || in->shape.rank - 1 + index->shape.rank > LS_RANK_MAX)
        return ls_import_cannot(f->x, NULL, "its numbers of places are not read");
    struct ls_shape shape = {0};
    for (int i = 0; i < in->shape.rank; i++) {
        if (i != axis)
            shape.dim[shape.rank++] = in->shape.dim[i];
        for (int k = 0; i == axis && k < index->shape.rank; k++)
            shape.dim[shape.rank++] = index->shape.dim[k];
    }
    LS_TRY(make(f, &shape, in->integers));
    const int64_t extent = in->shape.dim[axis], places = ls_shape_size(&index->shape);
    const int64_t before = ls_shape_count(&in->shape, 0, axis),
                  behind = ls_shape_count(&in->shape, axis + 1, in->shape.rank);
    for (int64_t p = 0; p < places; p++) {
        const int64_t at = index->wholes[p] + (index->wholes[p] < 0 ? extent : 0);
        if (at < 0 || at >= extent)
            return ls_import_cannot(f->x, NULL, "there is no place %lld", (long long)at);
        for (int64_t i = 0; i < before; i++)
            for (int64_t k = 0; k < behind; k++)
                put(f, (i * places + p) * behind + k, in, (i * extent + at) * behind + k);
    }
    return 0;
}

static int fold_concat(struct folding *f)
{
    LS_TRY(need(f, f->count > 0 ? f->count : 1));
    struct ls_shape shape = f->in[0]->shape;
    const int axis = ls_import_axis(f->x, ls_import_integer(f->x, "axis", 0), shape.rank);
    if (axis < 0)
        return f->x->status;
    shape.dim[axis] = 0;
    for (int i = 0; i < f->count; i++) {
        struct ls_shape other = f->in[i]->shape;
        if (other.rank == shape.rank)
            other.dim[axis] = f->in[0]->shape.dim[axis];
        if (!ls_shape_equal(&other, &f->in[0]->shape) || f->in[i]->integers != f->in[0]->integers)
            return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
        shape.dim[axis] += f->in[i]->shape.dim[axis];
    }
    LS_TRY(make(f, &shape, f->in[0]->integers));
    const int64_t before = ls_shape_count(&shape, 0, axis),
                  row = ls_shape_count(&shape, axis, shape.rank);
    int64_t at = 0;
    for (int i = 0; i < f->count; i++) {
        const int64_t part = ls_shape_count(&f->in[i]->shape, axis, shape.rank);
        for (int64_t k = 0; k < before * part; k++)
            put(f, k / part * row + at + k % part, f->in[i], k);
        at += part;
    }
    return 0;
}

static int fold_trilu(struct folding *f)
{
    double by;
    LS_TRY(need(f, 1));
    const struct ls_shape *shape = &f->in[0]->shape;
    LS_TRY(ls_import_number(f->x, NULL, 1, 0, &by));
    if (shape->rank < 2)
        return ls_import_cannot(f->x, NULL, "its input is no matrix");
    const bool upper = ls_import_integer(f->x, "upper", 1) != 0;
    LS_TRY(make(f, shape, f->in[0]->integers));
    const int64_t columns = shape->dim[shape->rank - 1], rows = shape->dim[shape->rank - 2];
    for (int64_t i = 0; i < ls_shape_size(shape); i++) {
        const double diagonal = (double)(i % columns) - (double)(i / columns % rows);
        if (upper ? diagonal >= by : diagonal <= by)
            put(f, i, f->in[0], i);
    }
    return 0;
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

static int64_t of_wholes(const char *type, int64_t a, int64_t b)
{
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    if (strcmp(type, "Add") == 0)
        return (int64_t)(ua + ub);
    if (strcmp(type, "Sub") == 0)
        return (int64_t)(ua - ub);
    if (strcmp(type, "Mul") == 0)
        return (int64_t)(ua * ub);
    if (strcmp(type, "Div") == 0)
        return b == 0 ? 0 : b == -1 ? (int64_t)(0 - ua) : a / b;
    if (strcmp(type, "Mod") == 0)
        return b == 0 || b == -1 ? 0 : (a % b + b) % b;
    if (strcmp(type, "Min") == 0)
        return a < b ? a : b;
    if (strcmp(type, "Max") == 0)
        return a > b ? a : b;
    if (strcmp(type, "And") == 0)
        return a != 0 && b != 0;
    if (strcmp(type, "Or") == 0)
        return a != 0 || b != 0;
    return 0;
}

static double of_reals(const char *type, double a, double b)
{
    if (strcmp(type, "Add") == 0)
        return a + b;
    if (strcmp(type, "Sub") == 0)
        return a - b;
    if (strcmp(type, "Mul") == 0)
        return a * b;
    if (strcmp(type, "Div") == 0)
        return a / b;
    if (strcmp(type, "Min") == 0)
        return fmin(a, b);
    return fmax(a, b);
}

static bool compare(const char *type, double a, double b)
{
    if (strcmp(type, "Equal") == 0)
        return a == b;
    if (strcmp(type, "Less") == 0)
        return a < b;
    if (strcmp(type, "LessOrEqual") == 0)
        return a <= b;
    if (strcmp(type, "Greater") == 0)
        return a > b;
    return a >= b;
}

static double number(const struct ls_onnx_value *value, int64_t i)
{
    return value->integers ? (double)value->wholes[i] : (double)value->reals[i];
}

static bool compares(const char *type)
{
    return strcmp(type, "Equal") == 0 || strncmp(type, "Less", 4) == 0 ||
           strncmp(type, "Greater", 7) == 0;
}

static int fold_two(struct folding *f)
{
    const char *type = f->x->node->op_type;
    struct ls_shape shape;
    int64_t sa[LS_RANK_MAX], sb[LS_RANK_MAX];
    LS_TRY(need(f, 2));
    const struct ls_onnx_value *a = f->in[0], *b = f->in[1];
    if (f->count != 2 || !ls_import_broadcast(&a->shape, &b->shape, &shape))
        return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
    const bool asks = compares(type), whole = a->integers && b->integers;
    if (strcmp(type, "Mod") == 0 && !whole)
        return ls_import_cannot(f->x, NULL, "only integers are worked out");
    LS_TRY(make(f, &shape, asks || whole));
    lay_strides(&a->shape, &shape, sa);
    lay_strides(&b->shape, &shape, sb);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++) {
        const int64_t ia = place(&shape, i, sa), ib = place(&shape, i, sb);
        if (asks)
            f->wholes[i] = compare(type, number(a, ia), number(b, ib));
        else if (whole)
            f->wholes[i] = of_wholes(type, a->wholes[ia], b->wholes[ib]);
        else
            f->reals[i] = (float)of_reals(type, number(a, ia), number(b, ib));
    }
    return 0;
}

static int fold_where(struct folding *f)
{
    struct ls_shape two, shape;
    int64_t s[3][LS_RANK_MAX] = {{0}};
    LS_TRY(need(f, 3));
    if (!ls_import_broadcast(&f->in[1]->shape, &f->in[2]->shape, &two) ||
        !ls_import_broadcast(&f->in[0]->shape, &two, &shape) || !f->in[0]->integers)
        return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
    LS_TRY(make(f, &shape, f->in[1]->integers && f->in[2]->integers));
    for (int i = 0; i < 3; i++)
        lay_strides(&f->in[i]->shape, &shape, s[i]);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++) {
        const int from = f->in[0]->wholes[place(&shape, i, s[0])] != 0 ? 1 : 2;
        put(f, i, f->in[from], place(&shape, i, s[from]));
    }
    return 0;
}

static int fold_one(struct folding *f)
{
    const char *type = f->x->node->op_type;
    LS_TRY(need(f, 1));
    const bool whole = f->in[0]->integers;
    if (whole && (strcmp(type, "Sqrt") == 0))
        return ls_import_cannot(f->x, NULL, "the root of integers is not worked out");
    LS_TRY(make(f, &f->in[0]->shape, whole));
    for (int64_t i = 0; i < ls_shape_size(&f->out.shape); i++) {
        if (whole) {
            const int64_t n = f->in[0]->wholes[i];
            f->wholes[i] = strcmp(type, "Not") == 0   ? n == 0
                           : strcmp(type, "Neg") == 0 ? (int64_t)(0 - (uint64_t)n)
                                                      : n;
            continue;
        }
        const float n = f->in[0]->reals[i];
        f->reals[i] = strcmp(type, "Neg") == 0     ? -n
                      : strcmp(type, "Sqrt") == 0  ? sqrtf(n)
                      : strcmp(type, "Floor") == 0 ? floorf(n)
                                                   : ceilf(n);
    }
    return 0;
}

static const struct {
    const char *type;
    int (*fold)(struct folding *f);
} folders[] = {
    {"Add", fold_two},
    {"And", fold_two},
    {"Cast", fold_cast},
    {"Ceil", fold_one},
    {"Concat", fold_concat},
    {"Constant", fold_constant},
    {"ConstantOfShape", fold_constant_of_shape},
    {"Div", fold_two},
    {"Equal", fold_two},
    {"Expand", fold_expand},
    {"Floor", fold_one},
    {"Gather", fold_gather},
    {"Greater", fold_two},
    {"GreaterOrEqual", fold_two},
    {"Identity", fold_identity},
    {"Less", fold_two},
    {"LessOrEqual", fold_two},
    {"Max", fold_two},
    {"Min", fold_two},
    {"Mod", fold_two},
    {"Mul", fold_two},
    {"Neg", fold_one},
    {"Not", fold_one},
    {"Or", fold_two},
    {"Range", fold_range},
    {"Reshape", fold_reshape},
    {"Shape", fold_shape},
    {"Size", fold_size},
    {"Slice", fold_slice},
    {"Sqrt", fold_one},
    {"Squeeze", fold_squeeze},
    {"Sub", fold_two},
    {"Transpose", fold_transpose},
    {"Trilu", fold_trilu},
    {"Unsqueeze", fold_unsqueeze},
    {"Where", fold_where},
};

bool ls_import_folds(const char *type)
{
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strcmp(folders[i].type, type) == 0)
            return true;
    return false;
}

int ls_import_fold(struct ls_importer *x, bool *done)
{
    struct folding f = {.x = x, .count = (int)x->node->n_input, .out = {.constant = true}};
    size_t at = 0;
    while (at < sizeof folders / sizeof *folders && strcmp(folders[at].type, x->node->op_type) != 0)
        at++;
    *done = at < sizeof folders / sizeof *folders;
    if (!*done)
        return 0;
    if (x->node->n_input > INPUTS_MAX)
        return ls_import_cannot(x, NULL, "it has more than %d inputs", INPUTS_MAX);
    const bool shape_only = folders[at].fold == fold_shape || folders[at].fold == fold_size;
    for (int i = 0; i < f.count; i++) {
        f.in[i] = ls_import_input(x, i);
        if (f.in[i] != NULL && !shape_only)
            LS_TRY(ls_import_numbers_of(x, f.in[i]));
    }
    LS_TRY(folders[at].fold(&f));
    const struct ls_onnx_value *out = ls_import_output(x, 0);
    if (f.out.name == NULL && out != NULL)
        f.out.name = out->name;
    const char *name = f.out.name;
    LS_TRY(ls_import_hand_on(x, &f.out, 0));
    if (out != NULL)
        ls_import_output(x, 0)->name = name;
    return 0;
}
