/* Pictures with label maps: which files belong together, and their labels.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "data/mean.h"
#include "data/reader.h"
#include "data/samples.h"
#include "data/source.h"
#include "data_trial.h"
#include "map_files.h"

static int open_pairs(const char *source, const char *maps, struct ls_source **out,
                      struct ls_error *error)
{
    return trial_source(out, error,
                        "data_param { backend: IMAGE_PAIRS source: '%s' label_source: '%s' "
                        "is_color: false }",
                        source, maps != NULL ? maps : "");
}

static struct ls_source *must_open(const char *source, const char *maps)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *out = NULL;
    if (open_pairs(source, maps, &out, error) != 0)
        fail_msg("%s", trial_text(error));
    free(error);
    return out;
}

static void must_fail(const char *source, const char *maps, int status, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *out;
    assert_int_equal(open_pairs(source, maps, &out, error), status);
    assert_says(error, words);
    free(error);
}

/* ---- Files ---- */

static void every_kind_of_label_map_is_read(void **state)
{
    (void)state;
    static const struct {
        int type, bits;
    } kinds[] = {{PNG_COLOR_TYPE_GRAY, 1},    {PNG_COLOR_TYPE_GRAY, 2},
                 {PNG_COLOR_TYPE_GRAY, 4},    {PNG_COLOR_TYPE_GRAY, 8},
                 {PNG_COLOR_TYPE_GRAY, 16},   {PNG_COLOR_TYPE_PALETTE, 1},
                 {PNG_COLOR_TYPE_PALETTE, 2}, {PNG_COLOR_TYPE_PALETTE, 4}};
    enum { KINDS = sizeof kinds / sizeof kinds[0], H = 11, W = 13 };
    char name[100];
    for (int i = 0; i < 2 * KINDS; i++) { /* the second half interlaced */
        snprintf(name, sizeof name, "pictures/%c/%c.jpg", i % 2 ? 'p' : 'q', 'a' + i);
        write_picture(file_at("kinds", name), H, W, 3, i);
        snprintf(name, sizeof name, "maps/%c/%c.png", i % 2 ? 'p' : 'q', 'a' + i);
        write_map(file_at("kinds", name), H, W, kinds[i % KINDS].type, kinds[i % KINDS].bits,
                  i >= KINDS, i);
    }
    struct ls_source *source =
        must_open(ls_test_path("kinds/pictures"), ls_test_path("kinds/maps"));
    assert_int_equal(source->count, 2 * KINDS);
    assert_int_equal(source->tensor[1].role, LS_TENSOR_MAP);
    assert_false(source->varies);
    assert_int_equal(source->tensor[1].largest, -1);
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    for (int64_t r = 0; r < source->count; r++) {
        struct ls_text text = {0};
        source->type->name_record(source, r, &text);
        int i = text.data[2] - 'a'; /* "p/b.jpg" */
        assert_int_equal(text.data[0], i % 2 ? 'p' : 'q');
        ls_text_free(&text);
        struct ls_record record;
        uint32_t wanted = r % 2 == 0 ? LS_ALL_TENSORS : LS_TENSOR(1);
        assert_int_equal(ls_source_read(reader, r, wanted, &record, NULL), 0);
        assert_true((trial_bytes(&record) != NULL) == (r % 2 == 0));
        const uint16_t *map = record.tensor[1].data;
        for (int k = 0; k < H * W; k++)
            assert_int_equal(map[k], map_label(k / W, k % W, kinds[i % KINDS].bits, i));
        assert_int_equal(ls_source_read(reader, r, LS_TENSOR(0), &record, NULL), 0);
        assert_null(record.tensor[1].data);
    }
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void write_whole(const char *path, int type, int bits, int channels)
{
    uint8_t rows[6 * 6 * 8] = {0};
    size_t size;
    uint8_t *bytes =
        png_file(rows, (size_t)(6 * channels * bits / 8), 6, 6, type, bits, false, &size);
    ls_test_write(path, bytes, size);
    free(bytes);
}

static void missing_and_unfit_maps_are_refused(void **state)
{
    (void)state;
    const char *map = file_at("none", "maps/a.png");
    const char *pictures = ls_test_path("none/pictures"), *maps = ls_test_path("none/maps");
    write_picture(file_at("none", "pictures/a.jpg"), 6, 6, 3, 1);
    must_fail(pictures, maps, LOCKSTEP_DATA,
              "none/pictures/a.jpg: has no label map: there is no file");
    must_fail(pictures, maps, LOCKSTEP_DATA, "none/maps/a.png'");
    write_whole(map, PNG_COLOR_TYPE_RGB, 8, 3);
    must_fail(pictures, maps, LOCKSTEP_DATA, "maps/a.png: record 0: a label map has one number");
    write_whole(map, PNG_COLOR_TYPE_GRAY_ALPHA, 8, 2);
    must_fail(pictures, maps, LOCKSTEP_DATA, "maps/a.png: record 0: a label map has one number");
    write_picture(file_at("none", "b.jpg"), 6, 6, 1, 1);
    assert_int_equal(rename(file_at("none", "b.jpg"), map), 0);
    must_fail(pictures, maps, LOCKSTEP_DATA,
              "maps/a.png: record 0: a label map must be a PNG file");
    ls_test_write(map, "", 0);
    must_fail(pictures, maps, LOCKSTEP_DATA, "maps/a.png: ");
    write_map(map, 6, 7, PNG_COLOR_TYPE_GRAY, 8, false, 1);
    must_fail(pictures, maps, LOCKSTEP_DATA,
              "maps/a.png: record 0: has 6 x 7 labels (height x width)");
    must_fail(pictures, maps, LOCKSTEP_DATA, "none/pictures/a.jpg' has 6 x 6 pixels");
    must_fail(pictures, NULL, LOCKSTEP_DEFINITION, "needs a folder of label maps");
    must_fail(pictures, map, LOCKSTEP_DEFINITION, "is no folder");
    must_fail(ls_test_path("none/maps/a.png"), maps, LOCKSTEP_DEFINITION,
              "label_source is for folders");
    unlink(file_at("none", "pictures/a.jpg"));
    must_fail(pictures, maps, LOCKSTEP_DATA, "none/pictures: has no .jpg, .jpeg or .png");
}

/* What a header does not tell is found when the map is read. */
static void a_damaged_map_is_found_when_it_is_read(void **state)
{
    (void)state;
    const char *map = file_at("damaged", "maps/a.png");
    write_picture(file_at("damaged", "pictures/a.png"), 30, 30, 3, 1);
    write_map(map, 30, 30, PNG_COLOR_TYPE_GRAY, 16, false, 1);
    struct ls_source *source =
        must_open(ls_test_path("damaged/pictures"), ls_test_path("damaged/maps"));
    struct ls_source_reader *reader;
    struct ls_record record;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    size_t size;
    char *bytes = ls_test_read(map, &size);
    ls_test_write(map, bytes, size - 30);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
    assert_says(error, "maps/a.png: record 0: damaged PNG");
    bytes[size / 2] ^= 1; /* a checksum */
    ls_test_write(map, bytes, size);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &record, NULL), LOCKSTEP_DATA);
    free(bytes);
    write_map(map, 31, 30, PNG_COLOR_TYPE_GRAY, 8, false, 1); /* changed since */
    ls_error_clear(error);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
    assert_says(error, "maps/a.png: record 0: has 31 x 30 labels");
    unlink(map);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &record, NULL), LOCKSTEP_DATA);
    free(error);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void lists_pair_pictures_and_maps(void **state)
{
    (void)state;
    write_picture(file_at("lists", "a b.png"), 6, 6, 3, 1);
    write_picture(file_at("lists", "c.png"), 6, 8, 3, 2);
    write_map(file_at("lists", "m.png"), 6, 6, PNG_COLOR_TYPE_GRAY, 8, false, 3);
    write_map(file_at("lists", "n n.png"), 6, 8, PNG_COLOR_TYPE_GRAY, 8, false, 4);
    const char *list = file_at("lists", "list");
    ls_test_write_text(list, "a b.png  m.png\r\n\nc.png\tn n.png\n");
    struct ls_source *source = must_open(list, NULL);
    assert_int_equal(source->count, 2);
    assert_true(source->varies);
    ls_source_close(source);
    static const struct {
        const char *text, *words;
    } bad[] = {{"c.png n n.png\n", "list:1: there is no such file: \"c.png n\""},
               {"c.png\n", "list:1: no picture and map: \"c.png\""},
               {"a b.png m.png\nc.png\tnone.png\n", "list:2: there is no such file: \"none.png\""},
               {"c.png m.png\n", "m.png: record 0: has 6 x 6 labels"},
               {"\n", "lists no pictures"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ls_test_write_text(list, bad[i].text);
        must_fail(list, NULL, LOCKSTEP_DATA, bad[i].words);
    }
}

/* Three pairs, the last of another size. */
static void write_files(const char *name)
{
    char file[100];
    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "pictures/%d.png", i);
        write_picture(file_at(name, file), 6, i < 2 ? 6 : 9, 3, i);
        snprintf(file, sizeof file, "maps/%d.png", i);
        write_map(file_at(name, file), 6, i < 2 ? 6 : 9, PNG_COLOR_TYPE_GRAY, 8, false, i);
    }
}

/* ---- What is known, what is refused ---- */

static void the_fingerprint_knows_maps(void **state)
{
    (void)state;
    write_picture(file_at("print", "pictures/a.png"), 6, 6, 3, 1);
    write_map(file_at("print", "maps/a.png"), 6, 6, PNG_COLOR_TYPE_GRAY, 8, false, 1);
    char pictures[1024], maps[1024];
    snprintf(pictures, sizeof pictures, "%s", ls_test_path("print/pictures"));
    snprintf(maps, sizeof maps, "%s", ls_test_path("print/maps"));
    uint64_t print[3];
    for (int k = 0; k < 3; k++) {
        if (k == 2)
            write_map(file_at("print", "maps/a.png"), 6, 6, PNG_COLOR_TYPE_GRAY, 8, false, 2);
        struct ls_definition *layer =
            trial_layer("name: 'd' type: 'Data' top: 'x' data_param { source: '%s' label_source: "
                        "'%s' backend: IMAGE_PAIRS }",
                        pictures, maps);
        struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
        assert_int_equal(ls_dataset_shape(set)[0], 3);
        assert_int_equal(ls_dataset_largest(set, 1), -1);
        print[k] = trial_fingerprint(set);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
    assert_true(print[0] == print[1]);
    assert_true(print[0] != print[2]);
}

static void fields_of_other_sources_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"backend: IMAGES label_clip: 1", "label_clip is for IMAGE_PAIRS"},
        {"backend: LMDB label_pad: 1", "label_pad is for IMAGE_PAIRS"},
        {"backend: LMDB label_source: '.'", "label_source is for IDX and IMAGE_PAIRS"},
        {"backend: CIFAR new_height: 3", "new_height is for IMAGES and IMAGE_PAIRS"},
        {"backend: IMAGE_PAIRS label_source: '.' label_pad: 65536",
         "label_pad is 65536; it must lie in 0 .. 65535"},
        {"backend: IMAGE_PAIRS label_source: '.' new_height: 5", "must be given together"},
        {"backend: IMAGE_PAIRS label_source: '.' root_folder: '.'",
         "root_folder is for list files"},
        {"backend: IMAGE_PAIRS force_encoded_color: true",
         "force_encoded_color is for LEVELDB and LMDB"},
    };
    struct ls_error *error = calloc(1, sizeof *error);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_definition *layer =
            trial_layer("name: 'd' top: 'x' data_param { source: '.' %s }", bad[i].text);
        struct ls_dataset *set;
        ls_error_clear(error);
        assert_int_equal(trial_open(layer, LOCKSTEP__PHASE__TRAIN, 1, &set, error),
                         LOCKSTEP_DEFINITION);
        assert_says(error, bad[i].words);
        ls_definition_free(layer);
    }
    const char *path = ".";
    struct lockstep_source_options options = {.struct_size = sizeof options,
                                              .backend = "image_pairs",
                                              .source = &path,
                                              .source_count = 1};
    ls_error_clear(error);
    assert_int_equal(ls_mean(&options, ls_test_path("mean"), NULL, NULL, error), LOCKSTEP_USAGE);
    assert_says(error, "label maps cannot be converted");
    free(error);
}

/* Out of memory at any allocation of opening and reading is an error, and nothing is lost. */
static void out_of_memory_is_an_error_and_loses_nothing(void **state)
{
    (void)state;
    write_files("memory");
    struct ls_definition *layer = trial_layer(
        "name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: '%s' label_source: '%s' "
        "backend: IMAGE_PAIRS cache: true }",
        file_at("memory", "pictures"), file_at("memory", "maps"));
    float x[3 * 9 * 9], y[9 * 9];
    assert_true(trial_fail_allocations(layer, 3, (void *[]){x, y}) > 20);
    ls_definition_free(layer);
}

/* Instance maps of real pictures become masks. */
static void instance_maps_become_masks(void **state)
{
    (void)state;
    const char *archive = ls_test_data_or_skip("nuclei/nuclei256.tar.zst");
    char command[3000], folder[1024];
    snprintf(folder, sizeof folder, "%s", ls_test_path("nuclei"));
    snprintf(command, sizeof command, "mkdir -p '%s' && zstd -dcq '%s' | tar -C '%s' -xf -", folder,
             archive, folder);
    if (system(command) != 0)
        ls_test_skip("tar or zstd is not here");
    int64_t sizes = 0;
    for (int part = 0; part < 2; part++) {
        struct ls_definition *layer = trial_layer(
            "name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: '%s/images' "
            "label_source: '%s/labels' backend: IMAGE_PAIRS label_clip: 1 split: '%s:0.9' }",
            folder, folder, part == 0 ? "train" : "test");
        struct ls_dataset *set = trial_dataset(layer, LOCKSTEP__PHASE__TRAIN, 3);
        struct ls_reader *reader;
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        int64_t size = ls_record_size(ls_dataset_shape(set));
        assert_int_equal(size, 3 * 256 * 256);
        float *x = malloc((size_t)size * sizeof *x), *y = malloc((size_t)size * sizeof *y);
        for (int64_t i = 0; i < 8; i++) {
            assert_int_equal(trial_fetch(reader, i, x, y, NULL), 0);
            int count[2] = {0};
            for (int64_t k = 0; k < size / 3; k++) {
                assert_true(y[k] == 0 || y[k] == 1);
                count[(int)y[k]]++;
            }
            assert_true(count[0] > 0 && count[1] > 0);
        }
        free(x);
        free(y);
        sizes += ls_dataset_size(set);
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
    assert_int_equal(sizes, 334);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_label_map_is_read),
        cmocka_unit_test(missing_and_unfit_maps_are_refused),
        cmocka_unit_test(a_damaged_map_is_found_when_it_is_read),
        cmocka_unit_test(lists_pair_pictures_and_maps),
        cmocka_unit_test(the_fingerprint_knows_maps),
        cmocka_unit_test(fields_of_other_sources_are_refused),
        cmocka_unit_test(out_of_memory_is_an_error_and_loses_nothing),
        cmocka_unit_test(instance_maps_become_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
