/* AnnotatedData: pictures with boxes, what happens to both, and what is refused.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/random.h"
#include "data/annotation.h"
#include "data/samples.h"
#include "data_trial.h"
#include "support/annotated_files.h"
#include "support/leveldb_files.h"

enum { RECORDS = 7, HEIGHT = 24, WIDTH = 32, SIZE = 3 * HEIGHT * WIDTH, OUT = 40 };

static const int64_t shape[3] = {3, HEIGHT, WIDTH};

/* Record i has i % 4 boxes; the first shows where the picture is bright. */
static struct annotated_box box_of(int i, int k)
{
    const float x = (float)(2 + 3 * (i % 3) + 8 * k), y = (float)(3 + i);
    return (struct annotated_box){
        .class = 1 + (i + k) % 5,
        .instance = k,
        .corner = {x / WIDTH, y / HEIGHT, (x + 8) / WIDTH, (y + 9) / HEIGHT},
        .difficult = k == 2};
}

static void make_record(int i, bool typed, struct ls_text *record)
{
    static uint8_t pixels[SIZE];
    struct annotated_box boxes[3];
    memset(pixels, 0, sizeof pixels);
    for (int k = 0; k < 3; k++)
        boxes[k] = box_of(i, k);
    const int left = 2 + 3 * (i % 3), top = 3 + i;
    for (int c = 0; c < 3 && i % 4 > 0; c++)
        for (int y = top; y < top + 9; y++)
            memset(pixels + (c * HEIGHT + y) * WIDTH + left, 200, 8);
    annotated_record(record, shape, pixels, boxes, i % 4, typed);
}

static const char *write_database(const char *name, bool typed)
{
    struct ls_text records[RECORDS] = {{0}};
    for (int i = 0; i < RECORDS; i++)
        make_record(i, typed, &records[i]);
    return annotated_write(name, records, RECORDS);
}

static struct ls_definition *layer(const char *path, const char *more)
{
    return trial_layer("name: 'd' type: 'AnnotatedData' top: 'data' top: 'label' "
                       "data_param { backend: LMDB source: '%s' batch_size: 3 } %s",
                       path, more);
}

static struct ls_dataset *open_layer(const char *path, const char *more,
                                     struct ls_definition **definition)
{
    *definition = layer(path, more);
    return trial_dataset(*definition, LOCKSTEP__PHASE__TRAIN, 1);
}

/* What opening fails with. */
static void fails(const char *path, const char *more, int status, const char *says)
{
    struct ls_definition *definition = layer(path, more);
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_dataset *dataset = NULL;
    assert_int_equal(trial_open(definition, LOCKSTEP__PHASE__TRAIN, 1, &dataset, error), status);
    assert_says(error, says);
    free(error);
    ls_definition_free(definition);
}

static void boxes_are_rows(void **state)
{
    (void)state;
    struct ls_definition *definition;
    struct ls_dataset *dataset = open_layer(write_database("rows", true), "", &definition);
    const struct ls_shape *rows = &ls_dataset_tensor(dataset, 1)->shape;
    assert_int_equal(rows->rank, 3);
    assert_int_equal(rows->dim[1], 3); /* the most that a record has */
    struct ls_reader *reader;
    assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
    static float picture[SIZE];
    for (int i = 2 * RECORDS - 1; i >= 0; i--) {
        float row[3][8];
        assert_int_equal(trial_fetch(reader, i, picture, &row[0][0], NULL), 0);
        for (int k = 0; k < 3; k++) {
            const struct annotated_box box = box_of(i % RECORDS, k);
            const bool there = k < i % RECORDS % 4;
            const float expected[8] = {(float)(i % 3), /* the sample of the batch */
                                       (float)box.class,     (float)box.instance, box.corner[0],
                                       box.corner[1],        box.corner[2],       box.corner[3],
                                       box.difficult ? 1 : 0};
            for (int j = 0; j < 8; j++)
                assert_true(row[k][j] == (there ? expected[j] : -1));
        }
        float alone[3][8]; /* without the picture */
        void *out[LS_RECORD_TENSORS] = {NULL, alone};
        assert_int_equal(ls_reader_fetch(reader, i, out, NULL), 0);
        assert_memory_equal(alone, row, sizeof row);
    }
    ls_reader_close(reader);
    ls_dataset_close(dataset);
    ls_definition_free(definition);
}

/* The bright part of a sample: its first and last rows and columns. */
static bool find_bright(const float *picture, double out[4])
{
    int xmin = OUT, ymin = OUT, xmax = -1, ymax = -1;
    for (int y = 0; y < OUT; y++)
        for (int x = 0; x < OUT; x++)
            if (picture[y * OUT + x] > 100) {
                xmin = x < xmin ? x : xmin;
                xmax = x > xmax ? x : xmax;
                ymin = y < ymin ? y : ymin;
                ymax = y > ymax ? y : ymax;
            }
    out[0] = (double)xmin / OUT;
    out[1] = (double)ymin / OUT;
    out[2] = (double)(xmax + 1) / OUT;
    out[3] = (double)(ymax + 1) / OUT;
    return xmax >= 0;
}

/* Whatever happens to a picture, its boxes show the same part of it as before: each is where the
 * pixels are, to a pixel of the sample. */
static void check_places(const char *path, const char *fields, bool cuts)
{
    struct ls_definition *definition;
    struct ls_dataset *dataset = open_layer(path, fields, &definition);
    struct ls_reader *reader;
    static float picture[3 * OUT * OUT];
    int seen = 0, gone = 0;
    assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
    const int64_t *made = ls_dataset_shape(dataset);
    assert_true(made[1] == OUT && made[2] == OUT);
    for (int i = 0; i < 60 * RECORDS; i++) {
        float row[3][8];
        double bright[4];
        if (i % RECORDS % 4 == 0)
            continue;
        assert_int_equal(trial_fetch(reader, i, picture, &row[0][0], NULL), 0);
        if (row[0][1] < 0 || row[0][2] != 0) { /* the first box was dropped */
            gone++;
            continue;
        }
        seen++;
        assert_true(find_bright(picture, bright));
        for (int k = 0; k < 4; k++) {
            const double off = (double)row[0][3 + k] - bright[k];
            if (fabs(off) > 1.01 / OUT)
                fail_msg("sample %d, number %d: %f, but pixels say %f (%s)", i, k,
                         (double)row[0][3 + k], bright[k], fields);
        }
    }
    assert_true(seen > 100);
    assert_true(cuts == (gone > 0));
    ls_reader_close(reader);
    ls_dataset_close(dataset);
    ls_definition_free(definition);
}

#define NEAREST "height: 40 width: 40 interp_mode: NEAREST"
#define PARTS                                                                                      \
    "annotated_data_param { batch_sampler { max_sample: 1 max_trials: 1 } "                        \
    "batch_sampler { sampler { min_scale: 0.5 max_scale: 1 min_aspect_ratio: 0.5 "                 \
    "max_aspect_ratio: 2 } sample_constraint { max_jaccard_overlap: 1 } max_sample: 1 "            \
    "max_trials: 20 } }"

static void boxes_stay_with_their_pixels(void **state)
{
    (void)state;
    const char *path = write_database("places", true);
    check_places(path, "transform_param { mirror: true resize_param { " NEAREST " } }", false);
    check_places(path,
                 "transform_param { mirror: true resize_param { " NEAREST
                 " resize_mode: FIT_LARGE_SIZE_AND_PAD } }",
                 false);
    check_places(path,
                 "transform_param { mirror: true crop_size: 40 resize_param { height: 48 width: 40 "
                 "interp_mode: NEAREST resize_mode: FIT_SMALL_SIZE } }",
                 true);
    check_places(path,
                 "transform_param { mirror: true expand_param { max_expand_ratio: 2 } "
                 "resize_param { " NEAREST " } }",
                 false);
    check_places(path, "transform_param { resize_param { " NEAREST " } } " PARTS, true);
    check_places(path,
                 "transform_param { mirror: true expand_param { max_expand_ratio: 2 } "
                 "emit_constraint { emit_type: CENTER } resize_param { " NEAREST " } } " PARTS,
                 true);
    check_places(path,
                 "transform_param { emit_constraint { emit_type: MIN_OVERLAP emit_overlap: 0.6 } "
                 "resize_param { " NEAREST " resize_mode: FIT_LARGE_SIZE_AND_PAD } } " PARTS,
                 true);
}

/* A sample is a function of its ordinal: another reader, another order. */
static void samples_depend_on_their_ordinals_alone(void **state)
{
    (void)state;
    struct ls_definition *definition;
    struct ls_dataset *dataset =
        open_layer(write_database("alone", true),
                   "transform_param { mirror: true expand_param { prob: 0.5 max_expand_ratio: 3 } "
                   "distort_param { brightness_prob: 0.5 brightness_delta: 32 hue_prob: 0.5 "
                   "hue_delta: 18 random_order_prob: 0.5 } resize_param { height: 9 width: 11 "
                   "interp_mode: [LINEAR, AREA, NEAREST, CUBIC, LANCZOS4] } } " PARTS,
                   &definition);
    static float first[2 * RECORDS][3 * 9 * 11], picture[3 * 9 * 11];
    float rows[2 * RECORDS][3][8], row[3][8];
    int different = 0;
    for (int pass = 0; pass < 2; pass++) {
        struct ls_reader *reader;
        assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
        for (int n = 0; n < 2 * RECORDS; n++) {
            const int i = pass == 0 ? n : (5 * n + 3) % (2 * RECORDS);
            assert_int_equal(trial_fetch(reader, i, picture, &row[0][0], NULL), 0);
            if (pass == 0) {
                memcpy(first[i], picture, sizeof picture);
                memcpy(rows[i], row, sizeof row);
            }
            assert_memory_equal(first[i], picture, sizeof picture);
            assert_memory_equal(rows[i], row, sizeof row);
        }
        ls_reader_close(reader);
    }
    for (int i = 0; i < RECORDS; i++) /* another epoch, other choices */
        different += memcmp(first[i], first[RECORDS + i], sizeof first[0]) != 0;
    assert_true(different >= RECORDS - 2);
    ls_dataset_close(dataset);
    ls_definition_free(definition);
}

/* In the test phase nothing is random. */
static void tests_only_resize(void **state)
{
    (void)state;
    struct ls_definition *definition =
        layer(write_database("phase", true),
              "transform_param { mirror: true expand_param { max_expand_ratio: 3 } "
              "distort_param { brightness_prob: 1 brightness_delta: 90 } "
              "resize_param { " NEAREST " } } " PARTS);
    struct ls_dataset *dataset = trial_dataset(definition, LOCKSTEP__PHASE__TEST, 1);
    struct ls_reader *reader;
    static float picture[3 * OUT * OUT];
    float row[3][8];
    assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
    assert_int_equal(trial_fetch(reader, 5, picture, &row[0][0], NULL), 0);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < OUT; y++)
            for (int x = 0; x < OUT; x++) {
                const int i = y * HEIGHT / OUT, k = x * WIDTH / OUT;
                const bool bright = i >= 8 && i < 17 && k >= 8 && k < 16;
                assert_true(picture[(c * OUT + y) * OUT + x] == (bright ? 200 : 0));
            }
    assert_true(row[0][3] == box_of(5, 0).corner[0] && row[0][6] == box_of(5, 0).corner[3]);
    ls_reader_close(reader);
    ls_dataset_close(dataset);
    ls_definition_free(definition);
}

/* ---- What is refused ---- */

/* A database of a good record and a bad one, and what is said of the latter. */
static void check_bad(const struct annotated_box *box, const char *says)
{
    static int number;
    char name[32];
    struct ls_text records[2] = {{0}};
    make_record(3, true, &records[0]);
    make_record(3, true, &records[1]);
    annotated_add_box(&records[1], box);
    snprintf(name, sizeof name, "bad%d", number++);
    const char *path = annotated_write(name, records, 2);
    fails(path, "", LOCKSTEP_DATA, says);
    fails(path, "", LOCKSTEP_DATA, "record 1 (key \"00000001_1.jpg\"): box 4");
    struct ls_definition *definition =
        trial_layer("name: 'd' type: 'AnnotatedData' top: 'data' top: 'label' data_param { "
                    "backend: LMDB source: '%s' batch_size: 2 on_bad_record: SKIP }",
                    path);
    struct ls_dataset *dataset = trial_dataset(definition, LOCKSTEP__PHASE__TRAIN, 1);
    struct ls_reader *reader;
    static float picture[2][SIZE];
    float row[2][3][8];
    assert_int_equal(ls_dataset_tensor(dataset, 1)->shape.dim[1], 3); /* of the good one */
    assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(trial_fetch(reader, i, picture[i], &row[i][0][0], NULL), 0);
        assert_true(row[i][0][0] == (float)i);
    }
    assert_memory_equal(picture[0], picture[1], sizeof picture[0]);
    assert_true(row[0][2][1] == row[1][2][1]);
    ls_reader_close(reader);
    ls_dataset_close(dataset);
    ls_definition_free(definition);
}

static void bad_boxes_are_named(void **state)
{
    (void)state;
    const struct {
        struct annotated_box box;
        const char *says;
    } bad[] = {
        {{.corner = {NAN, 0, 1, 1}}, "a corner is not a finite number"},
        {{.corner = {0, 0, 1, INFINITY}}, "a corner is not a finite number"},
        {{.corner = {0.5F, 0, 0.25F, 1}}, "it ends before it begins"},
        {{.corner = {0, 0.5F, 1, 0.25F}}, "it ends before it begins"},
        {{.class = -1, .corner = {0, 0, 1, 1}}, "its class is below 0 or beyond 2^24"},
        {{.class = 1 << 25, .corner = {0, 0, 1, 1}}, "its class is below 0 or beyond 2^24"},
        {{.instance = 1 << 25, .corner = {0, 0, 1, 1}}, "its instance is beyond 2^24"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_bad(&bad[i].box, bad[i].says);
}

/* A group whose label is no number, or whose box is none. */
static void groups_of_other_fields_are_refused(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= 2; number++) {
        struct ls_text record = {0}, group = {0};
        struct ls_annotation annotation;
        struct ls_problem problem;
        make_record(1, true, &record);
        if (number == 1)
            ls_wire_add_bytes(&group, number, "1", 1);
        else
            annotated_number(&group, number, 1);
        annotated_message(&record, 3, &group);
        assert_int_equal(
            ls_annotation_read((const uint8_t *)record.data, record.length, &annotation, &problem),
            LOCKSTEP_DATA);
        assert_non_null(strstr(problem.message, "box 2: a field of its group has another type"));
        ls_text_free(&record);
    }
}

/* Boxes outside are dropped, those that reach outside are cut, those without size are dropped. */
static void boxes_are_cut_to_the_picture(void **state)
{
    (void)state;
    const struct annotated_box boxes[] = {
        {.class = 1, .corner = {1.5F, 0.25F, 2, 0.5F}},
        {.class = 2, .corner = {-1e30F, -0.5F, 0.5F, 3}},
        {.class = 3, .corner = {0.25F, 0.25F, 0.25F, 0.75F}},
        {.class = 4, .corner = {0.25F, 0.5F, 0.75F, 1}},
    };
    struct ls_text record = {0};
    static uint8_t pixels[SIZE];
    annotated_record(&record, shape, pixels, boxes, 4, true);
    const char *path = annotated_write("outside", &record, 1);
    struct ls_definition *definition;
    struct ls_dataset *dataset = open_layer(path, "", &definition);
    struct ls_reader *reader;
    static float picture[SIZE];
    float row[4][8];
    const float expected[4][8] = {{0, 2, 0, 0, 0, 0.5F, 1, 0},
                                  {0, 4, 0, 0.25F, 0.5F, 0.75F, 1, 0},
                                  {-1, -1, -1, -1, -1, -1, -1, -1},
                                  {-1, -1, -1, -1, -1, -1, -1, -1}};
    assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
    assert_int_equal(trial_fetch(reader, 0, picture, &row[0][0], NULL), 0);
    assert_memory_equal(row, expected, sizeof row);
    ls_reader_close(reader);
    ls_dataset_close(dataset);
    ls_definition_free(definition);
}

/* Whatever is cut off a record, or changed in it, it is one or it is not: nothing else happens. */
static void damaged_records_are_found(void **state)
{
    (void)state;
    struct ls_text record = {0};
    make_record(3, true, &record);
    const size_t picture = record.length - 140; /* behind that, the boxes */
    int refused = 0;
    for (size_t size = 0; size < record.length; size += size < picture ? 97 : 1) {
        uint8_t *bytes = malloc(size + 1); /* so that reading beyond is found */
        struct ls_annotation annotation;
        memcpy(bytes, record.data, size);
        const int status = ls_annotation_read(bytes, size, &annotation, NULL);
        assert_true(status == 0 || status == LOCKSTEP_DATA);
        if (status == 0) {
            float row[3 * LS_BOX_NUMBERS];
            assert_in_range(annotation.boxes, 0, 3);
            ls_annotation_rows(bytes, size, 3, row);
        }
        refused += status != 0;
        free(bytes);
    }
    assert_true(refused > 100);
    const uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "damage");
    for (uint64_t i = 0; i < 3000; i++) {
        uint8_t *bytes = malloc(record.length);
        struct ls_annotation annotation;
        memcpy(bytes, record.data, record.length);
        const uint32_t at = ls_random_below(key, i, 0, 140);
        bytes[record.length - 1 - at] = (uint8_t)ls_random_below(key, i, 1, 256);
        const int status = ls_annotation_read(bytes, record.length, &annotation, NULL);
        assert_true(status == 0 || status == LOCKSTEP_DATA);
        free(bytes);
    }
    ls_text_free(&record);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const char *path = write_database("fits", true);
    const struct {
        const char *fields;
        int status;
        const char *says;
    } wrong[] = {
        {"annotated_data_param { max_boxes: 2 }", LOCKSTEP_DATA,
         "it has 3 boxes, and there are 2 rows for them"},
        {PARTS, LOCKSTEP_DEFINITION, "make pictures of different sizes"},
        {"transform_param { expand_param { max_expand_ratio: 2 } }", LOCKSTEP_DEFINITION,
         "make pictures of different sizes"},
        {"transform_param { resize_param { height: 9 } }", LOCKSTEP_DEFINITION,
         "needs a height and a width"},
        {"transform_param { resize_param { height: 9 width: 9 prob: 0.5 } }", LOCKSTEP_DEFINITION,
         "prob other than 1"},
        {"transform_param { resize_param { " NEAREST " width_scale: 9 } }", LOCKSTEP_DEFINITION,
         "height_scale and width_scale are not supported"},
        {"transform_param { resize_param { " NEAREST " } resize_param { height: 8 width: 8 } }",
         LOCKSTEP_DEFINITION, "resize_param is given several times"},
        {"transform_param { resize_param { height: 9 width: 9 pad_value: [1, 2] } }",
         LOCKSTEP_DEFINITION, "give one value, or as many as the records have channels"},
        {"transform_param { distort_param { hue_prob: 2 } }", LOCKSTEP_DEFINITION,
         "distort_param: hue_prob must be a probability"},
        {"transform_param { noise_param { prob: 1 } }", LOCKSTEP_DEFINITION,
         "noise_param of forks of Caffe is not supported"},
        {"annotated_data_param { batch_sampler { sampler { min_scale: 0.9 max_scale: 0.3 } } }",
         LOCKSTEP_DEFINITION, "0 < min_scale <= max_scale <= 1"},
        {"annotated_data_param { batch_sampler { max_trials: 0 } }", LOCKSTEP_DEFINITION,
         "max_trials must be 1 to 10000"},
        {"annotated_data_param { yolo_data_type: 1 }", LOCKSTEP_DEFINITION, "yolo_data_type"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        fails(path, wrong[i].fields, wrong[i].status, wrong[i].says);
    fails(write_database("untyped", false), "", LOCKSTEP_DATA,
          "it does not say that its annotations are boxes");
    struct ls_definition *definition;
    ls_dataset_close(open_layer(ls_test_path("untyped"), "annotated_data_param { anno_type: BBOX }",
                                &definition));
    ls_definition_free(definition);
}

static void classes_have_names(void **state)
{
    (void)state;
    const char *path = write_database("names", true);
    ls_test_write_text(ls_test_path("map.prototxt"),
                       "item { name: 'none' label: 0 } item { label: 3 name: 'n1' "
                       "display_name: 'dog' }");
    ls_test_write_text(ls_test_path("far.prototxt"), "item { name: 'x' label: 70000 }");
    ls_test_write_text(ls_test_path("odd.prototxt"), "item { names: 'x' }");
    char fields[300];
    snprintf(fields, sizeof fields, "annotated_data_param { label_map_file: '%s' }",
             ls_test_path("map.prototxt"));
    struct ls_definition *definition;
    struct ls_dataset *dataset = open_layer(path, fields, &definition);
    assert_int_equal(ls_dataset_classes(dataset), 4);
    assert_string_equal(ls_dataset_class_name(dataset, 0), "none");
    assert_string_equal(ls_dataset_class_name(dataset, 1), "");
    assert_string_equal(ls_dataset_class_name(dataset, 3), "dog");
    ls_dataset_close(dataset);
    ls_definition_free(definition);
    snprintf(fields, sizeof fields, "annotated_data_param { label_map_file: '%s' }",
             ls_test_path("far.prototxt"));
    fails(path, fields, LOCKSTEP_DATA, "its label must be 0 to 65535");
    ls_test_write_text(ls_test_path("far.prototxt"),
                       "item { name: 'x' label: 2 } item { name: 'y' label: 2 }");
    fails(path, fields, LOCKSTEP_DATA, "item 2: label 2 is 'y' here, and 'x' in an item before");
    snprintf(fields, sizeof fields, "annotated_data_param { label_map_file: '%s' }",
             ls_test_path("odd.prototxt"));
    fails(path, fields, LOCKSTEP_DEFINITION, "odd.prototxt:1:8");
}

/* A Data layer finds no Datum in such a database, nor an AnnotatedData layer boxes in Caffe's. */
static void kinds_of_records_are_told_apart(void **state)
{
    (void)state;
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    const char *path = write_database("kinds", true);
    assert_int_equal(
        trial_source(&source, error, "data_param { backend: LMDB source: '%s' }", path),
        LOCKSTEP_DATA);
    assert_says(error, "AnnotatedData");
    free(error);
    struct ls_text record = {0};
    annotated_number(&record, 1, 1);
    fails(annotated_write("plain", &record, 1), "", LOCKSTEP_DATA, "it is not an AnnotatedDatum");
}

static void leveldb_is_read_too(void **state)
{
    (void)state;
    struct leveldb_writer writer = {0};
    const char *path = ls_test_path("leveldb");
    leveldb_begin(&writer, path, true, 1 << 20);
    for (int i = 0; i < RECORDS; i++) {
        struct ls_text record = {0};
        char key[16];
        make_record(i, true, &record);
        snprintf(key, sizeof key, "%08d", i);
        leveldb_add(&writer, key, record.data, record.length);
        ls_text_free(&record);
    }
    leveldb_end(&writer);
    struct ls_definition *definition =
        trial_layer("name: 'd' type: 'AnnotatedData' top: 'data' top: 'label' "
                    "data_param { source: '%s' batch_size: 3 }",
                    path);
    struct ls_dataset *dataset = trial_dataset(definition, LOCKSTEP__PHASE__TRAIN, 1);
    struct ls_reader *reader;
    static float picture[SIZE];
    float row[3][8];
    assert_int_equal(ls_reader_open(dataset, &reader, NULL), 0);
    assert_int_equal(trial_fetch(reader, 3, picture, &row[0][0], NULL), 0);
    assert_true(row[2][1] == (float)box_of(3, 2).class && row[2][7] == 1);
    ls_reader_close(reader);
    ls_dataset_close(dataset);
    ls_definition_free(definition);
}

/* Memory that cannot be had is an error, and nothing is lost. */
static void failures_of_memory_are_reported(void **state)
{
    (void)state;
    struct ls_definition *definition =
        layer(write_database("memory", true),
              "transform_param { mean_value: 100 expand_param { max_expand_ratio: 3 } "
              "distort_param { contrast_prob: 1 contrast_lower: 2 contrast_upper: 3 } "
              "resize_param { height: 9 width: 11 resize_mode: FIT_LARGE_SIZE_AND_PAD "
              "pad_value: 7 } } " PARTS);
    static float picture[3 * 9 * 11];
    float row[3][8];
    void *out[LS_RECORD_TENSORS] = {picture, row};
    assert_true(trial_fail_allocations(definition, RECORDS, out) > 15);
    ls_definition_free(definition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_rows),
        cmocka_unit_test(boxes_stay_with_their_pixels),
        cmocka_unit_test(samples_depend_on_their_ordinals_alone),
        cmocka_unit_test(tests_only_resize),
        cmocka_unit_test(bad_boxes_are_named),
        cmocka_unit_test(groups_of_other_fields_are_refused),
        cmocka_unit_test(boxes_are_cut_to_the_picture),
        cmocka_unit_test(damaged_records_are_found),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(classes_have_names),
        cmocka_unit_test(kinds_of_records_are_told_apart),
        cmocka_unit_test(leveldb_is_read_too),
        cmocka_unit_test(failures_of_memory_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
