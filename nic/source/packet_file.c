/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcap and pcapng. Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
 * Invariant: a record is looked at only when it lies in the buffer whole; no length from the file is trusted beyond
 * RECORD_BYTES_MAX.
 */
#include "nic/source/packet_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/cursor.h"
#include "wire/log.h"

#define BUFFER_BYTES     (1u << 20)
#define RECORD_BYTES_MAX (512u * 1024u)
#define INTERFACES_MAX   256

#define PCAP_MAGIC_US     0xa1b2c3d4u
#define PCAP_MAGIC_NS     0xa1b23c4du
#define PCAP_HEADER_BYTES 24
#define PCAP_RECORD_BYTES 16
#define PCAP_LINK_TYPE    0xffffu
#define PCAP_HAS_FCS      0x04000000u
#define PCAP_FCS_SHIFT    28 /* its length in 16-bit words */

#define NG_SECTION         0x0a0d0d0au
#define NG_INTERFACE       1u
#define NG_OBSOLETE_PACKET 2u
#define NG_SIMPLE_PACKET   3u
#define NG_ENHANCED_PACKET 6u
#define NG_BYTE_ORDER      0x1a2b3c4du
#define NG_BLOCK_BYTES_MIN 12u
#define NG_OPTION_TSRESOL  9
#define NG_OPTION_FCSLEN   13
#define NG_OPTION_TSOFFSET 14

struct interface {
    uint32_t snap_bytes;
    uint32_t link_type;
    enum frame_layer layer;
    uint8_t resolution; /* if_tsresol */
    uint8_t fcs_bytes;  /* at the end of each frame */
    int64_t offset_s;
};

struct packet_file {
    char *name;
    int descriptor; /* -1: all of it lies in `bytes` */
    uint8_t *buffer;
    const uint8_t *bytes;
    size_t length_bytes; /* in bytes */
    size_t position;     /* in bytes */
    uint64_t base_bytes; /* file offset of bytes[0] */
    bool is_ng;
    bool is_swapped; /* big-endian numbers */
    bool is_nanosecond;
    bool has_ended;
    bool has_given;  /* a packet of a link type that is read */
    bool has_warned; /* of one that is not */
    struct interface interfaces[INTERFACES_MAX];
    uint32_t interfaces_count;
};

static uint64_t offset_of(const struct packet_file *file)
{
    return file->base_bytes + file->position;
}

static uint16_t number16(const struct packet_file *file, struct cursor *in)
{
    return file->is_swapped ? cursor_be16(in) : cursor_le16(in);
}

static uint32_t number32(const struct packet_file *file, struct cursor *in)
{
    return file->is_swapped ? cursor_be32(in) : cursor_le32(in);
}

static uint64_t number64(const struct packet_file *file, struct cursor *in)
{
    return file->is_swapped ? cursor_be64(in) : cursor_le64(in);
}

/* Reads on until `wanted_bytes` lie behind the position; returns how many do. */
static size_t fill(struct packet_file *file, size_t wanted_bytes)
{
    size_t left = file->length_bytes - file->position;

    if (file->descriptor < 0 || left >= wanted_bytes)
        return left;
    memmove(file->buffer, file->buffer + file->position, left);
    file->base_bytes += file->position;
    file->position = 0;
    file->length_bytes = left;
    while (file->length_bytes < wanted_bytes) {
        ssize_t got = read(file->descriptor, file->buffer + file->length_bytes, BUFFER_BYTES - file->length_bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            log_error("%s: cannot be read on at byte %llu: %s", file->name,
                      (unsigned long long)(file->base_bytes + file->length_bytes), strerror(errno));
        if (got <= 0)
            break;
        file->length_bytes += (size_t)got;
    }
    return file->length_bytes;
}

static int cut(struct packet_file *file, const char *what)
{
    file->has_ended = true;
    return log_error_return(-EBADMSG, "%s: cut at byte %llu, within %s; what came before it was read", file->name,
                            (unsigned long long)(offset_of(file) + fill(file, 0)), what);
}

static int damaged(struct packet_file *file, const char *what)
{
    file->has_ended = true;
    return log_error_return(-EBADMSG, "%s: damaged at byte %llu: %s; what came before it was read", file->name,
                            (unsigned long long)offset_of(file), what);
}

static enum frame_layer find_layer(uint32_t link_type)
{
    switch (link_type) {
    case 1:
        return FRAME_LAYER_ETHERNET;
    case 12: /* what BSD systems wrote for raw IP */
    case 14:
    case 101:
    case 228:
    case 229:
        return FRAME_LAYER_RAW_IP;
    case 113:
        return FRAME_LAYER_SLL;
    case 197:
        return FRAME_LAYER_ERF;
    case 247:
        return FRAME_LAYER_INFINIBAND;
    case 276:
        return FRAME_LAYER_SLL2;
    default:
        return FRAME_LAYER_OTHER;
    }
}

static int refuse_link_type(const struct packet_file *file, uint32_t link_type)
{
    return log_error_return(-EPROTONOSUPPORT,
                            "%s: link type %u is not read (Ethernet 1, raw IP 101, Linux cooked 113 and 276, ERF 197 "
                            "and InfiniBand 247 are); convert the capture or take it on an Ethernet port",
                            file->name, link_type);
}

static int open_pcap(struct packet_file *file, uint32_t magic_le)
{
    struct cursor in;

    file->is_swapped = magic_le == __builtin_bswap32(PCAP_MAGIC_US) || magic_le == __builtin_bswap32(PCAP_MAGIC_NS);
    file->is_nanosecond = magic_le == PCAP_MAGIC_NS || magic_le == __builtin_bswap32(PCAP_MAGIC_NS);
    if (fill(file, PCAP_HEADER_BYTES) < PCAP_HEADER_BYTES)
        return cut(file, "the file header");
    cursor_init(&in, file->bytes + file->position, PCAP_HEADER_BYTES);
    cursor_skip(&in, 20);
    uint32_t link = number32(file, &in);
    file->interfaces[0].layer = find_layer(link & PCAP_LINK_TYPE);
    file->interfaces[0].fcs_bytes = (link & PCAP_HAS_FCS) != 0 ? (uint8_t)((link >> PCAP_FCS_SHIFT) * 2) : 0;
    if (file->interfaces[0].layer == FRAME_LAYER_OTHER)
        return refuse_link_type(file, link & PCAP_LINK_TYPE);
    file->position += PCAP_HEADER_BYTES;
    return 0;
}

static int open_any(struct packet_file *file)
{
    struct cursor in;

    size_t left = fill(file, 4);
    if (left == 0)
        return log_error_return(-ENODATA, "%s: is empty; a capture begins with a header", file->name);
    if (left < 4)
        return cut(file, "the file header");
    cursor_init(&in, file->bytes, 4);
    uint32_t magic = cursor_le32(&in);
    switch (magic) {
    case PCAP_MAGIC_US:
    case PCAP_MAGIC_NS:
    case 0xd4c3b2a1u:
    case 0x4d3cb2a1u:
        return open_pcap(file, magic);
    case NG_SECTION:
        file->is_ng = true;
        return fill(file, NG_BLOCK_BYTES_MIN) < NG_BLOCK_BYTES_MIN ? cut(file, "the file header") : 0;
    default:
        return log_error_return(-EPROTONOSUPPORT, "%s: is neither pcap nor pcapng (it begins with 0x%08x)", file->name,
                                __builtin_bswap32(magic));
    }
}

static int make(struct packet_file **file, const char *name)
{
    struct packet_file *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->descriptor = -1;
    made->name = strdup(name);
    if (made->name == NULL) {
        free(made);
        return -ENOMEM;
    }
    *file = made;
    return 0;
}

int packet_file_open_memory(struct packet_file **file, const char *name, const void *bytes, size_t length_bytes)
{
    struct packet_file *made;
    int error = make(&made, name);

    if (error != 0)
        return error;
    made->bytes = bytes;
    made->length_bytes = length_bytes;
    error = open_any(made);
    if (error != 0)
        packet_file_close(&made);
    else
        *file = made;
    return error;
}

int packet_file_open(struct packet_file **file, const char *path)
{
    struct packet_file *made;
    int error = make(&made, path);

    if (error != 0)
        return error;
    made->buffer = malloc(BUFFER_BYTES);
    made->bytes = made->buffer;
    made->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (made->buffer == NULL)
        error = -ENOMEM;
    else if (made->descriptor < 0)
        error = log_error_return(-errno, "%s: cannot be opened: %s", path, strerror(errno));
    else
        error = open_any(made);
    if (error != 0)
        packet_file_close(&made);
    else
        *file = made;
    return error;
}

void packet_file_close(struct packet_file **file)
{
    if (*file == NULL)
        return;
    if ((*file)->descriptor >= 0)
        close((*file)->descriptor);
    free((*file)->buffer);
    free((*file)->name);
    free(*file);
    *file = NULL;
}

/* A frame check sequence is no part of the frame, where the file says that it is there. */
static void remove_fcs(struct packet *packet, uint32_t fcs_bytes)
{
    if (fcs_bytes == 0)
        return;
    if (packet->original_bytes < packet->captured_bytes)
        packet->original_bytes = packet->captured_bytes;
    packet->original_bytes -= packet->original_bytes < fcs_bytes ? packet->original_bytes : fcs_bytes;
    if (packet->captured_bytes > packet->original_bytes)
        packet->captured_bytes = packet->original_bytes;
}

static int next_pcap(struct packet_file *file, struct packet *packet)
{
    struct cursor in;
    size_t left = fill(file, PCAP_RECORD_BYTES);

    if (left == 0)
        return 0;
    if (left < PCAP_RECORD_BYTES)
        return cut(file, "a record's header");
    cursor_init(&in, file->bytes + file->position, PCAP_RECORD_BYTES);
    uint64_t seconds = number32(file, &in);
    uint64_t fraction = number32(file, &in);
    packet->captured_bytes = number32(file, &in);
    packet->original_bytes = number32(file, &in);
    packet->at_ns = seconds * 1000000000u + fraction * (file->is_nanosecond ? 1 : 1000);
    packet->layer = file->interfaces[0].layer;
    if (packet->captured_bytes > RECORD_BYTES_MAX)
        return damaged(file, "a frame of more than 512 KiB");
    if (fill(file, PCAP_RECORD_BYTES + packet->captured_bytes) < PCAP_RECORD_BYTES + packet->captured_bytes)
        return cut(file, "a frame");
    packet->bytes = file->bytes + file->position + PCAP_RECORD_BYTES;
    file->position += PCAP_RECORD_BYTES + packet->captured_bytes;
    remove_fcs(packet, file->interfaces[0].fcs_bytes);
    return 1;
}

/* A time in units of if_tsresol: 10^-n, or 2^-n when the top bit is set. */
static uint64_t time_ns(const struct interface *interface, uint64_t units)
{
    unsigned exponent = interface->resolution & 0x7f;
    uint64_t whole_ns = 0;

    if ((interface->resolution & 0x80) != 0) {
        __extension__ unsigned __int128 wide = (unsigned __int128)units * 1000000000u;
        whole_ns = exponent < 128 ? (uint64_t)(wide >> exponent) : 0;
    } else {
        whole_ns = units;
        for (; exponent < 9; exponent++)
            whole_ns *= 10;
        for (; exponent > 9 && whole_ns != 0; exponent--)
            whole_ns /= 10;
    }
    return whole_ns + (uint64_t)interface->offset_s * 1000000000u;
}

static void read_interface_options(const struct packet_file *file, struct interface *interface, struct cursor *in)
{
    while (cursor_left(in) >= 4) {
        uint16_t code = number16(file, in);
        uint16_t length = number16(file, in);
        struct cursor value;
        const uint8_t *bytes = cursor_take(in, (length + 3u) & ~3u);
        if (code == 0 || bytes == NULL)
            return;
        cursor_init(&value, bytes, length);
        if (code == NG_OPTION_TSRESOL)
            interface->resolution = cursor_u8(&value);
        if (code == NG_OPTION_FCSLEN)
            interface->fcs_bytes = cursor_u8(&value);
        if (code == NG_OPTION_TSOFFSET && length == 8)
            interface->offset_s = (int64_t)number64(file, &value);
    }
}

static int read_interface(struct packet_file *file, struct cursor *in)
{
    if (file->interfaces_count == INTERFACES_MAX)
        return damaged(file, "more than 256 interfaces in a section");
    struct interface *interface = &file->interfaces[file->interfaces_count];
    *interface = (struct interface){.resolution = 6};
    interface->link_type = number16(file, in);
    cursor_skip(in, 2);
    interface->snap_bytes = number32(file, in);
    if (in->failed)
        return damaged(file, "an interface block that is too short");
    interface->layer = find_layer(interface->link_type);
    read_interface_options(file, interface, in);
    file->interfaces_count++;
    return 0;
}

static bool has_readable(const struct packet_file *file)
{
    for (uint32_t i = 0; i < file->interfaces_count; i++) {
        if (file->interfaces[i].layer != FRAME_LAYER_OTHER)
            return true;
    }
    return file->has_given;
}

/* One interface among others may be of a link type that is not read; a file of nothing else is refused. */
static int take_unread(struct packet_file *file, const struct interface *interface)
{
    if (!has_readable(file)) {
        file->has_ended = true;
        return refuse_link_type(file, interface->link_type);
    }
    if (!file->has_warned)
        log_warning("%s: an interface of link type %u is not read; its frames are counted as frames_link_type_total",
                    file->name, interface->link_type);
    file->has_warned = true;
    return 1;
}

static int take_packet(struct packet_file *file, struct packet *packet, uint32_t interface, struct cursor *in)
{
    packet->bytes = cursor_take(in, packet->captured_bytes);
    if (in->failed)
        return damaged(file, "a packet block that is shorter than its frame");
    if (interface >= file->interfaces_count)
        return damaged(file, "a packet of an interface that was not described");
    packet->layer = file->interfaces[interface].layer;
    remove_fcs(packet, file->interfaces[interface].fcs_bytes);
    return packet->layer == FRAME_LAYER_OTHER ? take_unread(file, &file->interfaces[interface]) : 1;
}

static int read_enhanced(struct packet_file *file, struct packet *packet, struct cursor *in, bool is_obsolete)
{
    uint32_t number = is_obsolete ? number16(file, in) : number32(file, in);

    if (is_obsolete)
        cursor_skip(in, 2);
    uint64_t high = number32(file, in);
    uint64_t units = high << 32 | number32(file, in);
    packet->captured_bytes = number32(file, in);
    packet->original_bytes = number32(file, in);
    packet->at_ns = number < file->interfaces_count ? time_ns(&file->interfaces[number], units) : 0;
    return take_packet(file, packet, number, in);
}

static int read_simple(struct packet_file *file, struct packet *packet, struct cursor *in)
{
    uint32_t snap_bytes = file->interfaces[0].snap_bytes;

    packet->original_bytes = number32(file, in);
    packet->captured_bytes = packet->original_bytes;
    if (snap_bytes != 0 && packet->captured_bytes > snap_bytes)
        packet->captured_bytes = snap_bytes;
    if (packet->captured_bytes > cursor_left(in))
        packet->captured_bytes = (uint32_t)cursor_left(in);
    packet->at_ns = 0;
    return take_packet(file, packet, 0, in);
}

/* A section header changes the byte order, also of its own length. */
static int begin_section(struct packet_file *file)
{
    struct cursor in;

    cursor_init(&in, file->bytes + file->position, NG_BLOCK_BYTES_MIN);
    cursor_skip(&in, 8);
    uint32_t order = cursor_le32(&in);
    if (order != NG_BYTE_ORDER && order != __builtin_bswap32(NG_BYTE_ORDER))
        return damaged(file, "a section header without its byte-order magic");
    file->is_swapped = order != NG_BYTE_ORDER;
    file->interfaces_count = 0;
    return 0;
}

/* The body of the next block. Returns 1, 0 at the end, or an error. */
static int next_block(struct packet_file *file, uint32_t *type, struct cursor *body)
{
    struct cursor in;
    size_t left = fill(file, NG_BLOCK_BYTES_MIN);

    if (left == 0)
        return 0;
    if (left < NG_BLOCK_BYTES_MIN)
        return cut(file, "a block's header");
    cursor_init(&in, file->bytes + file->position, 4);
    if (cursor_le32(&in) == NG_SECTION && begin_section(file) != 0)
        return -EBADMSG;
    cursor_init(&in, file->bytes + file->position, 8);
    *type = number32(file, &in);
    uint32_t block_bytes = number32(file, &in);
    if (block_bytes < NG_BLOCK_BYTES_MIN || block_bytes % 4 != 0 || block_bytes > RECORD_BYTES_MAX)
        return damaged(file, "a block whose length cannot be");
    if (fill(file, block_bytes) < block_bytes)
        return cut(file, "a block");
    cursor_init(body, file->bytes + file->position + 8, block_bytes - NG_BLOCK_BYTES_MIN);
    file->position += block_bytes;
    return 1;
}

static int next_ng(struct packet_file *file, struct packet *packet)
{
    for (;;) {
        struct cursor body;
        uint32_t type = 0;
        int result = next_block(file, &type, &body);
        if (result <= 0)
            return result;
        switch (type) {
        case NG_INTERFACE:
            result = read_interface(file, &body);
            if (result != 0)
                return result;
            break;
        case NG_ENHANCED_PACKET:
            return read_enhanced(file, packet, &body, false);
        case NG_OBSOLETE_PACKET:
            return read_enhanced(file, packet, &body, true);
        case NG_SIMPLE_PACKET:
            return read_simple(file, packet, &body);
        default:
            break;
        }
    }
}

int packet_file_next(struct packet_file *file, struct packet *packet)
{
    if (file->has_ended)
        return 0;
    int result = file->is_ng ? next_ng(file, packet) : next_pcap(file, packet);
    if (result <= 0)
        file->has_ended = true;
    else if (packet->layer != FRAME_LAYER_OTHER)
        file->has_given = true;
    return result;
}
