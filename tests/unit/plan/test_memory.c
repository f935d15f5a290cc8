/* Random graphs, planned with kernels that do nothing. With any element types, branches, views,
 * in-place kernels, scratch memory, sync points, chains and budgets, no step overwrites memory
 * that is still needed, recomputation gives every reader the value that it has in the graph, and
 * no byte of the arena is unused.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "ir/layer.h"
#include "unit/plan/plan_memory.h"

/* ---- A device of nothing -------------------------------------------------------------------- */

/* Scratch memory and channels follow from the op's own shape, so that a recomputation has the
 * same. */
static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    (void)error;
    const struct ls_value *out = prepared->op->outputs > 0 ? prepared->op->output[0] : NULL;
    int64_t width = out != NULL ? out->shape.dim[1] : 0;
    if (width % 3 == 0)
        prepared->scratch_bytes = (size_t)(width % 700);
    if (width > 10000 && prepared->kernel->run_channels != NULL)
        prepared->channels = 4 * LS_SYNC_BLOCK;
    return 0;
}

static int run_no_channels(const struct ls_prepared *prepared, void *const *in, void *const *out,
                           void *scratch, const struct ls_context *context, int64_t begin,
                           int64_t end)
{
    (void)prepared, (void)in, (void)out, (void)scratch, (void)context, (void)begin, (void)end;
    return 0;
}

static const enum ls_dtype types[] = {LS_F32, LS_BF16, LS_F64, LS_F16, LS_F32, LS_F32};
enum { TYPES = sizeof types / sizeof *types };

/* Kernels want some of their inputs in another type, by the op alone. */
static int ask_for_types(const struct ls_op *op, struct ls_op_layouts *layouts,
                         struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < op->inputs; i++) {
        layouts->in[i] = &ls_layout_plain;
        if (op->input[i]->shape.dim[1] % 7 == 1)
            layouts->in_type[i] = types[op->input[i]->shape.dim[1] / 7 % TYPES];
    }
    return 0;
}

/* Some take bf16, for the others it is converted. */
static bool takes_bf16(const struct ls_op *op)
{
    return op->input[0]->shape.dim[1] % 2 == 0;
}

#define KERNEL(kind_, place)                                                                       \
    {                                                                                              \
        .kind = (kind_), .in_place = (place), .prepare = prepare, .run_channels = run_no_channels, \
        .layouts = ask_for_types, .takes_bf16 = takes_bf16                                         \
    }
static const struct ls_kernel product = KERNEL(LS_OP_INNER_PRODUCT, -1),
                              activation = KERNEL(LS_OP_ACTIVATION, 0),
                              activation_back = KERNEL(LS_OP_ACTIVATION_BACKWARD, 1),
                              eltwise = KERNEL(LS_OP_ELTWISE, LS_IN_PLACE_ANY),
                              slice = KERNEL(LS_OP_SLICE, -1),
                              reorder = {.kind = LS_OP_REORDER, .in_place = -1},
                              view = {.kind = LS_OP_VIEW, .in_place = -1},
                              sync = {.kind = LS_OP_SYNC, .in_place = -1},
                              loss = {.kind = LS_OP_SUM_LOSS, .in_place = -1};

static const struct ls_kernel *const *kernels(void)
{
    static const struct ls_kernel *const list[] = {
        &product, &activation, &activation_back, &eltwise, &slice, &view,
        &sync,    &loss,       &reorder,         NULL};
    return list;
}

static bool supports(const struct ls_op *op)
{
    return ls_kernel_find(kernels(), op) != NULL;
}

static const struct ls_device device = {.name = "none", .kernels = kernels, .supports = supports};

/* ---- Random graphs --------------------------------------------------------------------------- */

enum { STEPS = 24, VALUES_MAX = 8 * STEPS, KEPT = 3, OPS_MAX = 4 * STEPS };

static struct ls_layer identities[OPS_MAX]; /* tells ops apart; no field is read */

struct made {
    uint64_t seed, draws;
    struct ls_graph *graph;
    struct ls_value *value[VALUES_MAX]; /* that may be read */
    int values;
    bool large, syncs;
    int op;
    struct ls_value *keep[KEPT];
    uint64_t contents[4 * VALUES_MAX]; /* by value, of the graph as it was made */
    int made; /* values that it had then: what the plan adds has higher numbers */
};

static int draw(struct made *made, int from, int to)
{
    return from + (int)ls_random_below(made->seed, 1, made->draws++, (uint32_t)(to - from + 1));
}

static struct ls_value *new_value(struct made *made, int64_t width)
{
    const struct ls_shape shape = {.rank = 2, .dim = {4, width}};
    struct ls_value *value = ls_graph_value(made->graph, "v", &shape, NULL);
    value->type = types[draw(made, 0, TYPES - 1)];
    return value;
}

static int64_t draw_width(struct made *made)
{
    return made->large ? 16 * draw(made, 6000, 7000) : draw(made, 1, 500);
}

/* One that was written lately, or any. */
static struct ls_value *draw_value(struct made *made)
{
    int from = draw(made, 0, 3) > 0 && made->values > 4 ? made->values - 4 : 0;
    return made->value[draw(made, from, made->values - 1)];
}

static struct ls_op *new_op(struct made *made, enum ls_op_kind kind)
{
    struct ls_op *op = ls_graph_op(made->graph, kind);
    assert_in_range(made->op, 0, OPS_MAX - 1);
    op->layer = &identities[made->op++];
    if (kind == LS_OP_INNER_PRODUCT) {
        op->attr.inner_product.m = 4;
        op->attr.inner_product.k = op->attr.inner_product.n = 1 + draw(made, 0, 300);
    }
    return op;
}

static void write_value(struct made *made, struct ls_op *op, int64_t width)
{
    struct ls_value *y = new_value(made, width);
    ls_op_out(made->graph, op, y);
    made->value[made->values++] = y;
}

/* An op of a random kind, on random values; in the backward pass as well as before. */
static void add_step(struct made *made)
{
    static const enum ls_op_kind kinds[] = {
        LS_OP_INNER_PRODUCT, LS_OP_ACTIVATION, LS_OP_ACTIVATION_BACKWARD,
        LS_OP_ELTWISE,       LS_OP_SLICE,      LS_OP_VIEW};
    if (made->syncs && draw(made, 0, 7) == 0) {
        const struct ls_sync point = {.kind = LS_SYNC_MOMENTS, .channels = 64};
        struct ls_op *op = new_op(made, LS_OP_SYNC);
        op->attr.sync = ls_graph_sync(made->graph, point, 0);
        return;
    }
    enum ls_op_kind kind = kinds[draw(made, 0, 5)];
    struct ls_op *op = new_op(made, kind);
    struct ls_value *x = draw_value(made);
    ls_op_in(made->graph, op, x);
    for (int more = kind == LS_OP_ACTIVATION_BACKWARD ? 1
                    : kind == LS_OP_ELTWISE           ? 2
                                                      : 0;
         more > 0; more--)
        ls_op_in(made->graph, op, draw_value(made));
    bool other_size = kind != LS_OP_VIEW && draw(made, 0, 3) == 0;
    write_value(made, op, other_size || kind == LS_OP_SLICE ? draw_width(made) : x->shape.dim[1]);
    if (kind == LS_OP_SLICE)
        write_value(made, op, draw_width(made));
}

static void make_graph(struct made *made, uint64_t seed)
{
    *made = (struct made){.seed = seed, .graph = ls_graph_new()};
    made->large = draw(made, 0, 7) == 0;
    made->syncs = draw(made, 0, 2) == 0;
    struct ls_value *x = new_value(made, draw_width(made));
    x->storage = LS_STORE_INPUT;
    made->value[made->values++] = x;
    for (int i = draw(made, 1, STEPS); i > 0; i--)
        add_step(made);
    ls_op_in(made->graph, new_op(made, LS_OP_SUM_LOSS), draw_value(made));
    made->graph->backward = true;
    for (int i = draw(made, 0, STEPS); i > 0; i--)
        add_step(made);
    made->graph->backward = false;
    for (int i = 0; i < KEPT; i++)
        made->keep[i] = draw(made, 0, 2) == 0 ? draw_value(made) : NULL;
    assert_in_range(made->graph->value_count, 1, 4 * VALUES_MAX);
    made->made = (int)made->graph->value_count;
    set_source_contents(made->contents, made->graph);
    for (size_t i = 0; i < made->graph->op_count; i++)
        set_op_contents(made->contents, made->graph->ops[i]);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static bool waits_for_others(const void *user, int64_t group)
{
    (void)user;
    (void)group;
    return false;
}

/* What was seen in all plans, so that the test knows that it saw everything. */
static struct seen {
    size_t shared, stashed, chained, recomputed, kept, converted, rounded, plans;
} seen;

/* Each value of the graph is written as it is there, though by way of copies: steps may read them,
 * and write what is rounded behind them. */
static void check_results(const struct made *made, const struct memory_check *check)
{
    for (size_t s = 0; s < check->plan->step_count; s++) {
        const struct ls_step *step = &check->plan->steps[s];
        const struct ls_op *op = step->prepared.op;
        for (int i = 0; i < op->outputs && !step->recomputed; i++) {
            const int v = op->output[i]->index;
            seen.rounded += v < made->made && op->kind == LS_OP_REORDER;
            if (v < made->made && check->contents[v] != made->contents[v])
                fail_msg("seed %d: step %zu reads another value than in the graph", (int)made->seed,
                         s);
        }
    }
}

/* Plans the graph of a seed for a budget and checks it; returns what the arena takes. */
static size_t check_seed(uint64_t seed, size_t budget)
{
    static struct made made;
    make_graph(&made, seed);
    struct ls_view_set views = {0};
    struct ls_plan *plan = NULL;
    struct ls_plan_options options = {.device = &device,
                                      .views = &views,
                                      .keep = made.keep,
                                      .keep_count = KEPT,
                                      .local = waits_for_others,
                                      .budget = {.bytes = budget, .workers = 1, .slots = 1}};
    assert_int_equal(ls_plan_build(made.graph, &options, &plan, NULL), 0);
    struct ls_value *keep[KEPT];
    size_t kept = 0;
    for (int i = 0; i < KEPT; i++)
        if (made.keep[i] != NULL)
            keep[kept++] = made.keep[i];
    struct memory_check check = check_plan_memory(plan, keep, kept);
    if (check.problem[0] != '\0')
        fail_msg("seed %d, budget %zu: %s", (int)seed, budget, check.problem);
    check_results(&made, &check);
    seen.shared += check.shared;
    seen.stashed += check.stashed;
    seen.chained += check.chained;
    seen.recomputed += plan->recomputations;
    for (size_t s = 0; s < plan->step_count; s++)
        seen.converted += plan->steps[s].prepared.op->kind == LS_OP_REORDER;
    seen.kept += kept;
    seen.plans++;
    size_t bytes = plan->arena_bytes + plan->stashed_bytes;
    free(check.contents);
    ls_plan_free(plan);
    return bytes;
}

/* Without a limit, with the least there can be, and with half of what lies between. */
static void no_value_is_overwritten_while_it_is_needed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        size_t most = check_seed(seed, 0), least = check_seed(seed, 1);
        if (least < most)
            (void)check_seed(seed, (least + most) / 2);
    }
    print_message("%zu plans: %zu steps in place, %zu in chains, %zu values stashed, %zu kept, %zu "
                  "recomputations, %zu conversions\n",
                  seen.plans, seen.shared, seen.chained, seen.stashed, seen.kept, seen.recomputed,
                  seen.converted);
    assert_true(seen.shared > 0 && seen.chained > 0 && seen.stashed > 0 && seen.kept > 0 &&
                seen.recomputed > 0 && seen.converted > 0 && seen.rounded > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_value_is_overwritten_while_it_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
