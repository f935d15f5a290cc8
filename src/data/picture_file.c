/* Picture files as records; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/picture_file.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/resize.h"

static const size_t FILE_LIMIT = (size_t)1 << 29; /* bytes of a picture file */

int ls_picture_form_init(const struct ls_source_options *options,
                         const struct ls_picture_options *own, struct ls_picture_form *form,
                         struct ls_error *error)
{
    *form = (struct ls_picture_form){.height = (int)own->height,
                                     .width = (int)own->width,
                                     .channels = own->color ? 3 : 1,
                                     .antialias = own->antialias,
                                     .crop = options->crop};
    if ((form->height > 0) != (form->width > 0))
        return ls_option_fail(options, form->height > 0 ? "new_height" : "new_width", NULL, error,
                              "new_height and new_width must be given together");
    int64_t shape[3] = {form->channels, form->height, form->width};
    if (form->height > 0 && !ls_record_shape_valid(shape))
        return ls_option_fail(options, "new_height", NULL, error,
                              "pictures cannot be resized to %d x %d", form->height, form->width);
    return 0;
}

int ls_picture_file_bad(const char *path, int64_t index, const struct ls_problem *problem,
                        struct ls_error *error)
{
    return ls_source_bad_record(ls_fail(error, problem->status, path, NULL, "record %lld: %s",
                                        (long long)index, problem->message));
}

int ls_picture_file_look(const char *path, int64_t index, struct ls_picture_header *header,
                         size_t *file, struct ls_error *error)
{
    struct ls_mapping mapping;
    struct ls_problem problem;
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &mapping, error));
    int status = ls_picture_look(mapping.data, mapping.size, header, &problem);
    *file = mapping.size;
    int lost = ls_file_lost(&mapping, path, LOCKSTEP_DATA, error);
    ls_file_unmap(&mapping);
    LS_TRY(lost);
    return status == 0 ? 0 : ls_picture_file_bad(path, index, &problem, error);
}

int ls_picture_file_shape(const struct ls_picture_form *form, const char *path, int64_t index,
                          const struct ls_picture_header *header, int64_t shape[3],
                          struct ls_error *error)
{
    bool resized = form->height > 0;
    shape[0] = form->channels;
    shape[1] = resized ? form->height : header->height;
    shape[2] = resized ? form->width : header->width;
    if (resized || (header->height >= form->crop && header->width >= form->crop))
        return 0;
    return ls_source_bad_record(
        ls_fail(error, LOCKSTEP_DATA, path, "give new_height and new_width, or a smaller crop",
                "record %lld: has %d x %d pixels (height x width), too few for the crop",
                (long long)index, header->height, header->width));
}

size_t ls_picture_file_bytes(const struct ls_picture_form *form,
                             const struct ls_picture_header *header, size_t file)
{
    return file + ls_picture_bytes(header, form->channels, form->height, form->width);
}

int ls_picture_file_read(struct ls_source_reader *reader, const struct ls_picture_form *form,
                         const char *path, int64_t index, struct ls_record *record,
                         struct ls_error *error)
{
    char *bytes;
    size_t size;
    LS_TRY(ls_file_read(path, FILE_LIMIT, LOCKSTEP_DATA, &bytes, &size, error));
    record->tensor[0].hash = ls_hash_wide(bytes, size, 0);
    if (reader->hash_only) {
        ls_free(bytes);
        return 0;
    }
    struct ls_picture picture;
    struct ls_problem problem;
    int status = ls_picture_decode((const uint8_t *)bytes, size, form->channels, &reader->picture,
                                   &picture, &problem);
    ls_free(bytes);
    reader->height = status == 0 ? picture.height : 0;
    reader->width = status == 0 ? picture.width : 0;
    if (status == 0 && form->height > 0)
        status = ls_picture_resize_to_record(&picture, form->height, form->width, form->antialias,
                                             &reader->record, record, &problem);
    else if (status == 0)
        status = ls_picture_to_record(&picture, &reader->record, record, &problem);
    return status == 0 ? 0 : ls_picture_file_bad(path, index, &problem, error);
}
