/* Fuzzes the readers of tokenizers: bytes that begin with '{' are a tokenizer.json; others are
 * BERT's vocab.txt, and merges.txt beside a vocabulary. What is accepted encodes texts, alone and
 * in pairs, and decodes what came of them, and bytes that are no text.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void decode(const struct ls_tokenizer *tokenizer, const struct ls_encoding *encoding)
{
    struct ls_text text = {0};
    const uint32_t none = ls_tokenizer_size(tokenizer);
    for (size_t i = 0; i < encoding->count; i++)
        must(ls_token_bytes(tokenizer, encoding->ids[i]) < 1 << 30);
    (void)ls_decode(tokenizer, "fuzz", encoding->ids, encoding->count, true, &text, NULL);
    must(ls_decode(tokenizer, "fuzz", &none, 1, true, &text, NULL) != 0);
    ls_text_free(&text);
}

static void use(const struct ls_tokenizer *tokenizer, const uint8_t *bytes, size_t size)
{
    static const char hard[] =
        "The \xc3\xa9 \xe6\xbc\xa2 don't[MASK] 123\n\n a\xcc\x81\xcc\xa7!  ab";
    struct ls_encoder *encoder = ls_encoder_new(tokenizer);
    struct ls_encoding encoding;
    must(encoder != NULL);
    for (int i = 0; i < 4; i++) {
        struct ls_error error = {0};
        const struct ls_encode_text text = {.name = "fuzz",
                                            .first = i == 3 ? (const char *)bytes : hard,
                                            .first_length = i < 3       ? sizeof hard
                                                            : size < 64 ? size
                                                                        : 64,
                                            .second = i == 2 ? hard : NULL,
                                            .second_length = i == 2 ? 20 : 0,
                                            .special = i > 0,
                                            .most = i == 2 ? 7 : 0};
        const int status = ls_encode(encoder, &text, &encoding, &error);
        must((status == 0) == (error.count == 0));
        if (status == 0)
            decode(tokenizer, &encoding);
    }
    ls_encoder_free(encoder);
}

static void open_and_use(const char *path, const uint8_t *bytes, size_t size)
{
    struct ls_tokenizer *tokenizer;
    struct ls_error error = {0};
    const int status = ls_tokenizer_open(path, &tokenizer, &error);
    must((status == 0) == (tokenizer != NULL) && (status == 0) == (error.count == 0));
    if (status == 0)
        use(tokenizer, bytes, size);
    ls_tokenizer_free(tokenizer);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void read_lists(const uint8_t *bytes, size_t size)
{
    static const char vocabulary[] = "{\"a\":0,\"b\":1,\"ab\":2,\"\xc4\xa0\":3,\"\xc4\xa0"
                                     "a\":4}";
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    char place[64], vocab[96], merges[96], list[96];
    snprintf(place, sizeof place, "%s/lockstep-fuzz-tokenizer-%d", folder, (int)getpid());
    snprintf(vocab, sizeof vocab, "%s/vocab.json", place);
    snprintf(merges, sizeof merges, "%s/merges.txt", place);
    snprintf(list, sizeof list, "%s/vocab.txt", place);
    (void)mkdir(place, 0700);
    write_file(vocab, vocabulary, sizeof vocabulary - 1);
    write_file(merges, bytes, size);
    write_file(list, bytes, size);
    open_and_use(place, bytes, size);
    open_and_use(list, bytes, size);
    unlink(vocab);
    unlink(merges);
    unlink(list);
    rmdir(place);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    if (size == 0 || bytes[0] != '{') {
        read_lists(bytes, size);
        return 0;
    }
    const int file = memfd_create("tokenizer", MFD_CLOEXEC);
    must(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    open_and_use(path, bytes, size);
    close(file);
    return 0;
}
