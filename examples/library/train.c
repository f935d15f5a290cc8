/* Training from C: loads a solver, trains, prints the loss as it falls, tests, keeps a snapshot.
 *
 *     cc train.c $(pkg-config --cflags --libs lockstep) -o train
 *     ./train solver.prototxt 100 2 model.safetensors
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/lockstep.h>

static void on_event(void *user, const struct lockstep_event *event)
{
    (void)user;
    if (event->kind == LOCKSTEP_EVENT_WARNING)
        fprintf(stderr, "warning: %s\n", event->text);
}

static int train(const char *path, long iterations, int workers, const char *model,
                 struct lockstep_error *error)
{
    struct lockstep_solver *solver = NULL;
    struct lockstep_trainer *trainer = NULL;
    const struct lockstep_output *outputs = NULL;
    size_t count = 0;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = workers;
    options.callbacks.event = on_event;

    int status = lockstep_solver_load(path, NULL, 0, &solver, error);
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &trainer, error);
    for (long i = 0; i < iterations && status == 0; i += 10) {
        status = lockstep_trainer_step(trainer, i + 10 < iterations ? 10 : iterations - i, error);
        if (status == 0)
            printf("%lld: loss %g\n", (long long)lockstep_trainer_iteration(trainer),
                   lockstep_trainer_loss(trainer));
    }
    if (status == 0)
        status = lockstep_trainer_evaluate(trainer, 0, &outputs, &count, error);
    for (size_t i = 0; i < count; i++)
        printf("%s = %g\n", outputs[i].name, outputs[i].values[0]);
    if (status == 0)
        status = lockstep_trainer_snapshot(trainer, model, error);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s SOLVER ITERATIONS WORKERS MODEL\n", argv[0]);
        return LOCKSTEP_USAGE;
    }
    struct lockstep_error *error = lockstep_error_new();
    int status =
        train(argv[1], strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10), argv[4], error);
    if (status != 0)
        fprintf(stderr, "%s\n", lockstep_error_text(error));
    lockstep_error_free(error);
    return status;
}
