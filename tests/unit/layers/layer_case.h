/* Tables of layers: what they emit, what they refuse.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_LAYER_CASE_H
#define LS_TESTS_LAYER_CASE_H

#include "one_layer.h"

/* What a layer makes of its bottoms; all as text (see one_layer.h). */
struct layer_case {
    const char *text, *bottoms;
    const char *tops, *blobs; /* "scale 3, bias 3"; averages are marked "~", fixed blobs "=" */
    const char *forward, *backward; /* ops; backward NULL: it is the test phase */
};

static inline void same_text(const char *text, const char *what, struct ls_text *got,
                             const char *wanted)
{
    if (strcmp(got->data != NULL ? got->data : "", wanted) != 0)
        fail_msg("%s, %s:\n  %s\nnot\n  %s", text, what, got->data, wanted);
    ls_text_free(got);
}

static inline void describe_blobs(struct ls_text *text, const struct ls_layer *layer)
{
    for (int i = 0; i < layer->blobs; i++) {
        const struct ls_blob_request *request = &layer->request[i];
        ls_text_format(text, "%s%s ", i > 0 ? ", " : "", request->name);
        for (int d = 0; d < request->shape.rank; d++)
            ls_text_format(text, "%s%lld", d > 0 ? "x" : "", (long long)request->shape.dim[d]);
        ls_text_add(text, request->average ? "~" : request->fixed ? "=" : "");
    }
}

static inline void check_layer_case(const struct layer_case *wanted)
{
    struct one_layer one;
    struct ls_text text = {0};
    open_layer(&one, wanted->text, wanted->bottoms, wanted->backward != NULL);
    if (run_forward(&one) != 0)
        fail_msg("%s: %s", wanted->text, one.error.problems[0].message);
    describe_tops(&text, &one);
    same_text(wanted->text, "tops", &text, wanted->tops);
    describe_blobs(&text, one.layer);
    same_text(wanted->text, "blobs", &text, wanted->blobs);
    describe_ops(&text, one.graph, 0);
    same_text(wanted->text, "forward", &text, wanted->forward);
    size_t forward_ops = one.graph->op_count;
    if (wanted->backward != NULL) {
        assert_int_equal(run_backward(&one), 0);
        describe_ops(&text, one.graph, forward_ops);
        same_text(wanted->text, "backward", &text, wanted->backward);
    }
    struct ls_cost cost = {0};
    one.layer->type->cost(one.layer, &cost);
    assert_true(cost.forward_bytes > 0);
    close_layer(&one);
}

/* What a layer refuses: the beginning of each message, in order, one a line. */
struct refused_case {
    const char *text, *bottoms, *messages;
    const char *place; /* of the first: "2:3"; NULL: any */
};

static inline void check_refused_case(const struct refused_case *wanted)
{
    struct one_layer one;
    char place[64];
    open_layer(&one, wanted->text, wanted->bottoms, true);
    assert_int_equal(run_forward(&one), LOCKSTEP_DEFINITION);
    const char *message = wanted->messages;
    for (int i = 0; i < one.error.count; i++) {
        size_t length = strcspn(message, "\n");
        if (length == 0 || strncmp(one.error.problems[i].message, message, length) != 0)
            fail_msg("%s:\n  %s\nnot\n  %s", wanted->text, one.error.problems[i].message, message);
        message += length + (message[length] == '\n');
    }
    if (*message != '\0')
        fail_msg("%s: nothing was said like\n  %s", wanted->text, message);
    snprintf(place, sizeof place, "net.prototxt:%s", wanted->place != NULL ? wanted->place : "1:");
    if (strncmp(one.error.problems[0].place, place, strlen(place)) != 0)
        fail_msg("%s: the place is %s", wanted->text, one.error.problems[0].place);
    close_layer(&one);
}

#endif
