/* After the first iteration a training allocates nothing, neither through base/memory.h nor
 * through the C library. The kernel library and the C++ library under it may allocate while a
 * kernel runs, but must free all of it: the memory in use does not grow. This program has its
 * own malloc, which looks at the caller's address: calls from the C library and from Lockstep
 * count as ours, calls from other libraries as theirs.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <malloc.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "trainings/training.h"

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&       \
    !HAS_FEATURE(address_sanitizer) && !HAS_FEATURE(thread_sanitizer)
#define OWN_MALLOC 1
#else
#define OWN_MALLOC 0
#endif

/* ---- malloc ---------------------------------------------------------------------------------- */

static _Atomic uint64_t ours, theirs; /* allocations */
static _Atomic int64_t alive;         /* bytes */
static _Atomic uintptr_t last_caller;

#if OWN_MALLOC
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static atomic_bool watching;

static bool is_library(const void *caller)
{
    static const char *const names[] = {"libdnnl", "libstdc++", "libc++", "libgomp"};
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(info.dli_fname, names[i]) != NULL)
            return true;
    return false;
}

static void *note(void *memory, const void *caller)
{
    if (memory == NULL)
        return NULL;
    atomic_fetch_add(&alive, (int64_t)malloc_usable_size(memory));
    if (!atomic_load(&watching))
        return memory;
    if (is_library(caller)) {
        atomic_fetch_add(&theirs, 1);
    } else {
        atomic_fetch_add(&ours, 1);
        atomic_store(&last_caller, (uintptr_t)caller);
    }
    return memory;
}

void free(void *memory)
{
    if (memory != NULL)
        atomic_fetch_sub(&alive, (int64_t)malloc_usable_size(memory));
    __libc_free(memory);
}

void *malloc(size_t size)
{
    return note(__libc_malloc(size), __builtin_return_address(0));
}

void *calloc(size_t count, size_t size)
{
    return note(__libc_calloc(count, size), __builtin_return_address(0));
}

void *realloc(void *memory, size_t size)
{
    if (memory != NULL)
        atomic_fetch_sub(&alive, (int64_t)malloc_usable_size(memory));
    return note(__libc_realloc(memory, size), __builtin_return_address(0));
}

void *memalign(size_t alignment, size_t size)
{
    return note(__libc_memalign(alignment, size), __builtin_return_address(0));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return note(__libc_memalign(alignment, size), __builtin_return_address(0));
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = note(__libc_memalign(alignment, size), __builtin_return_address(0));
    return *memory != NULL ? 0 : 12; /* ENOMEM */
}

static void watch(bool on)
{
    atomic_store(&watching, on);
}
#else
static void watch(bool on)
{
    (void)on;
}
#endif

/* ---- Trainings ------------------------------------------------------------------------------- */

struct window {
    uint64_t allocations; /* through base/memory.h */
    int64_t bytes;        /* alive */
    int displays, tests;
    bool closed;
};

/* From the display of iteration 4, when everything has happened once, to the display of
 * iteration 24. In between a hash of the weights joins the chain of hashes. */
static void take_event(void *user, const struct lockstep_event *event)
{
    struct window *window = user;
    bool display = event->kind == LOCKSTEP_EVENT_DISPLAY;
    if (display && event->iteration == 24) {
        watch(false);
        window->allocations = ls_allocations() - window->allocations;
        window->bytes = atomic_load(&alive) - window->bytes;
        window->closed = true;
    }
    window->displays += display && !window->closed;
    window->tests += event->kind == LOCKSTEP_EVENT_TEST && !window->closed;
    if (display && event->iteration == 4) {
        *window = (struct window){.allocations = ls_allocations(), .bytes = atomic_load(&alive)};
        watch(true);
    }
}

/* Tests in every second iteration, a display in each, and everything else that happens between
 * two updates: clipping, a penalty, an average of weights. */
static struct lockstep_solver *solver_for(const char *solver, const char *layers)
{
    return load_solver(
        "base_lr: 0.001 lr_policy: 'fixed' max_iter: 1000 display: 1 test_interval: 2\n"
        "weight_decay: 0.001 snapshot_after_train: false %s\n"
        "net_param { %s }\n",
        solver, ls_test_net("allocations", LS_TEST_VALUES({"layers", layers})));
}

static void check(const char *solver_fields, const char *layers, int workers, double audit)
{
    struct lockstep_solver *solver = solver_for(solver_fields, layers);
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    struct window window = {0};
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.workers = workers;
    options.audit = audit;
    options.snapshot_prefix = ls_test_path("unnamed");
    options.callbacks.event = take_event;
    options.callbacks.user = &window;
    if (lockstep_trainer_create(solver, &options, &trainer, error) != 0 ||
        lockstep_trainer_run(trainer, 26, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_true(window.closed);
    assert_int_equal(window.tests, 10);
    assert_int_equal(window.displays, 19);
    if (atomic_load(&ours) != 0)
        fail_msg("%llu allocations of ours, the last one from %p (this file is at %p)",
                 (unsigned long long)atomic_load(&ours), (void *)atomic_load(&last_caller),
                 (void *)(uintptr_t)check);
    assert_int_equal(window.allocations, 0);
    assert_int_equal(window.bytes, 0);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
}

static const char norm[] = "layer { name: 'bn' type: 'BatchNorm' bottom: 'conv' top: 'conv' }\n"
                           "layer { name: 'scale' type: 'Scale' bottom: 'conv' top: 'conv'\n"
                           "  scale_param { bias_term: true } }\n"
                           "layer { name: 'drop' type: 'Dropout' bottom: 'conv' top: 'conv' }";

static void updates_allocate_nothing(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers++)
        check("momentum: 0.9 clip_gradients: 0.5", "", workers, workers == 2);
}

/* With sync points inside the net, moving averages, several batches in an update. */
static void updates_with_sync_points_allocate_nothing(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers++)
        check("type: 'Adam' momentum2: 0.99 iter_size: 2 weight_average { decay: 0.9 }", norm,
              workers, workers == 3);
}

/* The test can fail: the window sees an allocation in it. */
static void an_allocation_in_the_window_is_seen(void **state)
{
    (void)state;
    uint64_t before = ls_allocations();
    watch(true);
    void *volatile memory = ls_alloc(10, 10);
    watch(false);
    assert_int_equal(ls_allocations() - before, 1);
    assert_int_equal(atomic_exchange(&ours, 0), OWN_MALLOC);
    ls_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_in_the_window_is_seen),
        cmocka_unit_test(updates_allocate_nothing),
        cmocka_unit_test(updates_with_sync_points_allocate_nothing),
    };
    write_cifar(ls_test_path("cifar.bin"), 50);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
