/* lockstep predict, from its arguments to its output, on a fake library.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void test_predict_text(void **state)
{
    (void)state;
    fake.picture_status = LOCKSTEP_DATA;
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "a.png", "bad.png", "c.png", "--top", "2"),
        LOCKSTEP_DATA);
    assert_string_equal(out, "a.png\n    0.7000  dog, \"big\"\n    0.2000  cat\n"
                             "c.png\n    0.7000  dog, \"big\"\n    0.2000  cat\n");
    assert_string_equal(messages,
                        "lockstep: bad.png: damaged PNG\n"
                        "lockstep: 1 of 3 inputs cannot be read; the others are predicted. "
                        "hint: with --skip-damaged that is no error\n");
}

/* The first number that is none is warned of, with its input. */
static void test_predict_not_finite(void **state)
{
    (void)state;
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "a.png", "nan.png",
                         "nan2.png", "--top", "1"),
                     0);
    assert_non_null(strstr(messages, "warning: nan.png: number 1 of its prediction is nan"));
    assert_null(strstr(messages, "nan2.png"));
}

static void test_predict_json(void **state)
{
    (void)state;
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "--format", "json", "a\"b.png"), 0);
    assert_string_equal(out, "[{\"input\": \"a\\\"b.png\", \"predictions\": "
                             "[{\"class\": 1, \"name\": \"dog, \\\"big\\\"\", \"value\": 0.7}, "
                             "{\"class\": 0, \"name\": \"cat\", \"value\": 0.2}, "
                             "{\"class\": 2, \"name\": null, \"value\": 0.1}]}]\n");
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--format=json", "--samples",
                         "2", "--top", "1", "--first", "2"),
                     0);
    assert_string_equal(
        out, "[{\"input\": \"sample 2\", \"label\": 0, \"predictions\": [{\"class\": 2, \"name\": "
             "null, \"value\": 0.9}]},\n {\"input\": \"sample 3\", \"predictions\": "
             "[{\"class\": 0, \"name\": \"cat\", \"value\": 0.9}]}]\n");
}

static void test_predict_csv(void **state)
{
    (void)state;
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--format", "csv", "a,b.png"),
                     0);
    assert_string_equal(out, "input,label,rank,class,name,value\n"
                             "\"a,b.png\",,1,1,\"dog, \"\"big\"\"\",0.699999988\n"
                             "\"a,b.png\",,2,0,cat,0.200000003\n"
                             "\"a,b.png\",,3,2,2,0.100000001\n");
}

static void test_predict_samples(void **state)
{
    (void)state;
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "--samples", "3", "--top", "1"), 0);
    assert_string_equal(out, "sample 0 (labelled cat)\n    0.9000  cat\n"
                             "sample 1 (labelled dog, \"big\")\n    0.9000  dog, \"big\"\n"
                             "sample 2 (labelled cat)\n    0.9000  2\n2 of 3 right\n");
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "--samples", "1", "--first", "4"),
        LOCKSTEP_USAGE);
    assert_string_equal(messages, "lockstep: predict: there is no sample 4; the net's test data "
                                  "have 4\n");
}

/* Four little pictures beside each other, cut captions, and the count. */
static void test_predict_draw(void **state)
{
    (void)state;
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--samples", "100", "--draw"),
                     0);
    assert_string_equal(out, "=    =  =    =\n"
                             "90% 90% 90% 90\n"
                             "rig rig no: \n"
                             "2 of 3 right\n");
}

/* One object a line, and nothing around them. */
static void test_predict_json_lines(void **state)
{
    (void)state;
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--format", "jsonl", "--top",
                         "1", "a.png", "b.png"),
                     0);
    assert_string_equal(out,
                        "{\"input\": \"a.png\", \"predictions\": [{\"class\": 1, \"name\": \"dog, "
                        "\\\"big\\\"\", \"value\": 0.7}]}\n"
                        "{\"input\": \"b.png\", \"predictions\": [{\"class\": 1, \"name\": \"dog, "
                        "\\\"big\\\"\", \"value\": 0.7}]}\n");
}

static void test_predict_folders_and_lists(void **state)
{
    (void)state;
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "--top", "2", "--list", "list", "folder"),
        0);
    assert_string_equal(out,
                        "folder/a.png\n    0.7000  dog, \"big\"\n    0.2000  cat\n"
                        "folder/b.png\n    0.7000  dog, \"big\"\n    0.2000  cat\n"
                        "x.png (labelled dog, \"big\")\n    0.7000  dog, \"big\"\n    0.2000  cat\n"
                        "y.png (labelled cat)\n    0.7000  dog, \"big\"\n    0.2000  cat\n"
                        "z.png\n    0.7000  dog, \"big\"\n    0.2000  cat\n"
                        "1 of 2 right (50.00 %)\n2 of 2 among the best 2 (100.00 %)\n"
                        "1 label is no class of the net, which has 3\n"
                        "The folders have 3 other files, which were left out.\n");
    /* What is no prediction is not mixed with predictions that a program reads. */
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--top", "1", "--list",
                         "list", "--format", "csv"),
                     0);
    assert_string_equal(out, "input,label,rank,class,name,value\n"
                             "x.png,1,1,1,\"dog, \"\"big\"\"\",0.699999988\n"
                             "y.png,0,1,1,\"dog, \"\"big\"\"\",0.699999988\n"
                             "z.png,,1,1,\"dog, \"\"big\"\"\",0.699999988\n");
    assert_string_equal(messages, "lockstep: 1 of 2 right (50.00 %)\n"
                                  "lockstep: 1 label is no class of the net, which has 3\n");
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "nothing"), LOCKSTEP_DATA);
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--list", "none"),
                     LOCKSTEP_DATA);
    assert_string_equal(out, "");
}

/* Inputs that cannot be read are told; the status says so, unless it is to be no failure. */
static void test_predict_damaged(void **state)
{
    (void)state;
    fake.picture_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--skip-damaged", "--format",
                         "csv", "--top", "1", "bad.png", "a.png"),
                     0);
    assert_string_equal(out, "input,label,rank,class,name,value\n"
                             "a.png,,1,1,\"dog, \"\"big\"\"\",0.699999988\n");
    assert_string_equal(messages, "lockstep: bad.png: damaged PNG\n"
                                  "lockstep: 1 of 2 inputs cannot be read\n");
    assert_int_equal(
        RUN("predict", "--model", "m", "--weights", "w", "--skip-damaged", "bad.png", "bad2.png"),
        LOCKSTEP_DATA);
    assert_string_equal(out, "");
    assert_string_equal(messages, "lockstep: bad.png: damaged PNG\nlockstep: bad.png: damaged PNG\n"
                                  "lockstep: none of the 2 inputs can be read\n");
}

/* A file is there when all is in it: not after a failure, whose file before stays. */
static void test_predict_to_file(void **state)
{
    (void)state;
    char path[1024], said[1200], text[256];
    const char *const csv = "input,label,rank,class,name,value\n"
                            "a.png,,1,1,\"dog, \"\"big\"\"\",0.699999988\n";
    snprintf(path, sizeof path, "%s", ls_test_path("predictions.csv"));
    snprintf(said, sizeof said, "2/2 inputs  100%%");
    fake.picture_status = LOCKSTEP_DATA;
    for (int round = 0; round < 2; round++) {
        const char *const input = round == 0 ? "a.png" : "bad2.png";
        assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--format", "csv",
                             "--top", "1", "--output-file", path, "bad.png", input),
                         LOCKSTEP_DATA);
        assert_int_equal(strncmp(out, said, strlen(said)), 0);
        assert_true((strstr(out, "Wrote the predictions to ") != NULL) == (round == 0));
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        assert_int_equal(fclose(file), 0);
        assert_string_equal(text, csv);
    }
    snprintf(said, sizeof said, "%s.part", path);
    assert_int_equal(access(said, F_OK), -1);
    assert_int_equal(RUN("predict", "--model", "m", "--weights", "w", "--output-file",
                         "/no/such/folder/file", "a.png"),
                     LOCKSTEP_RESOURCE);
    assert_non_null(strstr(messages, "/no/such/folder/file: cannot write: No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_predict_text),       TEST(test_predict_not_finite),
        TEST(test_predict_json),       TEST(test_predict_csv),
        TEST(test_predict_samples),    TEST(test_predict_draw),
        TEST(test_predict_json_lines), TEST(test_predict_folders_and_lists),
        TEST(test_predict_damaged),    TEST(test_predict_to_file),
    };
    return cmocka_run_group_tests(tests, NULL, free_texts);
}
