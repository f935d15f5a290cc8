/* Texts that are read. See text/token_input.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/token_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { READ_AT_ONCE = 1 << 20 };

int ls_text_input_open(const char *path, struct ls_text_input *input, struct ls_error *error)
{
    const bool standard = strcmp(path, "-") == 0;
    *input =
        (struct ls_text_input){.path = path, .name = standard ? "standard input" : path, .fd = -1};
    if (ls_is_directory(path) && !standard)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "is a directory, not a file");
    input->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    return input->fd >= 0 ? 0 : ls_fail_errno(error, LOCKSTEP_DATA, path, "cannot open");
}

/* Makes room behind what is there, at the cost of what was handed out. */
static bool make_room(struct ls_text_input *input)
{
    if (input->begin > 0 && input->begin >= input->capacity / 2) {
        memmove(input->buffer, input->buffer + input->begin, input->end - input->begin);
        input->end -= input->begin;
        input->scanned -= input->begin;
        input->begin = 0;
    }
    if (input->capacity - input->end >= READ_AT_ONCE)
        return true;
    const size_t capacity = 2 * input->capacity + READ_AT_ONCE;
    char *buffer = ls_resize(input->buffer, capacity, 1);
    if (buffer == NULL)
        return false;
    input->buffer = buffer;
    input->capacity = capacity;
    return true;
}

static int read_more(struct ls_text_input *input, struct ls_error *error)
{
    ssize_t n;
    if (!make_room(input))
        return ls_fail_memory(error, input->name);
    do
        n = read(input->fd, input->buffer + input->end, READ_AT_ONCE);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return ls_fail_errno(error, LOCKSTEP_DATA, input->name, "cannot read");
    input->finished = n == 0;
    input->end += (size_t)n;
    input->taken += (uint64_t)n;
    return 0;
}

/* Hands out bytes up to `end`, and goes on `skip` bytes behind it. */
static void hand_out(struct ls_text_input *input, size_t end, size_t skip, const char **text,
                     size_t *length)
{
    *text = input->buffer + input->begin;
    *length = end - input->begin;
    input->begin = input->scanned = end + skip;
}

int ls_text_input_line(struct ls_text_input *input, const char **text, size_t *length,
                       struct ls_error *error)
{
    *text = NULL;
    *length = 0;
    for (;;) {
        const char *found = input->scanned < input->end ? memchr(input->buffer + input->scanned,
                                                                 '\n', input->end - input->scanned)
                                                        : NULL;
        if (found != NULL) {
            hand_out(input, (size_t)(found - input->buffer), 1, text, length);
            break;
        }
        input->scanned = input->end;
        if (input->finished) {
            if (input->begin == input->end)
                return 0;
            hand_out(input, input->end, 0, text, length);
            break;
        }
        LS_TRY(read_more(input, error));
    }
    input->line++;
    if (*length > 0 && (*text)[*length - 1] == '\r')
        (*length)--;
    return 0;
}

int ls_text_input_all(struct ls_text_input *input, const char **text, size_t *length,
                      struct ls_error *error)
{
    *text = NULL;
    *length = 0;
    if (input->finished)
        return 0;
    while (!input->finished)
        LS_TRY(read_more(input, error));
    hand_out(input, input->end, 0, text, length);
    return 0;
}

void ls_text_input_close(struct ls_text_input *input)
{
    if (input->fd > STDIN_FILENO)
        close(input->fd);
    ls_free(input->buffer);
    *input = (struct ls_text_input){.fd = -1};
}
