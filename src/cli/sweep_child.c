/* The processes of a sweep: each trains one run as `lockstep train` would, in a folder of its own.
 *
 *     FOLDER/definition      what is trained, as a hash: another one is refused
 *     FOLDER/log.json        its events
 *     FOLDER/snapshot_...    its snapshots
 *     FOLDER/again...        the same of a part up to a rung that an earlier sweep did not have
 *     FOLDER/output.txt      what it says
 *     FOLDER/errors.txt      why it failed
 *     FOLDER/failed.txt      that it failed by itself, which would come again
 *
 * A process gets SIGTERM when that of the sweep ends, in whichever way: it stops with a snapshot.
 * It is in a process group of its own, so that Ctrl-C reaches the sweep alone, which passes it on.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/output_file.h"
#include "cli/report.h"
#include "cli/sweep.h"
#include "monitor/clock.h"

enum { MESSAGE_MAX = 1000, NOT_STARTED = 127 };

static void path_in(const struct ls_sweep_run *run, const char *name, char path[LS_SWEEP_PATH])
{
    snprintf(path, LS_SWEEP_PATH, "%s/%s", run->path, name);
}

static int fail(const char *path, const char *what)
{
    return ls_cli_error(LOCKSTEP_RESOURCE, "%s: %s: %s", path, what, strerror(errno));
}

/* ---- The folder ------------------------------------------------------------------------------ */

FILE *ls_sweep_open_file(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return NULL;
    if (!S_ISREG(info.st_mode)) { /* a pipe may have no beginning, a device no end */
        errno = S_ISDIR(info.st_mode) ? EISDIR : ENXIO;
        return NULL;
    }
    return fopen(path, "re");
}

/* Reads the beginning of a file; its length, -1 where there is none. */
static ssize_t read_file(const char *path, char *text, size_t size)
{
    FILE *file = ls_sweep_open_file(path);
    if (file == NULL)
        return -1;
    const size_t length = fread(text, 1, size - 1, file);
    fclose(file);
    text[length] = '\0';
    return (ssize_t)length;
}

int ls_sweep_claim(const struct ls_sweep *sweep, struct ls_sweep_run *run)
{
    const struct ls_sweep_values *values = sweep->values;
    char path[LS_SWEEP_PATH], before[LS_SWEEP_PATH], now[LS_SWEEP_PATH];
    snprintf(now, sizeof now, "%s isa=%s device=%s weights=%s map=%s\n", run->hash,
             values->isa != NULL ? values->isa : "", values->device != NULL ? values->device : "",
             values->weights != NULL ? values->weights : "",
             values->map != NULL ? values->map : "");
    path_in(run, "definition", path);
    const int made = ls_cli_output_folder(run->path);
    if (made != 0)
        return made;
    if (read_file(path, before, sizeof before) < 0)
        return errno == ENOENT ? ls_cli_output_write(path, now, strlen(now))
                               : fail(path, "cannot be read");
    if (strcmp(before, now) == 0)
        return 0;
    return ls_cli_usage_error("sweep: %s has a run of another definition: the solver, its nets or "
                              "options have changed since. hint: --output DIR takes another "
                              "folder; or go back to the definition to go on",
                              run->path);
}

/* ---- Failures -------------------------------------------------------------------------------- */

void ls_sweep_fail(struct ls_sweep_run *run, int code, const char *message)
{
    run->state = LS_SWEEP_FAILED;
    run->code = code;
    free(run->message);
    run->message = strdup(message);
}

void ls_sweep_recall_failure(struct ls_sweep_run *run)
{
    char path[LS_SWEEP_PATH], text[MESSAGE_MAX];
    path_in(run, "failed.txt", path);
    const char *message = read_file(path, text, sizeof text) > 0 ? strchr(text, '\n') : NULL;
    if (message != NULL)
        ls_sweep_fail(run, atoi(text), message + 1);
}

/* What a process has said to stderr, without the name of the program: "a; b". Which snapshots there
 * are depends on where it was stopped before. */
static void read_message(const struct ls_sweep_run *run, char message[MESSAGE_MAX])
{
    char path[LS_SWEEP_PATH], text[MESSAGE_MAX];
    static const char own[] = "lockstep: ";
    size_t at = 0;
    path_in(run, "errors.txt", path);
    if (read_file(path, text, sizeof text) < 0)
        text[0] = '\0';
    for (char *line = text, *next; *line != '\0' && at + 3 < MESSAGE_MAX; line = next) {
        const size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        line[length] = '\0';
        const char *said = strncmp(line, own, sizeof own - 1) == 0 ? line + sizeof own - 1 : line;
        if (strncmp(said, "snapshots: ", 11) == 0)
            continue;
        at += (size_t)snprintf(message + at, MESSAGE_MAX - at, "%s%s", at > 0 ? "; " : "", said);
        if (at >= MESSAGE_MAX)
            at = MESSAGE_MAX - 1;
    }
    message[at] = '\0';
}

/* What would come again, because it follows from the definition alone, is kept. */
static int take_failure(struct ls_sweep_run *run, int code)
{
    char message[MESSAGE_MAX], path[LS_SWEEP_PATH], text[MESSAGE_MAX + 16];
    read_message(run, message);
    if (message[0] == '\0')
        snprintf(message, sizeof message, "ended with code %d", code);
    ls_sweep_fail(run, code, message);
    if (code != LOCKSTEP_DIVERGED && code != LOCKSTEP_DEFINITION)
        return 0;
    path_in(run, "failed.txt", path);
    const int length = snprintf(text, sizeof text, "%d\n%s", code, message);
    return ls_cli_output_write(path, text, (size_t)length);
}

/* ---- Processes ------------------------------------------------------------------------------- */

/* The words of a command line, which is freed with all of them. */
struct words {
    char **items;
    size_t count;
    bool failed;
};

static void add(struct words *words, const char *word)
{
    char **more = realloc(words->items, (words->count + 2) * sizeof *more);
    char *copy = strdup(word);
    words->failed = words->failed || more == NULL || copy == NULL;
    words->items = more != NULL ? more : words->items;
    if (more == NULL || copy == NULL) {
        free(copy);
        return;
    }
    more[words->count++] = copy;
    more[words->count] = NULL;
}

static void add_option(struct words *words, const char *option, const char *value)
{
    if (value == NULL)
        return;
    add(words, option);
    add(words, value);
}

static void add_number(struct words *words, const char *option, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    add_option(words, option, text);
}

static void free_words(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
}

/* The newest whole snapshot before an update. */
struct newest {
    int64_t before, iteration;
    char path[LS_SWEEP_PATH]; /* "": none */
};

static void look_at(void *user, const struct lockstep_listed_snapshot *snapshot)
{
    struct newest *newest = user;
    if (snapshot->problem != NULL || snapshot->iteration >= newest->before ||
        snapshot->iteration <= newest->iteration)
        return;
    newest->iteration = snapshot->iteration;
    snprintf(newest->path, sizeof newest->path, "%s", snapshot->path);
}

/* A run goes on from its newest snapshot; where it went past the target before, from one that lies
 * before that. One that has none begins, with the weights that all runs begin with. */
static void add_beginning(const struct ls_sweep *sweep, const struct ls_sweep_run *run,
                          struct words *words)
{
    struct newest newest = {.before = run->again ? run->target : INT64_MAX};
    char prefix[LS_SWEEP_PATH];
    path_in(run, "snapshot", prefix);
    if (run->again || sweep->values->weights != NULL)
        lockstep_list_snapshots(prefix, look_at, &newest, NULL);
    if (newest.path[0] != '\0' || (!run->again && sweep->values->weights == NULL)) {
        add_option(words, "--resume", run->again ? newest.path : "auto");
        return;
    }
    add_option(words, "--weights", sweep->values->weights);
    add_option(words, "--map", sweep->values->map);
}

static void compose(const struct ls_sweep *sweep, const struct ls_sweep_run *run,
                    struct words *words)
{
    const struct ls_sweep_values *values = sweep->values;
    char path[LS_SWEEP_PATH];
    add(words, "lockstep");
    add(words, "train");
    for (size_t i = 0; ls_cli_plugin(i) != NULL; i++)
        add_option(words, "--plugin", ls_cli_plugin(i));
    add_option(words, "--solver", values->solver);
    for (size_t i = 0; i < run->set_count; i++)
        add_option(words, "--set", run->set[i]);
    path_in(run, run->again ? "again" : "snapshot", path);
    add_option(words, "--snapshot-prefix", path);
    if (run->again)
        add(words, "--overwrite"); /* what was not trained to its end */
    add_beginning(sweep, run, words);
    ls_sweep_log_path(run, path);
    add_option(words, "--log-json", path);
    add_number(words, "--workers", run->workers);
    if (run->target != run->end)
        add_number(words, "--iterations", run->target);
    add_option(words, "--isa", values->isa);
    add_option(words, "--device", values->device);
}

/* In the new process: only what is allowed between fork and exec. */
static void become(char **words, pid_t parent, const int files[3])
{
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(NOT_STARTED);
    for (int i = 0; i < 3; i++)
        if (dup2(files[i], i) < 0)
            _exit(NOT_STARTED);
    execv("/proc/self/exe", words);
    _exit(NOT_STARTED);
}

/* stdin, stdout and stderr of a process; each < 0 where it cannot be opened. */
static int open_files(const struct ls_sweep_run *run, int files[3], struct lockstep_error *error)
{
    char path[LS_SWEEP_PATH];
    files[1] = files[2] = -1;
    files[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (files[0] < 0)
        return fail("/dev/null", "cannot be opened");
    path_in(run, "output.txt", path);
    int status = lockstep_file_open(path, LOCKSTEP_FILE_APPEND, false, &files[1], error);
    path_in(run, "errors.txt", path);
    if (status == 0)
        status = lockstep_file_open(path, LOCKSTEP_FILE_ANEW, false, &files[2], error);
    return status != 0 ? ls_cli_report(status, error) : 0;
}

/* What was trained again and not to its end is of no use. */
static void remove_log(const struct ls_sweep_run *run)
{
    char path[LS_SWEEP_PATH];
    ls_sweep_log_path(run, path);
    unlink(path);
}

int ls_sweep_start(struct ls_sweep *sweep, struct ls_sweep_run *run, int workers)
{
    struct words words = {.items = NULL};
    int files[3] = {-1, -1, -1}, status;
    run->workers = workers;
    run->target = ls_sweep_target(sweep, run);
    run->again = run->logged > run->target;
    if (run->again)
        remove_log(run);
    run->begun = ls_monitor_clock();
    compose(sweep, run, &words);
    struct lockstep_error *error = lockstep_error_new();
    status = words.failed ? ls_cli_no_memory() : open_files(run, files, error);
    lockstep_error_free(error);
    const pid_t parent = getpid();
    if (status != 0)
        run->process = -1;
    else if ((run->process = fork()) == 0)
        become(words.items, parent, files);
    else if (run->process < 0)
        status = fail(run->label, "no process can be started");
    for (int i = 0; i < 3; i++)
        if (files[i] >= 0)
            close(files[i]);
    free_words(&words);
    if (status != 0)
        return status;
    run->state = LS_SWEEP_RUNNING;
    sweep->running++;
    return 0;
}

/* A process has ended: what became of its run. */
static int take_result(struct ls_sweep_run *run, int result)
{
    char path[LS_SWEEP_PATH];
    int status = ls_sweep_log_read(run);
    ls_sweep_log_close(run);
    const int code = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
    if (status != 0)
        return status;
    if (code == LOCKSTEP_STOPPED || code < 0) {
        run->state = LS_SWEEP_INTERRUPTED;
        return 0;
    }
    run->state = LS_SWEEP_WAITING;
    if (code == NOT_STARTED)
        return ls_cli_error(LOCKSTEP_INTERNAL, "%s: the training could not be started", run->label);
    if (code != 0)
        return take_failure(run, code);
    ls_sweep_log_path(run, path);
    if (ls_sweep_end_at(run, run->target) == NULL)
        return ls_cli_error(LOCKSTEP_DATA,
                            "%s does not have the end of the training after %" PRId64
                            " updates. hint: remove the folder to train this run anew",
                            path, run->target);
    return 0;
}

int ls_sweep_look(struct ls_sweep *sweep, struct ls_sweep_run *run)
{
    int result;
    const pid_t ended = waitpid(run->process, &result, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return 0;
    sweep->running--;
    run->process = 0;
    if (ended < 0) {
        run->state = LS_SWEEP_INTERRUPTED;
        return 0;
    }
    return take_result(run, result);
}

void ls_sweep_signal(const struct ls_sweep *sweep, int number)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->runs[i].state == LS_SWEEP_RUNNING)
            kill(sweep->runs[i].process, number);
}
