/* Sources of records, and pictures by themselves: the first of them. See inspect/show.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/picture.h"
#include "data/source.h"
#include "inspect/elements.h"
#include "inspect/show_inner.h"
#include "ir/convert.h"

enum { VALUES = 12, PICTURE_FILE_MAX = 1 << 28 };

static void add_shape(struct ls_text *text, const struct ls_shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        ls_text_format(text, "%s%" PRId64, i > 0 ? "x" : "", shape->dim[i]);
}

/* "data 1x28x28 U8; label 5": a tensor of few numbers with these. */
static void add_tensor(struct ls_text *text, const char *name,
                       const struct ls_record_tensor *tensor)
{
    int64_t count = ls_tensor_numbers(tensor);
    double values[VALUES];
    ls_text_format(text, "%s%s", text->length > 0 ? "; " : "", name);
    if (tensor->shape.rank > 0) {
        ls_text_add(text, " ");
        add_shape(text, &tensor->shape);
        ls_text_format(text, " %s", ls_dtype_name(tensor->type));
    }
    if (tensor->data == NULL || count > VALUES)
        return;
    ls_elements_read(tensor->type, tensor->data, (size_t)count, values);
    ls_text_add(text, tensor->shape.rank > 0 ? ":" : "");
    for (int64_t i = 0; i < count; i++)
        ls_text_format(text, " %.7g", values[i]);
}

/* The picture of a record as floats, red first; NULL: it has none, or there is no memory. */
static float *picture_of(const struct ls_source *source, const struct ls_record_tensor *image)
{
    size_t count = (size_t)ls_tensor_numbers(image);
    bool drawn = ls_source_has_image(source) && image->data != NULL && image->shape.rank == 3 &&
                 (image->type == LS_U8 || image->type == LS_F32);
    float *pixels = drawn ? ls_alloc(count + 1, sizeof *pixels) : NULL;
    if (pixels == NULL)
        return NULL;
    ls_dtype_convert(image->type, image->data, LS_F32, pixels, count);
    size_t plane = count / (size_t)image->shape.dim[0];
    for (size_t i = 0; source->bgr && image->shape.dim[0] == 3 && i < plane; i++) {
        float blue = pixels[i];
        pixels[i] = pixels[2 * plane + i];
        pixels[2 * plane + i] = blue;
    }
    return pixels;
}

static int show_sample(const struct ls_showing *showing, struct ls_source_reader *reader,
                       int64_t index, struct ls_error *error)
{
    const struct ls_source *source = reader->source;
    struct ls_record record = {0};
    struct ls_text text = {0}, name = {0};
    LS_TRY(ls_source_read(reader, index, LS_ALL_TENSORS, &record, error));
    struct lockstep_shown_record shown = {.index = index, .label = -1};
    for (int k = 0; k < source->tensors; k++)
        add_tensor(&text, source->tensor[k].name, &record.tensor[k]);
    if (source->tensors > 1 && record.tensor[1].data != NULL &&
        ls_tensor_numbers(&record.tensor[1]) == 1 && record.tensor[1].type == LS_I32) {
        int32_t label;
        memcpy(&label, record.tensor[1].data, sizeof label);
        shown.label = label;
    }
    if (source->type->name_record != NULL)
        source->type->name_record(source, index, &name);
    float *pixels = picture_of(source, &record.tensor[0]);
    for (int i = 0; i < 3 && pixels != NULL; i++)
        shown.shape[i] = record.tensor[0].shape.dim[i];
    shown.pixels = pixels;
    shown.name = name.data != NULL ? name.data : "";
    shown.text = text.data != NULL ? text.data : "";
    ls_show_announce(showing);
    if (showing->options->record != NULL)
        showing->options->record(showing->options->user, &shown);
    ls_free(pixels);
    ls_text_free(&text);
    ls_text_free(&name);
    return 0;
}

static int show_samples(const struct ls_showing *showing, struct ls_source *source,
                        struct ls_error *error)
{
    struct ls_source_reader *reader;
    struct ls_text classes = {0};
    ls_show_fact(showing, "records", "%" PRId64, source->count);
    for (int k = 0; k < source->tensors; k++) {
        struct ls_text shape = {0};
        add_shape(&shape, &source->tensor[k].shape);
        ls_show_fact(showing, source->tensor[k].name, "%s %s%s",
                     shape.data != NULL ? shape.data : "a number",
                     ls_dtype_name(source->tensor[k].type),
                     source->varies && k == 0 ? ", of the first; sizes differ" : "");
        ls_text_free(&shape);
    }
    for (int c = 0; c < source->class_count && c < 1000; c++)
        ls_text_format(&classes, "%s%s", c > 0 ? "\n" : "", source->class_name[c]);
    if (classes.data != NULL)
        ls_show_text(showing, "classes", classes.data);
    ls_text_free(&classes);
    LS_TRY(ls_source_reader_open(source, &reader, error));
    int status = 0;
    for (int64_t i = 0; i < source->count && i < showing->records && status == 0; i++)
        status = show_sample(showing, reader, i, error);
    ls_source_reader_close(reader);
    return status;
}

static int open_source(const struct ls_showing *showing, const char *backend, bool annotated,
                       struct ls_source **source, struct ls_error *error)
{
    const struct lockstep_source_options given = {.struct_size = sizeof given,
                                                  .backend = backend,
                                                  .source = &showing->path,
                                                  .source_count = 1};
    struct ls_source_options options;
    *source = NULL;
    int status = ls_source_options_take(&given, &options, error);
    if (status == 0) {
        options.skipping = true; /* bad records fail where they are shown */
        options.annotated = annotated;
        status = ls_source_open(&options, source, error);
    }
    ls_source_options_free(&options);
    return status;
}

/* A database may hold pictures with boxes, whose records are other messages. */
static int open_any(const struct ls_showing *showing, const char *backend, bool *boxes,
                    struct ls_source **source, struct ls_error *error)
{
    struct ls_error *first = ls_alloc(1, sizeof *first);
    if (first == NULL)
        return ls_fail_memory(error, showing->path);
    int status = open_source(showing, backend, false, source, first);
    *boxes = status != 0 && (showing->kind == LS_KIND_LMDB || showing->kind == LS_KIND_LEVELDB) &&
             open_source(showing, backend, true, source, NULL) == 0;
    if (status != 0 && !*boxes)
        ls_error_add(error, first);
    ls_free(first);
    return *boxes ? 0 : status;
}

int ls_show_source(const struct ls_showing *showing, const char *backend, struct ls_error *error)
{
    struct ls_source *source = NULL;
    bool boxes = false;
    int status = open_any(showing, backend, &boxes, &source, error);
    if (status == 0 && boxes)
        ls_show_fact(showing, "holds",
                     "pictures with boxes (SSD's AnnotatedDatum), for a layer of "
                     "type AnnotatedData");
    if (status == 0)
        status = show_samples(showing, source, error);
    ls_source_close(source);
    return status;
}

int ls_show_picture(const struct ls_showing *showing, struct ls_error *error)
{
    char *bytes;
    size_t size;
    struct ls_buffer buffer = {0};
    struct ls_picture picture;
    struct ls_problem problem;
    LS_TRY(ls_file_read(showing->path, PICTURE_FILE_MAX, LOCKSTEP_DATA, &bytes, &size, error));
    int status = ls_picture_decode((const uint8_t *)bytes, size, 0, &buffer, &picture, &problem);
    if (status != 0)
        status = ls_fail(error, status, showing->path, problem.hint, "%s", problem.message);
    size_t plane = status == 0 ? (size_t)picture.height * (size_t)picture.width : 0;
    float *pixels = status == 0 ? ls_alloc(plane * (size_t)picture.channels, sizeof *pixels) : NULL;
    if (status == 0) {
        ls_show_fact(showing, "size", "%d x %d pixels, %s", picture.width, picture.height,
                     picture.channels == 1 ? "grey" : "colour");
        struct lockstep_shown_record record = {
            .name = "",
            .text = "",
            .label = -1,
            .pixels = pixels,
            .shape = {picture.channels, picture.height, picture.width}};
        for (size_t i = 0; pixels != NULL && i < plane * (size_t)picture.channels; i++)
            pixels[i % (size_t)picture.channels * plane + i / (size_t)picture.channels] =
                picture.pixels[i];
        ls_show_announce(showing);
        if (showing->records > 0 && pixels != NULL && showing->options->record != NULL)
            showing->options->record(showing->options->user, &record);
    }
    ls_free(pixels);
    ls_free(bytes);
    ls_buffer_free(&buffer);
    return status;
}

/* A folder with a folder of pictures for each class is a source; of others it is said what is in
 * them. */
int ls_show_folder(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_error reason = {0};
    int64_t files = 0, folders = 0;
    DIR *directory = opendir(showing->path);
    if (directory == NULL)
        return ls_fail_errno(error, LOCKSTEP_USAGE, showing->path, "cannot open");
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct ls_text path = {0};
        if (entry->d_name[0] == '.')
            continue;
        ls_text_format(&path, "%s/%s", showing->path, entry->d_name);
        bool folder = path.data != NULL && ls_is_directory(path.data);
        files += !folder;
        folders += folder;
        ls_text_free(&path);
    }
    closedir(directory);
    ls_show_fact(showing, "holds", "%" PRId64 " files and %" PRId64 " folders", files, folders);
    if (folders > 0 && ls_show_source(showing, "IMAGES", &reason) == 0)
        return 0;
    ls_show_fact(showing, "as pictures by class", "no: %s",
                 folders > 0 && reason.count > 0 ? reason.problems[0].message
                                                 : "there is no folder for a class");
    return 0;
}
