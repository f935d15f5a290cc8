/* Numbers that cannot be meant; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/oddities.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/memory.h"
#include "data/dataset_inner.h"

enum { TEXT = 400 };

/* The first sample so far that breaks a rule. */
struct finding {
    int64_t ordinal, record; /* ordinal -1: none does */
    char text[TEXT];
};

struct oddity {
    struct ls_number_rule rule;
    struct finding first;
    _Atomic bool told;
};

struct ls_oddities {
    size_t count;
    struct oddity *items;
    pthread_mutex_t lock; /* guards what was found */
};

int ls_dataset_look_for(struct ls_dataset *dataset, const struct ls_number_rule *rules,
                        size_t count, struct ls_error *error)
{
    size_t some = 0;
    for (size_t i = 0; i < count; i++)
        some += ls_taken_may_be_odd(&rules[i].taken);
    if (some == 0) /* then reading costs nothing */
        return 0;
    struct ls_oddities *made = dataset->oddities = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return ls_fail_memory(error, "a list of rules");
    pthread_mutex_init(&made->lock, NULL);
    made->items = ls_alloc(some, sizeof *made->items);
    if (made->items == NULL)
        return ls_fail_memory(error, "a list of rules");
    for (size_t i = 0; i < count; i++)
        if (ls_taken_may_be_odd(&rules[i].taken)) {
            made->items[made->count].rule = rules[i];
            made->items[made->count++].first.ordinal = -1;
        }
    return 0;
}

void ls_oddities_free(struct ls_oddities *oddities)
{
    if (oddities == NULL)
        return;
    pthread_mutex_destroy(&oddities->lock);
    ls_free(oddities->items);
    ls_free(oddities);
}

static void note(struct ls_oddities *oddities, struct oddity *oddity, int64_t ordinal,
                 int64_t index, const char *text)
{
    struct finding *first = &oddity->first;
    pthread_mutex_lock(&oddities->lock);
    if (first->ordinal < 0 || ordinal < first->ordinal) {
        first->ordinal = ordinal;
        first->record = index;
        snprintf(first->text, sizeof first->text, "%s", text);
    }
    pthread_mutex_unlock(&oddities->lock);
}

void ls_oddities_look(const struct ls_dataset *dataset, int64_t ordinal, int64_t index,
                      const struct ls_record *record, void *const *out)
{
    struct ls_oddities *oddities = dataset->oddities;
    if (oddities == NULL || ordinal >= dataset->size)
        return;
    for (size_t i = 0; i < oddities->count; i++) {
        struct oddity *oddity = &oddities->items[i];
        char text[TEXT];
        if (out[oddity->rule.tensor] != NULL &&
            !atomic_load_explicit(&oddity->told, memory_order_relaxed) &&
            ls_odd_numbers(dataset, record, &oddity->rule, text, sizeof text))
            note(oddities, oddity, ordinal, index, text);
    }
}

bool ls_dataset_next_oddity(const struct ls_dataset *dataset, int64_t end, int64_t *record,
                            char *text, size_t size)
{
    struct ls_oddities *oddities = dataset->oddities;
    for (size_t i = 0; oddities != NULL && i < oddities->count; i++) {
        struct oddity *oddity = &oddities->items[i];
        pthread_mutex_lock(&oddities->lock);
        const bool found =
            !oddity->told && oddity->first.ordinal >= 0 && oddity->first.ordinal < end;
        if (found) {
            oddity->told = true;
            *record = oddity->first.record;
            snprintf(text, size, "its %s (%s)", oddity->first.text, oddity->rule.place);
        }
        pthread_mutex_unlock(&oddities->lock);
        if (found)
            return true;
    }
    return false;
}

size_t ls_dataset_oddity_bytes(const struct ls_dataset *dataset)
{
    return dataset->oddities != NULL ? dataset->oddities->count * sizeof(struct finding) : 0;
}

void ls_dataset_put_oddities(const struct ls_dataset *dataset, void *found)
{
    struct ls_oddities *oddities = dataset->oddities;
    struct finding *to = found;
    pthread_mutex_lock(&oddities->lock);
    for (size_t i = 0; i < oddities->count; i++)
        to[i] = oddities->items[i].first;
    pthread_mutex_unlock(&oddities->lock);
}

void ls_dataset_take_oddities(const struct ls_dataset *dataset, const void *found)
{
    const struct finding *from = found;
    for (size_t i = 0; i < dataset->oddities->count; i++)
        if (from[i].ordinal >= 0)
            note(dataset->oddities, &dataset->oddities->items[i], from[i].ordinal, from[i].record,
                 from[i].text);
}
