/* Plans of small graphs made by hand, with kernels that do nothing: which steps are recomputed,
 * that steps read the right values, that no two live values overlap, and that budgets are kept.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/plan.h"

/* ---- A device of nothing -------------------------------------------------------------------- */

static const struct ls_kernel inner_product = {.kind = LS_OP_INNER_PRODUCT, .in_place = -1},
                              inner_data = {.kind = LS_OP_INNER_PRODUCT_DATA, .in_place = -1},
                              activation = {.kind = LS_OP_ACTIVATION, .in_place = 0},
                              activation_back = {.kind = LS_OP_ACTIVATION_BACKWARD, .in_place = 0},
                              eltwise = {.kind = LS_OP_ELTWISE, .in_place = LS_IN_PLACE_ANY},
                              loss = {.kind = LS_OP_SUM_LOSS, .in_place = -1},
                              loss_back = {.kind = LS_OP_SUM_LOSS_BACKWARD, .in_place = -1};

static const struct ls_kernel *const *kernels(void)
{
    static const struct ls_kernel *const list[] = {&inner_product,   &inner_data, &activation,
                                                   &activation_back, &eltwise,    &loss,
                                                   &loss_back,       NULL};
    return list;
}

static bool supports(const struct ls_op *op)
{
    return ls_kernel_find(kernels(), op) != NULL;
}

static const struct ls_device device = {.name = "none", .kernels = kernels, .supports = supports};

/* ---- Graphs ---------------------------------------------------------------------------------- */

enum { ROWS = 4, WIDTH = 256, BYTES = ROWS * WIDTH * 4 };

static int64_t width = WIDTH;

static struct ls_value *new_value(struct ls_graph *graph)
{
    const struct ls_shape shape = {.rank = 2, .dim = {ROWS, width}};
    return ls_graph_value(graph, "v", &shape, NULL);
}

/* An op of one, two or three inputs. */
static struct ls_value *apply(struct ls_graph *graph, enum ls_op_kind kind, struct ls_value *a,
                              struct ls_value *b, struct ls_value *c)
{
    struct ls_value *y = new_value(graph);
    struct ls_op *op = ls_graph_op(graph, kind);
    struct ls_value *in[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        if (in[i] != NULL)
            ls_op_in(graph, op, in[i]);
    ls_op_out(graph, op, y);
    if (kind == LS_OP_INNER_PRODUCT || kind == LS_OP_INNER_PRODUCT_DATA) {
        op->attr.inner_product.m = ROWS;
        op->attr.inner_product.k = op->attr.inner_product.n = WIDTH;
    }
    return y;
}

/* A chain of `n` products, whose backward ops read their inputs (as that of a convolution does). */
static struct ls_graph *make_chain(int n)
{
    struct ls_graph *graph = ls_graph_new();
    static struct ls_value *x[1001];
    struct ls_value *dy;
    x[0] = new_value(graph);
    x[0]->storage = LS_STORE_INPUT;
    for (int i = 0; i < n; i++)
        x[i + 1] = apply(graph, LS_OP_INNER_PRODUCT, x[i], NULL, NULL);
    ls_op_in(graph, ls_graph_op(graph, LS_OP_SUM_LOSS), x[n]);
    graph->backward = true;
    dy = apply(graph, LS_OP_SUM_LOSS_BACKWARD, NULL, NULL, NULL);
    for (int i = n; i-- > 0;)
        dy = apply(graph, LS_OP_INNER_PRODUCT_DATA, dy, x[i], NULL);
    graph->backward = false;
    return graph;
}

/* A chain of results of random sizes, with a cheap step here and there. */
static struct ls_graph *make_uneven(int n, uint64_t seed)
{
    struct ls_graph *graph = ls_graph_new();
    static struct ls_value *x[100];
    x[0] = new_value(graph);
    x[0]->storage = LS_STORE_INPUT;
    for (int i = 0; i < n; i++) {
        width = 16 + ls_random_below(seed, 0, (uint64_t)i, 1000);
        bool cheap = i % 5 == 3;
        x[i + 1] = apply(graph, cheap ? LS_OP_ACTIVATION : LS_OP_INNER_PRODUCT, x[i], NULL, NULL);
    }
    ls_op_in(graph, ls_graph_op(graph, LS_OP_SUM_LOSS), x[n]);
    graph->backward = true;
    struct ls_value *dy = apply(graph, LS_OP_SUM_LOSS_BACKWARD, NULL, NULL, NULL);
    for (int i = n; i-- > 0;) {
        width = x[i]->shape.dim[1];
        dy = apply(graph, LS_OP_INNER_PRODUCT_DATA, dy, x[i], NULL);
    }
    graph->backward = false;
    width = WIDTH;
    return graph;
}

static struct ls_plan *make_plan(struct ls_graph *graph, size_t budget)
{
    struct ls_view_set views = {0};
    struct ls_plan *plan = NULL;
    struct ls_plan_options options = {
        .device = &device, .views = &views, .budget = {.bytes = budget, .workers = 1, .slots = 1}};
    assert_int_equal(ls_plan_build(graph, &options, &plan, NULL), 0);
    return plan;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static const struct ls_value *root_of(const struct ls_value *value)
{
    while (value->same_memory != NULL)
        value = value->same_memory;
    return value;
}

/* Runs the plan with numbers in the values' memory: each write puts the value's own number there
 * (a copy has the number of its original, which `meaning` knows), each read must find the number
 * that it expects. */
static void check_contents(const struct ls_plan *plan)
{
    static const void *memory[1 << 16];
    size_t steps = plan->step_count;
    for (size_t s = 0; s < steps; s++) {
        const struct ls_op *op = plan->steps[s].prepared.op;
        for (int i = 0; i < op->inputs; i++) {
            const struct ls_value *root = root_of(op->input[i]);
            if (root->storage != LS_STORE_ARENA)
                continue;
            for (size_t at = 0; at < BYTES; at += 64)
                assert_ptr_equal(memory[(plan->offset[root->index] + at) / 64], op->input[i]);
        }
        for (int i = 0; i < op->outputs; i++) {
            size_t offset = plan->offset[root_of(op->output[i])->index];
            assert_true(offset + BYTES <= plan->arena_bytes);
            for (size_t at = 0; at < BYTES; at += 64)
                memory[(offset + at) / 64] = op->output[i];
        }
    }
}

static size_t count_effects(const struct ls_plan *plan)
{
    size_t count = 0;
    for (size_t s = 0; s < plan->step_count; s++)
        count += ls_op_has_effect(plan->steps[s].prepared.op->kind);
    return count;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Without a limit dear steps run once, and all that is read later is kept. */
static void without_a_limit_nothing_dear_is_recomputed(void **state)
{
    (void)state;
    struct ls_plan *plan = make_plan(make_chain(16), 0);
    assert_int_equal(plan->recomputations, 0);
    assert_int_equal(plan->arena_bytes, 17 * BYTES); /* 16 results, of which the last dies first */
    assert_int_equal(plan->live_bytes, plan->arena_bytes);
    check_contents(plan);
    ls_plan_free(plan);
}

/* The smallest plan of a chain grows with the square root of its length; no step is recomputed
 * twice. */
static void the_smallest_plan_grows_like_the_root_of_the_length(void **state)
{
    (void)state;
    for (int n = 4; n <= 49; n++) {
        struct ls_plan *plan = make_plan(make_chain(n), 1);
        int root = 1;
        while (root * root < n)
            root++;
        if (plan->arena_bytes > (size_t)(2 * root + 3) * BYTES)
            fail_msg("%d products: %zu results are there at once", n, plan->arena_bytes / BYTES);
        assert_true(plan->recomputations < (size_t)n);
        assert_true(n < 9 || plan->recomputations > 0);
        assert_true(plan->recompute_work <= plan->work / 2);
        assert_int_equal(count_effects(plan), 1);
        check_contents(plan);
        ls_plan_free(plan);
    }
}

/* Every budget between the smallest and the largest is kept, and less memory never means less
 * work. */
static void every_budget_is_kept(void **state)
{
    (void)state;
    struct ls_plan *least = make_plan(make_chain(36), 1);
    double work = least->recompute_work;
    for (size_t budget = least->arena_bytes; budget <= 37 * BYTES; budget += BYTES) {
        struct ls_plan *plan = make_plan(make_chain(36), budget);
        assert_true(plan->arena_bytes <= budget);
        assert_true(plan->recompute_work <= work);
        assert_true(budget < 37 * BYTES || plan->recomputations == 0);
        check_contents(plan);
        ls_plan_free(plan);
    }
    ls_plan_free(least);
}

/* A chain whose results have different sizes: a larger budget never means more work, and is
 * kept. */
static void more_memory_is_never_more_work(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct ls_plan *least = make_plan(make_uneven(60, seed), 1);
        struct ls_plan *most = make_plan(make_uneven(60, seed), 0);
        size_t low = least->arena_bytes, high = most->arena_bytes, step = (high - low) / 60;
        double work = least->recompute_work;
        assert_true(low < high / 2);
        for (size_t budget = low; budget < high + step; budget += step) {
            struct ls_plan *plan = make_plan(make_uneven(60, seed), budget);
            assert_true(plan->arena_bytes <= budget);
            if (plan->recompute_work > work)
                fail_msg("%zu bytes: %g, and %g with less", budget, plan->recompute_work, work);
            work = plan->recompute_work;
            ls_plan_free(plan);
        }
        assert_true(work == most->recompute_work);
        ls_plan_free(least);
        ls_plan_free(most);
    }
}

/* A thousand products. */
static void a_thousand_products_fit_budgets(void **state)
{
    (void)state;
    struct ls_plan *plan = make_plan(make_chain(1000), 1);
    assert_true(plan->arena_bytes < 100 * BYTES);
    assert_true(plan->recomputations < 1000);
    double work = plan->recompute_work;
    ls_plan_free(plan);
    for (size_t budget = 150; budget <= 1000; budget += 425) {
        plan = make_plan(make_chain(1000), budget * BYTES);
        assert_true(plan->arena_bytes <= budget * BYTES);
        assert_true(plan->arena_bytes >= budget * BYTES * 8 / 10);
        assert_true(plan->recompute_work <= work);
        work = plan->recompute_work;
        check_contents(plan);
        ls_plan_free(plan);
    }
}

/* A cheap step between expensive ones, whose output only the backward pass reads, beside its
 * input: it is recomputed rather than kept. A sum takes the place of an operand that no later
 * step reads. */
static void cheap_steps_are_recomputed_rather_than_kept(void **state)
{
    (void)state;
    struct ls_graph *graph = ls_graph_new();
    struct ls_value *x[9], *y[9], *dy;
    x[0] = new_value(graph);
    x[0]->storage = LS_STORE_INPUT;
    y[0] = x[0];
    for (int i = 1; i <= 8; i++) {
        x[i] = apply(graph, LS_OP_INNER_PRODUCT, y[i - 1], NULL, NULL);
        y[i] = apply(graph, LS_OP_ACTIVATION, x[i], NULL, NULL);
    }
    graph->backward = true;
    dy = apply(graph, LS_OP_SUM_LOSS_BACKWARD, NULL, NULL, NULL);
    for (int i = 8; i > 0; i--) {
        struct ls_value *dx = apply(graph, LS_OP_ACTIVATION_BACKWARD, dy, x[i], y[i]);
        struct ls_value *through = apply(graph, LS_OP_INNER_PRODUCT_DATA, dx, y[i - 1], NULL);
        dy = apply(graph, LS_OP_ELTWISE, dx, through, NULL);
    }
    graph->backward = false;
    struct ls_plan *plan = make_plan(graph, 0);
    assert_true(plan->recomputations > 0);
    assert_true(plan->arena_bytes <= 13 * BYTES); /* all 16 are kept otherwise */
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_op *op = plan->steps[s].prepared.op;
        assert_true(!plan->steps[s].recomputed || op->kind == LS_OP_ACTIVATION);
        if (op->kind == LS_OP_ELTWISE)
            assert_non_null(op->output[0]->same_memory);
    }
    check_contents(plan);
    ls_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_limit_nothing_dear_is_recomputed),
        cmocka_unit_test(the_smallest_plan_grows_like_the_root_of_the_length),
        cmocka_unit_test(every_budget_is_kept),
        cmocka_unit_test(more_memory_is_never_more_work),
        cmocka_unit_test(a_thousand_products_fit_budgets),
        cmocka_unit_test(cheap_steps_are_recomputed_rather_than_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
