/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: the number of statistics is asked for each time the kernel is let write them, and a driver that then has
 * another number than at the start gives none: the names would no longer fit.
 */
#include "nic/port/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATISTICS_MAX 16384u

struct ethtool {
    int socket;
    struct ifreq request;
    struct ethtool_drvinfo driver;
    struct ethtool_gstrings *names;
    struct ethtool_stats *values;
    size_t count;
};

static int ask(struct ethtool *ethtool, void *command)
{
    ethtool->request.ifr_data = command;
    return ioctl(ethtool->socket, SIOCETHTOOL, &ethtool->request) == 0 ? 0 : -errno;
}

static int count_now(struct ethtool *ethtool, size_t *count)
{
    int error;

    memset(&ethtool->driver, 0, sizeof ethtool->driver);
    ethtool->driver.cmd = ETHTOOL_GDRVINFO;
    error = ask(ethtool, &ethtool->driver);
    *count = ethtool->driver.n_stats;
    return error;
}

static int read_names(struct ethtool *ethtool)
{
    int error = count_now(ethtool, &ethtool->count);

    if (error != 0)
        return error;
    if (ethtool->count == 0 || ethtool->count > STATISTICS_MAX)
        return -EOPNOTSUPP;
    ethtool->names = calloc(1, sizeof *ethtool->names + ethtool->count * ETH_GSTRING_LEN);
    ethtool->values = calloc(1, sizeof *ethtool->values + ethtool->count * sizeof(uint64_t));
    if (ethtool->names == NULL || ethtool->values == NULL)
        return -ENOMEM;
    ethtool->names->cmd = ETHTOOL_GSTRINGS;
    ethtool->names->string_set = ETH_SS_STATS;
    ethtool->names->len = (uint32_t)ethtool->count;
    error = ask(ethtool, ethtool->names);
    for (size_t i = 0; error == 0 && i < ethtool->count; i++)
        ethtool->names->data[i * ETH_GSTRING_LEN + ETH_GSTRING_LEN - 1] = '\0';
    return error;
}

int ethtool_open(struct ethtool **ethtool, const char *interface)
{
    struct ethtool *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    snprintf(made->request.ifr_name, sizeof made->request.ifr_name, "%s", interface);
    made->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = made->socket < 0 ? -errno : read_names(made);
    if (error != 0) {
        ethtool_close(&made);
        return error;
    }
    *ethtool = made;
    return 0;
}

void ethtool_close(struct ethtool **ethtool)
{
    if (*ethtool == NULL)
        return;
    if ((*ethtool)->socket >= 0)
        close((*ethtool)->socket);
    free((*ethtool)->names);
    free((*ethtool)->values);
    free(*ethtool);
    *ethtool = NULL;
}

size_t ethtool_count(const struct ethtool *ethtool)
{
    return ethtool->count;
}

const char *ethtool_name(const struct ethtool *ethtool, size_t index)
{
    return (const char *)ethtool->names->data + index * ETH_GSTRING_LEN;
}

const char *ethtool_driver(const struct ethtool *ethtool)
{
    return ethtool->driver.driver;
}

const uint64_t *ethtool_read(struct ethtool *ethtool)
{
    size_t count = 0;

    if (count_now(ethtool, &count) != 0 || count != ethtool->count)
        return NULL;
    ethtool->values->cmd = ETHTOOL_GSTATS;
    ethtool->values->n_stats = (uint32_t)count;
    return ask(ethtool, ethtool->values) == 0 ? (const uint64_t *)ethtool->values->data : NULL;
}
