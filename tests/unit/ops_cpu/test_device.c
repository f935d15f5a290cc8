/* The device as the plan and the workers see it: the table of kernels, threads, the environment.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/kernel_trial.h"
#include "kernels/own_kernel.h"

#include <dirent.h>
#include <dlfcn.h>
#include <dnnl.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ir/graph.h"
#include "ir/layer.h"
#include "ir/op_type.h"
#include "ops/cpu/device.h"
#include "ops/cpu/environment.h"

static void every_op_has_a_kernel(void **state)
{
    (void)state;
    bool found[LS_OP_KINDS] = {false};
    for (const struct ls_kernel *const *k = ls_device_cpu.kernels(); *k != NULL; k++) {
        assert_non_null((*k)->name);
        assert_non_null((*k)->run);
        found[(*k)->kind] = true;
    }
    for (int kind = 0; kind < LS_OP_KINDS; kind++)
        if (!found[kind] && !ls_op_type((enum ls_op_kind)kind)->by_engine)
            fail_msg("no kernel for %s", ls_op_kind_name((enum ls_op_kind)kind));
}

/* Kernels for one kind of op compute the same function, so their bits are looked after in one way,
 * where they are not defined by themselves; those that are in the common hash have a probe in it.
 */
static void every_kernel_says_what_its_bits_depend_on(void **state)
{
    (void)state;
    const struct ls_kernel *first[LS_OP_KINDS] = {NULL};
    for (const struct ls_kernel *const *k = ls_device_cpu.kernels(); *k != NULL; k++) {
        const struct ls_kernel *kernel = *k, *before = first[kernel->kind];
        if (kernel->bits == LS_BITS_DEFINED)
            continue;
        bool own = kernel->bits == LS_BITS_OWN, found = ls_cpu_has_own_probe(kernel->kind);
        if (kernel->bits == LS_BITS_UNSAID || (before != NULL && before->bits != kernel->bits))
            fail_msg("'%s' does not say what its bits depend on", kernel->name);
        if (found != own && !(found && kernel->bits == LS_BITS_BY_SHAPES))
            fail_msg("'%s' and the list of probes disagree", kernel->name);
        if (before == NULL)
            first[kernel->kind] = kernel;
    }
}

/* Several kernels may compute one op; the first that supports it does. One that stands in the table
 * twice is a mistake. */
static void no_kernel_is_listed_twice(void **state)
{
    (void)state;
    const struct ls_kernel *const *kernels = ls_device_cpu.kernels();
    for (size_t i = 0; kernels[i] != NULL; i++)
        for (size_t k = 0; k < i; k++)
            if (kernels[k] == kernels[i])
                fail_msg("'%s' is in the table of kernels twice", kernels[i]->name);
}

static int count_threads(void)
{
    DIR *directory = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static struct trial *large_product(void)
{
    struct trial *trial = trial_new(&ls_kernel_inner_product);
    struct ls_shape x = {2, {64, 512}}, w = {2, {512, 512}}, y = {2, {64, 512}};
    trial->op.attr.inner_product = (struct ls_inner_product_attr){.m = 64, .k = 512, .n = 512};
    trial_in(trial, &x, 1);
    trial_in(trial, &w, 2)->sample_axis = -1;
    trial_out(trial, &y);
    trial_prepare(trial);
    return trial;
}

/* A primitive that asks for its number of threads when it runs, not when it is built. */
static struct trial *large_reorder(void)
{
    struct trial *trial = trial_new(&ls_kernel_reorder);
    struct ls_shape x = {4, {16, 48, 32, 32}};
    trial_in(trial, &x, 1);
    trial_out(trial, &x)->layout = &ls_layout_blocked16;
    trial_prepare(trial);
    return trial;
}

struct counted {
    const struct trial *trial[2];
    int before, entered, spread; /* threads of the process: at first, after each round of runs */
};

static void step_both(const struct counted *counted, struct trial_worker worker[2])
{
    for (int i = 0; i < 2; i++)
        trial_step(counted->trial[i], &worker[i]);
}

static void *run_counted(void *argument)
{
    struct counted *counted = argument;
    struct trial_worker worker[2];
    omp_set_num_threads(3); /* as a user's environment may have it */
    ls_device_cpu.enter_thread();
    for (int i = 0; i < 2; i++)
        trial_bind(counted->trial[i], &worker[i], 1);
    counted->before = count_threads();
    step_both(counted, worker);
    counted->entered = count_threads();
    omp_set_num_threads(3);
    step_both(counted, worker);
    counted->spread = count_threads();
    for (int i = 0; i < 2; i++)
        trial_unbind(counted->trial[i], &worker[i], 1);
    return NULL;
}

static void kernels_stay_on_their_thread(void **state)
{
    (void)state;
    struct trial *product = large_product(), *reorder = large_reorder();
    struct counted counted = {.trial = {product, reorder}};
    pthread_t id;
    assert_int_equal(pthread_create(&id, NULL, run_counted, &counted), 0);
    pthread_join(id, NULL);
    assert_int_equal(counted.entered, counted.before);
    assert_true(counted.spread > counted.before); /* else this test would see nothing */
    trial_free(product);
    trial_free(reorder);
}

/* A program that uses the library keeps its own OpenMP setting. */
static void callers_keep_their_threads(void **state)
{
    (void)state;
    omp_set_num_threads(3);
    trial_free(large_product());
    uint64_t hash;
    assert_int_equal(ls_cpu_fingerprint(&hash, NULL), 0);
    assert_int_equal(omp_get_max_threads(), 3);
}

static void *flush_denormals(void *result)
{
    volatile float tiny = 1e-38f;
    ls_device_cpu.enter_thread();
    *(float *)result = tiny * 0.01f;
    return NULL;
}

static void threads_flush_denormals(void **state)
{
    (void)state;
    float result = 1;
    pthread_t id;
    assert_int_equal(pthread_create(&id, NULL, flush_denormals, &result), 0);
    pthread_join(id, NULL);
    assert_true(result == 0);
}

static void fingerprint_repeats(void **state)
{
    (void)state;
    uint64_t first = 0, second = 0;
    assert_int_equal(ls_cpu_fingerprint(&first, NULL), 0);
    assert_int_equal(ls_cpu_fingerprint(&second, NULL), 0);
    assert_true(first == second && first != 0);
}

static void environment_says_what_decides_bits(void **state)
{
    (void)state;
    char isa[32], limit[32], version[32], cache[64], kernels[32], bf16[32], amx[32], rest = 0;
    struct ls_text text = {0};
    assert_int_equal(ls_cpu_describe(&text, NULL), 0);
    assert_int_equal(
        sscanf(text.data,
               "isa=%31s\nonednn=%31s "
               "%31s\ncache=%63s\nkernels=%31s\navx512_bf16=%31[^\n]\namx=%31[^\n]\n%c",
               isa, version, limit, cache, kernels, bf16, amx, &rest),
        7);
    assert_string_equal(isa, ls_cpu_isa_name(ls_cpu_isa()));
    assert_string_equal(version, ls_onednn_version());
    assert_string_equal(limit, isa); /* processors with more than AVX-512's core are held back */
    assert_true(atoi(cache) >= 8 * 1024 && strchr(cache, ',') != NULL);
    assert_int_equal(strlen(kernels), 16);
    assert_int_equal(strncmp(text.data, ls_cpu_environment(), strlen(ls_cpu_environment())), 0);
    ls_text_free(&text);
}

/* What multiplies bf16 decides no bits: it is told beside the environment. */
static void units_are_told(void **state)
{
    (void)state;
    static const char *const words[] = {[LS_UNIT_ABSENT] = "none",
                                        [LS_UNIT_REFUSED] = "not permitted by the system",
                                        [LS_UNIT_UNTRIED] = "no memory to try it, not used",
                                        [LS_UNIT_WRONG] = "gives other bits, not used",
                                        [LS_UNIT_THERE] = "for BF16"};
    for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++) {
        const enum ls_bf16_unit_state truth = ls_cpu_unit_state(unit);
        for (int other = LS_UNIT_ABSENT; other <= LS_UNIT_THERE; other++) {
            struct ls_text text = {0}, environment = {0};
            char line[64];
            snprintf(line, sizeof line, "\n%s=%s\n", ls_cpu_unit_name(unit), words[other]);
            ls_cpu_pretend_unit(unit, (enum ls_bf16_unit_state)other);
            assert_int_equal(ls_cpu_describe(&text, NULL), 0);
            assert_non_null(strstr(text.data, line));
            ls_cpu_describe_library(&environment);
            assert_null(strstr(environment.data, ls_cpu_unit_name(unit)));
            ls_text_free(&environment);
            ls_text_free(&text);
        }
        ls_cpu_pretend_unit(unit, truth);
    }
}

/* Asking what the processor is leaves the thread where it may run. */
static void threads_stay_where_they_were(void **state)
{
    (void)state;
    cpu_set_t before, after;
    struct ls_text text = {0};
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    ls_cpu_describe_library(&text);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    ls_text_free(&text);
}

struct described {
    pthread_barrier_t *start;
    struct ls_text text[64];
};

static void *describe_many_times(void *argument)
{
    struct described *described = argument;
    pthread_barrier_wait(described->start);
    for (size_t i = 0; i < 64; i++)
        ls_cpu_describe_library(&described->text[i]);
    return NULL;
}

/* Ranks in one process make their notes at the same time. */
static void threads_read_the_same_environment(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    struct described *all = calloc(THREADS, sizeof *all);
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (size_t t = 0; t < THREADS; t++) {
        all[t].start = &start;
        assert_int_equal(pthread_create(&threads[t], NULL, describe_many_times, &all[t]), 0);
    }
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < 64; i++) {
            assert_string_equal(all[t].text[i].data, all[0].text[0].data);
            if (t + i > 0)
                ls_text_free(&all[t].text[i]);
        }
    ls_text_free(&all[0].text[0]);
    pthread_barrier_destroy(&start);
    free(all);
}

/* Without memory there is no answer, and not another one. */
static void fingerprints_need_memory(void **state)
{
    (void)state;
    uint64_t whole = 0, hash = 0;
    bool failed = false;
    assert_int_equal(ls_cpu_fingerprint(&whole, NULL), 0);
    for (long n = 0; n < 40; n++) {
        struct ls_error error = {0};
        ls_fail_allocation_after(n);
        int status = ls_cpu_fingerprint(&hash, &error);
        ls_fail_allocation_after(-1);
        failed |= status != 0;
        if (status != 0)
            assert_int_equal(status, LOCKSTEP_RESOURCE);
        else
            assert_true(hash == whole);
    }
    assert_true(failed);
}

/* What a probe gives follows from the step and from the work that is left, not from what the
 * process has probed before. */
static void probes_forget_smaller_probes(void **state)
{
    (void)state;
    const uint64_t whole = 64 * 512 * 512, plenty = (uint64_t)1 << 32;
    struct trial *trial = large_product();
    const struct ls_prepared *prepared = &trial->prepared;
    uint64_t hash[3], work = whole / 2;
    assert_false(prepared->slow);
    assert_int_equal(ls_cpu_probe(prepared, 64, &work, &hash[0], NULL), 0);
    assert_int_equal(work, whole / 2 - whole / 64); /* one sample */
    work = plenty;
    assert_int_equal(ls_cpu_probe(prepared, 64, &work, &hash[1], NULL), 0);
    assert_int_equal(work, plenty - whole);
    work = whole / 2;
    assert_int_equal(ls_cpu_probe(prepared, 64, &work, &hash[2], NULL), 0);
    assert_int_equal(work, whole / 2 - whole / 64);
    assert_true(hash[0] == hash[2] && hash[0] != hash[1]);
    trial_free(trial);
}

/* What a probe gives of an op of `samples`, as if the bits of its kernel depended on shapes. (What
 * a process has probed it knows again by `samples`, among other things; the result has no part of
 * it.) */
static uint64_t probe_own(struct own *own, int64_t samples)
{
    uint64_t hash = 0, work = (uint64_t)1 << 32;
    for (int i = 0; i < own->values; i++)
        own->value[i].layout = &ls_layout_plain;
    own->prepared = (struct ls_prepared){.kernel = own->kernel, .op = &own->op};
    assert_int_equal(own->kernel->prepare(&own->prepared, NULL), 0);
    assert_int_equal(ls_cpu_probe(&own->prepared, samples, &work, &hash, NULL), 0);
    own_free(own);
    return hash;
}

static uint64_t probe_eltwise(enum ls_eltwise method, int64_t samples)
{
    const struct ls_shape shape = {2, {3, 7}};
    struct own *own = own_new(&ls_kernel_eltwise);
    own->op.attr.eltwise.method = method;
    for (int i = 0; i < OWN_VALUES - 1; i++)
        own_in(own, &shape, 1, 1);
    own_out(own, &shape);
    return probe_own(own, samples);
}

static void steps_of_many_values_are_probed(void **state)
{
    (void)state;
    uint64_t sum = probe_eltwise(LS_ELTWISE_SUM, 1);
    assert_true(sum == probe_eltwise(LS_ELTWISE_SUM, 2));
    assert_true(sum != probe_eltwise(LS_ELTWISE_MAX, 3));
}

/* Of a loss, which is in the record alone. */
static uint64_t probe_loss(float coefficient, int offset, int record_size, int64_t samples)
{
    const struct ls_shape shape = {2, {4, 5}};
    struct ls_graph graph = {.record_size = record_size};
    struct ls_layer layer = {.graph = &graph};
    struct own *own = own_new(&ls_kernel_reduce_loss);
    own->op.layer = &layer;
    own->op.attr.reduction =
        (struct ls_reduction_attr){.coeff = coefficient, .metric_offset = offset};
    own_in(own, &shape, 1, 1);
    return probe_own(own, samples);
}

static void what_a_step_adds_to_the_record_is_probed(void **state)
{
    (void)state;
    uint64_t loss = probe_loss(1, 0, 2, 1);
    assert_true(loss == probe_loss(1, 3, 7, 2)); /* wherever it is in the record */
    assert_true(loss != probe_loss(0.5F, 0, 2, 3));
}

enum { TYPED = 40 };

/* Input 0 is of numbers in bf16, input 1 of places. */
static int look_at_types(const struct ls_prepared *prepared, void *local, void *const *in,
                         void *const *out, void *scratch, const struct ls_context *context)
{
    const uint16_t *narrow = in[0];
    const int32_t *places = in[1];
    bool differ = false;
    (void)prepared, (void)local, (void)scratch, (void)context;
    for (int i = 0; i < TYPED; i++) {
        assert_true((narrow[i] & 0x7fff) <= 0x3f80); /* at most 1 */
        assert_int_equal(places[i], 0);
        differ |= narrow[i] != narrow[0];
    }
    assert_true(differ);
    memset(out[0], 0, TYPED * sizeof(uint16_t));
    return 0;
}

static int prepare_nothing(struct ls_prepared *prepared, struct ls_error *error)
{
    (void)prepared, (void)error;
    return 0;
}

static void probes_fill_inputs_by_their_types(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {5, TYPED / 5}};
    const struct ls_kernel kernel = {
        .kind = LS_OP_VIEW, .name = "types", .prepare = prepare_nothing, .run = look_at_types};
    struct own *own = own_new(&kernel);
    own_in(own, &shape, 1, 1)->type = LS_BF16;
    own_in(own, &shape, 1, 1)->type = LS_I32;
    own_out(own, &shape)->type = LS_BF16;
    probe_own(own, 1);
}

static _Atomic bool dnnl_fails;

/* In the place of oneDNN's own, which has the same name. */
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t *arguments)
{
    dnnl_status_t (*execute)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *);
    *(void **)&execute = dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    return dnnl_fails ? dnnl_out_of_memory : execute(primitive, stream, count, arguments);
}

/* What a kernel could not compute is no result: it is not hashed, and not remembered. */
static void probes_that_fail_say_so(void **state)
{
    (void)state;
    const uint64_t plenty = (uint64_t)1 << 32;
    struct trial *trial = large_product();
    uint64_t hash[2], work = plenty;
    dnnl_fails = true;
    for (int i = 0; i < 2; i++)
        assert_int_equal(ls_cpu_probe(&trial->prepared, 63, &work, &hash[0], NULL),
                         LOCKSTEP_RESOURCE);
    dnnl_fails = false;
    work = plenty;
    assert_int_equal(ls_cpu_probe(&trial->prepared, 63, &work, &hash[0], NULL), 0);
    work = plenty;
    assert_int_equal(ls_cpu_probe(&trial->prepared, 64, &work, &hash[1], NULL), 0);
    assert_true(hash[0] == hash[1]); /* the whole, of however many samples */
    trial_free(trial);
}

/* oneDNN cannot follow. */
static void instruction_set_is_fixed(void **state)
{
    (void)state;
    struct trial *trial = large_product();
    struct ls_error error = {0};
    enum ls_isa isa = ls_cpu_isa();
    const char *other = isa == LS_ISA_SSE41 ? "generic" : "sse41";
    assert_int_equal(ls_cpu_isa_select(other, &error), 0);
    struct ls_op_layouts layouts = {0};
    assert_int_not_equal(trial->kernel->layouts(&trial->op, &layouts, &error), 0);
    assert_non_null(strstr(error.problems[0].message, "instruction set"));
    assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name(isa), &error), 0);
    trial_free(trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_has_a_kernel),
        cmocka_unit_test(every_kernel_says_what_its_bits_depend_on),
        cmocka_unit_test(no_kernel_is_listed_twice),
        cmocka_unit_test(kernels_stay_on_their_thread),
        cmocka_unit_test(callers_keep_their_threads),
        cmocka_unit_test(threads_flush_denormals),
        cmocka_unit_test(fingerprint_repeats),
        cmocka_unit_test(environment_says_what_decides_bits),
        cmocka_unit_test(units_are_told),
        cmocka_unit_test(threads_stay_where_they_were),
        cmocka_unit_test(threads_read_the_same_environment),
        cmocka_unit_test(fingerprints_need_memory),
        cmocka_unit_test(probes_forget_smaller_probes),
        cmocka_unit_test(steps_of_many_values_are_probed),
        cmocka_unit_test(what_a_step_adds_to_the_record_is_probed),
        cmocka_unit_test(probes_fill_inputs_by_their_types),
        cmocka_unit_test(probes_that_fail_say_so),
        cmocka_unit_test(instruction_set_is_fixed),
    };
    return trial_main(tests);
}
