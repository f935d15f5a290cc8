/* One rank of a job that mpirun starts, for tests/mpi/link.sh:
 *   link_ranks check      what every link must do (support/links.h); prints a line
 *   link_ranks end CODE   the last rank ends the job while the others wait
 *   link_ranks alone      prints whether it was started by itself
 * SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/links.h"
#include "transport/launch.h"

static int check(struct ls_link *link)
{
    int line = 0;
    line = line != 0 ? line : ls_test_link_in_turn(link);
    line = line != 0 ? line : ls_test_link_at_once(link);
    line = line != 0 ? line : ls_test_link_two_threads(link);
    line = line != 0 ? line : ls_test_link_messages(link);
    line = line != 0 ? line : ls_test_link_large(link, 3 << 20);
    if (line != 0) {
        printf("rank %d: line %d of links.c: %s\n", link->rank, line, link->failure);
        return 1;
    }
    /* What nobody hears does not keep the job from ending. */
    char message[LS_LINK_MESSAGE] = "";
    for (int i = 0; i < 100; i++)
        if (link->calls->tell(link, i % link->size, message, sizeof message) != 0)
            return 1;
    printf("rank %d of %d is good, %d of %d on '%s', %s\n", link->rank, link->size, link->host_rank,
           link->host_size, link->host, link->name);
    return 0;
}

static void end_job(struct ls_link *link, int code)
{
    size_t bytes[64], offset[64];
    uint32_t all[64] = {0};
    for (size_t r = 0; r < 64; r++) {
        bytes[r] = 4;
        offset[r] = 4 * r;
    }
    struct ls_link_blocks blocks = {bytes, offset};
    struct ls_link_op *op = NULL;
    const struct ls_link_calls *calls = link->calls;
    if (link->rank == link->size - 1)
        calls->abort(link, code);
    calls->gather(link, LS_CHANNEL_SMALL, all + link->rank, all, &blocks, &op);
    while (calls->test(link, &op) == LS_LINK_RUNNING)
        sched_yield();
}

int main(int argc, char **argv)
{
    struct ls_error error = {0};
    struct ls_link *link = NULL;
    int status = ls_launch(&link, &error);
    if (status != 0) {
        char text[2048];
        ls_error_format(&error, text, sizeof text);
        printf("%s\n", text);
        return status;
    }
    if (link == NULL) {
        printf("alone\n");
        return argc == 2 && strcmp(argv[1], "alone") == 0 ? 0 : 1;
    }
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        status = check(link);
    else if (argc == 3 && strcmp(argv[1], "end") == 0)
        end_job(link, atoi(argv[2]));
    else
        status = 1;
    link->calls->end(link);
    return status;
}
