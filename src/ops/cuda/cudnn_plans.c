/* Plans that equal convolutions share, and how they are carried out. See ops/cuda/cudnn.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "ops/cuda/card.h"
#include "ops/cuda/cudnn.h"

struct ls_cudnn_shared {
    struct ls_cudnn_convolution of;
    struct ls_cudnn_demand demand;
    int card;
    int users;
    struct ls_cudnn_plan plan;
    pthread_mutex_t run_lock; /* cuDNN does not promise that threads may carry out one plan at a
                                 time */
    struct ls_cudnn_shared *next;
};

static struct ls_cudnn_shared *all;
/* Held while a plan is made: what one rank compiles for a card, others of it wait for. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

/* The handle of a card that graphs are made with, which lives as long as plans of them; threads
 * that make plans may not. */
struct maker {
    cudnnHandle_t handle;
    int users;
};

static struct maker makers[LS_CARDS_MAX];

/* ---- Sharing --------------------------------------------------------------------------------- */

static bool is_same_tensor(const struct ls_cudnn_tensor *a, const struct ls_cudnn_tensor *b)
{
    return a->type == b->type && memcmp(a->dim, b->dim, sizeof a->dim) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

static bool is_same(const struct ls_cudnn_convolution *a, const struct ls_cudnn_convolution *b)
{
    return a->pass == b->pass && a->axes == b->axes &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
           memcmp(a->dilation, b->dilation, sizeof a->dilation) == 0 &&
           memcmp(a->pad, b->pad, sizeof a->pad) == 0 && is_same_tensor(&a->x, &b->x) &&
           is_same_tensor(&a->w, &b->w) && is_same_tensor(&a->y, &b->y) && a->bias == b->bias &&
           a->relu == b->relu && (!a->relu || memcmp(&a->slope, &b->slope, sizeof a->slope) == 0);
}

static bool is_same_demand(const struct ls_cudnn_demand *a, const struct ls_cudnn_demand *b)
{
    return a->tensor_cores == b->tensor_cores && a->no_winograd == b->no_winograd &&
           a->winograd == b->winograd;
}

static struct ls_cudnn_shared *find(const struct ls_cudnn_convolution *of,
                                    const struct ls_cudnn_demand *demand, int card)
{
    for (struct ls_cudnn_shared *one = all; one != NULL; one = one->next)
        if (one->card == card && is_same_demand(&one->demand, demand) && is_same(&one->of, of))
            return one;
    return NULL;
}

static int enter_maker(const struct ls_op *op, int card, struct ls_error *error)
{
    struct maker *maker = &makers[card];
    if (maker->users == 0)
        LS_TRY(ls_cudnn_check(cudnnCreate(&maker->handle), op, "begin to use cuDNN for", error));
    maker->users++;
    return 0;
}

/* Any thread may be the last, on any card. */
static void leave_maker(int card)
{
    struct maker *maker = &makers[card];
    if (--maker->users > 0)
        return;
    const int before = ls_card_hold_recordings(card);
    (void)cudnnDestroy(maker->handle);
    ls_card_permit_recordings(before);
}

static void free_shared(struct ls_cudnn_shared *shared)
{
    ls_cudnn_plan_free(&shared->plan);
    leave_maker(shared->card);
    (void)pthread_mutex_destroy(&shared->run_lock);
    ls_free(shared);
}

static int make(const struct ls_op *op, const struct ls_cudnn_convolution *of,
                const struct ls_cudnn_demand *demand, int card, struct ls_cudnn_shared **out,
                struct ls_error *error)
{
    LS_TRY(enter_maker(op, card, error));
    struct ls_cudnn_shared *shared = ls_alloc(1, sizeof *shared);
    if (shared == NULL) {
        leave_maker(card);
        return ls_fail_memory(error, "a convolution of cuDNN's");
    }
    shared->of = *of;
    shared->demand = *demand;
    shared->card = card;
    (void)pthread_mutex_init(&shared->run_lock, NULL);
    cudnnHandle_t handle = makers[card].handle;
    int status = LS_MUTANT(BORROWED) ? ls_cudnn_handle(op, &handle, error) : 0;
    if (status == 0)
        ls_cudnn_plan_make(of, demand, handle, &shared->plan);
    if (status == 0)
        status = ls_cudnn_check(shared->plan.set.status, op, "find a way to carry out", error);
    if (status != 0) {
        free_shared(shared);
        return status;
    }
    shared->next = all;
    all = *out = shared;
    return 0;
}

int ls_cudnn_share(const struct ls_op *op, const struct ls_cudnn_convolution *of,
                   const struct ls_cudnn_demand *demand, struct ls_cudnn_shared **shared,
                   struct ls_error *error)
{
    int card = 0, status = 0;
    LS_TRY(ls_card_enter(error));
    LS_TRY(ls_card_check(cudaGetDevice(&card), "be found", error));
    (void)pthread_mutex_lock(&all_lock);
    *shared = find(of, demand, card);
    if (*shared == NULL)
        status = make(op, of, demand, card, shared, error);
    if (status == 0)
        (*shared)->users++;
    (void)pthread_mutex_unlock(&all_lock);
    return status;
}

void ls_cudnn_unshare(struct ls_cudnn_shared *shared)
{
    (void)pthread_mutex_lock(&all_lock);
    if (--shared->users == 0) {
        struct ls_cudnn_shared **link = &all;
        while (*link != shared)
            link = &(*link)->next;
        *link = shared->next;
        free_shared(shared);
    }
    (void)pthread_mutex_unlock(&all_lock);
}

const struct ls_cudnn_plan *ls_cudnn_shared_plan(const struct ls_cudnn_shared *shared)
{
    return shared->plan.plan != NULL ? &shared->plan : NULL;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Addresses are given in a descriptor, which is memory of the host's and of no use afterwards: it
 * may be made while a pass is recorded, and what is recorded has the addresses. */
static void give(struct ls_cudnn_set *set, const struct ls_cudnn_plan *plan, cudnnHandle_t handle,
                 const int64_t *number, void *const *address, int count, void *workspace)
{
    cudnnBackendDescriptor_t pack = ls_cudnn_make(set, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    ls_cudnn_put(set, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, number);
    ls_cudnn_put(set, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                 address);
    ls_cudnn_put(set, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    ls_cudnn_finalize(set, pack);
    if (set->status == CUDNN_STATUS_SUCCESS)
        set->status = cudnnBackendExecute(handle, plan->plan, pack);
}

int ls_cudnn_run(struct ls_cudnn_shared *shared, const struct ls_op *op, cudaStream_t stream,
                 const int64_t *number, void *const *address, int count, void *workspace,
                 struct ls_error *error)
{
    const struct ls_cudnn_plan *plan = &shared->plan;
    struct ls_cudnn_set set = {.count = 0};
    cudnnHandle_t handle;
    LS_TRY(ls_cudnn_handle(op, &handle, error));
    if (!LS_MUTANT(STREAMLESS))
        set.status = cudnnSetStream(handle, stream);
    (void)pthread_mutex_lock(&shared->run_lock);
    give(&set, plan, handle, number, address, count, plan->workspace > 0 ? workspace : NULL);
    (void)pthread_mutex_unlock(&shared->run_lock);
    const int status = ls_cudnn_check(set.status, op, "carry out", error);
    if (!LS_MUTANT(LITTER))
        ls_cudnn_drop(&set, 0);
    return status;
}
