/* Source IMAGE_PAIRS: pictures with label maps, one label for each pixel.
 *
 * `source` is a folder of pictures (JPEG, PNG; folders within it count) and `label_source` a folder
 * with a map of the same name for each, "a/b.jpg" with "a/b.png"; or `source` is a list file of
 * "picture map" lines. A map is a PNG file whose grey values or palette indices are the labels, and
 * has as many pixels as its picture. Resizing takes the nearest label: labels cannot be mixed.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/picture_file.h"
#include "data/picture_list.h"
#include "data/resize.h"
#include "lockstep.pb-c.h"

static const size_t FILE_LIMIT = (size_t)1 << 29; /* bytes of a map */

struct pairs_options {
    struct ls_option_files pictures;
    const char *maps, *root_folder;
    struct ls_picture_options form;
    int64_t label_clip, label_pad;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct pairs_options, pictures),
     .least = 1,
     .most = 1,
     .help = "a folder of pictures, or a list file of pairs"},
    {.name = "label_source",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct pairs_options, maps),
     .help = "with a folder of pictures: the folder of the label maps"},
    {.name = "root_folder",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct pairs_options, root_folder),
     .help = "with a list file: put before each path"},
    LS_PICTURE_OPTIONS(struct pairs_options, form),
    {.name = "label_clip",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct pairs_options, label_clip),
     .least = 0,
     .most = UINT32_MAX,
     .help = "larger labels become this one (1: instance maps become masks); 0: as they are"},
    {.name = "label_pad",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct pairs_options, label_pad),
     .fallback = 255,
     .least = 0,
     .most = 65535,
     .keeps_records = true,
     .help = "the label of what transform_param.pad puts around a map"},
    {.name = NULL}};

struct pairs {
    struct ls_picture_list pictures, maps; /* map i belongs to picture i */
    struct ls_picture_form form;
    uint32_t clip; /* 0: none */
};

/* ---- Which files ---- */

/* The map of a picture: in another folder, of the same name but for its ending. */
static int find_map(struct pairs *pairs, const char *folder, size_t index, struct ls_error *error)
{
    const char *name = ls_picture_name(&pairs->pictures, index);
    struct ls_text path = {0};
    ls_text_add(&path, folder);
    ls_text_add(&path, "/");
    size_t skip = path.length;
    ls_text_add_bytes(&path, name, (size_t)(strrchr(name, '.') - name)); /* lists need endings */
    ls_text_add(&path, ".png");
    int status = 0;
    if (path.failed)
        status = ls_fail_memory(error, "the list of label maps");
    else if (!ls_file_exists(path.data))
        status = ls_fail(error, LOCKSTEP_DATA, ls_picture_path(&pairs->pictures, index),
                         "a map has the name of its picture, with .png behind it",
                         "has no label map: there is no file '%.300s'", path.data);
    else
        status = ls_picture_list_add(&pairs->maps, path.data, skip, 0, error);
    ls_text_free(&path);
    return status;
}

static int list_files(struct pairs *pairs, const struct ls_source_options *options, char **warning,
                      struct ls_error *error)
{
    const struct pairs_options *own = options->own;
    const char *path = own->pictures.item[0];
    if (!ls_is_directory(path)) {
        if (own->maps != NULL)
            return ls_option_fail(
                options, "label_source", NULL, error,
                "label_source is for folders; the list file '%.200s' names the maps", path);
        return ls_picture_list_pairs(path, own->root_folder, &pairs->pictures, &pairs->maps, error);
    }
    if (own->root_folder != NULL)
        return ls_option_fail(options, "root_folder", NULL, error,
                              "root_folder is for list files; '%.200s' is a folder of pictures",
                              path);
    if (own->maps == NULL)
        return ls_option_fail(options, "source", "label_source: the folder of the maps", error,
                              "a folder of pictures needs a folder of label maps");
    if (!ls_is_directory(own->maps))
        return ls_option_fail(options, "label_source", NULL, error,
                              "label_source '%.200s' is no folder", own->maps);
    LS_TRY(ls_picture_list_flat(path, &pairs->pictures, error));
    LS_TRY(ls_picture_list_warning(&pairs->pictures, path, warning, error));
    for (size_t i = 0; i < pairs->pictures.count; i++)
        LS_TRY(find_map(pairs, own->maps, i, error));
    return 0;
}

/* ---- Looking at them ---- */

static int other_size(const struct pairs *pairs, size_t index, int map_height, int map_width,
                      int height, int width, struct ls_error *error)
{
    return ls_source_bad_record(ls_fail(
        error, LOCKSTEP_DATA, ls_picture_path(&pairs->maps, index),
        "a map has a label for each pixel of its picture",
        "record %zu: has %d x %d labels (height x width), but its picture '%.300s' has %d x %d "
        "pixels",
        index, map_height, map_width, ls_picture_path(&pairs->pictures, index), height, width));
}

static int look_at_map(const struct pairs *pairs, size_t index,
                       const struct ls_picture_header *picture, struct ls_error *error)
{
    const char *path = ls_picture_path(&pairs->maps, index);
    struct ls_mapping mapping;
    struct ls_picture_header map;
    struct ls_problem problem;
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &mapping, error));
    int status = ls_label_map_look(mapping.data, mapping.size, &map, &problem);
    int lost = ls_file_lost(&mapping, path, LOCKSTEP_DATA, error);
    ls_file_unmap(&mapping);
    LS_TRY(lost);
    if (status != 0)
        return ls_picture_file_bad(path, (int64_t)index, &problem, error);
    if (map.height != picture->height || map.width != picture->width)
        return other_size(pairs, index, map.height, map.width, picture->height, picture->width,
                          error);
    return 0;
}

/* Of a map, which is decoded while its picture is there, and resized if that is. */
static size_t map_bytes(const struct ls_picture_header *picture, const int64_t shape[3])
{
    size_t decoded = (size_t)picture->height * (size_t)picture->width;
    size_t made = (size_t)(shape[1] * shape[2]);
    return (decoded + (made != decoded ? made : 0)) * sizeof(uint16_t);
}

static int look_at_pair(struct ls_source *source, size_t i, struct ls_error *error)
{
    const struct pairs *pairs = source->state;
    const char *path = ls_picture_path(&pairs->pictures, i);
    struct ls_picture_header header;
    int64_t shape[3];
    size_t file;
    LS_TRY(ls_picture_file_look(path, (int64_t)i, &header, &file, error));
    ls_source_note_picture(source, header.turned, path, 0);
    LS_TRY(look_at_map(pairs, i, &header, error));
    LS_TRY(ls_picture_file_shape(&pairs->form, path, (int64_t)i, &header, shape, error));
    LS_TRY(ls_source_note_shape(source, (int64_t)i, shape, error));
    ls_source_note_bytes(source, ls_picture_file_bytes(&pairs->form, &header, file) +
                                     map_bytes(&header, shape));
    return 0;
}

static int look(struct ls_source *source, struct ls_error *error)
{
    const struct pairs *pairs = source->state;
    size_t count = pairs->pictures.count;
    for (size_t i = 0; i < count; i++) {
        int status = look_at_pair(source, i, ls_source_aside(source, error));
        LS_TRY(ls_source_forgive(source, status, error));
        if (status == 0 && pairs->form.height > 0 && count > LS_PICTURE_LOOK_LIMIT)
            return 0;
    }
    return 0;
}

static int open_pairs(const struct ls_source_options *options, struct ls_source *source,
                      struct ls_error *error)
{
    const struct pairs_options *own = options->own;
    struct pairs *pairs = source->state = ls_alloc(1, sizeof *pairs);
    if (pairs == NULL)
        return ls_fail_memory(error, "a data source");
    pairs->clip = (uint32_t)own->label_clip;
    source->label_pad = (uint32_t)own->label_pad;
    LS_TRY(ls_picture_form_init(options, &own->form, &pairs->form, error));
    LS_TRY(list_files(pairs, options, &source->warning, error));
    source->count = (int64_t)pairs->pictures.count;
    ls_source_add_image(source);
    ls_source_add_tensor(source, "map", LS_TENSOR_MAP, LS_U16);
    source->encoded = true;
    source->interpolates = !pairs->form.antialias;
    return look(source, error);
}

static void close_pairs(struct ls_source *source)
{
    struct pairs *pairs = source->state;
    if (pairs == NULL)
        return;
    ls_picture_list_free(&pairs->pictures);
    ls_picture_list_free(&pairs->maps);
    ls_free(pairs);
}

/* ---- Reading ---- */

/* Decodes and resizes a map into the reader's buffers, with the hash of its file; the reader may
 * want that alone. `pictured`: its picture was decoded, too, and must have had its size. */
static int decode_map(struct ls_source_reader *reader, int64_t index, bool pictured,
                      struct ls_label_map *map, uint64_t *hash, struct ls_error *error)
{
    const struct pairs *pairs = reader->source->state;
    const char *path = ls_picture_path(&pairs->maps, (size_t)index);
    char *bytes;
    size_t size;
    LS_TRY(ls_file_read(path, FILE_LIMIT, LOCKSTEP_DATA, &bytes, &size, error));
    *hash = ls_hash_wide(bytes, size, 0);
    if (reader->hash_only) {
        ls_free(bytes);
        return 0;
    }
    struct ls_problem problem;
    int status = ls_label_map_decode((const uint8_t *)bytes, size, &reader->file, map, &problem);
    ls_free(bytes);
    if (status == 0 && pictured && (map->height != reader->height || map->width != reader->width))
        return other_size(pairs, (size_t)index, map->height, map->width, reader->height,
                          reader->width, error);
    if (status == 0 && pairs->form.height > 0)
        status =
            ls_label_map_resize(map, pairs->form.height, pairs->form.width, &reader->map, &problem);
    return status == 0 ? 0 : ls_picture_file_bad(path, index, &problem, error);
}

static void clip(struct ls_label_map *map, uint32_t largest)
{
    size_t count = (size_t)map->height * (size_t)map->width;
    for (size_t i = 0; i < count; i++)
        map->labels[i] = map->labels[i] > largest ? (uint16_t)largest : map->labels[i];
}

static int read_pair(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                     struct ls_record *record, struct ls_error *error)
{
    const struct pairs *pairs = reader->source->state;
    struct ls_record_tensor *image = &record->tensor[0], *labels = &record->tensor[1];
    bool pictured = (wanted & LS_TENSOR(0)) != 0;
    if (pictured)
        LS_TRY(ls_picture_file_read(reader, &pairs->form,
                                    ls_picture_path(&pairs->pictures, (size_t)index), index, record,
                                    error));
    if ((wanted & LS_TENSOR(1)) == 0)
        return 0;
    struct ls_label_map map;
    LS_TRY(decode_map(reader, index, pictured, &map, &labels->hash, error));
    if (reader->hash_only)
        return 0;
    const int64_t *shape = image->shape.dim;
    if (map.height != shape[1] || map.width != shape[2])
        return other_size(pairs, (size_t)index, map.height, map.width, (int)shape[1], (int)shape[2],
                          error);
    if (pairs->clip > 0)
        clip(&map, pairs->clip);
    labels->shape = (struct ls_shape){.rank = 3, .dim = {1, map.height, map.width}};
    labels->data = map.labels;
    return 0;
}

static void name_record(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct pairs *pairs = source->state;
    ls_text_add(text, ls_picture_name(&pairs->pictures, (size_t)index));
}

static uint64_t stamp(const struct ls_source *source)
{
    const struct pairs *pairs = source->state;
    return ls_picture_list_stamp(&pairs->pictures) + 3 * ls_picture_list_stamp(&pairs->maps);
}

const struct ls_source_type ls_source_image_pairs = {
    .name = "IMAGE_PAIRS",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__IMAGE_PAIRS,
    .bgr = true,
    .summary = "pictures with label maps, one label for each pixel",
    .unconvertible = "label maps cannot be converted, and are not needed for a mean",
    .options = options_table,
    .options_size = sizeof(struct pairs_options),
    .open = open_pairs,
    .close = close_pairs,
    .read = read_pair,
    .stamp = stamp,
    .name_record = name_record,
};
