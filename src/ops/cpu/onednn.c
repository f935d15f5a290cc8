/* oneDNN's primitives: what it would do, building them, running them.
 *
 * Each primitive is built and run on one thread (the number of threads decides how oneDNN cuts
 * sums), in strict fp32, with the instruction set that Lockstep's own loops use and nothing beyond
 * AVX-512's core, so that processors with bf16 or tile units take the same kernels as those
 * without. Scratch memory is the caller's: nothing is shared between workers but constant code.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/onednn.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ops/cpu/onednn_layout.h"

struct ls_primitive {
    dnnl_primitive_t primitive;
    dnnl_engine_t engine;
    struct ls_md *md[LS_SLOTS], *scratch_md; /* NULL: absent */
    int argument[LS_SLOTS];                  /* DNNL_ARG_... */
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

/* ---- Descriptions ---- */

static const char *const kind_names[] = {"convolution", "inner product", "reorder"};

static int fail_status(const struct ls_primitive_spec *spec, dnnl_status_t status,
                       struct ls_error *error)
{
    if (status == dnnl_out_of_memory)
        return ls_fail_memory(error, kind_names[spec->kind]);
    return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL, "oneDNN %s cannot do this %s (%s)",
                   ls_onednn_version(), kind_names[spec->kind],
                   status == dnnl_unimplemented ? "unimplemented" : "invalid arguments");
}

static void free_mds(struct ls_md *const md[LS_SLOTS])
{
    for (int i = 0; i < LS_SLOTS; i++)
        ls_md_free(md[i]);
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
    status = ls_post_ops_relu(post_ops, spec->slope);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(*attributes, post_ops);
    dnnl_post_ops_destroy(post_ops);
    return status;
}

/* What hangs over on the right follows from the shapes; oneDNN rounds down as we do. */
static void set_window(struct ls_request *request, const struct ls_window *window)
{
    for (int i = 0; i < window->axes; i++) {
        request->stride[i] = window->stride[i];
        request->dilation[i] = window->dilation[i] - 1;
        request->pad[i] = window->pad[i];
    }
}

/* A backward pass is built from its own shapes and layouts; the forward description that oneDNN
 * demands beside them is made with free layouts and decides nothing. */
static dnnl_status_t describe_forward(const struct ls_request *backward,
                                      const struct ls_primitive_spec *spec,
                                      dnnl_primitive_desc_t *forward)
{
    struct ls_request request = *backward;
    struct ls_md *any[LS_SLOTS] = {NULL};
    dnnl_status_t status = dnnl_success;
    request.pass = LS_PASS_FORWARD;
    request.md = any;
    request.algorithm = dnnl_convolution_direct;
    for (int i = 0; i < LS_SLOTS && status == dnnl_success; i++) {
        if (spec->tensor[i].rank == 0)
            continue;
        struct ls_onednn_tensor tensor = spec->tensor[i];
        tensor.layout = NULL;
        int failed = ls_onednn_describe(&tensor, &any[i], NULL);
        if (failed != 0)
            status = failed == LOCKSTEP_RESOURCE ? dnnl_out_of_memory : dnnl_invalid_arguments;
    }
    if (status == dnnl_success)
        status = ls_request_describe(&request, forward);
    free_mds(any);
    return status;
}

static dnnl_status_t describe(const struct ls_primitive_spec *spec, struct ls_md *const *md,
                              dnnl_engine_t engine, const_dnnl_primitive_attr_t attributes,
                              dnnl_primitive_desc_t *result)
{
    struct ls_request request = {.kind = spec->kind,
                                 .pass = spec->pass,
                                 .md = md,
                                 .engine = engine,
                                 .attributes = attributes,
                                 .algorithm = spec->winograd ? dnnl_convolution_winograd
                                                             : dnnl_convolution_direct};
    dnnl_primitive_desc_t forward = NULL;
    set_window(&request, &spec->window);
    if (spec->pass != LS_PASS_FORWARD) {
        dnnl_status_t status = describe_forward(&request, spec, &forward);
        if (status != dnnl_success)
            return status;
        request.forward = forward;
    }
    dnnl_status_t status = ls_request_describe(&request, result);
    if (forward != NULL)
        dnnl_primitive_desc_destroy(forward);
    return status;
}

bool ls_window_is_too_large(const struct ls_window *window)
{
    const int64_t limit = 1 << 20;
    for (int i = 0; i < window->axes; i++)
        if (window->kernel[i] > limit || window->stride[i] > limit || window->pad[i] > limit ||
            window->dilation[i] > limit || window->kernel[i] * window->dilation[i] > limit)
            return true;
    return false;
}

static int make_mds(const struct ls_primitive_spec *spec, struct ls_md **md, struct ls_error *error)
{
    for (int i = 0; i < LS_SLOTS; i++)
        if (spec->tensor[i].rank > 0)
            LS_TRY(ls_onednn_describe(&spec->tensor[i], &md[i], error));
    return 0;
}

/* Makes the descriptors of the tensors, which the caller frees also after a failure, and of the
 * primitive. oneDNN looks at the number of threads when it describes a primitive. */
static int create_description(const struct ls_primitive_spec *spec, struct ls_md **md,
                              dnnl_primitive_desc_t *result, struct ls_error *error)
{
    dnnl_engine_t engine;
    LS_TRY(ls_onednn_engine(&engine, error));
    if (spec->kind == LS_PRIMITIVE_CONVOLUTION && ls_window_is_too_large(&spec->window))
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL, LS_WINDOW_TOO_LARGE);
    LS_TRY(make_mds(spec, md, error));
    int threads = ls_onednn_one_thread();
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = create_attributes(spec, &attributes);
    if (status == dnnl_success)
        status = describe(spec, md, engine, attributes, result);
    if (attributes != NULL)
        dnnl_primitive_attr_destroy(attributes);
    ls_onednn_restore_threads(threads);
    return status == dnnl_success ? 0 : fail_status(spec, status, error);
}

static void name_implementation(const_dnnl_primitive_desc_t description,
                                struct ls_primitive_plan *plan)
{
    const char *name = NULL;
    dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, &name);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", name != NULL ? name : "?");
    plan->reference = strstr(plan->implementation, "ref") != NULL;
}

/* The layout that free weights got. */
static int find_weights(const struct ls_primitive_spec *spec,
                        const_dnnl_primitive_desc_t description, const struct ls_layout **layout,
                        struct ls_error *error)
{
    bool gradient = spec->pass == LS_PASS_WEIGHTS;
    struct ls_md *md;
    if (ls_md_of(&md, description, gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md,
                 0) != dnnl_success)
        return ls_fail_memory(error, "a layout");
    int status = ls_onednn_intern(&spec->tensor[LS_WEIGHTS], md, layout, error);
    ls_md_free(md);
    return status;
}

static int query(const struct ls_primitive_spec *spec, struct ls_primitive_plan *plan,
                 struct ls_error *error)
{
    struct ls_md *md[LS_SLOTS] = {NULL};
    dnnl_primitive_desc_t description = NULL;
    int status = create_description(spec, md, &description, error);
    free_mds(md);
    if (status != 0)
        return status;
    name_implementation(description, plan);
    plan->weights = spec->tensor[LS_WEIGHTS].layout;
    if (spec->tensor[LS_WEIGHTS].rank > 0 && plan->weights == NULL)
        status = find_weights(spec, description, &plan->weights, error);
    dnnl_primitive_desc_destroy(description);
    return status;
}

/* Weights that would lie in a way that Lockstep cannot name lie plain. */
int ls_primitive_query(const struct ls_primitive_spec *spec, struct ls_primitive_plan *plan,
                       struct ls_error *error)
{
    const struct ls_onednn_tensor *weights = &spec->tensor[LS_WEIGHTS];
    bool free_weights = weights->rank > 0 && weights->layout == NULL && weights->widened == 0;
    int status = query(spec, plan, free_weights ? NULL : error);
    if (status == 0 || !free_weights)
        return status;
    if (status == LOCKSTEP_RESOURCE)
        return ls_fail_memory(error, kind_names[spec->kind]);
    struct ls_primitive_spec plain = *spec;
    if (status == LOCKSTEP_INTERNAL)
        plain.tensor[LS_WEIGHTS].layout = &ls_layout_plain;
    return query(&plain, plan, error);
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

/* Generates the code. Where memory runs out on the way, oneDNN 2.6 crashes: ask for more than it
 * takes first. */
static int build(const struct ls_primitive_spec *spec, const_dnnl_primitive_desc_t description,
                 dnnl_primitive_t *primitive, struct ls_error *error)
{
    if (!ls_memory_is_there(CODE_RESERVE))
        return ls_fail_memory(error, kind_names[spec->kind]);
    int threads = ls_onednn_one_thread();
    dnnl_status_t status = dnnl_primitive_create(primitive, description);
    ls_onednn_restore_threads(threads);
    return status == dnnl_success ? 0 : fail_status(spec, status, error);
}

int ls_primitive_new(const struct ls_primitive_spec *spec, struct ls_primitive **result,
                     struct ls_error *error)
{
    dnnl_primitive_desc_t description = NULL;
    struct ls_primitive *primitive = ls_alloc(1, sizeof *primitive);
    if (primitive == NULL)
        return ls_fail_memory(error, kind_names[spec->kind]);
    int status = create_description(spec, primitive->md, &description, error);
    if (status != 0) {
        ls_primitive_free(primitive);
        return status;
    }
    status = ls_onednn_engine(&primitive->engine, error);
    for (int i = 0; i < LS_SLOTS; i++)
        primitive->argument[i] = argument_of(spec, (enum ls_tensor_slot)i);
    if (ls_md_of(&primitive->scratch_md, description, dnnl_query_scratchpad_md, 0) == dnnl_success)
        primitive->scratch_bytes = ls_md_bytes(primitive->scratch_md);
    else if (status == 0)
        status = ls_fail_memory(error, kind_names[spec->kind]);
    name_implementation(description, &primitive->plan);
    if (status == 0)
        status = build(spec, description, &primitive->primitive, error);
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
    free_mds(primitive->md);
    ls_md_free(primitive->scratch_md);
    ls_free(primitive);
}

size_t ls_primitive_scratch(const struct ls_primitive *primitive)
{
    return primitive->scratch_bytes;
}

const struct ls_primitive_plan *ls_primitive_plan_of(const struct ls_primitive *primitive)
{
    return &primitive->plan;
}

/* ---- Executions ---- */

/* Memory whose bytes come later or with each run. */
static dnnl_status_t add_argument(struct ls_execution *execution, int argument,
                                  const struct ls_md *md, void *data)
{
    dnnl_exec_arg_t *place = &execution->arguments[execution->count];
    dnnl_status_t status = ls_md_memory(md, execution->primitive->engine, &place->memory);
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
    dnnl_status_t status =
        dnnl_stream_create(&execution->stream, primitive->engine, dnnl_stream_in_order);
    for (int i = 0; i < LS_SLOTS && status == dnnl_success; i++) {
        if (primitive->md[i] == NULL)
            continue;
        execution->slot[execution->count] = (enum ls_tensor_slot)i;
        status = add_argument(execution, primitive->argument[i], primitive->md[i], NULL);
    }
    if (status == dnnl_success && primitive->scratch_bytes > 0)
        status = add_argument(execution, DNNL_ARG_SCRATCHPAD, primitive->scratch_md, scratch);
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

static int status_of(dnnl_status_t status)
{
    return status == dnnl_success         ? 0
           : status == dnnl_out_of_memory ? LOCKSTEP_RESOURCE
                                          : LOCKSTEP_INTERNAL;
}

int ls_execution_run(struct ls_execution *execution, void *const data[LS_SLOTS])
{
    int tensors = execution->count - (execution->primitive->scratch_bytes > 0 ? 1 : 0);
    for (int i = 0; i < tensors; i++) {
        void *pointer = data[execution->slot[i]];
        if (pointer == execution->data[i])
            continue;
        LS_TRY(status_of(dnnl_memory_set_data_handle(execution->arguments[i].memory, pointer)));
        execution->data[i] = pointer;
    }
    LS_TRY(status_of(dnnl_primitive_execute(execution->primitive->primitive, execution->stream,
                                            execution->count, execution->arguments)));
    return status_of(dnnl_stream_wait(execution->stream));
}
