/* SHA-256: the vectors of FIPS 180-4, and the same hash for bytes in pieces of any sizes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/sha256.h"

#include <string.h>

#include "support/support.h"

static void check(const char *bytes, size_t length, size_t piece, const char *expected)
{
    struct ls_sha256 hash;
    char text[LS_SHA256_TEXT];
    ls_sha256_begin(&hash);
    for (size_t at = 0; at < length; at += piece)
        ls_sha256_add(&hash, bytes + at, length - at < piece ? length - at : piece);
    ls_sha256_end(&hash, text);
    assert_string_equal(text, expected);
}

static void sha256_gives_the_published_vectors(void **state)
{
    (void)state;
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    check("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check(two_blocks, strlen(two_blocks), 64,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million_bytes_in_pieces_give_the_published_hash(void **state)
{
    (void)state;
    enum { MILLION = 1000000 };
    static char as[MILLION];
    memset(as, 'a', sizeof as);
    static const size_t pieces[] = {1, 7, 63, 64, 65, 1000, MILLION};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        check(as, sizeof as, pieces[i],
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_vectors),
        cmocka_unit_test(a_million_bytes_in_pieces_give_the_published_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
