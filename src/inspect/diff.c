/* Comparing two snapshots, tensor by tensor and note by note. See inspect/diff.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "inspect/diff.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "inspect/diff_inner.h"
#include "schema/canonical.h"
#include "snapshot/archive.h"
#include "snapshot/weights.h"
#include "solver/notes.h"

enum { SHORT = 60 }; /* of a note, to be shown */

struct difference {
    const struct ls_diff_report *report;
    struct ls_archive first, second;
    size_t tensors, weights; /* that differ: of both kinds, of those that are learned */
};

void ls_diff_say(const struct ls_diff_report *report, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    report->tell(report->user, line);
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

bool ls_diff_elements(const struct ls_diff_report *report, const char *name, enum ls_dtype type,
                      const void *a, const void *b, size_t bytes)
{
    struct ls_array_difference difference;
    char left[64], right[64], apart[128] = "";
    size_t size = ls_dtype_size(type);
    if (bytes == 0 || memcmp(a, b, bytes) == 0)
        return false;
    ls_elements_compare(type, a, b, bytes / size, &difference);
    show(type, (const unsigned char *)a + difference.first * size, left);
    show(type, (const unsigned char *)b + difference.first * size, right);
    if (ls_dtype_is_float(type))
        snprintf(apart, sizeof apart, ", by %.3g of their norm, at most by %.3g (element %zu)",
                 difference.norm, difference.absolute, difference.at);
    ls_diff_say(report, "tensor '%s': %zu of %zu elements differ%s; the first is %zu: %s and %s",
                name, difference.differing, bytes / size, apart, difference.first, left, right);
    return true;
}

/* Two tensors of one type and shape. */
static void compare_elements(struct difference *difference, const struct ls_tensor *a,
                             const struct ls_tensor *b)
{
    if (ls_diff_elements(difference->report, a->name, a->type, a->data, b->data, a->size))
        count(difference, a);
}

static void compare_tensors(struct difference *difference)
{
    for (size_t i = 0; i < difference->first.tensor_count; i++) {
        const struct ls_tensor *a = &difference->first.tensors[i];
        const struct ls_tensor *b = ls_archive_find(&difference->second, a->name);
        if (b == NULL) {
            ls_diff_say(difference->report, "tensor '%s': only in %s", a->name,
                        difference->report->names[0]);
            count(difference, a);
        } else if (a->type != b->type || a->size != b->size ||
                   !ls_shape_equal(&a->shape, &b->shape)) {
            ls_diff_say(difference->report, "tensor '%s': other types or shapes", a->name);
            count(difference, a);
        } else {
            compare_elements(difference, a, b);
        }
    }
    for (size_t i = 0; i < difference->second.tensor_count; i++) {
        const struct ls_tensor *b = &difference->second.tensors[i];
        if (ls_archive_find(&difference->first, b->name) == NULL) {
            ls_diff_say(difference->report, "tensor '%s': only in %s", b->name,
                        difference->report->names[1]);
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
        ls_diff_say(difference->report, "definition, %s: %s and %s", changes.change[i].what,
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
        ls_diff_say(difference->report, "note '%s': %s and %s", key, a != NULL ? a : "none",
                    b != NULL ? b : "none");
    else
        ls_diff_say(difference->report, "note '%s': differs", key);
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

static int diff_archives(const struct ls_diff_report *report, struct ls_error *error)
{
    struct difference difference = {.report = report};
    LS_TRY(ls_archive_read(report->names[0], LS_ARCHIVE_CHECK, &difference.first, error));
    int status = ls_archive_read(report->names[1], LS_ARCHIVE_CHECK, &difference.second, error);
    if (status == 0) {
        compare_tensors(&difference);
        compare_notes(&difference);
        if (difference.tensors == 0)
            ls_diff_say(report, "The same tensors: %zu", difference.first.tensor_count);
        else if (difference.weights == 0)
            ls_diff_say(report, "The same weights, and another state");
        if (difference.tensors > 0)
            status = ls_fail(error, LOCKSTEP_DIFFERENT, NULL, NULL,
                             "%zu tensors differ, %zu of them weights", difference.tensors,
                             difference.weights);
    }
    ls_archive_free(&difference.first);
    ls_archive_free(&difference.second);
    return status;
}

static bool are_weights(enum ls_file_kind kind)
{
    return kind == LS_KIND_SAFETENSORS || kind == LS_KIND_SHARDS || kind == LS_KIND_CAFFEMODEL ||
           kind == LS_KIND_CAFFEMODEL_HDF5;
}

int ls_diff(const char *first, const char *second, void (*tell)(void *user, const char *line),
            void *user, struct ls_error *error)
{
    const struct ls_diff_report report = {.names = {first, second}, .tell = tell, .user = user};
    enum ls_file_kind kinds[2];
    for (int i = 0; i < 2; i++)
        LS_TRY(ls_file_kind(report.names[i], &kinds[i], error));
    if (kinds[0] == LS_KIND_SAFETENSORS && kinds[1] == LS_KIND_SAFETENSORS)
        return diff_archives(&report, error);
    if (are_weights(kinds[0]) && are_weights(kinds[1]))
        return ls_diff_weights(&report, error);
    if (kinds[0] == kinds[1] && (kinds[0] == LS_KIND_NET || kinds[0] == LS_KIND_SOLVER))
        return ls_diff_definitions(&report, kinds[0], error);
    return ls_fail(error, LOCKSTEP_USAGE, NULL,
                   "two files of weights, two nets or two solvers can be compared",
                   "cannot compare %s (%s) with %s (%s)", first, ls_file_kind_summary(kinds[0]),
                   second, ls_file_kind_summary(kinds[1]));
}
