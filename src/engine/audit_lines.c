/* Lines of hashes. See engine/audit_lines.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/audit_lines.h"

#include <sched.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "ir/layer.h"

int ls_audit_lines_create(struct ls_audit_lines *lines, const struct ls_graph *graph,
                          size_t micro_batches, struct ls_error *error)
{
    lines->parameters = graph->parameters->count;
    lines->syncs = graph->sync_count;
    lines->states = graph->sample_state_count;
    lines->things = lines->parameters + lines->syncs + lines->states + 1;
    lines->length = lines->things + 1;
    for (int c = 0; c < LS_AUDIT_COMPUTATIONS; c++)
        if ((lines->hash[c] = ls_alloc(micro_batches * lines->length, sizeof(uint64_t))) == NULL)
            return ls_fail_memory(error, "audits");
    return 0;
}

void ls_audit_lines_free(struct ls_audit_lines *lines)
{
    for (int c = 0; c < LS_AUDIT_COMPUTATIONS; c++)
        ls_free(lines->hash[c]);
}

size_t ls_audit_lines_bytes(const struct ls_graph *graph, size_t micro_batches)
{
    size_t length = graph->parameters->count + graph->sync_count + graph->sample_state_count + 2;
    return micro_batches * LS_AUDIT_COMPUTATIONS * length * sizeof(uint64_t);
}

uint64_t *ls_audit_lines_of(const struct ls_audit_lines *lines, int computation, size_t item)
{
    return lines->hash[computation] + item * lines->length;
}

void ls_audit_lines_clear(const struct ls_audit_lines *lines, uint64_t *line)
{
    memset(line, 0, lines->length * sizeof *line);
}

/* ---- Making lines ---------------------------------------------------------------------------- */

/* The hash of what an op hands over: of its parameter, or of a state. */
static uint64_t *audit_lines_hash(const struct ls_audit_listener *listener, const struct ls_op *op)
{
    switch (op->kind) {
    case LS_OP_KEEP:
        return &listener->state[op->attr.sample_state];
    case LS_OP_RECORD:
        return &listener->hash[op->attr.record.parameter->index];
    default:
        return &listener->hash[op->attr.parameter->index];
    }
}

static int audit_lines_before(void *user, const struct ls_op *op, const void *numbers,
                              const struct ls_context *context, struct ls_error *error)
{
    struct ls_audit_listener *listener = user;
    const bool record = op->kind == LS_OP_RECORD;
    uint64_t *hash = audit_lines_hash(listener, op);
    uint64_t seed = *hash + 1 + (record ? 1 + (uint64_t)op->attr.record.side : 0);
    size_t bytes = ls_value_bytes(op->input[0]);
    LS_TRY(listener->device->streams->wait(context->stream, error));
    LS_TRY(listener->device->memory->hash(numbers, bytes, seed, hash, error));
    return listener->observer.before != NULL
               ? listener->observer.before(listener->observer.user, op, numbers, context, error)
               : 0;
}

static int audit_lines_after(void *user, const struct ls_op *op, const struct ls_context *context,
                             struct ls_error *error)
{
    struct ls_audit_listener *listener = user;
    return listener->observer.after != NULL
               ? listener->observer.after(listener->observer.user, op, context, error)
               : 0;
}

void ls_audit_lines_observe(const struct ls_audit_lines *lines, const struct ls_device *device,
                            struct ls_audit_listener *listener, uint64_t *line, struct ls_run *run)
{
    *listener = (struct ls_audit_listener){.device = device,
                                           .hash = line,
                                           .state = line + lines->parameters + lines->syncs,
                                           .observer = run->observer};
    run->observer = (struct ls_observer){
        .before = audit_lines_before, .after = audit_lines_after, .user = listener};
}

void ls_audit_lines_add_rest(const struct ls_audit_lines *lines, const struct ls_pass *pass,
                             size_t unit, const double *rows, const double *record, uint64_t *line)
{
    for (size_t s = 0; s < lines->syncs; s++)
        line[lines->parameters + s] = ls_exchange_hash(pass->exchange, (int)s, unit, rows);
    line[lines->things - 1] = ls_hash(record, pass->record_size * sizeof *record, 0);
}

uint64_t ls_audit_signature(int worker)
{
    return (uint64_t)(uint32_t)worker | (uint64_t)(uint32_t)sched_getcpu() << 32;
}

void ls_audit_lines_sign(const struct ls_audit_lines *lines, int worker, uint64_t *line)
{
    line[lines->things] = ls_audit_signature(worker);
}

int ls_audit_lines_worker(const struct ls_audit_lines *lines, const uint64_t *line)
{
    return (int)(uint32_t)line[lines->things];
}

int ls_audit_lines_core(const struct ls_audit_lines *lines, const uint64_t *line)
{
    return (int)(uint32_t)(line[lines->things] >> 32);
}

/* ---- Comparing them -------------------------------------------------------------------------- */

bool ls_audit_lines_same(const struct ls_audit_lines *lines, size_t item, int a, int b)
{
    return memcmp(ls_audit_lines_of(lines, a, item), ls_audit_lines_of(lines, b, item),
                  lines->things * sizeof(uint64_t)) == 0;
}

static const char *audit_lines_name(const struct ls_audit_lines *lines,
                                    const struct ls_graph *graph, size_t thing)
{
    if (thing < lines->parameters)
        return graph->parameters->items[thing]->name;
    thing -= lines->parameters;
    if (thing < lines->syncs)
        return graph->syncs[thing].layer->name;
    thing -= lines->syncs;
    return thing < lines->states ? graph->sample_states[thing].name : "losses and metrics";
}

const char *ls_audit_lines_differ(const struct ls_audit_lines *lines, const struct ls_graph *graph,
                                  size_t item, int a, int b, size_t *count)
{
    const uint64_t *x = ls_audit_lines_of(lines, a, item), *y = ls_audit_lines_of(lines, b, item);
    const char *name = NULL;
    *count = 0;
    for (size_t t = 0; t < lines->things; t++) {
        if (x[t] == y[t])
            continue;
        name = (*count)++ == 0 ? audit_lines_name(lines, graph, t) : name;
    }
    return name;
}
