// SHA-256 against the published examples, and fed in pieces of every size.
#include "base/hash.h"
#include "tests/test.h"

static void known_texts_have_their_published_hashes(void) {
    char hex[HASH_HEX_SIZE];
    sha256_hex(hex, "", 0);
    CHECK_TEXT(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_hex(hex, "abc", 3);
    CHECK_TEXT(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    sha256_hex(hex, two, strlen(two));
    CHECK_TEXT(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million_letters_hash_as_published(void) {
    Sha256 hash;
    sha256_init(&hash);
    char thousand[1000];
    memset(thousand, 'a', sizeof thousand);
    for (int i = 0; i < 1000; i++)
        sha256_add(&hash, thousand, sizeof thousand);
    uint8_t digest[HASH_BYTES];
    char hex[HASH_HEX_SIZE];
    sha256_end(&hash, digest);
    sha256_format(hex, digest);
    CHECK_TEXT(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_of_any_size_hash_as_the_whole(void) {
    char text[300];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    for (size_t length = 0; length < sizeof text; length += 13) {
        char whole[HASH_HEX_SIZE], pieces[HASH_HEX_SIZE];
        sha256_hex(whole, text, length);
        for (size_t piece = 1; piece < 140; piece += 9) {
            Sha256 hash;
            sha256_init(&hash);
            for (size_t at = 0; at < length; at += piece)
                sha256_add(&hash, text + at, length - at < piece ? length - at : piece);
            uint8_t digest[HASH_BYTES];
            sha256_end(&hash, digest);
            sha256_format(pieces, digest);
            CHECK_TEXT(pieces, whole);
        }
    }
}

int main(void) {
    RUN_TEST(known_texts_have_their_published_hashes);
    RUN_TEST(a_million_letters_hash_as_published);
    RUN_TEST(pieces_of_any_size_hash_as_the_whole);
    return test_end();
}
