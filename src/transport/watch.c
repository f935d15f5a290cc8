/* The watch: notes, messages and turns. See transport/watch.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "transport/watch_inner.h"

static const double beat_most = 1, beats_a_timeout = 8; /* seconds between signs of life */
static const double hearing = 0.02, looking = 0.5, looking_hurriedly = 0.05, hurrying = 3;
static const double answers_a_second = 1000; /* of rank 0, to all ranks together */

enum { HEARD_MOST = 4096 };

static double own_clock(void *user)
{
    (void)user;
    return ls_clock();
}

static enum ls_process_state own_look(void *user, const struct ls_process *process)
{
    (void)user;
    return ls_process_state(process);
}

static void tell_stderr(void *user, int status, const char *text)
{
    (void)user;
    (void)status;
    fprintf(stderr, "lockstep: %s\n", text);
}

/* ---- Making one ------------------------------------------------------------------------------ */

/* Rank 0 knows all ranks from the start, the others rank 0. */
static int make_members(struct ls_watch *watch, struct ls_error *error)
{
    watch->member_count = watch->transport->rank == 0 ? watch->transport->size : 1;
    watch->members = ls_alloc((size_t)watch->member_count, sizeof *watch->members);
    if (watch->members == NULL)
        return ls_fail_memory(error, "a job");
    for (int i = 0; i < watch->member_count; i++) {
        watch->members[i].rank = i;
        watch->members[i].doing.iteration = -1;
    }
    return 0;
}

int ls_watch_create(struct ls_transport *transport, double timeout, struct ls_watch **out,
                    struct ls_error *error)
{
    *out = NULL;
    struct ls_watch *watch = ls_alloc(1, sizeof *watch);
    if (watch == NULL)
        return ls_fail_memory(error, "a job");
    watch->transport = transport;
    watch->timeout = timeout;
    watch->tell = tell_stderr;
    watch->senses = (struct ls_watch_senses){.clock = own_clock, .look = own_look};
    watch->leads = transport->host_rank == 0;
    watch->last_rank = -1;
    atomic_init(&watch->iteration, -1);
    pthread_mutex_init(&watch->lock, NULL);
    int status = make_members(watch, error);
    if (status != 0)
        ls_watch_free(watch);
    else
        *out = watch;
    return status;
}

void ls_watch_free(struct ls_watch *watch)
{
    if (watch == NULL)
        return;
    pthread_mutex_destroy(&watch->lock);
    ls_free(watch->members);
    ls_free(watch->status_file);
    ls_free(watch->last_text);
    ls_free(watch);
}

void ls_watch_set_tell(struct ls_watch *watch, ls_watch_tell *tell, void *user)
{
    watch->tell = tell != NULL ? tell : tell_stderr;
    watch->tell_user = user;
}

void ls_watch_listen(struct ls_watch *watch, ls_watch_hear *hear, void *user)
{
    pthread_mutex_lock(&watch->lock);
    watch->hear = hear;
    watch->hear_user = user;
    pthread_mutex_unlock(&watch->lock);
}

void ls_watch_set_senses(struct ls_watch *watch, const struct ls_watch_senses *senses)
{
    pthread_mutex_lock(&watch->lock);
    if (senses->clock != NULL)
        watch->senses.clock = senses->clock;
    if (senses->look != NULL)
        watch->senses.look = senses->look;
    watch->senses.user = senses->user;
    pthread_mutex_unlock(&watch->lock);
}

struct ls_identity ls_watch_self(const struct ls_watch *watch)
{
    struct ls_identity self = {.process = ls_process_self()};
    snprintf(self.host, sizeof self.host, "%s", watch->transport->host);
    return self;
}

/* Whether two ranks can see each other's processes. */
static bool same_machine(const struct ls_identity *a, const struct ls_identity *b)
{
    return a->process.space != 0 && a->process.space == b->process.space;
}

/* The next ranks of the same machine, in a ring: whoever dies is seen by those before it. */
static int find_neighbours(const struct ls_identity *all, int size, int rank,
                           int found[LS_WATCH_NEIGHBOURS])
{
    int count = 0;
    for (int step = 1; step < size && count < LS_WATCH_NEIGHBOURS; step++)
        if (same_machine(&all[rank], &all[(rank + step) % size]))
            found[count++] = (rank + step) % size;
    return count;
}

static void meet(struct ls_watch *watch, const struct ls_identity *all, struct ls_member *members,
                 const int *neighbours, int count)
{
    int rank = watch->transport->rank;
    if (rank != 0) {
        members[0] = watch->members[0];
        watch->member_count = 1;
        for (int i = 0; i < count; i++) {
            int at = neighbours[i] == 0 ? 0 : watch->member_count++;
            members[at].rank = neighbours[i];
            members[at].doing.iteration = -1;
            watch->neighbours[i] = at;
        }
        ls_free(watch->members);
        watch->members = members;
    } else {
        memcpy(watch->neighbours, neighbours, (size_t)count * sizeof *neighbours);
    }
    watch->neighbour_count = count;
    for (int i = 0; i < watch->member_count; i++) {
        struct ls_member *member = &watch->members[i];
        member->who = all[member->rank];
        member->who.host[sizeof member->who.host - 1] = '\0';
    }
    watch->leads = true;
    for (int r = 1; r < rank; r++)
        if (strncmp(all[r].host, all[rank].host, sizeof all->host) == 0)
            watch->leads = false;
}

int ls_watch_meet(struct ls_watch *watch, const struct ls_identity *all, struct ls_error *error)
{
    int neighbours[LS_WATCH_NEIGHBOURS];
    struct ls_member *members = NULL;
    if (watch->transport->rank != 0) {
        members = ls_alloc(1 + LS_WATCH_NEIGHBOURS, sizeof *members);
        if (members == NULL)
            return ls_fail_memory(error, "a job");
    }
    int count = find_neighbours(all, watch->transport->size, watch->transport->rank, neighbours);
    pthread_mutex_lock(&watch->lock);
    meet(watch, all, members, neighbours, count);
    pthread_mutex_unlock(&watch->lock);
    return 0;
}

struct ls_member *ls_watch_member(struct ls_watch *watch, int rank)
{
    if (watch->transport->rank == 0)
        return rank >= 0 && rank < watch->member_count ? &watch->members[rank] : NULL;
    for (int i = 0; i < watch->member_count; i++)
        if (watch->members[i].rank == rank)
            return &watch->members[i];
    return NULL;
}

/* ---- The own note ---------------------------------------------------------------------------- */

/* Two threads that go on at the same time may count as one step: that is progress, too. */
static void go_on(struct ls_watch *watch)
{
    uint64_t step = atomic_load_explicit(&watch->progress, memory_order_relaxed);
    atomic_store_explicit(&watch->progress, step + 1, memory_order_relaxed);
}

void ls_watch_note(struct ls_watch *watch, int64_t iteration, const char *layer)
{
    if (watch == NULL)
        return;
    atomic_store_explicit(&watch->iteration, iteration, memory_order_relaxed);
    atomic_store_explicit(&watch->layer, layer, memory_order_relaxed);
    go_on(watch);
}

void ls_watch_wait(struct ls_watch *watch, bool waiting)
{
    if (watch == NULL)
        return;
    atomic_fetch_add_explicit(&watch->waiting, waiting ? 1 : -1, memory_order_relaxed);
    go_on(watch);
}

struct ls_doing ls_watch_doing(const struct ls_watch *watch)
{
    struct ls_doing doing = {
        .iteration = atomic_load_explicit(&watch->iteration, memory_order_relaxed),
        .progress = atomic_load_explicit(&watch->progress, memory_order_relaxed),
        .waiting = atomic_load_explicit(&watch->waiting, memory_order_relaxed)};
    const char *layer = atomic_load_explicit(&watch->layer, memory_order_relaxed);
    snprintf(doing.layer, sizeof doing.layer, "%s", layer != NULL ? layer : "");
    return doing;
}

/* ---- Messages -------------------------------------------------------------------------------- */

double ls_watch_clock(const struct ls_watch *watch)
{
    return watch->senses.clock(watch->senses.user);
}

/* A message that does not go is as one that is lost: the rules find out what is behind it. */
void ls_watch_send(struct ls_watch *watch, int to, enum ls_watch_message kind, int status, int rank,
                   const char *text)
{
    struct ls_word word = {
        .kind = kind, .status = status, .rank = rank, .doing = ls_watch_doing(watch)};
    snprintf(word.text, sizeof word.text, "%s", text != NULL ? text : "");
    (void)watch->transport->calls->tell(watch->transport, to, &word, sizeof word);
}

static void send_beat(struct ls_watch *watch, int to)
{
    struct ls_beat beat = {.kind = LS_MESSAGE_BEAT, .doing = ls_watch_doing(watch)};
    (void)watch->transport->calls->tell(watch->transport, to, &beat, sizeof beat);
}

static void take_note(struct ls_member *member, const struct ls_doing *doing, double now)
{
    if (doing->progress != member->doing.progress || doing->iteration != member->doing.iteration)
        member->moved = now;
    member->doing = *doing;
    member->doing.layer[LS_WATCH_NAME - 1] = '\0';
    member->heard = now;
}

static void hear_one(struct ls_watch *watch, int from, const void *message, size_t bytes,
                     double now)
{
    uint32_t kind;
    if (bytes < sizeof kind)
        return;
    memcpy(&kind, message, sizeof kind);
    if (kind >= LS_MESSAGE_OTHERS) {
        if (watch->hear != NULL)
            watch->hear(watch->hear_user, from, message, bytes);
        return;
    }
    struct ls_member *member = ls_watch_member(watch, from);
    if (kind == LS_MESSAGE_BEAT && bytes == sizeof(struct ls_beat)) {
        if (member != NULL)
            take_note(member, &((const struct ls_beat *)message)->doing, now);
    } else if (bytes == sizeof(struct ls_word)) {
        const struct ls_word *word = message;
        if (member != NULL)
            take_note(member, &word->doing, now);
        if (word->text[LS_WATCH_TEXT - 1] == '\0')
            ls_watch_hear_word(watch, from, word, now);
    }
}

static void hear_all(struct ls_watch *watch, double now)
{
    union {
        unsigned char bytes[LS_TRANSPORT_MESSAGE];
        struct ls_word word; /* for its alignment */
    } message;
    int from = 0;
    for (int i = 0; i < HEARD_MOST; i++) {
        int got = watch->transport->calls->hear(watch->transport, &from, &message, sizeof message);
        if (got <= 0)
            return;
        hear_one(watch, from, &message, (size_t)got, now);
    }
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static double beat_interval(const struct ls_watch *watch)
{
    double interval = watch->timeout / beats_a_timeout;
    return watch->timeout > 0 && interval < beat_most ? interval : beat_most;
}

/* Rank 0 answers all at once, but not more often than it can without doing much else. */
static double answer_interval(const struct ls_watch *watch)
{
    double least = (double)watch->transport->size / answers_a_second,
           interval = beat_interval(watch);
    return interval > least ? interval : least;
}

static void beat(struct ls_watch *watch, double now)
{
    bool first = watch->transport->rank == 0;
    if (now >= watch->next_beat) {
        watch->next_beat = now + beat_interval(watch);
        if (!first)
            send_beat(watch, 0);
        ls_watch_judge(watch, now);
    }
    if (first && now >= watch->next_answer) {
        watch->next_answer = now + answer_interval(watch);
        for (int r = 1; r < watch->transport->size; r++)
            if (!watch->members[r].left)
                send_beat(watch, r);
    }
}

/* Who has not looked for long cannot tell who was silent meanwhile, and if others die now that may
 * be because they have ended the job without it. */
static void forgive(struct ls_watch *watch, double now)
{
    bool away = watch->begun && watch->timeout > 0 && now - watch->last_turn > watch->timeout / 4;
    if (away)
        watch->next_look = watch->blind_until = now + LS_WATCH_PATIENCE;
    if (!watch->begun || away)
        for (int i = 0; i < watch->member_count; i++)
            watch->members[i].heard = watch->members[i].moved = now;
    watch->begun = true;
    watch->last_turn = now;
}

/* With the lock held. */
static void take_turn(struct ls_watch *watch, bool at_once)
{
    double now = ls_watch_clock(watch);
    if (atomic_exchange(&watch->hurry, false)) {
        watch->hurried_until = now + hurrying;
        watch->next_look = now;
        at_once = true;
    }
    if (now < watch->next_hearing && !at_once)
        return;
    watch->next_hearing = now + hearing;
    forgive(watch, now);
    hear_all(watch, now);
    if (watch->transport->rank == 0) {
        struct ls_doing own = ls_watch_doing(watch);
        take_note(&watch->members[0], &own, now);
    }
    if (now >= watch->next_look && now >= watch->blind_until) {
        watch->next_look = now + (now < watch->hurried_until ? looking_hurriedly : looking);
        ls_watch_look(watch, now);
    }
    beat(watch, now);
    ls_watch_execute(watch, now);
}

static bool over(const struct ls_watch *watch)
{
    return atomic_load_explicit(&watch->resting, memory_order_relaxed) ||
           atomic_load_explicit(&watch->ended, memory_order_relaxed);
}

void ls_watch_turn(struct ls_watch *watch)
{
    if (over(watch) || pthread_mutex_trylock(&watch->lock) != 0)
        return;
    if (!over(watch))
        take_turn(watch, false);
    pthread_mutex_unlock(&watch->lock);
}

void ls_watch_turn_now(struct ls_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    if (!over(watch))
        take_turn(watch, true);
    pthread_mutex_unlock(&watch->lock);
}

void ls_watch_hear_now(struct ls_watch *watch)
{
    if (over(watch) || pthread_mutex_trylock(&watch->lock) != 0)
        return;
    hear_all(watch, ls_watch_clock(watch));
    pthread_mutex_unlock(&watch->lock);
}

void ls_watch_hurry(struct ls_watch *watch)
{
    atomic_store(&watch->hurry, true);
}

bool ls_watch_alarm(const struct ls_watch *watch)
{
    return atomic_load_explicit(&watch->alarm, memory_order_acquire);
}
