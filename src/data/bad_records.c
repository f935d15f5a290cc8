/* Which records are bad; see the header.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/bad_records.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "data/dataset_inner.h"
#include "data/numbers.h"
#include "data/samples.h"

enum {
    RUN = 16, /* records that a thread takes at a time */
    LABELS_AT_ONCE = 256,
    NAMED = 5, /* bad records that are listed */
    REASON = 400
};

struct ls_bad_records {
    _Atomic unsigned char *verdict; /* by record of the source */
    struct ls_number_rule *rules;   /* which numbers are good */
    size_t rule_count;
    pthread_mutex_t lock; /* guards what follows */
    int named, told;      /* bad records that are listed, and how many of them were reported */
    struct ls_bad_name {
        int64_t record;
        char reason[REASON];
    } name[NAMED];
};

int ls_bad_records_open(const struct ls_dataset *dataset, struct ls_bad_records **out,
                        struct ls_error *error)
{
    struct ls_bad_records *bad = *out = ls_alloc(1, sizeof *bad);
    if (bad == NULL)
        return ls_fail_memory(error, "a list of bad records");
    pthread_mutex_init(&bad->lock, NULL);
    bad->verdict = ls_alloc((size_t)dataset->source->count, sizeof *bad->verdict);
    return bad->verdict != NULL ? 0 : ls_fail_memory(error, "a list of bad records");
}

void ls_bad_records_free(struct ls_bad_records *bad)
{
    if (bad == NULL)
        return;
    pthread_mutex_destroy(&bad->lock);
    ls_free((void *)bad->verdict);
    ls_free(bad->rules);
    ls_free(bad);
}

enum ls_verdict ls_bad_records_verdict(const struct ls_bad_records *bad, int64_t record)
{
    return (enum ls_verdict)atomic_load_explicit(&bad->verdict[record], memory_order_acquire);
}

void ls_bad_records_set(struct ls_bad_records *bad, int64_t record, enum ls_verdict verdict)
{
    atomic_store_explicit(&bad->verdict[record], (unsigned char)verdict, memory_order_release);
}

const char *ls_bad_reason(const char *reason)
{
    const char *rest = strncmp(reason, "record ", 7) == 0 ? strstr(reason, ": ") : NULL;
    return rest != NULL ? rest + 2 : reason;
}

void ls_bad_records_note(struct ls_bad_records *bad, int64_t record, const char *reason)
{
    unsigned char before = atomic_exchange(&bad->verdict[record], (unsigned char)LS_BAD);
    if (before == LS_BAD)
        return;
    reason = ls_bad_reason(reason);
    pthread_mutex_lock(&bad->lock);
    if (bad->named < NAMED) {
        struct ls_bad_name *name = &bad->name[bad->named++];
        name->record = record;
        snprintf(name->reason, sizeof name->reason, "%.390s", reason);
    }
    pthread_mutex_unlock(&bad->lock);
}

/* `count` numbers as a layer takes them for labels: those of a tensor of int32, too, are rounded to
 * fp32 there. Returns how many of them the tensor's type has: all, after ls_dataset_convert. */
static int64_t take_labels(const struct ls_sample_tensor *sample, enum ls_dtype type,
                           const void *numbers, int64_t count, float *label)
{
    int32_t number[LABELS_AT_ONCE];
    if (sample->type != LS_I32)
        return ls_numbers_to_f32(type, numbers, count, false, label);
    count = ls_numbers_to_i32(type, numbers, count, number);
    for (int64_t i = 0; i < count; i++)
        label[i] = (float)number[i];
    return count;
}

/* What rounding of a scale such as 0.003922, in place of 1/255, may put above 1. */
static const float ROUNDED = 0.001F;

static bool is_image(const struct ls_dataset *dataset, int tensor)
{
    return dataset->source->tensor[dataset->tensor[tensor].source].role == LS_TENSOR_IMAGE;
}

/* Numbers of an image, from `begin` on, as they become where nothing is changed at random. */
static void transform_some(const struct ls_transform *transform,
                           const struct ls_record_tensor *image, int64_t begin, int64_t count,
                           float *numbers)
{
    const int64_t *shape = image->shape.dim, plane = shape[1] * shape[2];
    const bool whole = memcmp(shape, transform->input, sizeof transform->input) == 0;
    for (int64_t i = 0; i < count; i++) {
        float mean = 0;
        if (transform->mean != NULL && whole)
            mean = transform->mean[begin + i];
        else if (transform->channel_mean != NULL)
            mean = transform->channel_mean[(begin + i) / plane];
        numbers[i] = (numbers[i] - mean) * transform->scale;
        if (numbers[i] > 1 && numbers[i] < 1 + ROUNDED)
            numbers[i] = 1;
    }
}

/* Some numbers of a tensor as fp32, from `begin` on, and none from `end` on; how many. */
static int64_t take_some(const struct ls_dataset *dataset, const struct ls_record *record,
                         const struct ls_number_rule *rule, int64_t begin, int64_t end,
                         float label[LABELS_AT_ONCE])
{
    const struct ls_sample_tensor *sample = &dataset->tensor[rule->tensor];
    const struct ls_record_tensor *data = &record->tensor[sample->source];
    const int64_t left = end - begin;
    const char *numbers = (const char *)data->data + (size_t)begin * ls_dtype_size(data->type);
    const int64_t some = take_labels(sample, data->type, numbers,
                                     left < LABELS_AT_ONCE ? left : LABELS_AT_ONCE, label);
    if (is_image(dataset, rule->tensor))
        transform_some(&dataset->transform, data, begin, some, label);
    return some;
}

/* Looks for a number that a rule forbids, or that it allows although it cannot be meant (`odd`),
 * in a part of a tensor. Whole rows of boxes are looked at together. */
static bool find_between(const struct ls_dataset *dataset, const struct ls_record *record,
                         const struct ls_number_rule *rule, bool odd, int64_t begin, int64_t end,
                         char *text, size_t size)
{
    for (int64_t from = begin; from < end; from += LABELS_AT_ONCE) {
        float label[LABELS_AT_ONCE];
        const int64_t some = take_some(dataset, record, rule, from, end, label);
        const int64_t found = odd ? ls_taken_find_odd(&rule->taken, label, some)
                                  : ls_taken_find_bad(&rule->taken, label, some);
        if (found >= 0) {
            ls_taken_tell(&rule->taken, label + found, from + found, rule->layer, text, size);
            return true;
        }
    }
    return false;
}

/* The same in all of the tensor that is taken. */
static bool find_number(const struct ls_dataset *dataset, const struct ls_record *record,
                        const struct ls_number_rule *rule, bool odd, char *text, size_t size)
{
    const int64_t count = ls_tensor_numbers(&record->tensor[dataset->tensor[rule->tensor].source]);
    if (rule->block == 0)
        return find_between(dataset, record, rule, odd, 0, count, text, size);
    for (int64_t block = 0; block + rule->block <= count; block += rule->block)
        if (find_between(dataset, record, rule, odd, block + rule->begin, block + rule->end, text,
                         size))
            return true;
    return false;
}

/* Whether the numbers of a tensor are used as they are in the record. */
static bool is_plain(const struct ls_dataset *dataset, int tensor)
{
    return (dataset->tops & LS_TENSOR(tensor)) != 0 && !is_image(dataset, tensor);
}

bool ls_odd_numbers(const struct ls_dataset *dataset, const struct ls_record *record,
                    const struct ls_number_rule *rule, char *text, size_t size)
{
    const bool known = is_image(dataset, rule->tensor) ? !dataset->transform.standardize
                                                       : is_plain(dataset, rule->tensor);
    return ls_taken_may_be_odd(&rule->taken) && known &&
           find_number(dataset, record, rule, true, text, size);
}

void ls_label_range_add(const struct ls_dataset *dataset, const struct ls_record *record,
                        const struct ls_number_rule *rule, struct ls_label_range *range)
{
    const int64_t count = ls_tensor_numbers(&record->tensor[dataset->tensor[rule->tensor].source]);
    if (rule->taken.kind != LS_TAKEN_CLASSES || !is_plain(dataset, rule->tensor))
        return;
    for (int64_t begin = 0; begin < count; begin += LABELS_AT_ONCE) {
        float label[LABELS_AT_ONCE];
        const int64_t some = take_some(dataset, record, rule, begin, count, label);
        for (int64_t i = 0; i < some; i++) {
            if (ls_taken_ignores(&rule->taken, label[i]))
                continue;
            range->least = range->count == 0 || label[i] < range->least ? label[i] : range->least;
            range->most = range->count == 0 || label[i] > range->most ? label[i] : range->most;
            range->count++;
        }
    }
}

int ls_bad_numbers(const struct ls_dataset *dataset, const struct ls_record *record,
                   const struct ls_number_rule *rules, size_t count, struct ls_problem *problem)
{
    char text[400];
    for (int k = 0; k < dataset->tensors; k++) {
        enum ls_tensor_role role = dataset->source->tensor[dataset->tensor[k].source].role;
        if (!is_plain(dataset, k))
            continue;
        if (role == LS_TENSOR_PLAIN || role == LS_TENSOR_SEQUENCE)
            LS_TRY(ls_dataset_convert(dataset, k, record, NULL, problem));
        for (size_t i = 0; i < count; i++)
            if (rules[i].tensor == k &&
                find_number(dataset, record, &rules[i], false, text, sizeof text))
                return ls_problem_set(problem, LOCKSTEP_DATA, NULL, "its %s", text);
    }
    return 0;
}

int ls_bad_records_numbers(const struct ls_dataset *dataset, const struct ls_record *record,
                           struct ls_problem *problem)
{
    struct ls_bad_records *bad = dataset->bad;
    return ls_bad_numbers(dataset, record, bad->rules, bad->rule_count, problem);
}

int ls_bad_records_none(const struct ls_dataset *dataset, struct ls_error *error)
{
    struct ls_bad_records *bad = dataset->bad;
    struct ls_text name = {0};
    pthread_mutex_lock(&bad->lock);
    struct ls_bad_name first = bad->named > 0 ? bad->name[0] : (struct ls_bad_name){0};
    pthread_mutex_unlock(&bad->lock);
    ls_dataset_name_record(dataset, first.record, &name);
    int status = ls_fail(error, LOCKSTEP_DATA, dataset->name,
                         "on_bad_record: SKIP needs a good record to put in the place of bad ones",
                         "none of its %" PRId64 " records is good; %s: %s", dataset->size,
                         name.data != NULL ? name.data : "a record", first.reason);
    ls_text_free(&name);
    return status;
}

/* ---- Looking at all records ------------------------------------------------------------------ */

struct scan {
    struct ls_dataset *dataset;
    bool labels; /* only labels are looked at, of records that can be decoded */
    _Atomic int64_t next;
    _Atomic bool stop;
    pthread_mutex_t lock; /* guards what follows */
    int status;
    struct ls_error *error;
};

static int look_at(const struct scan *scan, struct ls_source_reader *reader, int64_t index,
                   struct ls_error *error)
{
    struct ls_dataset *dataset = scan->dataset;
    struct ls_record record;
    struct ls_problem problem;
    if (ls_bad_records_verdict(dataset->bad, index) == LS_BAD)
        return 0;
    ls_error_clear(error);
    uint32_t wanted = LS_ALL_TENSORS;
    if (scan->labels && ls_source_has_image(dataset->source))
        wanted &= ~LS_TENSOR(0);
    int status = ls_source_read(reader, index, wanted, &record, error);
    if (status != 0 && !reader->bad)
        return status;
    if (status != 0)
        ls_bad_records_note(dataset->bad, index, error->problems[0].message);
    else if (scan->labels && ls_bad_records_numbers(dataset, &record, &problem) != 0)
        ls_bad_records_note(dataset->bad, index, problem.message);
    else
        ls_bad_records_set(dataset->bad, index, scan->labels ? LS_GOOD : LS_READABLE);
    return 0;
}

static void fail_scan(struct scan *scan, int status, const struct ls_error *error)
{
    pthread_mutex_lock(&scan->lock);
    if (scan->status == 0) {
        scan->status = status;
        ls_error_add(scan->error, error);
    }
    pthread_mutex_unlock(&scan->lock);
    atomic_store(&scan->stop, true);
}

static void *scan_records(void *argument)
{
    static _Thread_local struct ls_error error;
    struct scan *scan = argument;
    const struct ls_dataset *dataset = scan->dataset;
    struct ls_source_reader *reader;
    ls_unpin_thread();
    ls_set_float_mode();
    ls_error_clear(&error);
    int status = ls_source_reader_open(dataset->source, &reader, &error);
    while (status == 0 && !atomic_load(&scan->stop)) {
        int64_t begin = atomic_fetch_add(&scan->next, RUN);
        int64_t end = begin + RUN < dataset->size ? begin + RUN : dataset->size;
        if (begin >= dataset->size)
            break;
        for (int64_t place = begin; place < end && status == 0; place++)
            status = look_at(scan, reader, ls_dataset_place(dataset, place), &error);
    }
    if (status != 0)
        fail_scan(scan, status, &error);
    ls_source_reader_close(reader);
    return NULL;
}

static int scan_all(struct ls_dataset *dataset, bool labels, struct ls_error *error)
{
    struct scan scan = {.dataset = dataset, .labels = labels, .error = error};
    int wanted = ls_cpu_count(), started = 0;
    pthread_t *threads = ls_alloc((size_t)wanted, sizeof *threads);
    if (threads == NULL)
        return ls_fail_memory(error, "threads");
    pthread_mutex_init(&scan.lock, NULL);
    while (started < wanted && ls_thread_create(&threads[started], scan_records, &scan) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (started == 0)
        scan.status = ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL, "no thread could be started");
    pthread_mutex_destroy(&scan.lock);
    ls_free(threads);
    return scan.status;
}

/* The sizes of records that are not bad are all that counts. */
static int take_sizes(struct ls_dataset *dataset, struct ls_error *error)
{
    struct ls_source *source = dataset->source;
    int64_t shape[3], first[3];
    bool any = false, differ = false;
    for (int64_t place = 0; place < dataset->size; place++) {
        int64_t index = ls_dataset_place(dataset, place);
        if (ls_bad_records_verdict(dataset->bad, index) == LS_BAD)
            continue;
        ls_source_shape_of(source, index, shape);
        if (!any)
            memcpy(first, shape, sizeof first);
        any = true;
        differ = differ || memcmp(shape, first, sizeof first) != 0;
    }
    if (!any)
        return ls_bad_records_none(dataset, error);
    if (source->steps > 0)
        source->steps = first[1];
    else
        memcpy(source->tensor[0].shape.dim, first, sizeof first);
    if (differ)
        return 0;
    source->varies = false;
    ls_free(source->sizes);
    source->sizes = NULL;
    return 0;
}

int ls_bad_records_look(struct ls_dataset *dataset, bool cropped, struct ls_error *error)
{
    struct ls_source *source = dataset->source;
    int64_t first;
    LS_TRY(ls_source_first_good(source, &first, error));
    if (first < 0 || (source->varies && !cropped)) {
        LS_TRY(scan_all(dataset, false, error));
        return take_sizes(dataset, error);
    }
    if (ls_source_has_image(source))
        ls_source_shape_of(source, first, source->tensor[0].shape.dim);
    return 0;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

int ls_dataset_set_rules(struct ls_dataset *dataset, const struct ls_number_rule *rules,
                         size_t count, struct ls_error *error)
{
    struct ls_bad_records *bad = dataset->bad;
    if (bad == NULL || count == 0)
        return 0;
    bad->rules = ls_alloc(count, sizeof *rules);
    if (bad->rules == NULL)
        return ls_fail_memory(error, "a list of bad records");
    memcpy(bad->rules, rules, count * sizeof *rules);
    bad->rule_count = count;
    for (int64_t i = 0; i < dataset->source->count; i++)
        if (ls_bad_records_verdict(bad, i) == LS_GOOD)
            ls_bad_records_set(bad, i, LS_READABLE);
    return ls_dataset_varies(dataset) ? scan_all(dataset, true, error) : 0;
}

bool ls_dataset_skips(const struct ls_dataset *dataset)
{
    return dataset->bad != NULL;
}

bool ls_dataset_next_bad(const struct ls_dataset *dataset, int64_t *record, char *reason,
                         size_t size)
{
    struct ls_bad_records *bad = dataset->bad;
    if (bad == NULL)
        return false;
    pthread_mutex_lock(&bad->lock);
    bool more = bad->told < bad->named;
    if (more) {
        const struct ls_bad_name *name = &bad->name[bad->told++];
        *record = name->record;
        snprintf(reason, size, "%s", name->reason);
    }
    pthread_mutex_unlock(&bad->lock);
    return more;
}
