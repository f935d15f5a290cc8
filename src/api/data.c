/* The public interface: data tools.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "api/options.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/convert.h"
#include "data/mean.h"
#include "data/options.h"
#include "data/picture_list.h"
#include "data/survey.h"
#include "solver/weights.h"

void lockstep_source_options_init(struct lockstep_source_options *options)
{
    *options = (struct lockstep_source_options){.struct_size = sizeof *options};
}

int lockstep_source_help(const char *backend, void (*tell)(void *user, const char *line),
                         void *user, struct lockstep_error *error)
{
    return ls_source_help(backend, tell, user, ls_api_error(error));
}

/* The names that `classes` of the options leads to. */
static int read_classes(const char *path, struct ls_class_list *list, struct ls_error *error)
{
    char *names = NULL, *tokenizer = NULL;
    *list = (struct ls_class_list){.count = 0};
    if (path == NULL)
        return 0;
    if (ls_is_directory(path)) {
        LS_TRY(ls_class_list_beside(path, list, error));
        LS_TRY(list->count == 0 ? ls_picture_list_classes(path, list, error) : 0);
    } else {
        LS_TRY(ls_read_weights_names(path, &names, &tokenizer, error));
        ls_free(tokenizer);
        int status = names != NULL ? ls_class_list_lines(names, list, error)
                                   : ls_class_list_read(path, LOCKSTEP_USAGE, list, error);
        ls_free(names);
        LS_TRY(status);
    }
    if (list->count > 0)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, path,
                   "a text has a name on each line; a snapshot, a folder of class folders and a "
                   "database that was made of it have theirs",
                   "has no names of classes");
}

/* A source whose classes have the numbers that the options say. */
struct named {
    struct lockstep_source_options options;
    struct lockstep_callbacks callbacks;
    struct ls_class_list list;
    struct ls_class_names known;
};

static int take_named(const struct lockstep_source_options *source, struct named *named,
                      struct ls_error *error)
{
    LS_TRY(LS_API_OPTIONS(named->options, source, "lockstep_source_options_init", error));
    named->callbacks = named->options.callbacks;
    named->options.callbacks = ls_caller_callbacks(&named->callbacks);
    LS_TRY(read_classes(named->options.classes, &named->list, error));
    named->known = (struct ls_class_names){(const char *const *)named->list.name, named->list.count,
                                           named->options.classes, 0};
    return 0;
}

static const struct ls_class_names *known_of(const struct named *named)
{
    return named->list.count > 0 ? &named->known : NULL;
}

int lockstep_convert(const struct lockstep_source_options *source, const char *path,
                     int64_t *records, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct named named;
    LS_TRY(take_named(source, &named, inner));
    int status = ls_convert(&named.options, known_of(&named), path, records, inner);
    ls_class_list_free(&named.list);
    return status;
}

int lockstep_mean(const struct lockstep_source_options *source, const char *path,
                  double *channel_means, int *channels, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_source_options mine;
    LS_TRY(LS_API_OPTIONS(mine, source, "lockstep_source_options_init", inner));
    struct lockstep_callbacks callbacks = mine.callbacks;
    mine.callbacks = ls_caller_callbacks(&callbacks);
    return ls_mean(&mine, path, channel_means, channels, inner);
}

int lockstep_source_survey(const struct lockstep_source_options *source,
                           struct lockstep_source_facts *facts, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct named named;
    LS_TRY(take_named(source, &named, inner));
    int status = ls_survey(&named.options, known_of(&named), facts, inner);
    ls_class_list_free(&named.list);
    return status;
}
