/* Which engine carries a graph out. See ops/cuda/cudnn.h.
 *
 * The rule is static: cuDNN's heuristics order the engines of a graph, as a function of the graph,
 * the model of the card and cuDNN's version, and the first that may be taken is taken. Nothing is
 * measured. Engines whose sums have another order each time (NONDETERMINISTIC), that round operands
 * to types that the definition does not name (DOWN_CONVERT_INPUTS), or sums
 * (REDUCED_PRECISION_REDUCTION), or whose error is that of the largest number of a picture (FFT),
 * are never taken. HEUR_MODE_B is not asked: it may not be, by several threads at a time.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/cudnn.h"

#include "base/mutant.h"

enum { CONFIGS_MAX = 64 };

static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
enum { MODES = sizeof modes / sizeof *modes };

/* A bit for each note. */
static unsigned note(cudnnBackendNumericalNote_t name)
{
    return 1U << (unsigned)name;
}

static unsigned read_notes(struct ls_cudnn_set *set, cudnnBackendDescriptor_t engine)
{
    cudnnBackendNumericalNote_t names[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    unsigned notes = 0;
    const int64_t count =
        ls_cudnn_get(set, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT, names);
    for (int64_t i = 0; i < count; i++)
        notes |= note(names[i]);
    return notes;
}

static bool may_compute(const struct ls_cudnn_demand *demand, unsigned notes)
{
    const unsigned winograd = note(CUDNN_NUMERICAL_NOTE_WINOGRAD) |
                              note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) |
                              note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) |
                              note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
    unsigned never = note(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) |
                     note(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) |
                     note(CUDNN_NUMERICAL_NOTE_FFT);
    if (!LS_MUTANT(UNSURE))
        never |= note(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    if (!demand->tensor_cores && !LS_MUTANT(TENSOR))
        never |= note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    if (demand->no_winograd)
        never |= winograd;
    return (notes & never) == 0 && (!demand->winograd || (notes & winograd) != 0);
}

/* Makes a plan of a configuration if it may be taken. What is made for one that may not is
 * dropped. */
static void try_config(const struct ls_cudnn_demand *demand, cudnnBackendDescriptor_t config,
                       cudnnHandle_t handle, struct ls_cudnn_plan *plan)
{
    struct ls_cudnn_set *set = &plan->set;
    const int before = set->count;
    int64_t index = -1, workspace = -1;
    cudnnBackendDescriptor_t engine = ls_cudnn_make(set, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    (void)ls_cudnn_get(set, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                       &engine);
    (void)ls_cudnn_get(set, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    const unsigned notes = read_notes(set, engine);
    bool taken = set->status == CUDNN_STATUS_SUCCESS && may_compute(demand, notes);
    if (taken) {
        cudnnBackendDescriptor_t made = ls_cudnn_make(set, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        ls_cudnn_put(set, made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        ls_cudnn_put_descriptor(set, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
        ls_cudnn_finalize(set, made);
        if (ls_cudnn_is_unsupported(set->status)) {
            set->status = CUDNN_STATUS_SUCCESS;
            taken = false;
        } else {
            (void)ls_cudnn_get(set, made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                               CUDNN_TYPE_INT64, 1, &workspace);
            taken = set->status == CUDNN_STATUS_SUCCESS && workspace >= 0 &&
                    (size_t)workspace <= LS_CUDNN_WORKSPACE_MAX;
        }
        plan->plan = made;
    }
    if (!taken) {
        ls_cudnn_drop(set, before);
        plan->plan = NULL;
        return;
    }
    plan->engine = index;
    plan->workspace = (size_t)workspace;
}

/* What the heuristics of a mode offer; 0 where they have nothing for the graph. */
static int64_t read_configs(struct ls_cudnn_set *set, cudnnBackendDescriptor_t graph,
                            cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t *configs)
{
    cudnnBackendDescriptor_t heuristics = ls_cudnn_make(set, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    ls_cudnn_put_descriptor(set, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    ls_cudnn_put(set, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    ls_cudnn_finalize(set, heuristics);
    if (ls_cudnn_is_unsupported(set->status)) {
        set->status = CUDNN_STATUS_SUCCESS;
        return 0;
    }
    int64_t count = ls_cudnn_get(set, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, NULL);
    count = count > CONFIGS_MAX ? CONFIGS_MAX : count;
    for (int64_t i = 0; i < count; i++)
        configs[i] = ls_cudnn_make(set, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    return count == 0 ? 0
                      : ls_cudnn_get(set, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, count, configs);
}

/* The first of a mode's engines that may be taken; what is made for the others is dropped. */
static void try_mode(const struct ls_cudnn_demand *demand, cudnnBackendDescriptor_t graph,
                     cudnnBackendHeurMode_t mode, cudnnHandle_t handle, struct ls_cudnn_plan *plan)
{
    struct ls_cudnn_set *set = &plan->set;
    cudnnBackendDescriptor_t configs[CONFIGS_MAX], taken = NULL;
    const int before = set->count;
    const int64_t count = read_configs(set, graph, mode, configs);
    const int behind = set->count;
    for (int64_t i = 0; i < count && taken == NULL && set->status == CUDNN_STATUS_SUCCESS; i++) {
        try_config(demand, configs[i], handle, plan);
        taken = plan->plan != NULL ? configs[i] : NULL;
        plan->choice += taken != NULL ? (int)(i - count) : 0;
    }
    plan->choice += (int)count; /* behind all of a mode whose engines may not be taken */
    ls_cudnn_drop_others(set, before, behind, taken);
}

void ls_cudnn_plan_make(const struct ls_cudnn_convolution *of, const struct ls_cudnn_demand *demand,
                        cudnnHandle_t handle, struct ls_cudnn_plan *plan)
{
    *plan = (struct ls_cudnn_plan){.plan = NULL};
    struct ls_cudnn_set *set = &plan->set;
    cudnnBackendDescriptor_t graph = ls_cudnn_graph(set, handle, of);
    if (ls_cudnn_is_unsupported(set->status)) /* no engine has such a pattern */
        set->status = CUDNN_STATUS_SUCCESS;
    else
        for (int m = 0; m < MODES && plan->plan == NULL; m++)
            try_mode(demand, graph, modes[m], handle, plan);
    if (plan->plan == NULL)
        ls_cudnn_drop(set, 0);
}

void ls_cudnn_plan_free(struct ls_cudnn_plan *plan)
{
    ls_cudnn_drop(&plan->set, 0);
    *plan = (struct ls_cudnn_plan){.plan = NULL};
}
