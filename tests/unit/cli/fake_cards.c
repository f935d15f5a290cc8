/* The fake library has no cards. SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"

int lockstep_cards_find(struct lockstep_cards **cards, struct lockstep_error *error)
{
    *cards = NULL;
    return fake_answer(LOCKSTEP_RESOURCE, error);
}

void lockstep_cards_free(struct lockstep_cards *cards)
{
    (void)cards;
}

int lockstep_cards_check(const struct lockstep_cards *cards, const char *list,
                         struct lockstep_error *error)
{
    (void)cards, (void)list;
    return fake_answer(LOCKSTEP_RESOURCE, error);
}

size_t lockstep_cards_count(const struct lockstep_cards *cards)
{
    (void)cards;
    return 0;
}

const struct lockstep_card *lockstep_cards_get(const struct lockstep_cards *cards, size_t index)
{
    (void)cards, (void)index;
    return NULL;
}

const char *lockstep_cards_libraries(const struct lockstep_cards *cards)
{
    (void)cards;
    return "";
}

const char *lockstep_cards_tested(const struct lockstep_cards *cards)
{
    (void)cards;
    return "";
}
