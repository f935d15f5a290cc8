/* See kernels/kernel_trial.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/kernel_trial.h"

struct trial *trial_new(const struct ls_kernel *kernel)
{
    struct trial *trial = ls_alloc(1, sizeof *trial);
    assert_non_null(trial);
    trial->kernel = kernel;
    trial->op.kind = kernel->kind;
    trial->op.input = trial->in;
    trial->op.output = trial->out;
    return trial;
}

static struct ls_value *trial_value(struct trial *trial, const struct ls_shape *shape)
{
    assert_true(trial->values < TRIAL_VALUES);
    struct ls_value *value = &trial->value[trial->values];
    value->index = trial->values;
    value->shape = *shape;
    trial->plain[trial->values] = ls_alloc((size_t)ls_shape_size(shape), sizeof(float));
    assert_non_null(trial->plain[trial->values]);
    trial->values++;
    return value;
}

/* Fills a value with numbers from [-1, 1) that depend on their row and `salt`, whatever the number
 * of rows is. */
static void trial_fill(struct trial *trial, const struct ls_value *value, uint64_t salt)
{
    int64_t rows = value->shape.rank > 0 ? value->shape.dim[0] : 1;
    int64_t columns = ls_shape_size(&value->shape) / rows;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            trial->plain[value->index][r * columns + c] =
                2 * ls_random_uniform(salt, (uint64_t)r, (uint64_t)c) - 1;
}

struct ls_value *trial_in(struct trial *trial, const struct ls_shape *shape, uint64_t salt)
{
    struct ls_value *value = trial_value(trial, shape);
    trial_fill(trial, value, salt);
    trial->in[trial->op.inputs++] = value;
    return value;
}

struct ls_value *trial_out(struct trial *trial, const struct ls_shape *shape)
{
    struct ls_value *value = trial_value(trial, shape);
    trial->out[trial->op.outputs++] = value;
    return value;
}

size_t trial_bytes(const struct ls_value *value)
{
    return ls_layout_elements(value->layout, &value->shape) * sizeof(float);
}

/* Between Caffe's order and a layout, by the reorder that has tests of its own. */
static void trial_convert(const struct ls_value *value, const struct ls_layout *from,
                          const struct ls_layout *to, const float *source, float *target)
{
    struct ls_error error = {0};
    struct ls_primitive_spec spec = {.kind = LS_PRIMITIVE_REORDER};
    struct ls_primitive *primitive = NULL;
    struct ls_execution *execution = NULL;
    void *data[LS_SLOTS] = {[LS_SOURCE] = (void *)(uintptr_t)source, [LS_TARGET] = target};
    check_status(ls_reorder_tensors(&value->shape, value->type, from, to, &spec.tensor[LS_SOURCE],
                                    &spec.tensor[LS_TARGET], &error),
                 &error);
    check_status(ls_primitive_new(&spec, &primitive, &error), &error);
    void *scratch = ls_alloc_aligned(ls_primitive_scratch(primitive));
    assert_non_null(scratch);
    check_status(ls_execution_new(primitive, scratch, &execution, &error), &error);
    int threads = ls_onednn_one_thread();
    assert_int_equal(ls_execution_run(execution, data), 0);
    ls_onednn_restore_threads(threads);
    ls_execution_free(execution);
    ls_free_aligned(scratch);
    ls_primitive_free(primitive);
}

void trial_prepare(struct trial *trial)
{
    struct ls_error error = {0};
    settle_layouts(trial->kernel, &trial->op, NULL);
    for (int i = 0; i < trial->values; i++) {
        const struct ls_value *value = &trial->value[i];
        trial->data[i] = ls_alloc_aligned(trial_bytes(value));
        assert_non_null(trial->data[i]);
        trial_convert(value, &ls_layout_plain, value->layout, trial->plain[i], trial->data[i]);
    }
    trial->prepared.kernel = trial->kernel;
    trial->prepared.op = &trial->op;
    if (trial->kernel->prepare != NULL)
        check_status(trial->kernel->prepare(&trial->prepared, &error), &error);
}

/* Memory for a value as the kernel sees it: the trial's, or, for shift > 0, an own copy that lies
 * shift floats behind an aligned address. */
static void *trial_place(const struct trial *trial, const struct ls_value *value, int shift)
{
    if (value == NULL || shift == 0)
        return value == NULL ? NULL : trial->data[value->index];
    float *own = ls_alloc_aligned(trial_bytes(value) + 64);
    assert_non_null(own);
    memcpy(own + shift, trial->data[value->index], trial_bytes(value));
    return own + shift;
}

void trial_bind(const struct trial *trial, struct trial_worker *worker, int shift)
{
    struct ls_error error = {0};
    memset(worker, 0, sizeof *worker);
    for (int i = 0; i < trial->op.inputs; i++)
        worker->in[i] = trial_place(trial, trial->in[i], shift);
    for (int i = 0; i < trial->op.outputs; i++)
        worker->out[i] = trial_place(trial, trial->out[i], shift);
    worker->scratch = ls_alloc_aligned(trial->prepared.scratch_bytes);
    assert_non_null(worker->scratch);
    if (trial->kernel->bind != NULL)
        check_status(trial->kernel->bind(&trial->prepared, worker->in, worker->out, worker->scratch,
                                         &worker->local, &error),
                     &error);
}

void trial_unbind(const struct trial *trial, struct trial_worker *worker, int shift)
{
    if (trial->kernel->unbind != NULL)
        trial->kernel->unbind(&trial->prepared, worker->local);
    for (int i = 0; shift > 0 && i < TRIAL_VALUES; i++) {
        ls_free_aligned(worker->in[i] != NULL ? (float *)worker->in[i] - shift : NULL);
        ls_free_aligned(worker->out[i] != NULL ? (float *)worker->out[i] - shift : NULL);
    }
    ls_free_aligned(worker->scratch);
}

void trial_step(const struct trial *trial, struct trial_worker *worker)
{
    struct ls_context context = {.samples = 1};
    for (int i = 0; i < trial->op.outputs; i++)
        if (trial->out[i] != NULL)
            memset(worker->out[i], 0xff, trial_bytes(trial->out[i]));
    memset(worker->scratch, 0xff, trial->prepared.scratch_bytes);
    assert_int_equal(trial->kernel->run(&trial->prepared, worker->local, worker->in, worker->out,
                                        worker->scratch, &context),
                     0);
}

/* To Caffe's order; what comes back from there must be the same bytes, padding included. */
static void trial_read(struct trial *trial, const struct ls_value *value)
{
    size_t bytes = trial_bytes(value);
    float *again = ls_alloc_aligned(bytes);
    assert_non_null(again);
    int i = value->index;
    trial_convert(value, value->layout, &ls_layout_plain, trial->data[i], trial->plain[i]);
    memset(again, 0xff, bytes);
    trial_convert(value, &ls_layout_plain, value->layout, trial->plain[i], again);
    if (memcmp(again, trial->data[i], bytes) != 0)
        fail_msg("%s (%s): padding of %s is not zero", trial->kernel->name,
                 trial->prepared.implementation, value->layout->name);
    ls_free_aligned(again);
}

void trial_run(struct trial *trial)
{
    struct trial_worker worker;
    int threads = ls_onednn_one_thread();
    trial_bind(trial, &worker, 0);
    trial_step(trial, &worker);
    trial_unbind(trial, &worker, 0);
    ls_onednn_restore_threads(threads);
    for (int i = 0; i < trial->op.outputs; i++)
        if (trial->out[i] != NULL)
            trial_read(trial, trial->out[i]);
}

void trial_free(struct trial *trial)
{
    if (trial->kernel->release != NULL)
        trial->kernel->release(&trial->prepared);
    for (int i = 0; i < trial->values; i++) {
        ls_free(trial->plain[i]);
        ls_free_aligned(trial->data[i]);
    }
    ls_free(trial);
}

/* Sums of `terms` products of numbers from [-1, 1). */
static void trial_compare(const struct trial *trial, const struct ls_value *value,
                          const double *expected, double terms, const char *what)
{
    double root = 1;
    while (root * root < terms)
        root *= 1.1;
    double tolerance = 4e-6 * (1 + root);
    size_t count = (size_t)ls_shape_size(&value->shape);
    for (size_t i = 0; i < count; i++) {
        double difference = trial->plain[value->index][i] - expected[i];
        if (!(difference <= tolerance && difference >= -tolerance))
            fail_msg("%s: %s (%s): element %zu is %.9g, not %.9g", what, trial->kernel->name,
                     trial->prepared.implementation, i, (double)trial->plain[value->index][i],
                     expected[i]);
    }
}

void trial_near_reference(struct trial *trial, const double terms[2], const char *what)
{
    void *in[TRIAL_VALUES] = {0}, *out[TRIAL_VALUES] = {0};
    const struct ls_context context = {.samples = 1};
    for (int i = 0; i < trial->op.inputs; i++)
        in[i] = trial->in[i] != NULL ? trial->plain[trial->in[i]->index] : NULL;
    for (int i = 0; i < trial->op.outputs; i++)
        out[i] = trial->out[i] != NULL ? ls_alloc_aligned(trial_bytes(trial->out[i])) : NULL;
    run_on_reference(&trial->op, in, out, &context);
    for (int i = 0; i < trial->op.outputs; i++) {
        if (trial->out[i] == NULL)
            continue;
        const int64_t n = ls_shape_size(&trial->out[i]->shape);
        double *expected = malloc((size_t)(n + 1) * sizeof *expected);
        assert_non_null(expected);
        for (int64_t j = 0; j < n; j++)
            expected[j] = (double)((const float *)out[i])[j];
        trial_compare(trial, trial->out[i], expected, terms[i], what);
        free(expected);
        ls_free_aligned(out[i]);
    }
}

static void trial_swap(void **a, void **b)
{
    void *kept = *a;
    *a = *b;
    *b = kept;
}

void *trial_thread_main(void *argument)
{
    struct trial_thread *thread = argument;
    struct trial_worker worker, other;
    ls_onednn_one_thread();
    ls_set_float_mode();
    trial_bind(thread->trial, &worker, thread->shift);
    trial_bind(thread->trial, &other, thread->shift);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < TRIAL_VALUES; i++) {
            trial_swap(&worker.in[i], &other.in[i]);
            trial_swap(&worker.out[i], &other.out[i]);
        }
        trial_step(thread->trial, &worker);
        for (int i = 0; i < thread->trial->op.outputs; i++) {
            const struct ls_value *value = thread->trial->out[i];
            if (value != NULL &&
                memcmp(worker.out[i], thread->trial->data[value->index], trial_bytes(value)) != 0)
                thread->differences++;
        }
    }
    trial_unbind(thread->trial, &worker, thread->shift);
    trial_unbind(thread->trial, &other, thread->shift);
    return NULL;
}

void trial_concurrently(const struct trial *trial)
{
    enum { THREADS = 4 };
    struct trial_thread thread[THREADS];
    pthread_t id[THREADS];
    for (int i = 0; i < THREADS; i++) {
        thread[i] = (struct trial_thread){.trial = trial, .shift = 1 + 3 * i};
        assert_int_equal(pthread_create(&id[i], NULL, trial_thread_main, &thread[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(id[i], NULL);
        assert_int_equal(thread[i].differences, 0);
    }
}

int trial_main_(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    for (int isa = LS_ISA_SSE41; isa < LS_ISAS; isa++) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        const char *name = ls_cpu_isa_name((enum ls_isa)isa);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            struct ls_error error = {0};
            int status = ls_cpu_isa_select(name, &error);
            if (status == 0)
                status = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
            fflush(NULL);
            exit(status != 0);
        }
        int status = -1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            failed = 1;
    }
    return failed;
}
