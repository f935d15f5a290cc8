/* Tokenizers' files that are broken, hostile or not supported: each is refused with what is wrong
 * and where, and nothing is read beyond its end. Files of GPT-2 and BERT beside tokenizer.json.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "support/support.h"
#include "text/tokenizer.h"

/* A tokenizer of three tokens, with one part in another way. */
#define WITH(parts, model) "{\"version\":\"1.0\"," parts "\"model\":{" model "}}"
#define BPE(vocab, merges) "\"type\":\"BPE\",\"vocab\":{" vocab "},\"merges\":[" merges "]"
#define ABC                "\"a\":0,\"b\":1,\"ab\":2"
#define PLAIN              BPE(ABC, "\"a b\"")

static void expect(const char *name, const char *text, const char *place, const char *message)
{
    struct ls_tokenizer *tokenizer;
    struct ls_error error = {0};
    const char *path = ls_test_path(name);
    ls_test_write_text(path, text);
    const int status = ls_tokenizer_open(path, &tokenizer, &error);
    ls_tokenizer_free(tokenizer);
    if (message == NULL) {
        if (status != 0)
            fail_msg("'%s' is refused: %s", text, error.problems[0].message);
        return;
    }
    if (status != LOCKSTEP_DATA || error.count == 0)
        fail_msg("'%s' is not refused", text);
    if (strstr(error.problems[0].message, message) == NULL)
        fail_msg("'%s': '%s' says not '%s'", text, error.problems[0].message, message);
    const char *said = strstr(error.problems[0].place, name);
    if (said == NULL || strcmp(said + strlen(name), place) != 0)
        fail_msg("'%s': the place is '%s', not '%s'", text, error.problems[0].place, place);
}

static void broken_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *message;
    } cases[] = {
        {"", ":1:1", "a value was expected"},
        {"{\"model\":\n{\"vocab\"", ":2:9", "a ':' was expected"},
        {"{\"a\": 1,\n \"a\": 2}", ":2:7", "a second member of the same name"},
        {"{\"a\": \"\\u0000\"}", ":1:14", "NUL"},
        {"{\"a\": tru}", ":1:7", "a value was expected"},
        {"{\"a\": 01}", ":1:7", "a value was expected"},
        {"{\"a\": 1.}", ":1:7", "a value was expected"},
        {"{} {}", ":1:4", "more text behind the value"},
        {"[1, 2", ":1:6", "a ',' or ']' was expected"},
        {"{\"a\": \"\xff\"}", ":1:9", "not UTF-8"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", ":1:66",
         "nested more than 64 deep"},
        {"[1]", ":1:1", "is no object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect("t.json", cases[i].text, cases[i].place, cases[i].message);
}

static void vocabularies_that_contradict_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *model, *message;
    } cases[] = {
        {PLAIN, NULL},
        {BPE(ABC, "[\"a\",\"b\"]"), NULL},
        {BPE("\"a\":0,\"b\":0", ""), "the token 'b' has the id 0, which 'a' has already"},
        {BPE("\"a\":1099511627776", ""), "ids are from 0 to 16777215"},
        {BPE("\"a\":-1", ""), "ids are from 0 to 16777215"},
        {BPE("\"a\":1.5", ""), "the id of 'a' is no whole number"},
        {BPE("\"a\":99999999999999999999", ""), "the id of 'a' is no whole number"},
        {BPE(ABC, "\"a c\""), "has a token that is not in the vocabulary, 'c'"},
        {BPE(ABC, "\"b a\""), "what the merge 'b a' becomes is not in the vocabulary"},
        {BPE(ABC, "\"ab\""), "a merge is two strings"},
        {BPE(ABC, "\"a b c\""), "a merge is two strings"},
        {BPE(ABC, "[\"a\"]"), "a merge is two strings"},
        {BPE(ABC, "[1,2]"), "a merge is two strings"},
        {BPE(ABC, "7"), "a merge is two strings"},
        {PLAIN ",\"unk_token\":\"[UNK]\"", "'unk_token', '[UNK]', is not in the vocabulary"},
        {PLAIN ",\"dropout\":0.1", "'dropout', tokens that differ by chance"},
        {PLAIN ",\"dropout\":null", NULL},
        {PLAIN ",\"surprise\":1", "a member 'surprise', which is not supported"},
        {"\"type\":\"BPE\",\"merges\":[]", "the model has no vocabulary"},
        {"\"type\":\"BPE\",\"vocab\":{}", "there is no array 'merges'"},
        {"\"type\":\"BPE\",\"vocab\":{},\"merges\":{}", "'merges' is no array"},
        {"\"type\":\"Unigram\",\"vocab\":[]", "the model 'Unigram' is not supported"},
        {"\"type\":\"WordPiece\",\"vocab\":{\"a\":0}", "the model has no 'unk_token'"},
        {"\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"unk_token\":\"a\","
         "\"max_input_chars_per_word\":-3",
         "'max_input_chars_per_word' is no whole number"},
        {"\"vocab\":{}", "the model '' is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct ls_tokenizer *tokenizer;
        struct ls_error error = {0};
        snprintf(text, sizeof text, WITH("", "%s"), cases[i].model);
        ls_test_write_text(ls_test_path("m.json"), text);
        const int status = ls_tokenizer_open(ls_test_path("m.json"), &tokenizer, &error);
        ls_tokenizer_free(tokenizer);
        assert_int_equal(status, cases[i].message != NULL ? LOCKSTEP_DATA : 0);
        if (cases[i].message != NULL && strstr(error.problems[0].message, cases[i].message) == NULL)
            fail_msg("'%s' says not '%s'", error.problems[0].message, cases[i].message);
        if (cases[i].message != NULL)
            assert_non_null(strstr(error.problems[0].place, "m.json:1:"));
    }
}

#define NORMAL(part) "\"normalizer\":" part ","
#define CUT(part)    "\"pre_tokenizer\":" part ","
#define POST(part)   "\"post_processor\":" part ","
#define ADDED(part)  "\"added_tokens\":[" part "],"
#define REGEX(r)     CUT("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" r "\"}}")

static void parts_that_are_not_supported_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *part, *message;
    } cases[] = {
        {NORMAL("{\"type\":\"Precompiled\"}"), "the normalizer 'Precompiled' is not supported"},
        {NORMAL("{\"type\":\"NFC\",\"x\":1}"), "a member 'x', which is not supported"},
        {NORMAL("{\"type\":\"Prepend\"}"), "has no 'prepend'"},
        {NORMAL("{\"type\":\"Lowercase\"}"), NULL},
        {NORMAL("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"}]}"), NULL},
        {NORMAL("{\"type\":\"Sequence\"}"), "there is no array 'normalizers'"},
        {NORMAL("7"), "the normalizer is no object"},
        {CUT("{\"type\":\"Metaspace\"}"), "the pre-tokenizer 'Metaspace' is not supported"},
        {CUT("{\"type\":\"ByteLevel\",\"add_prefix_space\":1}"), "neither true nor false"},
        {CUT("{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"ab\"}"), "not one character"},
        {CUT("{\"type\":\"Split\"}"), "has no 'pattern'"},
        {REGEX("a+"), NULL},
        {REGEX("a(b"), "cannot be read"},
        {REGEX("(*LIMIT_MATCH=1)a"), "has (* at its byte 0"},
        {REGEX("[[:alpha:]]"), "a class in a class"},
        {REGEX("[a&&b]"), "&& in a class"},
        {REGEX("(?m)a"), "a group of an unusual kind"},
        {REGEX("a{2}+"), "a second sign behind {}"},
        {REGEX("(a)\\\\1"), "has \\1 at its byte 3"},
        {REGEX("\\\\p{Nonsense}"), "cannot be read"},
        {REGEX("\\\\x{41}\\\\u0042[\\\\w\\\\s]{,3}\\\\b"), NULL},
        {REGEX(""), "an empty pattern"},
        {CUT("{\"type\":\"Punctuation\",\"behavior\":\"Sometimes\"}"), "the behavior 'Sometimes'"},
        {POST("{\"type\":\"Sequence\",\"processors\":[{\"type\":\"Sequence\"}]}"),
         "the post-processor 'Sequence' is not supported here"},
        {POST("{\"type\":\"BertProcessing\",\"sep\":[\"a\",0],\"cls\":[\"b\"]}"),
         "'cls' is not a token and its id"},
        {POST("{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[],\"special_tokens\":{}}"),
         "the template 'single' has not each of its texts once"},
        {POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\","
              "\"type_id\":0}}],\"pair\":[],\"special_tokens\":{}}"),
         "'[CLS]' is not in 'special_tokens'"},
        {"\"decoder\":{\"type\":\"Metaspace\"},", "the decoder 'Metaspace' is not supported"},
        {ADDED("{\"id\":0,\"content\":\"a\"}"), NULL},
        {ADDED("{\"id\":7,\"content\":\"a\"}"), "has the id 7, but 0 in the vocabulary"},
        {ADDED("{\"id\":1,\"content\":\"x\"}"), "which is that of 'b' in the vocabulary"},
        {ADDED("{\"id\":5,\"content\":\"x\"},{\"id\":5,\"content\":\"y\"}"), "id of another one"},
        {ADDED("{\"id\":5,\"content\":\"x\"},{\"id\":6,\"content\":\"x\"}"), "is added twice"},
        {ADDED("{\"id\":5}"), "without 'content' or 'id'"},
        {ADDED("{\"id\":1099511627776,\"content\":\"x\"}"), "'id' is no whole number"},
        {"\"surprise\":1,", "a member 'surprise', which is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct ls_tokenizer *tokenizer;
        struct ls_error error = {0};
        snprintf(text, sizeof text, WITH("%s", PLAIN), cases[i].part);
        ls_test_write_text(ls_test_path("p.json"), text);
        const int status = ls_tokenizer_open(ls_test_path("p.json"), &tokenizer, &error);
        ls_tokenizer_free(tokenizer);
        if (status != (cases[i].message != NULL ? LOCKSTEP_DATA : 0))
            fail_msg("%s: %d, '%s'", cases[i].part, status, error.problems[0].message);
        if (cases[i].message != NULL && strstr(error.problems[0].message, cases[i].message) == NULL)
            fail_msg("'%s' says not '%s'", error.problems[0].message, cases[i].message);
    }
}

/* An expression that would try out more ways than there are atoms ends with a message. */
static void expressions_that_explode_are_stopped(void **state)
{
    (void)state;
    struct ls_tokenizer *tokenizer;
    struct ls_error error = {0};
    struct ls_encoding encoding;
    char text[4000];
    ls_test_write_text(ls_test_path("bomb.json"), WITH(REGEX("(a+)+b|(a|aa)+c"), PLAIN));
    assert_int_equal(ls_tokenizer_open(ls_test_path("bomb.json"), &tokenizer, &error), 0);
    struct ls_encoder *encoder = ls_encoder_new(tokenizer);
    memset(text, 'a', sizeof text);
    const struct ls_encode_text what = {
        .name = "input.txt", .first = text, .first_length = sizeof text};
    assert_int_equal(ls_encode(encoder, &what, &encoding, &error), LOCKSTEP_DATA);
    assert_non_null(strstr(error.problems[0].message, "takes too many steps on this text"));
    assert_string_equal(error.problems[0].place, "input.txt");
    ls_encoder_free(encoder);
    ls_tokenizer_free(tokenizer);
}

/* Encodes a text with a tokenizer.json; the status. */
static int encode(const char *tokenizer_text, const char *text, size_t length, size_t *count,
                  struct ls_error *error)
{
    struct ls_tokenizer *tokenizer;
    struct ls_encoding encoding;
    ls_test_write_text(ls_test_path("e.json"), tokenizer_text);
    assert_int_equal(ls_tokenizer_open(ls_test_path("e.json"), &tokenizer, error), 0);
    struct ls_encoder *encoder = ls_encoder_new(tokenizer);
    const struct ls_encode_text what = {.name = "in", .first = text, .first_length = length};
    const int status = ls_encode(encoder, &what, &encoding, error);
    *count = status == 0 ? encoding.count : 0;
    ls_encoder_free(encoder);
    ls_tokenizer_free(tokenizer);
    return status;
}

static char *repeated(char what, size_t count)
{
    char *text = malloc(count + 1);
    assert_non_null(text);
    memset(text, what, count);
    text[count] = '\0';
    return text;
}

/* 10 normalizers, each of which makes a text 10 times as long. */
static void normalizers_that_explode_are_stopped(void **state)
{
    (void)state;
    struct ls_text text = {0};
    struct ls_error error = {0};
    size_t count;
    ls_text_add(&text, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 10; i++)
        ls_text_format(&text, "%s%s", i > 0 ? "," : "",
                       "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":"
                       "\"aaaaaaaaaa\"}");
    ls_text_add(&text, "]},\"model\":{" PLAIN "}}");
    char *as = repeated('a', 1000);
    assert_int_equal(encode(text.data, as, 1000, &count, &error), LOCKSTEP_DATA);
    assert_non_null(strstr(error.problems[0].message, "make this text more than 256 times as"));
    memset(&error, 0, sizeof error);
    assert_int_equal(encode(WITH(NORMAL("{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
                                        "\"content\":\"aaaaaaaaaa\"}"),
                                 PLAIN),
                            as, 1000, &count, &error),
                     0);
    assert_int_equal(count, 10000);
    /* The same of an added token, when the file is read. */
    struct ls_tokenizer *tokenizer;
    const char *old = "{\"normalizer\"";
    assert_memory_equal(text.data, old, strlen(old));
    struct ls_text more = {0};
    ls_text_format(&more,
                   "{" ADDED("{\"id\":5,\"content\":\"aaaaaaaaaa\",\"normalized\":true}") "%s",
                   text.data + 1);
    ls_test_write_text(ls_test_path("added.json"), more.data);
    assert_int_equal(ls_tokenizer_open(ls_test_path("added.json"), &tokenizer, &error),
                     LOCKSTEP_DATA);
    assert_non_null(strstr(error.problems[0].message, "make an added token more than 256 times"));
    ls_text_free(&more);
    ls_text_free(&text);
    free(as);
}

/* What would take hours if the time grew with the square of a text, or the cube of a word. */
static void long_texts_take_no_more_than_their_time(void **state)
{
    (void)state;
    enum { SPACES = 1000000, WORD = 20000 };
    struct ls_error error = {0};
    size_t count;
    char *spaces = repeated(' ', SPACES), *word = repeated('a', WORD);
    assert_int_equal(encode(WITH(ADDED("{\"id\":7,\"content\":\" \",\"rstrip\":true}"), PLAIN),
                            spaces, SPACES, &count, &error),
                     0);
    assert_int_equal(count, SPACES);
    struct ls_text text = {0};
    ls_text_format(&text,
                   WITH("",
                        "\"type\":\"WordPiece\",\"unk_token\":\"a\",\"max_input_chars_per_word\":"
                        "65535,\"vocab\":{\"a\":0,\"##a\":1,\"##%.*sb\":2}"),
                   WORD - 1000, word);
    assert_int_equal(encode(text.data, word, WORD, &count, &error), 0);
    assert_int_equal(count, WORD);
    ls_text_free(&text);
    free(spaces);
    free(word);
}

static void lists_of_gpt2_and_bert_are_read(void **state)
{
    (void)state;
    struct ls_tokenizer *tokenizer;
    struct ls_error error = {0};
    uint32_t id;
    ls_test_write_text(ls_test_path("vocab.json"),
                       "{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3}");
    ls_test_write_text(ls_test_path("merges.txt"), "#version: 0.2\na b\n");
    assert_int_equal(ls_tokenizer_open(ls_test_directory(), &tokenizer, &error), 0);
    assert_true(ls_tokenizer_id(tokenizer, "<|endoftext|>", 13, &id));
    assert_true(ls_tokenizer_special(tokenizer, id));
    ls_tokenizer_free(tokenizer);
    expect("merges.txt", "a b\n", "", "holds the merges of a tokenizer");
    static const char *const merges[][3] = {{"a b\na c\n", ":2", "'c'"},
                                            {"a  b\n", ":1", "a merge is two tokens"},
                                            {"\na b\n", ":1", "a merge is two tokens"},
                                            {"a \xff\n", ":1", "a merge is two tokens"}};
    for (size_t i = 0; i < 4; i++) {
        memset(&error, 0, sizeof error);
        ls_test_write_text(ls_test_path("merges.txt"), merges[i][0]);
        assert_int_equal(ls_tokenizer_open(ls_test_path("vocab.json"), &tokenizer, &error),
                         LOCKSTEP_DATA);
        assert_non_null(strstr(error.problems[0].message, merges[i][2]));
        assert_non_null(strstr(error.problems[0].place, merges[i][1]));
    }
    expect("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n", "", NULL);
    expect("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", "", "there is no token [MASK]");
    expect("vocab.txt", "[PAD]\n[UNK]\n[PAD]\n", ":3", "is in the vocabulary already");
    expect("vocab.txt", "[PAD]\n\xff\n", ":2", "is not UTF-8");
    ls_test_write_text(ls_test_path("tokenizer_config.json"), "{\"do_lower_case\": 3}");
    memset(&error, 0, sizeof error);
    ls_test_write_text(ls_test_path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
    assert_int_equal(ls_tokenizer_open(ls_test_path("vocab.txt"), &tokenizer, &error),
                     LOCKSTEP_DATA);
    assert_non_null(strstr(error.problems[0].place, "tokenizer_config.json:1:"));
    assert_int_equal(ls_tokenizer_open(ls_test_path("none"), &tokenizer, NULL), LOCKSTEP_DATA);
    assert_null(tokenizer);
}

/* Every beginning of a file is refused, none is read beyond its end. */
static void no_beginning_of_a_file_is_a_tokenizer(void **state)
{
    (void)state;
    size_t size;
    char *text = ls_test_read(ls_test_source("tests/unit/text/reference/bert.json"), &size);
    while (size > 0 && text[size - 1] == '\n')
        size--;
    for (size_t length = 0; length < size; length += length < 300 ? 1 : 37) {
        struct ls_tokenizer *tokenizer;
        ls_test_write(ls_test_path("cut.json"), text, length);
        assert_int_equal(ls_tokenizer_open(ls_test_path("cut.json"), &tokenizer, NULL),
                         LOCKSTEP_DATA);
        assert_null(tokenizer);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(broken_json_is_refused_with_its_place),
                                       cmocka_unit_test(vocabularies_that_contradict_are_refused),
                                       cmocka_unit_test(parts_that_are_not_supported_are_named),
                                       cmocka_unit_test(expressions_that_explode_are_stopped),
                                       cmocka_unit_test(normalizers_that_explode_are_stopped),
                                       cmocka_unit_test(long_texts_take_no_more_than_their_time),
                                       cmocka_unit_test(lists_of_gpt2_and_bert_are_read),
                                       cmocka_unit_test(no_beginning_of_a_file_is_a_tokenizer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
