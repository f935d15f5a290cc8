/* When work is carried out, and what tests ask of the fake. SPDX-License-Identifier: BSD-2-Clause
 */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <unistd.h>

#include "cuda/fake/fake.h"
#include "cuda/fake/handles.h"
#include "cuda/grid_run.h"

namespace fake
{

std::recursive_mutex lock;
thread_local int chosen_card;
thread_local cudaError_t last_error;
int cards;
int driver; /* 0: as new as the runtime */
int old_card = -1;
std::vector<bool> used;
std::set<cudaStream_t> streams;
std::set<cudaEvent_t> events;

namespace
{

uint64_t order, numbers;
unsigned eager; /* of 8 times work goes on when some is given */
long overtaken;
std::set<cudaStream_t> parting; /* destroyed, with work left */
std::vector<bool> broken;
std::vector<long> lives; /* pieces of work until a card breaks; negative: it does not */
std::map<std::string, long> calls;
std::string failing;
long failing_after;
bool failed;

bool is_the_failing(const std::string &name)
{
    const long before = calls[name]++;
    if (failing != name || before != failing_after)
        return false;
    failing.clear();
    return failed = true;
}

} // namespace

void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::fputs("the fake of CUDA: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    std::abort();
}

/* SplitMix64 (Steele, Lea, Flood; 2014). */
uint64_t draw()
{
    uint64_t z = (order += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

call::call(const char *name) : hold(lock), fails(is_the_failing(name))
{
}

cudaError_t failing_with(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

cudaError_t ending_with(int card, cudaError_t error)
{
    return failing_with(is_broken(card) ? cudaErrorIllegalAddress : error);
}

int current_card()
{
    if (chosen_card >= cards)
        stop("there is no card %d", chosen_card);
    used[(size_t)chosen_card] = true;
    return chosen_card;
}

bool is_broken(int card)
{
    return card < (int)broken.size() && broken[(size_t)card];
}

void break_card(int card)
{
    broken[(size_t)card] = true;
}

cudaStream_t check_stream(const char *who, cudaStream_t stream)
{
    if (stream == nullptr || streams.count(stream) == 0)
        stop("%s: %s", who,
             stream == nullptr ? "in the default stream, which waits for all others"
                               : "in a stream that there is not");
    return stream;
}

int card_of(const char *who, cudaStream_t stream)
{
    return check_stream(who, stream)->card;
}

bool is_captured(cudaStream_t stream)
{
    return check_stream("a copy", stream)->captures != nullptr;
}

/* ---- Work ---- */

cudaError_t give(cudaStream_t stream, const char *name, std::function<cudaError_t()> run,
                 std::shared_ptr<mark> after, bool everywhere, std::function<void()> given)
{
    check_stream(name, stream);
    long &left = lives[(size_t)stream->card];
    if (left >= 0 && left-- == 0)
        break_card(stream->card);
    if (is_broken(stream->card))
        return ending_with(stream->card, cudaSuccess);
    work piece = {name, std::move(run), std::move(after), numbers++, everywhere, std::move(given)};
    if (stream->captures != nullptr) {
        stream->captures->steps.push_back(std::move(piece));
        return cudaSuccess;
    }
    if (piece.given)
        piece.given();
    stream->queue.push_back(std::move(piece));
    go_on_a_little();
    return cudaSuccess;
}

static bool may_go_on(cudaStream_t stream)
{
    return !stream->queue.empty() &&
           (stream->queue.front().after == nullptr || stream->queue.front().after->over ||
            is_broken(stream->card)); /* what a card that has stopped waits for never comes */
}

static void count_overtaken(const work &piece, const std::set<cudaStream_t> &among)
{
    for (cudaStream_t other : among)
        overtaken += !other->queue.empty() && other->queue.front().number < piece.number;
}

/* On a card that is broken nothing is carried out any more; who waits for an event does not wait
 * for ever. */
static void carry_out(cudaStream_t stream)
{
    work piece = std::move(stream->queue.front());
    const int card = stream->card;
    stream->queue.pop_front();
    count_overtaken(piece, streams);
    count_overtaken(piece, parting);
    if (parting.count(stream) > 0 && stream->queue.empty()) {
        parting.erase(stream);
        delete stream;
    }
    if (is_the_failing("work"))
        break_card(card);
    if (is_broken(card)) {
        if (piece.name == "an event")
            (void)piece.run();
        return;
    }
    reach now(piece.everywhere ? -1 : card, piece.name.c_str());
    if (piece.run() != cudaSuccess)
        break_card(card);
    check_borders(piece.name.c_str(), piece.everywhere ? -1 : card);
}

void wait_for_card(const char *who)
{
    for (cudaStream_t stream : streams)
        if (stream->card == current_card() && stream->captures != nullptr)
            stop("%s waits for a card while a stream of it is captured", who);
}

bool is_idle(int card)
{
    for (const std::set<cudaStream_t> *some : {&streams, &parting})
        for (cudaStream_t stream : *some)
            if (stream->card == card && !stream->queue.empty())
                return false;
    return true;
}

static std::vector<cudaStream_t> list_ready()
{
    std::vector<cudaStream_t> ready;
    for (const std::set<cudaStream_t> *some : {&streams, &parting})
        for (cudaStream_t stream : *some)
            if (may_go_on(stream))
                ready.push_back(stream);
    /* In the order of their creation: addresses differ from run to run. */
    std::sort(ready.begin(), ready.end(),
              [](cudaStream_t a, cudaStream_t b) { return a->number < b->number; });
    return ready;
}

static bool go_a_step()
{
    std::vector<cudaStream_t> ready = list_ready();
    if (!ready.empty())
        carry_out(ready[draw() % ready.size()]);
    return !ready.empty();
}

void go_on_a_little()
{
    while (draw() % 8 < eager)
        if (!go_a_step())
            return;
}

void go_on_a_step()
{
    (void)go_a_step();
}

/* Nothing may go on: the calls of other threads may change that, if ranks exchange. */
static void wait_for_ranks(const char *who, int turn)
{
    constexpr int TURNS = 20000; /* of a millisecond */
    const std::string missing = missing_ranks();
    if (missing.empty() || turn > TURNS)
        stop("%s waits for work that waits for itself, or was never given%s%s", who,
             missing.empty() ? "" : ": ", missing.c_str());
    lock.unlock();
    usleep(1000);
    lock.lock();
}

/* Without a condition: until nothing is left. */
cudaError_t go_until(const char *who, const std::function<bool()> &enough)
{
    for (int turn = 0;;) {
        if (enough && enough())
            return cudaSuccess;
        if (go_a_step())
            continue;
        bool waiting = false;
        for (int card = 0; card < cards; card++)
            waiting = waiting || !is_idle(card);
        if (!waiting && !enough)
            return cudaSuccess;
        wait_for_ranks(who, turn++);
    }
}

void part_with(cudaStream_t stream)
{
    streams.erase(stream);
    if (stream->queue.empty())
        delete stream;
    else
        parting.insert(stream);
}

} // namespace fake

using namespace fake;

/* ---- For tests ---- */

void fake_begin(int count, size_t bytes, uint64_t seed)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    static const unsigned often[] = {0, 2, 6};
    cards = count;
    broken.assign((size_t)count, false);
    used.assign((size_t)count, false);
    lives.assign((size_t)count, -1);
    old_card = -1;
    begin_memory(count, bytes);
    order = seed;
    eager = often[draw() % 3];
    numbers = 0;
    overtaken = 0;
    calls.clear();
    failing.clear();
    failed = false;
    chosen_card = 0;
    last_error = cudaSuccess;
    begin_cudnn();
    ls_grid_seed(seed);
}

void fake_end(void)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    (void)go_until("fake_end", nullptr);
    end_nccl();
    end_cublaslt();
    end_cudnn();
    if (!streams.empty() || !events.empty())
        stop("%zu streams and %zu events are left", streams.size(), events.size());
    end_graphs();
    begin_memory(0, 0);
}

void fake_fail(const char *name, long after)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    failing = name != nullptr ? name : "";
    failing_after = calls[failing] + after;
    failed = false;
}

bool fake_has_failed(void)
{
    return failed;
}

long fake_calls(const char *name)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    return calls[name];
}

long fake_overtaken(void)
{
    return overtaken;
}

void fake_break_card(int card)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    break_card(card);
}

void fake_break_card_after(int card, long pieces)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    if (card < 0 || card >= cards)
        stop("there is no card %d to be broken", card);
    lives[(size_t)card] = pieces;
}

bool fake_uses_card(int card)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    return used[(size_t)card];
}

void fake_set_driver(int version)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    driver = version;
}

void fake_set_old(int card)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    old_card = card;
}
