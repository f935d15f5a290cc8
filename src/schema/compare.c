/* What differs between two canonical definitions, field by field, and whether a resume may change
 * it. What is not known to be harmless is not.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "schema/canonical.h"
#include "schema/fields.h"
#include "schema/text_format.h"

enum { CHANGES_MAX = 64, WHAT_MAX = sizeof((struct ls_change *)0)->what };

/* Fields of the solver that a resume may change: learning rate and schedule, which decide the
 * course of a training, */
static const char *const rates_of_solver[] = {
    "base_lr",         "lr_policy",       "gamma",
    "power",           "stepsize",        "stepvalue",
    "step_epoch",      "stepvalue_epoch", "lr_min",
    "pct_start",       "div_factor",      "final_div_factor",
    "warmup_iter",     "warmup_epoch",    "warmup_start",
    "base_batch_size", "lr_scaling",      "warmup_start_lr",
    "stagelr",         "stageiter",       "cosine_after_warmup",
};
/* and length, display, tests, snapshots. */
static const char *const allowed_of_solver[] = {
    "max_iter",
    "max_epoch",
    "display",
    "average_loss",
    "test_iter",
    "test_interval",
    "test_interval_epoch",
    "test_on_train",
    "test_compute_loss",
    "eval_type",
    "ap_version",
    "show_per_class_result",
    "snapshot",
    "test_initialization",
    "snapshot_epoch",
    "snapshot_after_train",
    "snapshot_keep",
    "snapshot_format",
    "snapshot_best",
    "snapshot_best_mode",
    "partial_weights",
    "solver_mode",
};

/* Fields anywhere in the net that change nothing in the numbers: with on_bad_record: STOP no update
 * has seen a bad record. */
static const char *const allowed_of_net[] = {"engine", "force_nd_im2col", "prefetch",
                                             "cache",  "cache_mb",        "on_bad_record"};

/* One pass over both definitions; there are two, for the order of the list. */
struct comparison {
    struct ls_changes *changes;
    bool allowed; /* which kind this pass collects */
};

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* A change to be filled in, or NULL if it is not of this pass's kind or the list is full. */
static struct ls_change *add_change(struct comparison *comparison, bool allowed, const char *what)
{
    struct ls_changes *changes = comparison->changes;
    if (allowed != comparison->allowed)
        return NULL;
    changes->forbidden += !allowed;
    if (changes->count == CHANGES_MAX)
        return NULL;
    struct ls_change *change = &changes->change[changes->count++];
    change->allowed = allowed;
    snprintf(change->what, sizeof change->what, "%s", what);
    return change;
}

/* A value as text, cut where it is long. */
static void show(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                 char out[96])
{
    struct ls_text text = {0};
    ls_text_write_value(message, field, &text);
    const char *shown = text.data != NULL ? text.data : "?";
    if (strlen(shown) < 96)
        snprintf(out, 96, "%s", shown);
    else
        snprintf(out, 96, "%.92s...", shown);
    ls_text_free(&text);
}

/* A field of the net, or of a layer in it. */
static void field_of_net_differs(void *user, const char *path, const ProtobufCMessage *a,
                                 const ProtobufCMessage *b, const ProtobufCFieldDescriptor *field)
{
    if (ls_canonical_is_path(a, field->name))
        return;
    bool allowed =
        is_among(field->name, allowed_of_net, sizeof allowed_of_net / sizeof allowed_of_net[0]);
    struct ls_change *change = add_change(user, allowed, path);
    if (change == NULL)
        return;
    show(a, field, change->before);
    show(b, field, change->after);
}

static const char *name_of(const Lockstep__LayerParameter *layer)
{
    return layer->name != NULL ? layer->name : "";
}

/* The layer of a net that has the name of the index-th layer of another, counting those of one
 * name; its position, or SIZE_MAX. */
static size_t find_layer(const Lockstep__NetParameter *in, const Lockstep__NetParameter *of,
                         size_t index)
{
    size_t before = 0;
    for (size_t i = 0; i < index; i++)
        before += strcmp(name_of(of->layer[i]), name_of(of->layer[index])) == 0;
    for (size_t i = 0; i < in->n_layer; i++)
        if (strcmp(name_of(in->layer[i]), name_of(of->layer[index])) == 0 && before-- == 0)
            return i;
    return SIZE_MAX;
}

/* A layer as a whole is gone, new or moved; never allowed. */
static void layer_differs(struct comparison *comparison, const Lockstep__LayerParameter *layer,
                          const char *before, const char *after)
{
    char what[WHAT_MAX];
    snprintf(what, sizeof what, "layer '%.150s'", name_of(layer));
    struct ls_change *change = add_change(comparison, false, what);
    if (change == NULL)
        return;
    snprintf(change->before, sizeof change->before, "%s", before);
    snprintf(change->after, sizeof change->after, "%s", after);
}

/* Layers are told apart by name, so that one that is put in does not make all behind it differ. */
static void compare_layers(struct comparison *comparison, const Lockstep__NetParameter *a,
                           const Lockstep__NetParameter *b)
{
    for (size_t i = 0; i < a->n_layer; i++) {
        size_t found = find_layer(b, a, i);
        char path[WHAT_MAX];
        if (found == SIZE_MAX) {
            layer_differs(comparison, a->layer[i], "there", "not there");
            continue;
        }
        snprintf(path, sizeof path, "layer '%.100s': ", name_of(a->layer[i]));
        ls_message_differences(path, &a->layer[i]->base, &b->layer[found]->base,
                               field_of_net_differs, comparison);
        if (found != i && a->n_layer == b->n_layer)
            layer_differs(comparison, a->layer[i], "at its place", "moved");
    }
    for (size_t i = 0; i < b->n_layer; i++)
        if (find_layer(a, b, i) == SIZE_MAX)
            layer_differs(comparison, b->layer[i], "not there", "there");
}

/* The name of a net is for people. */
static void compare_nets(struct comparison *comparison, const Lockstep__NetParameter *a,
                         const Lockstep__NetParameter *b)
{
    Lockstep__NetParameter head_a = *a, head_b = *b; /* all but the layers, and the name */
    head_a.n_layer = head_b.n_layer = 0;
    head_b.name = head_a.name;
    ls_message_differences("the net's ", &head_a.base, &head_b.base, field_of_net_differs,
                           comparison);
    compare_layers(comparison, a, b);
}

/* A field of the solver, or of a group of parameters, called `what`. */
static void field_differs(struct comparison *comparison, bool rate, bool allowed, const char *what,
                          const ProtobufCMessage *a, const ProtobufCMessage *b,
                          const ProtobufCFieldDescriptor *field)
{
    struct ls_change *change = add_change(comparison, rate || allowed, what);
    if (change == NULL)
        return;
    change->course = rate;
    show(a, field, change->before);
    show(b, field, change->after);
}

/* Groups of parameters, whose rates a resume may change, too; false: there are more of them, or
 * less. */
static bool compare_groups(struct comparison *comparison, const Lockstep__SolverParameter *a,
                           const Lockstep__SolverParameter *b)
{
    const ProtobufCMessageDescriptor *type = &lockstep__parameter_group__descriptor;
    if (a->n_param_group != b->n_param_group)
        return false;
    for (size_t g = 0; g < a->n_param_group; g++)
        for (unsigned i = 0; i < type->n_fields; i++) {
            const ProtobufCFieldDescriptor *field = &type->fields[i];
            const ProtobufCMessage *mine = &a->param_group[g]->base;
            const ProtobufCMessage *theirs = &b->param_group[g]->base;
            char what[WHAT_MAX];
            snprintf(what, sizeof what, "param_group[%zu].%.60s", g, field->name);
            bool rate = strcmp(field->name, "base_lr") == 0 || strcmp(field->name, "lr_mult") == 0;
            if (!ls_field_equal(mine, theirs, field))
                field_differs(comparison, rate, false, what, mine, theirs, field);
        }
    return true;
}

/* Every field of the solver, then the nets. What only one side has set compares with the default.
 */
static void compare_solvers(struct comparison *comparison, const Lockstep__SolverParameter *a,
                            const Lockstep__SolverParameter *b)
{
    const ProtobufCMessageDescriptor *type = a->base.descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (ls_field_equal(&a->base, &b->base, field) ||
            strcmp(field->name, "train_net_param") == 0 ||
            (strcmp(field->name, "param_group") == 0 && compare_groups(comparison, a, b)))
            continue;
        bool rate = is_among(field->name, rates_of_solver,
                             sizeof rates_of_solver / sizeof rates_of_solver[0]);
        bool allowed = is_among(field->name, allowed_of_solver,
                                sizeof allowed_of_solver / sizeof allowed_of_solver[0]);
        field_differs(comparison, rate, allowed, field->name, &a->base, &b->base, field);
    }
    compare_nets(comparison, a->train_net_param, b->train_net_param);
}

/* Reads one side. Problems of a text that we wrote ourselves are told as one. */
static int read_canonical(const char *path, const char *name, const char *text, size_t length,
                          int status, struct ls_definition **out, struct ls_error *error)
{
    struct ls_error found = {0};
    char problems[512];
    int result =
        ls_text_read(name, text, length, &lockstep__solver_parameter__descriptor, out, &found);
    if (result == LOCKSTEP_RESOURCE)
        return ls_fail_memory(error, "a definition");
    if (result == 0 && ((Lockstep__SolverParameter *)(*out)->message)->train_net_param != NULL)
        return 0;
    ls_error_format(&found, problems, sizeof problems);
    if (result == 0) {
        ls_definition_free(*out);
        *out = NULL;
        snprintf(problems, sizeof problems, "it has no train_net_param");
    }
    return ls_fail(error, status, path, NULL, "the definition in the snapshot cannot be read: %s",
                   problems);
}

/* A layer that does not say its precision has the solver's: not the default of the field. */
static void settle_precisions(Lockstep__SolverParameter *solver)
{
    Lockstep__NetParameter *net = solver->train_net_param;
    for (size_t i = 0; i < net->n_layer; i++)
        if (!net->layer[i]->has_precision) {
            net->layer[i]->has_precision = 1;
            net->layer[i]->precision = solver->precision;
        }
}

/* The same of algorithms: a layer that does not say its own has PORTABLE if the solver has. */
static void settle_algorithms(Lockstep__SolverParameter *solver)
{
    Lockstep__NetParameter *net = solver->train_net_param;
    const bool portable = solver->algorithm == LOCKSTEP__SOLVER_PARAMETER__ALGORITHM__PORTABLE;
    for (size_t i = 0; portable && i < net->n_layer; i++) {
        Lockstep__ConvolutionParameter *convolution = net->layer[i]->convolution_param;
        Lockstep__InnerProductParameter *product = net->layer[i]->inner_product_param;
        if (convolution != NULL && !convolution->has_algorithm) {
            convolution->has_algorithm = 1;
            convolution->algorithm = LOCKSTEP__CONVOLUTION_PARAMETER__ALGORITHM__PORTABLE;
        }
        if (product != NULL && !product->has_algorithm) {
            product->has_algorithm = 1;
            product->algorithm = LOCKSTEP__INNER_PRODUCT_PARAMETER__ALGORITHM__PORTABLE;
        }
    }
}

/* The micro-batch mostly follows from the batch: where that differs, it is no news. */
static void drop_micro_batch(struct ls_changes *changes)
{
    size_t batch = changes->count, micro = changes->count;
    for (size_t i = 0; i < changes->count; i++) {
        const char *what = changes->change[i].what;
        if (strcmp(what, "micro_batch") == 0)
            micro = i;
        else if (strstr(what, "batch_size") != NULL || strstr(what, ".shape") != NULL)
            batch = i;
    }
    if (batch == changes->count || micro == changes->count)
        return;
    changes->count--;
    changes->forbidden--;
    memmove(&changes->change[micro], &changes->change[micro + 1],
            (changes->count - micro) * sizeof *changes->change);
}

/* Two definitions that were read. Where the solvers' precisions or algorithms differ, that is what
 * is told. */
static void compare_read(Lockstep__SolverParameter *a, Lockstep__SolverParameter *b,
                         struct ls_changes *changes)
{
    if (a->precision == b->precision) {
        settle_precisions(a);
        settle_precisions(b);
    }
    if (a->algorithm == b->algorithm) {
        settle_algorithms(a);
        settle_algorithms(b);
    }
    for (int allowed = 0; allowed < 2; allowed++)
        compare_solvers(&(struct comparison){changes, allowed == 1}, a, b);
    drop_micro_batch(changes);
}

int ls_canonical_compare(const char *path, const char *before, size_t before_length,
                         const char *after, size_t after_length, struct ls_changes *changes,
                         struct ls_error *error)
{
    *changes = (struct ls_changes){0};
    struct ls_definition *a = NULL, *b = NULL;
    int status =
        read_canonical(path, "snapshot", before, before_length, LOCKSTEP_WEIGHTS, &a, error);
    if (status == 0)
        status =
            read_canonical(NULL, "definition", after, after_length, LOCKSTEP_INTERNAL, &b, error);
    if (status == 0) {
        changes->change = ls_alloc(CHANGES_MAX, sizeof *changes->change);
        if (changes->change == NULL)
            status = ls_fail_memory(error, "a comparison of definitions");
    }
    if (status == 0)
        compare_read((Lockstep__SolverParameter *)a->message,
                     (Lockstep__SolverParameter *)b->message, changes);
    ls_definition_free(a);
    ls_definition_free(b);
    return status;
}

void ls_changes_free(struct ls_changes *changes)
{
    ls_free(changes->change);
    *changes = (struct ls_changes){0};
}
