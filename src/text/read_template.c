/* The post-processor and the decoder of a tokenizer.json. See text/read.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "text/read.h"

static bool is_absent(const struct ls_json_node *node)
{
    return node == NULL || node->kind == LS_JSON_NULL;
}

static int add_piece(const struct ls_token_reader *reader, const struct ls_json_node *node,
                     struct ls_template *template, enum ls_template_kind kind, uint32_t token,
                     uint32_t segment)
{
    if (template->count == LS_TEMPLATE_MAX)
        return ls_read_refuse(reader, node, NULL, "a template of more than %d pieces",
                              LS_TEMPLATE_MAX);
    template->pieces[template->count++] =
        (struct ls_template_piece){.kind = kind, .token = token, .segment = segment};
    return 0;
}

/* ---- BertProcessing and RobertaProcessing ---------------------------------------------------- */

/* A pair [token, id]. */
static int read_pair(const struct ls_token_reader *reader, const struct ls_json_node *node,
                     const char *name, uint32_t *id)
{
    const struct ls_json_node *token;
    LS_TRY(ls_read_array(reader, node, name, &token));
    const struct ls_json_node *number = token != NULL ? ls_json_next(reader->tree, token) : NULL;
    if (number == NULL || token->kind != LS_JSON_STRING || number->kind != LS_JSON_INTEGER ||
        number->integer < 0 || number->integer >= LS_TOKEN_IDS)
        return ls_read_refuse(reader, node, NULL, "'%s' is not a token and its id", name);
    *id = (uint32_t)number->integer;
    return 0;
}

/* Roberta has two tokens between its texts, and one segment. */
static int bert(const struct ls_token_reader *reader, const struct ls_json_node *node, bool roberta)
{
    static const char *const known[] = {"type", "sep", "cls", NULL};
    static const char *const known_roberta[] = {
        "type", "sep", "cls", "trim_offsets", "add_prefix_space", NULL};
    struct ls_tokenizer *tokenizer = reader->tokenizer;
    uint32_t first, last;
    LS_TRY(ls_read_known(reader, node, "the post-processor", roberta ? known_roberta : known));
    LS_TRY(read_pair(reader, node, "cls", &first));
    LS_TRY(read_pair(reader, node, "sep", &last));
    for (int pair = 0; pair < 2; pair++) {
        struct ls_template *template = pair ? &tokenizer->pair : &tokenizer->single;
        LS_TRY(add_piece(reader, node, template, LS_TEMPLATE_TOKEN, first, 0));
        LS_TRY(add_piece(reader, node, template, LS_TEMPLATE_FIRST, 0, 0));
        LS_TRY(add_piece(reader, node, template, LS_TEMPLATE_TOKEN, last, 0));
    }
    if (roberta)
        LS_TRY(add_piece(reader, node, &tokenizer->pair, LS_TEMPLATE_TOKEN, last, 0));
    LS_TRY(add_piece(reader, node, &tokenizer->pair, LS_TEMPLATE_SECOND, 0, !roberta));
    return add_piece(reader, node, &tokenizer->pair, LS_TEMPLATE_TOKEN, last, !roberta);
}

/* ---- TemplateProcessing ---------------------------------------------------------------------- */

/* The ids that `special_tokens` gives to a name. */
static int add_special(const struct ls_token_reader *reader, const struct ls_json_node *processor,
                       const struct ls_json_node *piece, const char *name, uint32_t segment,
                       struct ls_template *template)
{
    const struct ls_json_node *known =
        ls_json_find(reader->tree, ls_json_find(reader->tree, processor, "special_tokens"), name);
    const struct ls_json_node *id;
    if (known == NULL)
        return ls_read_refuse(reader, piece, NULL, "'%.100s' is not in 'special_tokens'", name);
    LS_TRY(ls_read_array(reader, known, "ids", &id));
    for (; id != NULL; id = ls_json_next(reader->tree, id)) {
        if (id->kind != LS_JSON_INTEGER || id->integer < 0 || id->integer >= LS_TOKEN_IDS)
            return ls_read_refuse(reader, id, NULL, "is no id of a token");
        LS_TRY(
            add_piece(reader, piece, template, LS_TEMPLATE_TOKEN, (uint32_t)id->integer, segment));
    }
    return 0;
}

static int read_piece(const struct ls_token_reader *reader, const struct ls_json_node *processor,
                      const struct ls_json_node *piece, struct ls_template *template)
{
    static const char *const known[] = {"Sequence", "SpecialToken", NULL};
    static const char *const inside[] = {"id", "type_id", NULL};
    int64_t segment = 0;
    const char *id = NULL;
    LS_TRY(ls_read_known(reader, piece, "a template's piece", known));
    const struct ls_json_node *what = ls_json_first(reader->tree, piece);
    if (piece->count != 1)
        return ls_read_refuse(reader, piece, NULL,
                              "a template's piece is one Sequence or "
                              "SpecialToken");
    LS_TRY(ls_read_known(reader, what, "a template's piece", inside));
    LS_TRY(ls_read_text(reader, what, "id", &id));
    LS_TRY(ls_read_integer(reader, what, "type_id", INT32_MAX, &segment));
    if (id == NULL)
        return ls_read_refuse(reader, what, NULL, "has no 'id'");
    if (strcmp(ls_json_name(reader->tree, what), "SpecialToken") == 0)
        return add_special(reader, processor, piece, id, (uint32_t)segment, template);
    if (strcmp(id, "A") != 0 && strcmp(id, "B") != 0)
        return ls_read_refuse(reader, what, NULL, "the sequence '%.100s' is neither A nor B", id);
    return add_piece(reader, piece, template, id[0] == 'A' ? LS_TEMPLATE_FIRST : LS_TEMPLATE_SECOND,
                     0, (uint32_t)segment);
}

/* Whether each of the texts is in a template once. */
static bool is_whole(const struct ls_template *template, bool pair)
{
    int first = 0, second = 0;
    for (size_t i = 0; i < template->count; i++) {
        first += template->pieces[i].kind == LS_TEMPLATE_FIRST;
        second += template->pieces[i].kind == LS_TEMPLATE_SECOND;
    }
    return first == 1 && second == pair;
}

static int template_processing(const struct ls_token_reader *reader,
                               const struct ls_json_node *node)
{
    static const char *const known[] = {"type", "single", "pair", "special_tokens", NULL};
    static const char *const names[] = {"single", "pair"};
    LS_TRY(ls_read_known(reader, node, "TemplateProcessing", known));
    for (int i = 0; i < 2; i++) {
        struct ls_template *template =
            i == 0 ? &reader->tokenizer->single : &reader->tokenizer->pair;
        const struct ls_json_node *piece;
        LS_TRY(ls_read_array(reader, node, names[i], &piece));
        for (; piece != NULL; piece = ls_json_next(reader->tree, piece))
            LS_TRY(read_piece(reader, node, piece, template));
        if (!is_whole(template, i == 1))
            return ls_read_refuse(reader, node, NULL,
                                  "the template '%s' has not each of its texts once", names[i]);
    }
    return 0;
}

int ls_read_post_processor(const struct ls_token_reader *reader, const struct ls_json_node *node,
                           int depth)
{
    static const char *const known[] = {"type", "processors", NULL};
    const char *type;
    if (is_absent(node))
        return 0;
    LS_TRY(ls_read_type(reader, node, "the post-processor", &type));
    if (strcmp(type, "ByteLevel") == 0)
        return 0; /* is about places in the text alone */
    const bool is_template = strcmp(type, "TemplateProcessing") == 0;
    const bool roberta = strcmp(type, "RobertaProcessing") == 0;
    if (is_template || roberta || strcmp(type, "BertProcessing") == 0) {
        if (reader->tokenizer->single.count > 0)
            return ls_read_refuse(reader, node, NULL, "a second post-processor that adds tokens");
        return is_template ? template_processing(reader, node) : bert(reader, node, roberta);
    }
    if (strcmp(type, "Sequence") != 0 || depth > 0)
        return ls_read_refuse(reader, node,
                              "there are BertProcessing, ByteLevel, RobertaProcessing, Sequence, "
                              "TemplateProcessing",
                              "the post-processor '%.100s' is not supported%s", type,
                              depth > 0 ? " here" : "");
    const struct ls_json_node *part;
    LS_TRY(ls_read_known(reader, node, "a Sequence", known));
    LS_TRY(ls_read_array(reader, node, "processors", &part));
    for (; part != NULL; part = ls_json_next(reader->tree, part))
        LS_TRY(ls_read_post_processor(reader, part, depth + 1));
    return 0;
}

/* ---- Decoders -------------------------------------------------------------------------------- */

int ls_read_decoder(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    static const char *const known[] = {"type", "prefix", "cleanup", NULL};
    struct ls_token_decoder *decoder = &reader->tokenizer->decoder;
    const char *type;
    if (is_absent(node))
        return 0;
    LS_TRY(ls_read_type(reader, node, "the decoder", &type));
    if (strcmp(type, "ByteLevel") == 0) {
        decoder->kind = LS_DECODER_BYTES;
        return 0;
    }
    if (strcmp(type, "WordPiece") != 0)
        return ls_read_refuse(reader, node, "there are ByteLevel and WordPiece",
                              "the decoder '%.100s' is not supported", type);
    LS_TRY(ls_read_known(reader, node, "the decoder", known));
    decoder->kind = LS_DECODER_WORDPIECE;
    decoder->clean_up = true;
    LS_TRY(ls_read_bool(reader, node, "cleanup", &decoder->clean_up));
    LS_TRY(ls_read_copy(reader, node, "prefix", &decoder->prefix));
    if (decoder->prefix == NULL)
        decoder->prefix = ls_copy_string("##");
    return decoder->prefix != NULL ? 0 : ls_fail_memory(reader->error, "a decoder");
}
