/* Layers that a net repeats. See cli/net_copies.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/net_copies.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The part of a name that is a number: "0" of "h.0.conv". */
struct number {
    size_t begin, end;
    unsigned long value;
};

static bool is_separator(char c)
{
    return c == '.' || c == '/';
}

/* The number in a name that `level` others are in front of. */
static bool find_number(const char *name, int level, struct number *number)
{
    for (size_t i = 1; name[i] != '\0'; i++) {
        if (!is_separator(name[i - 1]) || !isdigit((unsigned char)name[i]))
            continue;
        const size_t length = strspn(name + i, "0123456789");
        if (i > 1 && is_separator(name[i + length]) && length < 9 && level-- == 0) {
            *number = (struct number){i, i + length, strtoul(name + i, NULL, 10)};
            return true;
        }
    }
    return false;
}

/* Layers from `at` on that are the same copy at this level; 0: it is in none. */
static size_t copy_length(const struct lockstep_net_layer *layers, size_t at, size_t end, int level)
{
    struct number first, other;
    size_t length = 0;
    if (!find_number(layers[at].name, level, &first))
        return 0;
    while (at + length < end && find_number(layers[at + length].name, level, &other) &&
           other.end == first.end &&
           strncmp(layers[at].name, layers[at + length].name, first.end) == 0)
        length++;
    return length;
}

static bool same_blobs(const struct lockstep_blob *a, const struct lockstep_blob *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (a[i].rank != b[i].rank)
            return false;
        for (int d = 0; d < a[i].rank; d++)
            if (a[i].extent[d] != b[i].extent[d])
                return false;
    }
    return true;
}

static bool same_layer(const struct lockstep_net_layer *a, const struct lockstep_net_layer *b)
{
    return strcmp(a->type, b->type) == 0 && a->bottom_count == b->bottom_count &&
           a->top_count == b->top_count && a->parameter_count == b->parameter_count &&
           same_blobs(a->tops, b->tops, a->top_count) &&
           same_blobs(a->parameters, b->parameters, a->parameter_count);
}

/* Which layer of a copy writes what another one of it reads, `before` that; `length`: none does. */
static size_t find_writer(const struct lockstep_net_layer *copy, size_t length, size_t before,
                          const char *blob)
{
    for (size_t i = before; i-- > 0;)
        for (size_t t = 0; t < copy[i].top_count; t++)
            if (strcmp(copy[i].tops[t].name, blob) == 0)
                return i;
    return length;
}

/* Whether the copy at `b` is the one that follows the copy at `a`. */
static bool is_next_copy(const struct lockstep_net_layer *a, const struct lockstep_net_layer *b,
                         size_t length, int level)
{
    for (size_t i = 0; i < length; i++) {
        struct number one, two;
        if (!find_number(a[i].name, level, &one) || !find_number(b[i].name, level, &two) ||
            two.value != one.value + 1 || two.begin != one.begin ||
            strncmp(a[i].name, b[i].name, one.begin) != 0 ||
            strcmp(a[i].name + one.end, b[i].name + two.end) != 0 || !same_layer(&a[i], &b[i]))
            return false;
        for (size_t r = 0; r < a[i].bottom_count; r++)
            if (find_writer(a, length, i, a[i].bottoms[r]) !=
                find_writer(b, length, i, b[i].bottoms[r]))
                return false;
    }
    return true;
}

/* Finds the copies among the layers from `begin` to `end`, and then those inside of them. */
static void find_copies(const struct lockstep_net_layer *layers, size_t begin, size_t end,
                        int level, struct ls_net_repeats *repeats)
{
    enum { DEEP = 8 };
    for (size_t at = begin; at < end && level < DEEP;) {
        struct number number;
        const size_t length = copy_length(layers, at, end, level);
        size_t times = 1;
        if (length == 0) {
            at++;
            continue;
        }
        while (at + (times + 1) * length <= end &&
               copy_length(layers, at + times * length, end, level) == length &&
               is_next_copy(layers + at + (times - 1) * length, layers + at + times * length,
                            length, level))
            times++;
        if (times > 1 && find_number(layers[at].name, level, &number))
            repeats->copies[repeats->count++] =
                (struct ls_net_copies){at, length, times, (int)number.begin - 1};
        find_copies(layers, at, at + length, level + 1, repeats);
        at += times * length;
    }
}

bool ls_net_repeats_find(const struct lockstep_net_layer *layers, size_t count,
                         struct ls_net_repeats *repeats)
{
    /* Each has a layer more than there would be without it. */
    *repeats = (struct ls_net_repeats){.copies = calloc(count + 1, sizeof *repeats->copies)};
    if (repeats->copies == NULL)
        return false;
    find_copies(layers, 0, count, 0, repeats);
    return true;
}

void ls_net_repeats_free(struct ls_net_repeats *repeats)
{
    free(repeats->copies);
    *repeats = (struct ls_net_repeats){.copies = NULL};
}

/* Moves a layer into the first copy; returns which copy it is in, or `times` if in none. */
static size_t move_to_first(const struct ls_net_copies *copies, size_t *layer)
{
    if (*layer < copies->first || *layer >= copies->first + copies->times * copies->length)
        return copies->times;
    const size_t copy = (*layer - copies->first) / copies->length;
    *layer -= copy * copies->length;
    return copy;
}

bool ls_net_repeats_map(const struct ls_net_repeats *repeats, size_t *a, size_t *b)
{
    for (size_t i = 0; i < repeats->count; i++) {
        const struct ls_net_copies *copies = &repeats->copies[i];
        const size_t first = move_to_first(copies, a), second = move_to_first(copies, b);
        if (first != second && first < copies->times && second < copies->times)
            return false;
    }
    return true;
}

bool ls_net_repeats_shows(const struct ls_net_repeats *repeats, size_t layer)
{
    size_t first = layer, same = layer;
    (void)ls_net_repeats_map(repeats, &first, &same);
    return first == layer;
}
