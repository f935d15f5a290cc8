/* Databases of pictures with boxes for tests, as SSD's fork writes them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_ANNOTATED_FILES_H
#define LS_TESTS_ANNOTATED_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/wire.h"
#include "data/lmdb_write.h"
#include "support/support.h"

struct annotated_box {
    int class, instance;
    float corner[4]; /* xmin, ymin, xmax, ymax */
    bool difficult;
};

static inline void annotated_number(struct ls_text *text, uint32_t number, int64_t value)
{
    ls_wire_add_varint(text, number << 3 | LS_WIRE_VARINT);
    ls_wire_add_varint(text, (uint64_t)value);
}

static inline void annotated_message(struct ls_text *text, uint32_t number, struct ls_text *inner)
{
    ls_wire_add_bytes(text, number, inner->data != NULL ? inner->data : "", inner->length);
    ls_text_free(inner);
}

/* An AnnotationGroup with one box. */
static inline void annotated_add_box(struct ls_text *record, const struct annotated_box *box)
{
    struct ls_text bbox = {0}, annotation = {0}, group = {0};
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t bytes[4];
        uint32_t bits;
        memcpy(&bits, &box->corner[i], sizeof bits);
        for (int k = 0; k < 4; k++)
            bytes[k] = (uint8_t)(bits >> (8 * k));
        ls_wire_add_varint(&bbox, (i + 1) << 3 | LS_WIRE_32);
        ls_text_add_bytes(&bbox, (const char *)bytes, sizeof bytes);
    }
    annotated_number(&bbox, 6, box->difficult);
    annotated_number(&annotation, 1, box->instance);
    annotated_message(&annotation, 2, &bbox);
    annotated_message(&group, 2, &annotation); /* the class may stand behind its boxes */
    annotated_number(&group, 1, box->class);
    annotated_message(record, 3, &group);
}

/* A record of pixels, C x H x W, with its boxes; `typed`: it says that they are boxes. */
static inline void annotated_record(struct ls_text *record, const int64_t shape[3],
                                    const uint8_t *pixels, const struct annotated_box *boxes,
                                    int count, bool typed)
{
    struct ls_text datum = {0};
    for (uint32_t i = 0; i < 3; i++)
        annotated_number(&datum, i + 1, shape[i]);
    ls_wire_add_bytes(&datum, 4, pixels, (size_t)(shape[0] * shape[1] * shape[2]));
    annotated_number(&datum, 5, -1);
    annotated_message(record, 1, &datum);
    if (typed)
        annotated_number(record, 2, 0);
    for (int i = 0; i < count; i++)
        annotated_add_box(record, &boxes[i]);
}

static inline int annotated_make(void *user, int64_t i, struct ls_text *key, const uint8_t **bytes,
                                 size_t *size, struct ls_error *error)
{
    const struct ls_text *record = (const struct ls_text *)user + i;
    (void)error;
    ls_text_format(key, "%08lld_%lld.jpg", (long long)i, (long long)i);
    *bytes = (const uint8_t *)record->data;
    *size = record->length;
    return 0;
}

static inline int annotated_progress(void *user, int64_t done, struct ls_error *error)
{
    (void)user;
    (void)done;
    (void)error;
    return 0;
}

/* Writes records to an LMDB database, and frees them. */
static inline void annotated_write_to(const char *path, struct ls_text *records, int64_t count)
{
    const struct ls_lmdb_records all = {
        .count = count, .make = annotated_make, .progress = annotated_progress, .user = records};
    assert_int_equal(ls_lmdb_write(path, &all, NULL), 0);
    for (int64_t i = 0; i < count; i++)
        ls_text_free(&records[i]);
}

/* The same in the test's directory. */
static inline const char *annotated_write(const char *name, struct ls_text *records, int64_t count)
{
    const char *path = ls_test_path(name);
    annotated_write_to(path, records, count);
    return path;
}

enum { ANNOTATED_BOXES = 3, ANNOTATED_MOST = 64 };

/* A database of `count` pictures of three channels, of heights from `height` and widths from
 * `width` on, with up to three boxes each of classes 1 to `classes`, which show even colours.
 * Numbers are those of a stream of 64-bit words. */
static inline void annotated_make_set(const char *path, int count, int height, int width,
                                      int classes, uint64_t stream,
                                      uint64_t (*word)(uint64_t stream))
{
    struct ls_text records[ANNOTATED_MOST] = {{0}};
    assert_true(count <= ANNOTATED_MOST);
    for (int i = 0; i < count; i++) {
        const int64_t shape[3] = {3, height + i % 3, width + i % 4};
        const int64_t plane = shape[1] * shape[2];
        struct annotated_box boxes[ANNOTATED_BOXES];
        const int there = (int)(word(stream++) >> 32) % (ANNOTATED_BOXES + 1);
        uint8_t *pixels = malloc((size_t)(3 * plane));
        assert_non_null(pixels);
        for (int64_t k = 0; k < 3 * plane; k++)
            pixels[k] = (uint8_t)((word(stream++) >> 56) & 63);
        for (int b = 0; b < there; b++) {
            const uint64_t drawn = word(stream++) >> 8;
            const int64_t h = shape[1] / 3 + (int64_t)(drawn % 5);
            const int64_t w = shape[2] / 3 + (int64_t)(drawn >> 8) % 5;
            const int64_t y = (int64_t)(drawn >> 16) % (shape[1] - h);
            const int64_t x = (int64_t)(drawn >> 24) % (shape[2] - w);
            boxes[b] = (struct annotated_box){
                .class = 1 + (int)(drawn >> 32) % classes,
                .instance = b,
                .corner = {(float)x / (float)shape[2], (float)y / (float)shape[1],
                           (float)(x + w) / (float)shape[2], (float)(y + h) / (float)shape[1]},
                .difficult = (drawn >> 40) % 8 == 0};
            for (int64_t c = 0; c < 3; c++)
                for (int64_t r = y; r < y + h; r++)
                    memset(pixels + c * plane + r * shape[2] + x,
                           c == boxes[b].class % 3 ? 240 : 120, (size_t)w);
        }
        annotated_record(&records[i], shape, pixels, boxes, there, true);
        free(pixels);
    }
    annotated_write_to(path, records, count);
}

#endif
