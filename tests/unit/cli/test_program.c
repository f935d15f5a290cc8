/* The program from its arguments to its output, its messages and its exit code, on a fake library.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "fake_library.h"
#include "support/support.h"

static char *out, *messages;

/* Runs the program with up to 20 arguments (NULL ends them), its two streams going to files; what
 * they got is in `out` and `messages`. */
static int run(const char *const *arguments)
{
    char *argv[24] = {(char *)(uintptr_t) "lockstep"};
    int count = 1;
    for (; arguments[count - 1] != NULL; count++)
        argv[count] = (char *)(uintptr_t)arguments[count - 1];
    const char *files[2] = {ls_test_path("stdout"), ls_test_path("stderr")};
    int saved[2];
    FILE *streams[2] = {stdout, stderr};
    for (int i = 0; i < 2; i++) {
        fflush(streams[i]);
        saved[i] = dup(i + 1);
        FILE *file = fopen(files[i], "w");
        assert_non_null(file);
        dup2(fileno(file), i + 1);
        fclose(file);
    }
    int status = ls_cli_main(count, argv);
    for (int i = 0; i < 2; i++) {
        fflush(streams[i]);
        dup2(saved[i], i + 1);
        close(saved[i]);
    }
    free(out);
    free(messages);
    size_t size;
    out = ls_test_read(files[0], &size);
    messages = ls_test_read(files[1], &size);
    assert_int_equal(fake.live_objects, 0);
    return status;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static void expect_usage(int status, const char *message)
{
    assert_int_equal(status, LOCKSTEP_USAGE);
    assert_string_equal(messages, message);
    assert_string_equal(out, "");
    assert_string_equal(fake.calls, "");
}

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
    expect_usage(RUN("device_query"), "lockstep: unknown command 'device_query'. hint: 'lockstep "
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
                 "lockstep: predict: give either pictures or --samples N\n");
    expect_usage(RUN("predict", "--model", "m", "--weights", "w", "--draw", "a.png"),
                 "lockstep: predict: --draw goes with --samples N and --format text\n");
    expect_usage(RUN("predict", "--format", "xml", "a.png"),
                 "lockstep: predict: --format xml is unknown. hint: text, json or csv\n");
    static const char *const lists[] = {"", "1,", "0", "1,x", "1 2", "5000", ",1"};
    for (size_t i = 1; i < sizeof lists / sizeof lists[0]; i++) {
        assert_int_equal(RUN("verify", "--solver", "s", "--workers", lists[i]), LOCKSTEP_USAGE);
        assert_non_null(strstr(messages, "is not a list of at most 64 numbers"));
    }
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
        for (const struct ls_cli_option *option = command->options; option->name != NULL;
             option++) {
            char name[64];
            snprintf(name, sizeof name, "  --%s", option->name);
            assert_non_null(strstr(out, name));
        }
        for (const char *line = out; *line != '\0'; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= 100);
    }
    assert_string_equal(fake.calls, "");
    assert_int_equal(RUN("help", "tran"), LOCKSTEP_USAGE);
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
                         "--audit", "0.2"),
                     LOCKSTEP_STOPPED);
    char expected[1000];
    snprintf(expected, sizeof expected,
             "Stopping with a snapshot; the same signal again stops at once.\n"
             "Snapshotting to p_iter_70.safetensors\n"
             "Optimization stopped early.\n"
             "To go on: lockstep train --solver s --resume p_iter_70.safetensors "
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
        fake.signals = 3; /* which kill nobody */
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
                 "3. hint: start it without mpirun or srun\n");
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
    assert_string_equal(messages, "lockstep: /nonexistent/log: cannot create the log: No such file "
                                  "or directory. hint: make the folder first\n");
    if (access("/dev/full", W_OK) == 0)
        assert_int_equal(RUN("train", "--solver", "s", "--log-json", "/dev/full"),
                         LOCKSTEP_RESOURCE);
}

/* ---- The other commands ---- */

static void test_test(void **state)
{
    (void)state;
    assert_int_equal(RUN("test", "--model", "m.prototxt", "--weights", "w", "--workers", "2",
                         "--level", "-1", "--stage", "a", "--stage", "b", "--iterations", "50"),
                     0);
    assert_string_equal(fake.calls, "model(m.prototxt|w|2|-1|50|a|b) ");
    assert_string_equal(out, "    Test net output #0: accuracy = 0.75\n"
                             "    Test net output #1: loss = 0.5 (* 2 = 1 loss)\n"
                             "Tested 10000 samples.\n");
    /* A loss that is not finite ends with its status; the figures are told all the same. */
    fake_reset();
    fake.test_status = LOCKSTEP_DIVERGED;
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w"), LOCKSTEP_DIVERGED);
    assert_non_null(strstr(out, "Test net output #1: loss = 0.5"));
    assert_non_null(strstr(out, "Tested 10000 samples."));
    assert_int_equal(strncmp(messages, "lockstep: net.prototxt:1:1: wrong", 33), 0);
    fake_reset();
    fake.test_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w"), LOCKSTEP_DATA);
    assert_string_equal(out, "");
}

static void test_verify(void **state)
{
    (void)state;
    static const struct lockstep_event events[] = {{.kind = LOCKSTEP_EVENT_NOTICE, .text = "2"}};
    fake.events = events;
    fake.event_count = 1;
    assert_int_equal(RUN("verify", "--solver", "s", "--workers", "1,2,8", "--iterations", "20"), 0);
    assert_string_equal(fake.calls, "load(s) verify(-|-|1w2w8w1rs|0|0|20) ");
    assert_non_null(strstr(out, "2\n\n  seconds  SHA-256 of the last snapshot's tensors"));
    assert_non_null(strstr(out, "     1.50  abc "));
    assert_non_null(strstr(out, "  2 workers\nVerified: 3 trainings of 20 updates compute the same "
                                "bytes.\n"));
    fake_reset();
    assert_int_equal(RUN("verify", "--solver", "s"), 0);
    assert_string_equal(fake.calls, "load(s) verify(-|-|1w2w3w1rs|0|0|-1) ");
    fake_reset();
    assert_int_equal(RUN("verify", "--solver", "s", "--ranks", "1,3", "--balance", "dynamic,static",
                         "--memory", "full,least,1KiB", "--resume", "random:4", "--isa", "avx2"),
                     0);
    assert_string_equal(fake.calls, "load(s) verify(avx2|-|1w2w3w1r3rds|0|18446744073709551615|1024"
                                    "|4|-1) ");
    fake_reset();
    assert_int_equal(RUN("verify", "--solver", "s", "--resume", "random"), 0);
    assert_string_equal(fake.calls, "load(s) verify(-|-|1w2w3w1rs|0|2|-1) ");
    static const char *const wrong[][2] = {
        {"--ranks", "0"},        {"--ranks", "1,"},         {"--balance", ""},
        {"--balance", "random"}, {"--memory", "none"},      {"--memory", "full,much"},
        {"--resume", "auto"},    {"--resume", "random:0"},  {"--resume", "random:1.5"},
        {"--resume", "random:"}, {"--resume", "randomly"},  {"--isa", ""},
        {"--isa", "avx2,,avx"},  {"--balance", "static,,"}, {"--memory", ","}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (RUN("verify", "--solver", "s", wrong[i][0], wrong[i][1]) != LOCKSTEP_USAGE ||
            strstr(messages, wrong[i][0]) == NULL)
            fail_msg("%s '%s': %s", wrong[i][0], wrong[i][1], messages);
}

static void test_replay(void **state)
{
    (void)state;
    assert_int_equal(RUN("replay", "--solver", "s", "--from", "f", "--to", "3"), 0);
    assert_string_equal(fake.calls, "load(s) create(0|-|-|f|-) ");
    assert_string_equal(out, "Iteration 0: weights 0000000000000000\n"
                             "Iteration 2: weights 000000000000000e\n"
                             "Iteration 3: weights 0000000000000015\n"
                             "Replayed: iterations 0 to 3; nothing was compared.\n");
    fake_reset();
    expect_usage(RUN("replay", "--solver", "s", "--to", "3"),
                 "lockstep: replay: --from FILE is missing\n");
    expect_usage(RUN("replay", "--solver", "s", "--from", "f", "--to", "3", "--audit", "2"),
                 "lockstep: --audit: '2' is no number from 0 to 1\n");
}

static void test_data_tools(void **state)
{
    (void)state;
    assert_int_equal(RUN("convert", "--backend", "CIFAR", "--source", "a", "--source", "b",
                         "--shuffle", "--seed", "7", "--split", "train:0.9", "out"),
                     0);
    assert_string_equal(fake.calls, "convert(CIFAR|-|-|0|0|0|1|7|train:0.9|a|b|out) ");
    assert_string_equal(out, "Wrote 60000 records to out\n");
    fake_reset();
    assert_int_equal(RUN("mean", "--backend", "IMAGES", "--source", "list", "--root-folder", "r/",
                         "--resize-height", "32", "--resize-width", "64", "--gray", "--", "-m"),
                     0);
    assert_string_equal(fake.calls, "mean(IMAGES|-|r/|32|64|1|0|0|-|list|-m) ");
    assert_string_equal(out, "Wrote the mean to -m\nmean_value channel [0]: 104.5\n"
                             "mean_value channel [1]: 117\n");
}

static void test_predict_text(void **state)
{
    (void)state;
    fake.picture_status = LOCKSTEP_DATA;
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "a.png", "bad.png", "c.png", "--top", "2"),
        LOCKSTEP_DATA);
    assert_string_equal(out, "a.png\n    0.7000  dog, \"big\"\n    0.2000  cat\n"
                             "c.png\n    0.7000  dog, \"big\"\n    0.2000  cat\n");
    assert_non_null(strstr(messages, "lockstep: net.prototxt:1:1: wrong"));
}

static void test_predict_json(void **state)
{
    (void)state;
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "--format", "json", "a\"b.png"), 0);
    assert_string_equal(
        out, "[{\"input\": \"a\\\"b.png\", \"predictions\": "
             "[{\"class\": 1, \"name\": \"dog, \\\"big\\\"\", \"value\": 0.699999988079071}, "
             "{\"class\": 0, \"name\": \"cat\", \"value\": 0.20000000298023224}, "
             "{\"class\": 2, \"name\": null, \"value\": 0.10000000149011612}]}]\n");
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--format=json", "--samples",
                         "2", "--top", "1", "--first", "2"),
                     0);
    assert_string_equal(
        out, "[{\"input\": \"sample 2\", \"label\": 0, \"predictions\": [{\"class\": 2, \"name\": "
             "null, \"value\": 0.8999999761581421}]},\n {\"input\": \"sample 3\", \"predictions\": "
             "[{\"class\": 0, \"name\": \"cat\", \"value\": 0.8999999761581421}]}]\n");
}

static void test_predict_csv(void **state)
{
    (void)state;
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--format", "csv", "a,b.png"),
                     0);
    assert_string_equal(out, "input,label,rank,class,name,value\n"
                             "\"a,b.png\",,1,1,\"dog, \"\"big\"\"\",0.699999988\n"
                             "\"a,b.png\",,2,0,cat,0.200000003\n"
                             "\"a,b.png\",,3,2,2,0.100000001\n");
}

static void test_predict_samples(void **state)
{
    (void)state;
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "--samples", "3", "--top", "1"), 0);
    assert_string_equal(out, "sample 0 (labelled cat)\n    0.9000  cat\n"
                             "sample 1 (labelled dog, \"big\")\n    0.9000  dog, \"big\"\n"
                             "sample 2 (labelled cat)\n    0.9000  2\n2 of 3 right\n");
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "--samples", "1", "--first", "4"),
        LOCKSTEP_USAGE);
    assert_string_equal(messages, "lockstep: predict: there is no sample 4; the net's test data "
                                  "have 4\n");
}

/* Four little pictures beside each other, cut captions, and the count. */
static void test_predict_draw(void **state)
{
    (void)state;
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--samples", "100", "--draw"),
                     0);
    assert_string_equal(out, "=    =  =    =\n"
                             "90% 90% 90% 90\n"
                             "rig rig no: \n"
                             "2 of 3 right\n");
}

static void test_output_fails(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        ls_test_skip("there is no /dev/full");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *argv[] = {(char *)(uintptr_t) "lockstep", (char *)(uintptr_t) "--help"};
        if (freopen("/dev/full", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        _exit(ls_cli_main(2, argv));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), LOCKSTEP_RESOURCE);
}

static int free_texts(void **state)
{
    (void)state;
    free(out);
    free(messages);
    return 0;
}

static void test_plan(void **state)
{
    (void)state;
    assert_int_equal(RUN("plan", "--solver", "s.prototxt", "--workers", "2"), 0);
    assert_non_null(strstr(fake.calls, "plan(-|2|0)"));
    assert_non_null(strstr(out, "jit:best"));
    assert_non_null(strstr(out, "sync point of conv1"));
    assert_non_null(strstr(out, "12.5 % more work"));
    const char *chain = strstr(out, "-- chain: 2 steps together, 32 channels at a time --\nnorm ");
    assert_non_null(chain);
    chain = strstr(chain, "\nsum ");
    assert_non_null(chain);
    assert_int_equal(strncmp(strchr(chain + 1, '\n'), "\n-- end of the chain --\nip ", 27), 0);
    assert_non_null(strstr(out, "8 steps in 2 segments, 1 chain, 1 reorder;"));
    assert_non_null(strstr(out, "  gathered\n"));
    assert_non_null(strstr(out, "warning: lrn backward of layer 'conv1' (train) has only a slow"));
    assert_non_null(strstr(out, "7.0 MiB"));
    assert_null(strstr(out, "Largest batch"));
    assert_int_equal(RUN("plan", "--model", "n.prototxt", "--memory", "1.5GiB"), 0);
    assert_non_null(strstr(fake.calls, "plan(n.prototxt|0|1610612736)"));
    assert_non_null(strstr(out, "training (micro-batches of 8): 208\n"));
    assert_non_null(strstr(out, "test (micro-batches of 1): any"));
    assert_int_equal(RUN("plan", "--model", "n.prototxt", "--json"), 0);
    assert_non_null(strstr(out, "\"implementation\": \"jit:best\""));
    assert_non_null(strstr(out, "\"chain\": 2, \"channels\": 32"));
    assert_int_equal(RUN("plan"), 2);
    assert_int_equal(RUN("plan", "--model", "n", "--solver", "s"), 2);
    assert_int_equal(RUN("plan", "--model", "n", "--set", "base_lr=1"), 2);
    assert_int_equal(RUN("plan", "--solver", "s", "--stage", "x"), 2);
    fake.create_status = LOCKSTEP_RESOURCE;
    assert_int_equal(RUN("plan", "--solver", "s"), LOCKSTEP_RESOURCE);
}

static void test_plan_ranks(void **state)
{
    (void)state;
    assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2,16", "--link", "1Gbps,100us",
                         "--workers", "2", "--iterations", "3"),
                     0);
    assert_non_null(strstr(fake.calls, "scaling(2|16|2|1.25e+08|0.0001|1e-06|0|3)"));
    assert_non_null(strstr(out, "links of 1 Gbit/s, 20 us, and 1 us a message"));
    assert_non_null(strstr(out, "80.0 %    40.000"));
    assert_non_null(strstr(out, "16 ranks: 8 of them have no micro-batch. micro_batch: 2"));
    assert_non_null(strstr(out, "that of 4 ranks, 25.000 ms"));
    assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "1", "--compute", "1.5s"), 0);
    assert_non_null(strstr(fake.calls, "scaling(1|0|1.25e+09|2e-05|1e-06|1.5|0)"));
    assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2,16", "--json"), 0);
    assert_non_null(strstr(out, "\"wait_sums\": 0.01"));
    assert_non_null(strstr(out, "\"ranks\": 16"));
    static const char *const wrong[][2] = {
        {"--ranks", "0"},    {"--ranks", "1,"},     {"--ranks", "65537"},
        {"--ranks", "two"},  {"--ranks", "1 2"},    {"--link", "10"},
        {"--link", "0Gbps"}, {"--link", "1Gbps,5"}, {"--link", "1Gbps,1us,1us,1us"},
        {"--compute", "3"},  {"--compute", "0s"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2", wrong[i][0], wrong[i][1]), 2);
    assert_int_equal(RUN("plan", "--model", "n", "--ranks", "2"), 2);
    assert_int_equal(RUN("plan", "--solver", "s", "--link", "1Gbps"), 2);
    fake.create_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2"), LOCKSTEP_DATA);
}

/* How links may be written. */
static void test_links(void **state)
{
    (void)state;
    static const struct {
        const char *text, *seen;
    } good[] = {{"10Gbps", "|1.25e+09|2e-05|1e-06|"},
                {"10 Gbit/s,5us", "|1.25e+09|5e-06|1e-06|"},
                {"100Mbit,1.5ms,800ns", "|1.25e+07|0.0015|8e-07|"},
                {"1.25GB/s,0s,0us", "|1.25e+09|0|0|"},
                {"8kbps", "|1000|2e-05|1e-06|"},
                {"64bit/s", "|8|2e-05|1e-06|"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2", "--link", good[i].text), 0);
        assert_non_null(strstr(fake.calls, good[i].seen));
    }
}

static void test_time(void **state)
{
    (void)state;
    assert_int_equal(RUN("time", "--solver", "s", "--workers", "2", "--iterations", "4"), 0);
    assert_non_null(strstr(fake.calls, "time(2|4|0)"));
    assert_non_null(strstr(out, "6400 samples/s"));
    assert_non_null(strstr(out, "no steps of its own"));
    assert_non_null(strstr(out, "60.0 %")); /* 0.3 GFLOP in 5 ms */
    assert_non_null(strstr(out, "reaches 50.0 % of the limit"));
    assert_null(strstr(out, "not quiet"));
    assert_int_equal(RUN("time", "--solver", "s", "--json"), 0);
    assert_non_null(strstr(out, "\"share_of_peak\": 0.5"));
    assert_non_null(strstr(out, "\"name\": \"conv1\""));
    assert_int_equal(RUN("time"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("time", "--solver", "s", "--iterations", "0"), LOCKSTEP_USAGE);
    fake.create_status = LOCKSTEP_DIVERGED;
    assert_int_equal(RUN("time", "--solver", "s"), LOCKSTEP_DIVERGED);
}

static void test_tune(void **state)
{
    (void)state;
    assert_int_equal(RUN("tune", "--solver", "s", "--workers", "1,2", "--batch", "64",
                         "--micro-batch", "4,8,16,32,100", "--seconds", "0.5"),
                     0);
    assert_non_null(strstr(fake.calls, "tune(0.5|"));
    assert_non_null(strstr(fake.calls, ",64,16|"));
    assert_null(strstr(fake.calls, ",64,100")); /* no larger than the batch */
    assert_non_null(strstr(out, "micro_batch 8 is enough: what is larger brings less"));
    assert_non_null(strstr(out, "cannot be: too large"));
    assert_null(strstr(out, "of best      +-     memory\n          32")); /* batch: not varied */
    assert_non_null(strstr(out, "Workers change nothing but the speed"));
    assert_int_equal(RUN("tune", "--solver", "s", "--workers", "1"), 0);
    assert_non_null(strstr(out, "Base: 1 worker, "));
    assert_int_equal(RUN("tune", "--solver", "s", "--workers", "2"), 0);
    assert_non_null(strstr(out, "Base: 2 workers, "));
    assert_int_equal(RUN("tune", "--solver", "s", "--json"), 0);
    assert_non_null(strstr(out, "\"reason\": \"too large\""));
    static const char *const bad[] = {"0", "x", "1,,2", ",", "1,", "4 5", "99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(RUN("tune", "--solver", "s", "--micro-batch", bad[i]), LOCKSTEP_USAGE);
        assert_int_equal(RUN("tune", "--solver", "s", "--workers", bad[i]), LOCKSTEP_USAGE);
    }
    static const char *const bad_seconds[] = {"-1", "0", "nan", "inf", "0x1", "1s", "86401", ""};
    for (size_t i = 0; i < sizeof bad_seconds / sizeof *bad_seconds; i++)
        assert_int_equal(RUN("tune", "--solver", "s", "--seconds", bad_seconds[i]), LOCKSTEP_USAGE);
    assert_int_equal(RUN("tune"), LOCKSTEP_USAGE);
    fake.create_status = LOCKSTEP_DEFINITION;
    assert_int_equal(RUN("tune", "--solver", "s"), LOCKSTEP_DEFINITION);
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bytes;
    } good[] = {{"600MiB", "|629145600)"}, {"600mib", "|629145600)"},
                {"600M", "|629145600)"},   {"512MB", "|512000000)"},
                {"1GiB", "|1073741824)"},  {"1.5 KiB", "|1536)"},
                {"1048576", "|1048576)"},  {"7B", "|7)"},
                {"2k", "|2048)"}};
    static const char *const bad[] = {"x",     "MiB",         "-1MiB", "0",     "0x10",
                                      "1e3",   "inf",         "nan",   "1MiBs", "1..2",
                                      "1,5MB", "99999999TiB", "0.1",   ".",     "1 1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        fake_reset();
        assert_int_equal(RUN("plan", "--solver", "s", "--memory", good[i].text), 0);
        assert_non_null(strstr(fake.calls, good[i].bytes));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(RUN("train", "--solver", "s", "--memory", bad[i]), LOCKSTEP_USAGE);
        assert_non_null(strstr(messages, "is not a size"));
    }
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_train),
        TEST(test_spelling_of_caffe),
        TEST(test_usage_errors),
        TEST(test_help),
        TEST(test_failures),
        TEST(test_stopped),
        TEST(test_snapshot_on_request),
        TEST(test_second_signal_kills),
        TEST(test_ranks),
        TEST(test_who_speaks),
        TEST(test_stopped_ranks),
        TEST(test_other_commands_refuse_ranks),
        TEST(test_log),
        TEST(test_test),
        TEST(test_verify),
        TEST(test_replay),
        TEST(test_data_tools),
        TEST(test_predict_text),
        TEST(test_predict_json),
        TEST(test_predict_csv),
        TEST(test_predict_samples),
        TEST(test_predict_draw),
        TEST(test_plan),
        TEST(test_plan_ranks),
        TEST(test_links),
        TEST(test_time),
        TEST(test_tune),
        TEST(test_sizes),
        TEST(test_output_fails),
    };
    return cmocka_run_group_tests(tests, NULL, free_texts);
}
