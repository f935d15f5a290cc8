/* NCCL between the fake's cards: ranks are threads of this process.
 *
 * It is as strict as its documentation: all ranks give the same exchanges in the same order, each
 * on the card that it has joined with; nothing is called while an earlier call is in progress,
 * which each is for some polls. An exchange is carried out when the streams of all ranks have come
 * to it. What is wrong ends the test program. SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/fake/inner.h"

#if !LS_CUDA_HAS_NCCL

namespace fake
{

std::string missing_ranks()
{
    return "";
}

void end_nccl()
{
}

} // namespace fake

#else

#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include <nccl.h>

#include "cuda/fake/fake.h"

using namespace fake;

namespace
{

enum kind { REDUCE, BROADCAST, SCATTER, GATHER };
const char *const kind_names[] = {"ncclReduce", "ncclBroadcast", "ncclReduceScatter",
                                  "ncclAllGather"};

struct op {
    kind what;
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    int root;
    ncclRedOp_t how; /* of sums */
};

struct world;

/* What all ranks give as one: the ops of a group. */
struct meeting {
    std::vector<std::vector<op>> of; /* by rank */
    std::vector<std::shared_ptr<mark>> over;
    int arrived = 0; /* streams that have come so far */
};

struct world {
    int size;
    std::vector<ncclComm_t> ranks;
    std::map<uint64_t, std::shared_ptr<meeting>> meetings; /* by number; done ones are dropped */
};

std::map<uint64_t, std::shared_ptr<world>> worlds; /* by id, until all have joined */
uint64_t last_id;
std::vector<ncclComm_t> comms;

} // namespace

struct ncclComm {
    std::shared_ptr<world> in;
    int rank, card;
    uint64_t given = 0;                        /* groups so far */
    int busy = 0;                              /* polls that the last call is in progress for */
    std::vector<std::shared_ptr<meeting>> own; /* that are not over here */
};

namespace
{

thread_local int depth;         /* of groups */
thread_local bool group_failed; /* a call of it: none of it is given then */
thread_local std::vector<op> group;
thread_local ncclComm_t group_comm;
thread_local cudaStream_t group_stream;

size_t size_of(ncclDataType_t type)
{
    if (type != ncclInt64 && type != ncclFloat32)
        stop("NCCL: a type that nothing here sends");
    return type == ncclInt64 ? 8 : 4;
}

ncclComm_t check(const char *who, ncclComm_t comm, bool idle)
{
    for (ncclComm_t one : comms)
        if (one == comm) {
            if (idle && comm->busy > 0)
                stop("%s: rank %d's last call is in progress", who, comm->rank);
            return comm;
        }
    stop("%s: a communicator that there is not", who);
}

void check_same(const meeting &all, size_t r)
{
    const std::vector<op> &first = all.of[0], &other = all.of[r];
    if (first.size() != other.size())
        stop("NCCL: rank 0 exchanges %zu arrays, rank %zu %zu", first.size(), r, other.size());
    for (size_t i = 0; i < first.size(); i++) {
        const op &a = first[i], &b = other[i];
        if (a.what != b.what || a.count != b.count || a.type != b.type || a.root != b.root ||
            a.how != b.how)
            stop("NCCL: rank 0 gives %s of %zu numbers from or to %d, rank %zu %s of %zu from or "
                 "to %d",
                 kind_names[a.what], a.count, a.root, r, kind_names[b.what], b.count, b.root);
    }
}

/* Integers in any order, as a ring may have it. */
void add_up(const meeting &all, size_t i, size_t first, size_t to)
{
    const size_t count = all.of[0][i].count;
    int64_t *out = (int64_t *)all.of[to][i].receive;
    std::vector<int64_t> sum(count, 0);
    for (size_t r = 0; r < all.of.size(); r++)
        for (size_t k = 0; k < count; k++)
            sum[k] = (int64_t)((uint64_t)sum[k] +
                               (uint64_t)((const int64_t *)all.of[r][i].send)[first + k]);
    std::memcpy(out, sum.data(), count * sizeof *out);
}

void carry_out(const meeting &all, size_t i)
{
    const op &what = all.of[0][i];
    const size_t ranks = all.of.size(), bytes = what.count * size_of(what.type);
    if ((what.what == REDUCE || what.what == SCATTER) &&
        (what.type != ncclInt64 || what.how != ncclSum))
        stop("NCCL: only integers have sums that do not depend on an order");
    switch (what.what) {
    case REDUCE:
        add_up(all, i, 0, (size_t)what.root);
        break;
    case BROADCAST:
        for (size_t r = 0; r < ranks; r++)
            std::memmove(all.of[r][i].receive, all.of[(size_t)what.root][i].send, bytes);
        break;
    case SCATTER: {
        meeting copy = all; /* in place: one's part is another's term */
        std::vector<std::vector<int64_t>> terms(ranks);
        for (size_t r = 0; r < ranks; r++) {
            const int64_t *send = (const int64_t *)all.of[r][i].send;
            terms[r].assign(send, send + what.count * ranks);
            copy.of[r][i].send = terms[r].data();
        }
        for (size_t r = 0; r < ranks; r++)
            add_up(copy, i, r * what.count, r);
        break;
    }
    case GATHER:
        for (size_t r = 0; r < ranks; r++)
            for (size_t from = 0; from < ranks; from++)
                std::memmove((char *)all.of[r][i].receive + from * bytes, all.of[from][i].send,
                             bytes);
        break;
    }
}

/* The communicator may be gone by then. */
void arrive(world &in, uint64_t number, const meeting *what)
{
    auto found = in.meetings.find(number);
    if (found == in.meetings.end() || found->second.get() != what)
        return; /* it was given up */
    std::shared_ptr<meeting> all = found->second;
    if (++all->arrived < in.size)
        return;
    for (size_t r = 1; r < all->of.size(); r++)
        check_same(*all, r);
    for (size_t i = 0; i < all->of[0].size(); i++)
        carry_out(*all, i);
    for (auto &over : all->over)
        over->over = true;
    in.meetings.erase(found);
}

ncclResult_t give_group(ncclComm_t comm, cudaStream_t stream)
{
    world &in = *comm->in;
    const uint64_t number = comm->given++;
    const std::shared_ptr<struct world> world = comm->in;
    if (in.meetings[number] == nullptr)
        in.meetings[number] = std::make_shared<meeting>();
    const std::shared_ptr<meeting> all = in.meetings[number];
    if (all->of.empty()) {
        all->of.resize((size_t)in.size);
        for (int r = 0; r < in.size; r++)
            all->over.push_back(std::make_shared<mark>());
    }
    std::shared_ptr<mark> over = all->over[(size_t)comm->rank];
    all->of[(size_t)comm->rank] = group;
    comm->own.push_back(all);
    comm->busy = (int)(draw() % 3);
    cudaError_t status = give(
        stream, "an exchange of NCCL",
        [=]() {
            arrive(*world, number, all.get());
            return cudaSuccess;
        },
        nullptr, true);
    if (status == cudaSuccess)
        status = give(
            stream, "the end of an exchange of NCCL", []() { return cudaSuccess; }, over);
    if (status != cudaSuccess)
        return ncclUnhandledCudaError;
    return comm->busy > 0 ? ncclInProgress : ncclSuccess;
}

ncclResult_t take(const char *name, const op &what, ncclComm_t comm, cudaStream_t stream)
{
    call here(name);
    check(name, comm, true);
    if (here.fails) {
        group_failed = depth > 0;
        return ncclSystemError;
    }
    if (current_card() != comm->card)
        stop("%s: rank %d has joined with card %d, not %d", name, comm->rank, comm->card,
             current_card());
    const size_t bytes = what.count * size_of(what.type), all = (size_t)comm->in->size;
    if (card_of(name, stream) != comm->card || is_captured(stream))
        stop("%s: in a stream of another card, or that is captured", name);
    check_on_card(name, what.send, what.what == SCATTER ? bytes * all : bytes, comm->card);
    check_on_card(name, what.receive, what.what == GATHER ? bytes * all : bytes, comm->card);
    if (!group.empty() && (comm != group_comm || stream != group_stream))
        stop("%s: another rank or stream in one group", name);
    group.push_back(what);
    group_comm = comm;
    group_stream = stream;
    if (depth > 0)
        return ncclSuccess;
    const ncclResult_t result = give_group(comm, stream);
    group.clear();
    return result;
}

} // namespace

namespace fake
{

/* Which exchange lacks which ranks; "" where none waits for a call. */
std::string missing_ranks()
{
    for (ncclComm_t comm : comms)
        for (auto &one : comm->in->meetings)
            for (size_t r = 0; r < one.second->of.size(); r++)
                if (one.second->of[r].empty())
                    return "rank " + std::to_string(r) + " has not given exchange " +
                           std::to_string(one.first);
    return "";
}

void end_nccl()
{
    if (!comms.empty())
        stop("%zu communicators of NCCL are left", comms.size());
    worlds.clear();
}

} // namespace fake

/* ---- Communicators ---- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    call here("ncclGetUniqueId");
    if (here.fails)
        return ncclSystemError;
    const uint64_t number = ++last_id;
    std::memset(id, 0x5a, sizeof *id);
    std::memcpy(id->internal, &number, sizeof number);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    call here("ncclCommInitRankConfig");
    uint64_t number;
    *comm = nullptr;
    if (here.fails)
        return ncclSystemError;
    std::memcpy(&number, id.internal, sizeof number);
    if (number == 0 || number > last_id)
        stop("ncclCommInitRankConfig: an id of no ncclGetUniqueId");
    if (config->blocking != 0)
        stop("ncclCommInitRankConfig: a communicator that blocks cannot be given up");
    std::shared_ptr<world> &in = worlds[number];
    if (in == nullptr) {
        in = std::make_shared<world>();
        in->size = size;
        in->ranks.resize((size_t)size);
    }
    if (in->size != size || rank < 0 || rank >= size || in->ranks[(size_t)rank] != nullptr)
        stop("ncclCommInitRankConfig: rank %d of %d, where there are %d", rank, size, in->size);
    for (ncclComm_t other : in->ranks)
        if (other != nullptr && other->card == current_card())
            stop("ncclCommInitRankConfig: ranks %d and %d have one card", other->rank, rank);
    *comm = new ncclComm{};
    (*comm)->in = in;
    (*comm)->rank = rank;
    (*comm)->card = current_card();
    (*comm)->busy = 1;
    in->ranks[(size_t)rank] = *comm;
    comms.push_back(*comm);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    call here("ncclCommGetAsyncError");
    check("ncclCommGetAsyncError", comm, false);
    *state = here.fails || is_broken(comm->card) ? ncclRemoteError : ncclSuccess;
    if (*state != ncclSuccess)
        return ncclSuccess;
    bool joined = true;
    for (ncclComm_t other : comm->in->ranks)
        joined = joined && other != nullptr;
    if (!joined || comm->busy > 0)
        *state = ncclInProgress;
    comm->busy -= joined && comm->busy > 0;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    call here("ncclCommFinalize");
    check("ncclCommFinalize", comm, true);
    if (here.fails)
        return ncclSystemError;
    comm->busy = 1;
    return ncclInProgress;
}

static void forget(ncclComm_t comm)
{
    for (size_t i = 0; i < comms.size(); i++)
        if (comms[i] == comm)
            comms.erase(comms.begin() + (long)i--);
    delete comm;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    call here("ncclCommDestroy");
    check("ncclCommDestroy", comm, true);
    for (auto &one : comm->own)
        if (!one->over[(size_t)comm->rank]->over)
            stop("ncclCommDestroy: rank %d has an exchange under way", comm->rank);
    forget(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    call here("ncclCommAbort");
    check("ncclCommAbort", comm, false);
    for (auto &one : comm->own)
        one->over[(size_t)comm->rank]->over = true;
    for (auto at = comm->in->meetings.begin(); at != comm->in->meetings.end();) {
        bool own = false; /* what this rank is missing in is never carried out */
        for (auto &one : comm->own)
            own = own || one == at->second;
        at = own ? comm->in->meetings.erase(at) : std::next(at);
    }
    forget(comm);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited or there was a network error"
                                     : "unhandled system error";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

/* ---- Exchanges ---- */

ncclResult_t ncclGroupStart(void)
{
    call here("ncclGroupStart");
    if (here.fails)
        return ncclSystemError;
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    call here("ncclGroupEnd");
    if (depth == 0)
        stop("ncclGroupEnd without a group");
    if (--depth > 0)
        return ncclSuccess;
    const bool fails = here.fails || group_failed;
    const ncclResult_t result = fails           ? ncclSystemError
                                : group.empty() ? ncclSuccess
                                                : give_group(group_comm, group_stream);
    group_failed = false;
    group.clear();
    return result;
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                        ncclRedOp_t how, int root, ncclComm_t comm, cudaStream_t stream)
{
    return take("ncclReduce", op{REDUCE, send, receive, count, type, root, how}, comm, stream);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return take("ncclBroadcast", op{BROADCAST, send, receive, count, type, root, ncclSum}, comm,
                stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t how, ncclComm_t comm, cudaStream_t stream)
{
    return take("ncclReduceScatter", op{SCATTER, send, receive, count, type, 0, how}, comm, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return take("ncclAllGather", op{GATHER, send, receive, count, type, 0, ncclSum}, comm, stream);
}

#endif
