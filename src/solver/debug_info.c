/* The lines of debug_info. See solver/debug_info.h.
 *
 * Caffe writes them while it computes; here they come together, after the backward pass, in the
 * same order and form. A gradient is that of the mean loss of the whole update, and that of a blob
 * which several layers read is their sum.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/debug_info.h"

#include <math.h>

#include "base/memory.h"
#include "engine/copies.h"
#include "engine/figures.h"
#include "ir/layer.h"
#include "solver/events.h"
#include "transport/comm.h"

/* Sums over the elements of a parameter. */
struct sums {
    double absolute, squares;
    int64_t count;
};

struct telling {
    struct ls_trainer *trainer;
    const struct ls_graph *graph;
    struct sums *data, *diff; /* by parameter */
};

static struct sums add_up(const float *numbers, int64_t count)
{
    struct sums sums = {.count = count};
    for (int64_t i = 0; i < count; i++) {
        sums.absolute += fabs((double)numbers[i]);
        sums.squares += (double)numbers[i] * (double)numbers[i];
    }
    return sums;
}

static double mean_of(const struct sums *sums)
{
    return sums->count > 0 ? sums->absolute / (double)sums->count : 0;
}

/* All ranks: the parameters of the train net and their gradients. */
static int measure_parameters(struct telling *telling, struct ls_error *error)
{
    struct ls_trainer *trainer = telling->trainer;
    size_t most = 0;
    for (size_t i = 0; i < trainer->train_parameters; i++) {
        size_t bytes = ls_parameter_plain_bytes(trainer->parameters->items[i]);
        most = bytes > most ? bytes : most;
    }
    float *plain = ls_alloc_aligned(most + 1);
    const bool ready = plain != NULL && telling->data != NULL && telling->diff != NULL;
    int status = ready ? 0 : ls_fail_memory(error, "debug_info");
    status = ls_comm_agree(trainer->comm, status, error);
    for (size_t i = 0; i < trainer->train_parameters && status == 0 && ready; i++) {
        const struct ls_parameter *parameter = trainer->parameters->items[i];
        int64_t count = ls_shape_size(&parameter->shape);
        status =
            ls_comm_agree(trainer->comm,
                          ls_copies_read(trainer->engine, (int)i, LS_WEIGHTS, plain, error), error);
        if (status == 0)
            telling->data[i] = add_up(plain, count);
        if (status == 0 && parameter->trained) {
            status = ls_copies_read_gradient(trainer->engine, (int)i, plain, error);
            telling->diff[i] = add_up(plain, count);
        }
    }
    ls_free_aligned(plain);
    return status;
}

static void say_parameters(const struct telling *telling, const struct ls_layer *layer,
                           bool gradients)
{
    for (int b = 0; b < layer->blobs; b++) {
        const struct ls_parameter *parameter = layer->blob[b];
        if ((size_t)parameter->index >= telling->trainer->train_parameters)
            continue;
        if (gradients && !layer->train_blob[b])
            continue;
        const struct sums *sums =
            gradients ? &telling->diff[parameter->index] : &telling->data[parameter->index];
        ls_events_say(telling->trainer, LOCKSTEP_EVENT_NOTICE,
                      "    [%s] Layer %s, param blob %d %s: %g", gradients ? "Backward" : "Forward",
                      layer->name, b, gradients ? "diff" : "data", mean_of(sums));
    }
}

/* What was measured of a blob; false: nothing. */
static bool find_mean(const struct telling *telling, const struct ls_layer *layer, int blob,
                      bool gradient, double *mean)
{
    const double *record = telling->trainer->figures.totals.record;
    const struct ls_graph *graph = telling->graph;
    for (size_t i = 0; i < graph->debug_count; i++) {
        const struct ls_debug_figure *figure = &graph->debug[i];
        if (figure->layer != layer || figure->blob != blob || figure->gradient != gradient)
            continue;
        double count = record[figure->offset + 1];
        *mean = count > 0 ? record[figure->offset] / count : 0;
        return true;
    }
    if (gradient)
        return false;
    for (size_t i = 0; i < graph->metric_count; i++) { /* a loss, or another figure */
        const struct ls_metric *metric = &graph->metrics[i];
        if (metric->layer != layer || metric->top != blob ||
            layer->top[blob]->storage != LS_STORE_NONE)
            continue;
        *mean = 0;
        for (int e = 0; e < metric->entries; e++)
            *mean += fabs(ls_figures_metric(metric, record, e)) / metric->entries;
        return true;
    }
    return false;
}

static void say_forward(const struct telling *telling)
{
    double mean;
    for (size_t i = 0; i < telling->graph->layer_count; i++) {
        const struct ls_layer *layer = telling->graph->layers[i];
        for (int t = 0; t < layer->tops; t++)
            if (find_mean(telling, layer, t, false, &mean))
                ls_events_say(telling->trainer, LOCKSTEP_EVENT_NOTICE,
                              "    [Forward] Layer %s, top blob %s data: %g", layer->name,
                              ls_layer_top_name(layer, t), mean);
        say_parameters(telling, layer, false);
    }
}

static void say_backward(const struct telling *telling)
{
    double mean;
    for (size_t i = telling->graph->layer_count; i-- > 0;) {
        const struct ls_layer *layer = telling->graph->layers[i];
        for (int b = 0; b < layer->bottoms; b++)
            if (find_mean(telling, layer, b, true, &mean))
                ls_events_say(telling->trainer, LOCKSTEP_EVENT_NOTICE,
                              "    [Backward] Layer %s, bottom blob %s diff: %g", layer->name,
                              layer->definition->bottom[b], mean);
        say_parameters(telling, layer, true);
    }
}

static void say_all(const struct telling *telling)
{
    struct sums data = {0}, diff = {0};
    for (size_t i = 0; i < telling->trainer->train_parameters; i++) {
        data.absolute += telling->data[i].absolute;
        data.squares += telling->data[i].squares;
        diff.absolute += telling->diff[i].absolute;
        diff.squares += telling->diff[i].squares;
    }
    ls_events_say(telling->trainer, LOCKSTEP_EVENT_NOTICE,
                  "    [Backward] All net params (data, diff): L1 norm = (%g, %g); L2 norm = (%g, "
                  "%g)",
                  data.absolute, diff.absolute, sqrt(data.squares), sqrt(diff.squares));
}

int ls_debug_info_tell(struct ls_trainer *trainer, struct ls_error *error)
{
    int64_t display = trainer->schedule.display;
    if (!trainer->solver->debug_info || display <= 0 || trainer->iteration % display != 0)
        return 0;
    struct telling telling = {.trainer = trainer, .graph = ls_net_graph(trainer->train)};
    telling.data = ls_alloc(trainer->train_parameters + 1, sizeof *telling.data);
    telling.diff = ls_alloc(trainer->train_parameters + 1, sizeof *telling.diff);
    int status =
        telling.data == NULL || telling.diff == NULL ? ls_fail_memory(error, "debug_info") : 0;
    status = ls_comm_agree(trainer->comm, status, error);
    if (status == 0)
        status = measure_parameters(&telling, error);
    if (status == 0) {
        say_forward(&telling);
        say_backward(&telling);
        say_all(&telling);
    }
    ls_free(telling.data);
    ls_free(telling.diff);
    return status;
}
