/* Writing status.json. See transport/status_file.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/status_file.h"

#include <time.h>

#include "base/file.h"
#include "base/text.h"

/* What is not ASCII stays as it is: names come from definitions and hosts, which are UTF-8. */
static void put_string(struct ls_text *text, const char *key, const char *value)
{
    ls_text_format(text, "\"%s\": ", key);
    if (value == NULL || value[0] == '\0') {
        ls_text_add(text, "null, ");
        return;
    }
    ls_text_add(text, "\"");
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\')
            ls_text_format(text, "\\%c", c);
        else if (c < 0x20)
            ls_text_format(text, "\\u%04x", c);
        else
            ls_text_add_bytes(text, value, 1);
    }
    ls_text_add(text, "\", ");
}

static const char *word_for(const struct ls_job_state *state)
{
    if (state->running)
        return "running";
    return state->code == 0 ? "finished" : state->code == LOCKSTEP_STOPPED ? "stopped" : "failed";
}

int ls_status_file_write(const char *path, const struct ls_job_state *state, struct ls_error *error)
{
    char now[32];
    time_t seconds = time(NULL);
    struct tm parts;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts));
    struct ls_text text = {0};
    ls_text_add(&text, "{");
    put_string(&text, "status", word_for(state));
    if (state->running)
        ls_text_add(&text, "\"code\": null, ");
    else
        ls_text_format(&text, "\"code\": %d, ", state->code);
    ls_text_format(&text, "\"rank\": %d, ", state->rank);
    put_string(&text, "host", state->host);
    ls_text_format(&text, "\"iteration\": %lld, ", (long long)state->iteration);
    put_string(&text, "layer", state->layer);
    put_string(&text, "message", state->message);
    ls_text_format(&text, "\"ranks\": %d, \"time\": \"%s\"}\n", state->ranks, now);
    struct ls_atomic_file *file = NULL;
    int status = text.failed ? ls_fail_memory(error, "status.json") : 0;
    if (status == 0)
        status = ls_atomic_open(path, &file, error);
    if (status == 0) {
        status = ls_atomic_write(file, text.data, text.length, error);
        if (status == 0)
            status = ls_atomic_commit(file, error);
        else
            ls_atomic_abandon(file);
    }
    ls_text_free(&text);
    return status;
}
