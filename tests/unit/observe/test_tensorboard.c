/* TensorBoard's event files, byte by byte, and what a folder holds after several runs.
 *
 * The bytes were written by TensorBoard's own messages in Python and a CRC of another making;
 * tests/compat/test_tensorboard.sh has TensorBoard read whole trainings.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/wire.h"
#include "observe/filters.h"
#include "observe/tensorboard.h"
#include "support/support.h"

static double now;
static double fake_clock(void)
{
    return now;
}

static void crcs_are_those_of_others(void **state)
{
    (void)state;
    assert_int_equal(ls_crc32c(0, "123456789", 9), 0xe3069283U);
    assert_int_equal(ls_crc32c(ls_crc32c(0, "1234", 4), "56789", 5), 0xe3069283U);
    assert_int_equal(ls_crc32c(0, "", 0), 0);
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* The names of a folder's event files, in order. */
static int list_files(const char *folder, char names[8][64])
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort), files = 0;
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.' && files < 8)
            snprintf(names[files++], 64, "%.63s", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return files;
}

static char *read_file(const char *folder, const char *name, size_t *size)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return ls_test_read(path, size);
}

static struct lockstep_tensorboard *make_board(const char *folder)
{
    struct lockstep_tensorboard *board;
    assert_int_equal(ls_tensorboard_new(folder, fake_clock, &board, NULL), 0);
    return board;
}

static void send(struct lockstep_tensorboard *board, const struct lockstep_event *event)
{
    assert_int_equal(ls_tensorboard_event(board, event, NULL), 0);
}

static void send_run(struct lockstep_tensorboard *board, int64_t first, int64_t max_iter)
{
    struct lockstep_run run = {.version = "1",
                               .environment = "here",
                               .solver = "SGD",
                               .lr_policy = "fixed",
                               .first_iteration = first,
                               .max_iter = max_iter,
                               .definition = "a: 1\nb {\n  c: \"```\"\n}\n"};
    send(board,
         &(struct lockstep_event){.kind = LOCKSTEP_EVENT_RUN, .iteration = first, .run = &run});
}

static void send_loss(struct lockstep_tensorboard *board, int64_t iteration)
{
    send(board, &(struct lockstep_event){.kind = LOCKSTEP_EVENT_PROGRESS,
                                         .iteration = iteration,
                                         .data_loss = 0.5,
                                         .learning_rate = 0.1,
                                         .penalty = (double)NAN});
}

static void records_have_the_bytes_of_tensorboard(void **state)
{
    (void)state;
    static const unsigned char head[] = {
        0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa3, 0x7f, 0x4b, 0x22, 0x09, 0x00, 0x00,
        0x20, 0xc0, 0x0b, 0x5a, 0xd6, 0x41, 0x1a, 0x0d, 0x62, 0x72, 0x61, 0x69, 0x6e, 0x2e, 0x45,
        0x76, 0x65, 0x6e, 0x74, 0x3a, 0x32, 0x0b, 0xe2, 0x05, 0xf7, 0x0f, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x6d, 0x53, 0x2b, 0x09, 0x09, 0x00, 0x00, 0x20, 0xc0, 0x0b, 0x5a, 0xd6,
        0x41, 0x10, 0x29, 0x3a, 0x02, 0x08, 0x01, 0xdd, 0x55, 0xd1, 0x7c};
    static const unsigned char accuracy[] = {
        0x23, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xb0, 0x9f, 0x77, 0x43, 0x09,
        0x00, 0x00, 0x20, 0xc0, 0x0b, 0x5a, 0xd6, 0x41, 0x10, 0x2a, 0x2a, 0x16, 0x0a,
        0x14, 0x0a, 0x0d, 0x74, 0x65, 0x73, 0x74, 0x2f, 0x61, 0x63, 0x63, 0x75, 0x72,
        0x61, 0x63, 0x79, 0x15, 0x00, 0x00, 0x40, 0x3f, 0x44, 0xb5, 0x87, 0xe2};
    char *folder = strdup(ls_test_path("bytes/below"));
    const double value = 0.75;
    const struct lockstep_output output = {.name = "accuracy", .values = &value, .count = 1};
    now = 1500000000.5;
    struct lockstep_tensorboard *board = make_board(folder);
    send_loss(board, 3); /* before a run begins: it goes nowhere */
    send_run(board, 40, 100);
    send(board,
         &(struct lockstep_event){
             .kind = LOCKSTEP_EVENT_TEST, .iteration = 42, .outputs = &output, .output_count = 1});
    ls_tensorboard_free(board);
    char names[8][64];
    assert_int_equal(list_files(folder, names), 1);
    assert_string_equal(names[0], "events.out.tfevents.1500000000.lockstep");
    size_t size;
    char *bytes = read_file(folder, names[0], &size);
    assert_true(size > sizeof head + sizeof accuracy);
    assert_memory_equal(bytes, head, sizeof head);
    assert_memory_equal(bytes + size - sizeof accuracy, accuracy, sizeof accuracy);
    free(bytes);
    free(folder);
}

/* Counts the records of a file, whose frames must be whole. */
static int count_records(const char *bytes, size_t size)
{
    int records = 0;
    for (size_t at = 0; at < size; records++) {
        uint64_t length = 0;
        uint32_t crc;
        assert_true(size - at >= 16);
        for (int i = 0; i < 8; i++)
            length |= (uint64_t)(unsigned char)bytes[at + (size_t)i] << 8 * i;
        memcpy(&crc, bytes + at + 8, 4);
        assert_int_equal(crc, ls_crc32c_masked(ls_crc32c(0, bytes + at, 8)));
        assert_true(length <= size - at - 16);
        memcpy(&crc, bytes + at + 12 + length, 4);
        assert_int_equal(crc, ls_crc32c_masked(ls_crc32c(0, bytes + at + 12, length)));
        at += 16 + length;
    }
    return records;
}

static void each_run_has_a_file_behind_those_before(void **state)
{
    (void)state;
    char *folder = strdup(ls_test_path("runs"));
    char names[8][64];
    size_t size;
    now = 1700000000;
    for (int run = 0; run < 3; run++) {
        struct lockstep_tensorboard *board = make_board(folder);
        send_run(board, 10 * run, 100);
        send_loss(board, 10 * run + 1);
        ls_tensorboard_free(board);
        now -= 100; /* a clock that was set back */
    }
    assert_int_equal(list_files(folder, names), 3);
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "events.out.tfevents.170000000%d.lockstep", i);
        assert_string_equal(names[i], name);
        char *bytes = read_file(folder, names[i], &size);
        assert_int_equal(count_records(bytes, size), 4);
        free(bytes);
    }
    free(folder);
}

static void long_trainings_have_bounded_curves(void **state)
{
    (void)state;
    char *folder = strdup(ls_test_path("long"));
    char names[8][64];
    size_t size;
    now = 1700000000;
    struct lockstep_tensorboard *board = make_board(folder);
    send_run(board, 0, 45000);
    for (int64_t i = 1; i <= 45000; i++)
        send_loss(board, i);
    ls_tensorboard_free(board);
    assert_int_equal(list_files(folder, names), 1);
    char *bytes = read_file(folder, names[0], &size);
    assert_int_equal(count_records(bytes, size), 3 + 9000);
    free(bytes);
    free(folder);
}

static void filters_become_a_picture(void **state)
{
    (void)state;
    float weights[5 * 3 * 3] = {0};
    weights[0] = -1;
    weights[44] = 1;
    const struct lockstep_filters filters = {"c.weight", 5, 1, 3, 3, weights};
    int64_t shape[3];
    uint8_t *bytes;
    size_t size;
    assert_int_equal(ls_filters_draw(&filters, shape, &bytes, &size, NULL), 0);
    assert_int_equal(shape[0], 1);
    assert_int_equal(shape[1], 2 * (24 + 1) - 1);
    assert_int_equal(shape[2], 3 * (24 + 1) - 1);
    assert_memory_equal(bytes, "\x89PNG", 4);
    ls_free(bytes);
}

static void what_cannot_be_written_is_told(void **state)
{
    (void)state;
    static struct ls_error error;
    struct lockstep_tensorboard *board;
    ls_test_write_text(ls_test_path("file"), "no folder");
    assert_int_equal(ls_tensorboard_new(ls_test_path("file"), NULL, &board, &error),
                     LOCKSTEP_RESOURCE);
    assert_null(board);
    assert_non_null(strstr(error.problems[0].message, "cannot make the folder"));
    char *folder = strdup(ls_test_path("gone"));
    board = make_board(folder);
    assert_int_equal(rmdir(folder), 0);
    struct lockstep_run run = {
        .solver = "SGD", .lr_policy = "fixed", .version = "", .environment = ""};
    const struct lockstep_event begin = {.kind = LOCKSTEP_EVENT_RUN, .run = &run};
    ls_error_clear(&error);
    assert_int_equal(ls_tensorboard_event(board, &begin, &error), LOCKSTEP_RESOURCE);
    assert_non_null(strstr(error.problems[0].message, "cannot write: No such file"));
    assert_int_equal(ls_tensorboard_event(board, &begin, &error), LOCKSTEP_RESOURCE);
    assert_int_equal(ls_tensorboard_flush(board, &error), LOCKSTEP_RESOURCE);
    ls_tensorboard_free(board);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crcs_are_those_of_others),
        cmocka_unit_test(records_have_the_bytes_of_tensorboard),
        cmocka_unit_test(each_run_has_a_file_behind_those_before),
        cmocka_unit_test(long_trainings_have_bounded_curves),
        cmocka_unit_test(filters_become_a_picture),
        cmocka_unit_test(what_cannot_be_written_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
