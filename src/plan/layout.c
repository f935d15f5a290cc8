/* Layouts: every op says which layouts it wants to read and which it writes; where what is there
 * differs from what is wanted, a reorder goes in between. A value that was reordered once is not
 * reordered again. The rule looks at ops alone, never at workers, timing or memory.
 *
 * Types: what a product of a layer in bf16 reads is rounded to bf16. A kernel that does not take
 * bf16 gets fp32 copies of such values, and what it writes is rounded behind it, each element once.
 * Such copies are for the ops of one layer: they are not kept from the forward pass to the backward
 * pass, since they would take the memory that bf16 saves. They are plain; kernels that take bf16
 * have their values in the layouts that they ask for.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "ir/layer.h"
#include "ir/op_type.h"
#include "plan/plan.h"

/* A value in a second layout, or type; what was widened to fp32 is for one layer and pass. */
struct copy {
    struct ls_value *original, *copy;
    const struct ls_op *reader;
};

struct layout_pass {
    struct ls_plan *plan;
    struct ls_view_set *views;
    struct copy *copies;
    size_t copy_count, copy_capacity;
    size_t step_capacity;
    size_t value_capacity; /* of plan->view */
    struct ls_error *error;
};

static const struct ls_kernel *choose_kernel(const struct layout_pass *pass, const struct ls_op *op)
{
    return ls_kernel_find(pass->plan->device->kernels(), op);
}

static int no_kernel(const struct layout_pass *pass, const struct ls_op *op)
{
    if (op->layer != NULL && op->kind == LS_OP_REORDER && op->input[0]->type != op->output[0]->type)
        return ls_layer_fail(op->layer, pass->error, NULL, NULL, NULL,
                             "the device %s cannot convert '%s' from %s to %s",
                             pass->plan->device->name, op->input[0]->name,
                             ls_dtype_name(op->input[0]->type), ls_dtype_name(op->output[0]->type));
    if (op->layer != NULL)
        return ls_layer_fail(op->layer, pass->error, NULL, NULL, NULL,
                             "the device %s has no kernel for this %s", pass->plan->device->name,
                             ls_op_kind_name(op->kind));
    return ls_fail(pass->error, LOCKSTEP_INTERNAL, NULL, NULL, "no kernel for %s",
                   ls_op_kind_name(op->kind));
}

static int add_step(struct layout_pass *pass, struct ls_op *op, const struct ls_kernel *kernel)
{
    struct ls_plan *plan = pass->plan;
    if (!LS_GROW(plan->steps, plan->step_count, pass->step_capacity))
        return ls_fail_memory(pass->error, "a plan");
    struct ls_step *step = &plan->steps[plan->step_count++];
    *step = (struct ls_step){0};
    step->prepared.kernel = kernel;
    step->prepared.op = op;
    return 0;
}

/* Remembers that parameter value `value` is the view `view`. */
static int set_view(struct layout_pass *pass, const struct ls_value *value, int view)
{
    struct ls_plan *plan = pass->plan;
    while (pass->value_capacity <= (size_t)value->index) {
        size_t wanted = plan->graph->value_count * 2 + 64;
        int *longer = ls_resize(plan->view, wanted, sizeof *longer);
        if (longer == NULL)
            return ls_fail_memory(pass->error, "a plan");
        for (size_t i = pass->value_capacity; i < wanted; i++)
            longer[i] = -1;
        plan->view = longer;
        pass->value_capacity = wanted;
    }
    plan->view[value->index] = view;
    return 0;
}

static int find_view(struct layout_pass *pass, const struct ls_view *wanted, int *index)
{
    struct ls_view_set *views = pass->views;
    for (size_t i = 0; i < views->count; i++)
        if (views->items[i].parameter == wanted->parameter &&
            views->items[i].layout == wanted->layout && views->items[i].type == wanted->type) {
            *index = (int)i;
            return 0;
        }
    if (!LS_GROW(views->items, views->count, views->capacity))
        return ls_fail_memory(pass->error, "a view");
    *index = (int)views->count;
    views->items[views->count++] = *wanted;
    return 0;
}

/* A new value like `value` in another layout, or type. */
static struct ls_value *new_value(struct layout_pass *pass, struct ls_value *value,
                                  const struct ls_layout *layout, enum ls_dtype type)
{
    struct ls_value *copy = ls_graph_value(pass->plan->graph, value->name, &value->shape, value);
    if (copy == NULL)
        return NULL;
    copy->type = type;
    copy->layout = layout;
    copy->learned = value->learned;
    return copy;
}

/* Whether a value that `known` holds a copy of is there in `layout` and `type` for `reader`. */
static bool serves(const struct copy *known, const struct ls_op *reader,
                   const struct ls_value *value, const struct ls_layout *layout, enum ls_dtype type)
{
    if (known->original != value || known->copy->layout != layout || known->copy->type != type)
        return false;
    bool widened = value->type == LS_BF16 && type == LS_F32;
    return !widened ||
           (known->reader->layer == reader->layer && known->reader->backward == reader->backward);
}

static int convert(struct layout_pass *pass, const struct ls_op *reader, struct ls_value **slot,
                   const struct ls_layout *layout, enum ls_dtype type);

/* Appends the step that copies `from` to `to`, for `reader`. Where no reorder leads from one layout
 * to the other, for layers that share a parameter may see other axes in it (transposed, or cut into
 * groups), two do, over Caffe's order. */
static int add_reorder(struct layout_pass *pass, const struct ls_op *reader, struct ls_value *from,
                       struct ls_value *to)
{
    struct ls_graph *graph = pass->plan->graph;
    struct ls_op *reorder = ls_graph_op(graph, LS_OP_REORDER);
    ls_op_in(graph, reorder, from);
    ls_op_out(graph, reorder, to);
    if (graph->failed)
        return ls_fail_memory(pass->error, "a plan");
    reorder->layer = reader->layer;
    reorder->backward = reader->backward;
    const struct ls_kernel *kernel = choose_kernel(pass, reorder);
    if (kernel == NULL && from->layout != &ls_layout_plain && to->layout != &ls_layout_plain) {
        LS_TRY(convert(pass, reader, &reorder->input[0], &ls_layout_plain, from->type));
        kernel = choose_kernel(pass, reorder);
    }
    return kernel != NULL ? add_step(pass, reorder, kernel) : no_kernel(pass, reorder);
}

/* Whether a value is a parameter, or a view of one in another layout: not one that is rounded. */
static bool has_views(const struct ls_value *value, enum ls_dtype type)
{
    return value->storage == LS_STORE_PARAMETER && (value->type != LS_BF16 || type == LS_BF16);
}

/* Replaces *slot by the same value in `layout`, with elements of `type`. */
static int convert(struct layout_pass *pass, const struct ls_op *reader, struct ls_value **slot,
                   const struct ls_layout *layout, enum ls_dtype type)
{
    struct ls_value *value = *slot;
    for (size_t i = 0; i < pass->copy_count; i++)
        if (serves(&pass->copies[i], reader, value, layout, type)) {
            *slot = pass->copies[i].copy;
            return 0;
        }
    struct ls_value *copy = new_value(pass, value, layout, type);
    if (copy == NULL || !LS_GROW(pass->copies, pass->copy_count, pass->copy_capacity))
        return ls_fail_memory(pass->error, "a plan");
    pass->copies[pass->copy_count++] =
        (struct copy){.original = value, .copy = copy, .reader = reader};
    *slot = copy;
    if (!has_views(value, type))
        return add_reorder(pass, reader, value, copy);
    int view = -1;
    copy->storage = LS_STORE_PARAMETER;
    copy->parameter = value->parameter;
    LS_TRY(find_view(pass, &(struct ls_view){value->parameter, layout, type}, &view));
    return set_view(pass, copy, view);
}

/* The present layout: values have that of the op that wrote them; a parameter that has not been
 * read yet has none. */
static const struct ls_layout *layout_of(const struct ls_value *value)
{
    if (value->storage == LS_STORE_PARAMETER && value->layout == NULL)
        return value->parameter->layout;
    if (value->storage == LS_STORE_INPUT)
        return &ls_layout_plain;
    return value->layout;
}

/* What the code that runs the plan carries out itself, on values in Caffe's order. */
static const struct ls_kernel *find_engine_kernel(const struct ls_op *op)
{
    static const struct ls_kernel kernels[] = {
        {.kind = LS_OP_SYNC, .bits = LS_BITS_EXACT, .name = "sync", .in_place = -1},
        {.kind = LS_OP_RECALL, .bits = LS_BITS_EXACT, .name = "recall", .in_place = -1},
        {.kind = LS_OP_KEEP, .bits = LS_BITS_EXACT, .name = "keep", .in_place = -1}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].kind == op->kind)
            return &kernels[i];
    return NULL;
}

/* ---- Types ----------------------------------------------------------------------------------- */

/* A parameter that is read for the first time lies as its reader prefers. */
static void settle_layout(struct ls_value *value, const struct ls_layout *preferred)
{
    if (layout_of(value) == NULL)
        value->parameter->layout = preferred;
    if (value->layout == NULL)
        value->layout = layout_of(value);
}

/* Rounds what a product of numbers in bf16 reads; a kernel that takes them so asks for weights by
 * itself. */
static int round_inputs(struct layout_pass *pass, struct ls_op *op, bool takes_bf16)
{
    for (int i = 0; i < ls_op_type(op->kind)->rounded_inputs; i++) {
        struct ls_value **slot = &op->input[i];
        if (*slot == NULL || (*slot)->type == LS_BF16)
            continue;
        settle_layout(*slot, &ls_layout_plain);
        if ((*slot)->storage != LS_STORE_PARAMETER && (*slot)->layout != &ls_layout_plain)
            LS_TRY(convert(pass, op, slot, &ls_layout_plain, (*slot)->type));
        if ((*slot)->storage != LS_STORE_PARAMETER || !takes_bf16)
            LS_TRY(convert(pass, op, slot, &ls_layout_plain, LS_BF16));
    }
    return 0;
}

/* For a kernel that does not take bf16. */
static int widen_inputs(struct layout_pass *pass, struct ls_op *op)
{
    for (int i = 0; i < op->inputs; i++) {
        if (op->input[i] == NULL || op->input[i]->type != LS_BF16)
            continue;
        settle_layout(op->input[i], &ls_layout_plain);
        LS_TRY(convert(pass, op, &op->input[i], &ls_layout_plain, LS_F32));
    }
    return 0;
}

/* The outputs in bf16 that a kernel will write as fp32; NULL for others. */
static int widen_outputs(struct layout_pass *pass, struct ls_op *op,
                         struct ls_value *rounded[LS_OP_VALUES_MAX])
{
    for (int i = 0; i < op->outputs; i++) {
        struct ls_value *value = op->output[i];
        if (value == NULL || value->type != LS_BF16)
            continue;
        struct ls_value *wide = new_value(pass, value, NULL, LS_F32);
        if (wide == NULL)
            return ls_fail_memory(pass->error, "a plan");
        wide->gradient_of = value->gradient_of;
        rounded[i] = value;
        op->output[i] = wide;
    }
    return 0;
}

/* Rounds what a kernel wrote as fp32. */
static int round_outputs(struct layout_pass *pass, const struct ls_op *op,
                         struct ls_value *const rounded[LS_OP_VALUES_MAX])
{
    for (int i = 0; i < op->outputs; i++) {
        if (rounded[i] == NULL)
            continue;
        struct ls_value *wide = op->output[i];
        if (wide->layout != &ls_layout_plain)
            LS_TRY(convert(pass, op, &wide, &ls_layout_plain, LS_F32));
        rounded[i]->layout = &ls_layout_plain;
        LS_TRY(add_reorder(pass, op, wide, rounded[i]));
    }
    return 0;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* What the kernel asks of its inputs, and says of its outputs. */
static int ask_kernel(struct layout_pass *pass, const struct ls_op *op,
                      const struct ls_kernel *kernel, struct ls_op_layouts *layouts)
{
    for (int i = 0; i < op->inputs; i++) {
        layouts->in[i] = op->input[i] != NULL ? layout_of(op->input[i]) : NULL;
        layouts->in_type[i] = op->input[i] != NULL ? op->input[i]->type : LS_F32;
    }
    for (int i = 0; i < op->outputs; i++)
        layouts->out[i] = &ls_layout_plain;
    if (op->kind == LS_OP_ACCUMULATE && op->attr.parameter->layout == NULL)
        op->attr.parameter->layout = &ls_layout_plain;
    if (kernel->layouts != NULL)
        return kernel->layouts(op, layouts, pass->error);
    for (int i = 0; i < op->inputs; i++)
        layouts->in[i] = &ls_layout_plain;
    return 0;
}

static int plan_layouts(struct layout_pass *pass, struct ls_op *op, const struct ls_kernel *kernel)
{
    struct ls_op_layouts layouts;
    LS_TRY(ask_kernel(pass, op, kernel, &layouts));
    for (int i = 0; i < op->inputs; i++) {
        struct ls_value *value = op->input[i];
        if (value == NULL)
            continue;
        settle_layout(value, layouts.in[i]);
        if (layout_of(value) != layouts.in[i] || value->type != layouts.in_type[i])
            LS_TRY(convert(pass, op, &op->input[i], layouts.in[i], layouts.in_type[i]));
    }
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            op->output[i]->layout = layouts.out[i];
    return add_step(pass, op, kernel);
}

static int plan_op(struct layout_pass *pass, struct ls_op *op)
{
    const struct ls_kernel *kernel =
        ls_op_type(op->kind)->by_engine ? find_engine_kernel(op) : choose_kernel(pass, op);
    if (kernel == NULL)
        return no_kernel(pass, op);
    if (op->bf16)
        LS_TRY(round_inputs(pass, op, kernel->takes_bf16 != NULL));
    struct ls_value *rounded[LS_OP_VALUES_MAX] = {NULL};
    bool as_it_is =
        op->kind == LS_OP_VIEW || (kernel->takes_bf16 != NULL && kernel->takes_bf16(op));
    if (!as_it_is) {
        LS_TRY(widen_inputs(pass, op));
        LS_TRY(widen_outputs(pass, op, rounded));
    }
    LS_TRY(plan_layouts(pass, op, kernel));
    return round_outputs(pass, op, rounded);
}

/* Products in TF32, on a device without. */
static int no_tf32(const struct layout_pass *pass, const struct ls_op *op)
{
    return ls_layer_fail(op->layer, pass->error, NULL, "precision",
                         "cards compute so: --gpu 0; or precision: FP32",
                         "the device %s has no products in TF32", pass->plan->device->name);
}

/* Names all layers at once that the device cannot carry out. */
static int check_support(struct layout_pass *pass)
{
    const struct ls_graph *graph = pass->plan->graph;
    const struct ls_device *device = pass->plan->device;
    int status = 0;
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        if (!ls_op_type(op->kind)->by_engine && !device->supports(op))
            status = no_kernel(pass, op);
        else if (op->tf32 && !op->backward && !device->tf32)
            status = no_tf32(pass, op);
    }
    return status;
}

int ls_plan_layouts(struct ls_plan *plan, struct ls_view_set *views, struct ls_error *error)
{
    struct layout_pass pass = {.plan = plan, .views = views, .error = error};
    struct ls_graph *graph = plan->graph;
    size_t ops = graph->op_count; /* reorders are appended behind them */
    int status = check_support(&pass);
    for (size_t i = 0; i < ops && status == 0; i++)
        status = plan_op(&pass, graph->ops[i]);
    if (status == 0 && pass.value_capacity < graph->value_count)
        status = set_view(&pass, graph->values[graph->value_count - 1], -1);
    ls_free(pass.copies);
    return status;
}
