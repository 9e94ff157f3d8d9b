/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seals messages (libsodium inside; nowhere else): XChaCha20-Poly1305 with a 32-byte shared key, the nonce made of
 * emitter, boot and a sequence number that is never used twice, sent along in clear. A receiver takes each
 * (emitter, boot, sequence) once. Also the project's digest. One thread an object.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SEAL_OVERHEAD_BYTES 40 /* nonce 24, tag 16 */

struct seal;

/*
 * The key file holds 64 hexadecimal digits (and white space), and must not be readable by others: -EPERM, -EINVAL or
 * another -errno, logged with what to do.
 */
int seal_create(struct seal **seal, const char *key_file, uint64_t emitter_id, uint64_t boot_id);
void seal_destroy(struct seal **seal);

/* `sealed` has room for length_bytes + SEAL_OVERHEAD_BYTES. Returns the sealed length. */
size_t seal_close(struct seal *seal, const void *clear, size_t length_bytes, void *sealed);

/*
 * `clear` has room for length_bytes - SEAL_OVERHEAD_BYTES. 0, -EBADMSG (does not open), -EALREADY (heard
 * before), -ENOSPC (new, but too many senders are being heard). */
int seal_open(struct seal *seal, const void *sealed, size_t length_bytes, void *clear, size_t *clear_bytes);

/* A digest for identities (BLAKE2b-128). */
void seal_digest(const void *bytes, size_t length_bytes, uint8_t digest[16]);

/* A random 64-bit number, never 0. */
uint64_t seal_random(void);
