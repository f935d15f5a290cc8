/* The public interface: plugins, and testing their layer types.
 *
 * A type is set up for several numbers of samples and called directly, with memory of ours around
 * all that it reads and writes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/options.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "layers/layers.h"
#include "layers/plugins.h"

enum { VALUES = LOCKSTEP_PLUGIN_VALUES, SETTINGS_MAX = 32, GUARD = 64, PROBES = 24 };

int lockstep_plugin_load(const char *path, struct lockstep_error *error)
{
    LS_OWN_MODE;
    return ls_plugin_load(path, NULL, ls_api_error(error));
}

void lockstep_plugin_check_options_init(struct lockstep_plugin_check_options *options)
{
    *options = (struct lockstep_plugin_check_options){.struct_size = sizeof *options};
}

/* ---- A layer --------------------------------------------------------------------------------- */

/* Numbers with a guard behind them. */
struct numbers {
    float *data;
    size_t count;
};

/* A layer of a type for some samples, with its tensors. */
struct trial {
    const struct lockstep_plugin_layer *of;
    struct lockstep_plugin_setup setup;
    struct lockstep_plugin_shape shape[VALUES];
    struct numbers bottom[VALUES], top[VALUES], top_gradient[VALUES], bottom_gradient[VALUES];
    struct numbers blob[LOCKSTEP_PLUGIN_BLOBS], blob_gradient[LOCKSTEP_PLUGIN_BLOBS];
    void *scratch;
    const char *wrong; /* what a call did wrong */
    char message[LOCKSTEP_PLUGIN_TEXT];
};

/* What all trials of a check have in common. */
struct plugin_check {
    const struct lockstep_plugin_check_options *options;
    const struct lockstep_plugin_layer *of;
    struct lockstep_plugin_setting setting[SETTINGS_MAX];
    const char *value[SETTINGS_MAX];
    char *text[SETTINGS_MAX]; /* keys and values */
    struct lockstep_plugin_shape shape[VALUES];
    int bottoms;
    struct ls_error *error;
};

static const uint32_t GUARD_BITS = 0x7fc0ab1eU;

static size_t elements(const struct lockstep_plugin_shape *shape)
{
    size_t count = 1;
    for (int i = 0; i < shape->axes; i++)
        count *= (size_t)shape->dim[i];
    return count;
}

/* Fills with a NaN of ours, so that what was not written is found. */
static void poison(const struct numbers *numbers)
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

static bool make(struct numbers *numbers, const struct lockstep_plugin_shape *shape)
{
    numbers->count = elements(shape);
    numbers->data = ls_alloc(numbers->count + GUARD, sizeof *numbers->data);
    poison(numbers);
    return numbers->data != NULL;
}

/* Random numbers of [-1, 1): a function of the stream and the element alone. */
static void draw(const struct numbers *numbers, uint64_t stream, size_t first)
{
    const uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "plugin");
    for (size_t i = 0; i < numbers->count; i++) {
        uint32_t out[4];
        ls_philox(key, stream, first + i, out);
        numbers->data[i] = (float)(out[0] >> 8) * 0x1p-23F - 1;
    }
}

static void free_trial(struct trial *trial)
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
static bool fill_trial(struct trial *trial, int64_t samples, int64_t first)
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

/* Sets up a layer for some samples of a batch; NULL after a report. */
static struct trial *new_trial(const struct plugin_check *check, int64_t samples, int64_t first)
{
    char message[LOCKSTEP_PLUGIN_TEXT];
    struct trial *trial = ls_alloc(1, sizeof *trial);
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
    free_trial(trial);
    return NULL;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* What is wrong with outputs after a call; NULL: nothing. */
static const char *judge_outputs(const struct numbers *numbers, int count)
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

static uint64_t hash_all(const struct numbers *numbers, int count, uint64_t hash)
{
    for (int k = 0; k < count; k++)
        for (size_t i = 0; i < numbers[k].count; i++) {
            uint32_t bits;
            memcpy(&bits, &numbers[k].data[i], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3U;
        }
    return hash;
}

/* Calls forward or backward; false: trial->wrong says what it did. */
static bool call(struct trial *trial, bool backward, int64_t first)
{
    const struct lockstep_plugin_setup *setup = &trial->setup;
    float *list[6][VALUES] = {{NULL}};
    const struct numbers *from[6] = {
        trial->bottom,          trial->blob,         trial->top, trial->top_gradient,
        trial->bottom_gradient, trial->blob_gradient};
    for (int l = 0; l < 6; l++)
        for (int i = 0; i < VALUES; i++)
            list[l][i] = from[l][i].data;
    struct numbers *out[2] = {backward ? trial->bottom_gradient : trial->top, trial->blob_gradient};
    int outs[2] = {backward ? setup->bottoms : setup->tops, backward ? setup->blobs : 0};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < outs[k]; i++)
            poison(&out[k][i]);
    uint64_t before = hash_all(trial->bottom, setup->bottoms, 1);
    before =
        hash_all(trial->blob, setup->blobs, hash_all(trial->top_gradient, setup->tops, before));
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
    uint64_t after = hash_all(trial->bottom, setup->bottoms, 1);
    after = hash_all(trial->blob, setup->blobs, hash_all(trial->top_gradient, setup->tops, after));
    trial->message[sizeof trial->message - 1] = '\0';
    trial->wrong = status != 0       ? trial->message[0] != '\0' ? trial->message : "fails"
                   : after != before ? "writes to what it should only read"
                                     : judge_outputs(out[0], outs[0]);
    if (trial->wrong == NULL)
        trial->wrong = judge_outputs(out[1], outs[1]);
    return trial->wrong == NULL;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static int fail(const struct plugin_check *check, const char *pass, const char *what)
{
    return ls_fail(check->error, LOCKSTEP_DIFFERENT, check->of->type, NULL, "%s %s", pass, what);
}

/* Twice the same call gives the same bits. */
static int check_repeats(const struct plugin_check *check, struct trial *trial, bool backward)
{
    const char *pass = backward ? "backward" : "forward";
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        if (!call(trial, backward, 0))
            return fail(check, pass, trial->wrong);
        hash[k] = backward ? hash_all(trial->blob_gradient, trial->setup.blobs,
                                      hash_all(trial->bottom_gradient, trial->setup.bottoms, 1))
                           : hash_all(trial->top, trial->setup.tops, 1);
    }
    return hash[0] == hash[1] ? 0 : fail(check, pass, "gives other bits for the same numbers");
}

/* Whether a sample's rows are those of the whole batch. */
static bool same_rows(const struct numbers *one, const struct numbers *all, int count,
                      int64_t sample)
{
    for (int k = 0; k < count; k++)
        if (memcmp(one[k].data, all[k].data + (size_t)sample * one[k].count,
                   one[k].count * sizeof *one[k].data) != 0)
            return false;
    return true;
}

/* Each sample by itself gives its rows of the batch. */
static int check_rows(const struct plugin_check *check, const struct trial *all, int64_t samples)
{
    for (int64_t n = 0; n < samples; n++) {
        struct trial *one = new_trial(check, 1, n);
        if (one == NULL)
            return LOCKSTEP_DIFFERENT;
        const char *pass = "forward";
        bool called = call(one, false, n);
        bool same = called && same_rows(one->top, all->top, all->setup.tops, n);
        if (same && check->of->backward != NULL) {
            pass = "backward";
            called = call(one, true, n);
            same = called &&
                   same_rows(one->bottom_gradient, all->bottom_gradient, all->setup.bottoms, n);
        }
        int status = same ? 0
                          : fail(check, pass,
                                 !called ? one->wrong
                                         : "gives other rows for a sample by itself than in a "
                                           "batch: does the type mix samples?");
        free_trial(one);
        LS_TRY(status);
    }
    return 0;
}

/* The sum of the tops, each element times the gradient that backward is handed. */
static double weighted_sum(const struct trial *trial)
{
    double sum = 0;
    for (int k = 0; k < trial->setup.tops; k++)
        for (size_t i = 0; i < trial->top[k].count; i++)
            sum += (double)trial->top[k].data[i] * (double)trial->top_gradient[k].data[i];
    return sum;
}

/* The sum where an element is moved by `step`; false: the call failed. */
static bool moved_sum(struct trial *trial, float *element, float step, double *sum, double *moved)
{
    const float kept = *element;
    *element = kept + step;
    *moved = (double)*element - (double)kept;
    bool called = call(trial, false, 0);
    *sum = called ? weighted_sum(trial) : 0;
    *element = kept;
    return called;
}

/* The slope of the sum in an element, from both sides and from further away. False: the call
 * failed. *smooth tells whether all of them agree: there is no corner nearby. */
static bool measure_slope(struct trial *trial, float *element, double *slope, bool *smooth)
{
    static const float steps[] = {0, 0.005F, -0.005F, 0.01F, -0.01F};
    double sum[5], moved[5], least = HUGE_VAL, most = -HUGE_VAL;
    for (int i = 0; i < 5; i++)
        if (!moved_sum(trial, element, steps[i], &sum[i], &moved[i]))
            return false;
    for (int i = 1; i < 5; i++) {
        const double side = (sum[i] - sum[0]) / moved[i];
        least = fmin(least, side);
        most = fmax(most, side);
    }
    *slope = (sum[1] - sum[2]) / (moved[1] - moved[2]);
    *smooth = most - least <= 0.02 * (fabs(*slope) + 0.1);
    return true;
}

/* Gradients of some elements of a tensor; *tested counts those where the function is smooth. */
static int check_slopes(const struct plugin_check *check, struct trial *trial,
                        const struct numbers *numbers, const struct numbers *gradient,
                        const char *what, int *tested)
{
    size_t stride = numbers->count / PROBES + 1;
    for (size_t i = 0; i < numbers->count; i += stride) {
        double slope, given = (double)gradient->data[i];
        bool smooth;
        if (!measure_slope(trial, &numbers->data[i], &slope, &smooth))
            return fail(check, "forward", trial->wrong);
        *tested += smooth;
        if (smooth && fabs(slope - given) > 0.02 * (fmax(fabs(slope), fabs(given)) + 0.1))
            return ls_fail(check->error, LOCKSTEP_DIFFERENT, check->of->type, NULL,
                           "backward gives %g for element %zu of the %s, but differences of "
                           "forward give %g",
                           given, i, what, slope);
    }
    return 0;
}

static int check_gradients(const struct plugin_check *check, struct trial *trial, int *tested)
{
    if (!call(trial, false, 0) || !call(trial, true, 0))
        return fail(check, "backward", trial->wrong);
    for (int i = 0; i < trial->setup.bottoms; i++)
        LS_TRY(check_slopes(check, trial, &trial->bottom[i], &trial->bottom_gradient[i], "bottom",
                            tested));
    for (int i = 0; i < trial->setup.blobs; i++)
        LS_TRY(
            check_slopes(check, trial, &trial->blob[i], &trial->blob_gradient[i], "blob", tested));
    return *tested > 0 ? 0 : fail(check, "backward", "could not be tested: no slope is smooth");
}

static int check_type(const struct plugin_check *check)
{
    enum { SAMPLES = 4 };
    const bool mixes = (check->of->flags & LOCKSTEP_PLUGIN_MIXES) != 0;
    const bool backward = check->of->backward != NULL;
    int tested = 0;
    struct trial *trial = new_trial(check, SAMPLES, 0);
    if (trial == NULL)
        return LOCKSTEP_DIFFERENT;
    int status = check_repeats(check, trial, false);
    if (status == 0 && backward)
        status = check_repeats(check, trial, true);
    if (status == 0 && !mixes)
        status = check_rows(check, trial, SAMPLES);
    if (status == 0 && backward)
        status = check_gradients(check, trial, &tested);
    if (status == 0 && check->options->tell != NULL) {
        char line[200];
        snprintf(line, sizeof line, "%s: the same bits each time%s, %d slopes%s", check->of->type,
                 mixes ? ", mixes samples" : ", and for each sample by itself", tested,
                 backward ? "" : " (it has no backward)");
        check->options->tell(check->options->user, line);
    }
    free_trial(trial);
    return status;
}

/* ---- What to test with ----------------------------------------------------------------------- */

/* "4x3x5x4" */
static bool read_shape(const char *text, struct lockstep_plugin_shape *shape)
{
    enum { ELEMENTS_MAX = 1 << 24 };
    *shape = (struct lockstep_plugin_shape){0};
    for (char *end; shape->axes < LOCKSTEP_PLUGIN_AXES; text = end + 1) {
        long dim = strtol(text, &end, 10);
        if (end == text || dim < 1 || dim > ELEMENTS_MAX)
            return false;
        shape->dim[shape->axes++] = dim;
        if (elements(shape) > ELEMENTS_MAX) /* of one axis more than that: at most 2^48 */
            return false;
        if (*end != 'x')
            return *end == '\0';
    }
    return false;
}

static int read_options(struct plugin_check *check)
{
    const struct lockstep_plugin_check_options *options = check->options;
    static const struct lockstep_plugin_shape usual = {4, {4, 3, 5, 4}};
    if (options->setting_count > SETTINGS_MAX || options->bottom_count > VALUES)
        return ls_fail(check->error, LOCKSTEP_USAGE, NULL, NULL, "too many settings or bottoms");
    for (int i = 0; i < VALUES; i++) {
        check->shape[i] = usual;
        if ((size_t)i < options->bottom_count && !read_shape(options->bottoms[i], &check->shape[i]))
            return ls_fail(check->error, LOCKSTEP_USAGE, NULL, "4x3x5x4, for example",
                           "'%s' is no shape", options->bottoms[i]);
    }
    for (size_t i = 0; i < options->setting_count; i++) {
        const char *equals = strchr(options->settings[i], '=');
        if (equals == NULL)
            return ls_fail(check->error, LOCKSTEP_USAGE, NULL, "key=value", "'%s' is no setting",
                           options->settings[i]);
        char *copy = check->text[i] = ls_copy_string(options->settings[i]);
        if (copy == NULL)
            return ls_fail_memory(check->error, "settings");
        copy[equals - options->settings[i]] = '\0';
        check->value[i] = copy + (equals - options->settings[i]) + 1;
        check->setting[i] = (struct lockstep_plugin_setting){copy, &check->value[i], 1};
    }
    return 0;
}

/* Tests the types of a plugin, all that are asked for, also behind one that fails. */
static int check_types(struct plugin_check *check, const struct ls_plugin *plugin)
{
    const struct ls_layer_type *type;
    int status = 0;
    bool found = false;
    for (size_t i = 0; (type = ls_layer_type_of_plugin(i)) != NULL; i++) {
        if (type->plugin != plugin ||
            (check->options->type != NULL && strcmp(type->type, check->options->type) != 0))
            continue;
        found = true;
        check->of = ls_plugin_type_of(type)->layer;
        check->bottoms = check->of->bottoms_min;
        if (check->options->bottom_count > 0)
            check->bottoms = (int)check->options->bottom_count;
        int result =
            check->bottoms >= check->of->bottoms_min && check->bottoms <= check->of->bottoms_max
                ? check_type(check)
                : ls_fail(check->error, LOCKSTEP_USAGE, check->of->type, NULL,
                          "it does not take %d bottoms", check->bottoms);
        status = status != 0 ? status : result;
    }
    if (!found)
        return ls_fail(check->error, LOCKSTEP_USAGE, plugin->file, NULL, "it has no type '%s'",
                       check->options->type);
    return status;
}

int lockstep_plugin_check(const char *path, const struct lockstep_plugin_check_options *options,
                          struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_plugin_check_options mine;
    const struct ls_plugin *plugin = NULL;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_plugin_check_options_init", inner));
    struct plugin_check check = {.options = &mine, .error = inner};
    LS_TRY(ls_plugin_load(path, &plugin, inner));
    int status = read_options(&check);
    if (status == 0)
        status = check_types(&check, plugin);
    for (size_t i = 0; i < SETTINGS_MAX; i++)
        ls_free(check.text[i]);
    return status;
}
