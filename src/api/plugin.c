/* The public interface: plugins, and testing their layer types.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/options.h"
#include "api/plugin_child.h"
#include "api/plugin_trial.h"
#include "base/memory.h"
#include "layers/layers.h"
#include "layers/plugins.h"

enum { VALUES = LOCKSTEP_PLUGIN_VALUES, PROBES = 24 };

int lockstep_plugin_load(const char *path, struct lockstep_error *error)
{
    LS_OWN_MODE;
    return ls_plugin_load(path, NULL, ls_api_error(error));
}

void lockstep_plugin_check_options_init(struct lockstep_plugin_check_options *options)
{
    *options = (struct lockstep_plugin_check_options){.struct_size = sizeof *options};
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static int fail(const struct ls_plugin_check *check, const char *pass, const char *what)
{
    return ls_fail(check->error, LOCKSTEP_DIFFERENT, check->of->type, NULL, "%s %s", pass, what);
}

/* Twice the same call gives the same bits. */
static int check_repeats(const struct ls_plugin_check *check, struct ls_plugin_trial *trial,
                         bool backward)
{
    const char *pass = backward ? "backward" : "forward";
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        if (!ls_plugin_trial_call(trial, backward, 0))
            return fail(check, pass, trial->wrong);
        hash[k] =
            backward
                ? ls_plugin_hash(trial->blob_gradient, trial->setup.blobs,
                                 ls_plugin_hash(trial->bottom_gradient, trial->setup.bottoms, 1))
                : ls_plugin_hash(trial->top, trial->setup.tops, 1);
    }
    return hash[0] == hash[1] ? 0 : fail(check, pass, "gives other bits for the same numbers");
}

/* Whether a sample's rows are those of the whole batch. */
static bool same_rows(const struct ls_plugin_numbers *one, const struct ls_plugin_numbers *all,
                      int count, int64_t sample)
{
    for (int k = 0; k < count; k++)
        if (memcmp(one[k].data, all[k].data + (size_t)sample * one[k].count,
                   one[k].count * sizeof *one[k].data) != 0)
            return false;
    return true;
}

/* Each sample by itself gives its rows of the batch. */
static int check_rows(const struct ls_plugin_check *check, const struct ls_plugin_trial *all,
                      int64_t samples)
{
    for (int64_t n = 0; n < samples; n++) {
        struct ls_plugin_trial *one = ls_plugin_trial_new(check, 1, n);
        if (one == NULL)
            return LOCKSTEP_DIFFERENT;
        const char *pass = "forward";
        bool called = ls_plugin_trial_call(one, false, n);
        bool same = called && same_rows(one->top, all->top, all->setup.tops, n);
        if (same && check->of->backward != NULL) {
            pass = "backward";
            called = ls_plugin_trial_call(one, true, n);
            same = called &&
                   same_rows(one->bottom_gradient, all->bottom_gradient, all->setup.bottoms, n);
        }
        int status = same ? 0
                          : fail(check, pass,
                                 !called ? one->wrong
                                         : "gives other rows for a sample by itself than in a "
                                           "batch: does the type mix samples?");
        ls_plugin_trial_free(one);
        LS_TRY(status);
    }
    return 0;
}

/* The sum of the tops, each element times the gradient that backward is handed. */
static double weighted_sum(const struct ls_plugin_trial *trial)
{
    double sum = 0;
    for (int k = 0; k < trial->setup.tops; k++)
        for (size_t i = 0; i < trial->top[k].count; i++)
            sum += (double)trial->top[k].data[i] * (double)trial->top_gradient[k].data[i];
    return sum;
}

/* The sum where an element is moved by `step`; false: the call failed. */
static bool moved_sum(struct ls_plugin_trial *trial, float *element, float step, double *sum,
                      double *moved)
{
    const float kept = *element;
    *element = kept + step;
    *moved = (double)*element - (double)kept;
    bool called = ls_plugin_trial_call(trial, false, 0);
    *sum = called ? weighted_sum(trial) : 0;
    *element = kept;
    return called;
}

/* The slope of the sum in an element, from both sides and from further away. False: the call
 * failed. *smooth tells whether all of them agree: there is no corner nearby. */
static bool measure_slope(struct ls_plugin_trial *trial, float *element, double *slope,
                          bool *smooth)
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
static int check_slopes(const struct ls_plugin_check *check, struct ls_plugin_trial *trial,
                        const struct ls_plugin_numbers *numbers,
                        const struct ls_plugin_numbers *gradient, const char *what, int *tested)
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

static int check_gradients(const struct ls_plugin_check *check, struct ls_plugin_trial *trial,
                           int *tested)
{
    if (!ls_plugin_trial_call(trial, false, 0) || !ls_plugin_trial_call(trial, true, 0))
        return fail(check, "backward", trial->wrong);
    for (int i = 0; i < trial->setup.bottoms; i++)
        LS_TRY(check_slopes(check, trial, &trial->bottom[i], &trial->bottom_gradient[i], "bottom",
                            tested));
    for (int i = 0; i < trial->setup.blobs; i++)
        LS_TRY(
            check_slopes(check, trial, &trial->blob[i], &trial->blob_gradient[i], "blob", tested));
    return *tested > 0 ? 0 : fail(check, "backward", "could not be tested: no slope is smooth");
}

static int check_type(const struct ls_plugin_check *check)
{
    enum { SAMPLES = 4 };
    const bool mixes = (check->of->flags & LOCKSTEP_PLUGIN_MIXES) != 0;
    const bool backward = check->of->backward != NULL;
    int tested = 0;
    struct ls_plugin_trial *trial = ls_plugin_trial_new(check, SAMPLES, 0);
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
    ls_plugin_trial_free(trial);
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
        if (ls_plugin_elements(shape) > ELEMENTS_MAX) /* of one axis more than that: at most 2^48 */
            return false;
        if (*end != 'x')
            return *end == '\0';
    }
    return false;
}

static int read_options(struct ls_plugin_check *check)
{
    const struct lockstep_plugin_check_options *options = check->options;
    static const struct lockstep_plugin_shape usual = {4, {4, 3, 5, 4}};
    if (options->setting_count > LS_PLUGIN_SETTINGS_MAX || options->bottom_count > VALUES)
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
static int check_types(struct ls_plugin_check *check, const struct ls_plugin *plugin)
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
                ? ls_plugin_test_in_child(check, check_type)
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
    struct ls_plugin_check check = {.options = &mine, .error = inner};
    LS_TRY(ls_plugin_load(path, &plugin, inner));
    int status = read_options(&check);
    if (status == 0)
        status = check_types(&check, plugin);
    for (size_t i = 0; i < LS_PLUGIN_SETTINGS_MAX; i++)
        ls_free(check.text[i]);
    return status;
}
