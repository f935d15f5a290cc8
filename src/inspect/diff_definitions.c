/* What differs between two definitions, field by field, with the places of both. What only one side
 * says compares with the default. Layers are found by name, so that one that is put in does not
 * make all behind it differ. SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "inspect/diff_inner.h"
#include "schema/definition.h"
#include "schema/fields.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"

enum { SHOWN_MAX = 200 };

struct comparison {
    const struct ls_diff_report *report;
    struct ls_definition *definition[2];
    size_t differing;
};

/* "20 (net.prototxt:12:5)", or "1, the default". */
static void show(const struct ls_definition *definition, const ProtobufCMessage *message,
                 const ProtobufCFieldDescriptor *field, char *out, size_t size)
{
    struct ls_text text = {0};
    char place[LS_PLACE_MAX];
    ls_text_write_value(message, field, &text);
    const char *value = text.data != NULL ? text.data : "?";
    bool set = ls_field_count(message, field) > 0;
    bool cut = strlen(value) > 80;
    if (set)
        snprintf(out, size, "%.80s%s (%s)", value, cut ? "..." : "",
                 ls_place(definition, message, field->name, place, sizeof place));
    else if (strcmp(value, "unset") == 0 || ls_field_is_repeated(field))
        snprintf(out, size, "not given");
    else
        snprintf(out, size, "%.80s, the default", value);
    ls_text_free(&text);
}

static void say_difference(void *user, const char *path, const ProtobufCMessage *a,
                           const ProtobufCMessage *b, const ProtobufCFieldDescriptor *field)
{
    struct comparison *comparison = user;
    char values[2][LS_PLACE_MAX + SHOWN_MAX];
    show(comparison->definition[0], a, field, values[0], sizeof values[0]);
    show(comparison->definition[1], b, field, values[1], sizeof values[1]);
    ls_diff_say(comparison->report, "%s: %s and %s", path, values[0], values[1]);
    comparison->differing++;
}

static const char *name_of(const Lockstep__LayerParameter *layer)
{
    return layer->name != NULL ? layer->name : "";
}

/* Of layers with one name, those of the same phase belong together first. */
static int phase_of(const Lockstep__LayerParameter *layer)
{
    return layer->n_include > 0 && layer->include[0]->has_phase ? (int)layer->include[0]->phase
                                                                : -1;
}

static bool same_layer(const Lockstep__LayerParameter *a, const Lockstep__LayerParameter *b)
{
    return strcmp(name_of(a), name_of(b)) == 0 && phase_of(a) == phase_of(b);
}

/* The layer of a net that is the index-th of another one, counting those that are alike; its
 * position, or SIZE_MAX. */
static size_t find_layer(const Lockstep__NetParameter *in, const Lockstep__NetParameter *of,
                         size_t index)
{
    size_t before = 0;
    for (size_t i = 0; i < index; i++)
        before += same_layer(of->layer[i], of->layer[index]);
    for (size_t i = 0; i < in->n_layer; i++)
        if (same_layer(in->layer[i], of->layer[index]) && before-- == 0)
            return i;
    return SIZE_MAX;
}

/* Layers of the net on `side` that the other one does not have. */
static void say_missing(struct comparison *comparison, const Lockstep__NetParameter *net,
                        const Lockstep__NetParameter *other, int side)
{
    char place[LS_PLACE_MAX];
    for (size_t i = 0; i < net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        if (find_layer(other, net, i) != SIZE_MAX)
            continue;
        ls_diff_say(comparison->report, "layer '%s' (%s): only in %s (%s)", name_of(layer),
                    layer->type != NULL ? layer->type : "?", comparison->report->names[side],
                    ls_place(comparison->definition[side], layer, NULL, place, sizeof place));
        comparison->differing++;
    }
}

/* Layers that both have, in two orders: the first that stands elsewhere among them. */
static void compare_order(struct comparison *comparison, const Lockstep__NetParameter *a,
                          const Lockstep__NetParameter *b)
{
    char places[2][LS_PLACE_MAX];
    size_t reached = 0;
    for (size_t i = 0; i < a->n_layer; i++) {
        size_t found = find_layer(b, a, i);
        if (found == SIZE_MAX)
            continue;
        if (found < reached) {
            ls_diff_say(
                comparison->report, "layer '%s': stands elsewhere: %s and %s", name_of(a->layer[i]),
                ls_place(comparison->definition[0], a->layer[i], NULL, places[0], sizeof places[0]),
                ls_place(comparison->definition[1], b->layer[found], NULL, places[1],
                         sizeof places[1]));
            comparison->differing++;
            return;
        }
        reached = found;
    }
}

static void compare_nets(struct comparison *comparison, const Lockstep__NetParameter *a,
                         const Lockstep__NetParameter *b)
{
    Lockstep__NetParameter head_a = *a,
                           head_b = *b; /* all but the layers: the message's own place */
    head_a.n_layer = head_b.n_layer = 0;
    ls_message_differences("the net's ", &head_a.base, &head_b.base, say_difference, comparison);
    for (size_t i = 0; i < a->n_layer; i++) {
        size_t found = find_layer(b, a, i);
        char path[LS_FIELD_PATH_MAX];
        snprintf(path, sizeof path, "layer '%.100s': ", name_of(a->layer[i]));
        if (found != SIZE_MAX)
            ls_message_differences(path, &a->layer[i]->base, &b->layer[found]->base, say_difference,
                                   comparison);
    }
    say_missing(comparison, a, b, 0);
    say_missing(comparison, b, a, 1);
    compare_order(comparison, a, b);
}

/* Reads both files, newest forms of nets. */
static int read_both(struct comparison *comparison, const ProtobufCMessageDescriptor *type,
                     bool upgrade, struct ls_error *error)
{
    int status = 0;
    for (int i = 0; i < 2; i++) {
        int read = ls_definition_read_file(comparison->report->names[i], type, LOCKSTEP_DEFINITION,
                                           &comparison->definition[i], error);
        if (read == 0 && upgrade)
            read =
                ls_net_upgrade(comparison->definition[i],
                               (Lockstep__NetParameter *)comparison->definition[i]->message, error);
        status = status != 0 ? status : read;
    }
    return status;
}

static void free_both(struct comparison *comparison)
{
    ls_definition_free(comparison->definition[0]);
    ls_definition_free(comparison->definition[1]);
}

static int diff_nets(const struct ls_diff_report *report, size_t *differing, struct ls_error *error)
{
    struct comparison comparison = {.report = report};
    int status = read_both(&comparison, &lockstep__net_parameter__descriptor, true, error);
    if (status == 0)
        compare_nets(&comparison, (Lockstep__NetParameter *)comparison.definition[0]->message,
                     (Lockstep__NetParameter *)comparison.definition[1]->message);
    *differing += comparison.differing;
    free_both(&comparison);
    return status;
}

/* The files of nets that both solvers name, if these are two files. */
static int diff_files(const struct comparison *comparison, const char *a, const char *b,
                      size_t *differing, struct ls_error *error)
{
    if (a == NULL || b == NULL)
        return 0;
    char *paths[2] = {ls_resolve_path(a, comparison->report->names[0]),
                      ls_resolve_path(b, comparison->report->names[1])};
    int status = 0;
    if (paths[0] == NULL || paths[1] == NULL)
        status = ls_fail_memory(error, "a path");
    else if (ls_file_exists(paths[0]) && ls_file_exists(paths[1])) {
        struct ls_diff_report report = *comparison->report;
        report.names[0] = paths[0];
        report.names[1] = paths[1];
        if (!ls_same_file(paths[0], paths[1]))
            status = diff_nets(&report, differing, error);
    } else {
        ls_diff_say(comparison->report, "the nets are not compared: %s is not there",
                    ls_file_exists(paths[0]) ? paths[1] : paths[0]);
    }
    ls_free(paths[0]);
    ls_free(paths[1]);
    return status;
}

static int diff_solvers(const struct ls_diff_report *report, size_t *differing,
                        struct ls_error *error)
{
    struct comparison comparison = {.report = report};
    int status = read_both(&comparison, &lockstep__solver_parameter__descriptor, false, error);
    if (status == 0) {
        const Lockstep__SolverParameter *a = (void *)comparison.definition[0]->message;
        const Lockstep__SolverParameter *b = (void *)comparison.definition[1]->message;
        ls_message_differences("", &a->base, &b->base, say_difference, &comparison);
        status = diff_files(&comparison, a->net, b->net, differing, error);
        if (status == 0)
            status = diff_files(&comparison, a->train_net, b->train_net, differing, error);
    }
    *differing += comparison.differing;
    free_both(&comparison);
    return status;
}

int ls_diff_definitions(const struct ls_diff_report *report, enum ls_file_kind kind,
                        struct ls_error *error)
{
    size_t differing = 0;
    int status = kind == LS_KIND_NET ? diff_nets(report, &differing, error)
                                     : diff_solvers(report, &differing, error);
    if (status != 0)
        return status;
    if (differing == 0) {
        ls_diff_say(report, "The same definitions");
        return 0;
    }
    return ls_fail(error, LOCKSTEP_DIFFERENT, NULL, NULL, "the definitions differ in %zu place%s",
                   differing, differing == 1 ? "" : "s");
}
