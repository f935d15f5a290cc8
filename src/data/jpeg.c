/* JPEG through libjpeg-turbo. It reports errors by a call that must not return: it jumps back to
 * where decoding began (setjmp), where everything is released.
 *
 * The decoder's choices that change pixels are fixed: the accurate integer DCT and "fancy"
 * upsampling, whose results do not depend on the processor.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>

#include "base/memory.h"
#include "data/picture_inner.h"

enum { SCANS_MAX = 200 }; /* of a progressive JPEG; each costs a pass over the picture */

struct jpeg_job {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr handler;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    int status;
    struct ls_problem *problem; /* the caller's */
};

_Noreturn static void jpeg_give_up(struct jpeg_job *job, int status)
{
    job->status = status;
    longjmp(job->back, 1);
}

/* A file that needs memory which is not there is not damaged. */
static void jpeg_failed(j_common_ptr common)
{
    struct jpeg_job *job = common->client_data;
    char text[JMSG_LENGTH_MAX];
    if (common->err->msg_code == JERR_OUT_OF_MEMORY)
        jpeg_give_up(job, ls_picture_no_memory(job->problem));
    common->err->format_message(common, text);
    jpeg_give_up(job, ls_problem_set(job->problem, LOCKSTEP_DATA, NULL, "damaged JPEG: %s", text));
}

/* Level -1 is a warning. After most of them pixels are made up: failures here. Odd marks of
 * programs and extra bytes between markers are common in good files. */
static void jpeg_warned(j_common_ptr common, int level)
{
    if (level != -1)
        return;
    switch (common->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
        return;
    default:
        jpeg_failed(common);
    }
}

static void jpeg_silent(j_common_ptr common)
{
    (void)common;
}

static void jpeg_progress(j_common_ptr common)
{
    const struct jpeg_decompress_struct *jpeg = (const struct jpeg_decompress_struct *)common;
    struct jpeg_job *job = common->client_data;
    if (jpeg->input_scan_number > SCANS_MAX)
        jpeg_give_up(
            job, ls_problem_set(job->problem, LOCKSTEP_DATA, NULL, "the JPEG has too many scans"));
}

/* Up to the header. jpeg_create_decompress must already be covered by setjmp of the caller. */
static void jpeg_begin(struct jpeg_job *job, const uint8_t *bytes, size_t size)
{
    jpeg_create_decompress(&job->jpeg);
    job->jpeg.client_data = job;
    job->progress.progress_monitor = jpeg_progress;
    job->jpeg.progress = &job->progress;
    jpeg_mem_src(&job->jpeg, bytes, (unsigned long)size);
    jpeg_read_header(&job->jpeg, TRUE);
    int status = ls_picture_check_size(job->jpeg.image_height, job->jpeg.image_width, job->problem);
    if (status != 0)
        jpeg_give_up(job, status);
}

static struct jpeg_job *jpeg_new(struct ls_problem *problem)
{
    struct jpeg_job *job = ls_alloc(1, sizeof *job);
    if (job == NULL) {
        ls_picture_no_memory(problem);
        return NULL;
    }
    job->problem = problem;
    job->jpeg.err = jpeg_std_error(&job->handler);
    job->jpeg.client_data = job;
    job->handler.error_exit = jpeg_failed;
    job->handler.emit_message = jpeg_warned;
    job->handler.output_message = jpeg_silent;
    return job;
}

/* Frees a job and returns how it ended. */
static int jpeg_end(struct jpeg_job *job)
{
    int status = job->status;
    jpeg_destroy_decompress(&job->jpeg);
    ls_free(job);
    return status;
}

/* The coefficients of a picture that comes in several scans are kept until the last one. */
static size_t jpeg_coefficients(struct jpeg_decompress_struct *jpeg)
{
    size_t bytes = 0;
    if (!jpeg_has_multiple_scans(jpeg))
        return 0;
    for (int i = 0; i < jpeg->num_components; i++) {
        const jpeg_component_info *component = &jpeg->comp_info[i];
        bytes += (size_t)component->width_in_blocks * component->height_in_blocks * sizeof(JBLOCK);
    }
    return bytes;
}

int ls_jpeg_look(const uint8_t *bytes, size_t size, struct ls_picture_header *header,
                 struct ls_problem *problem)
{
    struct jpeg_job *job = jpeg_new(problem);
    if (job == NULL)
        return LOCKSTEP_RESOURCE;
    if (setjmp(job->back) == 0) {
        jpeg_begin(job, bytes, size);
        header->height = (int)job->jpeg.image_height;
        header->width = (int)job->jpeg.image_width;
        header->channels = job->jpeg.num_components == 1 ? 1 : 3;
        header->whole = jpeg_coefficients(&job->jpeg);
    }
    return jpeg_end(job);
}

/* A row of CMYK to RGB, in place. Adobe's programs, which are the ones that write such files, store
 * the complements. */
static void cmyk_row(uint8_t *row, int width, bool complements)
{
    uint8_t *rgb = row;
    for (int x = 0; x < width; x++, row += 4, rgb += 3) {
        unsigned key = complements ? row[3] : 255U - row[3];
        for (int c = 0; c < 3; c++) {
            unsigned ink = complements ? row[c] : 255U - row[c];
            rgb[c] = (uint8_t)((ink * key + 127) / 255);
        }
    }
}

/* Decodes all rows. Four components need a wider buffer for the row at hand, so one extra pixel a
 * row is reserved at the very end of the picture. */
static void jpeg_rows(struct jpeg_job *job, int channels, struct ls_buffer *buffer,
                      struct ls_picture *picture)
{
    struct jpeg_decompress_struct *jpeg = &job->jpeg;
    if (channels == 0)
        channels = jpeg->num_components == 1 ? 1 : 3;
    bool cmyk = jpeg->num_components == 4;
    jpeg->out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    jpeg_start_decompress(jpeg);
    int width = (int)jpeg->output_width, height = (int)jpeg->output_height;
    size_t row_bytes = (size_t)width * (size_t)channels;
    uint8_t *pixels = ls_buffer_reserve(buffer, row_bytes * (size_t)height + 4 * (size_t)width, 1);
    if (pixels == NULL)
        jpeg_give_up(job, ls_picture_no_memory(job->problem));
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *row = pixels + row_bytes * jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, &row, 1);
        if (cmyk)
            cmyk_row(row, width, jpeg->saw_Adobe_marker);
        if (cmyk && channels == 1)
            ls_picture_grey_row(row, width);
    }
    jpeg_finish_decompress(jpeg);
    *picture = (struct ls_picture){height, width, channels, pixels};
}

int ls_jpeg_decode(const uint8_t *bytes, size_t size, int channels, struct ls_buffer *buffer,
                   struct ls_picture *picture, struct ls_problem *problem)
{
    struct jpeg_job *job = jpeg_new(problem);
    if (job == NULL)
        return LOCKSTEP_RESOURCE;
    if (setjmp(job->back) == 0) {
        jpeg_begin(job, bytes, size);
        jpeg_rows(job, channels, buffer, picture);
    }
    return jpeg_end(job);
}
