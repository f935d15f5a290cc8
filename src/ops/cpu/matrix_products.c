/* Which convolutions oneDNN has nothing good for. See matrix_products.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/matrix_products.h"

#include <pthread.h>

#include "base/hash.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/primitive.h"

enum { KNOWN = 512 }; /* answers that a process remembers */

static _Thread_local bool unasked;

int ls_matrix_products_check(struct ls_error *error)
{
    const bool failed = unasked;
    unasked = false;
    return failed ? ls_fail_memory(error, "a convolution") : 0;
}

/* ---- The rule -------------------------------------------------------------------------------- */

static bool has_strides(const struct ls_window *window)
{
    bool strides = false;
    for (int i = 0; i < window->axes; i++)
        strides = strides || window->stride[i] > 1;
    return strides;
}

/* If one pass is done as matrix products our kernels are taken for all three, since they are about
 * as fast as what oneDNN may have for the others. With strides they are the faster ones only where
 * those products are slow. */
static int ask(const struct ls_op *op, bool *ours, struct ls_error *error)
{
    static const enum ls_onednn_pass passes[] = {LS_PASS_FORWARD, LS_PASS_DATA, LS_PASS_WEIGHTS};
    const bool strides = has_strides(&op->attr.convolution.window);
    *ours = false;
    for (int i = 0; i < 3 && !*ours; i++) {
        bool products, slow;
        LS_TRY(ls_convolution_find(op, passes[i], &products, &slow, error));
        *ours = slow || (products && !strides);
    }
    return 0;
}

/* ---- What is known --------------------------------------------------------------------------- */

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct known {
    uint64_t key;
    bool ours;
} known[KNOWN];

static uint64_t add_number(int64_t number, uint64_t hash)
{
    return ls_hash(&number, sizeof number, hash);
}

/* Channels and extents. */
static uint64_t add_shape(const struct ls_shape *shape, int axes, uint64_t hash)
{
    for (int i = shape->rank - axes - 1; i < shape->rank; i++)
        hash = add_number(shape->dim[i], hash);
    return hash;
}

/* All that the answer depends on. */
static uint64_t key_of(const struct ls_op *op)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_window *window = &attr->window;
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    uint64_t hash = add_number((int64_t)ls_cpu_isa(), 0);
    hash = add_number(x->rank, add_number(window->axes, add_number(attr->group, hash)));
    hash = add_shape(x, window->axes, hash);
    hash = add_shape(&ls_primitive_value(op, LS_TARGET)->shape, window->axes, hash);
    for (int i = 0; i < window->axes; i++) {
        hash = add_number(window->kernel[i], add_number(window->stride[i], hash));
        hash = add_number(window->pad[i], add_number(window->dilation[i], hash));
    }
    return hash | 1; /* 0 is no key: the table begins with that */
}

static bool recall(uint64_t key, bool *ours)
{
    pthread_mutex_lock(&known_lock);
    const struct known found = known[key / 2 % KNOWN];
    pthread_mutex_unlock(&known_lock);
    *ours = found.ours;
    return found.key == key;
}

static void remember(uint64_t key, bool ours)
{
    pthread_mutex_lock(&known_lock);
    known[key / 2 % KNOWN] = (struct known){.key = key, .ours = ours};
    pthread_mutex_unlock(&known_lock);
}

/* ---- The interface --------------------------------------------------------------------------- */

static bool is_convolution(const struct ls_op *op)
{
    return op->kind == LS_OP_CONVOLUTION || op->kind == LS_OP_CONVOLUTION_DATA ||
           op->kind == LS_OP_CONVOLUTION_WEIGHTS;
}

/* Without FMA our kernels are slower than oneDNN's; for some shapes we have better ones. */
static bool may_replace(const struct ls_op *op)
{
    return ls_cpu_isa() >= LS_ISA_AVX2 &&
           op->attr.convolution.algorithm != LS_CONVOLUTION_WINOGRAD &&
           !ls_window_is_too_large(&op->attr.convolution.window) &&
           !(is_convolution(op) && (ls_kernel_volume.accepts(op) || ls_kernel_planes.accepts(op)));
}

bool ls_replaces_matrix_products(const struct ls_op *op)
{
    bool ours;
    if (!may_replace(op))
        return false;
    const uint64_t key = key_of(op);
    if (recall(key, &ours))
        return ours;
    const int status = ask(op, &ours, NULL);
    if (status == LOCKSTEP_RESOURCE)
        unasked = true;
    else
        remember(key, status == 0 && ours);
    return status == 0 && ours;
}
