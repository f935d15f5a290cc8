/* What became of every tensor of files of weights. See solver/weights_account.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/weights_account.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "ir/graph.h"

enum { NAMED = 6, HINT = 400 }; /* names in a line; the room of a hint */

static void say(const struct ls_weights_account *account, enum lockstep_event_kind kind,
                struct ls_text *line)
{
    if (account->request->say != NULL && line->length > 0 && !line->failed)
        account->request->say(account->request->user, kind, line->data);
    ls_text_free(line);
}

/* A list of names that ends after the first few: call it for each, and once with NULL. */
static void list_name(struct ls_text *line, size_t *count, const char *name, const char *why)
{
    if (name == NULL) {
        if (*count > NAMED)
            ls_text_format(line, " and %zu more", *count - NAMED);
    } else if ((*count)++ < NAMED) {
        ls_text_format(line, "%s '%.200s'%s", *count > 1 ? "," : "", name, why);
    }
}

int ls_weights_account_open(struct ls_weights_account *account, struct ls_error *error)
{
    const size_t count = (size_t)account->store->set->count;
    account->given = ls_alloc(count + 1, sizeof *account->given);
    return account->given != NULL ? 0 : ls_fail_memory(error, "weights");
}

void ls_weights_account_close(struct ls_weights_account *account)
{
    for (size_t i = 0; i < account->left_count; i++) {
        ls_free(account->left[i].name);
        ls_free(account->left[i].layer);
    }
    ls_free(account->left);
    ls_free(account->given);
}

static const char *name_of(const struct ls_weights_account *account, int parameter)
{
    return account->store->set->items[parameter]->name;
}

/* ---- A file ---------------------------------------------------------------------------------- */

/* Takes `name`, and a copy of the layer's; `blob` NULL: the name is not that of a blob. */
static int leave(struct ls_weights_account *account, char *name, const char *layer,
                 const struct ls_weight_blob *blob, struct ls_error *error)
{
    struct ls_left_tensor *left =
        name != NULL && LS_GROW(account->left, account->left_count, account->left_capacity)
            ? &account->left[account->left_count++]
            : NULL;
    if (left == NULL) {
        ls_free(name);
        return ls_fail_memory(error, "weights");
    }
    *left = (struct ls_left_tensor){.name = name};
    if (blob == NULL)
        return 0;
    left->blob = (struct ls_weight_blob){
        .present = true, .number = blob->number, .legacy = blob->legacy, .shape = blob->shape};
    left->layer = ls_copy_string(layer);
    return left->layer != NULL ? 0 : ls_fail_memory(error, "weights");
}

static void say_fate(const struct ls_weights_account *account, const char *file, const char *name,
                     const struct ls_weight_fate *fate)
{
    struct ls_text line = {0};
    char shape[128];
    ls_text_format(&line, "%s: '%.200s' (%s) ", file, name,
                   ls_shape_text(&fate->blob->shape, shape, sizeof shape));
    if (fate->target == NULL)
        ls_text_add(&line, "is not taken");
    else
        ls_text_format(&line, "is taken by '%s'%s", name_of(account, fate->target->parameter),
                       fate->target->shared ? ", which is tied to it" : "");
    say(account, LOCKSTEP_EVENT_DETAIL, &line);
}

/* Of a net that was cut, files may have what lies behind; where nothing is learned, a file that is
 * taken as a whole is no news. */
static enum lockstep_event_kind kind_of_summary(const struct ls_weights_account *account,
                                                bool whole)
{
    const enum ls_weights_use use = account->request->use;
    return use == LS_WEIGHTS_PART               ? LOCKSTEP_EVENT_DETAIL
           : use == LS_WEIGHTS_COMPUTE && whole ? LOCKSTEP_EVENT_START
                                                : LOCKSTEP_EVENT_NOTICE;
}

int ls_weights_account_file(struct ls_weights_account *account, const char *file,
                            const struct ls_weights *weights,
                            const struct ls_weights_report *report, struct ls_error *error)
{
    struct ls_text line = {0}, left = {0};
    const size_t all = report->count + weights->unused_count;
    size_t names = 0;
    int status = 0;
    for (size_t i = 0; i < report->count && status == 0; i++) {
        const struct ls_weight_fate *fate = &report->fates[i];
        struct ls_text name = {0};
        ls_weights_name_blob(fate->layer, fate->blob, &name);
        if (name.failed) {
            status = ls_fail_memory(error, "weights");
        } else if (fate->target != NULL) {
            account->given[fate->target->parameter] = true;
            say_fate(account, file, name.data, fate);
        } else {
            list_name(&left, &names, name.data, "");
            say_fate(account, file, name.data, fate);
            status = leave(account, name.data, fate->layer->name, fate->blob, error);
            continue; /* which has taken the name */
        }
        ls_text_free(&name);
    }
    for (size_t i = 0; i < weights->unused_count && status == 0; i++) {
        list_name(&left, &names, weights->unused[i], "");
        status = leave(account, ls_copy_string(weights->unused[i]), NULL, NULL, error);
    }
    list_name(&left, &names, NULL, "");
    ls_text_format(&line, "%s: %zu of %zu tensors taken%s%s", file, report->taken, all,
                   names > 0 ? "; not taken:" : "", left.length > 0 ? left.data : "");
    ls_text_free(&left);
    say(account, kind_of_summary(account, names == 0), &line);
    return status;
}

/* ---- All files ------------------------------------------------------------------------------- */

/* Whether a parameter is in no file. It is looked at under its owner's name. */
static bool is_missing(const struct ls_weights_account *account,
                       const struct ls_weight_target *target)
{
    return !target->shared && !account->given[target->parameter];
}

/* The first tensor that was left over and fits a target; of layer `of`, if that is not NULL. */
static const struct ls_left_tensor *find_left(const struct ls_weights_account *account,
                                              const struct ls_weight_target *target, const char *of)
{
    for (size_t i = 0; i < account->left_count; i++) {
        const struct ls_left_tensor *left = &account->left[i];
        if (left->layer != NULL && (of == NULL || strcmp(left->layer, of) == 0) &&
            ls_weights_fit(&left->blob, &target->shape))
            return left;
    }
    return NULL;
}

/* A tensor that target number `i`, which is missing, may be meant to have. Random numbers are never
 * meant; where a layer begins with constants (a norm), all of another layer must fit all of it. */
static const struct ls_left_tensor *find_meant(const struct ls_weights_account *account, size_t i)
{
    const struct ls_weight_target *target = &account->targets[i];
    const struct ls_left_tensor *found = find_left(account, target, NULL);
    if (found == NULL || target->random)
        return found;
    size_t first = i, last = i;
    while (first > 0 && strcmp(account->targets[first - 1].layer, target->layer) == 0)
        first--;
    while (last + 1 < account->count &&
           strcmp(account->targets[last + 1].layer, target->layer) == 0)
        last++;
    for (size_t t = first; t <= last; t++)
        if (!is_missing(account, &account->targets[t]) || account->targets[t].random ||
            find_left(account, &account->targets[t], found->layer) == NULL)
            return NULL;
    return last - first + 1 > 1 || ls_shape_size(&target->shape) > 1 ? found : NULL;
}

static int fail_random(const struct ls_weights_account *account, size_t target,
                       const struct ls_left_tensor *left, struct ls_error *error)
{
    const struct ls_weight_target *missing = &account->targets[target];
    char hint[HINT], shape[128];
    if (!ls_weights_account_prefix(account, hint, sizeof hint))
        snprintf(hint, sizeof hint,
                 "if it is meant, call the layer '%.100s' in the net; to train '%.100s' from "
                 "scratch, say so with --partial-weights (in the solver: partial_weights: true)",
                 left->layer, missing->layer);
    return ls_fail(error, LOCKSTEP_WEIGHTS, account->request->files, hint,
                   "'%s' would %s, although '%s' of its shape, %s, is taken by no parameter",
                   name_of(account, missing->parameter),
                   missing->random ? "stay random" : "keep its initial values", left->name,
                   ls_shape_text(&missing->shape, shape, sizeof shape));
}

/* One problem for each layer. */
static int check_random(const struct ls_weights_account *account, struct ls_error *error)
{
    const char *last = "";
    int status = 0;
    for (size_t i = 0; i < account->count; i++) {
        const struct ls_weight_target *target = &account->targets[i];
        if (!is_missing(account, target) || strcmp(last, target->layer) == 0)
            continue;
        const struct ls_left_tensor *left = find_meant(account, i);
        if (left == NULL)
            continue;
        status = fail_random(account, i, left, error);
        last = target->layer;
    }
    return status;
}

/* Where nothing is to be learned, weights that no file has would be those of the fillers. */
static int check_given(const struct ls_weights_account *account, struct ls_error *error)
{
    struct ls_text names = {0};
    char hint[HINT];
    const char *last = "";
    const struct ls_left_tensor *left = NULL;
    for (size_t i = 0; i < account->count; i++) {
        const struct ls_weight_target *target = &account->targets[i];
        if (!is_missing(account, target) || strcmp(last, target->layer) == 0)
            continue;
        last = target->layer;
        ls_text_format(&names, "%s'%s'", names.length > 0 ? ", " : "", last);
        left = left != NULL ? left : find_left(account, target, NULL);
    }
    if (names.length == 0)
        return 0;
    if (ls_weights_account_prefix(account, hint, sizeof hint))
        ;
    else if (left != NULL)
        snprintf(hint, sizeof hint,
                 "weights are found by the names of layers, and nothing takes '%.200s', whose "
                 "shape fits",
                 left->name);
    else
        snprintf(hint, sizeof hint,
                 "weights are found by the names of layers; name all files, with commas between "
                 "them");
    const int status = ls_fail(error, LOCKSTEP_WEIGHTS, account->request->files, hint,
                               "has no weights of these layers of the net: %.300s", names.data);
    ls_text_free(&names);
    return status;
}

static void say_missing(const struct ls_weights_account *account)
{
    struct ls_text line = {0}, list = {0};
    size_t names = 0;
    for (size_t i = 0; i < account->count; i++) {
        const struct ls_weight_target *target = &account->targets[i];
        if (!is_missing(account, target))
            continue;
        const char *why = target->random ? " (random)" : target->average ? " (a new average)" : "";
        list_name(&list, &names, name_of(account, target->parameter), why);
        struct ls_text detail = {0};
        ls_text_format(&detail, "'%s' is in no file%s", name_of(account, target->parameter), why);
        say(account, LOCKSTEP_EVENT_DETAIL, &detail);
    }
    list_name(&list, &names, NULL, "");
    if (names > 0)
        ls_text_format(&line, "%s: not in the file; they keep their initial values:%s",
                       account->request->files, list.data);
    ls_text_free(&list);
    say(account, LOCKSTEP_EVENT_NOTICE, &line);
}

int ls_weights_account_end(const struct ls_weights_account *account, struct ls_error *error)
{
    if (account->request->use != LS_WEIGHTS_TRAIN)
        return check_given(account, error);
    if (!account->request->partial)
        LS_TRY(check_random(account, error));
    say_missing(account);
    return 0;
}

/* ---- Prefixes -------------------------------------------------------------------------------- */

/* What stands before `name` in `longer`, up to a dot or slash; 0: it does not end so. */
static size_t prefix_length(const char *longer, const char *name)
{
    const size_t all = strlen(longer), part = strlen(name);
    const size_t more = all > part ? all - part : 0;
    return more > 1 && (longer[more - 1] == '.' || longer[more - 1] == '/') &&
                   strcmp(longer + more, name) == 0
               ? more
               : 0;
}

bool ls_weights_account_prefix(const struct ls_weights_account *account, char *hint, size_t size)
{
    for (size_t i = 0; i < account->left_count; i++)
        for (size_t t = 0; t < account->count; t++) {
            const char *theirs = account->left[i].layer, *ours = account->targets[t].layer;
            if (theirs == NULL || !is_missing(account, &account->targets[t]))
                continue;
            const size_t more = prefix_length(theirs, ours), less = prefix_length(ours, theirs);
            if (more > 0 && strncmp(theirs, "module.", more) == 0)
                snprintf(hint, size,
                         "PyTorch's DataParallel puts 'module.' before all names: save "
                         "model.module.state_dict(), or take it off with a map (docs/weights.md)");
            else if (more > 0)
                snprintf(hint, size,
                         "names in the file begin with '%.*s', those of the net do not: a map "
                         "takes it off (docs/weights.md)",
                         (int)(more < 100 ? more : 100), theirs);
            else if (less > 0)
                snprintf(hint, size,
                         "names of the net begin with '%.*s', those in the file do not: a map "
                         "puts it there (docs/weights.md)",
                         (int)(less < 100 ? less : 100), ours);
            if (more > 0 || less > 0)
                return true;
        }
    return false;
}
