/* lockstep verify: the same training in several forms, compared byte for byte. Instruction sets,
 * which a process can pin once, are processes of their own, one after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cards.h"
#include "cli/commands.h"
#include "cli/dummy.h"
#include "cli/rate.h"
#include "cli/report.h"
#include "cli/size.h"
#include "monitor/monitor.h"
#include "monitor/progress.h"

enum { COUNTS_MAX = 64, WORKERS_MAX = 4096, RANKS_MAX = 64, SETS_MAX = 8, STOPS = 2 };
enum { NAME = 16, TRAINING = 512, HASH = 65 };

struct values {
    const char *solver, *workers, *ranks, *balance, *memory, *resume, *weights, *isa, *device;
    int64_t iterations;
    struct ls_cli_list set, gpu;
    struct ls_cli_dummy_values dummy;
};

/* What the lists say. */
struct lists {
    int workers[COUNTS_MAX], ranks[COUNTS_MAX], dynamic[2], stops;
    uint64_t memory[COUNTS_MAX];
    char isa[SETS_MAX][NAME]; /* "": the best */
    char device_text[COUNTS_MAX][512];
    const char *device[COUNTS_MAX]; /* of --gpu */
    size_t worker_count, rank_count, dynamic_count, memory_count, isa_count;
};

/* The result of a training, as one process sends it to another. */
struct row {
    char training[TRAINING], hash[HASH];
    double seconds;
    int64_t iterations;
    int same, library;
};

struct rows {
    struct row *row;
    size_t count;
    size_t first[SETS_MAX + 1]; /* by instruction set: its first row, and behind the last */
    int out;                    /* where to write them; negative: they are kept */
};

/* ---- Lists ----------------------------------------------------------------------------------- */

/* The next word of a list with commas; false: there is none, or it is too long. */
static bool next_word(const char **list, char *word, size_t size)
{
    size_t length = strcspn(*list, ",");
    bool good = length > 0 && length < size;
    snprintf(word, size, "%.*s", (int)(length < size ? length : size - 1), *list);
    *list += length + ((*list)[length] == ',' && (*list)[length + 1] != '\0');
    return good;
}

static bool parse_balance(const char *list, struct lists *lists)
{
    char word[NAME];
    for (lists->dynamic_count = 0; *list != '\0'; lists->dynamic_count++) {
        if (lists->dynamic_count == 2 || !next_word(&list, word, sizeof word))
            return false;
        bool dynamic = strcmp(word, "dynamic") == 0;
        if (!dynamic && strcmp(word, "static") != 0)
            return false;
        lists->dynamic[lists->dynamic_count] = dynamic;
    }
    return lists->dynamic_count > 0;
}

static bool parse_memory(const char *list, struct lists *lists)
{
    char word[2 * NAME];
    for (lists->memory_count = 0; *list != '\0'; lists->memory_count++) {
        if (lists->memory_count == COUNTS_MAX || !next_word(&list, word, sizeof word))
            return false;
        uint64_t *memory = &lists->memory[lists->memory_count];
        if (strcmp(word, "full") == 0)
            *memory = 0;
        else if (strcmp(word, "least") == 0)
            *memory = LOCKSTEP_MEMORY_LEAST;
        else if (!ls_cli_parse_size(word, memory))
            return false;
    }
    return lists->memory_count > 0;
}

/* "random" or "random:5". */
static bool parse_resume(const char *text, int *stops)
{
    double number = STOPS;
    if (strncmp(text, "random", 6) != 0)
        return false;
    if (text[6] == ':') {
        const char *end = ls_cli_parse_number(text + 7, &number);
        if (end == NULL || *end != '\0')
            return false;
    } else if (text[6] != '\0') {
        return false;
    }
    *stops = number >= 1 && number <= 1000 ? (int)number : 0;
    return *stops > 0 && *stops == number;
}

static bool parse_sets(const char *list, struct lists *lists)
{
    lists->isa_count = 1;
    if (list == NULL)
        return true;
    for (lists->isa_count = 0; *list != '\0'; lists->isa_count++)
        if (lists->isa_count == SETS_MAX ||
            !next_word(&list, lists->isa[lists->isa_count], sizeof *lists->isa))
            return false;
    return lists->isa_count > 0;
}

/* 0, or the exit code after a message. */
static int parse_lists(const struct values *values, struct lists *lists)
{
    if (!ls_cli_parse_counts(values->workers != NULL ? values->workers : "1,2,3", WORKERS_MAX,
                             lists->workers, COUNTS_MAX, &lists->worker_count))
        return ls_cli_usage_error("verify: --workers '%s' is not a list of at most %d numbers from "
                                  "1 to %d, such as 1,2,3",
                                  values->workers, COUNTS_MAX, WORKERS_MAX);
    if (!ls_cli_parse_counts(values->ranks != NULL ? values->ranks : "1", RANKS_MAX, lists->ranks,
                             COUNTS_MAX, &lists->rank_count))
        return ls_cli_usage_error("verify: --ranks '%s' is not a list of at most %d numbers from "
                                  "1 to %d, such as 1,2",
                                  values->ranks, COUNTS_MAX, RANKS_MAX);
    if (!parse_balance(values->balance, lists))
        return ls_cli_usage_error("verify: --balance '%s' is not static, dynamic or static,dynamic",
                                  values->balance);
    if (!parse_memory(values->memory, lists))
        return ls_cli_usage_error("verify: --memory '%s' is not a list of full, least and sizes, "
                                  "such as full,least or full,600MiB",
                                  values->memory);
    if (values->resume != NULL && !parse_resume(values->resume, &lists->stops))
        return ls_cli_usage_error("verify: --resume '%s' is not random or random:K, with K stops "
                                  "from 1 to 1000",
                                  values->resume);
    if (!parse_sets(values->isa, lists))
        return ls_cli_usage_error("verify: --isa '%s' is not a list of at most %d instruction "
                                  "sets, such as avx2,avx512",
                                  values->isa, SETS_MAX);
    return 0;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static bool write_row(int out, const struct row *row)
{
    const char *from = (const char *)row;
    size_t left = sizeof *row;
    while (left > 0) {
        ssize_t put = write(out, from, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        from += put;
        left -= (size_t)put;
    }
    return true;
}

static bool read_row(int in, struct row *row)
{
    char *to = (char *)row;
    size_t left = sizeof *row;
    while (left > 0) {
        ssize_t got = read(in, to, left);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        left -= (size_t)got;
    }
    row->training[TRAINING - 1] = row->hash[HASH - 1] = '\0';
    return true;
}

static bool keep_row(struct rows *rows, const struct row *row)
{
    struct row *more = realloc(rows->row, (rows->count + 1) * sizeof *more);
    if (more == NULL)
        return false;
    rows->row = more;
    rows->row[rows->count++] = *row;
    return true;
}

static void take_row(void *user, const struct lockstep_verified *training)
{
    struct rows *rows = user;
    struct row row = {.seconds = training->seconds,
                      .iterations = training->iterations,
                      .same = training->same,
                      .library = training->library};
    snprintf(row.training, sizeof row.training, "%s", training->training);
    snprintf(row.hash, sizeof row.hash, "%s", training->hash);
    /* A row that is lost is missed in the table; the status does not depend on it. */
    (void)(rows->out >= 0 ? write_row(rows->out, &row) : keep_row(rows, &row));
}

/* ---- One instruction set --------------------------------------------------------------------- */

/* What is told meanwhile: how far all trainings are, and a line for each that is over. */
struct screen {
    struct ls_monitor monitor;
    struct ls_progress progress;
};

static void show(void *user, const struct lockstep_event *event)
{
    struct screen *screen = user;
    if (event->kind == LOCKSTEP_EVENT_NOTICE && event->iteration_end > 0) {
        ls_progress_event(&screen->progress, event);
        return;
    }
    ls_progress_clear(&screen->progress);
    ls_monitor_event(&screen->monitor, event);
}

enum { CARDS = 512 };

/* Lists of --gpu as names of devices. */
static int name_devices(const struct values *values, struct lists *lists)
{
    if (values->gpu.count > 0 && values->device != NULL && strcmp(values->device, "cuda") != 0)
        return ls_cli_usage_error("verify: --gpu says that cards compute, and --device '%s' "
                                  "something else. hint: leave --device out",
                                  values->device);
    if (values->gpu.count > COUNTS_MAX)
        return ls_cli_usage_error("verify: at most %d lists of cards can be compared", COUNTS_MAX);
    for (size_t i = 0; i < values->gpu.count; i++) {
        if (snprintf(lists->device_text[i], CARDS, "cuda:%s", values->gpu.items[i]) >= CARDS)
            return ls_cli_usage_error("verify: --gpu: the list is too long");
        lists->device[i] = lists->device_text[i];
    }
    return 0;
}

static int verify(const struct values *values, const struct lists *lists, const char *isa,
                  struct rows *rows, struct lockstep_error *error)
{
    struct screen screen;
    struct lockstep_solver *solver;
    struct lockstep_verify_options options;
    ls_monitor_init(&screen.monitor, stdout, NULL, NULL);
    ls_progress_init(&screen.progress, stdout, NULL);
    screen.progress.unit = "updates";
    lockstep_verify_options_init(&options);
    if (values->workers != NULL || values->gpu.count == 0) {
        options.workers = lists->workers;
        options.worker_count = lists->worker_count;
    }
    if (values->ranks != NULL || values->gpu.count == 0) {
        options.ranks = lists->ranks;
        options.rank_count = lists->rank_count;
    }
    options.devices = lists->device;
    options.device_count = values->gpu.count;
    options.dynamic = lists->dynamic;
    options.dynamic_count = lists->dynamic_count;
    options.memory = lists->memory;
    options.memory_count = lists->memory_count;
    options.stops = lists->stops;
    options.iterations = values->iterations;
    options.isa = isa[0] != '\0' ? isa : NULL;
    options.device = values->device;
    options.weights = values->weights;
    options.callbacks = (struct lockstep_callbacks){&screen, show, NULL};
    options.trained = take_row;
    options.user = rows;
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = ls_cli_use_dummy_data(&values->dummy, false, solver, error);
    if (status == 0)
        status = lockstep_verify(solver, &options, error);
    lockstep_solver_free(solver);
    ls_progress_clear(&screen.progress);
    ls_monitor_clear(&screen.monitor);
    return status;
}

static int verify_and_report(const struct values *values, const struct lists *lists,
                             const char *isa, struct rows *rows)
{
    struct lockstep_error *error = lockstep_error_new();
    int status = verify(values, lists, isa, rows, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

/* The same in a process of its own, whose rows come through a pipe. */
static int verify_apart(const struct values *values, const struct lists *lists, const char *isa,
                        struct rows *rows)
{
    int ends[2], state = 0;
    struct row row;
    fflush(NULL);
    if (pipe(ends) != 0)
        return ls_cli_error(LOCKSTEP_RESOURCE, "verify: no pipe can be made: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0) {
        int reason = errno;
        close(ends[0]);
        close(ends[1]);
        return ls_cli_error(LOCKSTEP_RESOURCE, "verify: no process can be made: %s",
                            strerror(reason));
    }
    if (child == 0) {
        close(ends[0]);
        rows->out = ends[1];
        int status = verify_and_report(values, lists, isa, rows);
        fflush(NULL);
        _exit(status);
    }
    close(ends[1]);
    while (read_row(ends[0], &row) && keep_row(rows, &row))
        ;
    close(ends[0]);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(state))
        return WEXITSTATUS(state);
    fprintf(stderr, "lockstep: verify: the process for %s was killed by signal %d\n", isa,
            WIFSIGNALED(state) ? WTERMSIG(state) : 0);
    return LOCKSTEP_INTERNAL;
}

/* ---- The table ------------------------------------------------------------------------------- */

static void print_table(const struct lists *lists, const struct rows *rows)
{
    char time[LS_CLI_RATE_ROOM];
    printf("\n%9s  %-64s  %s\n", "time", "SHA-256 of the last snapshot's tensors", "training");
    for (size_t s = 0; s < lists->isa_count; s++)
        for (size_t i = rows->first[s]; i < rows->first[s + 1]; i++)
            printf("%9s  %-64s  %s%s%s%s\n", ls_cli_format_time(rows->row[i].seconds, time),
                   rows->row[i].hash, lists->isa[s], lists->isa[s][0] != '\0' ? ": " : "",
                   rows->row[i].training, rows->row[i].same ? "" : "   DIFFERS");
}

/* Whether instruction sets gave the same. Only where oneDNN computes a part may they not
 * (docs/numerics.md, section 11). */
static int compare_sets(const struct lists *lists, const struct rows *rows)
{
    int status = 0;
    for (size_t s = 1; s < lists->isa_count; s++) {
        if (rows->first[1] == 0 || rows->first[s] == rows->first[s + 1])
            continue; /* what a process has done is not known here */
        const struct row *a = &rows->row[0];
        const struct row *b = &rows->row[rows->first[s]];
        bool same = strcmp(a->hash, b->hash) == 0, may = a->library || b->library;
        if (!same && !may)
            status = LOCKSTEP_DIFFERENT;
        printf("%s and %s: %s\n", lists->isa[0], lists->isa[s],
               same  ? "the same bytes"
               : may ? "other bytes, as oneDNN's kernels may have; ranks refuse to mix them"
                     : "OTHER BYTES, although no step of the net is oneDNN's");
    }
    return status;
}

static int verify_sets(const struct values *values, const struct lists *lists, struct rows *rows)
{
    int first = 0;
    for (size_t s = 0; s < lists->isa_count; s++) {
        rows->first[s] = rows->count;
        int status = lists->isa_count == 1 ? verify_and_report(values, lists, lists->isa[s], rows)
                                           : verify_apart(values, lists, lists->isa[s], rows);
        rows->first[s + 1] = rows->count;
        first = first != 0 ? first : status;
        if (rows->count == 0)
            return status; /* what is wrong with all of them is said once */
    }
    print_table(lists, rows);
    if (first == 0)
        first = compare_sets(lists, rows);
    if (first == 0)
        printf("Verified: %zu trainings of %lld updates compute the same bytes%s.\n", rows->count,
               rows->count > 0 ? (long long)rows->row[0].iterations : 0,
               lists->isa_count > 1 ? " within each instruction set" : "");
    return first;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct lists lists = {.stops = 0};
    struct rows rows = {.out = -1};
    if (values->solver == NULL)
        return ls_cli_usage_error("verify: --solver FILE is missing");
    int status = parse_lists(values, &lists);
    if (status == 0)
        status = name_devices(values, &lists);
    if (status == 0)
        ls_cli_note_cards(values->gpu.count > 0 ? lists.device[0] : values->device);
    if (status == 0)
        status = verify_sets(values, &lists, &rows);
    free(rows.row);
    return status;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->iterations = -1;
    values->balance = "static";
    values->memory = "full";
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOLVER(struct values, solver, ""),
    LS_CLI_ROW(LS_CLI_TEXT, "workers", "LIST", struct values, workers, 0,
               "the numbers of workers to compare; default: 1,2,3"),
    LS_CLI_ROW(LS_CLI_TEXT, "ranks", "LIST", struct values, ranks, 0,
               "the numbers of ranks, each with so many workers; threads of this\n"
               "process stand for them; default: 1"),
    LS_CLI_CHOICE("balance", "LIST", struct values, balance, "static dynamic static,dynamic",
                  "static, dynamic or both, where there are several ranks;\n"
                  "default: static"),
    LS_CLI_ROW(LS_CLI_TEXT, "memory", "LIST", struct values, memory, 0,
               "limits of each rank: full, least, or sizes such as 600MiB;\n"
               "default: full"),
    LS_CLI_ROW(LS_CLI_TEXT, "resume", "random[:K]", struct values, resume, 0,
               "run each once more, stopped after K updates drawn from the seed\n"
               "(default: 2) and resumed in another of these forms"),
    LS_CLI_CHOICE("isa", "LIST", struct values, isa, "generic sse41 avx2 avx512 avx512_bf16 amx",
                  "all of that with each instruction set (generic, sse41, avx2,\n"
                  "avx512, avx512_bf16, amx); default: the best one"),
    LS_CLI_DEVICE_ALONE(struct values, device),
    LS_CLI_ROW(LS_CLI_LIST, "gpu", "LIST", struct values, gpu, 0,
               "train on NVIDIA's cards of these numbers, a rank for each (0 or 0,1, or\n"
               "0,0 for two on one card, or all); may be given several times, for the\n"
               "lists to compare (docs/gpu.md)"),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 1,
               "updates; default: as many as the solver says, at most 50"),
    LS_CLI_ROW(LS_CLI_TEXT, "weights", "FILES", struct values, weights, 0,
               "start from weights (safetensors, caffemodel)"),
    LS_CLI_SET(struct values, set),
    LS_CLI_DUMMY_OPTIONS(struct values, dummy),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_verify = {
    .name = "verify",
    .summary = "runs a training in several forms and compares every byte",
    .usage = "--solver FILE [--workers 1,2,3] [--ranks 1,2] [--memory full,least]\n"
             "                 [--resume random] [--isa avx2,avx512] [--iterations N]",
    .options = options,
    .example = "lockstep verify --solver lenet_solver.prototxt --workers 1,2,3 --iterations 50\n"
               "lockstep verify --solver lenet_solver.prototxt --workers 1,3 --ranks 1,2 \\\n"
               "                --balance static,dynamic --memory full,least --resume random:3",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
