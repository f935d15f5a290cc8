/* What data a path leads to. See cli/init_data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/init_data.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/init_file.h"
#include "cli/init_folder.h"
#include "cli/report.h"

static bool is_there(const char *path, bool folder)
{
    struct stat info;
    return stat(path, &info) == 0 && (folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode));
}

/* FOLDER/NAME, if it is there; .gz may follow where `packed`. */
static bool find(const char *folder, const char *name, bool is_folder, bool packed,
                 char path[LS_INIT_PATH])
{
    for (int i = 0; i < (packed ? 2 : 1); i++) {
        int length = snprintf(path, LS_INIT_PATH, "%s/%s%s", folder, name, i > 0 ? ".gz" : "");
        if (length < LS_INIT_PATH && is_there(path, is_folder))
            return true;
    }
    path[0] = '\0';
    return false;
}

static void set_source(struct ls_init_set *set, const char *path)
{
    if (set->sources < LS_INIT_FILES)
        snprintf(set->source[set->sources++], LS_INIT_PATH, "%s", path);
}

static bool look_for_idx(const char *folder, struct ls_init_data *data)
{
    static const char *const names[2][2][2] = {
        {{"train-images-idx3-ubyte", "train-images.idx3-ubyte"},
         {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte"}},
        {{"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"},
         {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"}}};
    for (int s = 0; s < 2; s++) {
        struct ls_init_set *set = s == 0 ? &data->train : &data->test;
        char images[LS_INIT_PATH];
        for (int n = 0; n < 2 && set->sources == 0; n++)
            if (find(folder, names[s][0][n], false, true, images) &&
                find(folder, names[s][1][n], false, true, set->label_source))
                set_source(set, images);
    }
    return data->train.sources > 0;
}

static bool look_for_cifar(const char *folder, struct ls_init_data *data)
{
    char name[32], path[LS_INIT_PATH];
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        if (find(folder, name, false, false, path))
            set_source(&data->train, path);
    }
    if (find(folder, "test_batch.bin", false, false, path))
        set_source(&data->test, path);
    return data->train.sources > 0;
}

/* A database, or two in folders beside each other. */
static bool look_for_lmdb(const char *folder, struct ls_init_data *data)
{
    static const char *const train[] = {"train", "train_lmdb"};
    static const char *const test[] = {"test", "val", "test_lmdb", "val_lmdb"};
    char path[LS_INIT_PATH], file[LS_INIT_PATH];
    if (find(folder, "data.mdb", false, false, file)) {
        set_source(&data->train, folder);
        return true;
    }
    for (int i = 0; i < 2 && data->train.sources == 0; i++)
        if (find(folder, train[i], true, false, path) && find(path, "data.mdb", false, false, file))
            set_source(&data->train, path);
    for (int i = 0; i < 4 && data->test.sources == 0; i++)
        if (find(folder, test[i], true, false, path) && find(path, "data.mdb", false, false, file))
            set_source(&data->test, path);
    return data->train.sources > 0;
}

/* ---- Folders of pictures --------------------------------------------------------------------- */

static const char *const train_names[] = {"train", "training", NULL};
static const char *const test_names[] = {"test",       "testing", "val", "valid",
                                         "validation", "eval",    NULL};
static const char *const picture_names[] = {"images",   "image",   "imgs",   "img",
                                            "pictures", "picture", "photos", "jpegimages",
                                            "input",    "inputs",  NULL};
static const char *const map_names[] = {"labels",
                                        "label",
                                        "masks",
                                        "mask",
                                        "maps",
                                        "annotations",
                                        "annotation",
                                        "gt",
                                        "ground_truth",
                                        "groundtruth",
                                        "segmentation",
                                        "segmentations",
                                        "seg",
                                        "targets",
                                        "target",
                                        "segmentationclass",
                                        NULL};

/* Of two folders beside each other: how many pictures the first has, and how many files of the
 * other have their names. */
struct pair {
    size_t pictures, maps, texts; /* maps: .png; texts: .txt, .xml or .json */
};

static struct pair compare(const char *path, const char *first, const char *second)
{
    char inside[LS_INIT_PATH];
    struct ls_init_folder pictures, others;
    struct pair pair = {0, 0, 0};
    if (!ls_init_join(path, first, inside) || !ls_init_folder_read(inside, &pictures))
        return pair;
    if (ls_init_join(path, second, inside) && ls_init_folder_read(inside, &others)) {
        pair.pictures = ls_init_count_pictures(&pictures);
        pair.maps = ls_init_pairs(&pictures, &others, "png");
        pair.texts = ls_init_pairs(&pictures, &others, "txt") +
                     ls_init_pairs(&pictures, &others, "xml") +
                     ls_init_pairs(&pictures, &others, "json");
        ls_init_folder_free(&others);
    }
    ls_init_folder_free(&pictures);
    return pair;
}

/* A PNG file whose pixels are grey or of a palette, as those of a label map; others are pictures.
 */
static bool may_be_map(const char *path)
{
    unsigned char head[26] = {0};
    FILE *file = fopen(path, "rbe");
    const bool read = file != NULL && fread(head, 1, sizeof head, file) == sizeof head;
    if (file != NULL)
        fclose(file);
    return read && memcmp(head, "\x89PNG", 4) == 0 && (head[25] == 0 || head[25] == 3);
}

static bool holds_maps(const char *path, const char *name)
{
    char inside[LS_INIT_PATH], file[LS_INIT_PATH];
    struct ls_init_folder folder;
    bool maps = false;
    if (!ls_init_join(path, name, inside) || !ls_init_folder_read(inside, &folder))
        return false;
    for (size_t i = 0; i < folder.files && !maps; i++)
        maps = ls_init_ends(folder.file[i], "png") && ls_init_join(inside, folder.file[i], file) &&
               may_be_map(file);
    ls_init_folder_free(&folder);
    return maps;
}

/* What a set of pictures is. */
enum layout { NONE, CLASSES, PAIRS, BOXES, EITHER };

static void set_pairs(const char *path, const char *pictures, const char *maps,
                      struct ls_init_set *set)
{
    char inside[LS_INIT_PATH];
    if (ls_init_join(path, pictures, inside))
        set_source(set, inside);
    if (!ls_init_join(path, maps, set->label_source))
        set->label_source[0] = '\0';
}

/* Which of a folder's sub-folders hold pictures and which the maps of these; false: it has no such
 * two. `sure`: their names say it. */
static bool find_pair(const char *path, const struct ls_init_folder *folder, const char **pictures,
                      const char **maps, bool *sure)
{
    *pictures = ls_init_folder_named(folder, picture_names);
    *maps = ls_init_folder_named(folder, map_names);
    *sure = *maps != NULL;
    if (*pictures == NULL && *maps != NULL && folder->folders == 2)
        *pictures = folder->folder[*maps == folder->folder[0]];
    if (*pictures != NULL && *maps != NULL)
        return true;
    if (folder->folders != 2)
        return false;
    for (int i = 0; i < 2; i++) { /* all pictures of one have files of the other's */
        *pictures = folder->folder[i];
        *maps = folder->folder[1 - i];
        const struct pair pair = compare(path, *pictures, *maps);
        if (pair.pictures > 0 && pair.maps == pair.pictures && holds_maps(path, *maps) &&
            !(i == 0 && holds_maps(path, *pictures)))
            return true;
    }
    return false;
}

static size_t count_class_folders(const char *path, const struct ls_init_folder *folder)
{
    size_t count = 0;
    for (size_t i = 0; i < folder->folders; i++) {
        char inside[LS_INIT_PATH];
        struct ls_init_folder within;
        if (!ls_init_join(path, folder->folder[i], inside) || !ls_init_folder_read(inside, &within))
            continue;
        count += ls_init_count_pictures(&within) > 0 || within.folders > 0;
        ls_init_folder_free(&within);
    }
    return count;
}

static enum layout look_at_set(const char *path, const struct ls_init_hints *hints,
                               struct ls_init_set *set)
{
    struct ls_init_folder folder;
    const char *pictures, *maps;
    enum layout layout = NONE;
    bool sure;
    if (!ls_init_folder_read(path, &folder))
        return NONE;
    const bool wants = hints->backend != NULL && strcmp(hints->backend, "IMAGE_PAIRS") == 0;
    const bool classes = hints->backend != NULL && strcmp(hints->backend, "IMAGES") == 0;
    if (!classes && find_pair(path, &folder, &pictures, &maps, &sure)) {
        const struct pair pair = compare(path, pictures, maps);
        layout = pair.maps > 0 && (sure || wants) ? PAIRS : pair.texts > 0 ? BOXES : EITHER;
        if (layout == PAIRS)
            set_pairs(path, pictures, maps, set);
    }
    if (layout == NONE && !wants && count_class_folders(path, &folder) > 0) {
        layout = CLASSES;
        set_source(set, path);
    }
    ls_init_folder_free(&folder);
    return layout;
}

static int no_net_for_boxes(const char *path)
{
    return ls_cli_error(LOCKSTEP_DATA,
                        "%s: beside the pictures lie texts of the same names: boxes or other "
                        "notes, which are not read. hint: docs/data.md, Pictures with boxes, says "
                        "what a net that finds boxes reads; 'init' writes none",
                        path);
}

/* The two sets in folders beside each other, or the classes of one. */
static int look_for_pictures(const char *path, const struct ls_init_hints *hints,
                             struct ls_init_data *data, bool *found)
{
    struct ls_init_folder folder;
    char train[LS_INIT_PATH] = "", test[LS_INIT_PATH] = "";
    enum layout layout = NONE;
    *found = false;
    if (!ls_init_folder_read(path, &folder))
        return 0;
    const char *first = ls_init_folder_named(&folder, train_names);
    const char *second = ls_init_folder_named(&folder, test_names);
    const size_t others = folder.folders - (first != NULL) - (second != NULL);
    if (first != NULL && ls_init_join(path, first, train))
        layout = look_at_set(train, hints, &data->train);
    if (layout != NONE && second != NULL && ls_init_join(path, second, test) &&
        look_at_set(test, hints, &data->test) != layout)
        data->test = (struct ls_init_set){.sources = 0};
    const bool flat = first != NULL && layout == NONE;
    const char *third = NULL;
    for (size_t i = 0; i < folder.folders && third == NULL; i++)
        if (folder.folder[i] != first && folder.folder[i] != second)
            third = folder.folder[i];
    char other[256] = "";
    snprintf(other, sizeof other, "%.200s", third != NULL ? third : "");
    const bool two = flat && second != NULL && others == 0;
    if (layout == NONE)
        layout = look_at_set(path, hints, &data->train);
    else if (others > 0 && second == NULL && hints->backend == NULL)
        layout = NONE; /* a class called train, beside others? */
    const bool mixed = first != NULL && !flat && layout == NONE;
    ls_init_folder_free(&folder);
    if (mixed)
        return ls_cli_error(LOCKSTEP_DATA,
                            "%s: is '%s' the set to train on, or a class beside '%s'? hint: name "
                            "the folder of the set (%s), or give a class another name",
                            path, train, other, train);
    if (two)
        return ls_cli_error(LOCKSTEP_DATA,
                            "%s: its folders are a set to train on and one to test with, and not "
                            "two classes, but neither has folders of classes. hint: put the "
                            "pictures of each class into a folder of its own within both",
                            path);
    if (layout == BOXES)
        return no_net_for_boxes(path);
    if (layout == EITHER)
        return ls_init_unclear(data, "backend", "IMAGE_PAIRS", "IMAGES",
                               "%s has two folders whose files have the same names: are these "
                               "pictures and their label maps (IMAGE_PAIRS), or two classes "
                               "(IMAGES)?",
                               path);
    *found = layout != NONE;
    data->backend = layout == PAIRS ? "IMAGE_PAIRS" : "IMAGES";
    return 0;
}

int ls_init_unclear(struct ls_init_data *data, const char *option, const char *first,
                    const char *second, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(data->question, sizeof data->question, format, arguments);
    va_end(arguments);
    data->option = option;
    data->values[0] = first;
    data->values[1] = second;
    return LS_INIT_UNCLEAR;
}

/* The one file of a folder that ends in .txt. */
static bool look_for_text(const char *path, char text[LS_INIT_PATH])
{
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name);
        char inside[LS_INIT_PATH];
        if (length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0 &&
            find(path, entry->d_name, false, false, inside)) {
            snprintf(text, LS_INIT_PATH, "%s", inside);
            count++;
        }
    }
    if (folder != NULL)
        closedir(folder);
    return count == 1;
}

/* Lines "path label", as IMAGES reads them: that the first one names a file. */
static bool is_list(const char *path)
{
    char line[LS_INIT_PATH], *end;
    FILE *file = fopen(path, "re");
    bool list = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL)
        fclose(file);
    end = list ? strrchr(line, ' ') : NULL;
    if (end == NULL || strspn(end + 1, "0123456789\r\n") != strlen(end + 1))
        return false;
    *end = '\0';
    return is_there(line, false);
}

static void warn(void *user, const struct lockstep_event *event)
{
    (void)user;
    if (event->kind == LOCKSTEP_EVENT_WARNING && event->text != NULL)
        fprintf(stderr, "lockstep: warning: %s\n", event->text);
}

/* What a set has. `classes`: the set whose classes its own must be, or NULL. */
static int survey(const struct ls_init_data *data, const struct ls_init_set *set,
                  const char *classes, struct lockstep_source_facts *facts)
{
    const char *sources[LS_INIT_FILES];
    struct lockstep_source_options options;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_source_options_init(&options);
    for (size_t i = 0; i < set->sources; i++)
        sources[i] = set->source[i];
    options.backend = data->backend;
    options.source = sources;
    options.source_count = set->sources;
    options.label_source = set->label_source[0] != '\0' ? set->label_source : NULL;
    options.classes = classes;
    options.callbacks.event = warn;
    int status = lockstep_source_survey(&options, facts, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

/* What the labels of maps are: 255 is what does not count, or the other side of a mask. */
static int check_maps(const char *path, const struct ls_init_hints *hints,
                      struct ls_init_data *data)
{
    struct lockstep_source_facts *facts = &data->facts;
    int different = 0, largest = 0;
    const bool ignored = facts->classes == 256 && facts->class_records[255] > 0;
    for (int c = 0; c < facts->classes - (ignored ? 1 : 0); c++)
        if (facts->class_records[c] > 0) {
            different++;
            largest = c;
        }
    data->split = data->test.sources == 0;
    if (different < 2 && !(ignored && different == 1))
        return ls_cli_error(LOCKSTEP_DATA, "%s: its maps have one label only", path);
    const bool mask = different == 1 || (hints->maps != NULL && strcmp(hints->maps, "masks") == 0);
    if (!mask && largest > 1 && hints->maps == NULL)
        return ls_init_unclear(data, "maps", "classes", "masks",
                               "the maps of %s have %d different labels up to %d: is each a class "
                               "(classes), or do they number objects, so that all but 0 are one "
                               "class (masks)?",
                               path, different, largest);
    data->masks = mask;
    facts->classes = mask ? 2 : largest + 1;
    return 0;
}

static int check_pictures(const char *path, struct ls_init_data *data)
{
    const struct lockstep_source_facts *facts = &data->facts;
    bool varies =
        facts->height_least != facts->height_most || facts->width_least != facts->width_most;
    if (facts->classes < 2)
        return ls_cli_error(LOCKSTEP_DATA, "%s: its records are not of two or more classes", path);
    if (varies && strcmp(data->backend, "IMAGES") != 0)
        return ls_cli_error(LOCKSTEP_DATA,
                            "%s: its pictures differ in size. hint: make the database with "
                            "'lockstep convert --resize-height N --resize-width N'",
                            path);
    data->split = data->test.sources == 0;
    return 0;
}

/* Looks through the pictures; the test set must fit those that are trained on. */
static int look_through(const char *given, const struct ls_init_hints *hints,
                        struct ls_init_data *data)
{
    static struct lockstep_source_facts test;
    const bool pairs = strcmp(data->backend, "IMAGE_PAIRS") == 0;
    const bool named = strcmp(data->backend, "IMAGES") == 0 && data->test.sources > 0;
    int status = survey(data, &data->train, NULL, &data->facts);
    if (status == 0 && data->facts.records < 20)
        status = ls_cli_error(LOCKSTEP_DATA, "%s: %lld records are too few to train on", given,
                              (long long)data->facts.records);
    if (status == 0)
        status = pairs ? check_maps(given, hints, data) : check_pictures(given, data);
    return status == 0 && named ? survey(data, &data->test, data->train.source[0], &test) : status;
}

static bool wants(const struct ls_init_hints *hints, const char *backend)
{
    return hints->backend == NULL || strcmp(hints->backend, backend) == 0;
}

static int look_at_folder(const char *given, const char *path, const struct ls_init_hints *hints,
                          struct ls_init_data *data)
{
    char text[LS_INIT_PATH];
    bool found = false;
    int status = 0;
    if (wants(hints, "IDX") && look_for_idx(path, data))
        data->backend = "IDX";
    else if (wants(hints, "CIFAR") && look_for_cifar(path, data))
        data->backend = "CIFAR";
    else if (wants(hints, "LMDB") && look_for_lmdb(path, data))
        data->backend = "LMDB";
    else if (wants(hints, "IMAGES") || wants(hints, "IMAGE_PAIRS"))
        status = look_for_pictures(path, hints, data, &found);
    if (status != 0)
        return status;
    if (data->train.sources > 0)
        return look_through(given, hints, data);
    if (look_for_text(path, text)) {
        data->split = true;
        set_source(&data->train, text);
        return ls_init_file_look(text, hints, data);
    }
    return ls_cli_error(LOCKSTEP_DATA,
                        "%s: no data that 'init' knows%s%s. hint: it knows a folder of pictures "
                        "with a sub-folder for each class, pictures with label maps, the files of "
                        "MNIST or CIFAR-10, LMDB databases, a list of pictures, a text, and token "
                        "ids",
                        given, hints->backend != NULL ? " as " : "",
                        hints->backend != NULL ? hints->backend : "");
}

int ls_init_look(const char *given, const struct ls_init_hints *hints, struct ls_init_data *data)
{
    char path[PATH_MAX];
    *data = (struct ls_init_data){.backend = NULL};
    if (realpath(given, path) == NULL)
        return ls_cli_error(LOCKSTEP_DATA, "%s: %s", given, strerror(errno));
    if (!is_there(path, false))
        return look_at_folder(given, path, hints, data);
    if (is_list(path) && wants(hints, "IMAGES")) {
        data->backend = "IMAGES";
        set_source(&data->train, path);
        return look_through(given, hints, data);
    }
    data->split = true;
    set_source(&data->train, path);
    return ls_init_file_look(path, hints, data);
}
