/* Writing status.json. See transport/status_file.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/status_file.h"

#include <string.h>
#include <time.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"

static void status_file_put_string(struct ls_text *text, const char *key, const char *value)
{
    ls_text_format(text, "\"%s\": ", key);
    if (value == NULL || value[0] == '\0') {
        ls_text_add(text, "null, ");
        return;
    }
    ls_text_add_json(text, value);
    ls_text_add(text, ", ");
}

static const char *status_file_word_for(const struct ls_job_state *state)
{
    if (state->running)
        return "running";
    return state->code == 0 ? "finished" : state->code == LOCKSTEP_STOPPED ? "stopped" : "failed";
}

char *ls_status_file_beside(const char *prefix)
{
    static const char name[] = "status.json";
    const char *slash = strrchr(prefix, '/');
    size_t folder = slash != NULL ? (size_t)(slash - prefix) + 1 : 0;
    char *path = ls_alloc(folder + sizeof name, 1);
    if (path != NULL) {
        memcpy(path, prefix, folder);
        memcpy(path + folder, name, sizeof name);
    }
    return path;
}

int ls_status_file_write(const char *path, const struct ls_job_state *state, struct ls_error *error)
{
    char now[32];
    time_t seconds = time(NULL);
    struct tm parts;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts));
    struct ls_text text = {0};
    ls_text_add(&text, "{");
    status_file_put_string(&text, "status", status_file_word_for(state));
    if (state->running)
        ls_text_add(&text, "\"code\": null, ");
    else
        ls_text_format(&text, "\"code\": %d, ", state->code);
    ls_text_format(&text, "\"rank\": %d, ", state->rank);
    status_file_put_string(&text, "host", state->host);
    ls_text_format(&text, "\"iteration\": %lld, ", (long long)state->iteration);
    status_file_put_string(&text, "layer", state->layer);
    status_file_put_string(&text, "message", state->message);
    if (state->wrong > 0) {
        ls_text_format(&text, "\"wrong\": %lld, ", (long long)state->wrong);
        status_file_put_string(&text, "last_wrong", state->last_wrong);
    }
    status_file_put_string(&text, "warning", state->warning);
    ls_text_format(&text, "\"ranks\": %d, \"time\": \"%s\"}\n", state->ranks, now);
    int (*write)(const char *, const void *, size_t, struct ls_error *) =
        state->running ? ls_atomic_refresh : ls_atomic_replace;
    int status = text.failed ? ls_fail_memory(error, "status.json")
                             : write(path, text.data, text.length, error);
    ls_text_free(&text);
    return status;
}
