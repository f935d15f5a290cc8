/* The CPU: the table of kernels, and what threads and parameters need.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/device.h"

#include "base/thread.h"
#include "device/plain.h"
#include "ops/cpu/accumulator.h"
#include "ops/cpu/environment.h"
#include "ops/cpu/exact.h"
#include "ops/cpu/factors.h"
#include "ops/cpu/filler.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/onednn.h"
#include "ops/cpu/parameter_layout.h"
#include "ops/cpu/primitive.h"
#include "ops/cpu/products.h"
#include "ops/cpu/update.h"

static const struct ls_kernel *const kernel_table[] = {
#define ENTRY(name) &ls_kernel_##name,
    LS_CPU_KERNELS(ENTRY)
#undef ENTRY
        NULL,
};

static const struct ls_kernel *const *kernels(void)
{
    return kernel_table;
}

static bool supports(const struct ls_op *op)
{
    return ls_kernel_find(kernel_table, op) != NULL;
}

static void enter_thread(void)
{
    ls_set_float_mode();
    ls_onednn_one_thread();
}

static const char *isa_in_use(void)
{
    return ls_cpu_isa_name(ls_cpu_isa());
}

static const char *widest_isa(void)
{
    return ls_cpu_isa_name(ls_cpu_isa_widest());
}

static const struct ls_device_environment environment = {
    .portable = true,
    .isa = isa_in_use,
    .widest_isa = widest_isa,
    .describe = ls_cpu_describe_library,
    .library = "oneDNN's version and the CPU's type",
    .own = ls_cpu_own_fingerprint,
    .probes = ls_cpu_probes,
    .probe = ls_cpu_probe,
};

static int largest(const float *x, size_t n, uint32_t *bits, struct ls_error *error)
{
    (void)error;
    *bits = ls_largest(x, n);
    return 0;
}

static int squares(const float *x, size_t n, double *sum, struct ls_error *error)
{
    (void)error;
    *sum = ls_sum_squares(x, n);
    return 0;
}

static int magnitudes(const float *x, size_t n, double *sum, struct ls_error *error)
{
    (void)error;
    *sum = ls_sum_magnitudes(x, n);
    return 0;
}

static const struct ls_device_sums sums = {
    .largest = largest,
    .squares = squares,
    .magnitudes = magnitudes,
};

const struct ls_device ls_device_cpu = {
    .name = "cpu",
    .kernels = kernels,
    .supports = supports,
    .memory = &ls_host_memory,
    .streams = &ls_thread_streams,
    .parameter_from_plain = ls_cpu_parameter_from_plain,
    .parameter_to_plain = ls_cpu_parameter_to_plain,
    .converter_new = ls_cpu_converter_new,
    .converter_run = ls_cpu_converter_run,
    .converter_free = ls_cpu_converter_free,
    .merge = ls_plain_merge,
    .fill = ls_filler_run,
    .sums = &sums,
    .accumulator = &ls_cpu_accumulator,
    .weight_gradient = ls_factors_weight_gradient,
    .bias_gradient = ls_factors_bias_gradient,
    .update = ls_update_apply,
    .clear_masked = ls_update_clear_masked,
    .products = &ls_cpu_products,
    .enter_thread = enter_thread,
    .take_thread = ls_onednn_one_thread,
    .give_thread_back = ls_onednn_restore_threads,
    .select_isa = ls_cpu_isa_select,
    .computes_with = ls_cpu_computes_with,
    .describe = ls_cpu_describe,
    .environment = &environment,
};
