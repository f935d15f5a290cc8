/* Tokenizers against values of Hugging Face's package: hard texts and pairs of them, with and
 * without special tokens, cut and whole, and back to text (tools/reference/tokenizing.py).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "support/support.h"
#include "text/tokenizer.h"

struct bytes {
    char *data;
    size_t size;
};

/* "." is no byte at all, "-" is no text. */
static struct bytes from_hex(const char *hex)
{
    struct bytes bytes = {0};
    if (strcmp(hex, "-") == 0)
        return bytes;
    bytes.data = calloc(strlen(hex) / 2 + 2, 1);
    assert_non_null(bytes.data);
    for (; hex[0] != '\0' && hex[0] != '.'; hex += 2) {
        const char two[3] = {hex[0], hex[1], '\0'};
        bytes.data[bytes.size++] = (char)strtoul(two, NULL, 16);
    }
    return bytes;
}

struct opened {
    char name[64];
    struct ls_tokenizer *tokenizer;
    struct ls_encoder *encoder;
};

static void open_tokenizer(struct opened *opened, const char *name)
{
    char path[128];
    struct ls_error error = {0};
    if (strcmp(opened->name, name) == 0)
        return;
    ls_encoder_free(opened->encoder);
    ls_tokenizer_free(opened->tokenizer);
    snprintf(opened->name, sizeof opened->name, "%s", name);
    snprintf(path, sizeof path, "tests/unit/text/reference/%s.json", name);
    if (ls_tokenizer_open(ls_test_source(path), &opened->tokenizer, &error) != 0)
        fail_msg("%s: %s", name, error.problems[0].message);
    opened->encoder = ls_encoder_new(opened->tokenizer);
    assert_non_null(opened->encoder);
}

static void check_decoded(const struct opened *opened, const struct ls_encoding *encoding,
                          bool special, struct bytes wanted, size_t line)
{
    struct ls_text text = {0};
    ls_text_add(&text, "");
    assert_int_equal(ls_decode(opened->tokenizer, "a case", encoding->ids, encoding->count, special,
                               &text, NULL),
                     0);
    if (text.length != wanted.size || memcmp(text.data, wanted.data, wanted.size) != 0)
        fail_msg("case %zu (%s): '%s', not '%s'", line, opened->name, text.data, wanted.data);
    ls_text_free(&text);
}

static void check_case(struct opened *opened, char *text, size_t line)
{
    char *words[5], *state = NULL, *word;
    words[0] = strtok_r(text, " ", &state);
    for (int i = 1; i < 5; i++)
        words[i] = strtok_r(NULL, " ", &state);
    assert_non_null(words[4]);
    open_tokenizer(opened, words[0]);
    struct bytes first = from_hex(words[3]), second = from_hex(words[4]);
    const struct ls_encode_text what = {.name = "a case",
                                        .first = first.data,
                                        .first_length = first.size,
                                        .second = second.data,
                                        .second_length = second.size,
                                        .special = words[1][0] == '1',
                                        .most = strtoul(words[2], NULL, 10)};
    struct ls_encoding encoding;
    size_t count = 0;
    assert_int_equal(ls_encode(opened->encoder, &what, &encoding, NULL), 0);
    while ((word = strtok_r(NULL, " ", &state)) != NULL && strchr(word, '/') != NULL) {
        char *slash;
        const unsigned long id = strtoul(word, &slash, 10);
        if (count >= encoding.count || encoding.ids[count] != id ||
            encoding.segments[count] != strtoul(slash + 1, NULL, 10))
            fail_msg("case %zu (%s): token %zu is another one", line, opened->name, count);
        count++;
    }
    assert_int_equal(count, encoding.count);
    assert_non_null(word);
    struct bytes decoded = from_hex(word);
    check_decoded(opened, &encoding, what.special, decoded, line);
    free(first.data);
    free(second.data);
    free(decoded.data);
}

static void texts_have_the_ids_of_the_package(void **state)
{
    (void)state;
    struct opened opened = {.name = ""};
    size_t size, line = 0;
    char *text = ls_test_read(ls_test_source("tests/unit/text/reference/cases.txt"), &size);
    for (char *at = text, *end; *at != '\0'; at = end + 1) {
        end = strchr(at, '\n');
        assert_non_null(end);
        *end = '\0';
        check_case(&opened, at, ++line);
    }
    assert_true(line > 800);
    ls_encoder_free(opened.encoder);
    ls_tokenizer_free(opened.tokenizer);
    free(text);
}

/* Long words take no time that grows with their square. */
static void one_long_word_takes_little_time(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    static const char *const units[] = {"a", " ", "\n", "!", "A", "the", "\xcc\x81\xcc\xa7"};
    static const char *const names[] = {"gpt2", "llama3", "o200", "bert", "characters"};
    char *text = malloc(LENGTH);
    assert_non_null(text);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct opened opened = {.name = ""};
        open_tokenizer(&opened, names[n]);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            const size_t size = strlen(units[u]), length = LENGTH / size * size;
            for (size_t i = 0; i < length; i++)
                text[i] = units[u][i % size];
            const struct ls_encode_text what = {
                .name = "a word", .first = text, .first_length = length};
            struct ls_encoding encoding;
            assert_int_equal(ls_encode(opened.encoder, &what, &encoding, NULL), 0);
        }
        ls_encoder_free(opened.encoder);
        ls_tokenizer_free(opened.tokenizer);
    }
    free(text);
}

static void what_is_not_utf_8_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length, at;
    } cases[] = {{"ab\xff", 3, 2},
                 {"\x80", 1, 0},
                 {"abc\xe2\x82", 5, 3},
                 {"\xed\xa0\x80", 3, 0},
                 {"x\xc0\x80", 3, 1},
                 {"\xf4\x90\x80\x80", 4, 0},
                 {"\xf0\x9f\x98\x80\xf0", 5, 4}};
    struct opened opened = {.name = ""};
    open_tokenizer(&opened, "gpt2");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ls_error error = {0};
        struct ls_encoding encoding;
        char message[64];
        const struct ls_encode_text what = {
            .name = "text", .first = cases[i].text, .first_length = cases[i].length};
        assert_int_equal(ls_encode(opened.encoder, &what, &encoding, &error), LOCKSTEP_DATA);
        snprintf(message, sizeof message, "is not UTF-8 at byte %zu", cases[i].at);
        assert_string_equal(error.problems[0].message, message);
        assert_string_equal(error.problems[0].place, "text");
    }
    ls_encoder_free(opened.encoder);
    ls_tokenizer_free(opened.tokenizer);
}

/* Tokens one by one give the bytes of the text that they were made of. */
static void tokens_one_by_one_give_the_text(void **state)
{
    (void)state;
    static const char text[] = "na\xc3\xafve \xf0\x9f\x98\x80 \xe6\xbc\xa2!";
    struct opened opened = {.name = ""};
    struct ls_encoding encoding;
    struct ls_text made = {0};
    size_t bytes = 0;
    open_tokenizer(&opened, "llama3");
    const struct ls_encode_text what = {
        .name = "text", .first = text, .first_length = strlen(text), .special = true};
    assert_int_equal(ls_encode(opened.encoder, &what, &encoding, NULL), 0);
    for (size_t i = 0; i < encoding.count; i++) {
        ls_decode_token(opened.tokenizer, encoding.ids[i], i == 0, false, &made);
        bytes += ls_token_bytes(opened.tokenizer, encoding.ids[i]);
    }
    assert_string_equal(made.data, text);
    assert_int_equal(bytes, strlen(text));
    const uint32_t none = ls_tokenizer_size(opened.tokenizer);
    assert_int_equal(ls_decode(opened.tokenizer, "ids", &none, 1, true, &made, NULL),
                     LOCKSTEP_DATA);
    const struct ls_encode_text short_one = {.name = "text",
                                             .first = "a",
                                             .first_length = 1,
                                             .second = "b",
                                             .second_length = 1,
                                             .special = true,
                                             .most = 1};
    assert_int_equal(ls_encode(opened.encoder, &short_one, &encoding, NULL), LOCKSTEP_USAGE);
    ls_text_free(&made);
    ls_encoder_free(opened.encoder);
    ls_tokenizer_free(opened.tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_have_the_ids_of_the_package),
                                       cmocka_unit_test(one_long_word_takes_little_time),
                                       cmocka_unit_test(what_is_not_utf_8_is_refused),
                                       cmocka_unit_test(tokens_one_by_one_give_the_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
