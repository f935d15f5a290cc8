/* Helpers of the tests of weights: targets that record the blobs that they get, and caffemodels
 * of every form, made by hand.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_WEIGHT_TRIAL_H
#define LS_TESTS_WEIGHT_TRIAL_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/wire.h"
#include "snapshot/caffemodel.h"
#include "snapshot/weights.h"
#include "support/support.h"

#include "memory_file.h"

/* ---- Targets that write down what they get ---- */

enum { MOST = 16 };
struct sink {
    struct ls_weight_target targets[MOST];
    float stored[MOST][64];
    int times[MOST];
    size_t count;
};

static inline int store(void *user, const struct ls_weight_target *target, const float *data,
                        struct ls_error *error)
{
    (void)error;
    struct sink *sink = user;
    size_t index = (size_t)(target - sink->targets);
    assert_true(ls_shape_size(&target->shape) <= 64);
    memcpy(sink->stored[index], data, (size_t)ls_shape_size(&target->shape) * sizeof(float));
    sink->times[index]++;
    return 0;
}

static inline void want(struct sink *sink, const char *layer, int blob, int blob_count,
                        struct ls_shape shape)
{
    sink->targets[sink->count] = (struct ls_weight_target){.layer = layer,
                                                           .blob = blob,
                                                           .blob_count = blob_count,
                                                           .parameter = (int)sink->count,
                                                           .shape = shape,
                                                           .store = store,
                                                           .user = sink};
    sink->count++;
}

#define SHAPE1(a)    ((struct ls_shape){1, {a}})
#define SHAPE2(a, b) ((struct ls_shape){2, {a, b}})

/* ---- Caffemodels made by hand ---- */

static inline void add_message(struct ls_text *text, uint32_t number, struct ls_text *inner)
{
    ls_wire_add_bytes(text, number, inner->data, inner->length);
    ls_text_free(inner);
}

static inline void add_number(struct ls_text *text, uint32_t number, uint64_t value)
{
    ls_wire_add_varint(text, (uint64_t)number << 3 | LS_WIRE_VARINT);
    ls_wire_add_varint(text, value);
}

static const float sequence[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

/* A blob with legacy extents and packed floats. */
static inline void add_legacy_blob(struct ls_text *text, uint32_t number, const int extents[4])
{
    struct ls_text blob = {0};
    size_t count = 1;
    for (uint32_t i = 0; i < 4; i++) {
        add_number(&blob, i + 1, (uint64_t)extents[i]);
        count *= (size_t)extents[i];
    }
    ls_wire_add_bytes(&blob, 5, sequence, count * sizeof(float));
    add_message(text, number, &blob);
}

static inline void write_text(const char *path, struct ls_text *text)
{
    assert_false(text->failed);
    ls_test_write(path, text->data, text->length);
    ls_text_free(text);
}

/* A V1 net: "ip" with a weight of 1x1x2x3 and a bias of 1x1x1x2, and a layer without blobs. */
static inline const char *write_v1(void)
{
    struct ls_text net = {0}, layer = {0}, plain = {0};
    ls_wire_add_bytes(&net, 1, "old", 3);
    ls_wire_add_bytes(&plain, 4, "relu", 4);
    add_message(&net, 2, &plain);
    ls_wire_add_bytes(&layer, 4, "ip", 2);
    add_number(&layer, 5, 14);
    add_legacy_blob(&layer, 6, (const int[4]){1, 1, 2, 3});
    add_legacy_blob(&layer, 6, (const int[4]){1, 1, 1, 2});
    add_message(&net, 2, &layer);
    const char *path = ls_test_path("v1.caffemodel");
    write_text(path, &net);
    return path;
}

static inline const char *write_v0(void)
{
    struct ls_text net = {0}, v1 = {0}, v0 = {0};
    ls_wire_add_bytes(&v0, 1, "ip", 2);
    ls_wire_add_bytes(&v0, 2, "innerproduct", 12);
    add_legacy_blob(&v0, 50, (const int[4]){1, 1, 2, 3});
    add_legacy_blob(&v0, 50, (const int[4]){1, 1, 1, 2});
    ls_wire_add_bytes(&v1, 2, "data", 4);
    add_message(&v1, 1, &v0);
    add_message(&net, 2, &v1);
    const char *path = ls_test_path("v0.caffemodel");
    write_text(path, &net);
    return path;
}

/* A net of the present form with doubles and with floats one by one, in two parts. */
static inline const char *write_v2(void)
{
    struct ls_text net = {0}, layer = {0}, weight = {0}, bias = {0}, shape = {0};
    double doubles[6];
    for (int i = 0; i < 6; i++)
        doubles[i] = sequence[i];
    add_number(&shape, 1, 2); /* dimensions one by one, too */
    add_number(&shape, 1, 3);
    add_message(&weight, 7, &shape);
    ls_wire_add_bytes(&weight, 8, doubles, sizeof doubles);
    ls_wire_add_bytes(&shape, 1, "\x02", 1);
    add_message(&bias, 7, &shape);
    for (int i = 0; i < 2; i++) {
        ls_wire_add_varint(&bias, 5 << 3 | LS_WIRE_32);
        ls_text_add_bytes(&bias, &sequence[i], 4);
    }
    ls_wire_add_bytes(&bias, 6, sequence, 4); /* a diff, of a wrong size: of no interest */
    add_message(&layer, 7, &weight);
    ls_wire_add_bytes(&layer, 1, "ip", 2);
    add_message(&layer, 7, &bias);
    add_number(&layer, 149, 7); /* a fork's own field */
    add_message(&net, 100, &layer);
    const char *path = ls_test_path("v2.caffemodel");
    write_text(path, &net);
    return path;
}

#endif
