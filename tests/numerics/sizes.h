/* Pictures of different sizes with label maps, and nets that accept any size.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_NUMERICS_SIZES_H
#define LS_TESTS_NUMERICS_SIZES_H

#include <sys/stat.h>

#include "trainings/training.h"
#include "unit/data/map_files.h"

enum { CLASSES = 4, IGNORED = 7 };

/* ---- Pictures -------------------------------------------------------------------------------- */

struct size {
    int height, width;
};

static const struct size sizes[] = {{12, 12}, {9, 14}, {16, 8}, {7, 7}, {11, 17}, {13, 10}};
enum { SIZES = sizeof sizes / sizeof *sizes, PICTURES = 27, PIXELS_MAX = 8192 };

static inline struct size size_of(int picture)
{
    return sizes[(picture * picture * 7 + picture / 3) % SIZES]; /* some neighbours are alike */
}

/* One pixel in nine is not to be counted. */
static inline uint8_t label_of(uint32_t picture, uint32_t at)
{
    uint32_t drawn = ls_random_below(4, picture, at, 9 * CLASSES);
    return (uint8_t)(drawn % 9 == 0 ? IGNORED : drawn / 9);
}

/* Brightness says something of the label, colours do not. */
static inline uint8_t pixel_of(uint32_t picture, uint32_t at, uint32_t channel)
{
    uint32_t noise = ls_random_below(5, picture, at * 3 + channel, 90);
    return (uint8_t)(noise + label_of(picture, at) % CLASSES * 40U);
}

static inline void write_png(const char *folder, int index, const uint8_t *pixels, struct size size,
                             int channels)
{
    char name[32];
    size_t bytes;
    snprintf(name, sizeof name, "%03d.png", index);
    uint8_t *file =
        png_file(pixels, (size_t)(size.width * channels), size.height, size.width,
                 channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8, false, &bytes);
    ls_test_write(file_at(folder, name), file, bytes);
    free(file);
}

/* Folder `name` with picture `index` of a size, folder "<name>_maps" with its map. */
static inline void write_pair(const char *name, int index, struct size size)
{
    static uint8_t pixels[3 * PIXELS_MAX], labels[PIXELS_MAX];
    char maps[64];
    uint32_t count = (uint32_t)(size.height * size.width);
    assert_true(count <= sizeof labels);
    for (uint32_t at = 0; at < count; at++) {
        labels[at] = label_of((uint32_t)index, at);
        for (uint32_t c = 0; c < 3; c++)
            pixels[3 * at + c] = pixel_of((uint32_t)index, at, c);
    }
    snprintf(maps, sizeof maps, "%s_maps", name);
    write_png(name, index, pixels, size, 3);
    write_png(maps, index, labels, size, 1);
}

/* How many pixels pictures [first, end) have, and how many of them count. */
static inline void count_pixels(int first, int end, double *valid, double *all)
{
    *valid = *all = 0;
    for (int i = first; i < end; i++)
        for (int at = 0; at < size_of(i).height * size_of(i).width; at++) {
            *all += 1;
            *valid += label_of((uint32_t)i, (uint32_t)at) != IGNORED;
        }
}

/* ---- Nets ------------------------------------------------------------------------------------ */

/* A net of tests/nets (sizes_*) and what a test varies of it; NULL: nothing stands there. */
struct size_net {
    const char *file;
    const char *norm; /* fields of norms */
    const char *loss; /* fields of the loss */
    const char *more; /* layers behind the loss */
    const char *type; /* of a layer that the file leaves open */
};

/* Figures of tests: exact over all pixels. */
#define FIGURES                                                                                    \
    "layer { name: 'a' type: 'Accuracy' bottom: 'score' bottom: 'label' top: 'accuracy'\n"         \
    "  include { phase: TEST } accuracy_param { ignore_label: 7 } }\n"                             \
    "layer { name: 'i' type: 'MeanIoU' bottom: 'score' bottom: 'label' top: 'iou'\n"               \
    "  include { phase: TEST } mean_iou_param { ignore_label: 7 } }\n"

#define SGD "base_lr: 0.05 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed'\n"

/* A net with these data layers. */
static inline const char *net_on(const char *data, const struct size_net *net)
{
    return ls_test_net(net->file,
                       LS_TEST_VALUES({"data", data}, {"norm", net->norm}, {"loss", net->loss},
                                      {"more", net->more}, {"type", net->type}));
}

/* A solver for the pictures in folder `name`; `test` is a data layer for the test phase. */
static inline struct lockstep_solver *make_solver(const char *settings, const char *name,
                                                  const char *data, const char *test,
                                                  struct size_net net)
{
    const char *layers =
        ls_test_text("layer { name: 'd' type: 'Data' top: 'data' top: 'label'%s\n"
                     "  transform_param { scale: 0.02 mean_value: 90 mirror: true }\n"
                     "  data_param { backend: IMAGE_PAIRS source: '%s/%s'\n"
                     "    label_source: '%s/%s_maps' %s } }\n%s",
                     test[0] != '\0' ? " include { phase: TRAIN }" : "", ls_test_directory(), name,
                     ls_test_directory(), name, data, test);
    return load_solver("%s random_seed: 11 net_param { %s }\n", settings, net_on(layers, &net));
}

static inline const char *test_layer(const char *name, const char *fields)
{
    return ls_test_text(
        "layer { name: 'td' type: 'Data' top: 'data' top: 'label' include { phase: TEST }\n"
        "  transform_param { scale: 0.02 mean_value: 90 }\n"
        "  data_param { backend: IMAGE_PAIRS source: '%s/%s' label_source: '%s/%s_maps'\n"
        "    %s } }\n",
        ls_test_directory(), name, ls_test_directory(), name, fields);
}

#endif
