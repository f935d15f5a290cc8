/* TEXT: characters and bytes, vocabularies, splits, and what is no text.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "data/reader.h"
#include "data/samples.h"
#include "data_trial.h"

static void write_text(const char *name, const char *text)
{
    ls_test_write(ls_test_path(name), text, strlen(text));
}

/* Ids by code point; characters of several bytes, far into a file, and across files. */
static void characters_become_ids(void **state)
{
    (void)state;
    static const char *const characters[] = {
        "\n", "a", "b", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    enum { COUNT = 3000 };
    struct ls_text first = {0}, second = {0};
    uint8_t ids[COUNT];
    for (int i = 0; i < COUNT; i++) {
        ids[i] = (uint8_t)(i * i / 3 % 6);
        ls_text_add(i < 1700 ? &first : &second, characters[ids[i]]);
    }
    write_text("first.txt", first.data);
    write_text("second.txt", second.data);
    char fields[3000];
    snprintf(fields, sizeof fields, "source: '%s' source: '%s' text_param { window: 11 stride: 5 }",
             ls_test_path("first.txt"), ls_test_path("second.txt"));
    struct ls_source *source = trial_source_opens("TEXT", fields);
    assert_int_equal(source->count, (COUNT - 1 - 11) / 5 + 1);
    assert_int_equal(source->class_count, 6);
    static const char *const names[] = {
        "\\n", "a", "b", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (int i = 0; i < 6; i++)
        assert_string_equal(source->class_name[i], names[i]);
    struct ls_source_reader *reader;
    struct ls_record record;
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    for (int i = 0; i < source->count; i++) {
        assert_int_equal(ls_source_read(reader, i, LS_ALL_TENSORS, &record, NULL), 0);
        const int32_t *tokens = record.tensor[0].data, *target = record.tensor[1].data;
        const int32_t *bytes = record.tensor[6].data;
        for (int k = 0; k < 11; k++) {
            assert_int_equal(tokens[k], ids[5 * i + k]);
            assert_int_equal(target[k], ids[5 * i + k + 1]);
            assert_int_equal(bytes[k], strlen(characters[target[k]]));
        }
    }
    ls_source_reader_close(reader);
    ls_source_close(source);
    ls_text_free(&first);
    ls_text_free(&second);
}

static void bytes_are_ids_themselves(void **state)
{
    (void)state;
    ls_test_write(ls_test_path("bytes"),
                  "\x00\xff\x80"
                  "a\\\n",
                  6);
    char fields[2000];
    snprintf(fields, sizeof fields, "source: '%s' text_param { unit: BYTE window: 5 }",
             ls_test_path("bytes"));
    struct ls_source *source = trial_source_opens("TEXT", fields);
    struct ls_source_reader *reader;
    struct ls_record record;
    assert_int_equal(source->class_count, 256);
    assert_string_equal(source->class_name[10], "\\n");
    assert_string_equal(source->class_name[0], "\\x00");
    assert_string_equal(source->class_name[92], "\\\\");
    assert_string_equal(source->class_name[97], "a");
    assert_string_equal(source->class_name[255], "\\xFF");
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    assert_int_equal(ls_source_read(reader, 0, LS_ALL_TENSORS, &record, NULL), 0);
    assert_memory_equal(record.tensor[0].data, ((const int32_t[]){0, 255, 128, 97, 92}), 20);
    assert_memory_equal(record.tensor[1].data, ((const int32_t[]){255, 128, 97, 92, 10}), 20);
    ls_source_reader_close(reader);
    ls_source_close(source);
}

static void a_split_is_the_first_part(void **state)
{
    (void)state;
    char text[102] = "";
    for (int i = 0; i < 101; i++)
        text[i] = (char)('!' + i % 89);
    write_text("long.txt", text);
    for (int part = 0; part < 2; part++) {
        struct ls_definition *layer;
        char fields[2000];
        snprintf(fields, sizeof fields,
                 "top: 'x' data_param { backend: TEXT source: '%s' split: '%s:0.9' text_param { "
                 "window: 4 } }",
                 ls_test_path("long.txt"), part == 0 ? "train" : "test");
        struct ls_dataset *set = trial_fields(fields, &layer);
        struct ls_reader *reader;
        float x[4];
        assert_int_equal(ls_dataset_size(set), part == 0 ? 89 / 4 : 10 / 4);
        assert_int_equal(ls_dataset_classes(set), 89);
        assert_int_equal(ls_reader_open(set, &reader, NULL), 0);
        assert_int_equal(trial_fetch(reader, 0, x, NULL, NULL), 0);
        assert_true(x[0] == (float)part && x[3] == (float)(part + 3));
        ls_reader_close(reader);
        ls_dataset_close(set);
        ls_definition_free(layer);
    }
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    char fields[3000];
    write_text("good.txt", "abc abc");
    write_text("more.txt", "abcd abc\n");
    write_text("bad.txt", "gut\xc3\xa9 \xe9t\xe9");
    snprintf(fields, sizeof fields, "source: '%s' text_param { window: 2 }",
             ls_test_path("bad.txt"));
    trial_source_fails("TEXT", fields, LOCKSTEP_DATA,
                       "bad.txt: is no UTF-8 at byte 6. hint: convert it");
    snprintf(fields, sizeof fields, "source: '%s' text_param { window: 2 vocabulary: '%s' }",
             ls_test_path("more.txt"), ls_test_path("good.txt"));
    trial_source_fails("TEXT", fields, LOCKSTEP_DATA,
                       "more.txt: has U+0064 at byte 3, which the vocabulary does");
    snprintf(fields, sizeof fields, "source: '%s' text_param { window: 2 vocabulary: '%s' }",
             ls_test_path("good.txt"), ls_test_path("bad.txt"));
    trial_source_fails("TEXT", fields, LOCKSTEP_DATA, "bad.txt: is no UTF-8 at byte 6");
    snprintf(fields, sizeof fields,
             "source: '%s' text_param { window: 2 unit: BYTE vocabulary: '%s' }",
             ls_test_path("good.txt"), ls_test_path("good.txt"));
    trial_source_fails("TEXT", fields, LOCKSTEP_DEFINITION, "vocabulary is for unit: CHARACTER");
    snprintf(fields, sizeof fields, "source: '%s' text_param { window: 2 separator: 10 }",
             ls_test_path("good.txt"));
    trial_source_fails("TEXT", fields, LOCKSTEP_DEFINITION,
                       "separator is 10, a character that the text does not");
    write_text("empty.txt", "");
    snprintf(fields, sizeof fields, "source: '%s' text_param { window: 2 }",
             ls_test_path("empty.txt"));
    trial_source_fails("TEXT", fields, LOCKSTEP_DATA,
                       "has 0 tokens, fewer than the 3 that a window takes");
}

/* The test layer takes the characters of the train layer; alone it would have other ids. */
static void a_test_has_the_vocabulary_of_the_training(void **state)
{
    (void)state;
    write_text("train.txt", "the quick brown fox");
    write_text("test.txt", "fox the box");
    for (int named = 0; named < 2; named++) {
        char text[4000];
        snprintf(text, sizeof text,
                 "layer { name: '%s' type: 'Data' top: 'x' include { phase: TRAIN } data_param { "
                 "backend: TEXT source: '%s' text_param { window: 4 } } } layer { name: 'text' "
                 "type: 'Data' top: 'x' include { phase: TEST } data_param { backend: TEXT source: "
                 "'%s' text_param { window: 4 } } }",
                 named ? "text" : "other", ls_test_path("train.txt"), ls_test_path("test.txt"));
        struct ls_definition *net = NULL;
        assert_int_equal(ls_text_read("net.prototxt", text, strlen(text),
                                      &lockstep__net_parameter__descriptor, &net, NULL),
                         0);
        Lockstep__NetParameter *parameter = (Lockstep__NetParameter *)net->message;
        struct ls_dataset *sets[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(
                ls_dataset_open(parameter->layer[i], net,
                                i == 0 ? LOCKSTEP__PHASE__TRAIN : LOCKSTEP__PHASE__TEST, 1,
                                &(struct ls_dataset_wishes){0}, &sets[i], NULL),
                0);
        assert_int_equal(ls_dataset_classes(sets[1]), ls_dataset_classes(sets[0]));
        assert_true(ls_dataset_has_vocabulary(sets[1]));
        const struct ls_class_names known = ls_dataset_class_names(sets[0]);
        assert_int_equal(ls_dataset_check_names(sets[1], &known, NULL), 0);
        ls_dataset_close(sets[0]);
        ls_dataset_close(sets[1]);
        ls_definition_free(net);
    }
}

static void vocabularies_are_compared(void **state)
{
    (void)state;
    write_text("abc.txt", "abcabc");
    write_text("abd.txt", "abdabd");
    struct ls_definition *layer[2];
    struct ls_dataset *set[2];
    for (int i = 0; i < 2; i++) {
        char fields[2000];
        snprintf(fields, sizeof fields,
                 "top: 'x' data_param { backend: TEXT source: '%s' text_param { window: 4 } }",
                 ls_test_path(i == 0 ? "abc.txt" : "abd.txt"));
        set[i] = trial_fields(fields, &layer[i]);
    }
    struct ls_error *error = calloc(1, sizeof *error);
    const struct ls_class_names other = ls_dataset_class_names(set[1]);
    assert_int_equal(ls_dataset_check_names(set[0], &other, error), LOCKSTEP_DATA);
    assert_says(error, "abc.txt: its vocabulary has 3 characters, and that of");
    assert_says(error,
                "abd.txt 3; number 2 is 'c' here and 'd' there. hint: text_param { vocabulary: ");
    ls_error_clear(error);
    const struct ls_class_names two = {(const char *const[]){"a", "b"}, 2, "x.safetensors", 0};
    assert_int_equal(ls_dataset_check_names(set[0], &two, error), LOCKSTEP_DATA);
    assert_says(error, "that of x.safetensors 2; number 2 is 'c' here and none there");
    assert_true(trial_fingerprint(set[0]) != trial_fingerprint(set[1]));
    free(error);
    for (int i = 0; i < 2; i++) {
        ls_dataset_close(set[i]);
        ls_definition_free(layer[i]);
    }
}

/* A file that is written to while it is in use. */
static void a_text_that_changes_ends_the_reading(void **state)
{
    (void)state;
    struct ls_text text = {0};
    for (int i = 0; i < 20000; i++)
        ls_text_add(&text, i % 2 == 0 ? "\xc3\xa9" : "e");
    const char *path = ls_test_path("text.txt");
    char fields[2000];
    write_text("text.txt", text.data);
    snprintf(fields, sizeof fields, "source: '%s' text_param { window: 100 }", path);
    struct ls_source *source = trial_source_opens("TEXT", fields);
    struct ls_source_reader *reader;
    struct ls_record record;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_source_reader_open(source, &reader, NULL), 0);
    memset(text.data, 'x', text.length);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, 6000, file), 6000);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(ls_source_read(reader, 3, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
    assert_says(error, "has other characters at byte");
    ls_error_clear(error);
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(ls_source_read(reader, 190, LS_ALL_TENSORS, &record, error), LOCKSTEP_DATA);
    assert_says(error, "text.txt");
    assert_false(reader->bad);
    free(error);
    ls_source_reader_close(reader);
    ls_source_close(source);
    ls_text_free(&text);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    write_text("text.txt", "a text, \xc3\xa9 and so on, and so on");
    struct ls_definition *layer =
        trial_layer("name: 'd' type: 'Data' top: 'x' data_param { backend: TEXT source: '%s' "
                    "text_param { window: 6 vocabulary: '%s' } }",
                    ls_test_path("text.txt"), ls_test_path("text.txt"));
    float out[6];
    void *outs[LS_RECORD_TENSORS] = {out};
    assert_true(trial_fail_allocations(layer, 3, outs) > 10);
    ls_definition_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: cmocka's handler of SIGBUS must not come behind that of the first view. */
        cmocka_unit_test(a_text_that_changes_ends_the_reading),
        cmocka_unit_test(characters_become_ids),
        cmocka_unit_test(bytes_are_ids_themselves),
        cmocka_unit_test(a_split_is_the_first_part),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(a_test_has_the_vocabulary_of_the_training),
        cmocka_unit_test(vocabularies_are_compared),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
