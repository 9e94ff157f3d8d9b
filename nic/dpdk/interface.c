/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks by SIOCGIFMTU and reads the network namespace's own table of counts. */
#include "nic/dpdk/interface.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MTU_USUAL_BYTES 1500

unsigned interface_mtu(const char *name)
{
    struct ifreq request = {.ifr_mtu = 0};
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (descriptor < 0 || ioctl(descriptor, SIOCGIFMTU, &request) != 0)
        request.ifr_mtu = MTU_USUAL_BYTES;
    if (descriptor >= 0)
        close(descriptor);
    return (unsigned)request.ifr_mtu;
}

uint64_t interface_frames(const char *name)
{
    FILE *file = fopen("/proc/thread-self/net/dev", "re");
    unsigned long long received, sent;
    char line[512], found[64];
    uint64_t count = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, " %63[^:]: %*u %llu %*u %*u %*u %*u %*u %*u %*u %llu", found, &received, &sent) == 3 &&
            strcmp(found, name) == 0)
            count = received + sent;
    }
    if (file != NULL)
        fclose(file);
    return count;
}
