/* SPDX-License-Identifier: BSD-2-Clause */
/* What a --port asks for. A device that DPDK has to make, or to find on a bus, becomes one argument of the EAL. */
#include "nic/dpdk/specification.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nic/dpdk/interface.h"
#include "nic/port/address.h"
#include "wire/log.h"

#define RING_FRAMES       2048u /* of net_af_packet: 20 ms at 60 MB/s are 300 frames of 4 KiB */
#define RING_BLOCK_FRAMES 8u
#define RING_EXTRA_BYTES  128u /* the kernel's own header, and room for VLAN tags */
#define ETHERNET_BYTES    14u
#define DESCRIPTORS       1024u /* of a virtual device, whose frames wait elsewhere */
#define CARD_DESCRIPTORS  8192u /* 0.3 ms at 24 million frames a second: as long as housekeeping may take */

/* The value of NAME=... in a device's arguments; empty when it is not there. */
static void find_argument(const char *device, const char *name, char *value, size_t capacity)
{
    size_t length = strlen(name);

    value[0] = '\0';
    for (const char *at = strchr(device, ','); at != NULL; at = strchr(at + 1, ',')) {
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '=')
            snprintf(value, capacity, "%.*s", (int)strcspn(at + length + 2, ","), at + length + 2);
    }
}

/* The interface below a virtual device, by any of the names that net_pcap and net_af_packet have for it. */
static void find_interface(const char *device, char *interface, size_t capacity)
{
    static const char *const names[] = {"iface", "rx_iface", "rx_iface_in"};

    interface[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0] && interface[0] == '\0'; i++)
        find_argument(device, names[i], interface, capacity);
}

/* Frame size of a net_af_packet ring: one frame of the interface's MTU, a whole number of pages for every block. */
static unsigned ring_frame_bytes(const char *interface)
{
    unsigned bytes = interface_mtu(interface) + ETHERNET_BYTES + RING_EXTRA_BYTES;
    unsigned unit = (unsigned)sysconf(_SC_PAGESIZE) / RING_BLOCK_FRAMES;

    return (bytes + unit - 1) / unit * unit;
}

static bool is_pci_address(const char *device)
{
    unsigned numbers[4];
    int length = 0;

    return sscanf(device, "%4x:%2x:%2x.%1x%n", &numbers[0], &numbers[1], &numbers[2], &numbers[3], &length) == 4 &&
           (device[length] == '\0' || device[length] == ',');
}

/* What is said to DPDK of a net_af_packet, but for what the user said. */
static int add_ring_arguments(const struct specification *specification, const char *device, unsigned queues,
                              char *more, size_t capacity)
{
    int length = 0;

    if (strstr(device, "framesz=") == NULL && strstr(device, "blocksz=") == NULL)
        length = snprintf(more, capacity, ",framesz=%u,blocksz=%u,framecnt=%u", specification->frame_bytes,
                          specification->frame_bytes * RING_BLOCK_FRAMES, RING_FRAMES);
    if (queues > 1 && strstr(device, "qpairs=") == NULL)
        length += snprintf(more + length, capacity - (size_t)length, ",qpairs=%u", queues);
    return length;
}

static int make_argument(struct specification *specification, const char *device, unsigned queues)
{
    const char *option = is_pci_address(device) ? "--allow=" : strncmp(device, "net_", 4) == 0 ? "--vdev=" : NULL;
    char more[96] = "";

    if (option == NULL)
        return 0; /* the name of a port that is there */
    if (specification->is_ring)
        add_ring_arguments(specification, device, queues, more, sizeof more);
    int length = snprintf(specification->argument, sizeof specification->argument, "%s%s%s", option, device, more);
    if (length >= (int)sizeof specification->argument)
        return log_error_return(-ENAMETOOLONG, "--port %.40s...: too long for an argument of DPDK", device);
    return 0;
}

int specification_read(struct specification *specification, const char *text, unsigned queues)
{
    const char *at = strrchr(text, '@');
    int length = at == NULL ? (int)strlen(text) : (int)(at - text);
    char device[SPECIFICATION_ARGUMENT_BYTES];
    struct specification read = {.argument = ""};

    if (length >= (int)sizeof device)
        return log_error_return(-ENAMETOOLONG, "--port %.40s...: too long for an argument of DPDK", text);
    snprintf(device, sizeof device, "%.*s", length, text);
    snprintf(read.device, sizeof read.device, "%.*s", (int)strcspn(device, ","), device);
    find_interface(device, read.interface, sizeof read.interface);
    if (at != NULL && address_read("port", at + 1, read.address) != 0)
        return -EINVAL;
    read.is_ring = strncmp(device, "net_af_packet", strlen("net_af_packet")) == 0;
    read.is_snapped = strncmp(device, "net_pcap", strlen("net_pcap")) == 0 && read.interface[0] != '\0';
    read.descriptors = strncmp(device, "net_", 4) == 0 ? DESCRIPTORS : CARD_DESCRIPTORS;
    read.frame_bytes = read.is_ring ? ring_frame_bytes(read.interface) : 0;
    int error = make_argument(&read, device, queues);
    if (error == 0)
        *specification = read;
    return error;
}
