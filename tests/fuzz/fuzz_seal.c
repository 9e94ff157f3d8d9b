/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a sealed message, and as a message to seal. Checked: nothing opens that was not sealed with the key;
 * what was sealed opens to itself once; and it does not open with one byte changed, at a place that the input chooses.
 */
#include "wire/seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static struct seal *make_seal(void)
{
    static const char digits[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    int descriptor = memfd_create("key", MFD_CLOEXEC);
    struct seal *seal = NULL;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (fchmod(descriptor, 0600) != 0 || write(descriptor, digits, 64) != 64 || seal_create(&seal, path, 1, 2) != 0)
        abort();
    close(descriptor);
    return seal;
}

static void check_round_trip(struct seal *seal, const uint8_t *bytes, size_t length_bytes)
{
    uint8_t *sealed = malloc(length_bytes + SEAL_OVERHEAD_BYTES), *clear = malloc(length_bytes + 1);
    size_t clear_length = 0;

    if (sealed == NULL || clear == NULL)
        abort();
    size_t sealed_length = seal_close(seal, bytes, length_bytes, sealed);
    size_t at = length_bytes == 0 ? 0 : bytes[0] % sealed_length;
    sealed[at] ^= 0x40;
    if (seal_open(seal, sealed, sealed_length, clear, &clear_length) == 0)
        abort();
    sealed[at] ^= 0x40;
    if (seal_open(seal, sealed, sealed_length, clear, &clear_length) != 0 || clear_length != length_bytes ||
        memcmp(clear, bytes, length_bytes) != 0)
        abort();
    if (seal_open(seal, sealed, sealed_length, clear, &clear_length) == 0)
        abort();
    free(sealed);
    free(clear);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    static struct seal *seal;
    uint8_t *clear = malloc(length_bytes + 1);
    size_t clear_length;

    if (seal == NULL)
        seal = make_seal();
    if (clear == NULL || seal_open(seal, bytes, length_bytes, clear, &clear_length) == 0)
        abort();
    free(clear);
    check_round_trip(seal, bytes, length_bytes);
    return 0;
}
