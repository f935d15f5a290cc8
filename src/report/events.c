/* Events of a log. See report/log.h; the program writes them in monitor/log.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "report/log.h"

/* An event that is being taken. */
struct event {
    struct lockstep_log *log;
    const struct ls_json_tree *tree;
    int64_t iteration;
    bool memory; /* it has run out */
};

static const struct ls_json_node *member(const struct event *event, const struct ls_json_node *node,
                                         const char *name)
{
    return ls_json_find(event->tree, node, name);
}

/* A number; NaN: it is none. */
static double number_of(const struct ls_json_node *node)
{
    if (node == NULL)
        return NAN;
    if (node->kind == LS_JSON_INTEGER)
        return (double)node->integer;
    return node->kind == LS_JSON_NUMBER ? node->number : NAN;
}

static double number(const struct event *event, const struct ls_json_node *node, const char *name)
{
    return number_of(member(event, node, name));
}

/* An integer of an iteration or a count; -1: there is none, or it is negative. */
static int64_t integer(const struct event *event, const struct ls_json_node *node, const char *name)
{
    const struct ls_json_node *found = member(event, node, name);
    return found != NULL && found->kind == LS_JSON_INTEGER && found->integer >= 0 ? found->integer
                                                                                  : -1;
}

static const char *text(const struct event *event, const struct ls_json_node *node,
                        const char *name)
{
    const struct ls_json_node *found = member(event, node, name);
    return found != NULL && found->kind == LS_JSON_STRING ? ls_json_text(event->tree, found) : NULL;
}

/* A copy that is cut to LS_LOG_TEXT bytes, between characters. */
static char *copy_text(struct event *event, const char *string)
{
    size_t length = strlen(string);
    if (length > LS_LOG_TEXT)
        for (length = LS_LOG_TEXT; length > 0 && ((unsigned char)string[length] & 0xc0) == 0x80;)
            length--;
    char *copy = ls_copy_bytes(string, length);
    event->memory = event->memory || copy == NULL;
    return copy;
}

/* ---- Figures --------------------------------------------------------------------------------- */

static struct ls_series *add_figure(struct event *event, const char *name, double value)
{
    struct lockstep_log *log = event->log;
    struct ls_series *series = (struct ls_series *)ls_log_find(log, name);
    uint64_t bits;
    if (series == NULL) {
        if (log->series_count == LS_LOG_SERIES ||
            (log->series[log->series_count].name = copy_text(event, name)) == NULL)
            return NULL;
        series = &log->series[log->series_count++];
    }
    if (!isfinite(value)) {
        log->state.missing++;
        return series;
    }
    memcpy(&bits, &value, sizeof bits);
    if (!ls_series_add(series, event->iteration, value, bits))
        event->memory = true;
    return series;
}

/* The loss of a whole net. */
static void add_loss(struct event *event, const char *name, double value)
{
    struct ls_series *series = add_figure(event, name, value);
    if (series != NULL)
        series->total = true;
}

/* A figure that an event may do without. */
static void add_member(struct event *event, const char *name)
{
    if (member(event, &event->tree->nodes[0], name) != NULL)
        add_figure(event, name, number(event, &event->tree->nodes[0], name));
}

static void take_progress(struct event *event)
{
    const struct ls_json_node *root = &event->tree->nodes[0];
    const char *loss = member(event, root, "data_loss") != NULL ? "data_loss" : "loss";
    if (member(event, root, loss) != NULL)
        add_loss(event, "loss", number(event, root, loss));
    add_member(event, "learning_rate");
    add_member(event, "samples_per_second");
    if (isfinite(number(event, root, "penalty"))) /* null: it was not measured */
        add_member(event, "penalty");
}

/* The loss of outputs all together. */
struct loss {
    double sum;
    int parts;
    struct ls_series *only; /* a single one that counts as it is is the loss itself */
};

/* "test/recall[3]", of a class whose name the log has "test/AP[3 dog]". */
static void name_figure(char *key, size_t size, const char *before, const char *name, int at,
                        const char *class_name)
{
    const size_t length = class_name != NULL ? strnlen(class_name, 40) : 0;
    if (class_name == NULL)
        snprintf(key, size, "%s/%.100s[%d]", before, name, at);
    else
        snprintf(key, size, "%s/%.100s[%d %.*s]", before, name, at,
                 (int)ls_utf8_valid_length(class_name, length), class_name);
}

static void take_output(struct event *event, const char *before, const struct ls_json_node *output,
                        struct loss *loss)
{
    const char *name = text(event, output, "name");
    const struct ls_json_node *values = member(event, output, "values");
    const char *better = text(event, output, "better");
    double weight = number(event, output, "loss_weight");
    const struct ls_json_node *classes = member(event, output, "classes"), *class = NULL;
    int at = 0;
    if (name == NULL || values == NULL || values->kind != LS_JSON_ARRAY)
        return;
    if (classes != NULL && classes->kind == LS_JSON_ARRAY && classes->count == values->count)
        class = ls_json_first(event->tree, classes);
    weight = isfinite(weight) ? weight : 0;
    for (const struct ls_json_node *value = ls_json_first(event->tree, values); value != NULL;
         value = ls_json_next(event->tree, value), at++) {
        char key[160];
        struct ls_series *series = NULL;
        const char *class_name = class != NULL && class->kind == LS_JSON_STRING
                                     ? ls_json_text(event->tree, class)
                                     : NULL;
        const bool nothing = class != NULL && class_name == NULL; /* the background */
        class = class != NULL ? ls_json_next(event->tree, class) : NULL;
        if (nothing)
            continue;
        if (values->count > 1)
            name_figure(key, sizeof key, before, name, at, class_name);
        else
            snprintf(key, sizeof key, "%s/%.100s", before, name);
        if (at < LS_LOG_FIGURES)
            series = add_figure(event, key, number_of(value));
        if (series != NULL) {
            series->loss_weight = weight;
            series->better = better == NULL ? 0 : strcmp(better, "max") == 0 ? 1 : -1;
        }
        if (weight == 0)
            continue;
        loss->sum += weight * number_of(value);
        loss->parts++;
        loss->only = weight == 1 ? series : NULL;
    }
}

/* Outputs as "BEFORE/NAME", or "BEFORE/NAME[i]" where there are several figures; and what they come
 * to as a loss. */
static void take_outputs(struct event *event, const char *before)
{
    const struct ls_json_node *outputs = member(event, &event->tree->nodes[0], "outputs");
    struct loss loss = {.sum = 0};
    char name[80];
    if (outputs == NULL || outputs->kind != LS_JSON_ARRAY)
        return;
    for (const struct ls_json_node *output = ls_json_first(event->tree, outputs); output != NULL;
         output = ls_json_next(event->tree, output))
        take_output(event, before, output, &loss);
    snprintf(name, sizeof name, "%s/total loss", before);
    if (loss.parts == 1 && loss.only != NULL)
        loss.only->total = true;
    else if (loss.parts > 0 && strcmp(before, "train") != 0)
        add_loss(event, name, loss.sum);
}

static void take_test(struct event *event)
{
    const struct ls_json_node *root = &event->tree->nodes[0];
    const struct ls_json_node *net = member(event, root, "test_net");
    const int64_t which = net != NULL && net->kind == LS_JSON_INTEGER ? net->integer : 0;
    char before[40] = "test";
    if (which < 0)
        snprintf(before, sizeof before, "train data");
    else if (which > 0)
        snprintf(before, sizeof before, "test %" PRId64, which);
    take_outputs(event, before);
}

/* The distributions of a parameter over time; NULL: it is one of those that there is no room for.
 */
static struct ls_log_spread *spread_of(struct event *event, const char *name)
{
    struct lockstep_log *log = event->log;
    for (size_t i = 0; i < log->spread_count; i++)
        if (strcmp(log->spreads[i].name, name) == 0)
            return &log->spreads[i];
    if (log->spreads == NULL)
        log->spreads = ls_alloc(LS_SPREADS_OF_A_LOG, sizeof *log->spreads);
    event->memory = event->memory || log->spreads == NULL;
    if (log->spreads == NULL || log->spread_count == LS_SPREADS_OF_A_LOG)
        return NULL;
    struct ls_log_spread *spread = &log->spreads[log->spread_count];
    spread->name = copy_text(event, name);
    log->spread_count += spread->name != NULL;
    return spread->name != NULL ? spread : NULL;
}

/* False: no memory. */
static bool take_parameter(struct event *event, const struct ls_json_node *node, const char *name)
{
    struct lockstep_log *log = event->log;
    char *copy = copy_text(event, name);
    if (copy == NULL || !LS_GROW(log->parameters, log->parameter_count, log->parameter_room)) {
        event->memory = true;
        ls_free(copy);
        return false;
    }
    log->parameters[log->parameter_count++] =
        (struct lockstep_log_parameter){.name = copy,
                                        .weight_norm = number(event, node, "weight_norm"),
                                        .gradient_norm = number(event, node, "gradient_norm"),
                                        .update_norm = number(event, node, "update_norm")};
    struct ls_log_spread *spread = spread_of(event, name);
    if (spread == NULL)
        return !event->memory;
    ls_spread_take(&spread->weights, event->tree, member(event, node, "weight_histogram"),
                   event->iteration);
    ls_spread_take(&spread->gradient, event->tree, member(event, node, "gradient_histogram"),
                   event->iteration);
    return true;
}

/* Norms of all parameters together as curves; of each, those of the last such event. */
static void take_statistics(struct event *event)
{
    struct lockstep_log *log = event->log;
    add_member(event, "gradient_norm");
    add_member(event, "weight_norm");
    add_member(event, "update_norm");
    const struct ls_json_node *list = member(event, &event->tree->nodes[0], "parameters");
    if (list == NULL || list->kind != LS_JSON_ARRAY)
        return;
    for (size_t i = 0; i < log->parameter_count; i++)
        ls_free((char *)log->parameters[i].name);
    log->parameter_count = 0;
    for (const struct ls_json_node *node = ls_json_first(event->tree, list);
         node != NULL && log->parameter_count < LS_LOG_PARAMETERS;
         node = ls_json_next(event->tree, node)) {
        const char *name = text(event, node, "name");
        if (name != NULL && !take_parameter(event, node, name))
            return;
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void add_message(struct event *event, const char *kind)
{
    struct lockstep_log *log = event->log;
    const char *string = text(event, &event->tree->nodes[0], "text");
    if (string == NULL || log->message_count >= LS_LOG_MESSAGES)
        return;
    char *copy = copy_text(event, string);
    if (copy == NULL)
        return;
    if (!LS_GROW(log->messages, log->message_count, log->message_room)) {
        event->memory = true;
        ls_free(copy);
        return;
    }
    log->messages[log->message_count++] =
        (struct lockstep_log_message){.kind = kind, .iteration = event->iteration, .text = copy};
}

/* Keeps the names of the snapshots: of the last one, and of the best, which a notice names (see
 * say_best in solver/snapshots.c). */
static void take_file(struct event *event, const char *kind)
{
    const char *said = text(event, &event->tree->nodes[0], "text");
    const bool last = strcmp(kind, "snapshot") == 0;
    char **kept = last ? &event->log->last_snapshot : &event->log->best_snapshot;
    const char *file = said;
    if (said != NULL && !last)
        file = strncmp(said, "Best ", 5) == 0 ? strstr(said, ", kept as ") : NULL;
    if (file == NULL || *file == '\0')
        return;
    char *copy = copy_text(event, last ? file : file + strlen(", kept as "));
    if (copy == NULL)
        return;
    ls_free(*kept);
    *kept = copy;
}

/* Puts a fact in place of what an earlier run said. */
static void set_fact(struct event *event, const char *name, const char *value)
{
    struct lockstep_log *log = event->log;
    size_t at = 0;
    while (at < log->fact_count && strcmp(log->facts[at].name, name) != 0)
        at++;
    if (at == LS_LOG_FACTS)
        return;
    char *copy = copy_text(event, value);
    if (copy == NULL)
        return;
    if (at < log->fact_count) {
        ls_free((char *)log->facts[at].value);
        log->facts[at].value = copy;
        return;
    }
    char *own = copy_text(event, name);
    if (own == NULL || !LS_GROW(log->facts, log->fact_count, log->fact_room)) {
        event->memory = true;
        ls_free(own);
        ls_free(copy);
        return;
    }
    log->facts[log->fact_count++] = (struct lockstep_fact){.name = own, .value = copy};
}

static void take_run(struct event *event)
{
    struct lockstep_log *log = event->log;
    const struct ls_json_node *root = &event->tree->nodes[0];
    log->state.runs++;
    log->state.ended = 0;
    log->earlier += log->elapsed;
    log->elapsed = 0;
    log->first = event->iteration;
    for (const struct ls_json_node *node = ls_json_first(event->tree, root); node != NULL;
         node = ls_json_next(event->tree, node)) {
        const char *name = ls_json_name(event->tree, node);
        struct ls_text value = {0};
        if (strcmp(name, "event") == 0 || strcmp(name, "iteration") == 0 ||
            strcmp(name, "elapsed") == 0)
            continue;
        if (node->kind == LS_JSON_INTEGER)
            ls_text_format(&value, "%" PRId64, node->integer);
        else if (node->kind == LS_JSON_NUMBER)
            ls_text_format(&value, "%.6g", node->number);
        if (node->kind == LS_JSON_STRING)
            set_fact(event, name, ls_json_text(event->tree, node));
        else if (value.data != NULL)
            set_fact(event, name, value.data);
        ls_text_free(&value);
    }
}

static void take_hash(struct event *event)
{
    struct lockstep_log *log = event->log;
    const char *weights = text(event, &event->tree->nodes[0], "weights");
    if (weights == NULL)
        return;
    snprintf(log->hash, sizeof log->hash, "%s", weights);
    /* The last one of a run may stand there twice, which is the same figure again. */
    if (!ls_series_add(&log->hashes, event->iteration, 0, strtoull(weights, NULL, 16)))
        event->memory = true;
}

/* The loss of the last update stands in the end, too, which is of use where a program that was
 * killed has not written its progress. */
static void take_end(struct event *event)
{
    const struct ls_series *series = ls_log_find(event->log, "loss");
    const double loss = number(event, &event->tree->nodes[0], "data_loss");
    event->log->state.ended = 1;
    if (isfinite(loss) && (series == NULL || series->last_iteration < event->iteration))
        add_loss(event, "loss", loss);
}

static void take_kind(struct event *event, const char *kind)
{
    static const char *const told[] = {"start", "warning", "notice", "audit", "snapshot"};
    if (strcmp(kind, "progress") == 0)
        take_progress(event);
    else if (strcmp(kind, "display") == 0)
        take_outputs(event, "train");
    else if (strcmp(kind, "test") == 0)
        take_test(event);
    else if (strcmp(kind, "statistics") == 0)
        take_statistics(event);
    else if (strcmp(kind, "run") == 0)
        take_run(event);
    else if (strcmp(kind, "hash") == 0)
        take_hash(event);
    else if (strcmp(kind, "snapshot") == 0 || strcmp(kind, "notice") == 0)
        take_file(event, kind);
    else if (strcmp(kind, "end") == 0)
        take_end(event);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (strcmp(kind, told[i]) == 0)
            add_message(event, told[i]);
}

int ls_log_take(struct lockstep_log *log, const struct ls_json_tree *tree, struct ls_error *error)
{
    struct event event = {.log = log, .tree = tree};
    const struct ls_json_node *root = &tree->nodes[0];
    const char *kind = text(&event, root, "event");
    const double elapsed = number(&event, root, "elapsed");
    event.iteration = integer(&event, root, "iteration");
    if (kind == NULL || event.iteration < 0) { /* of another program */
        if (log->state.bad++ == 0)
            log->state.first_bad = log->state.lines;
        return 0;
    }
    log->state.events++;
    take_kind(&event, kind);
    log->state.iteration = event.iteration;
    if (isfinite(elapsed) && elapsed >= 0)
        log->elapsed = elapsed;
    const int64_t end = integer(&event, root, "iteration_end");
    if (end > 0)
        log->state.iteration_end = end;
    return event.memory ? ls_fail_memory(error, "a log") : 0;
}
