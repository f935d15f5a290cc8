/* Traces as text. See observe/timeline_text.h.
 *
 * Ranks are processes, tracks are threads. What takes time is one object with its duration ("X").
 * Arrows ("s" where they begin, "f" where they end) lead from what made an exchange ready to its
 * beginning, and from there to its end on other ranks. An arrow is written only where both of its
 * ends are, and where time passes between them: a rank that gets no bytes of another may have ended
 * an exchange before that one has begun it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "observe/timeline_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { ALL_TO_ALL = 8 /* ranks: of more only neighbours have arrows */ };

/* What is recorded of an exchange. */
enum { IS_READY = 1, IS_EXCHANGED = 2 };

struct writing {
    const struct ls_timeline_rank *rank;
    const unsigned char *known; /* by number of the exchange */
    uint32_t count;             /* of these */
    struct ls_text *text;
    int track;
};

static const char *const categories[] = {
    [LS_TIMELINE_UPDATE] = "update",     [LS_TIMELINE_MICRO_BATCH] = "micro-batch",
    [LS_TIMELINE_FORWARD] = "forward",   [LS_TIMELINE_BACKWARD] = "backward",
    [LS_TIMELINE_APPLY] = "weights",     [LS_TIMELINE_BARRIER] = "barrier",
    [LS_TIMELINE_DATA] = "data",         [LS_TIMELINE_DECODE] = "decode",
    [LS_TIMELINE_TEST] = "test",         [LS_TIMELINE_SNAPSHOT] = "snapshot",
    [LS_TIMELINE_EXCHANGE] = "exchange",
};

static const char *const names[] = {
    [LS_TIMELINE_UPDATE] = "update",      [LS_TIMELINE_MICRO_BATCH] = "micro-batch",
    [LS_TIMELINE_FORWARD] = "forward",    [LS_TIMELINE_BACKWARD] = "backward",
    [LS_TIMELINE_APPLY] = "new weights",  [LS_TIMELINE_BARRIER] = "barrier",
    [LS_TIMELINE_DATA] = "wait for data", [LS_TIMELINE_DECODE] = "decode",
    [LS_TIMELINE_TEST] = "test",          [LS_TIMELINE_SNAPSHOT] = "snapshot",
    [LS_TIMELINE_EXCHANGE] = "exchange",
};

/* ---- What is recorded of exchanges ----------------------------------------------------------- */

static void note_event(const struct ls_timeline_event *event, unsigned char *known, uint32_t count)
{
    if (event->kind == LS_TIMELINE_READY && event->number < count)
        known[event->number] |= IS_READY;
    if (event->kind == LS_TIMELINE_EXCHANGE && event->number < count)
        known[event->number] |= IS_EXCHANGED;
}

/* The largest number of an exchange + 1. */
static uint32_t count_exchanges(const struct ls_timeline *trace)
{
    uint32_t count = 0;
    for (const struct ls_timeline_track *t = trace->tracks; t != NULL; t = t->next)
        for (const struct ls_timeline_block *block = t->first; block != NULL; block = block->next)
            for (size_t i = 0; i < block->count; i++)
                if (block->event[i].kind == LS_TIMELINE_EXCHANGE && block->event[i].number >= count)
                    count = block->event[i].number + 1;
    return count;
}

static int find_known(const struct ls_timeline *trace, uint32_t *count, unsigned char **known,
                      struct ls_error *error)
{
    *count = count_exchanges(trace);
    *known = ls_alloc((size_t)*count + 1, 1);
    if (*known == NULL)
        return ls_fail_memory(error, "a trace");
    for (const struct ls_timeline_track *t = trace->tracks; t != NULL; t = t->next)
        for (const struct ls_timeline_block *block = t->first; block != NULL; block = block->next)
            for (size_t i = 0; i < block->count; i++)
                note_event(&block->event[i], *known, *count);
    return 0;
}

int ls_timeline_exchanges(const struct ls_timeline *trace, uint32_t *count, struct ls_error *error)
{
    unsigned char *known;
    uint32_t there;
    *count = 0;
    LS_TRY(find_known(trace, &there, &known, error));
    while (*count < there && (known[*count] & IS_EXCHANGED) != 0)
        ++*count;
    ls_free(known);
    return 0;
}

/* What of an exchange lies before its end: there arrows lead to. */
static uint64_t last_moment(const struct ls_timeline_event *event)
{
    return event->end > event->begin ? event->end - 1 : event->end;
}

void ls_timeline_spans(const struct ls_timeline *trace, const struct ls_timeline_rank *rank,
                       struct ls_timeline_span *spans)
{
    for (const struct ls_timeline_track *t = trace->tracks; t != NULL; t = t->next)
        for (const struct ls_timeline_block *block = t->first; block != NULL; block = block->next)
            for (size_t i = 0; i < block->count; i++) {
                const struct ls_timeline_event *event = &block->event[i];
                if (event->kind == LS_TIMELINE_EXCHANGE && event->number < rank->exchanges)
                    spans[event->number] = (struct ls_timeline_span){
                        .begin = (int64_t)event->begin + rank->offset,
                        .end = (int64_t)last_moment(event) + rank->offset};
            }
}

/* ---- Objects --------------------------------------------------------------------------------- */

/* The beginning of an object. There are so many objects that printf would take longer for them than
 * recording them did. */
struct line {
    char text[160]; /* five numbers and their keys are at most 150 */
    size_t length;
};

static void put_word(struct line *line, const char *word)
{
    const size_t length = strlen(word);
    memcpy(line->text + line->length, word, length);
    line->length += length;
}

/* In decimal, with zeros in front up to so many digits. */
static void put_number(struct line *line, uint64_t number, int digits)
{
    char reversed[24];
    int count = 0;
    for (; number > 0 || count < digits; number /= 10)
        reversed[count++] = (char)('0' + number % 10);
    while (count > 0)
        line->text[line->length++] = reversed[--count];
}

/* In microseconds. */
static void put_time(struct line *line, const char *key, int64_t nanoseconds)
{
    const uint64_t at = nanoseconds > 0 ? (uint64_t)nanoseconds : 0;
    put_word(line, key);
    put_number(line, at / 1000, 1);
    put_word(line, ".");
    put_number(line, at % 1000, 3);
}

static int64_t time_of(const struct writing *writing, uint64_t clock)
{
    return (int64_t)clock + writing->rank->offset - writing->rank->zero;
}

/* `phase` is "X", "s" or "f". */
static void begin_object(const struct writing *writing, const char *phase, uint64_t clock,
                         struct line *line)
{
    line->length = 0;
    put_word(line, "{\"ph\":\"");
    put_word(line, phase);
    put_word(line, "\",\"pid\":");
    put_number(line, (uint64_t)writing->rank->rank, 1);
    put_word(line, ",\"tid\":");
    put_number(line, (uint64_t)writing->track, 1);
    put_time(line, ",\"ts\":", time_of(writing, clock));
}

/* One end of an arrow: 's', or 'f' for what it leads to. */
static void add_arrow(const struct writing *writing, char phase, uint64_t clock, const char *name,
                      const char *id)
{
    struct line line;
    begin_object(writing, phase == 's' ? "s" : "f", clock, &line);
    ls_text_add_bytes(writing->text, line.text, line.length);
    ls_text_format(writing->text, ",\"name\":\"%s\",\"cat\":\"exchange\",\"id\":\"%s\"%s},\n", name,
                   id, phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* Whether what one rank sends another has an arrow. */
static bool has_arrow(const struct writing *writing, uint32_t number, int from, int to)
{
    const struct ls_timeline_rank *rank = writing->rank;
    if (from == to || (rank->ranks > ALL_TO_ALL && (from + 1) % rank->ranks != to))
        return false;
    return rank->spans[(size_t)from * rank->exchanges + number].begin <=
           rank->spans[(size_t)to * rank->exchanges + number].end;
}

static void add_exchange_arrows(const struct writing *writing,
                                const struct ls_timeline_event *event)
{
    const int me = writing->rank->rank;
    char id[64];
    if (event->number >= writing->count)
        return; /* it was recorded after they were counted */
    if ((writing->known[event->number] & IS_READY) != 0) {
        snprintf(id, sizeof id, "ready.%d.%" PRIu32, me, event->number);
        add_arrow(writing, 'f', event->begin, "ready", id);
    }
    if (writing->rank->spans == NULL || event->number >= writing->rank->exchanges)
        return;
    for (int r = 0; r < writing->rank->ranks; r++) {
        if (has_arrow(writing, event->number, me, r)) {
            snprintf(id, sizeof id, "sent.%" PRIu32 ".%d.%d", event->number, me, r);
            add_arrow(writing, 's', event->begin, "sent", id);
        }
        if (has_arrow(writing, event->number, r, me)) {
            snprintf(id, sizeof id, "sent.%" PRIu32 ".%d.%d", event->number, r, me);
            add_arrow(writing, 'f', last_moment(event), "sent", id);
        }
    }
}

static void add_event(const struct writing *writing, const struct ls_timeline_event *event)
{
    char id[64];
    struct line line;
    if (event->kind == LS_TIMELINE_READY) {
        if (event->number >= writing->count || (writing->known[event->number] & IS_EXCHANGED) == 0)
            return;
        snprintf(id, sizeof id, "ready.%d.%" PRIu32, writing->rank->rank, event->number);
        add_arrow(writing, 's', event->begin, "ready", id);
        return;
    }
    begin_object(writing, "X", event->begin, &line);
    put_time(&line, ",\"dur\":", (int64_t)(event->end - event->begin));
    put_word(&line, ",\"name\":");
    ls_text_add_bytes(writing->text, line.text, line.length);
    ls_text_add_json(writing->text, event->name != NULL ? event->name : names[event->kind]);
    line.length = 0;
    put_word(&line, ",\"cat\":\"");
    put_word(&line, categories[event->kind]);
    put_word(&line, "\"");
    if (event->kind == LS_TIMELINE_UPDATE || event->kind == LS_TIMELINE_MICRO_BATCH ||
        event->kind == LS_TIMELINE_EXCHANGE) {
        put_word(&line, ",\"args\":{\"number\":");
        put_number(&line, event->number, 1);
        put_word(&line, "}");
    }
    put_word(&line, "},\n");
    ls_text_add_bytes(writing->text, line.text, line.length);
    if (event->kind == LS_TIMELINE_EXCHANGE)
        add_exchange_arrows(writing, event);
}

/* "M": what a process or a thread is called, and where it stands. */
static void add_names(const struct writing *writing, const struct ls_timeline_track *tracks)
{
    const struct ls_timeline_rank *rank = writing->rank;
    char name[160];
    snprintf(name, sizeof name, "rank %d (%.64s)", rank->rank, rank->host);
    ls_text_format(
        writing->text,
        "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":",
        rank->rank);
    ls_text_add_json(writing->text, name);
    ls_text_format(writing->text,
                   "}},\n{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_sort_index\","
                   "\"args\":{\"sort_index\":%d}},\n",
                   rank->rank, rank->rank);
    for (const struct ls_timeline_track *t = tracks; t != NULL; t = t->next) {
        ls_text_format(writing->text,
                       "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{"
                       "\"name\":",
                       rank->rank, t->number);
        ls_text_add_json(writing->text, t->name);
        ls_text_format(writing->text,
                       "}},\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_sort_index\","
                       "\"args\":{\"sort_index\":%d}},\n",
                       rank->rank, t->number, t->number);
    }
}

int ls_timeline_write(const struct ls_timeline *trace, const struct ls_timeline_rank *rank,
                      struct ls_text *text, struct ls_error *error)
{
    struct writing writing = {.rank = rank, .text = text};
    unsigned char *known;
    LS_TRY(find_known(trace, &writing.count, &known, error));
    writing.known = known;
    add_names(&writing, trace->tracks);
    for (const struct ls_timeline_track *t = trace->tracks; t != NULL; t = t->next) {
        writing.track = t->number;
        for (const struct ls_timeline_block *block = t->first; block != NULL; block = block->next)
            for (size_t i = 0; i < block->count; i++)
                add_event(&writing, &block->event[i]);
    }
    ls_free(known);
    return text->failed ? ls_fail_memory(error, "a trace") : 0;
}
