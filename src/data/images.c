/* Source IMAGES: JPEG and PNG files, one record each, decoded when they are read.
 *
 * `source` is a folder with a sub-folder for each class, or a list file (see picture_list.h). With
 * new_height and new_width all pictures are resized to that; without, they must have one size, or
 * be cropped by the transformation. is_color: false makes them grey. Channels are blue, green, red,
 * as Caffe has them through OpenCV.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/picture.h"
#include "data/picture_list.h"
#include "data/source.h"
#include "lockstep.pb-c.h"

static const size_t FILE_LIMIT = (size_t)1 << 29; /* bytes of a picture file */

/* Headers of at most this many pictures are looked at when the source is opened, so that a bad one
 * is found before training. Without resizing all are: their sizes must be known. */
enum { LOOK_LIMIT = 50000 };

struct images {
    struct ls_picture_list list;
    int height, width; /* to resize to; 0: not */
    int channels;
    int crop;
};

static int look(const char *path, struct ls_picture_header *header, struct ls_error *error)
{
    struct ls_mapping mapping;
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &mapping, error));
    const char *problem = ls_picture_look(mapping.data, mapping.size, header);
    int status = problem == NULL ? 0 : ls_fail(error, LOCKSTEP_DATA, path, NULL, "%s", problem);
    ls_file_unmap(&mapping);
    return status;
}

/* Where sizes differ, each picture must be large enough for the crop; without one they may not. */
static int check_size(const struct images *images, size_t index,
                      const struct ls_picture_header *first, const struct ls_picture_header *header,
                      struct ls_error *error)
{
    const char *path = ls_picture_path(&images->list, index);
    if (images->crop == 0 && (header->height != first->height || header->width != first->width))
        return ls_fail(error, LOCKSTEP_DATA, path,
                       "give new_height and new_width, to which all pictures are resized",
                       "has %d x %d pixels (height x width), but '%.100s' has %d x %d",
                       header->height, header->width, ls_picture_name(&images->list, 0),
                       first->height, first->width);
    if (header->height < images->crop || header->width < images->crop)
        return ls_fail(error, LOCKSTEP_DATA, path,
                       "give new_height and new_width, or a smaller crop",
                       "has %d x %d pixels (height x width), too few for the crop", header->height,
                       header->width);
    return 0;
}

static int check_pictures(struct ls_source *source, struct ls_error *error)
{
    const struct images *images = source->state;
    struct ls_picture_header first;
    LS_TRY(look(ls_picture_path(&images->list, 0), &first, error));
    bool resized = images->height > 0;
    source->shape[0] = images->channels;
    source->shape[1] = resized ? images->height : first.height;
    source->shape[2] = resized ? images->width : first.width;
    if (resized && images->list.count > LOOK_LIMIT)
        return 0;
    for (size_t i = 0; i < images->list.count; i++) {
        struct ls_picture_header header;
        LS_TRY(look(ls_picture_path(&images->list, i), &header, error));
        if (resized)
            continue;
        LS_TRY(check_size(images, i, &first, &header, error));
        if (header.height != first.height || header.width != first.width)
            source->varies = true;
    }
    return 0;
}

static int open_images(const struct ls_source_options *options, struct ls_source *source,
                       struct ls_error *error)
{
    LS_TRY(ls_source_one_path(options, "IMAGES",
                              "source: a folder with a sub-folder for each class, or a list file",
                              error));
    if ((options->height > 0) != (options->width > 0))
        return ls_fail(error, LOCKSTEP_DEFINITION, options->place, NULL,
                       "new_height and new_width must be given together");
    struct images *images = source->state = ls_alloc(1, sizeof *images);
    if (images == NULL)
        return ls_fail_memory(error, "a data source");
    images->height = options->height;
    images->width = options->width;
    images->channels = options->gray ? 1 : 3;
    images->crop = options->crop;
    int64_t shape[3] = {images->channels, images->height, images->width};
    if (images->height > 0 && !ls_record_shape_valid(shape))
        return ls_fail(error, LOCKSTEP_DEFINITION, options->place, NULL,
                       "pictures cannot be resized to %d x %d", images->height, images->width);
    const char *path = options->path[0];
    bool folder = ls_is_directory(path);
    if (folder && options->root_folder != NULL && options->root_folder[0] != '\0')
        return ls_fail(error, LOCKSTEP_DEFINITION, options->place, NULL,
                       "root_folder is for list files; '%.200s' is a folder of classes", path);
    if (folder)
        LS_TRY(ls_picture_list_folder(path, &images->list, error));
    else
        LS_TRY(ls_picture_list_file(path, options->root_folder, &images->list, error));
    source->count = (int64_t)images->list.count;
    source->class_name = images->list.class_name; /* the source owns them now */
    source->class_count = images->list.class_count;
    images->list.class_name = NULL;
    images->list.class_count = 0;
    source->has_labels = true;
    source->encoded = true;
    source->bgr = images->channels == 3;
    for (size_t i = 0; i < images->list.count; i++)
        if (i == 0 || images->list.file[i].label > source->largest_label)
            source->largest_label = images->list.file[i].label;
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

static int read_image(struct ls_source_reader *reader, int64_t index, bool want_pixels,
                      struct ls_record *record, struct ls_error *error)
{
    const struct ls_source *source = reader->source;
    const struct images *images = source->state;
    record->label = images->list.file[index].label;
    memcpy(record->shape, source->shape, sizeof source->shape);
    const char *path = ls_picture_path(&images->list, (size_t)index);
    if (!want_pixels && source->varies) {
        struct ls_picture_header header;
        LS_TRY(look(path, &header, error));
        record->shape[1] = header.height;
        record->shape[2] = header.width;
    }
    if (!want_pixels)
        return 0;
    char *bytes;
    size_t size;
    LS_TRY(ls_file_read(path, FILE_LIMIT, LOCKSTEP_DATA, &bytes, &size, error));
    struct ls_picture picture;
    const char *problem = ls_picture_decode((const uint8_t *)bytes, size, images->channels,
                                            &reader->picture, &picture);
    ls_free(bytes);
    if (problem == NULL && images->height > 0)
        problem = ls_picture_resize_to_record(&picture, images->height, images->width,
                                              &reader->record, record);
    else if (problem == NULL)
        problem = ls_picture_to_record(&picture, &reader->record, record);
    if (problem != NULL)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "record %lld: %s", (long long)index,
                       problem);
    return 0;
}

static void name_record(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct images *images = source->state;
    ls_text_add(text, ls_picture_name(&images->list, (size_t)index));
}

const struct ls_source_type ls_source_images = {
    .name = "IMAGES",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__IMAGES,
    .open = open_images,
    .close = close_images,
    .read = read_image,
    .name_record = name_record,
};
