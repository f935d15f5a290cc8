/* Data of golden networks, made from notes in their files: numbers from integer arithmetic alone.
 *
 *   # idx: FILE DIMENSIONS... [below N] [repeat N]     # cifar: FILE RECORDS [repeat N]
 *   # lmdb: FOLDER FILE                    the records of a CIFAR file
 *   # mean: FILE FILE                      the mean of a CIFAR file, as a binaryproto
 *   # pictures: FOLDER CLASSES EACH H W    PNG files in a folder a class
 *   # npy: FILE TYPE BELOW EXTENTS...      an array of u1, i4, f4 or f8: whole numbers below BELOW
 *   # hdf5: FILE ARRAY BELOW EXTENTS...    another array of the file: whole numbers below BELOW
 *   # windows: FILE FOLDER CLASSES EACH H W COUNT   a file of COUNT windows in each of such
 * pictures # leveldb: FOLDER FILE                 the records of a CIFAR file # gains: FILE CLASSES
 * a square matrix, as a binaryproto # pairs: FOLDER COUNT H W CLASSES      PNG files in
 * FOLDER/pictures, label maps in FOLDER/maps
 *
 *   # text: FILE LETTERS COUNT            letters from a on, as a text
 *   # ids: FILE BELOW COUNT                16-bit ids without a header
 *   # records: NAME BELOW RECORDS MOST     NAME.npy and NAME.offsets.npy: i4, records of up to MOST
 *                                          numbers, of the same lengths in all files
 *   # boxes: FOLDER COUNT H W CLASSES      a database of pictures with boxes of such classes
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "golden/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

#include "base/text.h"
#include "data/datum.h"
#include "data/mean_file.h"
#include "lockstep/lockstep.h"
#include "support/annotated_files.h"
#include "support/case_data.h"
#include "support/leveldb_files.h"
#include "support/npy_files.h"
#include "support/support.h"
#include "unit/data/picture_files.h"

static void make_folder(const char *path)
{
    if (mkdir(path, 0700) != 0)
        fail_msg("cannot make %s", path);
}

/* Bytes below `below`, those of the stream that is called as the file. */
static void write_png(const char *path, int height, int width, int channels, unsigned below)
{
    size_t row = (size_t)width * (size_t)channels, count = row * (size_t)height, size;
    uint8_t *pixels = malloc(count);
    assert_non_null(pixels);
    uint64_t stream = case_stream(path);
    for (size_t i = 0; i < count; i++)
        pixels[i] = (uint8_t)((case_word(stream + i) >> 56) % below);
    int type = channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY;
    uint8_t *bytes = png_file(pixels, row, height, width, type, 8, false, &size);
    ls_test_write(path, bytes, size);
    free(bytes);
    free(pixels);
}

/* A folder with a folder for each class, and a list file beside it. */
static void write_pictures(const char *note)
{
    struct ls_text list = {0};
    char folder[64], path[128];
    int classes, each, height, width;
    if (sscanf(note, "%63s %d %d %d %d", folder, &classes, &each, &height, &width) != 5)
        fail_msg("a note is damaged: %s", note);
    make_folder(folder);
    for (int c = 0; c < classes; c++) {
        snprintf(path, sizeof path, "%s/class%d", folder, c);
        make_folder(path);
        for (int i = 0; i < each; i++) {
            snprintf(path, sizeof path, "%s/class%d/%d.png", folder, c, i);
            write_png(path, height, width, 3, 256);
            ls_text_format(&list, "%s %d\n", path, c);
        }
    }
    snprintf(path, sizeof path, "%s.txt", folder);
    ls_test_write_text(path, list.data);
    ls_text_free(&list);
}

static void write_pairs(const char *note)
{
    char folder[64], path[128];
    int count, height, width;
    unsigned classes;
    if (sscanf(note, "%63s %d %d %d %u", folder, &count, &height, &width, &classes) != 5)
        fail_msg("a note is damaged: %s", note);
    make_folder(folder);
    snprintf(path, sizeof path, "%s/pictures", folder);
    make_folder(path);
    snprintf(path, sizeof path, "%s/maps", folder);
    make_folder(path);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/pictures/%d.png", folder, i);
        write_png(path, height, width, 3, 256);
        snprintf(path, sizeof path, "%s/maps/%d.png", folder, i);
        write_png(path, height, width, 1, classes);
    }
}

/* The numbers of the stream that is called as the file, of the type that the note says. */
static void write_array(const char *note)
{
    char name[64], type[8], shape[64] = "(", descr[16];
    unsigned below, extent;
    size_t count = 1;
    int used = 0;
    if (sscanf(note, "%63s %7s %u%n", name, type, &below, &used) != 3)
        fail_msg("a note is damaged: %s", note);
    for (note += used; sscanf(note, "%*[ ]%u%n", &extent, &used) == 1; note += used) {
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%u, ", extent);
        count *= extent;
    }
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), ")");
    snprintf(descr, sizeof descr, "<%s", type);
    size_t each = (size_t)(type[1] - '0');
    char *numbers = malloc(count * each);
    assert_non_null(numbers);
    uint64_t stream = case_stream(name);
    for (size_t i = 0; i < count; i++) {
        uint32_t value = (uint32_t)((case_word(stream + i) >> 40) % below);
        float single = (float)value;
        double real = value;
        const void *from = type[0] != 'f' ? (const void *)&value
                           : each == 4    ? (void *)&single
                                          : &real;
        memcpy(numbers + i * each, from, each);
    }
    write_npy(name, descr, shape, numbers, count * each);
    free(numbers);
}

/* Multiples of 1/8 from 0 to 1. */
static void write_gains(const char *note)
{
    char path[64];
    int classes;
    if (sscanf(note, "%63s %d", path, &classes) != 2)
        fail_msg("a note is damaged: %s", note);
    const int64_t shape[3] = {1, classes, classes};
    float *gains = malloc((size_t)(classes * classes) * sizeof *gains);
    assert_non_null(gains);
    for (int i = 0; i < classes * classes; i++)
        gains[i] = (float)((case_word(case_stream(path) + (uint64_t)i) >> 40) % 9) / 8;
    assert_int_equal(ls_mean_write(path, shape, gains, NULL), 0);
    free(gains);
}

static void write_hdf5(const char *note)
{
    char name[64], array[64];
    hsize_t extent[8], count = 1;
    unsigned below;
    int used = 0, rank = 0;
    if (sscanf(note, "%63s %63s %u%n", name, array, &below, &used) != 3)
        fail_msg("a note is damaged: %s", note);
    unsigned long long number;
    for (note += used; rank < 8 && sscanf(note, "%*[ ]%llu%n", &number, &used) == 1; note += used) {
        extent[rank++] = number;
        count *= number;
    }
    float *numbers = malloc(count * sizeof *numbers);
    assert_non_null(numbers);
    uint64_t stream = case_stream(array);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)((case_word(stream + i) >> 40) % below);
    bool there = access(name, F_OK) == 0;
    hid_t file = there ? H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT)
                       : H5Fcreate(name, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(rank, extent, NULL);
    hid_t set =
        H5Dcreate2(file, array, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) < 0)
        fail_msg("cannot write %s", name);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    free(numbers);
}

static void write_windows(const char *note)
{
    char name[64], folder[64];
    int classes, each, height, width, count;
    struct ls_text text = {0};
    if (sscanf(note, "%63s %63s %d %d %d %d %d", name, folder, &classes, &each, &height, &width,
               &count) != 7)
        fail_msg("a note is damaged: %s", note);
    uint64_t stream = case_stream(name);
    for (int p = 0; p < classes * each; p++) {
        ls_text_format(&text, "# %d\n%s/class%d/%d.png\n3\n%d\n%d\n%d\n", p, folder, p / each,
                       p % each, height, width, count);
        for (int i = 0; i < count; i++) {
            int x = (int)(case_word(stream++) % (uint64_t)(width - 8));
            int y = (int)(case_word(stream++) % (uint64_t)(height - 8));
            ls_text_format(&text, "%d 0.%d %d %d %d %d\n", 1 + i % 3, i % 9, x, y, x + 4 + i % 4,
                           y + 7 - i % 3);
        }
    }
    ls_test_write_text(name, text.data);
    ls_text_free(&text);
}

/* CIFAR's bytes as a Datum. */
static void write_leveldb(const char *note)
{
    enum { RECORD = 3073 };
    char to[64], from[64], key[24];
    size_t size, bytes;
    struct leveldb_writer writer;
    struct ls_buffer room = {0};
    if (sscanf(note, "%63s %63s", to, from) != 2)
        fail_msg("a note is damaged: %s", note);
    char *all = ls_test_read(from, &size);
    leveldb_begin(&writer, to, true, 8192);
    for (size_t i = 0; i < size / RECORD; i++) {
        static const int64_t shape[3] = {3, 32, 32};
        const uint8_t *record = (const uint8_t *)all + i * RECORD;
        const int32_t label = record[0];
        struct ls_record made = {.count = 2};
        ls_record_set_image(&made, LS_U8, shape, record + 1);
        made.tensor[1].data = &label;
        const uint8_t *datum = ls_datum_write(&made, true, &room, &bytes);
        snprintf(key, sizeof key, "%08zu", i);
        leveldb_add(&writer, key, datum, bytes);
    }
    leveldb_end(&writer);
    ls_buffer_free(&room);
    free(all);
}

static void use_cifar(const char *note, bool mean)
{
    char to[64], from[64];
    struct lockstep_source_options options;
    struct lockstep_error *error = lockstep_error_new();
    if (sscanf(note, "%63s %63s", to, from) != 2)
        fail_msg("a note is damaged: %s", note);
    lockstep_source_options_init(&options);
    options.backend = "CIFAR";
    options.source = (const char *const[]){from};
    options.source_count = 1;
    int status = mean ? lockstep_mean(&options, to, NULL, NULL, error)
                      : lockstep_convert(&options, to, NULL, error);
    if (status != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
}

static void write_lmdb(const char *note)
{
    use_cifar(note, false);
}

static void write_mean(const char *note)
{
    use_cifar(note, true);
}

static void write_boxes(const char *note)
{
    char folder[64];
    int count, height, width, classes;
    if (sscanf(note, "%63s %d %d %d %d", folder, &count, &height, &width, &classes) != 5)
        fail_msg("a note is damaged: %s", note);
    annotated_make_set(folder, count, height, width, classes, case_stream(folder), case_word);
}

/* Numbers of the stream that is called as the file, of `size` bytes each, from `first` on. */
static void write_numbers(const char *note, size_t size, unsigned first)
{
    char path[64];
    unsigned below, count;
    if (sscanf(note, "%63s %u %u", path, &below, &count) != 3)
        fail_msg("a note is damaged: %s", note);
    uint8_t *bytes = calloc(count, size);
    assert_non_null(bytes);
    for (unsigned i = 0; i < count; i++)
        bytes[i * size] =
            (uint8_t)(first + (case_word(case_stream(path) + (uint64_t)i) >> 40) % below);
    ls_test_write(path, bytes, count * size);
    free(bytes);
}

static void write_text(const char *note)
{
    write_numbers(note, 1, 'a');
}

static void write_ids(const char *note)
{
    write_numbers(note, 2, 0);
}

static void write_records(const char *note)
{
    enum { RECORDS_MOST = 256, NUMBERS_MOST = 64 };
    static int32_t offsets[RECORDS_MOST + 1], numbers[RECORDS_MOST * NUMBERS_MOST];
    char name[48], path[64], shape[32];
    unsigned below, records, most;
    if (sscanf(note, "%47s %u %u %u", name, &below, &records, &most) != 4 ||
        records > RECORDS_MOST || most > NUMBERS_MOST)
        fail_msg("a note is damaged: %s", note);
    for (unsigned i = 0; i < records; i++)
        offsets[i + 1] = offsets[i] +
                         (int32_t)((case_word(case_stream("records") + (uint64_t)i) >> 40) % most) +
                         1;
    const size_t count = (size_t)offsets[records];
    for (size_t i = 0; i < count; i++)
        numbers[i] = (int32_t)((case_word(case_stream(name) + (uint64_t)i) >> 40) % below);
    snprintf(path, sizeof path, "%s.npy", name);
    snprintf(shape, sizeof shape, "(%zu,)", count);
    write_npy(path, "<i4", shape, numbers, count * sizeof *numbers);
    snprintf(path, sizeof path, "%s.offsets.npy", name);
    snprintf(shape, sizeof shape, "(%u,)", records + 1);
    write_npy(path, "<i4", shape, offsets, (records + 1) * sizeof *offsets);
}

void golden_write_data(const char *text)
{
    static const struct {
        const char *kind;
        void (*write)(const char *note);
    } kinds[] = {{"# lmdb: ", write_lmdb},         {"# mean: ", write_mean},
                 {"# pictures: ", write_pictures}, {"# npy: ", write_array},
                 {"# hdf5: ", write_hdf5},         {"# leveldb: ", write_leveldb},
                 {"# windows: ", write_windows},   {"# gains: ", write_gains},
                 {"# pairs: ", write_pairs},       {"# boxes: ", write_boxes},
                 {"# text: ", write_text},         {"# ids: ", write_ids},
                 {"# records: ", write_records}};
    case_write_files(text);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            size_t length = strlen(kinds[i].kind);
            if (strncmp(line, kinds[i].kind, length) == 0)
                kinds[i].write(line + length);
        }
    }
}
