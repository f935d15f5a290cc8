/* One rank of a job that mpirun starts, for tests/mpi/transport.sh:
 *   transport_ranks check      what every transport must do (support/transports.h); prints a line
 *   transport_ranks end CODE   the last rank ends the job while the others wait
 *   transport_ranks alone      prints whether it was started by itself
 * SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/transports.h"
#include "transport/launch.h"

static int check(struct ls_transport *transport)
{
    int line = 0;
    line = line != 0 ? line : ls_test_transport_in_turn(transport);
    line = line != 0 ? line : ls_test_transport_at_once(transport);
    line = line != 0 ? line : ls_test_transport_two_threads(transport);
    line = line != 0 ? line : ls_test_transport_messages(transport);
    line = line != 0 ? line : ls_test_transport_large(transport, 3 << 20);
    if (line != 0) {
        printf("rank %d: line %d of transports.c: %s\n", transport->rank, line, transport->failure);
        return 1;
    }
    /* A message without a receiver does not keep the job from ending. */
    char message[LS_TRANSPORT_MESSAGE] = "";
    for (int i = 0; i < 100; i++)
        if (transport->calls->tell(transport, i % transport->size, message, sizeof message) != 0)
            return 1;
    printf("rank %d of %d is good, %d of %d on '%s', %s\n", transport->rank, transport->size,
           transport->host_rank, transport->host_size, transport->host, transport->name);
    return 0;
}

static void end_job(struct ls_transport *transport, int code)
{
    size_t bytes[64], offset[64];
    uint32_t all[64] = {0};
    for (size_t r = 0; r < 64; r++) {
        bytes[r] = 4;
        offset[r] = 4 * r;
    }
    struct ls_transport_blocks blocks = {bytes, offset};
    struct ls_transport_op *op = NULL;
    const struct ls_transport_calls *calls = transport->calls;
    if (transport->rank == transport->size - 1)
        calls->abort(transport, code);
    calls->gather(transport, LS_CHANNEL_SMALL, all + transport->rank, all, &blocks, &op);
    while (calls->test(transport, &op) == LS_TRANSPORT_RUNNING)
        sched_yield();
}

int main(int argc, char **argv)
{
    struct ls_error error = {0};
    struct ls_transport *transport = NULL;
    int status = ls_launch(&transport, &error);
    if (status != 0) {
        char text[2048];
        ls_error_format(&error, text, sizeof text);
        printf("%s\n", text);
        return status;
    }
    if (transport == NULL) {
        printf("alone\n");
        return argc == 2 && strcmp(argv[1], "alone") == 0 ? 0 : 1;
    }
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        status = check(transport);
    else if (argc == 3 && strcmp(argv[1], "end") == 0)
        end_job(transport, atoi(argv[2]));
    else
        status = 1;
    transport->calls->end(transport);
    return status;
}
