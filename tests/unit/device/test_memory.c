/* The host's memory and its threads as a device's, and mirrors of memory that is elsewhere.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "device/memory.h"
#include "device/stream.h"

enum { BYTES = 10000 };

static void the_memory_of_the_host_is_zeroed_and_aligned(void **state)
{
    (void)state;
    const struct ls_device_memory *memory = &ls_host_memory;
    assert_true(memory->host_memory);
    for (size_t bytes = 0; bytes < 300; bytes += 33) {
        unsigned char *block = memory->create(bytes);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(block[i], 0);
        memory->free(block);
    }
    memory->free(NULL);
    ls_fail_allocation_after(0);
    assert_null(memory->create(64));
    ls_fail_allocation_after(-1);
}

static void copies_of_the_host_move_exactly_their_bytes(void **state)
{
    (void)state;
    const struct ls_device_memory *memory = &ls_host_memory;
    static unsigned char from[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        from[i] = (unsigned char)(i * 7 + i / 256 + 1);
    for (size_t bytes = 0; bytes <= 8192; bytes = bytes * 2 + 1) {
        unsigned char *a = memory->create(BYTES), *b = memory->create(BYTES), back[BYTES];
        uint64_t hash;
        memset(back, 0, sizeof back);
        assert_int_equal(memory->write(NULL, a, from, bytes, NULL), 0);
        assert_int_equal(memory->copy(NULL, b, a, bytes, NULL), 0);
        assert_int_equal(memory->read(NULL, back, b, bytes, NULL), 0);
        assert_memory_equal(back, from, bytes);
        assert_int_equal(a[bytes], 0);
        assert_int_equal(b[bytes], 0);
        assert_int_equal(memory->hash(b, bytes, 5, &hash, NULL), 0);
        assert_true(hash == ls_hash_wide(from, bytes, 5));
        assert_int_equal(memory->zero(NULL, a, bytes / 2, NULL), 0);
        assert_int_equal(memory->swap(a, b, bytes, NULL), 0);
        assert_memory_equal(a, from, bytes);
        assert_memory_equal(b + bytes / 2, from + bytes / 2, bytes - bytes / 2);
        for (size_t i = 0; i < bytes / 2; i++)
            assert_int_equal(b[i], 0);
        memory->free(a);
        memory->free(b);
    }
}

static void nothing_is_waited_for_on_a_thread(void **state)
{
    (void)state;
    const struct ls_device_streams *streams = &ls_thread_streams;
    struct ls_stream *stream = NULL;
    struct ls_event *event = NULL;
    assert_int_equal(streams->create(&stream, NULL), 0);
    assert_non_null(stream); /* engines tell what was made from what was not */
    assert_int_equal(streams->event_create(&event, NULL), 0);
    assert_non_null(event);
    assert_int_equal(streams->event_wait(event, NULL), 0);
    assert_int_equal(streams->event_record(event, stream, NULL), 0);
    assert_int_equal(streams->event_wait(event, NULL), 0);
    assert_int_equal(streams->wait(stream, NULL), 0);
    streams->event_free(event);
    streams->free(stream);
}

/* ---- Mirrors --------------------------------------------------------------------------------- */

static int reads, writes;

static int count_write(struct ls_stream *stream, void *target, const void *host, size_t bytes,
                       struct ls_error *error)
{
    writes++;
    return ls_host_memory.write(stream, target, host, bytes, error);
}

static int count_read(struct ls_stream *stream, void *host, const void *source, size_t bytes,
                      struct ls_error *error)
{
    reads++;
    return ls_host_memory.read(stream, host, source, bytes, error);
}

static void a_mirror_copies_only_where_memory_is_not_the_hosts(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct ls_device_memory memory = ls_host_memory;
        struct ls_mirror mirror;
        memory.host_memory = own == 0;
        memory.write = count_write;
        memory.read = count_read;
        reads = writes = 0;
        assert_int_equal(ls_mirror_create(&mirror, &memory, BYTES, "a test", NULL), 0);
        unsigned char *host = mirror.host, *device = mirror.device;
        assert_true((host == device) == (own == 0));
        memset(host, 3, BYTES);
        assert_int_equal(ls_mirror_write(&mirror, 100, 50, NULL), 0);
        for (int i = 0; i < BYTES; i++)
            assert_int_equal(device[i], own == 0 || (i >= 100 && i < 150) ? 3 : 0);
        memset(device, 4, BYTES);
        assert_int_equal(ls_mirror_read(&mirror, 7, 9, NULL), 0);
        for (int i = 0; i < BYTES; i++)
            assert_int_equal(host[i], own == 0 || (i >= 7 && i < 16) ? 4 : 3);
        assert_int_equal(reads, own);
        assert_int_equal(writes, own);
        ls_mirror_free(&mirror);
        assert_null(mirror.device);
        ls_mirror_free(&mirror);
    }
}

static void a_mirror_without_memory_says_so_and_is_freed(void **state)
{
    (void)state;
    struct ls_device_memory memory = ls_host_memory;
    static struct ls_error error;
    memory.host_memory = false;
    for (long after = 0; after < 2; after++) {
        struct ls_mirror mirror;
        ls_error_clear(&error);
        ls_fail_allocation_after(after);
        assert_int_equal(ls_mirror_create(&mirror, &memory, BYTES, "a test", &error),
                         LOCKSTEP_RESOURCE);
        ls_fail_allocation_after(-1);
        assert_non_null(strstr(error.problems[0].message, "a test"));
        ls_mirror_free(&mirror);
    }
    struct ls_mirror none = {0};
    ls_mirror_free(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_memory_of_the_host_is_zeroed_and_aligned),
        cmocka_unit_test(copies_of_the_host_move_exactly_their_bytes),
        cmocka_unit_test(nothing_is_waited_for_on_a_thread),
        cmocka_unit_test(a_mirror_copies_only_where_memory_is_not_the_hosts),
        cmocka_unit_test(a_mirror_without_memory_says_so_and_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
