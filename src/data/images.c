/* Source IMAGES: JPEG and PNG files, one record each, decoded when they are read.
 *
 * `source` is a folder with a sub-folder for each class, or a list file (see picture_list.h). With
 * new_height and new_width all pictures are resized to that; without, they keep their sizes, which
 * may differ. is_color: false makes them grey. Channels are blue, green, red, as Caffe has them
 * through OpenCV.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/picture_file.h"
#include "data/picture_list.h"
#include "data/source.h"
#include "lockstep.pb-c.h"

struct images_options {
    struct ls_option_files list;
    const char *root_folder;
    struct ls_picture_options form;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct images_options, list),
     .least = 1,
     .most = 1,
     .help = "a folder with a sub-folder for each class, or a list file"},
    {.name = "root_folder",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct images_options, root_folder),
     .help = "with a list file: put before each path"},
    LS_PICTURE_OPTIONS(struct images_options, form),
    {.name = NULL}};

struct images {
    struct ls_picture_list list;
    struct ls_picture_form form;
};

static int check_picture(struct ls_source *source, size_t i, struct ls_error *error)
{
    const struct images *images = source->state;
    const char *path = ls_picture_path(&images->list, i);
    struct ls_picture_header header;
    int64_t shape[3];
    size_t file;
    LS_TRY(ls_picture_file_look(path, (int64_t)i, &header, &file, error));
    ls_source_note_picture(source, header.turned, path, 0);
    LS_TRY(ls_picture_file_shape(&images->form, path, (int64_t)i, &header, shape, error));
    LS_TRY(ls_source_note_shape(source, (int64_t)i, shape, error));
    ls_source_note_bytes(source, ls_picture_file_bytes(&images->form, &header, file));
    return 0;
}

static int check_pictures(struct ls_source *source, struct ls_error *error)
{
    const struct images *images = source->state;
    bool resized = images->form.height > 0;
    size_t count = images->list.count;
    for (size_t i = 0; i < count; i++) {
        int status = check_picture(source, i, ls_source_aside(source, error));
        LS_TRY(ls_source_forgive(source, status, error));
        if (status == 0 && resized && count > LS_PICTURE_LOOK_LIMIT)
            return 0;
    }
    return 0;
}

/* For data of the test phase: the names of the classes that the definition trains with. The list
 * stays empty where there are none: other sources than folders have no names, and a net may be
 * tested where the pictures are not that it was trained on. */
static int read_trained_names(const struct ls_source_options *options, struct ls_class_list *list,
                              char **folder, struct ls_error *error)
{
    const Lockstep__LayerParameter *training = ls_source_training_layer(options);
    if (training == NULL || training->data_param->n_source != 1)
        return 0;
    *folder = ls_resolve_path(training->data_param->source[0], options->definition->file);
    if (*folder == NULL)
        return ls_fail_memory(error, "a path");
    return ls_is_directory(*folder) ? ls_picture_list_classes(*folder, list, error) : 0;
}

static int list_folder(const struct ls_source_options *options, const char *path,
                       struct ls_picture_list *list, struct ls_error *error)
{
    struct ls_class_list trained = {.count = 0};
    char *folder = NULL;
    if (!ls_class_names_matter(options))
        return ls_picture_list_folder(path, NULL, list, error);
    if (options->known != NULL && options->known->count > 0)
        return ls_picture_list_folder(path, options->known, list, error);
    int status = read_trained_names(options, &trained, &folder, error);
    const struct ls_class_names known = {(const char *const *)trained.name, trained.count, folder,
                                         0};
    if (status == 0)
        status = ls_picture_list_folder(path, known.count > 0 ? &known : NULL, list, error);
    ls_class_list_free(&trained);
    ls_free(folder);
    return status;
}

static int open_images(const struct ls_source_options *options, struct ls_source *source,
                       struct ls_error *error)
{
    const struct images_options *own = options->own;
    struct images *images = source->state = ls_alloc(1, sizeof *images);
    if (images == NULL)
        return ls_fail_memory(error, "a data source");
    LS_TRY(ls_picture_form_init(options, &own->form, &images->form, error));
    const char *path = own->list.item[0];
    bool folder = ls_is_directory(path);
    if (folder && own->root_folder != NULL)
        return ls_option_fail(options, "root_folder", NULL, error,
                              "root_folder is for list files; '%.200s' is a folder of classes",
                              path);
    if (folder)
        LS_TRY(list_folder(options, path, &images->list, error));
    else
        LS_TRY(ls_picture_list_file(path, own->root_folder, &images->list, error));
    LS_TRY(ls_picture_list_warning(&images->list, path, &source->warning, error));
    source->count = (int64_t)images->list.count;
    source->class_name = images->list.class_name; /* the source owns them now */
    source->class_count = images->list.class_count;
    images->list.class_name = NULL;
    images->list.class_count = 0;
    ls_source_add_image(source);
    int64_t *largest = &ls_source_add_label(source)->largest;
    source->encoded = true;
    source->interpolates = !images->form.antialias;
    for (size_t i = 0; i < images->list.count; i++) {
        int32_t label = images->list.file[i].label;
        if (i == 0 || label > *largest)
            *largest = label;
        source->labels_hash = ls_mix(source->labels_hash + (uint32_t)label + 1);
    }
    return check_pictures(source, error);
}

static void close_images(struct ls_source *source)
{
    struct images *images = source->state;
    if (images == NULL)
        return;
    ls_picture_list_free(&images->list);
    ls_free(images);
}

static int read_image(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                      struct ls_record *record, struct ls_error *error)
{
    const struct images *images = reader->source->state;
    ls_record_set_label(reader, record, images->list.file[index].label);
    if ((wanted & LS_TENSOR(0)) == 0)
        return 0;
    return ls_picture_file_read(
        reader, &images->form, ls_picture_path(&images->list, (size_t)index), index, record, error);
}

static void name_record(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct images *images = source->state;
    ls_text_add(text, ls_picture_name(&images->list, (size_t)index));
}

static const char *record_file(const struct ls_source *source, int64_t index)
{
    const struct images *images = source->state;
    return ls_picture_path(&images->list, (size_t)index);
}

static uint64_t stamp(const struct ls_source *source)
{
    return ls_picture_list_stamp(&((const struct images *)source->state)->list);
}

const struct ls_source_type ls_source_images = {
    .name = "IMAGES",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__IMAGES,
    .bgr = true,
    .summary = "JPEG and PNG files: a folder of class folders, or a list file",
    .options = options_table,
    .options_size = sizeof(struct images_options),
    .open = open_images,
    .close = close_images,
    .read = read_image,
    .stamp = stamp,
    .name_record = name_record,
    .record_file = record_file,
};
