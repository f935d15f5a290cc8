/* The golden networks use everything in the library's own tables: a new layer type, kernel or
 * source without a golden network fails.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "golden/golden.h"

#include <stdio.h>
#include <string.h>

#include "data/dataset_inner.h"
#include "layers/layers.h"
#include "lockstep/lockstep.h"
#include "ops/cpu/device.h"
#include "ops/cpu/isa.h"
#include "solver/trainer.h"
#include "support/support.h"

enum { TYPES_MAX = 256, BACKENDS_MAX = 16384 };

static struct {
    bool layer[TYPES_MAX], kernel[TYPES_MAX]; /* by place in the table */
    bool op[LS_OP_KINDS];
    bool solver[LS_UPDATE_KINDS];
    bool policy[LS_POLICY_ONECYCLE + 1];
    bool source[BACKENDS_MAX]; /* by number of the definition language */
} used;

static void note_plan(const struct ls_plan *plan)
{
    const struct ls_kernel *const *kernels = plan->device->kernels();
    for (size_t l = 0; l < plan->graph->layer_count; l++)
        for (size_t i = 0; ls_layer_types[i] != NULL; i++)
            used.layer[i] = used.layer[i] || plan->graph->layers[l]->type == ls_layer_types[i];
    for (size_t s = 0; s < plan->step_count; s++) {
        used.op[plan->steps[s].prepared.op->kind] = true;
        for (size_t i = 0; kernels[i] != NULL; i++)
            used.kernel[i] = used.kernel[i] || plan->steps[s].prepared.kernel == kernels[i];
    }
}

static void note_net(const struct ls_net *net)
{
    for (size_t p = 0; p < net->plan_count; p++)
        note_plan(net->plans[p]->plan);
    for (int i = 0; i < net->dataset_count; i++)
        if (net->datasets[i] != NULL)
            used.source[net->datasets[i]->source->type->backend] = true;
}

void golden_note_use(const struct ls_trainer *trainer)
{
    note_net(trainer->train);
    for (size_t i = 0; i < trainer->test_count; i++)
        note_net(trainer->tests[i].net);
    for (size_t g = 0; g < trainer->groups->count; g++)
        if (trainer->groups->group[g].parameters > 0)
            used.solver[trainer->groups->group[g].kind] = true;
    used.policy[trainer->schedule.policy] = true;
}

/* Layers for numbers of the caller, in nets that are not trained here, compute nothing. */
static bool computes(const struct ls_layer_type *type)
{
    return strcmp(type->type, "Input") != 0 && strcmp(type->type, "MemoryData") != 0;
}

/* Conversions to other types have no bits of their own: tests/unit/ops_cpu/test_convert.c compares
 * them with ir/convert.h. No layer asks for one yet. */
static bool has_bits(const struct ls_kernel *kernel)
{
    return strcmp(kernel->name, "convert") != 0;
}

/* What a plugin's layer computes is its own: tests/faults/plugin.sh trains with one. */
static bool is_of_plugins(enum ls_op_kind kind)
{
    return kind == LS_OP_PLUGIN || kind == LS_OP_PLUGIN_BACKWARD;
}

static int missing_names(const char *isa)
{
    int missing = 0;
    for (size_t i = 0; ls_layer_types[i] != NULL; i++)
        if (!used.layer[i] && computes(ls_layer_types[i]) && ++missing)
            printf("no golden network uses the layer type %s\n", ls_layer_types[i]->type);
    for (int i = 0; i < LS_OP_KINDS; i++)
        if (!used.op[i] && !is_of_plugins((enum ls_op_kind)i) && ++missing)
            printf("no golden network uses the op '%s'\n", ls_op_kind_name((enum ls_op_kind)i));
    const struct ls_kernel *const *kernels = ls_device_cpu.kernels();
    for (size_t i = 0; kernels[i] != NULL; i++) {
        bool again = i > 0 && kernels[i] == kernels[i - 1];
        if (!used.kernel[i] && !again && has_bits(kernels[i]) && !is_of_plugins(kernels[i]->kind) &&
            ++missing)
            printf("no golden network uses the kernel '%s' on %s\n", kernels[i]->name, isa);
    }
    return missing;
}

void golden_check_coverage(const char *isa)
{
    int missing = missing_names(isa);
    for (int i = 0; i < LS_UPDATE_KINDS; i++)
        if (!used.solver[i] && ++missing)
            printf("no golden network uses the solver of number %d in enum ls_update_kind\n", i);
    for (int i = 0; i <= LS_POLICY_ONECYCLE; i++)
        if (!used.policy[i] && ++missing)
            printf("no golden network uses the policy of number %d in enum ls_policy\n", i);
    for (int i = 0; i < BACKENDS_MAX; i++)
        if (ls_source_type_of(i) != NULL && !used.source[i] && ++missing)
            printf("no golden network reads from %s\n", ls_source_type_of(i)->name);
    if (missing > 0)
        fail_msg("%d things have no golden network; add some to tests/golden/nets", missing);
}
