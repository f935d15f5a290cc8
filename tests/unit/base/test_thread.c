/* Cores, the floating-point state, the barrier and the lock.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/thread.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

static void cores_are_limited_by_affinity(void **state)
{
    (void)state;
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0)
        ls_test_skip("the affinity mask cannot be read");
    int first = 0;
    while (!CPU_ISSET(first, &mask))
        first++;
    /* In a child, because the mask is read once in a process. */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        _exit(sched_setaffinity(0, sizeof one, &one) == 0 ? ls_cpu_count() : 99);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    int count = ls_cpu_count();
    assert_true(count >= 1 && count <= CPU_COUNT(&mask));
}

/* In a child with the first two cores of the mask, or with one if it has no more. The mask is read
 * once in a process: nothing may have asked for it before. */
static int ask_child(int (*ask)(int cores))
{
    cpu_set_t mask, some;
    int cores = 0;
    CPU_ZERO(&some);
    if (sched_getaffinity(0, sizeof mask, &mask) != 0)
        ls_test_skip("the affinity mask cannot be read");
    for (int core = 0; core < CPU_SETSIZE && cores < 2; core++)
        if (CPU_ISSET(core, &mask)) {
            CPU_SET(core, &some);
            cores++;
        }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(sched_setaffinity(0, sizeof some, &some) == 0 ? ask(cores) : 99);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Threads are pinned where there are as many as cores: not with fewer or more, and not under a
 * quota. */
static int ask_whether_filled(int cores)
{
    bool limited = ls_cpu_count() < cores;
    bool good = ls_fill_cores(cores) == !limited;
    for (int threads = 1; threads <= 4; threads++)
        good &= threads == cores || !ls_fill_cores(threads);
    return good ? 0 : 1;
}

/* With more threads than cores a barrier hardly spins: a spinning thread would hold the core
 * that another needs. */
static int ask_whether_spinning(int cores)
{
    struct ls_barrier fitting, crowded;
    ls_barrier_init(&fitting, ls_cpu_count());
    ls_barrier_init(&crowded, cores + 1);
    return crowded.spins < 100 && fitting.spins > 10 * crowded.spins ? 0 : 1;
}

static void with_few_cores_barriers_hardly_spin(void **state)
{
    (void)state;
    assert_int_equal(ask_child(ask_whether_filled), 0);
    assert_int_equal(ask_child(ask_whether_spinning), 0);
}

static void *pinned_thread(void *result)
{
    cpu_set_t mask;
    ls_pin_thread(1000003);
    ls_pin_thread(-1); /* changes nothing */
    *(int *)result = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : -1;
    return NULL;
}

static void pinning_leaves_the_count_alone(void **state)
{
    (void)state;
    int before = ls_cpu_count(), cores = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, pinned_thread, &cores), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(cores, 1);
    assert_int_equal(ls_cpu_count(), before);
}

struct float_facts {
    bool flushes_results, flushes_operands, nearest, restored;
};

/* Volatile objects keep the compiler from moving arithmetic across a change of mode, or from
 * doing it itself. */
static volatile float left, right, answer;

static float product(float a, float b)
{
    left = a;
    right = b;
    answer = left * right;
    return answer;
}

static float sum(float a, float b)
{
    left = a;
    right = b;
    answer = left + right;
    return answer;
}

static bool is_zero(float x)
{
    uint32_t bits; /* in this mode a comparison takes denormals for zero */
    memcpy(&bits, &x, sizeof bits);
    return bits << 1 == 0;
}

static void *float_thread(void *result)
{
    struct float_facts *facts = result;
    uint64_t before = ls_float_mode();
    bool kept = !is_zero(product(0x1p-100F, 0x1p-40F)); /* a fresh thread has denormals */
    ls_set_float_mode();
    facts->flushes_results = is_zero(product(0x1p-100F, 0x1p-40F));
    facts->flushes_operands = is_zero(product(0x1p-140F, 0x1p+60F));
    facts->nearest =
        sum(1.0F, 0x1.8p-24F) == 0x1.000002p+0F && sum(-1.0F, -0x1.8p-24F) == -0x1.000002p+0F;
    ls_restore_float_mode(before);
    facts->restored = kept && !is_zero(product(0x1p-100F, 0x1p-40F));
    return NULL;
}

static void threads_flush_denormals_and_round_to_nearest(void **state)
{
    (void)state;
    struct float_facts facts = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, float_thread, &facts), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(facts.flushes_results);
    assert_true(facts.flushes_operands);
    assert_true(facts.nearest);
    assert_true(facts.restored);
}

enum { THREADS = 5, ROUNDS = 400 };

struct meeting {
    struct ls_barrier barrier;
    int written[THREADS]; /* each thread writes its own, all read all: races would be seen */
    _Atomic int mistakes;
};

struct guest {
    struct meeting *meeting;
    int index;
};

static void *guest_thread(void *argument)
{
    struct guest *guest = argument;
    struct meeting *meeting = guest->meeting;
    for (int round = 1; round <= ROUNDS; round++) {
        if (guest->index == 2 && round % 100 == 0)
            usleep(1000); /* late enough that the others sleep */
        meeting->written[guest->index] = round;
        ls_barrier_wait(&meeting->barrier);
        for (int i = 0; i < THREADS; i++) {
            if (meeting->written[i] != round)
                atomic_fetch_add(&meeting->mistakes, 1);
        }
        ls_barrier_wait(&meeting->barrier);
    }
    return NULL;
}

/* `spins` < 0: as the barrier chooses. */
static void meet(int spins)
{
    static struct meeting meeting;
    memset(&meeting, 0, sizeof meeting);
    ls_barrier_init(&meeting.barrier, THREADS);
    if (spins >= 0)
        meeting.barrier.spins = spins;
    pthread_t threads[THREADS];
    struct guest guests[THREADS];
    for (int i = 0; i < THREADS; i++) {
        guests[i] = (struct guest){&meeting, i};
        assert_int_equal(pthread_create(&threads[i], NULL, guest_thread, &guests[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(meeting.mistakes, 0);
    assert_int_equal(meeting.barrier.arrived, 0);
    assert_int_equal(meeting.barrier.sleepers, 0);
}

static void a_barrier_lets_all_go_together(void **state)
{
    (void)state;
    meet(-1);
    meet(0); /* always asleep: a lost wake-up would hang */
    struct ls_barrier alone;
    ls_barrier_init(&alone, 1);
    for (int i = 0; i < 10; i++)
        ls_barrier_wait(&alone);
}

static struct ls_spin_lock lock = {ATOMIC_FLAG_INIT};
static long guarded;

static void *counting_thread(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        ls_spin_acquire(&lock);
        guarded++;
        ls_spin_release(&lock);
    }
    return unused;
}

static void a_spin_lock_lets_one_in(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, counting_thread, NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(guarded, 80000);
}

static void the_clock_goes_forward(void **state)
{
    (void)state;
    double last = ls_clock();
    for (int i = 0; i < 1000; i++) {
        double now = ls_clock();
        assert_true(now >= last);
        last = now;
    }
}

static void *tell_card(void *argument)
{
    pthread_t inner;
    int *cards = argument;
    cards[0] = ls_thread_card();
    if (cards[1] == 0 && ls_thread_create(&inner, tell_card, cards + 1) == 0)
        (void)pthread_join(inner, NULL);
    ls_thread_set_card(9);
    return NULL;
}

static void a_thread_has_the_card_of_its_maker(void **state)
{
    (void)state;
    int cards[3] = {0, 0, 1};
    pthread_t thread;
    assert_int_equal(ls_thread_card(), -1);
    ls_thread_set_card(3);
    assert_int_equal(ls_thread_create(&thread, tell_card, cards), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(cards[0], 3);
    assert_int_equal(cards[1], 3);
    assert_int_equal(ls_thread_card(), 3);
    ls_thread_set_card(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_few_cores_barriers_hardly_spin), /* first: see ask_child */
        cmocka_unit_test(cores_are_limited_by_affinity),
        cmocka_unit_test(pinning_leaves_the_count_alone),
        cmocka_unit_test(threads_flush_denormals_and_round_to_nearest),
        cmocka_unit_test(a_barrier_lets_all_go_together),
        cmocka_unit_test(a_spin_lock_lets_one_in),
        cmocka_unit_test(the_clock_goes_forward),
        cmocka_unit_test(a_thread_has_the_card_of_its_maker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
