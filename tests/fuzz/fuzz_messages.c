/* Fuzzes what a rank hears from the others of its job: messages to the failure detector and about
 * queue, and blocks of small exchanges, on a transport that hands out the input and keeps its own
 * time.
 *
 *   byte 0  how many ranks there are, and which one this is
 *   then    what this rank does, one byte each, and what it needs, see `act`; whatever it asks the
 *           transport for comes from the bytes that follow, and when they are at an end it is
 * silent
 *
 * Nothing may be read beyond what was sent, whatever is said is said in texts that end, units of
 * micro-batches are units of the round, and who waits is told that there are none left, or of an
 * alarm. SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/exponents.h"
#include "engine/work_queue.h"
#include "transport/comm.h"
#include "ops/devices.h"
#include "support/contribute.h"
#include "engine/sums.h"
#include "transport/comm_job.h"
#include "transport/failure_detector_inner.h"
#include "transport/failure_end.h"
#include "transport/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { RANKS_MAX = 4, UNITS_MAX = 70, NUMBERS = 24, TIMEOUT = 8, ACTIONS_MAX = 64 };
enum { ASK = LS_MESSAGE_OTHERS, GRANT, NONE_LEFT = -1 }; /* as engine/work_queue.c has them */

struct message {
    uint32_t kind, round;
    int32_t unit;
    uint32_t count;
};

static struct scene {
    struct ls_transport transport;
    struct ls_comm *comm;
    struct ls_work_queue *queue;
    const uint8_t *at, *end;
    double now, step; /* the clock goes on by a step whenever it is looked at */
    bool aborted, asked;
    struct message question; /* the last one that this rank has asked rank 0 */
    size_t begin, units;     /* of the round */
    bool none_left;
    struct ls_error error;
} scene;

static void must(bool condition)
{
    if (!condition)
        abort();
}

static unsigned take(void)
{
    return scene.at < scene.end ? *scene.at++ : 0;
}

static void take_bytes(void *out, size_t size)
{
    size_t left = (size_t)(scene.end - scene.at), count = size < left ? size : left;
    memcpy(out, scene.at, count);
    memset((unsigned char *)out + count, 0, size - count);
    scene.at += count;
}

static void check_error(int status)
{
    char text[8192];
    must((status != 0) == (scene.error.count > 0));
    must(ls_error_format(&scene.error, text, sizeof text) > 0 || status == 0);
    ls_error_clear(&scene.error);
}

/* ---- The transport
 * -------------------------------------------------------------------------------- */

static struct ls_transport_op {
    int unused;
} under_way;

/* Other ranks' blocks: the input, where the next byte is odd, else what lies there. */
static void receive(unsigned char *all, const struct ls_transport_blocks *blocks, bool also_own)
{
    for (int r = 0; r < scene.transport.size; r++)
        if ((also_own || r != scene.transport.rank) && take() % 2 == 1)
            take_bytes(all + blocks->offset[r], blocks->bytes[r]);
}

static int gather(struct ls_transport *transport, enum ls_channel channel, const void *mine,
                  void *all, const struct ls_transport_blocks *blocks, struct ls_transport_op **op)
{
    (void)channel;
    unsigned char *at = all;
    for (int r = 0; r < transport->size; r++) {
        must(blocks->bytes[r] % 4 == 0);
        if (r == transport->rank && blocks->bytes[r] > 0)
            memmove(at + blocks->offset[r], mine, blocks->bytes[r]);
    }
    receive(at, blocks, false);
    *op = &under_way;
    return 0;
}

static int exchange(struct ls_transport *transport, enum ls_channel channel, const void *out,
                    const struct ls_transport_blocks *out_blocks, void *in,
                    const struct ls_transport_blocks *in_blocks, struct ls_transport_op **op)
{
    (void)channel;
    static volatile unsigned sum;
    for (int r = 0; r < transport->size; r++)
        for (size_t i = 0; i < out_blocks->bytes[r]; i++)
            sum = sum + ((const unsigned char *)out)[out_blocks->offset[r] + i];
    receive(in, in_blocks, true);
    *op = &under_way;
    return 0;
}

static enum ls_transport_result test(struct ls_transport *transport, struct ls_transport_op **op)
{
    (void)transport;
    *op = NULL;
    return LS_TRANSPORT_DONE;
}

static int tell(struct ls_transport *transport, int to, const void *message, size_t bytes)
{
    must(to >= 0 && to < transport->size && bytes >= 4 && bytes <= LS_TRANSPORT_MESSAGE);
    uint32_t kind;
    memcpy(&kind, message, sizeof kind);
    if (kind == ASK) {
        must(to == 0 && bytes == sizeof scene.question);
        memcpy(&scene.question, message, bytes);
        scene.asked = true;
    } else if (bytes == sizeof(struct ls_word)) {
        const struct ls_word *word = message;
        must(memchr(word->text, '\0', sizeof word->text) != NULL);
        must(memchr(word->doing.layer, '\0', sizeof word->doing.layer) != NULL);
    }
    return 0;
}

/* A message of the input, of one of the sizes that there are, or any. Rank 0 answers in the end. */
static int hear(struct ls_transport *transport, int *from, void *message, size_t room)
{
    static const size_t sizes[] = {sizeof(struct ls_heartbeat), sizeof(struct ls_word),
                                   sizeof(struct message)};
    uint32_t kind = take();
    must(room >= LS_TRANSPORT_MESSAGE);
    if (kind == 0 && scene.at >= scene.end && scene.asked) {
        struct message answer = {.kind = GRANT, .round = scene.question.round, .unit = NONE_LEFT};
        scene.asked = false;
        memcpy(message, &answer, sizeof answer);
        *from = 0;
        return sizeof answer;
    }
    if (kind == 0)
        return 0;
    *from =
        (transport->rank + 1 + (int)(take() % (unsigned)(transport->size - 1))) % transport->size;
    unsigned which = take();
    size_t size = which < 252 ? sizes[which % 3] : take() * 8;
    size_t given = take();
    kind %= 20;
    memset(message, which % 2 == 0 ? 0 : 'x', size);
    take_bytes(message, given < size ? given : size);
    memcpy(message, &kind, size < sizeof kind ? size : sizeof kind);
    return (int)size;
}

static void end(struct ls_transport *transport)
{
    (void)transport;
}

static void stop(struct ls_transport *transport, int code)
{
    (void)transport;
    (void)code;
    scene.aborted = true;
}

static const struct ls_transport_calls calls = {.gather = gather,
                                                .exchange = exchange,
                                                .test = test,
                                                .tell = tell,
                                                .hear = hear,
                                                .end = end,
                                                .abort = stop};

/* ---- The job --------------------------------------------------------------------------------- */

static double look_at_clock(void *user)
{
    (void)user;
    return scene.now += scene.step;
}

static enum ls_process_state look(void *user, const struct ls_process *process)
{
    (void)user;
    return process->number % 16 == 3   ? LS_PROCESS_GONE
           : process->number % 16 == 5 ? LS_PROCESS_STOPPED
                                       : LS_PROCESS_THERE;
}

static void on_failure_user(void *user, int status, const char *text)
{
    (void)user;
    (void)status;
    must(strlen(text) < LS_DETECTOR_TEXT);
}

static void open_scene(unsigned which)
{
    memset(&scene, 0, sizeof scene);
    scene.transport = (struct ls_transport){.calls = &calls, .name = "fuzz", .host = "here"};
    scene.transport.size = scene.transport.host_size = 2 + (int)(which % (RANKS_MAX - 1));
    scene.transport.rank = scene.transport.host_rank = (int)(which / 4) % scene.transport.size;
    scene.now = 1000;
    scene.step = 0.001;
}

static void begin_job(void)
{
    const struct ls_comm_options options = {.timeout = TIMEOUT, .dynamic = true};
    const struct ls_detector_senses senses = {.clock = look_at_clock, .look = look};
    struct ls_identity all[RANKS_MAX], self;
    struct ls_comm *comm;
    must(ls_comm_create(&scene.transport, &options, &scene.comm, &scene.error) == 0);
    comm = scene.comm;
    ls_detector_set_senses(comm->detector, &senses);
    ls_detector_set_on_failure(comm->detector, on_failure_user, NULL);
    comm->workers = 1 + (int)(take() % 3);
    for (int r = 0; r < comm->size; r++)
        comm->first[r + 1] = comm->first[r] + comm->workers;
    self = ls_detector_self(comm->detector);
    memset(all, 0, sizeof all);
    check_error(ls_comm_all_gather(comm, &self, sizeof self, all, &scene.error));
    must(ls_detector_set_members(comm->detector, all, &scene.error) == 0);
    must(ls_work_queue_create(comm, &scene.queue, &scene.error) == 0);
}

static bool over(void)
{
    return scene.aborted || ls_detector_alarm(scene.comm->detector) ||
           atomic_load(&scene.comm->detector->resting);
}

/* ---- What the rank does ---------------------------------------------------------------------- */

static void granted(void *user, size_t unit)
{
    must(user == &scene && !scene.none_left);
    must(unit == SIZE_MAX || (unit >= scene.begin && unit < scene.begin + scene.units));
    scene.none_left = unit == SIZE_MAX;
}

static void run_round(void)
{
    int owners[2 * UNITS_MAX];
    size_t unit = 0;
    scene.begin = take() % UNITS_MAX;
    scene.units = 1 + take() % UNITS_MAX;
    scene.none_left = false;
    int status = ls_work_queue_begin(scene.queue, scene.begin, scene.begin + scene.units, granted,
                                     &scene, &scene.error);
    for (size_t i = 0; status == 0 && unit != SIZE_MAX; i++) {
        status = ls_work_queue_take(scene.queue, &unit, &scene.error);
        must(status != 0 || unit == SIZE_MAX ||
             (unit >= scene.begin && unit < scene.begin + scene.units));
        must(i <= 256 * UNITS_MAX);
    }
    if (status == 0)
        status = ls_work_queue_end(scene.queue, owners, &scene.error);
    for (size_t i = 0; status == 0 && i < scene.units; i++)
        must(owners[scene.begin + i] >= 0 && owners[scene.begin + i] < scene.transport.size);
    check_error(status);
}

static void share(void)
{
    int owner[NUMBERS], size = scene.transport.size;
    uint32_t items[NUMBERS] = {0};
    size_t count = take() % NUMBERS;
    for (size_t i = 0; i < count; i++)
        owner[i] = (int)(take() % (unsigned)size);
    check_error(ls_comm_all_gather_items(scene.comm, items, sizeof *items, sizeof *items, owner,
                                         count, &scene.error));
}

static void collect(void)
{
    struct ls_range part[RANKS_MAX];
    uint32_t mine[NUMBERS] = {0}, all[RANKS_MAX * NUMBERS] = {0};
    size_t at = 0;
    for (int r = 0; r < scene.transport.size; r++) {
        part[r].begin = at;
        part[r].end = at += 4 * (take() % NUMBERS);
    }
    check_error(ls_comm_gather(scene.comm, mine, all, part, 1, &scene.error));
    check_error(ls_comm_broadcast(scene.comm, all, sizeof all, &scene.error));
}

static void add_sums(void)
{
    int64_t sums[NUMBERS], packed[NUMBERS], before[NUMBERS];
    bool wide = take() % 2 == 1;
    take_bytes(before, sizeof before);
    memcpy(sums, before, sizeof sums);
    take_bytes(packed, sizeof packed);
    ls_wire_add(sums, packed, NUMBERS, wide);
    if (ls_wire_pack(packed, sums, NUMBERS, wide)) {
        memset(before, 0, sizeof before);
        ls_wire_add(before, packed, NUMBERS, wide);
        must(memcmp(before, sums, sizeof sums) == 0);
    }
}

/* What other ranks note of their contributions: whatever it is, exponents stay possible. */
static void note_sums(void)
{
    static const size_t elements[2] = {5, 3};
    struct ls_sums *sums;
    float gradient[5] = {1, -2, 0.5F, 0, 3}, out[5];
    unsigned char notes[64];
    int parameter = -1, micro_batch;
    must(ls_sums_create(ls_device_default(), elements, NULL, 2, 1, &sums, &scene.error) == 0);
    must(ls_sums_cut_elements(sums, 0, &scene.error) == 0);
    size_t bytes = ls_sums_note_bytes(2, ls_sums_all_rows(sums));
    must(bytes <= sizeof notes);
    for (int update = 0; update < 3; update++) {
        must(ls_sums_begin(sums, false, &scene.error) == 0);
        contribute_to_sum(ls_device_default(), ls_sums_accumulator(sums), 0, 0, 0, gradient);
        must(ls_sums_collect(sums, &scene.error) == 0);
        for (int r = 1; r < scene.transport.size; r++) {
            take_bytes(notes, bytes);
            ls_sums_hear(sums, notes);
        }
        if (ls_sums_end(sums, &parameter, &micro_batch) != LS_SUMS_GOOD)
            must(parameter == 0 || parameter == 1);
        must(ls_sums_read(sums, 0, 0, 5, out, &scene.error) == 0);
        for (int i = 0; i < 2; i++) {
            must(ls_sums_exponent(sums, i) <= LS_SUMS_EXPONENT_UNSET);
            ls_sums_next(sums, i, (uint32_t)take() << 23);
        }
        ls_sums_growth(sums, &parameter);
    }
    ls_sums_free(sums);
}

static void agree(void)
{
    int own = (int)(take() % 3);
    if (own != 0)
        ls_fail(&scene.error, own, "here", "a hint", "failed");
    int status = ls_comm_agree(scene.comm, own, &scene.error);
    must(own == 0 || status != 0);
    check_error(status);
}

static void act(unsigned what)
{
    struct ls_detector *detector = scene.comm->detector;
    switch (what % 10) {
    case 0:
        scene.now += take() / 16.0;
        ls_detector_poll(detector);
        break;
    case 1:
        ls_detector_receive_now(detector);
        break;
    case 2:
        agree();
        break;
    case 3:
        share();
        break;
    case 4:
        run_round();
        break;
    case 5:
        add_sums();
        break;
    case 6:
        collect();
        break;
    case 7:
        ls_detector_note(detector, (int64_t)take(), "layer");
        ls_detector_wait(detector, what >= 128);
        break;
    case 8:
        note_sums();
        break;
    default:
        ls_detector_hurry(detector);
        ls_detector_poll(detector);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2)
        return 0;
    open_scene(bytes[0]);
    scene.at = bytes + 1;
    scene.end = bytes + size;
    begin_job();
    for (int i = 0; i < ACTIONS_MAX && scene.at < scene.end && !over(); i++)
        act(take());
    if (!over() && take() % 2 == 1) {
        scene.step = 1; /* others are lost in a moment */
        ls_detector_leave(scene.comm->detector, (int)take() % 3, "the last words");
    }
    if (ls_detector_alarm(scene.comm->detector))
        check_error(ls_detector_fail(scene.comm->detector, &scene.error));
    ls_work_queue_free(scene.queue);
    ls_comm_end(scene.comm);
    return 0;
}
