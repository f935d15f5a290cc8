/* Whether another process is alive. SPDX-License-Identifier: BSD-2-Clause */
#include "base/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

/* A child that waits, and how it is called. */
static pid_t start_child(struct ls_process *process)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct ls_process self = ls_process_self();
        if (write(ends[1], &self, sizeof self) != sizeof self)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], process, sizeof *process), sizeof *process);
    close(ends[0]);
    close(ends[1]);
    if (process->space == 0)
        ls_test_skip("there is no /proc");
    return child;
}

/* What becomes of it, where that takes the kernel a moment. */
static void expect(const struct ls_process *process, enum ls_process_state state)
{
    for (int i = 0; i < 10000 && ls_process_state(process) != state; i++)
        usleep(1000);
    assert_int_equal(ls_process_state(process), state);
}

static void a_process_is_known_until_it_is_gone(void **state)
{
    (void)state;
    struct ls_process process;
    pid_t child = start_child(&process);
    assert_int_equal(process.number, child);
    expect(&process, LS_PROCESS_THERE);
    kill(child, SIGSTOP);
    expect(&process, LS_PROCESS_STOPPED);
    kill(child, SIGCONT);
    expect(&process, LS_PROCESS_THERE);
    kill(child, SIGKILL);
    expect(&process, LS_PROCESS_GONE); /* dead, and not waited for yet */
    waitpid(child, NULL, 0);
    assert_int_equal(ls_process_state(&process), LS_PROCESS_GONE);
}

static void a_process_knows_itself(void **state)
{
    (void)state;
    struct ls_process self = ls_process_self();
    if (self.space == 0)
        ls_test_skip("there is no /proc");
    assert_int_equal(ls_process_state(&self), LS_PROCESS_THERE);
    self.started++; /* one that had this number before */
    assert_int_equal(ls_process_state(&self), LS_PROCESS_GONE);
    self.space++; /* of another machine */
    assert_int_equal(ls_process_state(&self), LS_PROCESS_UNKNOWN);
    self.space = 0;
    assert_int_equal(ls_process_state(&self), LS_PROCESS_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_process_is_known_until_it_is_gone),
                                       cmocka_unit_test(a_process_knows_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
