/* oneDNN's primitives: what it would do, building them, running them.
 *
 * Each primitive is built and run on one thread (the number of threads decides how oneDNN cuts
 * sums), in strict fp32, with the instruction set that Lockstep's own loops use and nothing beyond
 * AVX-512's core, so that processors with bf16 or tile units take the same kernels as those
 * without. Scratch memory is the caller's: nothing is shared between workers but constant code.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/onednn.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/onednn_layout.h"

struct ls_primitive {
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t md[LS_SLOTS], scratch_md;
    bool present[LS_SLOTS];
    int argument[LS_SLOTS]; /* DNNL_ARG_... */
    size_t scratch_bytes;
    struct ls_primitive_plan plan;
};

struct ls_execution {
    const struct ls_primitive *primitive;
    dnnl_stream_t stream;
    int count;
    dnnl_exec_arg_t arguments[LS_SLOTS + 1];
    enum ls_tensor_slot slot[LS_SLOTS]; /* of each argument but the scratch */
    void *data[LS_SLOTS];               /* what each argument's memory points to now */
};

/* ---- The library ---- */

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* NULL: oneDNN would not start */
static enum ls_isa engine_isa;

/* oneDNN fixes its instruction set when it is first asked for anything. */
static void open_library(void)
{
    static const dnnl_cpu_isa_t limits[LS_ISAS] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_sse41,
                                                   dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx512_core};
    engine_isa = ls_cpu_isa();
    if (dnnl_set_max_cpu_isa(limits[engine_isa]) != dnnl_success ||
        dnnl_set_cpu_isa_hints(dnnl_cpu_isa_no_hints) != dnnl_success ||
        dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_strict) != dnnl_success ||
        dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

static int open_engine(struct ls_error *error)
{
    pthread_once(&opened, open_library);
    if (engine == NULL)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "oneDNN does not start, or was used in this process before Lockstep");
    if (engine_isa != ls_cpu_isa())
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "choose it before the first net is planned",
                       "the instruction set cannot change from %s to %s in a running process",
                       ls_cpu_isa_name(engine_isa), ls_cpu_isa_name(ls_cpu_isa()));
    return 0;
}

int ls_onednn_one_thread(void)
{
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    return threads;
}

void ls_onednn_restore_threads(int threads)
{
    omp_set_num_threads(threads);
}

const char *ls_onednn_isa(void)
{
    pthread_once(&opened, open_library);
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
        return "sse41";
    case dnnl_cpu_isa_avx:
        return "avx";
    case dnnl_cpu_isa_avx2:
        return "avx2";
    case dnnl_cpu_isa_avx512_core:
        return "avx512";
    default:
        return "other";
    }
}

const char *ls_onednn_version(void)
{
    static char text[32];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const dnnl_version_t *version = dnnl_version();
    pthread_mutex_lock(&lock);
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
    pthread_mutex_unlock(&lock);
    return text;
}

/* ---- Descriptions ---- */

static const char *const kind_names[] = {"convolution", "inner product", "reorder"};

static int fail_status(const struct ls_primitive_spec *spec, dnnl_status_t status,
                       struct ls_error *error)
{
    if (status == dnnl_out_of_memory)
        return ls_fail_memory(error, kind_names[spec->kind]);
    return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL, "oneDNN %d.%d.%d cannot do this %s (%s)",
                   DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH,
                   kind_names[spec->kind],
                   status == dnnl_unimplemented ? "unimplemented" : "invalid arguments");
}

static dnnl_status_t create_convolution(const struct ls_primitive_spec *spec,
                                        const dnnl_memory_desc_t *md,
                                        const_dnnl_primitive_attr_t attributes,
                                        dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *result)
{
    const struct ls_window *window = &spec->window;
    const dnnl_memory_desc_t *bias = spec->tensor[LS_BIAS].rank > 0 ? &md[LS_BIAS] : NULL;
    dnnl_convolution_desc_t desc;
    dnnl_dims_t stride, dilation, pad;
    dnnl_status_t status;
    for (int i = 0; i < window->axes; i++) {
        stride[i] = window->stride[i];
        dilation[i] = window->dilation[i] - 1;
        pad[i] = window->pad[i];
    }
    /* What hangs over on the right follows from the shapes; oneDNN rounds down as we do. */
    switch (spec->pass) {
    case LS_PASS_FORWARD:
        status = dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_training, dnnl_convolution_direct, &md[LS_SOURCE], &md[LS_WEIGHTS],
            bias, &md[LS_TARGET], stride, dilation, pad, pad);
        break;
    case LS_PASS_DATA:
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &desc, dnnl_convolution_direct, &md[LS_SOURCE], &md[LS_WEIGHTS], &md[LS_TARGET], stride,
            dilation, pad, pad);
        break;
    default:
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &desc, dnnl_convolution_direct, &md[LS_SOURCE], &md[LS_WEIGHTS], bias, &md[LS_TARGET],
            stride, dilation, pad, pad);
    }
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(result, &desc, attributes, engine, hint);
}

static dnnl_status_t create_inner_product(const struct ls_primitive_spec *spec,
                                          const dnnl_memory_desc_t *md,
                                          const_dnnl_primitive_attr_t attributes,
                                          dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *result)
{
    const dnnl_memory_desc_t *bias = spec->tensor[LS_BIAS].rank > 0 ? &md[LS_BIAS] : NULL;
    dnnl_inner_product_desc_t desc;
    dnnl_status_t status;
    switch (spec->pass) {
    case LS_PASS_FORWARD:
        status = dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_training, &md[LS_SOURCE],
                                                      &md[LS_WEIGHTS], bias, &md[LS_TARGET]);
        break;
    case LS_PASS_DATA:
        status = dnnl_inner_product_backward_data_desc_init(&desc, &md[LS_SOURCE], &md[LS_WEIGHTS],
                                                            &md[LS_TARGET]);
        break;
    default:
        status = dnnl_inner_product_backward_weights_desc_init(
            &desc, &md[LS_SOURCE], &md[LS_WEIGHTS], bias, &md[LS_TARGET]);
    }
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(result, &desc, attributes, engine, hint);
}

static dnnl_status_t create_attributes(const struct ls_primitive_spec *spec,
                                       dnnl_primitive_attr_t *attributes)
{
    dnnl_status_t status = dnnl_primitive_attr_create(attributes);
    if (status != dnnl_success)
        return status;
    status = dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user);
    if (status != dnnl_success || !spec->relu || spec->pass != LS_PASS_FORWARD)
        return status;
    dnnl_post_ops_t post_ops;
    status = dnnl_post_ops_create(&post_ops);
    if (status != dnnl_success)
        return status;
    status = dnnl_post_ops_append_eltwise(post_ops, 1.0f, dnnl_eltwise_relu, spec->slope, 0.0f);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(*attributes, post_ops);
    dnnl_post_ops_destroy(post_ops);
    return status;
}

static dnnl_status_t create_direct(const struct ls_primitive_spec *spec,
                                   const dnnl_memory_desc_t *md,
                                   const_dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *result)
{
    if (spec->kind == LS_PRIMITIVE_REORDER)
        return dnnl_reorder_primitive_desc_create(result, &md[LS_SOURCE], engine, &md[LS_TARGET],
                                                  engine, attributes);
    if (spec->kind == LS_PRIMITIVE_CONVOLUTION)
        return create_convolution(spec, md, attributes, hint, result);
    return create_inner_product(spec, md, attributes, hint, result);
}

/* A backward pass is built from its own shapes and layouts; the forward description that oneDNN
 * demands beside them is made with free layouts and decides nothing. */
static dnnl_status_t create_backward(const struct ls_primitive_spec *spec,
                                     const dnnl_memory_desc_t *md,
                                     const_dnnl_primitive_attr_t attributes,
                                     dnnl_primitive_desc_t *result)
{
    struct ls_primitive_spec forward = *spec;
    dnnl_memory_desc_t any[LS_SLOTS];
    forward.pass = LS_PASS_FORWARD;
    forward.relu = false;
    for (int i = 0; i < LS_SLOTS; i++) {
        if (spec->tensor[i].rank == 0)
            continue;
        dnnl_status_t status = dnnl_memory_desc_init_by_tag(&any[i], md[i].ndims, md[i].dims,
                                                            dnnl_f32, dnnl_format_tag_any);
        if (status != dnnl_success)
            return status;
    }
    dnnl_primitive_desc_t hint;
    dnnl_status_t status = create_direct(&forward, any, attributes, NULL, &hint);
    if (status != dnnl_success)
        return status;
    status = create_direct(spec, md, attributes, hint, result);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

/* oneDNN computes with windows in 32 bits; nobody needs windows of that size. */
static int check_window(const struct ls_primitive_spec *spec, struct ls_error *error)
{
    const struct ls_window *window = &spec->window;
    const int64_t limit = 1 << 20;
    if (spec->kind != LS_PRIMITIVE_CONVOLUTION)
        return 0;
    for (int i = 0; i < window->axes; i++)
        if (window->kernel[i] > limit || window->stride[i] > limit || window->pad[i] > limit ||
            window->dilation[i] > limit || window->kernel[i] * window->dilation[i] > limit)
            return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                           "a window of more than 2^20 places along an axis is too large");
    return 0;
}

/* oneDNN looks at the number of threads when it describes a primitive. */
static int create_description(const struct ls_primitive_spec *spec, dnnl_memory_desc_t *md,
                              dnnl_primitive_desc_t *result, struct ls_error *error)
{
    LS_TRY(open_engine(error));
    LS_TRY(check_window(spec, error));
    for (int i = 0; i < LS_SLOTS; i++)
        if (spec->tensor[i].rank > 0)
            LS_TRY(ls_onednn_describe(&spec->tensor[i], &md[i], error));
    int threads = ls_onednn_one_thread();
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = create_attributes(spec, &attributes);
    if (status == dnnl_success && spec->pass == LS_PASS_FORWARD)
        status = create_direct(spec, md, attributes, NULL, result);
    else if (status == dnnl_success)
        status = create_backward(spec, md, attributes, result);
    if (attributes != NULL)
        dnnl_primitive_attr_destroy(attributes);
    ls_onednn_restore_threads(threads);
    return status == dnnl_success ? 0 : fail_status(spec, status, error);
}

/* The descriptor that each slot got, with free layouts filled in. */
static const dnnl_memory_desc_t *query_md(const struct ls_primitive_spec *spec,
                                          const_dnnl_primitive_desc_t description,
                                          enum ls_tensor_slot slot)
{
    bool weights = spec->pass == LS_PASS_WEIGHTS, data = spec->pass == LS_PASS_DATA;
    switch (slot) {
    case LS_SOURCE:
        return dnnl_primitive_desc_query_md(description,
                                            data ? dnnl_query_diff_src_md : dnnl_query_src_md, 0);
    case LS_WEIGHTS:
    case LS_BIAS:
        return dnnl_primitive_desc_query_md(
            description, weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md,
            slot == LS_BIAS);
    default:
        return dnnl_primitive_desc_query_md(
            description, data || weights ? dnnl_query_diff_dst_md : dnnl_query_dst_md, 0);
    }
}

static int fill_plan(const struct ls_primitive_spec *spec, const_dnnl_primitive_desc_t description,
                     struct ls_primitive_plan *plan, struct ls_error *error)
{
    const char *name = NULL;
    dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, &name);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", name != NULL ? name : "?");
    plan->reference = strstr(plan->implementation, "ref") != NULL;
    plan->weights = NULL;
    if (spec->tensor[LS_WEIGHTS].rank == 0)
        return 0;
    return ls_onednn_intern(&spec->tensor[LS_WEIGHTS], query_md(spec, description, LS_WEIGHTS),
                            &plan->weights, error);
}

int ls_primitive_query(const struct ls_primitive_spec *spec, struct ls_primitive_plan *plan,
                       struct ls_error *error)
{
    dnnl_memory_desc_t md[LS_SLOTS];
    dnnl_primitive_desc_t description;
    LS_TRY(create_description(spec, md, &description, error));
    int status = fill_plan(spec, description, plan, error);
    dnnl_primitive_desc_destroy(description);
    return status;
}

/* ---- Primitives ---- */

static int argument_of(const struct ls_primitive_spec *spec, enum ls_tensor_slot slot)
{
    static const int arguments[3][LS_SLOTS] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DIFF_DST},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST}};
    return arguments[spec->pass][slot];
}

enum { CODE_RESERVE = 8 << 20 }; /* bytes */

int ls_primitive_new(const struct ls_primitive_spec *spec, struct ls_primitive **result,
                     struct ls_error *error)
{
    dnnl_primitive_desc_t description;
    struct ls_primitive *primitive = ls_alloc(1, sizeof *primitive);
    if (primitive == NULL)
        return ls_fail_memory(error, kind_names[spec->kind]);
    int status = create_description(spec, primitive->md, &description, error);
    if (status != 0) {
        ls_free(primitive);
        return status;
    }
    for (int i = 0; i < LS_SLOTS; i++) {
        primitive->present[i] = spec->tensor[i].rank > 0;
        primitive->argument[i] = argument_of(spec, (enum ls_tensor_slot)i);
    }
    primitive->scratch_md = *dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    primitive->scratch_bytes = dnnl_memory_desc_get_size(&primitive->scratch_md);
    status = fill_plan(spec, description, &primitive->plan, error);
    /* Where memory runs out while it generates code, oneDNN 2.6 crashes: ask for more than it takes
     * first. */
    bool reserve = ls_memory_is_there(CODE_RESERVE);
    if (status == 0 && !reserve)
        status = ls_fail_memory(error, kind_names[spec->kind]);
    int threads = ls_onednn_one_thread();
    if (status == 0) {
        dnnl_status_t built = dnnl_primitive_create(&primitive->primitive, description);
        status = built == dnnl_success ? 0 : fail_status(spec, built, error);
    }
    ls_onednn_restore_threads(threads);
    dnnl_primitive_desc_destroy(description);
    if (status != 0) {
        ls_primitive_free(primitive);
        return status;
    }
    *result = primitive;
    return 0;
}

void ls_primitive_free(struct ls_primitive *primitive)
{
    if (primitive == NULL)
        return;
    if (primitive->primitive != NULL)
        dnnl_primitive_destroy(primitive->primitive);
    ls_free(primitive);
}

size_t ls_primitive_scratch(const struct ls_primitive *primitive)
{
    return primitive->scratch_bytes;
}

const char *ls_primitive_implementation(const struct ls_primitive *primitive)
{
    return primitive->plan.implementation;
}

bool ls_primitive_is_reference(const struct ls_primitive *primitive)
{
    return primitive->plan.reference;
}

/* ---- Executions ---- */

/* Memory without bytes of its own, which come later or with each run. */
static dnnl_status_t add_argument(struct ls_execution *execution, int argument,
                                  const dnnl_memory_desc_t *md, void *data)
{
    dnnl_exec_arg_t *place = &execution->arguments[execution->count];
    dnnl_status_t status = dnnl_memory_create(&place->memory, md, engine, DNNL_MEMORY_NONE);
    if (status != dnnl_success)
        return status;
    place->arg = argument;
    execution->count++;
    return data == NULL ? dnnl_success : dnnl_memory_set_data_handle(place->memory, data);
}

int ls_execution_new(const struct ls_primitive *primitive, void *scratch,
                     struct ls_execution **result, struct ls_error *error)
{
    struct ls_execution *execution = ls_alloc(1, sizeof *execution);
    if (execution == NULL)
        return ls_fail_memory(error, "a kernel's memory");
    execution->primitive = primitive;
    dnnl_status_t status = dnnl_stream_create(&execution->stream, engine, dnnl_stream_in_order);
    for (int i = 0; i < LS_SLOTS && status == dnnl_success; i++) {
        if (!primitive->present[i])
            continue;
        execution->slot[execution->count] = (enum ls_tensor_slot)i;
        status = add_argument(execution, primitive->argument[i], &primitive->md[i], NULL);
    }
    if (status == dnnl_success && primitive->scratch_bytes > 0)
        status = add_argument(execution, DNNL_ARG_SCRATCHPAD, &primitive->scratch_md, scratch);
    if (status != dnnl_success) {
        ls_execution_free(execution);
        return ls_fail_memory(error, "a kernel's memory");
    }
    *result = execution;
    return 0;
}

void ls_execution_free(struct ls_execution *execution)
{
    if (execution == NULL)
        return;
    for (int i = 0; i < execution->count; i++)
        dnnl_memory_destroy(execution->arguments[i].memory);
    if (execution->stream != NULL)
        dnnl_stream_destroy(execution->stream);
    ls_free(execution);
}

bool ls_execution_run(struct ls_execution *execution, void *const data[LS_SLOTS])
{
    int tensors = execution->count - (execution->primitive->scratch_bytes > 0 ? 1 : 0);
    for (int i = 0; i < tensors; i++) {
        void *pointer = data[execution->slot[i]];
        if (pointer == execution->data[i])
            continue;
        if (dnnl_memory_set_data_handle(execution->arguments[i].memory, pointer) != dnnl_success)
            return false;
        execution->data[i] = pointer;
    }
    return dnnl_primitive_execute(execution->primitive->primitive, execution->stream,
                                  execution->count, execution->arguments) == dnnl_success &&
           dnnl_stream_wait(execution->stream) == dnnl_success;
}

int ls_onednn_reorder(const struct ls_tensor *from, const struct ls_tensor *to, const float *source,
                      float *target, struct ls_error *error)
{
    struct ls_primitive_spec spec = {.kind = LS_PRIMITIVE_REORDER};
    struct ls_primitive *primitive = NULL;
    struct ls_execution *execution = NULL;
    void *data[LS_SLOTS] = {0};
    spec.tensor[LS_SOURCE] = *from;
    spec.tensor[LS_TARGET] = *to;
    data[LS_SOURCE] = (void *)(uintptr_t)source;
    data[LS_TARGET] = target;
    LS_TRY(ls_primitive_new(&spec, &primitive, error));
    void *scratch = ls_alloc_aligned(primitive->scratch_bytes);
    int status = scratch != NULL ? ls_execution_new(primitive, scratch, &execution, error)
                                 : ls_fail_memory(error, "a reorder");
    int threads = ls_onednn_one_thread();
    if (status == 0 && !ls_execution_run(execution, data))
        status = ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "oneDNN's reorder failed");
    ls_onednn_restore_threads(threads);
    ls_execution_free(execution);
    ls_free_aligned(scratch);
    ls_primitive_free(primitive);
    return status;
}
