/* Training against PyTorch: every case of tests/compat/cases, from the same weights and data, must
 * give the losses, gradients and weights that tools/reference/make.py computed in double precision.
 * An argument pins the instruction set ("sse41"), or has the reference device compute them
 * ("reference"), which checks what other tests compare the CPU with; then two of the largest cases
 * are left out unless $LOCKSTEP_ALL is set.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/case_file.h"
#include "support/support.h"

/* Names of files under tests/compat/cases. */
static const char *const files[] = {
    "networks",  "functions",     "layers",    "losses",       "solvers",    "spatial",
    "shapes",    "normalization", "residual",  "segmentation", "volumes",    "pairs",
    "recurrent", "forks",         "mixing",    "boxes",        "detections", "filter",
    "hardest",   "language",      "sequences", "attention"};
enum { FILES = sizeof files / sizeof *files };
static const char *device, *isa;

/* Takes the reference device half a minute, and has no layer that another case has not. */
static bool is_left_out(const char *name)
{
    return device != NULL && getenv("LOCKSTEP_ALL") == NULL &&
           (strcmp(name, "cifar10_full") == 0 || strcmp(name, "resnet20_halves") == 0);
}

static void run(void **state)
{
    case_run(*state, 2, device, isa);
}

int main(int argc, char **argv)
{
    bool reference = argc > 1 && strcmp(argv[1], "reference") == 0;
    device = reference ? argv[1] : NULL;
    isa = argc > 1 && !reference ? argv[1] : NULL;
    struct case_list lists[FILES];
    struct CMUnitTest *tests = NULL;
    size_t count = 0;
    for (size_t f = 0; f < FILES; f++) {
        case_list_read(files[f], &lists[f]);
        tests = realloc(tests, (count + lists[f].count) * sizeof *tests);
        if (tests == NULL)
            return 1;
        for (size_t i = 0; i < lists[f].count; i++) {
            if (is_left_out(lists[f].items[i].name))
                continue;
            tests[count++] = (struct CMUnitTest){.name = lists[f].items[i].name,
                                                 .test_func = run,
                                                 .initial_state = &lists[f].items[i]};
        }
    }
    int failed = _cmocka_run_group_tests("torch", tests, count, NULL, NULL);
    for (size_t f = 0; f < FILES; f++)
        case_list_free(&lists[f]);
    free(tests);
    return failed;
}
