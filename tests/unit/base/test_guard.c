/* Guarded views of files: unreadable pages are zeros, and reported; any other SIGBUS has its
 * usual effect.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/support.h"

enum { PAGES = 4, CALLED = 71, CALLED_WITH_INFO = 72, READ = 73 };

struct view {
    volatile uint8_t *data;
    size_t page, size;
    char path[600];
};

/* A mapped file of a few pages, page p full of the number p + 1. */
static struct view map_pages(const char *name)
{
    struct view view = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    view.size = PAGES * view.page;
    uint8_t *bytes = malloc(view.size);
    for (size_t i = 0; i < view.size; i++)
        bytes[i] = (uint8_t)(i / view.page + 1);
    snprintf(view.path, sizeof view.path, "%s", ls_test_path(name));
    ls_test_write(view.path, bytes, view.size);
    free(bytes);
    int file = open(view.path, O_RDONLY);
    assert_true(file >= 0);
    void *data = mmap(NULL, view.size, PROT_READ, MAP_SHARED, file, 0);
    assert_true(data != MAP_FAILED);
    close(file);
    view.data = data;
    return view;
}

static void unmap(const struct view *view)
{
    munmap((void *)(uintptr_t)view->data, view->size);
}

/* cmocka puts a handler of its own in front of each test: that of the guards goes before it, as it
 * would have where no other is installed later. */
static struct ls_guard *enter(const struct view *view)
{
    static struct sigaction of_guards;
    static bool known;
    struct ls_guard *guard = ls_guard_enter((void *)(uintptr_t)view->data, view->size);
    assert_non_null(guard);
    sigaction(SIGBUS, known ? &of_guards : NULL, known ? NULL : &of_guards);
    known = true;
    return guard;
}

static void cut(const struct view *view, size_t pages)
{
    assert_int_equal(truncate(view->path, (off_t)(pages * view->page)), 0);
}

/* ---- Within views ---------------------------------------------------------------------------- */

static void a_whole_file_is_read_in_its_view(void **state)
{
    (void)state;
    struct view view = map_pages("whole");
    struct ls_guard *guard = enter(&view);
    for (size_t p = 0; p < PAGES; p++)
        assert_int_equal(view.data[p * view.page], p + 1);
    assert_false(ls_guard_lost(guard));
    ls_guard_leave(guard);
    unmap(&view);
    assert_false(ls_guard_lost(NULL));
    ls_guard_leave(NULL);
}

/* Pages that still exist keep their bytes, lost pages are zeros; other views are not affected. */
static void pages_of_a_cut_file_are_zeros(void **state)
{
    (void)state;
    struct view view = map_pages("cut"), other = map_pages("other");
    struct ls_guard *guard = enter(&view), *others = enter(&other);
    assert_ptr_not_equal(guard, others);
    cut(&view, 2);
    assert_false(ls_guard_lost(guard)); /* not read yet */
    assert_int_equal(view.data[3 * view.page + 5], 0);
    assert_true(ls_guard_lost(guard));
    assert_int_equal(view.data[2 * view.page], 0);
    assert_int_equal(view.data[view.size - 1], 0);
    assert_int_equal(view.data[0], 1);
    assert_int_equal(view.data[2 * view.page - 1], 2);
    assert_int_equal(other.data[3 * other.page], 4);
    assert_false(ls_guard_lost(others));
    ls_guard_leave(guard);
    ls_guard_leave(others);
    unmap(&view);
    unmap(&other);
}

/* A guard that is left serves again, and knows nothing of the view that it had. */
static void a_guard_that_is_left_serves_again(void **state)
{
    (void)state;
    struct view view = map_pages("again");
    struct ls_guard *first = enter(&view);
    cut(&view, 0);
    assert_int_equal(view.data[0], 0);
    assert_true(ls_guard_lost(first));
    ls_guard_leave(first);
    unmap(&view);
    view = map_pages("again");
    uint64_t before = ls_allocations();
    struct ls_guard *second = enter(&view);
    assert_int_equal(ls_allocations(), before);
    assert_false(ls_guard_lost(second));
    cut(&view, 1);
    assert_int_equal(view.data[view.page], 0);
    assert_true(ls_guard_lost(second));
    ls_guard_leave(second);
    unmap(&view);
}

static void without_memory_a_guard_is_refused(void **state)
{
    (void)state;
    struct view view = map_pages("memory");
    struct ls_guard *all[64], *none = NULL;
    size_t count = 0;
    ls_fail_allocations_after(0); /* guards that were left are there still */
    while (count < 64 && (none = ls_guard_enter((void *)(uintptr_t)view.data, view.size)) != NULL)
        all[count++] = none;
    ls_fail_allocations_after(-1);
    assert_null(none);
    while (count > 0)
        ls_guard_leave(all[--count]);
    unmap(&view);
}

static void *read_lost(void *argument)
{
    const struct view *view = argument;
    uintptr_t sum = 0;
    for (size_t i = view->size; i > view->page; i -= 64)
        sum += view->data[i - 1];
    return (void *)sum;
}

/* Threads may find the same loss at the same time, or several. */
static void threads_may_find_losses_at_once(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    struct view views[2] = {map_pages("one"), map_pages("two")};
    struct ls_guard *guards[2] = {enter(&views[0]), enter(&views[1])};
    pthread_t threads[THREADS];
    for (int v = 0; v < 2; v++)
        cut(&views[v], 1);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, read_lost, &views[t % 2]), 0);
    for (int t = 0; t < THREADS; t++) {
        void *sum;
        pthread_join(threads[t], &sum);
        assert_null(sum);
    }
    for (int v = 0; v < 2; v++) {
        assert_true(ls_guard_lost(guards[v]));
        assert_int_equal(views[v].data[0], 1);
        ls_guard_leave(guards[v]);
        unmap(&views[v]);
    }
}

/* ---- Besides --------------------------------------------------------------------------------- */

static void plain_handler(int number)
{
    _exit(number == SIGBUS ? CALLED : 1);
}

static void handler_with_info(int number, siginfo_t *info, void *context)
{
    _exit(number == SIGBUS && info != NULL && context != NULL ? CALLED_WITH_INFO : 1);
}

enum handler { NONE, IGNORED, PLAIN, WITH_INFO };
enum what { TOUCH_UNGUARDED, TOUCH_LEFT, TOUCH_GUARDED, SENT };

/* In a process of its own, whose first guard this is. */
static void act(enum handler handler, enum what what)
{
    struct sigaction action = {.sa_handler = handler == IGNORED ? SIG_IGN : SIG_DFL};
    struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none);
    if (handler == PLAIN)
        action.sa_handler = plain_handler;
    if (handler == WITH_INFO) {
        action.sa_sigaction = handler_with_info;
        action.sa_flags = SA_SIGINFO;
    }
    sigaction(SIGBUS, &action, NULL);
    struct view guarded = map_pages("guarded"), other = map_pages("unguarded");
    struct ls_guard *guard = enter(&guarded);
    cut(&guarded, 1);
    cut(&other, 1);
    uint8_t byte = 0;
    if (what == SENT)
        raise(SIGBUS);
    if (what == TOUCH_LEFT)
        ls_guard_leave(guard);
    if (what == TOUCH_GUARDED || what == TOUCH_LEFT)
        byte = guarded.data[guarded.page];
    if (what == TOUCH_UNGUARDED)
        byte = other.data[other.page];
    _exit(byte == 0 && ls_guard_lost(guard) ? READ : 0);
}

static int status_of(enum handler handler, enum what what)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        act(handler, what);
        _exit(2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Runs before the first guard of this process, which would put its handler before those of the
 * test. */
static void other_signals_reach_their_handlers(void **state)
{
    (void)state;
    static const enum what strange[] = {TOUCH_UNGUARDED, TOUCH_LEFT, SENT};
    for (int i = 0; i < 3; i++) {
        int status = status_of(NONE, strange[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
        status = status_of(PLAIN, strange[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CALLED);
        status = status_of(WITH_INFO, strange[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CALLED_WITH_INFO);
    }
    int status = status_of(IGNORED, TOUCH_UNGUARDED); /* the kernel ignores none that it raises */
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = status_of(IGNORED, SENT);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int handler = NONE; handler <= WITH_INFO; handler++) {
        status = status_of((enum handler)handler, TOUCH_GUARDED);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == READ);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_signals_reach_their_handlers),
        cmocka_unit_test(a_whole_file_is_read_in_its_view),
        cmocka_unit_test(pages_of_a_cut_file_are_zeros),
        cmocka_unit_test(a_guard_that_is_left_serves_again),
        cmocka_unit_test(without_memory_a_guard_is_refused),
        cmocka_unit_test(threads_may_find_losses_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
