/* Names of classes: item { name: "..." label: 3 display_name: "dog" }, as often as there are
 * classes. SPDX-License-Identifier: BSD-2-Clause */
#include "data/label_map.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "schema/text_format.h"

enum { CLASSES_MOST = 65536 };

static const size_t FILE_MOST = (size_t)1 << 26; /* bytes */

/* How many classes there are: one more than the largest label. */
static int count_classes(const Lockstep__LabelMap *map, const char *path, int *count,
                         struct ls_error *error)
{
    *count = 0;
    for (size_t i = 0; i < map->n_item; i++) {
        const int32_t label = map->item[i]->label;
        if (label < 0 || label >= CLASSES_MOST)
            return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                           "item %zu: its label must be 0 to 65535", i + 1);
        *count = label >= *count ? label + 1 : *count;
    }
    return 0;
}

static int take_names(const Lockstep__LabelMap *map, const char *path, struct ls_source *source,
                      struct ls_error *error)
{
    for (size_t i = 0; i < map->n_item; i++) {
        const Lockstep__LabelMapItem *item = map->item[i];
        const char *name = item->display_name != NULL ? item->display_name : item->name;
        char *copy = ls_copy_string(name != NULL ? name : "");
        if (copy == NULL)
            return ls_fail_memory(error, "the names of classes");
        const char *before = source->class_name[item->label];
        if (before != NULL && strcmp(before, copy) != 0) {
            int status = ls_fail(error, LOCKSTEP_DATA, path, NULL,
                                 "item %zu: label %d is '%.100s' here, and '%.100s' in an item "
                                 "before",
                                 i + 1, (int)item->label, copy, before);
            ls_free(copy);
            return status;
        }
        ls_free(source->class_name[item->label]);
        source->class_name[item->label] = copy;
    }
    for (int i = 0; i < source->class_count; i++) {
        if (source->class_name[i] == NULL)
            source->class_name[i] = ls_copy_string("");
        if (source->class_name[i] == NULL)
            return ls_fail_memory(error, "the names of classes");
    }
    return 0;
}

int ls_label_map_names(const char *path, struct ls_source *source, struct ls_error *error)
{
    char *text;
    size_t size;
    struct ls_definition *definition = NULL;
    int count = 0;
    LS_TRY(ls_file_read_text(path, FILE_MOST, LOCKSTEP_DATA, &text, &size, error));
    int status =
        ls_text_read(path, text, size, &lockstep__label_map__descriptor, &definition, error);
    ls_free(text);
    if (status != 0)
        return status;
    const Lockstep__LabelMap *map = (const Lockstep__LabelMap *)definition->message;
    status = count_classes(map, path, &count, error);
    if (status == 0 && count > 0) {
        source->class_name = ls_alloc((size_t)count, sizeof *source->class_name);
        source->class_count = source->class_name != NULL ? count : 0;
        status = source->class_name != NULL ? take_names(map, path, source, error)
                                            : ls_fail_memory(error, "the names of classes");
    }
    ls_definition_free(definition);
    return status;
}
