/* The program from its arguments to its output, its messages and its exit code, on a fake library:
 * arguments, failures, training, jobs. The other commands are in test_commands.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- What the arguments mean ---- */

static void test_train(void **state)
{
    (void)state;
    assert_int_equal(RUN("train", "--solver", "s.prototxt"), 0);
    assert_string_equal(fake.calls, "load(s.prototxt) create(0|-|-|-|-) run(-1) ");
    fake_reset();
    assert_int_equal(RUN("train", "--solver=s.prototxt", "--workers", "4", "--iterations=100",
                         "--snapshot-prefix", "out/p", "--resume", "auto", "--set", "base_lr=0.02",
                         "--set=max_iter=5", "--isa", "avx2"),
                     0);
    assert_string_equal(fake.calls, "load(s.prototxt|base_lr=0.02|max_iter=5) "
                                    "create(4|avx2|out/p|auto|-) run(100) ");
    assert_string_equal(messages, "");
}

static void test_spelling_of_caffe(void **state)
{
    (void)state;
    assert_int_equal(RUN("train", "-solver", "s.prototxt", "-weights=a,b", "--snapshot_prefix=p"),
                     0);
    assert_string_equal(fake.calls, "load(s.prototxt) create(0|-|p|-|a,b) run(-1) ");
}

static void test_usage_errors(void **state)
{
    (void)state;
    expect_usage(RUN("train"), "lockstep: train: --solver FILE is missing\n");
    expect_usage(RUN("train", "--solvr", "x"),
                 "lockstep: train: unknown option '--solvr'. hint: did you mean '--solver'?\n");
    expect_usage(RUN("train", "--frobnicate"), "lockstep: train: unknown option '--frobnicate'. "
                                               "hint: 'lockstep help train' lists the options\n");
    expect_usage(RUN("train", "-snapshot", "x"),
                 "lockstep: train: unknown option '-snapshot'. hint: to continue from a snapshot, "
                 "say --resume FILE\n");
    expect_usage(RUN("train", "--solver"),
                 "lockstep: train: --solver needs a value: --solver FILE\n");
    expect_usage(RUN("train", "--solver", "--workers"),
                 "lockstep: train: --solver needs a value: --solver FILE\n");
    expect_usage(RUN("train", "--solver="), "lockstep: train: --solver has an empty value\n");
    expect_usage(RUN("train", "--solver", "a", "--solver", "b"),
                 "lockstep: train: --solver is given twice\n");
    expect_usage(RUN("train", "--workers", "0"),
                 "lockstep: --workers: 0 is too small: must be at least 1\n");
    expect_usage(RUN("train", "--workers", "two"),
                 "lockstep: --workers: 'two' is not a whole number\n");
    expect_usage(RUN("train", "--workers", "3000000000"),
                 "lockstep: --workers: 3000000000 is too large\n");
    expect_usage(RUN("train", "--workers", "99999999999999999999"),
                 "lockstep: --workers: '99999999999999999999' is not a whole number\n");
    expect_usage(RUN("train", "lenet.prototxt"),
                 "lockstep: train: 'lenet.prototxt' is one argument too many, or an option's name "
                 "is missing before it. hint: lockstep train "
                 "--solver FILE [OPTIONS]\n");
    expect_usage(RUN("trian"), "lockstep: unknown command 'trian'. hint: did you mean 'train'?\n");
    expect_usage(RUN("summarize"), "lockstep: unknown command 'summarize'. hint: 'lockstep "
                                   "help' lists the commands\n");
    expect_usage(run((const char *const[]){NULL}),
                 "lockstep: a command is missing. hint: 'lockstep help' lists the commands\n");
    expect_usage(RUN("test", "--model", "m"), "lockstep: test: --weights FILE is missing\n");
    expect_usage(RUN("convert", "--backend", "IDX", "--gray=maybe", "x"),
                 "lockstep: --gray: 'maybe' is neither true nor false\n");
    expect_usage(RUN("convert", "--backend", "IDX", "--source", "x"),
                 "lockstep: convert: too few arguments; OUTPUT, the database's folder, must be "
                 "given. hint: lockstep "
                 "convert --backend KIND --source PATH [OPTIONS] OUTPUT\n");
    expect_usage(RUN("predict", "--model", "m", "--weights", "w"),
                 "lockstep: predict: give either inputs (pictures, folders, .npy files, --list "
                 "FILE) or --samples N, the first N of the net's test data\n");
    expect_usage(RUN("predict", "--model", "m", "--weights", "w", "--draw", "a.png"),
                 "lockstep: predict: --draw goes with --samples N and --format text, and not with "
                 "--output-file\n");
    expect_usage(RUN("predict", "--format", "xml", "a.png"),
                 "lockstep: predict: --format xml is unknown. hint: text, json, jsonl or csv\n");
    expect_usage(RUN("generate", "--model", "m"),
                 "lockstep: generate: --weights FILE is missing\n");
    expect_usage(
        RUN("generate", "--model", "m", "--weights", "w", "--prompt", "a", "--prompt-file", "-"),
        "lockstep: generate: give --prompt or --prompt-file, not both\n");
    expect_usage(
        RUN("generate", "--model", "m", "--weights", "w", "--greedy", "--temperature", "1"),
        "lockstep: generate: give --greedy or --temperature, not both\n");
    expect_usage(RUN("generate", "--model", "m", "--weights", "w", "--top-p", "1e"),
                 "lockstep: generate: --top-p '1e' is no number above 0 and at most 1\n");
    expect_usage(
        RUN("generate", "--model", "m", "--weights", "w", "--samples", "2", "--length", "1048577"),
        "lockstep: generate: several texts have at most 1048576 tokens each; one text can "
        "be longer\n");
    static const char *const lists[] = {"", "1,", "0", "1,x", "1 2", "5000", ",1"};
    for (size_t i = 1; i < sizeof lists / sizeof lists[0]; i++) {
        assert_int_equal(RUN("verify", "--solver", "s", "--workers", lists[i]), LOCKSTEP_USAGE);
        assert_non_null(strstr(messages, "is not a list of at most 64 numbers"));
    }
}

/* Options of every command: before its name and behind it, and their mistakes. */
static void test_common_options(void **state)
{
    (void)state;
    static const char *const variables[] = {"NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR",
                                            "COLORTERM"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    static const char plain[] = "lockstep: unknown command 'trian'. hint: did you mean 'train'?\n";
    static const char coloured[] = "\033[1;31mlockstep:\033[0m unknown command 'trian'. "
                                   "\033[1;36mhint:\033[0m did you mean 'train'?\n";
    expect_usage(RUN("--color", "always", "trian"), coloured);
    expect_usage(RUN("trian", "-color=always"), coloured);
    expect_usage(RUN("--color", "always", "trian", "--color=never"), plain);
    expect_usage(RUN("trian", "--", "--color=always"), plain);
    expect_usage(RUN("trian"), plain); /* nothing is left of the runs before */
    setenv("CLICOLOR_FORCE", "1", 1);
    expect_usage(RUN("trian"), coloured);
    expect_usage(RUN("--color", "auto", "trian"), coloured);
    expect_usage(RUN("--color", "never", "trian"), plain);
    setenv("NO_COLOR", "1", 1);
    expect_usage(RUN("trian"), plain);
    expect_usage(RUN("--color", "always", "trian"), coloured);
    setenv("NO_COLOR", "", 1); /* as if it were not set */
    expect_usage(RUN("trian"), coloured);
    setenv("CLICOLOR_FORCE", "0", 1);
    expect_usage(RUN("trian"), plain);
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    expect_usage(RUN("--color", "green", "train"),
                 "lockstep: --color: 'green' is unknown. hint: auto, always or never\n");
    expect_usage(RUN("train", "--color"), "lockstep: --color needs a value: --color WHEN\n");
    expect_usage(RUN("--quiet"),
                 "lockstep: a command is missing. hint: 'lockstep help' lists the commands\n");
    expect_usage(RUN("train", "--quite"),
                 "lockstep: train: unknown option '--quite'. hint: did you mean '--quiet'?\n");
    expect_usage(RUN("train", "--quiet=maybe"),
                 "lockstep: --quiet: 'maybe' is neither true nor false\n");
    static const struct lockstep_event events[] = {
        {.kind = LOCKSTEP_EVENT_START, .text = "go"},
        {.kind = LOCKSTEP_EVENT_WARNING, .text = "slow"}};
    fake.events = events;
    fake.event_count = 2;
    assert_int_equal(RUN("train", "--solver", "s"), 0);
    assert_string_equal(out, "go\nwarning: slow\n");
    static const char *const quiet[] = {"--quiet", "-q", "-quiet", "--quiet=true"};
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
        assert_int_equal(RUN(quiet[i], "train", "--solver", "s"), 0);
        assert_string_equal(out, "warning: slow\n");
        assert_int_equal(RUN("train", "--solver", "s", quiet[i]), 0);
        assert_string_equal(out, "warning: slow\n");
    }
    assert_int_equal(RUN("--help"), 0);
    assert_non_null(strstr(out, "\noptions of every command:\n  --quiet "));
    assert_int_equal(RUN("help", "train"), 0);
    assert_non_null(strstr(out, "\noptions of every command:\n  --quiet "));
}

static void test_help(void **state)
{
    (void)state;
    assert_int_equal(RUN("--help"), 0);
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++) {
        const struct ls_cli_command *command = ls_cli_commands[i];
        assert_non_null(strstr(out, command->summary));
    }
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++) {
        const struct ls_cli_command *command = ls_cli_commands[i];
        assert_int_equal(RUN(command->name, "--help"), 0);
        char *by_option = out;
        out = NULL;
        assert_int_equal(RUN("help", command->name), 0);
        assert_string_equal(out, by_option);
        free(by_option);
        char example[128];
        snprintf(example, sizeof example, "\nexample:\n  %.*s\n",
                 (int)strcspn(command->example, "\n"), command->example);
        assert_non_null(strstr(out, example));
        size_t options = 0;
        while (command->options[options].name != NULL)
            options++;
        assert_true(options <= LS_CLI_OPTIONS_MAX);
        for (const struct ls_cli_option *option = command->options; option->name != NULL;
             option++) {
            char name[64];
            snprintf(name, sizeof name, "  --%s", option->name);
            assert_non_null(strstr(out, name));
        }
        for (const char *line = out; *line != '\0'; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= 100);
    }
    assert_int_equal(RUN("help", "device_query"), 0);
    assert_non_null(strstr(out, "usage: lockstep device_query [--gpu LIST] [--json]\n"));
    assert_string_equal(fake.calls, "");
    assert_int_equal(RUN("help", "tran"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("help", "sources"), 0);
    assert_non_null(strstr(out, "\n  IDX  images\n"));
    assert_int_equal(RUN("help", "IDX"), 0);
    assert_string_equal(out, "IDX: fields\n");
    assert_int_equal(RUN("--version"), 0);
    assert_string_equal(out, "lockstep 1.2.3\nbuilt on nothing\n");
}

/* ---- What becomes of failures ---- */

static void test_failures(void **state)
{
    (void)state;
    fake.load_status = LOCKSTEP_DEFINITION;
    assert_int_equal(RUN("train", "--solver", "s"), LOCKSTEP_DEFINITION);
    assert_string_equal(messages, "lockstep: net.prototxt:1:1: wrong. hint: right\n"
                                  "lockstep: and more\n");
    assert_string_equal(fake.calls, "load(s) ");
    fake_reset();
    fake.create_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("train", "--solver", "s"), LOCKSTEP_DATA);
    fake_reset();
    fake.run_status = LOCKSTEP_DIVERGED;
    assert_int_equal(RUN("train", "--solver", "s"), LOCKSTEP_DIVERGED);
    fake_reset();
    fake.verify_status = LOCKSTEP_DIFFERENT;
    assert_int_equal(RUN("verify", "--solver", "s"), LOCKSTEP_DIFFERENT);
    assert_non_null(strstr(out, "2 workers   DIFFERS\n"));
    assert_null(strstr(out, "Verified"));
    fake_reset();
    fake.test_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w"), LOCKSTEP_DATA);
    assert_string_equal(out, "");
    fake_reset();
    fake.message = "";
    fake.convert_status = LOCKSTEP_RESOURCE;
    assert_int_equal(RUN("mean", "--backend", "SYNTHETIC", "m"), LOCKSTEP_RESOURCE);
    assert_string_equal(messages, "lockstep: failed without saying why\n");
}

/* ---- Training ---- */

static void test_stopped(void **state)
{
    (void)state;
    static const struct lockstep_event events[] = {
        {.kind = LOCKSTEP_EVENT_SNAPSHOT, .iteration = 70, .text = "p_iter_70.safetensors"}};
    fake.events = events;
    fake.event_count = 1;
    fake.signal = SIGTERM;
    fake.polls = 2;
    fake.run_status = LOCKSTEP_STOPPED;
    assert_int_equal(RUN("train", "--solver", "s", "--set", "type: \"Adam's\"", "--set", "gamma=1",
                         "--snapshot-prefix", "out/p", "--workers", "3", "--iterations", "90",
                         "--weights", "w", "--log-json", ls_test_path("a log"), "--isa", "avx2",
                         "--audit", "0.2", "--plugin", "a.so", "-plugin=b c.so"),
                     LOCKSTEP_STOPPED);
    char expected[1000];
    snprintf(expected, sizeof expected,
             "Stopping with a snapshot; the same signal again stops at once.\n"
             "Snapshotting to p_iter_70.safetensors\n"
             "Optimization stopped early.\n"
             "To go on: lockstep train --plugin a.so --plugin 'b c.so' --solver s --resume "
             "p_iter_70.safetensors "
             "--snapshot-prefix out/p --set 'type: \"Adam'\\''s\"' --set gamma=1 --workers 3 "
             "--audit 0.2 --iterations 90 --log-json '%s' --isa avx2\n",
             ls_test_path("a log"));
    assert_int_equal(fake.polled[0], LOCKSTEP_SNAPSHOT_AND_STOP);
    assert_int_equal(fake.polled[1], LOCKSTEP_SNAPSHOT_AND_STOP);
    assert_string_equal(out, expected);
    assert_string_equal(messages, "");
}

static void test_snapshot_on_request(void **state)
{
    (void)state;
    fake.signal = SIGHUP;
    fake.polls = 2;
    assert_int_equal(RUN("train", "--solver", "s"), 0);
    assert_int_equal(fake.polled[0], LOCKSTEP_SNAPSHOT_AND_GO_ON);
    assert_int_equal(fake.polled[1], LOCKSTEP_GO_ON);
}

/* Runs a training in a child that signals itself; returns how the child ended. */
static int run_child(int first, int second, bool ignored)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGINT, ignored ? SIG_IGN : SIG_DFL);
        fake.signal = first;
        fake.polls = 1;
        int status = RUN("train", "--solver", "s");
        if (status == 0 && second != 0)
            raise(second); /* the handlers stay */
        _exit(fake.polled[0] == LOCKSTEP_GO_ON ? 10 : 20);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_second_signal_kills(void **state)
{
    (void)state;
    int status = run_child(SIGINT, SIGINT, false);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGINT);
    status = run_child(SIGINT, SIGTERM, false);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    status = run_child(SIGINT, 0, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 20);
    status = run_child(SIGINT, 0, true); /* in the background of a script */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 20);
}

/* ---- Several ranks ---- */

static void test_ranks(void **state)
{
    (void)state;
    fake.ranks = 4;
    assert_int_equal(RUN("train", "--solver", "s"), 0);
    assert_string_equal(fake.calls, "job(300|0|-) load(s) create(0|-|-|-|-) run(-1) close(0) ");
    fake_reset();
    fake.ranks = 4;
    const char *log = ls_test_path("ranks.jsonl");
    char expected[512];
    snprintf(expected, sizeof expected,
             "job(6|1|%.*sstatus.json) load(s) create(0|-|-|-|-) run(-1) close(0) ",
             (int)(strrchr(log, '/') + 1 - log), log);
    assert_int_equal(
        RUN("train", "--solver", "s", "--timeout", "6", "--balance", "dynamic", "--log-json", log),
        0);
    assert_string_equal(fake.calls, expected);
    fake_reset();
    expect_usage(RUN("train", "--solver", "s", "--balance", "fast"),
                 "lockstep: train: --balance 'fast' is neither 'static' nor 'dynamic'\n");
    expect_usage(RUN("train", "--solver", "s", "--timeout", "-1"),
                 "lockstep: --timeout: -1 is too small: must be at least 0\n");
}

/* What all ranks have found, rank 0 says; what one has lost, the job. */
static void test_who_speaks(void **state)
{
    (void)state;
    fake.ranks = 2;
    fake.run_status = LOCKSTEP_DIVERGED;
    assert_int_equal(RUN("train", "--solver", "s"), LOCKSTEP_DIVERGED);
    assert_non_null(strstr(messages, "wrong"));
    assert_non_null(strstr(fake.calls, "close(6) "));
    fake_reset();
    fake.ranks = 2;
    fake.rank = 1;
    fake.run_status = LOCKSTEP_DIVERGED;
    assert_int_equal(RUN("train", "--solver", "s", "--log-json", "/there/is/no/such/folder/l"),
                     LOCKSTEP_DIVERGED);
    assert_string_equal(messages, "");
    assert_string_equal(out, "");
    fake_reset();
    fake.ranks = 2;
    fake.run_status = LOCKSTEP_LOST;
    fake.failure = "rank 1 (b) died\nrank 1 (b): and more";
    assert_int_equal(RUN("train", "--solver", "s"), LOCKSTEP_LOST);
    assert_string_equal(messages, "lockstep: rank 1 (b) died\nlockstep: rank 1 (b): and more\n");
    fake_reset();
    fake.ranks = 2;
    fake.agree_status = LOCKSTEP_DEFINITION; /* another rank cannot load its solver */
    assert_int_equal(RUN("train", "--solver", "s"), LOCKSTEP_DEFINITION);
    assert_string_equal(fake.calls, "job(300|0|-) close(3) ");
    fake_reset();
    fake.ranks = 2;
    fake.job_status = LOCKSTEP_RESOURCE;
    assert_int_equal(RUN("train", "--solver", "s"), LOCKSTEP_RESOURCE);
    assert_non_null(strstr(messages, "wrong"));
    assert_string_equal(fake.calls, "");
}

static void test_stopped_ranks(void **state)
{
    (void)state;
    const int signals[] = {SIGTERM, SIGINT, SIGUSR1};
    const struct lockstep_event event = {.kind = LOCKSTEP_EVENT_SNAPSHOT,
                                         .text = "p_iter_7.safetensors"};
    unsetenv("SLURM_STEP_ID"); /* of a job that the tests run in */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        fake_reset();
        fake.ranks = 4;
        fake.run_status = LOCKSTEP_STOPPED;
        fake.signal = signals[i];
        fake.signals = 3; /* which kill no process */
        fake.polls = 1;
        fake.events = &event;
        fake.event_count = 1;
        assert_int_equal(RUN("train", "--solver", "s", "--timeout", "60"), LOCKSTEP_STOPPED);
        assert_int_equal(fake.polled[0], LOCKSTEP_SNAPSHOT_AND_STOP);
        assert_int_equal(fake.looks, 3);
        assert_string_equal(messages, "");
        assert_string_equal(out, "Stopping with a snapshot.\n"
                                 "Snapshotting to p_iter_7.safetensors\n"
                                 "Optimization stopped early.\n"
                                 "To go on: mpirun -np 4 lockstep train --solver s --resume "
                                 "p_iter_7.safetensors --timeout 60\n");
    }
    assert_string_equal(fake.calls, "job(60|0|-) load(s) create(0|-|-|-|-) run(-1) close(75) ");
}

static void test_other_commands_refuse_ranks(void **state)
{
    (void)state;
    fake.ranks = 3;
    expect_usage(RUN("verify", "--solver", "s"),
                 "lockstep: verify: only train runs on several ranks, and the launcher has started "
                 "3. hint: start it without mpirun or srun, or set LOCKSTEP_MPI=none\n");
    fake.rank = 1;
    expect_usage(RUN("plan", "--solver", "s"), ""); /* rank 0 says it */
    assert_int_equal(RUN("help", "plan"), 0);
}

static void test_log(void **state)
{
    (void)state;
    static const struct lockstep_event events[] = {{.kind = LOCKSTEP_EVENT_START, .text = "go"}};
    const char *log = ls_test_path("log.json");
    fake.events = events;
    fake.event_count = 1;
    ls_test_write_text(log, "old\n");
    assert_int_equal(RUN("train", "--solver", "s", "--log-json", log), 0);
    assert_int_equal(RUN("train", "--solver", "s", "--log-json", log, "--resume", "auto"), 0);
    size_t size, lines = 0;
    char *text = ls_test_read(log, &size);
    assert_memory_equal(text, "{\"event\": \"start\"", 17);
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    assert_int_equal(lines, 2);
    free(text);
    assert_int_equal(RUN("train", "--solver", "s", "--log-json", "/nonexistent/log"),
                     LOCKSTEP_RESOURCE);
    assert_string_equal(messages, "lockstep: /nonexistent/log: cannot write: No such file or "
                                  "directory\n");
    if (access("/dev/full", W_OK) == 0)
        assert_int_equal(RUN("train", "--solver", "s", "--log-json", "/dev/full"),
                         LOCKSTEP_RESOURCE);
}

/* Event files that cannot be written any more do not end a training, but its code says so. */
static void test_tensorboard(void **state)
{
    (void)state;
    static const struct lockstep_event events[] = {{.kind = LOCKSTEP_EVENT_START, .text = "go"},
                                                   {.kind = LOCKSTEP_EVENT_START, .text = "on"},
                                                   {.kind = LOCKSTEP_EVENT_START, .text = "so"}};
    assert_int_equal(RUN("train", "--solver", "s", "--tensorboard", "runs/a"), 0);
    assert_non_null(strstr(fake.calls, "tensorboard(runs/a) load(s)"));
    fake_reset();
    assert_int_equal(RUN("train", "--solver", "s", "--tensorboard", "a", "--metrics", "no"),
                     LOCKSTEP_RESOURCE);
    assert_string_equal(fake.calls, "tensorboard(a) metrics(no) ");
    assert_int_equal(fake.live_objects, 0);
    fake_reset();
    assert_int_equal(RUN("train", "--solver", "s", "--tensorboard", "no"), LOCKSTEP_RESOURCE);
    assert_null(strstr(fake.calls, "load"));
    fake_reset();
    fake.ranks = 2;
    fake.rank = 1;
    assert_int_equal(RUN("train", "--solver", "s", "--tensorboard", "runs/a"), 0);
    assert_null(strstr(fake.calls, "tensorboard"));
    fake_reset();
    fake.events = events;
    fake.event_count = 3;
    fake.board_room = 1;
    assert_int_equal(RUN("train", "--solver", "s", "--tensorboard", "a"), LOCKSTEP_RESOURCE);
    assert_non_null(strstr(out, "on\nwarning: "));
    assert_non_null(strstr(out, "so\n"));
    assert_null(strstr(strstr(out, "warning") + 1, "warning"));
    assert_int_equal(fake.live_objects, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_train),
        TEST(test_spelling_of_caffe),
        TEST(test_usage_errors),
        TEST(test_common_options),
        TEST(test_help),
        TEST(test_failures),
        TEST(test_stopped),
        TEST(test_tensorboard),
        TEST(test_snapshot_on_request),
        TEST(test_second_signal_kills),
        TEST(test_ranks),
        TEST(test_who_speaks),
        TEST(test_stopped_ranks),
        TEST(test_other_commands_refuse_ranks),
        TEST(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, free_texts);
}
