/* The results of a kernel do not depend on what was in its outputs or its scratch memory before,
 * and the lanes behind the last channel of a blocked value are zero. Random networks are trained
 * and tested while both are filled with other bytes before every step; also the memory of
 * workers, micro-batches and sync points before an update, and with as little memory as
 * possible.
 *
 * LOCKSTEP_NETS="FIRST COUNT" runs other seeds than the usual ones, LOCKSTEP_ISA=avx2 the
 * kernels of another instruction set.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "engine/pass.h"
#include "ir/layer.h"
#include "trainings/random_net.h"
#include "ops/cpu/isa.h"

enum { UPDATES = 2 };

/* ---- Spies in front of kernels --------------------------------------------------------------- */

/* A kernel that spoils memory, then calls the one that it stands for. */
struct spy {
    struct ls_kernel kernel; /* first: a spy is found by its kernel */
    const struct ls_kernel *original;
};

enum poison { NOT_A_NUMBER, LARGE, ANYTHING, POISONS };

static enum poison poison;
static char dirty[200]; /* a step that left something in the lanes of padding */
static pthread_mutex_t dirty_lock = PTHREAD_MUTEX_INITIALIZER;

static void spoil(void *memory, size_t bytes)
{
    static _Thread_local uint64_t calls;
    static const uint32_t words[] = {[NOT_A_NUMBER] = 0xffc5a5a5, [LARGE] = 0x7f7fffff};
    uint32_t *word = memory;
    calls++;
    for (size_t i = 0; i < bytes / 4; i++)
        word[i] = poison == ANYTHING ? ls_random_u32(3, calls, i) : words[poison];
}

static bool is_input(const struct ls_op *op, void *const *in, const void *memory)
{
    for (int i = 0; i < op->inputs; i++)
        if (in[i] == memory)
            return true;
    return false;
}

static bool padding_is_zero(const struct ls_value *value, const float *data)
{
    const struct ls_shape *shape = &value->shape;
    int64_t block = value->layout->block;
    if (block <= 1 || shape->rank < 2 || value->type != LS_F32)
        return true;
    int64_t blocks = (shape->dim[1] + block - 1) / block;
    int64_t points = ls_shape_count(shape, 2, shape->rank);
    for (int64_t row = 0; row < shape->dim[0]; row++)
        for (int64_t at = 0; at < points * block; at++)
            if ((blocks - 1) * block + at % block >= shape->dim[1] &&
                data[((row + 1) * blocks - 1) * points * block + at] != 0)
                return false;
    return true;
}

static void note_dirty(const struct ls_prepared *prepared)
{
    const struct ls_op *op = prepared->op;
    pthread_mutex_lock(&dirty_lock);
    snprintf(dirty, sizeof dirty, "%s (%s) of layer '%s'", ls_op_kind_name(op->kind),
             prepared->implementation, op->layer != NULL ? op->layer->name : "?");
    pthread_mutex_unlock(&dirty_lock);
}

static int spoil_and_run(const struct ls_prepared *prepared, void *local, void *const *in,
                         void *const *out, void *scratch, const struct ls_context *context)
{
    const struct spy *spy = (const struct spy *)(const void *)prepared->kernel;
    const struct ls_op *op = prepared->op;
    spoil(scratch, prepared->scratch_bytes);
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL && out[i] != NULL && !is_input(op, in, out[i]))
            spoil(out[i], ls_value_bytes(op->output[i]));
    int status = spy->original->run(prepared, local, in, out, scratch, context);
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL && out[i] != NULL && !padding_is_zero(op->output[i], out[i]))
            note_dirty(prepared);
    return status;
}

static void plant_spies(const struct ls_net *net)
{
    for (size_t p = 0; p < net->plan_count; p++) {
        const struct ls_plan *plan = net->plans[p]->plan;
        for (size_t s = 0; s < plan->step_count; s++) {
            struct ls_prepared *prepared = &plan->steps[s].prepared;
            struct spy *spy = malloc(sizeof *spy);
            assert_non_null(spy);
            *spy = (struct spy){.kernel = *prepared->kernel, .original = prepared->kernel};
            spy->kernel.run = spoil_and_run;
            prepared->kernel = &spy->kernel;
        }
    }
}

/* Takes them away again. */
static void recall_spies(const struct ls_net *net)
{
    for (size_t p = 0; p < net->plan_count; p++) {
        const struct ls_plan *plan = net->plans[p]->plan;
        for (size_t s = 0; s < plan->step_count; s++) {
            struct ls_prepared *prepared = &plan->steps[s].prepared;
            struct spy *spy = (struct spy *)(void *)(uintptr_t)prepared->kernel;
            prepared->kernel = spy->original;
            free(spy);
        }
    }
}

/* ---- Trainings ------------------------------------------------------------------------------- */

struct result {
    int status;
    char message[1024];
    double figures[8];
    struct bytes state;
};

static void each_net(const struct training *training, void (*what)(const struct ls_net *net))
{
    const struct ls_trainer *trainer = training->trainer->inner;
    what(trainer->train);
    for (size_t i = 0; i < trainer->test_count; i++)
        what(trainer->tests[i].net);
}

static int test(struct training *training, double figures[8])
{
    const struct lockstep_output *outputs;
    size_t count;
    int status = lockstep_trainer_evaluate(training->trainer, 0, &outputs, &count, training->error);
    for (size_t i = 0; status == 0 && i < count && i < 8; i++)
        figures[i] = outputs[i].values[0];
    return status;
}

/* The rows of partial results, and what is merged from them. */
static void spoil_exchange(const struct ls_pass *pass)
{
    const struct ls_exchange *exchange = pass->exchange;
    spoil(exchange->rows.host, exchange->units * exchange->row_doubles * sizeof(double));
    for (size_t s = 0; s < exchange->syncs; s++) {
        const struct ls_sync *sync = &exchange->graph->syncs[s];
        for (int w = 0; sync->grouping >= 0 && w < exchange->workers; w++)
            spoil(exchange->merged[(size_t)w * exchange->syncs + s],
                  (size_t)ls_sync_merged(sync) * sizeof(float)); /* of the first group */
    }
}

/* All that passes write before they read it. */
static void spoil_memory(const struct training *training)
{
    const struct ls_trainer *trainer = training->trainer->inner;
    const struct ls_engine *engine = trainer->engine;
    for (int w = 0; w < engine->workers; w++)
        spoil(engine->arenas[w], ls_room_block(&engine->room, engine->workers, w));
    spoil_exchange(trainer->train_pass);
    for (size_t i = 0; i < trainer->test_count; i++)
        spoil_exchange(trainer->tests[i].pass);
}

static int step_by_step(struct training *training, bool spied)
{
    int status = 0;
    for (int i = 0; i < UPDATES && status == 0; i++) {
        if (spied)
            spoil_memory(training);
        status = lockstep_trainer_step(training->trainer, 1, training->error);
    }
    if (spied)
        spoil_memory(training);
    return status;
}

static struct result run(const struct lockstep_solver *solver, bool spied, bool limited)
{
    struct training *training = start(solver, 2, NULL, NULL);
    struct result result = {0};
    if (limited)
        limit_memory(training, 1);
    if (spied)
        each_net(training, plant_spies);
    result.status = step_by_step(training, spied);
    if (result.status == 0)
        result.status = test(training, result.figures);
    if (result.status != 0)
        snprintf(result.message, sizeof result.message, "%s", lockstep_error_text(training->error));
    result.state = snapshot(training);
    if (spied)
        each_net(training, recall_spies);
    finish(training);
    return result;
}

static bool same(const struct result *a, const struct result *b)
{
    return a->status == b->status && strcmp(a->message, b->message) == 0 &&
           memcmp(a->figures, b->figures, sizeof a->figures) == 0 && same_bytes(a->state, b->state);
}

static void check_net(uint64_t seed, struct ls_text text, const char *precision)
{
    assert_false(text.failed);
    bool tested = strstr(text.data, "test_interval") != NULL;
    struct lockstep_solver *solver = load_solver(
        "%s %s precision: %s", tested ? "" : "test_interval: 100", text.data, precision);
    struct result clean = run(solver, false, false);
    for (int p = 0; p <= POISONS; p++) {
        bool limited = p == POISONS; /* with recomputations wherever they save memory */
        poison = limited ? NOT_A_NUMBER : (enum poison)p;
        dirty[0] = '\0';
        struct result spoilt = run(solver, true, limited);
        if (dirty[0] != '\0')
            fail_msg("seed %" PRIu64 ": padding is not zero behind %s\n%s", seed, dirty, text.data);
        if (!same(&clean, &spoilt))
            fail_msg("seed %" PRIu64 ": what was in memory before shows (poison %d, %s)\n%s", seed,
                     p, spoilt.message, text.data);
        free(spoilt.state.data);
    }
    free(clean.state.data);
    lockstep_solver_free(solver);
    ls_text_free(&text);
}

static void what_memory_held_before_changes_no_bit(void **state)
{
    (void)state;
    uint64_t first = 1, count = 25;
    const char *chosen = getenv("LOCKSTEP_NETS");
    if (chosen != NULL && sscanf(chosen, "%" SCNu64 " %" SCNu64, &first, &count) != 2)
        fail_msg("LOCKSTEP_NETS is \"FIRST COUNT\", not \"%s\"", chosen);
    for (uint64_t seed = first; seed < first + count; seed++)
        check_net(seed, make_random_net(seed), "FP32");
    for (uint64_t seed = first; seed < first + count; seed += 3)
        check_net(seed, make_random_net(seed), "BF16");
    for (uint64_t seed = first; seed < first + count; seed++)
        check_net(seed, make_random_caffe_net(seed), seed % 3 == 0 ? "BF16" : "FP32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_memory_held_before_changes_no_bit)};
    const char *isa = getenv("LOCKSTEP_ISA");
    if (isa != NULL && ls_cpu_isa_select(isa, NULL) != 0)
        return 1;
    write_random_net_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
