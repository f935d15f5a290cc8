/* See api/cards.h. SPDX-License-Identifier: BSD-2-Clause */
#include "api/cards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/job.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "solver/card.h"
#include "transport/comm_job.h"

/* ---- Lists ----------------------------------------------------------------------------------- */

static int bad_list(const char *list, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_USAGE, NULL,
                   "write numbers with commas between them, such as 0 or 0,1, or 'all'; a card may "
                   "be there several times, for a rank each",
                   "'%s' is no list of cards", list);
}

static int add(struct ls_api_cards *cards, int card, struct ls_error *error)
{
    if (cards->count == LS_RANK_THREADS_MAX)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "a process computes on at most %d cards at once", LS_RANK_THREADS_MAX);
    cards->card[cards->count++] = card;
    return 0;
}

/* Digits and single commas; `there` cards are there. */
static int read_list(const char *list, int there, struct ls_api_cards *cards,
                     struct ls_error *error)
{
    if (strcmp(list, "all") == 0) {
        for (int card = 0; card < there; card++)
            LS_TRY(add(cards, card, error));
        return 0;
    }
    for (const char *at = list;; at++) {
        const size_t digits = strspn(at, "0123456789");
        if (digits == 0 || (at[digits] != ',' && at[digits] != '\0'))
            return bad_list(list, error);
        const long card = digits < 9 ? strtol(at, NULL, 10) : there;
        if (card >= there) {
            char which[48] = "there is one, card 0";
            if (there > 1)
                snprintf(which, sizeof which, "there are %d, 0 to %d", there, there - 1);
            return ls_fail(error, LOCKSTEP_USAGE, NULL, which, "there is no card %.*s", (int)digits,
                           at);
        }
        LS_TRY(add(cards, (int)card, error));
        at += digits;
        if (*at == '\0')
            return 0;
    }
}

int ls_api_cards(const char *device, struct ls_api_cards *cards, struct ls_error *error)
{
    int there;
    *cards = (struct ls_api_cards){.count = 0};
    LS_TRY(ls_device_find(device, &cards->device, error));
    if (cards->device->cards == NULL)
        return 0;
    LS_TRY(cards->device->cards->count(&there, error));
    const char *list = device != NULL ? strchr(device, ':') : NULL;
    LS_TRY(read_list(list != NULL ? list + 1 : "0", there, cards, error));
    for (int i = 0; i < cards->count; i++)
        LS_TRY(ls_card_check_runs(cards->device, cards->card[i], error));
    return 0;
}

/* ---- Who uses them --------------------------------------------------------------------------- */

static int choose(const struct lockstep_job *job, struct ls_api_cards *cards,
                  struct ls_error *error)
{
    if (cards->count > job->comm->machine_ranks)
        return ls_fail(error, LOCKSTEP_USAGE, NULL,
                       "start as many processes on each machine as there are cards, or name fewer",
                       "each process of a job computes on one card: %d are named for the %d "
                       "process%s of this machine",
                       cards->count, job->comm->machine_ranks,
                       job->comm->machine_ranks > 1 ? "es" : "");
    cards->card[0] = cards->card[job->machine_rank % cards->count];
    cards->count = 1;
    return 0;
}

int ls_api_cards_of_job(struct lockstep_job *job, struct ls_api_cards *cards,
                        struct ls_error *error)
{
    const int status = cards->count > 0 ? choose(job, cards, error) : 0;
    return ls_comm_agree(job->comm, status, error);
}

int ls_api_use_card(const char *device, const char *what, int *card, struct ls_error *error)
{
    struct ls_api_cards cards;
    *card = -1;
    LS_TRY(ls_api_cards(device, &cards, error));
    if (cards.count > 1)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "name one card",
                       "%s computes on one card, not on %d", what, cards.count);
    if (cards.count == 1)
        *card = cards.card[0];
    ls_thread_set_card(*card);
    return 0;
}

const char *ls_api_solver_device(const struct lockstep_solver *solver, const char *asked,
                                 char name[LS_API_DEVICE_ROOM])
{
    int card;
    if (asked != NULL || !solver->definition->gpu_asked ||
        ls_solver_card(solver->definition, &card, NULL) != 0)
        return asked;
    snprintf(name, LS_API_DEVICE_ROOM, "cuda:%d", card);
    return name;
}

int ls_api_workers(const struct ls_device *device, int asked)
{
    return asked > 0 ? asked : device->memory->host_memory ? ls_cpu_count() : 1;
}

/* ---- What there is --------------------------------------------------------------------------- */

struct lockstep_cards {
    struct lockstep_card *card;
    struct ls_card_facts *facts;
    size_t count;
    struct ls_text libraries;
    const char *tested;
};

static int describe(struct lockstep_cards *cards, const struct ls_device *device,
                    struct ls_error *error)
{
    int count;
    cards->tested = device->cards->tested;
    LS_TRY(device->cards->count(&count, error));
    cards->card = ls_alloc((size_t)count, sizeof *cards->card);
    cards->facts = ls_alloc((size_t)count, sizeof *cards->facts);
    if (cards->card == NULL || cards->facts == NULL)
        return ls_fail_memory(error, "a list of cards");
    for (int i = 0; i < count; i++) {
        struct ls_card_facts *facts = &cards->facts[i];
        LS_TRY(device->cards->describe(i, facts, error));
        cards->card[cards->count++] =
            (struct lockstep_card){.name = facts->name,
                                   .uuid = facts->uuid,
                                   .memory = facts->memory,
                                   .major = facts->major,
                                   .minor = facts->minor,
                                   .multiprocessors = facts->multiprocessors,
                                   .runs = facts->runs};
    }
    device->cards->libraries(&cards->libraries);
    return cards->libraries.failed ? ls_fail_memory(error, "a list of cards") : 0;
}

int lockstep_cards_find(struct lockstep_cards **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    const struct ls_device *device;
    *out = NULL;
    LS_TRY(ls_device_find("cuda", &device, inner));
    struct lockstep_cards *cards = ls_alloc(1, sizeof *cards);
    if (cards == NULL)
        return ls_fail_memory(inner, "a list of cards");
    const int status = describe(cards, device, inner);
    if (status != 0)
        lockstep_cards_free(cards);
    else
        *out = cards;
    return status;
}

void lockstep_cards_free(struct lockstep_cards *cards)
{
    if (cards == NULL)
        return;
    ls_text_free(&cards->libraries);
    ls_free(cards->card);
    ls_free(cards->facts);
    ls_free(cards);
}

int lockstep_cards_check(const struct lockstep_cards *cards, const char *list,
                         struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct ls_api_cards read = {.count = 0};
    LS_TRY(ls_api_require(list, "list", inner));
    return read_list(list, (int)cards->count, &read, inner);
}

size_t lockstep_cards_count(const struct lockstep_cards *cards)
{
    return cards->count;
}

const struct lockstep_card *lockstep_cards_get(const struct lockstep_cards *cards, size_t index)
{
    return index < cards->count ? &cards->card[index] : NULL;
}

const char *lockstep_cards_libraries(const struct lockstep_cards *cards)
{
    return cards->libraries.data != NULL ? cards->libraries.data : "";
}

const char *lockstep_cards_tested(const struct lockstep_cards *cards)
{
    return cards->tested;
}
