/* What the caller says of inputs. See solver/dummy_inputs.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/dummy_inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A number and what ends it; 0: it is none. */
static int64_t read_extent(const char **text)
{
    char *end;
    errno = 0;
    long long number = strtoll(*text, &end, 10);
    if (end == *text || errno != 0 || number < 1 || number > INT32_MAX)
        return 0;
    *text = end;
    return number;
}

/* NAME=N,N,... up to the end or to ",NAME=". Returns what follows, or NULL if it is not so. */
static const char *read_input(const char *text, struct ls_dummy_input *input)
{
    const char *equals = strchr(text, '=');
    *input = (struct ls_dummy_input){.used = false};
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof input->name)
        return NULL;
    memcpy(input->name, text, (size_t)(equals - text));
    for (text = equals + 1;;) {
        int64_t extent = input->shape.rank < LS_RANK_MAX ? read_extent(&text) : 0;
        if (extent == 0 || (*text != ',' && *text != '\0'))
            return NULL;
        input->shape.dim[input->shape.rank++] = extent;
        if (*text == '\0')
            return text;
        text++;
        if (*text == '\0')
            return NULL;
        if (strchr("-0123456789,", *text) == NULL)
            return text;
    }
}

int ls_dummy_read_inputs(const struct lockstep_dummy_options *options,
                         struct ls_dummy_input *inputs, size_t *count, struct ls_error *error)
{
    *count = 0;
    for (size_t i = 0; i < options->input_count; i++)
        for (const char *text = options->inputs[i];
             text[0] != '\0' || text == options->inputs[i];) {
            if (*count == LS_DUMMY_INPUTS_MAX)
                return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "more than %d inputs",
                               LS_DUMMY_INPUTS_MAX);
            text = read_input(text, &inputs[*count]);
            if (text == NULL)
                return ls_fail(error, LOCKSTEP_USAGE, NULL,
                               "write the whole shape, with the batch: data=10,3,224,224",
                               "'%s' is not the name of a blob with its shape", options->inputs[i]);
            ++*count;
        }
    return 0;
}

struct ls_dummy_input *ls_dummy_find_input(struct ls_dummy_input *inputs, size_t count,
                                           const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(inputs[i].name, name) == 0)
            return &inputs[i];
    return NULL;
}

int ls_dummy_check_inputs(const struct ls_dummy_input *inputs, size_t count, struct ls_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!inputs[i].used)
            return ls_fail(error, LOCKSTEP_USAGE, NULL,
                           "name a top of a data layer, or of an Input layer",
                           "the definition has no input '%s'", inputs[i].name);
    return 0;
}
