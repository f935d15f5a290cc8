/* The normalizer and the pre-tokenizer of a tokenizer.json. See text/read.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "text/read.h"

enum { DEPTH_MAX = 8 /* sequences in sequences */ };

static bool is_absent(const struct ls_json_node *node)
{
    return node == NULL || node->kind == LS_JSON_NULL;
}

/* Reads every part of a Sequence in order. */
static int each(const struct ls_token_reader *reader, const struct ls_json_node *node,
                const char *list, int depth,
                int (*read)(const struct ls_token_reader *reader, const struct ls_json_node *node,
                            int depth))
{
    const char *const known[] = {"type", list, NULL};
    const struct ls_json_node *part;
    if (depth == DEPTH_MAX)
        return ls_read_refuse(reader, node, NULL, "sequences more than %d deep", DEPTH_MAX);
    LS_TRY(ls_read_known(reader, node, "a Sequence", known));
    LS_TRY(ls_read_array(reader, node, list, &part));
    for (; part != NULL; part = ls_json_next(reader->tree, part))
        LS_TRY(read(reader, part, depth + 1));
    return 0;
}

/* ---- Normalizers ----------------------------------------------------------------------------- */

static int bert_normalizer(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    static const char *const known[] = {"type",          "clean_text", "handle_chinese_chars",
                                        "strip_accents", "lowercase",  NULL};
    bool clean = true, ideographs = true, lowercase = true;
    LS_TRY(ls_read_known(reader, node, "BertNormalizer", known));
    LS_TRY(ls_read_bool(reader, node, "clean_text", &clean));
    LS_TRY(ls_read_bool(reader, node, "handle_chinese_chars", &ideographs));
    LS_TRY(ls_read_bool(reader, node, "lowercase", &lowercase));
    bool strip = lowercase;
    LS_TRY(ls_read_bool(reader, node, "strip_accents", &strip));
    return ls_add_bert_normals(reader->tokenizer, clean, ideographs, strip, lowercase,
                               reader->error);
}

/* Strip, Prepend and Replace, which have members. */
static int normalizer_with_members(const struct ls_token_reader *reader,
                                   const struct ls_json_node *node, enum ls_normal_kind kind)
{
    static const char *const strip[] = {"type", "strip_left", "strip_right", NULL};
    static const char *const prepend[] = {"type", "prepend", NULL};
    static const char *const replace[] = {"type", "pattern", "content", NULL};
    LS_TRY(ls_read_known(reader, node, "the normalizer",
                         kind == LS_NORMAL_STRIP     ? strip
                         : kind == LS_NORMAL_PREPEND ? prepend
                                                     : replace));
    LS_TRY(ls_add_normal(reader->tokenizer, kind, reader->error));
    struct ls_normal *normal = &reader->tokenizer->normals[reader->tokenizer->normal_count - 1];
    if (kind == LS_NORMAL_STRIP) {
        normal->left = normal->right = true;
        LS_TRY(ls_read_bool(reader, node, "strip_left", &normal->left));
        return ls_read_bool(reader, node, "strip_right", &normal->right);
    }
    const char *name = kind == LS_NORMAL_PREPEND ? "prepend" : "content";
    LS_TRY(ls_read_copy(reader, node, name, &normal->content));
    if (normal->content == NULL)
        return ls_read_refuse(reader, node, NULL, "has no '%s'", name);
    return kind == LS_NORMAL_REPLACE ? ls_read_pattern(reader, node, &normal->pattern) : 0;
}

int ls_read_normalizer(const struct ls_token_reader *reader, const struct ls_json_node *node,
                       int depth)
{
    static const struct {
        const char *type;
        enum ls_normal_kind kind;
    } kinds[] = {{"NFC", LS_NORMAL_NFC},
                 {"NFD", LS_NORMAL_NFD},
                 {"NFKC", LS_NORMAL_NFKC},
                 {"NFKD", LS_NORMAL_NFKD},
                 {"Lowercase", LS_NORMAL_LOWERCASE},
                 {"StripAccents", LS_NORMAL_MARKS},
                 {"Strip", LS_NORMAL_STRIP},
                 {"Prepend", LS_NORMAL_PREPEND},
                 {"Replace", LS_NORMAL_REPLACE}};
    static const char *const type_alone[] = {"type", NULL};
    const char *type;
    if (is_absent(node))
        return 0;
    LS_TRY(ls_read_type(reader, node, "the normalizer", &type));
    if (strcmp(type, "Sequence") == 0)
        return each(reader, node, "normalizers", depth, ls_read_normalizer);
    if (strcmp(type, "BertNormalizer") == 0)
        return bert_normalizer(reader, node);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(type, kinds[i].type) != 0)
            continue;
        if (kinds[i].kind >= LS_NORMAL_STRIP)
            return normalizer_with_members(reader, node, kinds[i].kind);
        LS_TRY(ls_read_known(reader, node, type, type_alone));
        return ls_add_normal(reader->tokenizer, kinds[i].kind, reader->error);
    }
    return ls_read_refuse(reader, node,
                          "there are BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Prepend, "
                          "Replace, Sequence, Strip, StripAccents",
                          "the normalizer '%.100s' is not supported", type);
}

/* ---- Pre-tokenizers -------------------------------------------------------------------------- */

static int read_behavior(const struct ls_token_reader *reader, const struct ls_json_node *node,
                         enum ls_stage_behavior *behavior)
{
    static const char *const names[] = {[LS_SPLIT_REMOVED] = "Removed",
                                        [LS_SPLIT_ISOLATED] = "Isolated",
                                        [LS_SPLIT_CONTIGUOUS] = "Contiguous",
                                        [LS_SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [LS_SPLIT_WITH_NEXT] = "MergedWithNext"};
    const char *name = NULL;
    LS_TRY(ls_read_text(reader, node, "behavior", &name));
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *behavior = (enum ls_stage_behavior)i;
            return 0;
        }
    }
    if (name == NULL)
        return 0;
    return ls_read_refuse(reader, node,
                          "there are Removed, Isolated, Contiguous, MergedWithPrevious, "
                          "MergedWithNext",
                          "the behavior '%.100s' is not supported", name);
}

static int byte_level(const struct ls_token_reader *reader, const struct ls_json_node *node,
                      struct ls_stage *stage)
{
    static const char *const known[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                        NULL};
    bool prefix = true, cut = true, ignored;
    (void)stage;
    LS_TRY(ls_read_known(reader, node, "ByteLevel", known));
    LS_TRY(ls_read_bool(reader, node, "add_prefix_space", &prefix));
    LS_TRY(ls_read_bool(reader, node, "use_regex", &cut));
    LS_TRY(ls_read_bool(reader, node, "trim_offsets", &ignored)); /* of places in the text alone */
    return ls_add_byte_stages(reader->tokenizer, prefix, cut, reader->error);
}

static int bert_pre_tokenizer(const struct ls_token_reader *reader, const struct ls_json_node *node,
                              struct ls_stage *stage)
{
    static const char *const known[] = {"type", NULL};
    (void)stage;
    LS_TRY(ls_read_known(reader, node, "BertPreTokenizer", known));
    return ls_add_bert_stages(reader->tokenizer, reader->error);
}

static int whitespace(const struct ls_token_reader *reader, const struct ls_json_node *node,
                      struct ls_stage *stage)
{
    static const char *const known[] = {"type", NULL};
    LS_TRY(ls_read_known(reader, node, "Whitespace", known));
    stage->behavior = LS_SPLIT_REMOVED;
    stage->invert = true;
    if (ls_pattern_compile("[" LS_PATTERN_RUST_WORD "]+|"
                           "[^" LS_PATTERN_RUST_WORD LS_PATTERN_SPACE "]+",
                           LS_PATTERN_PCRE, &stage->pattern, NULL) != 0)
        return ls_fail_memory(reader->error, "a regular expression");
    return 0;
}

static int whitespace_split(const struct ls_token_reader *reader, const struct ls_json_node *node,
                            struct ls_stage *stage)
{
    static const char *const known[] = {"type", NULL};
    stage->match = LS_MATCH_SPACE;
    stage->behavior = LS_SPLIT_REMOVED;
    return ls_read_known(reader, node, "WhitespaceSplit", known);
}

static int punctuation(const struct ls_token_reader *reader, const struct ls_json_node *node,
                       struct ls_stage *stage)
{
    static const char *const known[] = {"type", "behavior", NULL};
    stage->match = LS_MATCH_PUNCTUATION;
    LS_TRY(ls_read_known(reader, node, "Punctuation", known));
    return read_behavior(reader, node, &stage->behavior);
}

static int digits(const struct ls_token_reader *reader, const struct ls_json_node *node,
                  struct ls_stage *stage)
{
    static const char *const known[] = {"type", "individual_digits", NULL};
    bool individual = false;
    stage->match = LS_MATCH_NUMBER;
    LS_TRY(ls_read_known(reader, node, "Digits", known));
    LS_TRY(ls_read_bool(reader, node, "individual_digits", &individual));
    stage->behavior = individual ? LS_SPLIT_ISOLATED : LS_SPLIT_CONTIGUOUS;
    return 0;
}

static int delimiter(const struct ls_token_reader *reader, const struct ls_json_node *node,
                     struct ls_stage *stage)
{
    static const char *const known[] = {"type", "delimiter", NULL};
    const char *text = "";
    size_t at = 0;
    LS_TRY(ls_read_known(reader, node, "CharDelimiterSplit", known));
    LS_TRY(ls_read_text(reader, node, "delimiter", &text));
    if (text[0] != '\0')
        stage->character = ls_utf8_take(text, &at);
    if (at == 0 || text[at] != '\0')
        return ls_read_refuse(reader, node, NULL, "'delimiter' is not one character");
    stage->match = LS_MATCH_CHARACTER;
    stage->behavior = LS_SPLIT_REMOVED;
    return 0;
}

static int split(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 struct ls_stage *stage)
{
    static const char *const known[] = {"type", "pattern", "behavior", "invert", NULL};
    LS_TRY(ls_read_known(reader, node, "Split", known));
    LS_TRY(ls_read_bool(reader, node, "invert", &stage->invert));
    LS_TRY(read_behavior(reader, node, &stage->behavior));
    return ls_read_pattern(reader, node, &stage->pattern);
}

int ls_read_pre_tokenizer(const struct ls_token_reader *reader, const struct ls_json_node *node,
                          int depth)
{
    static const struct {
        const char *type;
        int (*read)(const struct ls_token_reader *reader, const struct ls_json_node *node,
                    struct ls_stage *stage);
        bool adds; /* its stages itself */
    } kinds[] = {
        {"ByteLevel", byte_level, true},          {"BertPreTokenizer", bert_pre_tokenizer, true},
        {"Whitespace", whitespace, false},        {"WhitespaceSplit", whitespace_split, false},
        {"Punctuation", punctuation, false},      {"Digits", digits, false},
        {"CharDelimiterSplit", delimiter, false}, {"Split", split, false}};
    const char *type;
    if (is_absent(node))
        return 0;
    LS_TRY(ls_read_type(reader, node, "the pre-tokenizer", &type));
    if (strcmp(type, "Sequence") == 0)
        return each(reader, node, "pretokenizers", depth, ls_read_pre_tokenizer);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(type, kinds[i].type) != 0)
            continue;
        struct ls_stage stage = {.kind = LS_STAGE_SPLIT, .behavior = LS_SPLIT_ISOLATED};
        int status = kinds[i].read(reader, node, &stage);
        if (status == 0 && !kinds[i].adds)
            status = ls_add_stage(reader->tokenizer, &stage, reader->error);
        if (status != 0)
            ls_pattern_free(stage.pattern);
        return status;
    }
    return ls_read_refuse(reader, node,
                          "there are BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, "
                          "Punctuation, Sequence, Split, Whitespace, WhitespaceSplit",
                          "the pre-tokenizer '%.100s' is not supported", type);
}
