/* Normalizers. See text/normal.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/normal.h"

#include <string.h>
#include <utf8proc.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "text/characters.h"

void ls_normal_room_free(struct ls_normal_room *room)
{
    for (int i = 0; i < 2; i++)
        ls_text_free(&room->texts[i]);
    ls_free(room->characters);
    *room = (struct ls_normal_room){0};
}

static bool is_ascii(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

/* ---- NFD and the like ------------------------------------------------------------------------ */

static int combining_class(int32_t character)
{
    return utf8proc_get_property(character)->combining_class;
}

/* Puts characters that all have a combining class in the order of these classes, those of one class
 * as they were: in time that is proportional to their number, however long a run of them is. */
static bool order_run(int32_t *run, size_t count)
{
    size_t begin[257] = {0};
    bool ordered = true;
    for (size_t i = 1; i < count && ordered; i++)
        ordered = combining_class(run[i - 1]) <= combining_class(run[i]);
    if (ordered)
        return true;
    int32_t *copy = ls_alloc(count, sizeof *copy);
    if (copy == NULL)
        return false;
    memcpy(copy, run, count * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        begin[combining_class(copy[i]) + 1]++;
    for (int i = 0; i < 256; i++)
        begin[i + 1] += begin[i];
    for (size_t i = 0; i < count; i++)
        run[begin[combining_class(copy[i])]++] = copy[i];
    ls_free(copy);
    return true;
}

static bool order_marks(int32_t *characters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t end = i;
        while (end < count && combining_class(characters[end]) != 0)
            end++;
        if (end > i + 1 && !order_run(characters + i, end - i))
            return false;
        i = end;
    }
    return true;
}

enum { DECOMPOSED_MAX = 32 /* characters that one may become */ };

static bool decompose(struct ls_normal_room *room, const char *text, size_t length, bool compatible,
                      size_t *count)
{
    const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    size_t at = 0;
    *count = 0;
    while (at < length) {
        if (room->capacity - *count < DECOMPOSED_MAX) {
            const size_t capacity = 2 * room->capacity + 1024;
            int32_t *more = ls_resize(room->characters, capacity, sizeof *more);
            if (more == NULL)
                return false;
            room->characters = more;
            room->capacity = capacity;
        }
        const int32_t character = (int32_t)ls_utf8_take(text, &at);
        int boundary = 0;
        const utf8proc_ssize_t made =
            utf8proc_decompose_char(character, room->characters + *count, DECOMPOSED_MAX,
                                    (utf8proc_option_t)options, &boundary);
        if (made > 0 && made <= DECOMPOSED_MAX)
            *count += (size_t)made;
        else
            room->characters[(*count)++] = character;
    }
    return true;
}

static bool canonical(struct ls_normal_room *room, enum ls_normal_kind kind, const char *text,
                      size_t length, struct ls_text *out)
{
    const bool compatible = kind == LS_NORMAL_NFKD || kind == LS_NORMAL_NFKC;
    size_t count;
    if (!decompose(room, text, length, compatible, &count) || !order_marks(room->characters, count))
        return false;
    if (kind == LS_NORMAL_NFC || kind == LS_NORMAL_NFKC) {
        const utf8proc_ssize_t composed =
            utf8proc_normalize_utf32(room->characters, (utf8proc_ssize_t)count,
                                     (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
        count = composed < 0 ? 0 : (size_t)composed;
    }
    for (size_t i = 0; i < count; i++)
        ls_utf8_add(out, (uint32_t)room->characters[i]);
    return true;
}

/* ---- Character by character ------------------------------------------------------------------ */

static void add_changed(enum ls_normal_kind kind, uint32_t c, struct ls_text *out)
{
    switch (kind) {
    case LS_NORMAL_CLEAN:
        if (c == 0 || c == 0xfffd || ls_is_control(c))
            return;
        ls_utf8_add(out, ls_is_space(c) ? ' ' : c);
        return;
    case LS_NORMAL_IDEOGRAPHS:
        if (ls_is_ideograph(c))
            ls_text_add_bytes(out, " ", 1);
        ls_utf8_add(out, c);
        if (ls_is_ideograph(c))
            ls_text_add_bytes(out, " ", 1);
        return;
    case LS_NORMAL_NONSPACING:
    case LS_NORMAL_MARKS:
        if (!(kind == LS_NORMAL_MARKS ? ls_is_mark(c) : ls_is_nonspacing_mark(c)))
            ls_utf8_add(out, c);
        return;
    default: /* LOWERCASE: one character becomes two */
        if (c == 0x130)
            ls_text_add_bytes(out, "i\xcc\x87", 3);
        else
            ls_utf8_add(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
        return;
    }
}

/* What ASCII would become, at once. */
static void add_ascii(enum ls_normal_kind kind, const char *text, size_t length,
                      struct ls_text *out)
{
    const size_t begin = out->length;
    ls_text_add_bytes(out, text, length);
    if (out->failed || kind != LS_NORMAL_LOWERCASE)
        return;
    for (char *p = out->data + begin; p < out->data + out->length; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p + 'a' - 'A');
}

static void strip(const struct ls_normal *normal, const char *text, size_t length,
                  struct ls_text *out)
{
    size_t begin = 0, end = 0;
    bool inside = !normal->left;
    for (size_t at = 0; at < length;) {
        const bool space = ls_is_space(ls_utf8_take(text, &at));
        if (!space || !normal->right)
            end = at;
        inside = inside || !space;
        if (!inside)
            begin = at;
    }
    ls_text_add_bytes(out, text + begin, end > begin ? end - begin : 0);
}

static enum ls_found replace(const struct ls_normal *normal, struct ls_matcher *matcher,
                             const char *text, size_t length, size_t most, struct ls_text *out)
{
    size_t done = 0, from = 0;
    bool matched = false;
    while (from <= length) {
        size_t begin, end;
        const enum ls_found found =
            ls_pattern_find(normal->pattern, matcher, text, length, from, false, &begin, &end);
        if (found == LS_FOUND_NONE)
            break;
        if (found != LS_FOUND)
            return found;
        if (begin == end && matched && begin == done) { /* nothing, right behind a match */
            from += from < length ? ls_utf8_step(text[from]) : 1;
            continue;
        }
        ls_text_add_bytes(out, text + done, begin - done);
        ls_text_add(out, normal->content);
        if (out->length > most)
            return LS_FOUND_LONG;
        done = from = end;
        matched = true;
    }
    ls_text_add_bytes(out, text + done, length - done);
    return LS_FOUND;
}

static enum ls_found carry_out(const struct ls_normal *normal, struct ls_matcher *matcher,
                               struct ls_normal_room *room, const char *text, size_t length,
                               size_t most, struct ls_text *out)
{
    switch (normal->kind) {
    case LS_NORMAL_NFD:
    case LS_NORMAL_NFC:
    case LS_NORMAL_NFKD:
    case LS_NORMAL_NFKC:
        if (is_ascii(text, length))
            ls_text_add_bytes(out, text, length);
        else if (!canonical(room, normal->kind, text, length, out))
            return LS_FOUND_MEMORY;
        break;
    case LS_NORMAL_STRIP:
        strip(normal, text, length, out);
        break;
    case LS_NORMAL_PREPEND:
        if (length > 0)
            ls_text_add(out, normal->content);
        ls_text_add_bytes(out, text, length);
        break;
    case LS_NORMAL_REPLACE:
        return replace(normal, matcher, text, length, most, out);
    default:
        if (normal->kind != LS_NORMAL_CLEAN && is_ascii(text, length))
            add_ascii(normal->kind, text, length, out);
        else
            for (size_t at = 0; at < length;)
                add_changed(normal->kind, ls_utf8_take(text, &at), out);
        break;
    }
    return LS_FOUND;
}

/* The bytes that a text may become. */
static size_t most_of(size_t length)
{
    const uint64_t most = (uint64_t)LS_NORMAL_GROWTH * length + (1 << 20);
    return most < INT32_MAX ? (size_t)most : INT32_MAX;
}

enum ls_found ls_normalize(const struct ls_tokenizer *tokenizer, struct ls_matcher *matcher,
                           struct ls_normal_room *room, const char *text, size_t length,
                           const char **out, size_t *out_length)
{
    const size_t most = most_of(length);
    for (size_t i = 0; i < tokenizer->normal_count; i++) {
        struct ls_text *made = &room->texts[i % 2];
        made->length = 0;
        ls_text_add_bytes(made, "", 0);
        const enum ls_found found =
            carry_out(&tokenizer->normals[i], matcher, room, text, length, most, made);
        if (made->failed || found == LS_FOUND_MEMORY) {
            *made = (struct ls_text){.data = made->data, .capacity = made->capacity};
            return LS_FOUND_MEMORY;
        }
        if (found != LS_FOUND)
            return found;
        if (made->length > most)
            return LS_FOUND_LONG;
        text = made->data;
        length = made->length;
    }
    *out = text;
    *out_length = length;
    return LS_FOUND;
}
