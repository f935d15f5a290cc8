/* Folders of class folders and list files.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "data/picture.h"
#include "data/source.h"
#include "data_trial.h"
#include "picture_files.h"

/* What a layer says of its pictures. */
struct pictures {
    const char **path;
    const char *root_folder;
    int height, width, crop;
    bool gray;
};

static struct pictures options_for(const char **path)
{
    return (struct pictures){.path = path, .root_folder = ""};
}

static int open_pictures(const struct pictures *options, struct ls_source **source,
                         struct ls_error *error)
{
    return trial_source(source, error,
                        "data_param { backend: IMAGES source: '%s' root_folder: '%s' new_height: "
                        "%d new_width: %d is_color: %s } transform_param { crop_size: %d }",
                        *options->path, options->root_folder, options->height, options->width,
                        options->gray ? "false" : "true", options->crop);
}

static struct ls_source *must_open(const struct pictures *options)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    if (open_pictures(options, &source, error) != 0)
        fail_msg("%s", trial_text(error));
    free(error);
    return source;
}

static void must_fail(const struct pictures *options, int status, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_source *source;
    assert_int_equal(open_pictures(options, &source, error), status);
    assert_says(error, words);
    free(error);
}

static const char *name_of(const struct ls_source *source, int64_t index)
{
    static struct ls_text text;
    ls_text_free(&text);
    source->type->name_record(source, index, &text);
    return text.data;
}

static void folders_are_classes_in_byte_order(void **state)
{
    (void)state;
    /* Byte order: "Zebra" < "cat" < "dog 2"; endings of any case; what is no picture is left out.
     */
    write_picture(file_at("zoo", "dog 2/b.png"), 10, 12, 3, 1);
    write_picture(file_at("zoo", "dog 2/a.PNG"), 10, 12, 3, 2);
    write_picture(file_at("zoo", "cat/x.jpg"), 10, 12, 3, 3);
    write_picture(file_at("zoo", "cat/deep/er/y.jpeg"), 10, 12, 1, 4);
    write_picture(file_at("zoo", "Zebra/1.png"), 10, 12, 1, 5);
    write_picture(file_at("zoo", ".hidden/1.png"), 10, 12, 1, 5);
    write_picture(file_at("zoo", "cat/.thumb.png"), 10, 12, 1, 5);
    ls_test_write_text(file_at("zoo", "cat/readme.txt"), "not a picture");
    ls_test_write_text(file_at("zoo", "notes"), "not a folder");
    const char *path = ls_test_path("zoo");
    struct pictures options = options_for(&path);
    struct ls_source *source = must_open(&options);
    assert_int_equal(source->count, 5);
    assert_int_equal(source->class_count, 3);
    assert_string_equal(source->class_name[0], "Zebra");
    assert_string_equal(source->class_name[1], "cat");
    assert_string_equal(source->class_name[2], "dog 2");
    const char *names[] = {"Zebra/1.png", "cat/deep/er/y.jpeg", "cat/x.jpg", "dog 2/a.PNG",
                           "dog 2/b.png"};
    const int labels[] = {0, 1, 1, 2, 2}, salts[] = {5, 4, 3, 2, 1};
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    for (int64_t i = 4; i >= 0; i--) {
        struct ls_record r;
        assert_string_equal(name_of(source, i), names[i]);
        assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &r, NULL), 0);
        assert_int_equal(trial_label(&r), labels[i]);
        assert_int_equal(r.tensor[0].shape.dim[0], 3); /* grey files too */
        /* Blue, green, red; exact for the colour PNG files. */
        for (int c = 0; c < 3 && i >= 3; c++)
            assert_int_equal(trial_bytes(&r)[c * 120 + 17], picture_pixel(1, 5, 2 - c, salts[i]));
    }
    ls_source_reader_close(reader);
    ls_source_close(source);
    options.gray = true;
    source = must_open(&options);
    assert_int_equal(source->tensor[0].shape.dim[0], 1);
    ls_source_close(source);
}

/* Classes whose names are whole numbers are numbered by value, and come before the others. */
static void class_folders_of_numbers_are_in_the_order_of_their_values(void **state)
{
    (void)state;
    static const char *const folders[] = {"2", "10", "0", "9", "100", "1b", "07"};
    static const char *const names[] = {"0", "2", "07", "9", "10", "100", "1b"};
    for (size_t i = 0; i < 7; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s/x.png", folders[i]);
        write_picture(file_at("numbers", name), 10, 12, 1, 1);
    }
    const char *path = ls_test_path("numbers");
    struct pictures options = options_for(&path);
    struct ls_source *source = must_open(&options);
    assert_int_equal(source->class_count, 7);
    for (int i = 0; i < 7; i++)
        assert_string_equal(source->class_name[i], names[i]);
    ls_source_close(source);
}

static int open_known(const char *path, int tops, const struct ls_class_names *known,
                      struct ls_dataset **set, struct ls_error *error)
{
    struct ls_definition *layer = trial_layer(
        "name: 'd' type: 'Data' top: 'x' %s data_param { backend: IMAGES source: '%s' }",
        tops == 2 ? "top: 'y'" : "", path);
    const struct ls_dataset_wishes wishes = {.known = known};
    int status = ls_dataset_open((const Lockstep__LayerParameter *)layer->message, layer,
                                 LOCKSTEP__PHASE__TEST, 1, &wishes, set, error);
    ls_definition_free(layer);
    return status;
}

/* Where the training has numbered the classes, others are numbered by their names. */
static void classes_have_the_numbers_that_they_are_known_by(void **state)
{
    (void)state;
    const char *path = ls_test_path("some");
    static const char *const names[] = {"sky", "apple", "leaf"}; /* in no order of bytes */
    const struct ls_class_names known = {names, 3, "the training", 0};
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_dataset *set;
    write_picture(file_at("some", "leaf/1.png"), 10, 12, 3, 1);
    write_picture(file_at("some", "sky/2.png"), 10, 12, 3, 2);
    assert_int_equal(open_known(path, 2, &known, &set, error), 0);
    assert_int_equal(ls_dataset_classes(set), 3);
    assert_string_equal(ls_dataset_class_name(set, 0), "sky");
    struct ls_reader *reader;
    assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
    for (int i = 0; i < 2; i++) {
        float pixels[360], label = -1;
        void *out[LS_RECORD_TENSORS] = {pixels, &label};
        assert_int_equal(ls_reader_fetch(reader, i, out, NULL), 0);
        assert_true(label == (i == 0 ? 2 : 0));
    }
    ls_reader_close(reader);
    ls_dataset_close(set);
    /* A class that is not known is refused, unless nothing reads the labels. */
    write_picture(file_at("some", "zebra/3.png"), 10, 12, 3, 3);
    write_picture(file_at("some", "zebra/4.png"), 10, 12, 3, 3);
    assert_int_equal(open_known(path, 2, &known, &set, error), LOCKSTEP_DATA);
    assert_says(error, "1 class (2 pictures) is not among the 3 of the training: 'zebra'");
    assert_int_equal(open_known(path, 1, &known, &set, NULL), 0);
    assert_int_equal(ls_dataset_classes(set), 3);
    ls_dataset_close(set);
    free(error);
}

/* The same where the definition alone says what is trained on. */
static void a_test_set_is_numbered_as_the_training_set_of_its_definition(void **state)
{
    (void)state;
    char text[3000], train[512];
    write_picture(file_at("all", "a/1.png"), 10, 12, 3, 1);
    write_picture(file_at("all", "b/1.png"), 10, 12, 3, 1);
    write_picture(file_at("few", "b/1.png"), 10, 12, 3, 1);
    snprintf(train, sizeof train, "%s", ls_test_path("all"));
    snprintf(text, sizeof text,
             "layer { name: 'd' type: 'Data' top: 'x' top: 'y' include { phase: TRAIN } data_param "
             "{ backend: IMAGES source: '%s' } } layer { name: 'd' type: 'Data' top: 'x' top: 'y' "
             "include { phase: TEST } data_param { backend: IMAGES source: '%s' } }",
             train, ls_test_path("few"));
    struct ls_definition *net = NULL;
    struct ls_dataset *set;
    assert_int_equal(ls_text_read("net.prototxt", text, strlen(text),
                                  &lockstep__net_parameter__descriptor, &net, NULL),
                     0);
    const Lockstep__NetParameter *parameter = (const Lockstep__NetParameter *)net->message;
    assert_int_equal(ls_dataset_open(parameter->layer[1], net, LOCKSTEP__PHASE__TEST, 1,
                                     &(struct ls_dataset_wishes){0}, &set, NULL),
                     0);
    assert_int_equal(ls_dataset_classes(set), 2);
    assert_int_equal(ls_dataset_largest(set, 1), 1);
    ls_dataset_close(set);
    ls_definition_free(net);
}

static void pictures_that_are_passed_over_are_counted_and_named(void **state)
{
    (void)state;
    write_picture(file_at("passed", "a/1.png"), 10, 12, 3, 1);
    write_picture(file_at("passed", "beside.jpg"), 10, 12, 3, 1);
    ls_test_write_text(file_at("passed", "a/x.WEBP"), "?");
    ls_test_write_text(file_at("passed", "a/deep/y.tif"), "?");
    ls_test_write_text(file_at("passed", "a/notes.txt"), "no picture");
    const char *path = ls_test_path("passed");
    struct pictures options = options_for(&path);
    struct ls_source *source = must_open(&options);
    assert_non_null(strstr(source->warning, "passed over: 2 pictures that are neither JPEG nor PNG "
                                            "(a/"));
    assert_non_null(strstr(source->warning, "; 1 picture beside the folders of the classes "
                                            "(beside.jpg)"));
    ls_source_close(source);
}

static void pictures_of_different_sizes_are_read(void **state)
{
    (void)state;
    write_picture(file_at("mixed", "a/1.png"), 10, 12, 3, 1);
    write_picture(file_at("mixed", "b/2.png"), 20, 16, 3, 2);
    const char *path = ls_test_path("mixed");
    struct pictures options = options_for(&path);
    struct ls_source *source = must_open(&options);
    int64_t shape[3];
    assert_true(source->varies);
    ls_source_shape_of(source, 0, shape);
    assert_true(shape[0] == 3 && shape[1] == 10 && shape[2] == 12);
    ls_source_shape_of(source, 1, shape);
    assert_true(shape[0] == 3 && shape[1] == 20 && shape[2] == 16);
    ls_source_close(source);
    options.crop = 11;
    must_fail(&options, LOCKSTEP_DATA, "a/1.png: record 0: has 10 x 12 pixels");
    must_fail(&options, LOCKSTEP_DATA, "hint: give new_height and new_width, or a smaller crop");
    options.crop = 10;
    source = must_open(&options);
    assert_true(source->varies);
    ls_source_close(source);
    options.crop = 0;
    options.height = 8;
    must_fail(&options, LOCKSTEP_DEFINITION, "new_height and new_width must be given together");
    options.width = 6;
    source = must_open(&options);
    assert_true(!source->varies && source->sizes == NULL);
    assert_int_equal(source->tensor[0].shape.dim[1], 8);
    assert_int_equal(source->tensor[0].shape.dim[2], 6);
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    struct ls_record r;
    assert_int_equal(ls_source_read(reader, 1, LS_ALL_TENSORS, &r, NULL), 0);
    assert_int_equal(r.tensor[0].shape.dim[0] * r.tensor[0].shape.dim[1] * r.tensor[0].shape.dim[2],
                     3 * 8 * 6);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void folders_without_pictures_are_refused(void **state)
{
    (void)state;
    (void)file_at("bare", "empty/x");
    const char *path = ls_test_path("bare");
    struct pictures options = options_for(&path);
    must_fail(&options, LOCKSTEP_DATA, "bare/empty: this class has no .jpg");
    rmdir(ls_test_path("bare/empty"));
    must_fail(&options, LOCKSTEP_DATA, "has no class folders with pictures");
    ls_test_write(file_at("bare", "c/broken.png"), "\x89PNG\r\n\x1a\n...", 11);
    must_fail(&options, LOCKSTEP_DATA, "broken.png: record 0: damaged PNG");
    ls_test_write(file_at("bare", "c/broken.png"), "GIF89a", 6);
    must_fail(&options, LOCKSTEP_DATA, "broken.png: record 0: the picture is neither JPEG nor PNG");
    path = ls_test_path("nowhere");
    must_fail(&options, LOCKSTEP_DATA, "there is no file or folder '");
    path = "";
    must_fail(&options, LOCKSTEP_DEFINITION, "source is empty");
}

/* A picture with a good header and bad pixels is found when it is read. */
static void a_cut_picture_is_found_when_it_is_read(void **state)
{
    (void)state;
    const char *file = file_at("cut", "c/whole.jpg");
    write_picture(file, 40, 40, 3, 1);
    size_t size;
    char *bytes = ls_test_read(file, &size);
    ls_test_write(file, bytes, size - 40);
    free(bytes);
    const char *path = ls_test_path("cut");
    struct pictures options = options_for(&path);
    struct ls_source *source = must_open(&options);
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    struct ls_record r;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &r, error), LOCKSTEP_DATA);
    assert_says(error, "c/whole.jpg: record 0: damaged JPEG");
    assert_int_equal(ls_source_read(reader, 0, LS_TENSOR(1), &r, NULL), 0);
    unlink(file);
    ls_error_clear(error);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &r, error), LOCKSTEP_DATA);
    assert_says(error, "whole.jpg: cannot open");
    free(error);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void list_files_name_pictures_and_labels(void **state)
{
    (void)state;
    write_picture(file_at("list", "a b.png"), 6, 6, 3, 1);
    write_picture(file_at("list", "c.png"), 6, 6, 3, 2);
    const char *path = file_at("list", "train.txt");
    ls_test_write_text(path, "a b.png 3\r\n\nc.png   -1\n");
    struct pictures options = options_for(&path);
    struct ls_source *source = must_open(&options); /* paths beside the list */
    assert_int_equal(source->count, 2);
    assert_int_equal(source->tensor[1].largest, 3);
    assert_int_equal(source->class_count, 0);
    assert_string_equal(name_of(source, 0), "a b.png");
    ls_source_close(source);
    /* With a root folder, with and without its slash. */
    const char *elsewhere = ls_test_path("elsewhere.txt");
    ls_test_write_text(elsewhere, "c.png 7\n");
    path = elsewhere;
    must_fail(&options, LOCKSTEP_DATA, "elsewhere.txt:1: there is no such file: \"c.png\"");
    char root[1024];
    for (int slash = 0; slash < 2; slash++) {
        snprintf(root, sizeof root, "%s%s", ls_test_path("list"), slash ? "/" : "");
        options.root_folder = root;
        source = must_open(&options);
        assert_string_equal(name_of(source, 0), "c.png");
        ls_source_close(source);
    }
    path = ls_test_path("list");
    must_fail(&options, LOCKSTEP_DEFINITION, "root_folder is for list files");
}

static void malformed_lists_are_refused(void **state)
{
    (void)state;
    write_picture(file_at("bad", "c.png"), 6, 6, 3, 2);
    const char *path = file_at("bad", "list");
    struct pictures options = options_for(&path);
    const struct {
        const char *text, *words;
    } bad[] = {
        {"c.png 1\nc.png\n", "list:2: no picture and label"},
        {"c.png one\n", "list:1: the label is not a number"},
        {"c.png 1x\n", "list:1: the label is not a number"},
        {"c.png 99999999999\n", "list:1: the label is not between -2147483648 and 2147483647"},
        {"c.png 2147483648\n", "list:1: the label is not between"},
        {"c.png 0.0\n", "list:1: the label is not a whole number"},
        {"\xff\xfe"
         "c\n",
         "list: is a text in UTF-16"},
        {" 4\n", "list:1: no picture and label"},
        {"\n\n", "lists no pictures"},
        {"", "lists no pictures"},
        {"d.png 1\n", "list:1: there is no such file"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ls_test_write_text(path, bad[i].text);
        must_fail(&options, LOCKSTEP_DATA, bad[i].words);
    }
    ls_test_write(path, "c.png\0 1\n", 9);
    must_fail(&options, LOCKSTEP_DATA, "is not a text file");
}

static void real_photographs_are_read(void **state)
{
    (void)state;
    (void)ls_test_data_or_skip("caffe_samples/cat.jpg");
    char list[2048], root[1024];
    snprintf(root, sizeof root, "%s", ls_test_data("caffe_samples"));
    const char *path = ls_test_path("photographs");
    snprintf(list, sizeof list, "cat.jpg 0\nfish-bike.jpg 1\ncat_gray.jpg 0\n");
    ls_test_write_text(path, list);
    struct pictures options = options_for(&path);
    options.root_folder = root;
    options.height = options.width = 227;
    struct ls_source *source = must_open(&options);
    struct ls_source_reader *reader;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    /* The means of the resized picture are those of the picture: every pixel was used. */
    for (int64_t i = 0; i < 2; i++) {
        struct ls_record r;
        assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &r, NULL), 0);
        size_t size;
        char file[2048];
        snprintf(file, sizeof file, "%s/%s", root, i == 0 ? "cat.jpg" : "fish-bike.jpg");
        char *bytes = ls_test_read(file, &size);
        struct ls_buffer buffer = {0};
        struct ls_picture p;
        assert_int_equal(ls_picture_decode((const uint8_t *)bytes, size, 3, &buffer, &p, NULL), 0);
        for (int c = 0; c < 3; c++) {
            double small = 0, large = 0;
            for (int k = 0; k < 227 * 227; k++)
                small += trial_bytes(&r)[(2 - c) * 227 * 227 + k];
            for (int k = 0; k < p.height * p.width; k++)
                large += p.pixels[3 * k + c];
            double difference = small / (227 * 227) - large / (p.height * p.width);
            assert_true(difference < 0.5 && difference > -0.5);
        }
        ls_buffer_free(&buffer);
        free(bytes);
    }
    ls_source_reader_close(reader);
    ls_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_classes_in_byte_order),
        cmocka_unit_test(class_folders_of_numbers_are_in_the_order_of_their_values),
        cmocka_unit_test(classes_have_the_numbers_that_they_are_known_by),
        cmocka_unit_test(a_test_set_is_numbered_as_the_training_set_of_its_definition),
        cmocka_unit_test(pictures_that_are_passed_over_are_counted_and_named),
        cmocka_unit_test(pictures_of_different_sizes_are_read),
        cmocka_unit_test(folders_without_pictures_are_refused),
        cmocka_unit_test(a_cut_picture_is_found_when_it_is_read),
        cmocka_unit_test(list_files_name_pictures_and_labels),
        cmocka_unit_test(malformed_lists_are_refused),
        cmocka_unit_test(real_photographs_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
