/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 as Ethernet's, over the packet with the fields that change on its way taken as ones. Sources: InfiniBand
 * Architecture Specification volume 1, 7.8.1, annex A16 (an LRH of ones stands before a GRH on Ethernet) and A17 (the
 * same before an IP header; UDP's checksum is masked too). Eight bytes a step, by eight tables.
 */
#include "nic/frame/icrc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POLYNOMIAL    0xedb88320u
#define LRH_BYTES     8
#define IPV4_BYTES    20
#define IPV6_BYTES    40
#define UDP_BYTES     8
#define BTH_BYTES     12
#define ICRC_BYTES    4
#define HEADERS_BYTES (LRH_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES)

struct icrc {
    uint32_t tables[8][256];
};

static void fill_tables(struct icrc *icrc)
{
    for (unsigned i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        icrc->tables[0][i] = crc;
    }
    for (unsigned i = 0; i < 256; i++) {
        for (unsigned step = 1; step < 8; step++) {
            uint32_t crc = icrc->tables[step - 1][i];
            icrc->tables[step][i] = crc >> 8 ^ icrc->tables[0][crc & 0xff];
        }
    }
}

int icrc_create(struct icrc **icrc)
{
    struct icrc *made = malloc(sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    fill_tables(made);
    *icrc = made;
    return 0;
}

void icrc_destroy(struct icrc **icrc)
{
    free(*icrc);
    *icrc = NULL;
}

static uint32_t add(const struct icrc *icrc, uint32_t crc, const uint8_t *bytes, size_t length_bytes)
{
    const uint32_t(*tables)[256] = icrc->tables;

    for (; length_bytes >= 8; bytes += 8, length_bytes -= 8) {
        uint32_t first =
            crc ^ ((uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0]);
        crc = tables[7][first & 0xff] ^ tables[6][first >> 8 & 0xff] ^ tables[5][first >> 16 & 0xff] ^
              tables[4][first >> 24] ^ tables[3][bytes[4]] ^ tables[2][bytes[5]] ^ tables[1][bytes[6]] ^
              tables[0][bytes[7]];
    }
    for (; length_bytes != 0; bytes++, length_bytes--)
        crc = crc >> 8 ^ tables[0][(crc ^ *bytes) & 0xff];
    return crc;
}

static void mask_ipv4(uint8_t *ip)
{
    ip[1] = 0xff;  /* type of service */
    ip[8] = 0xff;  /* time to live */
    ip[10] = 0xff; /* checksum */
    ip[11] = 0xff;
}

/* Also a GRH. */
static void mask_ipv6(uint8_t *ip)
{
    ip[0] |= 0x0f; /* traffic class, flow label */
    ip[1] = 0xff;
    ip[2] = 0xff;
    ip[3] = 0xff;
    ip[7] = 0xff; /* hop limit */
}

/* Copies the headers up to and with the BTH, masked; returns their length. */
static size_t mask_headers(uint8_t headers[HEADERS_BYTES], const struct encapsulation *walk)
{
    size_t network_bytes = (size_t)(walk->in.at - walk->network);
    bool has_lrh = walk->network_kind == ENCAPSULATION_LRH;
    uint8_t *network = headers + (has_lrh ? 0 : LRH_BYTES);
    uint8_t *bth = network + network_bytes;

    memset(headers, 0xff, LRH_BYTES);
    memcpy(network, walk->network, network_bytes + BTH_BYTES);
    if (has_lrh) {
        network[0] |= 0xf0; /* virtual lane */
        if (network_bytes > LRH_BYTES)
            mask_ipv6(network + LRH_BYTES);
    } else if (network[0] >> 4 == 4) {
        mask_ipv4(network);
    } else {
        mask_ipv6(network);
    }
    if (walk->network_kind == ENCAPSULATION_IP)
        memset(bth - 2, 0xff, 2); /* UDP's checksum */
    bth[4] = 0xff;                /* FECN, BECN, reserved */
    return (size_t)(bth + BTH_BYTES - headers);
}

enum tally icrc_check(const struct icrc *icrc, const struct encapsulation *walk)
{
    uint8_t headers[HEADERS_BYTES];
    const uint8_t *bth = walk->in.at;

    if (walk->is_fragment || !walk->is_plain || cursor_left(&walk->in) < walk->transport_bytes)
        return TALLY_FRAMES_ICRC_UNVERIFIED;
    size_t rest_bytes = walk->transport_bytes - BTH_BYTES - ICRC_BYTES;
    const uint8_t *sent = bth + BTH_BYTES + rest_bytes;
    uint32_t crc = add(icrc, 0xffffffffu, headers, mask_headers(headers, walk));
    crc = ~add(icrc, crc, bth + BTH_BYTES, rest_bytes);
    return crc == ((uint32_t)sent[3] << 24 | (uint32_t)sent[2] << 16 | (uint32_t)sent[1] << 8 | sent[0])
               ? TALLY_FRAMES_ROCE
               : TALLY_FRAMES_BAD_ICRC;
}
