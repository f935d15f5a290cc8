/* TensorBoard's messages. See observe/records.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "observe/records.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/wire.h"

enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };
enum { SUMMARY_VALUE = 1 };
enum {
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_IMAGE = 4,
    VALUE_HISTOGRAM = 5,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9
};
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_STRINGS = 8, TENSOR_STRING = 7 };
enum { SHAPE_AXIS = 2, AXIS_SIZE = 1 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_CHANNELS = 3, IMAGE_BYTES = 4 };
enum {
    HISTOGRAM_LEAST = 1,
    HISTOGRAM_MOST = 2,
    HISTOGRAM_COUNT = 3,
    HISTOGRAM_SUM = 4,
    HISTOGRAM_SQUARES = 5,
    HISTOGRAM_EDGES = 6,
    HISTOGRAM_COUNTS = 7
};

/* The lowest `size` bytes of a number, the lowest first. */
static void add_fixed(struct ls_text *text, uint64_t bits, size_t size)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(bits >> (8 * i));
    ls_text_add_bytes(text, bytes, size);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void add_double(struct ls_text *text, uint32_t number, double value)
{
    ls_wire_add_varint(text, (uint64_t)number << 3 | LS_WIRE_64);
    add_fixed(text, bits_of(value), 8);
}

static void add_float(struct ls_text *text, uint32_t number, double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    ls_wire_add_varint(text, (uint64_t)number << 3 | LS_WIRE_32);
    add_fixed(text, bits, 4);
}

static void add_integer(struct ls_text *text, uint32_t number, int64_t value)
{
    ls_wire_add_varint(text, (uint64_t)number << 3 | LS_WIRE_VARINT);
    ls_wire_add_varint(text, (uint64_t)value);
}

static void add_string(struct ls_text *text, uint32_t number, const char *string)
{
    ls_wire_add_bytes(text, number, string, strlen(string));
}

/* A message as a field of another, which it is gone with. */
static void add_message(struct ls_text *text, uint32_t number, struct ls_text *message)
{
    ls_wire_add_bytes(text, number, message->data, message->length);
    text->failed = text->failed || message->failed;
    ls_text_free(message);
}

void ls_records_add(struct ls_text *file, const struct ls_text *message)
{
    struct ls_text length = {0};
    add_fixed(&length, message->length, 8);
    ls_text_add_bytes(file, length.data, length.length);
    add_fixed(file, ls_crc32c_masked(ls_crc32c(0, length.data, length.length)), 4);
    ls_text_add_bytes(file, message->data, message->length);
    add_fixed(file, ls_crc32c_masked(ls_crc32c(0, message->data, message->length)), 4);
    file->failed = file->failed || message->failed || length.failed;
    ls_text_free(&length);
}

/* ---- Values ---------------------------------------------------------------------------------- */

void ls_summary_scalar(struct ls_text *summary, const char *tag, double value)
{
    struct ls_text item = {0};
    add_string(&item, VALUE_TAG, tag);
    add_float(&item, VALUE_SIMPLE, value);
    add_message(summary, SUMMARY_VALUE, &item);
}

static void add_metadata(struct ls_text *item, const char *plugin)
{
    struct ls_text data = {0}, metadata = {0};
    add_string(&data, PLUGIN_NAME, plugin);
    add_message(&metadata, METADATA_PLUGIN, &data);
    add_message(item, VALUE_METADATA, &metadata);
}

/* A tensor of one string. */
void ls_summary_text(struct ls_text *summary, const char *tag, const char *markdown)
{
    struct ls_text item = {0}, tensor = {0}, shape = {0}, axis = {0};
    add_integer(&axis, AXIS_SIZE, 1);
    add_message(&shape, SHAPE_AXIS, &axis);
    add_integer(&tensor, TENSOR_TYPE, TENSOR_STRING);
    add_message(&tensor, TENSOR_SHAPE, &shape);
    add_string(&tensor, TENSOR_STRINGS, markdown);
    add_string(&item, VALUE_TAG, tag);
    add_message(&item, VALUE_TENSOR, &tensor);
    add_metadata(&item, "text");
    add_message(summary, SUMMARY_VALUE, &item);
}

void ls_summary_png(struct ls_text *summary, const char *tag, int64_t height, int64_t width,
                    int channels, const void *bytes, size_t size)
{
    struct ls_text item = {0}, image = {0};
    add_integer(&image, IMAGE_HEIGHT, height);
    add_integer(&image, IMAGE_WIDTH, width);
    add_integer(&image, IMAGE_CHANNELS, channels);
    ls_wire_add_bytes(&image, IMAGE_BYTES, bytes, size);
    add_string(&item, VALUE_TAG, tag);
    add_message(&item, VALUE_IMAGE, &image);
    add_message(summary, SUMMARY_VALUE, &item);
}

/* A bin is told by its upper edge, so that the lowest edge is that of an empty one. */
void ls_summary_histogram(struct ls_text *summary, const char *tag,
                          const struct lockstep_histogram *histogram, double squares)
{
    struct ls_text item = {0}, message = {0};
    const size_t bins = histogram->count;
    double all = 0;
    for (size_t i = 0; i < bins; i++)
        all += (double)histogram->counts[i];
    add_double(&message, HISTOGRAM_LEAST, histogram->edges[0]);
    add_double(&message, HISTOGRAM_MOST, histogram->edges[bins]);
    add_double(&message, HISTOGRAM_COUNT, all);
    add_double(&message, HISTOGRAM_SUM, histogram->sum);
    add_double(&message, HISTOGRAM_SQUARES, squares);
    ls_wire_add_head(&message, HISTOGRAM_EDGES, 8 * (bins + 1));
    for (size_t i = 0; i <= bins; i++)
        add_fixed(&message, bits_of(histogram->edges[i]), 8);
    ls_wire_add_head(&message, HISTOGRAM_COUNTS, 8 * (bins + 1));
    add_fixed(&message, bits_of(0), 8);
    for (size_t i = 0; i < bins; i++)
        add_fixed(&message, bits_of((double)histogram->counts[i]), 8);
    add_string(&item, VALUE_TAG, tag);
    add_message(&item, VALUE_HISTOGRAM, &message);
    add_message(summary, SUMMARY_VALUE, &item);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Void steps are looked for only in files of this version. */
void ls_record_version(struct ls_text *event, double time)
{
    add_double(event, EVENT_TIME, time);
    add_string(event, EVENT_VERSION, "brain.Event:2");
}

void ls_record_start(struct ls_text *event, double time, int64_t step)
{
    struct ls_text session = {0};
    add_double(event, EVENT_TIME, time);
    add_integer(event, EVENT_STEP, step);
    add_integer(&session, SESSION_STATUS, SESSION_START);
    add_message(event, EVENT_SESSION, &session);
}

void ls_record_summary(struct ls_text *event, double time, int64_t step,
                       const struct ls_text *summary)
{
    add_double(event, EVENT_TIME, time);
    add_integer(event, EVENT_STEP, step);
    ls_wire_add_bytes(event, EVENT_SUMMARY, summary->data, summary->length);
    event->failed = event->failed || summary->failed;
}
