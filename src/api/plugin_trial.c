/* Layers of plugins, set up and called to be tested. See api/plugin_trial.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/plugin_trial.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "layers/plugins.h"

enum { VALUES = LOCKSTEP_PLUGIN_VALUES, GUARD = 64 };

static const uint32_t GUARD_BITS = 0x7fc0ab1eU;

size_t ls_plugin_elements(const struct lockstep_plugin_shape *shape)
{
    size_t count = 1;
    for (int i = 0; i < shape->axes; i++)
        count *= (size_t)shape->dim[i];
    return count;
}

/* Fills with a NaN of ours, so that what was not written is found. */
static void poison(const struct ls_plugin_numbers *numbers)
{
    for (size_t i = 0; numbers->data != NULL && i < numbers->count + GUARD; i++)
        memcpy(&numbers->data[i], &GUARD_BITS, sizeof GUARD_BITS);
}

static bool is_poison(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits == GUARD_BITS;
}

static bool make(struct ls_plugin_numbers *numbers, const struct lockstep_plugin_shape *shape)
{
    numbers->count = ls_plugin_elements(shape);
    numbers->data = ls_alloc(numbers->count + GUARD, sizeof *numbers->data);
    poison(numbers);
    return numbers->data != NULL;
}

/* Random numbers of [-1, 1): a function of the stream and the element alone. */
static void draw(const struct ls_plugin_numbers *numbers, uint64_t stream, size_t first)
{
    const uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "plugin");
    for (size_t i = 0; i < numbers->count; i++) {
        uint32_t out[4];
        ls_philox(key, stream, first + i, out);
        numbers->data[i] = (float)(out[0] >> 8) * 0x1p-23F - 1;
    }
}

void ls_plugin_trial_free(struct ls_plugin_trial *trial)
{
    for (int i = 0; i < VALUES; i++) {
        ls_free(trial->bottom[i].data);
        ls_free(trial->top[i].data);
        ls_free(trial->top_gradient[i].data);
        ls_free(trial->bottom_gradient[i].data);
    }
    for (int i = 0; i < LOCKSTEP_PLUGIN_BLOBS; i++) {
        ls_free(trial->blob[i].data);
        ls_free(trial->blob_gradient[i].data);
    }
    ls_free(trial->scratch);
    ls_free(trial->setup.state);
    ls_free(trial);
}

/* Tensors of a layer that was set up; `first` is its first sample among those of a batch. */
static bool fill_trial(struct ls_plugin_trial *trial, int64_t samples, int64_t first)
{
    const struct lockstep_plugin_setup *setup = &trial->setup;
    bool made = (trial->scratch = ls_alloc(setup->scratch_bytes + 1, 1)) != NULL;
    for (int i = 0; i < setup->bottoms && made; i++) {
        made = make(&trial->bottom[i], &trial->shape[i]) &&
               make(&trial->bottom_gradient[i], &trial->shape[i]);
        if (made)
            draw(&trial->bottom[i], (uint64_t)i,
                 (size_t)first * (trial->bottom[i].count / (size_t)samples));
    }
    for (int i = 0; i < setup->tops && made; i++) {
        made =
            make(&trial->top[i], &setup->top[i]) && make(&trial->top_gradient[i], &setup->top[i]);
        if (made)
            draw(&trial->top_gradient[i], 100 + (uint64_t)i,
                 (size_t)first * (trial->top[i].count / (size_t)samples));
    }
    for (int i = 0; i < setup->blobs && made; i++) {
        const struct lockstep_plugin_blob *blob = &setup->blob[i];
        made = make(&trial->blob[i], &blob->shape) && make(&trial->blob_gradient[i], &blob->shape);
        if (!made)
            break;
        draw(&trial->blob[i], 200 + (uint64_t)i, 0);
        for (size_t k = 0; k < trial->blob[i].count; k++) /* near to what it begins with */
            trial->blob[i].data[k] = (blob->uniform ? blob->minimum : blob->constant) +
                                     trial->blob[i].data[k] / 8 + 0.125F;
    }
    return made;
}

struct ls_plugin_trial *ls_plugin_trial_new(const struct ls_plugin_check *check, int64_t samples,
                                            int64_t first)
{
    char message[LOCKSTEP_PLUGIN_TEXT];
    struct ls_plugin_trial *trial = ls_alloc(1, sizeof *trial);
    void *state = ls_alloc(check->of->state_size + 1, 1);
    if (trial == NULL || state == NULL) {
        ls_free(trial);
        ls_free(state);
        ls_fail_memory(check->error, "a test of a plugin");
        return NULL;
    }
    memcpy(trial->shape, check->shape, sizeof trial->shape);
    for (int i = 0; i < check->bottoms; i++)
        trial->shape[i].dim[0] = samples;
    trial->of = check->of;
    struct lockstep_plugin_setup *setup = &trial->setup;
    *setup = (struct lockstep_plugin_setup){.struct_size = sizeof *setup,
                                            .layer = "check",
                                            .settings = check->setting,
                                            .setting_count = check->options->setting_count,
                                            .bottoms = check->bottoms,
                                            .bottom = trial->shape,
                                            .tops = check->of->tops_min,
                                            .state = state};
    int refused = check->of->setup(setup);
    setup->message[sizeof setup->message - 1] = '\0';
    const bool mixes = (check->of->flags & LOCKSTEP_PLUGIN_MIXES) != 0;
    if (refused != 0)
        ls_fail(check->error, LOCKSTEP_DIFFERENT, check->of->type,
                "give what it needs: --set key=value, --bottom 4x3x5x4", "its setup refuses: %s",
                setup->message);
    else if (!ls_plugin_setup_ok(setup, mixes ? 0 : samples, message, sizeof message))
        ls_fail(check->error, LOCKSTEP_DIFFERENT, check->of->type, NULL, "%s", message);
    else if (fill_trial(trial, samples, first))
        return trial;
    else
        ls_fail_memory(check->error, "a test of a plugin");
    ls_plugin_trial_free(trial);
    return NULL;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* What is wrong with outputs after a call; NULL: nothing. */
static const char *judge_outputs(const struct ls_plugin_numbers *numbers, int count)
{
    for (int k = 0; k < count; k++) {
        for (size_t i = 0; i < numbers[k].count + GUARD; i++)
            if (is_poison(numbers[k].data[i]) != (i >= numbers[k].count))
                return i < numbers[k].count ? "leaves elements of its output out"
                                            : "writes behind the end of its output";
        for (size_t i = 0; i < numbers[k].count; i++)
            if (!isfinite(numbers[k].data[i]))
                return "makes a number that is not finite";
    }
    return NULL;
}

uint64_t ls_plugin_hash(const struct ls_plugin_numbers *numbers, int count, uint64_t hash)
{
    for (int k = 0; k < count; k++)
        for (size_t i = 0; i < numbers[k].count; i++) {
            uint32_t bits;
            memcpy(&bits, &numbers[k].data[i], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3U;
        }
    return hash;
}

bool ls_plugin_trial_call(struct ls_plugin_trial *trial, bool backward, int64_t first)
{
    const struct lockstep_plugin_setup *setup = &trial->setup;
    float *list[6][VALUES] = {{NULL}};
    const struct ls_plugin_numbers *from[6] = {
        trial->bottom,          trial->blob,         trial->top, trial->top_gradient,
        trial->bottom_gradient, trial->blob_gradient};
    for (int l = 0; l < 6; l++)
        for (int i = 0; i < VALUES; i++)
            list[l][i] = from[l][i].data;
    struct ls_plugin_numbers *out[2] = {backward ? trial->bottom_gradient : trial->top,
                                        trial->blob_gradient};
    int outs[2] = {backward ? setup->bottoms : setup->tops, backward ? setup->blobs : 0};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < outs[k]; i++)
            poison(&out[k][i]);
    uint64_t before = ls_plugin_hash(trial->bottom, setup->bottoms, 1);
    before = ls_plugin_hash(trial->blob, setup->blobs,
                            ls_plugin_hash(trial->top_gradient, setup->tops, before));
    memset(trial->scratch, 0x5a, setup->scratch_bytes);
    const bool tops = !backward || (trial->of->flags & LOCKSTEP_PLUGIN_READS_TOPS) != 0;
    struct lockstep_plugin_call arguments = {.struct_size = sizeof arguments,
                                             .state = setup->state,
                                             .first_ordinal = 1000 + first,
                                             .key = 12345,
                                             .bottom = (const float *const *)list[0],
                                             .blob = (const float *const *)list[1],
                                             .top = tops ? list[2] : NULL,
                                             .scratch = trial->scratch,
                                             .message = trial->message};
    if (backward) {
        arguments.top_gradient = (const float *const *)list[3];
        arguments.bottom_gradient = list[4];
        arguments.blob_gradient = list[5];
    }
    int status = backward ? trial->of->backward(&arguments) : trial->of->forward(&arguments);
    uint64_t after = ls_plugin_hash(trial->bottom, setup->bottoms, 1);
    after = ls_plugin_hash(trial->blob, setup->blobs,
                           ls_plugin_hash(trial->top_gradient, setup->tops, after));
    trial->message[sizeof trial->message - 1] = '\0';
    trial->wrong = status != 0       ? trial->message[0] != '\0' ? trial->message : "fails"
                   : after != before ? "writes to what it should only read"
                                     : judge_outputs(out[0], outs[0]);
    if (trial->wrong == NULL)
        trial->wrong = judge_outputs(out[1], outs[1]);
    return trial->wrong == NULL;
}
