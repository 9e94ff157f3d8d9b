/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealing with libsodium: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), whose 24-byte nonce is emitter, boot and
 * sequence number, little-endian, in front of the message.
 * Invariants: no nonce is used twice under one key, because the boot id is random for each process and all seals of a
 * process draw from one sequence; a message is accepted at most once by one seal, because its number must be above the
 * window of the last WINDOW_BITS numbers or a clear bit in it.
 */
#include "wire/seal.h"

#include "wire/clock.h"
#include "wire/cursor.h"
#include "wire/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_BYTES          crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define NONCE_BYTES        crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES          crypto_aead_xchacha20poly1305_ietf_ABYTES
#define KEY_FILE_BYTES_MAX 4096
#define WINDOW_BITS        1024
#define SENDERS_MAX        4096
#define SENDER_SILENT_NS   600000000000u

_Static_assert(SEAL_OVERHEAD_BYTES == NONCE_BYTES + TAG_BYTES, "the overhead that callers make room for");

/* What has been heard of one boot of one emitter. */
struct sender {
    uint64_t emitter_id;
    uint64_t boot_id;
    uint64_t highest;
    uint64_t heard_ns;
    uint64_t window[WINDOW_BITS / 64]; /* bit (number % WINDOW_BITS) */
};

struct seal {
    uint8_t key[KEY_BYTES];
    uint64_t emitter_id;
    uint64_t boot_id;
    struct sender *senders;
    size_t senders_count;
};

static uint64_t next_sequence;

#define HOW_TO_MAKE_A_KEY "make one with: (umask 077; head -c 32 /dev/urandom | od -An -v -tx1 > %s)"

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static int parse_key(const char *text, size_t length, uint8_t key[KEY_BYTES])
{
    size_t digits = 0;

    for (size_t i = 0; i < length; i++) {
        if (isspace((unsigned char)text[i]))
            continue;
        if (!isxdigit((unsigned char)text[i]) || digits == 2 * KEY_BYTES)
            return -EINVAL;
        key[digits / 2] = (uint8_t)(key[digits / 2] << 4 | hex_digit(text[i]));
        digits++;
    }
    return digits == 2 * KEY_BYTES ? 0 : -EINVAL;
}

static int check_mode(int descriptor, const char *path)
{
    struct stat status;

    if (fstat(descriptor, &status) != 0)
        return log_error_return(-errno, "%s: %m", path);
    if ((status.st_mode & (S_IRWXO | S_IWGRP)) != 0)
        return log_error_return(-EPERM, "key file %s is open to others (mode %03o); run: chmod 600 %s", path,
                                status.st_mode & 0777, path);
    return 0;
}

static int read_key(int descriptor, const char *path, uint8_t key[KEY_BYTES])
{
    char text[KEY_FILE_BYTES_MAX];
    int error = check_mode(descriptor, path);

    if (error != 0)
        return error;
    ssize_t length = read(descriptor, text, sizeof text);
    if (length < 0)
        return log_error_return(-errno, "cannot read key file %s: %m", path);
    error = parse_key(text, (size_t)length, key);
    sodium_memzero(text, sizeof text);
    if (error != 0)
        return log_error_return(error, "key file %s does not hold 64 hexadecimal digits; " HOW_TO_MAKE_A_KEY, path,
                                path);
    return 0;
}

static int load_key(const char *path, uint8_t key[KEY_BYTES])
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);

    if (descriptor < 0)
        return log_error_return(-errno, "cannot open key file %s: %m; " HOW_TO_MAKE_A_KEY, path, path);
    int error = read_key(descriptor, path, key);
    close(descriptor);
    return error;
}

int seal_create(struct seal **seal, const char *key_file, uint64_t emitter_id, uint64_t boot_id)
{
    if (sodium_init() < 0)
        return log_error_return(-EIO, "libsodium does not start: no source of random numbers");
    struct seal *made = calloc(1, sizeof *made);
    if (made == NULL)
        return -ENOMEM;
    made->emitter_id = emitter_id;
    made->boot_id = boot_id;
    made->senders = calloc(SENDERS_MAX, sizeof *made->senders);
    int error = made->senders == NULL ? -ENOMEM : load_key(key_file, made->key);
    if (error != 0) {
        seal_destroy(&made);
        return error;
    }
    *seal = made;
    return 0;
}

void seal_destroy(struct seal **seal)
{
    if (*seal == NULL)
        return;
    sodium_memzero((*seal)->key, sizeof(*seal)->key);
    free((*seal)->senders);
    free(*seal);
    *seal = NULL;
}

size_t seal_close(struct seal *seal, const void *clear, size_t length_bytes, void *sealed)
{
    uint64_t nonce[3] = {seal->emitter_id, seal->boot_id, __atomic_fetch_add(&next_sequence, 1, __ATOMIC_RELAXED)};
    uint8_t *out = sealed;

    memcpy(out, nonce, NONCE_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out + NONCE_BYTES, NULL, clear, length_bytes, NULL, 0, NULL, out,
                                               seal->key);
    return length_bytes + SEAL_OVERHEAD_BYTES;
}

/* A place for a new sender: a free one, else that of the one who was silent longest. NULL when all are busy. */
static struct sender *place_for_sender(struct seal *seal, uint64_t now_ns)
{
    if (seal->senders_count < SENDERS_MAX)
        return &seal->senders[seal->senders_count++];
    struct sender *oldest = &seal->senders[0];
    for (size_t i = 1; i < SENDERS_MAX; i++)
        if (seal->senders[i].heard_ns < oldest->heard_ns)
            oldest = &seal->senders[i];
    return now_ns - oldest->heard_ns < SENDER_SILENT_NS ? NULL : oldest;
}

static struct sender *find_sender(struct seal *seal, uint64_t emitter_id, uint64_t boot_id)
{
    for (size_t i = 0; i < seal->senders_count; i++)
        if (seal->senders[i].emitter_id == emitter_id && seal->senders[i].boot_id == boot_id)
            return &seal->senders[i];
    return NULL;
}

/* Forgets the numbers that fall out of the window when `number` becomes the highest. */
static void advance_window(struct sender *sender, uint64_t number)
{
    uint64_t steps = number - sender->highest;

    if (steps >= WINDOW_BITS) {
        memset(sender->window, 0, sizeof sender->window);
    } else {
        for (uint64_t at = sender->highest + 1; at <= number; at++)
            sender->window[at % WINDOW_BITS / 64] &= ~(1ull << at % 64);
    }
    sender->highest = number;
}

static int accept_number(struct sender *sender, uint64_t number)
{
    if (number > sender->highest)
        advance_window(sender, number);
    else if (sender->highest - number >= WINDOW_BITS)
        return -EALREADY;
    uint64_t bit = 1ull << number % 64;
    uint64_t *word = &sender->window[number % WINDOW_BITS / 64];
    if ((*word & bit) != 0)
        return -EALREADY;
    *word |= bit;
    return 0;
}

static int accept_once(struct seal *seal, const uint64_t nonce[3])
{
    uint64_t now_ns = clock_now_ns();
    struct sender *sender = find_sender(seal, nonce[0], nonce[1]);

    if (sender == NULL) {
        sender = place_for_sender(seal, now_ns);
        if (sender == NULL)
            return -ENOSPC;
        *sender = (struct sender){.emitter_id = nonce[0], .boot_id = nonce[1], .highest = nonce[2]};
    }
    sender->heard_ns = now_ns;
    return accept_number(sender, nonce[2]);
}

int seal_open(struct seal *seal, const void *sealed, size_t length_bytes, void *clear, size_t *clear_bytes)
{
    uint64_t nonce[3];
    struct cursor cursor;

    cursor_init(&cursor, sealed, length_bytes);
    if (!cursor_copy(&cursor, nonce, sizeof nonce) || cursor_left(&cursor) < TAG_BYTES)
        return -EBADMSG;
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(clear, NULL, NULL, cursor.at, cursor_left(&cursor), NULL, 0, sealed,
                                                   seal->key) != 0)
        return -EBADMSG;
    int error = accept_once(seal, nonce);
    if (error != 0)
        return error;
    *clear_bytes = length_bytes - SEAL_OVERHEAD_BYTES;
    return 0;
}

void seal_digest(const void *bytes, size_t length_bytes, uint8_t digest[16])
{
    crypto_generichash_blake2b(digest, 16, bytes, length_bytes, NULL, 0);
}

uint64_t seal_random(void)
{
    uint64_t number = 0;

    while (number == 0)
        randombytes_buf(&number, sizeof number);
    return number;
}
