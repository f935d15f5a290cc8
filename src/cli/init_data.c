/* What data a path leads to. See cli/init_data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/init_data.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static int count_folders(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char inside[LS_INIT_PATH];
        if (entry->d_name[0] != '.' && find(path, entry->d_name, true, false, inside))
            count++;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
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

static bool look_for_pictures(const char *folder, struct ls_init_data *data)
{
    static const char *const test[] = {"test", "val", "valid", "validation"};
    char path[LS_INIT_PATH];
    if (find(folder, "train", true, false, path) && count_folders(path) >= 2) {
        set_source(&data->train, path);
        for (int i = 0; i < 4 && data->test.sources == 0; i++)
            if (find(folder, test[i], true, false, path) && count_folders(path) >= 2)
                set_source(&data->test, path);
        return true;
    }
    if (count_folders(folder) >= 2)
        set_source(&data->train, folder);
    return data->train.sources > 0;
}

/* The bytes of the character of UTF-8 that a byte begins; 0: none does. */
static int begins_character(int byte)
{
    return byte < 0x80                   ? 1
           : byte >= 0xc2 && byte < 0xe0 ? 2
           : byte >= 0xe0 && byte < 0xf0 ? 3
           : byte >= 0xf0 && byte < 0xf5 ? 4
                                         : 0;
}

/* Counts characters; false: the text is not UTF-8. */
static bool count_characters(FILE *file, unsigned char *seen, struct ls_init_data *data)
{
    for (int byte; (byte = getc(file)) != EOF;) {
        int length = begins_character(byte);
        uint32_t code = (uint32_t)(length == 1 ? byte : byte & (0x7f >> length));
        for (int i = 1; i < length; i++) {
            int next = getc(file);
            if (next == EOF || (next & 0xc0) != 0x80)
                return false;
            code = code << 6 | (uint32_t)(next & 0x3f);
        }
        if (length == 0 || byte == 0 || code >= 0x110000)
            return false;
        data->different += (seen[code / 8] >> code % 8 & 1) == 0;
        seen[code / 8] |= (unsigned char)(1u << code % 8);
        data->characters++;
    }
    return true;
}

static int look_at_text(const char *path, struct ls_init_data *data)
{
    enum { MOST = 1000, LEAST = 2000 };
    FILE *file = fopen(path, "re");
    unsigned char *seen = calloc(0x110000 / 8, 1);
    if (file == NULL || seen == NULL) {
        int status = ls_cli_error(LOCKSTEP_DATA, "%s: cannot be read: %s", path, strerror(errno));
        if (file != NULL)
            fclose(file);
        free(seen);
        return status;
    }
    data->backend = "TEXT";
    data->bytes = !count_characters(file, seen, data) || data->different > MOST;
    if (data->bytes) {
        fseek(file, 0, SEEK_END);
        data->characters = ftell(file);
        data->different = 256;
    }
    fclose(file);
    free(seen);
    if (data->characters < LEAST)
        return ls_cli_error(LOCKSTEP_DATA, "%s: a text of %lld characters is too short to train on",
                            path, data->characters);
    set_source(&data->train, path);
    data->split = true;
    return 0;
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

static int survey(struct ls_init_data *data)
{
    const char *sources[LS_INIT_FILES];
    struct lockstep_source_options options;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_source_options_init(&options);
    for (size_t i = 0; i < data->train.sources; i++)
        sources[i] = data->train.source[i];
    options.backend = data->backend;
    options.source = sources;
    options.source_count = data->train.sources;
    options.label_source = data->train.label_source[0] != '\0' ? data->train.label_source : NULL;
    int status = lockstep_source_survey(&options, &data->facts, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static int check_pictures(const char *path, struct ls_init_data *data)
{
    const struct lockstep_source_facts *facts = &data->facts;
    bool varies =
        facts->height_least != facts->height_most || facts->width_least != facts->width_most;
    if (facts->classes < 2)
        return ls_cli_error(LOCKSTEP_DATA, "%s: its records are not of two or more classes", path);
    if (facts->records < 20)
        return ls_cli_error(LOCKSTEP_DATA, "%s: %lld records are too few to train on", path,
                            (long long)facts->records);
    if (varies && strcmp(data->backend, "IMAGES") != 0)
        return ls_cli_error(LOCKSTEP_DATA,
                            "%s: its pictures differ in size. hint: make the database with "
                            "'lockstep convert --resize-height N --resize-width N'",
                            path);
    data->split = data->test.sources == 0;
    return 0;
}

int ls_init_look(const char *given, struct ls_init_data *data)
{
    char path[PATH_MAX], text[LS_INIT_PATH];
    *data = (struct ls_init_data){.backend = NULL};
    if (realpath(given, path) == NULL)
        return ls_cli_error(LOCKSTEP_DATA, "%s: %s", given, strerror(errno));
    if (is_there(path, false)) {
        if (!is_list(path))
            return look_at_text(path, data);
        data->backend = "IMAGES";
        set_source(&data->train, path);
    } else if (look_for_idx(path, data)) {
        data->backend = "IDX";
    } else if (look_for_cifar(path, data)) {
        data->backend = "CIFAR";
    } else if (look_for_lmdb(path, data)) {
        data->backend = "LMDB";
    } else if (look_for_pictures(path, data)) {
        data->backend = "IMAGES";
    } else if (look_for_text(path, text)) {
        return look_at_text(text, data);
    } else {
        return ls_cli_error(LOCKSTEP_DATA,
                            "%s: no data that 'init' knows. hint: it knows a folder of pictures "
                            "with a sub-folder for each class, the files of MNIST or CIFAR-10, "
                            "LMDB databases, a list of pictures, and a text",
                            given);
    }
    int status = survey(data);
    return status != 0 ? status : check_pictures(given, data);
}
