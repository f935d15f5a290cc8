/* See engine/direct_update.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/direct_update.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "device/update_rule.h"
#include "engine/recorder.h"

/* Consecutive elements of a parameter. */
struct stretch {
    int parameter;
    size_t begin, n;
};

struct ls_direct_update {
    const struct ls_store *store;
    struct stretch *stretches;
    size_t count;
    struct ls_mirror rules; /* by parameter */
    struct ls_mirror seen;  /* by parameter: the largest gradient and the largest weight */
    struct ls_stream *stream;
    struct ls_recorder recorder;
};

/* Joins tiles that follow each other; those whose gradients are exchanged as factors are none. */
static void direct_update_join(struct ls_direct_update *direct, struct stretch *stretches,
                               const struct ls_tile *tile)
{
    const struct ls_gradient_piece *piece = &tile->piece;
    struct stretch *last = direct->count > 0 ? &stretches[direct->count - 1] : NULL;
    if (ls_store_has_factors(direct->store, tile->parameter))
        return;
    if (last != NULL && last->parameter == tile->parameter && last->begin + last->n == piece->begin)
        last->n += piece->columns;
    else
        stretches[direct->count++] =
            (struct stretch){tile->parameter, piece->begin, piece->columns};
}

int ls_direct_update_create(const struct ls_store *store, const struct ls_tile *tiles,
                            const int *owners, size_t count, int rank,
                            struct ls_direct_update **out, struct ls_error *error)
{
    static const char what[] = "the update";
    const size_t parameters = store->set->count;
    *out = NULL;
    if (store->device->update_from_sums == NULL)
        return 0;
    struct ls_direct_update *direct = *out = ls_alloc(1, sizeof *direct);
    if (direct == NULL)
        return ls_fail_memory(error, what);
    direct->store = store;
    struct stretch *stretches = direct->stretches = ls_alloc(count + 1, sizeof *stretches);
    if (stretches == NULL)
        return ls_fail_memory(error, what);
    LS_TRY(ls_mirror_create(&direct->rules, store->device->memory,
                            (parameters + 1) * sizeof(struct ls_update_rule), what, error));
    LS_TRY(ls_mirror_create(&direct->seen, store->device->memory,
                            (parameters + 1) * 2 * sizeof(uint32_t), what, error));
    LS_TRY(store->device->streams->create(&direct->stream, error));
    for (size_t i = 0; i < count; i++)
        if (owners[i] == LS_ALL_RANKS || owners[i] == rank)
            direct_update_join(direct, stretches, &tiles[i]);
    return 0;
}

void ls_direct_update_free(struct ls_direct_update *direct)
{
    if (direct == NULL)
        return;
    const struct ls_device *device = direct->store->device;
    if (device->recordings != NULL)
        ls_recorder_forget(&direct->recorder, device->recordings);
    if (direct->stream != NULL)
        device->streams->free(direct->stream);
    ls_mirror_free(&direct->rules);
    ls_mirror_free(&direct->seen);
    ls_free(direct->stretches);
    ls_free(direct);
}

bool ls_direct_update_has(const struct ls_direct_update *direct, int parameter,
                          enum ls_update_kind kind)
{
    return direct != NULL && !ls_update_looks_first(kind) &&
           !ls_store_has_factors(direct->store, parameter);
}

/* ---- An update ------------------------------------------------------------------------------- */

struct run {
    struct ls_direct_update *direct;
    float *const *weights; /* by parameter */
    const struct ls_update_rule *rules;
    struct ls_error *error;
};

static struct ls_sum_update direct_update_of(const struct run *run, const struct stretch *stretch)
{
    const struct ls_direct_update *direct = run->direct;
    const struct ls_store *store = direct->store;
    const size_t parameter = (size_t)stretch->parameter;
    const struct ls_parameter_state *slot = &store->slots[parameter];
    const size_t own = stretch->begin - slot->shard_begin; /* history and average are there only */
    uint32_t *seen = (uint32_t *)direct->seen.device + 2 * parameter;
    struct ls_sum_update update = {
        .sums = ls_sums_accumulator(store->sums),
        .parameter = stretch->parameter,
        .begin = stretch->begin,
        .rule = (const struct ls_update_rule *)direct->rules.device + parameter,
        .slice = {.n = stretch->n, .weight = run->weights[parameter] + stretch->begin},
        .mask = slot->mask,
        .gradient = seen,
        .weight = seen + 1};
    update.slice.average = slot->average != NULL ? slot->average + own : NULL;
    for (int h = 0; h < LS_HISTORY_MAX; h++)
        update.slice.history[h] = slot->history[h] != NULL ? slot->history[h] + own : NULL;
    return update;
}

static int direct_update_give(void *user)
{
    const struct run *run = user;
    const struct ls_direct_update *direct = run->direct;
    const struct ls_device *device = direct->store->device;
    for (size_t i = 0; i < direct->count; i++) {
        const int parameter = direct->stretches[i].parameter;
        if (!ls_direct_update_has(direct, parameter, run->rules[parameter].kind))
            continue;
        const struct ls_sum_update update = direct_update_of(run, &direct->stretches[i]);
        LS_TRY(device->update_from_sums(direct->stream, &update, run->error));
    }
    return 0;
}

/* Names an update by all that the device is given besides the rules' numbers. */
static uint64_t direct_update_name(const struct run *run)
{
    const struct ls_direct_update *direct = run->direct;
    uint64_t hash = 0;
    for (size_t i = 0; i < direct->count; i++) {
        const struct ls_sum_update update = direct_update_of(run, &direct->stretches[i]);
        const int parameter = direct->stretches[i].parameter;
        const bool there = ls_direct_update_has(direct, parameter, run->rules[parameter].kind);
        const void *const pointers[] = {update.slice.weight, update.slice.history[0],
                                        update.slice.history[1], update.slice.average, update.mask};
        hash = ls_hash(pointers, sizeof pointers, ls_hash(&there, sizeof there, hash));
    }
    return hash;
}

int ls_direct_update_run(struct ls_direct_update *direct, float *const *weights,
                         const struct ls_update_rule *rules, _Atomic uint32_t *gradient,
                         _Atomic uint32_t *weight, struct ls_error *error)
{
    const struct ls_device *device = direct->store->device;
    const struct ls_device_memory *memory = device->memory;
    const size_t parameters = direct->store->set->count;
    const size_t seen_bytes = parameters * 2 * sizeof(uint32_t);
    struct run run = {direct, weights, rules, error};
    memcpy(direct->rules.host, rules, parameters * sizeof *rules);
    LS_TRY(memory->write(direct->stream, direct->rules.device, direct->rules.host,
                         parameters * sizeof *rules, error));
    LS_TRY(memory->zero(direct->stream, direct->seen.device, seen_bytes, error));
    int status =
        device->recordings == NULL
            ? direct_update_give(&run)
            : ls_recorder_run(&direct->recorder, device->recordings, direct_update_name(&run),
                              direct->stream, direct_update_give, &run, error);
    if (status == 0)
        status =
            memory->read(direct->stream, direct->seen.host, direct->seen.device, seen_bytes, error);
    const int left = LS_MUTANT(GLANCES) ? 0 : device->streams->wait(direct->stream, error);
    LS_TRY(status != 0 ? status : left);
    const uint32_t *seen = direct->seen.host;
    for (size_t i = 0; i < parameters; i++) {
        ls_raise_to(&gradient[i], seen[2 * i]);
        ls_raise_to(&weight[i], seen[2 * i + 1]);
    }
    return 0;
}
