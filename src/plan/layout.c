/* Layouts: every op says which layouts it wants to read and which it writes; where what is there
 * differs from what is wanted, a reorder goes in between. A value that was reordered once is not
 * reordered again. The rule looks at ops alone, never at workers, timing or memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "ir/layer.h"
#include "plan/plan.h"

/* A value in a second layout, or type. */
struct copy {
    struct ls_value *original, *copy;
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
static struct ls_value *new_copy(struct layout_pass *pass, struct ls_value *value,
                                 const struct ls_layout *layout, enum ls_dtype type)
{
    struct ls_graph *graph = pass->plan->graph;
    struct ls_value *copy = ls_graph_value(graph, value->name, &value->shape, value);
    if (copy == NULL || !LS_GROW(pass->copies, pass->copy_count, pass->copy_capacity))
        return NULL;
    copy->type = type;
    copy->layout = layout;
    copy->learned = value->learned;
    pass->copies[pass->copy_count++] = (struct copy){.original = value, .copy = copy};
    return copy;
}

/* Replaces *slot by the same value in `layout`, with elements of `type`. Where no reorder leads
 * there, for layers that share a parameter may see other axes in it (transposed, or cut into
 * groups), two do, over Caffe's order. */
static int convert(struct layout_pass *pass, const struct ls_op *reader, struct ls_value **slot,
                   const struct ls_layout *layout, enum ls_dtype type)
{
    struct ls_value *value = *slot;
    for (size_t i = 0; i < pass->copy_count; i++) {
        const struct copy *known = &pass->copies[i];
        if (known->original == value && known->copy->layout == layout &&
            known->copy->type == type) {
            *slot = known->copy;
            return 0;
        }
    }
    struct ls_value *copy = new_copy(pass, value, layout, type);
    if (copy == NULL)
        return ls_fail_memory(pass->error, "a plan");
    *slot = copy;
    if (value->storage == LS_STORE_PARAMETER) {
        int view = -1;
        copy->storage = LS_STORE_PARAMETER;
        copy->parameter = value->parameter;
        LS_TRY(find_view(pass, &(struct ls_view){value->parameter, layout, type}, &view));
        return set_view(pass, copy, view);
    }
    struct ls_graph *graph = pass->plan->graph;
    struct ls_op *reorder = ls_graph_op(graph, LS_OP_REORDER);
    ls_op_in(graph, reorder, value);
    ls_op_out(graph, reorder, copy);
    if (graph->failed)
        return ls_fail_memory(pass->error, "a plan");
    reorder->layer = reader->layer;
    reorder->backward = reader->backward;
    const struct ls_kernel *kernel = choose_kernel(pass, reorder);
    if (kernel == NULL && value->layout != &ls_layout_plain && layout != &ls_layout_plain) {
        LS_TRY(convert(pass, reader, &reorder->input[0], &ls_layout_plain, value->type));
        kernel = choose_kernel(pass, reorder);
    }
    return kernel != NULL ? add_step(pass, reorder, kernel) : no_kernel(pass, reorder);
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

/* Sync points are carried out by the code that runs the plan. */
static const struct ls_kernel sync_point = {.kind = LS_OP_SYNC, .name = "sync", .in_place = -1};

static int plan_op(struct layout_pass *pass, struct ls_op *op)
{
    if (op->kind == LS_OP_SYNC)
        return add_step(pass, op, &sync_point);
    const struct ls_kernel *kernel = choose_kernel(pass, op);
    if (kernel == NULL)
        return no_kernel(pass, op);
    struct ls_op_layouts layouts;
    for (int i = 0; i < op->inputs; i++) {
        layouts.in[i] = op->input[i] != NULL ? layout_of(op->input[i]) : NULL;
        layouts.in_type[i] = op->input[i] != NULL ? op->input[i]->type : LS_F32;
    }
    for (int i = 0; i < op->outputs; i++)
        layouts.out[i] = &ls_layout_plain;
    if (op->kind == LS_OP_ACCUMULATE && op->attr.parameter->layout == NULL)
        op->attr.parameter->layout = &ls_layout_plain;
    if (kernel->layouts != NULL) {
        LS_TRY(kernel->layouts(op, &layouts, pass->error));
    } else {
        for (int i = 0; i < op->inputs; i++)
            layouts.in[i] = &ls_layout_plain;
    }
    for (int i = 0; i < op->inputs; i++) {
        struct ls_value *value = op->input[i];
        if (value == NULL)
            continue;
        const struct ls_layout *there = layout_of(value);
        if (there == NULL) {
            /* A parameter, read for the first time: its layout is the one that reader prefers. */
            value->parameter->layout = layouts.in[i];
            there = layouts.in[i];
        }
        if (value->layout == NULL)
            value->layout = there;
        if (there != layouts.in[i] || value->type != layouts.in_type[i])
            LS_TRY(convert(pass, op, &op->input[i], layouts.in[i], layouts.in_type[i]));
    }
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            op->output[i]->layout = layouts.out[i];
    return add_step(pass, op, kernel);
}

/* Names all layers at once that the device cannot carry out. */
static int check_support(struct layout_pass *pass)
{
    const struct ls_graph *graph = pass->plan->graph;
    int status = 0;
    for (size_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i]->kind != LS_OP_SYNC && !pass->plan->device->supports(graph->ops[i]))
            status = no_kernel(pass, graph->ops[i]);
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
