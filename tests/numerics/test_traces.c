/* A trace (--trace) of several ranks: one file, of which every object follows the rules of Chrome's
 * trace event format. Each thread's slices lie within each other or apart; each arrow has one
 * beginning and one end, in this order and each within a slice; nothing is trained otherwise.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/json_tree.h"
#include "base/timeline.h"
#include "numerics/rank_nets.h"
#include "observe/timeline_text.h"
#include "solver/loop.h"
#include "solver/trace.h"
#include "transport/progress_thread.h"

enum { ROOM = 100000 };

struct slice {
    int64_t begin, end; /* nanoseconds */
    int pid, tid;
};

struct arrow_end {
    int64_t at;
    int pid, tid, count;
};

struct arrow {
    char id[64];
    struct arrow_end ends[2]; /* where it begins, and where it ends */
};

/* What a file holds. */
struct seen {
    struct slice *slices;
    struct arrow *arrows;
    size_t slice_count, arrow_count;
    int processes, threads, layers, updates, exchanges;
};

static const char *word(const struct ls_json_tree *tree, const struct ls_json_node *object,
                        const char *name)
{
    const struct ls_json_node *node = ls_json_find(tree, object, name);
    return node != NULL && node->kind == LS_JSON_STRING ? ls_json_text(tree, node) : "";
}

static double figure(const struct ls_json_tree *tree, const struct ls_json_node *object,
                     const char *name)
{
    const struct ls_json_node *node = ls_json_find(tree, object, name);
    if (node == NULL)
        fail_msg("an object lacks '%s'", name);
    assert_true(node->kind == LS_JSON_INTEGER || node->kind == LS_JSON_NUMBER);
    return node->kind == LS_JSON_INTEGER ? (double)node->integer : node->number;
}

static int64_t nanoseconds(const struct ls_json_tree *tree, const struct ls_json_node *object,
                           const char *name)
{
    double time = figure(tree, object, name);
    assert_true(time >= 0);
    return (int64_t)(time * 1000 + 0.5);
}

static void see_arrow(struct seen *seen, const struct ls_json_tree *tree,
                      const struct ls_json_node *object)
{
    const char *id = word(tree, object, "id");
    const bool ends = word(tree, object, "ph")[0] == 'f';
    size_t i = 0;
    assert_true(id[0] != '\0' && strlen(id) < sizeof seen->arrows->id);
    while (i < seen->arrow_count && strcmp(seen->arrows[i].id, id) != 0)
        i++;
    if (i == seen->arrow_count) {
        assert_true(seen->arrow_count < ROOM);
        strcpy(seen->arrows[seen->arrow_count++].id, id);
    }
    struct arrow_end *end = &seen->arrows[i].ends[ends];
    *end = (struct arrow_end){.at = nanoseconds(tree, object, "ts"),
                              .pid = (int)figure(tree, object, "pid"),
                              .tid = (int)figure(tree, object, "tid"),
                              .count = end->count + 1};
}

static void see_slice(struct seen *seen, const struct ls_json_tree *tree,
                      const struct ls_json_node *object)
{
    assert_true(seen->slice_count < ROOM);
    struct slice *slice = &seen->slices[seen->slice_count++];
    slice->pid = (int)figure(tree, object, "pid");
    slice->tid = (int)figure(tree, object, "tid");
    slice->begin = nanoseconds(tree, object, "ts");
    slice->end = slice->begin + nanoseconds(tree, object, "dur");
    const char *category = word(tree, object, "cat");
    assert_true(word(tree, object, "name")[0] != '\0');
    seen->layers += strcmp(category, "forward") == 0 || strcmp(category, "backward") == 0;
    seen->updates += strcmp(category, "update") == 0;
    seen->exchanges += strcmp(category, "exchange") == 0;
}

static void see_object(struct seen *seen, const struct ls_json_tree *tree,
                       const struct ls_json_node *object)
{
    const char *phase = word(tree, object, "ph");
    figure(tree, object, "pid");
    figure(tree, object, "tid");
    if (strcmp(phase, "M") == 0) {
        seen->processes += strcmp(word(tree, object, "name"), "process_name") == 0;
        seen->threads += strcmp(word(tree, object, "name"), "thread_name") == 0;
    } else if (strcmp(phase, "X") == 0) {
        see_slice(seen, tree, object);
    } else {
        assert_true(strcmp(phase, "s") == 0 || strcmp(phase, "f") == 0);
        see_arrow(seen, tree, object);
    }
}

/* By thread, then by time; what contains others before them. */
static int by_thread(const void *a, const void *b)
{
    const struct slice *one = a, *other = b;
    if (one->pid != other->pid || one->tid != other->tid)
        return one->pid != other->pid ? one->pid - other->pid : one->tid - other->tid;
    if (one->begin != other->begin)
        return one->begin < other->begin ? -1 : 1;
    return one->end > other->end ? -1 : one->end < other->end;
}

static void check_nesting(struct seen *seen)
{
    struct slice open[64];
    int depth = 0;
    qsort(seen->slices, seen->slice_count, sizeof *seen->slices, by_thread);
    for (size_t i = 0; i < seen->slice_count; i++) {
        const struct slice *slice = &seen->slices[i];
        if (i > 0 && (slice[-1].pid != slice->pid || slice[-1].tid != slice->tid))
            depth = 0;
        while (depth > 0 && open[depth - 1].end <= slice->begin)
            depth--;
        if (depth > 0 && slice->end > open[depth - 1].end)
            fail_msg("slices of thread %d of rank %d overlap", slice->tid, slice->pid);
        assert_true(depth < 64);
        open[depth++] = *slice;
    }
}

static bool is_in_slice(const struct seen *seen, const struct arrow_end *end)
{
    for (size_t i = 0; i < seen->slice_count; i++) {
        const struct slice *slice = &seen->slices[i];
        if (slice->pid == end->pid && slice->tid == end->tid && slice->begin <= end->at &&
            end->at <= slice->end)
            return true;
    }
    return false;
}

static void check_arrows(const struct seen *seen)
{
    for (size_t i = 0; i < seen->arrow_count; i++) {
        const struct arrow *arrow = &seen->arrows[i];
        if (arrow->ends[0].count != 1 || arrow->ends[1].count != 1)
            fail_msg("arrow '%s' begins %d times and ends %d times", arrow->id,
                     arrow->ends[0].count, arrow->ends[1].count);
        if (arrow->ends[1].at < arrow->ends[0].at)
            fail_msg("arrow '%s' goes back in time", arrow->id);
        for (int e = 0; e < 2; e++)
            if (!is_in_slice(seen, &arrow->ends[e]))
                fail_msg("end %d of arrow '%s' lies in no slice", e, arrow->id);
    }
}

static void read_trace(const char *path, struct seen *seen)
{
    size_t size;
    char *text = ls_test_read(path, &size);
    struct ls_json_tree tree = {0};
    *seen = (struct seen){.slices = calloc(ROOM, sizeof *seen->slices),
                          .arrows = calloc(ROOM, sizeof *seen->arrows)};
    assert_true(seen->slices != NULL && seen->arrows != NULL);
    assert_int_equal(ls_json_tree_read(path, text, size, LOCKSTEP_DATA, &tree, NULL), 0);
    const struct ls_json_node *events = ls_json_find(&tree, &tree.nodes[0], "traceEvents");
    assert_non_null(events);
    for (const struct ls_json_node *node = ls_json_first(&tree, events); node != NULL;
         node = ls_json_next(&tree, node))
        see_object(seen, &tree, node);
    ls_json_tree_free(&tree);
    free(text);
    check_nesting(seen);
    check_arrows(seen);
}

static void free_seen(struct seen *seen)
{
    free(seen->slices);
    free(seen->arrows);
}

/* ---- Trainings ------------------------------------------------------------------------------- */

static uint64_t limit;

static void trace(struct ls_trainer *trainer, int rank)
{
    (void)rank;
    if (ls_trainer_trace_begin(trainer, ls_test_path("trace.json"), limit, NULL) != 0)
        abort();
    ls_trainer_trace_threads(trainer);
    ls_timeline_here = NULL;
}

static int run_all(struct rank *rank, struct ls_trainer *trainer)
{
    LS_TRY(ls_trainer_run(trainer, -1, rank->error));
    return put_weights(rank, trainer);
}

/* A traced training has the weights of `expected`. */
static void check_traced(const struct lockstep_solver *solver, int ranks, struct bytes expected)
{
    struct job job = {
        .solver = solver, .ranks = ranks, .workers = {2, 1, 1}, .act = run_all, .prepare = trace};
    char *prefix = own_path("traced%d", ranks);
    for (int r = 0; r < ranks; r++)
        job.prefix[r] = prefix;
    check_job(&job, expected, "traced");
    free(prefix);
}

static void traces_follow_the_rules(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM "display: 2 snapshot: 4");
    struct bytes expected = act_alone(solver, run_all);
    struct seen seen;
    limit = 0;
    check_traced(solver, 3, expected);
    read_trace(ls_test_path("trace.json"), &seen);
    assert_int_equal(seen.processes, 3);
    assert_int_equal(seen.threads, 4 + 3 * LS_COLLECTIVES_UNDER_WAY);
    assert_int_equal(seen.updates, 3 * 6);
    assert_true(seen.layers > 100 && seen.exchanges > 0 && seen.arrow_count > 6);
    free_seen(&seen);
    check_traced(solver, 1, expected);
    read_trace(ls_test_path("trace.json"), &seen);
    assert_int_equal(seen.processes, 1);
    assert_int_equal(seen.threads, 2);
    assert_int_equal(seen.arrow_count, 0);
    free_seen(&seen);
    /* Room for four blocks: some threads have none. */
    limit = 4 * sizeof(struct ls_timeline_block);
    check_traced(solver, 3, expected);
    read_trace(ls_test_path("trace.json"), &seen);
    assert_int_equal(seen.processes, 3);
    free_seen(&seen);
    free(expected.data);
    lockstep_solver_free(solver);
}

/* Nothing is recorded behind the limit, on any track. */
static void a_limit_is_kept(void **state)
{
    (void)state;
    struct ls_timeline *made;
    assert_int_equal(ls_timeline_create(2 * sizeof(struct ls_timeline_block), &made, NULL), 0);
    struct ls_timeline_track *one = ls_timeline_track(made, "one"),
                             *two = ls_timeline_track(made, "two");
    const struct ls_timeline_event event = {.begin = 1, .end = 2};
    for (int i = 0; i < 3 * LS_TIMELINE_BLOCK; i++)
        ls_timeline_put(one, &event);
    ls_timeline_put(two, &event);
    ls_timeline_put(NULL, &event);
    assert_true(atomic_load(&made->full));
    assert_int_equal(one->first->count, LS_TIMELINE_BLOCK);
    assert_int_equal(one->last->count, LS_TIMELINE_BLOCK);
    assert_ptr_equal(one->first->next, one->last);
    assert_null(two->first);
    ls_timeline_free(made);
}

/* A rank that gets no bytes of another can end an exchange before that one has begun it: then there
 * is no arrow between the two. */
static void arrows_lead_forward(void **state)
{
    (void)state;
    const struct ls_timeline_span spans[] = {{100, 199}, {300, 399}};
    const struct ls_timeline_rank rank = {
        .rank = 0, .ranks = 2, .host = "here", .exchanges = 1, .spans = spans};
    const struct ls_timeline_event event = {.begin = 100, .end = 200, .kind = LS_TIMELINE_EXCHANGE};
    struct ls_timeline_span mine = {0, 0};
    struct ls_timeline *made;
    struct ls_text text = {0};
    assert_int_equal(ls_timeline_create(sizeof(struct ls_timeline_block), &made, NULL), 0);
    ls_timeline_put(ls_timeline_track(made, "reducer 0"), &event);
    ls_timeline_spans(made, &rank, &mine);
    assert_memory_equal(&mine, spans, sizeof mine);
    assert_int_equal(ls_timeline_write(made, &rank, &text, NULL), 0);
    assert_non_null(strstr(text.data, "sent.0.0.1"));
    assert_null(strstr(text.data, "sent.0.1.0"));
    ls_text_free(&text);
    ls_timeline_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_follow_the_rules),
        cmocka_unit_test(a_limit_is_kept),
        cmocka_unit_test(arrows_lead_forward),
    };
    write_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
