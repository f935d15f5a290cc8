/* Where numbers that are not finite come from. See engine/not_finite.h.
 *
 * A number is the step's own if it is NaN and none of what the step read was, or infinite and all
 * of that was finite: infinities of a mask, say, are handed on by sums, and are gone behind a
 * softmax. Labels that are no class are found before the loss that takes them is computed.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/not_finite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/reader.h"
#include "engine/micro_batch.h"
#include "engine/pass.h"
#include "engine/plans.h"
#include "ir/convert.h"
#include "ir/layer.h"
#include "ir/taken.h"

enum { AT_ONCE = 1024, FOUND = LOCKSTEP_STOPPED };

struct finder {
    const struct ls_pass *pass;
    size_t unit;
    struct ls_reader **readers; /* by data set */
    void **inputs;
    double *record;
    struct ls_not_finite *found;
};

/* What the numbers of a value are like: places of the first NaN and the first infinity; -1: none.
 */
struct look {
    int64_t nan, infinite;
};

/* ---- Numbers --------------------------------------------------------------------------------- */

/* Numbers [begin, begin + count) of a value as they lie in memory, as fp32. */
static bool not_finite_read(const struct finder *finder, const struct ls_value *value,
                            const void *numbers, int64_t begin, int64_t count, float *out)
{
    const struct ls_device_memory *memory = finder->pass->engine->device->memory;
    const size_t size = ls_dtype_size(value->type);
    const char *from = (const char *)numbers + (size_t)begin * size;
    double room[AT_ONCE];
    if (!memory->host_memory) {
        if (memory->read(NULL, room, from, (size_t)count * size, NULL) != 0)
            return false;
        from = (const char *)room;
    }
    ls_dtype_convert(value->type, from, LS_F32, out, (size_t)count);
    return true;
}

static int64_t not_finite_elements(const struct ls_value *value)
{
    return (int64_t)(ls_value_bytes(value) / ls_dtype_size(value->type));
}

static struct look not_finite_look(const struct finder *finder, const struct ls_value *value,
                                   const void *numbers)
{
    struct look look = {-1, -1};
    if (value == NULL || numbers == NULL || !ls_dtype_is_float(value->type) ||
        value->storage == LS_STORE_NONE)
        return look;
    const int64_t all = not_finite_elements(value);
    float some[AT_ONCE];
    for (int64_t begin = 0; begin < all && (look.nan < 0 || look.infinite < 0); begin += AT_ONCE) {
        const int64_t count = all - begin < AT_ONCE ? all - begin : AT_ONCE;
        if (!not_finite_read(finder, value, numbers, begin, count, some))
            return look;
        for (int64_t i = 0; i < count; i++) {
            if (isnan(some[i]) && look.nan < 0)
                look.nan = begin + i;
            if (isinf(some[i]) && look.infinite < 0)
                look.infinite = begin + i;
        }
    }
    return look;
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Which sample of its micro-batch the number at a place in memory belongs to; -1: unknown. */
static int64_t not_finite_sample(const struct ls_value *value, int64_t place)
{
    const struct ls_layout *layout = value->layout;
    const int axis = value->sample_axis;
    if (axis < 0 || (layout != NULL && (layout->block == 0 || (layout->block != 1 && axis > 0))))
        return -1;
    if (axis == 0)
        return place / (not_finite_elements(value) / value->shape.dim[0]) / value->rows;
    return place / ls_shape_count(&value->shape, axis + 1, value->shape.rank) %
           value->shape.dim[axis] / value->rows;
}

/* ", sample 12 (x.npy: record 3)". */
static void not_finite_tell_sample(const struct finder *finder, int64_t sample,
                                   struct ls_text *text)
{
    const struct ls_net *net = finder->pass->net;
    const struct ls_batch *range = &finder->pass->units[finder->unit].range;
    struct ls_batch its;
    if (sample < 0 || sample >= range->count)
        return;
    ls_text_format(text, ", sample %" PRId64, range->ordinal + sample);
    if (net->dataset_count == 0 || net->datasets[0] == NULL || net->batching.own != NULL)
        return;
    ls_batching_of(&net->batching, 0, range, &its);
    ls_text_format(text, " (%s: ", ls_dataset_name(net->datasets[0]));
    ls_reader_name(finder->readers[0], its.ordinal + sample, text);
    ls_text_add(text, ")");
}

static int not_finite_conclude(const struct finder *finder, struct ls_text *text, bool learned,
                               const char *hint)
{
    struct ls_not_finite *found = finder->found;
    if (!text->failed)
        snprintf(found->text, sizeof found->text, "%s", text->data);
    snprintf(found->hint, sizeof found->hint, "%s", hint);
    found->learned = learned;
    ls_text_free(text);
    return FOUND;
}

static void not_finite_tell_layer(const struct ls_op *op, struct ls_text *text)
{
    char place[LS_PLACE_SIZE];
    if (op->layer == NULL)
        return;
    ls_layer_place(op->layer, NULL, NULL, place);
    ls_text_format(text, "layer '%.100s' (%s)", op->layer->name, place);
}

static float not_finite_number(const struct finder *finder, const struct ls_value *value,
                               const void *numbers, int64_t place)
{
    float number = NAN;
    (void)not_finite_read(finder, value, numbers, place, 1, &number);
    return number;
}

/* "NaN", "inf" or "-inf". */
static void not_finite_tell_number(float number, struct ls_text *text)
{
    ls_text_add(text, isnan(number) ? "NaN" : number > 0 ? "inf" : "-inf");
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* A number that the step could not take, such as a label of no class. */
static int not_finite_check_taken(const struct finder *finder, const struct ls_op *op,
                                  void *const *in)
{
    struct ls_taken taken;
    float some[AT_ONCE];
    if (op->backward || !ls_taken_by(op, &taken))
        return 0;
    const struct ls_value *value = op->input[taken.input];
    const int64_t all = ls_shape_size(&value->shape);
    for (int64_t begin = 0; begin < all; begin += AT_ONCE) {
        const int64_t count = all - begin < AT_ONCE ? all - begin : AT_ONCE;
        if (!not_finite_read(finder, value, in[taken.input], begin, count, some))
            return 0;
        const int64_t bad = ls_taken_find_bad(&taken, some, count);
        if (bad < 0)
            continue;
        struct ls_text text = {0};
        char what[300];
        ls_taken_tell(&taken, some + bad, begin + bad, op->layer != NULL ? op->layer->name : "",
                      what, sizeof what);
        ls_text_format(&text, "%s in '%.100s'", what, value->name);
        not_finite_tell_sample(finder, not_finite_sample(value, begin + bad), &text);
        return not_finite_conclude(
            finder, &text, false,
            taken.kind == LS_TAKEN_ROWS
                ? "the layer's input_dim must be beyond the largest number that it looks up"
                : "look at what makes these numbers: classes are whole numbers from 0 on");
    }
    return 0;
}

static int64_t not_finite_first(const struct look *look)
{
    return look->nan >= 0 ? look->nan : look->infinite;
}

/* A parameter or an input of the net that is not finite itself. */
static int not_finite_blame_source(const struct finder *finder, const struct ls_value *value,
                                   const void *numbers, const struct look *look)
{
    struct ls_text text = {0};
    const bool weight = value->storage == LS_STORE_PARAMETER;
    ls_text_format(&text, weight ? "the weights '%.100s' have " : "the data '%.100s' have ",
                   value->name);
    not_finite_tell_number(not_finite_number(finder, value, numbers, not_finite_first(look)),
                           &text);
    if (!weight)
        not_finite_tell_sample(finder, not_finite_sample(value, not_finite_first(look)), &text);
    return not_finite_conclude(
        finder, &text, weight,
        weight ? "" : "look at the records ('lockstep check') and at transform_param");
}

/* What a step made of numbers that were good. */
static int not_finite_blame_step(const struct finder *finder, const struct ls_op *op,
                                 void *const *in, void *const *out, int k, int64_t place)
{
    const struct ls_value *value = op->output[k];
    struct ls_text text = {0};
    not_finite_tell_layer(op, &text);
    ls_text_add(&text, op->backward ? " makes, going back, " : " makes ");
    not_finite_tell_number(not_finite_number(finder, value, out[k], place), &text);
    const struct ls_value *from = op->inputs > 0 ? op->input[0] : NULL;
    if (!op->backward && from != NULL && in[0] != out[k] && from->layout == value->layout &&
        ls_shape_equal(&from->shape, &value->shape))
        ls_text_format(&text, " of %.6g", (double)not_finite_number(finder, from, in[0], place));
    ls_text_format(&text, " in '%.100s'", value->name);
    not_finite_tell_sample(finder, not_finite_sample(value, place), &text);
    return not_finite_conclude(finder, &text, value->learned || op->backward, "");
}

/* A plugin can write where it should only read. */
static int not_finite_check_plugin(const struct finder *finder, const struct ls_op *op,
                                   void *const *in)
{
    for (int i = 0; i < op->inputs && !op->backward; i++) {
        struct look look = not_finite_look(finder, op->input[i], in[i]);
        if (look.nan < 0 || ls_value_root(op->input[i])->storage == LS_STORE_INPUT)
            continue;
        struct ls_text text = {0};
        not_finite_tell_layer(op, &text);
        ls_text_format(&text, ", a plugin's, has written NaN into '%.100s', which it may only read",
                       op->input[i]->name);
        return not_finite_conclude(finder, &text, false, "'lockstep check-plugin' tries a plugin");
    }
    return 0;
}

/* Called behind each step. Everything in front of it was good, or has been handed on. */
static int not_finite_stepped(void *user, const struct ls_op *op, void *const *in, void *const *out,
                              const struct ls_context *context, struct ls_error *error)
{
    const struct finder *finder = user;
    const struct ls_device_streams *streams = finder->pass->engine->device->streams;
    LS_TRY(streams->wait(context->stream, error));
    LS_TRY(not_finite_check_taken(finder, op, in));
    if (op->kind == LS_OP_PLUGIN)
        LS_TRY(not_finite_check_plugin(finder, op, in));
    for (int k = 0; k < op->outputs; k++) {
        const struct look made = not_finite_look(finder, op->output[k], out[k]);
        bool nan = false, infinite = false;
        if (made.nan < 0 && made.infinite < 0)
            continue;
        for (int i = 0; i < op->inputs; i++) {
            if (op->input[i] == NULL || in[i] == out[k])
                continue;
            const struct look look = not_finite_look(finder, op->input[i], in[i]);
            const enum ls_storage storage = ls_value_root(op->input[i])->storage;
            const bool source = storage == LS_STORE_PARAMETER || storage == LS_STORE_INPUT;
            if (source && (look.nan >= 0 || (look.infinite >= 0 && made.nan >= 0)))
                return not_finite_blame_source(finder, op->input[i], in[i], &look);
            nan = nan || look.nan >= 0;
            infinite = infinite || look.infinite >= 0;
        }
        if (made.nan >= 0 && !nan)
            return not_finite_blame_step(finder, op, in, out, k, made.nan);
        if (made.nan < 0 && !nan && !infinite)
            return not_finite_blame_step(finder, op, in, out, k, made.infinite);
    }
    return 0;
}

/* ---- The run --------------------------------------------------------------------------------- */

static int not_finite_open(struct finder *finder, struct ls_error *error)
{
    const struct ls_pass *pass = finder->pass;
    const struct ls_net *net = pass->net;
    finder->readers = ls_alloc((size_t)net->dataset_count + 1, sizeof(struct ls_reader *));
    finder->inputs = ls_alloc((size_t)net->input_count + 1, sizeof(void *));
    finder->record = ls_alloc(pass->record_size + pass->list_size + 1, sizeof *finder->record);
    if (finder->readers == NULL || finder->inputs == NULL || finder->record == NULL)
        return ls_fail_memory(error, "a search");
    for (int d = 0; d < net->dataset_count; d++)
        LS_TRY(ls_reader_open(net->datasets[d], &finder->readers[d], error));
    for (int i = 0; i < net->input_count; i++)
        if ((finder->inputs[i] = ls_alloc_aligned(ls_net_input_bytes(net, i))) == NULL)
            return ls_fail_memory(error, "a search");
    return 0;
}

static void not_finite_close(struct finder *finder)
{
    const struct ls_net *net = finder->pass->net;
    for (int d = 0; d < net->dataset_count && finder->readers != NULL; d++)
        ls_reader_close(finder->readers[d]);
    for (int i = 0; i < net->input_count && finder->inputs != NULL; i++)
        ls_free_aligned(finder->inputs[i]);
    ls_free((void *)finder->readers);
    ls_free((void *)finder->inputs);
    ls_free(finder->record);
}

static int not_finite_run(struct ls_pass *pass, struct finder *finder, struct ls_error *error)
{
    const struct ls_unit *unit = &pass->units[finder->unit];
    LS_TRY(not_finite_open(finder, error));
    LS_TRY(ls_engine_make_room(pass->engine, pass->net, unit->plan->plan, error));
    LS_TRY(ls_engine_bind_plan(pass->engine, pass->net, unit->plan, error));
    LS_TRY(ls_micro_batch_fetch(pass, finder->readers, finder->unit, finder->inputs, error));
    struct ls_run run =
        ls_micro_batch_prepare_apart(pass, 0, finder->unit, finder->inputs, finder->record);
    run.watch = (struct ls_watch){.stepped = not_finite_stepped, .user = finder};
    const int segments = (int)unit->plan->plan->segments;
    for (int s = 0; s < segments; s++)
        LS_TRY(ls_micro_batch_compute(pass, unit->plan, 0, segments > 1 ? s : LS_RUN_ALL, &run,
                                      error));
    return 0;
}

void ls_not_finite_find(struct ls_pass *pass, size_t unit, struct ls_not_finite *found)
{
    struct finder finder = {.pass = pass, .unit = unit, .found = found};
    struct ls_error *error = ls_worker_error();
    *found = (struct ls_not_finite){.learned = true};
    (void)not_finite_run(pass, &finder, error);
    ls_error_clear(error);
    not_finite_close(&finder);
}
