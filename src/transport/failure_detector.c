/* The failure detector: notes, messages and turns. See transport/failure_detector.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/thread.h"
#include "transport/failure_detector_inner.h"

static const double beat_most = 1, beats_a_timeout = 8; /* seconds between signs of life */
static const double hearing = 0.02, looking = 0.5, looking_hurriedly = 0.05, hurrying = 3;
static const double answers_a_second = 1000; /* of rank 0, to all ranks together */

enum { HEARD_MOST = 4096 };

static double detector_own_clock(void *user)
{
    (void)user;
    return ls_clock();
}

static enum ls_process_state detector_own_look(void *user, const struct ls_process *process)
{
    (void)user;
    return ls_process_state(process);
}

static void detector_own_leave(void *user, int code)
{
    (void)user;
    _exit(code);
}

static void detector_tell_stderr(void *user, int status, const char *text)
{
    (void)user;
    (void)status;
    fprintf(stderr, "lockstep: %s\n", text);
}

/* ---- Making one ------------------------------------------------------------------------------ */

/* Rank 0 knows all ranks from the start, the others rank 0. */
static int detector_make_members(struct ls_detector *detector, struct ls_error *error)
{
    detector->member_count = detector->transport->rank == 0 ? detector->transport->size : 1;
    detector->members = ls_alloc((size_t)detector->member_count, sizeof *detector->members);
    if (detector->members == NULL)
        return ls_fail_memory(error, "a job");
    for (int i = 0; i < detector->member_count; i++) {
        detector->members[i].rank = i;
        detector->members[i].doing.iteration = -1;
    }
    return 0;
}

int ls_detector_create(struct ls_transport *transport, double timeout, struct ls_detector **out,
                       struct ls_error *error)
{
    *out = NULL;
    struct ls_detector *detector = ls_alloc(1, sizeof *detector);
    if (detector == NULL)
        return ls_fail_memory(error, "a job");
    detector->transport = transport;
    detector->timeout = timeout;
    detector->on_failure = detector_tell_stderr;
    detector->senses = (struct ls_detector_senses){
        .clock = detector_own_clock, .look = detector_own_look, .leave = detector_own_leave};
    detector->leads = transport->host_rank == 0;
    detector->last_rank = -1;
    atomic_init(&detector->iteration, -1);
    pthread_mutex_init(&detector->lock, NULL);
    pthread_mutex_init(&detector->known, NULL);
    int status = detector_make_members(detector, error);
    if (status != 0)
        ls_detector_free(detector);
    else
        *out = detector;
    return status;
}

void ls_detector_free(struct ls_detector *detector)
{
    if (detector == NULL)
        return;
    pthread_mutex_destroy(&detector->lock);
    pthread_mutex_destroy(&detector->known);
    ls_free(detector->members);
    ls_free(detector->status_file);
    ls_free(detector->last_text);
    ls_free(detector);
}

void ls_detector_set_on_failure(struct ls_detector *detector, ls_detector_on_failure *on_failure,
                                void *user)
{
    detector->on_failure = on_failure != NULL ? on_failure : detector_tell_stderr;
    detector->on_failure_user = user;
}

void ls_detector_set_on_message(struct ls_detector *detector, ls_detector_on_message *on_message,
                                void *user)
{
    pthread_mutex_lock(&detector->lock);
    detector->on_message = on_message;
    detector->on_message_user = user;
    pthread_mutex_unlock(&detector->lock);
}

void ls_detector_set_senses(struct ls_detector *detector, const struct ls_detector_senses *senses)
{
    pthread_mutex_lock(&detector->lock);
    if (senses->clock != NULL)
        detector->senses.clock = senses->clock;
    if (senses->look != NULL)
        detector->senses.look = senses->look;
    if (senses->leave != NULL)
        detector->senses.leave = senses->leave;
    detector->senses.user = senses->user;
    pthread_mutex_unlock(&detector->lock);
}

struct ls_identity ls_detector_self(const struct ls_detector *detector)
{
    struct ls_identity self = {.process = ls_process_self()};
    snprintf(self.host, sizeof self.host, "%s", detector->transport->host);
    return self;
}

/* Whether two ranks can see each other's processes. */
static bool detector_same_machine(const struct ls_identity *a, const struct ls_identity *b)
{
    return a->process.space != 0 && a->process.space == b->process.space;
}

/* The next ranks of the same machine, in a ring: the ranks before one notice its death. */
static int detector_find_neighbours(const struct ls_identity *all, int size, int rank,
                                    int found[LS_DETECTOR_NEIGHBOURS])
{
    int count = 0;
    for (int step = 1; step < size && count < LS_DETECTOR_NEIGHBOURS; step++)
        if (detector_same_machine(&all[rank], &all[(rank + step) % size]))
            found[count++] = (rank + step) % size;
    return count;
}

static void detector_meet(struct ls_detector *detector, const struct ls_identity *all,
                          struct ls_member *members, const int *neighbours, int count)
{
    int rank = detector->transport->rank;
    if (rank != 0) {
        LS_ASSERT(members != NULL);
        members[0] = detector->members[0];
        detector->member_count = 1;
        for (int i = 0; i < count; i++) {
            int at = neighbours[i] == 0 ? 0 : detector->member_count++;
            members[at].rank = neighbours[i];
            members[at].doing.iteration = -1;
            detector->neighbours[i] = at;
        }
        ls_free(detector->members);
        detector->members = members;
    } else {
        memcpy(detector->neighbours, neighbours, (size_t)count * sizeof *neighbours);
    }
    detector->neighbour_count = count;
    for (int i = 0; i < detector->member_count; i++) {
        struct ls_member *member = &detector->members[i];
        member->who = all[member->rank];
        member->who.host[sizeof member->who.host - 1] = '\0';
    }
    detector->leads = true;
    for (int r = 1; r < rank; r++)
        if (strncmp(all[r].host, all[rank].host, sizeof all->host) == 0)
            detector->leads = false;
}

int ls_detector_set_members(struct ls_detector *detector, const struct ls_identity *all,
                            struct ls_error *error)
{
    int neighbours[LS_DETECTOR_NEIGHBOURS];
    struct ls_member *members = NULL;
    if (detector->transport->rank != 0) {
        members = ls_alloc(1 + LS_DETECTOR_NEIGHBOURS, sizeof *members);
        if (members == NULL)
            return ls_fail_memory(error, "a job");
    }
    int count = detector_find_neighbours(all, detector->transport->size, detector->transport->rank,
                                         neighbours);
    pthread_mutex_lock(&detector->lock);
    pthread_mutex_lock(&detector->known);
    detector_meet(detector, all, members, neighbours, count);
    pthread_mutex_unlock(&detector->known);
    pthread_mutex_unlock(&detector->lock);
    return 0;
}

struct ls_member *ls_detector_member(struct ls_detector *detector, int rank)
{
    if (detector->transport->rank == 0)
        return rank >= 0 && rank < detector->member_count ? &detector->members[rank] : NULL;
    for (int i = 0; i < detector->member_count; i++)
        if (detector->members[i].rank == rank)
            return &detector->members[i];
    return NULL;
}

/* ---- The own note ---------------------------------------------------------------------------- */

/* Two threads that go on at the same time may count as one step: that is progress, too. */
static void detector_go_on(struct ls_detector *detector)
{
    uint64_t step = atomic_load_explicit(&detector->progress, memory_order_relaxed);
    atomic_store_explicit(&detector->progress, step + 1, memory_order_relaxed);
}

void ls_detector_note(struct ls_detector *detector, int64_t iteration, const char *layer)
{
    if (detector == NULL)
        return;
    atomic_store_explicit(&detector->iteration, iteration, memory_order_relaxed);
    atomic_store_explicit(&detector->layer, layer, memory_order_relaxed);
    detector_go_on(detector);
}

void ls_detector_wait(struct ls_detector *detector, bool waiting)
{
    if (detector == NULL)
        return;
    atomic_fetch_add_explicit(&detector->waiting, waiting ? 1 : -1, memory_order_relaxed);
    detector_go_on(detector);
}

struct ls_doing ls_detector_doing(const struct ls_detector *detector)
{
    struct ls_doing doing = {
        .iteration = atomic_load_explicit(&detector->iteration, memory_order_relaxed),
        .progress = atomic_load_explicit(&detector->progress, memory_order_relaxed),
        .waiting = atomic_load_explicit(&detector->waiting, memory_order_relaxed)};
    const char *layer = atomic_load_explicit(&detector->layer, memory_order_relaxed);
    snprintf(doing.layer, sizeof doing.layer, "%s", layer != NULL ? layer : "");
    return doing;
}

/* ---- Messages -------------------------------------------------------------------------------- */

double ls_detector_clock(const struct ls_detector *detector)
{
    return detector->senses.clock(detector->senses.user);
}

/* A message that does not go is as one that is lost: the rules find out what is behind it. */
void ls_detector_send(struct ls_detector *detector, int to, enum ls_detector_message kind,
                      int status, int rank, const char *text)
{
    struct ls_word word = {
        .kind = kind, .status = status, .rank = rank, .doing = ls_detector_doing(detector)};
    snprintf(word.text, sizeof word.text, "%s", text != NULL ? text : "");
    (void)detector->transport->calls->tell(detector->transport, to, &word, sizeof word);
}

static void detector_send_beat(struct ls_detector *detector, int to)
{
    struct ls_heartbeat heartbeat = {.kind = LS_MESSAGE_HEARTBEAT,
                                     .doing = ls_detector_doing(detector)};
    (void)detector->transport->calls->tell(detector->transport, to, &heartbeat, sizeof heartbeat);
}

static void detector_take_note(struct ls_detector *detector, struct ls_member *member,
                               const struct ls_doing *doing, double now)
{
    pthread_mutex_lock(&detector->known);
    if (doing->progress != member->doing.progress || doing->iteration != member->doing.iteration)
        member->moved = now;
    member->doing = *doing;
    member->doing.layer[LS_DETECTOR_NAME - 1] = '\0';
    member->heard = now;
    pthread_mutex_unlock(&detector->known);
}

static void detector_hear_one(struct ls_detector *detector, int from, const void *message,
                              size_t bytes, double now)
{
    uint32_t kind;
    if (bytes < sizeof kind)
        return;
    memcpy(&kind, message, sizeof kind);
    if (kind >= LS_MESSAGE_OTHERS) {
        if (detector->on_message != NULL)
            detector->on_message(detector->on_message_user, from, message, bytes);
        return;
    }
    struct ls_member *member = ls_detector_member(detector, from);
    if (kind == LS_MESSAGE_HEARTBEAT && bytes == sizeof(struct ls_heartbeat)) {
        if (member != NULL)
            detector_take_note(detector, member, &((const struct ls_heartbeat *)message)->doing,
                               now);
    } else if (bytes == sizeof(struct ls_word)) {
        const struct ls_word *word = message;
        if (member != NULL)
            detector_take_note(detector, member, &word->doing, now);
        if (word->text[LS_DETECTOR_TEXT - 1] == '\0')
            ls_detector_receive_word(detector, from, word, now);
    }
}

static void detector_hear_all(struct ls_detector *detector, double now)
{
    union {
        unsigned char bytes[LS_TRANSPORT_MESSAGE];
        struct ls_word word; /* for its alignment */
    } message;
    int from = 0;
    for (int i = 0; i < HEARD_MOST; i++) {
        int got =
            detector->transport->calls->hear(detector->transport, &from, &message, sizeof message);
        if (got <= 0)
            return;
        detector_hear_one(detector, from, &message, (size_t)got, now);
    }
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static double detector_beat_interval(const struct ls_detector *detector)
{
    double interval = detector->timeout / beats_a_timeout;
    return detector->timeout > 0 && interval < beat_most ? interval : beat_most;
}

/* Rank 0 answers all at once, but not more often than it can without doing much else. */
static double detector_answer_interval(const struct ls_detector *detector)
{
    double least = (double)detector->transport->size / answers_a_second,
           interval = detector_beat_interval(detector);
    return interval > least ? interval : least;
}

static void detector_heartbeat(struct ls_detector *detector, double now)
{
    bool first = detector->transport->rank == 0;
    if (now >= detector->next_heartbeat) {
        detector->next_heartbeat = now + detector_beat_interval(detector);
        if (!first)
            detector_send_beat(detector, 0);
        ls_detector_decide(detector, now);
    }
    if (first && now >= detector->next_answer) {
        detector->next_answer = now + detector_answer_interval(detector);
        for (int r = 1; r < detector->transport->size; r++)
            if (!detector->members[r].left)
                detector_send_beat(detector, r);
    }
}

/* A rank that was suspended cannot tell which ranks were silent meanwhile, and others that die now
 * may have ended the job without it. */
static void detector_clear_silence(struct ls_detector *detector, double now)
{
    bool away = detector->begun && detector->timeout > 0 &&
                now - detector->last_turn > detector->timeout / 4;
    if (away)
        detector->next_look = detector->blind_until = now + LS_DETECTOR_PATIENCE;
    pthread_mutex_lock(&detector->known);
    for (int i = 0; i < detector->member_count && (!detector->begun || away); i++)
        detector->members[i].heard = detector->members[i].moved = now;
    pthread_mutex_unlock(&detector->known);
    detector->begun = true;
    detector->last_turn = now;
}

/* With the lock held. */
static void detector_do_turn(struct ls_detector *detector, bool at_once)
{
    double now = ls_detector_clock(detector);
    if (atomic_exchange(&detector->hurry, false)) {
        detector->hurried_until = now + hurrying;
        detector->next_look = now;
        at_once = true;
    }
    if (now < detector->next_hearing && !at_once)
        return;
    detector->next_hearing = now + hearing;
    detector_clear_silence(detector, now);
    detector_hear_all(detector, now);
    if (detector->transport->rank == 0) {
        struct ls_doing own = ls_detector_doing(detector);
        detector_take_note(detector, &detector->members[0], &own, now);
    }
    if (now >= detector->next_look && now >= detector->blind_until) {
        detector->next_look = now + (now < detector->hurried_until ? looking_hurriedly : looking);
        ls_detector_look(detector, now);
    }
    detector_heartbeat(detector, now);
    ls_detector_tell_running(detector, now);
    ls_detector_carry_out(detector, now);
}

static void detector_take_turn(struct ls_detector *detector, bool at_once)
{
    detector_do_turn(detector, at_once);
    atomic_fetch_add_explicit(&detector->turns, 1, memory_order_relaxed);
}

static bool detector_over(const struct ls_detector *detector)
{
    return atomic_load_explicit(&detector->resting, memory_order_relaxed) ||
           atomic_load_explicit(&detector->ended, memory_order_relaxed);
}

void ls_detector_poll(struct ls_detector *detector)
{
    if (detector_over(detector) || pthread_mutex_trylock(&detector->lock) != 0)
        return;
    if (!detector_over(detector))
        detector_take_turn(detector, false);
    pthread_mutex_unlock(&detector->lock);
}

void ls_detector_poll_now(struct ls_detector *detector)
{
    pthread_mutex_lock(&detector->lock);
    if (!detector_over(detector))
        detector_take_turn(detector, true);
    pthread_mutex_unlock(&detector->lock);
}

void ls_detector_receive_now(struct ls_detector *detector)
{
    if (detector_over(detector) || pthread_mutex_trylock(&detector->lock) != 0)
        return;
    detector_hear_all(detector, ls_detector_clock(detector));
    pthread_mutex_unlock(&detector->lock);
}

void ls_detector_hurry(struct ls_detector *detector)
{
    atomic_store(&detector->hurry, true);
}

bool ls_detector_alarm(const struct ls_detector *detector)
{
    return detector != NULL && atomic_load_explicit(&detector->alarm, memory_order_acquire);
}
