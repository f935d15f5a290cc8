/* Comparing two snapshots, tensor by tensor and note by note. See solver/diff.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/diff.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "schema/canonical.h"
#include "snapshot/archive.h"
#include "snapshot/weights.h"
#include "solver/notes.h"

enum { SHORT = 60 }; /* of a note, to be shown */

struct difference {
    struct ls_archive first, second;
    const char *names[2];
    void (*tell)(void *user, const char *line);
    void *user;
    size_t tensors, weights; /* that differ: of both kinds, of those that are learned */
};

static void say(struct difference *difference, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct difference *difference, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    difference->tell(difference->user, line);
}

/* Weights are what has no prefix of the state. */
static bool is_weight(const struct ls_tensor *tensor)
{
    return strncmp(tensor->name, LS_PREFIX_STATE, strlen(LS_PREFIX_STATE)) != 0 &&
           strncmp(tensor->name, LS_PREFIX_AVERAGE, strlen(LS_PREFIX_AVERAGE)) != 0;
}

static void count(struct difference *difference, const struct ls_tensor *tensor)
{
    difference->tensors++;
    difference->weights += is_weight(tensor);
}

/* The element at `bytes` as text. */
static void show(enum ls_dtype type, const unsigned char *bytes, char text[64])
{
    float single;
    double real;
    int32_t number;
    switch (type) {
    case LS_F32:
        memcpy(&single, bytes, sizeof single);
        snprintf(text, 64, "%.9g", (double)single);
        break;
    case LS_F64:
        memcpy(&real, bytes, sizeof real);
        snprintf(text, 64, "%.17g", real);
        break;
    case LS_I32:
        memcpy(&number, bytes, sizeof number);
        snprintf(text, 64, "%d", number);
        break;
    default:
        snprintf(text, 64, "other bytes");
    }
}

/* Two tensors of one type and shape. */
static void compare_elements(struct difference *difference, const struct ls_tensor *a,
                             const struct ls_tensor *b)
{
    size_t size = ls_dtype_size(a->type), differ = 0, first = 0, elements = a->size / size;
    const unsigned char *x = a->data, *y = b->data;
    if (a->size == 0 || memcmp(x, y, a->size) == 0)
        return;
    for (size_t i = elements; i-- > 0;)
        if (memcmp(x + i * size, y + i * size, size) != 0) {
            differ++;
            first = i;
        }
    char left[64], right[64];
    show(a->type, x + first * size, left);
    show(b->type, y + first * size, right);
    say(difference, "tensor '%s': %zu of %zu elements differ, the first is %zu: %s and %s", a->name,
        differ, elements, first, left, right);
    count(difference, a);
}

static void compare_tensors(struct difference *difference)
{
    for (size_t i = 0; i < difference->first.tensor_count; i++) {
        const struct ls_tensor *a = &difference->first.tensors[i];
        const struct ls_tensor *b = ls_archive_find(&difference->second, a->name);
        if (b == NULL) {
            say(difference, "tensor '%s': only in %s", a->name, difference->names[0]);
            count(difference, a);
        } else if (a->type != b->type || a->size != b->size ||
                   !ls_shape_equal(&a->shape, &b->shape)) {
            say(difference, "tensor '%s': other types or shapes", a->name);
            count(difference, a);
        } else {
            compare_elements(difference, a, b);
        }
    }
    for (size_t i = 0; i < difference->second.tensor_count; i++) {
        const struct ls_tensor *b = &difference->second.tensors[i];
        if (ls_archive_find(&difference->first, b->name) == NULL) {
            say(difference, "tensor '%s': only in %s", b->name, difference->names[1]);
            count(difference, b);
        }
    }
}

/* The fields in which two definitions differ; false: they cannot be read. */
static bool compare_definitions(struct difference *difference, const char *a, const char *b)
{
    struct ls_changes changes;
    if (ls_canonical_compare(NULL, a, strlen(a), b, strlen(b), &changes, NULL) != 0)
        return false;
    for (size_t i = 0; i < changes.count; i++)
        say(difference, "definition, %s: %s and %s", changes.change[i].what,
            changes.change[i].before, changes.change[i].after);
    bool any = changes.count > 0;
    ls_changes_free(&changes);
    return any;
}

static void compare_note(struct difference *difference, const char *key, const char *a,
                         const char *b)
{
    if (a != NULL && b != NULL && strcmp(a, b) == 0)
        return;
    if (a != NULL && b != NULL && strcmp(key, LS_NOTE_DEFINITION) == 0 &&
        compare_definitions(difference, a, b))
        return;
    bool fits = (a == NULL || strlen(a) < SHORT) && (b == NULL || strlen(b) < SHORT);
    if (fits)
        say(difference, "note '%s': %s and %s", key, a != NULL ? a : "none",
            b != NULL ? b : "none");
    else
        say(difference, "note '%s': differs", key);
}

static void compare_notes(struct difference *difference)
{
    const struct ls_archive *first = &difference->first, *second = &difference->second;
    for (size_t i = 0; i < first->note_count; i++)
        compare_note(difference, first->notes[i].key, first->notes[i].value,
                     ls_archive_note(second, first->notes[i].key));
    for (size_t i = 0; i < second->note_count; i++)
        if (ls_archive_note(first, second->notes[i].key) == NULL)
            compare_note(difference, second->notes[i].key, NULL, second->notes[i].value);
}

int ls_diff(const char *first, const char *second, void (*tell)(void *user, const char *line),
            void *user, struct ls_error *error)
{
    struct difference difference = {.names = {first, second}, .tell = tell, .user = user};
    LS_TRY(ls_archive_read(first, LS_ARCHIVE_CHECK, &difference.first, error));
    int status = ls_archive_read(second, LS_ARCHIVE_CHECK, &difference.second, error);
    if (status == 0) {
        compare_tensors(&difference);
        compare_notes(&difference);
        if (difference.tensors == 0)
            say(&difference, "The same tensors: %zu", difference.first.tensor_count);
        else if (difference.weights == 0)
            say(&difference, "The same weights, and another state");
        if (difference.tensors > 0)
            status = ls_fail(error, LOCKSTEP_DIFFERENT, NULL, NULL,
                             "%zu tensors differ, %zu of them weights", difference.tensors,
                             difference.weights);
    }
    ls_archive_free(&difference.first);
    ls_archive_free(&difference.second);
    return status;
}
