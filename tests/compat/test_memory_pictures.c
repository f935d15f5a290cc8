/* Memory of pictures: a plan's forecast for decoding and for caches against the memory that a
 * training touches, in processes of their own. Pictures are large compared with the net, so that
 * decoding takes most of the memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/process.h"
#include "unit/data/picture_files.h"

enum { PICTURES = 12, HEIGHT = 1500, WIDTH = 1800, SIDE = 48, WORKERS = 2 };

static const double MIB = 1048576;

static const struct kind {
    const char *name, *data;
    double record;  /* bytes that are kept of a picture and its label; 0: nothing is */
    double passing; /* bytes that a decoder needs for a picture and gives back behind it */
} kinds[] = {
    {"resized", "backend: IMAGES source: 'list'", 0, 0},
    {"in scans", "backend: IMAGES source: 'scans'", 0, 3.0 * HEIGHT *WIDTH},
    {"resized and kept", "backend: IMAGES source: 'list' cache: true", 3.0 * SIDE *SIDE + 4, 0},
    {"pairs", "backend: IMAGE_PAIRS source: 'pairs'", 0, 0},
    {"pairs that are kept", "backend: IMAGE_PAIRS source: 'pairs' cache: true", 5.0 * SIDE *SIDE,
     0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct figures {
    double total, cache, touched;
};

static void write_file(const char *name, uint8_t *bytes, size_t size)
{
    ls_test_write(ls_test_path(name), bytes, size);
    free(bytes);
}

/* Pictures as JPEG files, the same in several scans, and maps. */
static int write_pictures(void *nothing)
{
    char list[PICTURES * 32] = "", scans[PICTURES * 32] = "", pairs[PICTURES * 32] = "", name[32];
    uint8_t *map = calloc(HEIGHT, WIDTH);
    (void)nothing;
    for (int i = 0; i < PICTURES; i++) {
        size_t size;
        uint8_t *pixels = picture_pixels(HEIGHT, WIDTH, 3, i);
        for (int scan = 0; scan < 2; scan++) {
            uint8_t *bytes = jpeg_file(pixels, HEIGHT, WIDTH, 3, scan == 1, &size);
            snprintf(name, sizeof name, "%s%d.jpg", scan == 1 ? "s" : "p", i);
            write_file(name, bytes, size);
        }
        uint8_t *bytes = png_file(map, WIDTH, HEIGHT, WIDTH, PNG_COLOR_TYPE_GRAY, 8, false, &size);
        snprintf(name, sizeof name, "m%d.png", i);
        write_file(name, bytes, size);
        sprintf(list + strlen(list), "p%d.jpg %d\n", i, i % 10);
        sprintf(scans + strlen(scans), "s%d.jpg %d\n", i, i % 10);
        sprintf(pairs + strlen(pairs), "p%d.jpg m%d.png\n", i, i);
        free(pixels);
    }
    free(map);
    ls_test_write_text(ls_test_path("list"), list);
    ls_test_write_text(ls_test_path("scans"), scans);
    ls_test_write_text(ls_test_path("pairs"), pairs);
    ls_test_write_text(ls_test_path("solver.prototxt"),
                       "net: 'net.prototxt' base_lr: 0.0001 lr_policy: 'fixed' max_iter: 100 "
                       "snapshot: 0 snapshot_after_train: false");
    return 0;
}

static void write_net(const struct kind *kind, const char *more)
{
    char text[2000];
    snprintf(text, sizeof text,
             "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { %s "
             "root_folder: '%s/' new_height: %d new_width: %d batch_size: 4 %s } transform_param { "
             "scale: 0.01 } }\n"
             "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { "
             "num_output: 10 kernel_size: %d weight_filler { type: 'xavier' } } }\n"
             "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'c' bottom: 'label' }\n",
             kind->data, ls_test_directory(), SIDE, SIDE, more,
             strstr(kind->data, "PAIRS") != NULL ? 1 : SIDE);
    ls_test_write_text(ls_test_path("net.prototxt"), text);
}

static int foresee(void *result)
{
    struct figures *figures = result;
    struct lockstep_solver *definition;
    struct lockstep_plan *plan;
    struct lockstep_plan_options options;
    lockstep_plan_options_init(&options);
    options.workers = WORKERS;
    if (lockstep_solver_load("solver.prototxt", NULL, 0, &definition, NULL) != 0 ||
        lockstep_plan_training(definition, &options, &plan, NULL) != 0)
        return 1;
    figures->total = (double)lockstep_plan_memory(plan)->total;
    figures->cache = (double)lockstep_plan_memory(plan)->cache;
    figures->total -= (double)lockstep_plan_memory(plan)->snapshot; /* none is written */
    lockstep_plan_free(plan);
    lockstep_solver_free(definition);
    return 0;
}

/* Three epochs. Memory that is freed between two pictures stays with the process and is counted. */
static int measure(void *result)
{
    struct figures *figures = result;
    struct lockstep_solver *definition;
    struct lockstep_trainer *trainer;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = WORKERS;

    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    if (lockstep_solver_load("solver.prototxt", NULL, 0, &definition, NULL) != 0 ||
        lockstep_trainer_create(definition, &options, &trainer, NULL) != 0 ||
        lockstep_trainer_step(trainer, 9, NULL) != 0)
        return 1;
    figures->touched = ls_test_anonymous_memory();
    lockstep_trainer_free(trainer);
    lockstep_solver_free(definition);
    return 0;
}

static struct figures in_child(int (*work)(void *))
{
    struct figures figures = {0};
    ls_test_in_child(work, &figures, sizeof figures);
    return figures;
}

static void decoding_takes_what_is_forecast(void **state)
{
    (void)state;
    ls_test_skip_uncounted();
    for (int i = 0; i < KINDS; i++) {
        write_net(&kinds[i], "");
        struct figures plan = in_child(foresee), run = in_child(measure);
        double foreseen = plan.total + plan.cache;
        print_message("%s: foreseen %.2f MiB and %.2f MiB kept, touched %.2f MiB\n", kinds[i].name,
                      plan.total / MIB, plan.cache / MIB, run.touched / MIB);
        assert_true(run.touched <= foreseen + 4 * MIB);
        /* With many cores there are decoders that get no picture. */
        if (lockstep_default_workers() <= 2)
            assert_true(foreseen <= run.touched + 10 * MIB + 2 * kinds[i].passing);
    }
}

/* The cache is listed by itself: the total with it is the same, to the byte. */
static void the_cache_is_listed_by_itself(void **state)
{
    enum { ENTRY_MAX = 32 };
    (void)state;
    for (int i = 0; i + 1 < KINDS; i++) {
        double record = kinds[i + 1].record;
        if (record == 0)
            continue;
        const struct kind *without = strstr(kinds[i].data, "scans") != NULL ? &kinds[0] : &kinds[i];
        write_net(without, "");
        struct figures plain = in_child(foresee);
        write_net(&kinds[i + 1], "");
        struct figures kept = in_child(foresee);
        write_net(&kinds[i + 1], "cache_mb: 1");
        struct figures limited = in_child(foresee);
        assert_true(plain.cache == 0);
        assert_true(plain.total == kept.total && plain.total == limited.total);
        assert_true(kept.cache >= PICTURES * record);
        assert_true(kept.cache <= PICTURES * (record + ENTRY_MAX));
        assert_true(limited.cache <= fmin(kept.cache, MIB + PICTURES * ENTRY_MAX));
    }
}

/* In another process, too, so that no memory of it is counted. */
static int write_all(void **state)
{
    (void)state;
    ls_test_directory(); /* made by this process, which removes it */
    in_child(write_pictures);
    return chdir(ls_test_directory());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_takes_what_is_forecast),
        cmocka_unit_test(the_cache_is_listed_by_itself),
    };
    return cmocka_run_group_tests(tests, write_all, NULL);
}
